"""Minima: of a function, by BFGS, and of a sum of squares, by Levenberg and Marquardt. At both the gradient is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.grad import grad, value_and_grad
from irad.api.jacobians.jacobian import jacobian
from irad.frontend.calls.raising import public
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.packing.packed import packed
from irad.implicit import systems
from irad.implicit.compiled import offer
from irad.implicit.newton import newton_steps
from irad.implicit.theorem import outcome, solver_of
from irad.implicit.unknowns import (
    epsilon_of,
    is_within,
    larger,
    like_listed,
    listed,
    relative_size,
    shaped,
    size_of,
    started,
    vector,
)


@public
def argmin(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int = 200,
    full_output: bool = False,
) -> Any:
    """A local minimum of ``fun(x, *args)`` by BFGS, and its derivative with respect to ``args``.

    Near the minimum Newton's method takes over, for the point where the gradient is zero, so that the minimum is as
    precise as the gradient. It can be called from Python and in compiled code. The derivative is that of this point:
    one linear system with the Hessian.

    Args:
        fun: returns a number.
        x0: the initial guess, as in `irad.implicit.newton`: a number, an array of any shape, or a structure of these.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        rtol: relative tolerance: the search ends when Newton's step changes each unknown by at most this share of its
            size, or when the gradient is zero up to the rounding of its terms. The units of the function and of
            unknowns do not matter.
        atol: absolute tolerance, added to the relative one.
        maxiter: the largest number of steps.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a minimum, instead of
            raising if it is not; a literal in compiled code.

    Returns:
        The minimum, in new memory.

    Raises:
        SignatureError: ``fun`` is not a function that Numba compiles.
        ValueError: no minimum is found within ``maxiter`` steps, or the gradient is zero at a point that is not a
            minimum.

    If the Hessian cannot be inverted, a derivative raises LinAlgError (ZeroDivisionError for numbers).

    Source:
        Nocedal, Wright: Numerical optimization, Springer 2006, chapter 6.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import argmin
        >>> from numba import njit
        >>> @njit
        ... def ridge(w, x, y, penalty):
        ...     return ((x * w - y) ** 2).sum() + penalty * w**2
        >>> @njit
        ... def fit(penalty):
        ...     return argmin(ridge, 0.0, (np.ones(2), np.array([1.0, 3.0]), penalty))
        >>> w, tangent = irad.jvp(fit, (2.0,), (1.0,))
        >>> round(w, 6), round(tangent, 6)
        (1.0, -0.25)
    """
    solve = _argmin(primal_of(fun), full_output)
    return solve(packed((x0, float(rtol), float(atol), int(maxiter))), passed_along(args))


def _stationary(objective: Any) -> Any:
    """The gradient with respect to the first argument, as a function with a rule of nothing but its code."""
    slope = grad(objective)

    @inner_njit
    def gradient(x, *args):  # type: ignore[no-untyped-def]
        return slope(x, *args)

    return gradient


def _argmin(objective: Any, full_output: bool = False) -> Any:
    def make() -> Any:
        gradient = _stationary(objective)
        steps = _bfgs(value_and_grad(objective), gradient)
        error = "irad.implicit.argmin found no minimum within maxiter steps"
        return solver_of(steps, gradient, systems.dense(gradient), error, full_output)

    return remembered(objective, (argmin, full_output), make)


def _least_step(matrix: Any, value: Any) -> Any:
    """Newton's step, the shortest one where the matrix is singular, in units in which its diagonal is 1."""
    raise NotImplementedError


@inner_overload(_least_step, strict=False)
def _least_step_typed(matrix: Any, value: Any) -> Any:
    if not isinstance(matrix, types.Array):
        return lambda matrix, value: value / matrix if matrix != 0.0 else np.inf

    def least_step(matrix, value):  # type: ignore[no-untyped-def]
        units = _units(np.abs(np.diag(matrix)))
        return units * np.linalg.lstsq(matrix * units * units.reshape((-1, 1)), units * value)[0]

    return least_step


@inner_jitable
def _units(squares):  # type: ignore[no-untyped-def]
    """One over the roots of squares; those that are zero count as the largest."""
    found, most = np.empty(squares.size), squares.max() if squares.size > 0 else 0.0
    for i in range(squares.size):
        square = squares[i] if squares[i] > 0.0 else most
        found[i] = 1.0 / np.sqrt(square) if square > 0.0 else 1.0
    return found


