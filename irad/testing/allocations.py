"""How many allocations Numba's runtime makes and releases."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core.runtime import rtsys


@contextmanager
def allocations() -> Iterator[Callable[[], tuple[int, int]]]:
    """Counts from here on: a function that gives the numbers of allocations made and released."""
    counters = importlib.import_module("numba.core.runtime._nrt_python")  # no public name switches the counting on
    was_on = counters.memsys_stats_enabled()
    counters.memsys_enable_stats()
    gc.collect()
    before = rtsys.get_allocation_stats()

    def count() -> tuple[int, int]:
        gc.collect()
        after = rtsys.get_allocation_stats()
        return after.alloc - before.alloc, after.free - before.free

    try:
        yield count
    finally:
        if not was_on:
            counters.memsys_disable_stats()
