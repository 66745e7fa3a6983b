"""From a function of one number to one of numbers and arrays, in the precision of its argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from irad.frontend.operands import floats, real


def of_elements(f, x, *parameters):
    """``f`` of a number, or of each element of an array."""
    raise NotImplementedError("for compiled code")


@overload(of_elements)
def _of_elements(f, x, *parameters):
    name = f.dispatcher.py_func.__name__  # a literal in what follows, for messages

    def one(f, x, *parameters):
        number = real(name, x)
        return type(number)(f(number, *parameters))

    def each(f, x, *parameters):
        given = floats(name, x)
        y = np.empty(given.shape, given.dtype)
        before, after = given.ravel(), y.ravel()
        for i in range(before.size):
            after[i] = f(before[i], *parameters)
        return y

    return each if isinstance(x, types.Array) else one


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
