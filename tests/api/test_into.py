"""`value_and_grad_into`."""

from __future__ import annotations

from collections import namedtuple

import numba
import numpy as np
import pytest

import irad

Model = namedtuple("Model", "weights bias")


@numba.njit
def loss(model, x):
    s = model.bias
    for i in range(x.size):
        s += model.weights[i] * x[i] * x[i]
    return s


@numba.njit
def weighted(A):
    s = 0.0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            s += (i + 2 * j) * A[i, j] ** 2
    return s


@numba.njit
def scratch(x, work):
    for i in range(x.size):
        work[i] = x[i] * x[i]
    return work.sum()


def test_overwrites_and_returns_the_value():
    x, out = np.arange(4.0), np.full(4, np.nan)
    derivative = irad.value_and_grad_into(loss, 1)
    for _ in range(2):
        assert derivative(out, Model(np.ones(4), 1.0), x) == 15.0
        np.testing.assert_array_equal(out, 2 * x)


def test_tuple_of_argnums_takes_a_tuple():
    x = np.arange(4.0)
    out = Model(np.empty(4), np.empty(1)), np.empty(4)
    assert irad.value_and_grad_into(loss, (0, 1))(out, Model(np.ones(4), 1.0), x) == 15.0
    np.testing.assert_array_equal(out[0].weights, x * x)
    np.testing.assert_array_equal(out[0].bias, 1.0)
    np.testing.assert_array_equal(out[1], 2 * x)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_float_argument_takes_an_array_of_one(shape):
    @numba.njit
    def f(x):
        return x * x

    out = np.empty(shape)
    assert irad.value_and_grad_into(f)(out, 3.0) == 9.0
    assert out.item() == 6.0


def test_float_argument_refuses_an_array_of_two():
    @numba.njit
    def f(x):
        return x * x

    with pytest.raises(irad.SignatureError, match="one element"):
        irad.value_and_grad_into(f)(np.empty(2), 3.0)


LAYOUTS = {
    "C": lambda A: A.copy(),
    "F": lambda A: np.asfortranarray(A),
    "strided": lambda A: np.repeat(np.repeat(A, 2, 0), 3, 1)[::2, ::3],
    "reversed": lambda A: A[::-1, ::-1].copy()[::-1, ::-1],
}


@pytest.mark.parametrize("argument", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("destination", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_need_not_agree(argument, destination):
    A = argument(np.arange(12.0).reshape(3, 4))
    out = destination(np.full((3, 4), np.nan))
    i, j = np.indices(A.shape)
    irad.value_and_grad_into(weighted)(out, A)
    np.testing.assert_allclose(out, 2 * (i + 2 * j) * A, rtol=1e-15)


def test_several_arguments_of_which_one_is_written():
    x, work = np.arange(4.0), np.zeros(4)
    out = np.full(4, np.nan), np.full(4, np.nan)
    assert irad.value_and_grad_into(scratch, (0, 1))(out, x, work) == 14.0
    np.testing.assert_array_equal(out[0], 2 * x)
    np.testing.assert_array_equal(out[1], 0)
    np.testing.assert_array_equal(work, x * x)


def test_inside_compiled_code():
    derivative = irad.value_and_grad_into(scratch, (0, 1))

    @numba.njit
    def descend(x, work, dx, dwork, steps):
        for _ in range(steps):
            derivative((dx, dwork), x, work)
            x -= 0.25 * dx
        return x

    np.testing.assert_allclose(descend(np.ones(3), np.empty(3), np.empty(3), np.empty(3), 2), np.full(3, 0.25))


BAD = {
    "another shape": (np.empty(3), r"a different shape from the argument: \(3,\), not \(4,\)"),
    "another dtype": (np.empty(4, np.float32), "float32"),
    "another number of dimensions": (np.empty((4, 1)), r"\[:, ::1\]"),
    "no array": (1.0, "float64"),
    "a tuple": ((np.empty(4),), "Tuple"),
    "read-only": (np.broadcast_to(np.empty(4), 4), "readonly"),
}


@pytest.mark.parametrize(("out", "words"), BAD.values(), ids=BAD)
def test_bad_destination_is_refused(out, words):
    @numba.njit
    def f(x):
        return x.sum()

    with pytest.raises(irad.SignatureError, match=words):
        irad.value_and_grad_into(f)(out, np.ones(4))


def test_destination_that_is_the_argument_is_refused():
    x = np.ones((3, 4))
    with pytest.raises(irad.SignatureError, match="shares memory"):
        irad.value_and_grad_into(weighted)(x, x)
    np.testing.assert_array_equal(x, 1)


def test_destinations_that_share_memory_are_refused():
    out = np.empty(4)
    with pytest.raises(irad.SignatureError, match="share memory"):
        irad.value_and_grad_into(scratch, (0, 1))((out, out), np.ones(4), np.ones(4))


def test_wrong_number_of_destinations_is_refused():
    with pytest.raises(irad.SignatureError, match="2"):
        irad.value_and_grad_into(scratch, (0, 1))((np.empty(4),), np.ones(4), np.ones(4))
