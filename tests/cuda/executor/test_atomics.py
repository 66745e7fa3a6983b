"""Every atomic operation of the dialect, against Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cuda.executor.texts import kernel, run

INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, v: x + v,
    "sub": lambda x, v: x - v,
    "and": lambda x, v: x & v,
    "or": lambda x, v: x | v,
    "xor": lambda x, v: x ^ v,
    "max": max,
    "min": min,
    "umax": lambda x, v: max(x % 2**32, v % 2**32),
    "umin": lambda x, v: min(x % 2**32, v % 2**32),
    "xchg": lambda x, v: v,
    "uinc_wrap": lambda x, v: 0 if x % 2**32 >= v % 2**32 else x + 1,
    "udec_wrap": lambda x, v: v if x == 0 or x % 2**32 > v % 2**32 else x - 1,
}
FLOATS: dict[str, Callable[[float, float], float]] = {
    "fadd": lambda x, v: x + v,
    "fsub": lambda x, v: x - v,
    "fmax": max,
    "fmin": min,
    "xchg": lambda x, v: v,
}


def applied(operation: str, type_: str, x: Any, v: Any) -> tuple[Any, Any]:
    """What is in memory afterwards, and what the operation gave."""
    body = f"""
  %was = atomicrmw {operation} ptr addrspace(1) %at, {type_} %v monotonic
  store {type_} %was, ptr addrspace(1) %out
  ret void"""
    memory, out = np.array([x]), np.zeros_like([x])
    run(kernel(f"ptr addrspace(1) %at, {type_} %v, ptr addrspace(1) %out", body), 1, 1, memory, v, out, races=True)
    return memory[0], out[0]


@pytest.mark.parametrize("operation", INTEGERS)
def test_integers(operation: str):
    for x, v in ((5, 3), (3, 5), (0, 7), (-4, 9), (7, 7)):
        now, before = applied(operation, "i32", np.int32(x), v)
        assert before == x
        assert now == np.int64(INTEGERS[operation](x, v)).astype(np.int32)


@pytest.mark.parametrize("operation", FLOATS)
@pytest.mark.parametrize(("type_", "dtype"), [("double", np.float64), ("float", np.float32), ("half", np.float16)])
def test_floats(operation: str, type_: str, dtype: type):
    for x, v in ((1.5, 2.25), (2.25, 1.5), (-1.0, 0.0)):
        now, before = applied(operation, type_, dtype(x), v)
        assert (now, before) == (dtype(FLOATS[operation](x, v)), dtype(x))


@pytest.mark.executor_only("the result depends on the order of the threads")
def test_compare_and_exchange():
    body = """
  %new = add i32 %t, 100
  %pair = cmpxchg ptr %at, i32 7, i32 %new monotonic monotonic
  %was = extractvalue { i32, i1 } %pair, 0
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 %was, ptr %to
  ret void"""
    memory, out = np.array([7], np.int32), np.zeros(4, np.int32)
    run(kernel("ptr %at, ptr %out", body), 1, 4, memory, out, races=True, known=True)
    assert memory[0] == 100
    assert np.array_equal(out, [7, 100, 100, 100])


def test_atomic_loads_and_stores_do_not_race():
    body = """
  %v = load atomic i32, ptr %at monotonic, align 4
  store atomic i32 %v, ptr %at monotonic, align 4
  ret void"""
    counts = run(kernel("ptr %at", body), 2, 4, np.zeros(1, np.int32), races=True).accesses
    assert (counts.global_atomics, counts.global_reads, counts.global_writes) == (16, 0, 0)


def test_atomics_in_shared_memory_are_counted_apart():
    body = """
  %was = atomicrmw add ptr addrspace(3) @s, i32 1 monotonic
  %again = atomicrmw add ptr %at, i32 1 monotonic
  ret void"""
    counts = run(
        kernel("ptr %at", body, "@s = internal addrspace(3) global i32 undef\n"),
        2,
        4,
        np.zeros(1, np.int32),
        races=True,
    ).accesses
    assert (counts.shared_atomics, counts.global_atomics) == (8, 8)


def test_fences_and_pauses_do_nothing():
    outside = "declare void @llvm.nvvm.nanosleep(i32)\n"
    body = """
  call void @llvm.nvvm.membar.cta()
  call void @llvm.nvvm.membar.gl()
  call void @llvm.nvvm.membar.sys()
  call void @llvm.nvvm.nanosleep(i32 %t)
  fence syncscope("block") seq_cst
  ret void"""
    assert run(kernel("", body, outside), 1, 4).barriers == 0
