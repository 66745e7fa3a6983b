"""Leapfrog steps of bodies that attract each other, with softening; loss on the final positions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def accelerate(positions, masses, softening, out):
    n = positions.shape[0]
    for i in range(n):
        for d in range(3):
            out[i, d] = 0.0
        for j in range(n):
            dx = positions[j, 0] - positions[i, 0]
            dy = positions[j, 1] - positions[i, 1]
            dz = positions[j, 2] - positions[i, 2]
            r2 = dx**2 + dy**2 + dz**2 + softening**2
            pull = masses[j] / (r2 * math.sqrt(r2))
            out[i, 0] += pull * dx
            out[i, 1] += pull * dy
            out[i, 2] += pull * dz


@njit(error_model="numpy")
def loss(initial, velocities, masses, softening, step, steps):
    x, v = initial.copy(), velocities.copy()
    pull = np.empty(x.shape)
    for _ in range(steps):
        x += 0.5 * step * v
        accelerate(x, masses, softening, pull)
        v += step * pull
        x += 0.5 * step * v
    return np.sum(x**2)


@njit(error_model="numpy")
def _add_adjoint(x, masses, softening, pull_bar, x_bar, masses_bar):
    """Adds what the accelerations at x pass on to positions and masses; each pair is met once."""
    n = x.shape[0]
    for i in range(n):
        x_i, y_i, z_i = 0.0, 0.0, 0.0
        for j in range(i + 1, n):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            inverse = 1.0 / (dx * dx + dy * dy + dz * dz + softening * softening)
            cubed = inverse * math.sqrt(inverse)
            to_i = pull_bar[i, 0] * dx + pull_bar[i, 1] * dy + pull_bar[i, 2] * dz
            to_j = pull_bar[j, 0] * dx + pull_bar[j, 1] * dy + pull_bar[j, 2] * dz
            masses_bar[j] += cubed * to_i
            masses_bar[i] -= cubed * to_j
            radial = -3.0 * inverse * (masses[j] * to_i - masses[i] * to_j)
            gx = cubed * (masses[j] * pull_bar[i, 0] - masses[i] * pull_bar[j, 0] + radial * dx)
            gy = cubed * (masses[j] * pull_bar[i, 1] - masses[i] * pull_bar[j, 1] + radial * dy)
            gz = cubed * (masses[j] * pull_bar[i, 2] - masses[i] * pull_bar[j, 2] + radial * dz)
            x_i, y_i, z_i = x_i - gx, y_i - gy, z_i - gz
            x_bar[j, 0] += gx
            x_bar[j, 1] += gy
            x_bar[j, 2] += gz
        x_bar[i, 0] += x_i
        x_bar[i, 1] += y_i
        x_bar[i, 2] += z_i


@njit(error_model="numpy")
def _attract(x, masses, softening, out):
    n = x.shape[0]
    out[:] = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
            inverse = 1.0 / (dx * dx + dy * dy + dz * dz + softening * softening)
            cubed = inverse * math.sqrt(inverse)
            out[i, 0] += masses[j] * cubed * dx
            out[i, 1] += masses[j] * cubed * dy
            out[i, 2] += masses[j] * cubed * dz
            out[j, 0] -= masses[i] * cubed * dx
            out[j, 1] -= masses[i] * cubed * dy
            out[j, 2] -= masses[i] * cubed * dz


@njit(error_model="numpy")
def hand(initial, velocities, masses, softening, step, steps):
    """Positions in the middle of each step are kept; each pair is met once in both sweeps."""
    n = initial.shape[0]
    x, v, pull = initial.copy(), velocities.copy(), np.empty((n, 3))
    middles = np.empty((steps, n, 3))
    half = 0.5 * step
    for s in range(steps):
        for i in range(n):
            for d in range(3):
                x[i, d] += half * v[i, d]
                middles[s, i, d] = x[i, d]
        _attract(x, masses, softening, pull)
        for i in range(n):
            for d in range(3):
                v[i, d] += step * pull[i, d]
                x[i, d] += half * v[i, d]
    total = 0.0
    x_bar, v_bar, masses_bar = 2.0 * x, np.zeros((n, 3)), np.zeros(n)
    for i in range(n):
        for d in range(3):
            total += x[i, d] * x[i, d]
    for s in range(steps - 1, -1, -1):
        for i in range(n):
            for d in range(3):
                v_bar[i, d] += half * x_bar[i, d]
                pull[i, d] = step * v_bar[i, d]
        _add_adjoint(middles[s], masses, softening, pull, x_bar, masses_bar)
        for i in range(n):
            for d in range(3):
                v_bar[i, d] += half * x_bar[i, d]
    return total, (x_bar, v_bar, masses_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _attract_rows(x, masses, softening, inverses, out):
    """Accelerations; keeps the inverse distances."""
    n = masses.size
    xs, ys, zs = x[0], x[1], x[2]
    for i in range(n):
        x_i, y_i, z_i, row = xs[i], ys[i], zs[i], inverses[i]
        for j in range(n):
            dx, dy, dz = xs[j] - x_i, ys[j] - y_i, zs[j] - z_i
            row[j] = 1.0 / math.sqrt(dx * dx + dy * dy + dz * dz + softening * softening)
        a, b, c = 0.0, 0.0, 0.0
        for j in range(n):
            pull = masses[j] * row[j] * row[j] * row[j]
            a += pull * (xs[j] - x_i)
            b += pull * (ys[j] - y_i)
            c += pull * (zs[j] - z_i)
        out[0, i], out[1, i], out[2, i] = a, b, c


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _add_adjoint_rows(x, masses, inverses, pull_bar, x_bar, masses_bar):
    """`_add_adjoint` by rows: a body's sums stay in registers, nothing is written for the other."""
    n = masses.size
    xs, ys, zs = x[0], x[1], x[2]
    a_bars, b_bars, c_bars = pull_bar[0], pull_bar[1], pull_bar[2]
    for i in range(n):
        x_i, y_i, z_i, mass, row = xs[i], ys[i], zs[i], masses[i], inverses[i]
        a_bar, b_bar, c_bar = a_bars[i], b_bars[i], c_bars[i]
        a, b, c, mass_bar = 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            dx, dy, dz = xs[j] - x_i, ys[j] - y_i, zs[j] - z_i
            inverse = row[j] * row[j]
            cubed = inverse * row[j]
            to_j = a_bars[j] * dx + b_bars[j] * dy + c_bars[j] * dz
            to_i = a_bar * dx + b_bar * dy + c_bar * dz
            mass_bar += cubed * to_j
            radial = -3.0 * inverse * (masses[j] * to_i - mass * to_j)
            a += cubed * (masses[j] * a_bar - mass * a_bars[j] + radial * dx)
            b += cubed * (masses[j] * b_bar - mass * b_bars[j] + radial * dy)
            c += cubed * (masses[j] * c_bar - mass * c_bars[j] + radial * dz)
        x_bar[0, i] -= a
        x_bar[1, i] -= b
        x_bar[2, i] -= c
        masses_bar[i] -= mass_bar


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(initial, velocities, masses, softening, step, steps):
    """Coordinates in rows: all pairs of a body are arithmetic of vectors, met twice; roots and quotients are kept."""
    n = masses.size
    x, v, pull = initial.T.copy(), velocities.T.copy(), np.empty((3, n))
    middles, inverses = np.empty((steps, 3, n)), np.empty((steps, n, n))
    half = 0.5 * step
    for s in range(steps):
        middle = middles[s]
        for d in range(3):
            for i in range(n):
                middle[d, i] = x[d, i] + half * v[d, i]
        _attract_rows(middle, masses, softening, inverses[s], pull)
        for d in range(3):
            for i in range(n):
                v[d, i] += step * pull[d, i]
                x[d, i] = middle[d, i] + half * v[d, i]
    x_bar, v_bar, masses_bar = 2.0 * x, np.zeros((3, n)), np.zeros(n)
    for s in range(steps - 1, -1, -1):
        for d in range(3):
            for i in range(n):
                v_bar[d, i] += half * x_bar[d, i]
                pull[d, i] = step * v_bar[d, i]
        _add_adjoint_rows(middles[s], masses, inverses[s], pull, x_bar, masses_bar)
        for d in range(3):
            for i in range(n):
                v_bar[d, i] += half * x_bar[d, i]
    return np.sum(x * x), (x_bar.T, v_bar.T, masses_bar)


def make(size: Size) -> tuple[Any, ...]:
    """A cloud at rest, nearly."""
    n, steps = {"small": (4, 3), "medium": (20, 10), "full": (60, 20)}[size]
    rng = np.random.default_rng(14)
    return (
        rng.standard_normal((n, 3)),
        0.1 * rng.standard_normal((n, 3)),
        rng.uniform(0.5, 1.5, n) / n,
        0.1,
        0.02,
        steps,
    )


CASE = Case("n-body", "20 leapfrog steps of 60 bodies, softened", loss, hand, make, (0, 1, 2), hand_opt)
