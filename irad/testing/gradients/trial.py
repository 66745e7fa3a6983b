"""The runner of all checks: one program at one point, its plain run, its derivatives in each mode, and comparisons.

`check_gradient`, `gradcheck`, `check_rule`, `irad bench` and the tests of random programs say what is compared, how
closely, and what they tell of a difference. How the program and its derivatives are run is said here.

All cotangents are random: that of the value, and those that shadows hold beforehand. What a shadow holds afterwards is
then the derivative of ⟨cotangent, value⟩ + ⟨shadow, final content⟩ with respect to the initial content; where nothing
is written that is the gradient added to what was there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import starmap
from typing import Any, Final

import numpy as np
from numba.core import config

import irad
from irad.api.annotations import annotation_for
from irad.api.forward import with_direction
from irad.data.copies import copied, same_bits
from irad.data.floats import (
    Vector,
    floats_only,
    has_floats,
    holds_single,
    in_types_of,
    read_floats,
    vectors,
    with_floats,
)
from irad.data.structure import flattened, is_structure, paired, rebuilt
from irad.options import Options
from irad.testing.gradients.objective import Objective

RTOL: Final = 1e-6
RTOL_SINGLE: Final = 2e-4
_NUDGE: Final = 1e-4  # towards zero: that leaves few domains
_MEMORY: Final = (np.ndarray, np.void)
_LIMIT: Final = 1  # how much Numba optimises: at 0 LLVM leaves so much code that machine code takes as long as is saved


@contextmanager
def optimisation_limited() -> Iterator[None]:
    """LLVM does little more than inline and simplify what Numba compiles meanwhile, and no vectors; in all threads."""
    before = config.OPT, config.LOOP_VECTORIZE
    config.OPT, config.LOOP_VECTORIZE = type(config.OPT)(min(config.OPT, _LIMIT)), 0
    try:
        yield
    finally:
        config.OPT, config.LOOP_VECTORIZE = before


@dataclass(frozen=True)
class Run:
    """Result of one run of a derivative in reverse mode.

    Attributes:
        value: of the primal; None where the derivative was asked for without it.
        after: what the run left in memory, as `Trial.fresh` hands it out.
        gradients: for each argument, in its structure; None for a constant one.
    """

    value: Any
    after: tuple[Any, ...]
    gradients: tuple[Any, ...]

    @cached_property
    def cotangents(self) -> tuple[Vector | None, ...]:
        """The gradients as vectors."""
        return tuple(None if each is None else read_floats(each) for each in self.gradients)


@dataclass(frozen=True)
class Answer:
    """Derivative by irad, and what it is taken of.

    Attributes:
        run: value, arguments afterwards, cotangents.
        objective: the number whose derivatives the cotangents are.
    """

    run: Run
    objective: Objective


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
        options: options of the derivative.
        unit: the cotangent of a float is 1 and not random.
        nudges: the program may be called with arguments close by, too.
        reference: what finite differences are taken of, where that is not the program itself: a Python function that
            comes to the same, so that Numba need not compile the program.
        slopes: finite differences that are known; trials of one program at one point may share them.
        held: for each argument whether it is always passed as it is, and never takes part; none is if empty.
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
    reference: Callable[..., Any] | None = None
    slopes: dict[object, Vector] = field(default_factory=dict)
    held: tuple[bool, ...] = ()

    @cached_property
    def free(self) -> tuple[bool, ...]:
        """For each argument whether it holds floats that may take part."""
        held = self.held or (False,) * len(self.values)
        return tuple(has_floats(value) and not fixed for value, fixed in zip(self.values, held, strict=True))

    @property
    def positions(self) -> tuple[int, ...]:
        """Positions of the arguments that take part."""
        return tuple(position for position, active in enumerate(self.active) if active)

    @property
    def all_take_part(self) -> bool:
        """True if all arguments do that may."""
        return all(active or not free for active, free in zip(self.active, self.free, strict=True))

    @property
    def plainly(self) -> Callable[..., Any]:
        """The plain program."""
        return self.program if self.reference is None else self.reference

    def fresh(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arguments for one run, and the memory that is compared afterwards: these arguments."""
        arguments = copied(self.values)
        return arguments, arguments

    @cached_property
    def plain(self) -> tuple[Any, tuple[Any, ...]]:
        """The value of the plain program, and its arguments afterwards."""
        arguments, after = self.fresh()
        return self.plainly(*arguments), after

    @property
    def returns_number(self) -> bool:
        """True if the value is a float, so that it has a gradient."""
        return isinstance(self.plain[0], float | np.floating)

    @cached_property
    def modified(self) -> tuple[bool, ...]:
        """For each argument whether the plain program writes to its floats.

        What it writes may happen to be there already, zeros where zeros were; so it is tried close by, too.
        """
        nudged = tuple(map(self._nudged, self.values, self.free))
        after = copied(nudged)
        self.plainly(*after)
        return tuple(
            free and not (same_bits(before, self.plain[1][i]) and same_bits(nudged[i], after[i]))
            for i, (before, free) in enumerate(zip(self.values, self.free, strict=True))
        )

    def _nudged(self, value: Any, free: bool) -> Any:
        return nudge(value) if free and self.nudges else value

    @cached_property
    def seed(self) -> Any:
        """A cotangent for the value; None where it has none."""
        value = self.plain[0]
        if self.unit and not self.constant_return and self.returns_number:
            return 1.0
        return None if self.constant_return or not has_floats(value) else random_like(value, self.draw)

    @property
    def is_single(self) -> bool:
        """True if single precision takes part."""
        return holds_single((*self.values, self.plain[0]))

    @property
    def description(self) -> str:
        """The arguments and how they take part."""
        words = [describe(value, active) for value, active in zip(self.values, self.active, strict=True)]
        returned = "Const" if self.seed is None else "active"
        return f"arguments ({', '.join(words)}), return {returned}"

    def shadows(self, filled: Sequence[bool]) -> tuple[Any, ...]:
        """Shadows for the arguments: zero, or random where told so."""
        made = copied(self.values)
        generator = np.random.default_rng(7 + self.draw)
        for each, random in zip(made, filled, strict=True):
            fill(each, partial(generator.uniform, 0.5, 1.5) if random else None)
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
            own = self._differences(objective, position)
            if not self.modified[position]:
                own = own + only_memory(self.values[position], shadows[position])
            found.append(own)
        return tuple(found)

    def _differences(self, objective: Objective, position: int) -> Vector:
        """Those of an objective, which depends neither on what takes part nor on the shadows if nothing is written."""
        outside = tuple((i, each.tobytes()) for i, each in objective.outside.items())
        key = self.plainly, position, objective.weights.tobytes(), outside
        if key not in self.slopes:
            self.slopes[key] = objective.differences(position, self.rtol or RTOL)
        return self.slopes[key]

    @cached_property
    def weights(self) -> Vector:
        """The cotangent of the value as a vector."""
        return np.zeros(0) if self.seed is None else read_floats(self.seed)

    def objective(self, shadows: tuple[Any, ...]) -> Objective:
        """Function whose derivative the cotangents are: shadows of written memory count as cotangents."""
        written = [i for i, modified in enumerate(self.modified) if modified and self.active[i] and self._has_shadow(i)]
        outside = {i: only_memory(self.values[i], shadows[i]) for i in written}
        return Objective(self.plainly, self.values, self.weights, outside)

    def objective_of_value(self, *, native: bool = False) -> Objective:
        """`objective` if what is left in memory has no cotangent; with ``native`` arguments keep their precision."""
        return Objective(self.plainly, self.values, self.weights, {}, native)

    def _has_shadow(self, position: int) -> bool:
        """True if what an argument holds afterwards has a cotangent; that of objects has none."""
        return holds(self.values[position])[1]

    def run(self, shadows: tuple[Any, ...]) -> Run:
        """Runs both sweeps, adding to shadows."""
        arguments = copied(self.values)
        found, value = irad.autodiff(
            irad.ReverseWithPrimal,
            self.program,
            *self.annotated(arguments, shadows),
            seed=self.seed,
            options=self.options,
        )
        return Run(value, arguments, self.gradients_of(found, shadows))

    def annotated(self, arguments: tuple[Any, ...], shadows: tuple[Any, ...]) -> list[Any]:
        """Arguments with their shadows as `irad.autodiff` takes them in reverse mode."""
        triples = zip(arguments, shadows, self.active, strict=True)
        return [annotate(value, shadow) if active else irad.Const(value) for value, shadow, active in triples]

    def gradients_of(self, found: tuple[Any, ...], shadows: tuple[Any, ...]) -> tuple[Any, ...]:
        """For each argument its gradient, which is returned or in its shadow."""
        triples = zip(found, shadows, self.active, strict=True)
        return tuple((shadow if got is None else got) if active else None for got, shadow, active in triples)

    def gradient(self, *, with_value: bool = True) -> Run:
        """Runs `irad.value_and_grad`, or `irad.grad`, of a program that returns a float."""
        arguments, after = self.fresh()
        if with_value:
            value, found = irad.value_and_grad(self.program, self.positions, options=self.options)(*arguments)
        else:
            value, found = None, irad.grad(self.program, self.positions, options=self.options)(*arguments)
        gradients = dict(zip(self.positions, found, strict=True))
        return Run(value, after, tuple(map(gradients.get, range(len(self.values)))))

    def pulled_back(self, times: int = 1) -> list[Run]:
        """Runs `irad.vjp`, and its pullback some times: the sweeps apart."""
        arguments, after = self.fresh()
        value, pulled = self.vjp(arguments)
        pairs = (zip(pulled(), self.active, strict=True) for _ in range(times))
        return [Run(value, after, tuple(each if active else None for each, active in found)) for found in pairs]

    def reverse(self) -> Run:
        """Runs reverse mode as users do: the gradient of a float, a pullback for anything else."""
        return self.gradient() if self.returns_number else self.pulled_back()[0]

    def vjp(self, arguments: tuple[Any, ...]) -> tuple[Any, Callable[[], tuple[Any, ...]]]:
        """The value, and what gives the cotangents of the arguments, None for those that are held."""
        if not any(self.held):
            value, pullback = irad.vjp(self.program, *arguments, options=self.options)
            return value, lambda: pullback(self.seed)
        free = tuple(i for i, free in enumerate(self.free) if free)
        value, pullback = irad.vjp(self.program, *arguments, argnums=free, options=self.options)

        def pulled() -> tuple[Any, ...]:
            found = dict(zip(free, pullback(self.seed), strict=True))
            return tuple(found.get(i) for i in range(len(self.values)))

        return value, pulled

    @cached_property
    def _push(self) -> Callable[..., Any]:
        return irad.pushforward(self.program, self.positions, options=self.options)

    def push(self, tangents: Mapping[int, Any]) -> ForwardRun:
        """Runs `irad.pushforward`, overwriting tangents of memory, which are given by position."""
        arguments, after = self.fresh()
        direction = tuple(tangents[position] for position in self.positions)
        value, tangent = self._push(*with_direction(arguments, self.positions, direction))
        return ForwardRun(value, after, read_floats(tangent))

    def is_exact_by_numbers(self, run: Callable[[Trial], Run | ForwardRun]) -> bool:
        """True if value and memory are the plain call's to the bit where no loop calls functions for vectors."""
        found = run(replace(self, options=replace(self.options or Options(), vector_math=False)))
        return same_bits((found.value, found.after), self.plain)

    def agree(self, got: Any, wanted: Any) -> bool:
        """True if two values are equal as far as derivatives can be."""
        rtol = self.rtol if self.rtol is not None else RTOL_SINGLE if self.is_single else RTOL
        return _close(got, wanted, rtol, self.atol)

    def same(self, got: Any, wanted: Any) -> bool:
        """True if two values are equal up to rounding; what holds no floats, to the bit."""
        return all(starmap(self._is_same_part, paired(got, wanted)))

    def difference(self, value: Any, after: Sequence[Any]) -> tuple[int | None, Any, Any] | None:
        """The first difference from the plain run, in a value and the arguments afterwards; None if there is none.

        Returns:
            The position of the argument, None for the value; what it should be; what it is.
        """
        plain_value, plain_after = self.plain
        if not self.same(value, plain_value):
            return None, plain_value, value
        pairs = enumerate(zip(plain_after, after, strict=True))
        return next(((i, wanted, got) for i, (wanted, got) in pairs if not self.same(got, wanted)), None)

    def with_one_array(self, first: int, second: int) -> tuple[Trial, Callable[[Sequence[Any]], tuple[Any, ...]]]:
        """A trial with one array as two arguments: without the second, and a function that passes the first twice."""

        def spread(fewer: Sequence[Any]) -> tuple[Any, ...]:
            return (*fewer[:second], fewer[first], *fewer[second:])

        def plain(*fewer: Any) -> Any:
            return self.program(*spread(fewer))

        values, active, held = ((*each[:second], *each[second + 1 :]) for each in (self.values, self.active, self.held))
        return Trial(plain, values, active, False, self.rtol, self.atol, held=held), spread

    def _is_same_part(self, got: Any, wanted: Any) -> bool:
        if is_structure(wanted) or not has_floats(wanted):
            return same_bits(got, wanted)
        if np.shape(got) != np.shape(wanted):
            return False
        return _close(read_floats(got), read_floats(wanted), 1e-5 if self.is_single else 1e-12, None)


