"""Adding to shadows: elements of a view may share memory."""

from __future__ import annotations

from typing import Any

from irad.cuda.arrays.library import Library
from irad.cuda.devices.device import ArrayView


def accumulate(library: Library, shadow: ArrayView, added: Any) -> None:
    """Adds a cotangent to the shadow of an array; views that repeat elements add up."""
    m = library.xp
    added = _as_type(added, shadow).reshape(shadow.shape)
    if is_injective(shadow):
        target = library.array(shadow)
        target += added
        return
    low, high = shadow.extent
    itemsize = shadow.dtype.itemsize
    places = m.full(shadow.shape, (shadow.address - low) // itemsize, m.int64)
    for axis, (length, stride) in enumerate(zip(shadow.shape, shadow.strides, strict=True)):
        steps = m.arange(length, dtype=m.int64) * (stride // itemsize)
        places += steps.reshape([-1 if i == axis else 1 for i in range(len(shadow.shape))])
    memory = ArrayView(low, ((high - low) // itemsize,), (itemsize,), shadow.dtype, False, shadow.owner)
    add_at(m, library.array(memory), places.reshape(-1), added.reshape(-1))


def _as_type(added: Any, shadow: ArrayView) -> Any:
    """The cotangent of a real number is real."""
    return (added.real if shadow.dtype.kind == "f" and added.dtype.kind == "c" else added).astype(shadow.dtype)


def is_injective(view: ArrayView) -> bool:
    """Whether different elements have different addresses, as far as the strides tell."""
    reach = view.dtype.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(view.strides, view.shape, strict=True) if n > 1):
        if stride < reach:
            return False
        reach = stride * (length - 1) + reach
    return True


def add_at(xp: Any, target: Any, places: Any, added: Any) -> None:
    """Adds numbers to places of a vector, several of which may be the same."""
    if target.dtype.kind == "c":
        xp.add.at(target.real, places, added.real)
        xp.add.at(target.imag, places, added.imag)
    else:
        xp.add.at(target, places, added.real)
