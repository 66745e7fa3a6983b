"""The instructions of integers and bits, and those that have one name for integers and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.instructions import floats
from tests.cuda.ptx_interpreter.instructions.operation import Function, Operation, Words, instruction
from tests.cuda.ptx_interpreter.types import B32, U32, PtxType, ptx_type

_FLOATING: Final = ("f", "f16x2")


def _wide(type_: PtxType) -> PtxType:
    return ptx_type(f"{type_.kind}{2 * type_.bits}")


def _constant(type_: PtxType, value: int) -> Any:
    return np.array(value % (1 << type_.bits), type_.raw).view(type_.dtype)


def high(a: Any, b: Any, type_: PtxType) -> Any:
    """The upper half of a product."""
    if type_.bits < 64:
        wide = _wide(type_).dtype
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(type_.bits)).astype(type_.dtype)
    x, y = np.broadcast_arrays(a.view(np.uint64), b.view(np.uint64))
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> shift, y & low, y >> shift
    middle = x1 * y0 + ((x0 * y0) >> shift)
    other = x0 * y1 + (middle & low)
    found = x1 * y1 + (middle >> shift) + (other >> shift)
    if type_.is_signed:
        found = found - np.where(x >> np.uint64(63), y, 0).astype(np.uint64)
        found = found - np.where(y >> np.uint64(63), x, 0).astype(np.uint64)
    return found.view(type_.dtype)


def _product(words: Words, type_: PtxType) -> tuple[PtxType, Function]:
    """What `mul` and `mad` multiply to."""
    match words.one_of(("lo", "hi", "wide"), "lo"):
        case "hi":
            return type_, lambda a, b: high(a, b, type_)
        case "wide":
            wide = _wide(type_)
            return wide, lambda a, b: a.astype(wide.dtype) * b.astype(wide.dtype)
    return type_, lambda a, b: a * b


# --- sums, with carries ---------------------------------------------------------------------------------------------


def _sum(words: Words, type_: PtxType, *, takes: bool) -> Operation:
    """The carry of a sum is one if it does not fit."""
    gives, top = words.has("cc"), np.uint64(1) << np.uint64(type_.bits - 1)

    def function(a: Any, b: Any, carry: Any) -> Any:
        x, y = a.view(type_.raw), b.view(type_.raw)
        bit = carry.astype(type_.raw)
        total = x + y + bit
        out = ((x & y) | ((x | y) & ~total)) >= type_.raw.type(top)
        return total.view(type_.dtype), out

    return _carrying(type_, (type_, type_), function, takes=takes, gives=gives)


def _difference(words: Words, type_: PtxType, *, takes: bool) -> Operation:
    """The carry of a difference is one if something was borrowed."""
    gives, top = words.has("cc"), np.uint64(1) << np.uint64(type_.bits - 1)

    def function(a: Any, b: Any, borrow: Any) -> Any:
        x, y = a.view(type_.raw), b.view(type_.raw)
        total = x - y - borrow.astype(type_.raw)
        out = ((~x & y) | ((~x | y) & total)) >= type_.raw.type(top)
        return total.view(type_.dtype), out

    return _carrying(type_, (type_, type_), function, takes=takes, gives=gives)


def _carrying(
    type_: PtxType, operands: tuple[PtxType, ...], function: Function, *, takes: bool, gives: bool
) -> Operation:
    none = np.zeros(1, bool)

    def wrapped(*given: Any) -> Any:
        result, carry = function(*given) if takes else function(*given, none)
        return (result, carry) if gives else result

    return Operation((type_,), operands, wrapped, takes_carry=takes, gives_carry=gives)


@instruction("add", "sub")
def _add(words: Words) -> Operation:
    type_ = words.type()
    if type_.kind in _FLOATING:
        words.has("noftz")
        return floats.float_operation(words, type_, 2, floats.add if words.name == "add" else floats.subtract)
    if words.has("sat"):
        return _saturating(words, type_)
    return (_sum if words.name == "add" else _difference)(words, type_, takes=False)


def _saturating(words: Words, type_: PtxType) -> Operation:
    """Of signed integers of 32 bits."""
    if type_.name != "s32":
        raise words.unknown()
    sign = 1 if words.name == "add" else -1

    def function(a: Any, b: Any) -> Any:
        total = a.astype(np.int64) + sign * b.astype(np.int64)
        return np.clip(total, -(1 << 31), (1 << 31) - 1).astype(np.int32)

    return Operation((type_,), (type_, type_), function)


@instruction("addc", "subc")
def _add_carry(words: Words) -> Operation:
    return (_sum if words.name == "addc" else _difference)(words, words.type(), takes=True)


# --- products -------------------------------------------------------------------------------------------------------


@instruction("mul")
def _multiply(words: Words) -> Operation:
    type_ = words.type()
    if type_.kind in _FLOATING:
        return floats.float_operation(words, type_, 2, floats.multiply)
    result, function = _product(words, type_)
    return Operation((result,), (type_, type_), function)


@instruction("mad", "madc")
def _multiply_add(words: Words) -> Operation:
    type_ = words.type()
    if type_.kind in _FLOATING:
        return floats.float_operation(words, type_, 3, floats.multiply_add)
    result, product = _product(words, type_)
    takes = words.name == "madc"
    if not takes and "cc" not in words.opcode.split("."):
        return Operation((result,), (type_, type_, result), lambda a, b, c: product(a, b) + c)
    summed = _sum(words, type_, takes=takes)
    return Operation(
        (type_,),
        (type_, type_, type_),
        lambda a, b, *rest: summed.function(product(a, b), *rest),
        takes_carry=takes,
        gives_carry=summed.gives_carry,
    )


def _magnitudes(a: Any, b: Any, type_: PtxType) -> tuple[Any, Any]:
    x, y = np.broadcast_arrays(a.view(type_.raw), b.view(type_.raw))
    if not type_.is_signed:
        return x, y
    return np.where(a < 0, -x, x), np.where(b < 0, -y, y)


def _quotient(a: Any, b: Any, type_: PtxType) -> Any:
    """Toward zero; all ones where it does not exist, as GPUs have it."""
    x, y = _magnitudes(a, b, type_)
    found = x // np.where(y == 0, 1, y).astype(type_.raw)
    if type_.is_signed:
        found = np.where((a < 0) != (b < 0), -found, found)
    return np.where(y == 0, _constant(type_, -1).view(type_.raw), found).astype(type_.raw).view(type_.dtype)


@instruction("rem")
def _remainder(words: Words) -> Operation:
    type_ = words.type()
    return Operation((type_,), (type_, type_), lambda a, b: a - _quotient(a, b, type_) * b)


@instruction("div")
def _divide(words: Words) -> Operation:
    if words.opcode.rpartition(".")[2].startswith("f"):
        return floats.divide(words)
    type_ = words.type()
    return Operation((type_,), (type_, type_), lambda a, b: _quotient(a, b, type_))


@instruction("mul24", "mad24")
def _narrow_product(words: Words) -> Operation:
    type_ = words.type()
    if not words.has("lo"):
        raise words.unknown()
    shift = type_.dtype.type(8)

    def narrow(a: Any) -> Any:
        return (a << shift) >> shift

    if words.name == "mul24":
        return Operation((type_,), (type_, type_), lambda a, b: narrow(a) * narrow(b))
    return Operation((type_,), (type_,) * 3, lambda a, b, c: narrow(a) * narrow(b) + c)


# --- order ----------------------------------------------------------------------------------------------------------


@instruction("min", "max")
def _extreme(words: Words) -> Operation:
    type_ = words.type()
    if type_.kind in _FLOATING:
        return floats.float_extreme(words, type_)
    return Operation((type_,), (type_, type_), np.minimum if words.name == "min" else np.maximum)


@instruction("neg", "abs")
def _sign(words: Words) -> Operation:
    type_ = words.type()
    if type_.kind in _FLOATING:
        return floats.float_sign(words, type_)
    return Operation((type_,), (type_,), np.negative if words.name == "neg" else np.abs)


@instruction("sad")
def _distance(words: Words) -> Operation:
    type_ = words.type()
    return Operation((type_,), (type_,) * 3, lambda a, b, c: c + np.where(a < b, b - a, a - b))


# --- bits -----------------------------------------------------------------------------------------------------------


@instruction("and", "or", "xor")
def _logic(words: Words) -> Operation:
    type_ = words.type()
    function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[words.name]
    return Operation((type_,), (type_, type_), function)


@instruction("not")
def _not(words: Words) -> Operation:
    type_ = words.type()
    return Operation((type_,), (type_,), np.invert)


@instruction("cnot")
def _is_zero(words: Words) -> Operation:
    type_ = words.type()
    return Operation((type_,), (type_,), lambda a: (a == 0).astype(type_.dtype))


@instruction("lop3")
def _logic_of_three(words: Words) -> Operation:
    """Any function of three bits, as a table of eight."""
    type_ = words.type()

    def function(a: Any, b: Any, c: Any, table: Any) -> Any:
        found = np.zeros(1, np.uint32)
        for row in range(8):
            chosen = (table >> np.uint32(row)) & np.uint32(1)
            terms = [each if row >> bit & 1 else ~each for each, bit in ((a, 2), (b, 1), (c, 0))]
            found = found | (terms[0] & terms[1] & terms[2] & (np.uint32(0) - chosen))
        return found

    return Operation((type_,), (type_, type_, type_, U32), function)


@instruction("shl", "shr")
def _shift(words: Words) -> Operation:
    """Amounts beyond the width leave nothing, or the sign."""
    type_ = words.type()
    bits = type_.bits

    def function(a: Any, amount: Any) -> Any:
        inside = np.minimum(amount, bits - 1).astype(type_.dtype)
        if words.name == "shl":
            return np.where(amount >= bits, type_.dtype.type(0), a << inside)
        found = a >> inside
        return found if type_.is_signed else np.where(amount >= bits, type_.dtype.type(0), found)

    return Operation((type_,), (type_, U32), function)


@instruction("shf")
def _funnel(words: Words) -> Operation:
    """Shifts two registers as one of 64 bits; `l` gives the upper half, `r` the lower one."""
    type_ = words.type()
    left, wraps = words.one_of(("l", "r")) == "l", words.one_of(("wrap", "clamp")) == "wrap"

    def function(low: Any, top: Any, amount: Any) -> Any:
        n = (amount & np.uint32(31) if wraps else np.minimum(amount, 32)).astype(np.uint64)
        both = top.astype(np.uint64) << np.uint64(32) | low
        return ((both << n) >> np.uint64(32) if left else both >> n).astype(np.uint32)

    return Operation((type_,), (type_, type_, U32), function)


def _each(function: Callable[..., int], result: PtxType) -> Function:
    """A function of Python's integers on arrays."""

    def wrapped(*given: Any) -> Any:
        rows = zip(*(each.tolist() for each in np.broadcast_arrays(*given)), strict=True)
        mask = (1 << result.bits) - 1
        return np.array([function(*row) & mask for row in rows], result.raw).view(result.dtype)

    return wrapped


