"""Innermost loops of a reverse sweep whose additions to shadows can be done after the rest of the loop.

Input   a reverse sweep in which the plan has been carried out.
Output  `Candidate`: a loop of one block, its additions, and what else it does to shadows.
Method  An addition is a load, a sum and a store at one address. Additions commute, with each other and with all that is
        elsewhere: memory of the primal and the tape by contract, other shadows where points-to says so, and what is in
        the same arrays where addresses are linear in the iteration, so that a check before the loop can tell.
Limit   loops that carry a cotangent from one iteration to the next, but for sums, gain nothing and are left out.

    x_bar[i] += a;  x_bar[i + 1] += b        each iteration adds to what the one before has added to, so LLVM makes no
                                             vectors of it
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from irad.ir import instructions as ir, types
from irad.ir.instructions import Instruction, Load, Store
from irad.ir.module import Block, Function
from irad.ir.trip_count import constant_offset
from irad.ir.types import PointerType, size_of
from irad.ir.values import ConstantFloat, Value
from irad.passes.analysis.callees import resolve
from irad.passes.reverse.strides import Strides
from irad.passes.reverse.sweep import LoopState, Sweep
from irad.ruleset.interface import Elementwise

_MOST_ADDITIONS: Final = 24
_MOST_CHECKS: Final = 24
_INTRINSICS: Final = frozenset(
    f"llvm.{name}" for name in ("abs", "fabs", "fma", "fmuladd", "smax", "smin", "umax", "umin")
)


@dataclass(frozen=True, slots=True)
class Place:
    """An address in a loop: ``offset`` bytes behind ``root``, which is linear in the iteration."""

    root: Value
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Addition:
    """An addition to a shadow: of ``amount``, or of its negative."""

    place: Place
    load: Load
    store: Store
    amount: Value
    is_negative: bool


@dataclass(eq=False, slots=True)
class Candidate:
    """A reversed loop of one block, which runs from the last iteration to the first.

    Attributes:
        state: of the loop.
        body: the adjoint block.
        back: the blocks from its end to its start, in order.
        after: the block behind the loop.
        additions: those that may be moved.
        checks: pairs of an addition's place and another that must be apart, as far as addresses tell.
    """

    state: LoopState
    body: Block
    back: tuple[Block, ...]
    after: Block
    strides: Strides
    additions: tuple[Addition, ...] = ()
    checks: dict[tuple[Place, Place], None] = field(default_factory=dict)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Of the loop."""
        return (self.body, *self.back)


def find_candidates(sweep: Sweep) -> Iterator[Candidate]:
    """The loops whose additions are worth moving."""
    for state in sweep.loops.values():
        candidate = _of_one_block(sweep, state)
        if candidate is not None and _Search(sweep, candidate).succeeds():
            yield candidate


def _of_one_block(sweep: Sweep, state: LoopState) -> Candidate | None:
    if len(state.loop.blocks) > 1 or state.back is None:
        return None
    body, first = sweep.places[state.loop.header].block, state.back.block
    if len(first.successors) != 1 or len(body.successors) != 2:
        return None
    edge = first.successors[0]
    if edge.successors != [body] or body.successors[1] is not first:
        return None
    after = body.successors[0]
    back = (first, edge)
    is_simple = not any(block.phis() for block in (body, *back, after))
    return Candidate(state, body, back, after, Strides(state.iteration, (body, *back), sweep)) if is_simple else None


@dataclass(eq=False, slots=True)
class _Search:
    """Looks at what one loop does."""

    sweep: Sweep
    found: Candidate

    def succeeds(self) -> bool:
        """Whether all additions can be moved, and LLVM could not make vectors of the loop as it is."""
        found = self.found
        additions = list(self._additions())
        if not 2 <= len(additions) <= _MOST_ADDITIONS or not self._stays_inside() or not self._is_pure():
            return False
        found.additions = tuple(additions)
        return self._meet(additions) and not self._has_recurrence() and self._finds_checks()

    def _additions(self) -> Iterator[Addition]:
        order = {inst: number for number, inst in enumerate(self.found.body.instructions)}
        writes = [n for inst, n in order.items() if isinstance(inst, Store) and not _is_slot(inst.operands[1])]
        for store in order:
            match store:
                case Store(operands=[ir.Binary(opcode="fadd", operands=[Load() as load, amount]) as total, pointer]):
                    pass
                case _:
                    continue
            is_plain = load.is_plain and not store.volatile and store.ordering is None
            is_alone = list(load.users) == [total] and list(total.users) == [store] and load in order
            is_between = any(order.get(load, 0) < n < order[store] for n in writes)
            if load.operands[0] is not pointer or _is_slot(pointer) or "reassoc" not in total.flags:
                continue
            if is_plain and is_alone and not is_between and load.type in (types.FLOAT, types.DOUBLE):
                place = self._place(store)
                if place is not None:
                    yield Addition(place, load, store, *_without_sign(amount))

    def _place(self, access: Load | Store) -> Place | None:
        """Where an access goes, if that is linear in the iteration."""
        pointer = access.operands[-1]
        value_type = access.type if isinstance(access, Load) else access.operands[0].type
        offset, root = 0, pointer
        while isinstance(root, ir.GetElementPtr) and (more := constant_offset(root)) is not None:
            offset, root = offset + more, root.operands[0]
        is_linear = isinstance(root.type, PointerType) and self.found.strides.of(root) is not None
        return Place(root, offset, size_of(value_type)) if is_linear else None

    def _stays_inside(self) -> bool:
        """Whether nothing but the block behind the loop uses its values."""
        near = {*self.found.blocks, self.found.after}
        return all(user.block in near for inst in self.found.body.instructions for user in inst.users)

    def _is_pure(self) -> bool:
        """Whether each instruction is arithmetic or plain access of memory."""
        return all(self._is_simple(inst) for block in self.found.blocks for inst in block.instructions)

    def _is_simple(self, inst: Instruction) -> bool:
        match inst:
            case Load():
                return inst.is_plain
            case Store():
                return not inst.volatile and inst.ordering is None
            case ir.CallSite(callee=Function(name=str(name))):
                is_function = isinstance(resolve(inst, self.sweep.augmented.unit.registry), Elementwise)
                return is_function or name.rpartition(".")[0] in _INTRINSICS
            case ir.Binary() | ir.Unary() | ir.Cast() | ir.ICmp() | ir.FCmp() | ir.Select() | ir.Freeze():
                return True
            case ir.GetElementPtr() | ir.Br() | ir.CondBr():
                return True
            case _:
                return False

    def _meet(self, additions: list[Addition]) -> bool:
        """Whether two additions may be to the same memory in different iterations."""
        return any(
            self._may_touch(one.store, other.store)
            for number, one in enumerate(additions)
            for other in additions[:number]
        )

    def _has_recurrence(self) -> bool:
        """Whether an iteration needs cotangents that the one before it in the sweep has computed."""
        return _Slots(self.found).have_recurrence()

    def _finds_checks(self) -> bool:
        """Collects what has to be apart; False where that is known not to be, or cannot be checked."""
        found = self.found
        moved = {access for each in found.additions for access in (each.load, each.store)}
        for access in found.body.instructions:
            if not isinstance(access, Load | Store) or access in moved or _is_slot(access.operands[-1]):
                continue
            for each in found.additions:
                if not self._may_touch(each.store, access):
                    continue
                place = self._place(access)
                if place is None or place.root is each.place.root:
                    return False
                found.checks[each.place, place] = None
        return len(found.checks) <= _MOST_CHECKS

    def _may_touch(self, one: Instruction, other: Instruction) -> bool:
        """Whether two accesses may be of the same bytes, as far as points-to tells."""
        mine, theirs = self.sweep.scopes.kind_of(one.metadata), self.sweep.scopes.kind_of(other.metadata)
        if mine is None or theirs is None:
            return True
        return mine[0] == theirs[0] and bool(self.sweep.augmented.unit.points_to.overlapping(mine[1]) & theirs[1])


