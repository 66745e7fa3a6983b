"""Arrays of the shapes that the code suggests, and of others: longer and shorter rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_RANDOM = np.random.default_rng(17)
_ORACLE = irad.Options(plan="save_all")


@njit(error_model="numpy")
def distances(cameras, points):
    """Rows of a camera: centre, direction, focal length."""
    total = 0.0
    for k in range(points.shape[0]):
        camera = cameras[k % cameras.shape[0]]
        offset = points[k] - camera[:3]
        along = offset * camera[3:6]
        for i in range(along.size):
            total += along[i] * math.sin(offset[i]) + along[i] ** 2
        if camera.size > 6:
            total *= 1.0 + 0.01 * camera[6]
    return total


@njit(error_model="numpy")
def heads_and_tails(x):
    total = 0.0
    for row in x:
        head, tail = row[:4], row[-2:]
        for value in head:
            total += value**2
        for value in tail:
            total += value**3
    return total


@njit(error_model="numpy")
def pairs(positions, charges):
    total = 0.0
    for i in range(positions.shape[0]):
        for j in range(i + 1, positions.shape[0]):
            dx, dy = positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1]
            total += charges[i, 0] * charges[j, 2] / (1.0 + dx * dx + dy * dy)
    return total


@njit(error_model="numpy")
def moving(positions, speeds):
    """In place, on a copy whose rows are as long as those of the argument."""
    moved = positions.copy()
    for _ in range(3):
        for i in range(moved.shape[0]):
            moved[i, 0] += 0.1 * speeds[i, 0] * moved[i, 1]
            moved[i, 1] -= 0.1 * speeds[i, 1] * moved[i, 0]
    return (moved * moved * moved).sum()


@njit(error_model="numpy")
def drifting(positions, speeds):
    """Rows by their elements in one place, as whole arrays in another."""
    x, pull = positions.copy(), np.zeros_like(positions)
    for _ in range(2):
        x += 0.1 * speeds
        for i in range(x.shape[0]):
            pull[i, 0], pull[i, 1] = math.sin(x[i, 1]), x[i, 0] * x[i, 1]
        x += pull * speeds
    return np.sum(x**2)


def agrees(function: Any, *arguments: Any) -> None:
    positions = tuple(range(len(arguments)))
    value, found = irad.value_and_grad(function, argnums=positions)(*arguments)
    assert value == function(*arguments)
    wanted = irad.grad(function, argnums=positions, options=_ORACLE)(*arguments)
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("width", [6, 7, 11])
def test_rows_that_are_long_enough(width):
    agrees(distances, _RANDOM.standard_normal((4, width)), _RANDOM.standard_normal((9, 3)))


def test_rows_that_are_cut_off():
    """Of five numbers two are left for the direction, of four one, which meets each of the offset."""
    agrees(distances, _RANDOM.standard_normal((4, 4)), _RANDOM.standard_normal((9, 3)))
    with pytest.raises(ValueError, match="broadcast"):
        irad.grad(distances)(_RANDOM.standard_normal((4, 5)), _RANDOM.standard_normal((9, 3)))


@pytest.mark.parametrize("width", [0, 1, 2, 3, 4, 5, 9])
def test_heads_and_tails(width):
    agrees(heads_and_tails, _RANDOM.standard_normal((5, width)))


def test_both_versions_of_one_gradient():
    """The same compiled code meets long rows and short ones."""
    gradient = irad.grad(heads_and_tails)
    for width in (9, 3, 4, 1):
        x = _RANDOM.standard_normal((3, width))
        expected = np.zeros_like(x)
        expected[:, :4] += 2.0 * x[:, :4]
        expected[:, -2:] += 3.0 * x[:, -2:] ** 2
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-14)


@pytest.mark.parametrize(("width", "more"), [(2, 3), (3, 3), (2, 5), (7, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_other_lengths(width: int, more: int, order: Any):
    positions = np.array(_RANDOM.standard_normal((6, width)), order=order)
    charges = np.array(_RANDOM.standard_normal((6, more)), order=order)
    agrees(pairs, positions, charges)
    agrees(pairs, np.repeat(positions, 2, axis=1)[:, ::2], charges[::-1])
    speeds = np.array(_RANDOM.standard_normal((6, width)), order=order)
    agrees(moving, positions, speeds)
    agrees(drifting, positions, speeds)


def test_rows_of_the_same_array():
    x = _RANDOM.standard_normal((5, 3))

    @njit(error_model="numpy")
    def twice(x):
        return pairs(x, x) + pairs(x[1:], x[:-1])

    agrees(twice, x)
    agrees(twice, _RANDOM.standard_normal((5, 4)))


@njit(error_model="numpy")
def swing(state, rates, out):
    out[0] = rates[0] * state[1]
    out[1] = -rates[1] * math.sin(state[0]) - rates[-1] * state[1]


@njit(error_model="numpy")
def by_elements(initial, rates):
    """All but the first two elements of a longer state only grow."""
    n = initial.shape[0]
    state, inner = initial.copy(), np.empty(n)
    first, second = np.ones(n), np.ones(n)
    for _ in range(5):
        swing(state, rates, first)
        for i in range(n):
            inner[i] = state[i] + 0.05 * first[i]
        swing(inner, rates, second)
        for i in range(n):
            state[i] += 0.1 * second[i]
    total = 0.0
    for i in range(n):
        total += state[i] ** 2 * (i + 1)
    return total


@njit(error_model="numpy")
def by_arrays(initial, rates):
    state, slope = initial.copy(), np.ones(initial.size)
    path = np.empty((6, initial.size))
    for step in range(5):
        path[step] = state
        swing(state, rates, slope)
        state += 0.1 * slope + 0.01 * state * rates[0]
    path[5] = state
    return np.sum(path**3)


@pytest.mark.parametrize("function", [by_elements, by_arrays], ids=lambda f: str(f.__name__))
def test_states_of_few_numbers(function: Any):
    """The same compiled code meets states of two numbers and longer ones."""
    gradient = irad.value_and_grad(function, argnums=(0, 1))
    oracle = irad.value_and_grad(function, argnums=(0, 1), options=_ORACLE)
    for size, step in ((2, 1), (3, 1), (7, 1), (2, 2), (5, -1)):
        initial, rates = _RANDOM.standard_normal(size * abs(step))[::step], _RANDOM.uniform(0.5, 1.0, 3)
        for made in (initial, np.ascontiguousarray(initial)):
            value, found = gradient(made, rates)
            expected, wanted = oracle(made, rates)
            assert value == expected == function(made, rates)
            for mine, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)
