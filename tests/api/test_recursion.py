"""Deep recursion: the derivative works, or raises MemoryError; it never runs over the end of the stack."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import irad

KIB = 1024


@numba.njit
def chain(x, depth):
    temporary = np.empty(3)
    temporary[0] = x
    temporary[1] = math.exp(-x)
    if depth == 0:
        return temporary[0] * x
    return math.sin(chain(x, depth - 1)) * temporary[0] + temporary[1]


@numba.njit
def expected(x, depth):
    value, slope = x * x, 2.0 * x
    for _ in range(depth):
        value, slope = (
            math.sin(value) * x + math.exp(-x),
            math.cos(value) * slope * x + math.sin(value) - math.exp(-x),
        )
    return slope


def in_thread(work: Callable[[], Any], stack: int) -> Any:
    found: list[Any] = []
    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found[0]


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except MemoryError as error:
        return str(error)


def test_ten_thousand_levels():
    gradient = irad.grad(chain)
    assert in_thread(lambda: gradient(0.9, 10_000), 8192 * KIB) == pytest.approx(expected(0.9, 10_000), rel=1e-9)


@pytest.mark.parametrize("derivative", [irad.grad, irad.value_and_grad])
def test_no_stack_left(derivative):
    gradient = derivative(chain)
    gradient(0.9, 1)  # compiles here, where the stack is large
    for depth in (2_000, 20_000, 200_000):  # the last is too deep for the primal as well
        found = in_thread(lambda depth=depth: outcome(lambda: gradient(0.9, depth)), 512 * KIB)
        if depth > 10_000:
            assert "stack" in found
    slope = in_thread(lambda: gradient(0.9, 100), 512 * KIB)
    assert np.ravel(slope)[-1] == pytest.approx(expected(0.9, 100), rel=1e-9)


def test_a_pullback_in_a_thread_with_little_stack():
    _, pullback = in_thread(lambda: irad.vjp(chain, 0.9, 10_000), 8192 * KIB)
    assert "stack" in in_thread(lambda: outcome(lambda: pullback(1.0)), 320 * KIB)
    slope, _ = in_thread(lambda: pullback(1.0), 8192 * KIB)
    assert slope == pytest.approx(expected(0.9, 10_000), rel=1e-9)


@numba.njit
def even(x, depth):
    if depth == 0:
        return x
    return odd(x, depth - 1) * x


@numba.njit
def odd(x, depth):
    if depth == 0:
        return -x
    return even(x, depth - 1) + x


def test_mutual_recursion():
    gradient = irad.grad(even)
    gradient(0.5, 2)
    assert "stack" in in_thread(lambda: outcome(lambda: gradient(0.5, 1_000_000)), 512 * KIB)
    assert gradient(0.5, 2) == 2.0
