"""The linear systems of the implicit function theorem: with a dense Jacobian, or with a function for its product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.api.checkpointing.values import leaves_of
from irad.api.forward import pushforward
from irad.api.functions import remembered
from irad.api.grad import grad
from irad.api.jacobians.jacobian import jacobian
from irad.implicit.iterations import METHODS
from irad.implicit.krylov import ITERATIONS, TOLERANCE, declare_transpose, krylov_of
from irad.implicit.unknowns import shaped, vector


def flat(residual: Any) -> Any:
    """The residual as a function of a number or a vector, of the unknown that gives the shapes, and of the rest."""

    def make() -> Any:
        @njit
        def flat_residual(v, like, args):  # type: ignore[no-untyped-def]
            return vector(residual(shaped(v, like), *args), like)

        flat_residual.__name__ = flat_residual.__qualname__ = residual.py_func.__qualname__
        return flat_residual

    return remembered(residual, (flat,), make)


def slope_of(residual: Any) -> Any:
    """The residual's derivative with respect to ``x``: ``(x, args)`` to a number or a matrix."""

    def slope(x: Any, args: Any) -> Any:
        raise NotImplementedError

    @overload(slope, strict=False)
    def slope_typed(x: Any, args: Any) -> Any:
        one = flat(residual)
        if isinstance(x, types.Float):
            found = grad(one)
        else:  # of as many rows as columns: where nothing else could be written to, no code is made for reverse mode
            is_plain = all(isinstance(leaf.type, types.Array | types.Number) for leaf in leaves_of(args))
            found = jacobian(one, mode="forward" if is_plain else None)
        return lambda x, args: found(vector(x, x), x, args)

    return slope


def solved(slope: Any, right: Any, is_transposed: Any) -> Any:
    """The solution of a linear system with a number or a matrix."""
    raise NotImplementedError


@register_jitable
def _quotient(right, slope):  # type: ignore[no-untyped-def]
    if slope == 0.0:
        raise ZeroDivisionError("the derivative of an equation by its unknown is zero")
    return right / slope


@overload(solved, strict=False, prefer_literal=True)
def _solved_typed(slope: Any, right: Any, is_transposed: Any) -> Any:
    if not isinstance(slope, types.Array):
        return lambda slope, right, is_transposed: _quotient(right, slope)
    if is_transposed.literal_value:
        return lambda slope, right, is_transposed: np.linalg.solve(slope.T.copy(), right)
    return lambda slope, right, is_transposed: np.linalg.solve(slope, right)


def dense(residual: Any) -> tuple[Any, Any]:
    """The solutions of the linear systems with the residual's Jacobian as a matrix, and with its transpose."""
    slope = slope_of(residual)

    @register_jitable
    def plain(guess, x, args, right):  # type: ignore[no-untyped-def]
        return solved(slope(x, args), right, False)

    @register_jitable
    def transposed(guess, x, args, right):  # type: ignore[no-untyped-def]
        return solved(slope(x, args), right, True)

    return plain, transposed


def matrix_free(residual: Any) -> tuple[Any, Any]:
    """The same by GMRES, with directional derivatives of the residual in place of a matrix; of numbers by division."""

    def products() -> tuple[Any, Any]:
        pushed, pulled = _pushed(residual), _pulled(residual)
        declare_transpose(pushed, pulled)
        declare_transpose(pulled, pushed)
        return pushed, pulled

    plain = _by_gmres(residual, lambda: krylov_of(products()[0], "gmres"))
    return plain, _by_gmres(residual, lambda: krylov_of(products()[1], "gmres"))


def steps_by_gmres(residual: Any) -> Any:
    """The solution with the residual's derivative, for a solver's own steps: it has no rule."""

    def make() -> Any:
        solve = METHODS["gmres"](_pushed(residual))
        return register_jitable(lambda settings, given: solve(settings, *given))

    return _by_gmres(residual, make)


def _by_gmres(residual: Any, make: Callable[[], Any]) -> Any:
    """A solution of linear systems; what solves those of vectors is made when there are such."""
    slope = slope_of(residual)

    def solution(guess: Any, x: Any, args: Any, right: Any) -> Any:
        raise NotImplementedError

    @overload(solution, strict=False)
    def solution_typed(guess: Any, x: Any, args: Any, right: Any) -> Any:
        if isinstance(x, types.Float):
            return lambda guess, x, args, right: _quotient(right, slope(x, args))
        solve = make()

        def found(guess, x, args, right):  # type: ignore[no-untyped-def]
            settings = (np.zeros_like(right), TOLERANCE, 0.0, ITERATIONS * right.size, min(right.size, 30))
            return solve(settings, (right, (x, args)))

        return found

    return solution


def _pushed(residual: Any) -> Any:
    def make() -> Any:
        push = pushforward(flat(residual))

        @njit
        def pushed(v, x, args):  # type: ignore[no-untyped-def]
            return push(vector(x, x), v, x, args)[1]

        return pushed

    return remembered(residual, (_pushed,), make)


def _pulled(residual: Any) -> Any:
    def make() -> Any:
        one = flat(residual)

        @njit
        def weighted(v, weights, x, args):  # type: ignore[no-untyped-def]
            return np.dot(weights, one(v, x, args))

        slope = grad(weighted)

        @njit
        def pulled(weights, x, args):  # type: ignore[no-untyped-def]
            return slope(vector(x, x), weights, x, args)

        return pulled

    return remembered(residual, (_pulled,), make)
