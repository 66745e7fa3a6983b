"""The three kernels, which add a convolution or one of its adjoints to an array, and their rules.

x (samples, channels, ·, ·, ·), w (filters, channels of a group, ·, ·, ·), y (samples, filters, ·, ·, ·); settings are
(stride, pad, dilation, groups, flipped): three integers, three pairs in a row, three integers, an integer, a flag.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import irad
from irad.nn.convolution.columns import gather_columns, scatter_columns
from irad.nn.convolution.direct import TO_FILTER, TO_INPUT, TO_OUTPUT, add_direct
from irad.nn.convolution.shifts import add_by_shifts, by_shifts
from irad.nn.shapes import add_to
from irad.rules import AugmentedReturn, is_active

_FEWEST_ROWS = 16  # below, products of matrices gain nothing


@njit
def _is_direct(w):
    return w.shape[1] * w.shape[2] * w.shape[3] * w.shape[4] < _FEWEST_ROWS


@njit(error_model="numpy")
def _add_directly(what, x, w, y, settings):
    stride, pad, dilation, groups, flipped = settings
    inputs, outputs = w.shape[1], w.shape[0] // groups
    for n in range(x.shape[0]):
        for k in range(w.shape[0]):
            for c in range(inputs):
                channel = k // outputs * inputs + c
                add_direct(what, x[n, channel], w[k, c], y[n, k], stride, pad, dilation, flipped)


@njit(error_model="numpy")
def _add_by_columns(what, x, w, y, settings):
    stride, pad, dilation, groups, flipped = settings
    inputs, outputs, taps, out = w.shape[1], w.shape[0] // groups, w.shape[2:], y.shape[2:]
    rows, places = inputs * taps[0] * taps[1] * taps[2], out[0] * out[1] * out[2]
    filters = w.reshape(groups, outputs, rows)
    columns = np.empty((rows, places), x.dtype)
    product = np.empty((outputs, rows) if what == TO_FILTER else (outputs, places), x.dtype)
    for n in range(x.shape[0]):
        for g in range(groups):
            part = x[n, g * inputs : (g + 1) * inputs]
            result = y[n, g * outputs : (g + 1) * outputs].reshape(outputs, places)
            if what == TO_INPUT:
                np.dot(filters[g].T, result, columns)
                scatter_columns(part, columns, taps, out, stride, pad, dilation, flipped)
                continue
            gather_columns(columns, part, taps, out, stride, pad, dilation, flipped)
            if what == TO_OUTPUT:
                np.dot(filters[g], columns, product)
                add_to(result, product)
            else:
                np.dot(result, columns.T, product)
                add_to(filters[g], product)


@njit
def _add(what, x, w, y, settings):
    if by_shifts(w, y.shape[2:], settings):
        add_by_shifts(what, x, w, y, settings)
    elif _is_direct(w):
        _add_directly(what, x, w, y, settings)
    else:
        _add_by_columns(what, x, w, y, settings)


@njit
def add_conv(y, x, w, settings):
    """``y`` += x ∗ w."""
    _add(TO_OUTPUT, x, w, y, settings)


@njit
def add_data(x, y, w, settings):
    """``x`` += adjoint of the convolution by x, of y and w."""
    _add(TO_INPUT, x, w, y, settings)


@njit
def add_filter(w, x, y, settings):
    """``w`` += adjoint of the convolution by w, of x and y."""
    _add(TO_FILTER, x, w, y, settings)


def _register(add, add_to_left, add_to_right):
    """The rule of ``add(total, left, right, settings)``, which adds what is linear in left and in right.

    Args:
        add: it.
        add_to_left: of (left, cotangent of total, right): its adjoint by left.
        add_to_right: of (right, cotangent of total, left): its adjoint by right.
    """

    @irad.rules.augmented_primal(add)
    def augmented(config, total, left, right, settings):
        add(total.value, left.value, right.value, settings.value)
        kept_left = left.value.copy() if config.overwritten[1] and is_active(right) else left.value
        kept_right = right.value.copy() if config.overwritten[2] and is_active(left) else right.value
        return AugmentedReturn(None, None, (kept_left, kept_right))

    @irad.rules.reverse(add)
    def reverse(config, cotangent, tape, total, left, right, settings):
        if is_active(total):
            if is_active(left):
                add_to_left(left.shadow, total.shadow, tape[1], settings.value)
            if is_active(right):
                add_to_right(right.shadow, total.shadow, tape[0], settings.value)
        return None, None, None, None

    @irad.rules.forward(add)
    def forward(config, total, left, right, settings):
        if is_active(total):
            if is_active(left):
                add(total.tangent, left.tangent, right.value, settings.value)
            if is_active(right):
                add(total.tangent, left.value, right.tangent, settings.value)
        add(total.value, left.value, right.value, settings.value)


@njit
def _filter_of(w, cotangent, x, settings):
    add_filter(w, x, cotangent, settings)


@njit
def _output_of_data(y, cotangent, w, settings):
    add_conv(y, cotangent, w, settings)


@njit
def _data_of_filter(x, cotangent, y, settings):
    add_data(x, y, cotangent, settings)


@njit
def _filter_of_data(w, cotangent, y, settings):
    add_filter(w, cotangent, y, settings)


@njit
def _output_of_filter(y, cotangent, x, settings):
    add_conv(y, x, cotangent, settings)


_register(add_conv, add_data, _filter_of)
_register(add_data, _output_of_data, _filter_of_data)
_register(add_filter, _data_of_filter, _output_of_filter)
