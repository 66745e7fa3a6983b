"""Folding of constants and identities: what an operation is without an instruction, where that is certain.

Integers fold exactly, except where LLVM leaves the result undefined (division by zero, too large a shift): those
stay instructions. Floating point folds only where every correct execution gives the same bits: no NaN, no infinity, no
subnormal number (targets may flush them) is read or made.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Final

from irad.ir import types
from irad.ir.types import FloatType, IntType, Type
from irad.ir.values import Constant, ConstantFloat, ConstantInt, ConstantNull, Value, const_float, const_int

_FLOAT_MAX: Final = 3.4028234663852886e38
_FLOAT_MIN: Final = 1.1754943508222875e-38
_EXACT_INTEGERS: Final = 1 << 53  # all of smaller magnitude are doubles

_INTEGER: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_FLOAT: Final[dict[str, Callable[[float, float], float]]] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fdiv": operator.truediv,
}
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def unsigned(value: ConstantInt) -> int:
    """Bits of a constant, read as an unsigned number."""
    assert isinstance(value.type, IntType)
    return value.value & ((1 << value.type.bits) - 1)


def signed(value: ConstantInt) -> int:
    """Bits of a constant, read in two's complement (an `i1` true is -1)."""
    assert isinstance(value.type, IntType)
    return -value.value if value.type.bits == 1 else value.value


def same_value(a: Value, b: Value) -> bool:
    """True if two operands are the same SSA value or equal constants, bit for bit."""
    if a is b:
        return True
    if a.type is not b.type:
        return False
    if isinstance(a, ConstantInt) and isinstance(b, ConstantInt):
        return a.value == b.value
    if isinstance(a, ConstantFloat) and isinstance(b, ConstantFloat):
        return a.text == b.text
    return isinstance(a, ConstantNull) and isinstance(b, ConstantNull)


# ------------------------------------------------------------------------------------------------ arithmetic


def fold_binary(opcode: str, a: Value, b: Value) -> Value | None:
    """The result of a `Binary`, if it needs no instruction."""
    if isinstance(a, ConstantInt) and isinstance(b, ConstantInt):
        result = _integer_result(opcode, a, b)
        return None if result is None else const_int(a.type, result)
    if isinstance(a, ConstantFloat) and isinstance(b, ConstantFloat):
        return _float_result(opcode, a, b)
    if isinstance(b, ConstantInt):
        return _integer_identity(opcode, a, b)
    if isinstance(a, ConstantInt) and opcode in ("add", "mul", "and", "or", "xor"):
        return _integer_identity(opcode, b, a)
    if isinstance(b, ConstantFloat):
        return _float_identity(opcode, a, b)
    if isinstance(a, ConstantFloat) and opcode in ("fadd", "fmul"):
        return _float_identity(opcode, b, a)
    return None


def _integer_result(opcode: str, a: ConstantInt, b: ConstantInt) -> int | None:
    if opcode in _INTEGER:
        return _INTEGER[opcode](a.value, b.value)
    assert isinstance(a.type, IntType)
    bits = a.type.bits
    if opcode in ("shl", "lshr", "ashr"):
        return _shifted(opcode, a, unsigned(b)) if unsigned(b) < bits else None
    if opcode in ("udiv", "urem"):
        x, y = unsigned(a), unsigned(b)
        return None if y == 0 else x // y if opcode == "udiv" else x % y
    if opcode in ("sdiv", "srem"):
        x, y = signed(a), signed(b)
        if y == 0 or (y == -1 and x == -(1 << (bits - 1))):
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return quotient if opcode == "sdiv" else x - quotient * y
    return None


def _shifted(opcode: str, a: ConstantInt, amount: int) -> int:
    match opcode:
        case "shl":
            return unsigned(a) << amount
        case "lshr":
            return unsigned(a) >> amount
        case _:
            return signed(a) >> amount


def _integer_identity(opcode: str, a: Value, b: ConstantInt) -> Value | None:
    """`a op b` for a constant ``b``."""
    assert isinstance(b.type, IntType)
    if b.value == 0:
        if opcode in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
            return a
        return b if opcode in ("mul", "and") else None
    ones = unsigned(b) == (1 << b.type.bits) - 1
    if ones and opcode in ("and", "or"):
        return a if opcode == "and" else b
    if b.value == 1 and opcode in ("mul", "udiv"):
        return a
    if b.value == 1 and opcode == "sdiv" and b.type.bits > 1:  # an i1 divisor of 1 means -1
        return a
    return None


