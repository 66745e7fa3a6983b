"""What the run-time support needs from its process: the key under which each thread finds its arena."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Final

import llvmlite.binding as ll

from irad.backend.runtime.support import read
from irad.backend.toolchain import own_code
from irad.errors import BackendError

TLS_KEY_SYMBOL: Final = "irad.tls_key"


class _Process:
    """What one process holds for the support library: the key of the threads' arenas, created once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: ctypes.c_uint32 | None = None

    def install(self) -> None:
        """Create the key and tell LLVM where it is, unless done."""
        if self._key is not None:
            return
        with self._lock:
            if self._key is None:
                key = _create_key(_compile_destructor())
                ll.add_symbol(TLS_KEY_SYMBOL, ctypes.addressof(key))
                self._key = key

    def renew_lock(self) -> None:
        """After a fork another thread's hold on the lock would last for ever; the key itself is inherited."""
        self._lock = threading.Lock()


def _compile_destructor() -> int:
    """Address of machine code that frees a thread's arena; it is never unloaded, for threads may end after Python.

    Compiled rather than a Python callback: threads end without the interpreter, and after it.
    """
    engine = own_code(read("release").text())
    address: int = engine.get_function_address("irad.arena_release")
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
            "free keys, for instance those of other libraries, or run irad in a process of its own",
            "the process has used up all keys of its C library (1024 with glibc)",
        )
    return key


_PROCESS: Final = _Process()
os.register_at_fork(after_in_child=_PROCESS.renew_lock)


def install() -> None:
    """Make what the run-time support needs known to LLVM. May be called often, by any thread, and after a fork."""
    _PROCESS.install()