def _close(got: Vector, wanted: Vector, rtol: float, atol: float | None) -> bool:
    finite = wanted[np.isfinite(wanted)]
    scale = max(float(np.max(np.abs(finite), initial=0.0)), 1e-3)
    slack = rtol * scale if atol is None else atol
    return got.shape == wanted.shape and bool(np.allclose(got, wanted, rtol, slack, equal_nan=True))


def tangent_of(value: Any, leaves: Vector) -> Any:
    """A tangent or cotangent: in the structure and precision of a value, None in place of what holds no floats."""
    return floats_only(in_types_of(with_floats(value, leaves), value))


def random_like(value: Any, draw: int = 0) -> Any:
    """A random cotangent for ``value``."""
    count = read_floats(value).size
    leaves = np.random.default_rng((count, draw) if draw else count).uniform(0.5, 1.5, count)
    return tangent_of(value, leaves)


def annotate(value: Any, shadow: Any) -> Any:
    """An active argument as `irad.autodiff` takes it."""
    numbers, memory = holds(value)
    kind = annotation_for(numbers=numbers, memory=memory)
    return kind(value, shadow) if memory else kind(value)


def describe(value: Any, active: bool) -> str:
    """The part that an argument takes, and its type, in words."""
    kind = type(annotate(value, value)).__name__ if active else "Const"
    if isinstance(value, np.ndarray):
        return f"{kind} {value.dtype}{list(value.shape)}"
    return f"{kind} {type(value).__name__}"


