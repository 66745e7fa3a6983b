"""Single and double precision of the floats inside values."""

from __future__ import annotations

from typing import Any

import numpy as np

from irad.data.floats import has_floats, read_floats, vectors, with_floats
from irad.data.recursive.vectors import laid_out_like
from irad.data.structure import mapped


def holds_single(value: Any) -> bool:
    """Whether there are floats of single precision in a value."""
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
