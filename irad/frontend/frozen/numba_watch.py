"""Reports every specialisation that Numba compiles, or loads from the disk.

Numba's own events (`numba.core.event`) leave out what comes from the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import dispatcher
from numba.core.compiler import CompileResult


def watch(note: Callable[[Any, Any], None]) -> None:
    """Has a function called with each dispatcher and its new specialisation, under Numba's lock, for good."""
    original = dispatcher.Dispatcher.add_overload

    def add_overload(self: Any, cres: CompileResult) -> None:
        original(self, cres)
        note(self, cres)

    dispatcher.Dispatcher.add_overload = add_overload  # type: ignore[method-assign]
