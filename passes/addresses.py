"""Where in its object a pointer points: its offset from the base, plain or modulo a stride; what strides it takes."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from math import gcd

from irad.ir import types
from irad.ir.instructions import Alloca, GetElementPtr, Phi, Select
from irad.ir.types import ArrayType, NamedStructType, StructType, Type
from irad.ir.values import ConstantInt, GlobalVariable, Parameter, Value

_MOST_STEPS = 100  # ways through nests of phis multiply
_MOST_NESTED_PHIS = 4


def offset_modulo(pointer: Value, stride: int | None, bases: Container[Value] = ()) -> int | None:
    """Byte offset of a pointer from the start of its object, modulo ``stride``; None when it is not known.

    With ``stride`` None the plain offset. Phis and selects count when all ways agree; a loop that advances a pointer by
    whole records agrees with its start. ``bases`` are values known to point to the start of an object, beside
    parameters and local variables.
    """
    return _Offsets(stride, bases, _MOST_STEPS).of(pointer, frozenset())


@dataclass(slots=True)
class _Offsets:
    stride: int | None
    bases: Container[Value]
    steps_left: int

    def of(self, pointer: Value, open_phis: frozenset[Value]) -> int | None:
        stride = self.stride
        self.steps_left -= 1
        if self.steps_left < 0:
            return None
        match pointer:
            case GetElementPtr(operands=[base, *_]):
                step = _advance(pointer, stride)
                start = self.of(base, open_phis)
                return None if step is None or start is None else _reduced(start + step, stride)
            case Phi() | Select():
                if pointer in open_phis:
                    return None
                values = pointer.operands[1:] if isinstance(pointer, Select) else pointer.operands
                found = {
                    self.of(v, open_phis | {pointer})
                    for v in values
                    if not _advances_by_whole_records(v, pointer, stride)
                }
                return found.pop() if len(found) == 1 else None
            case Parameter() | Alloca() | GlobalVariable():
                return 0
            case _:
                return 0 if stride is not None or pointer in self.bases else None


def _advances_by_whole_records(value: Value, phi: Value, stride: int | None) -> bool:
    if not isinstance(value, GetElementPtr) or value.operands[0] is not phi:
        return False
    return _advance(value, stride) == 0


def _advance(gep: GetElementPtr, stride: int | None) -> int | None:
    """Bytes a getelementptr adds, reduced."""
    total = 0
    type_: Type = gep.source_type
    for position, index in enumerate(gep.operands[1:]):
        if position > 0:
            if isinstance(type_, StructType | NamedStructType):
                if not isinstance(index, ConstantInt):
                    return None
                total += types.field_offsets(type_)[index.value]
                type_ = types.struct_body(type_).elements[index.value]
                continue
            if not isinstance(type_, ArrayType):
                return None
            type_ = type_.element
        size = types.size_of(type_)
        if isinstance(index, ConstantInt):
            total += size * index.value
        elif stride is None or size % stride:
            return None
    return _reduced(total, stride)


def stride_of(pointer: Value) -> int:
    """The largest number of bytes of which every step by an index that varies is a multiple; 0 without such steps."""
    return _stride_of(pointer, frozenset())


def _stride_of(pointer: Value, open_phis: frozenset[Value]) -> int:
    match pointer:
        case GetElementPtr(operands=[base, *_]):
            return gcd(_varying_step(pointer), _stride_of(base, open_phis))
        case Phi() | Select() if len(open_phis) < _MOST_NESTED_PHIS:
            if pointer in open_phis:
                return 0
            values = pointer.operands[1:] if isinstance(pointer, Select) else pointer.operands
            stride = 0
            for value in values:
                stride = gcd(stride, _stride_of(value, open_phis | {pointer}), _own_step(value, pointer))
            return stride
        case Phi() | Select():
            return 1
        case _:
            return 0


def _varying_step(gep: GetElementPtr) -> int:
    """Like `stride_of`, of one instruction."""
    found = 0
    type_: Type = gep.source_type
    for position, index in enumerate(gep.operands[1:]):
        if position > 0:
            if isinstance(type_, StructType | NamedStructType):
                assert isinstance(index, ConstantInt), "LLVM selects fields by constants"
                type_ = types.struct_body(type_).elements[index.value]
                continue
            if not isinstance(type_, ArrayType):
                return 1
            type_ = type_.element
        if not isinstance(index, ConstantInt):
            found = gcd(found, types.size_of(type_))
    return found


def _own_step(value: Value, phi: Value) -> int:
    """Bytes by which a loop advances a pointer, if that is what ``value`` is."""
    if not isinstance(value, GetElementPtr) or value.operands[0] is not phi:
        return 0
    return _advance(value, None) or 0


def _reduced(offset: int, stride: int | None) -> int:
    return offset if stride is None else offset % stride
