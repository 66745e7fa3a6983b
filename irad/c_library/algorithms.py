"""Functions of Numba's run time that are algorithms, written again as functions that Numba compiles.

Each takes pointers as the original in C does (`_helperlib.c`, `_random.c`), and gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numba.core import types

_WORDS: Final = 624  # of the state of the Mersenne Twister (MT19937)
_APART: Final = 397  # distance of the words that MT19937 combines
_UPPER, _LOWER, _TWIST = 0x80000000, 0x7FFFFFFF, 0x9908B0DF


def _shuffle(state: Any) -> None:
    """The next 624 words of the Mersenne Twister; the words follow an index of the same size."""
    for i in range(_WORDS):
        word = (state[1 + i] & _UPPER) | (state[1 + (i + 1) % _WORDS] & _LOWER)
        state[1 + i] = state[1 + (i + _APART) % _WORDS] ^ (word >> 1) ^ ((word & 1) * _TWIST)


def _seed(state: Any, seed: int) -> None:
    word = seed & 0xFFFFFFFF
    for i in range(_WORDS):
        state[1 + i] = word
        word = (1812433253 * (word ^ (word >> 30)) + i + 1) & 0xFFFFFFFF
    # After the words: whether there is a second normal number, eight bytes for it, and whether this is seeded.
    state[0], state[1 + _WORDS], state[2 + _WORDS], state[3 + _WORDS], state[4 + _WORDS] = _WORDS, 0, 0, 0, 1


def _reshape(
    axes: int, shape: Any, strides: Any, new_axes: int, new_shape: Any, new_strides: Any, itemsize: int, fortran: int
) -> int:
    """Strides of an array in another shape, as NumPy finds them; 0 if its elements would have to move."""
    old_shape, old_strides, count = np.empty(axes, np.int64), np.empty(axes, np.int64), 0
    size, new_size = 1, 1
    for axis in range(axes):
        if shape[axis] != 1:  # the strides of such axes mean nothing
            old_shape[count], old_strides[count] = shape[axis], strides[axis]
            count += 1
        size *= shape[axis]
    for axis in range(new_axes):
        new_size *= new_shape[axis]
    if size != new_size:
        return 0
    if size == 0:
        for axis in range(new_axes):
            new_strides[axis] = itemsize
        return 1
    start, end, new_start, new_end = 0, 1, 0, 1
    while new_start < new_axes and start < count:
        part, old_part = new_shape[new_start], old_shape[start]
        while part != old_part:
            if part < old_part:
                part *= new_shape[new_end]
                new_end += 1
            else:
                old_part *= old_shape[end]
                end += 1
        for axis in range(start, end - 1):
            outer, inner = (axis + 1, axis) if fortran else (axis, axis + 1)
            if old_strides[outer] != old_shape[inner] * old_strides[inner]:
                return 0
        if fortran:
            new_strides[new_start] = old_strides[start]
            for axis in range(new_start + 1, new_end):
                new_strides[axis] = new_strides[axis - 1] * new_shape[axis - 1]
        else:
            new_strides[new_end - 1] = old_strides[end - 1]
            for axis in range(new_end - 1, new_start, -1):
                new_strides[axis - 1] = new_strides[axis] * new_shape[axis]
        new_start, start = new_end, end
        new_end += 1
        end += 1
    last = new_strides[new_start - 1] if new_start >= 1 else itemsize
    if fortran and new_start >= 1:
        last *= new_shape[new_start - 1]
    for axis in range(new_start, new_axes):  # of one element each
        new_strides[axis] = last
    return 1


def _power(base: Any, exponent: Any, result: Any) -> None:
    """A complex power as Python has it; NaN where Python raises an exception."""
    a_re, a_im = np.float64(base[0]), np.float64(base[1])
    b_re, b_im = np.float64(exponent[0]), np.float64(exponent[1])
    if b_re == 0.0 and b_im == 0.0:
        result[0], result[1] = 1.0, 0.0
    elif a_re == 0.0 and a_im == 0.0:
        result[0] = result[1] = np.nan if b_im != 0.0 or b_re < 0.0 else 0.0
    else:
        size, angle = math.hypot(a_re, a_im), math.atan2(a_im, a_re)
        length, phase = math.pow(size, b_re), angle * b_re
        if b_im != 0.0:
            length /= math.exp(angle * b_im)
            phase += b_im * math.log(size)
        result[0], result[1] = length * math.cos(phase), length * math.sin(phase)


_WORD_POINTER: Final = types.CPointer(types.uint32)
_POINTER: Final = types.CPointer(types.int64)
_INT: Final = types.int64
ALGORITHMS: Final[Mapping[str, tuple[Callable[..., Any], tuple[Any, ...], str]]] = {
    "numba_rnd_shuffle": (_shuffle, (_WORD_POINTER,), "void"),
    "numba_rnd_init": (_seed, (_WORD_POINTER, types.uint32), "void"),
    "numba_attempt_nocopy_reshape": (
        _reshape,
        (_INT, _POINTER, _POINTER, _INT, _POINTER, _POINTER, _INT, types.int32),
        "i32",
    ),
    "numba_cpow": (_power, (types.CPointer(types.float64),) * 3, "void"),
    "numba_cpowf": (_power, (types.CPointer(types.float32),) * 3, "void"),
}
"""By symbol: the function, the types of its parameters, and the LLVM type of its result."""
