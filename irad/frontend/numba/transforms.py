"""Fourier transforms as rocket-fft compiles them, in terms that have derivatives.

rocket-fft lowers `np.fft` and `scipy.fft` to one function of a C++ library, which makes the result itself. Programs
that are differentiated get these functions instead: arrays are padded, cut, scaled and reshaped by ordinary code, and
lines of equal length are transformed by three functions, which call that library and have rules (`rules/fourier.py`):

    irad.fft.c2c.c128(data, outer, n, inner, forward, factor)              in place, along the middle axis
    irad.fft.r2c.f64(data, result, outer, n, inner, forward, factor)       to n // 2 + 1 numbers
    irad.fft.c2r.f64(data, result, outer, n, inner, forward, factor)       from as many

Limit   results may differ from those of the plain call by rounding. With `out`, `overwrite_x` or `workers`, and for
        other transforms, the call stays as it is, and is refused where active values pass.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba import carray, cfunc, njit, typeof
from numba.core import types, typing
from numba.core.base import BaseContext
from numba.core.types import Type
from numba.core.typing import Signature
from numba.cpython.unsafe.tuple import tuple_setitem
from numpy.typing import NDArray

from irad.frontend.emit import Emit
from irad.records import dataclass

Numbers: TypeAlias = NDArray[np.inexact[Any]]
Ints: TypeAlias = Sequence[int] | None
_LIBRARY: Final = "rocket_fft"
_with_length: Any = tuple_setitem  # an intrinsic: it is called without its first parameter
_AXIS: Final = "axis exceeds dimensionality of input"
_LENGTH: Final = "invalid number of data points specified"
_NORM: Final = "invalid norm value; should be 'backward', 'ortho' or 'forward'"
_DUPLICATES: Final = "duplicate axes are not allowed"
_BOTH: Final = "when given, axes and shape arguments have to be of the same length"
_MORE: Final = "shape requires more axes than are present"
_NONE_OF: Final = "at least one axis must be specified"
_PRECISIONS: Final = {32: (types.float32, types.complex64), 64: (types.float64, types.complex128)}


@dataclass(frozen=True, slots=True)
class Transform:
    """A function of `np.fft` or `scipy.fft`.

    Attributes:
        kind: "c2c", "r2c" or "c2r".
        forward: the sign in the exponent.
        several: whether it takes several axes.
        unique: whether these must differ.
    """

    kind: str
    forward: bool
    several: bool
    unique: bool


def lowering(
    function: object, signature: Signature, suspended: Callable[[], AbstractContextManager[None]]
) -> Callable[..., Value] | None:
    """The lowering of what stands in for a function of `np.fft` or `scipy.fft`, called with this signature.

    None if it is another function, or options ask for what the stand-in does not do. While ``suspended`` Numba makes
    machine code.
    """
    transform = _functions().get(function) if _LIBRARY in sys.modules else None
    if transform is None or not all(_is_default(option) for option in signature.args[4:]):
        return None
    array, lengths, axes, norm = signature.args[:4]
    suits = _is_tuple if transform.several else _is_integer
    if not all(_is_default(type_) or suits(type_) for type_ in (lengths, axes)):
        return None
    assert isinstance(array, types.Array)
    assert isinstance(signature.return_type, types.Array)
    with suspended():
        _primitives()
    core = (_several_axes if transform.several else _single_axis)(transform, array.dtype, _norm_function(norm))
    arrange = _in_fortran_order if signature.return_type.layout == "F" else _as_it_is

    def implementation(a: Numbers, n: int | None, axis: int, norm: object) -> Numbers:
        return arrange(core(a, n, axis, norm))

    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]) -> Value:
        given = [_plain(Emit(context, builder), *pair) for pair in zip(signature.args[:4], arguments, strict=False)]
        plain = typing.signature(signature.return_type, *(type_ for type_, _ in given))
        return context.compile_internal(builder, implementation, plain, [value for _, value in given])

    return lower


def _plain(emit: Emit, type_: Type, value: Value) -> tuple[Type, Value]:
    """An argument whose type does not say what its value is."""
    if isinstance(type_, types.Omitted):
        plain = types.none if type_.value is None else types.unliteral(typeof(type_.value))
        return plain, emit.context.get_constant_generic(emit.builder, plain, type_.value)
    plain = types.unliteral(type_)
    return plain, emit.context.cast(emit.builder, value, type_, plain)


def _is_default(type_: Type) -> bool:
    return isinstance(type_, types.NoneType) or (isinstance(type_, types.Omitted) and not type_.value)


def _is_integer(type_: Type) -> bool:
    return isinstance(type_, types.Integer) or (isinstance(type_, types.Omitted) and isinstance(type_.value, int))


def _is_tuple(type_: Type) -> bool:
    if isinstance(type_, types.Omitted):
        return isinstance(type_.value, tuple)
    return isinstance(type_, types.BaseTuple) and all(isinstance(item, types.Integer) for item in type_.types)


@functools.cache
def _functions() -> dict[object, Transform]:
    """By Python function."""
    found: dict[object, Transform] = {}
    for module in (np.fft, sys.modules.get("scipy.fft")):
        if isinstance(module, ModuleType):
            for name, (kind, forward) in _KINDS.items():
                for suffix in ("", "2", "n"):
                    if hasattr(module, name + suffix):
                        function = getattr(module, name + suffix)
                        found[function] = Transform(kind, forward, bool(suffix), module is not np.fft)
    return found


_KINDS: Final = {
    "fft": ("c2c", True),
    "ifft": ("c2c", False),
    "rfft": ("r2c", True),
    "irfft": ("c2r", False),
    "hfft": ("c2r", True),
    "ihfft": ("r2c", False),
}


# ------------------------------------------------------------------------------------------------ lines


@functools.cache
def _primitives() -> dict[tuple[str, Type], types.ExternalFunction]:
    """The functions that have rules, by kind and real type; LLVM finds them from now on."""
    # Not at the head of the file: rocket-fft is optional.
    from rocket_fft import get_workers, lowlevel  # pyright: ignore[reportMissingImports]

    found: dict[tuple[str, Type], types.ExternalFunction] = {}
    i64, f64, numbers = types.int64, types.float64, (types.int64,) * 4
    for real, complex_ in _PRECISIONS.values():
        sizes = (*numbers, f64)

        @cfunc(types.void(types.CPointer(complex_), *sizes))
        def c2c(data: object, outer: int, n: int, inner: int, forward: int, factor: float) -> None:
            lines = carray(data, (outer, n, inner))
            lowlevel.c2c(lines, lines, np.array([1]), forward != 0, factor, get_workers())

        @cfunc(types.void(types.CPointer(real), types.CPointer(complex_), *sizes))
        def r2c(data: object, result: object, outer: int, n: int, inner: int, forward: int, factor: float) -> None:
            given, made = carray(data, (outer, n, inner)), carray(result, (outer, n // 2 + 1, inner))
            lowlevel.r2c(given, made, np.array([1]), forward != 0, factor, get_workers())

        @cfunc(types.void(types.CPointer(complex_), types.CPointer(real), *sizes))
        def c2r(data: object, result: object, outer: int, n: int, inner: int, forward: int, factor: float) -> None:
            given, made = carray(data, (outer, n // 2 + 1, inner)), carray(result, (outer, n, inner))
            lowlevel.c2r(given, made, np.array([1]), forward != 0, factor, get_workers())

        for kind, function, pointers in (("c2c", c2c, 1), ("r2c", r2c, 2), ("c2r", c2r, 2)):
            symbol = f"irad.fft.{kind}.{f'c{2 * real.bitwidth}' if kind == 'c2c' else f'f{real.bitwidth}'}"
            llvm.add_symbol(symbol, function.address)
            signature = types.void(*[types.voidptr] * pointers, i64, i64, i64, i64, f64)
            found[kind, real] = types.ExternalFunction(symbol, signature)
            _ALIVE.append(function)
    return found


_ALIVE: Final[list[object]] = []


# ------------------------------------------------------------------------------------------------ one axis


@njit
def _axis_of(a: Numbers, axis: int) -> int:
    if axis < -a.ndim or axis >= a.ndim:
        raise ValueError(_AXIS)
    return axis + a.ndim if axis < 0 else axis


_NORMS: Final = {"backward": 0, "ortho": 1, "forward": 2}  # 0: the inverse is scaled, 1: both are, 2: the other is


@njit
def _norm_at_run_time(norm: object) -> int:
    if norm == "backward":
        return 0
    if norm == "ortho":
        return 1
    if norm == "forward":
        return 2
    raise ValueError(_NORM)


def _norm_function(type_: Type) -> Callable[..., int]:
    """`norm -> code`, for a type that tells the norm, or for a string."""
    name = "backward" if _is_default(type_) else getattr(type_, "literal_value", getattr(type_, "value", None))
    if name not in _NORMS:
        return _norm_at_run_time
    code = _NORMS[name]
    return njit(lambda norm: code)


@njit
def _factor(n: int, forward: bool, norm: int) -> float:
    if norm == 1:
        return 1.0 / math.sqrt(n)
    return 1.0 if forward == (norm == 0) else 1.0 / n


@njit
def _around(a: Numbers, axis: int) -> tuple[int, int]:
    """Numbers of lines outside an axis and inside it."""
    outer, inner = 1, 1
    for i in range(a.ndim):
        if i < axis:
            outer *= a.shape[i]
        elif i > axis:
            inner *= a.shape[i]
    return outer, inner


@njit
def _lines(a: Numbers, outer: int, length: int, inner: int, kept: int) -> Numbers:
    """As many elements along the middle axis of an array of three, padded with zeros, as a new flat array."""
    given, lines, common = a.reshape(a.size), np.zeros(outer * kept * inner, a.dtype), min(kept, length)
    for o in range(outer):
        for i in range(common * inner):
            lines[o * kept * inner + i] = given[o * length * inner + i]
    return lines


@functools.cache
def _one_axis(kind: str, forward: bool, bits: int) -> Callable[..., Numbers]:
    """`(a, n, axis, factor) -> array` for arrays in C order that have the type that the transform takes."""
    real, complex_ = _PRECISIONS[bits]
    transform: Any = _primitives()[kind, real]
    direction = int(forward)
    result = np.dtype(str(real if kind == "c2r" else complex_))

    @njit
    def in_place(a: Numbers, n: int, axis: int, factor: float) -> Numbers:
        outer, inner = _around(a, axis)
        lines = _lines(a, outer, a.shape[axis], inner, n)
        transform(lines.ctypes, outer, n, inner, direction, factor)
        return lines.reshape(_with_length(a.shape, axis, n))

    @njit
    def to_other(a: Numbers, n: int, axis: int, factor: float) -> Numbers:
        half = n // 2 + 1
        taken, made = (half, n) if kind == "c2r" else (n, half)
        outer, inner = _around(a, axis)
        lines, other = _lines(a, outer, a.shape[axis], inner, taken), np.empty(outer * made * inner, result)
        transform(lines.ctypes, other.ctypes, outer, n, inner, direction, factor)
        return other.reshape(_with_length(a.shape, axis, made))

    return in_place if kind == "c2c" else to_other


# ------------------------------------------------------------------------------------------------ functions


@njit
def _length(a: Numbers, n: int | None, axis: int, doubled: bool) -> int:
    if n is None:  # noqa: SIM108 - Numba drops the branch that does not fit the type
        length = 2 * (a.shape[axis] - 1) if doubled else a.shape[axis]
    else:
        length = n
    if length < 1:
        raise ValueError(_LENGTH)
    return length


@njit
def _count(a: Numbers, s: Ints, axes: Ints) -> int:
    """The number of axes that are transformed."""
    if axes is None:
        count = a.ndim if s is None else len(s)
        if count > a.ndim:
            raise ValueError(_MORE)
    else:
        count = len(axes)
        if s is not None and len(s) != count:
            raise ValueError(_BOTH)
    if count == 0:
        raise ValueError(_NONE_OF)
    return count


@njit
def _place(a: Numbers, axes: Ints, k: int, count: int) -> int:
    """The axis at place k of the axes."""
    if axes is None:
        return a.ndim - count + k
    return _axis_of(a, axes[k])


@njit
def _at(s: Ints, k: int, a: Numbers, axis: int, doubled: bool) -> int:
    """The length at place k of the lengths."""
    if s is None:
        return _length(a, None, axis, doubled)
    return _length(a, s[k], axis, doubled)


@njit
def _as_it_is(a: Numbers) -> Numbers:
    return a


@njit
def _in_fortran_order(a: Numbers) -> Numbers:
    return np.asfortranarray(a)


def _bits(dtype: Type) -> int:
    return 32 if dtype in (types.float32, types.complex64) else 64


def _taken(dtype: Type, kind: str) -> Callable[..., Numbers]:
    """`array -> array` in C order, of the type that the transform takes."""
    real, complex_ = _PRECISIONS[_bits(dtype)]
    wanted = real if kind == "r2c" else complex_
    if dtype == wanted:
        return njit(lambda a: np.ascontiguousarray(a))
    target = np.dtype(str(wanted))
    return njit(lambda a: np.ascontiguousarray(a.astype(target)))


def _single_axis(transform: Transform, dtype: Type, norm_of: Callable[..., int]) -> Callable[..., Numbers]:
    doubled, forward, take = transform.kind == "c2r", transform.forward, _taken(dtype, transform.kind)
    along = _one_axis(transform.kind, transform.forward, _bits(dtype))

    @njit
    def core(a: Numbers, n: int | None, axis: int, norm: object) -> Numbers:
        place, how = _axis_of(a, axis), norm_of(norm)
        length = _length(a, n, place, doubled)
        return along(take(a), length, place, _factor(length, forward, how))

    return core


def _several_axes(transform: Transform, dtype: Type, norm_of: Callable[..., int]) -> Callable[..., Numbers]:
    """The last axis is the one of real numbers: transformed first if they come in, last if they come out.

    The order, and the one transform that scales by the factor of all, are those of the library, so that the bits are.
    """
    kind, forward, unique = transform.kind, transform.forward, transform.unique
    doubled, take = kind == "c2r", _taken(dtype, kind)
    along_last = _one_axis(kind, forward, _bits(dtype))
    along_other = _one_axis("c2c", forward, _bits(dtype))

    @njit
    def checked(a: Numbers, s: Ints, axes: Ints, norm: int) -> tuple[int, float]:
        """The number of axes, and the factor."""
        count, total = _count(a, s, axes), 1
        for i in range(count):
            axis = _place(a, axes, i, count)
            total *= _at(s, i, a, axis, doubled and i == count - 1)
            for j in range(i if unique else 0):
                if _place(a, axes, j, count) == axis:
                    raise ValueError(_DUPLICATES)
        return count, _factor(total, forward, norm)

    @njit
    def others(x: Numbers, s: Ints, axes: Ints, count: int, end: int, factor: float) -> Numbers:
        for k in range(end):
            axis = _place(x, axes, k, count)
            x = along_other(x, _at(s, k, x, axis, False), axis, factor if k == 0 else 1.0)
        return x

    @njit
    def last(x: Numbers, s: Ints, axes: Ints, count: int, factor: float) -> Numbers:
        axis = _place(x, axes, count - 1, count)
        return along_last(x, _at(s, count - 1, x, axis, doubled), axis, factor)

    @njit
    def complex_only(a: Numbers, s: Ints, axes: Ints, norm: object) -> Numbers:
        count, factor = checked(a, s, axes, norm_of(norm))
        return others(take(a), s, axes, count, count, factor)

    @njit
    def real_last(a: Numbers, s: Ints, axes: Ints, norm: object) -> Numbers:
        count, factor = checked(a, s, axes, norm_of(norm))
        return last(others(take(a), s, axes, count, count - 1, 1.0), s, axes, count, factor)

    @njit
    def real_first(a: Numbers, s: Ints, axes: Ints, norm: object) -> Numbers:
        count, factor = checked(a, s, axes, norm_of(norm))
        return others(last(take(a), s, axes, count, factor), s, axes, count, count - 1, 1.0)

    return {"c2c": complex_only, "c2r": real_last, "r2c": real_first}[kind]
