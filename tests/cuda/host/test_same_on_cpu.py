"""The same Python function as a function of the CPU and as a device function has the same gradient."""

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


def special(x):
    return (
        math.erf(x[0]) * math.lgamma(x[1])
        + math.atan2(x[0], x[2]) ** 2
        + math.expm1(0.3 * x[1]) * math.hypot(x[0], x[2])
    )


def newton(x):
    root, steps = 1.0, 0
    while abs(root * root - x[0]) > 1e-12 and steps < 30:
        root -= (root * root - x[0]) / (2.0 * root)
        steps += 1
    return root * x[1] if root > x[2] else root - x[1] * x[2]


def in_place(x):
    total = 0.0
    for step in range(5):
        for i in range(x.size):
            x[i] = 0.5 * x[i] * x[i - 1] + 0.1 * step
            if x[i] > 0.4:
                continue
            total += math.sin(x[i]) ** 3
    return total + x[0] * x[1]


@pytest.mark.parametrize("function", [special, newton, in_place], ids=lambda each: each.__name__)
def test_gradient(function: Callable[[Any], Any]):
    device_function, compiled = cuda.jit(device=True)(function), njit(function)

    @cuda.jit
    def kernel(points, values, first):
        i = cuda.grid(1) + first
        if i < values.size:
            values[i] = device_function(points[i])

    points = np.array([[0.7, 1.2, 0.4], [0.3, 2.5, 1.1], [1.9, 0.6, 0.8], [0.9, 3.1, 2.2], [2.4, 1.3, 1.7]])
    cotangents = np.array([1.0, -2.0, 0.5, 3.0, -0.25])
    values, shadow = np.zeros(5), np.zeros_like(points)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[2, 4](Duplicated(points.copy(), shadow), Duplicated(values, cotangents.copy()), Const(0))
    gradient = irad.value_and_grad(compiled)
    for point, value, found, cotangent in zip(points, values, shadow, cotangents, strict=True):
        expected, slopes = gradient(point.copy())
        assert value == pytest.approx(expected, rel=1e-14)
        np.testing.assert_allclose(found, cotangent * slopes, rtol=1e-12, atol=1e-14)
