"""Clears and copies beside parallel loops: found, divided among threads, the same bytes whatever their number."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as ll
import numpy as np
import pytest

from irad.backend.runtime import support
from irad.frontend.numba.convention import NUMBA
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.passes.parallel.bulk import CLEAR, spread_bulk
from tests.passes.units import canonical

TEXT = """
declare void @numba_parallel_for(ptr, ptr, ptr, ptr, ptr, i64, i64, i64)
declare i64 @get_num_threads()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @irad.copy_adjoint_f64(ptr, ptr, i64)
declare void @irad.copy_adjoint_f32(ptr, ptr, i64)

define void @kernel(ptr %a, ptr %b, ptr %c, ptr %d) {
  %n = load i64, ptr %b
  call void @helper(ptr %a, i64 %n)
  ret void
}
define void @helper(ptr %a, i64 %n) {
  call void @launcher(ptr %a)
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %n, i1 false)
  ret void
}
define void @launcher(ptr %a) {
  call void @numba_parallel_for(ptr @kernel, ptr %a, ptr %a, ptr %a, ptr null, i64 0, i64 1, i64 2)
  ret void
}
define void @stranger(ptr %a, i64 %n) {
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %n, i1 false)
  ret void
}
define void @host(ptr %a, ptr %b, i64 %n, i1 %launch) {
  br i1 %launch, label %there, label %here
there:
  call void @launcher(ptr %a)
  call void @llvm.memmove.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %a, i8 1, i64 %n, i1 false)
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %n, i1 true)
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 4096, i1 false)
  ret void
