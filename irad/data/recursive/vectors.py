"""Numbers and arrays as vectors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import INACTIVE, Chooser, Kind, Vector, set_kind


def _read(value: Any) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return array.astype(np.complex128).ravel().view(np.float64)
    return array.astype(np.float64).ravel()


def _elements(like: NDArray[Any], doubles: NDArray[np.float64]) -> NDArray[Any]:
    elements = doubles.view(np.complex128) if like.dtype.kind == "c" else doubles
    return elements.reshape(like.shape)


def _length(value: Any) -> int:
    return int(np.size(value)) * (2 if np.iscomplexobj(value) else 1)


def _refilled_number(value: Any, doubles: NDArray[np.float64]) -> Any:
    if np.iscomplexobj(value):
        return type(value)(complex(*doubles.tolist()))
    return type(value)(doubles[0])


def _refilled_array(value: NDArray[Any], doubles: NDArray[np.float64]) -> NDArray[Any]:
    result = _zeros(value)
    result[...] = _elements(value, doubles)
    return result


def laid_out_like(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros in the shape of an array and in a layout that Numba gives the same type."""
    if array.flags.c_contiguous:
        return np.zeros(array.shape, dtype)
    if array.flags.f_contiguous:
        return np.zeros(array.shape, dtype, order="F")
    return np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype)[..., ::2]


def zeros_in_place_of(array: NDArray[Any]) -> NDArray[Any]:
    """Zeros with the strides of an array, as a shadow has to have them; apart where elements of the array overlap."""
    spans = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    length = sum(map(abs, spans)) + array.itemsize
    if array.flags.forc or length < array.nbytes:
        return laid_out_like(array, array.dtype)
    memory = np.zeros(length, np.uint8)  # of which only those pages are there that are written to
    return np.ndarray(array.shape, array.dtype, memory.data, -sum(span for span in spans if span < 0), array.strides)


def _zeros(like: NDArray[Any]) -> NDArray[Any]:
    """Memory of zeros is not touched before it is needed, unlike that of `numpy.zeros_like`."""
    return zeros_in_place_of(like) if type(like) is np.ndarray else np.zeros_like(like)


def _inner(x: Any, y: Any) -> Any:
    x, y = np.asarray(x), np.asarray(y)  # those of subclasses have products of their own
    if x.flags.c_contiguous and y.flags.c_contiguous:
        return np.vdot(x, y)
    axes = list(range(x.ndim))
    return np.einsum(x.conj() if x.dtype.kind == "c" else x, axes, y, axes, [])  # copies nothing that is real


def identity_of_array(array: Any) -> Any:
    """Where the elements are: views of the same ones are one thing. An array that is not a view is told by its id."""
    base = array.base
    if base is None:
        return id(array)
    place = _place(array)
    return id(base) if isinstance(base, np.ndarray) and place == _place(base) else place


def _place(array: NDArray[Any]) -> Any:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _assign(target: NDArray[Any], source: Any) -> None:
    target[...] = source


NUMBER: Final = Vector(
    zero=lambda value: type(value)(0),
    dot=lambda x, y: x.conjugate() * y,
    read=_read,
    refilled=_refilled_number,
    length=_length,
)
ARRAY: Final = Vector(
    zero=_zeros,
    dot=_inner,
    read=_read,
    refilled=_refilled_array,
    length=_length,
    assign=_assign,
    is_writable=lambda value: bool(value.flags.writeable),
    takes_ufuncs=True,
    identity=identity_of_array,
)


def of_arrays(objects: Kind, records: Kind) -> Chooser:
    """The kind of an array by its dtype.

    Args:
        objects: that of an array of Python objects.
        records: that of an array of records, or of one record.
    """

    def choose(value: Any) -> Kind:
        dtype = value.dtype
        if dtype.kind in "fc":
            return ARRAY
        if dtype.names is not None:
            return records
        return objects if dtype.kind == "O" else INACTIVE

    return choose


for _number in (float, complex, np.floating, np.complexfloating):
    set_kind(_number, NUMBER)
