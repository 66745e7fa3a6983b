"""Programs with inputs, for tests of derivatives: functions as users write them, each with points to check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from irad.testing.check_gradient import check_quickly

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Later:
    """An argument that is made where it is used: Numba compiles for typed lists and dictionaries, which takes seconds.

    Each process of a run imports all tests.
    """

    make: Callable[[], Any]


def later(make: Callable[..., Any], *args: Any) -> Later:
    """``make(*args)``, when a case is checked."""
    return Later(lambda: make(*args))


@dataclass(frozen=True, slots=True)
class Case:
    """A function and one point.

    Attributes:
        name: for the test's id.
        function: compiled by Numba or plain.
        given: where to differentiate; fixed.
        options: keyword arguments of ``check_quickly``.
    """

    name: str
    function: Callable[..., Any]
    given: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    @property
    def args(self) -> tuple[Any, ...]:
        """Where to differentiate."""
        return tuple(each.make() if isinstance(each, Later) else each for each in self.given)

    def check(self) -> None:
        """Compare irad with finite differences, and the plans and modes with each other."""
        check_quickly(self.function, *self.args, **{"forward": True} | self.options)


class Catalogue(Collection[Case]):
    """The cases of one file, in the order of their definition."""

    def __init__(self) -> None:
        self._cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def __len__(self) -> int:
        return len(self._cases)

    def __contains__(self, case: object) -> bool:
        return any(case is known for known in self._cases)

    def at(self, *args: Any, **options: Any) -> Callable[[Function], Function]:
        """Decorator: check the function at ``args``. May be repeated; the lowest is the first."""

        def add(function: Function) -> Function:
            name = function.__name__
            number = sum(case.function is function for case in self._cases)
            self._cases.append(Case(f"{name}-{number}" if number else name, function, args, options))
            return function

        return add

    def slow(self) -> list[Any]:
        """The cases, to be run with the slow tests."""
        return [pytest.param(case, marks=pytest.mark.slow) for case in self]


def floats(
    *shape: int, low: float = 0.5, high: float = 2.0, seed: int = 0, dtype: DTypeLike = np.float64, order: str = "C"
) -> NDArray[Any]:
    """An array of distinct random floats, the same for the same arguments."""
    rng = np.random.default_rng((seed, *shape))
    values = rng.uniform(low, high, shape).astype(dtype)
    return np.asfortranarray(values) if order == "F" else values