@inner_jitable
def _is_convex(matrix):  # type: ignore[no-untyped-def]
    """True if a symmetric matrix has no negative eigenvalue but for rounding."""
    units = _units(np.abs(np.diag(matrix)))
    values = np.linalg.eigvalsh(matrix * units * units.reshape((-1, 1)))
    return values.size == 0 or values.min() >= -1e-10 * np.abs(values).max()


@inner_jitable
def _first_inverse(curvatures, x, value, gradient):  # type: ignore[no-untyped-def]
    """A diagonal guess of the inverse of the Hessian, in the units of the problem."""
    found, square = np.zeros((x.size, x.size)), np.dot(gradient, gradient)
    for i in range(x.size):
        if curvatures[i] != 0.0:
            found[i, i] = 1.0 / abs(curvatures[i])
        elif gradient[i] != 0.0 and x[i] != 0.0:
            found[i, i] = abs(x[i] / gradient[i])
        elif square > 0.0:
            found[i, i] = abs(value) / square if value != 0.0 else 1.0 / np.sqrt(square)
    return found


_ROUNDING = 4.0  # in units of the relative error of a float
_NEAR = 1e-8  # of the largest decrease that was expected of a step: here Newton's method is tried
# Of the decrease at which Newton's method failed: here it is tried again.
_NEARER = 1e-4
_NEWTON_STEPS = 30


def _bfgs(both: Any, gradient_of: Any) -> Any:
    slope = systems.slope_of(gradient_of)

    @inner_njit
    def hessian(x, args):  # type: ignore[no-untyped-def]
        return slope(x, args)

    @inner_jitable
    def stepping(settings, x, args, value):  # type: ignore[no-untyped-def]
        matrix = hessian(x, args)
        step = _least_step(matrix, value)
        return step, systems.terms(matrix, vector(x, x), step)

    polish = newton_steps(gradient_of, stepping)

    @inner_njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        like = started(x0)
        kind = vector(like, like)
        x = listed(kind).copy()
        value, found = both(like, *args)
        gradient = listed(vector(found, like))
        curvatures = np.diag(squared(hessian(like, args))).copy()
        first = _first_inverse(curvatures, x, value, gradient)
        inverse, goal, is_stuck, nit, nfev = first.copy(), 0.0, False, 0, 1
        while nit < limit:
            step = -np.dot(inverse, gradient)
            slope_along, length = np.dot(gradient, step), 1.0
            if is_stuck or not -slope_along > goal:
                near = polish(shaped(like_listed(x, kind), like), rtol, atol, _NEWTON_STEPS, args)
                nfev += near.nfev
                if near.success and _is_convex(squared(hessian(near.x, args))):
                    return outcome(near.x, True, nit + near.nit, nfev)
                if is_stuck or slope_along == 0.0:
                    break
                goal = -_NEARER * slope_along
            goal = max(goal, -_NEAR * slope_along) if goal == 0.0 or -slope_along > goal / _NEAR else goal
            nit += 1
            while True:
                move, nfev = length * step, nfev + 1
                after, found = both(shaped(like_listed(x + move, kind), like), *args)
                change = listed(vector(found, like)) - gradient
                # where rounding hides the decrease of the value, that of the slope decides
                is_lower = after <= value + 1e-4 * length * slope_along or (
                    after <= value + 1e-12 * abs(value)
                    and abs(slope_along + np.dot(change, step)) <= 0.9 * abs(slope_along)
                )
                if is_lower or length < 1e-12:
                    break
                length *= 0.5
            is_stuck = not is_lower
            if is_stuck:
                continue
            curvature = np.dot(move, change)
            if curvature > 0.0:
                rest = np.eye(x.size) - np.outer(move, change) / curvature
                inverse = rest @ inverse @ rest.T + np.outer(move, move) / curvature
            else:
                inverse = first.copy()
            x, value, gradient = x + move, after, gradient + change
        return outcome(shaped(like_listed(x, kind), like), False, nit, nfev)

    return steps


def squared(found: Any) -> Any:
    """A number as a matrix of one element; a matrix stays one."""
    raise NotImplementedError


@inner_overload(squared, strict=False)
def _squared_typed(found: Any) -> Any:
    return (lambda found: found) if isinstance(found, types.Array) else lambda found: np.full((1, 1), found)


offer(argmin, _argmin, "(x0, rtol, atol, maxiter), passed_along(args)", literals=("full_output",))