here:
  call void @llvm.memset.p0.i64(ptr %a, i8 0, i64 %n, i1 false)
  ret void
}
define void @copy(ptr %a, ptr %b, i64 %n, i1 %launch) {
  br i1 %launch, label %there, label %here
there:
  call void @launcher(ptr %a)
  ret void
here:
  call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 %n, i1 false)
  ret void
}
define void @adjoint64(ptr %a, ptr %b, i64 %n, i1 %launch) {
  br i1 %launch, label %there, label %here
there:
  call void @launcher(ptr %a)
  ret void
here:
  call void @irad.copy_adjoint_f64(ptr %a, ptr %b, i64 %n)
  ret void
}
define void @adjoint32(ptr %a, ptr %b, i64 %n, i1 %launch) {
  br i1 %launch, label %there, label %here
there:
  call void @launcher(ptr %a)
  ret void
here:
  call void @irad.copy_adjoint_f32(ptr %a, ptr %b, i64 %n)
  ret void
}
"""

# A threading layer without threads: the pieces one by one, last first; it counts them.
THREADS = """
@pieces = global i64 0
@threads = global i64 1
define i64 @get_num_threads() {
  %n = load i64, ptr @threads
  ret i64 %n
}
define void @numba_parallel_for(ptr %f, ptr %args, ptr %dims, ptr %steps, ptr %data, i64 %d, i64 %arrays, i64 %t) {
entry:
  %count = load i64, ptr %dims
  store i64 %count, ptr @pieces
  %here = alloca [2 x i64]
  %one = alloca i64
  store i64 1, ptr %one
  br label %loop
loop:
  %left = phi i64 [ %count, %entry ], [ %piece, %loop ]
  %piece = sub i64 %left, 1
  %first = load i64, ptr %args
  %step = load i64, ptr %steps
  %offset = mul i64 %piece, %step
  %at = add i64 %first, %offset
  store i64 %at, ptr %here
  %args.1 = getelementptr i8, ptr %args, i64 8
  %steps.1 = getelementptr i8, ptr %steps, i64 8
  %here.1 = getelementptr i8, ptr %here, i64 8
  %first.1 = load i64, ptr %args.1
  %step.1 = load i64, ptr %steps.1
  %offset.1 = mul i64 %piece, %step.1
  %at.1 = add i64 %first.1, %offset.1
  store i64 %at.1, ptr %here.1
  call void %f(ptr %here, ptr %one, ptr %steps, ptr %data)
  %more = icmp ne i64 %piece, 0
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @NRT_decref(ptr %p) { ret void }
"""
PIECE = 1 << 17  # bytes
assert NUMBA.parallel is not None
HOST = NUMBA.parallel


def spread() -> Module:
    module = parse_module(canonical(TEXT))
    spread_bulk(module, HOST)
    return module


def calls(function: Function) -> list[str]:
    return [str(i.callee.name) for i in function.instructions() if isinstance(i, CallSite)]


def test_only_functions_that_launch_and_are_not_launched_are_changed():
    module = spread()
    assert CLEAR in calls(module.functions["host"])
    assert CLEAR not in calls(module.functions["stranger"])
    assert CLEAR not in calls(module.functions["helper"])


def test_only_clears_and_copies_of_unknown_size_are_replaced():
    kept = calls(spread().functions["host"])
    assert kept.count(CLEAR) == 1
    assert kept.count("llvm.memset.p0.i64") == 3
    assert "llvm.memmove.p0.p0.i64" in kept


def test_the_function_that_clears_is_there_for_the_caller():
    assert spread().functions[CLEAR].prefix == ()
    alone = parse_module(canonical(TEXT.replace("i8 0, i64 %n", "i8 1, i64 %n")))
    spread_bulk(alone, HOST)
    assert alone.functions[CLEAR].prefix == ()


def test_a_module_without_parallel_loops_stays_as_it_is():
    text = canonical("define void @f(ptr %a) {\n  ret void\n}")
    module = parse_module(text)
    spread_bulk(module, HOST)
    assert list(module.functions) == ["f"]


@cache
def engine() -> Any:
    support.install()
    module = ll.parse_assembly(print_module(spread()))
    module.link_in(ll.parse_assembly(support.runtime_text()))
    module.link_in(ll.parse_assembly(THREADS))
    module.verify()
    made = ll.create_mcjit_compiler(module, ll.Target.from_default_triple().create_target_machine(jit=True))
    made.finalize_object()
    return made


def run(name: str, into: np.ndarray, source: np.ndarray, size: int, threads: int) -> int:
    """Calls a function of `TEXT`; returns among how many threads it divided its work."""
    pieces, given = (ctypes.c_int64.from_address(engine().get_global_value_address(n)) for n in ("pieces", "threads"))
    pieces.value, given.value = 1, threads
    types = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool)
    function = ctypes.CFUNCTYPE(None, *types)(engine().get_function_address(name))
    function(into.ctypes.data, source.ctypes.data, size, False)
    return pieces.value


SIZES = [
    (0, 4, 1),
    (24, 4, 1),
    (2 * PIECE - 8, 4, 1),
    (2 * PIECE, 4, 2),
    (3 * PIECE + 40, 4, 3),
    (9 * PIECE + 8, 4, 4),
    (9 * PIECE + 8, 1, 1),
]


@pytest.mark.parametrize(("size", "threads", "pieces"), SIZES)
def test_exactly_what_is_asked_for_is_cleared(size: int, threads: int, pieces: int):
    memory = np.full(size + 64, 7, np.uint8)
    assert run("host", memory[32:], memory, size, threads) == pieces
    assert np.all(memory[:32] == 7)
    assert np.all(memory[32 : 32 + size] == 0)
    assert np.all(memory[32 + size :] == 7)


@pytest.mark.parametrize(("size", "threads", "pieces"), SIZES)
def test_exactly_what_is_asked_for_is_copied(size: int, threads: int, pieces: int):
    source = np.random.default_rng(0).integers(0, 255, size + 64).astype(np.uint8)
    into = np.full(size + 64, 7, np.uint8)
    assert run("copy", into[16:], source, size, threads) == pieces
    assert np.array_equal(into[16 : 16 + size], source[:size])
    assert np.all(into[:16] == 7)
    assert np.all(into[16 + size :] == 7)


@pytest.mark.parametrize(("name", "dtype"), [("adjoint64", np.float64), ("adjoint32", np.float32)])
def test_the_adjoint_of_a_copy(name: str, dtype: type):
    size = 3 * PIECE + 40
    into, source = np.random.default_rng(1).normal(size=(2, size // np.dtype(dtype).itemsize)).astype(dtype)
    expected = source + into
    assert run(name, into, source, size, 4) == 3
    assert np.array_equal(source, expected)
    assert not np.any(into)


def test_memory_that_overlaps_is_not_divided():
    size = 4 * PIECE
    memory = np.random.default_rng(2).normal(size=size // 8 + 1)
    expected = memory.copy()  # the adjoint of moving memory by one element: cotangents move back
    expected[1:] = 0
    expected[:-1] += memory[1:]
    assert run("adjoint64", memory[1:], memory[:-1], size, 4) == 1
    assert np.array_equal(memory, expected)
