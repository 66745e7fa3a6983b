"""Files of compiled code: found by fingerprint, written as a whole, checked when they are read.

A file is never changed. Its name says which specialisation it is of, and its fingerprint; so writers do not disturb
each other, and of several versions of a function each has its own. Versions that are not in use are removed in the end:
closures of a factory, and derivatives with respect to different arguments, are versions of one specialisation, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numba.core.caching import CompileResultCacheImpl

_MAGIC: Final = b"irad 1\n"
_SUFFIX: Final = ".irad"
_KEPT: Final = 8
_IN_USE: Final = 24 * 3600 * 10**9
"""For how many nanoseconds a version counts as in use after it was read."""


def folder_of(function: Callable[..., Any]) -> Path | None:
    """Where Numba would cache a function, the folder made if need be; None where it has no file."""
    try:
        return Path(CompileResultCacheImpl(function).locator.get_cache_path())
    except RuntimeError:  # says Numba: it has no file, or no folder can be written to
        return None


def path_in(folder: Path, name: str, specialisation: str, digest: str) -> Path:
    """The file of a specialisation.

    Args:
        folder: by `folder_of`.
        name: of the function, for those who list the folder.
        specialisation: what tells it from others of that name, whatever its content.
        digest: the fingerprint.
    """
    short = "".join(letter if letter.isalnum() else "_" for letter in name)[-60:]
    group = hashlib.sha256(f"{name}\0{specialisation}".encode()).hexdigest()[:16]
    return folder / f"irad.{short}.{group}.{digest[:32]}{_SUFFIX}"


def read(path: Path) -> bytes | None:
    """The content of a file; None where there is none, or it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + hashlib.sha256().digest_size
    content = data[start:]
    if data[:start] != _MAGIC + hashlib.sha256(content).digest():
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def write(path: Path, content: bytes) -> bool:
    """Writes a file, or leaves everything as it was; says which."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(_MAGIC + hashlib.sha256(content).digest() + content)
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        return False
    _drop_oldest(path)
    return True


def _drop_oldest(path: Path) -> None:
    """Removes old files of a specialisation, and what a writer left that was killed; others may do the same."""
    group, recent = path.name.rsplit(".", 2)[0], time.time_ns() - _IN_USE
    versions = _by_age(path.parent, f"{group}.*{_SUFFIX}")[:-_KEPT]
    for used, each in (*versions, *_by_age(path.parent, f"{group}.*.tmp")):
        if used < recent:
            with contextlib.suppress(OSError):
                each.unlink()


def _by_age(folder: Path, pattern: str) -> list[tuple[int, Path]]:
    """When each of some files was last used, in nanoseconds; the oldest first."""
    found = []
    for each in folder.glob(pattern):
        with contextlib.suppress(OSError):
            found.append((each.stat().st_mtime_ns, each))
    return sorted(found)
