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


@njit(error_model="numpy", fastmath={"contract"})
def _variances(variance, mean, constant, shock, memory, returns, variances):
    """Four steps of the recursion at once: each waits for the variance four steps before."""
    n = returns.size
    m2, m3, m4 = memory**2, memory**3, memory**4
    whole = n // 4 * 4
    for i in range(0, whole, 4):
        p1 = constant + shock * (returns[i] - mean) ** 2
        p2 = memory * p1 + (constant + shock * (returns[i + 1] - mean) ** 2)
        p3 = memory * p2 + (constant + shock * (returns[i + 2] - mean) ** 2)
        p4 = memory * p3 + (constant + shock * (returns[i + 3] - mean) ** 2)
        variances[i], variances[i + 1] = variance, memory * variance + p1
        variances[i + 2], variances[i + 3] = m2 * variance + p2, m3 * variance + p3
        variance = m4 * variance + p4
    for i in range(whole, n):
        variances[i] = variance
        variance = constant + shock * (returns[i] - mean) ** 2 + memory * variance


@njit(error_model="numpy", fastmath={"contract"})
def _sum_back(after, memory, sources):
    """Puts the sum of what comes later, ever less remembered, in the place of each source; four steps at once."""
    n = sources.size
    m2, m3, m4 = memory**2, memory**3, memory**4
    first = n % 4
    for i in range(n - 4, first - 1, -4):
        p1 = sources[i + 3]
        p2 = memory * p1 + sources[i + 2]
        p3 = memory * p2 + sources[i + 1]
        p4 = memory * p3 + sources[i]
        sources[i + 3], sources[i + 2] = after, memory * after + p1
        sources[i + 1], sources[i] = m2 * after + p2, m3 * after + p3
        after = m4 * after + p4
    for i in range(first - 1, -1, -1):
        source, sources[i] = sources[i], after
        after = memory * after + source
    return after


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _log_sum(values):
    """One logarithm for sixteen numbers, which are multiplied in vectors; overwrites them."""
    size = values.size
    for _ in range(4):
        half = size // 2
        first, last = values[:half], values[size - half : size]
        for i in range(half):
            first[i] *= last[i]
        size -= half
    total = 0.0
    for i in range(size):
        total += math.log(values[i])
    return total


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(parameters, returns):
    """Only both recursions are sequential, four steps at once; the rest is arithmetic of vectors, in blocks."""
    mean, constant, shock, memory = parameters[0], parameters[1], parameters[2], parameters[3]
    n, block = returns.size, 1024
    variances, space, copies = np.empty(n), np.empty(block), np.empty(block)
    rest = 1.0 - shock - memory
    _variances(constant / rest, mean, constant, shock, memory, returns, variances)
    total = n * math.log(2.0 * math.pi)
    mean_bar, constant_bar, shock_bar, memory_bar, after = 0.0, 0.0, 0.0, 0.0, 0.0
    for end in range(n, 0, -block):
        start = max(end - block, 0)
        values, shown, sources = variances[start:end], returns[start:end], space[: end - start]
        for i in range(values.size):
            copies[i] = values[i]
        total += _log_sum(copies[: values.size])
        for i in range(values.size):
            inverse, residual = 1.0 / values[i], shown[i] - mean
            share = residual * residual * inverse
            total += share
            mean_bar -= residual * inverse
            sources[i] = 0.5 * inverse * (1.0 - share)
        after = _sum_back(after, memory, sources)
        for i in range(values.size):
            later, residual = sources[i], shown[i] - mean
            constant_bar += later
            shock_bar += later * residual * residual
            memory_bar += later * values[i]
            mean_bar -= 2.0 * shock * later * residual
    constant_bar += after / rest
    shock_bar += after * constant / rest**2
    memory_bar += after * constant / rest**2
    return 0.5 * total, (np.array([mean_bar, constant_bar, shock_bar, memory_bar]),)


def make(size: Size) -> tuple[Any, ...]:
    """Returns of a few per cent."""
    n = {"small": 9, "medium": 1_000, "full": 50_000}[size]
    return np.array([0.05, 0.1, 0.1, 0.8]), np.random.default_rng(9).standard_normal(n)


CASE = Case("garch", "GARCH(1,1) likelihood, 50,000 returns", loss, hand, make, (0,), hand_opt)
