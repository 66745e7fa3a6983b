"""`check_program` and its relatives: derivatives of a random program against complex steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from irad.api.forward import batched_pushforward
from irad.data.copies import same_bits
from irad.data.floats import read_floats
from irad.options import Options, PlanName
from irad.testing.gradients.trial import ForwardRun, Run, Trial, dot_products, optimisation_limited
from tests.tools.complex_step import differentiate, differentiate_along, floats_of
from tests.tools.random_programs import Program, view_of

_RTOL: Final = 1e-8
_RTOL_SINGLE: Final = 1e-3
_PLANS_RTOL: Final = 1e-11
_MODES_RTOL: Final = 1e-10
_VERIFIED: Final = Options(verify=True)


@dataclass(frozen=True, kw_only=True)
class ProgramTrial(Trial):
    """A random program at its point. The memory that is compared is that of the bases, of which arguments are views.

    Attributes:
        made_of: the program.
    """

    made_of: Program

    def fresh(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Arguments for one run, and the bases that they are views of."""
        bases = self.made_of.copy_bases()
        return self.made_of.arguments(bases), bases

    @cached_property
    def seed(self) -> Any:
        """A weight for each number of the value; 1 for a float."""
        value = self.plain[0]
        weights = np.linspace(0.7, 1.3, floats_of(value).size)
        if isinstance(value, np.ndarray):
            return weights.reshape(value.shape).astype(value.dtype)
        return tuple(map(float, weights)) if isinstance(value, tuple) else 1.0


def trial_of(program: Program, options: Options = _VERIFIED) -> ProgramTrial:
    """A random program at its point; all arguments with floats take part."""
    arguments = program.arguments(program.copy_bases())
    active = tuple(map(_has_floats, arguments))
    return ProgramTrial(program.compiled(), arguments, active, options=options, made_of=program)


def check_program(
    program: Program, plans: Sequence[PlanName] = ("default", "save_all"), *, forward: bool = False
) -> None:
    """Checks value, memory afterwards and gradients; and by dot product with these, forward mode.

    The derivative under the first plan is optimised as users have it, what it is compared to little. ``forward`` asks
    for the same of forward mode, and for all that it gives.

    Raises:
        AssertionError: one of them is wrong, under one plan; or the program is not a test: its run is chaotic.
    """
    trial = trial_of(program)
    with optimisation_limited():
        value, _ = trial.plain
    single = _is_single(program)
    rtol = _RTOL_SINGLE if single else _RTOL
    reference, expected = differentiate(program, trial.weights)
    np.testing.assert_allclose(floats_of(value), reference, rtol, 1e-3 * rtol, err_msg="complex steps take another way")
    found = {}
    for plan in plans:
        planned = replace(trial, options=replace(_VERIFIED, plan=plan))
        with optimisation_limited() if plan != plans[0] else nullcontext():
            run = planned.reverse()
        _check_results(planned, run, Trial.reverse, f"plan {plan}", single=single)
        found[plan] = _by_base(program, run.gradients)
        _check_gradients(found[plan], expected, rtol, plan)
    for plan in plans[1:]:
        scale = _scale(expected)
        for number, (got, want) in enumerate(zip(found[plan], found[plans[0]], strict=True)):
            message = f"plans {plan} and {plans[0]} differ by base{number}"
            plans_rtol = 1e-5 if single else _PLANS_RTOL
            np.testing.assert_allclose(got, want, plans_rtol, plans_rtol * max(scale, 1.0), err_msg=message)
    with nullcontext() if forward else optimisation_limited():
        pushed = _pushed(trial)
    _check_modes_agree(trial, pushed, found[plans[0]], _RTOL_SINGLE if single else _MODES_RTOL)
    if forward:
        _check_results(trial, pushed.run, lambda again: _pushed(again).run, "forward mode", single=single)
        _check_tangents(pushed, program)


