"""Checks for failures in a forward sweep: memory of the tape or of the machine's stack, a pair found by a pointer.

Every allocation in the forward sweep may fail, and so may those in the augmented callees it calls, which leave a flag
in the arena. Then the sweep returns at once; the entry returns the status `HostConvention.exhausted`, and the caller
raises an error. A look-up of a pair that fails is treated the same way; the status is then
`HostConvention.no_derivative`.

Around the launch of a parallel loop the program gives up a lock, and holds a schedule. A sweep that leaves there first
does what would have followed: it takes the lock again and frees the schedule.

A deep recursion may run out of stack where the primal alone would not. So both functions of a callee's pair look first
how much of it is left; they return at once if it is little, with the same flag. After the reverse sweep the caller of
the entry looks at the flag.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow, rename_incoming
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Alloca, Call, CondBr, GetElementPtr, Instruction, Phi, Store
from irad.ir.module import Block, Function
from irad.ir.types import Type
from irad.ir.values import Constant, ConstantInt, ConstantNull, Value, const_int, zero
from irad.ir.worklist import reachable
from irad.passes.analysis.liveness import live_blocks
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.convention import Bracket, HostConvention, ReferenceCounts
from irad.passes.runtime import (
    ARENA_ALLOC,
    ARENA_ALLOC_PRODUCT,
    ARENA_DEFER,
    ARENA_FAILED,
    ARENA_REASON,
    ARENA_SHADOW,
    POINTER_PAIR,
    SHADOW_ALLOC,
    SHADOW_REALLOC,
    STACK_FULL,
    TAPE_ALLOC,
    TAPE_ALLOC_PRODUCT,
    THREAD_ALLOC,
    THREAD_ALLOC_PRODUCT,
    runtime_function,
)

# Owned references: those that a forward sweep holds where it may be left, because the tape cannot grow.
#
# Input   a finished augmented primal, before its allocations are checked.
# Output  for each call that may fail, what has to be released if the sweep is left after it.
# Method  backward: a reference is held where, on every way on to the return, it is dropped once more often than it is
#         taken; what is returned is dropped, too. An intersection over successors, to the greatest fixpoint; ways that
#         raise do not count.
# Limit   a reference that is dropped by another name than it is held by, or only on some ways, is not found: it is
#         kept, as the host does where an exception is raised. Where a reference may be taken by another name nothing is
#         released, so that nothing is ever released twice.
#
#     call void @take(ptr %x)
#     %slab = call ptr @irad.tape_alloc_product(…)      held after it: %x
#     call void @drop(ptr %x)

_ANYTHING: Final = -1  # the mask of all objects, for a value without a primal

State: TypeAlias = dict[Value, int]


def owned_behind(
    augmented: AugmentedPrimal, counts: ReferenceCounts, calls: Collection[Call]
) -> dict[Call, tuple[Value, ...]]:
    """References held after each of some calls, a value as often as it is held."""
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
        """References held at the end of a block; None where the ways on are not known yet, or there is none."""
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
        """References held at the start of a block; notes those held after calls."""
        state = dict(end)
        for inst in reversed(block.instructions):
            if calls is not None and isinstance(inst, Call) and inst in calls:
                found[inst] = dict(state)
            self.step(inst, state)
        return state

    def step(self, inst: Instruction, state: State) -> None:
        """Carries the state from after an instruction to before it."""
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
        """True if a store hands new memory to the caller, with the reference to it."""
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
    """True if a value is memory that the host has just made, on whichever way."""
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
    """References held at the start of a block, as its predecessor names them."""
    found: State = {}
    for value, count in state.items():
        _add(found, value.value_from(source) if isinstance(value, Phi) and value.block is target else value, count)
    return found


def _add(state: State, value: Value, count: int = 1) -> None:
    if not isinstance(value, Constant):
        state[value] = state.get(value, 0) + count


_GIVE_NULL = frozenset(
    {
        *(ARENA_ALLOC, ARENA_ALLOC_PRODUCT, ARENA_SHADOW, TAPE_ALLOC, TAPE_ALLOC_PRODUCT),
        *(THREAD_ALLOC, THREAD_ALLOC_PRODUCT, SHADOW_ALLOC, SHADOW_REALLOC, POINTER_PAIR),
    }
)


def check_allocations(augmented: AugmentedPrimal) -> None:
    """Inserts the checks."""
    owners, host = augmented.program.owners, augmented.program.request.host
    around = () if host.parallel is None else host.parallel.around
    through_pointers = {made.call for made in augmented.pointer_frames.values()}
    leave: Block | None = None

    def may_fail(call: Call) -> bool:
        callee = call.callee
        owner = owners.get(callee) if isinstance(callee, Function) else None
        is_sweep = owner is not None and callee is owner.first
        return _gives_null(call, augmented) or is_sweep or call in through_pointers

    held: dict[Call, tuple[Value, ...]] = {}
    if augmented.program.request.meters and host.references is not None:
        # A metered tape may exceed its limit in call after call, each of which would leak what the sweep holds; where
        # memory runs out that hardly matters.
        checked = {i for i in augmented.function.instructions() if isinstance(i, Call) and may_fail(i)}
        held = owned_behind(augmented, host.references, checked)
    for block in list(augmented.function.blocks):
        calls = [i for i in block.instructions if isinstance(i, Call)]
        failing = [i for i in calls if may_fail(i)]
        owed = {call: _owed(calls, call, around) for call in failing}
        for call in reversed(failing):  # so that each instruction moves once
            leave = leave or _leave(augmented)
            rest = split_after(call)
            assert call.block is not None
            build = Builder(call.block)
            failed = _failed(build, augmented, call, gives_null=_gives_null(call, augmented))
            build.cond_br(failed, _leave_after(owed[call], held.get(call, ()), leave, host), rest)


def _gives_null(call: Call, augmented: AugmentedPrimal) -> bool:
    """True if a call that the derivative has added, and not the primal, may return null."""
    return _name(call) in _GIVE_NULL and augmented.arena in call.arguments


def _name(call: Call) -> str | None:
    return call.callee.name if isinstance(call.callee, Function) else None


def _owed(calls: list[Call], failing: Call, around: tuple[Bracket, ...]) -> list[Call]:
    """Calls that end the launch of a parallel loop of which the failing call is part; all of it is in one block."""
    place = calls.index(failing)
    before, after = calls[:place], calls[place + 1 :]
    owed = [call for call in after if _ends_what_began(call, before, after, around)]
    last = next((i for i, call in enumerate(owed) if _name(call) == around[-1].ends), None)
    return [] if last is None else owed[: last + 1]


def _ends_what_began(call: Call, before: list[Call], after: list[Call], around: tuple[Bracket, ...]) -> bool:
    opener = next((bracket.begins for bracket in around if bracket.ends == _name(call)), None)
    if opener is None:
        return False
    [subject] = call.arguments
    if isinstance(subject, Call):
        return _name(subject) == opener and subject not in after
    return any(_name(other) == opener and subject in other.arguments for other in before)


def _leave_after(owed: list[Call], held: tuple[Value, ...], leave: Block, host: HostConvention) -> Block:
    """An exit block that first makes the pending calls and drops the held references."""
    if not owed and not held:
        return leave
    assert leave.function is not None
    block = leave.function.add_block("exhausted.launch")
    for call in owed:
        block.append(clone_instruction(call, {}))
    build = Builder(block)
    for value in held:
        assert host.references is not None
        drop = build.module.declare(host.references.drops, types.function_type(types.VOID, [types.PTR]))
        build.call(drop, [value])
    build.br(leave)
    return block


def _failed(build: Builder, augmented: AugmentedPrimal, call: Call, *, gives_null: bool) -> Value:
    if gives_null:
        return build.icmp("eq", call, ConstantNull(types.PTR))
    return build.call(runtime_function(augmented.program.module, ARENA_FAILED), [augmented.arena])


def _leave(augmented: AugmentedPrimal) -> Block:
    block = augmented.function.add_block("exhausted")
    build = Builder(block)
    result = augmented.function.function_type.result
    if result is types.VOID:
        build.ret()
    elif augmented.pair.variant.is_entry:
        build.ret(_status(build, augmented, result))
    else:
        build.ret(zero(result))
    return block


def check_stack(augmented: AugmentedPrimal) -> None:
    """Inserts the checks for stack into a callee's pair; the entry's frame is the caller's concern."""
    pair = augmented.pair
    if pair.variant.is_entry:
        return
    for function in pair.functions.values():
        entry = function.blocks[0]
        rest = split_before(next(i for i in entry.instructions if not isinstance(i, Alloca)))
        leave = function.add_block("stack.full")
        result = function.function_type.result
        Builder(leave).ret(None if result is types.VOID else zero(result))
        build = Builder(entry)
        full = build.call(runtime_function(augmented.program.module, STACK_FULL), [function.params[1]])
        build.cond_br(full, leave, rest)


