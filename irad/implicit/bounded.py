"""Minima within bounds: a semismooth Newton method, and the conditions of Karush, Kuhn and Tucker as equation.

At the minimum each unknown is at a bound, beyond which the objective falls, or its part of the gradient is zero.
Which of these is known there, so the derivative is that of the free unknowns with the others at their bounds.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.core import types

from irad.errors import SignatureError, SourceLocation
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.implicit import systems
from irad.implicit.theorem import outcome
from irad.implicit.unknowns import (
    epsilon_of,
    is_none,
    is_within,
    larger,
    like_listed,
    listed,
    relative_size,
    shaped,
    started,
    vector,
)

_ROUNDING: Final = 4.0  # in units of the relative error of a float


def bounded(both: Any, gradient: Any) -> tuple[Any, Any, tuple[Any, Any]]:
    """Steps, residual and linear systems for `solver_of`; the first two arguments are the bounds, vectors.

    Args:
        both: the objective and its gradient, of x and the arguments.
        gradient: the gradient alone.
    """

    @inner_njit
    def conditions(x, lower, upper, *args):  # type: ignore[no-untyped-def]
        place, found = listed(vector(x, x)), listed(vector(gradient(x, *args), x)).copy()
        for i in range(place.size):
            if place[i] <= lower[i]:
                found[i] = place[i] - lower[i]
            elif place[i] >= upper[i]:
                found[i] = place[i] - upper[i]
        return shaped(like_listed(found, vector(x, x)), x)

    slope = systems.slope_of(gradient)

    @inner_njit
    def hessian(x, args):  # type: ignore[no-untyped-def]
        return systems.squared(slope(x, args))

    @inner_jitable
    def matrix_of(x, args):  # type: ignore[no-untyped-def]
        lower, upper, rest = args[0], args[1], args[2:]
        place, found = listed(vector(x, x)), hessian(x, rest)
        for i in range(place.size):
            if place[i] <= lower[i] or place[i] >= upper[i]:
                found[i] = 0.0
                found[i, i] = 1.0
        return found

    @inner_jitable
    def plain(guess, x, args, right):  # type: ignore[no-untyped-def]
        return like_listed(np.linalg.solve(matrix_of(x, args), listed(right)), right)

    @inner_jitable
    def transposed(guess, x, args, right):  # type: ignore[no-untyped-def]
        return like_listed(np.linalg.solve(matrix_of(x, args).T.copy(), listed(right)), right)

    return _semismooth_newton(both, hessian), conditions, (plain, transposed)


@inner_njit
def _downhill(matrix, gradient, is_free, move):  # type: ignore[no-untyped-def]
    """Newton's step of the free unknowns while the others move, and whether the matrix has no negative eigenvalue.

    Eigenvalues that are negative or small are taken as positive ones, so that the step falls.
    """
    count = np.sum(is_free)
    if count == 0:
        return move, True
    part, right, at = np.zeros((count, count)), np.zeros(count), np.zeros(count, np.int64)
    at[:] = np.flatnonzero(is_free)
    for i in range(count):
        right[i] = -gradient[at[i]] - np.dot(matrix[at[i]], move)
        for j in range(count):
            part[i, j] = matrix[at[i], at[j]]
    units = systems.units_of(np.abs(np.diag(part)))
    values, vectors = np.linalg.eigh(part * units * units.reshape((-1, 1)))
    most = np.abs(values).max()
    sizes = np.maximum(np.abs(values), 1e-12 * most if most > 0.0 else 1.0)
    step = units * np.dot(vectors, np.dot(vectors.T, units * right) / sizes)
    for i in range(count):
        move[at[i]] = step[i]
    return move, values.min() >= -1e-10 * most


def _semismooth_newton(both: Any, hessian: Any) -> Any:
    @inner_njit
    def steps(settings, lower, upper, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        like = started(x0)
        kind = vector(like, like)
        x = np.minimum(np.maximum(listed(kind).astype(np.float64), lower), upper)
        if not np.all(lower <= upper):
            raise ValueError("a lower bound of a solver of irad.implicit is above an upper one")
        value, found = both(shaped(like_listed(x, kind), like), *args)
        gradient = listed(vector(found, like)).astype(np.float64)
        rounding = _ROUNDING * epsilon_of(like)
        tolerance, seen, is_stuck, nit, nfev = max(rtol, rounding), np.abs(x), False, 0, 1
        while nit < limit:
            matrix = hessian(shaped(like_listed(x, kind), like), args)
            scaled = np.zeros(x.size)
            for i in range(x.size):
                curvature = abs(matrix[i, i])
                scaled[i] = -gradient[i] / curvature if curvature > 0.0 else -gradient[i]
            # The unknowns that a step along their own axis takes to a bound go there.
            to = np.minimum(np.maximum(x + scaled, lower), upper)
            is_free = (to > lower) & (to < upper)
            move, is_convex = _downhill(matrix, gradient, is_free, np.where(is_free, 0.0, to - x))
            move = np.minimum(np.maximum(x + move, lower), upper) - x
            sizes = np.abs(matrix) @ (np.abs(x) + np.abs(move))
            wrong = relative_size(np.where(is_free, gradient, 0.0), sizes)
            is_there = np.all(is_free | (x == to))
            is_small = is_within(move, x, tolerance, atol) and (wrong <= 100.0 * tolerance or atol > 0.0)
            is_rounding = wrong <= tolerance or (wrong >= 0.0 and is_within(move, seen, rounding, atol))
            if is_convex and is_there and (is_small or wrong <= rounding or (is_stuck and is_rounding)):
                last = x if is_stuck else np.minimum(np.maximum(x + move, lower), upper)
                return outcome(shaped(like_listed(last, kind), like), True, nit, nfev)
            if is_stuck:
                break
            nit += 1
            if not np.dot(gradient, move) < 0.0:
                move = to - x
            along, length = np.dot(gradient, move), 1.0
            while True:
                trial = np.minimum(np.maximum(x + length * move, lower), upper)
                after, found = both(shaped(like_listed(trial, kind), like), *args)
                nfev += 1
                slopes = listed(vector(found, like)).astype(np.float64)
                # where rounding hides the decrease of the value, that of the slope decides
                is_lower = after <= value + 1e-4 * length * along or (
                    after <= value + 1e-12 * abs(value) and abs(np.dot(slopes, move)) <= 0.9 * abs(along)
                )
                if is_lower or length < 1e-12:
                    break
                length *= 0.5
            is_stuck = not is_lower
            if is_lower:
                x, value, gradient, seen = trial, after, slopes, larger(seen, trial)
        return outcome(shaped(like_listed(x, kind), like), False, nit, nfev)

    return steps


_SIZES: Final = "a bound of a solver of irad.implicit has more or fewer numbers than x0"


def within(x0: Any, bounds: Any) -> tuple[Any, Any, Any]:
    """The guess in double precision, and its bounds as vectors, in Python."""
    start = np.asarray(x0)
    if start.ndim > 1 or start.dtype.kind not in "biuf":
        raise _not_bounded(f"bounds for an array of {start.dtype} with {start.ndim} axes")
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise _not_bounded(f"bounds={bounds!r}")
    sides = []
    for given, far in zip(bounds, (-np.inf, np.inf), strict=True):
        side = np.asarray(far if given is None else given)
        if side.dtype.kind not in "biuf" or side.ndim > start.ndim:
            raise _not_bounded(f"as a bound an array of {side.dtype} with {side.ndim} axes")
        if side.ndim == 1 and side.size != start.size:
            raise ValueError(_SIZES)
        sides.append(np.broadcast_to(side, (start.size,)).astype(np.float64))
    return (start.astype(np.float64) if start.ndim else float(start)), sides[0], sides[1]


def start_within(bounds: Any, x0: Any) -> Any:
    """The guess, in double precision if there are bounds, in compiled code."""
    raise NotImplementedError


def bounds_of(bounds: Any, x0: Any) -> Any:
    """Both bounds as vectors, in compiled code; no items if there are none."""
    raise NotImplementedError


@inner_overload(start_within, strict=False)
def _start_within_typed(bounds: Any, x0: Any) -> Any:
    return (lambda bounds, x0: x0) if is_none(bounds) else (lambda bounds, x0: 1.0 * x0)


@inner_overload(bounds_of, strict=False)
def _bounds_of_typed(bounds: Any, x0: Any) -> Any:
    if is_none(bounds):
        return lambda bounds, x0: ()
    if not _is_number(x0) and not (isinstance(x0, types.Array) and x0.ndim == 1):
        raise _not_bounded(f"bounds for {described(x0)}")
    if not isinstance(bounds, types.BaseTuple) or len(bounds) != 2:
        raise _not_bounded(f"{described(bounds)} as bounds")
    of_lower, of_upper = (_side_of(each, x0) for each in bounds.types)
    return lambda bounds, x0: (of_lower(bounds[0], x0, -np.inf), of_upper(bounds[1], x0, np.inf))


def _is_number(kind: Any) -> bool:
    return isinstance(types.unliteral(kind), types.Float | types.Integer | types.Boolean)


def _side_of(given: Any, x0: Any) -> Any:
    """The inner function that makes a bound of some type a vector."""
    if is_none(given):
        return inner_jitable(lambda given, x0, far: np.full(_size(x0), far))
    if _is_number(given):
        return inner_jitable(lambda given, x0, far: np.full(_size(x0), float(given)))
    if not isinstance(given, types.Array) or given.ndim != 1 or _is_number(x0):
        raise _not_bounded(f"{described(given)} as a bound for {described(x0)}")

    @inner_jitable
    def checked(given, x0, far):  # type: ignore[no-untyped-def]
        if given.size != x0.size:
            raise ValueError(_SIZES)
        return given.astype(np.float64)

    return checked


def _size(x0: Any) -> Any:
    """The number of unknowns."""
    raise NotImplementedError


@inner_overload(_size, strict=False)
def _size_typed(x0: Any) -> Any:
    return (lambda x0: 1) if _is_number(x0) else (lambda x0: x0.size)


def _not_bounded(what: str) -> SignatureError:
    return SignatureError(
        f"a solver is given {what}",
        "pass (lower, upper): numbers, None, or for an x0 with one axis arrays like it",
        "bounds are for unknowns that are a number or a vector",
        SourceLocation.here(),
    )
