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
from irad.nn.convolution.geometry import shift_of, valid
from irad.nn.products import gemm
from irad.nn.shapes import add_to
from irad.nn.vector_math import inner_product
from irad.rules import AugmentedReturn, StatefulRule, is_active

# One channel of input, one of output, by a loop over the filter: where matrices would be small.

TO_OUTPUT, TO_INPUT, TO_FILTER = 0, 1, 2


@inner_jitable(error_model="numpy")
def add_direct(what, x, w, y, stride, pad, dilation, flipped):
    """``y`` += x ∗ w, or its adjoint with respect to x or w; each of three axes."""
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
                        outputs = y[o0, o1, lo:hi]
                        if what == TO_OUTPUT:
                            _add_scaled(outputs, w[t0, t1, t2], inputs)
                        elif what == TO_INPUT:
                            _add_scaled(inputs, w[t0, t1, t2], outputs)
                        else:
                            total += inner_product(inputs, outputs)
                if what == TO_FILTER:
                    w[t0, t1, t2] += total


@inner_jitable(error_model="numpy")
def _add_scaled(total, scale, row):
    for i in range(total.size):
        total[i] += scale * row[i]


# One sample and one group by products of matrices: im2col.
#
# The matrix of columns has a row for each channel and element of the filter, and a column for each output.


@inner_jitable
def room_of_columns(w, out, settings):
    """Size of the working memory of `add_by_columns` in numbers: columns, and a product of either kind."""
    outputs, rows, places = w.shape[0] // settings[3], _rows(w), out[0] * out[1] * out[2]
    return rows * places + outputs * max(rows, places)


@inner_jitable
def _rows(w):
    return w.shape[1] * w.shape[2] * w.shape[3] * w.shape[4]


@inner_jitable(error_model="numpy")
def add_by_columns(what, x, w, y, settings, room):
    """``y`` += x ∗ w, or its adjoint with respect to x or w; images (samples, channels, ·, ·, ·)."""
    stride, pad, dilation, groups, flipped = settings
    inputs, outputs, taps, out = w.shape[1], w.shape[0] // groups, w.shape[2:], y.shape[2:]
    rows, places = _rows(w), out[0] * out[1] * out[2]
    filters = w.reshape(groups, outputs, rows)
    columns = room[: rows * places].reshape(rows, places)
    length = rows if what == TO_FILTER else places
    product = room[rows * places : rows * places + outputs * length].reshape(outputs, length)
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


@inner_jitable(error_model="numpy")
def gather_columns(columns, x, taps, out, stride, pad, dilation, flipped):
    """Fills the matrix of columns from an input (channels, ·, ·, ·); zero where there is padding."""
    row = 0
    for c in range(x.shape[0]):
        for t0 in range(taps[0]):
            s0 = shift_of(t0, taps[0], dilation[0], pad[0], flipped)
            for t1 in range(taps[1]):
                s1 = shift_of(t1, taps[1], dilation[1], pad[2], flipped)
                for t2 in range(taps[2]):
                    s2 = shift_of(t2, taps[2], dilation[2], pad[4], flipped)
                    _gather_row(columns[row], x[c], s0, s1, s2, out, stride)
                    row += 1


@inner_jitable(error_model="numpy")
def _gather_row(row, x, s0, s1, s2, out, stride):
    lo, hi = valid(s2, stride[2], x.shape[2], out[2])
    place = 0
    for o0 in range(out[0]):
        i0 = o0 * stride[0] + s0
        for o1 in range(out[1]):
            i1 = o1 * stride[1] + s1
            if i0 < 0 or i0 >= x.shape[0] or i1 < 0 or i1 >= x.shape[1]:
                row[place : place + out[2]] = 0.0
            else:
                row[place : place + lo] = 0.0
                if stride[2] == 1:
                    for o2 in range(lo, hi):
                        row[place + o2] = x[i0, i1, o2 + s2]
                else:
                    for o2 in range(lo, hi):
                        row[place + o2] = x[i0, i1, o2 * stride[2] + s2]
                row[place + hi : place + out[2]] = 0.0
            place += out[2]


@inner_jitable(error_model="numpy")
def scatter_columns(x, columns, taps, out, stride, pad, dilation, flipped):
    """Adds a matrix of columns to the elements of the input that they were made of."""
    row = 0
    for c in range(x.shape[0]):
        for t0 in range(taps[0]):
            s0 = shift_of(t0, taps[0], dilation[0], pad[0], flipped)
            for t1 in range(taps[1]):
                s1 = shift_of(t1, taps[1], dilation[1], pad[2], flipped)
                for t2 in range(taps[2]):
                    s2 = shift_of(t2, taps[2], dilation[2], pad[4], flipped)
                    _scatter_row(x[c], columns[row], s0, s1, s2, out, stride)
                    row += 1


