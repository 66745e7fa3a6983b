"""`Options(boundscheck=True)`: an index out of bounds raises with its line, in whatever the function calls."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import float64, int64, njit, prange, types

import irad

CHECKED = irad.Options(boundscheck=True)
PLANS = [CHECKED, irad.Options(plan="save_all", boundscheck=True)]


@njit
def read(x, i):
    return x[i] ** 2


@njit
def looped(x, n):
    total = 0.0
    for i in range(n):
        total += x[i] ** 2
    return total


@njit
def written(x, i):
    y = np.zeros(3)
    y[i] = x[0]
    return y.sum()


@njit
def accumulated(x, i):
    y = np.ones(3)
    y[i] *= x[0]
    return y.sum()


@njit
def in_callee(x, i):
    return read(x[1:], i)


@njit
def by_array(x, i):
    return x[np.array([0, i])].sum()


@njit
def of_slice(x, n):
    return x[:n][n - 1]


@njit(parallel=True)
def in_parallel(x, n):
    total = 0.0
    for i in prange(n):
        total += x[i] ** 2
    return total


@njit
def recursive(x, i):
    return x[i] if i == 0 else x[i] * recursive(x, i - 1)


CASES = {  # function, a good and a bad argument, the name of the array, the index, how many elements there are
    "read": (read, 2, 3, "x", 3, 3),
    "read, negative": (read, -3, -4, "x", -4, 3),
    "loop": (looped, 3, 4, "x", 3, 3),
    "write": (written, 2, 3, "y", 3, 3),
    "update": (accumulated, -1, -4, "y", -4, 3),
    "callee": (in_callee, 1, 2, "x", 2, 2),
    "callee, negative": (in_callee, -2, -3, "x", -3, 2),
    "array of indices": (by_array, 2, 3, "x", 3, 3),
    "slice": (of_slice, 3, 4, "", 3, 3),
    "parallel": (in_parallel, 3, 4, "x", 3, 3),
    "recursion": (recursive, 2, 3, "x", 3, 3),
}
X = np.array([1.5, -2.0, 3.0])


@pytest.mark.parametrize("options", PLANS, ids=["default", "save_all"])
@pytest.mark.parametrize(("f", "good", "bad", "array", "index", "size"), CASES.values(), ids=CASES)
def test_an_index_out_of_bounds_raises(f, good, bad, array, index, size, options):
    np.testing.assert_allclose(irad.grad(f, options=options)(X, good), irad.grad(f)(X, good), rtol=1e-15)
    with pytest.raises(irad.BoundsError) as caught:
        irad.grad(f, options=options)(X, bad)
    error = caught.value
    assert isinstance(error, IndexError)
    assert (error.array, error.axis, error.index, error.size) == (array, 0, index, size)
    assert error.location is not None
    assert error.location.file == __file__
    assert f"index {index} is out of bounds" in str(error)


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaExperimentalFeatureWarning")
def test_functions_behind_pointers_check_too():
    kind = float64(float64[::1], int64)
    pointee = njit(kind)(read.py_func)

    @njit(float64(types.FunctionType(kind), float64[::1], int64))
    def through_pointer(function, x, i):
        return function(x, i)

    checked = irad.grad(through_pointer, argnums=1, options=CHECKED)
    np.testing.assert_array_equal(irad.grad(through_pointer, argnums=1)(pointee, X, 2), [0.0, 0.0, 6.0])
    np.testing.assert_array_equal(checked(pointee, X, 2), [0.0, 0.0, 6.0])
    with pytest.raises(irad.BoundsError, match="index 3"):
        checked(pointee, X, 3)


def test_index_and_axis_are_named():
    @njit
    def corner(x, i, j):
        return x[i, j] ** 2

    with pytest.raises(irad.BoundsError, match="index -3 is out of bounds: x has 2 elements along axis 1") as caught:
        irad.grad(corner, options=CHECKED)(np.ones((3, 2)), 0, -3)
    location = caught.value.location
    assert location is not None
    assert location.function.endswith("corner")
    assert location.line == corner.py_func.__code__.co_firstlineno + 2


def test_neither_array_nor_shadow_is_touched_beyond_the_end():
    memory, shadows = np.full(8, 7.0), np.full(8, 7.0)
    x, shadow = memory[2:5], shadows[2:5]
    shadow[:] = 0.0
    with pytest.raises(irad.BoundsError):
        irad.autodiff(irad.Reverse, looped, irad.Duplicated(x, shadow), irad.Const(6), options=CHECKED)
    np.testing.assert_array_equal(shadows[5:], 7.0)
    np.testing.assert_array_equal(memory, 7.0)


def test_every_public_derivative_checks():
    for call in (
        lambda: irad.value_and_grad(looped, options=CHECKED)(X, 4),
        lambda: irad.value_and_grad_into(looped, options=CHECKED)(np.empty(3), X, 4),
        lambda: irad.vjp(looped, X, 4, options=CHECKED),
    ):
        with pytest.raises(irad.BoundsError):
            call()
    gradient = irad.grad(looped, options=CHECKED)
    with pytest.raises(irad.BoundsError):
        njit(lambda x: gradient(x, 4))(X)


def test_the_function_and_its_callers_may_catch_it():
    @njit
    def caught_at_once(x, i):
        try:
            return x[i] ** 2
        except Exception:
            return 5.0 * x[0]

    @njit
    def caught_by_the_caller(x, i):
        try:
            return read(x, i)
        except Exception:
            return 5.0 * x[0]

    for f in (caught_at_once, caught_by_the_caller):
        np.testing.assert_array_equal(irad.grad(f, options=CHECKED)(X, 7), [5.0, 0.0, 0.0])
        np.testing.assert_array_equal(irad.grad(f, options=CHECKED)(X, 2), [0.0, 0.0, 6.0])


def test_checked_and_unchecked_code_do_not_mix():
    unchecked, checked = irad.grad(looped), irad.grad(looped, options=CHECKED)
    np.testing.assert_array_equal(checked(X, 3), unchecked(X, 3))
    with pytest.raises(irad.BoundsError):
        checked(X, 4)
    padded = np.append(X, 1.0)
    np.testing.assert_array_equal(unchecked(padded[:3], 3), 2.0 * X)


def test_a_function_with_checks_of_its_own_keeps_the_exception_of_numba():
    own = njit(boundscheck=True)(looped.py_func)
    with pytest.raises(IndexError, match="index is out of bounds") as caught:
        irad.grad(own)(X, 4)
    assert not isinstance(caught.value, irad.BoundsError)


def test_environment(monkeypatch):
    monkeypatch.setenv("IRAD_BOUNDSCHECK", "1")
    f = njit(looped.py_func)
    with pytest.raises(irad.BoundsError):
        irad.grad(f)(X, 4)


def test_the_error_can_be_pickled():
    with pytest.raises(irad.BoundsError) as caught:
        irad.grad(read, options=CHECKED)(X, 3)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.index == 3
