"""`autodiff`: annotations, shadows, seeds."""

from __future__ import annotations

import math
from collections import namedtuple

import numba
import numpy as np
import pytest
from numba import literally, njit, types
from numba.extending import overload

import irad
from irad import Active, Const, Duplicated, DuplicatedNoNeed, MixedDuplicated, Reverse, ReverseWithPrimal

Model = namedtuple("Model", "weights bias")


@numba.njit
def product(a, b):
    return a * b + math.sin(a)


@numba.njit
def linear(model, x):
    return (model.weights * x).sum() * model.bias


@numba.njit
def squares(x):
    return x * x


@numba.njit
def square_in_place(x):
    for i in range(x.size):
        x[i] = x[i] * x[i]


@numba.njit
def sum_of_squares(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i]
    return s


@numba.njit
def pair_of_results(x, k):
    return x * k, x.sum(), x.size


def test_active_floats():
    gradients = irad.autodiff(Reverse, product, Active(1.5), Active(2.0))
    assert gradients == pytest.approx((2.0 + math.cos(1.5), 1.5), rel=1e-15)


def test_constants_have_no_entry():
    assert irad.autodiff(Reverse, product, Const(1.5), Active(2.0)) == (None, 1.5)
    assert irad.autodiff(Reverse, product, Const(1.5), Const(2.0)) == (None, None)


def test_with_primal():
    gradients, value = irad.autodiff(ReverseWithPrimal, product, Const(1.5), Active(2.0))
    assert gradients == (None, 1.5)
    assert value == product(1.5, 2.0)


def test_shadow_accumulates():
    x, dx = np.arange(4.0), np.full(4, 10.0)
    assert irad.autodiff(Reverse, sum_of_squares, Duplicated(x, dx)) == (None,)
    np.testing.assert_array_equal(dx, 10 + 2 * x)
    irad.autodiff(Reverse, sum_of_squares, DuplicatedNoNeed(x, dx), seed=2.0)
    np.testing.assert_array_equal(dx, 10 + 6 * x)


def test_shadow_of_a_written_array_goes_in_as_final_and_out_as_initial_cotangent():
    x, dx = np.arange(4.0), np.array([1.0, 2.0, 3.0, 4.0])
    irad.autodiff(Reverse, square_in_place, Duplicated(x, dx), seed=None)
    np.testing.assert_array_equal(dx, 2 * np.arange(4.0) * [1, 2, 3, 4])
    np.testing.assert_array_equal(x, np.arange(4.0) ** 2)


def test_void_function_needs_no_seed_but_says_so():
    with pytest.raises(irad.SignatureError, match="seed=None"):
        irad.autodiff(Reverse, square_in_place, Duplicated(np.ones(3), np.ones(3)))


def test_strided_shadow():
    memory, shadow = np.arange(12.0), np.zeros(12)
    irad.autodiff(Reverse, sum_of_squares, Duplicated(memory[::-3], shadow[::-3]))
    expected = np.zeros(12)
    expected[::-3] = 2 * memory[::-3]
    np.testing.assert_array_equal(shadow, expected)


def test_mixed():
    x = np.arange(3.0)
    model, shadow = Model(np.ones(3), 2.0), Model(np.full(3, 5.0), 0.0)
    gradients = irad.autodiff(Reverse, linear, MixedDuplicated(model, shadow), Const(x))
    assert isinstance(gradients[0], Model)
    assert gradients[0].bias == 3.0
    np.testing.assert_array_equal(shadow.weights, 5 + 2 * x)
    assert np.shares_memory(gradients[0].weights, shadow.weights)
    assert gradients[1] is None


def test_tuple_of_arrays_is_duplicated():
    @numba.njit
    def f(t):
        return (t[0] * t[1]).sum()

    x, y, dx, dy = np.arange(3.0), np.ones(3), np.zeros(3), np.zeros(3)
    irad.autodiff(Reverse, f, Duplicated((x, y), (dx, dy)))
    np.testing.assert_array_equal(dx, y)
    np.testing.assert_array_equal(dy, x)


def test_tuple_of_floats_is_active():
    @numba.njit
    def f(t):
        return t[0] * t[1]

    assert irad.autodiff(Reverse, f, Active((2.0, 3.0))) == ((3.0, 2.0),)


