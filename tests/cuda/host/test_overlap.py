"""Arguments that share memory: their shadows must share it alike, and everything else is refused."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import BatchDuplicated, Cache, Const, Duplicated, SignatureError


@cuda.jit
def product(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = x[i] * y[i]


@pytest.fixture(autouse=True)
def _on_the_executor():
    with irad.cuda.executor():
        yield


def grad(*arguments):
    return irad.cuda.grad(product)[1, 4](*arguments)


def seeds(n=3):
    return np.zeros(n), np.ones(n)


def test_the_same_array_twice_with_the_same_shadow():
    x, dx = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    out, dout = seeds()
    grad(Duplicated(x, dx), Duplicated(x, dx), Duplicated(out, dout))
    np.testing.assert_array_equal(dx, 2.0 * x)


def test_in_place():
    x, dx = np.array([1.0, 2.0, 3.0]), np.ones(3)
    grad(Duplicated(x, dx), Duplicated(x, dx), Duplicated(x, dx))
    np.testing.assert_array_equal(x, [1.0, 4.0, 9.0])
    np.testing.assert_array_equal(dx, [2.0, 4.0, 6.0])


def test_views_that_overlap():
    whole, shadow = np.arange(1.0, 5.0), np.zeros(4)
    out, dout = seeds()
    grad(Duplicated(whole[:3], shadow[:3]), Duplicated(whole[1:], shadow[1:]), Duplicated(out, dout))
    np.testing.assert_array_equal(shadow, [2.0, 4.0, 6.0, 3.0])


def test_constants_may_overlap():
    x = np.array([1.0, 2.0, 3.0])
    out, dout = seeds()
    grad(Const(x), Const(x), Duplicated(out, dout))
    np.testing.assert_array_equal(out, x * x)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("do not share it in the same way", lambda x, d: (Duplicated(x, d), Duplicated(x, d.copy()))),
        ("x is constant and shares memory with y", lambda x, d: (Const(x), Duplicated(x, d))),
        ("y is constant and shares memory with x", lambda x, d: (Duplicated(x, d), Const(x[1:]))),
        ("shadow of x shares memory with it", lambda x, d: (Duplicated(x, x), Const(d))),
        ("shadow of x shares memory with y", lambda x, d: (Duplicated(x, d), Const(d))),
        ("and the arrays do not", lambda x, d: (Duplicated(x, d), Duplicated(x.copy(), d))),
        ("irad.Cache makes a shadow of its own", lambda x, d: (Duplicated(x, d), Cache(x))),
    ],
)
def test_refused(words, make):
    x, shadow = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    out, dout = seeds()
    first, second = make(x, shadow)
    with pytest.raises(SignatureError, match=words):
        grad(first, second, Duplicated(out, dout))
    np.testing.assert_array_equal(out, 0.0)


def test_directions_that_share_shadows_are_refused():
    x, d = np.ones(3), np.zeros(3)
    with pytest.raises(SignatureError, match="in different directions share memory"):
        grad(BatchDuplicated(x, (d, d)), Const(x.copy()), BatchDuplicated(*[np.zeros(3), seeds()]))


def test_places_of_numbers_are_apart():
    @cuda.jit
    def scaled(x, s, t, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = s * x[i] + t

    x, dx, y, dy = np.ones(3), np.zeros(3), np.zeros(3), np.ones(3)
    place = np.zeros(1)
    derivative = irad.cuda.grad(scaled)[1, 4]
    for s, t in ((place, place), (dx[:1], place)):
        with pytest.raises(SignatureError, match="memory for the derivative with respect to s is shared with"):
            derivative(Duplicated(x, dx), Duplicated(2.0, s), Duplicated(1.0, t), Duplicated(y, dy))