def holds(value: Any) -> tuple[bool, bool]:
    """Two truth values: the value holds numbers with a derivative; it holds arrays with one."""
    parts = [each for each in flattened(value, tuple) if has_floats(each)]
    return any(not isinstance(each, _MEMORY) for each in parts), any(isinstance(each, _MEMORY) for each in parts)


def only_memory(value: Any, shadow: Any) -> Vector:
    """The content of a shadow, with zeros for the numbers of a mixed argument, as one vector."""
    pairs = zip(flattened(value, tuple), flattened(shadow, tuple), strict=True)
    return np.concatenate([np.zeros(0), *(read_floats(s) * isinstance(v, _MEMORY) for v, s in pairs)])


def fill(value: Any, draw: Callable[[Any], Any] | None) -> None:
    """Overwrites the floats of all arrays in a value, with numbers drawn in a shape or with zeros."""
    for each in flattened(value, tuple):
        if not (isinstance(each, _MEMORY) and has_floats(each)):
            continue
        if isinstance(each, np.ndarray):
            each.flags.writeable = True
        for _, array in vectors(each):  # of records the fields
            array[...] = 0.0 if draw is None else draw(array.shape)
            if draw is not None and array.dtype.kind == "c":
                array.imag[...] = draw(array.shape)


def nudge(value: Any) -> Any:
    """A value close by, in its precision: no float of it is the same."""
    if not has_floats(value):
        return value
    leaves = read_floats(value)
    step = _NUDGE * (1.0 + abs(leaves)) * np.random.default_rng(leaves.size).uniform(0.5, 1.5, leaves.size)
    return in_types_of(with_floats(value, leaves - np.copysign(step, leaves)), value)


