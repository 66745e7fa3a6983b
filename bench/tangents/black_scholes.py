"""Black-Scholes: the tangent of a price is made of its sensitivities."""

from __future__ import annotations

import math

from numba import njit

_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@njit(error_model="numpy")
def hand(tangents, spots, strikes, maturities, volatilities, rate):
    """Sensitivities times tangents; what they share is computed once."""
    spots_dot, strikes_dot, maturities_dot, volatilities_dot, rate_dot = tangents
    total, total_dot = 0.0, 0.0
    for i in range(spots.size):
        spot, strike, maturity, volatility = spots[i], strikes[i], maturities[i], volatilities[i]
        root = math.sqrt(maturity)
        deviation = volatility * root
        d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * maturity) / deviation
        d2 = d1 - deviation
        first = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
        second = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
        discounted = strike * math.exp(-rate * maturity)
        total += spot * first - discounted * second
        vega = spot * root * _DENSITY * math.exp(-0.5 * d1 * d1)
        carried = discounted * second
        total_dot += first * spots_dot[i] - carried / strike * strikes_dot[i] + vega * volatilities_dot[i]
        total_dot += (0.5 * vega * volatility / maturity + rate * carried) * maturities_dot[i]
        total_dot += maturity * carried * rate_dot
    return total, total_dot
