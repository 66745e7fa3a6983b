"""Copies that keep strides and shared memory, and equality to the bit."""

from __future__ import annotations

import ctypes
from itertools import starmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irad.data.structure import is_structure, mapped, paired

_WITH_BITS: Final = (float, complex, np.generic, np.ndarray)


def copied(value: Any) -> Any:
    """A copy with the same strides; arrays in it that are views of one array are views of one copy."""
    owners: dict[int, _Block] = {}
    return mapped(lambda each: _copy(each, owners), value)


def same_bits(a: Any, b: Any) -> bool:
    """True if two values of one structure are equal to the bit; NaNs are equal to themselves."""
    return all(starmap(_are_equal, paired(a, b)))


def _are_equal(a: Any, b: Any) -> bool:
    if isinstance(a, _WITH_BITS) and isinstance(b, _WITH_BITS):
        x, y = np.asarray(a), np.asarray(b)
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    return a is b or bool(not is_structure(a) and a == b)


def _copy(value: Any, owners: dict[int, _Block]) -> Any:
    match value:
        case np.ndarray():
            owner = value
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            if id(owner) not in owners:
                owners[id(owner)] = _Block(owner)
            result = owners[id(owner)].view(value)
            result.flags.writeable = value.flags.writeable
            return result
        case np.void():  # np.void.copy leaves out what lies between the fields
            return np.frombuffer(bytearray(value.tobytes()), value.dtype)[0]
        case _:
            return value


class _Block:
    """A copy of the memory of an array, at an address that is equally aligned."""

    def __init__(self, owner: NDArray[Any]) -> None:
        spans = [(n - 1) * stride for n, stride in zip(owner.shape, owner.strides, strict=True)] if owner.size else []
        below = sum(span for span in spans if span < 0)
        length = sum(map(abs, spans)) + owner.itemsize if owner.size else 0
        self._start = owner.ctypes.data + below
        self._owner = owner  # which nothing else may hold: its id is not to be that of another array
        room = np.empty(length + 64, np.uint8)
        offset = (self._start - room.ctypes.data) % 64
        self._bytes = room[offset : offset + length]
        self._bytes[...] = np.frombuffer(ctypes.string_at(self._start, length), np.uint8)

    def view(self, array: NDArray[Any]) -> NDArray[Any]:
        """The view of the copy that ``array`` is of the owner."""
        if array.size == 0:
            return np.empty(array.shape, array.dtype, order="C" if array.flags.c_contiguous else "F")
        offset = array.ctypes.data - self._start
        return np.ndarray(array.shape, array.dtype, self._bytes.data, offset, array.strides)