def spoil(value: Any) -> None:
    """Overwrites all arrays in a value that may be written to."""
    for each in flattened(value, tuple):
        if isinstance(each, np.ndarray) and has_floats(each) and each.flags.writeable:
            each[...] = -3.25


# One run in forward mode of a program at one point, with random tangents.


@dataclass(frozen=True)
class ForwardRun:
    """Result of one run in forward mode.

    Attributes:
        value: of the primal.
        after: what the run left in memory, as `Trial.fresh` hands it out.
        tangent: of the value.
        in_memory: the tangent of the memory of each argument afterwards, None for a constant one; empty if not asked.
    """

    value: Any
    after: tuple[Any, ...]
    tangent: Vector
    in_memory: tuple[Vector | None, ...] = ()

    @property
    def tangents(self) -> tuple[Vector | None, ...]:
        """Tangents of the value and of memory."""
        return self.tangent, *self.in_memory


def draw_tangents(trial: Trial, sign: float, only: int | None = None) -> tuple[Any, ...]:
    """Random tangents for the arguments that take part; zeros for all but one, if ``only`` that is to vary."""
    generator = np.random.default_rng(11 + trial.draw)

    def draw(factor: float, shape: Any) -> Any:
        return factor * generator.uniform(0.5, 1.5, shape)

    factors = (sign if only in (None, position) else 0.0 for position in range(len(trial.values)))
    return tuple(
        _tangent(*each) for each in zip(copied(trial.values), (partial(draw, f) for f in factors), strict=True)
    )


