"""Pinned values: what the reverse sweep has from the forward sweep or from the tape, but never computes again.

Input   what could be computed again, and from what; the values that the reverse sweep itself makes decisions with.
Output  `Pinned`, asked by `irad.passes.plan.rematerialisation`.
Method  a value that is computed again is *loose* if its operation is rounded freely, or one of its floating-point
        operands is loose. A decision that would be made from loose numbers is pinned: so it is saved, and whatever
        follows from it (an index, an address, a trip count, what is loaded there) is computed again from what was
        saved. Integers, booleans and addresses are therefore never loose, nor is what memory holds.
Limit   a number that is saved for another reason counts as loose until it is known to be: then the decision is saved
        as well, which takes its bytes and is never wrong.

    %q = fdiv fast double %x, %h              loose
    %k = fptosi double %q to i64              pinned
    %p = getelementptr double, ptr %a, i64 %k computed again from the saved %k
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from irad.ir.instructions import Instruction
from irad.ir.types import holds_floats
from irad.ir.values import Value
from irad.passes.agreement.operations import is_decision, is_rounded_freely


@dataclass(eq=False, slots=True)
class Pinned:
    """Tells which values must not be computed again.

    Attributes:
        again: what a value could be computed again from; None where it could not.
        deciding: numbers that decide something in the reverse sweep.
    """

    again: Callable[[Value], Sequence[Value] | None]
    deciding: Container[Value]
    _loose: dict[Value, bool] = field(default_factory=dict)

    def is_pinned(self, value: Value) -> bool:
        """Whether a value decides something and would be computed from numbers that are rounded freely."""
        return (
            isinstance(value, Instruction)
            and (value in self.deciding or is_decision(value))
            and self._may_differ(value, self.again(value))
        )

    def _may_differ(self, value: Instruction, operands: Sequence[Value] | None) -> bool:
        """Whether a value that is computed again from these may be another number."""
        if operands is None:
            return False
        return is_rounded_freely(value) or any(self._is_loose(v) for v in operands if holds_floats(v.type))

    def _is_loose(self, value: Value) -> bool:
        """The operands are settled first, from a list of what is pending: chains are as long as functions."""
        pending = [value]
        while pending:
            current = pending[-1]
            operands = None if current in self._loose else self.again(current)
            unsettled = [v for v in operands or () if holds_floats(v.type) and v not in self._loose]
            if unsettled:
                pending.extend(unsettled)
                continue
            if current not in self._loose:
                self._loose[current] = (
                    isinstance(current, Instruction)
                    and current not in self.deciding
                    and not is_decision(current)
                    and self._may_differ(current, operands)
                )
            pending.pop()
        return self._loose[value]
