"""Threads of a block that leave, or go past barriers, while others still wait for each other."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda, float64

import irad
import irad.cuda
from irad import Duplicated, UnsupportedError
from irad.backend.cuda.ptx import compile_ptx
from irad.frontend.cuda.program import load_kernel
from irad.kernel.program import load
from tests.cuda.case import Case
from tests.cuda.ptx.tools import needs_libdevice
from tests.kernel.launches import launch_of

N = 16


@cuda.jit
def halves(x, y):
    """More leave after each step of a tree."""
    s = cuda.shared.array(N, float64)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    if t >= 8:
        return
    s[t] *= s[t + 8]
    cuda.syncthreads()
    if t >= 4:
        return
    s[t] *= s[t + 4]
    cuda.syncthreads()
    if t == 0:
        y[cuda.blockIdx.x] = s[0] + s[1] * s[2] * s[3]


@cuda.jit
def tree(x, y):
    """A loop that threads leave one after the other."""
    s = cuda.shared.array(N, float64)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    k = N // 2
    while t < k:
        s[t] += s[t] * math.sin(s[t + k])
        cuda.syncthreads()
        k //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


@cuda.jit
def one_more(x, y):
    """Some wait once more than the others."""
    s = cuda.shared.array(N, float64)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    if t < 8:
        s[t] *= s[t + 8]
        cuda.syncthreads()
        if t < 2:
            y[2 * cuda.blockIdx.x + t] = s[7 - t] * s[t]


LEAVING = [halves, tree, one_more]


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(1).uniform(0.5, 1.5, 2 * N), np.zeros(4)


def differences(kernel: Any) -> np.ndarray:
    """The gradient of the sum of the outputs."""
    found = np.zeros(2 * N)
    for i in range(2 * N):
        for step in (1e-6, -1e-6):
            x, y = arrays()
            x[i] += step
            with irad.cuda.executor():
                kernel[2, N](x, y)
            found[i] += np.sum(y) / (2.0 * step)
    return found


@pytest.mark.parametrize("kernel", LEAVING, ids=lambda kernel: kernel.py_func.__name__)
def test_derivatives(kernel: Any):
    wanted = differences(kernel)
    for schedule in irad.cuda.SCHEDULES:
        for races in (False, True):
            x, y = arrays()
            dx, dy = np.zeros(2 * N), np.ones(4)
            with irad.cuda.executor(schedule=schedule, races=races):
                irad.cuda.grad(kernel)[2, N](Duplicated(x, dx), Duplicated(y, dy))
            np.testing.assert_allclose(dx, wanted, rtol=1e-7, atol=1e-8)


@needs_libdevice
def test_threads_of_a_warp_may_wait_in_different_places():
    case = Case(halves.py_func, halves.py_func, lambda rng: arrays(), 2, N, (1,), (0, 1))
    text = compile_ptx(launch_of(case).derivative().module, "sm_80")
    assert text.count("barrier.red.and.pred") >= 6
    assert text.count("bar.sync") == 1, "once the shadow is cleared"


def test_barriers_that_count_are_refused():
    @cuda.jit
    def counted(x, y):
        s = cuda.shared.array(N, float64)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        if t < 12:
            y[t] = cuda.syncthreads_count(1 if s[t] > 1.0 else 0) * s[t] * s[N - 1 - t]

    x, y = np.ones(N), np.zeros(N)
    with irad.cuda.executor():
        given = Duplicated(x, np.ones(N)), Duplicated(y, np.zeros(N))
        with pytest.raises(UnsupportedError, match="cannot differentiate a kernel with a counting barrier") as caught:
            irad.cuda.grad(counted)[1, N](*given)
        assert caught.value.location.line == counted.py_func.__code__.co_firstlineno + 7
        irad.cuda.autodiff(irad.Forward, counted)[1, N](*given)
    np.testing.assert_array_equal(given[1].shadow[:12], 0.0)


def together(x, y, steps):
    """Whole blocks, threads that never wait, and loops that all leave together, by what they have agreed on."""
    s = cuda.shared.array(N, float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    if i >= x.size or cuda.blockIdx.x > steps[2]:
        return
    for k in range(steps[0]):
        s[t] = x[i] * k
        cuda.syncthreads()
        if s[0] > 2.0:
            break
        if cuda.syncthreads_or(1 if s[t] > 3.0 else 0):
            return
    y[i] = s[t]


def apart(x, y, steps):
    """As above, but for the number of steps, which is that of a thread."""
    s = cuda.shared.array(N, float64)
    t = cuda.threadIdx.x
    for k in range(steps[t]):
        s[t] = x[t] * k
        cuda.syncthreads()
    y[t] = s[t]


@pytest.mark.parametrize("kernel", [together, apart])
def test_what_threads_of_a_block_do_together_is_known(kernel: Any):
    types = tuple(numba.typeof(each) for each in (np.ones(N), np.ones(N), np.ones(3, int)))
    assert load(load_kernel(cuda.jit(kernel), types).module).leaves_apart is (kernel is apart)