# --- seeds ------------------------------------------------------------------------------------------------------------


def test_seed_of_a_float():
    assert irad.autodiff(Reverse, product, Const(1.5), Active(2.0), seed=4.0) == (None, 6.0)
    assert irad.autodiff(Reverse, product, Const(1.5), Active(2.0), seed=4) == (None, 6.0)
    assert irad.autodiff(Reverse, product, Const(1.5), Active(2.0), seed=None) == (None, 0.0)


def test_seed_of_an_array():
    x, dx = np.arange(4.0), np.zeros(4)
    _, value = irad.autodiff(ReverseWithPrimal, squares, Duplicated(x, dx), seed=np.arange(1.0, 5.0))
    np.testing.assert_array_equal(dx, 2 * x * np.arange(1.0, 5.0))
    np.testing.assert_array_equal(value, x * x)


def test_seed_of_a_tuple_with_none():
    x, dx = np.arange(3.0), np.zeros(3)
    gradients = irad.autodiff(Reverse, pair_of_results, Duplicated(x, dx), Active(2.0), seed=(np.ones(3), 10.0, None))
    assert gradients == (None, 3.0)
    np.testing.assert_array_equal(dx, 12.0)
    dx[:] = 0
    assert irad.autodiff(Reverse, pair_of_results, Duplicated(x, dx), Active(2.0), seed=(None, 1.0, None))[1] == 0.0
    np.testing.assert_array_equal(dx, 1.0)


def test_float32_seed():
    x = np.arange(3, dtype=np.float32)
    dx = np.zeros(3, np.float32)
    irad.autodiff(Reverse, squares, Duplicated(x, dx), seed=np.ones(3, np.float32))
    np.testing.assert_array_equal(dx, 2 * x)


def test_required_seed():
    with pytest.raises(irad.SignatureError, match="seed"):
        irad.autodiff(Reverse, squares, Duplicated(np.ones(3), np.ones(3)))
    with pytest.raises(irad.SignatureError, match="seed"):
        irad.autodiff(Reverse, pair_of_results, Duplicated(np.ones(3), np.ones(3)), Active(2.0))


BAD_SEEDS = {
    "shape": (np.ones(3), "a different shape"),
    "dtype": (np.ones(4, np.float32), "float32"),
    "dimensions": (np.ones((2, 2)), r"\[:, ::1\]"),
    "float": (1.0, "float64"),
    "string": ("one", "str"),
}


@pytest.mark.parametrize(("seed", "words"), BAD_SEEDS.values(), ids=BAD_SEEDS)
def test_bad_seed(seed, words):
    with pytest.raises(irad.SignatureError, match=words):
        irad.autodiff(Reverse, squares, Duplicated(np.ones(4), np.zeros(4)), seed=seed)


@pytest.mark.parametrize("seed", [(1.0,), (np.ones(3), 1.0), (np.ones(3), 1.0, 1.0), (1.0, 1.0, None)])
def test_bad_structure_of_a_seed(seed):
    with pytest.raises(irad.SignatureError, match="seed"):
        irad.autodiff(Reverse, pair_of_results, Duplicated(np.ones(3), np.zeros(3)), Active(2.0), seed=seed)


# --- annotations and shadows that do not fit --------------------------------------------------------------------------


BAD_ANNOTATIONS = {
    "array by value": (sum_of_squares, [Active(np.ones(3))], "Duplicated"),
    "float with shadow": (product, [Duplicated(1.0, 1.0), Const(1.0)], "Active"),
    "int": (product, [Active(1), Const(1.0)], "1.0|3.0"),
    "bool": (product, [Active(True), Const(1.0)], "True"),
    "array of ints": (sum_of_squares, [Duplicated(np.arange(3), np.arange(3))], "float"),
    "mixed by value": (linear, [Active(Model(np.ones(3), 1.0)), Const(np.ones(3))], "MixedDuplicated"),
    "mixed with shadow": (
        linear,
        [Duplicated(Model(np.ones(3), 1.0), Model(np.ones(3), 1.0)), Const(np.ones(3))],
        "Mixed",
    ),
    "no annotation": (product, [1.0, Active(2.0)], "irad.Const"),
    "too few": (product, [Active(1.0)], "missing"),
    "too few, with shadows": (linear, [Duplicated(np.ones(3), np.ones(3))], "missing"),
    "too many": (product, [Active(1.0), Active(1.0), Active(1.0)], "argument"),
}


