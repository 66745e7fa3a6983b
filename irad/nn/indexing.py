"""gather and scatter: rows of an array that indices choose, along its first axis or several of its first axes.

Several axes are one for the kernels, along which the index is the place in C order.

Sums are linear: adding chosen rows (`_add_from`) and adding to chosen rows (`_add_at`) are each other's adjoints. Other
operations are differentiated by *weights*: how much each row of the source, and of the destination, changes the result.
Products leave each factor out in turn, by products of those before it and of those after it, so zeros need no care, and
second derivatives are right, too.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

import irad
from irad.errors import HERE, SignatureError
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedIndexError, FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.operands import dtype_of, floats
from irad.nn.outputs import empty, is_same_memory, require_apart, zeros
from irad.nn.shapes import Array, overwrite
from irad.rules import AugmentedReturn, is_active

_NAMES = ("+", "-", "mean", "*", "/", "max", "min")
_SUBTRACT, _MEAN, _MULTIPLY, _DIVIDE, _MAXIMUM, _MINIMUM = range(1, 7)
_NEUTRAL = (0.0, 0.0, 0.0, 1.0, 1.0, -np.inf, np.inf)


@njit
def gather(src: Array, idx: Array | tuple[Array, ...], out: Array | None = None) -> Array:
    """Rows of an array, as ``src[idx]``.

    Args:
        src: an array of shape (n, …); with several arrays of indices, of shape (n, m, …).
        idx: integers from 0 to n - 1, in an array of any shape; they may repeat. Or a tuple of such arrays, all of one
            shape, for the first axes of ``src``: a row is what is left of it at an index along each of these axes.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array: its shape is that of the indices, followed by that of a row.

    Raises:
        IndexError: an index is out of range; the message names it.
        ValueError: the arrays of indices differ in their shapes.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.gather(np.array([1.0, 2.0, 3.0]), np.array([[2, 0], [2, 2]]))
        array([[3., 1.],
               [3., 3.]])
        >>> irad.nn.gather(np.array([[1.0, 2.0], [3.0, 4.0]]), (np.array([0, 1]), np.array([1, 0])))
        array([2., 3.])
    """
    src = floats("gather", src)
    _require_indices("gather", idx)
    indices, axes = _flat(idx, src.shape), _addressed(idx)
    require_apart(out, src)
    y = zeros("gather", out, _first(idx).shape + _shape_of_row(src.shape, idx), src)
    width = _product(src.shape, axes, len(src.shape))
    _add_from(y.reshape(indices.size, width), src.reshape(_product(src.shape, 0, axes), width), indices)
    return y


@njit
def scatter(
    op: str,
    dst: int | tuple[int, ...] | Array,
    src: Array,
    idx: Array | tuple[Array, ...],
    init: float | None = None,
    out: Array | None = None,
) -> Array:
    """Combines the rows of an array that have the same index.

    Args:
        op: how rows are combined: ``"+"``, ``"-"``, ``"*"``, ``"/"``, ``"max"``, ``"min"`` or ``"mean"``. Rows that are
            equally large share the derivative in equal parts.
        dst: initial rows of shape (n, …), which are not changed; with several arrays of indices, of shape (n, m, …). Or
            n, or (n, m), for new rows: of zeros (of ones for products, of infinities for ``"max"`` and ``"min"``).
            ``"mean"`` adds the mean to them.
        src: rows; the shape is that of the indices, followed by that of a row.
        idx: integers from 0 to n - 1, in an array of any shape. Or a tuple of such arrays, of one shape, for the first
            axes of ``dst``, as in `irad.nn.gather`.
        init: the elements of new rows, in place of those zeros, ones or infinities.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments, unless it is ``dst``; by default a new array.

    Returns:
        ``out``, or a new array, of the shape of the initial rows.

    Raises:
        IndexError: an index is out of range; the message names it.
        ValueError: the operation is unknown, there are not as many rows as indices, or the arrays of indices differ in
            their shapes.
        SignatureError: ``init`` is given although ``dst`` holds rows.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.scatter("+", 3, np.array([1.0, 2.0, 4.0]), np.array([0, 2, 0]))
        array([5., 0., 2.])
        >>> irad.nn.scatter("max", (2, 2), np.array([5.0, 7.0]), (np.array([1, 1]), np.array([0, 0])), init=0.0)
        array([[0., 0.],
               [7., 0.]])
    """
    dst, src = _rows_of(dst, src)
    _require_indices("scatter", idx)
    operation, shape = _operation_of(op), _first(idx).shape
    start = _start(operation, dst, src, idx, init)
    indices, axes = _flat(idx, start.shape), _addressed(idx)
    count, width = _product(start.shape, 0, axes), _product(src.shape, len(shape), len(src.shape))
    _check_rows(src.shape, shape, width, _product(start.shape, axes, len(start.shape)))
    rows = src.reshape(indices.size, width)
    require_apart(out, src)
    if operation > _MEAN:
        folded = _fold(operation, start.reshape(count, width), rows, indices).reshape(start.shape)
        return _written(out, folded)
    total = _written(out, _own(start, dst, out))
    each = total.reshape(count, width)
    if operation == _MEAN:
        _add_at(each, _divided(rows, indices, count), indices, 1.0)
    else:
        _add_at(each, rows, indices, -1.0 if operation == _SUBTRACT else 1.0)
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
def _check_rows(shape, shape_of_indices, width, width_into):
    """Refuses a source without a row for each index, or with rows of another size than those of the destination."""
    rows, indices = _product(shape, 0, len(shape_of_indices)), _product(shape_of_indices, 0, len(shape_of_indices))
    if rows != indices or width != width_into:
        raise FormattedValueError(
            "scatter: {} rows of {} with {} indices, into rows of {}", rows, width, indices, width_into
        )
    for d in range(len(shape_of_indices)):
        if shape[d] != shape_of_indices[d]:
            raise FormattedValueError(
                "scatter: axis {} of the source has size {}, that of the indices {}", d, shape[d], shape_of_indices[d]
            )


# Indices: an array of them for one axis, or a tuple of arrays for several.


def _axes_of(idx):
    """Number of axes of the arrays, and number of axes that they index, by their type."""
    return (idx[0].ndim, len(idx)) if isinstance(idx, types.BaseTuple) else (idx.ndim, 1)


def _require_indices(name, idx):
    raise NotImplementedError("for compiled code")


@inner_overload(_require_indices, prefer_literal=True)
def _compiled_require_indices(name, idx):
    arrays = tuple(idx) if isinstance(idx, types.BaseTuple) else (idx,)
    for each in arrays:
        dtype_of(name.literal_value, each, "iu")
    if not 1 <= len(arrays) <= len(_INTEGERS) or len({each.ndim for each in arrays}) > 1:
        raise SignatureError(
            f"{name.literal_value}: {len(arrays)} arrays of indices with {[each.ndim for each in arrays]} axes",
            f"pass one to {len(_INTEGERS)} arrays of one shape, one for each of the first axes: np.broadcast_arrays(…)",
            "each position has an index along each of these axes",
            HERE,
        )
    return lambda name, idx: None


def _first(idx):
    """The array of indices, or the first of several."""
    raise NotImplementedError("for compiled code")


@inner_overload(_first)
def _compiled_first(idx):
    return (lambda idx: idx[0]) if isinstance(idx, types.BaseTuple) else (lambda idx: idx)


def _addressed(idx):
    """Number of axes that indices are for."""
    raise NotImplementedError("for compiled code")


@inner_overload(_addressed)
def _compiled_addressed(idx):
    count = _axes_of(idx)[1]
    return lambda idx: count


def _shape_of_row(shape, idx):
    """The sizes after those of the axes that indices are for."""
    raise NotImplementedError("for compiled code")


@inner_overload(_shape_of_row)
def _compiled_shape_of_row(shape, idx):
    count = _axes_of(idx)[1]
    return lambda shape, idx: shape[count:]


def _flat(idx, shape):
    """The indices in a row, those along several axes as one index along all of these."""
    raise NotImplementedError("for compiled code")


@inner_overload(_flat)
def _compiled_flat(idx, shape):
    if not isinstance(idx, types.BaseTuple):
        return lambda idx, shape: np.ascontiguousarray(idx).ravel()
    if len(idx) > len(shape):
        raise SignatureError(
            f"indices along {len(idx)} axes of an array with {len(shape)}",
            "pass an array of indices for each of the first axes, and no more",
            "there are more arrays of indices than axes",
            HERE,
        )
    integers = _INTEGERS[len(idx) - 1]
    return lambda idx, shape: _joined(integers(idx), shape)


@inactive_in_irad
@inner_njit
def _in_a_row(idx, shape):
    if idx.shape != shape:
        raise FormattedValueError("arrays of indices of the shapes {} and {}", shape, idx.shape)
    return np.ascontiguousarray(idx).ravel().astype(np.int64)


_INTEGERS = (
    inner_jitable(lambda idx: (_in_a_row(idx[0], idx[0].shape),)),
    inner_jitable(lambda idx: (_in_a_row(idx[0], idx[0].shape), _in_a_row(idx[1], idx[0].shape))),
    inner_jitable(
        lambda idx: (
            _in_a_row(idx[0], idx[0].shape),
            _in_a_row(idx[1], idx[0].shape),
            _in_a_row(idx[2], idx[0].shape),
        )
    ),
)
"""By the number of arrays, since compiled code makes no tuple of several types in a loop."""


@inactive_in_irad
@inner_njit
def _joined(indices, shape):
    """The places of rows in C order."""
    places = np.zeros(indices[0].size, np.int64)
    for d in range(len(indices)):
        for k in range(places.size):
            index = indices[d][k]
            if index < 0 or index >= shape[d]:
                raise FormattedIndexError(
                    "index {} at position {} is out of range for {} rows along axis {}", index, k, shape[d], d
                )
            places[k] = places[k] * shape[d] + index
    return places


# Initial rows.


def _rows_of(dst, src):
    """Both in one type, where the destination is not a number of rows."""
    raise NotImplementedError("for compiled code")


@inner_overload(_rows_of)
def _compiled_rows_of(dst, src):
    if isinstance(dst, types.Integer | types.BaseTuple):
        return lambda dst, src: (dst, floats("scatter", src))
    return lambda dst, src: floats("scatter", dst, src)


def _start(operation, dst, src, idx, init):
    """The initial rows."""
    raise NotImplementedError("for compiled code")


@inner_overload(_start)
def _compiled_start(operation, dst, src, idx, init):
    is_given, (ndim, axes) = not isinstance(init, types.NoneType | types.Omitted), _axes_of(idx)
    is_array = isinstance(dst, types.Array)
    if src.ndim < ndim or (not is_array and (len(dst) if isinstance(dst, types.BaseTuple) else 1) != axes):
        raise SignatureError(
            f"scatter: a source with {src.ndim} axes, indices with {ndim} along {axes} axes, and {dst} as destination",
            "pass a source that begins with the axes of the indices, and a size for each array of indices",
            "each index has a row of the source",
            HERE,
        )
    if is_array:
        if is_given:
            raise SignatureError(
                "scatter: initial rows and init=",
                "(a) pass the number of rows, and init= or (b) pass the rows alone",
                "both say what the rows are before the source is combined with them",
                HERE,
            )
        return lambda operation, dst, src, idx, init: dst
    if is_given:
        return lambda operation, dst, src, idx, init: np.full(_sizes(dst, src.shape, idx), src.dtype.type(init))
    return lambda operation, dst, src, idx, init: np.full(
        _sizes(dst, src.shape, idx), src.dtype.type(_NEUTRAL[operation])
    )


def _sizes(dst, shape, idx):
    """The shape of new rows."""
    raise NotImplementedError("for compiled code")


@inner_overload(_sizes)
def _compiled_sizes(dst, shape, idx):
    count = _axes_of(idx)[0]
    if isinstance(dst, types.BaseTuple):
        return lambda dst, shape, idx: dst + shape[count:]
    return lambda dst, shape, idx: (np.int64(dst),) + shape[count:]  # noqa: RUF005 - Numba


def _own(start, dst, out):
    """A copy where ``start`` may be the caller's array, and is not copied to ``out`` anyway."""
    raise NotImplementedError("for compiled code")


@inner_overload(_own)
def _compiled_own(start, dst, out):
    if isinstance(dst, types.Array) and isinstance(out, types.NoneType):
        return lambda start, dst, out: start.copy()
    return lambda start, dst, out: start


def _written(out, y):
    """The result: ``out``, to which it is written, unless that is None."""
    raise NotImplementedError("for compiled code")


@inner_overload(_written)
def _compiled_written(out, y):
    if isinstance(out, types.NoneType):
        return lambda out, y: y

    def written(out, y):
        target = empty("scatter", out, y.shape, y)
        if not is_same_memory(out, y):
            require_apart(out, y)
            overwrite(target, y)
        return target

    return written


@inner_njit
def _product(shape, first, end):
    """The product of some of the sizes."""
    product = 1
    for d in range(first, end):
        product *= shape[d]
    return product


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
