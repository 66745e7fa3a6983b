"""Every allocation ends where readable memory ends: a pytest plugin, for finding accesses beyond it. Linux only.

::

    python -m pytest -p tests.tools.guard tests/programs

Each block lies in pages of its own, its last byte in front of a page that cannot be accessed; so a derivative that
reads or writes beyond it ends the process, and so does one that uses it after it was freed. Guarded are what
derivatives take from an arena (tapes, frames, shadows of temporaries), partial shadows of parallel loops, the frame of
each call, all arrays and lists that Numba's runtime allocates, and the data of NumPy's arrays, hence also arguments
and their shadows. Uninitialised memory is NaN. With ``IRAD_GUARD=before`` blocks begin at a guarded page instead,
for accesses in front of them. The plugin must be loaded before anything is compiled.

A block takes two mappings: what holds tens of thousands at once runs out of them, with a MemoryError, unless
``sysctl vm.max_map_count=4000000`` was said before. Plain functions are guarded, too: OpenBLAS's least squares, which
`np.linalg.lstsq` calls, reads beyond its arguments, so programs that call it end the process before irad takes part.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from string import Template
from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from irad.backend.runtime import support
from irad.backend.runtime.text import LlvmText
from irad.frontend import resident
from irad.frontend.calls import sweeps as call_sweeps

_POINTER: Final = ir.IntType(8).as_pointer()

_BLOCKS: Final = Template("""\
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @mprotect(ptr, i64, i32)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; %size bytes of NaNs with a guarded page at one end. In front of them is a page with the length of all and %size.
define linkonce_odr ptr @irad.guard_malloc(i64 %size) nounwind noinline {
entry:
  %sane = icmp ult i64 %size, 140737488355328
  br i1 %sane, label %map, label %fail
map:
  %past = add i64 %size, 4095
  %room = and i64 %past, -4096
  %length = add i64 %room, 8192
  %base = call ptr @mmap(ptr null, i64 %length, i32 3, i32 $flags, i32 -1, i64 0)
  %address = ptrtoint ptr %base to i64
  %refused = icmp eq i64 %address, -1
  br i1 %refused, label %fail, label %protect
protect:
  store i64 %length, ptr %base
  %size.slot = getelementptr i64, ptr %base, i64 1
  store i64 %size, ptr %size.slot
  %last = add i64 %room, 4096
  %slack = sub i64 %last, %size
  %page = getelementptr i8, ptr %base, i64 $page
  %status = call i32 @mprotect(ptr %page, i64 4096, i32 0)
  %unprotected = icmp ne i32 %status, 0
  br i1 %unprotected, label %undo, label %fill
undo:
  %unmapped = call i32 @munmap(ptr %base, i64 %length)
  br label %fail
fill:
  %block = getelementptr i8, ptr %base, i64 $start
  call void @llvm.memset.p0.i64(ptr %block, i8 -1, i64 %size, i1 false)
  ret ptr %block
fail:
  ret ptr null
}

; The page in front of a block.
define linkonce_odr ptr @irad.guard_head(ptr %block) nounwind noinline {
  %address = ptrtoint ptr %block to i64
  %page = and i64 %address, -4096
  %head = sub i64 %page, $distance
  %result = inttoptr i64 %head to ptr
  ret ptr %result
}

define linkonce_odr void @irad.guard_free(ptr %block) nounwind noinline {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %unmap
unmap:
  %base = call ptr @irad.guard_head(ptr %block)
  %length = load i64, ptr %base
  %status = call i32 @munmap(ptr %base, i64 %length)
  br label %done
done:
  ret void
}

