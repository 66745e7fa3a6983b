"""Lennard-Jones energy of all pairs of particles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def energy(positions, epsilon, sigma):
    n = positions.shape[0]
    total = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = positions[i, 0] - positions[j, 0]
            dy = positions[i, 1] - positions[j, 1]
            dz = positions[i, 2] - positions[j, 2]
            s2 = sigma * sigma / (dx * dx + dy * dy + dz * dz)
            s6 = s2 * s2 * s2
            total += 4.0 * epsilon * (s6 * s6 - s6)
    return total


@njit(error_model="numpy")
def hand(positions, epsilon, sigma):
    """Energy and forces in one sweep over the pairs; the sums of particle i stay in registers."""
    n = positions.shape[0]
    positions_bar = np.zeros((n, 3))
    total = 0.0
    for i in range(n):
        x, y, z = positions[i, 0], positions[i, 1], positions[i, 2]
        x_bar, y_bar, z_bar = 0.0, 0.0, 0.0
        for j in range(i + 1, n):
            dx, dy, dz = x - positions[j, 0], y - positions[j, 1], z - positions[j, 2]
            inverse = 1.0 / (dx * dx + dy * dy + dz * dz)
            s2 = sigma * sigma * inverse
            s6 = s2 * s2 * s2
            total += s6 * s6 - s6
            factor = -24.0 * epsilon * (2.0 * s6 * s6 - s6) * inverse
            x_bar += factor * dx
            y_bar += factor * dy
            z_bar += factor * dz
            positions_bar[j, 0] -= factor * dx
            positions_bar[j, 1] -= factor * dy
            positions_bar[j, 2] -= factor * dz
        positions_bar[i, 0] += x_bar
        positions_bar[i, 1] += y_bar
        positions_bar[i, 2] += z_bar
    return 4.0 * epsilon * total, (positions_bar,)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(positions, epsilon, sigma):
    """Blocks of pairs: factors of a row first, which is arithmetic of vectors, then what each does to the forces."""
    n = positions.shape[0]
    xs, ys, zs = positions[:, 0].copy(), positions[:, 1].copy(), positions[:, 2].copy()
    bars, factors = np.zeros((3, n)), np.empty(n)
    total = 0.0
    for i in range(n - 1):
        x, y, z = xs[i], ys[i], zs[i]
        x_bar, y_bar, z_bar = 0.0, 0.0, 0.0
        x_row, y_row, z_row, factor_row = xs[i + 1 :], ys[i + 1 :], zs[i + 1 :], factors[i + 1 :]
        for j in range(factor_row.size):
            dx, dy, dz = x - x_row[j], y - y_row[j], z - z_row[j]
            inverse = 1.0 / (dx * dx + dy * dy + dz * dz)
            s2 = sigma * sigma * inverse
            s6 = s2 * s2 * s2
            total += s6 * s6 - s6
            factor_row[j] = (s6 - 2.0 * s6 * s6) * inverse
        x_bars, y_bars, z_bars = bars[0, i + 1 :], bars[1, i + 1 :], bars[2, i + 1 :]
        for j in range(factor_row.size):
            factor = factor_row[j]
            x_pull, y_pull, z_pull = factor * (x - x_row[j]), factor * (y - y_row[j]), factor * (z - z_row[j])
            x_bar += x_pull
            y_bar += y_pull
            z_bar += z_pull
            x_bars[j] -= x_pull
            y_bars[j] -= y_pull
            z_bars[j] -= z_pull
        bars[0, i] += x_bar
        bars[1, i] += y_bar
        bars[2, i] += z_bar
    return 4.0 * epsilon * total, (24.0 * epsilon * bars.T,)


def flops(positions, epsilon, sigma):
    n = positions.shape[0]
    return 28 * n * (n - 1) // 2


def make(size: Size) -> tuple[Any, ...]:
    """A cubic lattice with a little noise, so that no pair is close enough to drown the others."""
    side, n = {"small": (2, 7), "medium": (5, 100), "full": (8, 500)}[size]
    rng = np.random.default_rng(2)
    lattice = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    return 1.2 * lattice[:n] + 0.05 * rng.standard_normal((n, 3)), 1.0, 1.0


CASE = Case("lennard-jones", "Lennard-Jones energy, all pairs of 500", energy, hand, make, (0,), hand_opt, flops)
