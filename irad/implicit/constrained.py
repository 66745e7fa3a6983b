"""Minima with constraints: sequential quadratic programming; the conditions of Karush, Kuhn and Tucker as equation.

    ∇f + Jᵀ y - Kᵀ z = 0,   g = 0,   h = 0 where z > 0, and z = 0 elsewhere

with the derivatives J of g and K of h. An unknown at a bound has that as its equation, as in `bounded.py`. In the
search g and h are one vector of constraints, whose multipliers are y and -z.

A step is that of a quadratic program with the Hessian of the Lagrangian made positive definite. It says which
constraints are active; with these as equations, and the Hessian as it is, the step is Newton's.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba.core import types

from irad.api.checkpointing.values import leaves_of, structured
from irad.api.jacobians.jacobian import jacobian
from irad.errors import SignatureError, SourceLocation
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.implicit import systems
from irad.implicit.quadratic import _bordered, _interior_point
from irad.implicit.theorem import implicit, outcome
from irad.implicit.unknowns import (
    MADE,
    element_type,
    is_within,
    larger,
    like_listed,
    listed,
    relative_size,
    shaped,
    started,
    vector,
    written,
)

_ROUNDING: Final = 4.0 * float(np.finfo(np.float64).eps)
_NOISE: Final = 16.0 * float(np.finfo(np.float64).eps)  # of the terms of a merit, which hides whether it falls
_SETTLED: Final = 3  # steps within rounding that end the search
_LEAST_CURVATURE: Final = 1e-8  # of the largest
_ROUGHLY: Final = 1e-8  # to which a quadratic program holds
_NOTHING: Final = 1e-15  # of the largest of numbers in one unit
_QP_STEPS: Final = 100
_SHORTEST: Final = 1e-12  # share of a step at which the search along it gives up

# Loops instead of numpy.where and of arrays assigned to slices: for the messages of these Numba compiles strings.


@inner_jitable
def _violations(c, equations):  # type: ignore[no-untyped-def]
    found = np.abs(c)
    for i in range(equations, c.size):
        if c[i] > 0.0:
            found[i] = 0.0
    return found


@inner_jitable
def _null_space(rows):  # type: ignore[no-untyped-def]
    """An orthonormal basis, as columns, of what rows take to zero."""
    n = rows.shape[1]
    if rows.shape[0] == 0:
        return np.eye(n)
    _, sizes, basis = np.linalg.svd(rows, True)
    rank = np.sum(sizes > 1e-12 * sizes[0]) if sizes[0] > 0.0 else 0
    return basis[rank:].T.copy()


@inner_jitable
def _row_sizes(matrix):  # type: ignore[no-untyped-def]
    found = np.ones(matrix.shape[0])
    for i in range(matrix.shape[0]):
        size = np.sqrt(np.sum(matrix[i] ** 2))
        found[i] = size if size > 0.0 else 1.0
    return found


@inner_jitable
def _at_ends(values, fixed, low, high):  # type: ignore[no-untyped-def]
    """Values with those of bounds for unknowns at these."""
    found = values.copy()
    for i in range(found.size):
        if fixed[i] != 0.0:
            found[i] = low[i] if fixed[i] < 0.0 else high[i]
    return found


@inner_njit
def _by_program(weight, hessian, gradient, jacobian, c, equations, low, high):  # type: ignore[no-untyped-def]
    """The step of a quadratic program, its multipliers, those of bounds, and whether there is one.

    Args:
        weight: what violations of the constraints cost; zero if all are to hold.
        hessian: positive definite.
        gradient: that of the objective.
        jacobian: that of the constraints.
        c: the constraints.
        equations: how many of them, from the first on, are equations.
        low: the lower bounds of the step.
        high: the upper bounds of the step.
    """
    n, m = gradient.size, c.size
    below, above = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    slacks = m + equations if weight > 0.0 else 0  # two for an equation
    size, inequalities = n + slacks, m - equations
    P, q = np.zeros((size, size)), np.zeros(size)
    A, G = np.zeros((equations, size)), np.zeros((inequalities + below.size + above.size + slacks, size))
    h = np.zeros(G.shape[0])
    for j in range(n):
        q[j] = gradient[j]
        for i in range(n):
            P[i, j] = hessian[i, j]
        for i in range(equations):
            A[i, j] = jacobian[i, j]
        for i in range(inequalities):
            G[i, j] = -jacobian[equations + i, j]
    for i in range(inequalities):
        h[i] = c[equations + i]
    for i in range(below.size):
        G[inequalities + i, below[i]], h[inequalities + i] = -1.0, -low[below[i]]
    at = inequalities + below.size
    for i in range(above.size):
        G[at + i, above[i]], h[at + i] = 1.0, high[above[i]]
    at = at + above.size
    for i in range(slacks):
        G[at + i, n + i] = -1.0
        owner = i if i < m else i - m
        q[n + i] = weight
        if i >= m or i < equations:
            A[owner, n + i] = -1.0 if i < m else 1.0
        else:
            G[i - equations, n + i] = -1.0
    found = _interior_point((_QP_STEPS,), P, q, A, -c[:equations], G, h)
    z, fixed, step = found.x.z, np.zeros(n), found.x.x[:n].copy()
    for i in range(below.size):
        fixed[below[i]] -= z[inequalities + i]
    for i in range(above.size):
        fixed[above[i]] += z[inequalities + below.size + i]
    return _at_ends(step, fixed, low, high), np.concatenate((found.x.y, -z[:inequalities])), fixed, found.success


@inner_njit
def _with_active(guess, near, matrix, gradient, jacobian, c, equations, low, high):  # type: ignore[no-untyped-def]
    """The step with the active constraints as equations, its multipliers, and whether it is one and to a minimum.

    Args:
        guess: the multipliers of the constraints and of bounds by which active ones are known.
        near: the size of the unknowns, beside which rounding is small.
        matrix: the Hessian of the Lagrangian.
        gradient: that of the objective.
        jacobian: that of the constraints.
        c: the constraints.
        equations: how many of them are equations.
        low: the lower bounds of the step.
        high: the upper bounds of the step.
    """
    n, (multipliers, fixed) = gradient.size, guess
    is_active, is_fixed = multipliers != 0.0, fixed != 0.0
    is_active[:equations] = True
    ends = _at_ends(high, fixed, low, high)
    rows = np.concatenate((jacobian[is_active], np.eye(n)[is_fixed]))
    right = np.concatenate((-gradient, -c[is_active], ends[is_fixed]))
    m, system, basis = rows.shape[0], _bordered(matrix, rows), _null_space(rows)
    is_convex = True
    if basis.shape[1] > 0:
        values = np.linalg.eigvalsh(basis.T.copy() @ matrix @ basis)
        is_convex = values.min() >= -1e-10 * np.abs(matrix).max()
    found = np.linalg.lstsq(system, right)[0]
    is_solved = np.abs(system @ found - right).max() <= _ROUGHLY * np.abs(right).max()
    step, all_multipliers = found[:n].copy(), np.zeros(c.size)
    at = n
    for i in range(c.size):
        if is_active[i]:
            all_multipliers[i] = found[at]
            at += 1
    off = _ROUGHLY * np.abs(step).max() + _ROUNDING * near
    after, most = c + jacobian @ step if c.size > 0 else c, np.abs(found[n:]).max() if m > 0 else 0.0
    is_step = is_solved and is_convex and np.all(after[equations:] >= -off - _ROUGHLY * np.abs(c[equations:]))
    is_step = is_step and np.all(all_multipliers[equations:] <= _ROUGHLY * most)
    is_step = is_step and np.all(step >= low - off) and np.all(step <= high + off)
    for i in range(equations, c.size):
        all_multipliers[i] = min(all_multipliers[i], 0.0)
    return _at_ends(step, fixed, low, high), all_multipliers, is_step, is_convex


@inner_jitable
def _positive(matrix, gradient):  # type: ignore[no-untyped-def]
    """A symmetric matrix with positive eigenvalues for negative and small ones."""
    values, vectors = np.linalg.eigh(matrix)
    most = np.abs(values).max()
    size = np.abs(gradient).max()
    least = _LEAST_CURVATURE * most if most > 0.0 else (size if size > 0.0 else 1.0)
    return (vectors * np.maximum(np.abs(values), least)) @ vectors.T


class _Step(NamedTuple):
    """A step, the multipliers after it, and those of bounds.

    These are negative for lower bounds, positive for upper ones, and zero where none is active.
    """

    move: Any
    multipliers: Any
    fixed: Any


@inner_jitable
def _units(hessian, gradient, jacobian, multipliers, seen):  # type: ignore[no-untyped-def]
    """Units of the unknowns in which the Hessian's diagonal is about 1.

    Where it is rounding, beside the largest product of a force and an unknown as it was seen, that takes its place.
    """
    forces, found = np.abs(gradient) + np.abs(jacobian.T) @ np.abs(multipliers), np.abs(np.diag(hessian))
    most = np.maximum(forces * seen, found * seen**2).max()
    for i in range(found.size):
        if found[i] * seen[i] ** 2 <= _NOTHING * most and seen[i] > 0.0:
            found[i] = most / seen[i] ** 2
    return systems.units_of(found)


@inner_njit
def _steps_to_try(units, near, hessian, gradient, jacobian, c, equations, low, high):  # type: ignore[no-untyped-def]
    """Newton's step with its multipliers, that of the quadratic program, and what is known of them.

    All is done in units in which the Hessian's diagonal and the rows of the constraints are about 1; unknowns are at
    most near. What is known: if Newton's step is one, if the Hessian has no negative eigenvalue along the active
    constraints, if the linear constraints contradict each other, so that the step only violates them less, and if there
    is a step at all.
    """
    matrix, rows = hessian * units * units.reshape((-1, 1)), jacobian * units
    sizes = _row_sizes(rows)
    given = units * gradient, rows / sizes.reshape((-1, 1)), c / sizes, equations, low / units, high / units
    convex = _positive(matrix, given[0])
    most, weight, before = np.abs(convex).max(), 0.0, _violations(given[2], equations).sum()
    while True:
        move, multipliers, fixed, is_found = _by_program(weight, convex, *given)
        if weight > 0.0:
            is_found = is_found and _violations(given[2] + given[1] @ move, equations).sum() <= 0.99 * before
        if is_found or weight > 1e12 * most:
            break
        weight = 10.0 * max(weight, most, np.abs(given[0]).max())
    exact, is_step, is_convex, is_apart = (move, multipliers), False, False, weight > 0.0
    if not is_apart:
        found = _with_active((multipliers, fixed), near, matrix, *given)
        exact, is_step, is_convex = (found[0], found[1]), found[2], found[3]
    costs = np.full(c.size, weight) if is_apart else np.maximum(np.abs(multipliers), np.abs(exact[1]))
    return (
        _Step(units * exact[0], exact[1] / sizes, fixed),
        _Step(units * move, multipliers / sizes, fixed),
        1.1 * costs / sizes,
        (is_step, is_convex, is_apart, is_found),
    )


@inner_jitable
def _wrong(step, hessian, gradient, jacobian, x, c, equations):  # type: ignore[no-untyped-def]
    """The largest part of a condition relative to its terms, and of a force times its unknown to the largest of all."""
    reach = np.abs(x) + np.abs(step.move)
    sizes = np.abs(hessian) @ reach + np.abs(gradient) + np.abs(jacobian.T) @ np.abs(step.multipliers)
    forces, to_bounds, left = gradient + jacobian.T @ step.multipliers, np.zeros(x.size), c.copy()
    for i in range(x.size):
        if step.fixed[i] != 0.0:
            forces[i], to_bounds[i] = 0.0, step.move[i]
    for i in range(equations, c.size):
        if step.multipliers[i] == 0.0 and c[i] > 0.0:
            left[i] = 0.0
    off, away = relative_size(left, np.abs(jacobian) @ reach), relative_size(to_bounds, reach)
    share = relative_size(forces * x, np.full(x.size, (sizes * reach).max()))
    return max(relative_size(forces, sizes), off, away), share


@inner_jitable
def _correction(units, jacobian, c, is_active):  # type: ignore[no-untyped-def]
    """The shortest change by which the active constraints, as they are after a step, hold to first order."""
    rows = (jacobian * units)[is_active]
    sizes = _row_sizes(rows)
    return units * np.linalg.lstsq(rows / sizes.reshape((-1, 1)), -c[is_active] / sizes)[0]


@inner_jitable
def _along(move, gradient, jacobian, c, equations, weights):  # type: ignore[no-untyped-def]
    """The change of the merit over a step, to first order."""
    after = _violations(c + jacobian @ move, equations)
    return np.dot(gradient, move) - np.dot(weights, _violations(c, equations) - after)


@inner_jitable
def _moved(x, step, length, lower, upper):  # type: ignore[no-untyped-def]
    """The point after a share of a step, exactly at the bounds that it reaches."""
    found = np.minimum(np.maximum(x + length * step.move, lower), upper)
    return found if length < 1.0 else _at_ends(found, step.fixed, lower, upper)


@inner_jitable
def _ended(x, multipliers, equations, success, nit, nfev):  # type: ignore[no-untyped-def]
    return outcome((x, multipliers[:equations].copy(), np.maximum(-multipliers[equations:], 0.0)), success, nit, nfev)


def _sqp(objective: Any, values_of: Any, derivatives: Any, limits: Any) -> Any:
    """Steps to an `outcome`, which ends at ``(x, y, z)``, and whether a constraint does not hold there.

    Args:
        objective: of x and the arguments.
        values_of: ``(x, args)`` to the equations and the inequalities.
        derivatives: the gradient of the objective and the Jacobian of the constraints, ``(x, args)``, and the Hessian
            of the Lagrangian, ``(x, multipliers, args)``.
        limits: ``(size, given)`` to the bounds and the other arguments.
    """
    gradient_of, jacobian_of, hessian_of = derivatives

    @inner_njit
    def evaluated(v, like, args):  # type: ignore[no-untyped-def]
        x = shaped(like_listed(v, vector(like, like)), like)
        g, h = values_of(x, args)
        return float(objective(x, *args)), np.concatenate((g, h))

    @inner_njit
    def search(x, step, problem, merit, args):  # type: ignore[no-untyped-def]
        """The first point along a step with a lower merit, its values, the share of the step, and evaluations."""
        like, lower, upper, units, jacobian, equations = problem
        weights, before, along, noise = merit
        length, nfev, is_bent = 1.0, 0, False
        trial = _moved(x, step, length, lower, upper)
        while length > _SHORTEST:
            value, c = evaluated(trial, like, args)
            nfev += 1
            if value + np.dot(weights, _violations(c, equations)) <= before + 1e-4 * length * along + noise:
                return trial, value, c, length, nfev
            is_bent = length == 1.0 and not is_bent and c.size > 0
            if is_bent:  # constraints that are not linear may hide that the step is right
                is_active = step.multipliers != 0.0
                is_active[:equations] = True
                near = trial + _correction(units, jacobian, c, is_active)
                trial = np.minimum(np.maximum(near, lower), upper)
            else:
                length *= 0.5
                trial = _moved(x, step, length, lower, upper)
        return x, before, np.zeros(0), 0.0, nfev

    @inner_njit
    def steps(settings, *given):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        like = doubled(started(x0))
        kind = vector(like, like)
        lower, upper, args = limits(listed(kind).size, given)
        if not np.all(lower <= upper):
            raise ValueError("a lower bound of a solver of irad.implicit is above an upper one")
        x = np.minimum(np.maximum(listed(kind), lower), upper)
        value, c = evaluated(x, like, args)
        equations = values_of(like, args)[0].size
        multipliers, weights, seen = np.zeros(c.size), np.zeros(c.size), np.abs(x)
        jacobian, tolerance, settled, nit, nfev = np.zeros((c.size, x.size)), max(rtol, _ROUNDING), 0, 0, 1
        while nit < limit:
            at = shaped(like_listed(x, kind), like)
            gradient, jacobian = gradient_of(at, args), jacobian_of(at, args)
            hessian = hessian_of(at, multipliers, args)
            if not np.isfinite(value + gradient.sum() + jacobian.sum() + hessian.sum()):
                break
            units = _units(hessian, gradient, jacobian, multipliers, seen)
            exact, safe, costs, (is_step, is_convex, is_apart, is_found) = _steps_to_try(
                units, np.abs(x / units).max(), hessian, gradient, jacobian, c, equations, lower - x, upper - x
            )
            weights = np.maximum(costs, 0.5 * (weights + costs))
            along = _along(exact.move, gradient, jacobian, c, equations, weights)
            step = exact if is_step and along < 0.0 else safe
            settled = settled + 1 if is_within(step.move, seen, _ROUNDING, atol) else 0
            if not is_found or (is_apart and is_within(step.move, seen, tolerance, atol)):
                break
            wrong, share = _wrong(step, hessian, gradient, jacobian, x, c, equations)
            is_small = is_within(step.move, x, tolerance, atol) and (wrong <= 100.0 * tolerance or atol > 0.0)
            if is_small or wrong <= _ROUNDING or (settled > _SETTLED and share <= tolerance):
                last = shaped(like_listed(_moved(x, step, 1.0, lower, upper), kind), like)
                return _ended(last, step.multipliers, equations, is_convex, nit, nfev), False
            along = min(_along(step.move, gradient, jacobian, c, equations, weights), 0.0)
            before = value + np.dot(weights, _violations(c, equations))
            noise = _NOISE * (abs(value) + np.dot(np.abs(gradient) + np.dot(np.abs(jacobian).T, weights), np.abs(x)))
            problem, merit = (like, lower, upper, units, jacobian, equations), (weights, before, along, noise)
            trial, value, after, length, tried = search(x, step, problem, merit, args)
            nit, nfev = nit + 1, nfev + tried
            if length == 0.0:
                # no point is better: what is left is rounding
                if is_convex and wrong <= tolerance:
                    last = shaped(like_listed(x, kind), like)
                    return _ended(last, step.multipliers, equations, True, nit, nfev), False
                break
            multipliers = multipliers + length * (step.multipliers - multipliers)
            x, c, seen = trial, after, larger(seen, trial)
        wrong = relative_size(_violations(c, equations), np.abs(jacobian) @ np.abs(x))
        last = shaped(like_listed(x, kind), like)
        return _ended(last, multipliers, equations, False, nit, nfev), wrong > _VIOLATED

    return steps


def doubled(value: Any) -> Any:
    """An unknown in double precision."""
    raise NotImplementedError


@inner_overload(doubled, strict=False)
def _doubled_typed(value: Any) -> Any:
    def of(leaf: Any) -> str:
        # Numba's float() leaves a float32 as it is.
        return f"{leaf.text}.astype(float64)" if isinstance(leaf.type, types.Array) else f"float64({leaf.text})"

    scope: dict[str, Any] = {"float64": np.float64}
    return written("doubled(value)", [f"return {structured(value, map(of, leaves_of(value, 'value')), scope)}"], scope)


def _listed_values(value: Any) -> Any:
    """The values of a constraint as a vector in double precision."""
    raise NotImplementedError


@inner_overload(_listed_values, strict=False)
def _listed_values_typed(value: Any) -> Any:
    leaves = [] if isinstance(value, MADE) else leaves_of(value)
    real = types.Float | types.Integer | types.Boolean
    if not leaves or not all(isinstance(element_type(leaf), real) for leaf in leaves):
        raise SignatureError(
            f"a constraint of argmin returns {described(value)}",
            "return a number, an array of real numbers, or a tuple of these",
            "each number is one constraint",
            SourceLocation.here(),
        )
    return lambda value: listed(vector(value, value)).astype(np.float64)


def _values_of(function: Any) -> Any:
    """``(x, args)`` to the values of a function of constraints, or of none."""
    if function is None:
        return inner_jitable(lambda x, args: np.zeros(0))

    @inner_njit
    def values(x, args):  # type: ignore[no-untyped-def]
        return _listed_values(function(x, *args))

    return values


@inner_jitable
def _given_limits(size, given):  # type: ignore[no-untyped-def]
    return given[0], given[1], given[2:]


@inner_jitable
def _no_limits(size, given):  # type: ignore[no-untyped-def]
    return np.full(size, -np.inf), np.full(size, np.inf), given


def _derivatives(objective: Any, values_of: Any) -> tuple[Any, Any, Any, Any]:
    """The gradient of the Lagrangian ``(x, multipliers, *args)``, and the derivatives for `_sqp`."""

    @inner_njit
    def joined(v, like, args):  # type: ignore[no-untyped-def]
        g, h = values_of(shaped(like_listed(v, vector(like, like)), like), args)
        return np.concatenate((g, h))

    @inner_njit
    def lagrangian(x, multipliers, *args):  # type: ignore[no-untyped-def]
        g, h = values_of(x, args)
        return objective(x, *args) + (multipliers * np.concatenate((g, h))).sum()

    slope = systems.stationary(lagrangian)
    curvature = systems.slope_of(slope)

    @inner_njit
    def gradient_of(x, args):  # type: ignore[no-untyped-def]
        g, h = values_of(x, args)
        return listed(vector(slope(x, np.zeros(g.size + h.size), *args), x))

    @inner_njit
    def hessian_of(x, multipliers, args):  # type: ignore[no-untyped-def]
        return systems.squared(curvature(x, (multipliers,) + args))  # noqa: RUF005, Numba adds tuples

    def jacobian_of(x: Any, args: Any) -> Any:
        raise NotImplementedError

    @inner_overload(jacobian_of, strict=False)
    def jacobian_of_typed(x: Any, args: Any) -> Any:
        found = jacobian(joined, mode=systems.mode_for(args))
        return lambda x, args: found(listed(vector(x, x)), x, args)

    return slope, gradient_of, jacobian_of, hessian_of


class ConstrainedSolution(NamedTuple):
    """The result of `irad.implicit.argmin` with constraints and ``full_output=True``: also their multipliers.

    Attributes:
        x: the minimum, or without success the point at which the search ended, whose derivative is NaN.
        success: whether ``x`` is a minimum.
        nit: the number of steps.
        nfev: how often the function and its constraints were evaluated in search of better points.
        y: the multipliers of the equations: with small numbers ``e`` for their zeros the minimum of the function is
            lower by ``y @ e``.
        z: the multipliers of the inequalities, none of them negative, zero for those that are not active: with small
            numbers ``e`` for their zeros the minimum is higher by ``z @ e``.

    Examples:
        >>> import numpy as np
        >>> from irad.implicit import argmin
        >>> from numba import njit
        >>> @njit
        ... def bowl(x, a):
        ...     return ((x - a) ** 2).sum()
        >>> @njit
        ... def room(x, a):
        ...     return 1.0 - x.sum()
        >>> found = argmin(bowl, np.zeros(2), 1.0, inequality=room, full_output=True)
        >>> found.x.round(6), found.z.round(6)
        (array([0.5, 0.5]), array([1.]))
    """

    x: Any
    success: Any
    nit: Any
    nfev: Any
    y: Any
    z: Any


def constrained(objective: Any, equality: Any, inequality: Any, is_bounded: bool, full_output: bool) -> Any:
    """The compiled ``(settings, args)`` to a minimum, or a `ConstrainedSolution`, with its rule.

    Args:
        objective: of x and the arguments.
        equality: a function of the same whose values are zero, or None.
        inequality: a function of the same whose values are not negative, or None.
        is_bounded: whether bounds are the first two of the arguments.
        full_output: whether to return a `ConstrainedSolution` instead of raising.
    """
    of_g, of_h, limits = _values_of(equality), _values_of(inequality), _given_limits if is_bounded else _no_limits

    @inner_jitable
    def values_of(x, args):  # type: ignore[no-untyped-def]
        return of_g(x, args), of_h(x, args)

    slope, *derivatives = _derivatives(objective, values_of)
    steps, jacobian_of = _sqp(objective, values_of, derivatives, limits), derivatives[1]

    @inner_njit
    def solver(settings, *given):  # type: ignore[no-untyped-def]
        found, is_violated = steps(settings, *given)
        if not found.success:
            if is_violated:
                raise ValueError(_APART)
            raise ValueError("irad.implicit.argmin found no minimum within maxiter steps")
        return found.x

    @inner_njit
    def reporting(settings, *given):  # type: ignore[no-untyped-def]
        return steps(settings, *given)[0]

    conditions = _conditions(slope, values_of, limits)
    matrix_of = _matrix_of(jacobian_of, derivatives[2], limits)

    @inner_jitable
    def plain(guess, x, args, right):  # type: ignore[no-untyped-def]
        return np.linalg.solve(matrix_of(x, args), right)

    @inner_jitable
    def transposed(guess, x, args, right):  # type: ignore[no-untyped-def]
        return np.linalg.solve(matrix_of(x, args).T.copy(), right)

    core = implicit(reporting if full_output else solver, conditions, (plain, transposed))

    @inner_njit
    def minimum(settings, args):  # type: ignore[no-untyped-def]
        return core(settings, args)[0]

    @inner_njit
    def solution(settings, args):  # type: ignore[no-untyped-def]
        found = core(settings, args)
        x, y, z = found.x
        return ConstrainedSolution(x, found.success, found.nit, found.nfev, y, z)

    return solution if full_output else minimum


_VIOLATED: Final = 1e-6  # of a constraint's terms
_APART: Final = (
    "irad.implicit.argmin found no point that satisfies the constraints: (a) they contradict each other, or (b) the "
    "search ended where no small step satisfies them better: begin elsewhere"
)


def _conditions(slope: Any, values_of: Any, limits: Any) -> Any:
    """The conditions of Karush, Kuhn and Tucker, of ``(x, y, z)`` and the arguments."""

    @inner_njit
    def conditions(unknowns, *given):  # type: ignore[no-untyped-def]
        x, y, z = unknowns
        place = listed(vector(x, x))
        lower, upper, args = limits(place.size, given)
        found = listed(vector(slope(x, np.concatenate((y, -z)), *args), x)).copy()
        for i in range(place.size):
            if place[i] <= lower[i]:
                found[i] = place[i] - lower[i]
            elif place[i] >= upper[i]:
                found[i] = place[i] - upper[i]
        g, h = values_of(x, args)
        slack = h.copy()
        for i in range(z.size):
            if not z[i] > 0.0:
                slack[i] = z[i]
        return shaped(like_listed(found, vector(x, x)), x), g, slack

    return conditions


def _matrix_of(jacobian_of: Any, hessian_of: Any, limits: Any) -> Any:
    """The derivative of the conditions with respect to ``(x, y, z)``."""

    @inner_njit
    def matrix_of(unknowns, given):  # type: ignore[no-untyped-def]
        x, y, z = unknowns
        place = listed(vector(x, x))
        lower, upper, args = limits(place.size, given)
        n, m, equations = place.size, y.size + z.size, y.size
        found, slopes = np.zeros((n + m, n + m)), jacobian_of(x, args)
        curvature = hessian_of(x, np.concatenate((y, -z)), args)
        for i in range(n):
            for j in range(n):
                found[i, j] = curvature[i, j]
        for i in range(m):
            is_active = i < equations or z[i - equations] > 0.0
            for j in range(n):
                found[j, n + i] = slopes[i, j] if i < equations else -slopes[i, j]
                found[n + i, j] = slopes[i, j] if is_active else 0.0
            found[n + i, n + i] = 0.0 if is_active else 1.0
        for j in range(n):
            if place[j] <= lower[j] or place[j] >= upper[j]:
                found[j] = 0.0
                found[j, j] = 1.0
        _check_independent(found, n)
        return found

    return matrix_of


@inactive_in_irad
@inner_njit
def _check_independent(matrix, n):  # type: ignore[no-untyped-def]
    """Refuses active constraints that depend on each other, at which multipliers are not unique."""
    m = matrix.shape[0] - n
    rows = np.zeros((m, n))
    active = 0
    for i in range(m):
        if matrix[n + i, n + i] == 0.0:
            for j in range(n):
                is_free = matrix[j, n + i] != 0.0  # not an unknown at its bound, whose row is that of the bound
                rows[active, j] = matrix[n + i, j] if is_free else 0.0
            active += 1
    rows = rows[:active]
    for _ in range(3):
        for j in range(n if active > 0 else 0):
            most = np.abs(rows[:, j]).max()
            for i in range(active):
                rows[i, j] /= most if most > 0.0 else 1.0
        rows = rows / _row_sizes(rows).reshape((-1, 1))
    if active > n or (active > 0 and not np.linalg.svd(rows)[1].min() > _DEPENDENT):
        raise ValueError(
            "a derivative of irad.implicit.argmin is taken where active constraints depend on each other or on bounds: "
            "leave out those that follow from others"
        )


_DEPENDENT: Final = 1e-10  # the least singular value, for rows of size 1
