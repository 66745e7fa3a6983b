"""Does the additions of a loop to shadows after the rest of the loop: a loop for each array that they go to.

Input   a reverse sweep in which the plan has been carried out.
Output  the same function, with a second version of such loops (`increments` says which).
Method  The second version goes through the loop in chunks. A chunk first computes what is to be added and puts it into
        buffers, then adds: to neighbours in one array at once, to one element as a sum. The buffers have zeros at both
        ends, so that neighbours need no cases. A check in front of the loop chooses the version.
Limit   sums are reordered, so not with `strict`.

    for i: a = f(i); x_bar[i] += a; x_bar[i + 1] -= a
    →  for i: buffer[i] = f(i)
       for i: x_bar[i] += buffer[i] - buffer[i - 1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import Alloca, Instruction, Phi
from irad.ir.module import Block
from irad.ir.types import Type
from irad.ir.values import Value, const_int, zero
from irad.passes.reverse.increments import Addition, Candidate, Place, find_candidates
from irad.passes.reverse.strides import LINEAR
from irad.passes.reverse.sweep import Sweep, empty

_CHUNK: Final = 128
_MARGIN: Final = 8
"""Zeros at each end of a buffer, and how far apart neighbours may be."""
_FEWEST: Final = 8
_ONE: Final = const_int(types.I64, 1)


def distribute_additions(sweep: Sweep) -> None:
    """Gives the loops of a reverse sweep that gain from it a second version."""
    for candidate in list(find_candidates(sweep)):
        _Distribution(sweep, candidate).carry_out()


@dataclass(eq=False, slots=True)
class _Neighbours:
    """Additions whose places lie beside each other, some elements of one array.

    Attributes:
        root: the address that they lie behind.
        offset: in bytes, of those at number 0.
        numbers: of each addition: how many strides it lies behind that.
    """

    root: Value
    offset: int
    numbers: dict[Addition, int] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The lowest number."""
        return min(self.numbers.values())

    @property
    def spread(self) -> int:
        """How many strides lie between the lowest and the highest."""
        return max(self.numbers.values()) - self.first


@dataclass(eq=False, slots=True)
class _Buffer:
    """What is to be added in a chunk, by iteration: memory, with a margin at each end."""

    memory: Alloca
    has_margins: bool = False


