"""Integers as polynomials in values: the form in which addresses and trip counts are rearranged.

    8·n·i + 8·j + 16        {(n, i): 8, (j,): 8, (): 16}

Wrapping around at 64 bits is left out: sizes and addresses of programs that run do not wrap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from irad.ir.values import Value

Monomial = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials with integer coefficients, none of them 0; a monomial's values are ordered."""

    terms: Mapping[Monomial, int]

    @staticmethod
    def constant(number: int) -> Polynomial:
        """Polynomial of a number."""
        return Polynomial({(): number} if number else {})

    @staticmethod
    def of(value: Value) -> Polynomial:
        """Polynomial of a value."""
        return Polynomial({(value,): 1})

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self.terms)
        for monomial, factor in other.terms.items():
            total[monomial] = total.get(monomial, 0) + factor
        return Polynomial({m: c for m, c in total.items() if c})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.scaled(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                monomial = tuple(sorted(a + b, key=_rank))
                total[monomial] = total.get(monomial, 0) + x * y
        return Polynomial({m: c for m, c in total.items() if c})

    def scaled(self, factor: int) -> Polynomial:
        """Times a number."""
        return Polynomial({m: c * factor for m, c in self.terms.items()} if factor else {})

    @property
    def number(self) -> int | None:
        """The number it is, if no value is in it."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def values(self) -> set[Value]:
        """The values in it."""
        return {value for monomial in self.terms for value in monomial}

    def equals(self, other: Polynomial) -> bool:
        """True if both are the same sum."""
        return not (self - other).terms

    def divided(self, by: Polynomial) -> tuple[Polynomial, Polynomial] | None:
        """Quotient and remainder for a divisor of one term; the remainder holds the terms that it does not divide."""
        if len(by.terms) != 1:
            return None
        (divisor, size), *_ = by.terms.items()
        quotient: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, factor in self.terms.items():
            left = _without(monomial, divisor)
            if left is None:
                rest[monomial] = factor
                continue
            whole = factor // size if factor >= 0 or factor % size == 0 else -(-factor // size)
            if whole:
                quotient[left] = quotient.get(left, 0) + whole
            if factor - whole * size:
                rest[monomial] = factor - whole * size
        return Polynomial({m: c for m, c in quotient.items() if c}), Polynomial(rest)


def _rank(value: Value) -> tuple[str, int]:
    """An order of values that is the same in every run as far as they have names."""
    return value.name or "", id(value)


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    left = list(monomial)
    for value in divisor:
        if value not in left:
            return None
        left.remove(value)
    return tuple(left)


def product(factors: Iterable[Polynomial]) -> Polynomial:
    """Product of polynomials."""
    total = Polynomial.constant(1)
    for factor in factors:
        total = total * factor
    return total
