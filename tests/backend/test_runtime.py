"""The support library compiled by MCJIT, with malloc, free and NRT_decref replaced by counting functions."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char, c_int32, c_int64, c_void_p, memset
from functools import cache
from itertools import pairwise
from typing import Any

import llvmlite.binding as ll
import numpy as np
import pytest

from irad.backend.runtime import support
from irad.runtime_layouts import ARENA

LIBC = ctypes.CDLL(None)
LIBC.malloc.argtypes, LIBC.malloc.restype = (c_int64,), c_void_p
LIBC.free.argtypes, LIBC.free.restype = (c_void_p,), None

MALLOC, FREE, DECREF = CFUNCTYPE(c_void_p, c_int64), CFUNCTYPE(None, c_void_p), CFUNCTYPE(None, c_void_p)

SIGNATURES = {
    "arena_open": (c_void_p,),
    "arena_close": (None, c_void_p),
    "arena_new": (c_void_p,),
    "arena_delete": (None, c_void_p),
    "arena_alloc": (c_void_p, c_void_p, c_int64),
    "arena_alloc_product": (c_void_p, c_void_p, c_int64, c_int64),
    "arena_defer": (None, c_void_p, c_void_p),
    "arena_failed": (c_bool, c_void_p),
    "arena_top": (c_void_p, c_void_p),
    "arena_rewind": (None, c_void_p, c_void_p),
}
MIB = 1 << 20


class Heap:
    """Counts blocks and decrefs. One for all libraries: they share the threads' arenas."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.mallocs = 0
        self.limit: int | None = None
        self.decrefs: list[int] = []
        self.on_decref: Callable[[int], object] = _ignore
        self._lock = threading.Lock()
        self.callbacks = (MALLOC(self._malloc), FREE(self._free), DECREF(self._decref))

    def reset(self) -> None:
        self.decrefs.clear()
        self.limit = None
        self.on_decref = _ignore

    def _malloc(self, size: int) -> int:
        with self._lock:
            self.mallocs += 1
            if self.limit is not None and self.held() + size > self.limit:
                return 0
            address = LIBC.malloc(size)
            self.live[address] = size
            return address

    def _free(self, address: int) -> None:
        with self._lock:
            del self.live[address]
        LIBC.free(address)

    def _decref(self, meminfo: int) -> None:
        self.decrefs.append(meminfo)
        self.on_decref(meminfo)

    def held(self) -> int:
        return sum(self.live.values())


def _ignore(meminfo: int) -> None: ...


HEAP = Heap()


class Library:
    """The text compiled at one level of optimisation, on top of ``HEAP``."""

    def __init__(self, level: int) -> None:
        support.install()
        text = support.runtime_text()
        for name, callback in zip(("malloc", "free", "NRT_decref"), HEAP.callbacks, strict=True):
            symbol = f"irad.test{level}.{name}"
            assert f"@{name}(" in text
            text = text.replace(f"@{name}(", f"@{symbol}(")
            ll.add_symbol(symbol, ctypes.cast(callback, c_void_p).value)
        text = text.replace("linkonce_odr ", "").replace("@irad.", f"@irad.o{level}.")
        text = text.replace(f"@irad.o{level}.tls_key", "@irad.tls_key")
        text = text.replace(f"@irad.o{level}.test{level}", f"@irad.test{level}")
        self.module = ll.parse_assembly(text)
        self.module.verify()
        machine = ll.Target.from_default_triple().create_target_machine(
            cpu=ll.get_host_cpu_name(), features=ll.get_host_cpu_features().flatten(), opt=level, jit=True
        )
        options = ll.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = level == 3
        ll.create_pass_builder(machine, options).getModulePassManager().run(
            self.module, ll.create_pass_builder(machine, options)
        )
        self.engine = ll.create_mcjit_compiler(self.module, machine)
        self.engine.finalize_object()
        self._functions: dict[str, Callable[..., Any]] = {}
        for name, (result, *arguments) in SIGNATURES.items():
            address = self.engine.get_function_address(f"irad.o{level}.{name}")
            self._functions[name] = CFUNCTYPE(result, *arguments)(address)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._functions[name]