def check_lanes(program: Program, width: int = 3) -> None:
    """Compares several directions at once with each alone: tangents, and memory and its tangents afterwards.

    Without functions for vectors, so that values are equal to the bit.

    Raises:
        AssertionError: they differ.
    """
    with optimisation_limited():
        options = Options(verify=True, vector_math=False)
        trial = trial_of(program, options)
        alone = [_pushed(trial, replace(program, seed=program.seed + lane)) for lane in range(width)]
        arguments, bases = trial.fresh()
        tangents = [_copies(each.direction) for each in alone]
        directions = [program.arguments(each) for each in tangents]
        push = batched_pushforward(trial.program, trial.positions, width, options=options)
        value, found = push(tuple(tuple(each[i] for i in trial.positions) for each in directions), *arguments)
    rtol = _RTOL_SINGLE if _is_single(program) else _MODES_RTOL
    for lane, (tangent, memory, expected) in enumerate(zip(found, tangents, alone, strict=True)):
        assert same_bits((value, bases), (expected.run.value, expected.run.after)), f"value of {width} directions"
        for got, wanted in zip((tangent, *memory), (expected.run.tangent, *expected.tangents), strict=True):
            mine, single = floats_of(got), floats_of(wanted)
            slack = rtol * float(np.max(np.abs(single), initial=1e-3))
            np.testing.assert_allclose(mine, single, rtol, slack, err_msg=f"tangent in direction {lane} of {width}")


class _Pushed(NamedTuple):
    """What forward mode gives in one direction, and the tangents of the bases as they are afterwards."""

    run: ForwardRun
    direction: tuple[Any, ...]
    tangents: tuple[Any, ...]


def _check_results(
    trial: Trial, run: Run | ForwardRun, again: Callable[[Trial], Run | ForwardRun], where: str, *, single: bool
) -> None:
    """Compares value and memory: to the bit where loops call no functions for vectors, and to rounding where they do.

    Args:
        trial: has the plain function's.
        run: what gave them.
        again: runs the same of another trial.
        where: for messages.
        single: whether single precision takes part.
    """
    found, wanted = (run.value, run.after), trial.plain
    if not same_bits(found, wanted):
        rtol = _RTOL_SINGLE if single else _PLANS_RTOL
        np.testing.assert_allclose(read_floats(found), read_floats(wanted), rtol, rtol, err_msg=f"results ({where})")
        assert trial.is_exact_by_numbers(again), f"value and memory {found!r}, plain {wanted!r} ({where})"


def _check_gradients(found: Sequence[Any], expected: Sequence[Any], rtol: float, plan: str) -> None:
    slack = rtol * max(_scale(expected), 1e-3)
    for number, (got, want) in enumerate(zip(found, expected, strict=True)):
        if want is not None:
            message = f"gradient with respect to base{number} (plan {plan})"
            np.testing.assert_allclose(got, want, rtol, slack, err_msg=message)


def _scale(expected: Sequence[Any]) -> float:
    return max(float(np.max(np.abs(each), initial=0.0)) for each in expected if each is not None)


def _pushed(trial: ProgramTrial, draws: Program | None = None) -> _Pushed:
    """Runs forward mode, in the direction that a program draws."""
    random = np.random.default_rng((draws or trial.made_of).seed)
    direction = tuple(_direction(base, random) for base in trial.made_of.bases)
    tangents = _copies(direction)
    run = trial.push(dict(enumerate(trial.made_of.arguments(tangents))))
    return _Pushed(run, direction, tangents)


