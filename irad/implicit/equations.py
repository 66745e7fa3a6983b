"""The derivative of what solves an equation, by the implicit function theorem.

Where F(x, p) = 0, dx = -F_x⁻¹ F_p dp: one linear system, however many steps the solver took. The derivative of the
solver's own code is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, push, zero_cotangents
from irad.api.functions import primal_of
from irad.api.grad import grad
from irad.api.jacobians.jacobian import jacobian
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.custom.annotated import AugmentedReturn, is_active
from irad.frontend.custom.contract import zero_shadow
from irad.frontend.numba.messages import described


@public
def solves(residual: Callable[..., Any], tolerance: float = 1e-6) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a solver of ``residual(x, …) = 0``: its derivative is that of the solution.

    Args:
        residual: takes ``x`` and the arguments of the equation, and returns a number if ``x`` is one, else an array of
            the length of ``x``.
        tolerance: what the largest part of the residual may be where a derivative is taken.

    Returns:
        A decorator of functions ``solver(guess, …) -> x``, compiled or not, whose arguments behind the guess are those
        of the residual. ``x`` is a number or an array with one axis, in new memory. What it makes can be called from
        Python and compiled code. The guess has no derivative: a solution does not depend on where the search began.

    Raises:
        SignatureError: ``residual`` or the solver is not a function that Numba compiles.

    A derivative raises ValueError if what the solver returned does not solve the equation, and LinAlgError
    (ZeroDivisionError for numbers) where the residual's derivative by ``x`` cannot be inverted.

    Source:
        Blondel et al.: Efficient and modular implicit differentiation, NeurIPS 2022.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def residual(x, a):
        ...     return x * x - a
        >>> @irad.implicit.solves(residual)
        ... def root(guess, a):
        ...     low, high = 0.0, max(a, 1.0)
        ...     for _ in range(60):
        ...         middle = 0.5 * (low + high)
        ...         low, high = (middle, high) if middle * middle < a else (low, middle)
        ...     return high
        >>> round(irad.grad(root, argnums=1)(0.0, 4.0), 9)
        0.25
    """
    checked = primal_of(residual)
    return lambda solver: _solution(primal_of(solver), checked, float(tolerance))


def _solution(solver: Any, residual: Any, tolerance: float) -> Any:
    @njit
    def core(guess, args):  # type: ignore[no-untyped-def]
        x = solver(guess, *args)
        _check_unknowns(x)
        return x

    slope = slope_of(residual)
    augmented, back = _reverse_of(core, residual, slope, tolerance)
    attach(
        core,
        augmented_primal=augmented,
        reverse=back,
        forward=_forward_of(core, residual, slope, tolerance),
    )

    @njit
    def solution(guess, *args):  # type: ignore[no-untyped-def]
        return core(guess, args)

    solution.__doc__ = solver.py_func.__doc__
    return solution


def slope_of(residual: Any) -> Any:
    """The residual's derivative by ``x``: a number or a matrix."""

    def slope(x: Any, args: Any) -> Any:
        raise NotImplementedError

    @overload(slope, strict=False)
    def slope_typed(x: Any, args: Any) -> Any:
        found = jacobian(residual) if isinstance(x, types.Array) else grad(residual)
        return lambda x, args: found(x, *args)

    return slope


def _check_unknowns(x: Any) -> None:
    """Nothing, for a float or an array of floats with one axis."""
    raise NotImplementedError


@overload(_check_unknowns, strict=False)
def _check_unknowns_typed(x: Any) -> Any:
    is_array = isinstance(x, types.Array) and x.ndim == 1
    if not isinstance(x.dtype if is_array else x, types.Float):
        raise SignatureError(
            f"the solver of an implicit equation returns {described(x)}",
            "return a float or an array of floats with one axis",
            "its derivative is found from the equation by solving a linear system for such unknowns",
            SourceLocation.here(),
        )
    return lambda x: None


def solved(slope: Any, right: Any, transposed: Any) -> Any:
    """The solution of a linear system with a number or a matrix."""
    raise NotImplementedError


@overload(solved, strict=False)
def _solved_typed(slope: Any, right: Any, transposed: Any) -> Any:
    if not isinstance(slope, types.Array):
        return lambda slope, right, transposed: right / slope
    return lambda slope, right, transposed: np.linalg.solve(slope.T.copy() if transposed else slope, right)


def size_of(value: Any) -> Any:
    """The largest absolute value of a number or an array; NaN if there is one."""
    raise NotImplementedError


@overload(size_of, strict=False)
def _size_of_typed(value: Any) -> Any:
    if not isinstance(value, types.Array):
        return lambda value: abs(value)
    return lambda value: np.abs(value).max() if value.size > 0 else 0.0


@register_jitable
def _check(residual, x, args, tolerance):  # type: ignore[no-untyped-def]
    if not size_of(residual(x, *args)) <= tolerance:
        raise ValueError("a solver of irad.implicit returned what does not solve its equation")


def owned(value: Any) -> Any:
    """A number, or a copy of an array."""
    raise NotImplementedError


@overload(owned, strict=False)
def _owned_typed(value: Any) -> Any:
    return (lambda value: value.copy()) if isinstance(value, types.Array) else (lambda value: value)


def _reverse_of(core: Any, residual: Any, slope: Any, tolerance: float) -> Any:
    def augmented(config, guess, args):  # type: ignore[no-untyped-def]
        x = core(guess.value, args.value)
        _check(residual, x, args.value, tolerance)
        shadow = zero_shadow(x) if config.needs_shadow else None
        return AugmentedReturn(x, shadow, (owned(x), kept_arguments(config, 1, args)))

    def back(config, cotangent, tape, guess, args):  # type: ignore[no-untyped-def]
        x, values = tape
        by_args = None
        if is_active(args):
            sums = zero_cotangents(args)
            if is_active(cotangent):
                multipliers = solved(slope(x, values), cotangent, True)
                sums = pull(config, residual, (x,), (None,), args, values, -multipliers, sums)
            by_args = give_cotangents(args, sums)
        return _zero_of(config, guess), by_args

    return augmented, back


def _zero_of(config: Any, guess: Any) -> Any:
    """What the reverse returns for an argument that the value does not depend on."""
    raise NotImplementedError


@overload(_zero_of, strict=False)
def _zero_of_typed(config: Any, guess: Any) -> Any:
    if guess.active and isinstance(guess.types[0], types.Float):
        return lambda config, guess: guess.value - guess.value
    return lambda config, guess: None


def _forward_of(core: Any, residual: Any, slope: Any, tolerance: float) -> Any:
    def forward(config, guess, args):  # type: ignore[no-untyped-def]
        x = core(guess.value, args.value)
        _check(residual, x, args.value, tolerance)
        if is_active(args):
            change = push(config, residual, (x,), (None,), args)[1]
            return x, solved(slope(x, args.value), -change, False)
        return x, x * 0.0

    return forward
