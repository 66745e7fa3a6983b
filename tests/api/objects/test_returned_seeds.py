"""Cotangents of lists, dictionaries and instances that a function returns."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64, int64, njit, types
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad import Active, Const, Reverse
from irad.testing.allocations import allocations

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")

X = 1.5


@jitclass([("w", float64[::1]), ("k", float64), ("n", int64)])
class Spring:
    def __init__(self, w, k):
        self.w, self.k, self.n = w, k, 3


@njit
def typed_list(x):
    made = List()
    for i in range(3):
        made.append(x ** (i + 1))
    made[0] = made[0] * 3.0
    return made


@njit
def python_list(x):
    return [x, 2.0 * x * x]


@njit
def list_of_arrays(x):
    return [np.ones(2) * x, np.ones(3) * x * x]


@njit
def instance(x):
    made = Spring(np.full(2, x * x), x**3)
    made.w[0] *= x
    return made


@njit
def dictionary(x):
    made = Dict()
    made["a"] = x
    made["b"] = x**3
    made["a"] = made["a"] * x
    return made


@njit
def nested(x):
    made = Dict()
    made[1] = List([x, x * x])
    made[7] = List([x * 3.0])
    return x * 2.0, made


def table(*entries):
    made = Dict()
    for key, value in entries:
        made[key] = value
    return made


LISTS = table((7, List([5.0])), (1, List([1.0, 2.0])))
ARRAYS = [np.array([1.0, 2.0]), np.array([1.0, 0.0, 5.0])]
CASES = [
    (typed_list, List([1.0, 2.0, 10.0]), 3.0 + 2.0 * 2.0 * X + 10.0 * 3.0 * X**2),
    (python_list, [1.0, 10.0], 1.0 + 10.0 * 4.0 * X),
    (list_of_arrays, ARRAYS, 3.0 + 6.0 * 2.0 * X),
    (instance, Spring(np.array([1.0, 10.0]), 2.0), 3.0 * X**2 + 10.0 * 2.0 * X + 2.0 * 3.0 * X**2),
    (dictionary, table(("b", 10.0), ("a", 1.0)), 2.0 * X + 10.0 * 3.0 * X**2),
    (nested, (1.0, LISTS), 2.0 + 1.0 + 2.0 * 2.0 * X + 5.0 * 3.0),
    (nested, (1.0, None), 2.0),
]


@pytest.mark.parametrize(("function", "seed", "slope"), CASES)
def test_slopes_by_hand(function, seed, slope):
    assert irad.autodiff(Reverse, function, Active(X), seed=seed) == (pytest.approx(slope, rel=1e-14),)
    saved = irad.autodiff(Reverse, function, Active(X), seed=seed, options=irad.Options(plan="save_all"))
    assert saved == (pytest.approx(slope, rel=1e-14),)


def test_an_argument_that_is_returned():
    @njit
    def grown(values, x):
        values.append(values[0] * x)
        values[0] *= 2.0
        return values

    for kind in (list, List):
        seed = kind([1.0, 10.0, 100.0])
        by_values, by_x = irad.autodiff(Reverse, grown, Active(kind([3.0, 4.0])), Active(2.0), seed=seed)
        assert (list(by_values), by_x) == ([2.0 + 200.0, 10.0], 300.0)
    both = njit(lambda values, x: (values, x * x))
    assert irad.autodiff(Reverse, both, Const(List([3.0])), Active(2.0), seed=(List([7.0]), 1.0)) == (None, 4.0)


MISFITS = [
    (python_list, [1.0]),
    (list_of_arrays, [np.ones(2), np.ones(2)]),
    (nested, (1.0, Dict.empty(int64, types.ListType(float64)))),
    (nested, (1.0, table((7, List([5.0])), (2, List([1.0, 2.0]))))),
    (instance, Spring(np.ones(3), 1.0)),
]


def test_cotangents_that_do_not_fit():
    for function, seed in MISFITS:
        with pytest.raises(
            irad.SignatureError, match="has other lengths, keys or shapes than what the function returned"
        ):
            irad.autodiff(Reverse, function, Active(X), seed=seed)
    for function, seed in ((python_list, 3.0), (python_list, List([1.0, 2.0])), (instance, (1.0,))):
        with pytest.raises(irad.SignatureError, match=f"the cotangent of the value of {function.__name__} is"):
            irad.autodiff(Reverse, function, Active(X), seed=seed)


def test_what_may_be_none():
    @njit
    def perhaps(x):
        if x > 2.0:
            return None, x
        return List([x, x * x]), x

    assert irad.autodiff(Reverse, perhaps, Active(X), seed=(List([1.0, 10.0]), 1.0)) == (2.0 + 20.0 * X,)
    assert irad.autodiff(Reverse, perhaps, Active(3.0), seed=(None, 1.0)) == (1.0,)
    with pytest.raises(irad.SignatureError, match=r"is a value, but value.* is None"):
        irad.autodiff(Reverse, perhaps, Active(3.0), seed=(List([1.0, 10.0]), 1.0))


def test_nothing_leaks():
    for function, seed, _ in CASES:
        irad.autodiff(Reverse, function, Active(X), seed=seed)
    with allocations() as counted:
        for function, seed, _ in CASES:
            irad.autodiff(Reverse, function, Active(X), seed=seed)
        for function, seed in MISFITS:
            with pytest.raises(irad.SignatureError):
                irad.autodiff(Reverse, function, Active(X), seed=seed)
        assert (counted().kept, counted().kept_headers) == (0, 0)
