"""Explicit steps of the Brusselator, a reaction with diffusion, on a periodic square; loss on the final fields."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size
from bench.cases.vectors import fill_border


@njit(error_model="numpy")
def loss(u0, v0, a, b, diffusion, step, steps):
    n = u0.shape[0]
    u, v = u0.copy(), v0.copy()
    for _ in range(steps):
        u_new, v_new = np.empty((n, n)), np.empty((n, n))
        for i in range(n):
            for j in range(n):
                north, south, west, east = (i - 1) % n, (i + 1) % n, (j - 1) % n, (j + 1) % n
                spread_u = u[north, j] + u[south, j] + u[i, west] + u[i, east] - 4.0 * u[i, j]
                spread_v = v[north, j] + v[south, j] + v[i, west] + v[i, east] - 4.0 * v[i, j]
                reaction = u[i, j] ** 2 * v[i, j]
                u_new[i, j] = u[i, j] + step * (a + reaction - (b + 1.0) * u[i, j] + diffusion * spread_u)
                v_new[i, j] = v[i, j] + step * (b * u[i, j] - reaction + diffusion * spread_v)
        u, v = u_new, v_new
    return np.sum(u**2) + np.sum(v**2)


@njit(error_model="numpy")
def hand(u0, v0, a, b, diffusion, step, steps):
    """All fields are kept; the diffusion is its own transpose, so that a step's adjoint gathers."""
    n = u0.shape[0]
    fields = np.empty((steps + 1, 2, n, n))
    fields[0, 0], fields[0, 1] = u0, v0
    rate = step * diffusion
    for s in range(steps):
        u, v = fields[s, 0], fields[s, 1]
        u_new, v_new = fields[s + 1, 0], fields[s + 1, 1]
        for i in range(n):
            north, south = i - 1 if i > 0 else n - 1, i + 1 if i < n - 1 else 0
            for j in range(n):
                west, east = j - 1 if j > 0 else n - 1, j + 1 if j < n - 1 else 0
                x, y = u[i, j], v[i, j]
                spread_u = u[north, j] + u[south, j] + u[i, west] + u[i, east] - 4.0 * x
                spread_v = v[north, j] + v[south, j] + v[i, west] + v[i, east] - 4.0 * y
                reaction = x * x * y
                u_new[i, j] = x + step * (a + reaction - (b + 1.0) * x) + rate * spread_u
                v_new[i, j] = y + step * (b * x - reaction) + rate * spread_v
    total = 0.0
    p, q = 2.0 * fields[steps, 0], 2.0 * fields[steps, 1]
    for i in range(n):
        for j in range(n):
            total += fields[steps, 0, i, j] ** 2 + fields[steps, 1, i, j] ** 2
    p_new, q_new = np.empty((n, n)), np.empty((n, n))
    for s in range(steps - 1, -1, -1):
        u, v = fields[s, 0], fields[s, 1]
        for i in range(n):
            north, south = i - 1 if i > 0 else n - 1, i + 1 if i < n - 1 else 0
            for j in range(n):
                west, east = j - 1 if j > 0 else n - 1, j + 1 if j < n - 1 else 0
                x, y, f, g = u[i, j], v[i, j], p[i, j], q[i, j]
                spread_f = p[north, j] + p[south, j] + p[i, west] + p[i, east] - 4.0 * f
                spread_g = q[north, j] + q[south, j] + q[i, west] + q[i, east] - 4.0 * g
                difference = f - g
                p_new[i, j] = f + step * (2.0 * x * y * difference - (b + 1.0) * f + b * g) + rate * spread_f
                q_new[i, j] = g + step * x * x * difference + rate * spread_g
        p, p_new, q, q_new = p_new, p, q_new, q
    return total, (p, q)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _around(flat, wide):
    """North, west, middle, east and south of all cells from the first to the last, in one vector each."""
    return flat[1:], flat[wide:], flat[wide + 1 :], flat[wide + 2 :], flat[2 * wide + 1 :]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _react(u, v, u_new, v_new, wide, a, b, step, rate):
    (un, uw, um, ue, us), (vn, vw, vm, ve, vs) = _around(u, wide), _around(v, wide)
    u_out, v_out = u_new[wide + 1 :], v_new[wide + 1 :]
    for r in range(us.size - 1):
        x, y = um[r], vm[r]
        reaction = step * x * x * y
        u_out[r] = (
            x * (1.0 - step * (b + 1.0) - 4.0 * rate) + step * a + reaction + rate * (un[r] + us[r] + uw[r] + ue[r])
        )
        v_out[r] = y * (1.0 - 4.0 * rate) + step * b * x - reaction + rate * (vn[r] + vs[r] + vw[r] + ve[r])


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _react_back(u, v, p, q, p_new, q_new, wide, b, step, rate):
    (pn, pw, pm, pe, ps), (qn, qw, qm, qe, qs) = _around(p, wide), _around(q, wide)
    um, vm, p_out, q_out = u[wide + 1 :], v[wide + 1 :], p_new[wide + 1 :], q_new[wide + 1 :]
    for r in range(ps.size - 1):
        x, y, f, g = um[r], vm[r], pm[r], qm[r]
        turned = step * x * (f - g)
        spread = f * (1.0 - step * (b + 1.0) - 4.0 * rate) + step * b * g + rate * (pn[r] + ps[r] + pw[r] + pe[r])
        p_out[r] = spread + 2.0 * y * turned
        q_out[r] = g * (1.0 - 4.0 * rate) + x * turned + rate * (qn[r] + qs[r] + qw[r] + qe[r])


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(u0, v0, a, b, diffusion, step, steps):
    """Fields with a border of what lies beyond the edges: a step is one loop over vectors, without choices."""
    n = u0.shape[0]
    wide = n + 2
    fields, bars = np.empty((steps + 1, 2, wide, wide)), np.empty((2, 2, wide, wide))
    fields[0, 0, 1:-1, 1:-1], fields[0, 1, 1:-1, 1:-1] = u0, v0
    flat, bars_flat = fields.reshape(steps + 1, 2, wide * wide), bars.reshape(2, 2, wide * wide)
    rate = step * diffusion
    for s in range(steps):
        fill_border(fields[s, 0])
        fill_border(fields[s, 1])
        _react(flat[s, 0], flat[s, 1], flat[s + 1, 0], flat[s + 1, 1], wide, a, b, step, rate)
    total = 0.0
    for k in range(2):
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                total += fields[steps, k, i, j] ** 2
                bars[0, k, i, j] = 2.0 * fields[steps, k, i, j]
    now = 0
    for s in range(steps - 1, -1, -1):
        fill_border(bars[now, 0])
        fill_border(bars[now, 1])
        p, q, p_new, q_new = bars_flat[now, 0], bars_flat[now, 1], bars_flat[1 - now, 0], bars_flat[1 - now, 1]
        _react_back(flat[s, 0], flat[s, 1], p, q, p_new, q_new, wide, b, step, rate)
        now = 1 - now
    return total, (bars[now, 0, 1:-1, 1:-1].copy(), bars[now, 1, 1:-1, 1:-1].copy())


def make(size: Size) -> tuple[Any, ...]:
    """Random fields around the fixed point."""
    n, steps = {"small": (3, 3), "medium": (16, 20), "full": (48, 50)}[size]
    rng = np.random.default_rng(13)
    u, v = 1.0 + 0.2 * rng.standard_normal((n, n)), 1.7 + 0.2 * rng.standard_normal((n, n))
    return u, v, 1.0, 1.7, 0.1, 0.05, steps


CASE = Case(
    "brusselator", "50 explicit steps of the Brusselator, 48 × 48, periodic", loss, hand, make, (0, 1), hand_opt
)
