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
    """Positions before each step are kept; the springs are recomputed."""
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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _stretch(x, offset, inside, stiffness, length, inverses, pulls):
    """Pulls of the springs from each mass to the one that stands ``offset`` later; keeps their inverse lengths."""
    xs, ys, zs = x[0], x[1], x[2]
    xo, yo, zo = xs[offset:], ys[offset:], zs[offset:]
    px, py, pz = pulls[0, offset:], pulls[1, offset:], pulls[2, offset:]
    for r in range(xo.size):
        dx, dy, dz = xo[r] - xs[r], yo[r] - ys[r], zo[r] - zs[r]
        inverse = inside[r] / math.sqrt(dx * dx + dy * dy + dz * dz)
        factor = stiffness * (inside[r] - length * inverse)
        inverses[r] = inverse
        px[r], py[r], pz[r] = factor * dx, factor * dy, factor * dz


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _stretch_back(x, offset, inside, stiffness, length, inverses, force_bar, pulls):
    """Adds the adjoints of the springs to both ends; returns the cotangent of the stiffness."""
    xs, ys, zs, fx, fy, fz = x[0], x[1], x[2], force_bar[0], force_bar[1], force_bar[2]
    xo, yo, zo, gx, gy, gz = xs[offset:], ys[offset:], zs[offset:], fx[offset:], fy[offset:], fz[offset:]
    px, py, pz = pulls[0, offset:], pulls[1, offset:], pulls[2, offset:]
    total = 0.0
    for r in range(xo.size):
        dx, dy, dz = xo[r] - xs[r], yo[r] - ys[r], zo[r] - zs[r]
        a, b, c = fx[r] - gx[r], fy[r] - gy[r], fz[r] - gz[r]
        inverse = inverses[r]
        slack = inside[r] - length * inverse
        along = a * dx + b * dy + c * dz
        radial = stiffness * length * inverse * inverse * inverse * along
        straight = stiffness * slack
        px[r], py[r], pz[r] = straight * a + radial * dx, straight * b + radial * dy, straight * c + radial * dz
        total += slack * along
    return total


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _move(x, v, along, across, m, weight, damping, step, x_new):
    """One coordinate of all masses but those of the first row; gathers the pulls."""
    a, a_out, b, b_out = along[m:], along[2 * m :], across[m:], across[m + 1 :]
    x_new[:m] = x[:m]
    x_old, x_out, speed = x[m:], x_new[m:], v[m:]
    for r in range(x_old.size):
        speed[r] = damping * speed[r] + step * (a_out[r] - a[r] + b_out[r] - b[r] - weight)
    for r in range(x_old.size):
        x_out[r] = x_old[r] + step * speed[r]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _move_back(x_bar, v_bar, damping, step, force_bar):
    for r in range(x_bar.size):
        velocity_bar = v_bar[r] + step * x_bar[r]
        force_bar[r] = step * velocity_bar
        v_bar[r] = damping * velocity_bar


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _gather_back(a, a_out, b, b_out, x_bar):
    for r in range(x_bar.size):
        x_bar[r] += a[r] - a_out[r] + b[r] - b_out[r]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _swing(xs, inverses, along, across, inside, stiffness, length, damping, step, m):
    """All steps; positions and inverse lengths are kept."""
    v, all_inside = np.zeros(xs.shape[1:]), np.ones(inside.size)
    for s in range(inverses.shape[0]):
        x, after = xs[s], xs[s + 1]
        _stretch(x, m, all_inside, stiffness, length, inverses[s, 0], along)
        _stretch(x, 1, inside, stiffness, length, inverses[s, 1], across)
        for d in range(3):
            _move(x[d], v[d], along[d], across[d], m, 9.81 if d == 2 else 0.0, damping, step, after[d])


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _swing_back(xs, inverses, along, across, inside, stiffness, length, damping, step, m, x_bar):
    """Returns the cotangent of the stiffness."""
    v_bar, force_bar, all_inside, total = np.zeros(x_bar.shape), np.zeros(x_bar.shape), np.ones(inside.size), 0.0
    for s in range(inverses.shape[0] - 1, -1, -1):
        for d in range(3):
            _move_back(x_bar[d, m:], v_bar[d, m:], damping, step, force_bar[d, m:])
        total += _stretch_back(xs[s], m, all_inside, stiffness, length, inverses[s, 0], force_bar, along)
        total += _stretch_back(xs[s], 1, inside, stiffness, length, inverses[s, 1], force_bar, across)
        for d in range(3):
            _gather_back(along[d], along[d, m:], across[d], across[d, 1:], x_bar[d])
    return total


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(initial, stiffness, length, damping, step, steps):
    """Coordinates in rows, so that springs of one direction are one loop over vectors; inverse lengths are kept.

    Springs from the end of one row to the start of the next are there with a factor of zero. Pulls stand where a
    spring ends, so that a mass gathers from its place and from where its own spring ends.
    """
    n, m, _ = initial.shape
    size = n * m
    xs, inverses, inside = np.empty((steps + 1, 3, size)), np.empty((steps, 2, size)), np.ones(size)
    xs[0] = initial.reshape(size, 3).T
    inside[m - 1 :: m] = 0.0
    across, along = np.zeros((3, size + 1)), np.zeros((3, size + m))
    _swing(xs, inverses, along, across, inside, stiffness, length, damping, step, m)
    x_bar, value = 2.0 * xs[steps], np.sum(xs[steps] * xs[steps])
    stiffness_bar = _swing_back(xs, inverses, along, across, inside, stiffness, length, damping, step, m, x_bar)
    return value, (x_bar.T.copy().reshape(n, m, 3), stiffness_bar)


def make(size: Size) -> tuple[Any, ...]:
    """A flat cloth with a little noise."""
    n, steps = {"small": (3, 3), "medium": (10, 10), "full": (30, 40)}[size]
    rng = np.random.default_rng(20)
    grid = np.stack([*np.meshgrid(np.arange(n), np.arange(n), indexing="ij"), np.zeros((n, n))], axis=-1)
    return grid + 0.05 * rng.standard_normal((n, n, 3)), 50.0, 1.0, 0.99, 0.02, steps


CASE = Case("cloth", "40 steps of a cloth of 30 × 30 masses and springs", loss, hand, make, (0, 1), hand_opt)
