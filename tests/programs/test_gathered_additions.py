"""Loops that add to neighbouring elements of shadows: long and short, in all directions, in place, beside others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_RANDOM = np.random.default_rng(5)
_STRICT = irad.Options(strict=True)


def copied(argument: Any) -> Any:
    """A copy; of a strided array a strided one."""
    if not isinstance(argument, np.ndarray) or argument.flags.c_contiguous:
        return argument.copy() if isinstance(argument, np.ndarray) else argument
    wide = np.zeros((*argument.shape[:-1], 3 * argument.shape[-1]), argument.dtype)
    wide[..., 1::3] = argument
    return wide[..., 1::3]


def moved(argument: Any, by: Any) -> Any:
    if not isinstance(argument, np.ndarray):
        return argument + by
    argument += by
    return argument


def agrees(function: Any, *arguments: Any) -> None:
    """Whether the gradient is that of strict order, of the oracle, and of differences in a random direction."""
    positions = tuple(i for i, a in enumerate(arguments) if np.asarray(a).dtype.kind == "f")

    def gradient(options: irad.Options | None) -> Any:
        given = list(map(copied, arguments))
        return irad.grad(function, argnums=positions, options=options)(*given)

    found = gradient(None)
    for options in (_STRICT, irad.Options(plan="save_all")):
        for mine, wanted in zip(found, gradient(options), strict=True):
            scale = np.abs(wanted).max(initial=1.0)
            np.testing.assert_allclose(mine, wanted, rtol=1e-9, atol=1e-11 * scale)
    directions = [_RANDOM.standard_normal(np.shape(arguments[i])) for i in positions]

    def value(step: float) -> float:
        given = list(map(copied, arguments))
        for i, direction in zip(positions, directions, strict=True):
            given[i] = moved(given[i], step * direction)
        return function(*given)

    along = sum((g * d).sum() for g, d in zip(map(np.asarray, found), directions, strict=True))
    assert along == pytest.approx((value(1e-6) - value(-1e-6)) / 2e-6, rel=2e-6, abs=1e-6)


@njit(error_model="numpy")
def stencil(x, factor):
    total = 0.0
    y = np.zeros_like(x)
    for i in range(2, x.size - 2):
        y[i] = x[i - 2] * factor + x[i + 1] * x[i] - x[i + 2]
    for i in range(x.size):
        total += y[i] ** 2
    return total


def test_all_lengths():
    for size in (0, 1, 4, 5, 11, 12, 13, 131, 132, 133, 140, 260, 261, 1000):
        agrees(stencil, _RANDOM.standard_normal(size), 0.7)


def test_strides_and_views():
    for view in (
        _RANDOM.standard_normal(600)[::3],
        _RANDOM.standard_normal(200)[::-1],
        _RANDOM.standard_normal((200, 2))[:, 1],
    ):
        agrees(stencil, view, 0.7)


@njit(error_model="numpy")
def heat(u, v, ratio, steps):
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                v[i, j] = u[i, j] + ratio * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        u, v = v, u
    return (u**2).sum()


@njit(error_model="numpy")
def one_field(u, ratio, steps):
    return heat(u, u, ratio, steps)


def test_two_fields_that_are_exchanged():
    u, v = _RANDOM.standard_normal((2, 7, 150))
    agrees(heat, u, v, 0.2, 3)
    agrees(heat, u[:, ::2], v[:, 1::2], 0.2, 3)


def test_a_field_that_is_both():
    agrees(one_field, _RANDOM.standard_normal((6, 40)), 0.2, 2)


@njit(error_model="numpy")
def halves(x, shift):
    total = 0.0
    u, v = x[: x.size - shift], x[shift:]
    for i in range(1, v.size - 1):
        v[i] = u[i - 1] * u[i + 1] - 0.5 * u[i]
    for i in range(x.size):
        total += x[i] ** 2
    return total


def test_views_that_overlap():
    for shift in (0, 1, 2, 3, 8, 9, 64, 100):
        agrees(halves, 0.5 * _RANDOM.standard_normal(130 + shift), shift)


@njit(error_model="numpy")
def downwards(x, y):
    total = 0.0
    for i in range(x.size - 2, 0, -1):
        total += math.sin(x[i - 1] * y[i]) + x[i + 1] * x[i] * y[i + 1]
    return total


@njit(error_model="numpy")
def by_twos(x, y):
    total = 0.0
    for i in range(3, x.size - 3, 2):
        total += x[i - 3] * x[i + 3] * y[i - 1] + math.exp(x[i] - y[i]) * x[i - 1]
    return total


@njit(error_model="numpy")
def far(x, y):
    """Beyond what counts as neighbours, and what all iterations add to."""
    total = 0.0
    for i in range(20, x.size - 20):
        total += x[i - 20] * x[i + 20] * x[i] + y[0] * x[i] * y[1] + y[i] * y[0]
    return total


@njit(error_model="numpy")
def mirrored(x, y):
    total = 0.0
    n = x.size
    for i in range(n):
        total += x[i] * x[n - 1 - i] * y[i] + y[n - 1 - i] ** 3
    return total


@njit(error_model="numpy")
def carried(x, y):
    """A recurrence."""
    state = 0.0
    for i in range(1, x.size):
        state = 0.5 * math.tanh(state) * y[i] + x[i - 1] * x[i]
    return state


@njit(error_model="numpy")
def gauss_seidel(x, y):
    for i in range(1, x.size - 1):
        x[i] = 0.3 * x[i - 1] + 0.3 * x[i + 1] * y[i] + y[i + 1]
    return (x**2).sum()


@njit(error_model="numpy")
def indirect(x, y):
    total = 0.0
    for i in range(1, x.size - 1):
        total += x[int(abs(y[i]) * 3.0) % x.size] * x[i - 1] * x[i + 1]
    return total


@pytest.mark.parametrize(
    "function", [downwards, by_twos, far, mirrored, carried, gauss_seidel, indirect], ids=lambda f: f.__name__
)
def test_other_loops(function: Any):
    for size in (42, 300):
        agrees(function, *(0.5 * _RANDOM.standard_normal((2, size))))


@njit(error_model="numpy")
def pairs(positions, charge):
    total = 0.0
    for i in range(positions.shape[0]):
        for j in range(i):
            dx = positions[i, 0] - positions[j, 0]
            dy = positions[i, 1] - positions[j, 1]
            total += charge[i] * charge[j] / (1.0 + dx * dx + dy * dy)
    return total


def test_rows_of_unknown_length():
    for columns in (2, 3):
        agrees(pairs, _RANDOM.standard_normal((150, columns)), _RANDOM.standard_normal(150))


def test_rows_that_all_lie_at_one_place():
    """The stride of the rows is zero, which only the run knows."""
    row, charge = _RANDOM.standard_normal(2), _RANDOM.standard_normal(60)
    points = np.lib.stride_tricks.as_strided(row, (60, 2), (0, 8))
    shadows = []
    for options in (None, irad.Options(plan="save_all")):
        shadow = np.zeros(2)
        rows = np.lib.stride_tricks.as_strided(shadow, (60, 2), (0, 8))
        irad.autodiff(irad.Reverse, weighted_rows, irad.Duplicated(points, rows), irad.Const(charge), options=options)
        shadows.append(shadow)
    assert np.abs(shadows[1]).min() > 0.0
    np.testing.assert_allclose(shadows[0], shadows[1], rtol=1e-12)


@njit(error_model="numpy")
def weighted_rows(positions, charge):
    """Two numbers of each row, and its charge."""
    total = 0.0
    for j in range(positions.shape[0]):
        total += charge[j] * positions[j, 0] ** 2 * positions[j, 1]
    return total


def test_single_precision_and_records():
    x = _RANDOM.standard_normal(300).astype(np.float32)
    found = irad.grad(stencil)(x, np.float32(0.5))
    np.testing.assert_allclose(found, irad.grad(stencil)(x.astype(float), 0.5), rtol=2e-4, atol=2e-4)

    @njit(error_model="numpy")
    def of_records(r):
        total = 0.0
        for i in range(1, r.size - 1):
            total += r[i].a * r[i + 1].b + r[i - 1].a * r[i].b * r[i].a
        return total

    records = np.zeros(200, dtype=[("a", float), ("b", float)])
    records["a"], records["b"] = _RANDOM.standard_normal((2, 200))
    found, strict = irad.grad(of_records)(records), irad.grad(of_records, options=_STRICT)(records)
    for name in "ab":
        np.testing.assert_allclose(found[name], strict[name], rtol=1e-12)


def test_infinities_stay_where_they_are():
    x = _RANDOM.standard_normal(150)
    x[40], x[100] = np.inf, np.nan
    found, wanted = irad.grad(stencil)(x, 0.7), irad.grad(stencil, options=_STRICT)(x, 0.7)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_allclose(found[np.isfinite(found)], wanted[np.isfinite(wanted)], rtol=1e-12)


def test_derivatives_of_derivatives():
    x, direction = _RANDOM.standard_normal((2, 150))
    gradient = irad.grad(stencil)
    along = irad.grad(njit(lambda x, factor, direction: (gradient(x, factor) * direction).sum()))(x, 0.7, direction)
    wanted = (gradient(x + 1e-6 * direction, 0.7) - gradient(x - 1e-6 * direction, 0.7)) / 2e-6
    np.testing.assert_allclose(along, wanted, rtol=1e-6, atol=1e-6)


def test_several_directions():
    x = _RANDOM.standard_normal((150,))

    @njit(error_model="numpy")
    def outputs(x):
        y = np.zeros(x.size)
        for i in range(1, x.size - 1):
            y[i] = x[i - 1] * x[i + 1] - x[i] ** 2
        return y

    found = irad.jacobian(outputs, mode="reverse")(x)
    np.testing.assert_allclose(found, irad.jacobian(outputs, mode="forward")(x), rtol=1e-12)


@njit(error_model="numpy")
def ring(x, y):
    """Neighbours of both sides, across the border."""
    total = 0.0
    n = x.size
    for i in range(n):
        total += x[(i + 1) % n] * x[i] * y[(i - 1) % n] + math.sin(x[(i - 1) % n]) * x[i]
    return total


@njit(error_model="numpy")
def ring_with_place(x, y):
    """A neighbour that is another one in one iteration in the middle."""
    total = 0.0
    for i in range(x.size - 1):
        total += x[3 if i == 20 else i + 1] * x[i] * y[i]
    return total


@njit(error_model="numpy")
def ring_to_the_left(x, y):
    """The neighbour of the first is the last; what is stored is read beside it, and the last is returned."""
    n = x.size
    new, last = np.zeros(n), 0.0
    for i in range(n):
        before = n - 1 if i == 0 else i - 1
        last = x[before] * x[i] + y[before] ** 2
        new[i] = last * y[i]
    return (new * new).sum() + 3.0 * last


@njit(error_model="numpy")
def ring_with_a_state(x, y):
    """What is passed on from one iteration to the next keeps them in order."""
    n = x.size
    state = total = 0.0
    for i in range(n):
        state = 0.5 * state + x[(i - 1) % n] * x[(i + 1) % n] * y[i]
        total += math.sin(state)
    return total


@njit(error_model="numpy")
def torus(x, ratio):
    new = np.empty_like(x)
    n, m = x.shape
    for i in range(n):
        for j in range(m):
            beside = x[i, (j + 1) % m] + x[i, (j - 1) % m] + x[(i + 1) % n, j] + x[(i - 1) % n, j]
            new[i, j] = x[i, j] + ratio * (beside - 4.0 * x[i, j]) * x[i, (j + 1) % m]
    return (new**3).sum()


def test_periodic_borders():
    for size in (1, 2, 3, 9, 10, 11, 12, 60):
        for function in (ring, ring_to_the_left, ring_with_a_state):
            agrees(function, *(0.5 * _RANDOM.standard_normal((2, size))))
        agrees(torus, 0.5 * _RANDOM.standard_normal((3, size)), 0.2)
    for size in (12, 21, 22, 60):
        agrees(ring_with_place, *_RANDOM.standard_normal((2, size)))
