"""Locks of entries: who compiles, who waits and for how long, and what happens to those whose holder fails or dies."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from irad.frontend.disk import locks, stored
from irad.frontend.disk.locks import lock_of


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    return stored.path_in(tmp_path, "model.f", "(float64,)", "0" * 32)


def locked_elsewhere(entry: Path) -> int:
    """Locks an entry as another process does: locks of two descriptors exclude each other in one process, too."""
    file = os.open(f"{entry}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def test_the_first_one_compiles_and_leaves_nothing_but_the_entry(entry: Path) -> None:
    lock = lock_of(entry)
    assert lock is not None
    entry.write_bytes(b"code")
    lock.release(is_stored=True)
    assert list(entry.parent.iterdir()) == [entry]
    assert lock_of(entry) is None
    assert list(entry.parent.iterdir()) == [entry]


def test_others_wait_until_the_entry_is_there(entry: Path) -> None:
    file = locked_elsewhere(entry)
    ended: list[float] = []

    def end() -> None:
        time.sleep(0.1)
        ended.append(time.monotonic())
        entry.write_bytes(b"code")
        os.close(file)

    thread = threading.Thread(target=end)
    thread.start()
    assert lock_of(entry) is None
    assert ended
    thread.join()


def test_nobody_waits_for_what_is_not_stored(entry: Path) -> None:
    lock = lock_of(entry)
    assert lock is not None
    locks._held.clear()  # as in another process
    waiter = threading.Thread(target=lock_of, args=(entry,))
    waiter.start()
    time.sleep(0.05)
    lock.release(is_stored=False)
    waiter.join(5.0)
    assert not waiter.is_alive()
    started = time.monotonic()
    assert lock_of(entry) is None
    assert time.monotonic() - started < 1.0


def test_a_lock_that_its_holder_drops_is_taken_over(entry: Path) -> None:
    threading.Timer(0.1, os.close, (locked_elsewhere(entry),)).start()  # as the kernel does when a process is killed
    lock = lock_of(entry)
    assert lock is not None
    lock.release(is_stored=False)


def test_waiting_ends(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = locked_elsewhere(entry)
    for seconds in ("0.2", "0"):
        monkeypatch.setenv("IRAD_CACHE_WAIT", seconds)
        started = time.monotonic()
        assert lock_of(entry) is None
        assert float(seconds) <= time.monotonic() - started < 5.0
    os.close(file)


def test_a_process_that_holds_a_lock_takes_others_and_waits_for_none(entry: Path) -> None:
    free, busy = (entry.with_name(f"{entry.name}.{word}") for word in ("free", "busy"))
    file, lock = locked_elsewhere(busy), lock_of(entry)
    assert lock is not None
    inner, started = lock_of(free), time.monotonic()
    assert inner is not None
    assert lock_of(busy) is None
    assert time.monotonic() - started < 5.0
    for each in (inner, lock):
        each.release(is_stored=True)
    os.close(file)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks(entry: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def flock(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    assert lock_of(entry) is None


def test_a_folder_that_is_not_there(entry: Path) -> None:
    assert lock_of(entry.parent / "none" / entry.name) is None


def test_a_forked_process_does_not_keep_the_lock_of_one_that_died(entry: Path) -> None:
    lock = lock_of(entry)
    assert lock is not None
    ready, mine = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(mine)
        os.read(ready, 1)
        os._exit(0)
    os.close(lock._file)  # what the kernel does when this process dies
    locks._held.discard(lock)
    taken = lock_of(entry)
    os.write(mine, b".")
    os.waitpid(child, 0)
    for each in (ready, mine):
        os.close(each)
    assert taken is not None
    taken.release(is_stored=True)


def test_what_a_killed_process_left_is_removed_in_the_end(entry: Path) -> None:
    left, new = (entry.with_name(f"{entry.name[:-6]}{word}.irad.lock") for word in ("old", "new"))
    for each in (left, new):
        each.touch()
    os.utime(left, (0, 0))
    assert stored.write(entry, b"content")
    assert sorted(entry.parent.iterdir()) == sorted([entry, new])