define linkonce_odr ptr @irad.guard_calloc(i64 %count, i64 %each) nounwind noinline {
entry:
  %size = mul i64 %count, %each
  %block = call ptr @irad.guard_malloc(i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %block
}

define linkonce_odr ptr @irad.guard_realloc(ptr %old, i64 %size) nounwind noinline {
entry:
  %new = call ptr @irad.guard_malloc(i64 %size)
  %failed = icmp eq ptr %new, null
  %fresh = icmp eq ptr %old, null
  %done.early = or i1 %failed, %fresh
  br i1 %done.early, label %done, label %copy
copy:
  %head = call ptr @irad.guard_head(ptr %old)
  %size.slot = getelementptr i64, ptr %head, i64 1
  %before = load i64, ptr %size.slot
  %less = icmp ult i64 %size, %before
  %common = select i1 %less, i64 %size, i64 %before
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %common, i1 false)
  call void @irad.guard_free(ptr %old)
  br label %done
done:
  ret ptr %new
}
""")

# In place of the functions in Numba's nrt.cpp. What is allocated is described by an ordinary MemInfo, made by the
# function at address $alloc: reference count, destructor and its argument, data, size.
_NUMBA: Final = Template("""\
define void @guarded.drop(ptr %data, i64 %size, ptr %dtor) {
entry:
  %none = icmp eq ptr %dtor, null
  br i1 %none, label %free, label %call
call:
  call void %dtor(ptr %data, i64 %size, ptr null)
  br label %free
free:
  call void @irad.guard_free(ptr %data)
  ret void
}

define void @guarded.set(ptr %info, ptr %data, i64 %size) {
  %data.slot = getelementptr i8, ptr %info, i64 24
  %size.slot = getelementptr i8, ptr %info, i64 32
  store ptr %data, ptr %data.slot
  store i64 %size, ptr %size.slot
  ret void
}

