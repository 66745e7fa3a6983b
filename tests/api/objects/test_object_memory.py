"""Allocations balance where objects are differentiated: shadows, references that are held, gradients."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64, int64, njit, types
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from tests.api.objects.test_memory import kept

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@jitclass(
    [
        ("w", float64[::1]),
        ("k", float64),
        ("values", types.ListType(float64[::1])),
        ("table", types.DictType(types.unicode_type, float64[::1])),
        ("index", int64[::1]),
    ]
)
class Model:
    def __init__(self, w, k, values, table):
        self.w, self.k, self.values, self.table = w, k, values, table
        self.index = np.array([0, 1])


@njit
def make(w, name):
    values, table = List.empty_list(float64[::1]), Dict.empty(types.unicode_type, float64[::1])
    values.append(w * 2.0)
    table[name] = w * 3.0
    table["second"] = w
    return Model(w.copy(), 0.5, values, table)


@njit
def replacing(model, values, x, name):
    if x < 0:
        raise ValueError("negative")
    for _ in range(3):
        model.w = model.w * x
        model.values.append(model.w * model.k)
        model.values[0] = model.values[-1]
        model.table[name] = model.values[0] * x
        model.index = model.index + 1
        values.append(model.table[name])
        values[0] = model.values[1]
    del model.table["second"]
    return values[0][0] * model.table[name][1] * model.w[0]


X = np.linspace(0.5, 1.5, 5)
NAMES = ["a", "name of some length"]


def plain(x):
    for name in NAMES:
        replacing(make(X, name), List([X.copy()]), x, name)
        replacing(make(X, name), [X.copy()], x, name)


def differentiated(x):
    for name in NAMES:
        irad.grad(replacing, (0, 1, 2))(make(X, name), List([X.copy()]), x, name)
        irad.value_and_grad(replacing, (0, 1))(make(X, name), [X.copy()], x, name)
        _, pullback = irad.vjp(replacing, make(X, name), [X.copy()], x, name)
        pullback(1.0)
        pullback(1.0)
        irad.vjp(replacing, make(X, name), List([X.copy()]), x, name)


_gradient = irad.grad(replacing, (0, 1))


@njit
def in_compiled_code(x, name):
    by_model, by_values = _gradient(make(x, name), List([x.copy()]), 1.5, name)
    return by_model.w[0] + by_values[0][0]


@njit
def shared(values, x):
    values[0][0] *= x[0]
    return values[0][0] * x[1]


def test_nothing_is_kept():
    assert kept(lambda: plain(1.5), 50) == (0, 0), "what is compared with"
    assert kept(lambda: differentiated(1.5), 50) == (0, 0)
    assert kept(lambda: in_compiled_code(X, "b"), 50) == (0, 0)


def test_calls_that_fail_keep_no_more_than_the_plain_function():
    def fails(call):
        with pytest.raises(ValueError, match="negative"):
            call()

    def derivative():
        fails(lambda: irad.grad(replacing, (0, 1))(make(X, "a"), List([X.copy()]), -1.0, "a"))
        fails(lambda: irad.vjp(replacing, make(X, "a"), List([X.copy()]), -1.0, "a"))

    def primal():
        for _ in range(2):
            fails(lambda: replacing(make(X, "a"), List([X.copy()]), -1.0, "a"))

    of_primal, of_derivative = kept(primal, 50), kept(derivative, 50)
    assert of_derivative[0] <= of_primal[0]
    assert of_derivative[1] <= of_primal[1]


def test_calls_that_are_refused_keep_nothing():
    def refused():
        for call in (
            lambda: irad.grad(shared)(List([X]), X),
            lambda: irad.grad(shared)([X], X),
        ):
            with pytest.raises(irad.SignatureError, match="shares memory"):
                call()

    assert kept(refused, 50) == (0, 0)
