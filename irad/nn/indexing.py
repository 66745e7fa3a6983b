"""gather and scatter: rows of an array that indices choose.

Sums are linear: adding chosen rows (`_add_from`) and adding to chosen rows (`_add_at`) are each other's adjoints. Other
operations are differentiated by *weights*: how much each row of the source, and of the destination, changes the result.
Products leave each factor out in turn, by products of those before it and of those after it, so zeros need no care, and
second derivatives are right, too.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

import irad
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedIndexError, FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats, require
from irad.nn.shapes import Array, with_size
from irad.rules import AugmentedReturn, is_active

_NAMES = ("+", "-", "mean", "*", "/", "max", "min")
_SUBTRACT, _MEAN, _MULTIPLY, _DIVIDE, _MAXIMUM, _MINIMUM = range(1, 7)
_NEUTRAL = (0.0, 0.0, 0.0, 1.0, 1.0, -np.inf, np.inf)


@njit
def gather(src: Array, idx: Array) -> Array:
    """Rows of an array, as ``src[idx]``.

    Args:
        src: an array of shape (n, …).
        idx: integers from 0 to n - 1, in an array of any shape; they may repeat.

    Returns:
        A new array of shape ``idx.shape + src.shape[1:]``.

    Raises:
        IndexError: an index is out of range; the message names it.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.gather(np.array([1.0, 2.0, 3.0]), np.array([[2, 0], [2, 2]]))
        array([[3., 1.],
               [3., 3.]])
    """
    src = floats("gather", src)
    require("gather", "iu", idx)
    indices = np.ascontiguousarray(idx).ravel()
    out = np.zeros(idx.shape + src.shape[1:], src.dtype)
    width = _width(src.shape)
    _add_from(out.reshape(indices.size, width), src.reshape(src.shape[0], width), indices)
    return out


@njit
def scatter(op: str, dst: int | Array, src: Array, idx: Array) -> Array:
    """Combines the rows of an array that have the same index.

    Args:
        op: how rows are combined: ``"+"``, ``"-"``, ``"*"``, ``"/"``, ``"max"``, ``"min"`` or ``"mean"``. Rows that are
            equally large share the derivative in equal parts.
        dst: initial rows of shape (n, …), which are not changed; or n, for rows of zeros (of ones for products, of
            infinities for ``"max"`` and ``"min"``). ``"mean"`` adds the mean to them.
        src: rows of shape (m, …).
        idx: m integers from 0 to n - 1.

    Returns:
        A new array of shape (n, …).

    Raises:
        IndexError: an index is out of range; the message names it.
        ValueError: the operation is unknown, or there are not as many rows as indices.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.scatter("+", 3, np.array([1.0, 2.0, 4.0]), np.array([0, 2, 0]))
        array([5., 0., 2.])
    """
    dst, src = _rows_of(dst, src)
    require("scatter", "iu", idx)
    operation = _operation_of(op)
    width, indices = _width(src.shape), np.ascontiguousarray(idx).ravel()
    rows = src.reshape(src.shape[0], width)
    if operation > _MEAN:
        start = _start(operation, dst, src)
        _check_rows(src.shape[0], width, indices.size, _width(start.shape))
        return _fold(operation, start.reshape(start.shape[0], width), rows, indices).reshape(start.shape)
    total = _own(_start(operation, dst, src), dst)
    _check_rows(src.shape[0], width, indices.size, _width(total.shape))
    out = total.reshape(total.shape[0], width)
    if operation == _MEAN:
        _add_at(out, _divided(rows, indices, out.shape[0]), indices, 1.0)
    else:
        _add_at(out, rows, indices, -1.0 if operation == _SUBTRACT else 1.0)
    return total


@inactive_in_irad
@inner_njit
def _operation_of(op):
    """The number of an operation; comparing strings is nothing to differentiate."""
    for number in range(len(_NAMES)):
        if op == _NAMES[number]:
            return number
    raise FormattedValueError("scatter: {} is none of + - mean * / max min", op)


@inactive_in_irad
@inner_njit
def _check_rows(rows, width, indices, width_into):
    if rows != indices or width != width_into:
        raise FormattedValueError(
            "scatter: {} rows of {} with {} indices, into rows of {}", rows, width, indices, width_into
        )


def _rows_of(dst, src):
    """Both in one type, where the destination is not a number of rows."""
    raise NotImplementedError("for compiled code")


@inner_overload(_rows_of)
def _compiled_rows_of(dst, src):
    if isinstance(dst, types.Integer):
        return lambda dst, src: (dst, floats("scatter", src))
    return lambda dst, src: floats("scatter", dst, src)


def _start(operation, dst, src):
    raise NotImplementedError("for compiled code")


@inner_overload(_start)
def _compiled_start(operation, dst, src):
    if isinstance(dst, types.Array):
        return lambda operation, dst, src: dst
    return lambda operation, dst, src: np.full(with_size(src.shape, 0, dst), src.dtype.type(_NEUTRAL[operation]))


def _own(start, dst):
    """A copy where ``start`` may be the caller's array."""
    raise NotImplementedError("for compiled code")


