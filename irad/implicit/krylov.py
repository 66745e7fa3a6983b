"""Linear systems with a function for the product, by Krylov methods: the rule of `cg`, `minres`, `gmres`, `bicgstab`.

The solution of A(x, p) = b has the derivative of that equation. Its linear systems have the same form: with A again,
and with the transpose of A, whose product is the gradient of wᵀA(v, p) with respect to v. So second derivatives are
right, too. A preconditioner M changes the steps, not the solution, so it has no derivative; Mᵀ is found like Aᵀ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irad.api.functions import remembered
from irad.api.grad import grad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.implicit.theorem import implicit, outcome

# Krylov methods: conjugate gradients, MINRES, GMRES with restarts, stabilised bi-conjugate gradients.
#
# Each is made for a compiled operator and a preconditioner or None, as ``(settings, b, args) -> (x, reason, steps,
# products)``; the settings are those of `krylov_of`, the reason is one of the following, or zero for a solution.

_SLOW: Final = 1
_BROKEN: Final = 2
_NOT_DEFINITE: Final = 3  # the preconditioner
_NOT_FINITE: Final = 4  # the right-hand side or x0

_ROUNDING: Final = 1e-14
"""The largest remainder, relative to the minuend, of a difference that would be zero without rounding."""


@inner_jitable
def power_of_two(v):  # type: ignore[no-untyped-def]
    """The size of the largest part as a power of two, so that a division by it rounds nothing; 1 for zeros."""
    return math.ldexp(1.0, max(math.frexp(np.abs(v).max())[1], -1000)) if v.size > 0 and np.any(v != 0.0) else 1.0


@inner_jitable
def norm(v):  # type: ignore[no-untyped-def]
    """The Euclidean norm of a vector whose squares may overflow or vanish."""
    square = np.dot(v, v)
    if 1e-280 < square < 1e280 or not np.all(np.isfinite(v)):
        return np.sqrt(square)
    unit = power_of_two(v)
    return unit * np.sqrt(np.dot(v / unit, v / unit))


@inner_jitable
def difference(b, product):  # type: ignore[no-untyped-def]
    """The residual of a product; the sizes have to be equal."""
    if product.size != b.size:  # one number would be subtracted from all
        raise ValueError("the operator of a solver of irad.implicit returns more or fewer numbers than it is given")
    return b - product


@inner_jitable
def _unchanged(v, args):  # type: ignore[no-untyped-def]
    return v


def _preconditioned(preconditioner: Any) -> Any:
    """``(v, args) -> M(v, *args)``; without a preconditioner, v itself."""
    if preconditioner is None:
        return _unchanged

    @inner_jitable
    def applied(v, args):  # type: ignore[no-untyped-def]
        found = preconditioner(v, *args)
        if found.size != v.size:
            raise ValueError("a preconditioner of irad.implicit returns more or fewer numbers than it is given")
        return found

    return applied


def _from_the_right(make: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A method for A M y = b - A x₀ and x = x₀ + M y: the norm that it makes small stays that of the residual."""

    def made(operator: Any, preconditioner: Any) -> Any:
        if preconditioner is None:
            return make(operator)
        apply = _preconditioned(preconditioner)

        @inner_njit
        def product(v, *args):  # type: ignore[no-untyped-def]
            return operator(apply(v, args), *args)

        solve = make(product)

        @inner_njit
        def solver(settings, b, args):  # type: ignore[no-untyped-def]
            start, relative, absolute, limit, restart = settings
            small = max(relative * norm(b), absolute)
            r = difference(b, operator(start, *args))
            x, reason, steps, products = solve((np.zeros_like(r), 0.0, small, limit, restart), r, args)
            return start + apply(x, args), reason, steps, products + 1

        return solver

    return made


