"""Loops that raise where they divide by zero raise after the loop: what the caller sees stays the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad


@njit
def quotients(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += math.exp(x[i] / y[i])
    return total


@njit
def two_lines(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        first = x[i] / y[i]
        total += first * first
        total += 1.0 / (x[i] - 2.0)
    return total


@njit
def kept(x: Any, y: Any) -> Any:
    """What is written is lost when it raises."""
    squares = np.empty(x.size)
    for i in range(x.size):
        squares[i] = y[i] / x[i] + y[i] / (1.0 + x[i])
    total = 0.0
    for i in range(x.size):
        total += squares[i] * squares[i]
    return total


@njit
def nested(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        for j in range(i):
            total += 1.0 / (x[i] - y[j]) ** 2
    return total


FUNCTIONS = (quotients, two_lines, kept, nested)
RNG = np.random.default_rng(3)


def _postponed(function: Any, *args: Any) -> bool:
    return "%failed" in irad.inspect(irad.grad(function), *args).adjoint


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients(function: Any) -> None:
    x, y = RNG.uniform(3.0, 4.0, 37), RNG.uniform(1.0, 2.0, 37)
    assert _postponed(function, x, y)
    value, gradient = irad.value_and_grad(function, argnums=(0, 1))(x, y)
    oracle = irad.Options(plan="save_all")
    plain, expected = irad.value_and_grad(function, argnums=(0, 1), options=oracle)(x, y)
    assert value == pytest.approx(plain, rel=1e-14) == function(x, y)
    for got, want in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def _failure(call: Any, *args: Any) -> str:
    with pytest.raises(ZeroDivisionError) as caught:
        call(*args)
    return str(caught.value)


@pytest.mark.parametrize("at", [0, 5, 36])
@pytest.mark.parametrize("line", [1, 2])
def test_it_raises_as_the_function_does(at: int, line: int) -> None:
    gradient = irad.grad(two_lines, argnums=(0, 1))
    x, y = RNG.uniform(3.0, 4.0, 37), RNG.uniform(1.0, 2.0, 37)
    (y if line == 1 else x)[at] = 0.0 if line == 1 else 2.0
    assert _failure(gradient, x, y) == _failure(two_lines, x, y)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_short_loops(size: int) -> None:
    x, y = np.full(size, 3.0), np.full(size, 2.0)
    np.testing.assert_allclose(irad.grad(quotients)(x, y), np.exp(1.5) / 2.0 * np.ones(size), rtol=1e-15)
    if size:
        y[-1] = -0.0
        _failure(irad.grad(quotients), x, y)


def test_memory_is_freed_or_left_as_it_was() -> None:
    """After a failure, gradients are right again."""
    gradient = irad.grad(kept)
    x, y = RNG.uniform(3.0, 4.0, 20), RNG.uniform(1.0, 2.0, 20)
    before = gradient(x, y)
    bad = x.copy()
    bad[7] = 0.0
    for _ in range(3):
        _failure(gradient, bad, y)
    np.testing.assert_array_equal(gradient(x, y), before)


@njit
def in_place(x: Any, out: Any) -> Any:
    for i in range(x.size):
        out[i] = 1.0 / x[i]
    return out.sum()


@njit
def by_index(x: Any, index: Any) -> Any:
    total = 0.0
    for i in range(index.size):
        total += 1.0 / x[index[i]]
    return total


@njit
def computed(x: Any, table: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += table[int(1.0 / x[i])] * x[i]
    return total


@njit
def guarded(x: Any, table: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        if i >= table.size:
            raise ValueError("too long")
        total += table[i] / x[i]
    return total


def test_what_is_seen_or_unsafe_stays_where_it_is() -> None:
    """Arrays of the caller, addresses by loaded or computed numbers, checks of something else."""
    x, out = np.array([1.0, 2.0, 4.0]), np.zeros(3)
    assert not _postponed(in_place, x, out)
    assert not _postponed(by_index, x, np.array([0, 2]))
    assert not _postponed(computed, x, out)
    assert not _postponed(guarded, x, out)

    x[1] = 0.0
    for call in (in_place, irad.grad(in_place)):
        result = np.zeros(3)
        with pytest.raises(ZeroDivisionError):
            call(x, result)
        assert result.tolist() == [1.0, 0.0, 0.0]
