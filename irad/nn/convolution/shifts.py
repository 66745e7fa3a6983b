"""By products of matrices on padded images, without columns: for stride one, where channels are many.

With stride one the input that an element of the filter meets lies, for all outputs, at one distance in a padded image.
So there is one product for each element of the filter, of (filters × channels) and (channels × places), where a place
is one of the padded image: the few outputs that lie across its edges are left out in the end.

Source: Anderson et al. 2017, "Low-memory GEMM-based convolution algorithms for deep neural networks".
"""

from __future__ import annotations

from numba import njit

from irad.nn.blas import gemm
from irad.nn.convolution.direct import TO_FILTER, TO_INPUT, TO_OUTPUT
from irad.nn.convolution.geometry import shift_of

_FEWEST = 16  # channels and filters of a group; with fewer the products would be thin
_PLACES = 1536  # of a product, whose matrices stay in the cache of a core


@njit
def by_shifts(w, out, settings):
    """Whether this way is taken: for few channels it is slow, and for small images with much padding."""
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


@njit
def _padded(taps, out, dilation):
    """The sizes of a padded image; what stride one leaves of them are those of the output."""
    return (
        out[0] + (taps[0] - 1) * dilation[0],
        out[1] + (taps[1] - 1) * dilation[1],
        out[2] + (taps[2] - 1) * dilation[2],
    )


@njit
def _length(out, padded):
    """How many places there are from the first output to the last."""
    return ((out[0] - 1) * padded[1] + out[1] - 1) * padded[2] + out[2]


@njit
def _sizes(w, out, settings):
    """How many numbers there are in a padded image, in a result and in the filters."""
    padded = _padded(w.shape[2:], out, settings[2])
    image = w.shape[1] * padded[0] * padded[1] * padded[2]
    return image, w.shape[0] // settings[3] * _length(out, padded), w.size


@njit
def room_of_shifts(w, out, settings):
    """How many numbers `add_by_shifts` works in."""
    image, result, filters = _sizes(w, out, settings)
    return image + result + filters


@njit(error_model="numpy")
def add_by_shifts(what, x, w, y, settings, room):
    """``y`` += x ∗ w, or the adjoint by x, or that by w; images (samples, channels, ·, ·, ·)."""
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


@njit(error_model="numpy")
def _distance(tap, taps, padded, settings):
    """From an element of the filter, by its number, to the first input that it meets."""
    _, pad, dilation, _, flipped = settings
    s0 = shift_of(tap // (taps[1] * taps[2]), taps[0], dilation[0], pad[0], flipped) + pad[0]
    s1 = shift_of(tap // taps[2] % taps[1], taps[1], dilation[1], pad[2], flipped) + pad[2]
    s2 = shift_of(tap % taps[2], taps[2], dilation[2], pad[4], flipped) + pad[4]
    return (s0 * padded[1] + s1) * padded[2] + s2


@njit
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


@njit
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


@njit
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


@njit
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
