"""``gradcheck``: is the gradient of a function right, and how precisely is that known?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

import irad
from irad.api.functions import is_kernel, launched_of, no_configuration
from irad.api.selection import chosen
from irad.data.copies import copied
from irad.data.floats import Vector, in_types_of, read_floats, with_floats
from irad.debug.verdict import words_of_zero
from irad.frontend.calls.retry import zero_that_won
from irad.options import Options
from irad.testing.gradients.comparison import Comparison, Tolerances
from irad.testing.gradients.input import CheckedFunction, Range, check_modes, check_settings
from irad.testing.gradients.reference import reference_for, sizes_of
from irad.testing.gradients.report import ArgumentReport, GradcheckError, GradcheckReport, Verdict, merged
from irad.testing.gradients.slope import GradientNearby
from irad.testing.gradients.trial import Answer, Trial

_REPEATED: Final = 1e-9  # parts of a value by which two calls may differ: sums in threads have no fixed order
_SPREAD: Final = 0.1  # of random points around the given one, as a part of each number

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a check by `gradcheck`."""

    modes: tuple[str, ...]
    tolerances: Tolerances
    points: int
    cotangents: int
    max_partials: int
    directions: int
    seed: int
    complex_step: bool
    options: Options | None


def gradcheck(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    modes: Sequence[str] = ("autodiff",),
    rtol: float | None = None,
    atol: float = 0.0,
    domain: Mapping[int, Range] | None = None,
    points: int = 1,
    cotangents: int = 2,
    max_partials: int = 64,
    directions: int = 4,
    complex_step: bool = True,
    seed: int = 0,
    options: Options | None = None,
    raises: bool = True,
    progress: Progress | None = None,
) -> GradcheckReport:
    """Check irad's gradient of a function against derivatives that come from the values of the function alone.

    The truth is finite differences, extrapolated over a sweep of step sizes, with an estimate of their error; where
    the function can be compiled for complex numbers and both agree, complex steps, which are exact to rounding. A
    difference counts against what this truth can tell at that place: no tolerance need be given, whatever the scale.
    Where large terms cancel, the truth is as exact as the terms: before a gradient is called wrong, the rounding in
    both derivatives is measured between points close by. A difference within that of the truth is right, and
    "undecided" within that of irad's derivative.

    Functions may return a float, or arrays, complex numbers and tuples, which are contracted with random cotangents;
    they may write to their arrays, whose final content then takes part in the same way. Of complex arguments the real
    and the imaginary parts are varied apart. Arguments in single precision are promoted for the truth. The value and
    the memory that the derivative leaves have to be those of a plain call.

    At a kink, where the derivatives of both sides differ, irad's has to lie between them; the report lists kinks. Where
    it is instead what the conventions of several operations add up to, the verdict is "not differentiable there".

    Args:
        f: a Numba function, or a plain one, which is compiled; or a CUDA kernel with the configuration of a launch,
            ``kernel[blocks, threads]`` or ``irad.cuda.grad(kernel)[blocks, threads]``, which runs on the executor, and
            whose written arrays are checked. It has the modes "autodiff" and "jvp", and no complex steps.
        args: where to check; copied for every call.
        argnums: positions to differentiate with respect to; by default all that hold floats. The others are constants.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        modes: "autodiff" (both sweeps in one), "vjp" (the sweeps apart: a pullback), "jvp" (forward mode: a run
            for each number in the arguments).
        rtol: a relative tolerance, in addition to the error of the reference; 1e-9 for double precision, 2e-4 for
            single.
        atol: an absolute tolerance of partial derivatives.
        domain: by position, a lower and an upper bound of the argument's numbers (numbers, or arrays of its shape, None
            for no bound). The function is not called outside; on a bound differences are one-sided.
        points: how many points to check: the given one, and random ones around it, within 10 per cent of each number.
        cotangents: how many random cotangents, if the function gives more than a float.
        max_partials: an argument with more floats is checked along random directions.
        directions: how many. The report says what they would miss.
        complex_step: whether complex steps are tried; they take another compilation of the function.
        seed: of what is random.
        options: how the derivative is made.
        raises: raise if the gradient is wrong or cannot be checked; otherwise only the report says so.
        progress: called with the name of an argument, the comparisons done and those to do.

    Returns:
        The figures, by argument.

    Raises:
        GradcheckError: the gradient is wrong, or cannot be checked there; an `AssertionError` with the report.
        SignatureError: the arguments do not fit.

    Examples:
        >>> import numpy as np
        >>> from irad.testing import gradcheck
        >>> from numba import njit
        >>> @njit
        ... def energy(x):
        ...     return np.sum(np.sin(x))
        >>> gradcheck(energy, np.array([0.3, 1.2])).verdict.value
        'right'
    """
    counts = {"points": points, "cotangents": cotangents, "directions": directions}
    check_settings(rtol, atol, {**counts, "max_partials": max_partials, "seed": seed})
    subject = _subject_of(f, args, (argnums, argnames), modes, domain or {})
    settings = Settings(
        tuple(modes), Tolerances(rtol, atol), points, cotangents, max_partials, directions, seed, complex_step, options
    )
    report = _Run(subject, settings, progress).report()
    if raises and not report.right:
        raise GradcheckError(report)
    return report


