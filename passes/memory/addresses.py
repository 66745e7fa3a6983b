"""Position of a pointer in its object: its offset from the base, plain, modulo a stride, or as far as known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import gcd
from typing import Final

from irad.ir import types
from irad.ir.instructions import Alloca, Binary, Cast, Freeze, GetElementPtr, Phi, Select
from irad.ir.types import ArrayType, NamedStructType, PointerType, StructType, Type
from irad.ir.values import ConstantInt, ConstantNull, GlobalVariable, Parameter, Poison, Undef, Value
from irad.records import dataclass

_WORD: Final = 64
_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "shl", "and", "or", "srem", "urem"})
_FEW: Final = 8  # offsets that are distinguished
MOST_GROWTHS: Final = 2  # of a position: in a loop that moves a pointer, it would grow with each


@dataclass(frozen=True, slots=True)
class Position:
    """Byte offsets from the start of an object: ``offset`` plus any multiple of ``period``.

    A period of 0 is that offset alone, one of 1 any offset. Of a few offsets, as of a field or its neighbour, it is
    known which: ``among`` has them in order; then ``period`` is what they have in common.
    """

    offset: int
    period: int
    among: tuple[int, ...] = ()

    @property
    def exact(self) -> int | None:
        """The offset, where there is only one."""
        return None if self.period else self.offset

    @property
    def few(self) -> tuple[int, ...]:
        """The offsets if they are known, otherwise none."""
        return self.among if self.period else (self.offset,)

    def covers(self, other: Position) -> bool:
        """True if all offsets of another position are among these."""
        if self.few:
            return bool(other.few) and set(other.few) <= set(self.few)
        return other.period % self.period == 0 and (self.offset - other.offset) % self.period == 0

    def distance_to(self, other: Position) -> Position:
        """Distance from this position to another."""
        return other.moved(self.times(Position(-1, 0)))

    def modulo(self, stride: int) -> int | None:
        """The offset in a record of that size, where there is only one."""
        return self.offset % stride if self.period % stride == 0 else None

    def moved(self, by: Position) -> Position:
        """Position moved by another one."""
        if not self.period and not by.period:
            return Position(self.offset + by.offset, 0)
        return _among(a + b for a in self.few for b in by.few) or _any_multiple(
            self.offset + by.offset, gcd(self.period, by.period)
        )

    def times(self, other: Position) -> Position:
        """Position times another one."""
        steps = gcd(self.period * other.offset, other.period * self.offset, self.period * other.period)
        return _among(a * b for a in self.few for b in other.few) or _any_multiple(self.offset * other.offset, steps)

    def wrapped(self, bits: int) -> Position:
        """This position as an integer of ``bits`` bits; higher ones may have been lost."""
        if self.few and all(0 <= offset < 1 << bits - 1 for offset in self.few):
            return self
        return _any_multiple(self.offset, gcd(self.period, 1 << bits))

    def endless(self) -> Position:
        """With all multiples of the period, where there is one."""
        return _any_multiple(self.offset, self.period) if self.among else self

    def or_else(self, other: Position) -> Position:
        """Position that covers both."""
        both = (*self.few, *other.few) if self.few and other.few else ()
        return _among(both) or _any_multiple(self.offset, gcd(self.period, other.period, self.offset - other.offset))

    def may_be(self, other: Position) -> bool:
        """True if the two have an offset in common."""
        if not self.period and not other.period:
            return self.offset == other.offset
        if self.few and other.few:
            return not set(self.few).isdisjoint(other.few)
        if other.few:
            return other.may_be(self)
        if self.few:
            return any((offset - other.offset) % other.period == 0 for offset in self.few)
        return (self.offset - other.offset) % gcd(self.period, other.period) == 0


def _among(offsets: Iterable[int]) -> Position | None:
    """The position that is one of some offsets; None of none, or of too many."""
    found = sorted(set(offsets))
    if not 0 < len(found) <= _FEW:
        return None
    first = found[0]
    return Position(first, gcd(*(offset - first for offset in found)), tuple(found) if len(found) > 1 else ())


def _any_multiple(offset: int, period: int) -> Position:
    """With the least offset that is not negative."""
    return Position(offset % period, period) if period else Position(offset, 0)


ANYWHERE: Final = Position(0, 1)
START: Final = Position(0, 0)


def position(pointer: Value, loaded: Position = ANYWHERE) -> Position:
    """Positions in its object that a pointer may have; ``loaded`` as in `Positions`."""
    return Positions(loaded).of(pointer)


def fixed_distance(pointer: Value) -> tuple[Value, int]:
    """The first pointer that another one is derived from by a constant number of bytes, and that number."""
    distance = 0
    while isinstance(pointer, GetElementPtr) and all(isinstance(i, ConstantInt) for i in pointer.operands[1:]):
        step = _steps(pointer, pointer.operands[1:], ()).exact
        if step is None:
            break
        pointer, distance = pointer.operands[0], distance + step
    return pointer, distance


@dataclass(slots=True)
class Positions:
    """The positions of all pointers of a function, found as they are asked for and remembered.

    A pointer that is chosen or moved in a loop depends on itself. What belongs to such a circle is solved together,
    from nothing known upwards, so that two pointers that a loop swaps keep their places. Integers are solved with
    them, as multiples: the offsets that LLVM computes are products and shifts.

    Attributes:
        loaded: where pointers point that the function does not compute: `ANYWHERE`; with `START`, positions are those
            in an array, whose elements may start anywhere in the object.
    """

    loaded: Position
    _known: dict[Value, Position] = field(default_factory=dict, repr=False)

    def of(self, pointer: Value) -> Position:
        """Positions that a pointer may have; anywhere for one that points to no memory."""
        if pointer not in self._known:
            self._solve(pointer)
        return self._known[pointer]

    def steps_of(self, gep: GetElementPtr) -> Position:
        """Offset that a getelementptr adds."""
        indices = gep.operands[1:]
        return _steps(gep, indices, [self.of(_scaled(i)[0]) for i in indices if not isinstance(i, ConstantInt)])

    def _solve(self, root: Value) -> None:
        """All that the position of a value depends on, until nothing grows; each value loses factors only."""
        values, users = self._dependences(root)
        found: dict[Value, Position] = {}
        growths: dict[Value, int] = {}
        pending, waiting = values[::-1], set(values)
        while pending:
            value = pending.pop()
            waiting.discard(value)
            place = self._place(value, found)
            if place is None or (value in found and found[value].covers(place)):
                continue
            grown = found[value].or_else(place) if value in found else place
            growths[value] = growths.get(value, 0) + 1
            found[value] = grown if growths[value] <= MOST_GROWTHS else grown.endless()
            for user in users.get(value, ()):
                if user not in waiting:
                    waiting.add(user)
                    pending.append(user)
        for value in values:
            self._known[value] = found.get(value, ANYWHERE)

    def _dependences(self, root: Value) -> tuple[list[Value], dict[Value, list[Value]]]:
        """The values whose positions are to be found, those that others depend on last, and the users of each."""
        values: dict[Value, None] = {root: None}
        users: dict[Value, list[Value]] = {}
        pending = [root]
        while pending:
            value = pending.pop()
            for source in self._sources(value):
                if source in self._known:
                    continue
                users.setdefault(source, []).append(value)
                if source not in values:
                    values[source] = None
                    pending.append(source)
        return list(values)[::-1], users

    def _sources(self, value: Value) -> list[Value]:
        """Values from which the position of a value is computed."""
        match value:
            case _ if self._starts(value):
                return []
            case GetElementPtr(operands=[base, *indices]):
                return [base, *(_scaled(index)[0] for index in indices if not isinstance(index, ConstantInt))]
            case Select(operands=[_, *chosen]) | Phi(operands=chosen) | Freeze(operands=chosen):
                return [v for v in chosen if not isinstance(v, ConstantNull | Undef | Poison)]
            case Binary(operands=operands) if value.opcode in _ARITHMETIC:
                return operands
            case Cast(opcode="zext" | "sext" | "trunc" | "addrspacecast", operands=[source]):
                return [source]
            case _:
                return []

    def _place(self, value: Value, found: Mapping[Value, Position]) -> Position | None:
        """The position of a value by those that are known so far; None where nothing is."""
        if self._starts(value):
            return START
        places = [self._known.get(source) or found.get(source) for source in self._sources(value)]
        match value:
            case ConstantInt(value=number):
                return Position(number, 0)
            case GetElementPtr(operands=[_, *indices]):
                known = [place for place in places if place is not None]
                return None if len(known) < len(places) else known[0].moved(_steps(value, indices, known[1:]))
            case Phi() | Select() | Freeze() | Cast(opcode="addrspacecast"):
                return cover(place for place in places if place is not None)
            case Binary() | Cast() if places:
                known = [place for place in places if place is not None]
                return None if len(known) < len(places) else _computed(value, known)
            case ConstantNull() | Undef() | Poison():
                return None
            case _:
                return ANYWHERE

    def _starts(self, value: Value) -> bool:
        """True if a value is known to point to the start of an object."""
        if not isinstance(value.type, PointerType):
            return False
        if isinstance(value, GetElementPtr | Select | Phi | Freeze | ConstantNull | Undef | Poison):
            return False
        return isinstance(value, Parameter | Alloca | GlobalVariable) or self.loaded is START


def cover(places: Iterable[Position]) -> Position | None:
    """Position that covers all of some positions; None if there are none."""
    found: Position | None = None
    for place in places:
        if place is not found:
            found = place if found is None else found.or_else(place)
    return found


def _scaled(index: Value) -> tuple[Value, int]:
    """An index as a multiple of another value: LLVM counts bytes where the program counts elements."""
    match index:
        case Binary(opcode="mul", operands=[value, ConstantInt(value=factor)]) if factor > 0:
            return value, factor
        case Binary(opcode="shl", operands=[value, ConstantInt(value=bits)]) if 0 <= bits < _WORD:
            return value, 1 << bits
        case _:
            return index, 1


def _steps(gep: GetElementPtr, indices: Sequence[Value], places: Sequence[Position]) -> Position:
    """Offset that a getelementptr adds, by the positions of those of its indices that vary."""
    total, varying = START, iter(places)
    type_: Type = gep.source_type
    for number, index in enumerate(indices):
        if number > 0:
            if isinstance(type_, StructType | NamedStructType):
                if not isinstance(index, ConstantInt):
                    return ANYWHERE
                total = total.moved(Position(types.field_offsets(type_)[index.value], 0))
                type_ = types.struct_body(type_).elements[index.value]
                continue
            if not isinstance(type_, ArrayType):
                return ANYWHERE
            type_ = type_.element
        size = types.size_of(type_)
        if isinstance(index, ConstantInt):
            total = total.moved(Position(size * index.value, 0))
        else:
            total = total.moved(next(varying).times(Position(size * _scaled(index)[1], 0)))
    return total


def _computed(value: Binary | Cast, places: Sequence[Position]) -> Position:
    """The multiples that an integer operation gives. Sums and products that wrap around keep powers of two only."""
    a, b = places[0], places[-1]
    match value.opcode:
        case "zext" | "sext" | "trunc":
            return a.wrapped(_bits(value.operands[0] if value.opcode != "trunc" else value))
        case "add":
            found = a.moved(b)
        case "or" if "disjoint" in value.flags:
            return a.moved(b)
        case "sub":
            found = b.distance_to(a)
        case "mul":
            found = a.times(b)
        case "shl" if b.exact is not None and 0 <= b.exact < _WORD:
            found = a.times(Position(1 << b.exact, 0))
        # A multiple of the lowest bit that the mask lets through.
        case "and" if b.exact:
            return Position(0, b.exact & -b.exact)
        case "srem" | "urem" if b.exact:
            return _any_multiple(a.offset, gcd(a.period, b.exact))
        case _:
            return ANYWHERE
    return found if "nsw" in value.flags or "nuw" in value.flags else found.wrapped(_bits(value))


def _bits(value: Value) -> int:
    return value.type.bits if isinstance(value.type, types.IntType) else _WORD


def offset_modulo(pointer: Value, stride: int | None) -> int | None:
    """Byte offset of a pointer from the start of its object, modulo ``stride``; None when it is not known.

    With ``stride`` None the plain offset. Phis and selects count when all ways agree; a loop that advances a pointer by
    whole records agrees with its start.
    """
    found = position(pointer, ANYWHERE if stride is None else START)
    return found.exact if stride is None else found.modulo(stride)
