"""Arithmetic of floating-point numbers in each rounding mode, subnormals flushed or not."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.types import PtxType

ROUNDINGS: Final = ("rn", "rz", "rm", "rp")
Exact = Callable[..., Fraction]

_LIBM: Final = ctypes.CDLL(ctypes.util.find_library("m"))
_LIBM.fma.restype, _LIBM.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
_LIBM.fmaf.restype, _LIBM.fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3


def flush(value: Any) -> Any:
    """Zero, of the same sign, for subnormals."""
    tiny = np.finfo(value.dtype).tiny
    return np.where(np.abs(value) < tiny, np.copysign(value.dtype.type(0), value), value)


def saturate(value: Any) -> Any:
    """Into [0, 1]; NaNs become zero."""
    one = value.dtype.type(1)
    return np.where(value > 0, np.minimum(value, one), value.dtype.type(0))


def fused(a: Any, b: Any, c: Any) -> Any:
    """a·b + c, rounded once to nearest."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float16:
        return _fused_half(a, b, c)
    function = _LIBM.fma if a.dtype == np.float64 else _LIBM.fmaf
    return np.array([function(*each) for each in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)], a.dtype)


def _fused_half(a: Any, b: Any, c: Any) -> Any:
    """Products of halves are exact in double precision; the sum is rounded to odd there, so that rounding again is
    right."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    part = total - product
    error = (product - (total - part)) + (addend - part)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0)
    even = (bits & 1) == 0
    toward = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact & even, bits + toward, bits).view(np.float64).astype(np.float16)


def directed(rounding: str, nearest: Any, exact: Exact, *operands: Any, is_sum: bool = False) -> Any:
    """Results that are not rounded to nearest.

    Args:
        nearest: the results rounded to nearest.
        exact: of the operands of one result, as fractions.
        operands: arrays.
        is_sum: whether the last operand is added to what the others make.
    """
    arrays = np.broadcast_arrays(nearest, *operands)
    found = np.array(arrays[0])
    for place, (rounded, *each) in enumerate(zip(*arrays, strict=True)):
        if np.isnan(rounded) or not np.isfinite(each).all():
            continue
        value = exact(*(Fraction(float(operand)) for operand in each))
        if value != 0:
            found[place] = _directed(rounding, rounded, value)
        elif is_sum and rounding == "rm":
            parts = (np.prod(each[:-1]), each[-1])
            zeros = all(part == 0 and not np.signbit(part) for part in parts)
            found[place] = 0.0 if zeros else -0.0
    return found


def _directed(rounding: str, rounded: Any, exact: Fraction) -> Any:
    """From the nearest number to the right one."""
    kind = type(rounded)
    value = Fraction(float(rounded)) if np.isfinite(rounded) else 2 * exact
    if value > exact and (rounding == "rm" or (rounding == "rz" and exact > 0)):
        return np.nextafter(rounded, kind(-np.inf))
    if value < exact and (rounding == "rp" or (rounding == "rz" and exact < 0)):
        return np.nextafter(rounded, kind(np.inf))
    return rounded


def square_root(rounding: str, value: Any) -> Any:
    """In each rounding mode."""
    root = np.sqrt(value)
    if rounding == "rn":
        return root
    found = np.array(root)
    for place, (nearest, each) in enumerate(zip(root, value, strict=True)):
        if not np.isfinite(nearest) or nearest == 0:
            continue
        square, wanted = Fraction(float(nearest)) ** 2, Fraction(float(each))
        if square > wanted and rounding in ("rz", "rm"):
            found[place] = np.nextafter(nearest, type(nearest)(0))
        if square < wanted and rounding == "rp":
            found[place] = np.nextafter(nearest, type(nearest)(np.inf))
    return found


def smaller(a: Any, b: Any, *, propagates: bool) -> Any:
    """Of two numbers; -0 is smaller than 0; NaNs are left out unless they propagate."""
    a, b = np.broadcast_arrays(a, b)
    found = np.where((a < b) | ((a == b) & np.signbit(a)), a, b)
    if propagates:
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), found)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, found))


def narrowed(rounding: str, value: Any, target: PtxType) -> Any:
    """A number in a format with fewer digits."""
    nearest = value.astype(target.dtype)
    return nearest if rounding == "rn" else directed(rounding, nearest, lambda x: x, value)


def from_integer(rounding: str, value: Any, target: PtxType) -> Any:
    """An integer as a number."""
    nearest = value.astype(target.dtype)
    if rounding == "rn":
        return nearest
    found = nearest.copy()
    for place, (rounded, each) in enumerate(zip(nearest, value.tolist(), strict=True)):
        if each:
            found[place] = _directed(rounding, rounded, Fraction(each))
    return found


def to_integer(rounding: str, value: Any, target: PtxType) -> Any:
    """A number as an integer: the nearest one that there is; NaN is zero, or the top bit where 64 bits are involved."""
    whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding](value.astype(np.float64))
    limits = np.iinfo(target.dtype)
    bottom, top = float(limits.min), float(limits.max)
    inside = np.where((whole > bottom) & (whole < top), whole, 0.0)
    found = inside.astype(target.dtype)
    found = np.where(whole >= top, limits.max, np.where(whole <= bottom, limits.min, found)).astype(target.dtype)
    wide = value.dtype == np.float64 or target.bits == 64
    missing = np.array(1 << (target.bits - 1) if wide else 0, target.raw).view(target.dtype)
    return np.where(np.isnan(value), missing, found)
