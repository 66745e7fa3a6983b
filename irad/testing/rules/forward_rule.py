"""``test_forward``: all that must hold for a function in forward mode, for all ways in which arguments take part.

The tangents of the value and of what is left in the arguments are compared with differences of the plain function along
the direction, and by dot product with reverse mode: ⟨cotangent, J·direction⟩ = ⟨Jᵀ·cotangent, direction⟩.
"""

# ruff: noqa: PT028 (`test_forward` is called by tests: pytest does not collect it)

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from math import nan
from typing import Any, Final

import numpy as np

from irad.data.floats import Vector, has_floats, read_floats
from irad.errors import ActivityError, RuleError, SignatureError
from irad.testing.gradients.objective import Objective
from irad.testing.gradients.slope import derivative
from irad.testing.gradients.trial import (
    RTOL,
    RTOL_SINGLE,
    ForwardRun,
    Trial,
    directions_of,
    dot_products,
    draw_tangents,
    only_memory,
    optimisation_limited,
    run_forward,
)
from irad.testing.rules.fault import Property, RuleFault
from irad.testing.rules.lanes import check_lanes_forward
from irad.testing.rules.programs import activities, call_once, unwrapped
from irad.testing.rules.reverse_rule import RuleChecker, callable_in_compiled_code, twins

_MODES_RTOL: Final = 1e-10


