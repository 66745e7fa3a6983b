"""Memory objects, and the objects that each pointer may point to: the result of `points_to`, used by all other passes.

Sets of objects are bit masks. Pointers in memory are distinguished by the place where they lie (`addresses`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple, assert_never, cast

from irad.ir import types
from irad.ir.instructions import Alloca, CallSite
from irad.ir.types import PointerType, Type
from irad.ir.values import (
    ConstantInt,
    GlobalVariable,
    Parameter,
    Value,
    parts_of,
)
from irad.passes.memory.addresses import ANYWHERE, START, Position, Positions, cover
from irad.records import dataclass
from irad.ruleset.interface import MemoryPath
from irad.ruleset.memory_type import MemoryType


class ObjectKind(enum.Enum):
    """Origin of an object."""

    ARGUMENT = "argument"  # what a pointer parameter points to
    REACHABLE = "reachable"  # what can be reached by loading pointers out of an argument's memory
    LOCAL = "local"  # an alloca
    ALLOCATION = "allocation"  # made by a call
    HEADER = "header"  # what Numba's runtime keeps beside an allocation: reference count, address, size
    GLOBAL = "global"
    UNKNOWN = "unknown"  # anything at all


SEPARATE: Final = (ObjectKind.LOCAL, ObjectKind.ALLOCATION, ObjectKind.HEADER)
"""Kinds of objects that a function or its callees make: apart from everything but memory of unknown origin."""


@dataclass(eq=False, slots=True)
class MemoryObject:
    """One abstract piece of memory.

    Attributes:
        value: the parameter, alloca, call or global it belongs to.
        holds: the callers' descriptions of a parameter's memory, and signatures of the memory that a callee makes.
    """

    kind: ObjectKind
    index: int
    value: Value | None = None
    holds: MemoryType | None = None

    def __str__(self) -> str:
        name = f" {self.value.name}" if self.value is not None and self.value.name else ""
        return f"{self.kind.value}{name}"

    @property
    def is_exclusive(self) -> bool:
        """True if the caller promises that it is reached through this parameter only."""
        value = self.value
        return self.kind is ObjectKind.ARGUMENT and isinstance(value, Parameter) and "noalias" in value.attributes


class Targets(NamedTuple):
    """Targets of a pointer: one of a set of objects, at a place in it, the same for all of them.

    Where the set is empty the place has no meaning.
    """

    mask: int
    place: Position


NOWHERE: Final = Targets(0, START)


def joined(several: Iterable[Targets]) -> Targets:
    """All that some pointers may point to."""
    known = [targets for targets in several if targets.mask]
    place = cover(targets.place for targets in known)
    return NOWHERE if place is None else Targets(union(targets.mask for targets in known), place)


@dataclass(frozen=True, slots=True)
class PointsTo:
    """Targets of all pointers. Sets are bit masks over ``objects`` (bit i is ``objects[i]``).

    ``contents`` says which objects the pointers in an object point to, ``parts`` the same by the place of the pointer.
    ``handed`` are, for calls of functions with a body, the objects that the callee is given or makes, by what they
    hold. ``declared``: what the request says of memory that an argument points to. ``exposed``: objects that code of
    unknown effect may know: the caller's memory, global variables, and what has been stored there or handed to such
    code. ``lent``: memory of which a callee may have kept the address. ``prefixes``: bytes at the start of an object
    that hold integers only.
    """

    objects: tuple[MemoryObject, ...]
    pointees: Mapping[Value, Targets]
    contents: tuple[int, ...]
    globals: Mapping[Value, int]
    overlaps: tuple[int, ...]
    parts: tuple[Mapping[Position, Targets], ...] = ()
    handed: Mapping[CallSite, Mapping[MemoryType | None, int]] = field(default_factory=dict)
    declared: Mapping[int, MemoryType] = field(default_factory=dict)
    exposed: int = 0
    lent: int = 0
    prefixes: Mapping[int, int] = field(default_factory=dict)
    _members: dict[int, tuple[MemoryObject, ...]] = field(default_factory=dict, repr=False)  # asked before, as in
    _overlapping: dict[int, int] = field(default_factory=dict, repr=False)  # functions with hundreds of objects
    _in_records: Positions = field(default_factory=lambda: Positions(START), repr=False)

    def mask(self, pointer: Value) -> int:
        """The set of objects that a pointer (or an aggregate holding pointers) may point to."""
        found = self.pointees.get(pointer)
        return _constant_mask(pointer, self.globals) if found is None else found.mask

    def of(self, pointer: Value) -> tuple[MemoryObject, ...]:
        """Objects that a pointer may point to."""
        return self.members(self.mask(pointer))

    def is_shared(self, mask: int) -> bool:
        """True if code that was not passed a pointer may write there, as to global variables."""
        for item in self.members(mask):
            constant = isinstance(item.value, GlobalVariable) and item.value.constant
            if item.kind is ObjectKind.UNKNOWN or (item.kind is ObjectKind.GLOBAL and not constant):
                return True
        return False

    def position(self, pointer: Value) -> Position:
        """Positions in its object that a pointer may have."""
        found = self.pointees.get(pointer)
        if found is not None and found.mask:
            return found.place
        return START if isinstance(pointer, GlobalVariable) else ANYWHERE

    def record_position(self, pointer: Value) -> Position:
        """Positions of a pointer in an array, whose elements may start anywhere in the object."""
        return self._in_records.of(pointer)

    def place(self, call: CallSite, place: MemoryPath) -> int:
        """The objects that a place of a callee may be."""
        return self.behind(call.arguments[place[0]], place[1:])

    def behind(self, pointer: Value, path: Iterable[int]) -> int:
        """The objects reached from a pointer by following those stored at the offsets of a path."""
        return follow(self.parts, self.mask(pointer), map(place_of, path))

    def members(self, mask: int) -> tuple[MemoryObject, ...]:
        """The objects of a set, in order."""
        found = self._members.get(mask)
        if found is None:
            found = self._members[mask] = tuple(self.objects[index] for index in indices(mask))
        return found

    def overlapping(self, mask: int) -> int:
        """All objects that may share bytes with one of the set."""
        result = self._overlapping.get(mask)
        if result is None:
            result = self._overlapping[mask] = union(self.overlaps[index] for index in indices(mask)) | mask
        return result

    def may_overlap(self, a: int, b: int) -> bool:
        """True if two sets of objects may share bytes."""
        return bool(self.overlapping(a) & b)

    def reachable(self, mask: int) -> int:
        """The set closed under following pointers stored in memory."""
        pending, result = mask, mask
        while pending:
            new = 0
            for item in self.members(pending):
                new |= self.contents[item.index]
            pending = new & ~result
            result |= new
        return result

    def explain(self, value: Value) -> str:
        """In words: the objects a pointer may point to."""
        names = ", ".join(str(item) for item in self.of(value))
        return f"may point to {names}" if names else "points to no object (null or undefined)"


def _constant_mask(value: Value, known: Mapping[Value, int]) -> int:
    return known.get(value, 0) | union(_constant_mask(part, known) for part in parts_of(value))


def follow(parts: Sequence[Mapping[Position, Targets]], mask: int, path: Iterable[Position]) -> int:
    """Objects that pointers stored in a set of objects may point to, step by step, by where they are stored."""
    for place in path:
        mask = union(targets.mask for targets in stored_at(parts, mask, place))
    return mask


def stored_at(parts: Sequence[Mapping[Position, Targets]], mask: int, place: Position) -> Iterator[Targets]:
    """Targets of the pointers that may lie at a place in a set of objects."""
    for index in indices(mask):
        for at, stored in parts[index].items():
            if at is place or place is ANYWHERE or at.may_be(place):
                yield stored


def place_of(offset: int | None) -> Position:
    """The place at a byte offset; None is anywhere."""
    return ANYWHERE if offset is None else Position(offset, 0)


def union(masks: Iterable[int]) -> int:
    """All objects of some sets."""
    result = 0
    for mask in masks:
        result |= mask
    return result


def indices(mask: int) -> Iterator[int]:
    """The numbers of the objects of a set."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def fixed_size(item: MemoryObject) -> int | None:
    """Bytes of a local variable; None if it has no fixed size, or for another object."""
    match item.value:
        case Alloca(operands=[]) as variable if item.kind is ObjectKind.LOCAL:
            return types.size_of(variable.allocated_type)
        case Alloca(operands=[ConstantInt(value=count)]) as variable if item.kind is ObjectKind.LOCAL:
            return count * types.size_of(variable.allocated_type)
        case _:
            return None


