"""What a launch of a derivative takes and gives: annotations, directions, structures; what it refuses."""

from __future__ import annotations

import cmath
import math
from typing import NamedTuple

import numpy as np
import pytest
from numba import cuda, float64

import irad
import irad.cuda
from irad import Active, BatchDuplicated, Cache, Const, Duplicated, MixedDuplicated, SignatureError


@cuda.jit
def power(x, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = scale * x[i] * x[i]


@cuda.jit
def transformed(x, n, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = math.sin(x[i]) * n


@cuda.jit
def through_workspace(x, work, y):
    i = cuda.grid(1)
    if i < x.size:
        work[i] = x[i] * x[i]
        y[i] = work[i] * x[i]


class Model(NamedTuple):
    weights: object
    bias: object


@cuda.jit
def affine(model, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = model.weights[i] * x[i] + model.bias


@cuda.jit
def magnitude(z, c, y):
    i = cuda.grid(1)
    if i < z.size:
        w = z[i] * c
        y[i] = w.real * w.real + w.imag * w.imag


@pytest.fixture(autouse=True)
def _on_the_executor():
    with irad.cuda.executor():
        yield


def data(dtype=np.float64):
    x = np.array([1.0, -2.0, 3.0], dtype)
    return x, np.zeros(3, dtype), np.zeros(3, dtype), np.array([1.0, 10.0, 100.0], dtype)


def launch(kernel, *arguments, mode=irad.Reverse, threads=4, **named):
    return irad.cuda.autodiff(mode, kernel)[1, threads](*arguments, **named)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_number_is_returned_in_its_precision(dtype):
    x, dx, y, dy = data(dtype)
    _, derivative, _ = launch(power, Duplicated(x, dx), Active(dtype(5.0)), Duplicated(y, dy))
    assert derivative == 1.0 + 40.0 + 900.0
    assert type(derivative) is (np.float32 if dtype is np.float32 else float)
    np.testing.assert_array_equal(dx, [10.0, -200.0, 3000.0])
    np.testing.assert_array_equal(y, [5.0, 20.0, 45.0])
    np.testing.assert_array_equal(dy, 0.0)


def test_the_derivative_of_a_number_is_added_to_an_array():
    x, dx, y, dy = data()
    place = np.array([0.5])
    assert launch(power, Duplicated(x, dx), Duplicated(5.0, place), Duplicated(y, dy)) == (None, None, None)
    assert place[0] == 941.5


def test_arguments_by_name_and_integers_without_annotation():
    x, dx, y, dy = data()
    assert launch(transformed, Duplicated(x, dx), y=Duplicated(y, dy), n=3) == (None, None, None)
    np.testing.assert_allclose(dx, 3.0 * np.cos(x) * [1.0, 10.0, 100.0])


@pytest.mark.parametrize("mode", [irad.Forward, irad.Reverse])
def test_several_directions_at_once(mode):
    x, first, y, second = data()
    lanes = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 2.0])
    if mode.is_forward:
        out = np.zeros(3), np.zeros(3)
        launch(power, BatchDuplicated(x, lanes), BatchDuplicated(5.0, (0.0, 1.0)), BatchDuplicated(y, out), mode=mode)
        np.testing.assert_array_equal(out[0], [10.0, 0.0, 0.0])
        np.testing.assert_array_equal(out[1], 5.0 * 2.0 * x * lanes[1] + x * x)
    else:
        shadows = first, second * 0.0
        found = launch(power, BatchDuplicated(x, shadows), Active(5.0), BatchDuplicated(y, lanes), mode=mode)
        assert found == (None, (1.0, 4.0 + 18.0), None)
        np.testing.assert_array_equal(shadows[1], 10.0 * x * [0.0, 1.0, 2.0])


def test_workspace_has_a_shadow_for_the_call():
    x, dx, y, dy = data()
    work = np.full(3, np.nan)
    launch(through_workspace, Duplicated(x, dx), Cache(work), Duplicated(y, dy))
    np.testing.assert_allclose(dx, 3.0 * x * x * [1.0, 10.0, 100.0])


def test_a_tuple_of_an_array_and_a_number():
    x, dx, y, dy = data()
    model, shadow = Model(np.array([2.0, 3.0, 4.0]), 0.5), Model(np.zeros(3), 0.0)
    found = launch(affine, MixedDuplicated(model, shadow), Duplicated(x, dx), Duplicated(y, dy))
    assert isinstance(found[0], Model)
    assert found[0].weights is shadow.weights
    assert found[0].bias == 111.0
    np.testing.assert_array_equal(shadow.weights, x * [1.0, 10.0, 100.0])
    np.testing.assert_array_equal(dx, [2.0, 30.0, 400.0])


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_complex_numbers(dtype):
    z, c = np.array([1.0 + 2.0j, 3.0 - 1.0j], dtype), dtype(0.5 + 1.5j)
    dz, y, dy = np.zeros(2, dtype), np.zeros(2, z.real.dtype), np.ones(2, z.real.dtype)
    _, derivative, _ = launch(magnitude, Duplicated(z, dz), Active(c), Duplicated(y, dy))
    np.testing.assert_allclose(y, abs(z * c) ** 2, rtol=1e-6)
    np.testing.assert_allclose(dz, 2.0 * abs(c) ** 2 * z, rtol=1e-6)
    assert cmath.isclose(derivative, 2.0 * complex(c) * float(np.sum(abs(z) ** 2)), rel_tol=1e-6)


@pytest.mark.parametrize("step", [2, -1, -2])
def test_strided_arrays(step):
    whole, shadow = np.arange(1.0, 7.0), np.zeros(6)
    x, dx = whole[::step], shadow[::step]
    y, dy = np.zeros(x.size), np.ones(x.size)
    launch(power, Duplicated(x, dx), Const(5.0), Duplicated(y, dy), threads=8)
    np.testing.assert_array_equal(dx, 10.0 * x)
    assert np.count_nonzero(shadow) == x.size


def test_transposed_and_empty_arrays():
    @cuda.jit
    def row(a, y):
        i = cuda.grid(1)
        if i < a.shape[0]:
            for j in range(a.shape[1]):
                y[i] += a[i, j] * a[i, j]

    a, da = np.arange(6.0).reshape(2, 3).T, np.zeros((2, 3)).T
    launch(row, Duplicated(a, da), Duplicated(np.zeros(3), np.ones(3)))
    np.testing.assert_array_equal(da, 2.0 * a)
    empty = Duplicated(np.zeros(0), np.zeros(0))
    assert launch(power, empty, Active(5.0), Duplicated(np.zeros(0), np.zeros(0))) == (None, 0.0, None)


def test_dynamic_shared_memory_has_its_shadow_behind_it():
    @cuda.jit
    def rotated(x, y):
        tile = cuda.shared.array(0, float64)
        i = cuda.threadIdx.x
        tile[i] = x[i] * x[i]
        cuda.syncthreads()
        y[i] = tile[(i + 1) % tile.size] * x[i]

    x, dx, y, dy = np.arange(1.0, 6.0), np.zeros(5), np.zeros(5), np.ones(5)
    irad.cuda.grad(rotated)[1, 5, 0, 40](Duplicated(x, dx), Duplicated(y, dy))
    np.testing.assert_array_equal(y, np.roll(x * x, -1) * x)
    np.testing.assert_array_equal(dx, np.roll(x * x, -1) + 2.0 * x * np.roll(x, 1))
    with pytest.raises(SignatureError, match="36 bytes of dynamic shared memory"):
        irad.cuda.grad(rotated)[1, 4, 0, 36](Duplicated(x, dx), Duplicated(y, dy))


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(words, *arguments, kernel=power, **options):
    with pytest.raises(SignatureError, match=words):
        launch(kernel, *arguments, **options)


def test_what_has_no_annotation():
    x, dx, y, dy = data()
    refused(r"argument 0 \(x\) is a ndarray without an annotation", x, Const(5.0), Duplicated(y, dy))
    refused(r"argument 1 \(scale\) is a float without", Duplicated(x, dx), 5.0, Duplicated(y, dy))
    refused(r"argument 1 \(scale\) is a float32 without", Duplicated(x, dx), np.float32(5), Duplicated(y, dy))


def test_shadows_that_do_not_fit():
    x, dx, y, dy = data()
    rest = Const(5.0), Duplicated(y, dy)
    refused("shadow of x has the shape", Duplicated(x, np.zeros(4)), *rest)
    refused("shadow of x has the dtype", Duplicated(x, np.zeros(3, np.float32)), *rest)
    refused("shadow of x has the strides", Duplicated(x, np.zeros(6)[::2]), *rest)
    refused("shadow of x is a list", Duplicated(x, [0.0] * 3), *rest)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    refused("shadow of x is read-only", Duplicated(x, frozen), *rest)
    refused(r"derivative with respect to scale cannot be added", Duplicated(x, dx), Duplicated(5.0, 0.0), rest[1])
    np.testing.assert_array_equal(y, 0.0)


def test_annotations_that_do_not_fit():
    x, dx, y, dy = data()
    rest = Duplicated(y, dy)
    refused("irad.Active is for floats", Active(x), Const(5.0), rest)
    refused("irad.Active is for floats", Duplicated(x, dx), Active(5), rest)
    refused("which has no derivative", Duplicated(np.arange(3), np.arange(3)), Const(5.0), rest)
    refused("irad.Active, which is for reverse", Duplicated(x, dx), Active(5.0), rest, mode=irad.Forward)
    refused("the tangent of scale is a ndarray", Duplicated(x, dx), Duplicated(5.0, dx), rest, mode=irad.Forward)
    refused("one shadow, another one several", BatchDuplicated(x, (dx, dy)), Const(5.0), rest)
    two = BatchDuplicated(x, (dx, dy))
    refused("has 1 shadows, another one 2", two, Const(5.0), BatchDuplicated(y, (np.zeros(3),)))
    refused("takes 3 arguments, and 1 were given", Duplicated(x, dx))


def test_what_is_not_a_kernel():
    with pytest.raises(SignatureError, match="not a CUDA kernel"):
        irad.cuda.grad(irad.jit(lambda x: x))
    with pytest.raises(SignatureError, match="is a device function"):
        irad.cuda.grad(cuda.jit(device=True)(lambda x: x))
    with pytest.raises(SignatureError, match="without a configuration"):
        irad.cuda.grad(power)(1.0)
    with pytest.raises(SignatureError, match=r"is given irad\.ReverseWithPrimal"):
        irad.cuda.autodiff(irad.ReverseWithPrimal, power)
    for configuration in ((0, 1), (1, -1), (1, 1.5), (1,), ((1, 1, 1, 1), 1)):
        with pytest.raises(SignatureError):
            irad.cuda.grad(power)[configuration]
    with pytest.raises(SignatureError, match="is given a str"):
        irad.cuda.jit("void(float64[:])")


def test_a_plain_function_is_a_kernel():
    def plain(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * x[i]

    x, dx, y, dy = data()
    launch(plain, Duplicated(x, dx), Duplicated(y, dy))
    np.testing.assert_array_equal(dx, 2.0 * x * [1.0, 10.0, 100.0])
    assert irad.cuda.grad(plain) is irad.cuda.grad(plain)
