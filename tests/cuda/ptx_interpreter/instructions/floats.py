"""The instructions of floating-point numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.instructions.operation import Function, Operation, Words, instruction
from tests.cuda.ptx_interpreter.instructions.rounding import (
    ROUNDINGS,
    directed,
    flush,
    fused,
    saturate,
    smaller,
    square_root,
)
from tests.cuda.ptx_interpreter.types import PRED, PtxType

_SINGLE: Final = np.float32


def float_operation(words: Words, type_: PtxType, operands: int, make: Callable[[str], Function]) -> Operation:
    """An operation of numbers of one type.

    Args:
        words: `.ftz` and `.sat` and a rounding mode may be left.
        make: the function for a rounding mode.
    """
    rounding = words.one_of(ROUNDINGS, "rn")
    function = flushing(make(rounding), ftz=words.has("ftz"), sat=words.has("sat"))
    if type_.name == "f16x2":
        half = function
        return Operation((type_,), (type_,) * operands, lambda *given: _in_halves(half, given))
    return Operation((type_,), (type_,) * operands, function)


def flushing(function: Function, *, ftz: bool, sat: bool = False) -> Function:
    """The function with subnormals flushed before and after, and its result saturated."""
    if not ftz and not sat:
        return function

    def wrapped(*given: Any) -> Any:
        result = function(*map(flush, given)) if ftz else function(*given)
        result = saturate(result) if sat else result
        return flush(result) if ftz else result

    return wrapped


def _in_halves(function: Function, given: tuple[Any, ...]) -> Any:
    """Two numbers of half precision in one register."""
    arrays = [np.ascontiguousarray(each).view(np.float16).reshape(-1, 2) for each in np.broadcast_arrays(*given)]
    columns = [function(*(each[:, half] for each in arrays)) for half in (0, 1)]
    return np.stack(columns, axis=1).view(np.uint32).ravel()


def add(rounding: str) -> Function:
    if rounding == "rn":
        return lambda a, b: a + b
    return lambda a, b: directed(rounding, a + b, lambda x, y: x + y, a, b, is_sum=True)


def subtract(rounding: str) -> Function:
    plus = add(rounding)
    return lambda a, b: plus(a, -b)


def multiply(rounding: str) -> Function:
    if rounding == "rn":
        return lambda a, b: a * b
    return lambda a, b: directed(rounding, a * b, lambda x, y: x * y, a, b)


def multiply_add(rounding: str) -> Function:
    if rounding == "rn":
        return fused
    return lambda a, b, c: directed(rounding, fused(a, b, c), lambda x, y, z: x * y + z, a, b, c, is_sum=True)


def _divide(rounding: str) -> Function:
    if rounding == "rn":
        return lambda a, b: a / b

    def function(a: Any, b: Any) -> Any:
        nonzero = np.where(b == 0, b.dtype.type(np.nan), b)
        found = directed(rounding, a / nonzero, lambda x, y: x / y, a, nonzero)
        return np.where(b == 0, a / b, found)

    return function


@instruction("fma")
def _fma(words: Words) -> Operation:
    return float_operation(words, words.type(), 3, multiply_add)


def divide(words: Words) -> Operation:
    """Of numbers; `div.approx` and `div.full` may be less exact."""
    type_ = words.type()
    words.one_of(("approx", "full"))
    return float_operation(words, type_, 2, _divide)


@instruction("rcp")
def _reciprocal(words: Words) -> Operation:
    type_ = words.type()
    divided = _divide
    if words.has("approx") and type_.bits == 64:
        words.has("ftz")
        return Operation((type_,), (type_,), lambda a: _upper_half(1.0 / flush(a)))
    return float_operation(words, type_, 1, lambda r: lambda a: divided(r)(np.ones_like(a), a))


@instruction("sqrt")
def _sqrt(words: Words) -> Operation:
    type_ = words.type()
    words.has("approx")
    return float_operation(words, type_, 1, lambda rounding: lambda a: square_root(rounding, a))


def _upper_half(value: Any) -> Any:
    """Approximations in double precision end after 32 bits."""
    bits = value.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
    return flush(np.where(np.isnan(value), np.nan, bits.view(np.float64)))


_APPROXIMATED: Final[dict[str, Function]] = {
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}
"""In double precision; the GPU is less exact."""


@instruction(*_APPROXIMATED)
def _approximate(words: Words) -> Operation:
    type_ = words.type()
    if not words.has("approx"):
        raise words.unknown()
    inner = _APPROXIMATED[words.name]
    if type_.bits == 64 and words.name != "rsqrt":
        raise words.unknown()
    if type_.bits == 64:
        coarse = words.has("ftz")  # the other one is computed by more instructions, and exact but for the last bit
        return Operation((type_,), (type_,), (lambda a: _upper_half(inner(flush(a)))) if coarse else inner)
    return float_operation(words, type_, 1, lambda _: lambda a: inner(a.astype(np.float64)).astype(a.dtype))


@instruction("copysign")
def _copysign(words: Words) -> Operation:
    """The sign is that of the first operand."""
    type_ = words.type()
    return Operation((type_,), (type_, type_), lambda sign, value: np.copysign(value, sign))


@instruction("testp")
def _test(words: Words) -> Operation:
    type_ = words.type()
    tiny = np.finfo(type_.dtype).tiny
    tests: dict[str, Function] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= tiny),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return Operation((PRED,), (type_,), tests[words.one_of(tuple(tests))])


def float_sign(words: Words, type_: PtxType) -> Operation:
    """`neg` and `abs` of numbers."""
    function: Function = np.negative if words.name == "neg" else np.abs
    return float_operation(words, type_, 1, lambda _: function)


def float_extreme(words: Words, type_: PtxType) -> Operation:
    """`min` and `max` of numbers."""
    propagates = words.has("NaN")

    def least(a: Any, b: Any) -> Any:
        return smaller(a, b, propagates=propagates)

    function: Function = least if words.name == "min" else lambda a, b: -least(-a, -b)
    return float_operation(words, type_, 2, lambda _: function)