@cache
def library(level: int) -> Library:
    return Library(level)


@pytest.fixture(params=[0, 3], ids=["O0", "O3"])
def lib(request: pytest.FixtureRequest) -> Library:
    HEAP.reset()
    return library(request.param)


def in_new_thread(work) -> None:
    """Run ``work`` on a thread of its own, whose arena is new and is freed, by the real free, when it ends."""
    errors: list[BaseException] = []
    live = HEAP.live.copy()

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    HEAP.live = live
    if errors:
        raise errors[0]


def fill(lib: Library, arena: int, sizes: list[int]) -> list[tuple[int, int, int]]:
    blocks = []
    for k, size in enumerate(sizes):
        address = lib.arena_alloc(arena, size)
        assert address
        memset(address, k % 251, size)
        blocks.append((address, size, k % 251))
    return blocks


def assert_blocks_are_intact(blocks: list[tuple[int, int, int]]) -> None:
    for address, size, value in blocks:
        assert bytes((c_char * size).from_address(address)) == bytes([value]) * size
    spans = sorted((address, address + size) for address, size, _ in blocks if size)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_a_thread_gives_its_arena_back_when_asked_but_not_in_a_call(lib: Library):
    def work() -> None:
        support.release_memory()  # nothing to give back yet
        arena = lib.arena_open()
        blocks = fill(lib, arena, [100, 3 * MIB])
        support.release_memory()
        assert lib.arena_open() == arena
        assert_blocks_are_intact(blocks)
        lib.arena_close(arena)
        lib.arena_close(arena)
        support.release_memory()
        before = HEAP.mallocs
        again = lib.arena_open()
        assert HEAP.mallocs > before, "the arena is a new one"
        lib.arena_close(again)

    in_new_thread(work)


def test_blocks_are_aligned_disjoint_and_keep_their_content(lib: Library):
    rng = np.random.default_rng(0)
    sizes = [0, 1, 15, 16, 17, 63, 64, 65, *rng.integers(0, 400, 3000).tolist(), 200_000, 8, 3 * MIB, 64, 70_000, 5]
    arena = lib.arena_new()
    blocks = fill(lib, arena, sizes)
    assert all(address % (64 if size >= 64 else 16) == 0 for address, size, _ in blocks)
    assert_blocks_are_intact(blocks)
    assert not lib.arena_failed(arena)
    lib.arena_delete(arena)


def test_offsets_name_the_fields(lib: Library):
    arena = lib.arena_new()
    top, end = (c_int64.from_address(arena + offset) for offset in (ARENA.offset("top"), ARENA.offset("end")))
    assert arena < top.value < end.value <= arena + 4096
    assert end.value % 64 == 0
    before = top.value
    address = lib.arena_alloc(arena, 48)
    assert before <= address
    assert top.value == address + 48
    failed = c_int32.from_address(arena + ARENA.offset("failed"))
    assert failed.value == 0
    assert not lib.arena_alloc(arena, -1)
    assert failed.value == 1
    lib.arena_delete(arena)


@pytest.mark.parametrize("size", [-1, -(2**63), 2**63 - 1, 2**62, 2**47, 2**63 - 100])
def test_absurd_size_is_null_and_flagged(lib: Library, size: int):
    arena = lib.arena_new()
    assert lib.arena_alloc(arena, size) is None
    assert lib.arena_failed(arena)
    assert lib.arena_alloc(arena, 8), "the arena stays usable"
    lib.arena_delete(arena)


@pytest.mark.parametrize(("count", "size"), [(2**32, 2**32), (-1, 8), (2**61, 8), (8, -1), (-1, -1), (2**63 - 1, 3)])
def test_overflowing_product_is_null_and_flagged(lib: Library, count: int, size: int):
    arena = lib.arena_new()
    assert lib.arena_alloc_product(arena, count, size) is None
    assert lib.arena_failed(arena)
    lib.arena_delete(arena)


def test_product_allocates_the_product(lib: Library):
    arena = lib.arena_new()
    first = lib.arena_alloc_product(arena, 5, 24)
    second = lib.arena_alloc(arena, 16)
    assert second - first == 128
    assert lib.arena_alloc_product(arena, 0, 24)
    lib.arena_delete(arena)


