"""Classical Runge-Kutta steps of the Lotka-Volterra equations; loss on the final state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def slope(state, rates, out):
    prey, predator = state[0], state[1]
    out[0] = rates[0] * prey - rates[1] * prey * predator
    out[1] = rates[2] * prey * predator - rates[3] * predator


@njit(error_model="numpy")
def loss(initial, rates, target, step, steps):
    n = initial.shape[0]
    state = initial.copy()
    inner = np.empty(n)
    k1, k2, k3, k4 = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for _ in range(steps):
        slope(state, rates, k1)
        for i in range(n):
            inner[i] = state[i] + 0.5 * step * k1[i]
        slope(inner, rates, k2)
        for i in range(n):
            inner[i] = state[i] + 0.5 * step * k2[i]
        slope(inner, rates, k3)
        for i in range(n):
            inner[i] = state[i] + step * k3[i]
        slope(inner, rates, k4)
        for i in range(n):
            state[i] += step / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
    total = 0.0
    for i in range(n):
        total += (state[i] - target[i]) ** 2
    return total


@njit(error_model="numpy", inline="always")
def _slope(x, y, a, b, c, d):
    return a * x - b * x * y, c * x * y - d * y


@njit(error_model="numpy", inline="always")
def _slope_bar(x, y, a, b, c, d, u, v):
    """Cotangents of x and y for the cotangents (u, v) of the slope."""
    return u * (a - b * y) + v * c * y, v * (c * x - d) - u * b * x


@njit(error_model="numpy")
def hand(initial, rates, target, step, steps):
    """All state in registers; the state before each step is kept, the adjoint recomputes the stages of its step."""
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    half, sixth = 0.5 * step, step / 6.0
    x, y = initial[0], initial[1]
    states = np.empty((steps, 2))
    for s in range(steps):
        states[s, 0], states[s, 1] = x, y
        u1, v1 = _slope(x, y, a, b, c, d)
        u2, v2 = _slope(x + half * u1, y + half * v1, a, b, c, d)
        u3, v3 = _slope(x + half * u2, y + half * v2, a, b, c, d)
        u4, v4 = _slope(x + step * u3, y + step * v3, a, b, c, d)
        x += sixth * (u1 + 2.0 * u2 + 2.0 * u3 + u4)
        y += sixth * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
    value = (x - target[0]) ** 2 + (y - target[1]) ** 2
    p, q = 2.0 * (x - target[0]), 2.0 * (y - target[1])
    a_bar, b_bar, c_bar, d_bar = 0.0, 0.0, 0.0, 0.0
    for s in range(steps - 1, -1, -1):
        x1, y1 = states[s, 0], states[s, 1]
        u1, v1 = _slope(x1, y1, a, b, c, d)
        x2, y2 = x1 + half * u1, y1 + half * v1
        u2, v2 = _slope(x2, y2, a, b, c, d)
        x3, y3 = x1 + half * u2, y1 + half * v2
        u3, v3 = _slope(x3, y3, a, b, c, d)
        x4, y4 = x1 + step * u3, y1 + step * v3
        u4_bar, v4_bar = sixth * p, sixth * q
        x4_bar, y4_bar = _slope_bar(x4, y4, a, b, c, d, u4_bar, v4_bar)
        u3_bar, v3_bar = 2.0 * sixth * p + step * x4_bar, 2.0 * sixth * q + step * y4_bar
        x3_bar, y3_bar = _slope_bar(x3, y3, a, b, c, d, u3_bar, v3_bar)
        u2_bar, v2_bar = 2.0 * sixth * p + half * x3_bar, 2.0 * sixth * q + half * y3_bar
        x2_bar, y2_bar = _slope_bar(x2, y2, a, b, c, d, u2_bar, v2_bar)
        u1_bar, v1_bar = sixth * p + half * x2_bar, sixth * q + half * y2_bar
        x1_bar, y1_bar = _slope_bar(x1, y1, a, b, c, d, u1_bar, v1_bar)
        a_bar += u1_bar * x1 + u2_bar * x2 + u3_bar * x3 + u4_bar * x4
        b_bar -= u1_bar * x1 * y1 + u2_bar * x2 * y2 + u3_bar * x3 * y3 + u4_bar * x4 * y4
        c_bar += v1_bar * x1 * y1 + v2_bar * x2 * y2 + v3_bar * x3 * y3 + v4_bar * x4 * y4
        d_bar -= v1_bar * y1 + v2_bar * y2 + v3_bar * y3 + v4_bar * y4
        p += x1_bar + x2_bar + x3_bar + x4_bar
        q += y1_bar + y2_bar + y3_bar + y4_bar
    return value, (np.array([p, q]), np.array([a_bar, b_bar, c_bar, d_bar]))


@njit(error_model="numpy", fastmath={"contract"})
def _orbit(x, y, rates, step, xs, ys):
    """All states; each stage's quotient is written so that it waits for two operations, not for five."""
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    half, sixth, third = 0.5 * step, step / 6.0, 1.0 / 3.0
    for s in range(xs.size):
        xs[s], ys[s] = x, y
        x2, y2 = x + (half * x) * (a - b * y), y + (half * y) * (c * x - d)
        x3, y3 = x + (half * x2) * (a - b * y2), y + (half * y2) * (c * x2 - d)
        x4, y4 = x + (step * x3) * (a - b * y3), y + (step * y3) * (c * x3 - d)
        x_part, y_part = (x2 - x + 2.0 * x3 + x4) * third, (y2 - y + 2.0 * y3 + y4) * third
        x, y = x_part + (sixth * x4) * (a - b * y4), y_part + (sixth * y4) * (c * x4 - d)
    return x, y