def _is_slot(pointer: Value) -> bool:
    return isinstance(pointer, ir.Alloca)


def _without_sign(amount: Value) -> tuple[Value, bool]:
    is_negative = False
    while isinstance(amount, ir.Unary) and amount.opcode == "fneg":
        amount, is_negative = amount.operands[0], not is_negative
    return amount, is_negative


@dataclass(eq=False, slots=True)
class _Slots:
    """The cotangents that a loop carries, in stack slots: what one iteration makes of them.

    Attributes:
        first: the load of each slot that finds what the iteration before has left.
        now: what is in each slot.
    """

    found: Candidate
    first: dict[Value, Load] = field(default_factory=dict)
    now: dict[Value, Value] = field(default_factory=dict)
    known: dict[Value, Value] = field(default_factory=dict)

    def have_recurrence(self) -> bool:
        """Whether one is neither passed on, nor a sum, nor made anew."""
        for block in self.found.blocks:
            for inst in block.instructions:
                self._follow(inst)
        carried = {slot: value for slot, value in self.now.items() if slot is not self.found.state.iteration}
        for slot in [slot for slot, value in carried.items() if _is_nothing(value)]:
            if slot in self.first:
                self.known[self.first[slot]] = carried[slot]
            del carried[slot]
        kept = {slot for slot, value in carried.items() if self._resolved(value) is self.first.get(slot)}
        varying = {load for slot, load in self.first.items() if slot in carried and slot not in kept}
        return any(not self._is_sum(slot, carried[slot], varying) for slot in carried if slot not in kept)

    def _follow(self, inst: Instruction) -> None:
        match inst:
            case Load(operands=[ir.Alloca() as slot]) if slot in self.now:
                self.known[inst] = self.now[slot]
            case Load(operands=[ir.Alloca() as slot]):
                self.first.setdefault(slot, inst)
                self.now[slot] = inst
            case Store(operands=[value, ir.Alloca() as slot]):
                self.now[slot] = value
            case _:
                pass

    def _resolved(self, value: Value) -> Value:
        """The value without what adds nothing."""
        while True:
            value = self.known.get(value, value)
            match value:
                case ir.Binary(opcode="fadd", operands=[a, b]) if _is_nothing(self.known.get(a, a)):
                    value = b
                case ir.Binary(opcode="fadd", operands=[a, b]) if _is_nothing(self.known.get(b, b)):
                    value = a
                case _:
                    return value

    def _is_sum(self, slot: Value, value: Value, varying: set[Load]) -> bool:
        """Whether a slot gets what does not depend on what varies, or a sum to which such a thing is added."""
        start = self.first.get(slot)
        value = self._resolved(value)
        while isinstance(value, ir.Binary) and value.opcode == "fadd" and start is not None:
            a, b = map(self._resolved, value.operands)
            if self._depends(a, {start}):
                a, b = b, a
            if self._depends(a, varying):
                return False
            value = b
        return value is start or not self._depends(value, varying)

    def _depends(self, value: Value, on: set[Load]) -> bool:
        pending, seen = [value], set[Value]()
        while pending:
            each = self._resolved(pending.pop())
            if each in on:
                return True
            if each not in seen and isinstance(each, Instruction) and each.block in self.found.blocks:
                seen.add(each)
                pending += each.operands
        return False


def _is_nothing(value: Value) -> bool:
    return isinstance(value, ConstantFloat) and value.value == 0.0 and math.copysign(1.0, value.value) < 0
