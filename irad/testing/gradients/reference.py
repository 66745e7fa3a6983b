"""The derivative of one objective along lines, from values of the plain function: the truth of `gradcheck`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from math import inf, isfinite
from typing import Any, Final

import numba
import numpy as np
from numba.core.errors import NumbaError

from irad.api.functions import remembered
from irad.data.floats import Vector, has_floats, holds_single, read_floats
from irad.data.structure import flattened, mapped
from irad.testing.gradients.objective import Objective
from irad.testing.gradients.slope import EPSILON, FIRST_STEPS, Nearby, Shape, Slope, noise_nearby, noise_of, slope

# Derivatives of compiled functions by complex steps: the function, compiled again for complex arguments.
#
# Numba's types decide whether that is possible: a comparison of active numbers, or one that is stored in an array of
# floats, does not compile for complex ones. What compiles but is not a holomorphic function (``abs``, ``conj``) gives
# other derivatives than finite differences do; so callers compare the two.
#
# Source:
#     Squire and Trapp 1998, "Using complex variables to estimate derivatives of real functions".

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
        """True if the arguments are such that complex steps make sense: numbers and arrays of real floats."""
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

        The step is not a power of two times the others, so that constants that cancel are rounded differently, too.
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


_AGREE: Final = 10.0  # times its error that finite differences may be off
_TELLING: Final = 2e-2  # parts of the slope: finite differences as good as this tell whether a complex step is right
DECIDED_OF_TERMS: Final = 1e-7  # parts of the terms of a derivative that cancels: as good as this is known
_NARROW: Final = (0.1, 3e-3)  # first steps as parts of a number that is small compared with the others
_ROOM_LEFT: Final = 1e-9  # parts of a number's size; a number closer to a bound than this lies on it

Bounds = tuple[Vector, Vector]


@dataclass
class Reference:
    """Derivatives of an objective.

    Attributes:
        objective: in double precision where the function takes it.
        bounds: by argument, where it may be called; nowhere else it is.
        complex_steps: None where they do not apply.
        noise: what is wrong with its values, in finite differences.
        single: whether the derivatives that are compared were computed in single precision.
        rounding: what is wrong with the values in single precision, if a derivative in it is compared; else 0.
        magnitude: of the objective.
        nearby: points where the rounding in derivatives is looked at.
    """

    objective: Objective
    bounds: Mapping[int, Bounds]
    complex_steps: ComplexSteps | None
    noise: float
    single: bool
    rounding: float
    magnitude: float
    nearby: Nearby

    @property
    def method(self) -> str:
        """Name of the method that gave the numbers."""
        return "complex step" if self.complex_steps is not None else "finite differences"

    def along(self, position: int, direction: Vector, *, careful: bool = False) -> Slope:
        """The derivative in one direction of one argument.

        Args:
            position: of the argument.
            direction: for each of its floats.
            careful: the rounding of terms that cancel is measured, which takes many more calls.
        """
        line = self.objective.along({position: direction})
        steps = (*FIRST_STEPS, *self._narrow_steps(position, direction))
        room = self.room(position, direction)
        found = slope(line, noise=self.noise, room=room, first_steps=steps, careful=careful)
        if self.complex_steps is None or found.shape is Shape.KINK or found.shape is Shape.UNDEFINED:
            return found
        exact = self.complex_steps.slope({position: direction})
        if exact is None or not self._agree(exact[0], found):
            if not careful:  # rounding may be all that they differ by
                return self.along(position, direction, careful=True)
            self.complex_steps = None
            return found
        terms = self.complex_steps.noise({position: direction}, self.nearby) / EPSILON if careful else 0.0
        if exact[1] >= found.error:
            return replace(found, terms=terms)
        return replace(found, value=exact[0], error=exact[1], shape=Shape.SMOOTH, terms=terms, from_values=False)

    def _narrow_steps(self, position: int, direction: Vector) -> tuple[float, ...]:
        """Further first steps along a single number that is small compared with the others."""
        moving = np.flatnonzero(direction)
        if moving.size != 1:
            return ()
        leaf = read_floats(self.objective.values[position])[moving[0]]
        own = abs(float(leaf) / float(direction[moving[0]]))
        return tuple(part * own for part in _NARROW if 0.0 < own < part)

    def _agree(self, exact: float, found: Slope) -> bool:
        """True if differences allow a complex step to be the derivative."""
        slack = _AGREE * found.error + 1e-9 * abs(found.value) + _AGREE * self.noise
        return abs(exact - found.value) <= slack

    def room(self, position: int, direction: Vector) -> tuple[float, float]:
        """Distances that the line can go in both directions within the bounds."""
        if position not in self.bounds:
            return -inf, inf
        low, high = self.bounds[position]
        leaves = read_floats(self.objective.values[position])
        moving = direction != 0.0
        leaves, low, high, step = leaves[moving], low[moving], high[moving], direction[moving]
        ends = np.stack([(low - leaves) / step, (high - leaves) / step]) if leaves.size else np.array([[-inf], [inf]])
        ends[np.abs(ends) < _ROOM_LEFT] = 0.0
        return float(np.max(np.min(ends, axis=0))), float(np.min(np.max(ends, axis=0)))

    def inwards(self, position: int, direction: Vector) -> Vector:
        """The direction, turned so that numbers on a bound move away from it."""
        if position not in self.bounds:
            return direction
        low, high = self.bounds[position]
        leaves, sizes = read_floats(self.objective.values[position]), np.abs(direction)
        turned = np.where(leaves - low <= _ROOM_LEFT * sizes, sizes, direction)
        return np.where(high - leaves <= _ROOM_LEFT * sizes, -sizes, turned)


def reference_for(
    objective: Objective, active: tuple[bool, ...], bounds: Mapping[int, Bounds], seed: int, complex_step: bool
) -> Reference:
    """Measures how exact the function's values are, and tries complex steps on a random line."""
    generator = np.random.default_rng(seed)
    directions = {}
    for position, takes_part in enumerate(active):
        leaves = read_floats(objective.values[position])
        if takes_part and leaves.size:
            directions[position] = sizes_of(leaves) * generator.uniform(0.5, 1.5, leaves.size)
    native = replace(objective, native=True)
    single = any(map(holds_single, objective.values))
    if single and not _takes_double(objective):
        objective = native
    plain = Reference(objective, bounds, None, 0.0, False, 0.0, 0.0, Nearby(objective.values, {}, (0.0, 0.0)))
    directions = {i: plain.inwards(i, d) for i, d in directions.items()}
    rooms = [plain.room(i, d) for i, d in directions.items()]
    room = max((low for low, _ in rooms), default=-inf), min((high for _, high in rooms), default=inf)
    noise = noise_of(objective.along(directions), room)
    rounding = noise_of(native.along(directions), room) if single and not objective.native else 0.0
    nearby = Nearby(objective.values, directions, room)
    steps = _trusted_steps(objective, nearby, noise) if complex_step and not objective.native else None
    return Reference(objective, bounds, steps, noise, single, rounding, abs(objective.along({})(0.0)), nearby)


