"""Allocations balance, on success and on failure; plain Numba code is the yardstick."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numba
import numpy as np
import pytest
from numba.typed import List

import irad
from irad.testing.allocations import allocations

CALLS = 2000


def kept(call: Callable[[], object], calls: int = CALLS) -> tuple[int, int]:
    """Numba's allocations and array headers that outlive ``calls`` calls."""
    call()
    with allocations() as count:
        for _ in range(calls):
            call()
        counted = count()
    return counted.kept, counted.kept_headers


@numba.njit
def temporaries(x, k):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = np.exp(x[i]) * k
    z = y * x
    if z[0] < 0:
        raise ValueError("negative")
    return z.sum()


@numba.njit
def returns_arrays(x):
    y = x * x
    return y.sum(), y, y[1:]


X = np.linspace(0.5, 1.5, 50)
OUT = np.empty(50)
SHADOW = np.zeros(50)

CALLS_THAT_SUCCEED = {
    "grad": lambda: irad.grad(temporaries)(X, 2.0),
    "grad of both": lambda: irad.grad(temporaries, (0, 1))(X, 2.0),
    "value_and_grad": lambda: irad.value_and_grad(temporaries)(X, 2.0),
    "value_and_grad_into": lambda: irad.value_and_grad_into(temporaries)(OUT, X, 2.0),
    "aux is returned": lambda: irad.grad(first_and_rest, has_aux=True)(X),
    "strided": lambda: irad.grad(temporaries)(X[::-2], 2.0),
    "strided into": lambda: irad.value_and_grad_into(temporaries)(OUT[::2], X[::2], 2.0),
    "repeated elements": lambda: irad.grad(temporaries)(np.broadcast_to(1.0, 5), 2.0),
    "autodiff": lambda: irad.autodiff(irad.Reverse, temporaries, irad.Duplicated(X, SHADOW), irad.Active(2.0)),
    "autodiff with value": lambda: irad.autodiff(
        irad.ReverseWithPrimal, returns_arrays, irad.Duplicated(X, SHADOW), seed=(1.0, X, X[1:])
    ),
    "autodiff that drops the value": lambda: irad.autodiff(
        irad.Reverse, returns_arrays, irad.Duplicated(X, SHADOW), seed=(1.0, X, None)
    ),
    "vjp": lambda: irad.vjp(returns_arrays, X)[1]((1.0, X, X[1:])),
    "vjp never pulled back": lambda: irad.vjp(returns_arrays, X),
    "vjp of repeated elements": lambda: irad.vjp(temporaries, np.broadcast_to(1.0, 5), 2.0)[1](1.0),
    "inside compiled code": lambda: use(X),
}


@numba.njit
def first_and_rest(x):
    y = x * x
    return y.sum(), (y, y[1:])


_gradient = irad.grad(temporaries)


@numba.njit
def use(x):
    for _ in range(3):
        x = x - 0.01 * _gradient(x, 2.0)
    return x


@pytest.mark.parametrize("call", CALLS_THAT_SUCCEED.values(), ids=CALLS_THAT_SUCCEED)
def test_calls_that_succeed_keep_nothing(call):
    assert kept(call) == (0, 0)


NEGATIVE = -X

CALLS_THAT_FAIL = {
    "grad": lambda: irad.grad(temporaries)(NEGATIVE, 2.0),
    "value_and_grad_into": lambda: irad.value_and_grad_into(temporaries)(OUT, NEGATIVE, 2.0),
    "strided into": lambda: irad.value_and_grad_into(temporaries)(OUT[::2], NEGATIVE[::2], 2.0),
    "repeated elements": lambda: irad.grad(temporaries)(np.broadcast_to(-1.0, 5), 2.0),
    "autodiff": lambda: irad.autodiff(irad.Reverse, temporaries, irad.Duplicated(NEGATIVE, SHADOW), irad.Active(2.0)),
    "vjp": lambda: irad.vjp(temporaries, NEGATIVE, 2.0),
}


@pytest.mark.parametrize("call", CALLS_THAT_FAIL.values(), ids=CALLS_THAT_FAIL)
def test_calls_that_fail_keep_no_more_than_the_plain_function(call):
    def fails(f):
        with pytest.raises(ValueError, match="negative"):
            f()

    plain = kept(lambda: fails(lambda: temporaries(NEGATIVE, 2.0)))
    derivative = kept(lambda: fails(call))
    assert derivative[0] <= plain[0]
    assert derivative[1] <= plain[1]