@pytest.mark.parametrize(("f", "arguments", "words"), BAD_ANNOTATIONS.values(), ids=BAD_ANNOTATIONS)
def test_bad_annotation(f, arguments, words):
    with pytest.raises(irad.IradError) as caught:
        irad.autodiff(Reverse, f, *arguments)
    text = str(caught.value)
    assert any(word in text for word in words.split("|")), text
    assert "test_autodiff.py" in text
    assert "irad_" not in text, "a name of irad's own"


BAD_SHADOWS = {
    "shape": (np.zeros(3), "a different shape"),
    "dtype": (np.zeros(4, np.float32), "float32"),
    "dimensions": (np.zeros((4, 1)), "[:, ::1]"),
    "strides": (np.zeros(8)[::2], "different strides"),
    "read-only": (np.broadcast_to(np.zeros(4), 4), "readonly"),
    "float": (0.0, "float64"),
    "none": (None, "None"),
    "tuple": ((np.zeros(4),), "structure"),
}


@pytest.mark.parametrize(("shadow", "words"), BAD_SHADOWS.values(), ids=BAD_SHADOWS)
def test_bad_shadow(shadow, words):
    x = np.arange(4.0)
    with pytest.raises(irad.SignatureError) as caught:
        irad.autodiff(Reverse, square_in_place, Duplicated(x, shadow), seed=None)
    assert words in str(caught.value)
    np.testing.assert_array_equal(x, np.arange(4.0))


def test_shadow_that_is_its_own_primal():
    x = np.arange(4.0)
    with pytest.raises(irad.SignatureError, match="shares memory"):
        irad.autodiff(Reverse, square_in_place, Duplicated(x, x), seed=None)
    np.testing.assert_array_equal(x, np.arange(4.0))


def test_shadow_that_overlaps_another_primal():
    x, y = np.ones(4), np.ones(4)

    @numba.njit
    def f(a, b):
        return (a * b).sum()

    with pytest.raises(irad.SignatureError, match="shares memory"):
        irad.autodiff(Reverse, f, Duplicated(x, y), Const(y))


@pytest.mark.parametrize("mode", ["Reverse", None, 1, type(Reverse)])
def test_bad_mode(mode):
    with pytest.raises(irad.SignatureError, match="mode"):
        irad.autodiff(mode, product, Active(1.0), Active(2.0))


def test_nothing_runs_when_a_check_fails():
    @numba.njit
    def f(x, counter):
        counter[0] += 1
        return x.sum()

    counter = np.zeros(1, np.int64)
    with pytest.raises(irad.SignatureError):
        irad.autodiff(Reverse, f, Duplicated(np.ones(4), np.zeros(3)), Const(counter))
    assert counter[0] == 0


def test_exception_of_the_primal():
    @numba.njit
    def f(x):
        if x[0] < 0:
            raise ValueError("negative")
        return x.sum()

    with pytest.raises(ValueError, match="negative"):
        irad.autodiff(Reverse, f, Duplicated(np.full(3, -1.0), np.zeros(3)))


def integer_power(x, n):
    raise NotImplementedError


@overload(integer_power)
def _integer_power(x, n):
    if isinstance(n, types.IntegerLiteral):
        exponent = n.literal_value
        return lambda x, n: x**exponent
    return lambda x, n: literally(n) * x  # Numba asks for it as a literal, and never runs this


def test_arguments_that_numba_asks_for_as_literals():
    """Derivatives have arguments besides those of the function."""

    @njit
    def f(x, n):
        return integer_power(x, n)

    assert irad.grad(f)(2.0, 3) == 12.0
    assert irad.jvp(f, (2.0, 3), (0.5, None)) == (8.0, 6.0)
    assert irad.autodiff(irad.Reverse, f, irad.Active(2.0), irad.Const(3), seed=2.0) == (24.0, None)
    assert irad.vjp(f, 2.0, 3)[1](1.0) == (12.0, None)
    assert irad.hvp(f)(2.0, 0.5, 3) == 6.0
