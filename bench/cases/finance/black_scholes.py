"""Sum of Black-Scholes call prices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size

_ROOT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@njit(error_model="numpy")
def normal_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


@njit(error_model="numpy")
def price(spot, strike, maturity, volatility, rate):
    deviation = volatility * math.sqrt(maturity)
    d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * maturity) / deviation
    d2 = d1 - deviation
    return spot * normal_cdf(d1) - strike * math.exp(-rate * maturity) * normal_cdf(d2)


@njit(error_model="numpy")
def total_price(spots, strikes, maturities, volatilities, rate):
    total = 0.0
    for i in range(spots.size):
        total += price(spots[i], strikes[i], maturities[i], volatilities[i], rate)
    return total


@njit(error_model="numpy")
def hand(spots, strikes, maturities, volatilities, rate):
    """Price and adjoint of each option together.

    The adjoint is that of the formula as written: it does not use that the two terms with the normal density cancel in
    the derivative with respect to the spot.
    """
    n = spots.size
    spots_bar, strikes_bar = np.empty(n), np.empty(n)
    maturities_bar, volatilities_bar = np.empty(n), np.empty(n)
    rate_bar = 0.0
    total = 0.0
    for i in range(n):
        spot, strike, maturity, volatility = spots[i], strikes[i], maturities[i], volatilities[i]
        root = math.sqrt(maturity)
        deviation = volatility * root
        drift = rate + 0.5 * volatility * volatility
        d1 = (math.log(spot / strike) + drift * maturity) / deviation
        d2 = d1 - deviation
        discount = math.exp(-rate * maturity)
        cdf1 = 0.5 * (1.0 + math.erf(d1 * _ROOT_HALF))
        cdf2 = 0.5 * (1.0 + math.erf(d2 * _ROOT_HALF))
        present = strike * discount
        total += spot * cdf1 - present * cdf2
        d2_bar = -present * _DENSITY * math.exp(-0.5 * d2 * d2)
        d1_bar = spot * _DENSITY * math.exp(-0.5 * d1 * d1) + d2_bar
        top_bar = d1_bar / deviation
        deviation_bar = -d2_bar - top_bar * d1
        exponent_bar = -present * cdf2
        spots_bar[i] = cdf1 + top_bar / spot
        strikes_bar[i] = -discount * cdf2 - top_bar / strike
        maturities_bar[i] = top_bar * drift - rate * exponent_bar + 0.5 * volatility * deviation_bar / root
        volatilities_bar[i] = root * deviation_bar + top_bar * maturity * volatility
        rate_bar += maturity * (top_bar - exponent_bar)
    return total, (spots_bar, strikes_bar, maturities_bar, volatilities_bar, rate_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(spots, strikes, maturities, volatilities, rate):
    """The formulas of the textbook: the terms with the normal density cancel, one exponential of two is enough."""
    n = spots.size
    spots_bar, strikes_bar = np.empty(n), np.empty(n)
    maturities_bar, volatilities_bar = np.empty(n), np.empty(n)
    rate_bar = 0.0
    total = 0.0
    for i in range(n):
        spot, strike, maturity, volatility = spots[i], strikes[i], maturities[i], volatilities[i]
        root = math.sqrt(maturity)
        deviation = volatility * root
        d1 = (math.log(spot / strike) + rate * maturity) / deviation + 0.5 * deviation
        discount = math.exp(-rate * maturity)
        cdf1 = 0.5 + 0.5 * math.erf(d1 * _ROOT_HALF)
        expected = discount * (0.5 + 0.5 * math.erf((d1 - deviation) * _ROOT_HALF))
        vega = spot * _DENSITY * math.exp(-0.5 * d1 * d1) * root
        total += spot * cdf1 - strike * expected
        spots_bar[i] = cdf1
        strikes_bar[i] = -expected
        maturities_bar[i] = 0.5 * volatility * vega / maturity + rate * strike * expected
        volatilities_bar[i] = vega
        rate_bar += maturity * strike * expected
    return total, (spots_bar, strikes_bar, maturities_bar, volatilities_bar, rate_bar)


def make(size: Size) -> tuple[Any, ...]:
    """Options near the money, up to two years."""
    n = {"small": 9, "medium": 1_000, "full": 100_000}[size]
    rng = np.random.default_rng(4)
    spots, strikes = rng.uniform(80.0, 120.0, n), rng.uniform(80.0, 120.0, n)
    return spots, strikes, rng.uniform(0.1, 2.0, n), rng.uniform(0.1, 0.5, n), 0.03


CASE = Case("black-scholes", "Black-Scholes, 100,000 calls", total_price, hand, make, (0, 1, 2, 3, 4), hand_opt)
