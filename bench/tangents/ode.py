"""Lotka-Volterra by RK4: state, slopes and their tangents in registers."""

from __future__ import annotations

from numba import njit


@njit(error_model="numpy", inline="always")
def _slope(x, y, a, b, c, d):
    return a * x - b * x * y, c * x * y - d * y


@njit(error_model="numpy", inline="always")
def _slope_dot(x, y, x_dot, y_dot, rates, rates_dot):
    product, product_dot = x * y, x_dot * y + x * y_dot
    first = rates_dot[0] * x + rates[0] * x_dot - rates_dot[1] * product - rates[1] * product_dot
    second = rates_dot[2] * product + rates[2] * product_dot - rates_dot[3] * y - rates[3] * y_dot
    return first, second


@njit(error_model="numpy")
def hand(tangents, initial, rates, target, step, steps):
    """State, slopes and their tangents in registers."""
    initial_dot, rates_dot = tangents
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    p, q = (a, b, c, d), (rates_dot[0], rates_dot[1], rates_dot[2], rates_dot[3])
    x, y, u, v = initial[0], initial[1], initial_dot[0], initial_dot[1]
    half, sixth = 0.5 * step, step / 6.0
    for _ in range(steps):
        x1, y1 = _slope(x, y, a, b, c, d)
        u1, v1 = _slope_dot(x, y, u, v, p, q)
        xi, yi, ui, vi = x + half * x1, y + half * y1, u + half * u1, v + half * v1
        x2, y2 = _slope(xi, yi, a, b, c, d)
        u2, v2 = _slope_dot(xi, yi, ui, vi, p, q)
        xi, yi, ui, vi = x + half * x2, y + half * y2, u + half * u2, v + half * v2
        x3, y3 = _slope(xi, yi, a, b, c, d)
        u3, v3 = _slope_dot(xi, yi, ui, vi, p, q)
        xi, yi, ui, vi = x + step * x3, y + step * y3, u + step * u3, v + step * v3
        x4, y4 = _slope(xi, yi, a, b, c, d)
        u4, v4 = _slope_dot(xi, yi, ui, vi, p, q)
        x += sixth * (x1 + 2.0 * x2 + 2.0 * x3 + x4)
        y += sixth * (y1 + 2.0 * y2 + 2.0 * y3 + y4)
        u += sixth * (u1 + 2.0 * u2 + 2.0 * u3 + u4)
        v += sixth * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
    first, second = x - target[0], y - target[1]
    return first * first + second * second, 2.0 * (first * u + second * v)
