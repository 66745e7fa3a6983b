"""A dozen programs that between them touch most of what an option of Numba can change; each as plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from tests.tools.catalogue import floats


def reductions(x, u):
    total = 0.0
    for i in range(x.size):
        total += math.exp(x[i]) * u / (1.0 + x[i])
    return total


def branches(x, u):
    total = 0.0
    for a in x:
        if a * u > 0.7:
            total += math.sqrt(a)
        elif a < 0.6:
            total -= a**3
        else:
            total *= 1.0 + a
    return total


def in_place(x, u):
    y = x.copy()
    for i in range(1, y.size):
        y[i] = y[i] * y[i - 1] + u
    return y[-1] + y[1]


def whole_arrays(x, u):
    y = np.sin(x) * u + x[::-1]
    y[1:] += y[:-1] * x[1:]
    return (y * y).sum() / y.size


def matrices(x, u):
    a = np.outer(x, x) + u * np.eye(x.size)
    return np.sum(a @ a.T) * 0.01


def while_loop(x, u):
    s, i = u, 0
    while s < 30.0 and i < 40:
        s = s * 1.1 + x[i % x.size]
        i += 1
    return s


def newton(x, u):
    total = 0.0
    for a in x:
        guess = 1.0
        for _ in range(5):
            guess = 0.5 * (guess + a * u / guess)
        total += guess
    return total


def lists(x, u):
    values = [a * u for a in x]
    values.append(values[0] * values[1])
    return sum(values) * values[-1]


def tuples(x, u):
    state = (x[0], x[1], u)
    for a in x:
        state = (state[1], state[2] * a, state[0] + a)
    return state[0] * state[1] + state[2]


def matrix_loops(x, u):
    n = x.size
    a = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            a[i, j] = x[i] * x[j] + (u if i == j else 0.0)
    for k in range(n):
        a[k, k] = math.sqrt(a[k, k])
        for i in range(k + 1, n):
            a[i, k] = a[i, k] / a[k, k] * 0.1
    return np.trace(a) + a[n - 1, 0]


def complex_numbers(x, u):
    z = complex(u, x[0])
    for a in x:
        z = z * z * 0.3 + complex(a, u)
    return abs(z)


def sorted_order(x, u):
    return np.sort(x * u)[::2].sum() * np.median(x) + x.max()


PROGRAMS: Final[tuple[Callable[..., Any], ...]] = (
    reductions, branches, in_place, whole_arrays, matrices, while_loop, newton, lists, tuples, matrix_loops,
    complex_numbers, sorted_order,
)  # fmt: skip


def arguments() -> tuple[Any, ...]:
    """Where each program is differentiated."""
    return floats(6), 0.8
