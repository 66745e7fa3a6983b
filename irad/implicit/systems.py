"""The linear systems of the implicit function theorem: with a dense Jacobian, or with a function for its product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numba.core import types

from irad.api.checkpointing.values import leaves_of
from irad.api.forward import pushforward
from irad.api.functions import remembered
from irad.api.grad import grad
from irad.api.jacobians.jacobian import jacobian
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.implicit.krylov import ITERATIONS, METHODS, TOLERANCE, declare_transpose, krylov_of, row_units
from irad.implicit.unknowns import epsilon_of, is_within, larger, shaped, size_of, vector


def flat(residual: Any) -> Any:
    """The residual as a function of a number or a vector, of the unknown that gives the shapes, and of the rest."""

    def make() -> Any:
        @inner_njit
        def flat_residual(v, like, args):  # type: ignore[no-untyped-def]
            return vector(residual(shaped(v, like), *args), like)

        flat_residual.__name__ = flat_residual.__qualname__ = residual.py_func.__qualname__
        return flat_residual

    return remembered(residual, (flat,), make)


def stationary(objective: Any) -> Any:
    """The gradient with respect to the first argument, as a function with a rule of nothing but its code."""
    slope = grad(objective)

    @inner_njit
    def gradient(x, *args):  # type: ignore[no-untyped-def]
        return slope(x, *args)

    return gradient


def mode_for(args: Any) -> Literal["forward"] | None:
    """The mode for a matrix of about as many rows as columns, from the type of the arguments.

    Where nothing else could be written to, no code is made for reverse mode.
    """
    return "forward" if all(isinstance(leaf.type, types.Array | types.Number) for leaf in leaves_of(args)) else None


def slope_of(residual: Any) -> Any:
    """The residual's derivative with respect to ``x``: ``(x, args)`` to a number or a matrix."""

    def slope(x: Any, args: Any) -> Any:
        raise NotImplementedError

    @inner_overload(slope, strict=False)
    def slope_typed(x: Any, args: Any) -> Any:
        one = flat(residual)
        found = grad(one) if isinstance(x, types.Float) else jacobian(one, mode=mode_for(args))
        return lambda x, args: found(vector(x, x), x, args)

    return slope


def solved(slope: Any, right: Any, is_transposed: Any) -> Any:
    """The solution of a linear system with a number or a matrix."""
    raise NotImplementedError


@inner_jitable
def _quotient(slope, right):  # type: ignore[no-untyped-def]
    if slope == 0.0:
        raise ZeroDivisionError("the derivative of an equation with respect to its unknown is zero")
    return right / slope


@inner_overload(solved, strict=False, prefer_literal=True)
def _solved_typed(slope: Any, right: Any, is_transposed: Any) -> Any:
    if not isinstance(slope, types.Array):
        return lambda slope, right, is_transposed: _quotient(slope, right)
    if is_transposed.literal_value:
        return lambda slope, right, is_transposed: np.linalg.solve(slope.T.copy(), right)
    return lambda slope, right, is_transposed: np.linalg.solve(slope, right)


def solved_if_regular(slope: Any, right: Any) -> Any:
    """The solution of a linear system with a number or a matrix; NaN where there is none."""
    raise NotImplementedError


@inner_overload(solved_if_regular, strict=False)
def _solved_if_regular_typed(slope: Any, right: Any) -> Any:
    if not isinstance(slope, types.Array):
        return lambda slope, right: right / slope if slope != 0.0 else np.nan

    def solution(slope, right):  # type: ignore[no-untyped-def]
        found = np.full(right.size, np.nan)
        try:
            found[:] = np.linalg.solve(slope, right)
        except Exception:  # compiled code can name no other; only a singular matrix is an error here
            return found
        return found

    return solution


def squared(found: Any) -> Any:
    """A number as a matrix of one element; a matrix stays one."""
    raise NotImplementedError


@inner_overload(squared, strict=False)
def _squared_typed(found: Any) -> Any:
    return (lambda found: found) if isinstance(found, types.Array) else lambda found: np.full((1, 1), found)


