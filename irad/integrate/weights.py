"""Weights of `quad`: a pole, powers and logarithms at the ends, oscillations on finite and infinite ranges.

Each is plain code that calls `quad`, whose rule differentiates it:

- the range is folded at a pole, since `(f(c + t) - f(c - t)) / t` has none at t = 0;
- each half of a range is stretched at its end so that a power or a logarithm there becomes smooth;
- an oscillation is cut into intervals with few periods; on an infinite range into cells over which the integrals
  alternate in sign, and a weighted sum of these converges although their sum does so slowly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from irad.errors import HERE, SignatureError
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit
from irad.frontend.numba.messages import described

NAMES = "cos", "sin", "alg", "alg-loga", "alg-logb", "alg-log", "cauchy"


def check_weight(weight: Any, wvar: Any, others: bool) -> None:
    """Refuses a weight that there is not, has no parameter, or comes with what takes none."""
    if weight not in NAMES:
        raise SignatureError(
            f"quad: weight is {weight!r}", f"pass one of {', '.join(NAMES)}", "others are not known", HERE
        )
    if wvar is None:
        raise SignatureError(
            f"quad: weight {weight!r} without wvar",
            "pass wvar=: the pole, the angular frequency, or both exponents",
            "the weight depends on it",
            HERE,
        )
    if others:
        raise SignatureError(
            f"quad: weight {weight!r} together with full_output, points or batch",
            "leave these out, or multiply by the weight in the function",
            "with a weight the range is divided by other rules",
            HERE,
        )


def _check_parameter(weight: str, count: int, description: str) -> None:
    """Refuses a pair of exponents for a weight without powers, and anything else for one with them."""
    if count != (2 if weight.startswith("alg") else 1):
        raise SignatureError(
            f"quad: wvar of weight {weight!r} is {description}",
            "pass a pair of exponents for powers, and a number for other weights",
            "the weight depends on it",
            HERE,
        )


def parameter(weight: str, wvar: Any) -> float | tuple[float, ...]:
    """The parameter of a weight, as numbers in double precision."""
    numbers = np.atleast_1d(wvar)
    _check_parameter(weight, numbers.size, repr(wvar))
    return tuple(map(float, numbers)) if numbers.size == 2 else float(numbers[0])


def parameter_of(weight: str, wvar: Any) -> Any:
    """A function for compiled code that does the same as `parameter` for a Numba type."""
    is_number = isinstance(wvar, types.Float | types.Integer)
    count = 1 if is_number else len(wvar) if isinstance(wvar, types.BaseTuple) else 0
    _check_parameter(weight, count, described(wvar))
    if count == 2:
        return inner_jitable(lambda wvar: (np.float64(wvar[0]), np.float64(wvar[1])))
    return inner_jitable(lambda wvar: np.float64(wvar))


def weighted(f: Any, weight: str, quad: Any) -> Any:
    """The compiled integral of a function with a weight: ``(a, b, args, wvar, absolute, relative, limit)``.

    It returns the value and an estimate of its error.
    """
    if weight == "cauchy":
        return _with_pole(f, quad)
    if weight in ("cos", "sin"):
        return _oscillating(f, weight == "sin", quad)
    return _with_powers(f, weight in ("alg-loga", "alg-log"), weight in ("alg-logb", "alg-log"), quad)


# ------------------------------------------------------------------------------------------------ a pole


@inner_jitable
def _reach(a, b, c):  # type: ignore[no-untyped-def]
    """Distance from the pole to the nearer end, 1 if both are infinite; 0 if the pole is outside the range."""
    low, high = min(a, b), max(a, b)
    if c in (a, b):
        raise ValueError("quad: a limit is the pole of the weight")
    if not low < c < high:
        return 0.0
    nearer = min(c - low, high - c)
    return nearer if np.isfinite(nearer) else 1.0


def _with_pole(f: Any, quad: Any) -> Any:
    """Source: Davis, Rabinowitz: Methods of Numerical Integration, 2nd ed., Academic Press 1984, section 2.12.8."""

    @inner_njit
    def folded(t, c, args):  # type: ignore[no-untyped-def]
        return (f(c + t, *args) - f(c - t, *args)) / t

    @inner_njit
    def plain(x, c, args):  # type: ignore[no-untyped-def]
        return f(x, *args) / (x - c)

    @inner_njit
    def solve(a, b, args, c, absolute, relative, limit):  # type: ignore[no-untyped-def]
        reach = _reach(a, b, c)
        if reach == 0.0:
            return quad(plain, a, b, (c, args), epsabs=absolute, epsrel=relative, limit=limit)
        sign, low, high = 1.0, a, b
        if a > b:
            sign, low, high = -1.0, b, a
        near, e = quad(folded, 0.0, reach, (c, args), epsabs=absolute, epsrel=relative, limit=limit)
        left, e_left = quad(plain, low, c - reach, (c, args), epsabs=absolute, epsrel=relative, limit=limit)
        right, e_right = quad(plain, c + reach, high, (c, args), epsabs=absolute, epsrel=relative, limit=limit)
        return sign * (near + left + right), e + e_left + e_right

    return solve


# ------------------------------------------------------------------------------------------------ powers at the ends

_SMOOTH = 4.0  # the power at the end of a stretched half, plus one: enough for a rule with 21 points


def _with_powers(f: Any, log_a: bool, log_b: bool, quad: Any) -> Any:
    @inner_njit
    def half(v, end, length, near, far, stretch, near_log, far_log, args):  # type: ignore[no-untyped-def]
        """From an end to the middle, ``v**stretch`` of the way; the length is negative from the upper end down."""
        whole = abs(length)
        share = 0.5 * v**stretch
        weight = stretch * (0.5 * whole) ** (near + 1.0) * v ** (stretch * (near + 1.0) - 1.0)
        weight *= (whole * (1.0 - share)) ** far
        if near_log:
            weight *= np.log(0.5 * whole) + stretch * np.log(v)
        if far_log:
            weight *= np.log(whole * (1.0 - share))
        return f(end + share * length, *args) * weight

    @inner_njit
    def solve(a, b, args, powers, absolute, relative, limit):  # type: ignore[no-untyped-def]
        low, high = powers
        if not (low > -1.0 and high > -1.0):
            raise ValueError("quad: the exponents of a weight must be greater than -1")
        if not (a < b and np.isfinite(b - a)):
            raise ValueError("quad: a weight with powers needs finite limits in ascending order")
        of_a = (a, b - a, low, high, _stretch(low), log_a, log_b, args)
        of_b = (b, a - b, high, low, _stretch(high), log_b, log_a, args)
        left, e_left = quad(half, 0.0, 1.0, of_a, epsabs=absolute, epsrel=relative, limit=limit)
        right, e_right = quad(half, 0.0, 1.0, of_b, epsabs=absolute, epsrel=relative, limit=limit)
        return left + right, e_left + e_right

    return solve


@inactive_in_irad
@inner_njit
def _stretch(power):  # type: ignore[no-untyped-def]
    return np.ceil(_SMOOTH / (power + 1.0))


# ------------------------------------------------------------------------------------------------ oscillations

_RADIANS = 6.0  # of an interval: less than a period, for which Gauss's 10 points and Kronrod's 21 agree to all digits
_MOST = 1_000_000
_BLOCK = 8
_CELLS = 104


def _averages(n: int) -> Any:
    """Weights of the first terms of an alternating sum in its limit, whose error falls by 5.8 a term.

    Source: Cohen, Rodriguez Villegas, Zagier: Convergence acceleration of alternating series, Exp. Math. 9 (2000) 3-12.
    """
    d = (3.0 + np.sqrt(8.0)) ** n
    d = 0.5 * (d + 1.0 / d)
    found, b, c = np.empty(n), -1.0, -d
    for k in range(n):
        c = b - c
        found[k] = abs(c) / d
        b *= (k + n) * (k - n) / ((k + 0.5) * (k + 1))
    return found


_AVERAGES = _averages(24)


@inactive_in_irad
@inner_njit
def _cuts(a, b, omega):  # type: ignore[no-untyped-def]
    """Break points between intervals with few periods."""
    count = abs(omega * (b - a)) / _RADIANS
    if not count <= _MOST:
        raise ValueError("quad: the weight oscillates too often between the limits")
    return a + (b - a) / (int(count) + 1.0) * np.arange(1, int(count) + 1)


@inactive_in_irad
@inner_njit
def _cell(omega):  # type: ignore[no-untyped-def]
    """An odd number of half periods, not much less than 2π long, as in QUADPACK."""
    return (2.0 * np.floor(abs(omega)) + 1.0) * np.pi / abs(omega)


def _oscillating(f: Any, is_sine: bool, quad: Any) -> Any:
    wave = np.sin if is_sine else np.cos

    @inner_njit
    def integrand(x, omega, args):  # type: ignore[no-untyped-def]
        return f(x, *args) * wave(omega * x)

    @inner_njit
    def finite(a, b, args, omega, absolute, relative, limit):  # type: ignore[no-untyped-def]
        cuts = _cuts(a, b, omega)
        given = (omega, args)
        return quad(integrand, a, b, given, epsabs=absolute, epsrel=relative, limit=limit + cuts.size, points=cuts)

    @inner_njit
    def infinite(a, side, args, omega, absolute, relative, limit):  # type: ignore[no-untyped-def]
        """From a finite limit to infinity on either side.

        Some first terms are summed as they are, more and more of them, until the limit does not change.
        """
        step = side * _cell(omega)
        value, wrong = finite(a, a + step, args, omega, 0.1 * absolute, 0.1 * relative, limit)
        terms, known, errors = np.full(_CELLS, value), 1, wrong
        head = last = 0.0 * value
        for start in range(0, _CELLS - _AVERAGES.size + 1, _BLOCK):
            for k in range(known, start + _AVERAGES.size):
                given = args, omega, 0.1 * absolute, 0.1 * relative, limit
                terms[k], wrong = finite(a + k * step, a + (k + 1) * step, *given)
                errors += wrong
            known = start + _AVERAGES.size
            value = head + (terms[start:known] * _AVERAGES).sum()
            change = abs(value - last)
            if start > 0 and change <= max(absolute, relative * abs(value)):
                return value, errors + change
            last = value
            head += terms[start : start + _BLOCK].sum()
        raise ValueError("quad: the integral over an infinite range does not converge")

    @inner_njit
    def solve(a, b, args, omega, absolute, relative, limit):  # type: ignore[no-untyped-def]
        given = args, omega, absolute, relative, limit
        if np.isfinite(a) and np.isfinite(b):
            return finite(a, b, *given)
        if omega == 0.0 or a == b:
            return quad(integrand, a, b, (omega, args), epsabs=absolute, epsrel=relative, limit=limit)
        if np.isinf(a) and np.isinf(b):
            upper, e_upper = infinite(0.0, np.sign(b), *given)
            lower, e_lower = infinite(0.0, np.sign(a), *given)
            return upper - lower, e_upper + e_lower
        if np.isinf(b):
            return infinite(a, np.sign(b), *given)
        value, error = infinite(b, np.sign(a), *given)
        return -value, error

    return solve
