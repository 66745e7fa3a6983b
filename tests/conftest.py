"""Slow tests are marked, those that are listed too.

Cyclic garbage collection looks at what a test module makes, not at Numba, irad and all that was compiled before.
Numba and irad come to a quarter of a million objects, what is compiled in a run of all tests to some millions: compiled
functions stay as long as the modules that define them. A test that asks for a collection would wait seconds for it.
"""

from __future__ import annotations

import gc

import pytest
from llvmlite.binding import ffi, newpassmanagers

import irad.testing  # noqa: F401 - it imports Numba and all of irad that compiles
from irad.compiling import with_room_for_frames
from tests.tools.slow_tests import LIST

gc.collect()
gc.freeze()
gc.set_threshold(20_000, 20, 20)

# Numba times each call of LLVM, for `get_metadata`: that took 2.8 % of the time of the programs.
ffi.lib._lock._cblist.clear()

# llvmlite means to dispose of pass managers, but a method of that name that does nothing comes first: Numba makes one
# for each function of each module, which is half of the memory that stays.
for _manager in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
    _manager._dispose = newpassmanagers.NewPassManager._dispose


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what `tests/slow_tests.txt` lists, before pytest selects by marks."""
    slow = frozenset(LIST.read_text("utf-8").splitlines())
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Numba, too, compiles what a test calls; irad makes room only for itself."""
    pyfuncitem.obj = with_room_for_frames(pyfuncitem.obj)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What is alive at the end of a test module stays alive: it is not looked at again."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()
