"""Least squares with a function for the product of a rectangular matrix and a vector: `lsqr`, with its rule.

The solution is x = A⁺b with the pseudoinverse, for which, as long as the rank stays,

    dx = A⁺(db - dA x + A⁺ᵀ dAᵀ r) + (I - A⁺A) dAᵀ A⁺ᵀ x,   r = b - A x

(Golub, Pereyra: The differentiation of pseudo-inverses, SIAM J. Numer. Anal. 10 (1973) 413-432). If the columns are
independent, the last term is zero; if the rows are, r is. So there are further systems of least squares with A and its
transpose, solved through their rules, and only first derivatives of A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irad.api.checkpointing.values import copied
from irad.api.custom.higher_order import (
    attach,
    give_cotangents,
    kept_arguments,
    passed_along,
    pull,
    push,
    zero_cotangents,
)
from irad.api.functions import primal_of, remembered
from irad.api.grad import grad
from irad.frontend.calls.raising import public
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.implicit.compiled import offer
from irad.implicit.krylov import ITERATIONS, TOLERANCE, difference, norm, power_of_two
from irad.implicit.linear import doubles, doubles_of
from irad.implicit.theorem import has_any, kept_guess, outcome, succeeded, with_x, x_of


@public
def lsqr(
    A: Callable[..., Any],
    b: Any,
    x0: Any,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    maxiter: int = 0,
    full_output: bool = False,
) -> Any:
    """The vector ``x`` with the least norm of ``A(x, *args) - b`` by LSQR, with derivatives.

    It differentiates with respect to ``b`` and ``args``, in Python and in compiled code. Derivatives use products with
    the transposed matrix, as the solver does, which irad derives from ``A``.

    Args:
        A: a function, linear in its first argument, from vectors like ``x0`` to vectors like ``b``. For damped least
            squares it returns ``damping * x`` after the other numbers, and ``b`` ends with as many zeros.
        b: the right-hand side, an array of real numbers with one axis.
        x0: the initial guess, an array of as many numbers as there are unknowns. If there are fewer equations, the
            solution is the one nearest to it.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: relative tolerance: the search ends when the norm of the residual ``r`` is at most this share of that of
            ``b``, or that of ``Aᵀr`` this share of the norms of ``A`` and ``r``.
        atol: absolute tolerance of the norm of the residual.
        maxiter: the largest number of steps; 0 for ten times the number of unknowns.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is the solution and counts
            steps and products, instead of raising if it does not converge; a literal in compiled code.

    Returns:
        The solution, in new memory.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or a derivative is taken where the matrix has not full rank.

    Source:
        Paige, Saunders: LSQR, ACM Trans. Math. Softw. 8 (1982) 43-71.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import lsqr
        >>> from numba import njit
        >>> @njit
        ... def line(p, x):
        ...     return p[0] + p[1] * x
        >>> x, y = np.arange(4.0), np.array([1.0, 3.0, 5.0, 7.5])
        >>> lsqr(line, y, np.zeros(2), (x,)).round(6)
        array([0.9 , 2.15])
        >>> irad.grad(lambda y: lsqr(line, y, np.zeros(2), (x,))[1])(y).round(6)
        array([-0.3, -0.1,  0.1,  0.3])
    """
    right, start = doubles_of("lsqr", b), doubles_of("lsqr", x0)
    settings = start, float(rtol), float(atol), int(maxiter) or ITERATIONS * start.size
    return _lsqr(primal_of(A), full_output)(settings, (right, passed_along(args)))


def _lsqr(operator: Any, full_output: bool = False) -> Any:
    """The compiled ``(settings, (b, args))`` to the solution or an outcome, with its rule."""

    def make() -> Any:
        @inner_njit
        def product(v, like, args):  # type: ignore[no-untyped-def]
            found = operator(v, *args)
            if found.size != like.size:
                raise ValueError("the operator of irad.implicit.lsqr returns more or fewer numbers than b has")
            return found

        @inner_njit
        def weighted(v, weights, args):  # type: ignore[no-untyped-def]
            return np.dot(weights, operator(v, *args))

        slope = grad(weighted)

        @inner_njit
        def transposed(weights, like, args):  # type: ignore[no-untyped-def]
            return slope(np.zeros(like.size), weights, args)

        return _with_rule(product, transposed, full_output)

    return remembered(operator, (lsqr, full_output), make)


def _with_rule(product: Any, transposed: Any, full_output: bool = False) -> Any:
    """Least squares for a product ``(v, like what it returns, args)`` and the transposed one; its rule needs both."""

    def make() -> Any:
        steps = _bidiagonalisation(product, transposed)

        @inner_njit
        def reporting(settings, given):  # type: ignore[no-untyped-def]
            return steps(settings, *given)

        @inner_njit
        def solver(settings, given):  # type: ignore[no-untyped-def]
            found = steps(settings, *given)
            if not found.success:
                raise ValueError("irad.implicit.lsqr did not converge within maxiter steps")
            return found.x

        core = reporting if full_output else solver
        parts = _later(product, transposed), product, transposed, _later(transposed, product)
        augmented, back = _reverse_of(core, *parts)
        return attach(core, augmented_primal=augmented, reverse=back, forward=_forward_of(core, *parts))

    return remembered(product, (_with_rule, transposed, full_output), make)


def _later(product: Any, transposed: Any) -> Any:
    """A solver that raises, made when it is needed: the rule of each needs that of the transposed systems."""

    def solve(settings: Any, given: Any) -> Any:
        raise NotImplementedError

    @inner_overload(solve, strict=False)
    def solve_typed(settings: Any, given: Any) -> Any:
        made = _with_rule(product, transposed)
        return lambda settings, given: made(settings, given)

    return solve


@inner_jitable
def _from_zero(settings, like):  # type: ignore[no-untyped-def]
    """Settings for another system, of as many unknowns as a vector has."""
    _, relative, _, limit = settings
    return np.zeros(like.size), relative, 0.0, max(limit, ITERATIONS * like.size)


@inactive_in_irad
@inner_njit
def _check_rank(rest, right, relative, absolute):  # type: ignore[no-untyped-def]
    """Refuses what is left of a system that has a solution if the matrix has full rank."""
    if norm(rest) > 10.0 * max(relative * norm(right), absolute):
        raise ValueError("a derivative of irad.implicit.lsqr is taken where the matrix does not have full rank")


def _weights_of(product: Any, core_transposed: Any) -> Any:
    """``(settings, x, b, args)`` to the vector that dAᵀ is applied to: r, or A⁺ᵀ(x - x₀) if there are fewer rows."""

    @inner_jitable
    def weights_of(settings, x, b, args):  # type: ignore[no-untyped-def]
        r = b - product(x, b, args)
        if x.size <= b.size:
            return r
        _check_rank(r, b, settings[1], settings[2])
        return core_transposed(_from_zero(settings, b), (x - settings[0], args))

    return weights_of


def _reverse_of(core: Any, core_again: Any, product: Any, transposed: Any, core_transposed: Any) -> tuple[Any, Any]:
    @inner_njit
    def pairing(x, multipliers, y, weights, b, args):  # type: ignore[no-untyped-def]
        return np.dot(multipliers, b - product(x, b, args)) + np.dot(weights, product(y, b, args))

    weights_of = _weights_of(product, core_transposed)

    def augmented(config, settings, given):  # type: ignore[no-untyped-def]
        found = core(settings.value, given.value)
        shadow = zero_shadow(found) if config.needs_shadow else None
        return AugmentedReturn(
            found, shadow, (copied(found), kept_arguments(config, 1, given), kept_guess(config, settings))
        )

    def back(config, cotangent, tape, settings, given):  # type: ignore[no-untyped-def]
        found, values, start = tape
        d_given = None
        if is_active(given):
            sums = zero_cotangents(given)
            if has_any(cotangent):
                (b, args), x, of_x = values, x_of(found), x_of(cotangent)
                if not succeeded(found):
                    # zeros stay: they are the cotangent where a program does not use where the search ended
                    multipliers, weights, y = np.full(b.size, np.nan if np.any(of_x != 0.0) else 0.0), 0.0 * b, 0.0 * x
                else:
                    weights = weights_of(start, x, b, args)
                    multipliers = core_transposed(_from_zero(start, b), (of_x, args))
                    if x.size <= b.size:
                        _check_rank(of_x - transposed(multipliers, x, args), of_x, start[1], 0.0)
                        y = core_again(_from_zero(start, x), (multipliers, args))
                    else:
                        y = of_x - core_again(_from_zero(start, x), (product(of_x, b, args), args))
                sums = pull(
                    config, pairing, (x, multipliers, y, weights), (None, None, None, None), given, values, 1.0, sums
                )
            d_given = give_cotangents(given, sums)
        return give_cotangents(settings, zero_cotangents(settings)), d_given

    return augmented, back


def _forward_of(core: Any, core_again: Any, product: Any, transposed: Any, core_transposed: Any) -> Any:
    @inner_njit
    def residual(x, b, args):  # type: ignore[no-untyped-def]
        return b - product(x, b, args)

    @inner_njit
    def weighted_columns(weights, like, b, args):  # type: ignore[no-untyped-def]
        return transposed(weights, like, args)

    weights_of = _weights_of(product, core_transposed)

    def forward(config, settings, given):  # type: ignore[no-untyped-def]
        found = core(settings.value, given.value)
        x = x_of(found)
        if is_active(given):
            start = settings.value
            b, args = given.value
            right = push(config, residual, (x,), (None,), given)[1]
            if not succeeded(found):
                return found, with_x(np.full(x.size, np.nan if np.any(right != 0.0) else 0.0), found)
            weights = weights_of(start, x, b, args)
            across = push(config, weighted_columns, (weights, x), (None, None), given)[1]
            if x.size <= b.size:
                lifted = core_transposed(_from_zero(start, b), (across, args))
                _check_rank(across - transposed(lifted, x, args), across, start[1], 0.0)
                return found, with_x(core_again(_from_zero(start, x), (right + lifted, args)), found)
            change = core_again(_from_zero(start, x), (right - product(across, b, args), args))
            return found, with_x(change + across, found)
        return found, with_x(0.0 * x, found)

    return forward


def _bidiagonalisation(product: Any, transposed: Any) -> Any:
    @inner_njit
    def steps(settings, b, args):  # type: ignore[no-untyped-def]
        start, relative, absolute, limit = settings
        x, small, count, starts, size = start.copy(), max(relative * norm(b), absolute), 0, 0, 0.0
        while True:
            u, starts = difference(b, product(x, b, args)), starts + 1
            beta = norm(u)
            if beta <= small:
                return outcome(x, True, count, count + starts)
            u = u / beta
            v = transposed(u, x, args)
            alpha = norm(v)
            if alpha <= relative * size or alpha == 0.0:
                return outcome(x, True, count, count + starts)
            if count >= limit or not (np.isfinite(beta) and np.isfinite(alpha)):
                return outcome(x, False, count, count + starts)
            v = v / alpha
            w, rest, diagonal, size = v.copy(), beta, alpha, 0.0
            while count < limit:
                u = product(v, b, args) - alpha * u
                beta = norm(u)
                u = u / beta if beta > 0.0 else u
                size = np.hypot(size, np.hypot(alpha, beta))
                v = transposed(u, x, args) - beta * v
                alpha = norm(v)
                v = v / alpha if alpha > 0.0 else v
                pivot = np.hypot(diagonal, beta)
                c, s = diagonal / pivot, beta / pivot
                x += c * rest / pivot * w
                w = v - s * alpha / pivot * w
                rest, diagonal, count = s * rest, -c * alpha, count + 1
                if rest <= 0.5 * small or alpha * abs(c) <= 0.5 * relative * size:
                    break

    @inner_njit
    def in_units(settings, b, args):  # type: ignore[no-untyped-def]
        start, relative, absolute, limit = settings
        if not (np.all(np.isfinite(b)) and np.all(np.isfinite(start))):
            raise ValueError("a linear solver of irad.implicit is given a right-hand side or x0 that is not finite")
        unit = power_of_two(b)
        found = steps((start / unit, relative, absolute / unit, limit), b / unit, args)
        return outcome(unit * found.x, found.success, found.nit, found.nfev)

    return in_units


offer(
    lsqr,
    _lsqr,
    f"(doubles('lsqr', x0, x0), rtol, atol, maxiter or {ITERATIONS} * x0.size), "
    "(doubles('lsqr', b, b), passed_along(args))",
    literals=("full_output",),
    doubles=doubles,
)
