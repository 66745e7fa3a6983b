"""Layout of the memory that generated code, the native scheduler and Python share.

LLVM text has the types and the indices of fields from here by name, as in `irad.backend.runtime.text`.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

from irad.runtime_layouts import Struct

THREAD: Final = Struct(
    "irad.cuda.thread",
    tid_x="i32",
    tid_y="i32",
    tid_z="i32",
    index="i32",  # in the block; the warp is index // 32, the lane index % 32
    state="i32",  # see `irad.backend.executor.dialect.State`
    site="i32",  # where it waits: an index into the sites of the kernel
    mask="i32",  # of a warp operation
    operand="i32",  # its lane, delta or predicate; the predicate of a barrier
    value="i64",  # the bits that it gives to a shuffle; afterwards the result of any operation
    handle="ptr",  # the coroutine, null before it has started
    launch="ptr",
    clock="i32",  # how often it has synchronised with its warp in this block
    spare="i32",
)
LAUNCH: Final = Struct(
    "irad.cuda.launch",
    ctaid_x="i32",
    ctaid_y="i32",
    ctaid_z="i32",
    ntid_x="i32",
    ntid_y="i32",
    ntid_z="i32",
    nctaid_x="i32",
    nctaid_y="i32",
    nctaid_z="i32",
    dynamic_bytes="i32",  # of dynamic shared memory
    arguments="ptr",  # a struct of the kernel's parameters
    shared="ptr",  # shared memory of the block
    shared_bytes="i64",
    threads="ptr",
    count="i64",  # of threads in a block
    start="ptr",  # thread to coroutine, which has run to its first suspension
    orders="ptr",  # of the threads: `rounds` permutations, used in turn
    rounds="i64",
    blocks="ptr",  # the order of the blocks, by number
    take_frame="ptr",  # a function: thread, bytes to memory of a coroutine
    log_access="ptr",  # a function: thread, address, bytes, kind, site to the address to use
    pool="ptr",  # the frames of the coroutines, one for each thread
    stride="i64",  # bytes of a frame
    stack="ptr",  # below this, down to the current frame, is the stack of the thread that runs
    finished="i64",  # threads of the block that have returned
    waiting="i64",  # threads that wait at a barrier
    kinds="i32",  # the states of those, a bit for each
    first_site="i32",  # the barrier at which the first of them waits
    mixed_thread="i32",  # a thread that waits at another one, -1 if there is none; both sites
    mixed_site="i32",
    mixed_other="i32",
    failed="i32",  # memory ran out
    barriers="i64",  # how often a block passed one
    exchanges="i64",  # operations of warps
    trace="ptr",  # the log of accesses, null unless it is kept
    traced="i64",  # entries
    room="i64",  # for how many
    epoch="i32",  # of the log: how many blocks have begun and barriers have been passed
    sites_mixed="i32",
    extents="ptr",  # the arrays, an EXTENT each; null if they are not known
    extent_count="i64",
    scratch="ptr",  # where an access outside of all arrays goes
    scratch_bytes="i64",
    fault="i64",  # the entry of the first such access, -1 if there is none
    fault_low="i64",  # where the array of that access begins, if it is known
    fault_bytes="i64",  # its bytes, negative if they are not known
)
ENTRY: Final = Struct(
    "irad.cuda.entry",
    address="i64",  # of an event of a warp: the lanes; of the beginning of a block: its number
    size="i32",
    kind="i32",  # see `irad.backend.executor.dialect.Kind`
    site="i32",
    thread="i32",  # of an event of a warp: its first one
    epoch="i32",
    clock="i32",  # of the thread
)
EXTENT: Final = Struct("irad.cuda.extent", address="i64", bytes="i64")  # of an array
STRUCTS: Final = (THREAD, LAUNCH, ENTRY, EXTENT)


class Launch(ctypes.Structure):
    """`LAUNCH` for Python."""

    _fields_ = LAUNCH.in_c


def dtype_of(struct: Struct) -> list[tuple[str, str]]:
    """The fields of a struct without gaps, for a structured array of NumPy."""
    names: dict[Any, str] = {ctypes.c_int32: "<i4", ctypes.c_int64: "<i8", ctypes.c_void_p: "<u8"}
    return [(field, names[kind]) for field, kind in struct.in_c]
