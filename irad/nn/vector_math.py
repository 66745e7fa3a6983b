"""Exponentials that LLVM vectorises, which calls of the C library are not.

x = n·log 2 + r with |r| ≤ log 2 / 2; a polynomial for exp r; n goes into the exponent. Adding 1.5·2⁵² (2²³ in single
precision) rounds to an integer, which then stands in the lowest bits of the sum, so no conversion is needed. Errors are
below 2 units in the last place; where exp x would be less than about 1e-307 (1e-37), it is zero.

Source: Cody and Waite 1980, "Software Manual for the Elementary Functions", chapter 6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irad.frontend.inner import inner_njit, inner_overload

_DOUBLE = tuple(1.0 / math.factorial(k) for k in range(13, -1, -1))
_SINGLE = tuple(np.float32(1.0 / math.factorial(k)) for k in range(7, -1, -1))
_SINGLE_PER_LOG2, _SINGLE_SHIFT, _SINGLE_LOWEST = (
    np.float32(1.0 / math.log(2.0)),
    np.float32(12582912.0),
    np.float32(-87.0),
)
_SINGLE_HIGH, _SINGLE_LOW, _SINGLE_ZERO = np.float32(0.693359375), np.float32(-2.12194440e-4), np.float32(0.0)


def exp_of_negative(x):
    """``exp(x)`` for x ≤ 0, in the precision of x; NaN for NaN. Not to be differentiated: for kernels with rules."""
    raise NotImplementedError("for compiled code")


@inner_overload(exp_of_negative)
def _exp_of_negative(x):
    return _exp_single if x.bitwidth == 32 else _exp_double


def _exp_double(x):
    kept = -708.0 if x < -708.0 else x  # NaN stays
    shifted = kept * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (kept - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
    total = _DOUBLE[0]
    for k in range(1, 14):
        total = total * r + _DOUBLE[k]
    power = np.int64((np.float64(shifted).view(np.int64) << 52) + (1023 << 52))
    return 0.0 if x < -708.0 else total * power.view(np.float64)


def _exp_single(x):
    kept = _SINGLE_LOWEST if x < _SINGLE_LOWEST else x
    shifted = kept * _SINGLE_PER_LOG2 + _SINGLE_SHIFT
    n = shifted - _SINGLE_SHIFT
    r = (kept - n * _SINGLE_HIGH) - n * _SINGLE_LOW
    total = _SINGLE[0]
    for k in range(1, 8):
        total = total * r + _SINGLE[k]
    power = np.int32((np.int32(np.float32(shifted).view(np.int32)) << np.int32(23)) + np.int32(127 << 23))
    return _SINGLE_ZERO if x < _SINGLE_LOWEST else total * power.view(np.float32)


@inner_njit(error_model="numpy")
def largest(row):
    """The largest element of a contiguous row; minus infinity without any. With a NaN it may be anything.

    Compares the numbers as integers, which vectorises without a promise that there are no NaNs.
    """
    return _largest(row)


def _largest(row):
    raise NotImplementedError("for compiled code")


@inner_overload(_largest)
def _compiled_largest(row):
    integer: Any = np.int32 if row.dtype.bitwidth == 32 else np.int64
    floating = np.float32 if row.dtype.bitwidth == 32 else np.float64
    sign, rest = integer(row.dtype.bitwidth - 1), integer(np.iinfo(integer).max)
    lowest = np.array(-np.inf, floating).view(integer)[()]
    start = integer(lowest ^ ((lowest >> sign) & rest))

    def compiled(row):
        bits, found = row.view(integer), start
        for i in range(bits.size):
            ordered = integer(bits[i] ^ ((bits[i] >> sign) & rest))
            found = max(found, ordered)
        return integer(found ^ ((found >> sign) & rest)).view(floating)

    return compiled


@inner_njit(fastmath={"reassoc"}, error_model="numpy")
def inner_product(x, y):
    """Sum of the products of two rows of one type, in any order."""
    total = x.dtype.type(0.0)
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@inner_njit(fastmath={"reassoc"}, error_model="numpy")
def sum_of(x):
    """Sum of a row, in any order."""
    total = x.dtype.type(0.0)
    for i in range(x.size):
        total += x[i]
    return total
