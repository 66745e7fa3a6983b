"""One number made from everything that a function returns or writes, to check its derivatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from irad.data.floats import Vector, in_types_of, read_floats, with_floats
from irad.testing.gradients.slope import gradient


@dataclass(frozen=True, slots=True)
class Objective:
    """⟨weights, floats of the value⟩ + ⟨outside, floats of arguments after the call⟩, by the floats of arguments.

    Attributes:
        program: compiled by Numba.
        values: its arguments.
        weights: by float of the value; empty where the value does not count.
        outside: by argument that is written, weights of what it holds afterwards.
        native: arguments keep their precision; otherwise the function computes in double precision.
    """

    program: Callable[..., Any]
    values: tuple[Any, ...]
    weights: Vector
    outside: Mapping[int, Vector]
    native: bool = False

    @property
    def is_constant(self) -> bool:
        """True if nothing counts."""
        return self.weights.size == 0 and not self.outside

    def __call__(self, changed: Mapping[int, Vector]) -> float:
        """The number, with other floats in some arguments."""
        arguments = self._arguments(changed)
        return self.of(self.program(*arguments), arguments)

    def _arguments(self, changed: Mapping[int, Vector]) -> list[Any]:
        arguments = [with_floats(a, changed[i] if i in changed else read_floats(a)) for i, a in enumerate(self.values)]
        if self.native:
            arguments = [in_types_of(a, like) for a, like in zip(arguments, self.values, strict=True)]
        return arguments

    def of(self, value: Any, arguments: Sequence[Any]) -> float:
        """The number made from a value, and from arguments as they are after the call."""
        total = self.weights @ read_floats(value) if self.weights.size else 0.0
        return float(total + sum(each @ read_floats(arguments[i]) for i, each in self.outside.items()))

    def differences(self, position: int, rtol: float, *, single: bool = False) -> Vector:
        """The derivatives with respect to the floats of one argument, from values of the program.

        Raises:
            AssertionError: the differences do not converge to a relative error of ``rtol``.
        """
        at = read_floats(self.values[position])
        if self.is_constant:
            return np.zeros(at.size)
        values, errors = gradient(lambda leaves: self({position: leaves}), at, single=single)
        limit = rtol * max(1.0, float(np.max(np.abs(values), initial=0.0)))
        assert np.all(errors <= limit), (
            f"finite differences of the plain function by argument {position} do not converge, errors {errors}: "
            "is it smooth there?"
        )
        return values

    def along(self, directions: Mapping[int, Vector]) -> Callable[[float], float]:
        """The number on a line through the arguments; NaN where the function raises as it does outside its domain."""
        called = self.calls_along(directions)

        def value_at(t: float) -> float:
            found = called(t)
            return nan if found is None else self.of(*found)

        return value_at

    def calls_along(self, directions: Mapping[int, Vector]) -> Callable[[float], tuple[Any, list[Any]] | None]:
        """Value and arguments after the call, on a line; None where the function raises as outside its domain."""
        start = {position: read_floats(self.values[position]) for position in directions}

        def call_at(t: float) -> tuple[Any, list[Any]] | None:
            arguments = self._arguments({position: start[position] + t * d for position, d in directions.items()})
            try:
                return self.program(*arguments), arguments
            except (ArithmeticError, ValueError):
                return None

        return call_at