@inner_jitable(error_model="numpy")
def _scatter_row(x, row, s0, s1, s2, out, stride):
    lo, hi = valid(s2, stride[2], x.shape[2], out[2])
    lo0, hi0 = valid(s0, stride[0], x.shape[0], out[0])
    lo1, hi1 = valid(s1, stride[1], x.shape[1], out[1])
    for o0 in range(lo0, hi0):
        for o1 in range(lo1, hi1):
            target, place = x[o0 * stride[0] + s0, o1 * stride[1] + s1], (o0 * out[1] + o1) * out[2]
            if stride[2] == 1:
                for o2 in range(lo, hi):
                    target[o2 + s2] += row[place + o2]
            else:
                for o2 in range(lo, hi):
                    target[o2 * stride[2] + s2] += row[place + o2]


# By products of matrices on padded images, without columns: for stride one, where channels are many.
#
# With stride one the input that an element of the filter meets lies, for all outputs, at one distance in a padded
# image. So there is one product for each element of the filter, of (filters × channels) and (channels × places), where
# a place is one of the padded image: the few outputs that lie across its edges are left out in the end.
#
# Source: Anderson et al. 2017, "Low-memory GEMM-based convolution algorithms for deep neural networks".

_FEWEST = 16  # channels and filters of a group; with fewer the products would be thin
_PLACES = 1536  # of a product, whose matrices stay in the cache of a core


@inner_jitable
def by_shifts(w, out, settings):
    """True if this way is taken: for few channels it is slow, and for small images with much padding."""
    stride, pad, dilation, groups, _ = settings
    padded = _padded(w.shape[2:], out, dilation)
    places = _length(out, padded)
    return (
        stride[0] == 1
        and stride[1] == 1
        and stride[2] == 1
        and min(pad[0], pad[1], pad[2], pad[3], pad[4], pad[5]) >= 0
        and w.shape[1] >= _FEWEST
        and w.shape[0] // groups >= _FEWEST
        and places <= 2 * out[0] * out[1] * out[2]
    )


@inner_jitable
def _padded(taps, out, dilation):
    """The sizes of a padded image; what stride one leaves of them are those of the output."""
    return (
        out[0] + (taps[0] - 1) * dilation[0],
        out[1] + (taps[1] - 1) * dilation[1],
        out[2] + (taps[2] - 1) * dilation[2],
    )


@inner_jitable
def _length(out, padded):
    """Number of places from the first output to the last."""
    return ((out[0] - 1) * padded[1] + out[1] - 1) * padded[2] + out[2]


@inner_jitable
def _sizes(w, out, settings):
    """Numbers of elements of a padded image, of a result and of the filters."""
    padded = _padded(w.shape[2:], out, settings[2])
    image = w.shape[1] * padded[0] * padded[1] * padded[2]
    return image, w.shape[0] // settings[3] * _length(out, padded), w.size


@inner_jitable
def room_of_shifts(w, out, settings):
    """Size of the working memory of `add_by_shifts` in numbers."""
    image, result, filters = _sizes(w, out, settings)
    return image + result + filters


