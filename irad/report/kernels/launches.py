"""Plain arguments of a launch as the derivative takes them: copies, with shadows of zeros."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from irad.api.annotate import Active, Const, Duplicated, MixedDuplicated
from irad.data.copies import copied
from irad.data.structure import mapped


def annotated_copies(values: tuple[Any, ...], positions: Collection[int]) -> list[Any]:
    """Copies of the arguments, with annotations; arrays that share memory have shadows that share memory alike.

    Args:
        values: arguments of a kernel; arrays of a GPU are copied to the host.
        positions: of those that have a derivative.
    """
    copies = copied(mapped(on_host, values))
    shadows = mapped(_cleared, copied(copies))
    pairs = enumerate(zip(copies, shadows, strict=True))
    return [_annotated(*pair) if position in positions else Const(pair[0]) for position, pair in pairs]


def on_host(value: Any) -> Any:
    """An array of a GPU as one of NumPy; everything else as it is."""
    if isinstance(value, np.ndarray) or not hasattr(value, "__cuda_array_interface__"):
        return value
    return value.copy_to_host() if hasattr(value, "copy_to_host") else value.get()


def _cleared(value: Any) -> Any:
    """An array is filled with zeros, numbers are zeros."""
    match value:
        case np.ndarray():
            value.flags.writeable = True
            value.view(np.ndarray)[...] = np.zeros((), value.dtype)
            return value
        case np.void():
            return np.zeros(1, value.dtype)[0]
        case _:
            return 0.0


def _annotated(value: Any, shadow: Any) -> Any:
    match value:
        case tuple():
            return MixedDuplicated(value, shadow)
        case np.ndarray() | np.void():
            return Duplicated(value, shadow)
        case _:
            return Active(value)
