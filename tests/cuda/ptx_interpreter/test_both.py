"""Both engines side by side: what counts as the same, which launches are compared, what the interpreter knows."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import irad.cuda
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.executor.launch import Extent
from tests.cuda.ptx.operations import ALL, kernel_of
from tests.cuda.ptx_interpreter.both import Comparison, Recorded, recording, regions, same
from tests.cuda.ptx_interpreter.building import build
from tests.cuda.ptx_interpreter.faults import MemoryFault
from tests.cuda.ptx_interpreter.machine import Machine
from tests.cuda.ptx_interpreter.memory import Region
from tests.cuda.ptx_interpreter.syntax import parse

pytestmark = pytest.mark.executor_only("the tests compare themselves")


def memory(values: object) -> Region:
    array = np.array(values)
    return Region(4096, array.view(np.uint8), "x", array.itemsize)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-12]),
        ([1e10, 1e-3], [1e10, 2e-3]),  # the sum of large numbers that cancel
        ([np.nan], [-np.nan]),
    ],
)
def test_rounding_is_no_difference(left, right):
    same(memory(left), memory(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1.0], [1.0 + 1e-8]),
        ([1.0], [-1.0]),
        ([0.0], [1e-300]),
        ([1.0], [np.nan]),
        ([3], [4]),
        (np.array([3], np.int32), np.array([4], np.int32)),
        (np.array([3], np.int8), np.array([4], np.int8)),
        (np.array([1.0], np.float32), np.array([1.001], np.float32)),
    ],
)
def test_differences(left, right):
    with pytest.raises(AssertionError, match="PTX leaves"):
        same(memory(left), memory(right))


def test_memory_that_overlaps_is_one_piece():
    array = np.arange(8.0)
    start = array.ctypes.data
    found = regions([Extent(start + 16, 32, "b", 8), Extent(start, 24, "a", 8), Extent(start + 48, 8, "c", 8)])
    assert [(each.address - start, each.data.size, each.name) for each in found] == [(0, 48, "a"), (48, 8, "c")]
    assert found[0].data.view(float).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@cuda.jit
def scaled(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2.0 * x[i]


def test_a_launch_is_compared_once_and_not_if_it_is_large():
    launches: list[Recorded] = []
    comparison = Comparison(largest=64)
    with irad.cuda.executor(), recording(launches.append):
        for blocks in (1, 1, 2, 3):
            scaled[blocks, 32](np.ones(8), np.zeros(8))
    for each in launches:
        comparison(each)
    assert (len(launches), len(comparison.seen)) == (4, 2)


def test_an_engine_that_is_wrong_is_noticed():
    launches: list[Recorded] = []
    with irad.cuda.executor(), recording(launches.append):
        scaled[1, 32](np.ones(8), np.zeros(8))
    [launched] = launches
    launched.check()
    with pytest.raises(AssertionError, match="PTX leaves"):
        launched.check(launched.ptx.replace("add.f64", "sub.f64"))
    with pytest.raises(MemoryFault):
        launched.check(launched.ptx.replace("setp.ge.s64", "setp.lt.s64"))


def test_every_operation_of_the_dialect_is_known():
    program = parse(compile_ptx(kernel_of(ALL)))
    build(Machine(program, (1, 1, 1), (32, 1, 1), []))
    assert len(program.entry.instructions) > len(ALL)
