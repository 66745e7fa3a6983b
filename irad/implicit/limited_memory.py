"""Minima in many unknowns: L-BFGS, with derivatives by conjugate gradients and products with the Hessian."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.core import types

from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.implicit import systems
from irad.implicit.krylov import ITERATIONS, TOLERANCE, krylov_of
from irad.implicit.theorem import outcome
from irad.implicit.unknowns import epsilon_of, like_listed, listed, shaped, started, vector

_MEMORY: Final = 20  # of steps; more cost memory, fewer cost steps
_ROUNDING: Final = 4.0  # in units of the relative error of a float
_SETTLED: Final = 3  # short steps in a row that end the search


def limited_memory(both: Any, gradient: Any) -> tuple[Any, Any, tuple[Any, Any]]:
    """Steps, residual and linear systems for `solver_of`.

    Args:
        both: the objective and its gradient, of x and the arguments.
        gradient: the gradient alone.
    """
    solution = _by_conjugate_gradients(gradient)  # the Hessian is symmetric
    return _steps(both), gradient, (solution, solution)


def _by_conjugate_gradients(gradient: Any) -> Any:
    slope = systems.slope_of(gradient)

    def solution(guess: Any, x: Any, args: Any, right: Any) -> Any:
        raise NotImplementedError

    @inner_overload(solution, strict=False)
    def solution_typed(guess: Any, x: Any, args: Any, right: Any) -> Any:
        if isinstance(x, types.Float):
            return lambda guess, x, args, right: systems.solved(slope(x, args), right, False)
        solve = krylov_of(systems.pushed(gradient), "cg")

        def found(guess, x, args, right):  # type: ignore[no-untyped-def]
            small = max(TOLERANCE, 8.0 * epsilon_of(x))
            return solve((np.zeros_like(right), small, 0.0, ITERATIONS * right.size, 0), (right, (x, args)))

        return found

    return solution


@inner_jitable
def _direction(gradient, moves, changes, curvatures, count):  # type: ignore[no-untyped-def]
    """Minus the product of the approximate inverse of the Hessian and the gradient, by the two loops of Nocedal."""
    found, weights, known = -gradient, np.zeros(_MEMORY), min(count, _MEMORY)
    for back in range(known):
        i = (count - 1 - back) % _MEMORY
        weights[i] = np.dot(moves[i], found) / curvatures[i]
        found -= weights[i] * changes[i]
    if known > 0:
        last = (count - 1) % _MEMORY
        found *= curvatures[last] / np.dot(changes[last], changes[last])
    for ahead in range(known):
        i = (count - known + ahead) % _MEMORY
        found += (weights[i] - np.dot(changes[i], found) / curvatures[i]) * moves[i]
    return found


@inner_jitable
def _first_length(x, value, gradient):  # type: ignore[no-untyped-def]
    """A step in the units of the problem: the value, or a share of the unknowns, over the gradient."""
    square = np.dot(gradient, gradient)
    if square == 0.0:
        return 1.0
    if value != 0.0:
        return abs(value) / square
    size = np.sqrt(np.dot(x, x))
    return 0.1 * size / np.sqrt(square) if size > 0.0 else 1.0 / np.sqrt(square)


def _steps(both: Any) -> Any:
    @inner_njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        like = started(x0)
        kind = vector(like, like)
        x = listed(kind).astype(np.float64)
        value, found = both(like, *args)
        gradient = listed(vector(found, like)).astype(np.float64)
        moves, changes, curvatures = np.zeros((_MEMORY, x.size)), np.zeros((_MEMORY, x.size)), np.zeros(_MEMORY)
        tolerance, count, settled, nfev = max(rtol, _ROUNDING * epsilon_of(like)), 0, 0, 1
        for nit in range(limit):
            if not np.any(gradient != 0.0):
                return outcome(shaped(like_listed(x, kind), like), True, nit, nfev)
            step = _direction(gradient, moves, changes, curvatures, count)
            if count == 0:
                step = step * _first_length(x, value, gradient)
            along = np.dot(gradient, step)
            length, low, high = 1.0, 0.0, np.inf
            # The conditions of Wolfe, by bisection. Where rounding hides the decrease of the value, the slope decides.
            for _ in range(60):
                after, found = both(shaped(like_listed(x + length * step, kind), like), *args)
                nfev += 1
                slopes = listed(vector(found, like)).astype(np.float64)
                slope = np.dot(slopes, step)
                is_flat = abs(after - value) <= 1e-12 * abs(value) and abs(slope) <= 0.9 * abs(along)
                if not (after <= value + 1e-4 * length * along or is_flat):
                    high = length
                elif slope < 0.9 * along:
                    low = length
                else:
                    break
                length = 0.5 * (low + high) if high < np.inf else 2.0 * length
            is_lower = after <= value + 1e-4 * length * along or is_flat
            move, change = length * step, slopes - gradient
            size = np.sqrt(np.dot(x, x))
            is_short = np.isfinite(size) and np.sqrt(np.dot(move, move)) <= tolerance * size + atol * np.sqrt(x.size)
            if not is_lower:
                if count > 0 and not is_short:
                    count, settled = 0, 0  # from the start, with what is known of the steps no longer right
                    continue
                if is_short:
                    return outcome(shaped(like_listed(x, kind), like), True, nit, nfev)
                break
            if not (np.isfinite(after) and np.isfinite(size)):  # it falls forever
                break
            x, value, gradient = x + move, after, slopes
            settled = settled + 1 if is_short else 0
            if settled >= _SETTLED:
                return outcome(shaped(like_listed(x, kind), like), True, nit, nfev)
            curvature = np.dot(move, change)
            if curvature > 0.0:
                at = count % _MEMORY
                moves[at], changes[at], curvatures[at], count = move, change, curvature, count + 1
        return outcome(shaped(like_listed(x, kind), like), False, nit + 1, nfev)

    return steps