@inner_jitable
def units_of(squares):  # type: ignore[no-untyped-def]
    """One over the roots of squares; those that are zero count as the largest."""
    found, most = np.empty(squares.size), squares.max() if squares.size > 0 else 0.0
    for i in range(squares.size):
        square = squares[i] if squares[i] > 0.0 else most
        found[i] = 1.0 / np.sqrt(square) if square > 0.0 else 1.0
    return found


def terms(slope: Any, v: Any, step: Any) -> Any:
    """For each equation the sum of the sizes of its terms, to first order, over what a step passes."""
    raise NotImplementedError


@inner_overload(terms, strict=False)
def _terms_typed(slope: Any, v: Any, step: Any) -> Any:
    if not isinstance(slope, types.Array):
        return lambda slope, v, step: abs(slope) * (abs(v) + abs(step))
    return lambda slope, v, step: np.abs(slope) @ (np.abs(v) + np.abs(step))


def _checking(residual: Any, sizes: Any, tolerances: tuple[float, float] | None) -> Any:
    """The check of a solution before its derivative is taken; without tolerances the solver has seen to it.

    Args:
        residual: the equation.
        sizes: ``(x, args, slope)`` to the size of each equation's terms.
        tolerances: relative and absolute.
    """
    if tolerances is None:
        return inner_jitable(lambda x, args, slope: None)
    relative, absolute = tolerances

    @inner_jitable
    def check(x, args, slope):  # type: ignore[no-untyped-def]
        value = vector(residual(x, *args), x)
        if not is_within(value, larger(value, value) + sizes(x, args, slope), relative, absolute):
            raise ValueError(
                "a solver of irad.implicit returned what does not solve its equation to the tolerance of "
                "irad.implicit.solves: search longer, pass tolerance=, or atol= where unknowns are zero"
            )

    return check


