"""Functions that no library has, in which the derivatives of functions of Numba are written (`irad.rules.shortcuts`).

    share, rest        of (x, y): the shares of e**x and of e**y in e**x + e**y; share2, rest2 with powers of 2
    sinc_1(x), …       the derivatives of np.sinc; csinc_1_re, csinc_1_im, … of a complex argument
    cpow               z**w, by parts: cpow_re, cpow_im
    inverse, …         the derivatives of log, asin (arc_slope) and atanh (pole_slope), by parts
    as_f(v, x, …)      v, as the value of f(x, …)

All have rules but the highest derivative of np.sinc: of that the body is differentiated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

from irad.records import dataclass
from irad.ruleset.terms import Expr, apply, equal, expression, where

# Complex numbers as pairs of expressions, and functions of them, for derivatives of complex functions.
#
# A branch cut has two sides, which the sign of a zero tells apart: `1 - z` is written so that the zero of an imaginary
# part keeps it.


@dataclass(frozen=True, slots=True)
class Pair:
    """A complex number: real and imaginary part."""

    re: Expr
    im: Expr

    def __add__(self, other: Pair | float) -> Pair:
        return (
            Pair(self.re + other, self.im)
            if not isinstance(other, Pair)
            else Pair(self.re + other.re, self.im + other.im)
        )

    def __sub__(self, other: Pair | float) -> Pair:
        return (
            Pair(self.re - other, self.im)
            if not isinstance(other, Pair)
            else Pair(self.re - other.re, self.im - other.im)
        )

    def __rsub__(self, other: float) -> Pair:
        return Pair(other - self.re, -self.im)

    def __mul__(self, other: Pair | Expr | float) -> Pair:
        if not isinstance(other, Pair):
            return Pair(self.re * other, self.im * other)
        return Pair(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)

    def times_i(self) -> Pair:
        """`i z`."""
        return Pair(-self.im, self.re)

    def length(self) -> Expr:
        """`|z|`."""
        return apply("hypot", self.re, self.im)

    def where_zero(self, other: Pair) -> Pair:
        """``other`` where the number is 0, else the number."""
        length = self.length()
        return Pair(where(equal(length, 0.0), other.re, self.re), where(equal(length, 0.0), other.im, self.im))


ONE = Pair(expression(1.0), expression(0.0))


def applied(name: str, *numbers: Pair) -> Pair:
    """A function of complex numbers, of which there are two functions: `name_re` and `name_im`."""
    parts = [part for number in numbers for part in (number.re, number.im)]
    return Pair(apply(f"{name}_re", *parts), apply(f"{name}_im", *parts))


_Number = TypeVar("_Number", Expr, Pair)
HOLOMORPHIC: Final = (
    *("csqrt", "clog", "clog2", "clog10", "clog1p", "csinc"),
    *("casin", "cacos", "catan", "casinh", "cacosh", "catanh"),
)
_PARTS: Final = ("re", "im")
VALUES: Final[Mapping[str, int]] = MappingProxyType(
    {
        **dict.fromkeys(("as_logaddexp", "as_logaddexp2", "as_sinc", "as_remainder", "as_cbrt"), 0),
        **dict.fromkeys(("as_squared_length", "as_squared_root", "as_base", "as_identity", "as_length"), 0),
        **{f"as_{name}_{part}": i for name in (*HOLOMORPHIC, "cpow") for i, part in enumerate(_PARTS)},
    }
)
"""The functions `as_f`, and which of their arguments they return."""

SINC_ORDERS: Final = 5
"""Number of derivatives of np.sinc that have names."""

_CLOSE: Final = 0.1  # of x², for the first derivative, which loses least beyond
_NEAR: Final = 0.4  # of |z|², within which the series of a complex argument is used
_FAR: Final = 1e150  # beyond, squares overflow
_TERMS: Final = 16  # at |πx| = 2 the next of the highest derivative has less than 1e-20 of the first


def _shares(power: str, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Both shares, with one exponential, of the distance; ½ if both are equal, even if infinite."""
    distance = where(equal(x, y), 0.0, x - y)
    ratio = apply(power, -apply("fabs", distance))
    larger = 1.0 / (1.0 + ratio)
    smaller = ratio * larger
    return where(distance < 0.0, smaller, larger), where(distance < 0.0, larger, smaller)


