"""Steps of the shallow-water equations, periodic, Lax-Friedrichs; loss on the final surface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size
from bench.cases.vectors import fill_border

GRAVITY = 9.81


@njit(error_model="numpy")
def loss(surface, target, ratio, steps):
    n = surface.shape[0]
    h, p, q = surface.copy(), np.zeros((n, n)), np.zeros((n, n))  # depth, momentum along both axes
    for _ in range(steps):
        h_new, p_new, q_new = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
        for i in range(n):
            for j in range(n):
                a, b, c, d = (i - 1) % n, (i + 1) % n, (j - 1) % n, (j + 1) % n
                h_new[i, j] = 0.25 * (h[a, j] + h[b, j] + h[i, c] + h[i, d])
                h_new[i, j] -= ratio * (p[b, j] - p[a, j] + q[i, d] - q[i, c])
                below = p[b, j] ** 2 / h[b, j] + 0.5 * GRAVITY * h[b, j] ** 2
                above = p[a, j] ** 2 / h[a, j] + 0.5 * GRAVITY * h[a, j] ** 2
                across = p[i, d] * q[i, d] / h[i, d] - p[i, c] * q[i, c] / h[i, c]
                p_new[i, j] = 0.25 * (p[a, j] + p[b, j] + p[i, c] + p[i, d]) - ratio * (below - above + across)
                right = q[i, d] ** 2 / h[i, d] + 0.5 * GRAVITY * h[i, d] ** 2
                left = q[i, c] ** 2 / h[i, c] + 0.5 * GRAVITY * h[i, c] ** 2
                across = p[b, j] * q[b, j] / h[b, j] - p[a, j] * q[a, j] / h[a, j]
                q_new[i, j] = 0.25 * (q[a, j] + q[b, j] + q[i, c] + q[i, d]) - ratio * (right - left + across)
        h, p, q = h_new, p_new, q_new
    return 0.5 * np.sum((h - target) ** 2)


@njit(error_model="numpy")
def _step(h, p, q, ratio, fluxes, h_new, p_new, q_new):
    """Fluxes of each cell are computed once."""
    n = h.shape[0]
    for i in range(n):
        for j in range(n):
            inverse, pressure = 1.0 / h[i, j], 0.5 * GRAVITY * h[i, j] * h[i, j]
            fluxes[0, i, j] = p[i, j] * p[i, j] * inverse + pressure
            fluxes[1, i, j] = p[i, j] * q[i, j] * inverse
            fluxes[2, i, j] = q[i, j] * q[i, j] * inverse + pressure
    f, g, k = fluxes[0], fluxes[1], fluxes[2]
    for i in range(n):
        a, b = i - 1 if i > 0 else n - 1, i + 1 if i < n - 1 else 0
        for j in range(n):
            c, d = j - 1 if j > 0 else n - 1, j + 1 if j < n - 1 else 0
            h_mean = 0.25 * (h[a, j] + h[b, j] + h[i, c] + h[i, d])
            p_mean = 0.25 * (p[a, j] + p[b, j] + p[i, c] + p[i, d])
            q_mean = 0.25 * (q[a, j] + q[b, j] + q[i, c] + q[i, d])
            h_new[i, j] = h_mean - ratio * (p[b, j] - p[a, j] + q[i, d] - q[i, c])
            p_new[i, j] = p_mean - ratio * (f[b, j] - f[a, j] + g[i, d] - g[i, c])
            q_new[i, j] = q_mean - ratio * (k[i, d] - k[i, c] + g[b, j] - g[a, j])


@njit(error_model="numpy")
def hand(surface, target, ratio, steps):
    """The fields of all steps are kept; a step's adjoint gathers the cotangents of a cell's four neighbours."""
    n = surface.shape[0]
    fields, fluxes = np.zeros((steps + 1, 3, n, n)), np.empty((3, n, n))
    fields[0, 0] = surface
    for s in range(steps):
        now, new = fields[s], fields[s + 1]
        _step(now[0], now[1], now[2], ratio, fluxes, new[0], new[1], new[2])
    bar, bar_new = np.zeros((3, n, n)), np.empty((3, n, n))
    total = 0.0
    for i in range(n):
        for j in range(n):
            difference = fields[steps, 0, i, j] - target[i, j]
            total += difference * difference
            bar[0, i, j] = difference
    for s in range(steps - 1, -1, -1):
        h, p, q = fields[s, 0], fields[s, 1], fields[s, 2]
        u, v, w = bar[0], bar[1], bar[2]
        for i in range(n):
            a, b = i - 1 if i > 0 else n - 1, i + 1 if i < n - 1 else 0
            for j in range(n):
                c, d = j - 1 if j > 0 else n - 1, j + 1 if j < n - 1 else 0
                f_bar = ratio * (v[b, j] - v[a, j])
                g_bar = ratio * (v[i, d] - v[i, c] + w[b, j] - w[a, j])
                k_bar = ratio * (w[i, d] - w[i, c])
                inverse = 1.0 / h[i, j]
                x, y = p[i, j] * inverse, q[i, j] * inverse
                depth = GRAVITY * h[i, j] * (f_bar + k_bar) - (x * x * f_bar + x * y * g_bar + y * y * k_bar)
                bar_new[0, i, j] = 0.25 * (u[a, j] + u[b, j] + u[i, c] + u[i, d]) + depth
                d_p = ratio * (u[b, j] - u[a, j]) + 2.0 * x * f_bar + y * g_bar
                d_q = ratio * (u[i, d] - u[i, c]) + 2.0 * y * k_bar + x * g_bar
                bar_new[1, i, j] = 0.25 * (v[a, j] + v[b, j] + v[i, c] + v[i, d]) + d_p
                bar_new[2, i, j] = 0.25 * (w[a, j] + w[b, j] + w[i, c] + w[i, d]) + d_q
        bar, bar_new = bar_new, bar
    return 0.5 * total, (bar[0].copy(),)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _wrap(fields):
    """Puts what lies beyond the edges into the border of each field."""
    for k in range(fields.shape[0]):
        fill_border(fields[k])


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _around(flat, wide):
    """North, west, east and south of all cells from the first to the last, in one vector each."""
    return flat[1:], flat[wide:], flat[wide + 2 :], flat[2 * wide + 1 :]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _step_flat(now, new, fluxes, inverses, wide, ratio):
    """A step, on flat fields with borders; keeps the inverse depths."""
    h, p, q, f, g, k = now[0], now[1], now[2], fluxes[0], fluxes[1], fluxes[2]
    for r in range(h.size):
        inverse, pressure = 1.0 / h[r], 0.5 * GRAVITY * h[r] * h[r]
        inverses[r] = inverse
        f[r], g[r] = p[r] * p[r] * inverse + pressure, p[r] * q[r] * inverse
        k[r] = q[r] * q[r] * inverse + pressure
    ha, hc, hd, hb = _around(h, wide)
    pa, pc, pd, pb = _around(p, wide)
    qa, qc, qd, qb = _around(q, wide)
    (fa, _, _, fb), (ga, gc, gd, gb), (_, kc, kd, _) = _around(f, wide), _around(g, wide), _around(k, wide)
    h_new, p_new, q_new = new[0, wide + 1 :], new[1, wide + 1 :], new[2, wide + 1 :]
    for r in range(hb.size - 1):
        h_new[r] = 0.25 * (ha[r] + hb[r] + hc[r] + hd[r]) - ratio * (pb[r] - pa[r] + qd[r] - qc[r])
    for r in range(hb.size - 1):
        p_new[r] = 0.25 * (pa[r] + pb[r] + pc[r] + pd[r]) - ratio * (fb[r] - fa[r] + gd[r] - gc[r])
    for r in range(hb.size - 1):
        q_new[r] = 0.25 * (qa[r] + qb[r] + qc[r] + qd[r]) - ratio * (kd[r] - kc[r] + gb[r] - ga[r])


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _step_back(now, bar, bar_new, inverses, wide, ratio):
    h, p, q, inverses = now[0, wide + 1 :], now[1, wide + 1 :], now[2, wide + 1 :], inverses[wide + 1 :]
    ua, uc, ud, ub = _around(bar[0], wide)
    va, vc, vd, vb = _around(bar[1], wide)
    wa, wc, wd, wb = _around(bar[2], wide)
    u_new, v_new, w_new = bar_new[0, wide + 1 :], bar_new[1, wide + 1 :], bar_new[2, wide + 1 :]
    for r in range(ub.size - 1):
        x, y = p[r] * inverses[r], q[r] * inverses[r]
        f_bar, k_bar = ratio * (vb[r] - va[r]), ratio * (wd[r] - wc[r])
        g_bar = ratio * (vd[r] - vc[r] + wb[r] - wa[r])
        depth = GRAVITY * h[r] * (f_bar + k_bar) - (x * x * f_bar + x * y * g_bar + y * y * k_bar)
        u_new[r] = 0.25 * (ua[r] + ub[r] + uc[r] + ud[r]) + depth
        d_p = ratio * (ub[r] - ua[r]) + 2.0 * x * f_bar + y * g_bar
        d_q = ratio * (ud[r] - uc[r]) + 2.0 * y * k_bar + x * g_bar
        v_new[r] = 0.25 * (va[r] + vb[r] + vc[r] + vd[r]) + d_p
        w_new[r] = 0.25 * (wa[r] + wb[r] + wc[r] + wd[r]) + d_q


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(surface, target, ratio, steps):
    """Fields with a border of what lies beyond the edges: a step is loops over vectors, without choices."""
    n = surface.shape[0]
    wide = n + 2
    fields, bars = np.empty((steps + 1, 3, wide, wide)), np.zeros((2, 3, wide, wide))
    flat, bars_flat = fields.reshape(steps + 1, 3, wide * wide), bars.reshape(2, 3, wide * wide)
    fluxes, inverses = np.empty((3, wide * wide)), np.empty((steps, wide * wide))
    fields[0, 0, 1:-1, 1:-1], fields[0, 1:] = surface, 0.0
    for s in range(steps):
        _wrap(fields[s])
        _step_flat(flat[s], flat[s + 1], fluxes, inverses[s], wide, ratio)
    total = 0.0
    for i in range(n):
        for j in range(n):
            difference = fields[steps, 0, i + 1, j + 1] - target[i, j]
            total += difference * difference
            bars[0, 0, i + 1, j + 1] = difference
    now = 0
    for s in range(steps - 1, -1, -1):
        _wrap(bars[now])
        _step_back(flat[s], bars_flat[now], bars_flat[1 - now], inverses[s], wide, ratio)
        now = 1 - now
    return 0.5 * total, (bars[now, 0, 1:-1, 1:-1].copy(),)


def make(size: Size) -> tuple[Any, ...]:
    """A surface with small waves; waves run a tenth of a cell in a step."""
    n, steps = {"small": (4, 3), "medium": (16, 20), "full": (48, 40)}[size]
    rng = np.random.default_rng(22)
    return 1.0 + 0.1 * rng.standard_normal((n, n)), np.ones((n, n)), 0.02, steps


CASE = Case("shallow-water", "40 steps of shallow water, 48 × 48, periodic", loss, hand, make, (0,), hand_opt)
