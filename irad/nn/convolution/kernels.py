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
from irad.frontend.inner import inner_jitable, inner_njit
from irad.nn.convolution.tiled import add_filters, add_images, room_of_tiles
from irad.rules import AugmentedReturn, StatefulRule, is_active


@inner_jitable(error_model="numpy")
def _enough(room, w, y, settings):
    """The given working memory, or new one if it is too small."""
    size = room_of_tiles(w, y.shape, settings)
    return room if room.size >= size else np.empty(size, room.dtype)


@inner_jitable
def _lent(slot, size):
    """``size`` numbers that are kept in a slot, with any content; none in a derivative that is differentiated."""
    if irad.within_autodiff():
        return np.empty(0, slot.state.dtype)
    if slot.state.size < size:
        slot.state = np.empty(size, slot.state.dtype)
    return slot.state


@inner_njit(error_model="numpy")
def add_conv(y, x, w, settings, room):
    """``y`` += x ∗ w."""
    add_images(False, y, x, w, y.shape, settings, _enough(room, w, y, settings))


@inner_njit(error_model="numpy")
def add_data(x, y, w, settings, room):
    """``x`` += adjoint of the convolution with respect to x, from y and w."""
    add_images(True, x, y, w, y.shape, settings, _enough(room, w, y, settings))


@inner_njit(error_model="numpy")
def add_filter(w, x, y, settings, room):
    """``w`` += adjoint of the convolution with respect to w, from x and y."""
    add_filters(w, x, y, settings, _enough(room, w, y, settings))


def _register(add, room_of, add_to_left, add_to_right):
    """The rule of ``add(total, left, right, settings, room)``, which adds what is linear in left and in right.

    Args:
        add: it.
        room_of: of (total, left, right, settings): how many numbers the three kernels work in.
        add_to_left: of (left, cotangent of total, right): its adjoint with respect to left.
        add_to_right: of (right, cotangent of total, left): its adjoint with respect to right.
    """

    def augmented_primal(config, slot, total, left, right, settings, room):
        lent = _lent(slot, room_of(total.value, left.value, right.value, settings.value))
        add(total.value, left.value, right.value, settings.value, lent)
        # Each factor is read for the other's cotangent only, so that one which is overwritten and read is copied.
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


@inner_njit
def _filter_of(w, cotangent, x, settings, room):
    add_filter(w, x, cotangent, settings, room)


@inner_njit
def _output_of_data(y, cotangent, w, settings, room):
    add_conv(y, cotangent, w, settings, room)


@inner_njit
def _data_of_filter(x, cotangent, y, settings, room):
    add_data(x, y, cotangent, settings, room)


@inner_njit
def _filter_of_data(w, cotangent, y, settings, room):
    add_filter(w, cotangent, y, settings, room)


@inner_njit
def _output_of_filter(y, cotangent, x, settings, room):
    add_conv(y, x, cotangent, settings, room)


_register(add_conv, njit(lambda y, x, w, settings: room_of_tiles(w, y.shape, settings)), add_data, _filter_of)
_register(
    add_data, njit(lambda x, y, w, settings: room_of_tiles(w, y.shape, settings)), _output_of_data, _filter_of_data
)
_register(
    add_filter, njit(lambda w, x, y, settings: room_of_tiles(w, y.shape, settings)), _data_of_filter, _output_of_filter
)