@inner_overload(_own)
def _compiled_own(start, dst):
    return (lambda start, dst: start.copy()) if isinstance(dst, types.Array) else (lambda start, dst: start)


@inner_njit
def _width(shape):
    """The size of a row."""
    width = 1
    for d in range(1, len(shape)):
        width *= shape[d]
    return width


@inner_njit
def _check(indices, count):
    for k in range(indices.size):
        if indices[k] < 0 or indices[k] >= count:
            raise FormattedIndexError("index {} at position {} is out of range for {} rows", indices[k], k, count)


@inner_njit
def _divided(rows, indices, count):
    """Rows, each divided by how many have its index."""
    _check(indices, count)
    counts, out = np.zeros(count, np.int64), np.empty_like(rows)
    for k in range(indices.size):
        counts[indices[k]] += 1
    for k in range(indices.size):
        for j in range(rows.shape[1]):
            out[k, j] = rows[k, j] / counts[indices[k]]
    return out


# ------------------------------------------------------------------------------------------------------------- sums


@inner_njit
def _add_from(out, src, indices):
    """``out[k] += src[indices[k]]``."""
    _check(indices, src.shape[0])
    for k in range(indices.size):
        row = indices[k]
        for j in range(out.shape[1]):
            out[k, j] += src[row, j]


@inner_njit
def _add_at(out, src, indices, factor):
    """``out[indices[k]] += factor · src[k]``."""
    _check(indices, out.shape[0])
    scale = out.dtype.type(factor)
    for k in range(indices.size):
        row = indices[k]
        for j in range(src.shape[1]):
            out[row, j] += scale * src[k, j]


@inner_njit
def _add_scaled_from(out, src, indices, factor):
    if factor == 1.0:
        _add_from(out, src, indices)
    else:
        change = np.zeros_like(out)
        _add_from(change, src, indices)
        for k in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[k, j] += out.dtype.type(factor) * change[k, j]


@irad.rules.augmented_primal(_add_from)
def _add_from_augmented(config, out, src, indices):
    _add_from(out.value, src.value, indices.value)
    return AugmentedReturn(None, None, indices.value.copy() if config.overwritten[2] else indices.value)


@irad.rules.reverse(_add_from)
def _add_from_reverse(config, cotangent, tape, out, src, indices):
    if is_active(out) and is_active(src):
        _add_at(src.shadow, out.shadow, tape, 1.0)
    return None, None, None


@irad.rules.forward(_add_from)
def _add_from_forward(config, out, src, indices):
    _add_from(out.value, src.value, indices.value)
    if is_active(out) and is_active(src):
        _add_from(out.tangent, src.tangent, indices.value)


@irad.rules.augmented_primal(_add_at)
def _add_at_augmented(config, out, src, indices, factor):
    _add_at(out.value, src.value, indices.value, factor.value)
    return AugmentedReturn(None, None, indices.value.copy() if config.overwritten[2] else indices.value)


@irad.rules.reverse(_add_at)
def _add_at_reverse(config, cotangent, tape, out, src, indices, factor):
    if is_active(out) and is_active(src):
        _add_scaled_from(src.shadow, out.shadow, tape, factor.value)
    return None, None, None, None


@irad.rules.forward(_add_at)
def _add_at_forward(config, out, src, indices, factor):
    _add_at(out.value, src.value, indices.value, factor.value)
    if is_active(out) and is_active(src):
        _add_at(out.tangent, src.tangent, indices.value, factor.value)


irad.rules.inactive_arg(_add_at, "factor")


# ------------------------------------------------------------------------------------------------- other operations


@inner_njit(error_model="numpy")
def _fold(op, dst, src, indices):
    """The destination with all rows of the source multiplied in, or the largest, …: a new array."""
    _check(indices, dst.shape[0])
    out = dst.copy()
    for k in range(indices.size):
        row = indices[k]
        for j in range(src.shape[1]):
            x, y = out[row, j], src[k, j]
            if op == _MULTIPLY:
                out[row, j] = x * y
            elif op == _DIVIDE:
                out[row, j] = x / y
            elif op == _MAXIMUM:
                out[row, j] = x if x > y or x != x else y
            else:
                out[row, j] = x if x < y or x != x else y
    return out


