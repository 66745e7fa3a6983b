"""Quadratic programs: a primal-dual interior point method, with the conditions of Karush, Kuhn and Tucker as equation.

    P x + q + Aᵀ y + Gᵀ z = 0,   A x = b,   z (G x - h) = 0 in each part,   for P made symmetric

At the solution each part of z or of G x - h is zero. The search ends with exact zeros of z, by which the rule tells
the constraints that are active from others.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from numba.core import types

from irad.api.nopython import literal
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.implicit.theorem import outcome, solver_of

_SMALL: Final = 1e-9  # of the terms of a condition, to which the search ends
_ROUNDING: Final = 1e-14  # the same for the largest terms on the way


class QuadraticSolution(NamedTuple):
    """The solution of a quadratic program.

    Attributes:
        x: the minimum.
        y: the multipliers of the equations.
        z: the multipliers of the inequalities, none of them negative; zero for those that are not active.

    Examples:
        >>> import numpy as np
        >>> from irad.implicit import quadratic_program
        >>> found = quadratic_program(np.eye(1), np.array([2.0]), G=-np.eye(1), h=np.zeros(1))  # x >= 0
        >>> found.x.round(6) + 0.0, found.z.round(6)
        (array([0.]), array([2.]))
    """

    x: Any
    y: Any
    z: Any


@public
def quadratic_program(
    P: Any,
    q: Any,
    A: Any = None,
    b: Any = None,
    G: Any = None,
    h: Any = None,
    maxiter: int = 100,
    full_output: bool = False,
) -> Any:
    """The minimum of ``x @ P @ x / 2 + q @ x`` with ``A @ x == b`` and ``G @ x <= h``, and its derivatives.

    It differentiates the minimum and the multipliers with respect to all arrays, in Python and in compiled code.

    Args:
        P: a matrix whose symmetric part has no negative eigenvalue.
        q: a vector.
        A: the matrix of the equations, with independent rows; None for none.
        b: their right-hand sides.
        G: the matrix of the inequalities; None for none.
        h: their right-hand sides.
        maxiter: the largest number of steps.
        full_output: whether to return an `irad.implicit.Solution`, whose ``x`` is the result otherwise returned,
            instead of raising if there is no minimum; a literal in compiled code.

    Returns:
        An `irad.implicit.QuadraticSolution`: the minimum, and the multipliers of both kinds of constraints.

    Raises:
        SignatureError: ``P``, ``A`` or ``G`` is not a matrix of real numbers, or ``q``, ``b`` or ``h`` not a vector.
        ValueError: sizes do not fit, or there is no minimum: constraints contradict each other, or ``q`` falls forever.

    Where an inequality is active and its multiplier is zero, derivatives to both sides differ, and the returned one is
    that of one of the sides. A derivative raises LinAlgError if the minimum or the multipliers are not unique.

    Source:
        Nocedal, Wright: Numerical optimization, Springer 2006, section 16.6.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import quadratic_program
        >>> nearest = lambda p: quadratic_program(np.eye(2), -p, np.ones((1, 2)), np.ones(1), -np.eye(2), np.zeros(2)).x
        >>> nearest(np.array([0.9, 0.5])).round(6)  # the nearest point whose parts are not negative and add up to 1
        array([0.7, 0.3])
        >>> irad.jacobian(nearest)(np.array([0.9, 0.5])).round(6)
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
    """
    side = _from_python("q", q, 1, 0)
    count = side.size
    arrays = (
        _from_python("P", P, 2, count),
        side,
        _from_python("A", A, 2, count),
        _from_python("b", b, 1, count),
        _from_python("G", G, 2, count),
        _from_python("h", h, 1, count),
    )
    return _program(full_output)((int(maxiter),), arrays)


def _from_python(name: str, given: Any, axes: int, count: int) -> Any:
    if given is None and name in "AbGh":
        return np.zeros((0, count)[:axes])
    found = np.asarray(given)
    if found.ndim != axes or found.dtype.kind not in "biuf":
        raise _not_fitting(name, f"an array of {found.dtype} with {found.ndim} axes", axes)
    return np.ascontiguousarray(found, dtype=np.float64)


def _not_fitting(name: str, what: str, axes: int) -> SignatureError:
    return SignatureError(
        f"quadratic_program: {name} is {what}",
        f"pass an array of real numbers with {axes} {'axis' if axes == 1 else 'axes'}",
        "matrices have an axis for the rows and one for the unknowns, vectors have one axis",
        SourceLocation.here(),
    )


def _array(name: str, given: Any, count: Any) -> Any:
    """One of the arrays in double precision, in compiled code; without rows for None."""
    raise NotImplementedError


@inner_overload(_array, strict=False, prefer_literal=True)
def _array_typed(name: Any, given: Any, count: Any) -> Any:
    text = name.literal_value
    axes = 2 if text in "PAG" else 1
    if text in "AbGh" and (given is None or isinstance(given, types.NoneType | types.Omitted)):
        if axes == 2:
            return lambda name, given, count: np.zeros((0, count))
        return lambda name, given, count: np.zeros(0)
    is_real = isinstance(given, types.Array) and isinstance(given.dtype, types.Float | types.Integer | types.Boolean)
    if not is_real or given.ndim != axes:
        raise _not_fitting(text, described(given), axes)
    return lambda name, given, count: np.ascontiguousarray(given).astype(np.float64)


@inner_overload(quadratic_program, strict=False, prefer_literal=True)
def _quadratic_program_typed(
    P: Any,
    q: Any,
    A: Any = None,
    b: Any = None,
    G: Any = None,
    h: Any = None,
    maxiter: Any = 100,
    full_output: Any = False,
) -> Any:
    solve = _program(literal(full_output, "full_output"))

    def call(P, q, A=None, b=None, G=None, h=None, maxiter=100, full_output=False):  # type: ignore[no-untyped-def]
        side = _array("q", q, 0)
        n = side.size
        arrays = (
            _array("P", P, n),
            side,
            _array("A", A, n),
            _array("b", b, n),
            _array("G", G, n),
            _array("h", h, n),
        )
        return solve((maxiter,), arrays)

    return call


@cache
def _program(full_output: bool) -> Any:
    """The compiled ``((maxiter,), (P, q, A, b, G, h)) -> (x, y, z)`` with its rule."""

    @inner_jitable
    def plain(guess, x, args, right):  # type: ignore[no-untyped-def]
        return np.linalg.solve(_conditions_slope(x, args), right)

    @inner_jitable
    def transposed(guess, x, args, right):  # type: ignore[no-untyped-def]
        return np.linalg.solve(_conditions_slope(x, args).T.copy(), right)

    error = (
        "irad.implicit.quadratic_program found no minimum within maxiter steps: constraints contradict each other, or "
        "the objective falls forever"
    )
    return solver_of(_interior_point, _conditions, (plain, transposed), error, full_output)


# Products by loops: BLAS is not for matrices without rows. Assignments by loops: for the messages of those to slices
# Numba compiles strings.


@inner_jitable
def _times(matrix, v):  # type: ignore[no-untyped-def]
    found = np.zeros(matrix.shape[0])
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            found[i] += matrix[i, j] * v[j]
    return found


@inner_jitable
def _times_transposed(matrix, v):  # type: ignore[no-untyped-def]
    found = np.zeros(matrix.shape[1])
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            found[j] += matrix[i, j] * v[i]
    return found


@inner_njit
def _conditions(unknowns, P, q, A, b, G, h):  # type: ignore[no-untyped-def]
    x, y, z = unknowns
    slope = 0.5 * (_times(P, x) + _times_transposed(P, x)) + q
    stationary = slope + _times_transposed(A, y) + _times_transposed(G, z)
    return stationary, _times(A, x) - b, z * (_times(G, x) - h)


@inner_jitable
def _conditions_slope(unknowns, args):  # type: ignore[no-untyped-def]
    """The derivative of the conditions with respect to the unknowns."""
    (x, _, z), (P, _, A, _, G, h) = unknowns, args
    n, equations, count = x.size, A.shape[0], x.size + A.shape[0] + G.shape[0]
    found, excess = np.zeros((count, count)), _times(G, x) - h
    for i in range(n):
        for j in range(n):
            found[i, j] = 0.5 * (P[i, j] + P[j, i])
    for i in range(equations):
        for j in range(n):
            found[n + i, j] = found[j, n + i] = A[i, j]
    for i in range(z.size):
        at = n + equations + i
        for j in range(n):
            found[at, j], found[j, at] = z[i] * G[i, j], G[i, j]
        found[at, at] = excess[i] if z[i] > 0.0 else -1.0  # no multiplier, nor a change of one
    return found


@inner_jitable
def _largest(v):  # type: ignore[no-untyped-def]
    return np.abs(v).max() if v.size > 0 else 0.0


@inner_njit
def _check_sizes(P, q, A, b, G, h):  # type: ignore[no-untyped-def]
    n = q.size
    if n == 0 or P.shape != (n, n) or A.shape != (b.size, n) or G.shape != (h.size, n):
        raise ValueError("the sizes of the arrays of irad.implicit.quadratic_program do not fit together, or are zero")
    if not np.isfinite(P.sum() + q.sum() + A.sum() + b.sum() + G.sum() + h.sum()):
        raise ValueError("an array of irad.implicit.quadratic_program is not finite")


@inner_jitable
def _row_units(matrix):  # type: ignore[no-untyped-def]
    """The largest entry of each row as a power of two; 1 for zeros."""
    found = np.ones(matrix.shape[0])
    for i in range(matrix.shape[0]):
        most = np.abs(matrix[i]).max()
        found[i] = 2.0 ** np.floor(np.log2(most)) if most > 0.0 else 1.0
    return found


@inner_njit
def _interior_point(settings, P, q, A, b, G, h):  # type: ignore[no-untyped-def]
    """The solution in units in which the largest coefficients of the objective and of each constraint are about 1."""
    _check_sizes(P, q, A, b, G, h)
    of_a, of_g = _row_units(A), _row_units(G)
    most = max(_largest(q), np.abs(P).max())
    unit = most if most > 0.0 else 1.0
    hessian = 0.5 * (P + P.T) / unit
    in_units = hessian, q / unit, A / of_a.reshape((-1, 1)), b / of_a, G / of_g.reshape((-1, 1)), h / of_g
    x, y, z, is_found, nit = _path(settings[0], *in_units)
    return outcome(QuadraticSolution(x, unit * y / of_a, unit * z / of_g), is_found, nit, nit)


@inner_njit
def _bordered(hessian, A):  # type: ignore[no-untyped-def]
    n, m = A.shape[1], A.shape[0]
    found = np.zeros((n + m, n + m))
    for j in range(n):
        for i in range(n):
            found[i, j] = hessian[i, j]
        for i in range(m):
            found[n + i, j] = found[j, n + i] = A[i, j]
    return found


@inner_jitable
def _longest(v, change):  # type: ignore[no-untyped-def]
    """The largest step up to 1 that leaves all parts positive."""
    found = 1.0
    for i in range(v.size):
        if change[i] < 0.0:
            found = min(found, -v[i] / change[i])
    return found


@inner_njit
def _path(limit, hessian, q, A, b, G, h):  # type: ignore[no-untyped-def]
    n, k = q.size, G.shape[0]
    # The least squares of slacks, and multipliers of the same sizes, are where to begin.
    start = np.linalg.lstsq(
        _bordered(hessian + np.dot(G.T, G) if k > 0 else hessian, A),
        np.concatenate((_times_transposed(G, h) - q, b)),
    )[0]
    x, y = start[:n].copy(), start[n:].copy()
    s = h - _times(G, x)
    low, high = (-s.min(), s.max()) if k > 0 else (0.0, 0.0)
    z = -s + (1.0 + high if high >= 0.0 else 0.0)
    s = s + (1.0 + low if low >= 0.0 else 0.0)
    nit, far, pull = 0, 0.0, 0.0  # the largest points and forces on the way, beside which rounding is small
    while nit < limit:
        hx, ay, gz, gx, ax = (
            _times(hessian, x),
            _times_transposed(A, y),
            _times_transposed(G, z),
            _times(G, x),
            _times(A, x),
        )
        off_x, off_a, off_g = hx + q + ay + gz, ax - b, gx + s - h
        mean = np.dot(s, z) / k if k > 0 else 0.0
        forces = max(_largest(hx), _largest(q), _largest(ay), _largest(gz))
        value, near = max(abs(np.dot(x, hx)), abs(np.dot(q, x))), max(_largest(x), _largest(s))
        far, pull = max(far, near), max(pull, forces)
        if (
            _largest(off_x) <= max(_SMALL * forces, _ROUNDING * pull)
            and _largest(off_a) <= max(_SMALL * max(_largest(b), near), _ROUNDING * far)
            and _largest(off_g) <= max(_SMALL * max(_largest(h), near), _ROUNDING * far)
            and mean * k <= max(_SMALL * value, _ROUNDING * far * pull)
        ):
            x, y, z = _polished(x, y, z, s, far, hessian, q, A, b, G, h)
            return x, y, z, True, nit
        if k > 0 and not (mean > 0.0 and s.min() > 0.0):  # rounded to zero
            break
        matrix = hessian.copy()
        for i in range(k):
            for j in range(n):
                for c in range(n):
                    matrix[j, c] += z[i] / s[i] * G[i, j] * G[i, c]
        system = _bordered(matrix, A)
        centre = s * z
        for is_last in (False, True):
            right = np.concatenate((-off_x - _times_transposed(G, (z * off_g - centre) / s), -off_a))
            if not (np.all(np.isfinite(system)) and np.all(np.isfinite(right))):
                return x, y, z, False, nit
            step = np.linalg.lstsq(system, right)[0]
            dx, dy = step[:n], step[n:]
            ds = -off_g - _times(G, dx)
            dz = (-centre - z * ds) / s
            length = min(_longest(s, ds), _longest(z, dz))
            if not is_last and k > 0:
                after = np.dot(s + length * ds, z + length * dz) / k
                centre = centre + ds * dz - mean * (after / mean) ** 3
        length, nit = min(1.0, 0.99 * length) if k > 0 else 1.0, nit + 1
        x, y, s, z = x + length * dx, y + length * dy, s + length * ds, z + length * dz
        if not (np.isfinite(_largest(x)) and np.isfinite(_largest(z))):
            break
    return x, y, z, False, nit


@inner_njit
def _polished(x, y, z, s, far, hessian, q, A, b, G, h):  # type: ignore[no-untyped-def]
    """The solution with the inequalities that are active as equations, unless others would not hold there."""
    n, m, is_active = x.size, A.shape[0], z > s
    rows = np.concatenate((A, G[is_active]))
    right = np.concatenate((-q, b, h[is_active]))
    found = np.linalg.lstsq(_bordered(hessian, rows), right)[0]
    near, slacks = found[:n].copy(), h - _times(G, found[:n])
    multipliers, at = np.zeros(z.size), n + m
    for i in range(z.size):
        if is_active[i]:
            multipliers[i] = found[at]
            at += 1
    size = max(far, _largest(h))
    is_right = _largest(near - x) <= 1e-4 * far
    for i in range(z.size):
        is_right = is_right and slacks[i] >= -1e-8 * size and multipliers[i] >= -1e-8 * max(_largest(z), 1.0)
    if not is_right:
        return x, y, z * is_active
    return near, found[n : n + m].copy(), np.maximum(multipliers, 0.0)