def sinc_slope(order: int, x: Expr) -> Expr:
    """The derivative of sin(πx) / πx of some order: a series near 0, where quotients cancel."""
    near = x * x < _NEAR
    inside = where(near, x, 0.0)
    square = (math.pi * math.pi) * (inside * inside)
    series = _polynomial(square, _series(order, _TERMS))
    series = series * inside if order % 2 else series
    outside = where(near, 1.0, x)
    angle = math.pi * (outside - 2.0 * apply("rint", 0.5 * outside))  # whole turns have no rounding error
    sine, cosine = apply("sin", angle), apply("cos", angle)
    inverse = 1.0 / (math.pi * outside)
    quotient = sine * inverse
    for n, numerator in zip(range(1, order + 1), itertools.cycle((cosine, -sine, -cosine, sine)), strict=False):
        quotient = (numerator - float(n) * quotient) * inverse  # t s⁽ⁿ⁾ + n s⁽ⁿ⁻¹⁾ is the derivative of sin t
    return where(near, series, math.pi**order * quotient)


def first_sinc_slope(value: Expr, x: Expr) -> Expr:
    """The first derivative, from the value."""
    near = x * x < _CLOSE
    inside = where(near, x, 0.0)
    series = _polynomial((math.pi * math.pi) * (inside * inside), _series(1, 10)) * inside
    outside = where(near, 1.0, x)
    angle = math.pi * (outside - 2.0 * apply("rint", 0.5 * outside))
    return where(near, series, (apply("cos", angle) - value) / outside)


def csinc_slope(order: int, z: Pair) -> Pair:
    """Derivative of sinc of a complex argument, of any order."""
    near = z.re * z.re + z.im * z.im < _NEAR
    inside = Pair(where(near, z.re, 0.0), where(near, z.im, 0.0))
    square = inside * inside * (math.pi * math.pi)
    series = _polynomial(square, _series(order, _TERMS))
    series = series * inside if order % 2 else series
    outside = Pair(where(near, 1.0, z.re), where(near, 0.0, z.im))
    angle, height = math.pi * (outside.re - 2.0 * apply("rint", 0.5 * outside.re)), math.pi * outside.im
    sin, cos, sinh, cosh = apply("sin", angle), apply("cos", angle), apply("sinh", height), apply("cosh", height)
    sine, cosine = Pair(sin * cosh, cos * sinh), Pair(cos * cosh, -(sin * sinh))
    reciprocal = inverse(outside * math.pi)
    quotient = sine * reciprocal
    for n, numerator in zip(range(1, order + 1), itertools.cycle((cosine, -sine, -cosine, sine)), strict=False):
        quotient = (numerator - quotient * float(n)) * reciprocal
    quotient = quotient * math.pi**order
    return Pair(where(near, series.re, quotient.re), where(near, series.im, quotient.im))


def _polynomial(square: _Number, coefficients: list[float]) -> _Number:
    """By Horner's rule; the highest power first."""
    first, *others = coefficients
    result = square * first + others[0]
    for coefficient in others[1:]:
        result = result * square + coefficient
    return result


