"""Owned references: those that a forward sweep holds where it may be left, because the tape cannot grow.

Input   a finished augmented primal, before its allocations are checked.
Output  for each call that may fail, what has to be released if the sweep is left after it.
Method  backward: a reference is held where, on every way on to the return, it is dropped once more often than it is
        taken; what is returned is dropped, too. An intersection over successors, to the greatest fixpoint; ways that
        raise do not count.
Limit   a reference that is dropped by another name than it is held by, or only on some ways, is not found: it is kept,
        as the host does where an exception is raised. Where a reference may be taken by another name nothing is
        released, so that nothing is ever released twice.

    call void @take(ptr %x)
    %slab = call ptr @irad.tape_alloc_product(…)      held behind it: %x
    call void @drop(ptr %x)
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.instructions import Call, CondBr, GetElementPtr, Instruction, Phi, Store
from irad.ir.module import Block, Function
from irad.ir.values import Constant, ConstantInt, Value
from irad.ir.worklist import reachable
from irad.passes.analysis.liveness import live_blocks
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.convention import ReferenceCounts
from irad.passes.runtime import ARENA_DEFER

_ANYTHING: Final = -1

State: TypeAlias = dict[Value, int]


def owned_behind(
    augmented: AugmentedPrimal, counts: ReferenceCounts, calls: Collection[Call]
) -> dict[Call, tuple[Value, ...]]:
    """What is held after each of some calls, a value as often as it is."""
    return _Owned(augmented, counts).behind(calls)


class _Owned:
    def __init__(self, augmented: AugmentedPrimal, counts: ReferenceCounts) -> None:
        self.augmented, self.counts = augmented, counts
        self.host = augmented.program.request.host
        self.cfg: ControlFlow = control_flow(augmented.function)
        unit = augmented.unit
        signatures = unit.program.signatures
        self.has_status = unit.variant.is_entry or unit.function in signatures
        live = live_blocks(unit.cfg, self.host.returned) if self.has_status else unit.live
        self.live = {augmented.block(block) for block in live}
        self.primal = {copy: primal for primal, copy in augmented.values.items()}
        self.starts: dict[Block, State] = {}
        order = [block for block in reversed(self.cfg.order) if block in self.live]
        changed = True
        while changed:
            changed = False
            for block in order:
                end = self.end(block)
                if end is None:
                    continue
                start = self.walk(block, end, {}, None)
                if start != self.starts.get(block):
                    self.starts[block] = start
                    changed = True

    def behind(self, calls: Collection[Call]) -> dict[Call, tuple[Value, ...]]:
        found: dict[Call, State] = {call: {} for call in calls}
        for block in self.cfg.order:
            end = self.end(block) if block in self.live else None
            if end is not None:
                self.walk(block, end, found, calls)
        return {call: tuple(v for v, count in state.items() for _ in range(count)) for call, state in found.items()}

    def end(self, block: Block) -> State | None:
        """What is held at the end of a block; None where the ways on are not known yet, or there is none."""
        successors = [s for s in _ways_on(block) if s in self.live]
        if not successors:
            return {}
        known = [_across(self.starts[s], block, s) for s in successors if s in self.starts]
        if not known:
            return None
        first, *rest = known
        counts = {value: min([count, *(other.get(value, 0) for other in rest)]) for value, count in first.items()}
        return {value: count for value, count in counts.items() if count}

    def walk(self, block: Block, end: State, found: dict[Call, State], calls: Collection[Call] | None) -> State:
        """What is held at the start of a block; notes it behind calls."""
        state = dict(end)
        for inst in reversed(block.instructions):
            if calls is not None and isinstance(inst, Call) and inst in calls:
                found[inst] = dict(state)
            self.step(inst, state)
        return state

    def step(self, inst: Instruction, state: State) -> None:
        """From behind an instruction to before it."""
        if not isinstance(inst, Phi):  # a phi's reference is that of what comes in: `_across`
            state.pop(inst, None)
        if isinstance(inst, Store) and self.is_returned(inst):
            _add(state, inst.operands[0])
        if not isinstance(inst, Call) or not isinstance(inst.callee, Function):
            return
        match inst.callee.name:
            case name if name == self.counts.drops:
                _add(state, inst.arguments[0])
            case name if name == ARENA_DEFER:
                _add(state, inst.arguments[1])
            case name if name == self.counts.takes:
                self.take(inst.arguments[0], state)
            case _:
                pass

    def is_returned(self, store: Store) -> bool:
        """Whether a store hands new memory to the caller, with the reference to it."""
        if not self.has_status or not _is_new(store.operands[0], self.counts):
            return False
        pointer = store.operands[1]
        while isinstance(pointer, GetElementPtr):
            pointer = pointer.operands[0]
        return self.primal.get(pointer) is self.augmented.unit.function.params[self.host.result]

    def take(self, value: Value, state: State) -> None:
        """A reference that is taken is one less that was held before; by another name it may be any."""
        mine = self.mask(value)
        for other in list(state):
            if other is value:
                state[other] -= 1
                if not state[other]:
                    del state[other]
            elif self.mask(other) & mine:
                del state[other]

    def mask(self, value: Value) -> int:
        primal = self.primal.get(value)
        return _ANYTHING if primal is None else self.augmented.unit.points_to.mask(primal)


def _is_new(value: Value, counts: ReferenceCounts) -> bool:
    """Whether a value is memory that the host has just made, on whichever way."""
    return all(
        isinstance(each, Phi)
        or (
            isinstance(each, Call)
            and isinstance(each.callee, Function)
            and str(each.callee.name).startswith(counts.makes)
        )
        for each in reachable([value], lambda each: each.operands if isinstance(each, Phi) else ())
    )


def _ways_on(block: Block) -> list[Block]:
    """The successors, without those that a constant rules out."""
    last = block.terminator
    if isinstance(last, CondBr) and isinstance(last.operands[0], ConstantInt):
        return [last.targets[0] if last.operands[0].value else last.targets[1]]
    return list(block.successors)


def _across(state: State, source: Block, target: Block) -> State:
    """What is held at the start of a block, as its predecessor names it."""
    found: State = {}
    for value, count in state.items():
        _add(found, value.value_from(source) if isinstance(value, Phi) and value.block is target else value, count)
    return found


def _add(state: State, value: Value, count: int = 1) -> None:
    if not isinstance(value, Constant):
        state[value] = state.get(value, 0) + count
