"""The rule of what solves an equation, by the implicit function theorem.

Where F(x, p) = 0, dx = -F_x⁻¹ F_p dp: one linear system, however many steps the solver took. The derivative of the
solver's own code is not looked at; where the rule itself is differentiated, it calls the solver through its rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.api.checkpointing.values import copied
from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, push, zero_cotangents
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.implicit.unknowns import check_unknowns, shaped, vector


class Solution(NamedTuple):
    """The result of a solver of `irad.implicit` with ``full_output=True``; the names are SciPy's.

    Attributes:
        x: the solution, or without success the point at which the search ended, whose derivative is NaN.
        success: whether ``x`` is a solution.
        nit: the number of steps.
        nfev: how often the function, or it and its gradient, were evaluated in search of lower values or smaller
            residuals; Jacobians and Hessians are not counted. For linear systems, the products with the matrix.

    Examples:
        >>> from irad.implicit import newton
        >>> from numba import njit
        >>> @njit
        ... def square(x, a):
        ...     return x * x - a
        >>> newton(square, 1.0, 4.0, full_output=True)
        Solution(x=2.0, success=True, nit=6, nfev=7)
    """

    x: Any
    success: Any
    nit: Any
    nfev: Any


@inner_jitable
def outcome(x, success, nit, nfev):  # type: ignore[no-untyped-def]
    """A `Solution` of one type, however it is written."""
    return Solution(x, success, nit, nfev)


def solver_of(steps: Any, residual: Any, systems: tuple[Any, Any], error: str, full_output: bool) -> Any:
    """The compiled ``(settings, args)`` to the solution with its rule, or to an outcome.

    Args:
        steps: compiled, of the settings and the arguments; it returns an `outcome`.
        residual: as for `implicit`.
        systems: as for `implicit`.
        error: the text of the ValueError for no success, unless the outcome is returned.
        full_output: whether it is.
    """

    @inner_njit
    def solver(settings, *args):  # type: ignore[no-untyped-def]
        found = steps(settings, *args)
        if not found.success:
            raise ValueError(error)
        return found.x

    return implicit(steps if full_output else solver, residual, systems)


def implicit(solver: Any, residual: Any, systems: tuple[Any, Any]) -> Any:
    """The compiled ``(guess, args) -> solver(guess, *args)`` with a rule.

    Args:
        solver: compiled; it returns ``x`` in new memory, or an `outcome`. ``guess`` is anything, and has no derivative.
        residual: compiled, of ``x`` and the arguments; its value has the structure of ``x``.
        systems: the solutions of the linear system with the residual's derivative with respect to ``x``, and with its
            transpose: compiled functions ``(guess, x, args, right) -> solution`` of numbers or vectors.
    """

    @inner_njit
    def core(guess, args):  # type: ignore[no-untyped-def]
        found = solver(guess, *args)
        check_unknowns(x_of(found))
        return found

    plain, transposed = (_unless_failed(system) for system in systems)
    augmented, back = _reverse_of(core, residual, transposed)
    return attach(core, augmented_primal=augmented, reverse=back, forward=_forward_of(core, residual, plain))


def x_of(found: Any) -> Any:
    """The solution of what a solver returned, or of the cotangent of that."""
    raise NotImplementedError


def _is_outcome(found: Any) -> bool:
    return getattr(found, "instance_class", None) is Solution


@inner_overload(x_of, strict=False)
def _x_of_typed(found: Any) -> Any:
    return (lambda found: found.x) if _is_outcome(found) else (lambda found: found)


def succeeded(found: Any) -> Any:
    """True unless what a solver returned is an outcome without success; constant if it is not an outcome."""
    raise NotImplementedError


@inner_overload(succeeded, strict=False)
def _succeeded_typed(found: Any) -> Any:
    return (lambda found: found.success) if _is_outcome(found) else (lambda found: True)


def with_x(x: Any, found: Any) -> Any:
    """A tangent of the solution as that of what the solver returned."""
    raise NotImplementedError


@inner_overload(with_x, strict=False)
def _with_x_typed(x: Any, found: Any) -> Any:
    return (lambda x, found: Solution(x, None, None, None)) if _is_outcome(found) else (lambda x, found: x)


def _unless_failed(system: Any) -> Any:
    """The linear system for what a solver returned: ``(guess, found, args, right)``, NaN without success."""

    def solution(guess: Any, found: Any, args: Any, right: Any) -> Any:
        raise NotImplementedError

    @inner_overload(solution, strict=False)
    def solution_typed(guess: Any, found: Any, args: Any, right: Any) -> Any:
        if not _is_outcome(found):
            return lambda guess, found, args, right: system(guess, found, args, right)

        def checked(guess, found, args, right):  # type: ignore[no-untyped-def]
            if found.success:
                return system(guess, found.x, args, right)
            # zeros stay: they are the cotangent where a program does not use the point at which the search ended
            return right * np.nan if np.any(right != 0.0) else right

        return checked

    return solution


def _reverse_of(core: Any, residual: Any, transposed: Any) -> Any:
    def augmented(config, guess, args):  # type: ignore[no-untyped-def]
        found = core(guess.value, args.value)
        shadow = zero_shadow(found) if config.needs_shadow else None
        tape = copied(found), kept_arguments(config, 1, args), kept_guess(config, guess)
        return AugmentedReturn(found, shadow, tape)

    def back(config, cotangent, tape, guess, args):  # type: ignore[no-untyped-def]
        found, values, start = tape
        d_args = None
        if is_active(args):
            sums = zero_cotangents(args)
            if has_any(cotangent):
                x = x_of(found)
                multipliers = transposed(start, found, values, -vector(x_of(cotangent), x))
                sums = pull(config, residual, (x,), (None,), args, values, shaped(multipliers, x), sums)
            d_args = give_cotangents(args, sums)
        return give_cotangents(guess, zero_cotangents(guess)), d_args

    return augmented, back


def has_any(cotangent: Any) -> Any:
    """True if a cotangent, or a part of it, is there; constant where the rule is compiled."""
    raise NotImplementedError


@inner_overload(has_any, strict=False)
def _has_any_typed(cotangent: Any) -> Any:
    found = cotangent != types.none
    return (lambda cotangent: True) if found else (lambda cotangent: False)


def kept_guess(config: Any, guess: Any) -> Any:
    """The guess for the tape."""
    raise NotImplementedError


@inner_overload(kept_guess, strict=False)
def _kept_guess_typed(config: Any, guess: Any) -> Any:
    return lambda config, guess: copied(guess.value)


def _forward_of(core: Any, residual: Any, plain: Any) -> Any:
    def forward(config, guess, args):  # type: ignore[no-untyped-def]
        found = core(guess.value, args.value)
        x = x_of(found)
        if is_active(args):
            change = push(config, residual, (x,), (None,), args)[1]
            return found, with_x(shaped(plain(guess.value, found, args.value, -vector(change, x)), x), found)
        return found, with_x(shaped(0.0 * vector(x, x), x), found)

    return forward
