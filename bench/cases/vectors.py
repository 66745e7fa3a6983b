"""Common parts of the best adjoints: functions that LLVM vectorises, and what makes others so."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def exponential(x):
    """Of arithmetic alone: eˣ = 2ⁿ eʳ with |r| < 0.35, eʳ by its series to 1e-13."""
    x = min(max(x, -700.0), 700.0)
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = x - n * 0.6931471805599453
    high = 1 / 5040 + r * (1 / 40320 + r * (1 / 362880 + r * (1 / 3628800 + r / 39916800)))
    series = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * high))))))
    power = np.int64((np.int64(n) + 1023) << 52)
    return series * power.view(np.float64)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def add_product(x, matrix, out):
    """Adds x @ matrix to out, four rows at a time."""
    rows = x.size // 4 * 4
    for i in range(0, rows, 4):
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        r0, r1, r2, r3 = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(out.size):
            out[j] += x0 * r0[j] + x1 * r1[j] + x2 * r2[j] + x3 * r3[j]
    for i in range(rows, x.size):
        for j in range(out.size):
            out[j] += x[i] * matrix[i, j]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def fill_border(field):
    """Puts what lies beyond the edges of a periodic square into its border, so that neighbours need no cases."""
    n = field.shape[0] - 2
    for i in range(1, n + 1):
        field[i, 0], field[i, n + 1] = field[i, n], field[i, 1]
    for j in range(n + 2):
        field[0, j], field[n + 1, j] = field[n, j], field[1, j]
