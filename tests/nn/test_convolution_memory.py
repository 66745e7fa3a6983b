"""The kernels of convolutions read and write nothing beside their arguments, of any geometry.

Tiles are as long as vectors, so they reach beyond a row, and nothing checks their places. Here pages that cannot be
accessed lie on both sides of each argument, which touches one of them, and the working memory holds NaN.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numba import njit

from irad.nn.convolution.kernels import add_conv, add_data, add_filter
from irad.nn.convolution.tiled import room_of_tiles

_C: Any = ctypes.CDLL(None)
_PAGE = mmap.PAGESIZE
_NO_ACCESS, _READ_AND_WRITE = 0, 3


@njit
def _run(number, x, w, y, settings, room):
    if number == 0:
        add_data(x, y, w, settings, room)
    elif number == 1:
        add_filter(w, x, y, settings, room)
    else:
        add_conv(y, x, w, settings, room)


@njit
def _room_of(w, shape, settings):
    return room_of_tiles(w, shape, settings)


@contextmanager
def guarded(array: Any, at_end: bool) -> Iterator[Any]:
    """A copy whose first or last byte is the neighbour of a page that cannot be accessed."""
    pages = -(-array.nbytes // _PAGE)
    with mmap.mmap(-1, (pages + 2) * _PAGE) as memory:
        # the memory cannot be unmapped while an array refers to it, so only its address is kept
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        ends = ctypes.c_void_p(address), ctypes.c_void_p(address + (pages + 1) * _PAGE)
        for end in ends:
            assert _C.mprotect(end, _PAGE, _NO_ACCESS) == 0
        start = address + _PAGE + (pages * _PAGE - array.nbytes) * at_end
        copy = np.ctypeslib.as_array((ctypes.c_char * array.nbytes).from_address(start)).view(array.dtype)
        copy = copy.reshape(array.shape)
        copy[...] = array
        try:
            yield copy
        finally:
            for end in ends:
                _C.mprotect(end, _PAGE, _READ_AND_WRITE)


def _geometry(random: np.random.Generator) -> Any:
    """Settings, and shapes of images, filters and outputs."""
    axes, pick = random.integers(1, 4), random.integers

    def along(*choices: int) -> tuple[int, ...]:
        return tuple(int(random.choice(choices)) if axis >= 3 - axes else 1 for axis in range(3))

    taps, stride, dilation, out = along(1, 2, 3, 4), along(1, 2, 3), along(1, 2, 3), along(1, 2, 3, 5, 9, 17, 33)
    pad, size = list[int](), list[int]()
    for axis in range(3):
        padded = (out[axis] - 1) * stride[axis] + (taps[axis] - 1) * dilation[axis] + 1 + int(pick(stride[axis]))
        before, after = (int(each) for each in pick(0, 4, 2) * (axis >= 3 - axes))
        if before + after >= padded:
            before = after = 0
        pad += before, after
        size.append(padded - before - after)
    counts = (1, 2, 3), (1, 2, 7), (1, 5, 13), (1, 3, 8)
    groups, inputs, outputs, samples = (int(random.choice(each)) for each in counts)
    images, filters = (samples, inputs * groups, *size), (outputs * groups, inputs, *taps)
    return (stride, tuple(pad), dilation, groups, bool(pick(2))), images, filters, (samples, filters[0], *out)


def _wanted(x: Any, w: Any, y: Any, settings: Any) -> tuple[Any, Any, Any]:
    """What is added to x, w and y, element of the filter by element."""
    stride, pad, dilation, groups, flipped = settings
    padded = np.pad(x, ((0, 0), (0, 0), pad[:2], pad[2:4], pad[4:]))
    to_padded, to_w, to_y = np.zeros_like(padded), np.zeros_like(w), np.zeros_like(y)
    per_group = (groups, w.shape[0] // groups)
    for tap in np.ndindex(*w.shape[2:]):
        at = tap if flipped else tuple(size - 1 - t for size, t in zip(w.shape[2:], tap, strict=True))
        starts = [t * d for t, d in zip(at, dilation, strict=True)]
        steps = zip(starts, stride, y.shape[2:], strict=True)
        window = (..., *(slice(start, start + step * (count - 1) + 1, step) for start, step, count in steps))
        element = (slice(None), slice(None), *tap)
        inputs = padded[window].reshape(len(x), groups, w.shape[1], -1)
        outputs = y.reshape(len(y), *per_group, -1)
        filters = w[element].reshape(*per_group, w.shape[1])
        to_y += np.einsum("ngip,goi->ngop", inputs, filters).reshape(y.shape)
        to_padded[window] += np.einsum("ngop,goi->ngip", outputs, filters).reshape(padded[window].shape)
        to_w[element] += np.einsum("ngop,ngip->goi", outputs, inputs).reshape(w.shape[:2])
    inside = (..., *(slice(pad[2 * a], pad[2 * a] + x.shape[2 + a]) for a in range(3)))
    return to_padded[inside], to_w, to_y


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by a function of POSIX")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_stay_in_their_arguments(dtype: type) -> None:
    random = np.random.default_rng(1)
    for _ in range(100):
        settings, *shapes = _geometry(random)
        given = [random.standard_normal(shape).astype(dtype) for shape in shapes]
        room = np.full(_room_of(given[1], shapes[2], settings), np.nan, dtype)
        at_end, wanted = bool(random.integers(2)), _wanted(*(each.astype(np.float64) for each in given), settings)
        for number in range(3):
            with (
                guarded(given[0], at_end) as x,
                guarded(given[1], at_end) as w,
                guarded(given[2], at_end) as y,
                guarded(room, at_end) as lent,
            ):
                _run(number, x, w, y, settings, lent)
                for other, (found, before) in enumerate(zip((x, w, y), given, strict=True)):
                    if other != number:
                        np.testing.assert_array_equal(found, before)
                found = (x, w, y)[number].astype(np.float64)
            expected = given[number] + wanted[number]
            scale = np.finfo(dtype).eps * (1 + np.abs(expected).max()) * 1000
            np.testing.assert_allclose(found, expected, rtol=0, atol=scale, err_msg=f"{settings} {shapes}")
