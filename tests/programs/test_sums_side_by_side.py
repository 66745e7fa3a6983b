"""Loops around sums, of which several run side by side: values to the bit, gradients as those of the oracle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_RANDOM = np.random.default_rng(11)
_ORACLE = irad.Options(plan="save_all")


def agrees(function: Any, *arguments: Any) -> None:
    """Whether the value has the bits of the plain function's, and the gradient is that of the oracle."""
    positions = tuple(i for i, a in enumerate(arguments) if np.asarray(a).dtype.kind == "f")

    def copies() -> list[Any]:
        made: dict[int, Any] = {}
        return [made.setdefault(id(a), a.copy()) if isinstance(a, np.ndarray) else a for a in arguments]

    value, found = irad.value_and_grad(function, argnums=positions)(*copies())
    _, wanted = irad.value_and_grad(function, argnums=positions, options=_ORACLE)(*copies())
    plain = function(*copies())
    assert np.float64(value).tobytes() == np.float64(plain).tobytes() or (math.isnan(value) and math.isnan(plain))
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)


@njit(error_model="numpy")
def products(a, x, scale):
    n, m = a.shape
    y = np.empty(n)
    total = 1.0
    for i in range(n):
        dot = scale
        for k in range(m):
            dot += a[i, k] * x[k]
        y[i] = math.sin(dot)
        total += y[i] * dot
    return total + y.sum()


@njit(error_model="numpy")
def in_place(a, x, y):
    for i in range(a.shape[0]):
        y[i] = 0.5
        for k in range(a.shape[1]):
            y[i] += a[i, k] * x[k]
        for k in range(a.shape[1] - 1, -1, -1):
            y[i] -= a[i, k] * x[k] * x[k]
    total = 0.0
    for value in y:
        total = 0.9 * total + value
    return total


@njit(error_model="numpy")
def columns(a, x, scale):
    total = 0.0
    for j in range(a.shape[1] - 1, -1, -2):
        dot = 0.0
        for i in range(a.shape[0]):
            dot = scale * dot + a[i, j] * x[min(i, x.size - 1)]
        total -= dot * dot
    return total


@njit(error_model="numpy")
def forward_substitution(a, x, scale):
    n = min(a.shape[0], a.shape[1])
    y = np.zeros(n)
    for i in range(n):
        rest = x[i % x.size]
        for k in range(n):
            rest -= scale * a[i, k] * y[k]
        y[i] = rest
    return y[-1] if n else scale


@njit(error_model="numpy")
def newton(a, x, scale):
    """The same number of steps for all, which only the run knows; the roots of a row are kept together."""
    total, roots = 0.0, np.empty(a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            root = 1.0
            for _ in range(x.size):
                root = 0.5 * (root + (1.5 + a[i, j] ** 2) / root)
            roots[j] = root * scale
        total += roots.sum()
    return total


@njit(error_model="numpy")
def two_sums(a, x, scale):
    """With gates in memory that is the function's own."""
    n, m = a.shape
    gates = np.empty(n)
    for i in range(n):
        gates[i] = scale
        for k in range(m):
            gates[i] += a[i, k] * x[k]
        for k in range(m):
            gates[i] -= a[i, m - 1 - k] * x[k]
    total = 0.0
    for gate in gates:
        total = 0.9 * total + math.tanh(gate)
    return total


@njit(error_model="numpy")
def smallest(a, x, scale):
    total = 0.0
    for i in range(a.shape[0]):
        least, place = math.inf, -1
        for k in range(a.shape[1]):
            distance = (a[i, k] - x[k]) ** 2
            if distance < least:
                least, place = distance, k
        if place >= 0:
            total += scale * least
    return total


@njit
def left_in_the_middle(y, m, p):
    """The next row loads what is stored where the loop is left."""
    total = 0.0
    for i in range(len(y) - 1):
        s = 0.0
        for k in range(m):
            if k * k == p:
                y[i + 1] = s
                break
            s += y[i] * 0.5
        total += s * s
    return total


@njit
def more_in_the_middle(y, m, p):
    """A sum by an order, with a loop after it, in memory of the function's own."""
    u = y.copy()
    total = 0.0
    for i in range(len(u) - 1):
        s = 0.0
        for k in range(m):
            if k * k > p:
                for j in range(m):
                    u[i + 1] += 0.1 * j
                break
            s += u[i] * 0.5
        total += s * s
    return total


@pytest.mark.parametrize("p", [9, 8, 100])
@pytest.mark.parametrize("function", [left_in_the_middle, more_in_the_middle])
def test_loops_that_are_left_in_the_middle(function, p):
    agrees(function, np.arange(1.0, 11.0), 6, p)


@pytest.mark.parametrize("columns_", [0, 1, 2, 7])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("function", [products, columns, two_sums, forward_substitution, newton, smallest])
def test_all_sizes(function, rows, columns_):
    agrees(function, _RANDOM.standard_normal((rows, columns_)), _RANDOM.standard_normal(max(columns_, 1)), 0.7)


@pytest.mark.parametrize("rows", [1, 4, 6, 9])
def test_sums_in_memory(rows):
    a = _RANDOM.standard_normal((rows, 5))
    agrees(in_place, a, _RANDOM.standard_normal(5), np.zeros(rows))


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_the_vector_may_be_what_is_stored(shift):
    """Rows store what later rows load."""
    memory = _RANDOM.standard_normal(12)

    @njit(error_model="numpy")
    def overlapping(a, memory, shift):
        return in_place(a, memory[:6], memory[shift : shift + 6])

    agrees(overlapping, _RANDOM.standard_normal((6, 6)), memory, shift)


def test_the_same_array_twice():
    a, x = _RANDOM.standard_normal((6, 6)), _RANDOM.standard_normal(6)

    @njit(error_model="numpy")
    def twice(a, x):
        return in_place(a, x, x)

    agrees(twice, a, x)


def test_views_in_steps_and_backwards():
    a, x = _RANDOM.standard_normal((12, 20)), _RANDOM.standard_normal(10)

    @njit(error_model="numpy")
    def stepping(a, x):
        return products(a[::-1, ::2], x, 0.3) + products(a.T[:10], a[:, 3], 0.2)

    agrees(stepping, a, x)


def test_single_precision():
    agrees(
        products,
        _RANDOM.standard_normal((9, 6)).astype(np.float32),
        _RANDOM.standard_normal(6).astype(np.float32),
        np.float32(0.5),
    )


def test_sums_of_numbers_that_are_none():
    a, x = _RANDOM.standard_normal((9, 6)), _RANDOM.standard_normal(6)
    a[2, 3], a[7, 1], x[0] = math.nan, math.inf, -0.0
    agrees(products, a, x, 0.1)


def test_errors_in_the_middle():
    """A row raises after its sum; later rows are not reached."""

    @njit
    def checked(a, places):
        total = 0.0
        for i in range(a.shape[0]):
            dot = 0.0
            for k in range(a.shape[1]):
                dot += a[i, k] ** 2
            if places[i] > 3:
                raise ValueError("too far")
            total += dot
        return total

    a, places = _RANDOM.standard_normal((6, 3)), np.array([0, 1, 2, 3, 4, 0])
    with pytest.raises(ValueError, match="too far"):
        irad.grad(checked)(a, places)
    places[4] = 3
    np.testing.assert_allclose(irad.grad(checked)(a, places), 2.0 * a)