def _subject_of(
    f: Any, args: tuple[Any, ...], wanted: tuple[Any, Any], modes: Sequence[str], domain: Mapping[int, Range]
) -> CheckedFunction:
    """The function or kernel, with the arguments that are wanted by position or by name."""
    launched = launched_of(f)
    kind: type[CheckedFunction] = CheckedFunction
    if launched is not None:
        from irad.testing.gradients.kernels import CheckedKernel  # imports numba.cuda

        kind = CheckedKernel
    elif is_kernel(f):
        raise no_configuration(f, "irad.testing.gradcheck")
    check_modes(modes, kind.modes)
    named = f if launched is None else launched.kernel.py_func
    return kind(launched or f, args, chosen(named, *wanted, None), domain)


class _Run:
    """One call of `gradcheck`."""

    def __init__(self, subject: CheckedFunction, settings: Settings, progress: Progress | None) -> None:
        self._subject, self._settings, self._progress = subject, settings, progress
        self._found: dict[int, list[ArgumentReport]] = {}
        self._skipped: list[str] = []
        self._done, self._total, self._points = 0, 0, 0
        self._primal, self._unsteady = "", ""

    def report(self) -> GradcheckReport:
        """Checks everything."""
        for number, values in enumerate(self._all_points()):
            self._point(number, values)
            if self._primal or self._unsteady:
                break
        subject = self._subject
        found = GradcheckReport(
            subject.name,
            subject.location,
            tuple(merged(reports) for _, reports in sorted(self._found.items())),
            self._points,
            tuple(self._skipped),
            subject.not_checked,
            "" if self._unsteady else self._primal,
            self._unsteady,
        )
        if found.verdict is not Verdict.WRONG or found.primal or subject.is_kernel:
            return found
        trial = subject.trial(subject.values, self._settings.options)
        return replace(found, hidden_zero=_hidden_zero(trial))

    def _all_points(self) -> Iterator[tuple[Any, ...]]:
        yield self._subject.values
        generator = np.random.default_rng(self._settings.seed)
        for _ in range(self._settings.points - 1):
            yield tuple(self._moved(i, value, generator) for i, value in enumerate(self._subject.values))

    def _moved(self, position: int, value: Any, generator: np.random.Generator) -> Any:
        if not self._subject.active[position]:
            return value
        leaves = read_floats(value)
        moved = leaves + _SPREAD * sizes_of(leaves) * generator.uniform(-1.0, 1.0, leaves.size)
        if position in self._subject.bounds:
            moved = np.clip(moved, *self._subject.bounds[position])
        return in_types_of(with_floats(value, moved), value)

    def _point(self, number: int, values: tuple[Any, ...]) -> None:
        settings, subject = self._settings, self._subject
        trial = subject.trial(values, settings.options)
        if number:
            try:
                unfit = "" if np.all(np.isfinite(read_floats(trial.plain[0]))) else "its value is infinite or NaN"
            except (ArithmeticError, ValueError) as error:
                unfit = f"{type(error).__name__}: {error}"
            if unfit:
                self._skipped.append(f"random point {number}: {unfit}")
                return
        subject.refuse_shared_memory(trial.modified)
        self._points += 1
        several = read_floats(trial.plain[0]).size > 1 or any(trial.modified)
        draws = settings.cotangents if several else 1
        self._plan(number, draws)
        for mode in settings.modes:
            for draw in range(draws):
                self._compare(replace(trial, draw=draw), mode, number)

    def _plan(self, number: int, draws: int) -> None:
        """Computes the number of comparisons that follow, from the first point."""
        if number == 0:
            sizes = [read_floats(v).size for v, a in zip(self._subject.values, self._subject.active, strict=True) if a]
            each = sum(n if n <= self._settings.max_partials else self._settings.directions for n in sizes)
            self._total = each * draws * len(self._settings.modes) * self._settings.points

    def _compare(self, trial: Trial, mode: str, number: int) -> None:
        if not any(trial.active):
            return
        answer = self._subject.modes[mode](trial)
        if not _alike(replace(trial).plain[0], trial.plain[0]):
            self._unsteady = (
                "two plain calls with the same arguments return different values (random numbers, or state)"
            )
        self._primal = self._wrong_primal(trial, answer)
        if self._unsteady or self._primal or answer.objective.is_constant:
            return
        complex_step = self._settings.complex_step and self._subject.takes_complex
        reference = reference_for(
            answer.objective, trial.active, self._subject.bounds, self._settings.seed, complex_step
        )
        nearby = GradientNearby(
            lambda values: self._subject.modes[mode](replace(trial, values=values)).run.cotangents, reference.nearby
        )
        generator = np.random.default_rng((self._settings.seed, number, trial.draw))
        for position, got in enumerate(answer.run.cotangents):
            if got is None:
                continue
            name = self._subject.names[position]
            comparison = Comparison(reference, position, name, got, self._settings.tolerances, nearby)
            few = got.size <= self._settings.max_partials
            tick = self._ticker(name)
            found = (
                comparison.partials(tick) if few else comparison.directions(self._settings.directions, generator, tick)
            )
            self._found.setdefault(position, []).append(found)

    def _ticker(self, name: str) -> Callable[[], None]:
        def tick() -> None:
            self._done += 1
            if self._progress is not None:
                self._progress(name, self._done, max(self._done, self._total))

        return tick

    def _wrong_primal(self, trial: Trial, answer: Answer) -> str:
        if not np.all(np.isfinite(read_floats(trial.plain[0]))):
            return ""  # then there is no derivative to check, and every comparison says so
        if (different := trial.difference(answer.run.value, answer.run.after)) is not None:
            position, wanted, got = different
            if position is None:
                return f"the value returned with the derivative is {got!r}, but a plain call returns {wanted!r}"
            return f"it leaves {self._subject.names[position]} different from a plain call"
        return _gradients_match(answer.run.cotangents, trial.values) or ""


