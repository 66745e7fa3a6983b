"""Checks the contract on a finished pair: no decision is made again from numbers that are rounded freely.

Input   the two functions of a pair, whatever made them.
Output  none; an `InternalError` names the first violation.
Method  from each comparison, conversion and other decision of the reverse sweep backwards along floating-point
        operands, through code that is a copy of the forward sweep's: up to the tape, to memory, to arguments. Code of
        adjoints is looked at, too, unless a cotangent is among what it compares: those exist in one sweep only.
Limit   that memory and the tape hold what the forward sweep used is taken for granted.

    %q = fdiv fast double %x, %h      a copy of the forward sweep's
    %k = fptosi double %q to i64      violation: the forward sweep may have used another number
"""

from __future__ import annotations

from dataclasses import dataclass

from irad.errors import InternalError
from irad.ir.instructions import Alloca, CallSite, Cast, FCmp, Instruction, Load, Phi
from irad.ir.module import Function
from irad.ir.types import VOID, holds_floats
from irad.ir.values import Parameter, Value
from irad.ir.verifier import describe
from irad.ir.worklist import Worklist
from irad.passes.agreement.operations import is_decision, is_rounded_freely
from irad.passes.runtime import CHECKS


def check_agreement(augmented: Function, reverse: Function) -> None:
    """Checks that the reverse sweep makes no decision a second time.

    Raises:
        InternalError: it does.
    """
    origins = _Origins(augmented)
    for inst in reverse.instructions():
        if inst.type is VOID or not is_decision(inst) or not any(holds_floats(v.type) for v in inst.operands):
            continue
        if origins.is_copy(inst):
            found = origins.rounded_freely(inst)
        elif isinstance(inst, FCmp | Cast):
            found = origins.rounded_freely(inst, stops_at_cotangents=True)
        else:
            continue  # a call for a cotangent
        if found is not None:
            raise InternalError(
                f"in @{reverse.name}, {describe(inst)} decides something by {describe(found)}, which is computed again "
                "and may be rounded differently from the one in the forward sweep"
            )


@dataclass(frozen=True, slots=True)
class _Origins:
    """Distinguishes code that is computed again from code of adjoints."""

    augmented: Function

    def is_copy(self, inst: Instruction) -> bool:
        """Whether an instruction of the reverse sweep is a copy of one of the forward sweep."""
        origin = inst.origin
        return origin is not None and origin.block is not None and origin.block.function is self.augmented

    def rounded_freely(self, decision: Instruction, *, stops_at_cotangents: bool = False) -> Instruction | None:
        """The recomputed and freely rounded number that a decision depends on; None if there is none.

        Args:
            decision: where to start.
            stops_at_cotangents: a decision in which a cotangent takes part is not looked at.
        """
        found: Instruction | None = None
        pending = Worklist[Value]([decision])
        for value in pending:
            is_copy = isinstance(value, Instruction) and self.is_copy(value)
            if not is_copy and stops_at_cotangents and self._is_cotangent(value):
                return None
            if not isinstance(value, Instruction) or isinstance(value, Load):
                continue
            if is_copy and not _is_watched(value) and (is_rounded_freely(value) or _was_rounded_freely(value)):
                found = found or value
            pending.add(*(v for v in value.operands if holds_floats(v.type)))
        return found

    def _is_cotangent(self, value: Value) -> bool:
        """Whether a value that is not a copy may be made of cotangents: it comes from a slot, a shadow, a call."""
        match value:
            case Parameter() | Phi():
                return True
            case Load(operands=[pointer]):
                return value.origin is not None or isinstance(pointer, Alloca)
            case CallSite():
                return not all(holds_floats(v.type) for v in value.arguments)
            case _:
                return False


def _was_rounded_freely(copy: Instruction) -> bool:
    """Whether the original is: a copy may have lost its fast-math words, and is another number for that very reason."""
    return copy.origin is not None and is_rounded_freely(copy.origin)


def _is_watched(inst: Instruction) -> bool:
    """Whether it passes a number on to debug mode."""
    return isinstance(inst, CallSite) and isinstance(inst.callee, Function) and inst.callee.name in CHECKS.values()
