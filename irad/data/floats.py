"""The floats inside a value: read as one vector, put back from one.

A value is a number, an array, a record or array of records, None, a string, a function, or a structure of these. Its
floats are in reading order: elements of arrays in C order, fields of records by name, structures left to right. A
complex number is two floats, its real and its imaginary part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import ARRAY, Vector as VectorKind, kind_of, laid_out_like
from irad.data.structure import container_of, is_structure, mapped, members, rebuilt

Vector: TypeAlias = NDArray[np.float64]


def has_floats(value: object) -> bool:
    """True if there is a float in ``value``, were it not empty."""
    return any(True for _ in vectors(value))


def vectors(value: Any) -> Iterator[tuple[VectorKind, Any]]:
    """The numbers and arrays of floats in a value, field by field of records, with their kinds."""
    kind, container = kind_of(value), container_of(value, or_records=True)
    if isinstance(kind, VectorKind):
        yield kind, value
    elif container is not None:
        for _, member in container.members(value):
            yield from vectors(member)


def floats_only(value: Any) -> Any:
    """``value`` with None in place of each part that holds no floats, as a cotangent of it is written."""
    if not has_floats(value):
        return None
    return rebuilt(value, [floats_only(item) for _, item in members(value)]) if is_structure(value) else value


def read_floats(value: object) -> Vector:
    """The floats of ``value`` as doubles."""
    return np.concatenate([np.zeros(0), *(kind.read(part) for kind, part in vectors(value))])


# --- other floats -----------------------------------------------------------------------------------------------------


def with_floats(value: Any, floats: Vector) -> Any:
    """``value`` in double precision, in new memory, with other floats; arrays keep their layout as Numba types it.

    Elements that shared memory get memory of their own.
    """
    lengths = [kind.length(part) for kind, part in vectors(value)]
    assert floats.size == sum(lengths), "more or fewer floats than the structure has"
    chunks = iter(np.split(floats, np.cumsum(lengths)))
    return mapped(lambda each: _refilled(each, chunks), value)


def _refilled(value: Any, chunks: Iterator[Vector]) -> Any:
    if isinstance(value, np.void):
        return _refilled(np.asarray(value), chunks)[()]
    if isinstance(value, np.ndarray):
        result = laid_out_like(value, _promoted(value.dtype))
        _fill(result, value, chunks)
        result.flags.writeable = value.flags.writeable
        return result
    kind = kind_of(value)
    if not isinstance(kind, VectorKind):
        return value
    return kind.refilled(value.item() if isinstance(value, np.generic) else value, next(chunks))


def _fill(target: NDArray[Any], source: NDArray[Any], chunks: Iterator[Vector]) -> None:
    if source.dtype.names is not None:
        for name in source.dtype.names:
            _fill(target[name], source[name], chunks)
    else:
        target[...] = ARRAY.refilled(target, next(chunks)) if source.dtype.kind in "fc" else source


def _promoted(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.names is not None:
        fields = [(name, _promoted(dtype[name])) for name in dtype.names]
        return np.dtype(fields, align=dtype.isalignedstruct)
    if dtype.subdtype is not None:
        return np.dtype((_promoted(dtype.subdtype[0]), dtype.subdtype[1]))
    return np.dtype({"f": np.float64, "c": np.complex128}.get(dtype.kind, dtype))


# --- names ------------------------------------------------------------------------------------------------------------


def name_of_float(value: Any, number: int, name: str) -> str:
    """Name of one of the floats in Python: ``x[3]``, ``model[1].rate``, ``z[0].imag``.

    Args:
        value: holds it.
        number: in reading order.
        name: name of the value.
    """
    if is_structure(value):
        for way, part in members(value):
            count = read_floats(part).size
            if number < count:
                return name_of_float(part, number, name + way)
            number -= count
        raise IndexError(number)
    if isinstance(value, np.ndarray | np.void):
        index, inner = _place(np.asarray(value), number)
        return name + _brackets(index) + inner
    return name + _part(number) if isinstance(value, complex | np.complexfloating) else name


def _place(array: NDArray[Any], number: int) -> tuple[tuple[int, ...], str]:
    """The index of the element with a float, and where in the element it is: ``.field[0].imag``."""
    if array.dtype.names is None:
        is_complex = array.dtype.kind == "c"
        index = np.unravel_index(number // 2 if is_complex else number, array.shape)
        return tuple(map(int, index)), _part(number) if is_complex else ""
    for field in array.dtype.names:
        part = np.asarray(array[field])
        count = read_floats(part).size
        if number < count:
            index_in_part, inner = _place(part, number)
            own, rest = index_in_part[: array.ndim], index_in_part[array.ndim :]
            return own, f".{field}{_brackets(rest)}{inner}"
        number -= count
    raise IndexError(number)


def _part(number: int) -> str:
    return ".imag" if number % 2 else ".real"


def _brackets(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


# Single and double precision of the floats inside values.


def holds_single(value: Any) -> bool:
    """True if there are floats of single precision in a value."""
    return any(getattr(part, "dtype", None) in (np.float32, np.complex64) for _, part in vectors(value))


def in_types_of(value: Any, like: Any) -> Any:
    """``value`` with the precision of ``like``, whose structure it has."""
    return mapped(lambda wanted, each: _in_type_of(each, wanted), like, value)


def _in_type_of(value: Any, like: Any) -> Any:
    match like:
        case np.ndarray():
            return value.astype(like.dtype)
        case np.void():
            return np.asarray(value).astype(like.dtype)[()]
        case np.generic():
            return like.dtype.type(value)
        case _:
            return value


def in_precision(value: Any, single: bool) -> Any:
    """A value in single or double precision, arrays laid out as they were."""
    if not single:
        return with_floats(value, read_floats(value))
    return mapped(_in_single, value)


def _in_single(value: Any) -> Any:
    if not has_floats(value):
        return value
    is_complex = np.iscomplexobj(value)
    if not isinstance(value, np.ndarray):
        return np.complex64(value) if is_complex else np.float32(value)
    made = laid_out_like(value, np.dtype(np.complex64 if is_complex else np.float32))
    made[...] = value
    made.flags.writeable = value.flags.writeable
    return made