def _status(build: Builder, augmented: AugmentedPrimal, type_: Type) -> Value:
    """Status that the entry returns when it is left."""
    program = augmented.program
    exhausted = const_int(type_, program.request.host.exhausted)
    if not any(map(_calls_through_pointer, program.module.defined_functions())):
        return exhausted
    statuses = [exhausted, const_int(type_, program.request.host.no_derivative)]
    return build.call(runtime_function(program.module, ARENA_REASON), [augmented.arena, *statuses])


def _calls_through_pointer(function: Function) -> bool:
    return any(isinstance(i, Call) and not isinstance(i.callee, Function) for i in function.instructions())


def split_after(inst: Instruction) -> Block:
    """Moves what follows an instruction to a new block, which takes over the successors; the old one is left open."""
    assert inst.block is not None
    return split_before(inst.block.instructions[inst.block.instructions.index(inst) + 1])


def split_before(inst: Instruction) -> Block:
    """Splits a block before an instruction, which begins the new block."""
    block = inst.block
    assert block is not None
    assert block.function is not None
    rest = block.function.add_block(f"{block.name}.rest", after=block)
    index = block.instructions.index(inst)
    moved = block.instructions[index:]
    del block.instructions[index:]
    for item in moved:
        rest.append(item)
    for successor in rest.successors:
        for phi in successor.phis():
            rename_incoming(phi, block, rest)
    return rest
