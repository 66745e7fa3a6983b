"""A lock for each entry that is not stored yet: one process takes it, and the others wait for its result.

Input   the path of an entry that could not be read.
Output  `EntryLock`, for a process that is to compile it and to store it; None for one that is to look once more, and
        to compile for itself, without a lock, if there is nothing to be loaded.
Method  ``flock`` on a file beside the entry. The kernel drops the lock of a process that was killed: whoever asks next
        takes it over. A process that has compiled something that it cannot store, or that has failed, says so in the
        file, and nobody waits for that entry any more.
Limit   Where a file system has no locks, and where time is up, processes compile side by side: slower, never wrong.

A process takes further locks while it holds one, for what it compiles on the way, but waits for none of them. So no two
processes wait for each other, whatever calls what.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Final

from irad.compiling import step
from irad.options import cache_patience

SUFFIX: Final = ".lock"
_NOT_STORED: Final = b"compiled in each process\n"
_SHORTEST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.2
"""Seconds between two looks at a lock that another process holds."""
_held: Final[set[EntryLock]] = set()


class EntryLock:
    """The lock of an entry, held until `release`.

    Args:
        path: path of the file that is locked.
        file: its descriptor, which holds the lock.
    """

    def __init__(self, path: Path, file: int) -> None:
        self._path, self._file = path, file
        _held.add(self)

    def release(self, *, is_stored: bool) -> None:
        """Lets the other processes go on.

        Args:
            is_stored: whether the entry is there; if not, they compile for themselves.
        """
        _held.discard(self)
        with contextlib.suppress(OSError):  # the folder is gone
            if is_stored:
                self._path.unlink()
            else:
                os.write(self._file, _NOT_STORED)
        os.close(self._file)

    def close_in_child(self) -> None:
        """Closes the descriptor that a forked process has of it: the lock would outlive the process that holds it."""
        os.close(self._file)


def lock_of(entry: Path) -> EntryLock | None:
    """The lock of an entry, once no other process holds it.

    Args:
        entry: the path of a file that was not there, or could not be used.

    Returns:
        None if the entry is there now, if nobody can store it or lock it, or if another process holds the lock for
        longer than `irad.options.cache_patience`.
    """
    path = entry.with_name(entry.name + SUFFIX)
    # Who holds a lock does not wait for another one: two processes might wait for each other.
    deadline, pause = time.monotonic() + (0.0 if _held else cache_patience()), _SHORTEST_PAUSE
    with contextlib.ExitStack() as waiting:
        while not os.path.exists(entry):
            try:
                return _taken(path, entry)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return None
            except OSError:  # the folder cannot be written to, or its file system has no locks
                return None
            if pause == _SHORTEST_PAUSE:
                waiting.enter_context(step("waiting for another process, which compiles it"))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    return None


def _taken(path: Path, entry: Path) -> EntryLock | None:
    """The lock; None if nobody can store the entry, or if it is there by now.

    Raises:
        BlockingIOError: another process holds it, or has just released it.
        OSError: there are no locks here.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # Written to by a holder that could not store what it compiled: each process compiles for itself.
        if os.fstat(file).st_size:
            return None
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(path, file):  # its holder has removed it meanwhile: others lock a new one
            raise BlockingIOError
        if os.fstat(file).st_size:
            return None
        if os.path.exists(entry):
            path.unlink()
            return None
        os.utime(file)  # one that was left by a killed process is not to be removed as old
        lock, file = EntryLock(path, file), -1
        return lock
    finally:
        if file >= 0:
            os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _close_in_child() -> None:
    for each in _held:
        each.close_in_child()
    _held.clear()


os.register_at_fork(after_in_child=_close_in_child)
