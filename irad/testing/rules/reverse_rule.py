"""``test_reverse``: everything that must hold for the reverse rule of a function, for given annotations."""

# ruff: noqa: PT028 (`test_reverse` is called by tests: pytest does not collect it)

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from types import FunctionType
from typing import Any, Final

import numpy as np
from numba import typeof

import irad
from irad.data.copies import copied
from irad.data.floats import Vector, has_floats, in_types_of, read_floats, with_floats
from irad.errors import IradError, SignatureError
from irad.frontend.custom.catalogue import is_known
from irad.testing.allocations import allocations
from irad.testing.gradients.trial import Run, Trial, only_memory, spoil
from irad.testing.rules.fault import Property, RuleFault
from irad.testing.rules.lanes import check_lanes_reverse
from irad.testing.rules.programs import (
    LIVE_CALLS,
    Passed,
    call_in_loop,
    call_once,
    call_without_result,
    loop_of,
    unwrapped,
    without_result,
)

_ROUNDS: Final = 3
_TELLING: Final = 1e-3  # by this much, what was left in a shadow differs from what was added to it
_SHRINK: Final = 0.05  # towards zero: that leaves few domains


def test_reverse(
    f: Callable[..., Any],
    *arguments: Any,
    constant_return: bool = False,
    aliasing: bool = True,
    width: int = 1,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Checks the derivative of a function, as its rule gives it, against finite differences of the plain function.

    Checked are the primal's value, what happens to the arguments, the derivative for random cotangents (of returned and
    of overwritten arrays too), that shadows are added to, that a pullback may run again and after the arguments have
    changed, several calls before the first reverse, one array as two arguments, and that allocations are released.
    `irad.testing.check_rule` does this for every combination of active and constant arguments.

    Args:
        f: the function: of Python, of Numba, or of a library that Numba knows. It need not be differentiable otherwise.
        arguments: ``irad.Const(x)`` for what is constant. Anything else that holds floats takes part, annotated or not;
            the shadows of annotations are replaced.
        constant_return: the value has no cotangent; only what is left in the arguments has.
        aliasing: whether one array may stand for two arguments of the same type.
        width: number of cotangents to compare, all at once (``irad.BatchDuplicated``) and each alone; 1: skip that.
        rtol: relative tolerance; by default as the narrowest argument allows.
        atol: absolute tolerance.

    Raises:
        RuleFault: a property does not hold.
        RuleError: the rule cannot be compiled.
        AssertionError: the function is not smooth there.

    Examples:
        >>> import irad
        >>> from irad.testing import test_reverse
        >>> from numba import njit
        >>> @njit
        ... def product(x, y):
        ...     return x * y
        >>> _ = irad.rules.easy_rule(product, lambda x, y: y, lambda x, y: x)
        >>> test_reverse(product, 2.0, irad.Const(3.0))
    """
    if not callable(f):
        raise SignatureError(
            f"{f!r} is not a function", "pass the function that has the rule", "rules belong to functions"
        )
    values, active = unwrapped(arguments)
    function = callable_in_compiled_code(f)
    trial = Trial(call_once(function, len(values)), values, active, constant_return, rtol, atol)
    checker = Checker(f, trial)
    checker.basics()
    if all(active[i] for i, value in enumerate(values) if has_floats(value)) and not constant_return:
        checker.life()
        checker.live_calls(function)
        if aliasing:
            checker.aliases()
    if width > 1:
        check_lanes_reverse(f, trial, width)
    checker.allocation()


test_reverse.__test__ = False  # type: ignore[attr-defined]  # not a test, despite its name


def callable_in_compiled_code(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function as programs call it: as it is where Numba knows it, else compiled."""
    return irad.jit(f) if isinstance(f, FunctionType) and not is_known(f) else f


class RuleChecker:
    """State that the checks of one rule at one point share in both modes.

    Args:
        f: the function with the rule.
        trial: a program that calls it, at the point.
        wrong_derivative: what a wrong derivative is a fault in.
        part: the function of the rule that is at fault; None where that follows from the fault.
    """

    def __init__(
        self,
        f: Any,
        trial: Trial,
        wrong_derivative: Property = Property.DERIVATIVE,
        part: str | None = None,
    ) -> None:
        self._f, self._trial, self._wrong_derivative, self._part = f, trial, wrong_derivative, part

    def _run(self) -> object:
        """Runs the derivative once."""
        raise NotImplementedError

    def allocation(self) -> None:
        """Checks that all that Numba's runtime allocates is released."""
        with allocations() as count:
            for _ in range(_ROUNDS):
                self._run()
            counted = count()
        if counted.kept:
            what = f"what {_ROUNDS} derivatives release"
            self._fail(Property.ALLOCATION, what, f"{counted.made} allocations", f"{counted.released} released")

    def _fail(self, fault: Property, what: str, expected: object, got: object, part: str | None = None) -> None:
        raise RuleFault(fault, self._f, what, expected, got, self._trial.description, part or self._part)


