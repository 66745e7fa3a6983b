"""One thread for an element: maths, loops that end when they have converged, systems solved in local memory."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64

from tests.cuda.case import Arguments, Case

SIZE = 7  # unknowns of a tridiagonal system


def elementwise(x, a, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = a * math.sin(x[i]) * math.exp(-x[i] * x[i]) + math.sqrt(1.0 + x[i] ** 2)


def elementwise_reference(x, a, y):
    y[:] = a * np.sin(x) * np.exp(-x * x) + np.sqrt(1.0 + x**2)


def elementwise_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=100), 1.7, np.zeros(100)


def grid_stride(x, y):
    """float32, and few threads for many elements."""
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        y[i] = math.tanh(x[i]) / (np.float32(2.0) + math.cos(x[i]))


def grid_stride_reference(x, y):
    y[:] = np.tanh(x) / (2.0 + np.cos(x))


def grid_stride_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=50).astype(np.float32), np.zeros(50, np.float32)


@cuda.jit(device=True)
def cubic(t, x):
    return t * t * t + t - x


@cuda.jit(device=True)
def slope(t):
    return 3.0 * t * t + 1.0


def newton(x, y, steps):
    """The root of t³ + t = x, by Newton's method until it has converged: each thread takes its own number of steps."""
    i = cuda.grid(1)
    if i >= x.size:
        return
    t = x[i]
    n = 0
    while True:
        d = cubic(t, x[i]) / slope(t)
        t -= d
        n += 1
        if abs(d) < 1e-13 * (1.0 + abs(t)) or n == 60:
            break
    y[i] = t
    steps[i] = n


def newton_reference(x, y, steps):
    for i, start in enumerate(x):
        t, n, d = start, 0, np.inf
        while abs(d) >= 1e-13 * (1.0 + abs(t)) and n < 60:
            d = (t**3 + t - start) / (3.0 * t * t + 1.0)
            t, n = t - d, n + 1
        y[i], steps[i] = t, n


def newton_arguments(rng: np.random.Generator) -> Arguments:
    x = 10.0 * rng.normal(size=40)
    x[3] = 0.0
    return x, np.zeros(40), np.zeros(40, np.int32)


def tridiagonal(lower, diagonal, upper, right, x):
    """Thomas' algorithm, a system for each thread; what is eliminated stays in local memory."""
    k = cuda.grid(1)
    if k >= x.shape[0]:
        return
    c = cuda.local.array(SIZE, float64)
    d = cuda.local.array(SIZE, float64)
    c[0] = upper[k, 0] / diagonal[k, 0]
    d[0] = right[k, 0] / diagonal[k, 0]
    for i in range(1, SIZE):
        pivot = diagonal[k, i] - lower[k, i] * c[i - 1]
        c[i] = upper[k, i] / pivot
        d[i] = (right[k, i] - lower[k, i] * d[i - 1]) / pivot
    x[k, SIZE - 1] = d[SIZE - 1]
    for i in range(SIZE - 2, -1, -1):
        x[k, i] = d[i] - c[i] * x[k, i + 1]


def tridiagonal_reference(lower, diagonal, upper, right, x):
    for k in range(len(x)):
        matrix = np.diag(diagonal[k]) + np.diag(lower[k, 1:], -1) + np.diag(upper[k, :-1], 1)
        x[k] = np.linalg.solve(matrix, right[k])


def tridiagonal_arguments(rng: np.random.Generator) -> Arguments:
    shape = 20, SIZE
    return rng.random(shape), 3.0 + rng.random(shape), rng.random(shape), rng.normal(size=shape), np.zeros(shape)


CASES = (
    Case(elementwise, elementwise_reference, elementwise_arguments, 4, 32, outputs=(2,), active=(0, 1, 2)),
    Case(
        grid_stride,
        grid_stride_reference,
        grid_stride_arguments,
        2,
        8,
        outputs=(1,),
        active=(0, 1),
        tolerance=1e-6,
    ),
    Case(newton, newton_reference, newton_arguments, 2, 32, outputs=(1, 2), active=(0, 1)),
    Case(tridiagonal, tridiagonal_reference, tridiagonal_arguments, 1, 32, outputs=(4,), active=(0, 1, 2, 3, 4)),
)
