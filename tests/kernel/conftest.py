"""Kernels that tests launch here run as PTX, too."""

from __future__ import annotations

from tests.cuda.conftest import as_ptx

__all__ = ["as_ptx"]