def test_rewinding_frees_what_was_allocated_since(lib: Library):
    arena = lib.arena_new()
    kept = fill(lib, arena, [100, 40])
    top = lib.arena_top(arena)
    first = lib.arena_alloc(arena, 500)
    lib.arena_alloc(arena, 64)
    lib.arena_rewind(arena, top)
    assert lib.arena_top(arena) == top
    assert lib.arena_alloc(arena, 500) == first
    assert_blocks_are_intact(kept)
    lib.arena_delete(arena)


@pytest.mark.parametrize("size", [70_000, 3 * MIB])
def test_rewinding_in_a_loop_adds_one_chunk(lib: Library, size: int):
    arena = lib.arena_new()
    kept = fill(lib, arena, [100, 3000])
    mallocs = HEAP.mallocs
    found = set()
    for _ in range(50):
        top = lib.arena_top(arena)
        found.add(lib.arena_alloc(arena, size))
        lib.arena_rewind(arena, top)
    assert HEAP.mallocs - mallocs == 1
    assert len(found) == 1
    assert_blocks_are_intact(kept)
    lib.arena_delete(arena)


def test_failing_malloc_is_null_and_flagged(lib: Library):
    arena = lib.arena_new()
    HEAP.limit = HEAP.held() + 100_000
    blocks = fill(lib, arena, [64] * 1000)
    while address := lib.arena_alloc(arena, 64):
        blocks.append((address, 0, 0))
    assert lib.arena_failed(arena)
    assert_blocks_are_intact(blocks)
    HEAP.limit = 0
    assert lib.arena_new() is None
    in_new_thread(lambda: pytest.fail("opened") if lib.arena_open() else None)
    HEAP.limit = None
    lib.arena_delete(arena)


def test_new_arena_is_freed_whole(lib: Library):
    before = HEAP.live.copy()
    arena = lib.arena_new()
    fill(lib, arena, [1000] * 500 + [MIB])
    assert len(HEAP.live) > len(before) + 3
    lib.arena_delete(arena)
    assert HEAP.live == before
    lib.arena_delete(None)


def test_chunks_double(lib: Library):
    arena = lib.arena_new()
    before = HEAP.mallocs
    for _ in range(16 * 1024):
        assert lib.arena_alloc(arena, 1024)
    assert HEAP.mallocs - before <= 9
    lib.arena_delete(arena)


def test_second_call_takes_the_same_memory_without_malloc(lib: Library):
    sizes = [64, 500, 70_000, 8, 1_000_000, *[4096] * 300, 200_000, 24]

    def work() -> None:
        def call() -> list[int]:
            arena = lib.arena_open()
            addresses = [lib.arena_alloc(arena, size) for size in sizes]
            lib.arena_close(arena)
            return addresses

        first = call()
        mallocs, held = HEAP.mallocs, HEAP.held()
        assert [call() for _ in range(20)] == [first] * 20
        assert (HEAP.mallocs, HEAP.held()) == (mallocs, held)

    in_new_thread(work)


def test_calls_of_different_shape_settle(lib: Library):
    rng = np.random.default_rng(3)
    calls = [rng.integers(1, 300_000, n).tolist() for n in (5, 30, 12)]

    def work() -> None:
        def rounds() -> int:
            before = HEAP.mallocs
            for sizes in calls:
                arena = lib.arena_open()
                assert_blocks_are_intact(fill(lib, arena, sizes))
                lib.arena_close(arena)
            return HEAP.mallocs - before

        for _ in range(10):
            rounds()
        assert rounds() == 0

    in_new_thread(work)


