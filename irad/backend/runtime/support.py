"""The run-time support of derivatives: LLVM text from the files beside this, and what it needs of its process.

Everything is ``linkonce_odr``: modules that were linked with it link together. What is marked ``alwaysinline`` goes
into each derivative that calls it, the rest is compiled once for a process (`irad.frontend.resident`), before which
`install` must have run. Programs of `irad opt`, which have neither Python nor Numba, take `standalone_text` instead.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

import llvmlite.binding as ll

from irad.backend.runtime.text import LlvmText, read
from irad.backend.toolchain import own_code
from irad.errors import BackendError
from irad.runtime_layouts import ARENA, PAIRS

FOLDER: Final = Path(__file__).parent
FILES: Final = (
    *("arena", "stack", "slots", "pointers", "lanes", "partials"),
    *("kernels", "guards", "containers", "shadows", "watch", "states"),
)
MESSAGES: Final = "mpi"
DIFFERENTIABLE: Final = ("kernels", "containers")  # they compute with shadows, or keep account of where these are
TLS_KEY_SYMBOL: Final = "irad.tls_key"
STOP_SYMBOL: Final = "irad.end_process"


@cache
def support() -> LlvmText:
    """The whole support by symbol."""
    return read(FOLDER, *FILES, MESSAGES)


def runtime_text() -> str:
    """LLVM text of the whole support, for a module of its own; without messages, which need a library of MPI."""
    return read(FOLDER, *FILES).text()


def standalone_text(tables: Iterable[str] = ()) -> str:
    """LLVM text of the process's part of the run-time support, for a program without Python and Numba.

    Args:
        tables: symbols of the tables of pairs that calls through pointers ask; a call that asks one ends the process.
    """
    table = f"hidden global %{PAIRS.name} {{ ptr null, ptr @irad.no_pair }}"
    text = read(FOLDER, "standalone", "uncounted").text()
    return "\n".join((text, *(f"@{name} = {table}" for name in sorted(set(tables))), ""))


def counted_text() -> str:
    """Text of the process's part in a program that counts references, like those of Numba."""
    return read(FOLDER, "standalone").text()


class _Process:
    """The key under which each thread of the process finds its arena, created once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: ctypes.c_uint32 | None = None
        self._destructor = 0

    def install(self) -> None:
        """Creates the key and tells LLVM where it is, unless done."""
        if self._key is not None:
            return
        with self._lock:
            if self._key is None:
                self._destructor = _compile_destructor()
                key = _create_key(self._destructor)
                ll.add_symbol(TLS_KEY_SYMBOL, ctypes.addressof(key))
                self._key = key

    def release(self) -> None:
        """Frees the arena of the calling thread, unless a derivative that calls Python is running in it."""
        if self._key is None:
            return
        library = ctypes.CDLL(None)
        find, forget = library.pthread_getspecific, library.pthread_setspecific
        find.argtypes, find.restype = (ctypes.c_uint32,), ctypes.c_void_p
        forget.argtypes, forget.restype = (ctypes.c_uint32, ctypes.c_void_p), ctypes.c_int
        arena = find(self._key)
        if arena is None:
            return
        innermost = ctypes.c_void_p.from_address(arena + ARENA.offset("mark")).value
        if innermost == arena + ARENA.offset("root"):
            forget(self._key, None)
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._destructor)(arena)

    def renew_lock(self) -> None:
        """After a fork another thread's hold on the lock would last forever; the key itself is inherited."""
        self._lock = threading.Lock()


def _compile_destructor() -> int:
    """Address of machine code that frees a thread's arena; it is never unloaded, for threads may end after Python.

    Compiled rather than a Python callback: threads end without the interpreter, and after it.
    """
    name = "irad.arena_release"
    whole = support()
    engine = own_code(whole.module_of(function.text for function in whole.reached([name]).values()))
    address: int = engine.get_function_address(name)
    engine.detach()
    return address


def _create_key(destructor: int) -> ctypes.c_uint32:
    create = ctypes.CDLL(None).pthread_key_create
    create.argtypes = (ctypes.POINTER(ctypes.c_uint32), ctypes.c_void_p)
    create.restype = ctypes.c_int
    key = ctypes.c_uint32()
    status = create(ctypes.byref(key), destructor)
    if status != 0:
        raise BackendError(
            f"no thread-specific key for irad's arenas: {os.strerror(status)}",
            "free keys, for instance those of other libraries, or run irad in a separate process",
            "the process has used up all keys of its C library (1024 with glibc)",
        )
    return key


_PROCESS: Final = _Process()
os.register_at_fork(after_in_child=_PROCESS.renew_lock)


def install() -> None:
    """Registers the symbols of the run-time support with LLVM. May be called often, by any thread, and after a fork."""
    _PROCESS.install()


def release_memory() -> None:
    """Releases the memory that the calling thread keeps for its next derivative.

    A derivative takes the memory of its tape from the thread that calls it. The thread keeps up to 64 MiB of it, and up
    to 64 MiB more for parallel loops, so that the next call need not ask the system. It releases memory that 64 calls
    in succession have not used, and everything when it ends; this function does so at once. While a derivative of this
    thread is running, as in Python code that it calls, nothing happens.

    Examples:
        >>> import irad
        >>> irad.grad(lambda x: x * x)(3.0)
        6.0
        >>> irad.release_memory()
    """
    _PROCESS.release()
