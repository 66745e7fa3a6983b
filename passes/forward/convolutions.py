"""Products and quotients of Taylor series."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from irad.ir.builder import Builder
from irad.ir.values import Value
from irad.passes import products

Coefficients: TypeAlias = Callable[[int], "Value | None"]
"""The coefficients of a number by order, the number itself first; None when known to be zero."""


class Convolutions:
    """Emits coefficients of products and quotients.

    Args:
        build: where they are emitted.
        zero_wins: whether zero times infinity is zero.
    """

    def __init__(self, build: Builder, *, zero_wins: bool) -> None:
        self._build, self._zero_wins = build, zero_wins

    def times(self, coefficient: Value, factor: Value) -> Value:
        """A coefficient, of order 1 or more, times a number."""
        product = products.product_or_zero if self._zero_wins else Builder.fmul
        return product(self._build, coefficient, factor)

    def convolved(self, a: Coefficients, b: Coefficients, orders: Iterable[tuple[int, int]]) -> Value | None:
        """The sum of the products of coefficients of two orders; the first is 1 or more."""
        total: Value | None = None
        for i, j in orders:
            first = a(i)
            second = None if first is None else b(j)
            if first is not None and second is not None:
                product = self.times(first, second)
                total = product if total is None else self._build.fadd(total, product)
        return total

    def added(self, a: Value | None, b: Value | None) -> Value | None:
        """A sum."""
        return a or b if a is None or b is None else self._build.fadd(a, b)

    def difference(self, a: Value | None, b: Value | None) -> Value | None:
        """A difference."""
        if b is None:
            return a
        return self._build.fneg(b) if a is None else self._build.fsub(a, b)

    def product(self, a: Coefficients, b: Coefficients, order: int) -> Value | None:
        """Of a product: Σ aⱼ bₖ₋ⱼ."""
        inner = self.convolved(a, b, ((j, order - j) for j in range(1, order + 1)))
        return self.added(inner, self.convolved(b, a, [(order, 0)]))

    def square(self, a: Coefficients, order: int) -> Value | None:
        """Of a square: each product of two different coefficients stands there twice."""
        twice = self.convolved(a, a, ((order - j, j) for j in range((order + 1) // 2)))
        total = None if twice is None else self._build.fadd(twice, twice)
        return total if order % 2 else self.added(total, self.convolved(a, a, [(order // 2, order // 2)]))

    def quotient(self, a: Value | None, b: Coefficients, quotient: Coefficients, order: int) -> Value | None:
        """Of a quotient with ``a`` as the numerator's: (aₖ - Σ bⱼ zₖ₋ⱼ) / b₀, j from 1."""
        rest, divisor = self.convolved(b, quotient, ((j, order - j) for j in range(1, order + 1))), b(0)
        found = self.difference(a, rest)
        if found is None or divisor is None:
            return None
        return (
            products.divided(self._build, found, divisor, zero_wins=True)
            if self._zero_wins
            else self._build.fdiv(found, divisor)
        )
