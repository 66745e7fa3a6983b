"""Derivatives of plain Python functions in rational arithmetic, and the size of the terms that add up to them.

Floats are rational numbers, so a function of +, −, ×, ÷ and whole powers has an exact derivative at floats: the truth
where terms cancel, and every derivative in floating point is as inexact as its terms are large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from irad.data.floats import Vector


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """A number and its derivative, each with the sum of the magnitudes of the terms that it is expanded to.

    What is divided by counts as one term.
    """

    value: Fraction
    slope: Fraction
    value_terms: Fraction
    slope_terms: Fraction

    def __add__(self, other: Any) -> Exact:
        b = exact(other)
        terms = self.value_terms + b.value_terms, self.slope_terms + b.slope_terms
        return Exact(self.value + b.value, self.slope + b.slope, *terms)

    def __mul__(self, other: Any) -> Exact:
        b = exact(other)
        return Exact(
            self.value * b.value,
            self.slope * b.value + self.value * b.slope,
            self.value_terms * b.value_terms,
            self.slope_terms * b.value_terms + self.value_terms * b.slope_terms,
        )

    def __neg__(self) -> Exact:
        return Exact(-self.value, -self.slope, self.value_terms, self.slope_terms)

    def __sub__(self, other: Any) -> Exact:
        return self + -exact(other)

    def __pow__(self, exponent: int) -> Exact:
        base, product = self if exponent >= 0 else self._inverse(), exact(1)
        for _ in range(abs(exponent)):
            product *= base
        return product

    def __truediv__(self, other: Any) -> Exact:
        return self * exact(other)._inverse()

    def __rsub__(self, other: Any) -> Exact:
        return exact(other) - self

    def __rtruediv__(self, other: Any) -> Exact:
        return exact(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def _inverse(self) -> Exact:
        square = self.value**2
        return Exact(1 / self.value, -self.slope / square, abs(1 / self.value), self.slope_terms / square)


def exact(number: Any, slope: int = 0) -> Exact:
    """A number that varies at a rate, or is constant."""
    if isinstance(number, Exact):
        return number
    value = Fraction(number if isinstance(number, int) else float(number))
    return Exact(value, Fraction(slope), abs(value), Fraction(abs(slope)))


def partial_derivatives(f: Callable[..., Any], x: Any, *rest: Any) -> tuple[Vector, Vector]:
    """Those with respect to the floats of the first argument, and the sums of the sizes of their terms."""
    leaves = np.ravel(x).tolist()
    found = []
    for varied in range(len(leaves)):
        numbers = np.empty(len(leaves), object)
        numbers[:] = [exact(each, int(i == varied)) for i, each in enumerate(leaves)]
        found.append(exact(f(numbers.reshape(np.shape(x))[()], *rest)))
    return np.array([float(each.slope) for each in found]), np.array([float(each.slope_terms) for each in found])