def moved_item(place: Position, source: MemoryObject, target: MemoryObject) -> Position:
    """Position of a part of an item after a move: in a container at any distance of whole items."""
    outside, inside = fixed_size(source), fixed_size(target)
    if (outside is None) == (inside is None):
        return ANYWHERE
    size = outside or inside or 1
    offset = place.modulo(size)
    if offset is None or (outside is not None and place != Position(offset, 0)):
        return ANYWHERE
    return Position(offset, size if inside is None else 0)


def reached_by(call: CallSite, points_to: PointsTo) -> int:
    """Every object that a callee with a body can reach: through its arguments, and its own allocations."""
    mask = 0
    for argument in call.arguments:
        mask |= points_to.mask(argument)
    return points_to.reachable(mask | union(points_to.handed.get(call, {}).values()))


def may_hold_pointer(type_: Type) -> bool:
    """True if values of a type are pointers, aggregates of them, or integers wide enough to carry their bits."""
    match cast("types.AnyType", type_):
        case PointerType():
            return True
        case types.IntType(bits=bits):
            return bits >= 64
        case types.StructType() | types.NamedStructType() | types.ArrayType():
            return any(may_hold_pointer(t) for t in types.element_types(type_))
        case types.VectorType(element=element):
            return may_hold_pointer(element)
        case types.FloatType() | types.SimpleType() | types.TargetExtType() | types.FunctionType():
            return False
        case kind:
            assert_never(kind)
