"""Integers as polynomials: coefficients by product of atoms, which may be anything that can be compared and hashed."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeAlias

Monomial: TypeAlias = tuple[Hashable, ...]
Polynomial: TypeAlias = Mapping[Monomial, int]


def monomial(*atoms: Hashable) -> Monomial:
    """A product of atoms, in an order of their own."""
    return tuple(sorted(atoms, key=hash))


def added(a: Polynomial, b: Polynomial) -> Polynomial:
    """The sum."""
    total = dict(a)
    for term, coefficient in b.items():
        total[term] = total.get(term, 0) + coefficient
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def scaled(a: Polynomial, factor: int) -> Polynomial:
    """A multiple."""
    return {term: coefficient * factor for term, coefficient in a.items()} if factor else {}


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product."""
    total: dict[Monomial, int] = {}
    for left, x in a.items():
        for right, y in b.items():
            term = monomial(*left, *right)
            total[term] = total.get(term, 0) + x * y
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def replaced(a: Polynomial, atom: Hashable, by: Polynomial) -> Polynomial:
    """The polynomial with another one in place of an atom that occurs alone."""
    return added({term: c for term, c in a.items() if term != (atom,)}, scaled(by, a.get((atom,), 0)))


def evaluated(a: Polynomial, atom: Hashable, number: int) -> Polynomial:
    """The polynomial where an atom is a number."""
    total: dict[Monomial, int] = {}
    for term, coefficient in a.items():
        rest = tuple(each for each in term if each != atom)
        total[rest] = total.get(rest, 0) + coefficient * number ** (len(term) - len(rest))
    return {term: coefficient for term, coefficient in total.items() if coefficient}
