"""Compiled specialisations from bytes, and the files that these are in.

Input   bytes by `dumped`.
Output  a compile result that is called like one that was compiled here.
Method  Numba's own. Symbols of functions have a number that Numba counts in each process; `number_apart` makes it one
        that no other process uses, so that stored code never meets other code of the same name.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import itertools
import os
import pickle
import re
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys

from irad.backend import vector_math
from irad.frontend import external, resident
from irad.frontend.disk import locks
from irad.frontend.disk.fingerprint import digest_of, surroundings
from irad.frontend.numba import internals
from irad.frontend.numba.internals import object_symbol
from irad.frontend.numba.target import engine, target_context

# Files of compiled code: found by fingerprint, written as a whole, checked when they are read.
#
# A file is never changed. Its name says which specialisation it is of, and its fingerprint; so writers do
# not disturb each other, and of several versions of a function each has its own. Versions that are not in
# use are removed in the end: closures of a factory, and derivatives with respect to different arguments,
# are versions of one specialisation, too.

_MAGIC: Final = b"irad 1\n"
_SUFFIX: Final = ".irad"
_KEPT: Final = 8
_IN_USE: Final = 24 * 3600 * 10**9
"""For how many nanoseconds a version counts as in use after it was read."""


def folder_of(function: Callable[..., Any]) -> Path | None:
    """The folder in which Numba would cache a function, made if need be; None where it has no file."""
    try:
        return Path(CompileResultCacheImpl(function).locator.get_cache_path())
    except RuntimeError:  # says Numba: it has no file, or no folder can be written to
        return None


def path_in(folder: Path, name: str, specialisation: str, digest: str) -> Path:
    """The file of a specialisation.

    Args:
        folder: by `folder_of`.
        name: of the function, for those who list the folder.
        specialisation: key among specialisations of that name, independent of the content.
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
    # Reading counts as use, which keeps a version from being removed; where the folder cannot be written to, it still
    # is read.
    with contextlib.suppress(OSError):
        os.utime(path)
    return content


def write(path: Path, content: bytes) -> bool:
    """Writes a file, or leaves everything as it was; says which."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(_MAGIC + hashlib.sha256(content).digest() + content)
        # In one step: a reader finds the whole file or none.
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        return False
    _drop_oldest(path)
    return True


def _drop_oldest(path: Path) -> None:
    """Removes old files of a specialisation, and what killed processes left; others may do the same."""
    group, recent = path.name.rsplit(".", 2)[0], time.time_ns() - _IN_USE
    versions = _by_age(path.parent, f"{group}.*{_SUFFIX}")[:-_KEPT]
    left = (*_by_age(path.parent, f"{group}.*.tmp"), *_by_age(path.parent, f"{group}.*{locks.SUFFIX}"))
    for used, each in (*versions, *left):
        if used < recent:
            with contextlib.suppress(OSError):
                each.unlink()


def _by_age(folder: Path, pattern: str) -> list[tuple[int, Path]]:
    """Files with the time in nanoseconds at which each was last used; the oldest first."""
    found = []
    for each in folder.glob(pattern):
        with contextlib.suppress(OSError):
            found.append((each.stat().st_mtime_ns, each))
    return sorted(found)


# Numba's own numbers, from one on, stay below the least; of this many no two processes draw the same.
LEAST, _SPAN = 10**12, 1 << 60
_apart: Final[list[bool]] = []


def number_apart() -> None:
    """From now on, Numba numbers the functions that it compiles in a way of this process's own."""
    if not _apart:
        _apart.append(True)
        _start_anew()
        # A forked process would give its functions the numbers that its parent gives others.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_start_anew)


def _start_anew() -> None:
    internals.number_functions(itertools.count(LEAST + secrets.randbelow(_SPAN)))


class Object(NamedTuple):
    """An object that stored code has the address of, in a variable.

    Attributes:
        symbol: symbol of the variable.
        address: in the process that compiled the code.
        function: number of a function among those of the fingerprint, or the name under which a library has it; None of
            an inner function, of which compiled code passes the address on without a use for it.
        is_pool: it is the workspace of a rule for that function, and not the function itself.
    """

    symbol: str
    address: int
    function: int | str | None
    is_pool: bool


