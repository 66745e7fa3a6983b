"""Steps that are captured in CUDA graphs, on a stand-in of the driver that refuses what is illegal there."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import BackendError, Const, Duplicated, SignatureError, TapeLimitError
from irad.cuda.devices import current
from irad.cuda.kernels import launch_of, run_kernel
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_gpu import Foreign

N, STREAM = 5, 77


@cuda.jit
def iterated(x, steps, y):
    """Needs a tape, whose size depends on the data."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(steps[i]):
            v = math.sin(v) * 1.2 + x[i]
        y[i] = v


@cuda.jit
def advance(y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = y[i] * y[i] + 0.5


@cuda.jit
def total(y, out):
    i = cuda.grid(1)
    if i == 0:
        out[0] = 0.0
        for j in range(y.size):
            out[0] += y[j]


@cuda.jit
def descend(x, dx):
    i = cuda.grid(1)
    if i < x.size:
        x[i] -= 0.01 * dx[i]


def reference(x, steps):
    """The gradient of the loss."""
    found = np.zeros(N)
    for i in range(N):
        v, dv = x[i], 1.0
        for _ in range(steps[i]):
            v, dv = math.sin(v) * 1.2 + x[i], math.cos(v) * 1.2 * dv + 1.0
        found[i] = 2.0 * v * dv
    return found


@pytest.fixture
def library(monkeypatch):
    return fake_gpu.install(monkeypatch)


class Problem:
    """A step of an optimisation; all of its arrays are there before."""

    def __init__(self):
        self.x, self.steps = np.linspace(0.3, 1.1, N), np.array([3, 0, 60, 1, 20])
        self.y, self.out = np.zeros(N), np.zeros(1)
        self.given = [Foreign(each) for each in (self.x, self.steps, self.y, self.out)]

    def step(self):
        x, steps, y, out = self.given
        with irad.cuda.Tape() as tape:
            iterated[1, 32, STREAM](x, steps, y)
            advance[1, 32, STREAM](y)
            total[1, 32, STREAM](y, out)
        tape.backward(out)
        launch = launch_of((1, 32, STREAM))  # Numba's own way needs its driver
        run_kernel(current.current_device(), descend, launch, (x, tape.gradient(x)))
        return tape


def run_once(problem):
    problem.step().reset()
    gc.collect()


def test_a_captured_step(library):
    problem = Problem()
    run_once(problem)
    allocations = current.current_device().pool.allocations
    start = problem.x.copy()
    library.begin_capture(STREAM)
    del library.calls[:]
    tape = problem.step()
    graph = library.end_capture()
    assert set(library.calls) <= {
        *("cuCtxGetCurrent", "cuPointerGetAttribute", "cuStreamGetCaptureInfo_v2"),
        *("cuLaunchKernel", "cuMemcpyAsync", "cuMemsetD8Async"),
    }
    assert current.current_device().pool.allocations == allocations
    np.testing.assert_array_equal(problem.x, start)  # nothing has run yet
    x = start
    for _ in range(3):
        graph()
        x = x - 0.01 * reference(x, problem.steps)
        np.testing.assert_allclose(problem.x, x, rtol=1e-12)
    irad.cuda.check_graphs()
    del tape


def test_memory_of_a_graph_is_not_used_by_others(library):
    problem, other = Problem(), Problem()
    run_once(problem)
    library.begin_capture(STREAM)
    problem.step().reset()
    graph = library.end_capture()
    gc.collect()
    graph()
    x = problem.x.copy()
    for _ in range(3):
        other.step()  # takes other memory, and spoils none
    current.current_device().pool.trim()
    gc.collect()
    graph()
    np.testing.assert_allclose(problem.x, x - 0.01 * reference(x, problem.steps), rtol=1e-12)


def test_a_tape_that_becomes_too_small(library):
    problem = Problem()
    run_once(problem)
    library.begin_capture(STREAM)
    tape = problem.step()
    graph = library.end_capture()
    start = problem.x.copy()
    problem.steps[1] = 5000  # more than it was captured for
    graph()
    assert np.all(np.isnan(problem.x))
    with pytest.raises(TapeLimitError, match="a launch in a CUDA graph needed more tape than it has"):
        irad.cuda.check_graphs()
    irad.cuda.check_graphs()  # reported before
    problem.x[:] = start
    run_once(problem)  # finds out, and is right
    wanted = start - 0.01 * reference(start, problem.steps)
    np.testing.assert_allclose(problem.x, wanted, rtol=1e-9)
    problem.x[:] = start
    library.begin_capture(STREAM)
    again = problem.step()
    graph = library.end_capture()
    graph()
    np.testing.assert_allclose(problem.x, wanted, rtol=1e-9)
    irad.cuda.check_graphs()
    del tape, again


def test_derivatives_of_kernels_in_a_capture(library):
    problem = Problem()
    x, steps, y, _ = problem.given
    dx, dy = np.zeros(N), np.ones(N)
    derivative = irad.cuda.grad(iterated)[1, 32, STREAM]
    given = Duplicated(x, Foreign(dx)), Const(steps), Duplicated(y, Foreign(dy))
    derivative(*given)
    expected = dx.copy()
    library.begin_capture(STREAM)
    derivative(*given)
    graph = library.end_capture()
    dx[:], dy[:] = 0.0, 1.0
    graph()
    np.testing.assert_array_equal(dx, expected)
    problem.steps[3] = 30000
    graph()
    assert np.all(np.isnan(dx))
    assert np.all(np.isnan(problem.y))
    with pytest.raises(TapeLimitError):
        irad.cuda.check_graphs()


def test_what_is_refused_in_a_capture(library):
    @cuda.jit
    def scaled(x, factor, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * factor

    fresh = cuda.jit(iterated.py_func)
    problem = Problem()
    x, steps, y, out = problem.given
    dx, dy = Foreign(np.zeros(N)), Foreign(np.ones(N))
    library.begin_capture(STREAM)
    try:
        with pytest.raises(BackendError, match=r"first launch is captured in a CUDA graph"):
            irad.cuda.grad(fresh)[1, 32, STREAM](Duplicated(x, dx), Const(steps), Duplicated(y, dy))
        with pytest.raises(SignatureError, match="derivative with respect to a number is returned"):
            irad.cuda.grad(scaled)[1, 32, STREAM](Duplicated(x, dx), irad.Active(2.0), Duplicated(y, dy))
    finally:
        library.end_capture()
    run_once(problem)
    library.begin_capture(STREAM)
    tapes = [problem.step()]
    with pytest.raises(BackendError, match="needs more memory than earlier steps have left"):
        tapes.append(problem.step())
    library.end_capture()
    with irad.cuda.Tape() as tape:
        total[1, 32, STREAM](y, out)
    library.begin_capture(STREAM)
    with pytest.raises(SignatureError, match="a cotangent is a host array"):
        tape.backward((y, np.ones(N)))
    library.end_capture()


def test_backward_runs_on_the_stream_of_the_launches(library):
    problem = Problem()
    library.streams.clear()
    problem.step()
    assert library.streams == {STREAM}
    x, steps, y, out = problem.given
    with irad.cuda.Tape() as tape:
        iterated[1, 32, STREAM](x, steps, y)
        library.calls.clear()
        total[1, 32, 5](y, out)
    tape.backward(out)
    assert library.calls[-1] == "cuCtxSynchronize"
    assert library.streams == {STREAM, 5, None}