def _copies(tangents: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(np.copy(each) if isinstance(each, np.ndarray) else each for each in tangents)


def _check_modes_agree(trial: Trial, pushed: _Pushed, gradients: Sequence[Any], rtol: float) -> None:
    """⟨weights, J·direction⟩ = ⟨Jᵀ·weights, direction⟩."""
    pairs = zip(gradients, pushed.direction, strict=True)
    parts = ((np.ravel(g).astype(float), np.ravel(d).astype(float)) for g, d in pairs)
    forward, backward = dot_products([(trial.weights, pushed.run.tangent)], parts)
    slack = rtol * max(float(np.abs(backward).sum()), 1e-3)
    np.testing.assert_allclose(forward.sum(), backward.sum(), 0.0, slack, err_msg="the modes' tangent differs")


def _check_tangents(pushed: _Pushed, program: Program) -> None:
    """Compares value, tangent, and tangents in memory afterwards with complex steps."""
    decided = program if program.log is None else _replaying(program, pushed.run.after)
    rtol = _RTOL_SINGLE if _is_single(program) else _RTOL
    reference, expected, expected_memory = differentiate_along(decided, pushed.direction)
    message = "complex steps take another way"
    np.testing.assert_allclose(floats_of(pushed.run.value), reference, rtol, 1e-3 * rtol, err_msg=message)
    scale = max(float(np.max(np.abs(e), initial=1e-3)) for e in (expected, *expected_memory) if e is not None)
    message = "tangent (forward mode)"
    np.testing.assert_allclose(pushed.run.tangent, expected, rtol, rtol * scale, err_msg=message)
    for number, (got, want) in enumerate(zip(pushed.tangents, expected_memory, strict=True)):
        if isinstance(got, np.ndarray) and want is not None:
            message = f"tangent of base{number} afterwards (forward mode)"
            np.testing.assert_allclose(got, want, rtol, rtol * scale, err_msg=message)


def check_decisions(
    program: Program, plans: Sequence[PlanName] = ("default", "save_all"), *, forward: bool = False
) -> None:
    """Checks gradients of a program with a log, and tangents if ``forward`` asks for them.

    They are compared with complex steps through what each derivative's primal decided.

    Another compilation may decide otherwise under fastmath, so neither the plain function nor another plan is asked.

    Raises:
        AssertionError: a value or a gradient is wrong under one plan.
    """
    assert program.log is not None
    trial = trial_of(program)
    for plan in plans:
        run = replace(trial, options=replace(_VERIFIED, plan=plan)).reverse()
        reference, expected = differentiate(_replaying(program, run.after), trial.weights)
        message = f"value (plan {plan})"
        np.testing.assert_allclose(floats_of(run.value), reference, _RTOL, 1e-3 * _RTOL, err_msg=message)
        _check_gradients(_by_base(program, run.gradients), expected, _RTOL, plan)
    if forward:
        _check_tangents(_pushed(trial), program)


def _replaying(program: Program, bases: tuple[Any, ...]) -> Program:
    """The program with the log of a run, to decide as that run did."""
    assert program.log is not None
    log = bases[program.log]
    log[0] = 0
    return replace(program, bases=tuple(log if i == program.log else base for i, base in enumerate(program.bases)))


def _direction(base: Any, random: np.random.Generator) -> Any:
    """A tangent for a base; zero for integers, so that tuples and views can be made of it as of the base."""
    if not _has_floats(base):
        return np.zeros_like(base) if isinstance(base, np.ndarray) else 0
    drawn = random.uniform(-1.0, 1.0, np.shape(base))
    return drawn.astype(base.dtype) if isinstance(base, np.ndarray) else float(drawn)


def _is_single(program: Program) -> bool:
    return any(isinstance(base, np.ndarray) and base.dtype == np.float32 for base in program.bases)


def _has_floats(argument: Any) -> bool:
    return isinstance(argument, tuple) or np.asarray(argument).dtype.kind == "f"


def _by_base(program: Program, gradients: tuple[Any, ...]) -> list[Any]:
    """The derivative with respect to each base: what arguments in common memory get is added, unless in common too."""
    totals = [np.zeros(np.shape(base)) for base in program.bases]
    added: list[tuple[int, Any]] = []
    for entries, gradient in zip(program.views, gradients, strict=True):
        for (number, view), part in zip(entries, gradient if len(entries) > 1 else (gradient,), strict=True):
            if part is None:
                continue
            if not isinstance(part, np.ndarray):
                totals[number] += part
                continue
            known = [g for n, g in added if n == number]
            target = view_of(totals[number], view)
            if any(np.may_share_memory(part, g) for g in known):
                target[...] = part
            else:
                target += part
            added.append((number, part))
    return totals
