"""Refusals of code without a Python form, in one wording."""

from __future__ import annotations

from irad.errors import UnsupportedError
from irad.ir.instructions import Instruction
from irad.ir.values import Value


def refused(
    what: str,
    at: Value | None = None,
    instead: str = "",
    why: str = "Python has no form for it that does the same",
) -> UnsupportedError:
    """The refusal of code without a Python form; ``instead`` is an alternative to reading LLVM's text."""
    remedy = f"{instead}, or look at the adjoint as LLVM IR" if instead else "look at the adjoint as LLVM IR"
    error = UnsupportedError(f"{what} cannot be written as Python", remedy, why)
    if isinstance(at, Instruction):
        error.instruction = at
    return error
