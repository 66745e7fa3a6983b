"""`irad.autodiff` and `irad.vjp` written inside compiled code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import irad
from irad.testing.allocations import allocations

X = np.array([0.5, -1.0, 2.0])


@njit
def product(x, y):
    return x * x * y


@njit
def squares(a, factor):
    return factor * a * a


@njit
def scale(out, x, factor):
    for i in range(x.size):
        out[i] = factor * x[i]


@njit
def picky(x):
    if x < 0.0:
        raise ValueError("negative")
    return np.sqrt(x)


# --- autodiff ---------------------------------------------------------------------------------------------------------


def test_numbers():
    @njit
    def caller(x, y):
        return irad.autodiff(irad.Reverse, product, irad.Active(x), irad.Const(y))

    assert caller(2.0, 3.0) == (12.0, None)


def test_value_and_seed():
    @njit
    def caller(x, y):
        return irad.autodiff(irad.ReverseWithPrimal, product, irad.Active(x), irad.Active(y), seed=2.0)

    assert caller(2.0, 3.0) == ((24.0, 8.0), 12.0)


def test_shadows():
    @njit
    def caller(out, d_out, x, d_x, factor):
        found = irad.autodiff(
            irad.Reverse,
            scale,
            irad.Duplicated(out, d_out),
            irad.DuplicatedNoNeed(x, d_x),
            irad.Active(factor),
            seed=None,
        )
        return found[2]

    d_out, d_x = np.ones(3), np.zeros(3)
    assert caller(np.empty(3), d_out, X, d_x, 10.0) == X.sum()
    np.testing.assert_array_equal(d_x, 10.0)
    np.testing.assert_array_equal(d_out, 0.0)


def test_a_tuple_with_its_shadow():
    @njit
    def model(parameters):
        weights, bias = parameters
        return weights.sum() * bias

    @njit
    def caller(parameters, shadow):
        return irad.autodiff(irad.Reverse, model, irad.MixedDuplicated(parameters, shadow))[0][1]

    shadow = (np.zeros(3), 0.0)
    assert caller((X, 2.0), shadow) == X.sum()
    np.testing.assert_array_equal(shadow[0], 2.0)


def test_an_annotation_may_be_made_beforehand():
    @njit
    def caller(x, y):
        first = irad.Active(x)
        return irad.autodiff(irad.Reverse, product, first, irad.Const(y))[0]

    assert caller(2.0, 3.0) == 12.0


def refused(function, *args) -> irad.SignatureError:
    with pytest.raises(irad.SignatureError) as caught:
        function(*args)
    return caught.value


def test_without_annotation():
    error = refused(njit(lambda x: irad.autodiff(irad.Reverse, product, irad.Active(x), x)), 2.0)
    assert "argument 1 of product has no annotation: a float64" in error.problem


def test_without_mode():
    error = refused(njit(lambda x: irad.autodiff(product, irad.Active(x), irad.Const(x))), 2.0)
    assert "is not a mode" in error.problem
    assert "irad.autodiff(irad.Reverse, f, …)" in error.remedy


def test_an_array_as_active():
    error = refused(njit(lambda x: irad.autodiff(irad.Reverse, squares, irad.Active(x), irad.Const(1.0))), X)
    assert "irad.Active is for numbers" in error.problem


# --- vjp --------------------------------------------------------------------------------------------------------------


def test_pullback():
    @njit
    def caller(a, weights):
        value, pullback = irad.vjp(squares, a, 3.0)
        return value, pullback(weights), pullback(2.0 * weights)

    value, (by_a, by_factor), (twice_by_a, _) = caller(X, np.ones(3))
    np.testing.assert_array_equal(value, 3.0 * X**2)
    np.testing.assert_array_equal(by_a, 6.0 * X)
    assert by_factor == (X**2).sum()
    np.testing.assert_array_equal(twice_by_a, 12.0 * X)


def test_arguments_may_be_overwritten_before_the_pullback_is_called():
    @njit
    def caller(a):
        _, pullback = irad.vjp(squares, a, 1.0)
        a[:] = 0.0
        return pullback(np.ones(a.size))[0]

    np.testing.assert_array_equal(caller(X.copy()), 2.0 * X)


def test_a_pullback_passed_to_another_function():
    @njit
    def use(pullback, cotangent):
        return pullback(cotangent)[0]

    @njit
    def caller(x):
        _, pullback = irad.vjp(product, x, 5.0)
        return use(pullback, 1.0) + use(pullback, 2.0)

    assert caller(3.0) == 90.0


def test_an_exception_of_the_function():
    @njit
    def caller(x):
        value, pullback = irad.vjp(picky, x)
        return value, pullback(1.0)[0]

    assert caller(4.0) == (2.0, 0.25)
    with pytest.raises(ValueError, match="negative"):
        caller(-1.0)


def test_a_cotangent_that_does_not_fit():
    @njit
    def caller(a):
        return irad.vjp(squares, a, 1.0)[1](1.0)

    assert "the cotangent of the value of squares is a float64" in refused(caller, X).problem


def test_nothing_stays_allocated():
    @njit
    def caller(a, times):
        total = 0.0
        for _ in range(times):
            value, pullback = irad.vjp(squares, a, 2.0)
            total += value.sum() + pullback(value)[1]
        return total

    a = np.linspace(0.0, 1.0, 1000)
    caller(a, 1)
    with allocations() as count:
        caller(a, 100)
        found = count()
    assert found.made > 100
    assert (found.kept, found.kept_headers) == (0, 0)


def test_what_is_differentiated_again():
    by_vjp = njit(lambda x: irad.vjp(product, x, 2.0)[1](1.0)[0])
    by_autodiff = njit(lambda x: irad.autodiff(irad.Reverse, product, irad.Active(x), irad.Const(2.0))[0])
    assert (by_vjp(3.0), by_autodiff(3.0)) == (12.0, 12.0)
    assert (irad.grad(by_vjp)(3.0), irad.grad(by_autodiff)(3.0)) == (4.0, 4.0)
    augmented, reverse = irad.split(irad.ReverseSplit, product, irad.Active, irad.Const)
    by_split = njit(lambda x: reverse(augmented(irad.Active(x), irad.Const(2.0)))[0])
    assert by_split(3.0) == 12.0
    with pytest.raises(irad.UnsupportedError, match="keeps a tape of product"):
        irad.grad(by_split)(3.0)


@pytest.mark.filterwarnings("error::numba.NumbaExperimentalFeatureWarning")
def test_split():
    """The call itself: it leaves nothing to do at run time. ∂(x² y)/∂x = 2 x y, ∂(f a²)/∂a = 2 f a."""

    @njit
    def both(a, x):
        augmented, reverse = irad.split(irad.ReverseSplitWithPrimal, product, irad.Active, y=irad.Const)
        tape, value = augmented(irad.Active(x), irad.Const(2.0))
        forward, back = irad.split(irad.ReverseSplit, squares, irad.Duplicated, irad.Active(1.0))
        shadow = np.zeros_like(a)
        kept = forward(irad.Duplicated(a, shadow), irad.Active(x))
        (_, by_factor), (by_x, _) = back(kept, 0.5 * a), reverse(tape)
        return value, by_x, by_factor, shadow

    value, by_x, by_factor, shadow = both(X, 3.0)
    assert (value, by_x, by_factor) == (18.0, 12.0, pytest.approx(0.5 * (X**3).sum()))
    assert shadow == pytest.approx(3.0 * X**2)
    with pytest.raises(irad.UnsupportedError, match="keeps a tape of product"):
        irad.grad(njit(lambda x: both(np.ones(2), x)[1]))(3.0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: irad.split(irad.Reverse, product, irad.Active, irad.Const), "separate sweeps"),
        (lambda x: irad.split(x, product, irad.Active, irad.Const), "a float64, which is not a mode"),
        (lambda x: irad.split(irad.ReverseSplit, product, irad.Active, x), "argument 1 of product has no annotation"),
        (lambda x: irad.split(irad.ReverseSplit), "misses the function"),
    ],
)
def test_what_split_refuses(wrong, words):
    with pytest.raises((irad.SignatureError, TypeError), match=words):
        njit(wrong)(1.0)


def test_first_use_of_irad():
    script = """
import irad
from numba import njit

@njit
def f(x): return x * x

@njit
def g(x):
    value, pullback = irad.vjp(f, x)
    return pullback(1.0)[0] + irad.autodiff(irad.Reverse, f, irad.Active(x))[0]

print(g(3.0))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert (done.stdout, done.stderr) == ("12.0\n", "")
