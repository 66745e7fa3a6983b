"""The rule of what solves an equation, by the implicit function theorem.

Where F(x, p) = 0, dx = -F_x⁻¹ F_p dp: one linear system, however many steps the solver took. The derivative of the
solver's own code is not looked at; where the rule itself is differentiated, it calls the solver through its rule.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from irad.api.checkpointing.values import copied
from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, push, zero_cotangents
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.inner import inner_njit, inner_overload
from irad.implicit.unknowns import check_unknowns, shaped, vector


def implicit(solver: Any, residual: Any, systems: tuple[Any, Any]) -> Any:
    """The compiled ``(guess, args) -> solver(guess, *args)`` with a rule.

    Args:
        solver: compiled; it returns ``x`` in new memory. ``guess`` is anything, and has no derivative.
        residual: compiled, of ``x`` and the arguments; its value has the structure of ``x``.
        systems: the solutions of the linear system with the residual's derivative with respect to ``x``, and with its
            transpose: compiled functions ``(guess, x, args, right) -> solution`` of numbers or vectors.
    """

    @inner_njit
    def core(guess, args):  # type: ignore[no-untyped-def]
        x = solver(guess, *args)
        check_unknowns(x)
        return x

    augmented, back = _reverse_of(core, residual, systems[1])
    forward = _forward_of(core, residual, systems[0])
    return attach(core, augmented_primal=augmented, reverse=back, forward=forward)


def _reverse_of(core: Any, residual: Any, transposed: Any) -> Any:
    def augmented(config, guess, args):  # type: ignore[no-untyped-def]
        x = core(guess.value, args.value)
        shadow = zero_shadow(x) if config.needs_shadow else None
        return AugmentedReturn(x, shadow, (copied(x), kept_arguments(config, 1, args), kept_guess(config, guess)))

    def back(config, cotangent, tape, guess, args):  # type: ignore[no-untyped-def]
        x, values, start = tape
        d_args = None
        if is_active(args):
            sums = zero_cotangents(args)
            if has_any(cotangent):
                multipliers = transposed(start, x, values, -vector(cotangent, x))
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
        x = core(guess.value, args.value)
        if is_active(args):
            change = push(config, residual, (x,), (None,), args)[1]
            return x, shaped(plain(guess.value, x, args.value, -vector(change, x)), x)
        return x, shaped(0.0 * vector(x, x), x)

    return forward
