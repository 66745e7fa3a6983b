"""What the plain function raises, the derivative raises: type, arguments; memory is as the plain call leaves it.

PYTEST_DONT_REWRITE: Numba cannot compile assert statements rewritten by pytest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

PLANS = ("default", "save_all")


@njit
def raise_value_error(x):
    if x < 0:
        raise ValueError("negative", 3)
    return math.sqrt(x)


@njit
def raise_with_a_value(x):
    if x > 1:
        k = int(x)
        raise IndexError(k)
    return x * x


@njit
def assertion(x):
    assert x > 0, "not positive"
    return math.log(x)


@njit
def division_by_zero(x):
    return 1.0 / (x - 1.0)


@njit
def shape_mismatch(x):
    return np.dot(np.ones((2, 2)), x).sum()


@njit
def in_a_callee(x):
    return raise_value_error(x) * raise_value_error(x - 2)


@njit
def in_a_loop_after_stores(x):
    for i in range(x.size):
        x[i] = x[i] * 2
        if i == 2:
            raise RuntimeError("third")
    return x.sum()


@njit
def in_nested_loops(x):
    s = 0.0
    for i in range(3):
        t = np.zeros(4)
        for j in range(4):
            t[j] = x * j
            if i == 1 and j == 3:
                raise StopIteration
        s += t.sum()
    return s


@njit
def out_of_recursion(x, n):
    if n > 10:
        return x
    y = out_of_recursion(x, n + 1) * x
    if n == 8:
        raise KeyError("deep")
    return y


@njit
def slices_of_other_shapes(x):
    y = np.zeros((3, 2))
    y[1:, :] = x * 2.0
    return np.sum(y)


@njit
def fail_with_numbers(n, m):
    raise ValueError("sizes", n, m)


@njit
def by_a_helper(x):
    if x.size > 2:
        fail_with_numbers(x.size, 2)
    return (x * x).sum()


@njit
def by_a_helper_in_a_loop(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 3
        if s > 5.0:
            fail_with_numbers(i, x.size)
    return s


CASES = (
    (raise_value_error, (-1.0,)),
    (raise_with_a_value, (7.5,)),
    (assertion, (-1.0,)),
    (division_by_zero, (1.0,)),
    (shape_mismatch, (np.ones(3),)),
    (in_a_callee, (1.0,)),
    (in_a_loop_after_stores, (np.ones(5),)),
    (in_nested_loops, (1.5,)),
    (out_of_recursion, (1.5, 3)),
    (slices_of_other_shapes, (np.ones((3, 2)),)),
    (slices_of_other_shapes, (np.ones((2, 4)),)),
    (by_a_helper, (np.ones(3),)),
    (by_a_helper_in_a_loop, (np.full(7, 1.5),)),
)


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> tuple[type[BaseException], tuple[Any, ...], list[Any]]:
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(Exception) as caught:  # noqa: PT011 the type is compared
        f(*copies)
    return type(caught.value), caught.value.args, [np.asarray(c).tolist() for c in copies]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(("f", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_derivative_raises_the_same(f: Callable[..., Any], args: tuple[Any, ...], plan: Any):
    expected = outcome(f, args)
    assert not issubclass(expected[0], irad.IradError)
    options = irad.Options(plan=plan)
    assert outcome(irad.grad(f, options=options), args) == expected
    assert outcome(irad.value_and_grad(f, options=options), args) == expected
    assert outcome(lambda *a: irad.vjp(f, *a, options=options), args) == expected


@pytest.mark.parametrize("plan", PLANS)
def test_derivative_works_after_it_raised(plan: Any):
    gradient = irad.grad(raise_value_error, options=irad.Options(plan=plan))
    for _ in range(3):
        with pytest.raises(ValueError, match="negative"):
            gradient(-1.0)
        assert gradient(4.0) == pytest.approx(0.25)


@njit
def caught(x):
    y = x.copy()
    try:
        y[0] *= 3.0
        if x[0] > 0.0:
            fail_with_numbers(x.size, 1)
        y[1] *= 5.0
    except Exception:
        y[2] *= y[0]
    return y.sum()


@pytest.mark.parametrize("plan", PLANS)
def test_what_a_helper_raised_and_the_function_caught(plan: Any):
    options = irad.Options(plan=plan)
    for f, x, expected in (
        (caught, (2.0, 3.0, 4.0), (3.0 + 3.0 * 4.0, 1.0, 3.0 * 2.0)),
        (caught, (-2.0, 3.0, 4.0), (3.0, 5.0, 1.0)),
    ):
        value, gradient = irad.value_and_grad(f, options=options)(np.array(x))
        assert value == f(np.array(x))
        assert gradient == pytest.approx(np.array(expected))