@inner_jitable(error_model="numpy")
def add_by_shifts(what, x, w, y, settings, room):
    """``y`` += x ∗ w, or its adjoint with respect to x or w; images (samples, channels, ·, ·, ·)."""
    pad, groups = settings[1], settings[3]
    inputs, outputs, taps = w.shape[1], w.shape[0] // groups, w.shape[2] * w.shape[3] * w.shape[4]
    padded = _padded(w.shape[2:], y.shape[2:], settings[2])
    to_result, length, count = _sizes(w, y.shape[2:], settings)
    to_filters, size = to_result + length, to_result + length + count
    room[:size] = 0.0
    image = room[:to_result].reshape(inputs, padded[0], padded[1], padded[2])
    result = room[to_result:to_filters].reshape(outputs, length // outputs)
    filters = room[to_filters:size].reshape(groups, taps, outputs, inputs)
    if what != TO_FILTER:
        _exchange_filters(filters, w, True)
    for n in range(x.shape[0]):
        for g in range(groups):
            part, target = x[n, g * inputs : (g + 1) * inputs], y[n, g * outputs : (g + 1) * outputs]
            if what == TO_INPUT:
                image[:] = 0.0
            else:
                _exchange_image(image, part, pad, True)
            if what != TO_OUTPUT:
                _exchange_result(result, target, padded, True)
            _add_products(what, image, filters[g], result, w.shape[2:], settings)
            if what == TO_INPUT:
                _exchange_image(image, part, pad, False)
            if what == TO_OUTPUT:
                _exchange_result(result, target, padded, False)
    if what == TO_FILTER:
        _exchange_filters(filters, w, False)


@inner_jitable(error_model="numpy")
def _distance(tap, taps, padded, settings):
    """From an element of the filter, by its number, to the first input that it meets."""
    _, pad, dilation, _, flipped = settings
    s0 = shift_of(tap // (taps[1] * taps[2]), taps[0], dilation[0], pad[0], flipped) + pad[0]
    s1 = shift_of(tap // taps[2] % taps[1], taps[1], dilation[1], pad[2], flipped) + pad[2]
    s2 = shift_of(tap % taps[2], taps[2], dilation[2], pad[4], flipped) + pad[4]
    return (s0 * padded[1] + s1) * padded[2] + s2


@inner_jitable
def _add_products(what, image, filters, result, taps, settings):
    """One sample and group, some places at a time; what is multiplied and what is added to depends on ``what``."""
    (outputs, length), inputs = result.shape, image.shape[0]
    total, each, padded = image.size // inputs, outputs * inputs, image.shape[1:]
    parts = (length + _PLACES - 1) // _PLACES
    for p in range(parts):
        start = length * p // parts
        places = length * (p + 1) // parts - start
        for t in range(filters.shape[0]):
            at, keep = _distance(t, taps, padded, settings) + start, 0.0 if t == 0 else 1.0
            if what == TO_OUTPUT:
                gemm(
                    *(False, False, outputs, places, inputs, 1.0, filters, t * each, inputs, image, at, total),
                    *(keep, result, start, length),
                )
            elif what == TO_INPUT:
                gemm(
                    *(True, False, inputs, places, outputs, 1.0, filters, t * each, inputs, result, start, length),
                    *(1.0, image, at, total),
                )
            else:
                gemm(
                    *(False, True, outputs, inputs, places, 1.0, result, start, length, image, at, total),
                    *(1.0, filters, t * each, inputs),
                )


@inner_jitable
def _exchange_image(image, x, pad, in_):
    """Copies an input into the middle of the padded image, or adds the middle to the input."""
    for c in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                inside, outside = image[c, pad[0] + i, pad[2] + j], x[c, i, j]
                for k in range(x.shape[3]):
                    if in_:
                        inside[pad[4] + k] = outside[k]
                    else:
                        outside[k] += inside[pad[4] + k]


@inner_jitable
def _exchange_result(result, y, padded, in_):
    """Copies an output to the places that it has, or adds what is there to the output."""
    for c in range(y.shape[0]):
        for i in range(y.shape[1]):
            for j in range(y.shape[2]):
                place = (i * padded[1] + j) * padded[2]
                inside, outside = result[c, place : place + y.shape[3]], y[c, i, j]
                for k in range(y.shape[3]):
                    if in_:
                        inside[k] = outside[k]
                    else:
                        outside[k] += inside[k]


@inner_jitable
def _exchange_filters(filters, w, in_):
    """Copies filters to matrices, one for each of their elements, or adds these to the filters."""
    groups, taps, outputs, inputs = filters.shape
    each = w.reshape(groups, outputs, inputs, taps)
    for g in range(groups):
        for k in range(outputs):
            for c in range(inputs):
                for t in range(taps):
                    if in_:
                        filters[g, t, k, c] = each[g, k, c, t]
                    else:
                        each[g, k, c, t] += filters[g, t, k, c]


_FEWEST_ROWS = 16  # below, products of matrices gain nothing


@inner_jitable
def _is_direct(w):
    return w.shape[1] * w.shape[2] * w.shape[3] * w.shape[4] < _FEWEST_ROWS


@inner_jitable(error_model="numpy")
def _add_directly(what, x, w, y, settings):
    stride, pad, dilation, groups, flipped = settings
    inputs, outputs = w.shape[1], w.shape[0] // groups
    for n in range(x.shape[0]):
        for k in range(w.shape[0]):
            for c in range(inputs):
                channel = k // outputs * inputs + c
                add_direct(what, x[n, channel], w[k, c], y[n, k], stride, pad, dilation, flipped)


@inner_jitable
def _room_of(w, y, settings):
    """Size of the working memory of the kernels in numbers."""
    if by_shifts(w, y.shape[2:], settings):
        return room_of_shifts(w, y.shape[2:], settings)
    return 0 if _is_direct(w) else room_of_columns(w, y.shape[2:], settings)


@inner_jitable
def _add(what, x, w, y, settings, room):
    size = _room_of(w, y, settings)
    enough = room if room.size >= size else np.empty(size, room.dtype)
    if by_shifts(w, y.shape[2:], settings):
        add_by_shifts(what, x, w, y, settings, enough)
    elif _is_direct(w):
        _add_directly(what, x, w, y, settings)
    else:
        add_by_columns(what, x, w, y, settings, enough)


@inner_jitable
def _lent(slot, size):
    """``size`` numbers that are kept in a slot, with any content; none in a derivative that is differentiated."""
    if irad.within_autodiff():
        return np.empty(0, slot.state.dtype)
    if slot.state.size < size:
        slot.state = np.empty(size, slot.state.dtype)
    return slot.state


@inner_njit
def add_conv(y, x, w, settings, room):
    """``y`` += x ∗ w."""
    _add(TO_OUTPUT, x, w, y, settings, room)


@inner_njit
def add_data(x, y, w, settings, room):
    """``x`` += adjoint of the convolution with respect to x, from y and w."""
    _add(TO_INPUT, x, w, y, settings, room)


@inner_njit
def add_filter(w, x, y, settings, room):
    """``w`` += adjoint of the convolution with respect to w, from x and y."""
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


_register(add_conv, njit(lambda y, x, w, settings: _room_of(w, y, settings)), add_data, _filter_of)
_register(add_data, njit(lambda x, y, w, settings: _room_of(w, y, settings)), _output_of_data, _filter_of_data)
_register(add_filter, njit(lambda w, x, y, settings: _room_of(w, y, settings)), _data_of_filter, _output_of_filter)
