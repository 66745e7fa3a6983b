"""Loops around innermost loops that run upwards run upwards, too.

Input   a reverse sweep in which the plan has been carried out: `find_nests` before additions are gathered, `turn_nests`
        when it is known which innermost loops run upwards.
Output  the same function.
Method  A reversed loop counts down. Its iterations commute if they pass on nothing but sums, and what one loads, clears
        or stores no other accesses. Additions to shadows commute. Where addresses have to be compared, code in front
        of the loop does so, once for all of its iterations, and decides which way they go.
Why     Rows that are visited one before the other, each of them upwards, surprise the processor, which does not fetch
        ahead what it has put on the tape. Of a tape larger than its caches it waits for every row.
Limit   nests whose inner loops `gather` has given a second version; counted loops without calls, whose slots on the
        stack are sums, or are written before they are read.

    for i downwards: for j upwards: d = z_bar[i, j]; z_bar[i, j] = 0; x_bar[i + 1, j] += d * tape[i, j]
    →  apart = …;  for i upwards if apart else downwards: …
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import reduce
from itertools import product
from typing import Final, TypeAlias

from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import Alloca, Instruction, Load, Store, replace_uses
from irad.ir.loops import LoopNest, loop_nest
from irad.ir.module import Block, Function
from irad.ir.types import I64, PointerType, size_of
from irad.ir.values import Value, const_int
from irad.passes.reverse.increments import is_arithmetic, may_touch
from irad.passes.reverse.stored_once import Sum, sum_of
from irad.passes.reverse.strides import copied
from irad.passes.reverse.sweep import LoopState, Sweep
from irad.records import dataclass

_ZERO, _ONE = const_int(I64, 0), const_int(I64, 1)
_MOST_ACCESSES: Final = 64  # each that has to be apart from others is some code in front of the loop

Range: TypeAlias = tuple[Value, Value]
"""The least and the greatest of numbers."""

Key: TypeAlias = tuple[object, ...]


@dataclass(eq=False, slots=True)
class Nest:
    """A loop around others whose iterations may commute.

    Attributes:
        sweep: the function.
        state: state of the loop.
        blocks: of the reversed loop, those of its inner loops too.
        counting: the load that tells which iteration is next; all other loads of the counter want the current one.
        bounds: by counter of an inner loop: the numbers of its last iteration.
        written: where the nest stores.
        rows: by root: accesses that must not meet any of the same root in another iteration.
        apart: pairs of roots of which all accesses must be apart.
        accesses: by root.
    """

    sweep: Sweep
    state: LoopState
    blocks: frozenset[Block]
    counting: Load
    bounds: dict[Alloca, list[Value]]
    written: frozenset[Value]
    rows: dict[Key, None] = field(default_factory=dict)
    apart: dict[tuple[Key, Key], None] = field(default_factory=dict)
    accesses: dict[Key, list[Load | Store]] = field(default_factory=dict)
    _known: dict[Value, bool] = field(default_factory=dict)
    _keys: dict[Value, Key] = field(default_factory=dict)

    def is_inside(self, value: Value) -> bool:
        """True if the nest computes a value."""
        return isinstance(value, Instruction) and value.block in self.blocks

    def is_invariant(self, value: Value) -> bool:
        """True if a value is the same in all iterations, and can be computed before them."""
        if not self.is_inside(value):
            return True
        if value not in self._known:
            self._known[value] = self._is_invariant(value)
        return self._known[value]

    def _is_invariant(self, value: Value) -> bool:
        match value:
            case Load(operands=[Alloca() as slot]):
                return slot not in self.written and _is_plain(slot)
            case Load(operands=[pointer]):
                # Before the loop, memory of the primal may not be what the address was made for; the tape is.
                return value.is_plain and self._kind(value) == "tape" and self.is_invariant(pointer)
            case ir.Binary(opcode="add" | "sub" | "mul" | "shl" | "ashr" | "lshr" | "and" | "or" | "xor"):
                return all(map(self.is_invariant, value.operands))
            case ir.Cast() | ir.ICmp() | ir.Select() | ir.GetElementPtr() | ir.Freeze():
                return all(map(self.is_invariant, value.operands))
            case ir.CallSite() if _is_extreme(value):
                return all(map(self.is_invariant, value.arguments))
            case _:
                return False

    def is_bounded(self, value: Value) -> bool:
        """True if an integer or address is linear in the numbers of iterations, and has bounds known before them."""
        if self.is_invariant(value):
            return value.type is I64 or isinstance(value.type, PointerType)
        match value:
            case Load(operands=[Alloca() as slot]):
                lasts = self.bounds.get(slot, [])
                return slot is self.state.iteration or (bool(lasts) and all(map(self.is_invariant, lasts)))
            case ir.Binary(opcode="add" | "sub", operands=[a, b]) if value.type is I64:
                return self.is_bounded(a) and self.is_bounded(b)
            case ir.Binary(opcode="mul", operands=[a, b]) if value.type is I64:
                return (self.is_bounded(a) and self.is_invariant(b)) or (self.is_invariant(a) and self.is_bounded(b))
            case ir.GetElementPtr(operands=[base, index]) if index.type is I64:
                return self.is_bounded(base) and self.is_bounded(index)
            case _:
                return False

    def root_of(self, pointer: Value) -> Key:
        """The pointer that an address is made from; equal where the nest computes the same one twice."""
        while isinstance(pointer, ir.GetElementPtr) and self.is_inside(pointer):
            pointer = pointer.operands[0]
        return self._key(pointer)

    def _key(self, value: Value) -> Key:
        if value not in self._keys:
            self._keys[value] = (value,)
            if self.is_inside(value) and self.is_invariant(value) and not isinstance(value, ir.CallSite):
                assert isinstance(value, Instruction)
                what = (type(value), getattr(value, "opcode", getattr(value, "source_type", None)), value.type)
                self._keys[value] = (*what, *map(self._key, value.operands))
        return self._keys[value]

    def _kind(self, inst: Load | Store) -> object:
        kind = self.sweep.scopes.kind_of(inst.metadata)
        return kind and kind[0]

    def commutes(self, sums: Mapping[Instruction, Sum]) -> bool:
        """Finds the memory that must not overlap; False if iterations do not commute, or this cannot be checked."""
        blocks = [block for block in self.sweep.function.blocks if block in self.blocks]
        # What is compared is what is accessed, not more: else it would depend on what lies beside it in which order
        # sums are added up.
        if not all(map(self._goes_one_way, blocks)):
            return False
        in_memory = list[Load | Store]()
        for inst in (inst for block in blocks for inst in block.instructions):
            if not isinstance(inst, Load | Store):
                if not is_arithmetic(self.sweep, inst):
                    return False
            elif not inst.is_plain or (isinstance(inst, Store) and self._kind(inst) in ("tape", "primal")):
                return False
            elif not isinstance(inst.operands[-1], Alloca) and self._kind(inst) not in ("tape", "primal"):
                in_memory.append(inst)
        return len(in_memory) <= _MOST_ACCESSES and all(
            self._note(one, other)
            for one, other in product(in_memory, in_memory)
            if one not in sums
            if (isinstance(one, Store) or isinstance(other, Store)) and may_touch(self.sweep, one, other)
        )

    def _goes_one_way(self, block: Block) -> bool:
        """True if a block has the same successor in all iterations, but for the ends of loops."""
        match block.terminator:
            case ir.Br():
                return True
            case ir.CondBr(operands=[condition, *_]) if self.is_invariant(condition):
                return True
            case ir.CondBr(operands=[ir.ICmp(operands=[Load(operands=[slot]), _]), *_]):
                return slot is self.state.iteration or slot in self.bounds
            case _:
                return False

    def _note(self, one: Load | Store, other: Load | Store) -> bool:
        """Notes that two accesses have to be apart; False if that cannot be checked."""
        roots = []
        for access in (one, other):
            pointer = access.operands[-1]
            if not self.is_bounded(pointer):
                return False
            roots.append(self.root_of(pointer))
            found = self.accesses.setdefault(roots[-1], [])
            if access not in found:
                found.append(access)
        if roots[0] == roots[1]:
            self.rows[roots[0]] = None
        else:
            self.apart[roots[0], roots[1]] = None
        return True


def find_nests(sweep: Sweep) -> list[Nest]:
    """The loops around others whose iterations commute, as far as can be said before the addresses are known."""
    outer = [state for state in sweep.loops.values() if state.loop.children and state.back is not None]
    if not outer:
        return []
    cfg = control_flow(sweep.function)
    tree = dominators(cfg)
    nests, sums = loop_nest(cfg, tree), dict[Instruction, Sum]()
    for inst in sweep.function.instructions():
        if isinstance(inst, Store) and (found := sum_of(inst)):
            sums.update(dict.fromkeys(found.parts, found))
    candidates = (_nest_of(sweep, state, nests, tree, sums) for state in outer)
    return [nest for nest in candidates if nest is not None and nest.commutes(sums)]


def _nest_of(
    sweep: Sweep, state: LoopState, nests: LoopNest, tree: DominatorTree, sums: Mapping[Instruction, Sum]
) -> Nest | None:
    """The reversed loop, if its slots and its counter are as they should be."""
    assert state.back is not None
    loop = nests.loop_of(state.back.block)
    before = [block for block in sweep.function.blocks if state.back.block in block.successors]
    if loop is None or len(before) != 1:
        return None
    match before[0].terminator:
        case ir.CondBr(operands=[ir.ICmp(operands=[Load(operands=[slot]) as counting, _]), *_]) if (
            slot is state.iteration
        ):
            pass
        case _:
            return None
    entries = {place.block for place, _ in state.entries}
    stores = [user for user in state.iteration.users if isinstance(user, Store) and user.block not in loop.blocks]
    # The counter starts at zero at the head of the function, which no entry sees.
    if any(store.block not in entries and store.block is not sweep.allocas for store in stores):
        return None
    bounds = {
        each.iteration: [
            user.operands[0]
            for user in each.iteration.users
            if isinstance(user, Store) and each.back is not None and user.block is not each.back.block
            if user.block is not sweep.allocas
        ]
        for each in sweep.loops.values()
        if each.loop is not state.loop and state.loop.contains(each.loop)
    }
    written = frozenset(i.operands[1] for block in loop.order for i in block.instructions if isinstance(i, Store))
    slots = [slot for slot in written if isinstance(slot, Alloca) and slot is not state.iteration]
    if not all(_is_local(slot, loop.blocks, tree) or _is_sum(slot, loop.blocks, sums) for slot in slots):
        return None
    return Nest(sweep, state, loop.blocks, counting, bounds, written)


def _is_sum(slot: Alloca, blocks: frozenset[Block], sums: Mapping[Instruction, Sum]) -> bool:
    """True if a loop does nothing to a slot but add to it."""
    return _is_plain(slot) and all(user in sums for user in slot.users if user.block in blocks)


def _is_local(slot: Alloca, blocks: frozenset[Block], tree: DominatorTree) -> bool:
    """True if the contents of a slot are needed in one iteration only, which stores them first."""
    loads = [user for user in slot.users if not isinstance(user, Store)]
    stores = [user for user in slot.users if isinstance(user, Store) and user.block in blocks]
    are_found = all(load.block in blocks and any(_precedes(store, load, tree) for store in stores) for load in loads)
    return are_found and _is_plain(slot)


def _is_plain(slot: Alloca) -> bool:
    """True if a slot holds one number, which is loaded and stored as a whole."""
    return all(
        isinstance(user, Load) or (isinstance(user, Store) and user.operands[0] is not slot) for user in slot.users
    )


def _precedes(one: Instruction, other: Instruction, tree: DominatorTree) -> bool:
    """True if one instruction has run whenever another does."""
    assert one.block is not None
    assert other.block is not None
    if one.block is other.block:
        return one.block.instructions.index(one) < one.block.instructions.index(other)
    return tree.dominates(one.block, other.block)


def _is_extreme(call: ir.CallSite) -> bool:
    match call.callee:
        case Function(name=str(name)):
            return name.startswith(("llvm.smax.", "llvm.smin.", "llvm.umax.", "llvm.umin."))
        case _:
            return False


@dataclass(eq=False, slots=True)
class _Bounds:
    """The least and the greatest values of integers and addresses of a nest, as code in front of it.

    Attributes:
        nest: whose.
        build: in front.
        outer: the iterations of the nest's loop that count.
        fixed: copies of invariant values, for all iterations.
    """

    nest: Nest
    build: Builder
    outer: Range
    fixed: dict[Value, Value]
    _made: dict[Value, Range] = field(default_factory=dict)

    def hull(self, accesses: Iterable[Load | Store]) -> Range:
        """The bytes that some accesses touch: the first, and the one after the last."""
        lows, highs, build = list[Value](), list[Value](), self.build
        for access in accesses:
            low, high = self.of(access.operands[-1])
            value_type = access.type if isinstance(access, Load) else access.operands[0].type
            lows.append(low)
            highs.append(build.add(high, const_int(I64, size_of(value_type))))
        return reduce(self._least, lows), reduce(self._greatest, highs)

    def of(self, value: Value) -> Range:
        """Bounds of a value; an address as a number."""
        if value not in self._made:
            self._made[value] = self._emit(value)
        return self._made[value]

    def _emit(self, value: Value) -> Range:
        build, nest = self.build, self.nest
        if nest.is_invariant(value):
            made = self._copied(value)
            number = build.ptrtoint(made, I64) if isinstance(value.type, PointerType) else made
            return number, number
        match value:
            case Load(operands=[slot]):
                if slot is nest.state.iteration:
                    return self.outer
                assert isinstance(slot, Alloca)
                return _ZERO, reduce(self._greatest, map(self._copied, nest.bounds[slot]))
            case ir.Binary(opcode="add", operands=[a, b]):
                return self._sum(self.of(a), self.of(b))
            case ir.Binary(opcode="sub", operands=[a, b]):
                (low, high), (other_low, other_high) = self.of(a), self.of(b)
                return build.sub(low, other_high), build.sub(high, other_low)
            case ir.Binary(opcode="mul", operands=[a, b]):
                a, b = (b, a) if nest.is_invariant(a) else (a, b)
                return self._scaled(self.of(a), self._copied(b))
            case ir.GetElementPtr(operands=[base, index], source_type=type_):
                return self._sum(self.of(base), self._scaled(self.of(index), const_int(I64, size_of(type_))))
            case _:
                raise AssertionError("not bounded")

    def _sum(self, one: Range, other: Range) -> Range:
        return self.build.add(one[0], other[0]), self.build.add(one[1], other[1])

    def _scaled(self, range_: Range, factor: Value) -> Range:
        one, other = (self.build.mul(each, factor) for each in range_)
        return self._least(one, other), self._greatest(one, other)

    def _least(self, one: Value, other: Value) -> Value:
        return self.build.select(self.build.icmp("slt", one, other), one, other)

    def _greatest(self, one: Value, other: Value) -> Value:
        return self.build.select(self.build.icmp("sgt", one, other), one, other)

    def _copied(self, value: Value) -> Value:
        """A copy of an invariant value."""
        pending = [value]
        while pending:
            needed = pending[-1]
            operands = needed.operands if isinstance(needed, Instruction) else []
            missing = [each for each in operands if self.nest.is_inside(each) and each not in self.fixed]
            if needed in self.fixed or not self.nest.is_inside(needed):
                pending.pop()
            elif missing:
                pending += missing
            else:
                self.fixed[needed] = copied(self.build, needed, self.fixed)
        return self.fixed.get(value, value)


def turn_nests(nests: Iterable[Nest], upwards: Iterable[LoopState]) -> None:
    """Has the nests run upwards whose innermost loops do, unless addresses say that iterations do not commute."""
    up = {state.loop for state in upwards}
    for nest in nests:
        inner = [each for each in nest.sweep.loops if each is not nest.state.loop and nest.state.loop.contains(each)]
        if all(each in up for each in inner if not each.children):
            _turn(nest)


def _turn(nest: Nest) -> None:
    sweep, counter = nest.sweep, nest.state.iteration
    origin, step = sweep.new_slot(types.I64, _ZERO), sweep.new_slot(types.I64, _ONE)
    for place, _ in nest.state.entries:
        build = Builder.before(place.block.terminator)
        last = build.load(I64, counter)
        always: Value = const_int(types.I1, 1)
        # Copies of what the loop computes may be poison where an inner loop would not run.
        may_turn = build.freeze(reduce(build.and_, _conditions(nest, build, last), always))
        build.store(build.select(may_turn, last, _ZERO), origin)
        build.store(build.select(may_turn, const_int(I64, -1), _ONE), step)
    for load in _current(nest):
        build = Builder.after(load)
        left = build.load(I64, counter)
        # A sum in place of a choice: of a choice LLVM would make two loops.
        replace_uses(load, build.add(build.load(I64, origin), build.mul(build.load(I64, step), left)))
        load.erase()


def _current(nest: Nest) -> Iterator[Load]:
    """The loads of the current iteration's number, also those that have come since the nest was found."""
    cfg = control_flow(nest.sweep.function)
    assert nest.state.back is not None
    loop = loop_nest(cfg, dominators(cfg)).loop_of(nest.state.back.block)
    assert loop is not None
    loads = [user for user in nest.state.iteration.users if isinstance(user, Load) and user.block in loop.blocks]
    return (load for load in loads if load is not nest.counting)


def _conditions(nest: Nest, build: Builder, last: Value) -> Iterator[Value]:
    """Tests that no iteration touches memory that another one clears, stores or reads."""
    fixed = dict[Value, Value]()
    every, first, second = (_Bounds(nest, build, each, fixed) for each in ((_ZERO, last), (_ZERO, _ZERO), (_ONE, _ONE)))
    for one, other in nest.apart:
        (low, high), (other_low, other_high) = (every.hull(nest.accesses[each]) for each in (one, other))
        yield build.or_(build.icmp("ule", high, other_low), build.icmp("ule", other_high, low))
    for root in nest.rows:
        low, high = first.hull(nest.accesses[root])
        pointers = [access.operands[-1] for access in nest.accesses[root]]
        step, *others = (build.sub(second.of(each)[0], first.of(each)[0]) for each in pointers)
        yield from (build.icmp("eq", step, each) for each in others)
        distance = build.select(build.icmp("slt", step, _ZERO), build.sub(_ZERO, step), step)
        yield build.icmp("sge", distance, build.sub(high, low))
