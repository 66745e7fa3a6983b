"""Gives loops that add to neighbours in a shadow a second version, which adds to each element once.

Input   a reverse sweep in which the plan has been carried out.
Output  the same function, with a second version of such loops (`increments` says which).
Method  the last iteration that adds to an element adds all; what those before it add is passed on. What all add to one
        element is a sum. Where iterations are independent (`neighbours`) they run upwards, marked so. A check in
        front of the loop chooses the version. If the first iteration to run accesses other places than the rest,
        as at a periodic border, it runs as it was, and the check comes after it; so does the last one, after them.
Limit   sums are reordered, so not with `strict`.

    for i: a = f(i); x_bar[i] += a; x_bar[i + 1] -= a
    →  for i: a = f(i); x_bar[i] += a - before; before = a
       x_bar[last + 1] -= before
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import reduce
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Alloca, Instruction, Load, Metadata, Phi, Store
from irad.ir.module import Block, MetadataNode, Module
from irad.ir.values import ConstantInt, Value, const_int
from irad.passes.reverse.increments import Addition, Candidate, Place, candidate_of, enter_by
from irad.passes.reverse.neighbours import Independence, Neighbours, checks_of, independent, neighbours_of
from irad.passes.reverse.strides import LINEAR
from irad.passes.reverse.sweep import LoopState, Sweep, empty
from irad.records import dataclass

# Places whose addresses are linear in the iteration of a reversed loop, as code in front of the loop.
#
# Input   a candidate of `increments`, what has to hold of its places.
# Output  `LinearPlaces`: addresses and strides, and a check that places are apart in all iterations.

_ZERO = const_int(types.I64, 0)
_ONE = const_int(types.I64, 1)


@dataclass(eq=False, slots=True)
class LinearPlaces:
    """The places of one loop.

    Attributes:
        found: the loop.
        build: in front of it.
        lowest: the first iteration that counts.
        span: number of iterations after it.
        roots: addresses in that iteration.
        steps: their strides in bytes.
    """

    found: Candidate
    build: Builder
    lowest: Value
    span: Value
    roots: dict[Value, Value] = field(default_factory=dict)
    steps: dict[Value, Value] = field(default_factory=dict)
    _first: dict[Value, Value] = field(default_factory=dict)
    _second: dict[Value, Value] = field(default_factory=dict)
    _spans: dict[Place, tuple[Value, Value]] = field(default_factory=dict)

    def add(self, root: Value) -> None:
        """Computes the address and the stride of a root."""
        if root in self.roots:
            return
        strides, build = self.found.strides, self.build
        stride = strides.of(root)
        self.roots[root] = strides.emit(build, root, self.lowest, self._first)
        if stride == LINEAR:
            after = strides.emit(build, root, build.add(self.lowest, _ONE), self._second)
            self.steps[root] = build.sub(_number(build, after), _number(build, self.roots[root]))
        else:
            assert isinstance(stride, int)
            self.steps[root] = const_int(types.I64, stride)

    def apart(self, pairs: Iterable[tuple[Place, Place]]) -> list[Value]:
        """Tests that the places of each pair are apart."""
        conditions, build = list[Value](), self.build
        for one, other in pairs:
            (low, high), (other_low, other_high) = self._span(one), self._span(other)
            is_before, is_behind = build.icmp("ule", high, other_low), build.icmp("ule", other_high, low)
            conditions.append(build.or_(is_before, is_behind))
        return conditions

    def goes_on_by(self, root: Value, least: int) -> Value:
        """Test that a stride has that many bytes or more, in whichever direction."""
        self.add(root)
        size = self.build.select(
            self.build.icmp("slt", self.steps[root], _ZERO), self.build.sub(_ZERO, self.steps[root]), self.steps[root]
        )
        return self.build.icmp("sge", size, const_int(types.I64, least))

    def _span(self, place: Place) -> tuple[Value, Value]:
        """Beginning and end of the accesses of all iterations."""
        if place not in self._spans:
            self.add(place.root)
            build = self.build
            start = build.add(_number(build, self.roots[place.root]), const_int(types.I64, place.offset))
            end = build.add(start, build.mul(self.span, self.steps[place.root]))
            is_up = build.icmp("ule", start, end)
            low, high = build.select(is_up, start, end), build.select(is_up, end, start)
            self._spans[place] = low, build.add(high, const_int(types.I64, place.size))
        return self._spans[place]


def _number(build: Builder, pointer: Value) -> Value:
    return build.ptrtoint(pointer, types.I64)


_FEWEST: Final = 8


def gather_additions(sweep: Sweep) -> tuple[list[LoopState], list[LoopState]]:
    """Gives the loops of a reverse sweep that gain from it a second version.

    Returns:
        The loops whose second version runs upwards, and those that have none.
    """
    upwards, others = list[LoopState](), list[LoopState]()
    for state in list(sweep.loops.values()):
        # Iterations at a periodic border may stay as they were; else a version without exceptions may pay.
        gathering = _gathering_of(sweep, state, allows_exceptions=True) or _gathering_of(sweep, state)
        if gathering is not None:
            gathering.carry_out()
            upwards += [state] if gathering.is_upwards else []
        else:
            others.append(state)
    return upwards, others


def _gathering_of(sweep: Sweep, state: LoopState, *, allows_exceptions: bool = False) -> _Gathering | None:
    found = candidate_of(sweep, state, allows_exceptions=allows_exceptions)
    if found is None:
        return None
    groups = neighbours_of(found)
    independence = independent(sweep, found, groups)
    if independence is None and found.strides.usual:
        return None
    return _Gathering(sweep, found, groups, independence)


@dataclass(eq=False, slots=True)
class _Gathering:
    """The second version of one loop.

    Attributes:
        sweep: the function.
        found: the loop.
        groups: its additions.
        independence: the conditions that make its iterations independent; None if they stay in order.
        starts: where each group adds in the first turn.
        steps: distance in bytes to the addition of the next iteration.
        copies: values of the second version.
        delayed: by what is added, what that was one turn before, two, and so on.
        sums: sums for one element.
        access_group: the metadata of accesses that do not depend on those of other turns.
    """

    sweep: Sweep
    found: Candidate
    groups: Sequence[Neighbours]
    independence: Independence | None
    starts: dict[Neighbours, Value] = field(default_factory=dict)
    steps: dict[Neighbours, Value] = field(default_factory=dict)
    copies: dict[Value, Value] = field(default_factory=dict)
    delayed: dict[Value, list[Phi]] = field(default_factory=dict)
    sums: dict[Neighbours, Phi] = field(default_factory=dict)
    access_group: str = ""

    def carry_out(self) -> None:
        """Makes the second version of the loop."""
        guard, loop, end = (self._block(name) for name in ("guard", "gathering", "gathered"))
        enter_by(self.sweep.function, self.found, guard)
        build = Builder(guard)
        every = build.load(types.I64, self.counter)
        exceptions = list(self.found.strides.exceptions(build))
        lowest = self._lowest(build, exceptions)
        span = build.sub(every, lowest)
        conditions = [*self._check(build, every, lowest, span), *self._avoid(build, exceptions, every)]
        build.cond_br(reduce(build.and_, conditions), loop, self.found.body)
        build = Builder(loop)
        turn = self._begin(build, guard)
        self._copy_body(build, turn, build.add(lowest, turn) if self.is_upwards else build.sub(every, turn))
        totals = {each: self._add(build, each, turn) for each in self.groups}
        self._close(build, turn, span, end, totals)
        build = Builder(end)
        self._finish(build, span, totals)
        self._go_on(build, lowest)
        self._join(end)

    @property
    def counter(self) -> Alloca:
        """The slot of the iteration's number."""
        return self.found.state.iteration

    @property
    def module(self) -> Module:
        """Module of the function."""
        return self.sweep.augmented.program.module

    @property
    def is_upwards(self) -> bool:
        """True if the second version goes from the first iteration to the last."""
        return self.independence is not None

    # -------------------------------------------------------------------------------------------- before the loop

    def _block(self, name: str) -> Block:
        return self.sweep.function.add_block(f"{self.found.body.name}.{name}")

    def _check(self, build: Builder, every: Value, lowest: Value, span: Value) -> Iterator[Value]:
        """Tests that there are enough iterations and no overlap; finds the starts of the groups."""
        places = LinearPlaces(self.found, build, lowest, span)
        for each in self.groups:
            places.add(each.root)
            self.steps[each] = places.steps[each.root]
            ahead: Value = const_int(types.I64, each.first if self.is_upwards else each.first + each.spread)
            ahead = ahead if self.is_upwards else build.add(span, ahead)
            start = build.byte_offset(places.roots[each.root], each.offset, ("inbounds",))
            is_sum = self._is_sum(each)
            self.starts[each] = start if is_sum else build.byte_offset(start, build.mul(ahead, self.steps[each]))
        fewest = max(_FEWEST, *(each.spread + 1 for each in self.groups)) - 1
        yield build.icmp("uge", every, build.add(lowest, const_int(types.I64, fewest)))
        if self.independence is None:
            yield from places.apart(checks_of(self.found, self.groups))
        else:
            yield from places.apart(self.independence.checks)
            for root, least in self.independence.least_steps.items():
                yield places.goes_on_by(root, least)

    def _lowest(self, build: Builder, exceptions: Sequence[Value]) -> Value:
        """The lowest iteration that the second version runs: 1 where iteration 0 is an exception."""
        are_lowest = [build.icmp("eq", each, _ZERO) for each in exceptions]
        return build.zext(reduce(build.or_, are_lowest), types.I64) if are_lowest else _ZERO

    def _avoid(self, build: Builder, exceptions: Sequence[Value], every: Value) -> Iterator[Value]:
        """Tests that only the lowest iteration is an exception; if the first to run is one, there is a second look."""
        if not exceptions:
            return
        for each in exceptions:
            yield build.or_(build.icmp("ugt", each, every), build.icmp("eq", each, _ZERO))
        is_first = reduce(build.or_, (build.icmp("eq", each, every) for each in exceptions))
        again = Builder.at_start(self.sweep.allocas).alloca(types.I1)
        build.store(is_first, again)
        back = self.found.back[-1]
        back.instructions[-1].erase()
        looking = Builder(back)
        looking.cond_br(looking.load(types.I1, again), build.block, self.found.body)

    def _is_sum(self, group: Neighbours) -> bool:
        """True if all iterations add to one element."""
        return self.found.strides.of(group.root) == 0

    # -------------------------------------------------------------------------------------------- the loop

    def _begin(self, build: Builder, guard: Block) -> Phi:
        """Makes the phis of values passed from turn to turn; returns their number."""
        turn = build.phi(types.I64, [(_ZERO, guard)])
        for group in self.groups:
            nothing = empty(group.example.load.type)
            if self._is_sum(group):
                self.sums[group] = build.phi(nothing.type, [(nothing, guard)])
                continue
            for addition in group.numbers:
                earlier = self.delayed.setdefault(addition.amount, [])
                while self.found.strides.is_inside(addition.amount) and len(earlier) < self._lag(group, addition):
                    earlier.append(build.phi(nothing.type, [(nothing, guard)]))
        return turn

    def _lag(self, group: Neighbours, addition: Addition) -> int:
        """Number of turns between an addition and the one in which its element is stored."""
        behind = group.numbers[addition] - group.first
        return behind if self.is_upwards else group.spread - behind

    def _copy_body(self, build: Builder, turn: Value, iteration: Value) -> None:
        """Copies the loop without the additions."""
        if self.is_upwards:
            number = self.module.new_metadata_number()
            self.module.metadata[number] = MetadataNode("!{}", distinct=True)
            self.access_group = f"!{number}"
        moved: set[Instruction] = set()
        for addition in self.found.additions:
            moved |= {addition.load, addition.store, *addition.load.users}
        build.store(iteration, self.counter)
        usual = self.found.strides.usual
        for inst in self.found.body.instructions[:-1]:
            if inst in usual:
                self.copies[inst] = self.copies.get(usual[inst][1], usual[inst][1])
            elif inst not in moved:
                self._copy(build, inst)

    def _copy(self, build: Builder, inst: Instruction) -> None:
        copy = self.copies[inst] = clone_instruction(inst, self.copies)
        # Slots carry values from turn to turn, so accesses to them must not be marked as independent.
        if isinstance(copy, Load | Store) and not isinstance(copy.operands[-1], Alloca):
            copy.metadata = self._marked(copy.metadata)
        build.insert(copy)

    def _marked(self, metadata: Metadata) -> Metadata:
        """The metadata of an access in the loop."""
        return {**metadata, "llvm.access.group": self.access_group} if self.is_upwards else dict(metadata)

    def _add(self, build: Builder, group: Neighbours, turn: Value) -> Value:
        """Adds all that is added to one element; the sum."""
        if group in self.sums:
            return self._with_amounts(build, self.sums[group], group, turn)
        return self._update(build, group, self._pointer(build, group, turn), turn)

    def _pointer(self, build: Builder, group: Neighbours, turn: Value) -> Value:
        """Address that a group adds to in a turn."""
        addition, start = group.example, self.starts[group]
        index = turn if self.is_upwards else build.sub(_ZERO, turn)
        if self.found.strides.of(group.root) == addition.place.size:
            return build.gep(addition.load.type, start, [index], ("inbounds",))
        return build.byte_offset(start, build.mul(index, self.steps[group]), ("inbounds",))

    def _update(self, build: Builder, group: Neighbours, pointer: Value, turn: Value, missing: int = 0) -> Value:
        """Adds to an element the amount of a turn, including turns after the last."""
        addition = group.example
        loaded = build.load(addition.load.type, pointer, align=addition.load.align)
        total = self._with_amounts(build, loaded, group, turn, missing)
        stored = build.store(total, pointer, align=addition.store.align)
        for inst, like in ((loaded, addition.load), (stored, addition.store)):
            inst.metadata = dict(like.metadata) if missing else self._marked(like.metadata)
        return total

    def _with_amounts(self, build: Builder, total: Value, group: Neighbours, turn: Value, missing: int = 0) -> Value:
        for addition in group.numbers:
            lag = 0 if group in self.sums else self._lag(group, addition) - missing
            if lag >= 0:
                combine = build.fsub if addition.is_negative else build.fadd
                total = combine(total, self._amount(build, addition, lag, turn), self.sweep.sum_flags)
        return total

    def _amount(self, build: Builder, addition: Addition, lag: int, turn: Value) -> Value:
        """Amount that an addition has added some turns before."""
        amount = addition.amount
        if not lag:
            return self.copies.get(amount, amount)
        if earlier := self.delayed[amount]:
            return earlier[lag - 1]
        return build.select(build.icmp("uge", turn, const_int(types.I64, lag)), amount, empty(amount.type))

    def _close(self, build: Builder, turn: Phi, span: Value, end: Block, totals: dict[Neighbours, Value]) -> None:
        """Ends the loop, and passes on."""
        loop, latch = build.block, self._block("gathering.back")
        following = build.add(turn, _ONE, ("nuw", "nsw"))
        build.cond_br(build.icmp("eq", turn, span), end, latch)
        build = Builder(latch)
        self._copy_back(build)
        closing = build.br(loop)
        if self.is_upwards:
            mark = f'!{{!"llvm.loop.parallel_accesses", {self.access_group}}}'
            closing.metadata["llvm.loop"] = self.module.loop_mark(mark)
        turn.add_incoming(following, latch)
        for group, phi in self.sums.items():
            phi.add_incoming(totals[group], latch)
        for amount, phis in self.delayed.items():
            for phi, value in zip(phis, [self.copies.get(amount, amount), *phis], strict=False):
                phi.add_incoming(value, latch)

    def _copy_back(self, build: Builder) -> None:
        """Copies the code between one iteration and the next."""
        for inst in (inst for each in self.found.back for inst in each.instructions[:-1]):
            self._copy(build, inst)

    # --------------------------------------------------------------------------------------------- after the loop

    def _finish(self, build: Builder, span: Value, totals: dict[Neighbours, Value]) -> None:
        """Adds the values passed on to the end."""
        for group in self.groups:
            if group in self.sums:
                self._store_sum(build, group, totals[group])
            for missing in range(1, group.spread + 1):
                turn = build.add(span, const_int(types.I64, missing))
                self._update(build, group, self._pointer(build, group, turn), span, missing)
        build.store(_ZERO, self.counter)

    def _go_on(self, build: Builder, lowest: Value) -> None:
        """Leaves the loop, or has it run the lowest iteration as it was."""
        if isinstance(lowest, ConstantInt) and not lowest.value:
            build.br(self.found.after)
            return
        rest = self._block("lowest")
        build.cond_br(build.icmp("eq", lowest, _ZERO), self.found.after, rest)
        build = Builder(rest)
        self._copy_back(build)
        build.store(_ZERO, self.counter)
        build.br(self.found.body)

    def _store_sum(self, build: Builder, group: Neighbours, total: Value) -> None:
        addition, pointer = group.example, self.starts[group]
        loaded = build.load(addition.load.type, pointer, align=addition.load.align)
        stored = build.store(build.fadd(loaded, total, self.sweep.sum_flags), pointer, align=addition.store.align)
        loaded.metadata, stored.metadata = dict(addition.load.metadata), dict(addition.store.metadata)

    def _join(self, end: Block) -> None:
        """Gives the block after the loop the values of whichever version ran."""
        after, body = self.found.after, self.found.body
        joined: dict[Value, Phi] = {}
        for inst in list(after.instructions):
            for index, operand in enumerate(inst.operands):
                if not isinstance(operand, Instruction) or operand.block is not body:
                    continue
                if operand not in joined:
                    pairs = [(operand, body), (self.copies[operand], end)]
                    joined[operand] = Builder.at_start(after).phi(operand.type, pairs)
                inst.set_operand(index, joined[operand])
