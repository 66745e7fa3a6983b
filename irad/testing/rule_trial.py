"""One program at one point: what finite differences of the plain program say, and what its derivative with rules gives.

All cotangents are random: that of the value, and those that shadows hold beforehand. What a shadow holds afterwards
is then the derivative of ⟨cotangent, value⟩ + ⟨shadow, final content⟩ by the initial content; where nothing is written
that is the gradient added to what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numba.typed import Dict as TypedDict
from numba.typed import List as TypedList

import irad
from irad.options import Options
from irad.testing.check_gradient import in_types_of, random_like
from irad.testing.finite_difference import gradient
from irad.testing.leaves import Vector, copy_arguments, has_leaves, read_leaves, same_bits, with_leaves
from irad.testing.objective import Objective

RTOL: Final = 1e-6
RTOL_SINGLE: Final = 2e-4
_NUDGE: Final = 1e-4  # towards zero: that leaves few domains
_MEMORY: Final = (np.ndarray, np.void)


@dataclass(frozen=True)
class Run:
    """What one run of a derivative gave.

    Attributes:
        value: of the primal.
        after: the arguments afterwards.
        cotangents: for each argument, as a vector; None for a constant one.
    """

    value: Any
    after: tuple[Any, ...]
    cotangents: tuple[Vector | None, ...]


@dataclass(frozen=True)
class Trial:
    """A program, a point, and what takes part.

    Attributes:
        program: compiled by Numba.
        values: its arguments.
        active: for each whether it takes part.
        constant_return: whether the value has no cotangent.
        rtol: relative tolerance; as the narrowest argument allows when None.
        atol: absolute tolerance; ``rtol`` times the largest derivative when None.
        draw: which of the random cotangents.
        options: how the derivative is made.
        unit: the cotangent of a float is 1 and not random.
        nudges: the program may be called with arguments close by, too.
    """

    program: Callable[..., Any]
    values: tuple[Any, ...]
    active: tuple[bool, ...]
    constant_return: bool = False
    rtol: float | None = None
    atol: float | None = None
    draw: int = 0
    options: Options | None = None
    unit: bool = False
    nudges: bool = True

    @cached_property
    def plain(self) -> tuple[Any, tuple[Any, ...]]:
        """The value of the plain program, and its arguments afterwards."""
        after = copy_arguments(self.values)
        return self.program(*after), after

    @cached_property
    def modified(self) -> tuple[bool, ...]:
        """For each argument whether the plain program writes to its floats.

        What it writes may happen to be there already, zeros where zeros were; so it is tried close by, too.
        """
        nudged = tuple(map(nudge, self.values)) if self.nudges else self.values
        after = copy_arguments(nudged)
        self.program(*after)
        return tuple(
            has_leaves(before) and not (same_bits(before, self.plain[1][i]) and same_bits(nudged[i], after[i]))
            for i, before in enumerate(self.values)
        )

    @cached_property
    def seed(self) -> Any:
        """A cotangent for the value; None where it has none."""
        value = self.plain[0]
        if self.unit and not self.constant_return and isinstance(value, float):
            return 1.0
        return None if self.constant_return or not has_leaves(value) else random_like(value, self.draw)

    @property
    def is_single(self) -> bool:
        """Whether single precision takes part."""
        return any(map(is_single, (*self.values, self.plain[0])))

    @property
    def description(self) -> str:
        """The arguments and how they take part."""
        words = [describe(value, active) for value, active in zip(self.values, self.active, strict=True)]
        returned = "Const" if self.seed is None else "active"
        return f"arguments ({', '.join(words)}), return {returned}"

    def shadows(self, filled: Sequence[bool]) -> tuple[Any, ...]:
        """Shadows for the arguments: zero, or random where told so."""
        made = copy_arguments(self.values)
        generator = np.random.default_rng(7 + self.draw)
        for each, random in zip(made, filled, strict=True):
            fill(each, generator if random else None)
        return made

    def expected(self, shadows: tuple[Any, ...]) -> tuple[Vector | None, ...]:
        """The cotangents of the arguments, by finite differences.

        Raises:
            AssertionError: the differences do not converge.
        """
        objective = self.objective(shadows)
        found: list[Vector | None] = []
        for position, active in enumerate(self.active):
            if not active:
                found.append(None)
                continue
            own = self._differences(position, objective)
            if not self.modified[position]:
                own = own + only_memory(self.values[position], shadows[position])
            found.append(own)
        return tuple(found)

    def objective(self, shadows: tuple[Any, ...]) -> Objective:
        """What the cotangents are the derivative of: shadows of written memory count as cotangents."""
        weights = np.zeros(0) if self.seed is None else read_leaves(self.seed)
        written = [i for i, modified in enumerate(self.modified) if modified and self.active[i] and self._has_shadow(i)]
        outside = {i: only_memory(self.values[i], shadows[i]) for i in written}
        return Objective(self.program, self.values, weights, outside)

    def _has_shadow(self, position: int) -> bool:
        """Whether what an argument holds afterwards has a cotangent; that of objects has none."""
        return holds(self.values[position])[1]

    def _differences(self, position: int, objective: Objective) -> Vector:
        at = read_leaves(self.values[position])
        if objective.is_constant:
            return np.zeros(at.size)
        values, errors = gradient(lambda leaves: objective({position: leaves}), at)
        limit = (self.rtol or RTOL) * max(1.0, float(np.max(np.abs(values), initial=0.0)))
        assert np.all(errors <= limit), (
            f"finite differences of the plain function by argument {position} do not converge, errors {errors}: "
            "is it smooth there?"
        )
        return values

    def run(self, shadows: tuple[Any, ...]) -> Run:
        """Runs both sweeps, adding to shadows."""
        arguments = copy_arguments(self.values)
        annotated = [
            annotate(*each) if active else irad.Const(each[0])
            for *each, active in zip(arguments, shadows, self.active, strict=True)
        ]
        found, value = irad.autodiff(
            irad.ReverseWithPrimal, self.program, *annotated, seed=self.seed, options=self.options
        )
        cotangents = tuple(
            None if not active else read_leaves(shadow if gradient is None else gradient)
            for gradient, shadow, active in zip(found, shadows, self.active, strict=True)
        )
        return Run(value, arguments, cotangents)

    def agree(self, got: Any, wanted: Any) -> bool:
        """Whether two values are equal as far as derivatives can be."""
        rtol = self.rtol if self.rtol is not None else RTOL_SINGLE if self.is_single else RTOL
        return _close(got, wanted, rtol, self.atol)

    def same(self, got: Any, wanted: Any) -> bool:
        """Whether two values are equal up to rounding; what holds no floats, to the bit."""
        if isinstance(wanted, tuple | list | TypedList):
            return len(got) == len(wanted) and all(map(self.same, got, wanted))
        if isinstance(wanted, TypedDict):
            return list(got) == list(wanted) and all(self.same(got[key], wanted[key]) for key in wanted)
        if not has_leaves(wanted):
            return same_bits(got, wanted)
        if np.shape(got) != np.shape(wanted):
            return False
        return _close(read_leaves(got), read_leaves(wanted), 1e-5 if self.is_single else 1e-12, None)


def _close(got: Vector, wanted: Vector, rtol: float, atol: float | None) -> bool:
    scale = max(float(np.max(np.abs(wanted), initial=0.0)), 1e-3)
    slack = rtol * scale if atol is None else atol
    return got.shape == wanted.shape and bool(np.allclose(got, wanted, rtol, slack, equal_nan=True))


def annotate(value: Any, shadow: Any) -> Any:
    """An active argument as `irad.autodiff` takes it."""
    numbers, memory = holds(value)
    if not memory:
        return irad.Active(value)
    return irad.MixedDuplicated(value, shadow) if numbers else irad.Duplicated(value, shadow)


def describe(value: Any, active: bool) -> str:
    """How an argument takes part, and its type."""
    kind = type(annotate(value, value)).__name__ if active else "Const"
    if isinstance(value, np.ndarray):
        return f"{kind} {value.dtype}{list(value.shape)}"
    return f"{kind} {type(value).__name__}"


def holds(value: Any) -> tuple[bool, bool]:
    """Whether there are numbers with a derivative in a value, and whether there are arrays with one."""
    if isinstance(value, tuple):
        inner = [holds(entry) for entry in value]
        return any(n for n, _ in inner), any(m for _, m in inner)
    is_array = isinstance(value, _MEMORY)
    return has_leaves(value) and not is_array, has_leaves(value) and is_array


def only_memory(value: Any, shadow: Any) -> Vector:
    """The content of a shadow, with zeros for the numbers of a mixed argument, as one vector."""
    if isinstance(value, tuple):
        return np.concatenate([np.zeros(0), *(only_memory(v, s) for v, s in zip(value, shadow, strict=True))])
    return read_leaves(shadow) * isinstance(value, _MEMORY)


def fill(value: Any, generator: np.random.Generator | None) -> None:
    """Makes the floats of all arrays in a value random, or zero."""
    if isinstance(value, tuple):
        for entry in value:
            fill(entry, generator)
    elif isinstance(value, np.void) or (isinstance(value, np.ndarray) and value.dtype.names is not None):
        _fill_fields(value, generator)
    elif isinstance(value, np.ndarray) and has_leaves(value):
        value.flags.writeable = True
        value[...] = 0.0 if generator is None else generator.uniform(0.5, 1.5, value.shape)
        if generator is not None and value.dtype.kind == "c":
            value.imag[...] = generator.uniform(0.5, 1.5, value.shape)


def _fill_fields(value: Any, generator: np.random.Generator | None) -> None:
    if isinstance(value, np.ndarray):
        value.flags.writeable = True
    for name in value.dtype.names:
        part = value[name]
        if isinstance(part, _MEMORY):
            fill(part, generator)
        elif has_leaves(part):
            value[name] = 0.0 if generator is None else generator.uniform(0.5, 1.5)


def nudge(value: Any) -> Any:
    """A value close by, in its precision: no float of it is the same."""
    if not has_leaves(value):
        return value
    leaves = read_leaves(value)
    step = _NUDGE * (1.0 + abs(leaves)) * np.random.default_rng(leaves.size).uniform(0.5, 1.5, leaves.size)
    return in_types_of(with_leaves(value, leaves - np.copysign(step, leaves)), value)


def spoil(value: Any) -> None:
    """Overwrites all arrays in a value that may be written to."""
    if isinstance(value, tuple):
        for entry in value:
            spoil(entry)
    elif isinstance(value, np.ndarray) and has_leaves(value) and value.flags.writeable:
        value[...] = -3.25


def in_precision(value: Any, single: bool) -> Any:
    """A value in single or double precision, arrays laid out as they were."""
    if isinstance(value, tuple):
        entries = [in_precision(entry, single) for entry in value]
        return type(value)(*entries) if hasattr(value, "_fields") else tuple(entries)
    if not has_leaves(value):
        return value
    if not single:
        return with_leaves(value, read_leaves(value))
    if not isinstance(value, np.ndarray):
        return np.complex64(value) if isinstance(value, complex | np.complexfloating) else np.float32(value)
    dtype = np.dtype(np.complex64 if value.dtype.kind == "c" else np.float32)
    if value.flags.c_contiguous or value.flags.f_contiguous:
        made = value.astype(dtype, order="C" if value.flags.c_contiguous else "F")
    else:
        made = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), dtype)[..., ::2]
        made[...] = value
    made.flags.writeable = value.flags.writeable
    return made


def is_single(value: Any) -> bool:
    """Whether a value holds floats of single precision."""
    if isinstance(value, tuple):
        return any(map(is_single, value))
    return isinstance(value, np.ndarray | np.generic) and value.dtype in (np.float32, np.complex64)
