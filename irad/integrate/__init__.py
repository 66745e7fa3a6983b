"""Integrals of functions and of samples in compiled code, with derivatives."""

from __future__ import annotations

from irad.integrate.cubature import cubature
from irad.integrate.quad import quad
from irad.integrate.samples import cumulative_simpson, cumulative_trapezoid, simpson, trapezoid

__all__ = ["cubature", "cumulative_simpson", "cumulative_trapezoid", "quad", "simpson", "trapezoid"]
