"""Complex arrays as real ones of twice the size, with which real kernels and their rules compute.

A complex number a is a pair, and the product with it a matrix: (Re ab, Im ab) = (Re b, Im b) · ((Re a, Im a), (−Im a,
Re a)). So images have twice as many channels, and filters one such matrix for each element; matrices on the left have
twice as many columns, those on the right twice as many of both. That takes four real products for a complex one, no
more than are in it. Linear maps of such pairs have the adjoints that irad's convention for complex numbers asks for.
"""

from __future__ import annotations

import numpy as np
from numba import types

from irad.frontend.inner import inner_njit, inner_overload
from irad.nn.shapes import with_size


def images(x, groups):
    """Images with the real parts of each group of channels, then the imaginary ones; themselves if they are real."""
    raise NotImplementedError("for compiled code")


def filters(w, groups):
    """Filters for such images, which also are in groups; themselves if they are real."""
    raise NotImplementedError("for compiled code")


def images_like(y, shape, groups, x):
    """The images of a shape of which `images` makes ``y``, in the type of ``x``."""
    raise NotImplementedError("for compiled code")


def filters_like(w, shape, groups, x):
    """The adjoint of `filters` for filters of a shape, in the type of ``x``."""
    raise NotImplementedError("for compiled code")


def parts(x):
    """Number of real numbers that an element is made of."""
    raise NotImplementedError("for compiled code")


@inner_overload(images)
def _compiled_images(x, groups):
    return _pairs if isinstance(x.dtype, types.Complex) else (lambda x, groups: x)


@inner_overload(filters)
def _compiled_filters(w, groups):
    return _matrices if isinstance(w.dtype, types.Complex) else (lambda w, groups: w)


@inner_overload(images_like)
def _compiled_images_like(y, shape, groups, x):
    if not isinstance(x.dtype, types.Complex):
        return lambda y, shape, groups, x: y.reshape(shape)
    return lambda y, shape, groups, x: _joined(y, np.empty(shape, x.dtype), groups)


@inner_overload(filters_like)
def _compiled_filters_like(w, shape, groups, x):
    if not isinstance(x.dtype, types.Complex):
        return lambda w, shape, groups, x: w.reshape(shape)
    return lambda w, shape, groups, x: _joined_filters(w, np.empty(shape, x.dtype), groups)


@inner_overload(parts)
def _compiled_parts(x):
    return (lambda x: 2) if isinstance(x.dtype, types.Complex) else (lambda x: 1)


def _pairs(x, groups):
    y = np.empty(with_size(x.shape, 1, 2 * x.shape[1]), x.real.dtype)
    count = x.shape[0] * groups
    size = x.size // max(count, 1)
    source, target = x.reshape(count, size), y.reshape(count, 2, size)
    for n in range(count):
        for i in range(size):
            target[n, 0, i] = source[n, i].real
            target[n, 1, i] = source[n, i].imag
    return y


@inner_njit
def _joined(y, x, groups):
    count = x.shape[0] * groups
    size = x.size // max(count, 1)
    source, target = y.reshape(count, 2, size), x.reshape(count, size)
    for n in range(count):
        for i in range(size):
            target[n, i] = complex(source[n, 0, i], source[n, 1, i])
    return x


def _matrices(w, groups):
    y = np.empty(with_size(with_size(w.shape, 0, 2 * w.shape[0]), 1, 2 * w.shape[1]), w.real.dtype)
    count = w.shape[0] // groups
    size = w.size // max(w.shape[0], 1)
    source, target = w.reshape(groups, count, size), y.reshape(groups, 2, count, 2 * size)
    for g in range(groups):
        for k in range(count):
            for i in range(size):
                target[g, 0, k, i] = source[g, k, i].real
                target[g, 0, k, size + i] = -source[g, k, i].imag
                target[g, 1, k, i] = source[g, k, i].imag
                target[g, 1, k, size + i] = source[g, k, i].real
    return y


@inner_njit
def _joined_filters(w, x, groups):
    count = x.shape[0] // groups
    size = x.size // max(x.shape[0], 1)
    source, target = w.reshape(groups, 2, count, 2 * size), x.reshape(groups, count, size)
    for g in range(groups):
        for k in range(count):
            for i in range(size):
                real = source[g, 0, k, i] + source[g, 1, k, size + i]
                target[g, k, i] = complex(real, source[g, 1, k, i] - source[g, 0, k, size + i])
    return x


# Matrices. Where memory holds transposes, so it does of the result.


def left_factors(a, is_transposed):
    """Matrices with the imaginary parts on the right of the real ones; themselves if they are real."""
    raise NotImplementedError("for compiled code")


def right_factors(b, is_transposed):
    """Matrices by which `left_factors` are multiplied for the product with these; themselves if they are real."""
    raise NotImplementedError("for compiled code")


def products_like(y, x):
    """The products, in the type of ``x``, that have the imaginary parts on the right of the real ones in ``y``."""
    raise NotImplementedError("for compiled code")


@inner_overload(left_factors)
def _compiled_left_factors(a, is_transposed):
    return _left if isinstance(a.dtype, types.Complex) else (lambda a, is_transposed: a)


@inner_overload(right_factors)
def _compiled_right_factors(b, is_transposed):
    return _right if isinstance(b.dtype, types.Complex) else (lambda b, is_transposed: b)


@inner_overload(products_like)
def _compiled_products_like(y, x):
    return _complex_products if isinstance(x.dtype, types.Complex) else (lambda y, x: y)


def _left(a, is_transposed):
    batch, rows, columns = a.shape
    down, right = (rows, 0) if is_transposed else (0, columns)
    out = np.empty((batch, rows + down, columns + right), a.real.dtype)
    for n in range(batch):
        for i in range(rows):
            for j in range(columns):
                out[n, i, j] = a[n, i, j].real
                out[n, down + i, right + j] = a[n, i, j].imag
    return out


def _right(b, is_transposed):
    batch, rows, columns = b.shape
    sign = -1.0 if is_transposed else 1.0  # of the imaginary parts on the right
    out = np.empty((batch, 2 * rows, 2 * columns), b.real.dtype)
    for n in range(batch):
        for i in range(rows):
            for j in range(columns):
                out[n, i, j] = b[n, i, j].real
                out[n, i, columns + j] = sign * b[n, i, j].imag
                out[n, rows + i, j] = -sign * b[n, i, j].imag
                out[n, rows + i, columns + j] = b[n, i, j].real
    return out


def _complex_products(y, x):
    out = np.empty((y.shape[0], y.shape[1], y.shape[2] // 2), x.dtype)
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            for j in range(out.shape[2]):
                out[n, i, j] = complex(y[n, i, j], y[n, i, out.shape[2] + j])
    return out