@njit(error_model="numpy", inline="always")
def _stages(x1, y1, a, b, c, d, half, step):
    """States at which the second to fourth slopes are taken."""
    u1, v1 = _slope(x1, y1, a, b, c, d)
    x2, y2 = x1 + half * u1, y1 + half * v1
    u2, v2 = _slope(x2, y2, a, b, c, d)
    x3, y3 = x1 + half * u2, y1 + half * v2
    u3, v3 = _slope(x3, y3, a, b, c, d)
    return x2, y2, x3, y3, x1 + step * u3, y1 + step * v3


@njit(error_model="numpy", inline="always")
def _slope_dot(x, y, a, b, c, d, f, g):
    """Tangent of the slope for the tangents f and g of x and y."""
    return (a - b * y) * f - b * x * g, c * y * f + (c * x - d) * g


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _jacobians(xs, ys, rates, step, jacobians):
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    half, sixth = 0.5 * step, step / 6.0
    for k in range(2):
        d_x, d_y = jacobians[2 * k], jacobians[2 * k + 1]
        f, g = 1.0 - k, 0.0 + k
        for s in range(xs.size):
            x2, y2, x3, y3, x4, y4 = _stages(xs[s], ys[s], a, b, c, d, half, step)
            f1, g1 = _slope_dot(xs[s], ys[s], a, b, c, d, f, g)
            f2, g2 = _slope_dot(x2, y2, a, b, c, d, f + half * f1, g + half * g1)
            f3, g3 = _slope_dot(x3, y3, a, b, c, d, f + half * f2, g + half * g2)
            f4, g4 = _slope_dot(x4, y4, a, b, c, d, f + step * f3, g + step * g3)
            d_x[s] = f + sixth * (f1 + 2.0 * f2 + 2.0 * f3 + f4)
            d_y[s] = g + sixth * (g1 + 2.0 * g2 + 2.0 * g3 + g4)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _add_rates_bar(xs, ys, ps, qs, rates, step, bar):
    """The adjoint of each step as by hand, for cotangents that are known."""
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    half, sixth = 0.5 * step, step / 6.0
    a_bar, b_bar, c_bar, d_bar = 0.0, 0.0, 0.0, 0.0
    for s in range(xs.size):
        x1, y1, p, q = xs[s], ys[s], ps[s], qs[s]
        x2, y2, x3, y3, x4, y4 = _stages(x1, y1, a, b, c, d, half, step)
        u4, v4 = sixth * p, sixth * q
        f, g = _slope_bar(x4, y4, a, b, c, d, u4, v4)
        u3, v3 = 2.0 * u4 + step * f, 2.0 * v4 + step * g
        f, g = _slope_bar(x3, y3, a, b, c, d, u3, v3)
        u2, v2 = 2.0 * u4 + half * f, 2.0 * v4 + half * g
        f, g = _slope_bar(x2, y2, a, b, c, d, u2, v2)
        u1, v1 = u4 + half * f, v4 + half * g
        a_bar += u1 * x1 + u2 * x2 + u3 * x3 + u4 * x4
        b_bar -= u1 * x1 * y1 + u2 * x2 * y2 + u3 * x3 * y3 + u4 * x4 * y4
        c_bar += v1 * x1 * y1 + v2 * x2 * y2 + v3 * x3 * y3 + v4 * x4 * y4
        d_bar -= v1 * y1 + v2 * y2 + v3 * y3 + v4 * y4
    bar[0] += a_bar
    bar[1] += b_bar
    bar[2] += c_bar
    bar[3] += d_bar


@njit(error_model="numpy", fastmath={"contract"})
def hand_opt(initial, rates, target, step, steps):
    """Only what a step must wait for is sequential: states, and cotangents through Jacobians of two by two.

    Jacobians and the cotangents of the rates are arithmetic of vectors, for blocks of steps at once.
    """
    block = 256
    xs, ys, jacobians, bars = np.empty(steps), np.empty(steps), np.empty((4, block)), np.empty((2, block))
    x, y = _orbit(initial[0], initial[1], rates, step, xs, ys)
    value = (x - target[0]) ** 2 + (y - target[1]) ** 2
    p, q = 2.0 * (x - target[0]), 2.0 * (y - target[1])
    rates_bar = np.zeros(4)
    for end in range(steps, 0, -block):
        start = max(end - block, 0)
        size = end - start
        _jacobians(xs[start:end], ys[start:end], rates, step, jacobians)
        for s in range(size - 1, -1, -1):
            bars[0, s], bars[1, s] = p, q
            p_new = jacobians[0, s] * p + jacobians[1, s] * q
            q = jacobians[2, s] * p + jacobians[3, s] * q
            p = p_new
        _add_rates_bar(xs[start:end], ys[start:end], bars[0, :size], bars[1, :size], rates, step, rates_bar)
    return value, (np.array([p, q]), rates_bar)


def make(size: Size) -> tuple[Any, ...]:
    """About one period of the cycle."""
    steps = {"small": 20, "medium": 500, "full": 10_000}[size]
    return np.array([10.0, 5.0]), np.array([1.1, 0.4, 0.1, 0.4]), np.array([8.0, 3.0]), 10.0 / steps, steps


CASE = Case("ode", "Lotka-Volterra by RK4, 10,000 steps", loss, hand, make, (0, 1), hand_opt)
