"""Choices: whether a branch or a selection depends on a comparison.

Input   a function in normal form with its analyses.
Output  a yes or no for each comparison. The function is not changed.
Method  forward along users; through memory from a store to the loads of the same type that may read it, as arrays of
        booleans are written by one loop and read by the next.
Limit   what leaves a function other than the entry may be asked for elsewhere, so it counts as deciding. What memory
        copies move is not followed.

    %c = fcmp ogt double %x, 0.0      decides, …
    store i1 %c, ptr %mask
    %m = load i1, ptr %mask           … if %mask may be what was written
    br i1 %m, label %a, label %b
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irad.ir.instructions import Binary, CallSite, Cast, CondBr, FCmp, ICmp, Instruction, Load, Phi, Ret, Select, Store
from irad.ir.module import Function
from irad.ir.values import Value
from irad.passes.analysis.callees import resolve
from irad.passes.unit import Unit


@dataclass(frozen=True, slots=True)
class Choices:
    """What the comparisons of a function decide."""

    unit: Unit

    def depend_on(self, comparison: FCmp) -> bool:
        """Whether a choice depends on a comparison."""
        pending: list[tuple[Instruction, Value]] = [(user, comparison) for user in comparison.users]
        seen: set[Instruction] = set()
        while pending:
            user, value = pending.pop()
            if user in seen:
                continue
            seen.add(user)
            match user:
                case CondBr() | Select():
                    return True
                case Ret() | CallSite() if self._leaves(user):
                    return True
                case Store(operands=[stored, pointer]) if stored is value:
                    if not self.unit.variant.is_entry:
                        return True
                    pending.extend((reader, load) for load in self._readers(pointer, value) for reader in load.users)
                case Binary() | Cast() | ICmp() | Phi():
                    pending.extend((each, user) for each in user.users)
                case _:
                    pass
        return False

    def _leaves(self, user: Instruction) -> bool:
        """Whether what is returned or passed may decide something elsewhere."""
        if isinstance(user, CallSite):
            return isinstance(resolve(user, self.unit.registry), Function)
        return not self.unit.variant.is_entry

    def _readers(self, pointer: Value, value: Value) -> Iterator[Load]:
        points_to = self.unit.points_to
        mask = points_to.mask(pointer)
        for inst in self.unit.function.instructions():
            if isinstance(inst, Load) and inst.type is value.type and points_to.mask(inst.operands[0]) & mask:
                yield inst
