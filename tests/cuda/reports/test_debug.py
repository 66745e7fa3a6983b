"""Debug mode of kernels on the executor: which thread made a NaN or an infinity, on which line."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Active, Const, Duplicated, NonFiniteError, TieWarning, UnsupportedError
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_gpu import Foreign

pytestmark = pytest.mark.executor_only("debug mode tells Python what it finds, which no code of a GPU can")
DEBUG = irad.Options(debug=True)


@cuda.jit
def roots(x, steps, scale, y):
    """Saves values in a loop: has a tape."""
    i = cuda.grid(1)
    if i < x.size:
        v = 0.0
        for k in range(steps[i]):
            v += math.sqrt(x[i] - k)
        y[i] = v * scale


LOOP = roots.py_func.__code__.co_firstlineno + 6


@cuda.jit
def neighbours(x, y):
    """Hands numbers on through shared memory."""
    tile = cuda.shared.array(4, numba.float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    tile[t] = math.log(x[i])
    cuda.syncthreads()
    y[i] = tile[(t + 1) % 4] * 2.0


@cuda.jit
def clamp(x, y):
    i = cuda.grid(1)
    y[i] = x[i] if x[i] > 0.0 else 0.0


def launch(x, steps, kernel=roots, options=DEBUG, **settings):
    """The derivatives of roots, with the arguments after the launch."""
    dx, y, dy = np.zeros(x.size), np.zeros(x.size), np.ones(x.size)
    with irad.cuda.executor(**settings):
        given = Duplicated(x, dx), Const(np.array(steps)), Active(1.5), Duplicated(y, dy)
        returned = irad.cuda.grad(kernel, options=options)[2, 2](*given)
    return dx, y, returned[2]


@pytest.mark.parametrize("races", [False, True])
def test_results_are_those_without_it(races):
    x, steps = np.array([4.0, 5.0, 3.5, 9.0]), [2, 3, 0, 200 // 40]
    for found, wanted in zip(launch(x, steps, races=races), launch(x, steps, options=None), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_an_infinite_derivative_names_thread_line_and_iteration():
    with pytest.raises(NonFiniteError, match=r"the derivative with respect to x at \[2\] is inf") as found:
        launch(np.array([4.0, 5.0, 3.0, 9.0]), [2, 3, 4, 2])
    error = found.value
    assert (error.location.file, error.location.line, error.sweep) == (__file__, LOOP + 1, "derivative")
    assert error.operation == "0.5 / 0.0 = inf, in the derivative of sqrt"
    assert [number for _, number in error.loops] == [3]
    assert "thread (0, 0, 0) of block (1, 0, 0)" in error.detail


def test_a_nan_in_a_value_is_told_once_though_slices_grow():
    """In the thread with the longest tape, which is launched again with a larger slice."""
    x, kernel = np.array([4.0, 5.0, 3.0, 59.5]), cuda.jit(roots.py_func)
    with pytest.raises(NonFiniteError, match=r"the argument y after the call at \[3\] is nan") as found:
        launch(x, [2, 3, 1, 61], kernel)
    assert "sqrt(-0.5) = nan" in str(found.value)
    assert "thread (1, 0, 0) of block (1, 0, 0)" in found.value.detail
    assert [number for _, number in found.value.loops] == [60]


def test_arguments_that_were_nan_before():
    with pytest.raises(NonFiniteError, match=r"the argument x was nan at \[1\] from the start"):
        launch(np.array([4.0, np.nan, 3.0, 9.0]), [1, 1, 1, 1])
    given = Duplicated(np.ones(4), np.zeros(4)), Duplicated(np.zeros(4), np.array([np.nan, 1.0, 1.0, 1.0]))
    with irad.cuda.executor(), pytest.raises(NonFiniteError, match=r"with respect to y was nan at \[0\] from"):
        irad.cuda.grad(neighbours, options=DEBUG)[1, 4](*given)


def test_a_nan_passes_through_shared_memory():
    """It appears in another thread than the one that made it."""
    x, y = np.array([1.0, 2.0, -3.0, 4.0]), np.zeros(4)
    derivative = irad.cuda.grad(neighbours, options=DEBUG)
    with irad.cuda.executor(), pytest.raises(NonFiniteError, match=r"y after the call at \[1\] is nan") as found:
        derivative[1, 4](Duplicated(x, np.zeros(4)), Duplicated(y, np.ones(4)))
    assert "log(-3.0) = nan" in str(found.value)
    assert "thread (2, 0, 0) of block (0, 0, 0)" in found.value.detail
    assert found.value.location.line == neighbours.py_func.__code__.co_firstlineno + 6


def test_tangents():
    x, dx = np.array([1.0, 2.0, 0.0, 4.0]), np.array([1.0, 0.0, 1.0, 0.0])
    tangent = irad.cuda.autodiff(irad.Forward, neighbours, options=DEBUG)
    with irad.cuda.executor(), pytest.raises(NonFiniteError, match=r"y after the call at \[1\] is -inf") as found:
        tangent[1, 4](Duplicated(x, dx), Duplicated(np.zeros(4), np.zeros(4)))
    assert "thread (2, 0, 0)" in found.value.detail


def test_ties():
    x = np.array([1.0, 0.0, -1.0, 2.0])
    with irad.cuda.executor(), pytest.warns(TieWarning, match=r"(?s)0\.0 > 0\.0.*thread \(1, 0, 0\) of block") as found:
        irad.cuda.grad(clamp, options=DEBUG)[1, 4](Duplicated(x, np.zeros(4)), Duplicated(np.zeros(4), np.ones(4)))
    assert found[0].lineno == clamp.py_func.__code__.co_firstlineno + 3


def test_what_a_gpu_cannot_do_is_refused(monkeypatch):
    library = fake_gpu.install(monkeypatch)
    given = (Duplicated(Foreign(np.zeros(4)), Foreign(np.zeros(4))) for _ in range(2))
    with pytest.raises(UnsupportedError, match=r"(?s)on a GPU in debug mode.*irad\.cuda\.executor\(\)"):
        irad.cuda.grad(clamp, options=DEBUG)[1, 4](*given)
    assert "cuLaunchKernel" not in library.calls


def test_checks_of_indices_are_those_of_the_executor():
    options = irad.Options(boundscheck=True)
    with (
        irad.cuda.executor(),
        pytest.raises(UnsupportedError, match=r"(?s)boundscheck=True is not supported.*executor\(races=True\)"),
    ):
        irad.cuda.grad(clamp, options=options)[1, 4](
            Duplicated(np.zeros(4), np.zeros(4)), Duplicated(np.zeros(4), np.ones(4))
        )
    given = np.zeros(4), np.zeros(4)
    [problem] = irad.check(clamp, *given, options=options).problems
    assert "boundscheck" in problem.problem
    assert "executor(races=True)" in problem.remedy