@dataclass(eq=False, slots=True)
class _Distribution:
    """The second version of one loop."""

    sweep: Sweep
    candidate: Candidate
    buffers: dict[Value, _Buffer] = field(default_factory=dict)
    roots: dict[Value, Value] = field(default_factory=dict)
    steps: dict[Value, Value] = field(default_factory=dict)

    def carry_out(self) -> None:
        """Makes it."""
        found = self.candidate
        groups = self._groups()
        for addition in found.additions:
            if addition.amount not in self.buffers:
                type_ = types.array_type(_CHUNK + 2 * _MARGIN, addition.load.type)
                self.buffers[addition.amount] = _Buffer(self._alloca(type_))
        for each in groups:
            for addition in each.numbers:
                self.buffers[addition.amount].has_margins |= each.spread > 0
        guard, chunk, part = (self._block(name) for name in ("guard", "chunk", "part"))
        self._enter_by(guard)
        build = Builder(guard)
        every = build.load(types.I64, self.counter)
        self._find_roots(build)
        fewest = const_int(types.I64, max([_FEWEST, *(each.spread + 1 for each in groups)]) - 1)
        build.cond_br(self._check(build, every, fewest), chunk, found.body)
        build = Builder(chunk)
        top = build.load(types.I64, self.counter)
        most = const_int(types.I64, _CHUNK - 1)
        last = build.select(build.icmp("ult", top, most), top, most)
        stop = build.sub(top, last)
        self._clear_margins(build, last)
        build.br(part)
        sums = self._block("sums")
        copies = self._write_part(part, stop, sums)
        build = self._add_up(groups, sums, stop, last)
        again = self._block("again")
        build.cond_br(build.icmp("eq", stop, const_int(types.I64, 0)), found.after, again)
        self._go_back(again, dict(copies), chunk)
        self._join(build.block, copies)

    # -------------------------------------------------------------------------------------------- before the loop

    @property
    def counter(self) -> Alloca:
        """The slot of the iteration's number."""
        return self.candidate.state.iteration

    def _block(self, name: str) -> Block:
        return self.sweep.function.add_block(f"{self.candidate.body.name}.{name}")

    def _alloca(self, type_: Type) -> Alloca:
        return Builder.at_start(self.sweep.allocas).alloca(type_, align=64)

    def _enter_by(self, guard: Block) -> None:
        """Has all that enters the loop enter it by another block."""
        body = self.candidate.body
        for block in self.sweep.function.blocks:
            if block.instructions and block is not self.candidate.back[-1]:
                end = block.instructions[-1]
                end.targets = [guard if target is body else target for target in end.targets]

    def _find_roots(self, build: Builder) -> None:
        """Computes the addresses of iteration 0, and their strides where these are not constant."""
        strides, first, second = self.candidate.strides, dict[Value, Value](), dict[Value, Value]()
        every = [each.place for each in self.candidate.additions]
        every += [place for pair in self.candidate.checks for place in pair]
        for root in dict.fromkeys(place.root for place in every):
            stride = strides.of(root)
            self.roots[root] = strides.emit(build, root, const_int(types.I64, 0), first)
            if stride == LINEAR:
                after = strides.emit(build, root, _ONE, second)
                self.steps[root] = build.sub(_number(build, after), _number(build, self.roots[root]))
            else:
                assert isinstance(stride, int)
                self.steps[root] = const_int(types.I64, stride)

    def _check(self, build: Builder, last: Value, fewest: Value) -> Value:
        """Whether there are enough iterations, and what has to be apart is."""
        fine = build.icmp("uge", last, fewest)
        spans: dict[tuple[Value, int, int], tuple[Value, Value]] = {}
        for pair in self.candidate.checks:
            (low, high), (other_low, other_high) = (self._span(build, place, last, spans) for place in pair)
            is_before, is_behind = build.icmp("ule", high, other_low), build.icmp("ule", other_high, low)
            fine = build.and_(fine, build.or_(is_before, is_behind))
        return fine

    def _span(
        self, build: Builder, place: Place, last: Value, known: dict[tuple[Value, int, int], tuple[Value, Value]]
    ) -> tuple[Value, Value]:
        """Where the accesses of all iterations begin, and where they end."""
        key = place.root, place.offset, place.size
        if key not in known:
            start = build.add(_number(build, self.roots[place.root]), const_int(types.I64, place.offset))
            end = build.add(start, build.mul(last, self.steps[place.root]))
            is_up = build.icmp("ule", start, end)
            low, high = build.select(is_up, start, end), build.select(is_up, end, start)
            known[key] = low, build.add(high, const_int(types.I64, place.size))
        return known[key]

    # -------------------------------------------------------------------------------------------- the loop

    def _clear_margins(self, build: Builder, last: Value) -> None:
        for buffer in self.buffers.values():
            if buffer.has_margins:
                zeros = zero(types.vector_type(_MARGIN, _element(buffer)))
                build.store(zeros, buffer.memory, align=_size(buffer))
                behind = build.add(last, const_int(types.I64, _MARGIN + 1))
                build.store(zeros, self._slot(build, buffer, behind), align=_size(buffer))

    def _slot(self, build: Builder, buffer: _Buffer, index: Value) -> Value:
        return build.gep(_element(buffer), buffer.memory, [index], ("inbounds",))

    def _write_part(self, part: Block, stop: Value, sums: Block) -> dict[Value, Value]:
        """Copies the loop; in place of the additions, what is to be added goes into the buffers."""
        found, copies = self.candidate, dict[Value, Value]()
        moved: set[Instruction] = set()
        for addition in found.additions:
            moved |= {addition.load, addition.store, *addition.load.users}
        build = Builder(part)
        for inst in found.body.instructions[:-1]:
            if inst not in moved:
                _copy(build, inst, copies)
        number = build.load(types.I64, self.counter)
        index = build.add(build.sub(number, stop), const_int(types.I64, _MARGIN))
        for amount, buffer in self.buffers.items():
            build.store(copies.get(amount, amount), self._slot(build, buffer, index), align=_size(buffer))
        back = self._block("part.back")
        build.cond_br(build.icmp("eq", number, stop), sums, back)
        self._go_back(back, dict(copies), part)
        return copies

    def _go_back(self, block: Block, copies: dict[Value, Value], target: Block) -> None:
        """Copies what leads from an iteration to the one before it."""
        build = Builder(block)
        for each in self.candidate.back:
            for inst in each.instructions[:-1]:
                _copy(build, inst, copies)
        build.br(target)

    def _join(self, end: Block, copies: dict[Value, Value]) -> None:
        """Gives the block behind the loop the values of whichever version ran."""
        after, body = self.candidate.after, self.candidate.body
        joined: dict[Value, Phi] = {}
        for inst in list(after.instructions):
            for index, operand in enumerate(inst.operands):
                if not isinstance(operand, Instruction) or operand.block is not body:
                    continue
                if operand not in joined:
                    pairs = [(operand, body), (copies[operand], end)]
                    joined[operand] = Builder.at_start(after).phi(operand.type, pairs)
                inst.set_operand(index, joined[operand])

    # -------------------------------------------------------------------------------------------- additions

    def _groups(self) -> list[_Neighbours]:
        """The additions, those together that lie beside each other."""
        found: list[_Neighbours] = []
        for addition in self.candidate.additions:
            place, stride = addition.place, self.candidate.strides.of(addition.place.root)
            near = next((each for each in found if self._belongs(addition, each, stride)), None)
            if near is None:
                near = _Neighbours(place.root, place.offset)
                found.append(near)
            near.numbers[addition] = (place.offset - near.offset) // stride if isinstance(stride, int) and stride else 0
        return found

    def _belongs(self, addition: Addition, group: _Neighbours, stride: object) -> bool:
        """Whether an addition lies beside those of a group."""
        place = addition.place
        distance = place.offset - group.offset
        other = next(iter(group.numbers))
        if place.root is not group.root or place.size != other.place.size:
            return False
        if other.store.metadata.get("alias.scope") != addition.store.metadata.get("alias.scope"):
            return False
        if not isinstance(stride, int) or abs(stride) < place.size:
            return distance == 0
        numbers = [*group.numbers.values(), distance // stride]
        return distance % stride == 0 and max(numbers) - min(numbers) <= _MARGIN

    def _add_up(self, groups: Sequence[_Neighbours], block: Block, stop: Value, last: Value) -> Builder:
        """Emits the loops that add; parts of the same elements, as the fields of records, share a loop."""
        build = Builder(block)
        rows: dict[tuple[Value | None, int, int, int], list[_Neighbours]] = {}
        met: dict[tuple[Value, int], int] = {}
        for each in groups:
            stride = self.candidate.strides.of(each.root)
            root = None if stride == 0 else each.root
            part = each.root, each.offset % stride if isinstance(stride, int) and stride else each.offset
            rows.setdefault((root, each.first, each.spread, met.get(part, 0)), []).append(each)
            met[part] = met.get(part, 0) + 1
        for (root, *_), row in rows.items():
            build = self._add_sums(build, row, last) if root is None else self._add_row(build, row, stop, last)
        return build

    def _add_sums(self, build: Builder, row: Sequence[_Neighbours], last: Value) -> Builder:
        """Adds to elements that all iterations add to."""
        starts = [empty(next(iter(each.numbers)).load.type) for each in row]

        def add(build: Builder, x: Value, sums: Sequence[Value]) -> list[Value]:
            return [self._with_amounts(build, total, each, x) for total, each in zip(sums, row, strict=True)]

        build, sums = self._loop(build, last, starts, add)
        for total, each in zip(sums, row, strict=True):
            self._update(build, each, build.byte_offset(self.roots[each.root], each.offset), total)
        return build

    def _add_row(self, build: Builder, row: Sequence[_Neighbours], stop: Value, last: Value) -> Builder:
        """Adds to elements of an array."""
        first, spread, root = row[0].first, row[0].spread, row[0].root
        step = self.steps[root]
        start = build.mul(build.add(stop, const_int(types.I64, first)), step)
        bases = [
            build.byte_offset(build.byte_offset(self.roots[root], each.offset), start, ("inbounds",)) for each in row
        ]

        def add(build: Builder, x: Value, _: Sequence[Value]) -> list[Value]:
            for each, base in zip(row, bases, strict=True):
                addition = next(iter(each.numbers))
                type_ = addition.load.type
                if self.candidate.strides.of(root) == addition.place.size:
                    pointer = build.gep(type_, base, [x], ("inbounds",))
                else:
                    pointer = build.byte_offset(base, build.mul(x, step), ("inbounds",))
                loaded = build.load(type_, pointer, align=addition.load.align)
                stored = build.store(self._with_amounts(build, loaded, each, x), pointer, align=addition.store.align)
                loaded.metadata, stored.metadata = dict(addition.load.metadata), dict(addition.store.metadata)
            return []

        return self._loop(build, build.add(last, const_int(types.I64, spread)), [], add)[0]

    def _update(self, build: Builder, each: _Neighbours, pointer: Value, total: Value) -> None:
        addition = next(iter(each.numbers))
        loaded = build.load(addition.load.type, pointer, align=addition.load.align)
        stored = build.store(build.fadd(loaded, total, self.sweep.sum_flags), pointer, align=addition.store.align)
        loaded.metadata, stored.metadata = dict(addition.load.metadata), dict(addition.store.metadata)

    def _with_amounts(self, build: Builder, total: Value, each: _Neighbours, x: Value) -> Value:
        """A sum with what the additions add to the element number ``x`` from the first."""
        for addition, number in each.numbers.items():
            buffer = self.buffers[addition.amount]
            index = build.add(x, const_int(types.I64, _MARGIN + each.first - number))
            amount = build.load(addition.load.type, self._slot(build, buffer, index), align=_size(buffer))
            combine = build.fsub if addition.is_negative else build.fadd
            total = combine(total, amount, self.sweep.sum_flags)
        return total

    def _loop(
        self,
        build: Builder,
        last: Value,
        starts: Sequence[Value],
        body: Callable[[Builder, Value, Sequence[Value]], list[Value]],
    ) -> tuple[Builder, Sequence[Value]]:
        """A loop from 0 to ``last``, with sums; what comes behind it, and the sums."""
        before, loop, after = build.block, self._block("sum"), self._block("summed")
        build.br(loop)
        inside = Builder(loop)
        x = inside.phi(types.I64, [(const_int(types.I64, 0), before)])
        sums = [inside.phi(start.type, [(start, before)]) for start in starts]
        totals = body(inside, x, sums)
        following = inside.add(x, _ONE, ("nuw", "nsw"))
        x.add_incoming(following, loop)
        for phi, total in zip(sums, totals, strict=True):
            phi.add_incoming(total, loop)
        inside.cond_br(inside.icmp("eq", x, last), after, loop)
        return Builder(after), totals


def _copy(build: Builder, inst: Instruction, copies: dict[Value, Value]) -> None:
    copy = clone_instruction(inst, copies)
    copies[inst] = copy
    build.insert(copy)


def _number(build: Builder, pointer: Value) -> Value:
    return build.ptrtoint(pointer, types.I64)


def _element(buffer: _Buffer) -> Type:
    assert isinstance(buffer.memory.allocated_type, types.ArrayType)
    return buffer.memory.allocated_type.element


def _size(buffer: _Buffer) -> int:
    return types.size_of(_element(buffer))
