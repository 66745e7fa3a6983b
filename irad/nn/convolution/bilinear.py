"""The three kernels, which add a convolution or one of its adjoints to an array, and their rules.

A rule owns the memory in which its kernels work: it lies in a slot, so from the second call of a derivative on nothing
is allocated. Where a derivative is differentiated again, its slots are not used: they end with it, before the reverse
sweep of the second one, whose rules have slots of their own. What is saved carries derivatives, so it goes on the tape.

x (samples, channels, ·, ·, ·), w (filters, channels of a group, ·, ·, ·), y (samples, filters, ·, ·, ·); settings are
(stride, pad, dilation, groups, flipped): three integers, three pairs in a row, three integers, an integer, a flag;
room is memory to work in, in place of which new memory is used if it is too small.
"""

from __future__ import annotations

import numpy as np
from numba import njit

import irad
from irad.nn.convolution.columns import add_by_columns, room_of_columns
from irad.nn.convolution.direct import TO_FILTER, TO_INPUT, TO_OUTPUT, add_direct
from irad.nn.convolution.shifts import add_by_shifts, by_shifts, room_of_shifts
from irad.rules import AugmentedReturn, StatefulRule, is_active

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


@njit
def _room_of(w, y, settings):
    """How many numbers the kernels work in."""
    if by_shifts(w, y.shape[2:], settings):
        return room_of_shifts(w, y.shape[2:], settings)
    return 0 if _is_direct(w) else room_of_columns(w, y.shape[2:], settings)


@njit
def _add(what, x, w, y, settings, room):
    size = _room_of(w, y, settings)
    enough = room if room.size >= size else np.empty(size, room.dtype)
    if by_shifts(w, y.shape[2:], settings):
        add_by_shifts(what, x, w, y, settings, enough)
    elif _is_direct(w):
        _add_directly(what, x, w, y, settings)
    else:
        add_by_columns(what, x, w, y, settings, enough)


@njit
def _lent(slot, size):
    """So many numbers that are kept in a slot, with any content; none in a derivative that is differentiated."""
    if irad.within_autodiff():
        return np.empty(0, slot.state.dtype)
    if slot.state.size < size:
        slot.state = np.empty(size, slot.state.dtype)
    return slot.state


@njit
def add_conv(y, x, w, settings, room):
    """``y`` += x ∗ w."""
    _add(TO_OUTPUT, x, w, y, settings, room)


@njit
def add_data(x, y, w, settings, room):
    """``x`` += adjoint of the convolution by x, of y and w."""
    _add(TO_INPUT, x, w, y, settings, room)


@njit
def add_filter(w, x, y, settings, room):
    """``w`` += adjoint of the convolution by w, of x and y."""
    _add(TO_FILTER, x, w, y, settings, room)


def _register(add, room_of, add_to_left, add_to_right):
    """The rule of ``add(total, left, right, settings, room)``, which adds what is linear in left and in right.

    Args:
        add: it.
        room_of: of (total, left, right, settings): how many numbers the three kernels work in.
        add_to_left: of (left, cotangent of total, right): its adjoint by left.
        add_to_right: of (right, cotangent of total, left): its adjoint by right.
    """

    def augmented_primal(config, slot, total, left, right, settings, room):
        lent = _lent(slot, room_of(total.value, left.value, right.value, settings.value))
        add(total.value, left.value, right.value, settings.value, lent)
        kept_left = left.value.copy() if config.overwritten[1] and is_active(right) else left.value
        kept_right = right.value.copy() if config.overwritten[2] and is_active(left) else right.value
        return AugmentedReturn(None, None, (kept_left, kept_right))

    def reverse(config, slot, cotangent, tape, total, left, right, settings, room):
        lent = _lent(slot, 0)
        if is_active(total):
            if is_active(left):
                add_to_left(left.shadow, total.shadow, tape[1], settings.value, lent)
            if is_active(right):
                add_to_right(right.shadow, total.shadow, tape[0], settings.value, lent)
        return None, None, None, None, None

    def forward(config, slot, total, left, right, settings, room):
        lent = _lent(slot, room_of(total.value, left.value, right.value, settings.value))
        if is_active(total):
            if is_active(left):
                add(total.tangent, left.tangent, right.value, settings.value, lent)
            if is_active(right):
                add(total.tangent, left.value, right.tangent, settings.value, lent)
        add(total.value, left.value, right.value, settings.value, lent)

    @irad.rules.build_rule(add)
    def build(signature):
        dtype = signature.args[0].dtype
        return StatefulRule(augmented_primal, reverse, lambda: np.empty(0, dtype), forward)


@njit
def _filter_of(w, cotangent, x, settings, room):
    add_filter(w, x, cotangent, settings, room)


@njit
def _output_of_data(y, cotangent, w, settings, room):
    add_conv(y, cotangent, w, settings, room)


@njit
def _data_of_filter(x, cotangent, y, settings, room):
    add_data(x, y, cotangent, settings, room)


@njit
def _filter_of_data(w, cotangent, y, settings, room):
    add_filter(w, cotangent, y, settings, room)


@njit
def _output_of_filter(y, cotangent, x, settings, room):
    add_conv(y, x, cotangent, settings, room)


_register(add_conv, njit(lambda y, x, w, settings: _room_of(w, y, settings)), add_data, _filter_of)
_register(add_data, njit(lambda x, y, w, settings: _room_of(w, y, settings)), _output_of_data, _filter_of_data)
_register(add_filter, njit(lambda w, x, y, settings: _room_of(w, y, settings)), _data_of_filter, _output_of_filter)
