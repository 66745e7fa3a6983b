"""Products of vectors and matrices through BLAS, their shapes and layouts, and what is built of them."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from numba import float64, njit

import irad
from irad.frontend.numba.cpu import load_program
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(5), floats(5, seed=1))
@PROGRAMS.at(floats(0), floats(0))
@njit
def vector_dot_vector(x, y):
    return np.dot(x, y) ** 2


@PROGRAMS.at(floats(5))
@njit
def vector_dot_itself(x):
    return x @ x + math.sqrt(np.dot(x, x))


@PROGRAMS.at(floats(5), floats(5, seed=1))
@njit
def vdot(x, y):
    return np.vdot(x, y)


@PROGRAMS.at(floats(3, 4), floats(4, seed=1))
@PROGRAMS.at(floats(3, 4, order="F"), floats(4, seed=1))
@njit
def matrix_times_vector(a, x):
    y = a @ x
    return np.sum(y * y)


@PROGRAMS.at(floats(3, 4), floats(3, seed=1))
@njit
def vector_times_matrix(a, x):
    y = np.dot(x, a)
    return np.sum(y * y * y)


@PROGRAMS.at(floats(3, 4), floats(4, 2, seed=1))
@PROGRAMS.at(floats(3, 4, order="F"), floats(4, 2, seed=1))
@PROGRAMS.at(floats(3, 4), floats(4, 2, seed=1, order="F"))
@PROGRAMS.at(floats(3, 4, order="F"), floats(4, 2, seed=1, order="F"))
@njit
def matrix_times_matrix(a, b):
    c = a @ b
    return np.sum(c * c)


@PROGRAMS.at(floats(3, 4))
@njit
def gram_matrix(a):
    g = a.T @ a
    h = np.dot(a, a.T)
    return np.sum(g * g) + h[0, 1] * h[2, 2]


@PROGRAMS.at(floats(3, 3))
@njit
def repeated_products(a):
    b = a.copy()
    for _ in range(3):
        b = b @ a * 0.3
    return b[0, 1] + np.trace(b)


@PROGRAMS.at(floats(3, 3), floats(3, seed=1))
@njit
def power_iteration(a, x):
    for _ in range(5):
        x = a @ x
        x = x / math.sqrt(x @ x)
    return x @ (a @ x)


@PROGRAMS.at(floats(3, 4), floats(4, seed=1), floats(3, seed=2))
@njit
def product_into(a, x, out):
    np.dot(a, x, out)
    return out[0] * out[1] + out[2]


@PROGRAMS.at(floats(3, 4), floats(4, 2, seed=1))
@njit
def product_into_a_buffer_in_a_loop(a, b):
    c = np.empty((3, 2))
    s = 0.0
    for k in range(3):
        np.dot(a, b, c)
        s += c[k, k % 2] ** 2
        b[k, 0] = b[k, 0] * c[0, 0] * 0.1
    return s


@PROGRAMS.at(floats(3, 4), floats(4, seed=1))
@njit
def operands_overwritten_after_use(a, x):
    y = a @ x
    a[:] = 0.0
    x[:] = y[0]
    return np.sum(y * y) + x[2] * a[0, 0]


@PROGRAMS.at(floats(4, 3), floats(3, seed=1), floats(4, seed=2))
@njit
def least_squares_loss(a, x, b):
    r = a @ x - b
    return 0.5 * (r @ r) + 0.1 * (x @ x)


@PROGRAMS.at(floats(2, 3), floats(3, seed=1), floats(3, 2, seed=2), floats(2, seed=3))
@njit
def two_layer_network(w, x, v, b):
    h = np.tanh(w @ x + b)
    y = v @ h
    return np.sum(y * y)


@PROGRAMS.at(floats(4, 3), floats(3, 3, seed=1))
@njit
def quadratic_forms(x, a):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] @ a @ x[i]
    return s


@PROGRAMS.at(floats(3, 4), floats(4, seed=1))
@njit
def products_of_slices(a, x):
    return np.dot(a[1], x) * np.dot(a[0, :2], x[2:]) + np.sum(a[:2] @ x)


@PROGRAMS.at(floats(1, 1), floats(1, 1, seed=1))
@njit
def one_by_one(a, b):
    return (a @ b)[0, 0] ** 2


@PROGRAMS.at(floats(3, 3), floats(3, seed=1))
@njit
def solve_by_hand(a, b):
    n = 3
    m = a + 4.0 * np.eye(n)
    x = b.copy()
    for k in range(n):
        for i in range(k + 1, n):
            f = m[i, k] / m[k, k]
            m[i] -= f * m[k]
            x[i] -= f * x[k]
    for k in range(n - 1, -1, -1):
        x[k] = (x[k] - np.dot(m[k, k + 1 :], x[k + 1 :])) / m[k, k]
    return x @ x


@PROGRAMS.at(floats(3, 3))
@njit
def jacobi_sweeps(a):
    x = np.ones(3)
    for _ in range(6):
        new = np.empty(3)
        for i in range(3):
            s = 1.0
            for j in range(3):
                if j != i:
                    s -= a[i, j] * x[j]
            new[i] = s / (5.0 + a[i, i])
        x = new
    return x.sum()


@PROGRAMS.at(floats(4, 3), floats(4, seed=1))
@njit
def gradient_descent_inside(a, b):
    w = np.zeros(3)
    for _ in range(5):
        w = w - 0.05 * (a.T @ (a @ w - b))
    return w @ w


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@njit
def two_layers(a, b, x):
    hidden = np.tanh(x @ a)
    return np.sum(hidden @ b)


def test_products_stay_calls_of_blas():
    """Numba calls gemm, or gemv for a row or a column. The adjoint of gemm is two of it, that of gemv one of each."""
    primal = load_program(two_layers, (float64[:, ::1], float64[:, ::1], float64[:, ::1])).text
    gemm, gemv = (len(re.findall(rf"call i32 @numba_xx{name}\(", primal)) for name in ("gemm", "gemv"))
    assert gemm == 2
    assert gemv > 0
    gradient = irad.grad(two_layers, argnums=(0, 1, 2))
    gradient(floats(3, 4), floats(4, 2), floats(5, 3))
    [compiled] = two_layers.__dict__["_irad_compiled_derivatives"].values()
    text = compiled.derivative.text
    assert len(re.findall(r"call i32 @numba_xxgemm\(", text)) == 3 * gemm + gemv
    assert len(re.findall(r"call i32 @numba_xxgemv\(", text)) == 2 * gemv
