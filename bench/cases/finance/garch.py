"""Negative log-likelihood of a GARCH(1, 1) model of returns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def loss(parameters, returns):
    mean, constant, shock, memory = parameters
    variance = constant / (1.0 - shock - memory)
    total = 0.0
    for value in returns:
        residual = value - mean
        total += 0.5 * (math.log(2.0 * math.pi * variance) + residual**2 / variance)
        variance = constant + shock * residual**2 + memory * variance
    return total


@njit(error_model="numpy")
def hand(parameters, returns):
    """The variances are kept; the adjoint needs only these."""
    mean, constant, shock, memory = parameters[0], parameters[1], parameters[2], parameters[3]
    n = returns.size
    variances = np.empty(n)
    rest = 1.0 - shock - memory
    variance = constant / rest
    total = 0.0
    for i in range(n):
        variances[i] = variance
        square = (returns[i] - mean) ** 2
        total += math.log(2.0 * math.pi * variance) + square / variance
        variance = constant + shock * square + memory * variance
    mean_bar, constant_bar, shock_bar, memory_bar = 0.0, 0.0, 0.0, 0.0
    after = 0.0
    for i in range(n - 1, -1, -1):
        variance, residual = variances[i], returns[i] - mean
        inverse = 1.0 / variance
        square = residual * residual
        constant_bar += after
        shock_bar += after * square
        memory_bar += after * variance
        mean_bar -= residual * (inverse + 2.0 * after * shock)
        after = after * memory + 0.5 * inverse * (1.0 - square * inverse)
    constant_bar += after / rest
    shock_bar += after * constant / rest**2
    memory_bar += after * constant / rest**2
    return 0.5 * total, (np.array([mean_bar, constant_bar, shock_bar, memory_bar]),)


def make(size: Size) -> tuple[Any, ...]:
    """Returns of a few per cent."""
    n = {"small": 9, "medium": 1_000, "full": 50_000}[size]
    return np.array([0.05, 0.1, 0.1, 0.8]), np.random.default_rng(9).standard_normal(n)


CASE = Case("garch", "GARCH(1,1) likelihood, 50,000 returns", loss, hand, make, (0,))