@numba.njit
def halved_often(x, n):
    if n == 0:
        if x[0] < 0.1:
            raise ValueError("too small")
        return x.sum()
    y = x * 0.5
    return halved_often(y, n - 1) + y[0]


@numba.njit
def padded(x, n):
    y = x * 2.0
    z = np.zeros(n)
    z[: x.size] = y
    return (z[: x.size] * y).sum()


def test_a_recursive_function_that_raises_keeps_no_more_than_the_plain_one():
    def fails(f):
        with pytest.raises(ValueError, match="too small"):
            f(X, 5)

    plain = kept(lambda: fails(halved_often))
    derivative = kept(lambda: fails(irad.grad(halved_often)))
    assert derivative[0] <= plain[0]
    assert derivative[1] <= plain[1]


def test_a_function_that_finds_no_memory_keeps_no_more_than_the_plain_one():
    def fails(f):
        with pytest.raises(MemoryError):
            f(X, 10**16)

    plain = kept(lambda: fails(padded))
    derivative = kept(lambda: fails(irad.grad(padded)))
    assert derivative[0] <= plain[0]
    assert derivative[1] <= plain[1]


CALLS_THAT_ARE_REFUSED = {
    "shape": lambda: irad.value_and_grad_into(temporaries)(OUT[1:], X, 2.0),
    "shared": lambda: irad.value_and_grad_into(temporaries)(X, X, 2.0),
    "strides": lambda: irad.autodiff(
        irad.Reverse, temporaries, irad.Duplicated(X, np.zeros(100)[::2]), irad.Active(2.0)
    ),
    "seed": lambda: irad.autodiff(irad.Reverse, returns_arrays, irad.Duplicated(X, SHADOW), seed=(1.0, X[1:], None)),
    "seed of a pullback": lambda: irad.vjp(returns_arrays, X)[1]((1.0, X[1:], None)),
}


@pytest.mark.parametrize("call", CALLS_THAT_ARE_REFUSED.values(), ids=CALLS_THAT_ARE_REFUSED)
def test_calls_that_are_refused_keep_nothing(call):
    def refused():
        with pytest.raises(irad.SignatureError):
            call()

    assert kept(refused) == (0, 0)


def test_a_tape_too_large_for_memory_is_a_memory_error():
    @numba.njit
    def f(x, n):
        for _ in range(n):
            x = np.sin(x) * x
        return x

    gradient = irad.grad(f)
    expected = gradient(1.9, 10)
    with pytest.raises(MemoryError):
        gradient(1.9, 10**14)
    with pytest.raises(MemoryError):
        irad.vjp(f, 1.9, 10**14)
    assert gradient(1.9, 10) == expected


def test_pullback_frees_what_it_holds():
    x = np.ones(5)
    value, pullback = irad.vjp(returns_arrays, x)
    held, _ = pullback._tape.saved()
    state = weakref.ref(held)
    pullback((1.0, None, None))
    del pullback, value, held
    gc.collect()
    assert state() is None


def test_records():
    dtype = np.dtype([("m", np.float64), ("k", np.int32)])
    p, dp, seed = (np.ones(1, dtype)[0] for _ in range(3))

    @numba.njit
    def doubled(p, x):
        if x < 0:
            raise ValueError("negative")
        p.m = 2.0 * x
        return p

    @numba.njit
    def f(p, x):
        return doubled(p, x).m

    def work():
        irad.grad(f, (0, 1))(p, 0.5)
        irad.vjp(doubled, p, 1.0)[1](seed)
        irad.autodiff(irad.ReverseWithPrimal, doubled, irad.Duplicated(p, dp), irad.Active(1.0), seed=seed)
        with pytest.raises(ValueError, match="negative"):
            irad.grad(f)(p, -1.0)

    assert kept(work, 20) == (0, 0)


@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
def test_lists():
    @numba.njit
    def grow(v, x):
        v.append(v[0] * x)
        if x < 0:
            raise ValueError("negative")
        return v[0] * v[-1]

    def work():
        for make in (list, List):
            irad.grad(grow, (0, 1))(make([1.0, 2.0]), 0.5)
            irad.vjp(grow, make([1.0, 2.0]), 0.5)[1](1.0)

    assert kept(work, 20) == (0, 0)

    def failing(call):
        def run():
            with pytest.raises(ValueError, match="negative"):
                call([1.0, 2.0], -1.0)

        return run

    plain = kept(failing(grow), 20)
    assert kept(failing(irad.grad(grow)), 20) <= plain
