"""Gives the reverse sweep what it needs of the forward sweep, as `irad.passes.plan.materialise` does, but with names.

A saved value stays a placeholder, an affine variable too; any other value is computed again from these.
"""

from __future__ import annotations

from dataclasses import dataclass

from irad.decompile.memory.reads import AffineRead, Reads
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Freeze, Instruction, Select
from irad.ir.types import PointerType
from irad.ir.values import Undef, Value
from irad.ir.worklist import Worklist
from irad.passes.generated import GeneratedPair
from irad.passes.plan.materialise import Head, replace_placeholders
from irad.passes.plan.rematerialisation import is_free


def replace_needs(captured: GeneratedPair, reads: Reads) -> None:
    """Puts what is needed in the place of the placeholders; ``reads`` tells what the ones that are left stand for."""
    saved = dict.fromkeys(captured.plan.saved)
    replace_placeholders(captured.sweep, lambda build: _PlaceholderHead(build, captured.remat, saved, reads))


def keep_choices(captured: GeneratedPair) -> None:
    """Lets the forward sweep keep which array was chosen, where the reverse sweep would choose again.

    In Python that is a variable, and chosen there already.
    """
    plan, remat = captured.plan, captured.remat
    pending = Worklist(need.value for need in captured.sweep.needs if need.placeholder.users)
    chosen: list[Value] = []
    for value in pending:
        if value in plan.saved:
            continue
        if isinstance(value, Select) and isinstance(value.type, PointerType):
            chosen.append(value)
        elif value in remat.affine:
            _, variable = remat.affine[value]
            pending.add(*(v for v in (variable.start, variable.step) if isinstance(v, Value)))
        elif isinstance(value, Instruction) and not is_free(value):
            pending.add(*value.operands)
    captured.plan = plan.saving((*plan.saved, *chosen))


@dataclass(eq=False, slots=True)
class _PlaceholderHead(Head):
    """Leaves placeholders for what is saved, and for affine variables."""

    reads: Reads

    def load(self, value: Value) -> Value:
        made = self._placeholder(value)
        self.reads.saved[made] = value
        return made

    def recompute(self, value: Value) -> Value:
        if not isinstance(value, Instruction):
            return self.load(value)
        if value not in self.remat.affine:
            copy = clone_instruction(value, {v: self.made[v] for v in value.operands if not is_free(v)})
            self.build.insert(copy)
            self.reads.recomputed[copy] = value
            return copy
        loop, variable = self.remat.affine[value]
        start = self.get(variable.start)
        step = variable.step if isinstance(variable.step, int) else self.get(variable.step)
        made = self._placeholder(value)
        made.set_operands([start, step] if isinstance(step, Value) else [start])  # keeps them alive
        self.reads.affine[made] = AffineRead(value, loop, start, step)
        return made

    def _placeholder(self, value: Value) -> Freeze:
        made = Freeze(value.type, value.name, operands=[Undef(value.type)])
        self.build.insert(made)
        return made