@inner_njit(error_model="numpy")
def _weights(op, dst, src, indices, of_dst, of_src):
    """The derivatives of each element of the result by what it is made of: of the destination, and of the source.

    What is not asked for is returned without having been filled.
    """
    if op == _MULTIPLY:
        return _weights_of_product(dst, src, indices, of_src)
    if op == _DIVIDE:
        return _weights_of_quotient(dst, src, indices, of_src)
    return _weights_of_extremum(_fold(op, dst, src, indices), dst, src, indices, of_dst, of_src)


@inner_njit(error_model="numpy")
def _weights_of_product(dst, src, indices, of_src):
    d_src, after = np.empty_like(src), np.ones_like(dst)
    if of_src:
        before = dst.copy()
        for k in range(indices.size):
            for j in range(src.shape[1]):
                d_src[k, j] = before[indices[k], j]
                before[indices[k], j] *= src[k, j]
    for k in range(indices.size - 1, -1, -1):
        for j in range(src.shape[1]):
            if of_src:
                d_src[k, j] *= after[indices[k], j]
            after[indices[k], j] *= src[k, j]
    return after, d_src


@inner_njit(error_model="numpy")
def _weights_of_quotient(dst, src, indices, of_src):
    d_src, divisor = np.empty_like(src), np.ones_like(dst)
    for k in range(indices.size):
        for j in range(src.shape[1]):
            divisor[indices[k], j] *= src[k, j]
    if of_src:
        for k in range(indices.size):
            for j in range(src.shape[1]):
                d_src[k, j] = -dst[indices[k], j] / divisor[indices[k], j] / src[k, j]
    return dst.dtype.type(1.0) / divisor, d_src


@inner_njit(error_model="numpy")
def _weights_of_extremum(out, dst, src, indices, of_dst, of_src):
    d_dst, d_src = np.zeros_like(dst), np.zeros_like(src)
    counts = np.zeros(dst.shape, np.int64)
    for i in range(dst.shape[0]):
        for j in range(dst.shape[1]):
            counts[i, j] += dst[i, j] == out[i, j]
    for k in range(indices.size):
        for j in range(src.shape[1]):
            counts[indices[k], j] += src[k, j] == out[indices[k], j]
    if of_dst:
        for i in range(dst.shape[0]):
            for j in range(dst.shape[1]):
                if dst[i, j] == out[i, j]:
                    d_dst[i, j] = 1.0 / counts[i, j]
    if of_src:
        for k in range(indices.size):
            for j in range(src.shape[1]):
                if src[k, j] == out[indices[k], j]:
                    d_src[k, j] = 1.0 / counts[indices[k], j]
    return d_dst, d_src


@irad.rules.augmented_primal(_fold)
def _fold_augmented(config, op, dst, src, indices):
    out = _fold(op.value, dst.value, src.value, indices.value)
    kept_dst = dst.value.copy() if config.overwritten[1] else dst.value
    kept_src = src.value.copy() if config.overwritten[2] else src.value
    kept_indices = indices.value.copy() if config.overwritten[3] else indices.value
    return AugmentedReturn(out, np.zeros_like(out), (kept_dst, kept_src, kept_indices))


@irad.rules.reverse(_fold)
def _fold_reverse(config, cotangent, tape, op, dst, src, indices):
    if is_active(cotangent):
        d_dst, d_src = _weights(op.value, tape[0], tape[1], tape[2], is_active(dst), is_active(src))
        if is_active(dst):
            dst.shadow[:] += cotangent * d_dst
        if is_active(src):
            for k in range(tape[2].size):
                for j in range(d_src.shape[1]):
                    src.shadow[k, j] += cotangent[tape[2][k], j] * d_src[k, j]
    return None, None, None, None


@irad.rules.forward(_fold)
def _fold_forward(config, op, dst, src, indices):
    out = _fold(op.value, dst.value, src.value, indices.value)
    of_dst, of_src = is_active(dst), is_active(src)
    d_dst, d_src = _weights(op.value, dst.value, src.value, indices.value, of_dst, of_src)
    tangent = np.zeros_like(out)
    if is_active(dst):
        tangent += d_dst * dst.tangent
    if is_active(src):
        _add_at(tangent, d_src * src.tangent, indices.value, 1.0)
    return out, tangent
