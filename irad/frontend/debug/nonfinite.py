"""Looks for NaNs and infinities in Python objects: arguments, values, gradients."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_DEEPEST = 16


@dataclass(frozen=True)
class Found:
    """A number that is NaN or infinite, and where it is: "[3].weights"."""

    path: str
    number: float

    @property
    def mark(self) -> int:
        """What irad wrote into a NaN; 0 if nothing."""
        bits: int = struct.unpack("<Q", struct.pack("<d", self.number))[0]
        return bits >> 29 & (1 << 22) - 1 if math.isnan(self.number) else 0

    def __str__(self) -> str:
        return str(self.number)


def nonfinite(value: Any) -> Iterator[Found]:
    """The numbers in an object that are NaN or infinite: those marked by irad first, then NaNs, then infinities."""
    found = list(_look(value, "", _DEEPEST))
    return iter(sorted(found, key=lambda each: (not each.mark, not math.isnan(each.number))))


def _look(value: Any, path: str, depth: int) -> Iterator[Found]:
    match value:
        case np.ndarray():
            yield from _look_at_array(value, path)
        case np.void():
            for name in value.dtype.names or ():
                yield from _look(value[name], f"{path}[{name!r}]", depth - 1)
        case bool() | int() | str() | bytes() | None:
            pass
        case complex() | np.complexfloating():
            for part in (float(value.real), float(value.imag)):
                if not math.isfinite(part):
                    yield Found(path, part)
        case float() | np.floating():
            if not math.isfinite(value):
                yield Found(path, float(value))
        case _ if depth > 0:
            yield from _look_inside(value, path, depth)


def _look_at_array(array: np.ndarray[Any, Any], path: str) -> Iterator[Found]:
    if array.dtype.names is not None:
        for name in array.dtype.names:
            yield from _look_at_array(array[name], f"{path}[{name!r}]")
        return
    if array.dtype.kind not in "fc":
        return
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    places = [tuple(int(i) for i in place) for place in np.argwhere(bad)]
    numbers = [(place, part) for place in places for part in _parts(array[place])]
    ranked = sorted(numbers, key=lambda each: (not Found("", each[1]).mark, not math.isnan(each[1])))
    for place, number in ranked[:1]:
        yield Found(f"{path}[{', '.join(map(str, place))}]" if place else path, number)


def _parts(number: Any) -> Sequence[float]:
    parts = (float(number.real), float(number.imag)) if np.iscomplexobj(number) else (float(number),)
    return [part for part in parts if not math.isfinite(part)]


def _look_inside(value: Any, path: str, depth: int) -> Iterator[Found]:
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    if isinstance(value, tuple) and names is not None:
        for name, item in zip(names, value, strict=True):
            yield from _look(item, f"{path}.{name}", depth - 1)
    elif isinstance(value, Mapping):
        for key in list(value):
            yield from _look(value[key], f"{path}[{key!r}]", depth - 1)
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from _look(item, f"{path}[{index}]", depth - 1)
