"""Comparisons, selections and conversions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.instructions.floats import flushing
from tests.cuda.ptx_interpreter.instructions.operation import Function, Operation, Words, instruction
from tests.cuda.ptx_interpreter.instructions.rounding import (
    ROUNDINGS,
    flush,
    from_integer,
    narrowed,
    saturate,
    to_integer,
)
from tests.cuda.ptx_interpreter.types import PRED, PtxType, ptx_type

_ORDER: Final[dict[str, Function]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_COMBINATIONS: Final[dict[str, Function]] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_INTEGRAL: Final = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _comparison(words: Words, type_: PtxType) -> Function:
    """Comparisons with NaN are false, but for `ne` of integers' sense, and for those whose names end in u."""
    name = words.one_of((*_ORDER, *_UNSIGNED, *(f"{each}u" for each in _ORDER), "num", "nan"))
    if not type_.is_float:
        if name in _UNSIGNED:
            unsigned = ptx_type(f"u{type_.bits}").dtype
            inner = _ORDER[_UNSIGNED[name]]
            return lambda a, b: inner(a.view(unsigned), b.view(unsigned))
        if name not in _ORDER:
            raise words.unknown()
        return _ORDER[name]
    if name in ("num", "nan"):
        return lambda a, b: (np.isnan(a) | np.isnan(b)) == (name == "nan")
    if name in _UNSIGNED or not name:
        raise words.unknown()
    holds, unordered = _ORDER[name.removesuffix("u")], name.endswith("u")

    def compare(a: Any, b: Any) -> Any:
        missing = np.isnan(a) | np.isnan(b)
        return np.where(missing, unordered, holds(a, b))

    return flushing_inputs(compare) if words.has("ftz") else compare


def flushing_inputs(function: Function) -> Function:
    return lambda *given: function(*map(flush, given))


@instruction("setp")
def _set_predicate(words: Words) -> Operation:
    type_ = words.type()
    compare = _comparison(words, type_)
    combine = words.one_of(tuple(_COMBINATIONS))
    if not combine:
        return Operation((PRED,), (type_, type_), compare)
    joined = _COMBINATIONS[combine]
    return Operation((PRED,), (type_, type_, PRED), lambda a, b, c: joined(compare(a, b), c))


def second_result(opcode: str) -> Operation:
    """What `setp` gives to the second of two predicates: the comparison the other way round."""
    words = Words(opcode)
    type_ = words.type()
    compare = _comparison(words, type_)
    combine = words.one_of(tuple(_COMBINATIONS))
    words.done()
    if not combine:
        return Operation((PRED,), (type_, type_), lambda a, b: ~compare(a, b))
    joined = _COMBINATIONS[combine]
    return Operation((PRED,), (type_, type_, PRED), lambda a, b, c: joined(~compare(a, b), c))


@instruction("set")
def _set(words: Words) -> Operation:
    """All ones, or 1.0."""
    result, type_ = words.types(2)
    compare = _comparison(words, type_)
    one = np.array(1, result.dtype) if result.is_float else np.array(~np.zeros(1, result.raw)).view(result.dtype)
    return Operation((result,), (type_, type_), lambda a, b: np.where(compare(a, b), one, result.dtype.type(0)))


@instruction("selp")
def _select(words: Words) -> Operation:
    type_ = words.type()
    return Operation((type_,), (type_, type_, PRED), lambda a, b, p: np.where(p, a, b))


@instruction("slct")
def _select_by_sign(words: Words) -> Operation:
    result, type_ = words.types(2)
    words.has("ftz")
    return Operation((result,), (result, result, type_), lambda a, b, c: np.where(c >= 0, a, b))


@instruction("cvt")
def _convert(words: Words) -> Operation:
    target, source = words.types(2)
    rounding = words.one_of((*ROUNDINGS, *_INTEGRAL))
    ftz, sat = words.has("ftz"), words.has("sat")
    if source.is_float and target.is_float:
        function = _between_floats(words, rounding, source, target)
    elif source.is_float:
        if rounding not in _INTEGRAL:
            raise words.unknown()
        function = lambda a: to_integer(rounding, a, target)  # noqa: E731
        return Operation((target,), (source,), flushing_inputs(function) if ftz else function)
    elif target.is_float:
        if rounding not in ROUNDINGS:
            raise words.unknown()
        function = lambda a: from_integer(rounding, a, target)  # noqa: E731
    elif sat:
        limits = np.iinfo(target.dtype)
        low, top = max(limits.min, np.iinfo(source.dtype).min), min(limits.max, np.iinfo(source.dtype).max)
        return Operation((target,), (source,), lambda a: np.clip(a, low, top).astype(target.dtype))
    else:
        return Operation((target,), (source,), lambda a: a.astype(target.dtype))
    if ftz and source.name == target.name == "f32":
        function = flushing(function, ftz=True)
    elif ftz and source.name == "f32":
        function = flushing_inputs(function)
    elif ftz and target.name == "f32":
        plain = function
        function = lambda a: flush(plain(a))  # noqa: E731
    return Operation((target,), (source,), (lambda a: saturate(function(a))) if sat else function)


def _between_floats(words: Words, rounding: str, source: PtxType, target: PtxType) -> Function:
    if target.bits < source.bits:
        if rounding not in ROUNDINGS:
            raise words.unknown()
        return lambda a: narrowed(rounding, a, target)
    if target.bits > source.bits:
        return lambda a: a.astype(target.dtype)
    return _INTEGRAL[rounding] if rounding in _INTEGRAL else lambda a: a.copy()