@public
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int = 100,
    full_output: bool = False,
) -> Any:
    """A local minimum of the sum of the squares of ``fun(x, *args)``, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code. The method is that of Levenberg and Marquardt. The derivative is
    that of the point where the gradient of the sum is zero; it includes the second derivatives of ``fun``.

    Args:
        fun: returns an array.
        x0: the initial guess, an array with one axis.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        rtol: relative tolerance: the search ends when the Gauss-Newton step changes each unknown by at most this share
            of its size, or when the gradient is zero up to the rounding of its terms. Units do not matter.
        atol: absolute tolerance, added to the relative one.
        maxiter: the largest number of steps.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a minimum, instead of
            raising if it is not; a literal in compiled code.

    Returns:
        The minimum, in new memory.

    Raises:
        SignatureError: ``fun`` is not a function that Numba compiles.
        ValueError: no minimum is found within ``maxiter`` steps, ``fun`` is not finite at ``x0``, or it has fewer
            values than there are unknowns.

    Source:
        Nocedal, Wright: Numerical optimization, Springer 2006, section 10.3.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import least_squares
        >>> from numba import njit
        >>> @njit
        ... def misfit(p, x, y):
        ...     return p[0] * np.exp(-p[1] * x) - y
        >>> x = np.linspace(0.0, 2.0, 5)
        >>> least_squares(misfit, np.ones(2), (x, 3.0 * np.exp(-0.5 * x))).round(6)
        array([3. , 0.5])
    """
    solve = _least_squares(primal_of(fun), full_output)
    return solve((x0, float(rtol), float(atol), int(maxiter)), passed_along(args))


def _least_squares(residuals: Any, full_output: bool = False) -> Any:
    def make() -> Any:
        @inner_njit
        def half_squares(x, *args):  # type: ignore[no-untyped-def]
            r = residuals(x, *args).ravel()
            return 0.5 * np.dot(r, r)

        gradient = _stationary(half_squares)
        error = "irad.implicit.least_squares found no minimum within maxiter steps"
        return solver_of(_levenberg_marquardt(residuals), gradient, systems.dense(gradient), error, full_output)

    return remembered(residuals, (least_squares, full_output), make)


def _levenberg_marquardt(residuals: Any) -> Any:
    @inner_njit
    def flat(x, *args):  # type: ignore[no-untyped-def]
        return residuals(x, *args).ravel()

    slope = jacobian(flat)

    @inner_njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        x, damping, is_stuck = started(x0).astype(np.float64), 1e-3, False
        r = flat(x, *args)
        _check_residuals(r, x.size)
        rounding = _ROUNDING * epsilon_of(x)
        tolerance, seen, nit, nfev = max(rtol, rounding), np.abs(x), 0, 1
        while nit < limit:
            j = slope(x, *args)
            gradient, square, matrix = j.T @ r, np.dot(r, r), j.T @ j
            sizes = np.abs(j)
            wrong = relative_size(gradient, sizes.T @ (sizes @ np.abs(x) + np.abs(r)))
            units = _units(np.diag(matrix).copy())
            newton_step = units * np.linalg.lstsq(j * units, r)[0]
            is_small = is_within(newton_step, x, tolerance, atol) and (wrong <= 100.0 * tolerance or atol > 0.0)
            # no step is better: what is left is rounding, of the gradient's terms or of where the search has been
            is_rounding = wrong <= tolerance or (wrong >= 0.0 and is_within(newton_step, seen, rounding, atol))
            if is_small or wrong <= rounding or (is_stuck and is_rounding):
                return outcome(x, True, nit, nfev)
            if is_stuck:
                break
            trial, after, nit = x, r, nit + 1
            while damping < 1e15:
                trial = x - np.linalg.solve(matrix + damping * np.diag(1.0 / units**2), gradient)
                after, nfev = flat(trial, *args), nfev + 1
                # near the minimum of a sum that stays, rounding hides the decrease
                if np.dot(after, after) <= square * (1.0 + 1e-13):
                    break
                damping *= 4.0
            is_stuck = damping >= 1e15
            x, r, damping = trial, after, max(damping / 8.0, 1e-15)
            seen = larger(seen, x)
        return outcome(x, False, nit, nfev)

    return steps


@inner_njit
def _check_residuals(r, unknowns):  # type: ignore[no-untyped-def]
    if r.size < unknowns:
        raise FormattedValueError(
            "the function of irad.implicit.least_squares returns {} values for {} unknowns: its minimum is not unique, "
            "give at least as many values",
            r.size,
            unknowns,
        )
    if not np.isfinite(size_of(r)):
        raise ValueError("the function of irad.implicit.least_squares is not finite where the search begins")


offer(least_squares, _least_squares, "(x0, rtol, atol, maxiter), passed_along(args)", literals=("full_output",))
