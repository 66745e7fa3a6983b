"""Interpolation in compiled code, with derivatives with respect to points, knots and values."""

from __future__ import annotations

from irad.interpolate.bsplines import (
    bspline,
    bspline_coefficients,
    bspline_knots,
    cubic_grid,
    grid_coefficients,
)
from irad.interpolate.cubics import (
    akima_slopes,
    clamped_slopes,
    hermite,
    pchip_slopes,
    periodic_slopes,
    spline_slopes,
)
from irad.interpolate.grids import grid, linear
from irad.interpolate.splines import cubic, moments

__all__ = [
    "akima_slopes",
    "bspline",
    "bspline_coefficients",
    "bspline_knots",
    "clamped_slopes",
    "cubic",
    "cubic_grid",
    "grid",
    "grid_coefficients",
    "hermite",
    "linear",
    "moments",
    "pchip_slopes",
    "periodic_slopes",
    "spline_slopes",
]
