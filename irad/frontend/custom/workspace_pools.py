"""Pools of workspace, as Python sees them: one for each pair that is made from a stateful rule.

A pool's memory is never freed, since code and slots in use refer to it by address; it is 40 bytes. The `Pool` lives as
long as the code that has it built in. When that is collected, or on `close`, the workspace is released.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, NamedTuple

from irad.frontend import resident
from irad.runtime_layouts import POOL


class _Head(ctypes.Structure):
    """The part of a pool that generated code sees: ``%irad.pool``."""

    _fields_ = POOL.in_c


_HEADS: Final[list[_Head]] = []


class Workspace(NamedTuple):
    """Number of slots of workspace that a rule holds; the result of `irad.rules.workspace`.

    Attributes:
        in_use: slots of calls whose derivative has not ended.
        spare: slots that are free for the next call.

    Examples:
        >>> from irad.rules import Workspace
        >>> Workspace(in_use=1, spare=0)  # while a pullback lives
        Workspace(in_use=1, spare=0)
    """

    in_use: int
    spare: int


class Pool:
    """The slots of one pair.

    Args:
        target: the function that the rule is for.

    Attributes:
        target: the same.
        address: where generated code finds it.
    """

    def __init__(self, target: object) -> None:
        head = _Head()
        _HEADS.append(head)
        self.target, self.address, self._head = target, ctypes.addressof(head), head
        _POOLS.add(self)
        weakref.finalize(self, _close, self.address).atexit = False

    def close(self) -> None:
        """Releases the spare slots; those in use are released when their derivative has ended."""
        _close(self.address)

    @property
    def workspace(self) -> Workspace:
        """Number of slots, in use and spare."""
        return Workspace(self._head.all - self._head.spare, self._head.spare)


_POOLS: Final[weakref.WeakSet[Pool]] = weakref.WeakSet()


def pool_at(address: int) -> Pool | None:
    """The pool that generated code finds at an address; None if there is none."""
    return next((pool for pool in list(_POOLS) if pool.address == address), None)


def pools_for(target: object) -> Iterator[Pool]:
    """The pools of the rule for a function, whichever derivative they belong to."""
    function = getattr(target, "py_func", target)
    for pool in list(_POOLS):
        if pool.target is target or pool.target is function:
            yield pool


@cache
def _compiled_close() -> Callable[[int], None]:
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(resident.address_of("irad.pool_close"))


def _close(address: int) -> None:
    _compiled_close()(address)


def _unlock() -> None:
    """After a fork another thread's hold on a lock would last forever."""
    for head in _HEADS:
        head.locked = 0


os.register_at_fork(after_in_child=_unlock)