def _is_ordinary(value: float, type_: Type) -> bool:
    """True if it is zero or a finite, normal number of its type."""
    if type_ is types.DOUBLE:
        return value == 0.0 or sys.float_info.min <= abs(value) <= sys.float_info.max
    return type_ is types.FLOAT and (value == 0.0 or _FLOAT_MIN <= abs(value) <= _FLOAT_MAX)


def _float_result(opcode: str, a: ConstantFloat, b: ConstantFloat) -> Constant | None:
    """The rounded result; rounding to double, then to float is harmless for these operations (Figueroa 1995)."""
    if opcode not in _FLOAT or not (_is_ordinary(a.value, a.type) and _is_ordinary(b.value, b.type)):
        return None
    if opcode == "fdiv" and b.value == 0.0:
        return None
    result = _FLOAT[opcode](a.value, b.value)
    if not _is_ordinary(result, a.type) or _underflowed(opcode, a, b, result):
        return None
    return const_float(a.type, result)


def _underflowed(opcode: str, a: ConstantFloat, b: ConstantFloat, result: float) -> bool:
    """True if a product or quotient of numbers other than zero was rounded to zero."""
    return result == 0.0 and a.value != 0.0 and b.value != 0.0 and opcode in ("fmul", "fdiv")


def _float_identity(opcode: str, a: Value, b: ConstantFloat) -> Value | None:
    """`a op b` for a constant ``b``. Note that `x + 0.0` is none: it turns -0.0 into 0.0."""
    if b.value == 1.0 and opcode in ("fmul", "fdiv"):
        return a
    if b.value == 0.0:
        negative = str(b.value).startswith("-")
        if (opcode == "fadd" and negative) or (opcode == "fsub" and not negative):
            return a
    return None


def fold_negation(a: Value) -> Value | None:
    """`fneg` of a constant."""
    if isinstance(a, ConstantFloat) and a.type in (types.FLOAT, types.DOUBLE) and a.value == a.value:
        return const_float(a.type, -a.value)
    return None


# ------------------------------------------------------------------------------------------------ compare, select, cast


def fold_icmp(predicate: str, a: Value, b: Value) -> Value | None:
    """An `icmp` of constants."""
    if isinstance(a, ConstantNull) and isinstance(b, ConstantNull):
        return const_int(types.I1, predicate in ("eq", "ule", "uge", "sle", "sge"))
    if not (isinstance(a, ConstantInt) and isinstance(b, ConstantInt)):
        return None
    read = unsigned if predicate.startswith("u") else signed
    compare = _COMPARE[predicate if predicate in ("eq", "ne") else predicate[1:]]
    return const_int(types.I1, compare(read(a), read(b)))


def fold_select(condition: Value, a: Value, b: Value) -> Value | None:
    """A `select` with a constant condition or equal arms."""
    if isinstance(condition, ConstantInt):
        return a if condition.value else b
    return a if same_value(a, b) else None


def fold_cast(opcode: str, value: Value, type_: Type) -> Value | None:
    """A cast of a constant, or to the type the value has."""
    if value.type is type_:
        return value
    if isinstance(value, ConstantInt):
        return _cast_integer(opcode, value, type_)
    if isinstance(value, ConstantFloat):
        return _cast_float(opcode, value, type_)
    if opcode == "ptrtoint" and isinstance(value, ConstantNull) and value.type is types.PTR:
        return const_int(type_, 0)
    return None


def _cast_integer(opcode: str, value: ConstantInt, type_: Type) -> Value | None:
    match opcode:
        case "trunc" | "zext":
            return const_int(type_, unsigned(value))
        case "sext":
            return const_int(type_, signed(value))
        case "inttoptr" if type_ is types.PTR and value.value == 0:
            return ConstantNull(type_)
        case "sitofp" | "uitofp" if type_ in (types.FLOAT, types.DOUBLE):
            number = signed(value) if opcode == "sitofp" else unsigned(value)
            return const_float(type_, float(number)) if abs(number) <= _EXACT_INTEGERS else None
        case _:
            return None


def _cast_float(opcode: str, value: ConstantFloat, type_: Type) -> Value | None:
    if not _is_ordinary(value.value, value.type):
        return None
    match opcode, type_:
        case "fpext", FloatType() if type_ is types.DOUBLE:
            return const_float(type_, value.value)
        case "fptrunc", FloatType() if type_ is types.FLOAT and _is_ordinary(value.value, type_):
            return const_float(type_, value.value)
        case "fptosi", IntType(bits=bits) if -(1 << (bits - 1)) <= int(value.value) < 1 << (bits - 1):
            return const_int(type_, int(value.value))
        case "fptoui", IntType(bits=bits) if 0 <= int(value.value) < 1 << bits and value.value >= 0.0:
            return const_int(type_, int(value.value))
        case _:
            return None
