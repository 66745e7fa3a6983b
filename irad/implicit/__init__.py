"""Solvers of equations, with the derivative of the solution."""

from __future__ import annotations

from irad.implicit.equations import solves
from irad.implicit.fixed_points import fixed_point
from irad.implicit.linear import bicgstab, cg, gmres
from irad.implicit.minima import argmin, least_squares
from irad.implicit.newton import brentq, newton

__all__ = ["argmin", "bicgstab", "brentq", "cg", "fixed_point", "gmres", "least_squares", "newton", "solves"]