def _alike(a: Any, b: Any) -> bool:
    x, y = read_floats(a), read_floats(b)
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=_REPEATED, atol=0.0, equal_nan=True))


def _gradients_match(cotangents: tuple[Vector | None, ...], values: tuple[Any, ...]) -> str | None:
    """Problem with the number of floats in cotangents; None if there is none."""
    for position, (cotangent, value) in enumerate(zip(cotangents, values, strict=True)):
        count = read_floats(value).size
        if cotangent is not None and cotangent.size != count:
            return (
                f"the gradient with respect to argument {position} holds {cotangent.size} floats, the argument {count}"
            )
    return None


def _hidden_zero(trial: Trial) -> str:
    """The zero that won over an infinity and may explain a wrong number, with its place; empty if none is known.

    Of a function that returns a float; and of a gradient, whose zeros are lost to its own derivative.
    """
    of_gradient = getattr(trial.program, "shows_all_zeros", None)
    if of_gradient is not None:
        found = zero_that_won(of_gradient, trial.program(*copied(trial.values)), copied(trial.values), {}, into=False)
    elif isinstance(trial.plain[0], float) and not any(trial.modified):
        options = replace(trial.options or irad.Options(), debug=True)
        derivative = irad.grad(trial.program, trial.positions, options=options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = derivative.hidden_zero(*copied(trial.values))
            except irad.NonFiniteError:
                return ""  # then the number is not a zero
    else:
        return ""
    where = "" if found is None or found.location is None else f" at {found.location}"
    return "" if found is None else words_of_zero(found) + where
