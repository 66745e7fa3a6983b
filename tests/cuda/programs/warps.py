"""Threads of a warp that exchange values, and random numbers for each thread."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda
from numba.cuda.random import xoroshiro128p_dtype, xoroshiro128p_uniform_float64

from tests.cuda.case import Arguments, Case

ALL = 0xFFFFFFFF
DRAWS = 5


@cuda.jit(device=True)
def warp_sum(value):
    """The sum over the warp, in its first lane."""
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(ALL, value, offset)
        offset //= 2
    return value


def warp_reduction(x, out):
    """The sum of cubes: shuffles within each warp, then one atomic addition for each warp."""
    i = cuda.grid(1)
    value = x[i] * x[i] * x[i] if i < x.size else 0.0
    value = warp_sum(value)
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, value)


def warp_reduction_reference(x, out):
    out[0] += np.sum(x**3)


def warp_reduction_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=110), np.zeros(1)


def monte_carlo(states, start, volatility, strike, out):
    """The mean pay-off of a call option: each thread draws paths of a geometric Brownian motion."""
    i = cuda.grid(1)
    if i >= states.size:
        return
    total = 0.0
    for _ in range(DRAWS):
        u = xoroshiro128p_uniform_float64(states, i)
        v = xoroshiro128p_uniform_float64(states, i)
        normal = math.sqrt(-2.0 * math.log(1.0 - u)) * math.cos(2.0 * math.pi * v)
        price = start * math.exp(volatility * normal - 0.5 * volatility * volatility)
        if price > strike:
            total += price - strike
    cuda.atomic.add(out, 0, total / (DRAWS * states.size))


def _uniform(states: np.ndarray) -> np.ndarray:
    """The next numbers of all generators (Blackman and Vigna's xoroshiro128+)."""

    def rotated(x, k):
        return (x << np.uint64(k)) | (x >> np.uint64(64 - k))

    s0, s1 = states["s0"].copy(), states["s1"].copy()
    result = s0 + s1
    s1 ^= s0
    states["s0"] = rotated(s0, 55) ^ s1 ^ (s1 << np.uint64(14))
    states["s1"] = rotated(s1, 36)
    return (result >> np.uint64(11)) * 2.0**-53


def monte_carlo_reference(states, start, volatility, strike, out):
    total = 0.0
    for _ in range(DRAWS):
        u, v = _uniform(states), _uniform(states)
        normal = np.sqrt(-2.0 * np.log(1.0 - u)) * np.cos(2.0 * np.pi * v)
        price = start * np.exp(volatility * normal - 0.5 * volatility * volatility)
        total += np.sum(np.where(price > strike, price - strike, 0.0))
    out[0] += total / (DRAWS * states.size)


def monte_carlo_arguments(rng: np.random.Generator) -> Arguments:
    states = np.zeros(40, xoroshiro128p_dtype)
    for word in ("s0", "s1"):
        states[word] = rng.integers(1, 2**63, size=40, dtype=np.uint64)
    return states, 1.1, 0.4, 1.0, np.zeros(1)


CASES = (
    Case(warp_reduction, warp_reduction_reference, warp_reduction_arguments, 2, 64, outputs=(1,), active=(0, 1)),
    Case(
        monte_carlo,
        monte_carlo_reference,
        monte_carlo_arguments,
        2,
        32,
        outputs=(0, 4),
        active=(1, 2, 3, 4),
    ),
)
