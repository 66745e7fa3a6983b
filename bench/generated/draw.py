"""Random choices, and what a family makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from bench.case import Size
from bench.generated.tree import Expr, Function

T = TypeVar("T")
Lengths: TypeAlias = Mapping[Size, int]
Inputs: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A program as a family draws it.

    Attributes:
        title: short description.
        functions: those that are called first, and the one to differentiate, ``loss``, last.
        inputs: arguments of ``loss`` by name, of a size.
        active: those to differentiate with respect to.
    """

    title: str
    functions: Sequence[Function]
    inputs: Callable[[Size, np.random.Generator], Inputs]
    active: Sequence[str]


class Draw:
    """Choices from a seed."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one_of(self, *options: T) -> T:
        """One of some options, all as likely."""
        return options[int(self._rng.integers(len(options)))]

    def some_of(self, options: Sequence[T]) -> list[T]:
        """At least one of some options, in their order."""
        kept = self._rng.random(len(options)) < 0.6
        kept[self._rng.integers(len(options))] = True
        return [option for option, is_kept in zip(options, kept, strict=True) if is_kept]

    def chance(self, probability: float) -> bool:
        """True as often as that."""
        return bool(self._rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self._rng.integers(low, high + 1))

    def number(self, low: float, high: float) -> float:
        """A number of three digits, as people write it."""
        return float(f"{self._rng.uniform(low, high):.3g}")

    def lengths(self, small: int, low: int, high: int) -> Lengths:
        """A length for each size of inputs; the full one is drawn, its logarithm uniformly."""
        full = round(math.exp(self._rng.uniform(math.log(low), math.log(high))))
        return lengths(small, full)


def lengths(small: int, full: int) -> Lengths:
    """A length for each size of inputs."""
    return {"small": small, "medium": round(math.sqrt(small * full)), "full": max(small, full)}


def total_of(terms: Sequence[Expr]) -> Expr:
    """The sum of some terms, from left to right."""
    total, *others = terms
    for term in others:
        total = total + term
    return total
