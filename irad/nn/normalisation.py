"""Layer, batch, group and instance normalisation.

All are one kernel, which sees (outer, groups, inner): a group, whose mean becomes zero and whose variance one, has
``inner`` neighbours in each of ``outer`` places.

    layer   (1, everything before, the last axes)      group   (1, batch · groups, channels of a group · space)
    batch   (batch, channels, space)

Weights and biases lie like the elements that they belong to: element i of group g has number g · inner + i, modulo
their count. So both kinds, for each channel and for each place, are the same for the kernel.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

import irad
from irad.errors import HERE, SignatureError
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.operands import floats
from irad.nn.shapes import Array
from irad.nn.vector_math import sum_of
from irad.rules import AugmentedReturn, is_active


@njit
def layernorm(
    x: Array, weight: Array | None = None, bias: Array | None = None, axes: int = 1, eps: float = 1e-5
) -> Array:
    """Shifts and scales the last axes of an array to mean zero and variance one; then applies weight and bias.

    Args:
        x: an array with any number of axes.
        weight: factors in the shape of the last ``axes`` axes of ``x``; None for ones.
        bias: summands in the shape of the last ``axes`` axes of ``x``; None for zeros.
        axes: number of last axes that share a mean and a variance.
        eps: a small number that is added to the variance.

    Returns:
        A new array of the shape of ``x``.

    Raises:
        ValueError: ``x`` has fewer axes, or a weight or bias does not fit.

    Source:
        Ba et al.: Layer normalization, 2016.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.layernorm(np.array([[1.0, 3.0], [5.0, 5.0]])).round(3)
        array([[-1.,  1.],
               [ 0.,  0.]])
    """
    x, weight, bias = floats("layernorm", x, weight, bias)
    if axes < 1 or axes > x.ndim:
        _refuse_axes(axes, x.ndim)
    rows, inner = 1, 1
    for d, size in enumerate(x.shape):
        if d < x.ndim - axes:
            rows *= size
        else:
            inner *= size
    each = x.reshape(1, rows, inner)
    return _normalise(each, _each(weight, x, inner, 1, 1.0), _each(bias, x, inner, 1, 0.0), eps)[0].reshape(x.shape)


@njit
def groupnorm(
    x: Array, groups: int, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    """Shifts and scales groups of channels to mean zero and variance one in each sample; then applies weight and bias.

    Args:
        x: an array of shape (batch, channels, …).
        groups: number of groups, which divides the number of channels.
        weight: factors of shape (channels,); None for ones.
        bias: summands of shape (channels,); None for zeros.
        eps: a small number that is added to the variance.

    Returns:
        A new array of the shape of ``x``.

    Raises:
        ValueError: the channels cannot be divided into that many groups, or a weight or bias does not fit.

    Source:
        Wu, He: Group normalization, ECCV 2018.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.groupnorm(np.array([[1.0, 3.0, 7.0, 5.0]]), 2).round(3)
        array([[-1.,  1.,  1., -1.]])
    """
    x, weight, bias = floats("groupnorm", x, weight, bias)
    channels, space = x.shape[1], _space(x.shape)
    if groups < 1 or channels % groups:
        _refuse_groups(channels, groups)
    each = x.reshape(1, x.shape[0] * groups, channels // groups * space)
    weights, biases = _each(weight, x, channels, space, 1.0), _each(bias, x, channels, space, 0.0)
    return _normalise(each, weights, biases, eps)[0].reshape(x.shape)


@njit
def instancenorm(x: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5) -> Array:
    """Shifts and scales each channel of each sample to mean zero and variance one; then applies weight and bias.

    Args:
        x: an array of shape (batch, channels, …).
        weight: factors of shape (channels,); None for ones.
        bias: summands of shape (channels,); None for zeros.
        eps: a small number that is added to the variance.

    Returns:
        A new array of the shape of ``x``.

    Raises:
        ValueError: a weight or bias does not fit.

    Source:
        Ulyanov et al.: Instance normalization, 2016.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.instancenorm(np.array([[[1.0, 3.0], [7.0, 5.0]]]), bias=np.array([0.0, 10.0])).round(3)
        array([[[-1.,  1.],
                [11.,  9.]]])
    """
    x, weight, bias = floats("instancenorm", x, weight, bias)
    return groupnorm(x, x.shape[1], weight, bias, eps)


@njit
def batchnorm(
    x: Array,
    running_mean: Array | None = None,
    running_var: Array | None = None,
    weight: Array | None = None,
    bias: Array | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Array:
    """Shifts and scales channels to mean zero and variance one over batch and space; then applies weight and bias.

    Args:
        x: an array of shape (batch, channels, …).
        running_mean: means of shape (channels,). In training they are updated in place, without a derivative; otherwise
            they are used instead of the means of ``x``. None for neither.
        running_var: variances of shape (channels,), used in the same way and updated with unbiased variances; None
            beside ``running_mean`` for ones.
        weight: factors of shape (channels,); None for ones.
        bias: summands of shape (channels,); None for zeros.
        training: whether mean and variance are those of ``x``; without running ones they always are.
        momentum: share of the new mean and variance in the running ones, from 0 to 1.
        eps: a small number that is added to the variance.

    Returns:
        A new array of the shape of ``x``.

    Raises:
        ValueError: in training, a channel has fewer than two elements; or a weight, bias or running array does not fit.
        SignatureError: in training, the running arrays do not hold floats.

    Source:
        Ioffe, Szegedy: Batch normalization, ICML 2015.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> mean, var = np.zeros(1), np.ones(1)
        >>> irad.nn.batchnorm(np.array([[2.0], [4.0]]), mean, var, training=True).round(3).tolist(), mean, var
        ([[-1.0], [1.0]], array([0.3]), array([1.1]))
    """
    x, weight, bias, means, variances = floats("batchnorm", x, weight, bias, running_mean, running_var)
    channels, space = x.shape[1], _space(x.shape)
    if _uses_own(training, running_mean):
        if x.shape[0] * space < 2:
            _refuse_few(x.shape[0] * space)
        return _in_training(x, space, running_mean, running_var, weight, bias, momentum, eps)
    mean, variance = _each(means, x, channels, 1, 0.0), _each(variances, x, channels, 1, 1.0)
    factor = _each(weight, x, channels, 1, 1.0) / np.sqrt(variance + x.dtype.type(eps))
    shift = _each(bias, x, channels, 1, 0.0) - mean * factor
    return _scaled(x.reshape(x.shape[0], channels, space), factor, shift).reshape(x.shape)


@inner_njit
def _in_training(x, space, running_mean, running_var, weight, bias, momentum, eps):
    batch, channels = x.shape[0], x.shape[1]
    if space == 1:  # the elements of a channel become neighbours
        columns = np.ascontiguousarray(x.reshape(batch, channels).T)
        each = columns.reshape(1, channels, batch)
    else:
        each = x.reshape(batch, channels, space)
    inner = each.shape[2]
    weights, biases = _each(weight, x, channels, inner, 1.0), _each(bias, x, channels, inner, 0.0)
    y, mean, variance = _normalise(each, weights, biases, eps)
    count = batch * space
    # Running statistics are for later calls and no part of the result, so nothing is differentiated through them.
    _move(running_mean, irad.stop_gradient(mean), momentum, 1.0)
    _move(running_var, irad.stop_gradient(variance), momentum, count / (count - 1))
    if space == 1:
        return np.ascontiguousarray(y.reshape(channels, batch).T).reshape(x.shape)
    return y.reshape(x.shape)


@inner_jitable
def _space(shape):
    size = 1
    for d in range(2, len(shape)):
        size *= shape[d]
    return size


def _uses_own(training, running_mean):
    """True if mean and variance are those of the batch."""
    raise NotImplementedError("for compiled code")


@inner_overload(_uses_own)
def _compiled_uses_own(training, running_mean):
    if isinstance(running_mean, types.NoneType | types.Omitted):
        return lambda training, running_mean: True
    return lambda training, running_mean: training


def _move(running, found, momentum, factor):
    """Moves running statistics, if there are any, towards what was found."""
    raise NotImplementedError("for compiled code")


@inner_overload(_move)
def _compiled_move(running, found, momentum, factor):
    if isinstance(running, types.NoneType | types.Omitted):
        return lambda running, found, momentum, factor: None
    if not isinstance(running.dtype, types.Float):
        raise SignatureError(
            f"batchnorm: running statistics of {running.dtype}, which cannot hold the new statistics",
            "pass arrays of float32 or float64",
            "the running mean and variance are overwritten with floats",
            HERE,
        )

    def move(running, found, momentum, factor):
        if running.size != found.size:
            _refuse_size(running.size, found.size)
        for c in range(found.size):
            running[c] += momentum * (factor * found[c] - running[c])

    return move


def _each(values, x, count, repeats, default):
    """``count`` values, each ``repeats`` times in succession; or the default as many times."""
    raise NotImplementedError("for compiled code")


@inner_overload(_each)
def _compiled_each(values, x, count, repeats, default):
    if isinstance(values, types.NoneType | types.Omitted):
        return lambda values, x, count, repeats, default: np.full(count * repeats, x.dtype.type(default))

    def compiled(values, x, count, repeats, default):
        if values.size != count:
            _refuse_size(values.size, count)
        flat = values.reshape(values.size)
        if repeats == 1:
            return flat
        out = np.empty(count * repeats, values.dtype)
        for c in range(count):
            for k in range(repeats):
                out[c * repeats + k] = flat[c]
        return out

    return compiled


@inner_njit
def _refuse_axes(axes, count):
    raise FormattedValueError("layernorm: {} axes of an array with {}", axes, count)


@inner_njit
def _refuse_groups(channels, groups):
    raise FormattedValueError("groupnorm: {} channels cannot be divided into {} groups", channels, groups)


@inner_njit
def _refuse_few(count):
    raise FormattedValueError("batchnorm: {} elements in a channel; in training there must be two or more", count)


@inner_njit
def _refuse_size(size, wanted):
    raise FormattedValueError("{} weights, biases or statistics where there must be {}", size, wanted)


@inner_njit
def _scaled(x, factor, shift):
    """Each channel times its factor plus its shift."""
    y = np.empty_like(x)
    for n in range(x.shape[0]):
        for c in range(x.shape[1]):
            for k in range(x.shape[2]):
                y[n, c, k] = x[n, c, k] * factor[c] + shift[c]
    return y


# ----------------------------------------------------------------------------------------------------------- kernel


@inner_njit(error_model="numpy")
def _mean_of(x, g):
    """The mean of a group; pieces are added up in double precision."""
    total = 0.0
    for o in range(x.shape[0]):
        total += sum_of(x[o, g])
    return x.dtype.type(total / (x.shape[0] * x.shape[2]))


@inner_njit(fastmath={"reassoc"}, error_model="numpy")
def _squares(row, mean):
    total = row.dtype.type(0.0)
    for i in range(row.size):
        total += (row[i] - mean) * (row[i] - mean)
    return total


@inner_njit(error_model="numpy")
def _variance_of(x, g, mean):
    total = 0.0
    for o in range(x.shape[0]):
        total += _squares(x[o, g], mean)
    return x.dtype.type(total / (x.shape[0] * x.shape[2]))


@inner_njit(error_model="numpy")
def _first(g, x, weight):
    """The number of the weight of the first element of a group."""
    return (g * x.shape[2]) % weight.size


@inner_njit(error_model="numpy")
def _normalise(x, weight, bias, eps):
    """The normalised array, the means of the groups and their variances."""
    y, mean, variance = np.empty_like(x), np.empty(x.shape[1], x.dtype), np.empty(x.shape[1], x.dtype)
    for g in range(x.shape[1]):
        mean[g] = _mean_of(x, g)
        variance[g] = _variance_of(x, g, mean[g])
        inverse = x.dtype.type(1.0 / np.sqrt(variance[g] + eps))
        first = _first(g, x, weight)
        for o in range(x.shape[0]):
            source, target = x[o, g], y[o, g]
            factors, shifts = weight[first : first + source.size], bias[first : first + source.size]
            for i in range(source.size):
                target[i] = (source[i] - mean[g]) * inverse * factors[i] + shifts[i]
    return y, mean, variance


@inner_njit(fastmath={"reassoc"}, error_model="numpy")
def _sums(row, cotangent, weights, mean, inverse):
    """Sums over a piece of the cotangents of the normalised elements, and of these times the elements."""
    plain, weighted = row.dtype.type(0.0), row.dtype.type(0.0)
    for i in range(row.size):
        change = cotangent[i] * weights[i]
        plain += change
        weighted += change * (row[i] - mean) * inverse
    return plain, weighted


@inner_njit(error_model="numpy")
def _add_to_parameters(dweight, dbias, cotangent, x, mean, inverse, has_weight, has_bias):
    """Adds the cotangents of weights and of biases."""
    for g in range(x.shape[1]):
        first = (g * x.shape[2]) % dweight.size
        for o in range(x.shape[0]):
            row, change = x[o, g], cotangent[o, g]
            if has_weight:
                weights = dweight[first : first + row.size]
                for i in range(row.size):
                    weights[i] += change[i] * (row[i] - mean[g]) * inverse[g]
            if has_bias:
                biases = dbias[first : first + row.size]
                for i in range(row.size):
                    biases[i] += change[i]


@inner_njit(error_model="numpy")
def _add_to_elements(dx, cotangent, x, weight, mean, inverse):
    """Adds the cotangent of the normalised elements to the one of ``x``."""
    count = x.shape[0] * x.shape[2]
    for g in range(x.shape[1]):
        first, plain, weighted = _first(g, x, weight), 0.0, 0.0
        weights = weight[first : first + x.shape[2]]
        for o in range(x.shape[0]):
            sums = _sums(x[o, g], cotangent[o, g], weights, mean[g], inverse[g])
            plain, weighted = plain + sums[0], weighted + sums[1]
        middle, slope = x.dtype.type(plain / count), x.dtype.type(weighted / count)
        for o in range(x.shape[0]):
            row, change, target = x[o, g], cotangent[o, g], dx[o, g]
            for i in range(row.size):
                place = (row[i] - mean[g]) * inverse[g]
                target[i] += inverse[g] * (change[i] * weights[i] - middle - place * slope)


@inner_njit(error_model="numpy")
def _eps_cotangent(cotangent, x, weight, mean, inverse):
    """Cotangent of ``eps``, which is added to the variances."""
    total = 0.0
    for g in range(x.shape[1]):
        first = _first(g, x, weight)
        for o in range(x.shape[0]):
            weights = weight[first : first + x.shape[2]]
            sums = _sums(x[o, g], cotangent[o, g], weights, mean[g], inverse[g])
            total -= 0.5 * inverse[g] * inverse[g] * sums[1]
    return total


@inner_njit(error_model="numpy")
def _add_statistics_gradient(dx, x, mean, dmean, dvariance):
    """Adds the cotangent that reaches the elements through the means and the variances."""
    part = x.dtype.type(1.0 / (x.shape[0] * x.shape[2]))
    for o in range(x.shape[0]):
        for g in range(x.shape[1]):
            for i in range(x.shape[2]):
                dx[o, g, i] += part * (dmean[g] + 2 * (x[o, g, i] - mean[g]) * dvariance[g])


@irad.rules.augmented_primal(_normalise)
def _normalise_augmented(config, x, weight, bias, eps):
    y, mean, variance = _normalise(x.value, weight.value, bias.value, eps.value)
    inverse = (1.0 / np.sqrt(variance + eps.value)).astype(y.dtype)
    kept = x.value.copy() if config.overwritten[0] else x.value
    weights = weight.value.copy() if config.overwritten[1] else weight.value
    shadows = (np.zeros_like(y), np.zeros_like(mean), np.zeros_like(variance))
    return AugmentedReturn((y, mean, variance), shadows, (kept, weights, mean.copy(), inverse))


@irad.rules.reverse(_normalise)
def _normalise_reverse(config, cotangent, tape, x, weight, bias, eps):
    if is_active(cotangent):
        kept, weights, mean, inverse = tape
        if is_active(x):
            _add_to_elements(x.shadow, cotangent[0], kept, weights, mean, inverse)
            _add_statistics_gradient(x.shadow, kept, mean, cotangent[1], cotangent[2])
        if is_active(weight) or is_active(bias):
            dweight = weight.shadow if is_active(weight) else weights
            dbias = bias.shadow if is_active(bias) else weights
            _add_to_parameters(dweight, dbias, cotangent[0], kept, mean, inverse, is_active(weight), is_active(bias))
        if is_active(eps):
            return None, None, None, _eps_cotangent(cotangent[0], kept, weights, mean, inverse)
    return None, None, None, eps.value * 0.0


irad.rules.forward_from_body(_normalise)