def _takes_double(objective: Objective) -> bool:
    """True if the function can be called in double precision: not so if it was compiled for signatures."""
    try:
        objective({})
    except (NumbaError, TypeError):
        return False
    return True


def _trusted_steps(objective: Objective, nearby: Nearby, noise: float) -> ComplexSteps | None:
    """Complex steps, if they agree with finite differences on a line where these tell.

    Where the derivative cancels on that line, they tell if they are exact compared with its terms.
    """
    if not ComplexSteps.apply_to(objective):
        return None
    found = slope(objective.along(nearby.directions), noise=noise, room=nearby.room, careful=False)
    if found.shape in (Shape.KINK, Shape.UNDEFINED) or not isfinite(found.error):
        return None
    steps = ComplexSteps(objective)
    exact = steps.slope(nearby.directions)
    if exact is None or abs(exact[0] - found.value) > _AGREE * found.error + noise:
        return None
    if found.shape is Shape.SMOOTH and found.error <= _TELLING * abs(found.value):
        return steps
    terms = steps.noise(nearby.directions, nearby) / EPSILON
    return steps if found.error <= DECIDED_OF_TERMS * terms else None


def sizes_of(leaves: Vector) -> Vector:
    """Scale of each number: its magnitude, but not less than a part of the typical one."""
    magnitudes = np.abs(leaves[np.isfinite(leaves) & (leaves != 0.0)])
    typical = float(np.median(magnitudes)) if magnitudes.size else 1.0
    sizes = np.abs(leaves)
    sizes[~np.isfinite(leaves) | (leaves == 0.0)] = typical
    return np.maximum(sizes, 1e-3 * typical)