class Checker(RuleChecker):
    """The checks of one rule at one point in reverse mode."""

    def _run(self) -> object:
        return self._trial.run(self._trial.shadows(self._trial.modified))

    def basics(self) -> None:
        """Value, arguments, derivative, accumulation."""
        trial = self._trial
        shadows = trial.shadows(trial.modified)
        expected = trial.expected(shadows)
        before = trial.shadows(trial.modified)
        run = trial.run(shadows)
        self._primal(run.value, run.after)
        self._derivative(run, expected, before)
        self._accumulation(expected)

    def _primal(self, value: Any, after: tuple[Any, ...], when: str = "") -> None:
        different = self._trial.difference(value, after)
        if different is None:
            return
        position, wanted, got = different
        if position is None:
            self._fail(Property.VALUE, f"the value{when}", wanted, got)
        else:
            part = "reverse" if self._forward_leaves(position, wanted) else "augmented_primal"
            self._fail(Property.MUTATION, f"argument {position} afterwards{when}", wanted, got, part)

    def _forward_leaves(self, position: int, wanted: Any) -> bool:
        """True if an argument is as it should be before the reverse runs; what returns nothing is not run apart."""
        trial = self._trial
        if trial.seed is None:
            return False
        arguments = copied(trial.values)
        trial.vjp(arguments)
        return trial.same(arguments[position], wanted)

    def _derivative(self, run: Run, expected: tuple[Vector | None, ...], before: tuple[Any, ...]) -> None:
        trial = self._trial
        for position, (got, wanted) in enumerate(zip(run.cotangents, expected, strict=True)):
            if got is None or wanted is None or trial.agree(got, wanted):
                continue
            fault = self._wrong_derivative
            if trial.modified[position]:
                left = only_memory(trial.values[position], before[position])
                wrong = ~np.isclose(got, wanted, _TELLING, _TELLING)
                if np.allclose((got - wanted)[wrong], left[wrong], _TELLING, _TELLING):
                    fault = Property.ZEROING
            self._fail(fault, f"the cotangent of argument {position}", wanted, got)

    def _accumulation(self, plain: tuple[Vector | None, ...]) -> None:
        trial = self._trial
        everywhere = (True,) * len(trial.values)
        shadows = trial.shadows(everywhere)
        before = trial.shadows(everywhere)
        if any(trial.modified):
            expected = trial.expected(shadows)
        else:
            expected = tuple(
                None if wanted is None else wanted + only_memory(value, shadow)
                for wanted, value, shadow in zip(plain, trial.values, before, strict=True)
            )
        run = trial.run(shadows)
        for position, (got, wanted) in enumerate(zip(run.cotangents, expected, strict=True)):
            if got is not None and wanted is not None and not trial.agree(got, wanted):
                held = only_memory(trial.values[position], before[position])
                what = f"the shadow of argument {position}, which held {held}"
                self._fail(Property.ACCUMULATION, what, wanted, got)

    def life(self) -> None:
        """Pullbacks: again, after the arguments have changed, several at a time."""
        trial = self._trial
        if trial.seed is None:
            return
        expected = trial.expected(trial.shadows((False,) * len(trial.values)))
        arguments = copied(trial.values)
        value, pullback = trial.vjp(arguments)
        self._primal(value, arguments, " (pullback)")
        first = pullback()
        self._pulled(self._wrong_derivative, first, expected, "the cotangent of argument {} by a pullback")
        self._primal(value, arguments, " when the pullback has run")
        self._pulled(Property.REUSE, pullback(), expected, "the second cotangent of argument {} by a pullback")
        arguments = copied(trial.values)
        _, pullback = trial.vjp(arguments)
        for argument in arguments:
            spoil(argument)
        what = "the cotangent of argument {}, arguments being overwritten before the reverse"
        self._pulled(Property.CHANGED, pullback(), expected, what)
        self._interleaved()

    def _interleaved(self) -> None:
        trial = self._trial
        points = [shrunk(trial, number) for number in range(LIVE_CALLS)]
        alone = []
        for point in points:
            _, pullback = trial.vjp(copied(point))
            alone.append(tuple(map(read_floats, pullback())))
        pullbacks = [trial.vjp(copied(point))[1] for point in points]
        for number, (pullback, wanted) in enumerate(zip(pullbacks, alone, strict=True)):
            what = f"the cotangent of argument {{}} of call {number} of {LIVE_CALLS}"
            self._pulled(Property.LIVE_CALLS, pullback(), wanted, what)

    def _pulled(self, fault: Property, found: Sequence[Any], expected: Sequence[Vector | None], what: str) -> None:
        for position, (got, wanted) in enumerate(zip(found, expected, strict=True)):
            if self._trial.active[position] and not self._trial.agree(read_floats(got), wanted):
                self._fail(fault, what.format(position), wanted, read_floats(got))

    def live_calls(self, function: Callable[..., Any]) -> None:
        """Three calls in a loop, then their reverses."""
        trial = self._trial
        passed = list(map(_passed, trial.values, trial.free))
        points = [shrunk(trial, number) for number in range(LIVE_CALLS)]
        tuples = tuple(
            tuple(x for x, how in zip(point, passed, strict=True) if how is Passed.PACKED) for point in points
        )
        rest = [(i, how) for i, how in enumerate(passed) if how is not Passed.PACKED]
        stacked = (_rows([point[i] for point in points]) if how is Passed.STACKED else points[0][i] for i, how in rest)
        has_value = trial.seed is not None
        loop = Trial(
            call_in_loop(function, passed, has_value),
            (tuples, (trial.seed,) * LIVE_CALLS, *stacked),
            (has_floats(tuples), False, *(how is Passed.STACKED for _, how in rest)),
            False,
            trial.rtol,
            trial.atol,
            reference=loop_of(trial.program, passed, has_value),
            held=(False, True, *(how is Passed.ONCE for _, how in rest)),
        )
        shadows = loop.shadows(loop.modified)
        expected = loop.expected(shadows)
        for got, wanted in zip(loop.run(shadows).cotangents, expected, strict=True):
            if got is not None and not loop.agree(got, wanted):
                what = f"the cotangents of the arguments of {LIVE_CALLS} calls in a loop"
                self._fail(Property.LIVE_CALLS, what, wanted, got)

    def aliases(self) -> None:
        """One array as two arguments, with one shadow, for each two of the same type."""
        trial = self._trial
        for first, second in twins(trial):
            alone, spread = trial.with_one_array(first, second)
            shadows = alone.shadows((True,) * len(alone.values))
            expected = alone.expected(shadows)
            run = replace(trial, values=spread(alone.values)).run(spread(shadows))
            where = f" with arguments {first} and {second} one array"
            if not alone.same(run.value, alone.plain[0]):
                self._fail(Property.ALIASING, f"the value{where}", alone.plain[0], run.value)
            for position, (got, wanted) in enumerate(zip(run.cotangents, spread(expected), strict=True)):
                if got is not None and not trial.agree(got, wanted):
                    self._fail(Property.ALIASING, f"the cotangent of argument {position}{where}", wanted, got)

    def constant_result(self, function: Callable[..., Any]) -> None:
        """The value is compared only: it has no cotangent, while the arguments take part."""
        trial = self._trial
        if trial.seed is None or any(trial.modified):  # then a constant value is tried with shadows of what is written
            return
        taking_part = trial.free
        apart = replace(
            trial,
            program=call_without_result(function, taking_part),
            reference=without_result(trial.program, taking_part),
            unit=True,
        )
        try:
            Checker(self._f, apart, Property.ACTIVITY).basics()
        except RuleFault:
            raise
        except IradError as error:
            what = "a derivative where the value carries none"
            self._fail(Property.ACTIVITY, what, "one", error.problem)