THREADS_BALANCE = """
import ctypes, os, threading, time
import llvmlite.binding as ll
from irad.backend.runtime import support

class Info(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usm fsm uord ford keep".split()]
libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Info

support.install()
text = support.runtime_text().replace("linkonce_odr ", "").replace("declare void @NRT_decref(ptr)",
    "define void @NRT_decref(ptr %p) { ret void }")
engine = ll.create_mcjit_compiler(ll.parse_assembly(text), ll.Target.from_default_triple().create_target_machine())
engine.finalize_object()
F, P, L = ctypes.CFUNCTYPE, ctypes.c_void_p, ctypes.c_int64
get = lambda name, *types: F(*types)(engine.get_function_address(name))
open_, close = get("irad.arena_open", P), get("irad.arena_close", None, P)
alloc = get("irad.arena_alloc", P, P, L)

def work():
    arena = open_()
    for _ in range(40):
        assert alloc(arena, MILLIONS * 1_000_000)
    close(arena)

def run(n):
    for _ in range(n):
        t = threading.Thread(target=work); t.start(); t.join()
        while len(os.listdir("/proc/self/task")) > 1:  # join returns before the destructors of the thread have run
            time.sleep(0.001)

run(5)
before = libc.mallinfo2()
run(100)
after = libc.mallinfo2()
print(after.uord + after.hblkhd - before.uord - before.hblkhd)
"""


@pytest.mark.skipif(not hasattr(LIBC, "mallinfo2"), reason="counts the bytes of glibc's malloc")
def test_ended_threads_leave_no_memory():
    script = THREADS_BALANCE.replace("MILLIONS", "1")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=os.getcwd())
    assert int(result.stdout) < 8 * MIB, "100 threads that used 40 MB each"


def test_large_tape_is_released_when_its_call_ends(lib: Library):
    def work() -> None:
        before = HEAP.held()
        arena = lib.arena_open()
        for _ in range(64):
            assert lib.arena_alloc(arena, 16 * MIB)
        assert HEAP.held() - before > 1 << 30
        lib.arena_close(arena)
        assert HEAP.held() - before <= 65 * MIB

    in_new_thread(work)


def test_spare_memory_fades(lib: Library):
    def work() -> None:
        before = HEAP.held()
        arena = lib.arena_open()
        fill(lib, arena, [200_000] * 100)
        lib.arena_close(arena)
        large = HEAP.held() - before
        assert large >= 20_000_000
        for _ in range(300):
            arena = lib.arena_open()
            lib.arena_alloc(arena, 8)
            lib.arena_close(arena)
        assert HEAP.held() - before < large / 10

    in_new_thread(work)


def test_nested_opens_keep_the_outer_content(lib: Library):
    def nest(depth: int) -> None:
        arena = lib.arena_open()
        blocks = fill(lib, arena, [40, 3000, 50_000])
        if depth:
            nest(depth - 1)
            blocks += fill(lib, arena, [100_000])
            nest(depth - 1)
        assert_blocks_are_intact(blocks)
        lib.arena_close(arena)

    nest(5)


def test_inner_failure_does_not_fail_the_outer_call(lib: Library):
    outer = lib.arena_open()
    inner = lib.arena_open()
    assert inner == outer
    assert lib.arena_alloc(inner, -1) is None
    assert lib.arena_failed(inner)
    lib.arena_close(inner)
    assert not lib.arena_failed(outer)
    lib.arena_alloc(outer, -1)
    inner = lib.arena_open()
    assert not lib.arena_failed(inner)
    lib.arena_close(inner)
    assert lib.arena_failed(outer)
    lib.arena_close(outer)


def test_failing_inner_open_leaves_the_outer_call_as_it_was(lib: Library):
    def work() -> None:
        outer = lib.arena_open()
        HEAP.limit = 0
        while lib.arena_alloc(outer, 16):
            pass
        HEAP.limit = None
        assert lib.arena_failed(outer)
        c_int32.from_address(outer + ARENA.offset("failed")).value = 0
        HEAP.limit = 0
        assert lib.arena_open() is None
        assert not lib.arena_failed(outer)
        HEAP.limit = None
        lib.arena_close(outer)

    in_new_thread(work)


def test_deferred_decrefs_run_once_in_order_at_their_close(lib: Library):
    outer = lib.arena_open()
    lib.arena_defer(outer, 101)
    lib.arena_defer(outer, None)
    lib.arena_defer(outer, 102)
    inner = lib.arena_open()
    for meminfo in range(1, 20_000):
        lib.arena_defer(inner, meminfo)
    assert HEAP.decrefs == []
    lib.arena_close(inner)
    assert HEAP.decrefs == list(range(1, 20_000))
    lib.arena_defer(outer, 103)
    HEAP.decrefs.clear()
    lib.arena_close(outer)
    assert HEAP.decrefs == [101, 102, 103]
    HEAP.decrefs.clear()
    lib.arena_close(lib.arena_open())
    assert HEAP.decrefs == []


