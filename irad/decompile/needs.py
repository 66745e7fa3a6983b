"""Gives the reverse sweep what it needs of the forward sweep, as `irad.passes.plan.materialise` does, but with names.

A saved value stays a placeholder, an affine variable too; any other value is computed again from these.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irad.decompile.memory.reads import AffineRead, Reads
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Freeze, Instruction, Select, replace_uses
from irad.ir.module import Block
from irad.ir.types import PointerType
from irad.ir.values import Undef, Value
from irad.passes.generated import GeneratedPair
from irad.passes.plan.rematerialisation import is_free
from irad.passes.reverse.sweep import Place


def replace_needs(captured: GeneratedPair, reads: Reads) -> None:
    """Puts what is needed in the place of the placeholders; ``reads`` tells what the ones that are left stand for."""
    sweep = captured.sweep
    placeholders = {need.placeholder for need in sweep.needs}
    heads: dict[Block, _Head] = {}
    for need in sweep.needs:
        block = need.place.block
        if block not in heads:
            anchor = next(i for i in block.instructions if i not in placeholders)
            heads[block] = _Head(captured, reads, need.place, Builder.before(anchor))
        if need.placeholder.users:
            replace_uses(need.placeholder, heads[block].get(need.value))
    for need in sweep.needs:
        need.placeholder.erase()


def keep_choices(captured: GeneratedPair) -> None:
    """Lets the forward sweep keep which array was chosen, where the reverse sweep would choose again.

    In Python that is a variable, and chosen there already.
    """
    plan, remat = captured.plan, captured.remat
    pending = [need.value for need in captured.sweep.needs if need.placeholder.users]
    seen: set[Value] = set()
    chosen: list[Value] = []
    while pending:
        value = pending.pop()
        if value in seen or value in plan.saved:
            continue
        seen.add(value)
        if isinstance(value, Select) and isinstance(value.type, PointerType):
            chosen.append(value)
        elif value in remat.affine:
            _, variable = remat.affine[value]
            pending += [v for v in (variable.start, variable.step) if isinstance(v, Value)]
        elif isinstance(value, Instruction) and not is_free(value):
            pending += value.operands
    captured.plan = plan.saving((*plan.saved, *chosen))


@dataclass(eq=False, slots=True)
class _Head:
    """Makes values at the head of one adjoint block, each once."""

    captured: GeneratedPair
    reads: Reads
    place: Place
    build: Builder
    made: dict[Value, Value] = field(default_factory=dict)

    def get(self, value: Value) -> Value:
        pending = [value]
        while pending:
            wanted = pending[-1]
            missing = [v for v in self._parts(wanted) if self._at_hand(v) is None] if not self._at_hand(wanted) else []
            if missing:
                pending.extend(reversed(missing))
                continue
            if self._at_hand(wanted) is None:
                self.made[wanted] = self._make(wanted)
            pending.pop()
        found = self._at_hand(value)
        assert found is not None
        return found

    def _at_hand(self, value: Value) -> Value | None:
        return value if is_free(value) else self.made.get(value)

    def _parts(self, value: Value) -> Iterable[Value]:
        captured = self.captured
        if value in captured.plan.saved:
            return ()
        if value in captured.remat.affine:
            _, variable = captured.remat.affine[value]
            return (variable.start,) if isinstance(variable.step, int) else (variable.start, variable.step)
        return value.operands if isinstance(value, Instruction) else ()

    def _make(self, value: Value) -> Value:
        captured = self.captured
        if value in captured.remat.affine and value not in captured.plan.saved:
            loop, variable = captured.remat.affine[value]
            start = self._at_hand(variable.start)
            step: Value | int = variable.step
            assert start is not None
            if isinstance(step, Value):
                found = self._at_hand(step)
                assert found is not None
                step = found
            placeholder = self._placeholder(value)
            placeholder.set_operands([start, step] if isinstance(step, Value) else [start])  # keeps them alive
            self.reads.affine[placeholder] = AffineRead(value, loop, start, step)
            return placeholder
        if value in captured.plan.saved or not isinstance(value, Instruction):
            placeholder = self._placeholder(value)
            self.reads.saved[placeholder] = value
            return placeholder
        copy = clone_instruction(value, {v: self.made[v] for v in value.operands if not is_free(v)})
        self.build.insert(copy)
        self.reads.recomputed[copy] = value
        return copy

    def _placeholder(self, value: Value) -> Freeze:
        made = Freeze(value.type, value.name, operands=[Undef(value.type)])
        self.build.insert(made)
        return made