def _in_units(make: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A method that solves for a right-hand side of size 1, the squares of which neither overflow nor vanish."""

    def made(operator: Any, preconditioner: Any = None) -> Any:
        solve = make(operator, preconditioner)

        @inner_njit
        def solver(settings, b, args):  # type: ignore[no-untyped-def]
            start, relative, absolute, limit, restart = settings
            if start.size != b.size:
                raise ValueError("a linear solver of irad.implicit begins with more or fewer numbers than b has")
            if not (np.all(np.isfinite(b)) and np.all(np.isfinite(start))):
                return 1.0 * start, _NOT_FINITE, 0, 0
            unit = power_of_two(b)
            given = start / unit, relative, absolute / unit, limit, restart
            x, reason, steps, products = solve(given, b / unit, args)
            return unit * x, reason, steps, products

        return solver

    return made


def _cg(operator: Any, preconditioner: Any) -> Any:
    apply = _preconditioned(preconditioner)

    @inner_njit
    def conjugate_gradients(settings, b, args):  # type: ignore[no-untyped-def]
        start, relative, absolute, limit, _ = settings
        x = start.copy()
        r = difference(b, operator(x, *args))
        z = apply(r, args)
        p, square, small = z.copy(), np.dot(r, z), max(relative * norm(b), absolute)
        for step in range(limit):
            if np.sqrt(np.dot(r, r)) <= small:
                return x, 0, step, step + 1
            product = operator(p, *args)
            curvature = np.dot(p, product)
            if not (curvature > 0.0 and square > 0.0):
                return x, _BROKEN, step, step + 2
            x += square / curvature * p
            r -= square / curvature * product
            z = apply(r, args)
            before, square = square, np.dot(r, z)
            p = z + square / before * p
        return x, 0 if np.sqrt(np.dot(r, r)) <= small else _SLOW, limit, limit + 1

    return conjugate_gradients


@inner_jitable
def _length(v, z):  # type: ignore[no-untyped-def]
    """The norm of v in the inner product of a preconditioner, whose product with v is z; NaN if that is none."""
    square = np.dot(v, z)
    if 1e-280 < square < 1e280 or square == 0.0 or np.isnan(square):
        return np.sqrt(square)
    one, other = power_of_two(v), power_of_two(z)
    return np.sqrt(one) * np.sqrt(other) * np.sqrt(np.dot(v / one, z / other))


def _minres(operator: Any, preconditioner: Any) -> Any:
    apply = _preconditioned(preconditioner)

    @inner_njit
    def symmetric_minimal_residuals(settings, b, args):  # type: ignore[no-untyped-def]
        start, relative, absolute, limit, _ = settings
        x, small, steps, starts = start.copy(), max(relative * norm(b), absolute), 0, 0
        # The recurrences only estimate the residual, so the search restarts where it is larger than they say.
        while True:
            r, starts = difference(b, operator(x, *args)), starts + 1
            size = norm(r)
            if size <= small:
                return x, 0, steps, steps + starts
            if steps >= limit or not np.isfinite(size):
                return x, _SLOW, steps, steps + starts
            z, earlier, w, w_before = apply(r, args), np.zeros_like(r), np.zeros_like(r), np.zeros_like(r)
            beta = _length(r, z)
            if not beta > 0.0:
                return x, _NOT_DEFINITE, steps, steps + starts
            rest, goal, before, across = beta, 0.5 * small / size * beta, 1.0, 0.0
            c, s, diagonal, far = -1.0, 0.0, 0.0, 0.0
            while steps < limit and rest > goal and beta > 0.0:
                v = z / beta
                product = operator(v, *args) - beta / before * earlier
                alpha = np.dot(v, product)
                earlier, r = r, product - alpha / beta * r
                z = apply(r, args)
                before, beta = beta, _length(r, z)
                scale = abs(alpha) + across + beta
                # What rounding leaves of zero depends on the processor.
                beta = beta if beta > _ROUNDING * scale else 0.0
                near, last = c * diagonal + s * alpha, s * diagonal - c * alpha
                pivot = np.hypot(last, beta)
                if pivot <= _ROUNDING * scale:
                    return x, _BROKEN, steps, steps + starts + 1
                w_before, w = w, (v - far * w_before - near * w) / pivot
                far, diagonal, across = s * beta, -c * beta, beta
                c, s = last / pivot, beta / pivot
                x += c * rest * w
                rest, steps = s * rest, steps + 1

    return symmetric_minimal_residuals


@inner_jitable
def _rotate(column, rotations, rest, k):  # type: ignore[no-untyped-def]
    """Makes a column of the Hessenberg matrix one of a triangular matrix, and the right side with it."""
    for i in range(k):
        c, s = rotations[i]
        column[i], column[i + 1] = c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]
    length = np.hypot(column[k], column[k + 1])
    c, s = (column[k] / length, column[k + 1] / length) if length > 0.0 else (1.0, 0.0)
    rotations[k, 0], rotations[k, 1] = c, s
    column[k] = length
    rest[k], rest[k + 1] = c * rest[k], -s * rest[k]


def _gmres(operator: Any) -> Any:
    @inner_njit
    def minimal_residuals(settings, b, args):  # type: ignore[no-untyped-def]
        start, relative, absolute, limit, restart = settings
        x, small, steps, starts = start.copy(), max(relative * norm(b), absolute), 0, 0
        most = max(1, min(restart, b.size))
        basis, triangle = np.zeros((most + 1, b.size)), np.zeros((most, most + 1))
        rotations, rest = np.zeros((most, 2)), np.zeros(most + 1)
        while True:
            r, starts = difference(b, operator(x, *args)), starts + 1
            size = norm(r)
            if size <= small:
                return x, 0, steps, steps + starts
            if steps >= limit or not np.isfinite(size):
                return x, _SLOW, steps, steps + starts
            basis[0], rest[0], count = r / size, size, 0
            while count < most and steps < limit and abs(rest[count]) > 0.5 * small:
                w = operator(basis[count], *args).copy()
                column = triangle[count]
                before = norm(w)
                for i in range(count + 1):
                    column[i] = np.dot(basis[i], w)
                    w -= column[i] * basis[i]
                length = norm(w)
                column[count + 1] = length if length > _ROUNDING * before else 0.0
                if column[count + 1] > 0.0:
                    basis[count + 1] = w / length
                _rotate(column, rotations, rest, count)
                # What rounding leaves of zero depends on the processor.
                column[count] = column[count] if column[count] > _ROUNDING * before else 0.0
                steps, count = steps + 1, count + 1
                if column[count] == 0.0 or column[count - 1] == 0.0:
                    break
            if triangle[count - 1, count - 1] == 0.0:
                return x, _BROKEN, steps, steps + starts
            for k in range(count - 1, -1, -1):
                for i in range(k + 1, count):
                    rest[k] -= triangle[i, k] * rest[i]
                rest[k] /= triangle[k, k]
                x += rest[k] * basis[k]

    return minimal_residuals


def _bicgstab(operator: Any) -> Any:
    @inner_njit
    def stabilised(settings, b, args):  # type: ignore[no-untyped-def]
        start, relative, absolute, limit, _ = settings
        x = start.copy()
        r = difference(b, operator(x, *args))
        shadow, p, v = r.copy(), np.zeros_like(r), np.zeros_like(r)
        rho, alpha, omega, small = 1.0, 1.0, 1.0, max(relative * norm(b), absolute)
        for step in range(limit):
            if norm(r) <= small:
                return x, 0, step, 2 * step + 1
            before, rho = rho, np.dot(shadow, r)
            if rho == 0.0 or omega == 0.0:  # a breakdown: restart from here
                shadow, p, v = r.copy(), np.zeros_like(r), np.zeros_like(r)
                before, rho, alpha, omega = 1.0, np.dot(r, r), 1.0, 1.0
            p = r + rho / before * alpha / omega * (p - omega * v)
            v = operator(p, *args).copy()
            along = np.dot(shadow, v)
            if along == 0.0:
                return x, _BROKEN, step, 2 * step + 2
            alpha = rho / along
            s = r - alpha * v
            t = operator(s, *args).copy()
            size = norm(t)
            omega = np.dot(t / size, s) / size if size > 0.0 else 0.0
            x += alpha * p + omega * s
            r = s - omega * t
        return x, 0 if norm(r) <= small else _SLOW, limit, 2 * limit + 1

    return stabilised


@inner_jitable
def row_units(operator, size, args):  # type: ignore[no-untyped-def]
    """The sizes of a matrix's rows relative to the largest, as powers of two; 1 for those that are not much smaller.

    They are found by the product with numbers of scattered signs, in which the terms of a row rarely cancel.
    """
    product, found = np.abs(operator(np.cos(np.arange(size) ** 2), *args)), np.ones(size)
    most = product.max() if product.size == size and size > 0 else 0.0
    for i in range(size if 0.0 < most < np.inf else 0):
        below = math.frexp(most)[1] - math.frexp(product[i])[1] if product[i] > 0.0 else 0
        if below >= _FAR_BELOW:
            found[i] = math.ldexp(1.0, -below)
    return found


_FAR_BELOW: Final = 7  # powers of two: the precision that a smaller row loses in a norm, at most


def _by_rows(operator: Any) -> Any:
    """GMRES for equations in different units, by rows that have been divided by their sizes."""

    @inner_njit
    def divided(v, units, args):  # type: ignore[no-untyped-def]
        return operator(v, *args) / units

    solve = METHODS["gmres"](divided)

    @inner_njit
    def solver(settings, b, args):  # type: ignore[no-untyped-def]
        units = row_units(operator, b.size, args)
        return solve(settings, b / units, (units, args))

    return solver


METHODS: Final[dict[str, Callable[..., Any]]] = {
    "cg": _in_units(_cg),
    "minres": _in_units(_minres),
    "gmres": _in_units(_from_the_right(_gmres)),
    "bicgstab": _in_units(_from_the_right(_bicgstab)),
    "gmres by rows": _by_rows,
}
"""Makers of methods, of an operator and a preconditioner."""
_SYMMETRIC: Final = ("cg", "minres")
_BY_GMRES: Final = (
    "irad.implicit.gmres did not converge within maxiter products",
    "irad.implicit.gmres is given a singular operator",
    "",
)
_ERRORS: Final = {
    "cg": (
        "irad.implicit.cg did not converge within maxiter products",
        "the operator or preconditioner of irad.implicit.cg is not positive definite",
        "",
    ),
    "minres": (
        "irad.implicit.minres did not converge within maxiter products",
        "irad.implicit.minres is given a singular operator",
        "the preconditioner of irad.implicit.minres is not positive definite",
    ),
    "gmres": _BY_GMRES,
    "gmres by rows": _BY_GMRES,
    "bicgstab": (
        "irad.implicit.bicgstab did not converge within maxiter steps",
        "irad.implicit.bicgstab broke down: use irad.implicit.gmres",
        "",
    ),
}
"""The texts of the ValueError for each reason without a solution."""


@inner_jitable
def _check_finite(reason):  # type: ignore[no-untyped-def]
    """Refuses bad input, which no limit of steps explains, with full output, too."""
    if reason == _NOT_FINITE:
        raise ValueError("a linear solver of irad.implicit is given a right-hand side or x0 that is not finite")


def _solver_of(solve: Any, errors: tuple[str, str, str], full_output: bool) -> Any:
    """A method as ``(settings, b, args)`` to the solution, or to an `outcome`."""
    slow, broken, not_definite = errors

    @inner_njit
    def reporting(settings, b, args):  # type: ignore[no-untyped-def]
        x, reason, steps, products = solve(settings, b, args)
        _check_finite(reason)
        return outcome(x, reason == 0, steps, products)

    @inner_njit
    def solver(settings, b, args):  # type: ignore[no-untyped-def]
        x, reason, _, _ = solve(settings, b, args)
        _check_finite(reason)
        if reason == _SLOW:
            raise ValueError(slow)
        if reason == _BROKEN:
            raise ValueError(broken)
        if reason == _NOT_DEFINITE:
            raise ValueError(not_definite)
        return x

    return reporting if full_output else solver


TOLERANCE: Final = 1e-10  # below SciPy's 1e-5: a derivative is only as precise as the solution
ITERATIONS: Final = 10
"""Times the number of unknowns: SciPy's limit."""


def krylov_of(operator: Any, method: str, preconditioner: Any = None, full_output: bool = False) -> Any:
    """The compiled ``(settings, (b, args)) -> x`` that solves A(x, …) = b, or to an outcome, and its rule.

    Args:
        operator: compiled, linear in its first argument, a vector.
        method: a name in `METHODS`.
        preconditioner: compiled, of the same arguments and linear, too, or None.
        full_output: whether an `outcome` is returned instead of raising if there is no solution.

    The settings are where to begin, the relative and the absolute tolerance of the residual's norm, the most products,
    and how many directions GMRES keeps.
    """

    def make() -> Any:
        @inner_njit
        def residual(x, b, args):  # type: ignore[no-untyped-def]
            return operator(x, *args) - b

        def turned() -> tuple[Any, Any]:
            return transpose_of(operator, method), preconditioner and transpose_of(preconditioner, method)

        systems = _system(lambda: (operator, preconditioner), method), _system(turned, method)
        made = METHODS[method]
        solve = made(operator) if preconditioner is None else made(operator, preconditioner)
        return implicit(_solver_of(solve, _ERRORS[method], full_output), residual, systems)

    return remembered(operator, (krylov_of, method, preconditioner, full_output), make)


def _system(parts: Callable[[], tuple[Any, Any]], method: str) -> Any:
    """The solution of a system like that which is differentiated; it is made when it is needed, not before.

    Args:
        parts: returns its operator, and its preconditioner or None.
        method: a name in `METHODS`.
    """

    def system(settings: Any, x: Any, args: Any, right: Any) -> Any:
        raise NotImplementedError

    @inner_overload(system, strict=False)
    def system_typed(settings: Any, x: Any, args: Any, right: Any) -> Any:
        operator, preconditioner = parts()
        solve = krylov_of(operator, method, preconditioner)

        def solution(settings, x, args, right):  # type: ignore[no-untyped-def]
            _, relative, absolute, limit, restart = settings
            return solve((np.zeros_like(x), relative, absolute, limit, restart), (right, args[1]))

        return solution

    return system


def transpose_of(operator: Any, method: str = "") -> Any:
    """The transposed operator with the same arguments; some methods are for symmetric ones."""
    if method in _SYMMETRIC:
        return operator

    def make() -> Any:
        @inner_njit
        def weighted(v, weights, args):  # type: ignore[no-untyped-def]
            return np.dot(weights, operator(v, *args))

        slope = grad(weighted)

        @inner_njit
        def transposed(weights, *args):  # type: ignore[no-untyped-def]
            return slope(np.zeros_like(weights), weights, args)

        declare_transpose(transposed, operator)
        return transposed

    return remembered(operator, (transpose_of,), make)


def declare_transpose(operator: Any, transposed: Any) -> None:
    """Tells the transpose of an operator where it is known."""
    remembered(operator, (transpose_of,), lambda: transposed)
