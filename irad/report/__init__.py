"""Reports on derivatives: what irad did to a function, and why. See README.md.

The public names stand in the stub beside this file, and load on first use, so that the model of a report can be used
without Numba.
"""

from __future__ import annotations

from pathlib import Path

from irad.lazy import LazyNames

_NAMES = LazyNames(__name__, Path(__file__).with_suffix(".pyi"))
__all__ = sorted(_NAMES.origins)
__dir__ = _NAMES.listed
__getattr__ = _NAMES.load
