"""Where in its object a pointer points: its offset from the base, plain, modulo a stride, or as far as known."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from math import gcd
from typing import Final

from irad.ir import types
from irad.ir.instructions import Alloca, GetElementPtr, Phi, Select
from irad.ir.types import ArrayType, NamedStructType, StructType, Type
from irad.ir.values import ConstantInt, GlobalVariable, Parameter, Value

_MOST_STEPS = 100  # ways through nests of phis multiply


@dataclass(frozen=True, slots=True)
class Position:
    """Byte offsets from the start of an object: ``offset`` plus any multiple of ``period``.

    A period of 0 is that offset alone, one of 1 any offset.
    """

    offset: int
    period: int

    @property
    def exact(self) -> int | None:
        """The offset, where there is only one."""
        return None if self.period else self.offset

    def moved(self, by: Position) -> Position:
        """The sum."""
        return _normal(self.offset + by.offset, gcd(self.period, by.period))

    def or_else(self, other: Position) -> Position:
        """What covers both."""
        return _normal(self.offset, gcd(self.period, other.period, self.offset - other.offset))

    def may_be(self, other: Position) -> bool:
        """Whether the two have an offset in common."""
        period = gcd(self.period, other.period)
        distance = self.offset - other.offset
        return distance % period == 0 if period else distance == 0


def _normal(offset: int, period: int) -> Position:
    return Position(offset % period if period else offset, period)


ANYWHERE = Position(0, 1)
_START = Position(0, 0)


class _Everything:
    """Contains all values."""

    def __contains__(self, value: object) -> bool:
        return True


EVERYTHING: Final = _Everything()


def position(pointer: Value, bases: Container[Value] = ()) -> Position:
    """Where a pointer may point in its object; ``bases`` as in `offset_modulo`.

    With `EVERYTHING` for bases, where it points in an array, whose elements may start anywhere in the object.
    """
    return _Positions(bases, _MOST_STEPS).of(pointer, frozenset())


@dataclass(slots=True)
class _Positions:
    bases: Container[Value]
    steps_left: int

    def of(self, pointer: Value, open_phis: frozenset[Value]) -> Position:
        self.steps_left -= 1
        if self.steps_left < 0:
            return ANYWHERE
        match pointer:
            case GetElementPtr(operands=[base, *_]):
                return self.of(base, open_phis).moved(_step(pointer))
            case Select(operands=[_, a, b]):
                return self.of(a, open_phis).or_else(self.of(b, open_phis))
            case Phi() if pointer not in open_phis:
                return self.of_phi(pointer, open_phis | {pointer})
            case Parameter() | Alloca() | GlobalVariable():
                return _START
            case _:
                return _START if pointer in self.bases else ANYWHERE

    def of_phi(self, phi: Phi, open_phis: frozenset[Value]) -> Position:
        """The ways in, and however many steps of those that lead from the phi back to it."""
        found: Position | None = None
        steps = 0
        for value in phi.operands:
            step, origin = _START, value
            while isinstance(origin, GetElementPtr):
                step, origin = step.moved(_step(origin)), origin.operands[0]
            if origin is phi:
                steps = gcd(steps, step.offset, step.period)
                continue
            way = self.of(value, open_phis)
            found = way if found is None else found.or_else(way)
        return ANYWHERE if found is None else found.moved(Position(0, steps))


def _step(gep: GetElementPtr) -> Position:
    """What a getelementptr adds."""
    total, period = 0, 0
    type_: Type = gep.source_type
    for number, index in enumerate(gep.operands[1:]):
        if number > 0:
            if isinstance(type_, StructType | NamedStructType):
                if not isinstance(index, ConstantInt):
                    return ANYWHERE
                total += types.field_offsets(type_)[index.value]
                type_ = types.struct_body(type_).elements[index.value]
                continue
            if not isinstance(type_, ArrayType):
                return ANYWHERE
            type_ = type_.element
        size = types.size_of(type_)
        if isinstance(index, ConstantInt):
            total += size * index.value
        else:
            period = gcd(period, size)
    return _normal(total, period)


def offset_modulo(pointer: Value, stride: int | None, bases: Container[Value] = ()) -> int | None:
    """Byte offset of a pointer from the start of its object, modulo ``stride``; None when it is not known.

    With ``stride`` None the plain offset. Phis and selects count when all ways agree; a loop that advances a pointer by
    whole records agrees with its start. ``bases`` are values known to point to the start of an object, beside
    parameters and local variables.
    """
    found = position(pointer, bases if stride is None else EVERYTHING)
    if stride is None:
        return found.exact
    return found.offset % stride if found.period % stride == 0 else None
