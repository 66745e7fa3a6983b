"""`check_program`: derivatives of a random program under all plans, against complex steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final

import numpy as np

import irad
from irad.data.copies import same_bits
from irad.options import Options, PlanName
from irad.testing.optimisation import optimisation_limited
from tests.tools.complex_step import differentiate, floats_of
from tests.tools.random_programs import Program, view_of

_RTOL: Final = 1e-8
_RTOL_SINGLE: Final = 1e-3
_PLANS_RTOL: Final = 1e-11


def check_program(program: Program, plans: Sequence[PlanName] = ("default", "save_all")) -> None:
    """Checks value, memory afterwards and gradients.

    The derivative under the first plan is optimised as users have it, what it is compared to little.

    Raises:
        AssertionError: one of them is wrong, under one plan; or the program is not a test: its run is chaotic.
    """
    function = program.compiled()
    after = program.copy_bases()
    with optimisation_limited():
        value = function(*program.arguments(after))
    single = any(isinstance(base, np.ndarray) and base.dtype == np.float32 for base in program.bases)
    rtol = _RTOL_SINGLE if single else _RTOL
    weights = np.linspace(0.7, 1.3, floats_of(value).size) if isinstance(value, (tuple, np.ndarray)) else np.ones(1)
    reference, expected = differentiate(program, weights)
    np.testing.assert_allclose(floats_of(value), reference, rtol, 1e-3 * rtol, err_msg="complex steps take another way")
    scale = max(float(np.max(np.abs(e), initial=0.0)) for e in expected if e is not None)
    found = {}
    for plan in plans:
        bases = program.copy_bases()
        with optimisation_limited() if plan != plans[0] else nullcontext():
            result, gradients = _gradients(function, program, bases, value, weights, plan)
        assert same_bits(result, value), f"value {result!r}, plain {value!r} (plan {plan})"
        assert same_bits(bases, after), f"memory afterwards {bases!r}, plain {after!r} (plan {plan})"
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


def check_decisions(program: Program, plans: Sequence[PlanName] = ("default", "save_all")) -> None:
    """Checks gradients of a program with a log: against complex steps through what each derivative's primal decided.

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
        result, gradients = _gradients(function, program, bases, value, weights, plan)
        log = bases[program.log]
        log[0] = 0
        decided = replace(
            program, bases=tuple(log if base is program.bases[program.log] else base for base in program.bases)
        )
        reference, expected = differentiate(decided, weights)
        np.testing.assert_allclose(floats_of(result), reference, _RTOL, 1e-3 * _RTOL, err_msg=f"value (plan {plan})")
        scale = max(float(np.max(np.abs(e), initial=0.0)) for e in expected if e is not None)
        for number, (got, want) in enumerate(zip(_by_base(program, gradients), expected, strict=True)):
            if want is not None:
                message = f"gradient with respect to base{number} (plan {plan})"
                np.testing.assert_allclose(got, want, _RTOL, _RTOL * max(scale, 1e-3), err_msg=message)


def _gradients(
    function: Callable[..., Any], program: Program, bases: tuple[Any, ...], value: Any, weights: Any, plan: PlanName
) -> tuple[Any, tuple[Any, ...]]:
    """The value, and a gradient for each argument, None for those without floats."""
    arguments = program.arguments(bases)
    options = Options(plan=plan, verify=True)
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