def shrunk(trial: Trial, number: int) -> tuple[Any, ...]:
    """Other arguments of the same types, for one of several calls."""
    factor = 1.0 - _SHRINK * number
    return tuple(
        in_types_of(with_floats(x, factor * read_floats(x)), x) if free else x
        for x, free in zip(trial.values, trial.free, strict=True)
    )


def _passed(value: Any, free: bool) -> Passed:
    """Way to pass an argument to a program of several calls; rows of an array must have the type of the argument."""
    if not free:
        return Passed.ONCE
    is_array = isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in "fc"
    is_plain = is_array and typeof(value) == typeof(np.empty(value.shape, value.dtype))
    return Passed.STACKED if is_plain else Passed.PACKED


def _rows(values: Sequence[Any]) -> Any:
    """An array of which C-contiguous arrays are the rows."""
    return np.ascontiguousarray(np.stack(values))


def twins(trial: Trial) -> list[tuple[int, int]]:
    """Pairs of arguments that one array can stand for."""
    values = trial.values
    arrays = [i for i, x in enumerate(values) if isinstance(x, np.ndarray) and trial.free[i]]
    kinds = {i: (values[i].dtype, values[i].shape, values[i].strides, values[i].flags.writeable) for i in arrays}
    return [(i, j) for i, j in combinations(arrays, 2) if kinds[i] == kinds[j]]
