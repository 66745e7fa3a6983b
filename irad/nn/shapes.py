"""Arrays as the functions here see them: (before, along, after) an axis, on contiguous memory.

A public function brings its arguments into one shape and calls a kernel for that shape, which has the rule. So a kernel
is compiled once for each type of number, whatever the number of axes.

Errors are raised by functions of their own that only raise: irad leaves these as calls. Python writes their messages
(`frontend.formatted`), since code that writes numbers is long.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba.cpython.unsafe.tuple import tuple_setitem
from numpy.typing import NDArray

from irad.frontend.formatted import FormattedIndexError
from irad.frontend.inner import inner_njit


@inner_njit
def around(shape, axis):
    """Product of the sizes before an axis, size of the axis, product of those after it.

    Raises:
        IndexError: there is no such axis.
    """
    place = axis + len(shape) if axis < 0 else axis
    if place < 0 or place >= len(shape):
        _refuse_axis(axis, len(shape))
    before, along, after = 1, 1, 1
    for d, size in enumerate(shape):
        if d < place:
            before *= size
        elif d == place:
            along = size
        else:
            after *= size
    return before, along, after


@inner_njit
def _refuse_axis(axis, count):
    raise FormattedIndexError("axis {} of an array with {} axes", axis, count)


@inner_njit
def with_size(shape, axis, size):
    """The shape with another size along an axis that it has."""
    place = axis + len(shape) if axis < 0 else axis
    return tuple_setitem(shape, place, size)


@inner_njit
def as_rows(x):
    """Of (before, along, after) the rows along the middle axis, as a matrix: a view where nothing comes after."""
    before, along, after = x.shape
    if after == 1:
        return x.reshape(before, along)
    rows = np.empty((before, after, along), x.dtype)
    for i in range(before):
        for j in range(along):
            for k in range(after):
                rows[i, k, j] = x[i, j, k]
    return rows.reshape(before * after, along)


@inner_njit
def from_rows(rows, shape):
    """The array of shape (before, along, after) that has these rows: a view where nothing comes after."""
    before, along, after = shape
    if after == 1:
        return rows.reshape(shape)
    x = np.empty(shape, rows.dtype)
    each = rows.reshape(before, after, along)
    for i in range(before):
        for j in range(along):
            for k in range(after):
                x[i, j, k] = each[i, k, j]
    return x


@inner_njit
def add_to(x, y):
    """``x`` += y, for contiguous arrays of one shape."""
    target, source = x.ravel(), y.ravel()
    for i in range(target.size):
        target[i] += source[i]


@inner_njit
def overwrite(x, y):
    """``x`` = y, for contiguous arrays of one shape; an assignment to a slice also compiles what refuses others."""
    target, source = x.ravel(), y.ravel()
    for i in range(target.size):
        target[i] = source[i]


# Types of arguments, for annotations: Numba finds out its own.

Array: TypeAlias = NDArray[Any]