def test_a_decref_may_open_the_arena_again(lib: Library):
    def reenter(meminfo: int) -> None:
        if meminfo < 1000:
            arena = lib.arena_open()
            fill(lib, arena, [70_000, 64])
            lib.arena_defer(arena, meminfo + 1000)
            lib.arena_close(arena)

    HEAP.on_decref = reenter
    arena = lib.arena_open()
    for meminfo in (1, 2, 3):
        lib.arena_defer(arena, meminfo)
    lib.arena_close(arena)
    assert HEAP.decrefs == [1, 1001, 2, 1002, 3, 1003]


def test_deleting_an_arena_runs_its_decrefs(lib: Library):
    arena = lib.arena_new()
    for meminfo in range(1, 1000):
        lib.arena_defer(arena, meminfo)
    lib.arena_delete(arena)
    assert HEAP.decrefs == list(range(1, 1000))


def test_a_decref_without_memory_is_lost_and_flagged(lib: Library):
    arena = lib.arena_new()
    top, end = (c_int64.from_address(arena + ARENA.offset(field)) for field in ("top", "end"))
    while lib.arena_alloc(arena, 16) and top.value + 16 <= end.value:
        pass
    HEAP.limit = 0
    lib.arena_defer(arena, 7)
    HEAP.limit = None
    assert lib.arena_failed(arena)
    lib.arena_delete(arena)
    assert HEAP.decrefs == []


def test_threads_do_not_meet(lib: Library):
    live = HEAP.live.copy()
    barrier = threading.Barrier(8)
    arenas: list[int] = []
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            barrier.wait()
            for _ in range(20):
                arena = lib.arena_open()
                arenas.append(arena)
                assert_blocks_are_intact(fill(lib, arena, rng.integers(1, 20_000, 50).tolist()))
                lib.arena_close(arena)
            barrier.wait()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    HEAP.live = live
    assert errors == []
    assert len(set(arenas)) == 8


def test_install_from_many_threads_makes_one_key(monkeypatch: pytest.MonkeyPatch):
    made: list[int] = []
    support.install()
    create = support._create_key
    monkeypatch.setattr(support, "_create_key", lambda destructor: made.append(destructor) or create(destructor))
    fresh = support._Process()
    threads = [threading.Thread(target=fresh.install) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    support.install()
    assert len(made) == 1
    # The symbol has to name the first key again: arenas of this process hang on it.
    assert support._PROCESS._key is not None
    ll.add_symbol(support.TLS_KEY_SYMBOL, ctypes.addressof(support._PROCESS._key))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_installs_and_allocates(lib: Library):
    arena = lib.arena_open()
    blocks = fill(lib, arena, [5000, 90_000])
    support._PROCESS._lock.acquire()  # as if another thread were installing
    child = os.fork()
    if child == 0:
        status = 1
        try:
            support._PROCESS.install()
            with support._PROCESS._lock:
                assert lib.arena_open() == arena
            assert_blocks_are_intact(blocks + fill(lib, arena, [100, 200_000]))
            status = 0
        finally:
            os._exit(status)
    support._PROCESS._lock.release()
    assert os.waitpid(child, 0)[1] == 0
    lib.arena_close(arena)


def test_modules_with_the_text_link_together():
    text = support.runtime_text()
    module = ll.parse_assembly(text + "\ndefine ptr @first() { %a = call ptr @irad.arena_open() ret ptr %a }")
    module.link_in(ll.parse_assembly(text + "\ndefine ptr @second() { %a = call ptr @irad.arena_open() ret ptr %a }"))
    module.verify()
    assert str(module).count("define linkonce_odr ptr @irad.arena_open(") == 1


def test_pointer_is_a_pointer():
    assert ctypes.sizeof(POINTER(c_char)) == 8, "the offsets are those of 64-bit targets"