def _tangent(value: Any, draw: Callable[[Any], Any]) -> Any:
    """A tangent: the arrays of a value, overwritten, and other numbers."""
    if isinstance(value, tuple):
        return rebuilt(value, [_tangent(each, draw) for each in value])
    if holds(value)[1]:
        fill(value, draw)
        return value
    count = read_floats(value).size
    return tangent_of(value, np.asarray(draw(count))) if count else value


def directions_of(trial: Trial, tangents: tuple[Any, ...]) -> dict[int, Vector]:
    """The tangents of the arguments that take part as vectors, before a run overwrites them."""
    return {i: read_floats(each) for i, each in enumerate(tangents) if trial.active[i]}


def run_forward(trial: Trial, tangents: tuple[Any, ...]) -> ForwardRun:
    """Runs forward mode, overwriting tangents of memory."""
    arguments = copied(trial.values)
    triples = list(zip(arguments, tangents, trial.active, strict=True))
    annotated = [irad.Duplicated(value, tangent) if active else irad.Const(value) for value, tangent, active in triples]
    found, value = irad.autodiff(irad.ForwardWithPrimal, trial.program, *annotated, options=trial.options)
    in_memory = tuple(only_memory(value, tangent) if active else None for value, tangent, active in triples)
    return ForwardRun(value, arguments, read_floats(found), in_memory)


def dot_products(
    results: Iterable[tuple[Vector, Vector]], arguments: Iterable[tuple[Vector, Vector]]
) -> tuple[Vector, Vector]:
    """The terms of ⟨cotangent, J·direction⟩ and of ⟨Jᵀ·cotangent, direction⟩, whose sums are one number.

    Args:
        results: for each its cotangent, and its tangent by forward mode.
        arguments: for each its cotangent by reverse mode, and its direction.
    """
    return _terms(results), _terms(arguments)


def _terms(pairs: Iterable[tuple[Vector, Vector]]) -> Vector:
    found = [np.zeros(0)]
    for one, other in pairs:
        assert one.size == other.size, f"{one.size} numbers for {other.size}"
        found.append(one * other)
    return np.concatenate(found)


# The modes in which `gradcheck` checks, each made to answer for one trial. Another one is another function here.


def by_autodiff(trial: Trial) -> Answer:
    """`irad.autodiff`: both sweeps in one, cotangents of what is left in written arrays included."""
    shadows = trial.shadows(trial.modified)
    objective = trial.objective(shadows)
    return Answer(trial.run(shadows), objective)


def by_vjp(trial: Trial) -> Answer:
    """`irad.vjp`: the sweeps apart; what is left in written arrays has no cotangent."""
    return Answer(trial.pulled_back()[0], trial.objective_of_value())


def by_jvp(trial: Trial) -> Answer:
    """`irad.pushforward`: a run in the direction of each number; what is left in written arrays does not count."""
    still = {position: np.zeros(read_floats(trial.values[position]).size) for position in trial.positions}

    def run(moving: dict[int, Vector]) -> ForwardRun:
        return trial.push({p: tangent_of(trial.values[p], each) for p, each in (still | moving).items()})

    def slope(position: int, direction: Vector) -> float:
        return float(trial.weights @ run({position: direction}).tangent) if trial.weights.size else 0.0

    at_rest = run({})
    found = {p: np.array([slope(p, one) for one in np.eye(vector.size)]) for p, vector in still.items()}
    gradients = tuple(map(found.get, range(len(trial.values))))
    return Answer(Run(at_rest.value, at_rest.after, gradients), trial.objective_of_value())


MODES: Final[dict[str, Callable[[Trial], Answer]]] = {"autodiff": by_autodiff, "vjp": by_vjp, "jvp": by_jvp}
