"""What solves an equation, with the derivative of the solution."""

from __future__ import annotations

from irad.implicit.equations import solves

__all__ = ["solves"]
