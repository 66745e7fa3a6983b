"""Derivatives of compiled functions by complex steps: the function, compiled again for complex arguments.

Numba's types decide whether that is possible: a comparison of active numbers, or one that is stored in an array of
floats, does not compile for complex ones. What compiles but is not a holomorphic function (``abs``, ``conj``) gives
other derivatives than finite differences do; so callers compare the two.

Source:
    Squire and Trapp 1998, "Using complex variables to estimate derivatives of real functions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

import numba
import numpy as np
from numba.core.errors import NumbaError

from irad.api.functions import remembered
from irad.data.floats import Vector, has_floats, read_floats
from irad.data.structure import flattened, mapped
from irad.testing.gradients.objective import Objective
from irad.testing.gradients.rounding import Nearby, noise_nearby

_STEPS: Final = (1e-30, 0.7e-30)
_ROUNDING: Final = 4 * float(np.finfo(np.float64).eps)


class ComplexSteps:
    """Derivatives of an objective on lines through its arguments.

    Args:
        objective: of arguments without complex numbers, in double precision.
        active: for each argument whether it may be varied; all that hold floats become complex.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        dispatcher: Any = objective.program
        self._program = remembered(dispatcher, "complex steps", lambda: _again(dispatcher))

    @staticmethod
    def apply_to(objective: Objective) -> bool:
        """Whether the arguments are such that complex steps make sense: numbers and arrays of real floats."""
        return all(map(_can_be_complex, flattened(objective.values)))

    def slope(self, directions: Mapping[int, Vector]) -> tuple[float, float] | None:
        """The derivative along a line and how far off it may be; None where the function is not made for it."""
        try:
            first, second = (self._along(directions, step) for step in _STEPS)
        except (
            NumbaError,
            NotImplementedError,
            TypeError,
            ArithmeticError,
            ValueError,
        ):  # not made for complex numbers
            return None
        error = abs(first - second) + _ROUNDING * abs(first)
        return (first, error) if np.isfinite(error) else None

    def noise(self, directions: Mapping[int, Vector], nearby: Nearby) -> float:
        """The rounding in derivatives along a line: each at another point close by, and with another step.

        The step is not a power of two times the others, so that constants that cancel are rounded anew, too.
        """
        generator = np.random.default_rng(0)

        def slope_at(values: tuple[Any, ...]) -> float:
            return self._along(directions, _STEPS[0] * generator.uniform(0.5, 1.0), values)

        return noise_nearby(slope_at, nearby)

    def _along(self, directions: Mapping[int, Vector], step: float, values: tuple[Any, ...] | None = None) -> float:
        arguments = [
            _complex(value, step * directions[i] if i in directions else np.zeros(read_floats(value).size))
            for i, value in enumerate(values or self._objective.values)
        ]
        value = self._program(*arguments)
        total = 0.0
        if self._objective.weights.size:
            total += _weighted(self._objective.weights, value)
        for position, weights in self._objective.outside.items():
            total += _weighted(weights, arguments[position])
        return float(total / step)


def _again(dispatcher: Any) -> Callable[..., Any]:
    """The function compiled apart, sequentially."""
    model = dispatcher.targetoptions.get("error_model", "python")
    return numba.njit(error_model=model)(dispatcher.py_func)


def _can_be_complex(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.names is None and value.dtype.kind != "c"
    return isinstance(value, float | np.floating) or not has_floats(value)


def _complex(value: Any, imaginary: Vector) -> Any:
    """A value with floats made complex."""
    rest = iter(imaginary.tolist())

    def made_complex(each: Any) -> Any:
        if not has_floats(each):
            return each.copy() if isinstance(each, np.ndarray) else each
        if isinstance(each, np.ndarray):
            made = each.astype(np.complex128)
            made.imag[...] = np.fromiter(islice(rest, each.size), np.float64, each.size).reshape(each.shape)
            made.flags.writeable = each.flags.writeable
            return made
        return complex(each, next(rest))

    return mapped(made_complex, value)


def _weighted(weights: Vector, value: Any) -> float:
    found = [np.ravel(np.imag(each)) for each in flattened(value) if has_floats(each)]
    parts = np.concatenate([np.zeros(0), *found])
    if parts.size != weights.size:
        raise TypeError("the value has another structure for complex arguments")
    return float(weights @ parts)
