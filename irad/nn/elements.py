"""From a function of one number to one of numbers and arrays, in the precision of its argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload


def of_elements(f, x, *parameters):
    """``f`` of a number, or of each element of an array."""
    raise NotImplementedError("for compiled code")


@overload(of_elements)
def _of_elements(f, x, *parameters):
    return _each if isinstance(x, types.Array) else _one


def _one(f, x, *parameters):
    return type(x)(f(x, *parameters))


def _each(f, x, *parameters):
    y = np.empty(x.shape, x.dtype)
    before, after = np.ascontiguousarray(x).ravel(), y.ravel()
    for i in range(before.size):
        after[i] = f(before[i], *parameters)
    return y


def elementwise(f: Callable[..., Any]) -> Any:
    """Makes a function of a number, and perhaps of parameters ``a`` and ``b``, one of numbers and of arrays."""
    scalar = njit(error_model="numpy")(f)

    def of_x(x):
        return of_elements(scalar, x)

    def of_x_and_a(x, a):
        return of_elements(scalar, x, a)

    def of_all(x, a, b):
        return of_elements(scalar, x, a, b)

    made = (of_x, of_x_and_a, of_all)[f.__code__.co_argcount - 1]
    made.__defaults__ = f.__defaults__
    return njit(functools.wraps(f)(made))
