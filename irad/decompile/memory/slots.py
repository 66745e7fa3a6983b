"""Stack slots become values.

Method  Braun et al. 2013, "Simple and Efficient Construction of Static Single Assignment Form".
"""

from __future__ import annotations

from irad.decompile.memory.reads import Reads
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, edges_from
from irad.ir.instructions import Alloca, Instruction, Load, Phi, Store, replace_uses
from irad.ir.module import Block, Function
from irad.ir.values import ConstantFloat, ConstantInt, Undef, Value
from irad.passes.generated import GeneratedPair


def promote_slots(captured: GeneratedPair, reads: Reads) -> None:
    """Turns the stack slots of the reverse sweep into values; notes which cotangents and counters they held."""
    sweep = captured.sweep
    primal_of = {slot: value for value, slot in sweep.slots.items()}
    loop_of = {state.iteration: loop for loop, state in sweep.loops.items()}
    for inst in [i for i in sweep.function.instructions() if isinstance(i, Alloca) and _is_slot(i)]:
        made = _Promotion(sweep.function, inst).run(reads.cotangents, primal_of.get(inst))
        if inst in loop_of and made:
            reads.numbers[loop_of[inst]] = made[0]


def _is_slot(slot: Alloca) -> bool:
    """Whether it is only loaded from and stored to as a whole."""
    return not slot.operands and all(
        (isinstance(user, Load) and user.type is slot.allocated_type)
        or (isinstance(user, Store) and user.operands[0] is not slot and user.operands[0].type is slot.allocated_type)
        for user in slot.users
    )


class _Promotion:
    """Turns one slot into values."""

    def __init__(self, function: Function, slot: Alloca) -> None:
        self.function, self.slot = function, slot
        self.cfg = control_flow(function)
        self.at_end: dict[Block, Value] = {}
        self.at_start: dict[Block, Value] = {}
        self.phis: list[Phi] = []
        self.replaced: dict[Value, Value] = {}

    def run(self, cotangents: dict[Value, Value], primal: Value | None) -> list[Phi]:
        """Returns the phis that are left; notes what is the cotangent of ``primal``."""
        doomed: list[Instruction] = []
        for block in self.cfg.order:
            current = None
            for inst in list(block.instructions):
                if isinstance(inst, Load) and inst.operands[0] is self.slot:
                    current = self._start(block) if current is None else current
                    replace_uses(inst, current)
                    self.replaced[inst] = current
                    doomed.append(inst)
                elif isinstance(inst, Store) and inst.operands[1] is self.slot:
                    current = inst.operands[0]
                    doomed.append(inst)
                    if primal is not None and isinstance(current, Instruction):
                        cotangents.setdefault(current, primal)
            if current is not None:
                self.at_end[block] = current
        for phi in self.phis:
            assert phi.block is not None
            for source in edges_from(self.cfg.predecessors[phi.block], phi.block):
                phi.add_incoming(self._end(source), source)
        for inst in reversed(doomed):
            inst.erase()
        for user in list(self.slot.users):  # in blocks that nothing reaches
            replace_uses(user, Undef(user.type))
            user.erase()
        self.slot.erase()
        remove_trivial_phis(self.function)
        left = [phi for phi in self.phis if phi.block is not None]
        if primal is not None:
            cotangents.update(dict.fromkeys(left, primal))
        return left

    def _start(self, block: Block) -> Value:
        """The value at the start of a block; phis are filled when all blocks are known."""
        chain: list[Block] = []
        while block not in self.at_start:
            sources = self.cfg.predecessors[block]
            if len(sources) == 1:
                chain.append(block)
                if sources[0] in self.at_end:
                    self.at_start[block] = self.at_end[sources[0]]
                    break
                block = sources[0]
                continue
            if not sources:
                self.at_start[block] = Undef(self.slot.allocated_type)
            else:
                phi = Builder.at_start(block).phi(self.slot.allocated_type)
                self.phis.append(phi)
                self.at_start[block] = phi
        found = self.at_start[block]
        for each in chain:
            self.at_start[each] = found
        return found

    def _end(self, block: Block) -> Value:
        known = self.at_end.get(block)
        return known if known is not None else self._start(block)


def remove_trivial_phis(function: Function) -> None:
    """Removes phis that merge one value, and those that nobody but phis uses."""
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            for phi in block.phis():
                others = {id(v): v for v in phi.operands if v is not phi}
                same = list(others.values())
                if len(same) > 1 and all(_are_equal(v, same[0]) for v in same):
                    same = same[:1]
                if len(same) == 1 and not (isinstance(same[0], Instruction) and same[0].block is None):
                    replace_uses(phi, same[0])
                    phi.erase() if not phi.users else None
                    changed = True


def _are_equal(a: Value, b: Value) -> bool:
    """Of constants: whether they are one number; both zeros are, for they are empty cotangents."""
    if isinstance(a, ConstantFloat) and isinstance(b, ConstantFloat):
        return a.value == b.value
    return isinstance(a, ConstantInt) and isinstance(b, ConstantInt) and a.value == b.value
