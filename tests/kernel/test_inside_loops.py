"""Derivatives inside kernels of loops as long as an array: iterations are recomputed, and nothing is saved."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda, njit

import irad
import irad.cuda
from irad import Const, Duplicated

X = np.random.default_rng(5).random((6, 3)) * 2.0


@njit
def energy(x, i, depth):
    """Of one particle among all others: a branch in each iteration, and divisions."""
    total = 0.0
    for j in range(x.shape[0]):
        if j != i:
            dx, dy, dz = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1], x[i, 2] - x[j, 2]
            square = dx * dx + dy * dy + dz * dz
            total += 4.0 * depth * (square**-6 - square**-3)
    return total


@njit
def two_sides(x, i, depth):
    """Both sides of a branch have a derivative, and a float decides."""
    total = 0.0
    for j in range(x.shape[0]):
        if x[j, 0] > x[i, 1]:
            total += math.exp(-depth * x[j, 0]) * x[i, 0]
        else:
            total -= math.sqrt(x[j, 1] + depth) * math.tanh(x[i, 2])
    return total


@njit
def loops_in_loops(x, i, depth):
    total = 0.0
    for j in range(x.shape[0]):
        if j > i:
            total += x[j, 0] ** 3
        for k in range(x.shape[0]):
            if k != j:
                total += depth * math.sin(x[k, 2] * x[j, 1])
    return total


@njit
def until(x, i, depth):
    """It is left in the middle."""
    total = 0.0
    for j in range(x.shape[0]):
        if x[j, 0] * depth > 1.9:
            break
        total += math.exp(x[j, 1] * x[i, 2])
    return total


FUNCTIONS = (energy, two_sides, loops_in_loops, until)


def launched(f: Callable[..., Any], x: np.ndarray) -> np.ndarray:
    @cuda.jit
    def kernel(x, dx, depth):
        i = cuda.grid(1)
        if i < x.shape[0]:
            irad.autodiff(irad.Reverse, f, Duplicated(x, dx), Const(i), Const(depth))

    dx = np.zeros_like(x)
    with irad.cuda.executor(races=True):
        kernel[2, 4](x, dx, 1.3)
    return dx


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("count", [6, 1, 0])
def test_sums_over_all_particles(f: Callable[..., Any], count: int):
    x = X[:count].copy()
    expected = np.zeros_like(x)
    for i in range(count):
        for place in np.ndindex(x.shape):
            moved = x.copy(), x.copy()
            moved[0][place] += 1e-6
            moved[1][place] -= 1e-6
            expected[place] += (f(moved[0], i, 1.3) - f(moved[1], i, 1.3)) / 2e-6
    scale = 1.0 + np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(launched(f, x), expected, atol=1e-7 * scale, rtol=0)


def test_a_fit_through_the_forces():
    """The kernel with the derivatives is differentiated, with respect to positions and the depth."""

    @cuda.jit
    def forces(x, depth, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            _, out[i] = irad.jvp(energy, (x, i, depth[0]), (x, None, None))

    x, depth, out = X.copy(), np.array([1.3]), np.zeros(6)
    dx, by_depth = np.zeros_like(x), np.zeros(1)
    with irad.cuda.executor():
        irad.cuda.grad(forces)[1, 8](Duplicated(x, dx), Duplicated(depth, by_depth), Duplicated(out, np.ones(6)))
        forces[1, 8](X, np.array([1.0]), out)
    assert by_depth[0] == pytest.approx(np.sum(out), rel=1e-12)


def test_a_number_that_a_loop_accumulates_has_to_be_saved():
    @njit
    def of_any_dimension(x, i, depth):
        total = 0.0
        for j in range(x.shape[0]):
            square = depth
            for k in range(x.shape[1]):
                square += (x[i, k] - x[j, k]) ** 2
            total += math.sqrt(square)
        return total

    with pytest.raises(irad.UnsupportedError, match="needs a tape of a size that is not known"):
        launched(of_any_dimension, X)