def loaded(content: bytes, context: Any, folder: Path, functions: Sequence[Any]) -> tuple[Any, Any] | None:
    """The specialisation that was stored, and what goes with it; None where this process lacks what it calls.

    Args:
        content: by `dumped`.
        context: Numba's, of the target.
        folder: where the support that it calls is stored.
        functions: the dispatchers of its fingerprint.
    """
    beside, watched, support, outside, objects, reduced = pickle.loads(content)
    # Stored code calls Numba's runtime, which a process that has compiled nothing has not loaded yet.
    rtsys.initialize(context)
    if watched is not None:
        watched.restore()
    if any(name in internals.OF_THREADS for name in outside):
        internals.start_threads()
    resident.load_stored(support, partial(_support, folder))
    # Functions of the C library for vectors, which this process may not have.
    if any(name.startswith("_ZGV") for name in outside) and not vector_math.is_loaded():
        return None
    if not all(name in support or _is_known(name) for name in outside):
        return None
    # The code may be in this process already, and a symbol has one address: each copy has names of its own.
    fresh = {each.symbol: object_symbol() for each in objects}
    for symbol, name in fresh.items():
        reduced = reduced.replace(symbol.encode(), name.encode())  # as long, so that nothing else moves
    objects = [each._replace(symbol=fresh[each.symbol]) for each in objects]
    compiled = internals.rebuilt(context, pickle.loads(reduced))
    compiled.library.irad_is_stored = True
    if objects:
        _set_objects(compiled.library, objects, functions)
    return compiled, beside


def _set_objects(library: Any, objects: Sequence[Object], functions: Sequence[Any]) -> None:
    """Puts the addresses of this process into code, and into what others link of it."""
    text, kept, pools = str(internals.module_for_linking(library)), list[Any](), list[Any]()
    for each in objects:
        found = _found(each.function, functions)
        if each.is_pool:
            from irad.frontend.custom.workspace_pools import Pool  # few rules have workspace

            known = next((pool for address, pool in pools if address == each.address), None)
            found = known or Pool(found.py_func)
            pools += [] if known else [(each.address, found)]
        address = found.address if each.is_pool else id(found)
        place = engine().get_global_value_address(each.symbol)
        ctypes.c_void_p.from_address(place).value = address
        # Numba names the variable by the address in it, and what links this may have one for the object that is there.
        text = re.sub(rf"\b{each.address}\b", str(address), text).replace(f".{each.address:x}", f".{address:x}")
        kept.append(found)
    internals.set_module_for_linking(library, llvm.parse_assembly(text))
    library.irad_objects, library.irad_pools = kept, [pool for _, pool in pools]


class _Unnamed:
    """Stands for functions that have no name by which another process could find them."""


_UNNAMED: Final = _Unnamed()


def _found(function: int | str | None, functions: Sequence[Any]) -> Any:
    """The object of this process that stands for one of the process that compiled the code."""
    if function is None:
        return _UNNAMED
    if isinstance(function, int):
        return functions[function]
    module, _, name = function.rpartition(".")
    return getattr(importlib.import_module(module), name)


def is_stored(compiled: CompileResult) -> bool:
    """True if a specialisation was loaded from irad's cache."""
    return bool(getattr(compiled.library, "irad_is_stored", False))


def _support(folder: Path, names: Sequence[str], build: Callable[[], Any]) -> Any:
    """A library of some support functions, loaded from disk where it is there, and written to it otherwise."""
    path = path_in(folder, f"irad.runtime.{names[0]}", "", digest_of((*surroundings(), *names)))
    content, lock = read(path), None
    if content is None:
        lock = locks.lock_of(path)
        content = read(path) if lock is None else None
    if content is not None:
        codegen: Any = target_context().codegen()
        return codegen.unserialize_library(pickle.loads(content))
    is_written = False
    try:
        library = build()
        is_written = write(path, pickle.dumps(library.serialize_using_object_code()))
    finally:
        if lock is not None:
            lock.release(is_stored=is_written)
    return library


def _is_known(name: str) -> bool:
    return llvm.address_of_symbol(name) is not None or external.finds_linear_algebra(name)
