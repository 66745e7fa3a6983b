"""What the tape asks of an array library; `numpy_library.py` and `cupy_library.py` answer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from irad.cuda.devices.device import ArrayView


class Library(Protocol):
    """An array library, whose functions a tape records.

    Attributes:
        name: how users know it.
    """

    name: str

    @property
    def xp(self) -> Any:
        """The module."""
        ...

    def is_array(self, value: Any) -> bool:
        """Whether a value is an array whose memory the tape knows by its address; others are constants."""
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
