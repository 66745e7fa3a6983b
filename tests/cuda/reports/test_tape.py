"""The tape of kernels, measured: against what the loops say, against the slices that a launch really used."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Const, Duplicated, SignatureError

STEPS = np.array([3, 0, 20, 1, 5, 20, 0, 2])


@cuda.jit
def ragged(x, steps, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(steps[i]):
            v = math.sin(v)
        y[i] = v


LOOP = ragged.py_func.__code__.co_firstlineno + 5


@cuda.jit
def converging(x, y):
    """A loop that ends when it has converged: records, not slabs; and shared memory."""
    tile = cuda.shared.array(4, numba.float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    tile[t] = x[i]
    cuda.syncthreads()
    v = tile[3 - t]
    while v > 0.5:
        v = math.sin(v) * 0.9
    y[i] = v


def converging_steps(x: float) -> int:
    steps = 0
    while x > 0.5:
        x, steps = math.sin(x) * 0.9, steps + 1
    return steps


@pytest.fixture(scope="module")
def report():
    return irad.tape_report(irad.cuda.grad(ragged)[2, 4], np.linspace(0.3, 1.1, 8), STEPS, np.zeros(8))


def slice_of(kernel, launch, *arguments) -> int:
    """Bytes that a thread used in a launch without the meter."""
    derivative = irad.cuda.grad(kernel, options=irad.Options(strict=True))
    with irad.cuda.executor():
        derivative[launch](*arguments)
    return derivative.tape_bytes // math.prod(launch)


def test_what_is_saved_is_counted_by_line(report):
    assert report.total == 8 * STEPS.sum(), "the argument of each sine"
    [(place, count)] = report.lines()
    assert (place.file, count) == (__file__, report.total)
    assert place.line in (LOOP, LOOP + 1)
    assert {use.storage for use in report.uses} == {"slab"}
    assert sum(use.slots for use in report.uses) == STEPS.sum()


def test_slices_are_those_of_a_launch(report):
    x, y = np.linspace(0.3, 1.1, 8), np.zeros(8)
    used = slice_of(ragged, (2, 4), Duplicated(x, np.zeros(8)), Const(STEPS), Duplicated(y, np.ones(8)))
    assert report.per_thread == used == 8 * STEPS.max()
    assert report.threads == 8
    assert report.buffer == 32 * used, "of a whole warp"


def test_the_total_is_what_all_threads_use():
    """With as many iterations in each thread, slices are used up."""
    steps = np.full(8, 7)
    found = irad.tape_report(irad.cuda.grad(ragged)[2, 4], np.linspace(0.3, 1.1, 8), steps, np.zeros(8))
    assert found.total == found.threads * found.per_thread == 8 * 8 * 7


def test_records_of_loops_that_converge():
    x = np.linspace(0.2, 1.6, 8)
    found = irad.tape_report(irad.cuda.grad(converging)[2, 4], x, np.zeros(8))
    steps = [converging_steps(each) for each in x]
    assert {use.storage for use in found.uses} == {"record"}
    assert sum(use.slots for use in found.uses if use.value) >= sum(steps) > 0
    used = slice_of(converging, (2, 4), Duplicated(x.copy(), np.zeros(8)), Duplicated(np.zeros(8), np.ones(8)))
    assert found.per_thread == used
    assert found.total == sum(steps) * used // max(steps)


def test_nothing_is_changed():
    x, y = np.linspace(0.3, 1.1, 8), np.full(8, 2.0)
    irad.tape_report(irad.cuda.grad(ragged)[2, 4], x, STEPS, y)
    np.testing.assert_array_equal(y, 2.0)


def test_no_iterations_and_no_tape(report):
    x = np.linspace(0.3, 1.1, 8)
    none = irad.tape_report(irad.cuda.grad(ragged)[2, 4], x, 0 * STEPS, np.zeros(8))
    assert (none.total, none.per_thread, none.buffer, none.uses) == (0, 0, 0, ())
    assert none.frame == report.frame

    @cuda.jit
    def double(x, y):
        i = cuda.grid(1)
        y[i] = 2.0 * x[i]

    linear = irad.tape_report(irad.cuda.grad(double)[2, 4], x, np.zeros(8))
    assert (linear.total, linear.buffer) == (0, 0)


def test_the_text_says_it_all(report):
    text = str(report)
    assert f"tape of ragged in irad.cuda.grad: {report.total} bytes" in text
    assert "8 threads, at most 160 bytes for one of them: a buffer of 5120 bytes (5.0 KiB)" in text
    assert f"{__file__}:{LOOP}" in text
    assert f"keeps {sum(use.bytes for use in report.frame)} bytes in its local memory" in text
    assert "a buffer of 5120 bytes" in report._repr_html_()


def test_recomputed_values_have_lines(report):
    assert all(place.file == __file__ and count >= 1 for place, count in report.recomputed)
    saved = irad.tape_report(
        irad.cuda.grad(ragged, options=irad.Options(plan="save_all"))[2, 4], np.full(8, 0.5), STEPS, np.zeros(8)
    )
    assert report.recomputed
    assert not saved.recomputed, "the oracle saves what could be recomputed"
    assert saved.total >= report.total


@pytest.mark.filterwarnings("ignore:.*low occupancy")
def test_configurations_of_numba_and_of_the_executor():
    arguments = np.full(8, 0.5), STEPS, np.zeros(8)
    wanted = irad.tape_report(ragged[2, 4], *arguments, argnums=(0, 2)).uses
    with irad.cuda.executor():
        assert irad.tape_report(ragged[2, 4], *arguments, argnames=("x", "y")).uses == wanted
        on_device = [cuda.to_device(each) for each in arguments]
        assert irad.tape_report(ragged[2, 4], *on_device).uses == wanted


def test_what_does_not_fit_is_refused():
    with pytest.raises(SignatureError, match="given no configuration of a launch"):
        irad.tape_report(ragged, np.zeros(8), STEPS, np.zeros(8))
    with pytest.raises(SignatureError, match="takes 3 arguments, and 1 were given"):
        irad.tape_report(irad.cuda.grad(ragged)[2, 4], np.zeros(8))
    with pytest.raises(SignatureError, match="no derivative with respect to steps"):
        irad.tape_report(irad.cuda.grad(ragged)[2, 4], np.zeros(8), STEPS, np.zeros(8), argnames="steps")
