"""Interpolation in compiled code, with derivatives with respect to points, knots and values."""

from __future__ import annotations

from irad.interpolate.grids import grid, linear
from irad.interpolate.splines import cubic, moments

__all__ = ["cubic", "grid", "linear", "moments"]