def dense(residual: Any, tolerances: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """The solutions of the linear systems with the residual's Jacobian as a matrix, and with its transpose."""
    slope = slope_of(residual)
    sizes = inner_jitable(lambda x, args, matrix: terms(matrix, vector(x, x), 0.0 * vector(x, x)))
    check = _checking(residual, sizes, tolerances)

    @inner_jitable
    def plain(guess, x, args, right):  # type: ignore[no-untyped-def]
        matrix = slope(x, args)
        check(x, args, matrix)
        return solved(matrix, right, False)

    @inner_jitable
    def transposed(guess, x, args, right):  # type: ignore[no-untyped-def]
        matrix = slope(x, args)
        check(x, args, matrix)
        return solved(matrix, right, True)

    return plain, transposed


def dense_steps(residual: Any) -> Any:
    """For a solver: ``(settings, x, args, value)`` to the step to subtract, and the size of each equation's terms.

    The step is NaN where the Jacobian cannot be inverted.
    """
    slope = slope_of(residual)

    @inner_jitable
    def stepping(settings, x, args, value):  # type: ignore[no-untyped-def]
        matrix = slope(x, args)
        step = solved_if_regular(matrix, value)
        return step, terms(matrix, vector(x, x), step)

    return stepping


def matrix_free(residual: Any, tolerances: tuple[float, float] | None = None) -> tuple[Any, Any]:
    """Steps by GMRES, with directional derivatives of the residual instead of a matrix; for numbers by division."""

    def products() -> tuple[Any, Any]:
        product, turned = pushed(residual), pulled(residual)
        declare_transpose(product, turned)
        declare_transpose(turned, product)
        return product, turned

    largest = _largest_term(residual)
    sizes = inner_jitable(lambda x, args, nothing: largest(x, args, 0.0 * vector(x, x)))
    check = _checking(residual, sizes, tolerances)

    def checked(solve: Any) -> Any:
        @inner_jitable
        def solution(guess, x, args, right):  # type: ignore[no-untyped-def]
            check(x, args, None)
            return solve(guess, x, args, right)

        return solution

    plain = _by_gmres(residual, lambda: krylov_of(products()[0], "gmres by rows"))
    return checked(plain), checked(_by_gmres(residual, lambda: krylov_of(products()[1], "gmres by rows")))


def steps_by_gmres(residual: Any) -> Any:
    """Like `dense_steps`, by GMRES: in units of its row, the largest of the terms stands for those of each equation.

    The step is NaN where GMRES finds none.
    """

    def make() -> Any:
        solve = METHODS["gmres by rows"](pushed(residual))

        @inner_jitable
        def step(settings, given):  # type: ignore[no-untyped-def]
            found, reason, _, _ = solve(settings, *given)
            if reason != 0:
                found[:] = np.nan
            return found

        return step

    solve, largest = _by_gmres(residual, make, solved_if_regular), _largest_term(residual)

    @inner_jitable
    def stepping(settings, x, args, value):  # type: ignore[no-untyped-def]
        step = solve(settings, x, args, value)
        return step, largest(x, args, step)

    return stepping


def _largest_term(residual: Any) -> Any:
    """``(x, args, step)`` to the size of the largest terms, in the units of each equation, without a matrix.

    The product with what has the unknown's sizes, but scattered signs, in which terms do not cancel as they may in the
    product with the unknown.
    """
    slope = slope_of(residual)

    def largest(x: Any, args: Any, step: Any) -> Any:
        raise NotImplementedError

    @inner_overload(largest, strict=False)
    def largest_typed(x: Any, args: Any, step: Any) -> Any:
        if isinstance(x, types.Float):
            return lambda x, args, step: terms(slope(x, args), x, step)
        push = pushed(residual)

        def largest(x, args, step):  # type: ignore[no-untyped-def]
            reach = np.abs(vector(x, x)) + np.abs(step)
            product, units = (
                push(reach * np.cos(np.arange(reach.size) ** 2), x, args),
                row_units(push, reach.size, (x, args)),
            )
            return size_of(product / units) * units

        return largest

    return largest


def _by_gmres(residual: Any, make: Callable[[], Any], divide: Any = _quotient) -> Any:
    """A solution of linear systems: of numbers by ``divide``, of vectors by what is made when there are such."""
    slope = slope_of(residual)

    def solution(guess: Any, x: Any, args: Any, right: Any) -> Any:
        raise NotImplementedError

    @inner_overload(solution, strict=False)
    def solution_typed(guess: Any, x: Any, args: Any, right: Any) -> Any:
        if isinstance(x, types.Float):
            return lambda guess, x, args, right: divide(slope(x, args), right)
        solve = make()

        def found(guess, x, args, right):  # type: ignore[no-untyped-def]
            small = max(TOLERANCE, 8.0 * epsilon_of(x))
            settings = (np.zeros_like(right), small, 0.0, ITERATIONS * right.size, min(right.size, 30))
            return solve(settings, (right, (x, args)))

        return found

    return solution


def pushed(residual: Any) -> Any:
    """The product of the residual's derivative with respect to ``x`` and a vector: ``(v, x, args)``."""

    def make() -> Any:
        push = pushforward(flat(residual))

        @inner_njit
        def pushed(v, x, args):  # type: ignore[no-untyped-def]
            at = vector(x, x)  # in the precision of x, the linear systems in double precision
            return shaped(push(at, shaped(v, at), x, args)[1], v)

        return pushed

    return remembered(residual, (pushed,), make)


def pulled(residual: Any) -> Any:
    """The product of the transpose of that derivative and a vector: ``(v, x, args)``."""

    def make() -> Any:
        one = flat(residual)

        @inner_njit
        def weighted(v, weights, x, args):  # type: ignore[no-untyped-def]
            return np.dot(weights, one(v, x, args))

        slope = grad(weighted)

        @inner_njit
        def pulled(weights, x, args):  # type: ignore[no-untyped-def]
            at = vector(x, x)
            return shaped(slope(at, shaped(weights, at), x, args), weights)

        return pulled

    return remembered(residual, (pulled,), make)
