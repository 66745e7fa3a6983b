"""Interface of an array library, as the tape needs it; `numpy_library.py` and `cupy_library.py` answer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from irad.cuda.devices.device import ArrayView


class Library(Protocol):
    """An array library, whose functions a tape records.

    Attributes:
        name: its name for users.
    """

    name: str

    @property
    def xp(self) -> Any:
        """The module."""
        ...

    def is_array(self, value: Any) -> bool:
        """True if a value is an array whose memory the tape knows by its address; others are constants."""
        ...

    def plain(self, value: Any) -> Any:
        """An array as the functions of the library take it without being recorded."""
        ...

    def array(self, view: ArrayView) -> Any:
        """A plain array in the memory of a view."""
        ...

    def wrapped(self, value: Any) -> Any:
        """A result as the user gets it, an array also where it is a single number."""
        ...

    def stream(self) -> int:
        """Handle of the stream on which functions run."""
        ...

    def running(self, stream: int) -> AbstractContextManager[None]:
        """Functions of the library run on a stream, and without warnings, while the block lasts."""
        ...


# Adding to shadows: elements of a view may share memory.


def accumulate(library: Library, shadow: ArrayView, added: Any) -> None:
    """Adds a cotangent to the shadow of an array; views that repeat elements add up."""
    m = library.xp
    added = _cotangent_as(added, shadow).reshape(shadow.shape)
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


def _cotangent_as(added: Any, shadow: ArrayView) -> Any:
    """The cotangent of a real number is real."""
    return (added.real if shadow.dtype.kind == "f" and added.dtype.kind == "c" else added).astype(shadow.dtype)


def is_injective(view: ArrayView) -> bool:
    """True if different elements have different addresses, as far as the strides tell."""
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