def test_forward(
    f: Callable[..., Any],
    *arguments: Any,
    reverse: bool = True,
    aliasing: bool = True,
    width: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Checks forward mode of a function against finite differences of the plain function and against reverse mode.

    First all arguments that hold floats have tangents; then enough combinations of arguments with and without tangents
    that each two of them are seen in all four ways. Checked are the primal's value, what happens to the
    arguments, the tangents of the value and of what is left in the arguments, that opposite directions have opposite
    tangents, the dot product with reverse mode, one array as two arguments, and that allocations are released.

    Args:
        f: the function: of Python, of Numba, or of a library that Numba knows, with a rule or without.
        arguments: the point; ``irad.Const(x)`` for what never has a tangent.
        reverse: whether to compare with reverse mode, which the function then has to have.
        aliasing: whether one array may stand for two arguments of the same type.
        width: number of directions to compare, all at once (``irad.BatchDuplicated``) and each alone; 1: skip that.
        rtol: relative tolerance; by default as the narrowest argument allows.
        atol: absolute tolerance.

    Raises:
        RuleFault: a property does not hold.
        RuleError: the rule of the function cannot be compiled.
        AssertionError: the function is not smooth there.

    Examples:
        >>> import numpy as np
        >>> from irad.testing import test_forward
        >>> from numba import njit
        >>> @njit
        ... def normalise(x, scale):
        ...     x *= scale / np.sqrt((x * x).sum())
        ...     return x[0] / scale
        >>> test_forward(normalise, np.array([3.0, 4.0]), 2.0)
    """
    if not callable(f):
        raise SignatureError(f"{f!r} is not a function", "pass a function", "only functions have derivatives")
    values, active = unwrapped(arguments)
    program = call_once(callable_in_compiled_code(f), len(values))
    aliasing = aliasing and active == tuple(map(has_floats, values))
    for pattern in activities(active):
        trial = Trial(program, values, pattern, False, rtol, atol)
        if pattern == active:
            ForwardChecker(f, trial).everything(reverse=reverse, aliasing=aliasing)
            if width > 1:
                check_lanes_forward(f, trial, width)
        else:
            with optimisation_limited():
                check_some_constant(f, trial, reverse=reverse)


test_forward.__test__ = False  # type: ignore[attr-defined]  # not a test, despite its name


def check_some_constant(f: Any, trial: Trial, *, reverse: bool) -> None:
    """Checks one combination of arguments with and without tangents, if irad does not refuse it."""
    checker = ForwardChecker(f, trial, Property.ACTIVITY)
    try:
        checker.everything(reverse=reverse, aliasing=False)
    except ActivityError:  # active values would be stored in a constant array
        return
    except RuleFault:
        raise
    except RuleError as error:
        what = "a tangent with these arguments"
        raise RuleFault(Property.ACTIVITY, f, what, "one", error.problem, trial.description, "forward") from error


class ForwardChecker(RuleChecker):
    """The checks of one function at one point in forward mode."""

    def __init__(self, f: Any, trial: Trial, wrong_tangent: Property = Property.DERIVATIVE) -> None:
        super().__init__(f, trial, wrong_tangent, "forward")

    def _run(self) -> object:
        return run_forward(self._trial, draw_tangents(self._trial, 1.0))

    def everything(self, *, reverse: bool, aliasing: bool) -> None:
        """All checks, those asked for included."""
        self.basics()
        if reverse:
            self.modes_agree()
        if aliasing:
            self.aliases()
        self.allocation()

    def basics(self) -> None:
        """Value, arguments, tangents, and that the tangents are linear."""
        trial = self._trial
        tangents = draw_tangents(trial, 1.0)
        directions = directions_of(trial, tangents)
        run = run_forward(trial, tangents)
        if (different := trial.difference(run.value, run.after)) is not None:
            position, wanted, got = different
            is_value = position is None
            what = "the value" if is_value else f"argument {position} afterwards"
            self._fail(Property.VALUE if is_value else Property.MUTATION, what, wanted, got)
        self._compare(run, directions)
        opposite = run_forward(trial, draw_tangents(trial, -1.0))
        for what, got, wanted in zip(self._outputs(), opposite.tangents, run.tangents, strict=True):
            if got is not None and wanted is not None and not trial.agree(-got, wanted):
                self._fail(Property.LINEARITY, f"the tangent of {what} in the opposite direction", -wanted, got)

    def _outputs(self) -> list[str]:
        return ["the value", *(f"argument {i} afterwards" for i in range(len(self._trial.values)))]

    def _compare(self, run: ForwardRun, directions: Mapping[int, Vector]) -> None:
        """Compares tangents with differences; where they are wrong, finds an argument in whose direction they are."""
        wrong = self._first_wrong(run, directions)
        if wrong is None:
            return
        for position in directions if len(directions) > 1 else ():
            alone = draw_tangents(self._trial, 1.0, only=position)
            direction = directions_of(self._trial, alone)
            found = self._first_wrong(run_forward(self._trial, alone), {position: direction[position]})
            if found is not None:
                what, wanted, got = found
                self._fail(
                    self._wrong_derivative, f"the tangent of {what} in a direction of argument {position}", wanted, got
                )
        what, wanted, got = wrong
        towards = f" in a direction of argument {next(iter(directions))}" if len(directions) == 1 else ""
        self._fail(self._wrong_derivative, f"the tangent of {what}{towards}", wanted, got)

    def _first_wrong(self, run: ForwardRun, directions: Mapping[int, Vector]) -> tuple[str, Vector, Vector] | None:
        expected = _differences(self._trial, directions)
        for what, got, wanted in zip(self._outputs(), run.tangents, expected, strict=True):
            if got is not None and not self._trial.agree(got, wanted):
                return what, wanted, got
        return None

    def modes_agree(self) -> None:
        """The dot product with reverse mode, in the direction of each argument."""
        trial = self._trial
        shadows, before = (trial.shadows(trial.modified) for _ in range(2))
        if trial.seed is None and not any(m and a for m, a in zip(trial.modified, trial.active, strict=True)):
            return
        cotangents = trial.run(shadows).cotangents
        seeds = [
            trial.weights,
            *(only_memory(value, shadow) for value, shadow in zip(trial.values, before, strict=True)),
        ]
        rtol = trial.rtol or (RTOL_SINGLE if trial.is_single else _MODES_RTOL)
        for position, cotangent in enumerate(cotangents):
            if cotangent is None:
                continue
            tangents = draw_tangents(trial, 1.0, only=position)
            direction = directions_of(trial, tangents)[position]
            pairs = zip(seeds, run_forward(trial, tangents).tangents, strict=True)
            results = ((s, t) for s, t in pairs if t is not None and s.size)
            terms = dot_products(results, [(cotangent, direction)])
            forward, backward = (float(each.sum()) for each in terms)
            size = max(float(np.abs(each).sum()) for each in terms)
            if not abs(forward - backward) <= max(rtol * size, trial.atol or 0.0):
                what = f"the derivative of a weighed sum of all results in a direction of argument {position}"
                self._fail(Property.MODES, f"{what} by forward mode", backward, forward)

    def aliases(self) -> None:
        """One array as two arguments, with one tangent, for each two of the same type."""
        trial = self._trial
        for first, second in twins(trial):
            alone, spread = trial.with_one_array(first, second)
            tangents = draw_tangents(alone, 1.0)
            directions = directions_of(alone, tangents)
            run = run_forward(replace(trial, values=spread(alone.values)), spread(tangents))
            where = f" with arguments {first} and {second} one array"
            if not alone.same(run.value, alone.plain[0]):
                self._fail(Property.ALIASING, f"the value{where}", alone.plain[0], run.value)
            value, *after = _differences(alone, directions)
            expected = (value, *spread(after))
            for what, got, wanted in zip(self._outputs(), run.tangents, expected, strict=True):
                if got is not None and not trial.agree(got, wanted):
                    self._fail(Property.ALIASING, f"the tangent of {what}{where}", wanted, got)


def _differences(trial: Trial, directions: Mapping[int, Vector]) -> tuple[Vector, ...]:
    """Tangents as they have to be, from values of the plain function on a line through the point.

    Raises:
        AssertionError: the differences do not converge.
    """
    called = Objective(trial.plainly, trial.values, np.zeros(0), {}).calls_along(directions)

    @cache
    def outputs(t: float) -> tuple[Vector, ...] | None:
        found = called(t)
        if found is None:
            return None
        value, arguments = found
        return read_floats(value), *map(only_memory, trial.values, arguments)

    def component(output: int, number: int, t: float) -> float:
        found = outputs(t)
        return nan if found is None else float(found[output][number])

    here, limit, expected = outputs(0.0), trial.rtol or RTOL, []
    assert here is not None, "the plain function raises"
    for output, floats in enumerate(here):
        estimates = [derivative(partial(component, output, number), 0.0) for number in range(floats.size)]
        largest = max((abs(each.value) for each in estimates), default=0.0)
        worst = max((each.error for each in estimates), default=0.0)
        assert worst <= limit * max(1.0, largest), (
            f"finite differences of the plain function do not converge, errors up to {worst}: is it smooth there?"
        )
        expected.append(np.array([each.value for each in estimates]))
    return tuple(expected)
