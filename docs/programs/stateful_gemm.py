"""A rule with workspace: c ← alpha·a·b + beta·c, the product of matrices that overwrites c.

The old c is wanted on the way back where beta takes part, and by the policy ``restoring``. It is kept in a slot, as are
the operands where they are overwritten before the reverse sweep, and the products that are added to the shadows. A
derivative so allocates nothing from the second call with the same shapes on.

    leaving     c keeps what the plain call leaves in it
    restoring   on the way back c gets its old content again

With both, the shadow of c holds the cotangent of the new c on the way in and that of the old c on the way out: beta
times as much.

Source: Giles 2008, "Collected matrix derivative results for forward and reverse mode AD", 2.2.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

import irad
from irad.rules import AugmentedReturn, StatefulRule, is_active


class Work(NamedTuple):
    """Buffers of a slot: the old c, a and b, and a product."""

    c: np.ndarray
    a: np.ndarray
    b: np.ndarray
    product: np.ndarray


@njit
def _overlap(x, y):
    """Whether contiguous arrays share memory."""
    return x.ctypes.data < y.ctypes.data + y.nbytes and y.ctypes.data < x.ctypes.data + x.nbytes


@njit
def _gemm(c, a, b, alpha, beta, product):
    if _overlap(c, a) or _overlap(c, b):
        raise ValueError("c shares memory with a or b")
    if beta == 0.0:
        np.dot(a, b, c)
        if alpha != 1.0:
            _scale(c, alpha)
    else:
        np.dot(a, b, product)
        flat, added = c.ravel(), product.ravel()
        for i in range(flat.size):
            flat[i] = alpha * added[i] + beta * flat[i]


@njit
def _copy(destination, source):
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            destination[i * source.shape[1] + j] = source[i, j]


@njit
def _copy_flat(destination, source):
    for i in range(source.size):
        destination[i] = source[i]


@njit
def _scale(c, factor):
    flat = c.ravel()
    for i in range(flat.size):
        flat[i] = flat[i] * factor if factor != 0.0 else 0.0


@njit
def _add_scaled(shadow, product, factor):
    for i in range(shadow.shape[0]):
        for j in range(shadow.shape[1]):
            shadow[i, j] += factor * product[i, j]


@njit
def _inner(x, y):
    total = x.dtype.type(0.0)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * y[i, j]
    return total


def in_place_gemm(restoring):
    """The product with one of the two policies: a function ``gemm(c, a, b, alpha, beta)``.

    The matrices are contiguous and of one type; c shares memory with neither a nor b, which may be the same. Where beta
    is zero the old c is not read, as in BLAS.
    """

    @njit
    def gemm(c, a, b, alpha, beta):
        _gemm(c, a, b, alpha, beta, c if beta == 0.0 else np.empty_like(c))

    @irad.rules.build_rule(gemm, restores=restoring)
    def build(signature):
        dtype = signature.args[0].dtype

        def state():
            return Work(np.empty(0, dtype), np.empty(0, dtype), np.empty(0, dtype), np.empty(0, dtype))

        def augmented_primal(config, slot, c, a, b, alpha, beta):
            m, k, n = a.value.shape[0], a.value.shape[1], b.value.shape[1]
            if slot.product.size < max(m * n, m * k, k * n):
                slot.product = np.empty(max(m * n, m * k, k * n), dtype)
            if restoring or is_active(beta):
                if slot.c.size < m * n:
                    slot.c = np.empty(m * n, dtype)
                _copy_flat(slot.c, c.value.ravel())
            if config.overwritten[1]:
                if slot.a.size < m * k:
                    slot.a = np.empty(m * k, dtype)
                _copy(slot.a, a.value)
            if config.overwritten[2]:
                if slot.b.size < k * n:
                    slot.b = np.empty(k * n, dtype)
                _copy(slot.b, b.value)
            _gemm(c.value, a.value, b.value, alpha.value, beta.value, slot.product[: m * n].reshape(m, n))
            return AugmentedReturn(None, None, None)

        def reverse(config, slot, cotangent, tape, c, a, b, alpha, beta):
            m, k, n = a.value.shape[0], a.value.shape[1], b.value.shape[1]
            dalpha, dbeta = dtype(0.0), dtype(0.0)
            if is_active(c):
                if is_active(a) or is_active(alpha):
                    right = slot.b[: k * n].reshape(k, n) if config.overwritten[2] else b.value
                    product = slot.product[: m * k].reshape(m, k)
                    np.dot(c.shadow, right.T, product)
                    if is_active(alpha):
                        dalpha = _inner(product, slot.a[: m * k].reshape(m, k) if config.overwritten[1] else a.value)
                    if is_active(a):
                        _add_scaled(a.shadow, product, alpha.value)
                if is_active(b):
                    left = slot.a[: m * k].reshape(m, k) if config.overwritten[1] else a.value
                    product = slot.product[: k * n].reshape(k, n)
                    np.dot(left.T, c.shadow, product)
                    _add_scaled(b.shadow, product, alpha.value)
                if is_active(beta):
                    dbeta = _inner(c.shadow, slot.c[: m * n].reshape(m, n))
                _scale(c.shadow, beta.value)
            if restoring:
                _copy_flat(c.value.ravel(), slot.c[: m * n])
            return None, None, None, dalpha, dbeta

        return StatefulRule(augmented_primal, reverse, state)

    return gemm


gemm = in_place_gemm(restoring=False)
gemm_restoring = in_place_gemm(restoring=True)
