"""Faults of kernels and of their derivatives that the executor finds, in the user's words."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda, float64

import irad
import irad.cuda
from irad import Duplicated

WEIGHTS = np.array([0.1, 0.2, 0.4, 0.2, 0.1])


@cuda.jit
def convolution(x, y):
    f = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    if i < y.size:
        s = 0.0
        for k in range(5):
            j = i + k - 2
            if 0 <= j < x.size:
                s += f[k] * x[j]
        y[i] = s


@cuda.jit
def through_local(x, n, y):
    mine = cuda.local.array(4, float64)
    i = cuda.grid(1)
    for j in range(n):
        mine[j] = x[i] * j
    y[i] = mine[n // 2] + mine[n - 1]


@cuda.jit
def through_shared(x, n, y):
    tile = cuda.shared.array(4, float64)
    other = cuda.shared.array(64, float64)
    i = cuda.grid(1)
    tile[i] = x[i]
    other[i] = x[i] ** 2
    cuda.syncthreads()
    y[i] = tile[(i + n) % (n + 4)] * other[i]


@cuda.jit
def apart(x, n, y):
    """The two halves of a block wait in different places."""
    tile = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    tile[t] = x[t] ** 2
    if t < n:
        cuda.syncthreads()
        y[t] = tile[3 - t] * x[t]
    else:
        cuda.syncthreads()
        y[t] = tile[3 - t] * 2 * tile[t]


def line_of(kernel: Any, words: str) -> int:
    lines, start = inspect.getsourcelines(kernel.py_func)
    return next(start + n for n, line in enumerate(lines) if words in line)


def plain(kernel: Any, n: int) -> None:
    kernel[1, 4](np.ones(4), n, np.zeros(4))


def gradient(kernel: Any, n: int) -> np.ndarray:
    dx = np.zeros(4)
    irad.cuda.grad(kernel)[1, 4](Duplicated(np.ones(4), dx), n, Duplicated(np.zeros(4), np.ones(4)))
    return dx


BOTH = pytest.mark.parametrize("launch", [plain, gradient])


def test_constant_memory_at_a_variable_index():
    x, y, dx = np.ones(8), np.zeros(8), np.zeros(8)
    wanted = [0.7, 0.9, 1.0, 1.0, 1.0, 1.0, 0.9, 0.7]
    with irad.cuda.executor(races=True):
        convolution[1, 8](x, y)
        np.testing.assert_allclose(y, wanted, rtol=1e-15)
        irad.cuda.grad(convolution)[1, 8](Duplicated(x, dx), Duplicated(y, np.ones(8)))
    np.testing.assert_allclose(dx, wanted, rtol=1e-15)


@BOTH
@pytest.mark.parametrize("n", [5, 4000, 400000])
def test_beyond_a_local_array(launch: Callable[[Any, int], object], n: int):
    with irad.cuda.executor(races=True):
        launch(through_local, 4)
        with pytest.raises(irad.KernelBoundsError) as found:
            launch(through_local, n)
    assert found.value.location.line == line_of(through_local, "mine[j] =")
    assert "element 4 of " in str(found.value)


def test_a_local_array_is_named():
    with (
        irad.cuda.executor(races=True),
        pytest.raises(irad.KernelBoundsError, match="of the local array mine, which has 4"),
    ):
        plain(through_local, 5)


@BOTH
def test_beyond_one_of_several_shared_arrays(launch: Callable[[Any, int], object]):
    with irad.cuda.executor(races=True):
        launch(through_shared, 0)
        with pytest.raises(irad.KernelBoundsError) as found:
            launch(through_shared, 9)
    assert "element 9 of the shared array tile, which has 4" in str(found.value)
    assert found.value.location.line == line_of(through_shared, "y[i] =")


@BOTH
def test_threads_wait_in_different_places(launch: Callable[[Any, int], object]):
    with irad.cuda.executor(races=True):
        launch(apart, 4)
        with pytest.raises(irad.BarrierError, match="wait at different barriers"):
            launch(apart, 2)


def test_a_line_that_LLVM_has_lost_is_one_beside_it():
    @cuda.jit
    def unordered(x, n, y):
        tile = cuda.shared.array(4, float64)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        for _ in range(3):
            cuda.syncthreads()
            v = tile[3 - t] * x[t]
            tile[t] = v
        cuda.syncthreads()
        y[t] = tile[t]

    with irad.cuda.executor(races=True):
        with pytest.raises(irad.RaceError, match=r"race on element . of the shared array tile") as found:
            gradient(unordered, 0)
        lines = {place.line for place in found.value.locations}
        assert lines <= {line_of(unordered, "v = tile"), line_of(unordered, "tile[t] = v")}
        with pytest.raises(irad.RaceError) as found:
            plain(unordered, 0)
        lines = {place.line for place in found.value.locations}
        assert lines == {line_of(unordered, "v = tile"), line_of(unordered, "tile[t] = v")}


@cuda.jit
def through_one_of_two(x, n, y):
    own = cuda.local.array(4, float64)
    tile = cuda.shared.array(4, float64)
    i = cuda.grid(1)
    for k in range(4):
        own[k] = x[i] * k
    tile[i] = x[i]
    cuda.syncthreads()
    chosen = own if i % 2 == 0 else tile
    y[i] = chosen[n] * x[i]


@BOTH
def test_beyond_an_array_that_was_chosen(launch: Callable[[Any, int], object]):
    with irad.cuda.executor(races=True):
        launch(through_one_of_two, 3)
        with pytest.raises(irad.KernelBoundsError, match=r"element 4 of an? .*array.*, which has 4") as found:
            launch(through_one_of_two, 4)
    assert found.value.location.line == line_of(through_one_of_two, "y[i] =")


def test_a_pointer_to_a_constant_array_or_to_one_with_a_shadow():
    """The constant array has no memory that a derivative could be added to."""

    @cuda.jit
    def chosen(x, q, y, which):
        i = cuda.grid(1)
        if i < x.size:
            a = x if which[i] > 0 else q
            y[i] = a[i] * a[i]

    x, q, dx = np.ones(4) * 3, np.ones(4) * 5, np.zeros(4)
    y, dy, which = np.zeros(4), np.ones(4), np.array([1, 0, 1, 0])
    with irad.cuda.executor():
        with pytest.raises(irad.UnsupportedError, match="reads numbers from q, which is constant"):
            irad.cuda.grad(chosen)[1, 4](Duplicated(x, dx), irad.Const(q), Duplicated(y, dy.copy()), which)
        dq = np.zeros(4)
        irad.cuda.grad(chosen)[1, 4](Duplicated(x, dx), Duplicated(q, dq), Duplicated(y, dy), which)
    np.testing.assert_array_equal(dx, [6, 0, 6, 0])
    np.testing.assert_array_equal(dq, [0, 10, 0, 10])
