"""`check_program` and its relatives: derivatives of a random program against complex steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

import irad
from irad.api.forward import batched_pushforward, with_direction
from irad.data.copies import same_bits
from irad.data.floats import read_floats
from irad.options import Options, PlanName
from irad.testing.check_gradient import optimisation_limited
from tests.tools.complex_step import differentiate, differentiate_along, floats_of
from tests.tools.random_programs import Program, view_of

_RTOL: Final = 1e-8
_RTOL_SINGLE: Final = 1e-3
_PLANS_RTOL: Final = 1e-11
_MODES_RTOL: Final = 1e-10
_VERIFIED: Final = Options(verify=True)


def check_program(
    program: Program, plans: Sequence[PlanName] = ("default", "save_all"), *, forward: bool = False
) -> None:
    """Checks value, memory afterwards and gradients; and by dot product with these, forward mode.

    The derivative under the first plan is optimised as users have it, what it is compared to little. ``forward`` asks
    for the same of forward mode, and for all that it gives.

    Raises:
        AssertionError: one of them is wrong, under one plan; or the program is not a test: its run is chaotic.
    """
    function = program.compiled()
    after = program.copy_bases()
    with optimisation_limited():
        value = function(*program.arguments(after))
    single = _is_single(program)
    rtol = _RTOL_SINGLE if single else _RTOL
    weights = np.linspace(0.7, 1.3, floats_of(value).size) if isinstance(value, (tuple, np.ndarray)) else np.ones(1)
    reference, expected = differentiate(program, weights)
    np.testing.assert_allclose(floats_of(value), reference, rtol, 1e-3 * rtol, err_msg="complex steps take another way")
    scale = max(float(np.max(np.abs(e), initial=0.0)) for e in expected if e is not None)
    found = {}
    for plan in plans:
        bases = program.copy_bases()
        with optimisation_limited() if plan != plans[0] else nullcontext():
            result, gradients = _gradients(function, program, bases, value, weights, replace(_VERIFIED, plan=plan))

        def by_numbers(plan: PlanName = plan) -> Any:
            bases, options = program.copy_bases(), Options(plan=plan, vector_math=False)
            return _gradients(function, program, bases, value, weights, options)[0], bases

        _check_results((result, bases), (value, after), by_numbers, f"plan {plan}", single=single)
        found[plan] = _by_base(program, gradients)
        for number, (got, want) in enumerate(zip(found[plan], expected, strict=True)):
            if want is not None:
                message = f"gradient with respect to base{number} (plan {plan})"
                np.testing.assert_allclose(got, want, rtol, rtol * max(scale, 1e-3), err_msg=message)
    for plan in plans[1:]:
        for number, (got, want) in enumerate(zip(found[plan], found[plans[0]], strict=True)):
            message = f"plans {plan} and {plans[0]} differ by base{number}"
            plans_rtol = 1e-5 if single else _PLANS_RTOL
            np.testing.assert_allclose(got, want, plans_rtol, plans_rtol * max(scale, 1.0), err_msg=message)
    with nullcontext() if forward else optimisation_limited():
        pushed = _pushed(function, program)
    _check_modes_agree(pushed, weights, found[plans[0]], _RTOL_SINGLE if single else _MODES_RTOL)
    if forward:

        def pushed_by_numbers() -> Any:
            again = _pushed(function, program, Options(vector_math=False))
            return again.value, again.bases

        _check_results((pushed.value, pushed.bases), (value, after), pushed_by_numbers, "forward mode", single=single)
        _check_tangents(pushed, program)


def check_lanes(program: Program, width: int = 3) -> None:
    """Compares several directions at once with each alone: tangents, and memory and its tangents afterwards.

    Without functions for vectors, so that values are equal to the bit.

    Raises:
        AssertionError: they differ.
    """
    function = program.compiled()
    with optimisation_limited():
        options = Options(verify=True, vector_math=False)
        alone = [_pushed(function, replace(program, seed=program.seed + lane), options) for lane in range(width)]
        bases = program.copy_bases()
        tangents = [tuple(np.copy(t) if isinstance(t, np.ndarray) else t for t in each.direction) for each in alone]
        arguments = program.arguments(bases)
        directions = [program.arguments(each) for each in tangents]
        argnums = tuple(i for i, argument in enumerate(arguments) if _has_floats(argument))
        push = batched_pushforward(function, argnums, width, options=options)
        value, found = push(tuple(tuple(each[i] for i in argnums) for each in directions), *arguments)
    rtol = _RTOL_SINGLE if _is_single(program) else _MODES_RTOL
    for lane, (tangent, memory, expected) in enumerate(zip(found, tangents, alone, strict=True)):
        assert same_bits((value, bases), (expected.value, expected.bases)), f"value of {width} directions"
        for got, wanted in zip((tangent, *memory), (expected.tangent, *expected.tangents), strict=True):
            mine, single = floats_of(got), floats_of(wanted)
            slack = rtol * float(np.max(np.abs(single), initial=1e-3))
            np.testing.assert_allclose(mine, single, rtol, slack, err_msg=f"tangent in direction {lane} of {width}")


class _Pushed(NamedTuple):
    """What forward mode gives in one direction: ``bases`` and ``tangents`` as they are afterwards."""

    value: Any
    tangent: Any
    direction: tuple[Any, ...]
    bases: tuple[Any, ...]
    tangents: tuple[Any, ...]


def _check_results(found: Any, wanted: Any, by_numbers: Callable[[], Any], where: str, *, single: bool) -> None:
    """Compares value and memory: to the bit where loops call no functions for vectors, and to rounding where they do.

    Args:
        found: value and memory.
        wanted: likewise, of the plain function.
        by_numbers: gives both where loops call no functions for vectors.
    """
    if not same_bits(found, wanted):
        rtol = _RTOL_SINGLE if single else _PLANS_RTOL
        np.testing.assert_allclose(read_floats(found), read_floats(wanted), rtol, rtol, err_msg=f"results ({where})")
        found = by_numbers()
    assert same_bits(found, wanted), f"value and memory {found!r}, plain {wanted!r} ({where})"


def _pushed(function: Callable[..., Any], program: Program, options: Options = _VERIFIED) -> _Pushed:
    """Runs forward mode."""
    random = np.random.default_rng(program.seed)
    direction = tuple(_direction(base, random) for base in program.bases)
    bases, tangents = program.copy_bases(), tuple(np.copy(t) if isinstance(t, np.ndarray) else t for t in direction)
    value, tangent = _pushforward(function, program, bases, tangents, options)
    return _Pushed(value, tangent, direction, bases, tangents)


def _check_modes_agree(pushed: _Pushed, weights: Any, gradients: Sequence[Any], rtol: float) -> None:
    """⟨weights, J·direction⟩ = ⟨Jᵀ·weights, direction⟩."""
    pairs = zip(gradients, pushed.direction, strict=True)
    parts = [(np.ravel(g).astype(float), np.ravel(d).astype(float)) for g, d in pairs]
    scale = sum(float(np.abs(g) @ np.abs(d)) for g, d in parts)
    forward, backward = float(weights @ floats_of(pushed.tangent)), sum(float(g @ d) for g, d in parts)
    np.testing.assert_allclose(forward, backward, 0.0, rtol * max(scale, 1e-3), err_msg="the modes' tangent differs")


def _check_tangents(pushed: _Pushed, program: Program) -> None:
    """Compares value, tangent, and tangents in memory afterwards with complex steps."""
    decided = program if program.log is None else _replaying(program, pushed.bases)
    rtol = _RTOL_SINGLE if _is_single(program) else _RTOL
    reference, expected, expected_memory = differentiate_along(decided, pushed.direction)
    message = "complex steps take another way"
    np.testing.assert_allclose(floats_of(pushed.value), reference, rtol, 1e-3 * rtol, err_msg=message)
    scale = max(float(np.max(np.abs(e), initial=1e-3)) for e in (expected, *expected_memory) if e is not None)
    message = "tangent (forward mode)"
    np.testing.assert_allclose(floats_of(pushed.tangent), expected, rtol, rtol * scale, err_msg=message)
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
    function = program.compiled()
    value = function(*program.arguments(program.copy_bases()))
    weights = np.linspace(0.7, 1.3, floats_of(value).size) if isinstance(value, (tuple, np.ndarray)) else np.ones(1)
    for plan in plans:
        bases = program.copy_bases()
        result, gradients = _gradients(function, program, bases, value, weights, replace(_VERIFIED, plan=plan))
        reference, expected = differentiate(_replaying(program, bases), weights)
        np.testing.assert_allclose(floats_of(result), reference, _RTOL, 1e-3 * _RTOL, err_msg=f"value (plan {plan})")
        scale = max(float(np.max(np.abs(e), initial=0.0)) for e in expected if e is not None)
        for number, (got, want) in enumerate(zip(_by_base(program, gradients), expected, strict=True)):
            if want is not None:
                message = f"gradient with respect to base{number} (plan {plan})"
                np.testing.assert_allclose(got, want, _RTOL, _RTOL * max(scale, 1e-3), err_msg=message)
    if forward:
        _check_tangents(_pushed(function, program), program)


def _gradients(
    function: Callable[..., Any], program: Program, bases: tuple[Any, ...], value: Any, weights: Any, options: Options
) -> tuple[Any, tuple[Any, ...]]:
    """The value, and a gradient for each argument, None for those without floats."""
    arguments = program.arguments(bases)
    if isinstance(value, tuple):
        result, pullback = irad.vjp(function, *arguments, options=options)
        return result, pullback(tuple(map(float, weights)))
    if isinstance(value, np.ndarray):
        result, pullback = irad.vjp(function, *arguments, options=options)
        return result, pullback(weights.reshape(value.shape).astype(value.dtype))
    argnums = tuple(i for i, argument in enumerate(arguments) if _has_floats(argument))
    result, gradients = irad.value_and_grad(function, argnums, options=options)(*arguments)
    by_argument = dict(zip(argnums, gradients, strict=True))
    return result, tuple(by_argument.get(i) for i in range(len(arguments)))


def _replaying(program: Program, bases: tuple[Any, ...]) -> Program:
    """The program with the log of a run, to decide as that run did."""
    assert program.log is not None
    log = bases[program.log]
    log[0] = 0
    return replace(program, bases=tuple(log if i == program.log else base for i, base in enumerate(program.bases)))


def _pushforward(
    function: Callable[..., Any],
    program: Program,
    bases: tuple[Any, ...],
    tangents: tuple[Any, ...],
    options: Options,
) -> tuple[Any, Any]:
    """The value and its tangent; all arguments with floats are active."""
    arguments, directions = program.arguments(bases), program.arguments(tangents)
    argnums = tuple(i for i, argument in enumerate(arguments) if _has_floats(argument))
    push = irad.pushforward(function, argnums, options=options)
    found: tuple[Any, Any] = push(*with_direction(arguments, argnums, tuple(directions[i] for i in argnums)))
    return found


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
