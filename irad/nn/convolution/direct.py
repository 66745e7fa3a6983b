"""One channel of input, one of output, by a loop over the filter: where matrices would be small."""

from __future__ import annotations

from numba import njit

from irad.nn.convolution.geometry import shift_of, valid
from irad.nn.vector_math import inner_product

TO_OUTPUT, TO_INPUT, TO_FILTER = 0, 1, 2


@njit(error_model="numpy")
def add_direct(what, x, w, y, stride, pad, dilation, flipped):
    """``y`` += x ∗ w, or the adjoint by x, or that by w; each of three axes."""
    for t0 in range(w.shape[0]):
        s0 = shift_of(t0, w.shape[0], dilation[0], pad[0], flipped)
        lo0, hi0 = valid(s0, stride[0], x.shape[0], y.shape[0])
        for t1 in range(w.shape[1]):
            s1 = shift_of(t1, w.shape[1], dilation[1], pad[2], flipped)
            lo1, hi1 = valid(s1, stride[1], x.shape[1], y.shape[1])
            for t2 in range(w.shape[2]):
                s2 = shift_of(t2, w.shape[2], dilation[2], pad[4], flipped)
                lo, hi = valid(s2, stride[2], x.shape[2], y.shape[2])
                total = w.dtype.type(0.0)
                for o0 in range(lo0, hi0):
                    for o1 in range(lo1, hi1):
                        start, end = lo * stride[2] + s2, (hi - 1) * stride[2] + s2 + 1
                        inputs = x[o0 * stride[0] + s0, o1 * stride[1] + s1, start : max(start, end) : stride[2]]
                        total += _add_row(what, inputs, w[t0, t1, t2], y[o0, o1, lo:hi])
                if what == TO_FILTER:
                    w[t0, t1, t2] += total


@njit(error_model="numpy")
def _add_row(what, x, w, y):
    """One row; returns what is to be added to w."""
    if what == TO_FILTER:
        return inner_product(x, y)
    if what == TO_OUTPUT:
        for i in range(y.size):
            y[i] += w * x[i]
    else:
        for i in range(y.size):
            x[i] += w * y[i]
    return x.dtype.type(0.0)
