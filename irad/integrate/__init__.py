"""Integrals of functions in compiled code, with derivatives."""

from __future__ import annotations

from irad.integrate.cubature import cubature
from irad.integrate.quad import quad

__all__ = ["cubature", "quad"]
