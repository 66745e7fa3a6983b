"""The bits of numbers as other numbers: what a bitcast between vectors of different elements means, element by element.

Little-endian, as all targets that irad takes: the first element has the lowest bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.types import FloatType, IntType, PointerType, Type
from irad.ir.values import Value, const_int


def repack(build: Builder, parts: Sequence[Value], wanted: Type, count: int) -> list[Value]:
    """The same bits as ``count`` values of another type."""
    given, taken = _bits(parts[0].type), _bits(wanted)
    numbers = [_as_integer(build, part) for part in parts]
    if given < taken:
        step = taken // given
        joined = [_join(build, numbers[i * step : (i + 1) * step], taken) for i in range(count)]
    else:
        step = given // taken
        joined = [_cut(build, number, taken, i) for number in numbers for i in range(step)]
    return [_from_integer(build, number, wanted) for number in joined]


def _bits(type_: Type) -> int:
    match type_:
        case IntType(bits=bits) | FloatType(bits=bits):
            return bits
        case _:
            return 64


def _as_integer(build: Builder, value: Value) -> Value:
    integer = types.int_type(_bits(value.type))
    if isinstance(value.type, PointerType):
        return build.ptrtoint(value, integer)
    return value if value.type is integer else build.bitcast(value, integer)


def _from_integer(build: Builder, value: Value, wanted: Type) -> Value:
    if isinstance(wanted, PointerType):
        return build.inttoptr(value, wanted)
    return value if value.type is wanted else build.bitcast(value, wanted)


def _join(build: Builder, parts: Sequence[Value], bits: int) -> Value:
    wide = types.int_type(bits)
    made = build.zext(parts[0], wide)
    width = bits // len(parts)
    for index, part in enumerate(parts[1:], 1):
        made = build.or_(made, build.shl(build.zext(part, wide), const_int(wide, index * width)))
    return made


def _cut(build: Builder, whole: Value, bits: int, index: int) -> Value:
    shifted = build.lshr(whole, const_int(whole.type, index * bits)) if index else whole
    return build.trunc(shifted, types.int_type(bits))