@instruction("popc", "clz", "brev", "bfind")
def _count(words: Words) -> Operation:
    type_ = words.type()
    bits, mask = type_.bits, (1 << type_.bits) - 1
    if words.name == "brev":
        return Operation((type_,), (type_,), _each(lambda a: int(f"{a:0{bits}b}"[::-1], 2), type_))
    functions: dict[str, Callable[[int], int]] = {
        "popc": lambda a: (a & mask).bit_count(),
        "clz": lambda a: bits - (a & mask).bit_length(),
        "bfind": lambda a: (a if a >= 0 else ~a).bit_length() - 1,
    }
    function = functions[words.name]
    if words.has("shiftamt"):
        plain = function
        function = lambda a: bits - 1 - plain(a) if plain(a) >= 0 else -1  # noqa: E731
    return Operation((U32,), (type_,), _each(function, U32))


@instruction("bfe", "bfi")
def _bit_field(words: Words) -> Operation:
    type_ = words.type()
    bits = type_.bits

    def extract(a: int, start: int, length: int) -> int:
        start, length = start & 255, length & 255
        word = a & ((1 << bits) - 1)
        found = (word >> start) & ((1 << length) - 1)
        top = min(start + length - 1, bits - 1)
        negative = type_.is_signed and length > 0 and word >> top & 1
        return found | -1 << max(min(length, bits - start), 0) if negative else found

    def insert(a: int, b: int, start: int, length: int) -> int:
        start, length = start & 255, length & 255
        field = ((1 << length) - 1) << start & ((1 << bits) - 1)
        return b & ~field | a << start & field

    if words.name == "bfe":
        return Operation((type_,), (type_, U32, U32), _each(extract, type_))
    return Operation((type_,), (type_, type_, U32, U32), _each(insert, type_))


@instruction("prmt")
def _permute(words: Words) -> Operation:
    """Any four bytes of two registers; the top bit of a selector repeats the sign of its byte."""
    words.type()

    def function(a: int, b: int, selector: int) -> int:
        both, found = a | b << 32, 0
        for place in range(4):
            chosen = selector >> 4 * place & 15
            byte = both >> 8 * (chosen & 7) & 255
            found |= (255 * (byte >> 7) if chosen & 8 else byte) << 8 * place
        return found

    return Operation((B32,), (B32, B32, B32), _each(function, B32))
