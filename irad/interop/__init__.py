"""Bridges to the tools that people work in; each module imports its partner, and loads on first use. See README.md."""

from __future__ import annotations

from pathlib import Path

from irad.lazy import LazyNames

_NAMES = LazyNames(__name__, Path(__file__).with_suffix(".pyi"))
__all__ = sorted(_NAMES.origins)
__dir__ = _NAMES.listed
__getattr__ = _NAMES.load
