"""softmax, logsoftmax, logsumexp along one axis or several, and their rules.

The kernels see (before, along, after). With nothing after the axis its elements are neighbours, and each row is one
vector; otherwise the loops run over what comes after the axis, which then are neighbours.

Infinities are those of SciPy and PyTorch: masked elements, minus infinity, have softmax zero. A row of nothing else, or
one with plus infinity, has softmax NaN; its logsumexp is that infinity, the derivative of which is NaN for infinite
elements and zero for the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import irad
from irad.frontend.inner import inner_njit
from irad.frontend.operands import floats
from irad.nn.outputs import clear, empty, require_apart
from irad.nn.shapes import Array, Axes, add_to, as_rows, bring, from_rows, overwrite, put_along, with_ones
from irad.nn.vector_math import exp_of_negative, inner_product, largest, sum_of
from irad.rules import AugmentedReturn, is_active


@njit
def softmax(x: Array, axis: Axes = -1, out: Array | None = None) -> Array:
    """The exponentials of an array, divided by their sum along an axis; they do not overflow.

    Args:
        x: an array with any number of axes.
        axis: the axis along which the result adds up to one: an integer, a tuple of several, or None for all.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of the shape of ``x``.

    Raises:
        IndexError: the array has no such axis.
        ValueError: an axis is given twice.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.softmax(np.log(np.array([[1.0, 3.0], [2.0, 2.0]])), axis=1).round(6)
        array([[0.25, 0.75],
               [0.5 , 0.5 ]])
        >>> irad.nn.softmax(np.zeros((2, 2)), axis=(0, 1))
        array([[0.25, 0.25],
               [0.25, 0.25]])
    """
    x = floats("softmax", x)
    y = empty("softmax", out, x.shape, x)
    require_apart(out, x)
    put_along(_put_softmax, y, x, axis)
    return y


@njit
def logsoftmax(x: Array, axis: Axes = -1, out: Array | None = None) -> Array:
    """The logarithm of `irad.nn.softmax`, exact also where the softmax rounds to zero.

    Args:
        x: an array with any number of axes.
        axis: the axis along which the exponentials of the result add up to one: an integer, a tuple of several, or None
            for all.
        out: where the result is written to, a contiguous array of its shape and type that shares no memory with the
            arguments; by default a new array.

    Returns:
        ``out``, or a new array, of the shape of ``x``.

    Raises:
        IndexError: the array has no such axis.
        ValueError: an axis is given twice.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.logsoftmax(np.array([0.0, 1000.0]))
        array([-1000.,     0.])
    """
    x = floats("logsoftmax", x)
    y = empty("logsoftmax", out, x.shape, x)
    require_apart(out, x)
    put_along(_put_logsoftmax, y, x, axis)
    return y


@njit
def logsumexp(x: Array, axis: Axes = -1) -> Array:
    """The logarithm of the sum of the exponentials along an axis; it does not overflow.

    Args:
        x: an array with any number of axes.
        axis: the axis of the sum: an integer, a tuple of several, or None for all.

    Returns:
        A new array with as many axes as ``x``, and size one along each axis of the sum.

    Raises:
        IndexError: the array has no such axis.
        ValueError: an axis is given twice.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.logsumexp(np.array([[1000.0, 1000.0]]), axis=1).round(6)
        array([[1000.693147]])
    """
    x = floats("logsumexp", x)
    return _logsumexp(bring(x, axis)).reshape(with_ones(x.shape, axis))


@inner_njit(error_model="numpy")
def _log_of_sum(x, top, total):
    """The logarithm of the sum of exp x, by what `_row_exponentials` returns."""
    if top != np.inf:
        return top + np.log(total)
    for j in range(x.size):  # the largest may be infinite although there is a NaN
        if x[j] != x[j]:
            return x[j]
    return top


@inner_njit(error_model="numpy")
def _row_exponentials(y, x):
    """``y`` = exp(x − max x), and returns max x, or zero where that is minus infinity, and the sum of y."""
    top = largest(x)
    if top == -np.inf:
        top = x.dtype.type(0.0)
    for j in range(x.size):
        y[j] = exp_of_negative(x[j] - top)
    return top, sum_of(y)


@inner_njit
def _softmax(x):
    y = np.empty_like(x)
    _put_softmax(y, x)
    return y


@inner_njit(error_model="numpy")
def _put_softmax(y, x):
    """Overwrites an array, which the reverse sweep so may read again unless the caller has written to it."""
    rows = as_rows(x)
    out = y.reshape(rows.shape) if x.shape[2] == 1 else np.empty_like(rows)
    for i in range(rows.shape[0]):
        _, total = _row_exponentials(out[i], rows[i])
        factor = x.dtype.type(1.0) / total
        for j in range(rows.shape[1]):
            out[i, j] *= factor
    if x.shape[2] != 1:
        overwrite(y, from_rows(out, x.shape))


@inner_njit(error_model="numpy")
def _logsumexp(x):
    rows = as_rows(x)
    work, y = np.empty(rows.shape[1], x.dtype), np.empty(rows.shape[0], x.dtype)
    for i in range(rows.shape[0]):
        top, total = _row_exponentials(work, rows[i])
        y[i] = _log_of_sum(rows[i], top, total)
    return y.reshape(x.shape[0], 1, x.shape[2])


@inner_njit(error_model="numpy")
def _put_logsoftmax(y, x):
    """Overwrites an array, like `_put_softmax`."""
    rows = as_rows(x)
    out = y.reshape(rows.shape) if x.shape[2] == 1 else np.empty_like(rows)
    for i in range(rows.shape[0]):
        top, total = _row_exponentials(out[i], rows[i])
        shift = _log_of_sum(rows[i], top, total)
        for j in range(rows.shape[1]):
            out[i, j] = rows[i, j] - shift
    if x.shape[2] != 1:
        overwrite(y, from_rows(out, x.shape))


@inner_njit(error_model="numpy")
def _slopes(x):
    """The derivative of logsumexp: softmax, but zero beside infinity."""
    y = _softmax(x)
    for i in range(x.shape[0] if x.shape[1] else 0):
        for k in range(x.shape[2]):
            if y[i, 0, k] != y[i, 0, k] and _is_infinite(x[i, :, k]):
                for j in range(x.shape[1]):
                    if x[i, j, k] < np.inf:
                        y[i, j, k] = 0.0
    return y


@inner_njit
def _is_infinite(x):
    """True if the sum of a row is plus infinity."""
    found = False
    for j in range(x.size):
        if x[j] != x[j]:
            return False
        found = found or x[j] == np.inf
    return found


@inner_njit(error_model="numpy")
def _times_jacobian(y, v):
    """``y`` · (v − ⟨y, v⟩) along the middle axis: the Jacobian of softmax, which is symmetric, times v."""
    y_rows, v_rows = as_rows(y), as_rows(v)
    out = np.empty_like(y_rows)
    for i in range(out.shape[0]):
        mean = inner_product(y_rows[i], v_rows[i])
        for j in range(out.shape[1]):
            out[i, j] = y_rows[i, j] * (v_rows[i, j] - mean)
    return from_rows(out, y.shape)


@inner_njit(error_model="numpy")
def _move_times_jacobian(sum_, y, v):
    """Adds that to an array, and clears v: in one pass where rows are neighbours."""
    if y.shape[2] != 1:
        add_to(sum_, _times_jacobian(y, v))
        v[:] = 0.0
        return
    sum_rows, y_rows, v_rows = sum_.reshape(y.shape[:2]), y.reshape(y.shape[:2]), v.reshape(y.shape[:2])
    for i in range(y.shape[0]):
        mean = inner_product(y_rows[i], v_rows[i])
        for j in range(y.shape[1]):
            sum_rows[i, j] += y_rows[i, j] * (v_rows[i, j] - mean)
            v_rows[i, j] = 0.0


@inner_njit
def _sum_of_products(x, y):
    """⟨x, y⟩ along the middle axis, which stays with size one."""
    out = np.zeros((x.shape[0], 1, x.shape[2]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, 0, k] += x[i, j, k] * y[i, j, k]
    return out


@inner_njit
def _sums(x):
    """Sums along the middle axis, which stays with size one."""
    out = np.zeros((x.shape[0], 1, x.shape[2]), x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, 0, k] += x[i, j, k]
    return out


@inner_njit
def _add_scaled(sum_, y, scale):
    """Adds y · scale, where scale has size one along the middle axis."""
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            for k in range(y.shape[2]):
                sum_[i, j, k] += y[i, j, k] * scale[i, 0, k]


@irad.rules.augmented_primal(_put_softmax)
def _softmax_augmented(config, y, x):
    _put_softmax(y.value, x.value)
    return AugmentedReturn(None, None, y.value.copy() if config.overwritten[0] else y.value)


@irad.rules.reverse(_put_softmax)
def _softmax_reverse(config, cotangent, tape, y, x):
    if is_active(y):
        if is_active(x):
            _move_times_jacobian(x.shadow, tape, y.shadow)
        else:
            y.shadow[:] = 0.0
    return None, None


@irad.rules.forward(_put_softmax)
def _softmax_forward(config, y, x):
    _put_softmax(y.value, x.value)
    if is_active(y):
        if is_active(x):
            overwrite(y.tangent, _times_jacobian(y.value, x.tangent))
        else:
            y.tangent[:] = 0.0


@irad.rules.augmented_primal(_put_logsoftmax)
def _logsoftmax_augmented(config, y, x):
    _put_logsoftmax(y.value, x.value)
    return AugmentedReturn(None, None, y.value.copy() if config.overwritten[0] else y.value)


@irad.rules.reverse(_put_logsoftmax)
def _logsoftmax_reverse(config, cotangent, tape, y, x):
    if is_active(y):
        if is_active(x):
            add_to(x.shadow, y.shadow)
            _add_scaled(x.shadow, _softmax(tape), -_sums(y.shadow))
        clear(y.shadow)
    return None, None


@irad.rules.forward(_put_logsoftmax)
def _logsoftmax_forward(config, y, x):
    _put_logsoftmax(y.value, x.value)
    if is_active(y):
        if is_active(x):
            overwrite(y.tangent, x.tangent - _sum_of_products(_softmax(x.value), x.tangent))
        else:
            clear(y.tangent)


@irad.rules.augmented_primal(_logsumexp)
def _logsumexp_augmented(config, x):
    y = _logsumexp(x.value)
    return AugmentedReturn(y, np.zeros_like(y), x.value.copy() if config.overwritten[0] else x.value)


@irad.rules.reverse(_logsumexp)
def _logsumexp_reverse(config, cotangent, tape, x):
    if is_active(x) and is_active(cotangent):
        _add_scaled(x.shadow, _slopes(tape), cotangent)
    return (None,)


@irad.rules.forward(_logsumexp)
def _logsumexp_forward(config, x):
    return _logsumexp(x.value), _sum_of_products(_slopes(x.value), x.tangent)
