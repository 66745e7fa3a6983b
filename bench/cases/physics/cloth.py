"""Steps of a cloth of springs that hangs from its upper row; loss on the final positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def pull(x, i, j, p, q, length, stiffness, force):
    dx, dy, dz = x[p, q, 0] - x[i, j, 0], x[p, q, 1] - x[i, j, 1], x[p, q, 2] - x[i, j, 2]
    distance = math.sqrt(dx**2 + dy**2 + dz**2)
    factor = stiffness * (distance - length) / distance
    for d, along in enumerate((dx, dy, dz)):
        force[i, j, d] += factor * along
        force[p, q, d] -= factor * along


@njit(error_model="numpy")
def loss(initial, stiffness, length, damping, step, steps):
    n, m, _ = initial.shape
    x, v = initial.copy(), np.zeros(initial.shape)
    for _ in range(steps):
        force = np.zeros(x.shape)
        for i in range(n):
            for j in range(m):
                if i + 1 < n:
                    pull(x, i, j, i + 1, j, length, stiffness, force)
                if j + 1 < m:
                    pull(x, i, j, i, j + 1, length, stiffness, force)
        for i in range(1, n):
            for j in range(m):
                force[i, j, 2] -= 9.81
                for d in range(3):
                    v[i, j, d] = damping * v[i, j, d] + step * force[i, j, d]
                    x[i, j, d] += step * v[i, j, d]
    return np.sum(x**2)


@njit(error_model="numpy")
def _pull_bar(x, i, j, p, q, length, stiffness, force_bar, x_bar):
    """Adds to the cotangents of both ends and returns that of the stiffness."""
    dx, dy, dz = x[p, q, 0] - x[i, j, 0], x[p, q, 1] - x[i, j, 1], x[p, q, 2] - x[i, j, 2]
    inverse = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz)
    slack = 1.0 - length * inverse
    a = force_bar[i, j, 0] - force_bar[p, q, 0]
    b = force_bar[i, j, 1] - force_bar[p, q, 1]
    c = force_bar[i, j, 2] - force_bar[p, q, 2]
    along = a * dx + b * dy + c * dz
    radial = stiffness * length * inverse * inverse * inverse * along
    straight = stiffness * slack
    a, b, c = straight * a + radial * dx, straight * b + radial * dy, straight * c + radial * dz
    x_bar[p, q, 0] += a
    x_bar[p, q, 1] += b
    x_bar[p, q, 2] += c
    x_bar[i, j, 0] -= a
    x_bar[i, j, 1] -= b
    x_bar[i, j, 2] -= c
    return slack * along


@njit(error_model="numpy")
def hand(initial, stiffness, length, damping, step, steps):
    """Positions before each step are kept; the springs are computed anew."""
    n, m, _ = initial.shape
    xs = np.empty((steps + 1, n, m, 3))
    xs[0] = initial
    v, force = np.zeros((n, m, 3)), np.empty((n, m, 3))
    for s in range(steps):
        x = xs[s]
        force[:] = 0.0
        for i in range(n):
            for j in range(m):
                if i + 1 < n:
                    pull(x, i, j, i + 1, j, length, stiffness, force)
                if j + 1 < m:
                    pull(x, i, j, i, j + 1, length, stiffness, force)
        xs[s + 1, 0] = x[0]
        for i in range(1, n):
            for j in range(m):
                force[i, j, 2] -= 9.81
                for d in range(3):
                    v[i, j, d] = damping * v[i, j, d] + step * force[i, j, d]
                    xs[s + 1, i, j, d] = x[i, j, d] + step * v[i, j, d]
    x_bar, v_bar, force_bar = 2.0 * xs[steps], np.zeros((n, m, 3)), np.zeros((n, m, 3))
    value, stiffness_bar = 0.25 * np.sum(x_bar * x_bar), 0.0
    for s in range(steps - 1, -1, -1):
        x = xs[s]
        for i in range(1, n):
            for j in range(m):
                for d in range(3):
                    velocity_bar = v_bar[i, j, d] + step * x_bar[i, j, d]
                    force_bar[i, j, d] = step * velocity_bar
                    v_bar[i, j, d] = damping * velocity_bar
        for i in range(n):
            for j in range(m):
                if i + 1 < n:
                    stiffness_bar += _pull_bar(x, i, j, i + 1, j, length, stiffness, force_bar, x_bar)
                if j + 1 < m:
                    stiffness_bar += _pull_bar(x, i, j, i, j + 1, length, stiffness, force_bar, x_bar)
    return value, (x_bar, stiffness_bar)


def make(size: Size) -> tuple[Any, ...]:
    """A flat cloth with a little noise."""
    n, steps = {"small": (3, 3), "medium": (10, 10), "full": (30, 40)}[size]
    rng = np.random.default_rng(20)
    grid = np.stack([*np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), np.zeros((n, n))], axis=-1)
    return grid + 0.05 * rng.standard_normal((n, n, 3)), 50.0, 1.0, 0.99, 0.02, steps


CASE = Case("cloth", "40 steps of a cloth of 30 × 30 masses and springs", loss, hand, make, (0, 1))
