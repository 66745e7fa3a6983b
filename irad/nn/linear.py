"""The rule of kernels that are linear: the derivative of a linear map is the map, its adjoint the transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

import irad
from irad.frontend.inner import inner_njit
from irad.rules import AugmentedReturn, is_active


def register_linear(add: Any, add_adjoint: Any) -> None:
    """Gives rules to a linear kernel and to its transpose, each by the other.

    Args:
        add: adds A · given to ``total``: a function of (total, given, settings); settings are numbers.
        add_adjoint: adds Aᵀ · total to ``given``: a function of (given, total, settings).
    """
    _register(add, add_adjoint)
    _register(add_adjoint, add)


def _register(add: Any, add_adjoint: Any) -> None:
    @irad.rules.augmented_primal(add)
    def augmented(config, total, given, settings):
        add(total.value, given.value, settings.value)
        return AugmentedReturn(None, None, None)

    @irad.rules.reverse(add)
    def reverse(config, cotangent, tape, total, given, settings):
        if is_active(total) and is_active(given):
            add_adjoint(given.shadow, total.shadow, settings.value)
        return None, None, None

    @irad.rules.forward(add)
    def forward(config, total, given, settings):
        add(total.value, given.value, settings.value)
        if is_active(total) and is_active(given):
            add(total.tangent, given.tangent, settings.value)


# Along one axis, each element of the output is one element of the input or lies between two: a linear map.
#
# Arrays are (before, along, after) contiguous memory; settings are (kind, margin), where margin is how much is padded
# before the input. Padding and upsampling go from axis to axis.

CONSTANT, REPEAT, REFLECT, SYMMETRIC, CIRCULAR, NEAREST, LINEAR, LINEAR_CORNERS = map(np.int64, range(8))
"""Ways to continue the input beyond its ends; or to stretch it: to the nearest element, linearly between the middles
of elements as of cells, linearly so that the first and last elements stay in their places. These are integers of NumPy
since Numba would compile everything once more for each literal."""


@inner_njit(error_model="numpy")
def _source(kind, margin, o, size, size_out):
    """Two elements of the input, −1 for none, and the weight of the second: those that make element ``o``."""
    if kind >= NEAREST:
        return _between(kind, o, size, size_out)
    i = o - margin
    if kind == CIRCULAR:
        i %= size
    elif i < 0:
        i = -1 if kind == CONSTANT else 0 if kind == REPEAT else -i if kind == REFLECT else -i - 1
    elif i >= size:
        beyond = 2 * size - 1 - i
        i = -1 if kind == CONSTANT else size - 1 if kind == REPEAT else beyond - 1 if kind == REFLECT else beyond
    return i, i, 0.0


@inner_njit(error_model="numpy")
def _between(kind, o, size, size_out):
    """In integers, so that no rounding decides which elements these are."""
    if kind == NEAREST:
        i = o * size // size_out
        return i, i, 0.0
    if kind == LINEAR:
        over, under = max((2 * o + 1) * size - size_out, 0), 2 * size_out
    else:
        over, under = o * (size - 1), max(size_out - 1, 1)
    i = over // under
    return i, min(i + 1, size - 1), (over % under) / under


@inner_njit
def _sources(settings, size, size_out):
    first, second, weight = np.empty(size_out, np.int64), np.empty(size_out, np.int64), np.empty(size_out)
    for o in range(size_out):
        first[o], second[o], weight[o] = _source(settings[0], settings[1], o, size, size_out)
    return first, second, weight


@inner_njit(error_model="numpy")
def add_along(y, x, settings):
    """``y`` += the elements of x that it is made of, along the middle axis."""
    first, second, weight = _sources(settings, x.shape[1], y.shape[1])
    for b in range(y.shape[0]):
        for o in range(y.shape[1]):
            i, j, w = first[o], second[o], y.dtype.type(weight[o])
            if i >= 0 and w == 0.0:  # what has no weight is not read: it may be infinite
                for a in range(y.shape[2]):
                    y[b, o, a] += x[b, i, a]
            elif i >= 0:
                rest = y.dtype.type(1.0) - w
                for a in range(y.shape[2]):
                    y[b, o, a] += rest * x[b, i, a] + w * x[b, j, a]


@inner_njit(error_model="numpy")
def add_back(x, y, settings):
    """The transpose: adds each element of y to those elements of x."""
    first, second, weight = _sources(settings, x.shape[1], y.shape[1])
    for b in range(y.shape[0]):
        for o in range(y.shape[1]):
            i, j, w = first[o], second[o], y.dtype.type(weight[o])
            if i >= 0 and w == 0.0:
                for a in range(y.shape[2]):
                    x[b, i, a] += y[b, o, a]
            elif i >= 0:
                rest = y.dtype.type(1.0) - w
                for a in range(y.shape[2]):
                    x[b, i, a] += rest * y[b, o, a]
                    x[b, j, a] += w * y[b, o, a]


register_linear(add_along, add_back)
