"""Tapes of threads: they grow until they are large enough, with nothing changed twice."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Active, Const, Duplicated


@cuda.jit
def iterated(x, steps, factor, y):
    """Needs the value before each step: a number of them that depends on the thread."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(steps[i]):
            v = math.sin(v) * factor + x[i]
        y[i] += v
        x[i] = v


def reference(x, steps, factor):
    """The result and its derivatives with respect to the element of x and to the factor."""
    v, dv, df = x, 1.0, 0.0
    for _ in range(steps):
        v, dv, df = (
            math.sin(v) * factor + x,
            math.cos(v) * dv * factor + 1.0,
            math.cos(v) * df * factor + math.sin(v),
        )
    return v, dv, df


STEPS = np.array([3, 0, 200, 1, 50])


def launch(steps, kernel=iterated, **options):
    x, dx = np.linspace(0.3, 1.1, 5), np.zeros(5)
    y, dy = np.ones(5), np.ones(5)
    derivative = irad.cuda.grad(kernel, **options)
    _, _, df, _ = derivative[2, 4](Duplicated(x, dx), Const(steps), Active(1.2), Duplicated(y, dy))
    wanted = np.array([reference(a, n, 1.2) for a, n in zip(np.linspace(0.3, 1.1, 5), steps, strict=True)])
    np.testing.assert_allclose(x, wanted[:, 0], rtol=1e-12)
    np.testing.assert_allclose(y, 1.0 + wanted[:, 0], rtol=1e-12)
    np.testing.assert_allclose(dx, wanted[:, 1], rtol=1e-10)
    assert df == pytest.approx(wanted[:, 2].sum(), rel=1e-10)
    np.testing.assert_array_equal(dy, 1.0)
    return derivative


@pytest.mark.parametrize("races", [False, True])
def test_slices_grow(races):
    with irad.cuda.executor(races=races) as device:
        derivative = launch(STEPS, cuda.jit(iterated.py_func))
        assert device.launches > 1
    assert derivative.tape_bytes >= 10 * 200 * 8


def test_the_second_launch_allocates_nothing():
    with irad.cuda.executor() as device:
        launch(STEPS)
        launches, allocations = device.launches, device.pool.allocations
        launch(STEPS)
        assert (device.launches, device.pool.allocations) == (launches + 1, allocations)
        launch(4 * STEPS)  # more steps than it was sized for
        assert device.pool.allocations > allocations


def test_a_limit_names_the_line_that_saves_most():
    x, y = np.linspace(0.3, 1.1, 5), np.ones(5)
    dx, dy = np.zeros(5), np.ones(5)
    given = Duplicated(x, dx), Const(STEPS), Active(1.2), Duplicated(y, dy)
    derivative = irad.cuda.grad(iterated, options=irad.Options(max_tape_bytes=10_000))
    with irad.cuda.executor(races=True), pytest.raises(irad.TapeLimitError, match="tape of iterated takes") as found:
        derivative[2, 4](*given)
    first = iterated.py_func.__code__.co_firstlineno
    assert found.value.location.file == __file__
    assert found.value.location.line in (first + 6, first + 7), "the loop"
    assert "irad.tape_report(iterated[blocks, threads], …)" in found.value.remedy
    np.testing.assert_array_equal(x, np.linspace(0.3, 1.1, 5), err_msg="as it was before")
    np.testing.assert_array_equal((y, dx, dy), (np.ones(5), np.zeros(5), np.ones(5)))


def test_a_limit_is_used_up():
    """What fits exactly runs: a first guess that is larger does not count."""
    slice_ = -(-largest_slice() // 8) * 8
    with irad.cuda.executor():
        launch(STEPS, options=irad.Options(max_tape_bytes=32 * slice_))
        with pytest.raises(irad.TapeLimitError):
            launch(STEPS, options=irad.Options(max_tape_bytes=32 * slice_ - 1))
        launch(STEPS * 0, options=irad.Options(max_tape_bytes=0))


def largest_slice() -> int:
    """Bytes that the thread with the largest tape uses."""
    with irad.cuda.executor():
        return launch(STEPS).tape_bytes // 8


def test_a_kernel_without_saved_values_has_no_tape():
    @cuda.jit
    def square(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * x[i]

    with irad.cuda.executor() as device:
        derivative = irad.cuda.grad(square)
        derivative[1, 4](Duplicated(np.ones(3), np.zeros(3)), Duplicated(np.zeros(3), np.ones(3)))
        assert derivative.tape_bytes == 0
        assert device.pool.allocations == 0
