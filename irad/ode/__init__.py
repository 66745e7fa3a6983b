"""Initial value problems in compiled code, with derivatives."""

from __future__ import annotations

from irad.ode.interpolant import evaluate
from irad.ode.solve import Solution, solve

__all__ = ["Solution", "evaluate", "solve"]
