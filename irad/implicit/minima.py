"""Minima of a function, at which its gradient is zero: by BFGS here, by L-BFGS or within bounds elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.grad import value_and_grad
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.packing.packed import packed
from irad.implicit import systems
from irad.implicit.bounded import bounded, bounds_of, start_within, within
from irad.implicit.compiled import offer
from irad.implicit.constrained import constrained
from irad.implicit.limited_memory import limited_memory
from irad.implicit.newton import newton_steps
from irad.implicit.theorem import outcome, solver_of
from irad.implicit.unknowns import (
    like_listed,
    listed,
    shaped,
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
    method: str = "bfgs",
    bounds: Any = None,
    equality: Callable[..., Any] | None = None,
    inequality: Callable[..., Any] | None = None,
    full_output: bool = False,
) -> Any:
    """A local minimum of ``fun(x, *args)``, also with constraints, and its derivative with respect to ``args``.

    Near the minimum Newton's method takes over, for the point where the gradient is zero, so that the minimum is as
    precise as the gradient. It can be called from Python and in compiled code. The derivative is that of this point:
    one linear system with the Hessian.

    Within bounds the method is a semismooth Newton method. The derivative is that of the unknowns between their bounds;
    an unknown at a bound follows that, so there are derivatives with respect to bounds, too. Where its part of the
    gradient is zero there, derivatives to both sides differ, and the returned one is that at the bound.

    With constraints it is sequential quadratic programming with a line search. The derivative is that of the conditions
    of Karush, Kuhn and Tucker, with the active constraints as equations. Where an inequality is active and its
    multiplier is zero, derivatives to both sides differ, and the returned one is that without it.

    Args:
        fun: returns a number.
        x0: the initial guess, as in `irad.implicit.newton`: a number, an array of any shape, or a structure of these.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        rtol: relative tolerance: the search ends when Newton's step changes each unknown by at most this share of its
            size, or when the gradient is zero up to the rounding of its terms. The units of the function and of
            unknowns do not matter.
        atol: absolute tolerance, added to the relative one.
        maxiter: the largest number of steps.
        method: ``"bfgs"``, or ``"l-bfgs"`` for many unknowns: L-BFGS, without a matrix, whose search ends when steps
            are small beside the norm of ``x``, and conjugate gradients with products of the Hessian and a vector for
            the derivative. It needs more steps, and has no bounds; a literal in compiled code.
        bounds: a tuple of a lower and an upper bound, each a number, None, or for an ``x0`` with one axis an array like
            it; for an ``x0`` that is a number or such an array. The search is in double precision.
        equality: a function of the same arguments as ``fun``, whose values are zero at the minimum: a number, an array,
            or a tuple of these. With constraints the search and the minimum are in double precision.
        inequality: such a function whose values are not negative at the minimum. Elsewhere, like ``fun`` outside of
            bounds, they may be NaN except at ``x0``.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a minimum, instead of
            raising if it is not; a literal in compiled code. With constraints it is an
            `irad.implicit.ConstrainedSolution`, which has their multipliers.

    Returns:
        The minimum, in new memory.

    Raises:
        SignatureError: ``fun`` or a constraint is not a function that Numba compiles, ``method`` is none of these, or
            bounds or constraints are given with another than ``"bfgs"`` or for other unknowns.
        ValueError: no minimum is found within ``maxiter`` steps, the gradient is zero at a point that is not a minimum,
            or no point is found that satisfies the constraints.

    If the Hessian cannot be inverted, a derivative raises LinAlgError (ZeroDivisionError for numbers). It raises
    ValueError where active constraints depend on each other: multipliers are not unique there, those returned are some.

    Source:
        Nocedal, Wright: Numerical optimization, Springer 2006, chapters 6, 7 and 18; within bounds Bertsekas: Projected
        Newton methods, SIAM J. Control Optim. 20 (1982) 221-246.

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
    g, h = (None if each is None else primal_of(each) for each in (equality, inequality))
    solve = _argmin(primal_of(fun), method, full_output, g, h, bounds is not None)
    tolerances = float(rtol), float(atol), int(maxiter)
    if bounds is None:
        return solve(packed((x0, *tolerances)), passed_along(args))
    start, lower, upper = within(x0, bounds)
    return solve((start, *tolerances), (lower, upper, *passed_along(args)))


def _argmin(
    objective: Any,
    method: Any = "bfgs",
    full_output: bool = False,
    equality: Any = None,
    inequality: Any = None,
    is_bounded: bool = False,
) -> Any:
    is_free = equality is None and inequality is None
    if method not in ("bfgs", "l-bfgs") or ((is_bounded or not is_free) and method != "bfgs"):
        raise SignatureError(
            f"argmin: method={method!r}" + (" with bounds" if is_bounded else "" if is_free else " with constraints"),
            '(a) pass "bfgs" or (b) pass "l-bfgs" without bounds and constraints',
            "these are its methods",
            SourceLocation.here(),
        )

    def make() -> Any:
        if not is_free:
            return constrained(objective, equality, inequality, is_bounded, full_output)
        gradient, both = systems.stationary(objective), value_and_grad(objective)
        if is_bounded:
            chosen = bounded(both, gradient)
        elif method == "l-bfgs":
            chosen = limited_memory(both, gradient)
        else:
            chosen = _bfgs(both, gradient), gradient, systems.dense(gradient)
        return solver_of(*chosen, "irad.implicit.argmin found no minimum within maxiter steps", full_output)

    return remembered(objective, (argmin, method, full_output, equality, inequality, is_bounded), make)


def _least_step(matrix: Any, value: Any) -> Any:
    """Newton's step, the shortest one where the matrix is singular, in units in which its diagonal is 1."""
    raise NotImplementedError


@inner_overload(_least_step, strict=False)
def _least_step_typed(matrix: Any, value: Any) -> Any:
    if not isinstance(matrix, types.Array):
        return lambda matrix, value: value / matrix if matrix != 0.0 else np.inf

    def least_step(matrix, value):  # type: ignore[no-untyped-def]
        units = systems.units_of(np.abs(np.diag(matrix)))
        return units * np.linalg.lstsq(matrix * units * units.reshape((-1, 1)), units * value)[0]

    return least_step


@inner_jitable
def _is_convex(matrix):  # type: ignore[no-untyped-def]
    """True if a symmetric matrix has no negative eigenvalue but for rounding."""
    units = systems.units_of(np.abs(np.diag(matrix)))
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
        curvatures = np.diag(systems.squared(hessian(like, args))).copy()
        first = _first_inverse(curvatures, x, value, gradient)
        inverse, goal, is_stuck, nit, nfev = first.copy(), 0.0, False, 0, 1
        while nit < limit:
            step = -np.dot(inverse, gradient)
            slope_along, length = np.dot(gradient, step), 1.0
            if is_stuck or not -slope_along > goal:
                near = polish(shaped(like_listed(x, kind), like), rtol, atol, _NEWTON_STEPS, args)
                nfev += near.nfev
                if near.success and _is_convex(systems.squared(hessian(near.x, args))):
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


offer(
    argmin,
    _argmin,
    "(start_within(bounds, x0), rtol, atol, maxiter), bounds_of(bounds, x0) + passed_along(args)",
    literals=("method", "full_output"),
    functions=("equality", "inequality"),
    present=("bounds",),
    start_within=start_within,
    bounds_of=bounds_of,
)
