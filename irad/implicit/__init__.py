"""Solvers of equations, with the derivative of the solution."""

from __future__ import annotations

from irad.implicit.constrained import ConstrainedSolution
from irad.implicit.equations import solves
from irad.implicit.fixed_points import fixed_point
from irad.implicit.linear import bicgstab, cg, gmres, minres
from irad.implicit.minima import argmin
from irad.implicit.newton import brentq, newton
from irad.implicit.pseudoinverse import lsqr
from irad.implicit.quadratic import QuadraticSolution, quadratic_program
from irad.implicit.squares import least_squares
from irad.implicit.theorem import Solution

__all__ = [
    "ConstrainedSolution",
    "QuadraticSolution",
    "Solution",
    "argmin",
    "bicgstab",
    "brentq",
    "cg",
    "fixed_point",
    "gmres",
    "least_squares",
    "lsqr",
    "minres",
    "newton",
    "quadratic_program",
    "solves",
]
