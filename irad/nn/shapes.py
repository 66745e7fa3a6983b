"""Arrays as the functions here see them: (before, along, after) an axis, on contiguous memory.

A public function brings its arguments into one shape and calls a kernel for that shape, which has the rule. So a kernel
is compiled once for each type of number, whatever the number of axes.

Errors are raised by functions of their own that only raise: irad leaves these as calls. Python writes their messages
(`frontend.formatted`), since code that writes numbers is long.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numba.cpython.unsafe.tuple import tuple_setitem
from numpy.typing import NDArray

from irad.frontend.formatted import FormattedIndexError, FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload


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


# Several axes at once, as a set: an integer with a bit for each. Neighbours are like one axis. Others become the last
# by a copy in a loop over the places of elements, which compiles in less time than NumPy's transposition.


def bring(x, axis):
    """The array as (before, along, after): along an axis, or the axes of a tuple, or all axes for None."""
    raise NotImplementedError("for compiled code")


def put_along(put, y, x, axis):
    """Calls ``put(y, x)`` of contiguous arrays of one shape, both as (before, along, after)."""
    raise NotImplementedError("for compiled code")


def with_ones(shape, axis):
    """The shape with size one along the axes that `bring` brings together."""
    raise NotImplementedError("for compiled code")


def axes_of(shape, axis):
    """The set of axes that `bring` brings together."""
    raise NotImplementedError("for compiled code")


@inner_overload(bring)
def _compiled_bring(x, axis):
    if isinstance(axis, types.BaseTuple | types.NoneType):
        return lambda x, axis: bring_axes(x, axes_of(x.shape, axis))
    return lambda x, axis: x.reshape(around(x.shape, axis))


@inner_overload(put_along)
def _compiled_put_along(put, y, x, axis):
    if not isinstance(axis, types.BaseTuple | types.NoneType):

        def along_one(put, y, x, axis):
            shape = around(x.shape, axis)
            put(y.reshape(shape), x.reshape(shape))

        return along_one

    def along_several(put, y, x, axis):
        axes = axes_of(x.shape, axis)
        rows = bring_axes(x, axes)
        if _are_neighbours(axes):
            put(y.reshape(rows.shape), rows)
        else:
            out = np.empty(rows.shape, rows.dtype)
            put(out, rows)
            put_back(y, out, axes)

    return along_several


@inner_overload(with_ones)
def _compiled_with_ones(shape, axis):
    if isinstance(axis, types.BaseTuple | types.NoneType):
        return lambda shape, axis: _with_ones(shape, axes_of(shape, axis))
    return lambda shape, axis: with_size(shape, axis, 1)


@inner_overload(axes_of)
def _compiled_axes_of(shape, axis):
    if isinstance(axis, types.NoneType):
        return lambda shape, axis: (1 << len(shape)) - 1
    if not isinstance(axis, types.BaseTuple):
        return lambda shape, axis: _with_axis(0, len(shape), axis)
    if len(axis) == 0:
        return lambda shape, axis: 0

    def of_tuple(shape, axis):
        axes = 0
        for each in axis:
            axes = _with_axis(axes, len(shape), each)
        return axes

    return of_tuple


@inner_njit
def _with_axis(axes, count, axis):
    place = axis + count if axis < 0 else axis
    if place < 0 or place >= count:
        _refuse_axis(axis, count)
    if axes >> place & 1:
        raise FormattedValueError("axis {} is given twice", axis)
    return axes | 1 << place


@inner_njit
def _with_ones(shape, axes):
    for d in range(len(shape)):
        if axes >> d & 1:
            shape = tuple_setitem(shape, d, 1)
    return shape


@inner_njit
def around_axes(shape, axes):
    """Sizes before a set of axes, along it, and after it; axes that are not neighbours have everything else before."""
    before, along, after = 1, 1, 1
    for d, size in enumerate(shape):
        if axes >> d & 1:
            along *= size
        elif axes & (1 << d) - 1:
            after *= size
        else:
            before *= size
    return (before, along, after) if _are_neighbours(axes) else (before * after, along, 1)


@inner_njit
def _are_neighbours(axes):
    return axes + (axes & -axes) & axes == 0  # the sum carries through a run of ones, and leaves later ones


@inner_njit
def _places(shape, axes):
    """Places in memory of the elements that differ from the first along a set of axes, in C order."""
    count, step = 1, 1
    for d, size in enumerate(shape):
        step *= max(size, 1)
        if axes >> d & 1:
            count *= size
    places, each = np.zeros(count, np.int64), count
    for d, size in enumerate(shape):
        step //= max(size, 1)
        if axes >> d & 1 and count > 0:
            each //= size
            for i in range(count):
                places[i] += i // each % size * step
    return places


@inner_njit
def bring_axes(x, axes):
    """Contiguous memory as (before, along, after) a set of axes: a copy unless they are neighbours."""
    shape = around_axes(x.shape, axes)
    if _are_neighbours(axes):
        return x.reshape(shape)
    flat, rows = x.reshape(x.size), np.empty(shape, x.dtype)
    starts, steps = _places(x.shape, ~axes), _places(x.shape, axes)
    for i in range(starts.size):
        for j in range(steps.size):
            rows[i, j, 0] = flat[starts[i] + steps[j]]
    return rows


@inner_njit
def put_back(x, rows, axes):
    """Overwrites the array that `bring_axes` turns into ``rows``."""
    flat, elements = x.reshape(x.size), rows.reshape(rows.size)
    if _are_neighbours(axes):
        overwrite(flat, elements)
        return
    starts, steps = _places(x.shape, ~axes), _places(x.shape, axes)
    for i in range(starts.size):
        for j in range(steps.size):
            flat[starts[i] + steps[j]] = elements[i * steps.size + j]


# Types of arguments, for annotations: Numba finds out its own.

Array: TypeAlias = NDArray[Any]
Axes: TypeAlias = int | tuple[int, ...] | None