def _series(order: int, terms: int) -> list[float]:
    """Coefficients of the derivative of sin(πx) / πx in powers of (πx)², the highest first; after πx if it is odd."""
    found = []
    for k in range((order + 1) // 2, (order + 1) // 2 + terms):
        falling = math.perm(2 * k, order)  # the derivative of t**2k is that times t**(2k - order)
        found.append((-1.0) ** k * falling / math.factorial(2 * k + 1) * math.pi ** (order + order % 2))
    return found[::-1]


def csqrt(z: Pair) -> Pair:
    """√z with the real part not negative; on the negative axis the sign of the imaginary part decides."""
    larger = apply("sqrt", 0.5 * apply("fabs", z.re) + 0.5 * z.length())
    smaller = where(equal(larger, 0.0), z.im, z.im / (2.0 * larger))
    right = z.re >= 0.0
    return Pair(where(right, larger, apply("fabs", smaller)), where(right, smaller, apply("copysign", larger, z.im)))


def inverse(z: Pair) -> Pair:
    """`1 / z`, the derivative of log z; scaled, so that no square overflows or vanishes."""
    scale = _larger(z)
    re, im = z.re / scale, z.im / scale
    size = (re * re + im * im) * scale
    return Pair(re / size, -im / size)


def arc_slope(z: Pair) -> Pair:
    """`1 / (√(1 - z) √(1 + z))`, the derivative of asin z.

    The product of the roots is the root of the product: a real part that is not negative, and on the branch cuts the
    sign of the zero. Where that would overflow it is ∓iz, above and below the real axis.
    """
    side, far = apply("copysign", 1.0, z.im), _larger(z)
    root = csqrt(_one_less_square(z))
    below = Pair(where(far > _FAR, side * z.im, root.re), where(far > _FAR, -side * z.re, root.im))
    return inverse(below)


def pole_slope(z: Pair) -> Pair:
    """`1 / ((1 - z) (1 + z))`, the derivative of atanh z."""
    found, far = inverse(_one_less_square(z)), _larger(z)
    return Pair(where(far > _FAR, 0.0, found.re), where(far > _FAR, 0.0, found.im))


def _one_less_square(z: Pair) -> Pair:
    """`(1 - z) (1 + z)`; its imaginary part keeps the sign of a zero."""
    return Pair((1.0 - z.re) * (1.0 + z.re) + z.im * z.im, -2.0 * (z.re * z.im))


def _larger(z: Pair) -> Expr:
    re, im = apply("fabs", z.re), apply("fabs", z.im)
    return where(re > im, re, im)


def cpow(z: Pair, w: Pair) -> Pair:
    """`z**w`; of 0: 1, 0 or infinite, as the real part of the exponent is 0, positive or negative."""
    base = z.where_zero(ONE)
    radius, angle = apply("log", base.length()), apply("atan2", base.im, base.re)
    size = apply("exp", w.re * radius - w.im * angle)
    turn = w.im * radius + w.re * angle
    of_zero = where(equal(w.length(), 0.0), 1.0, where(w.re > 0.0, 0.0, math.inf))
    is_zero = equal(z.length(), 0.0)
    return Pair(where(is_zero, of_zero, size * apply("cos", turn)), where(is_zero, 0.0, size * apply("sin", turn)))


def _chosen(index: int, *arguments: Expr) -> Expr:
    return arguments[index]


def _parts(name: str, function: Callable[..., Pair]) -> dict[str, Callable[..., Expr]]:
    """The two functions of a complex one."""

    def pairs(parts: tuple[Expr, ...]) -> list[Pair]:
        return [Pair(re, im) for re, im in zip(parts[::2], parts[1::2], strict=True)]

    return {
        f"{name}_re": lambda *parts: function(*pairs(parts)).re,
        f"{name}_im": lambda *parts: function(*pairs(parts)).im,
    }


BODIES: Final[Mapping[str, Callable[..., Expr]]] = MappingProxyType(
    {
        "share": lambda x, y: _shares("exp", x, y)[0],
        "rest": lambda x, y: _shares("exp", x, y)[1],
        "share2": lambda x, y: _shares("exp2", x, y)[0],
        "rest2": lambda x, y: _shares("exp2", x, y)[1],
        "sinc_1": first_sinc_slope,
        **{f"sinc_{n}": partial(sinc_slope, n) for n in range(2, SINC_ORDERS + 1)},
        **{k: f for n in range(1, SINC_ORDERS + 1) for k, f in _parts(f"csinc_{n}", partial(csinc_slope, n)).items()},
        **_parts("inverse", inverse),
        **_parts("arc_slope", arc_slope),
        **_parts("pole_slope", pole_slope),
        **_parts("cpow", cpow),
        **{name: partial(_chosen, index) for name, index in VALUES.items()},
    }
)

WITH_RULES: Final = tuple(name for name in BODIES if str(SINC_ORDERS) not in name)
"""Functions that stay calls where a derivative is differentiated."""
