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
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Final

from irad.ir import instructions as ir, types
from irad.ir.instructions import Instruction, Load, Store
from irad.ir.module import Block, Function
from irad.ir.trip_count import constant_offset
from irad.ir.types import PointerType, size_of
from irad.ir.values import ConstantFloat, Value
from irad.passes.callees import resolve
from irad.passes.reverse.strides import Strides
from irad.passes.reverse.sweep import LoopState, Sweep
from irad.records import dataclass
from irad.ruleset.interface import Elementwise

# What a reversed loop of one block carries from one iteration to the next: cotangents, in slots of the stack.
#
# Input   the blocks of the loop, in order.
# Output  `Carried`: whether an iteration needs what the one before has computed, whether their order matters.
# Method  instructions are followed once: what each slot holds at the start of an iteration and at its end. -0.0, with
#         which a slot is cleared, adds nothing.
#
#     s = load %slot;  s' = s + a;  store s', %slot        a sum, in any order
#     s = load %slot;  a = s * y;   store a, %slot         a recurrence


@dataclass(eq=False, slots=True)
class Carried:
    """The slots of one loop.

    Attributes:
        blocks: of the loop; the first is its body, the others lead from its end to its start.
        counter: the slot of the iteration's number.
        first: the load of each slot that finds what the iteration before has left.
        now: contents of each slot at the end.
        known: values of loads and slots, if known.
    """

    blocks: Sequence[Block]
    counter: ir.Alloca
    first: dict[ir.Alloca, Load] = field(default_factory=dict)
    now: dict[ir.Alloca, Value] = field(default_factory=dict)
    known: dict[Value, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for block in self.blocks:
            for inst in block.instructions:
                self._follow(inst)
        self.now.pop(self.counter, None)

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

    def need_order(self) -> bool:
        """True if iterations cannot run in another order: they do more than sums, or a sum is used before its end."""
        cleared = [slot for slot, value in self.now.items() if _is_nothing(value) and self._is_clear_outside(slot)]
        self.known.update((self.first[slot], self.now[slot]) for slot in cleared if slot in self.first)
        kept = self._kept()
        varying = {load for slot, load in self.first.items() if slot in self.now and slot not in {*kept, *cleared}}
        for slot in self.now.keys() - kept - set(cleared):
            start, rest = self.first.get(slot), self._rest_of_sum(slot, varying)
            if rest is not start and (start is not None or self._is_made(rest)):
                return True
        body, *behind = ([each for each in block.instructions if isinstance(each, Store)] for block in self.blocks)
        if any(each.operands[1] not in {self.counter, *kept, *cleared} for stores in behind for each in stores):
            return True
        if any(map(self._leaves_what_varies, {*kept, *cleared})):
            return True
        in_memory = [store for store in body if not isinstance(store.operands[1], ir.Alloca)]
        return any(self._depends(each, varying) for store in in_memory for each in store.operands)

    def _leaves_what_varies(self, slot: ir.Alloca) -> bool:
        """True if other code reads a slot in which the last iteration's body has left its own value."""
        if all(user.block in self.blocks for user in slot.users if isinstance(user, Load)):
            return False
        left = Carried(self.blocks[:1], self.counter).now.get(slot)
        return left is not None and not _is_nothing(left) and self._resolved(left) is not self.first.get(slot)

    def _is_clear_outside(self, slot: ir.Alloca) -> bool:
        """True if code before and after the loop leaves nothing in a slot."""
        stores = (user for user in slot.users if isinstance(user, Store) and user.block not in self.blocks)
        return all(_is_nothing(store.operands[0]) for store in stores)

    def have_recurrence(self) -> bool:
        """True if a slot is neither passed on, nor a sum, nor recomputed."""
        carried = dict(self.now)
        for slot in [slot for slot, value in carried.items() if _is_nothing(value)]:
            if slot in self.first:
                self.known[self.first[slot]] = carried[slot]
            del carried[slot]
        kept = self._kept() & carried.keys()
        varying = {load for slot, load in self.first.items() if slot in carried and slot not in kept}
        return any(not self._is_sum_or_new(slot, varying) for slot in carried if slot not in kept)

    def _is_made(self, value: Value | None) -> bool:
        """True if the loop computes a value."""
        return isinstance(value, Instruction) and value.block in self.blocks

    def is_passed_on(self, value: Value) -> bool:
        """True if a value equals the contents of a slot in all iterations."""
        return self._resolved(value) in {self.first[slot] for slot in self._kept()}

    def _kept(self) -> set[ir.Alloca]:
        """The slots that are passed on as they are."""
        return {slot for slot, value in self.now.items() if self._resolved(value) is self.first.get(slot)}

    def _is_sum_or_new(self, slot: ir.Alloca, varying: set[Load]) -> bool:
        rest = self._rest_of_sum(slot, varying)
        return rest is not None and (rest is self.first.get(slot) or not self._depends(rest, varying))

    def _rest_of_sum(self, slot: ir.Alloca, varying: set[Load]) -> Value | None:
        """Sum that a slot gets, minus the additions to its start; None if that depends on a varying value."""
        start, value = self.first.get(slot), self._resolved(self.now[slot])
        while isinstance(value, ir.Binary) and value.opcode == "fadd" and start is not None:
            a, b = map(self._resolved, value.operands)
            if self._depends(a, {start}):
                a, b = b, a
            if self._depends(a, varying):
                return None
            value = b
        return value

    def _resolved(self, value: Value) -> Value:
        """The value without additions of zero."""
        while True:
            value = self.known.get(value, value)
            match value:
                case ir.Binary(opcode="fadd", operands=[a, b]) if _is_nothing(self.known.get(a, a)):
                    value = b
                case ir.Binary(opcode="fadd", operands=[a, b]) if _is_nothing(self.known.get(b, b)):
                    value = a
                case _:
                    return value

    def _depends(self, value: Value, on: set[Load]) -> bool:
        pending, seen = [value], set[Value]()
        while pending:
            each = self._resolved(pending.pop())
            if each in on:
                return True
            if each not in seen and self._is_made(each):
                assert isinstance(each, Instruction)
                seen.add(each)
                pending += each.operands
        return False


def _is_nothing(value: Value) -> bool:
    return isinstance(value, ConstantFloat) and value.value == 0.0 and math.copysign(1.0, value.value) < 0


# Additions are compared pair by pair while compiling; each check is code that runs before the loop.
_MOST_ADDITIONS: Final = 64
_MOST_CHECKS: Final = 24
_INTRINSICS: Final = frozenset(
    f"llvm.{name}" for name in ("abs", "fabs", "fma", "fmuladd", "smax", "smin", "umax", "umin")
)


@dataclass(frozen=True, slots=True)
class Place:
    """An address in a loop: ``offset`` bytes after ``root``, which is linear in the iteration."""

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
        state: state of the loop.
        body: the adjoint block.
        back: the blocks from its end to its start, in order.
        after: the block after the loop.
        additions: those that may be moved.
        others: other accesses to memory, with their place if it is linear in the iteration.
        checks: pairs of an addition's place and another that must be apart, as far as addresses tell.
        needs_order: whether what the iterations carry keeps them in order.
    """

    state: LoopState
    body: Block
    back: tuple[Block, ...]
    after: Block
    strides: Strides
    additions: tuple[Addition, ...] = ()
    others: dict[Load | Store, Place | None] = field(default_factory=dict)
    needs_order: bool = True
    checks: dict[tuple[Place, Place], None] = field(default_factory=dict)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks of the loop."""
        return (self.body, *self.back)


def candidate_of(sweep: Sweep, state: LoopState, *, allows_exceptions: bool) -> Candidate | None:
    """The loop if its additions are worth moving.

    Args:
        sweep: the function.
        state: the loop.
        allows_exceptions: whether addresses may be others in single iterations.
    """
    candidate = _of_one_block(sweep, state, allows_exceptions)
    return candidate if candidate is not None and _Search(sweep, candidate).succeeds() else None


def described(sweep: Sweep, state: LoopState) -> Candidate | None:
    """The loop and its additions; None if it does more than arithmetic, or carries more than sums."""
    found = _of_one_block(sweep, state, allows_exceptions=False)
    if found is None:
        return None
    search = _Search(sweep, found)
    if not search.describes():
        return None
    search.find_others()
    return found


def enter_by(function: Function, found: Candidate, guard: Block) -> None:
    """Has all that enters a loop enter it by another block."""
    for block in function.blocks:
        if block.instructions and block is not found.back[-1]:
            end = block.instructions[-1]
            end.targets = [guard if target is found.body else target for target in end.targets]


def _of_one_block(sweep: Sweep, state: LoopState, allows_exceptions: bool) -> Candidate | None:
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
    strides = Strides(state.iteration, (body, *back), sweep, allows_exceptions)
    return Candidate(state, body, back, after, strides) if is_simple else None


@dataclass(eq=False, slots=True)
class _Search:
    """Analyses one loop."""

    sweep: Sweep
    found: Candidate
    roots: dict[tuple[Value, Value, int], tuple[Value, int]] = field(default_factory=dict)

    def succeeds(self) -> bool:
        """True if all additions can be moved, and LLVM could not vectorise the original loop."""
        return self.describes() and self._meet(self.found.additions) and self._finds_checks()

    def describes(self) -> bool:
        """Finds the additions, and whether order matters; False for loops that do or pass on more."""
        found = self.found
        additions = tuple(self._additions())
        if len(additions) > _MOST_ADDITIONS or not self._stays_inside() or not self._is_pure():
            return False
        found.additions = additions
        carried = Carried(found.blocks, found.state.iteration)
        found.needs_order = carried.need_order() or not all(map(carried.is_passed_on, self._left_values()))
        return not carried.have_recurrence()

    def _additions(self) -> Iterator[Addition]:
        order = {inst: number for number, inst in enumerate(self.found.body.instructions)}
        writes = [n for inst, n in order.items() if isinstance(inst, Store) and not _is_slot(inst.operands[1])]
        for store in order:
            match store:
                case Store(operands=[ir.Binary(opcode="fadd", operands=[Load() as load, amount]) as total, pointer]):
                    pass
                case _:
                    continue
            is_plain = load.is_plain and store.is_plain
            is_alone = list(load.users) == [total] and list(total.users) == [store] and load in order
            # A store between load and sum may change the element, and then this is not an addition to it.
            is_between = any(order.get(load, 0) < n < order[store] for n in writes)
            # Only adjoint sums may be reordered, which have reassoc; under strict none may.
            if load.operands[0] is not pointer or _is_slot(pointer) or "reassoc" not in total.flags:
                continue
            if is_plain and is_alone and not is_between and load.type in (types.FLOAT, types.DOUBLE):
                place = self.place(store)
                if place is not None:
                    yield Addition(place, load, store, *_without_sign(amount))

    def place(self, access: Load | Store) -> Place | None:
        """Place of an access, if that is linear in the iteration."""
        pointer = access.operands[-1]
        value_type = access.type if isinstance(access, Load) else access.operands[0].type
        offset, root = 0, pointer
        while isinstance(root, ir.GetElementPtr) and (more := constant_offset(root)) is not None:
            offset, root = offset + more, root.operands[0]
        if not isinstance(root.type, PointerType) or self.found.strides.of(root) is None:
            return None
        root, more = self._same_root(root)
        return Place(root, offset + more, size_of(value_type))

    def _same_root(self, pointer: Value) -> tuple[Value, int]:
        """The first pointer met that differs by a constant only, and that constant."""
        match pointer:
            case ir.GetElementPtr(operands=[base, index], source_type=type_) if index.type is types.I64:
                varying, constant = self.found.strides.without_constant(index)
                size = size_of(type_)
                root, start = self.roots.setdefault((base, varying, size), (pointer, constant * size))
                return root, constant * size - start
            case _:
                return pointer, 0

    def _stays_inside(self) -> bool:
        """True if nothing but the block after the loop uses its values."""
        near = {*self.found.blocks, self.found.after}
        return all(user.block in near for inst in self.found.body.instructions for user in inst.users)

    def _left_values(self) -> Iterator[Value]:
        """Values that the block after the loop uses, as the last iteration that ran has left them."""
        return (inst for inst in self.found.body.instructions if any(u.block is self.found.after for u in inst.users))

    def _is_pure(self) -> bool:
        """True if each instruction is arithmetic or plain access of memory."""
        return all(
            inst.is_plain if isinstance(inst, Load | Store) else is_arithmetic(self.sweep, inst)
            for block in self.found.blocks
            for inst in block.instructions
        )

    def _meet(self, additions: Sequence[Addition]) -> bool:
        """True if two additions may be to the same memory in different iterations."""
        return any(
            may_touch(self.sweep, one.store, other.store)
            for number, one in enumerate(additions)
            for other in additions[:number]
        )

    def find_others(self) -> None:
        """Finds other accesses to memory."""
        found = self.found
        moved = {access for each in found.additions for access in (each.load, each.store)}
        for access in found.body.instructions:
            if isinstance(access, Load | Store) and access not in moved and not _is_slot(access.operands[-1]):
                found.others[access] = self.place(access)

    def _finds_checks(self) -> bool:
        """Collects memory that must not overlap; False if it is known to overlap, or this cannot be checked."""
        self.find_others()
        found = self.found
        for access, place in found.others.items():
            for each in found.additions:
                if not may_touch(self.sweep, each.store, access):
                    continue
                # Two places of one root move alike, and mostly one comes to where the other was.
                if place is None or place.root is each.place.root:
                    return False
                found.checks[each.place, place] = None
        return len(found.checks) <= _MOST_CHECKS


def is_arithmetic(sweep: Sweep, inst: Instruction) -> bool:
    """True if an instruction computes values or branches, and has nothing to do with memory."""
    match inst:
        case ir.CallSite(callee=Function(name=str(name))):
            is_function = isinstance(resolve(inst, sweep.augmented.unit.registry), Elementwise)
            return is_function or name.rpartition(".")[0] in _INTRINSICS
        case ir.Binary() | ir.Unary() | ir.Cast() | ir.ICmp() | ir.FCmp() | ir.Select() | ir.Freeze():
            return True
        case ir.GetElementPtr() | ir.Br() | ir.CondBr():
            return True
        case _:
            return False


def may_touch(sweep: Sweep, one: Instruction, other: Instruction) -> bool:
    """True if two accesses may be of the same bytes, as far as points-to tells."""
    mine, theirs = sweep.scopes.kind_of(one.metadata), sweep.scopes.kind_of(other.metadata)
    if mine is None or theirs is None:
        return True
    return mine[0] == theirs[0] and bool(sweep.augmented.unit.points_to.overlapping(mine[1]) & theirs[1])


def _is_slot(pointer: Value) -> bool:
    return isinstance(pointer, ir.Alloca)


def _without_sign(amount: Value) -> tuple[Value, bool]:
    is_negative = False
    while isinstance(amount, ir.Unary) and amount.opcode == "fneg":
        amount, is_negative = amount.operands[0], not is_negative
    return amount, is_negative
