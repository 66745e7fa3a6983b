"""Arrays of records, some of them at a time: their fields share cache lines, which are fetched once for all fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import Container
from irad.data.recursive.survey import Place, Values

BYTES: Final = 2**18
"""How much of an array is handled at a time: the caches of a core hold it."""
ELEMENTS: Final = 8
"""Fields that are arrays of so many elements are taken element by element: loops of NumPy are then over records."""

Column: TypeAlias = Callable[[NDArray[Any]], Any]


def may_be_split(inputs: Values, outputs: Values) -> bool:
    """Whether nothing that is written may be part of another record, or field, of an input."""
    return not any(output is not value and np.may_share_memory(output, value) for output in outputs for value in inputs)


def rows_of(records: Values, *, whole: bool) -> Iterator[tuple[NDArray[Any], ...]]:
    """Arrays of records, or single ones, in blocks.

    Args:
        records: of one shape.
        whole: whether there is to be one block.
    """
    arrays = tuple(map(np.asarray, records))
    shape = arrays[0].shape
    if whole or not shape:
        yield arrays
        return
    step = max(1, BYTES // max(1, arrays[0].itemsize * math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        yield tuple([array[start : start + step] for array in arrays])


def columns_of(place: Place, *, split: bool) -> tuple[list[tuple[Place, Column]], list[Column]]:
    """The fields of records, down to vectors: the active ones with their places, and the others.

    Args:
        place: of the records.
        split: whether small arrays in fields are taken element by element.
    """
    active: list[tuple[Place, Column]] = []
    inactive: list[Column] = []
    axes = np.ndim(place.inputs[0])
    for leaf, path in _leaves(place, ()):
        if not leaf.is_active:
            inactive.append(_column(path, ...))
            continue
        shape = np.shape(leaf.inputs[0])[axes:]
        is_split = split and math.prod(shape) <= ELEMENTS
        active += [(leaf, _column(path, (..., *index))) for index in (np.ndindex(shape) if is_split else [()])]
    return active, inactive


def _leaves(place: Place, path: tuple[str, ...]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    for part in place.parts:
        way = (*path, part.key)
        if part.place.is_active and isinstance(part.place.kind, Container):
            yield from _leaves(part.place, way)
        else:
            yield part.place, way


def _column(path: tuple[str, ...], index: Any) -> Column:
    def column(array: NDArray[Any]) -> Any:
        for name in path:
            array = array[name]
        return array[index]

    return column
