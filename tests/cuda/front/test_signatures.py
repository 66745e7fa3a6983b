"""Kernels and device functions with signatures: on a machine without a GPU they are compiled when they run."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda, guvectorize, types, vectorize

import irad
import irad.cuda
from irad import Active, Duplicated

irad.cuda.executor()  # what Numba's decorators do depends on it

pytestmark = pytest.mark.skipif(cuda.is_available(), reason="Numba compiles what has a signature")


@cuda.jit("float32(float32)", device=True)
def third(v):
    return v * v * v


@cuda.jit("void(float64[:], float64, float64[:])")
def powers(x, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = scale * x[i] ** 3


@cuda.jit([types.void(types.float64[::1], types.float64[::1]), types.void(types.float32[::1], types.float32[::1])])
def cubes(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = third(x[i])


def test_a_kernel():
    x, dx, y = np.arange(8.0)[::2], np.zeros(8)[::2], np.zeros(8)[::2]
    with irad.cuda.executor():
        powers[1, 4](x, 2, y)
        np.testing.assert_array_equal(y, 2 * x**3)
        _, scale, _ = irad.cuda.grad(powers)[1, 4](Duplicated(x, dx), Active(2.0), Duplicated(y, np.ones(8)[::2]))
    np.testing.assert_array_equal(dx, 6 * x**2)
    assert scale == np.sum(x**3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_device_function_rounds_as_declared(dtype):
    x = np.array([1.1, 0.3], dtype)
    dx, y = np.zeros(2, dtype), np.zeros(2, dtype)
    with irad.cuda.executor():
        cubes[1, 2](x, y)
        irad.cuda.grad(cubes)[1, 2](Duplicated(x, dx), Duplicated(np.zeros(2, dtype), np.ones(2, dtype)))
    single = x.astype(np.float32)
    np.testing.assert_array_equal(y, single * single * single)
    np.testing.assert_allclose(dx, 3 * single**2, rtol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(2, np.float32), 1.0, np.zeros(2)),
        (np.zeros((2, 2)), 1.0, np.zeros(2)),
        (np.zeros(2), 1.0j, np.zeros(2)),
    ],
)
def test_other_types_are_refused(arguments):
    with irad.cuda.executor(), pytest.raises(irad.SignatureError, match="powers has no signature for"):
        powers[1, 2](*arguments)


def test_ufuncs_of_the_gpu_are_refused():
    def square(x):
        return x * x

    with irad.cuda.executor():
        with pytest.raises(irad.UnsupportedError, match='vectorize\\(target="cuda"\\) runs neither on'):
            vectorize(["float64(float64)"], target="cuda")(square)
        with pytest.raises(irad.UnsupportedError, match='guvectorize\\(target="cuda"\\) runs neither on'):
            guvectorize(["void(float64[:], float64[:])"], "(n)->(n)", target="cuda")(square)


def test_reductions_of_numba_run_but_have_no_derivative():
    total = cuda.reduce(lambda a, b: a + b)
    x = np.arange(300.0)
    with irad.cuda.executor():
        assert total(x) == x.sum()
        array, out = cuda.to_device(x), cuda.device_array(1)
        with irad.cuda.Tape(), pytest.raises(irad.UnsupportedError, match=r"cuda\.reduce has no derivative"):
            total(array, res=out)
