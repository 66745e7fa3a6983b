"""Atomic operations as LLVM's instructions, with the results of Numba's loops, NaN included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda, from_dtype, types

from irad.backend.executor.scheduler import IN_ORDER, shuffled
from irad.frontend.cuda.program import load_kernel
from irad.ir.instructions import AtomicRMW, CmpXchg
from irad.ir.text.parser import parse_module
from tests.cuda.run import run

FLOATS = (np.float32, np.float64)
INTEGERS = (np.int32, np.int64, np.uint32, np.uint64)
ORDERED = pytest.mark.executor_only("the result depends on the order of the threads")


def with_operation(name: str) -> Callable[..., None]:
    """A kernel with the operation; Numba must find it by name."""
    source = f"""
def kernel(memory, values):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.{name}(memory, 0, values[i])
"""
    names: dict[str, Any] = {"cuda": cuda}
    exec(source, names)
    return names["kernel"]


def after(name: str, start: Any, values: Any, schedule: Any = IN_ORDER) -> Any:
    memory = np.array([start], values.dtype)
    run(with_operation(name), 2, 32, (memory, values), schedule=schedule, races=True)
    return memory[0]


def opcodes(name: str, dtype: Any) -> list[str]:
    array = types.Array(from_dtype(np.dtype(dtype)), 1, "C")
    text = load_kernel(cuda.jit(with_operation(name)), (array, array)).module.text
    found = [
        inst
        for function in parse_module(text).defined_functions()
        for inst in function.instructions()
        if isinstance(inst, AtomicRMW | CmpXchg)
    ]
    assert all(inst.ordering == "monotonic" for inst in found if isinstance(inst, AtomicRMW))
    return [inst.opcode if isinstance(inst, AtomicRMW) else "cmpxchg" for inst in found]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("name", "opcode"),
    [("add", "fadd"), ("sub", "fsub"), ("max", "fmax"), ("nanmax", "fmax"), ("min", "fmin"), ("nanmin", "fmin")],
)
def test_operations_on_floats_are_instructions(name: str, opcode: str, dtype: Any):
    assert opcodes(name, dtype) == [opcode]


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums(dtype: Any):
    values = np.random.default_rng(0).integers(-50, 50, 40).astype(dtype)  # sums are exact in any order
    for schedule in (IN_ORDER, shuffled(3)):
        assert after("add", 7, values, schedule) == 7 + values.sum()
        assert after("sub", 7, values, schedule) == 7 - values.sum()


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("start", "values"),
    [
        (0.5, [3.0, -2.0, 1.0]),
        (9.0, [3.0, -2.0, 1.0]),
        (-9.0, [-INF, INF]),
        (1.0, [NAN, 3.0, NAN]),
        (1.0, [NAN]),
        (NAN, [3.0, 4.0]),
        (NAN, [NAN]),
    ],
)
def test_extremes_of_floats(start: float, values: list[float], dtype: Any):
    """Numba: `max` leaves a NaN in memory as it is, `nanmax` replaces it; a NaN as operand changes nothing."""
    given = np.array(values, dtype)
    numbers = [value for value in values if not np.isnan(value)]
    for name, best in (("max", max), ("min", min)):
        kept = NAN if np.isnan(start) else best([start, *numbers])
        known = numbers if np.isnan(start) else [start, *numbers]
        np.testing.assert_equal(after(name, start, given), dtype(kept))
        np.testing.assert_equal(after(f"nan{name}", start, given), dtype(best(known) if known else NAN))


@ORDERED
@pytest.mark.parametrize("dtype", INTEGERS)
def test_operations_on_integers(dtype: Any):
    values = np.array([5, 3, 12, 9], dtype)
    start = dtype(6)
    assert after("add", start, values) == 6 + 29
    assert after("sub", start, values) == dtype(6) - np.sum(values, dtype=dtype)
    assert after("max", start, values) == 12
    assert after("min", start, values) == 3
    assert after("and_", start, values) == np.bitwise_and.reduce(values) & start
    assert after("or_", start, values) == np.bitwise_or.reduce(values) | start
    assert after("xor", start, values) == np.bitwise_xor.reduce(values) ^ start
    assert after("exch", start, values) == values[-1]


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_counters_that_wrap(dtype: Any):
    assert opcodes("inc", dtype) == ["uinc_wrap"]
    assert opcodes("dec", dtype) == ["udec_wrap"]
    ends = np.full(11, 3, dtype)  # 0 1 2 3 0 1 …
    assert after("inc", 1, ends) == 0
    assert after("inc", 9, ends) == 2  # beyond its end: 0 first
    assert after("dec", 1, ends) == 2
    assert after("dec", 9, ends) == 1  # beyond its end: 3 first
    assert after("inc", 5, np.zeros(1, dtype)) == 0


@ORDERED
def test_the_value_before_is_the_result():
    @cuda.jit
    def kernel(counter, order):
        i = cuda.grid(1)
        order[cuda.atomic.add(counter, 0, 1)] = i

    counter, order = np.zeros(1, np.int64), np.full(64, -1)
    run(kernel, 2, 32, (counter, order), schedule=shuffled(2))
    assert counter[0] == 64
    assert sorted(order) == list(range(64))


@ORDERED
def test_compare_and_swap_stays_recognisable():
    @cuda.jit
    def kernel(memory, winner):
        i = cuda.grid(1)
        if cuda.atomic.cas(memory, 0, 0, i + 1) == 0:
            winner[0] = i

    memory, winner = np.zeros(1, np.int64), np.zeros(1, np.int64)
    run(kernel, 1, 32, (memory, winner), schedule=shuffled(1))
    assert memory[0] == winner[0] + 1
    assert "cmpxchg" in load_kernel(kernel, (types.int64[::1], types.int64[::1])).module.text


def test_atomic_operations_in_shared_memory_and_on_several_axes():
    @cuda.jit
    def kernel(values, sums):
        part = cuda.shared.array((2, 3), np.float32)
        t = cuda.threadIdx.x
        if t < 6:
            part[t // 3, t % 3] = 0
        cuda.syncthreads()
        cuda.atomic.add(part, (t % 2, t % 3), values[t])
        cuda.syncthreads()
        if t < 6:
            sums[t // 3, t % 3] = part[t // 3, t % 3]

    values, sums = np.arange(32, dtype=np.float32), np.zeros((2, 3), np.float32)
    run(kernel, 1, 32, (values, sums), schedule=shuffled(1), races=True)
    expected = np.zeros((2, 3))
    np.add.at(expected, (np.arange(32) % 2, np.arange(32) % 3), values)
    np.testing.assert_array_equal(sums, expected)
