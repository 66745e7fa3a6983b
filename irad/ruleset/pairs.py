"""Complex numbers as pairs of expressions, and functions of them, for derivatives of complex functions.

A branch cut has two sides, which the sign of a zero tells apart: `1 - z` is written so that the zero of an imaginary
part keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass

from irad.ruleset.terms import Expr, apply, equal, expression, where


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