define ptr @guarded.new_dtor(i64 %size, ptr %dtor) {
entry:
  %data = call ptr @irad.guard_malloc(i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %fail, label %describe
describe:
  %info = call ptr inttoptr (i64 $alloc to ptr)(i64 0)
  %drop.slot = getelementptr i8, ptr %info, i64 8
  %dtor.slot = getelementptr i8, ptr %info, i64 16
  store ptr @guarded.drop, ptr %drop.slot
  store ptr %dtor, ptr %dtor.slot
  call void @guarded.set(ptr %info, ptr %data, i64 %size)
  ret ptr %info
fail:
  ret ptr null
}

define ptr @guarded.new(i64 %size) {
  %info = call ptr @guarded.new_dtor(i64 %size, ptr null)
  ret ptr %info
}

define ptr @guarded.varsize_alloc(ptr %info, i64 %size) {
  %data = call ptr @irad.guard_malloc(i64 %size)
  call void @guarded.set(ptr %info, ptr %data, i64 %size)
  ret ptr %data
}

define ptr @guarded.varsize_realloc(ptr %info, i64 %size) {
  %slot = getelementptr i8, ptr %info, i64 24
  %old = load ptr, ptr %slot
  %data = call ptr @irad.guard_realloc(ptr %old, i64 %size)
  call void @guarded.set(ptr %info, ptr %data, i64 %size)
  ret ptr %data
}

define void @guarded.varsize_free(ptr %info, ptr %data) {
entry:
  call void @irad.guard_free(ptr %data)
  %slot = getelementptr i8, ptr %info, i64 24
  %own = load ptr, ptr %slot
  %same = icmp eq ptr %own, %data
  br i1 %same, label %forget, label %done
forget:
  store ptr null, ptr %slot
  br label %done
done:
  ret void
}

; The functions of NumPy's allocator take a context first.
define ptr @guarded.numpy_malloc(ptr %context, i64 %size) {
  %block = call ptr @irad.guard_malloc(i64 %size)
  ret ptr %block
}

define ptr @guarded.numpy_calloc(ptr %context, i64 %count, i64 %each) {
  %block = call ptr @irad.guard_calloc(i64 %count, i64 %each)
  ret ptr %block
}

define ptr @guarded.numpy_realloc(ptr %context, ptr %old, i64 %size) {
  %block = call ptr @irad.guard_realloc(ptr %old, i64 %size)
  ret ptr %block
}

define void @guarded.numpy_free(ptr %context, ptr %block, i64 %size) {
  call void @irad.guard_free(ptr %block)
  ret void
}
""")

_REPLACED: Final = {
    "NRT_MemInfo_alloc": "new",
    "NRT_MemInfo_alloc_safe": "new",
    "NRT_MemInfo_alloc_aligned": "new",
    "NRT_MemInfo_alloc_safe_aligned": "new",
    "NRT_MemInfo_new_varsize": "new",
    "NRT_MemInfo_alloc_dtor": "new_dtor",
    "NRT_MemInfo_alloc_dtor_safe": "new_dtor",
    "NRT_MemInfo_new_varsize_dtor": "new_dtor",
    "NRT_MemInfo_varsize_alloc": "varsize_alloc",
    "NRT_MemInfo_varsize_realloc": "varsize_realloc",
    "NRT_MemInfo_varsize_free": "varsize_free",
}

# A block belongs to the innermost mark, as a deferred decref does; the sign of the address tells them apart. It is
# freed when decrefs have run and lanes are closed.
_ARENA: Final = """\
define linkonce_odr noalias ptr @irad.arena_alloc(ptr %arena, i64 %size) nounwind alwaysinline {
  %block = call ptr @irad.guard_alloc(ptr %arena, i64 %size)
  ret ptr %block
}

define linkonce_odr noalias ptr @irad.guard_alloc(ptr %arena, i64 %size) nounwind noinline {
entry:
  %block = call ptr @irad.guard_malloc(i64 %size)
  %none = icmp eq ptr %block, null
  br i1 %none, label %fail, label %note
note:
  %address = ptrtoint ptr %block to i64
  %marked.address = or i64 %address, -9223372036854775808
  %marked = inttoptr i64 %marked.address to ptr
  call void @irad.arena_defer(ptr %arena, ptr %marked)
  ret ptr %block
fail:
  %failed.slot = getelementptr inbounds %irad.arena, ptr %arena, i32 0, i32 ${arena.failed}
  store i32 ${OUT_OF_MEMORY}, ptr %failed.slot
  ret ptr null
}

define linkonce_odr void @irad.guard_decref(ptr %meminfo) nounwind noinline {
entry:
  %address = ptrtoint ptr %meminfo to i64
  %marked = icmp slt i64 %address, 0
  br i1 %marked, label %done, label %drop
drop:
  call void @NRT_decref(ptr %meminfo)
  br label %done
done:
  ret void
}

define linkonce_odr void @irad.guard_release(ptr %mark) nounwind noinline {
entry:
  %first.slot = getelementptr inbounds %irad.mark, ptr %mark, i32 0, i32 ${mark.first_deferred}
  %first = load ptr, ptr %first.slot
  br label %loop
loop:
  %node = phi ptr [ %first, %entry ], [ %next, %body ], [ %next, %free ]
  %end = icmp eq ptr %node, null
  br i1 %end, label %done, label %body
body:
  %meminfo.slot = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 ${deferred.meminfo}
  %next.slot = getelementptr inbounds %irad.deferred, ptr %node, i32 0, i32 ${deferred.next}
  %next = load ptr, ptr %next.slot
  %meminfo = load ptr, ptr %meminfo.slot
  %address = ptrtoint ptr %meminfo to i64
  %marked = icmp slt i64 %address, 0
  br i1 %marked, label %free, label %loop
free:
  %block.address = and i64 %address, 9223372036854775807
  %block = inttoptr i64 %block.address to ptr
  call void @irad.guard_free(ptr %block)
  br label %loop
done:
  ret void
}
"""

_PARTIAL: Final = """\
define linkonce_odr ptr @irad.partial_allocate(i64 %bytes) nounwind noinline {
  %block = call ptr @irad.guard_calloc(i64 %bytes, i64 1)
  ret ptr %block
}

define linkonce_odr void @irad.partial_free(ptr %base, i64 %bytes) nounwind noinline {
  call void @irad.guard_free(ptr %base)
  ret void
}
"""


def install() -> None:
    """Guards all blocks that are allocated from now on.

    Raises:
        RuntimeError: derivatives have been compiled before.
    """
    if resident.is_loaded():
        raise RuntimeError("guard.install() comes too late: derivatives have been compiled")
    blocks = _blocks(before=os.environ.get("IRAD_GUARD") == "before")
    guarded = _guarded(support.support(), blocks)
    setattr(support, "support", lambda: guarded)  # noqa: B010  (mypy forbids the assignment)
    address = _compile(blocks)
    for symbol, name in _REPLACED.items():
        llvm.add_symbol(symbol, address(f"guarded.{name}"))
    _guard_numpy(address)
    _guard_frames()


def _blocks(before: bool) -> str:
    """The allocator; blocks begin after a guarded page, or end before one."""
    end = {"page": "%last", "start": "%slack", "distance": "4096"}
    begin = {"page": "4096", "start": "8192", "distance": "8192"}
    return _BLOCKS.substitute(begin if before else end, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _compile(blocks: str) -> Any:
    """What gives the addresses of the functions for Numba and NumPy, which live as long as the process."""
    rtsys.initialize(cpu_target.target_context)  # what it tells LLVM once would replace ours
    original = llvm.address_of_symbol("NRT_MemInfo_alloc")
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    module = llvm.parse_assembly(blocks + _NUMBA.substitute(alloc=original))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _ALIVE.append(engine)
    return engine.get_function_address


_ALIVE: Final[list[Any]] = []


def _guarded(found: LlvmText, blocks: str) -> LlvmText:
    """The run-time support with guarded blocks. Marks and nodes of lists stay in the arena: its closing reads them."""
    clean = found.functions["irad.arena_alloc"].text.replace("@irad.arena_alloc(", "@irad.arena_alloc_clean(", 1)
    changed = [blocks, _ARENA, _PARTIAL, clean]
    for name in ("irad.arena_push", "irad.arena_defer"):
        changed.append(found.functions[name].text.replace("@irad.arena_alloc(", "@irad.arena_alloc_clean("))
    changed.append(found.functions["irad.run_deferred"].text.replace("@NRT_decref", "@irad.guard_decref"))
    for name, mark in (("irad.arena_close", "%mark"), ("irad.arena_delete", "%root")):
        close = f"  call void @irad.lanes_close(ptr %arena, ptr {mark})\n"
        assert close in found.functions[name].text
        release = f"  call void @irad.guard_release(ptr {mark})\n"
        changed.append(found.functions[name].text.replace(close, close + release))
    return found.with_text("\n".join(changed))


class _NumpyHandler(ctypes.Structure):
    """``PyDataMem_Handler`` of NumPy's C API."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


_SET_HANDLER: Final = 304  # the place of PyDataMem_SetHandler in NumPy's table of functions


def _guard_numpy(address: Any) -> None:
    names = ("malloc", "calloc", "realloc", "free")
    handler = _NumpyHandler(b"guarded", 1, None, *(address(f"guarded.numpy_{name}") for name in names))
    python = ctypes.pythonapi
    python.PyCapsule_New.restype = ctypes.py_object
    python.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    name = b"mem_handler"
    capsule = python.PyCapsule_New(ctypes.addressof(handler), name, None)
    table = python.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    function = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[_SET_HANDLER]
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(function)(capsule)
    _ALIVE.extend((handler, name, capsule))


def _guard_frames() -> None:
    """Frames on the stack move to blocks of their own, which are freed where the arena is closed."""
    close_arena = call_sweeps.Sweeps.close_arena
    frames: dict[call_sweeps.Sweeps, Any] = {}

    def guarded_frame(sweeps: call_sweeps.Sweeps) -> Any:
        size = ir.Constant(ir.IntType(64), max(sweeps.derivation.compiled.derivative.frame_size, 1))
        malloc = sweeps.declare("irad.guard_malloc", _POINTER, [size.type])
        frames[sweeps] = sweeps.builder.call(malloc, [size])
        return frames[sweeps]

    def close_and_free(sweeps: call_sweeps.Sweeps, arena: Any) -> None:
        close_arena(sweeps, arena)
        if sweeps in frames:
            free = sweeps.declare("irad.guard_free", ir.VoidType(), [_POINTER])
            sweeps.builder.call(free, [frames[sweeps]])

    setattr(call_sweeps.Sweeps, "frame_on_stack", guarded_frame)  # noqa: B010
    setattr(call_sweeps.Sweeps, "close_arena", close_and_free)  # noqa: B010


def pytest_configure(config: object) -> None:
    """Pytest's hook: runs before any test is imported."""
    install()
