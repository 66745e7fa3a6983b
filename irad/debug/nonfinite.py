"""Looks for NaNs and infinities in Python objects: arguments, values, gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irad.data.structure import pieces


@dataclass(frozen=True)
class Found:
    """A number that is NaN or infinite, and where it is: "[3].weights"."""

    path: str
    number: float

    @property
    def mark(self) -> int:
        """What irad wrote into a NaN; 0 if nothing."""
        return int(_marks(np.array([self.number]))[0])

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """For an order: NaNs marked by irad as they were made, then other NaNs, then infinities."""
        return not self.mark, self.mark, not math.isnan(self.number)

    def within(self, name: str) -> tuple[str, str]:
        """What it is part of, and where in that, for an object with a name: "the argument x", " at [3]".

        Keys and attributes are written as the function writes them: "the argument params['weights']".
        """
        named, after, _ = name.partition(" after the call")
        if self.path.startswith((".", "['")) and "value of" not in named:
            return f"{named}{self.path}{after}", ""
        return name, f" at {self.path}" if self.path else ""

    def __str__(self) -> str:
        return str(self.number)


def nonfinite(value: object, *, infinities_first: bool = False) -> Found | None:
    """The number in an object that is NaN or infinite; of several the NaN that was made first.

    With ``infinities_first`` an infinity goes before a NaN that was not made by an operation.
    """
    found = [bad for path, each in pieces(value) for bad in _look(each, path, infinities_first)]
    if infinities_first:
        found.sort(key=lambda bad: math.isnan(bad.number))
    return min(found, key=lambda bad: bad.rank[: 2 if infinities_first else 3], default=None)


def _marks(numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """What is marked into doubles."""
    return np.where(np.isnan(numbers), numbers.view(np.uint64) >> 29 & (1 << 22) - 1, 0)


def _look(value: object, path: str, infinities_first: bool) -> Iterator[Found]:
    if not isinstance(value, float | complex | np.inexact | np.ndarray):
        return
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return
    kind, count = (np.complex128, 2) if array.dtype.kind == "c" else (np.float64, 1)
    numbers = np.array(array, kind, order="C").reshape(-1).view(np.float64)
    where = np.flatnonzero(~np.isfinite(numbers))
    marks = _marks(numbers[where])
    first = np.lexsort((np.isnan(numbers[where]) == infinities_first, marks, marks == 0))[0]
    place = np.unravel_index(where[first] // count, array.shape)
    yield Found(f"{path}[{', '.join(map(str, place))}]" if place else path, float(numbers[where[first]]))
