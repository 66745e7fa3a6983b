"""Price of an arithmetic Asian call by Monte Carlo, with given normal numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size
from bench.cases.vectors import exponential


@njit(error_model="numpy")
def price(market, normals, strike, maturity):
    spot, rate, volatility = market
    paths, steps = normals.shape
    dt = maturity / steps
    total = 0.0
    for p in range(paths):
        value = spot
        average = 0.0
        for s in range(steps):
            value *= math.exp((rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * normals[p, s])
            average += value
        total += max(average / steps - strike, 0.0)
    return math.exp(-rate * maturity) * total / paths


@njit(error_model="numpy")
def hand(market, normals, strike, maturity):
    """Tangents of each path beside it: two sums replace a reverse sweep, since values are spot · exp(a linear form)."""
    spot, rate, volatility = market[0], market[1], market[2]
    paths, steps = normals.shape
    dt = maturity / steps
    root = math.sqrt(dt)
    drift = (rate - 0.5 * volatility * volatility) * dt
    total, in_money, d_rate, d_volatility = 0.0, 0.0, 0.0, 0.0
    for p in range(paths):
        value, average, weighted, moved, walk = spot, 0.0, 0.0, 0.0, 0.0
        for s in range(steps):
            z = normals[p, s]
            value *= math.exp(drift + volatility * root * z)
            walk += root * z
            time = (s + 1) * dt
            average += value
            weighted += value * time
            moved += value * (walk - volatility * time)
        if average / steps > strike:
            total += average / steps - strike
            in_money += average / steps
            d_rate += weighted / steps
            d_volatility += moved / steps
    discount = math.exp(-rate * maturity) / paths
    rate_bar = discount * (d_rate - maturity * total)
    return discount * total, (np.array([discount * in_money / spot, rate_bar, discount * d_volatility]),)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(market, normals, strike, maturity):
    """All exponentials of a path at once, of its walk, in vectors; the sums of tangents only where they count."""
    spot, rate, volatility = market[0], market[1], market[2]
    paths, steps = normals.shape
    dt = maturity / steps
    root = math.sqrt(dt)
    drift = (rate - 0.5 * volatility * volatility) * dt
    walks, values, times = np.empty(steps), np.empty(steps), dt * np.arange(1, steps + 1)
    total, in_money, d_rate, d_volatility = 0.0, 0.0, 0.0, 0.0
    for p in range(paths):
        row, walk, average = normals[p], 0.0, 0.0
        for s in range(steps):
            walk += row[s]
            walks[s] = walk
        for s in range(steps):
            value = exponential(drift * (s + 1) + volatility * root * walks[s])
            values[s] = value
            average += value
        average *= spot / steps
        if average > strike:
            weighted, moved = 0.0, 0.0
            for s in range(steps):
                weighted += values[s] * times[s]
                moved += values[s] * (root * walks[s] - volatility * times[s])
            total += average - strike
            in_money += average
            d_rate += weighted * spot / steps
            d_volatility += moved * spot / steps
    discount = math.exp(-rate * maturity) / paths
    rate_bar = discount * (d_rate - maturity * total)
    return discount * total, (np.array([discount * in_money / spot, rate_bar, discount * d_volatility]),)


def make(size: Size) -> tuple[Any, ...]:
    """At the money."""
    paths, steps = {"small": (6, 4), "medium": (100, 50), "full": (2_000, 50)}[size]
    return np.array([100.0, 0.03, 0.2]), np.random.default_rng(10).standard_normal((paths, steps)), 100.0, 1.0


CASE = Case("asian-option", "Asian call by Monte Carlo, 2,000 paths of 50 steps", price, hand, make, (0,), hand_opt)
