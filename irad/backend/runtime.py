"""Run-time support of derivatives: LLVM text that is linked into each of them, and what it needs of the process.

The text is in ``runtime_arena`` (life of an arena, and how arenas work), ``runtime_allocate`` (allocation, deferred
decrefs), ``runtime_slots`` (workspace of rules), ``runtime_stack`` (room for recursion), ``runtime_pointers`` (calls
through pointers), ``runtime_lanes`` and ``runtime_partials`` (parallel loops), ``runtime_kernels`` (loops over shadow
memory) and ``runtime_containers`` (shadows of lists and dictionaries). All of it is ``linkonce_odr``: modules that were
linked with it link together.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Final

import llvmlite.binding as ll

from irad.backend.runtime_allocate import ALLOCATE, DEFER
from irad.backend.runtime_arena import LIFE, RELEASE, TYPES
from irad.backend.runtime_containers import containers_text
from irad.backend.runtime_kernels import kernels_text
from irad.backend.runtime_lanes import LANES
from irad.backend.runtime_partials import PARTIAL_TYPES, partials_text
from irad.backend.runtime_pointers import POINTERS
from irad.backend.runtime_slots import SLOTS
from irad.backend.runtime_stack import STACK
from irad.backend.runtime_watch import METER, WATCH
from irad.errors import BackendError

# Byte offsets of the fields of %irad.arena that generated code may touch.
TOP: Final = 0
END: Final = 8
FAILED: Final = 16  # i32
PENDING: Final = 200  # ptr
PENDING_CODE: Final = 208  # i32
WATCHED_CALL: Final = 216  # i64
ACTIVATION: Final = 224  # ptr
TAPE_METER: Final = 232  # ptr
RULE_RAISED: Final = 3  # reason in FAILED: the reverse of a rule raised what is pending
TAPE_FULL: Final = 4  # reason in FAILED: the tape would take more than the meter allows

# What `irad.rules.stop_gradient` calls in a program to be differentiated.
STOP: Final = """\
define linkonce_odr double @irad.stop.f64(double %x) nounwind alwaysinline {
  ret double %x
}
define linkonce_odr float @irad.stop.f32(float %x) nounwind alwaysinline {
  ret float %x
}
"""

TLS_KEY_SYMBOL: Final = "irad.tls_key"


@cache
def runtime_text() -> str:
    """LLVM text of the whole support library.

    ``install`` must have run before code with it is loaded. Functions, all with the C calling convention::

        ptr  irad.arena_open()                  the thread's arena with a new mark; null when out of memory
        void irad.arena_close(ptr)              runs the deferred decrefs, returns to the mark
        ptr  irad.arena_new()                   an arena that outlives the call; null when out of memory
        void irad.arena_delete(ptr)             runs its deferred decrefs and frees it
        ptr  irad.arena_alloc(ptr, i64)         bytes; null and the flag when out of memory
        ptr  irad.arena_alloc_product(ptr, i64, i64)
        void irad.arena_defer(ptr, ptr)         decref at the close
        irad.slot_*, irad.pool_close            workspace of rules: see ``runtime_slots``
        i1   irad.arena_failed(ptr)             whether an allocation failed since the open
        i1   irad.stack_full(ptr)               whether little stack is left; sets the flag as well
        ptr  irad.pointer_pair(ptr, ptr table, ptr)    the pair of a function by its address; null and the flag
        i32  irad.arena_reason(ptr)             the status to leave with when that or an allocation failed
        ptr  irad.lanes_open(ptr, i64)          arenas for lanes, until the close; null and the flag when out of memory
        void irad.lanes_failed(ptr, ptr, i64)   hands the flags of lanes on
        i1   irad.partials_open(ptr, i64, ptr, i64, i64)    partial shadows: see ``runtime_partials``; _close
        void irad.add_shared_f64(ptr, i64, i64, i64, ptr, double)   adds to a shadow that lanes share; also _f32
        double irad.take_shared_f64(ptr, i64, i64, i64, ptr)   takes from one; also _f32
        void irad.move_shared_f64(…, ptr, …, ptr, i64)   takes from one, adds to another; drop_shared only takes
        void irad.copy_adjoint_f64(ptr, ptr, i64)   adjoint of memmove(dst, src, bytes) on shadows; also _f32
        void irad.add_f64(ptr, ptr, i64)            dst[i] += src[i], by elements; also _f32
        double irad.stop.f64(double)            the number itself; also .f32
        irad.check_f64, irad.tie_f64, irad.tape_*   debug mode and the meter of the tape: see ``runtime_watch``
        irad.list_*, irad.dict_*                shadows of typed containers: see ``runtime_containers``
    """
    sweeps = (TYPES, PARTIAL_TYPES, RELEASE, LIFE, STACK, ALLOCATE, DEFER, SLOTS, POINTERS, LANES, WATCH, METER)
    parts = (*sweeps, STOP, partials_text(), kernels_text(), containers_text())
    return "\n".join(parts)


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
    ll.initialize_native_target()
    ll.initialize_native_asmprinter()
    machine = ll.Target.from_default_triple().create_target_machine(jit=True)
    engine = ll.create_mcjit_compiler(ll.parse_assembly(TYPES + RELEASE), machine)
    engine.finalize_object()
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
    """Make the symbols of ``runtime_text`` known to LLVM. May be called often, by any thread, and after a fork."""
    _PROCESS.install()
