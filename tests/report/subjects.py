"""Functions that the tests of reports look at, and what is found of them; each is derived once."""

from __future__ import annotations

import ctypes
import ctypes.util
import inspect
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import float64, int64

import irad
from irad.report.inspection import Inspection


@irad.jit
def helper(a):
    return np.sin(a) * a


@irad.jit
def energy(x, w, n):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i] * w
    y = np.zeros(n)
    for i in range(n):
        y[i] = helper(w + i)
    scale = float(n)
    return total / scale + y.sum()


@irad.jit
def until(x, limit):
    count = 0
    while x < limit:
        x = np.exp(x) * np.sin(x) + 2.0
        count += 1
    return x * count


@irad.jit
def triangle(x):
    total = 0.0
    for i in range(x.size):
        for j in range(i):
            total += np.exp(x[i] * x[j])
    return total


@irad.jit
def power(x, n):
    if n <= 0:
        return 1.0
    return x * np.sin(x) * power(x, n - 1)


@irad.jit
def scaled(x, a):
    return np.exp(x * a)


@irad.jit
def fill(out, x):
    for i in range(x.size):
        out[i] = np.exp(x[i])


_significand = ctypes.CDLL(ctypes.util.find_library("m")).significand
_significand.argtypes, _significand.restype = [ctypes.c_double], ctypes.c_double


@irad.jit
def refused(x):
    return _significand(x) * x


@numba.njit(parallel=True)
def smooth(x, w):
    out = np.zeros(x.size)
    for i in numba.prange(1, x.size - 1):
        out[i] = np.exp(w * x[i]) + x[i - 1] * x[i + 1]
    return out.sum()


TYPES: dict[Any, tuple[Any, ...]] = {
    energy: (float64[::1], float64, int64),
    until: (float64, float64),
    triangle: (float64[::1],),
    power: (float64, int64),
    scaled: (float64[::1], float64),
    smooth: (float64[::1], float64),
    fill: (float64[::1], float64[::1]),
}


@cache
def inspected(function: Any) -> Inspection:
    """What is found of one of the functions above."""
    return irad.inspect(function, *TYPES[function])


def line_of(function: Any, text: str) -> int:
    """The line of a function that has some text in it."""
    lines, first = inspect.getsourcelines(function.py_func)
    [number] = [number for number, line in enumerate(lines, first) if text in line]
    return number
