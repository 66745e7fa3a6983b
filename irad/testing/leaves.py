"""The float numbers inside arguments: read as one vector, put back from one, and copies that keep memory as it is.

An argument is a number, an array, a record or array of records, None, a string, a function, or a tuple, list or typed
dictionary of these. Its leaves are its floats in reading order: elements of arrays in C order, fields of records by
name, tuples, lists and values of dictionaries left to right.
A complex number is two leaves, its real and its imaginary part.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
from numba.typed import Dict as TypedDict
from numba.typed import List as TypedList
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]

_SEQUENCES: Final = (tuple, list, TypedList)
_WITH_BITS: Final = (float, complex, np.generic, np.ndarray)


def has_leaves(value: object) -> bool:
    """Whether there is a float in ``value``, were it not empty."""
    match value:
        case tuple() | list() | TypedList():
            return any(map(has_leaves, value))
        case TypedDict():
            return any(map(has_leaves, value.values()))
        case float() | np.floating() | complex() | np.complexfloating():
            return True
        case np.ndarray() | np.void():
            return _dtype_has_floats(value.dtype)
    return False


def read_leaves(value: object) -> Vector:
    """The leaves of ``value`` as doubles."""
    parts = [np.zeros(0), *_parts(value)]
    return np.concatenate(parts)


def with_leaves(value: Any, leaves: Vector) -> Any:
    """``value`` in double precision, in new memory, with other leaves; arrays keep their layout as Numba types it.

    Elements that shared memory get memory of their own.
    """
    rest = iter(leaves.tolist())
    result = _rebuild(value, rest)
    assert next(rest, None) is None, "more leaves than the structure has"
    return result


def copy_arguments(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Copies with the same strides; arrays that are views of one array are views of one copy."""
    owners: dict[int, _Block] = {}
    return tuple(_copy(argument, owners) for argument in arguments)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two values of one structure are equal to the bit; NaNs are equal to themselves."""
    if isinstance(a, TypedDict) and isinstance(b, TypedDict):
        return list(a) == list(b) and all(same_bits(a[key], b[key]) for key in a)
    if isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, _WITH_BITS) and isinstance(b, _WITH_BITS):
        x, y = np.asarray(a), np.asarray(b)
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    return a is b or a == b


def _dtype_has_floats(dtype: np.dtype[Any]) -> bool:
    if dtype.fields is not None:
        return any(_dtype_has_floats(field[0]) for field in dtype.fields.values())
    return dtype.base.kind in "fc"


def _parts(value: object) -> Iterator[Vector]:
    match value:
        case tuple() | list() | TypedList():
            for entry in value:
                yield from _parts(entry)
        case TypedDict():
            for entry in value.values():
                yield from _parts(entry)
        case float() | np.floating():
            yield np.array([float(value)])
        case complex() | np.complexfloating():
            yield np.array([value.real, value.imag], np.float64)
        case np.ndarray() | np.void() if value.dtype.names is not None:
            for name in value.dtype.names:
                yield from _parts(np.asarray(value[name]))
        case np.ndarray() if value.dtype.kind == "f":
            yield value.astype(np.float64).ravel()
        case np.ndarray() if value.dtype.kind == "c":
            yield value.astype(np.complex128).ravel().view(np.float64)


def _rebuild(value: Any, rest: Iterator[float]) -> Any:
    match value:
        case list() | TypedList():
            return type(value)([_rebuild(entry, rest) for entry in value])
        case TypedDict() if len(value) > 0:
            return _dictionary({key: _rebuild(entry, rest) for key, entry in value.items()})
        case tuple():
            entries = [_rebuild(entry, rest) for entry in value]
            return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)
        case float() | np.floating():
            return next(rest)
        case complex() | np.complexfloating():
            return complex(next(rest), next(rest))
        case np.ndarray():
            result = _new_array(value)
            _fill(result, value, rest)
            result.flags.writeable = value.flags.writeable
            return result
        case np.void():
            array = np.zeros((), _promote(value.dtype))
            _fill(array, np.asarray(value), rest)
            return array[()]
    return value


def _fill(target: NDArray[Any], source: NDArray[Any], rest: Iterator[float]) -> None:
    if source.dtype.names is not None:
        for name in source.dtype.names:
            _fill(target[name], source[name], rest)
    elif source.dtype.kind == "f":
        target[...] = np.fromiter(islice(rest, source.size), np.float64, source.size).reshape(source.shape)
    elif source.dtype.kind == "c":
        parts = np.fromiter(islice(rest, 2 * source.size), np.float64, 2 * source.size)
        target[...] = parts.view(np.complex128).reshape(source.shape)
    else:
        target[...] = source


def _new_array(like: NDArray[Any]) -> NDArray[Any]:
    dtype = _promote(like.dtype)
    if like.flags.c_contiguous:
        return np.zeros(like.shape, dtype)
    if like.flags.f_contiguous:
        return np.zeros(like.shape, dtype, order="F")
    return np.zeros((*like.shape[:-1], 2 * like.shape[-1]), dtype)[..., ::2]


def _promote(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.names is not None:
        fields = [(name, _promote(dtype[name])) for name in dtype.names]
        return np.dtype(fields, align=dtype.isalignedstruct)
    if dtype.subdtype is not None:
        return np.dtype((_promote(dtype.subdtype[0]), dtype.subdtype[1]))
    return np.dtype({"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype))


def _copy(value: Any, owners: dict[int, _Block]) -> Any:
    match value:
        case list() | TypedList():
            return type(value)([_copy(entry, owners) for entry in value])
        case TypedDict() if len(value) > 0:
            return _dictionary({key: _copy(entry, owners) for key, entry in value.items()})
        case TypedDict():
            return value.copy()
        case tuple():
            entries = [_copy(entry, owners) for entry in value]
            return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)
        case np.ndarray():
            owner = value
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            result = owners.setdefault(id(owner), _Block(owner)).view(value)
            result.flags.writeable = value.flags.writeable
            return result
        case np.void():  # np.void.copy leaves out what lies between the fields
            return np.frombuffer(bytearray(value.tobytes()), value.dtype)[0]
    return value


def _dictionary(items: dict[Any, Any]) -> Any:
    result: Any = TypedDict()
    for key, value in items.items():
        result[key] = value
    return result


class _Block:
    """A copy of the memory of an array, at an address that is equally aligned."""

    def __init__(self, owner: NDArray[Any]) -> None:
        spans = [(n - 1) * stride for n, stride in zip(owner.shape, owner.strides, strict=True)] if owner.size else []
        below = sum(span for span in spans if span < 0)
        length = sum(map(abs, spans)) + owner.itemsize if owner.size else 0
        self._start = owner.ctypes.data + below
        room = np.empty(length + 64, np.uint8)
        offset = (self._start - room.ctypes.data) % 64
        self._bytes = room[offset : offset + length]
        self._bytes[...] = np.frombuffer(ctypes.string_at(self._start, length), np.uint8)

    def view(self, array: NDArray[Any]) -> NDArray[Any]:
        """What ``array``, a view of the owner, is of the copy."""
        if array.size == 0:
            return np.empty(array.shape, array.dtype, order="C" if array.flags.c_contiguous else "F")
        offset = array.ctypes.data - self._start
        return np.ndarray(array.shape, array.dtype, self._bytes.data, offset, array.strides)
