"""Numbers of allocations that Numba's runtime makes and releases."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from numba.core.runtime import rtsys


class Allocations(NamedTuple):
    """Blocks of Numba's runtime, and the headers with reference counts that stand for arrays and other objects."""

    made: int
    released: int
    headers_made: int
    headers_released: int

    @property
    def kept(self) -> int:
        """Blocks that live."""
        return self.made - self.released

    @property
    def kept_headers(self) -> int:
        """Headers that live."""
        return self.headers_made - self.headers_released

    def since(self, before: Allocations) -> Allocations:
        """Allocations counted from ``before`` on."""
        return Allocations(*(mine - its for mine, its in zip(self, before, strict=True)))


@contextmanager
def allocations() -> Iterator[Callable[[], Allocations]]:
    """Counts from here on: a function that gives what was made and released.

    What is garbage beforehand stays until the end, and is not counted.
    """
    counters = importlib.import_module("numba.core.runtime._nrt_python")  # no public name switches the counting on
    was_on = counters.memsys_stats_enabled()
    counters.memsys_enable_stats()
    with _garbage_put_aside():
        before = _all()
        try:
            yield lambda: _all().since(before)
        finally:
            if not was_on:
                counters.memsys_disable_stats()


@contextmanager
def _garbage_put_aside() -> Iterator[None]:
    """Collections look at new objects alone, which takes less time: a compiler's objects are many."""
    if gc.get_freeze_count():  # whoever put objects aside would find them back
        gc.collect()
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _all() -> Allocations:
    gc.collect()
    found = rtsys.get_allocation_stats()
    return Allocations(found.alloc, found.free, found.mi_alloc, found.mi_free)
