"""Roots: Newton's method with a line search and, from bad starts, a trust region; Brent's method in a bracket."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of, remembered
from irad.frontend.calls.raising import public
from irad.frontend.inner import inner_njit
from irad.frontend.packing.packed import packed
from irad.implicit import systems
from irad.implicit.compiled import offer
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
def newton(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int = 100,
    matrix_free: bool = False,
    full_output: bool = False,
) -> Any:
    """The solution of ``func(x, *args) = 0`` by Newton's method, with its derivative.

    The method has a line search. Where it finds no solution, as from bad starts, the method of Levenberg and Marquardt
    looks for the neighbourhood of one, from ``x0`` again.

    It can be called from Python and in compiled code. The derivative with respect to ``args`` is that of the solution:
    its cost does not depend on the number of steps. The one with respect to ``x0`` is zero.

    Args:
        func: returns a value with the structure of ``x``; irad differentiates it with respect to ``x``.
        x0: the initial guess: a number, an array of any shape, or a structure of these (a tuple, a dictionary, an
            object with fields). ``func`` may return its parts as a tuple, in their order. In compiled code a dictionary
            must be one that Python passed in.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        rtol: relative tolerance: the search ends when the last step changes each unknown by at most this share of its
            size, or when ``func`` is zero up to the rounding of its terms, such as the 1 in ``exp(x) - 1 - a``. The
            units of unknowns and equations do not matter.
        atol: absolute tolerance, added to the relative one: for unknowns that are zero up to the rounding of terms that
            ``func`` cancels.
        maxiter: the largest number of steps of each of the two methods, and of Newton's from where the second ended.
        matrix_free: whether steps and derivatives use GMRES, with products of the derivative and a vector instead of
            the Jacobian: for many unknowns, by Newton's method only; a literal in compiled code.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a solution, instead of
            raising if it is not; a literal in compiled code.

    Returns:
        The solution, in new memory.

    Raises:
        SignatureError: ``func`` is not a function that Numba compiles.
        ValueError: no solution is found within ``maxiter`` steps, ``func`` is not finite at ``x0``, or it has more or
            fewer values than there are unknowns.

    If the derivative of ``func`` with respect to ``x`` cannot be inverted at the solution, a derivative raises
    LinAlgError (ZeroDivisionError for numbers).

    Source:
        Nocedal, Wright: Numerical optimization, Springer 2006, chapter 11; Nielsen: Damping parameter in
        Marquardt's method, IMM-REP-1999-05, Technical University of Denmark 1999, for the second method.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import newton
        >>> from numba import njit
        >>> @njit
        ... def kepler(anomaly, eccentricity, mean):
        ...     return anomaly - eccentricity * np.sin(anomaly) - mean
        >>> @njit
        ... def anomaly(mean):
        ...     return newton(kepler, mean, (0.5, mean))
        >>> round(irad.grad(anomaly)(0.0), 9)
        2.0
    """
    solve = _newton(primal_of(func), matrix_free, full_output)
    return solve(packed((x0, float(rtol), float(atol), int(maxiter))), passed_along(args))


def _newton(residual: Any, matrix_free: bool, full_output: bool = False) -> Any:
    def make() -> Any:
        stepping = systems.steps_by_gmres(residual) if matrix_free else systems.dense_steps(residual)
        chosen = systems.matrix_free(residual) if matrix_free else systems.dense(residual)
        error = "irad.implicit.newton found no solution within maxiter steps"
        steps = newton_steps(residual, stepping)
        search = None if matrix_free else _levenberg_marquardt(residual)
        return solver_of(_in_turn(steps, search), residual, chosen, error, full_output)

    return remembered(residual, (newton, matrix_free, full_output), make)


def _in_turn(steps: Any, search: Any) -> Any:
    """Steps from the settings; where they find nothing, those from where a search ends, if there is one."""

    @inner_njit
    def alone(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        return steps(started(x0), rtol, atol, limit, args)

    if search is None:
        return alone

    @inner_njit
    def both(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        found = steps(started(x0), rtol, atol, limit, args)
        if found.success:
            return found
        near = search(started(x0), limit, args)
        last = steps(near.x, rtol, atol, limit, args)
        return outcome(last.x, last.success, found.nit + near.nit + last.nit, found.nfev + near.nfev + last.nfev)

    return both


_MOST_DAMPING = 1e15
_LEAST_DECREASE = 1e-14  # of the sum of squares that a step promises; with less it is at a minimum


def _levenberg_marquardt(residual: Any) -> Any:
    """Steps that make the values of equations small together, each in units of its terms: ``(x, limit, args)``.

    They return an `outcome` at a minimum of the sum of squares, without a judgement of its success.
    """
    slope = systems.slope_of(residual)

    @inner_njit
    def steps(like, limit, args):  # type: ignore[no-untyped-def]
        kind = vector(like, like)
        x, value = listed(kind).astype(np.float64), listed(vector(residual(like, *args), like))
        sizes = np.abs(systems.squared(slope(like, args))) @ np.abs(x) + np.abs(value)
        units, scales = np.where(sizes > 0.0, sizes, 1.0), np.zeros(x.size)
        r, damping, growth, nit, nfev = value / units, 1e-3, 2.0, 0, 1
        while nit < limit and np.any(r != 0.0):
            j = systems.squared(slope(like, args)) / units.reshape((-1, 1))
            matrix, gradient, total = j.T @ j, j.T @ r, np.dot(r, r)
            scales = np.maximum(scales, np.diag(matrix))
            metric = np.where(scales > 0.0, scales, scales.max() if scales.max() > 0.0 else 1.0)
            nit, gain, trial, after = nit + 1, 0.0, like, r
            while damping < _MOST_DAMPING:
                step = systems.solved_if_regular(matrix + damping * np.diag(metric), gradient)
                expected = np.dot(step, gradient + damping * metric * step)
                if expected <= _LEAST_DECREASE * total:
                    return outcome(like, False, nit, nfev)
                trial = shaped(like_listed(x - step, kind), like)
                after = listed(vector(residual(trial, *args), like)) / units
                gain, nfev = (total - np.dot(after, after)) / expected, nfev + 1
                if gain > 1e-4:
                    break
                damping, growth = damping * growth, 2.0 * growth
            if not gain > 1e-4:
                break
            damping, growth = max(damping * max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3), 1.0 / _MOST_DAMPING), 2.0
            like, x, r = trial, listed(vector(trial, trial)).astype(np.float64), after
        return outcome(like, False, nit, nfev)

    return steps


_SHORTEST = 1e-6  # share of Newton's step at which the search along it gives up
_ROUNDING = 4.0  # in units of the relative error of a float


def newton_steps(residual: Any, stepping: Any) -> Any:
    """Newton's method with a line search: ``(x, rtol, atol, limit, args)`` to an `outcome`.

    Every decision is about ratios: of an equation's value and the size of its terms, or of a step and its unknown.
    """

    @inner_njit
    def steps(x, rtol, atol, limit, args):  # type: ignore[no-untyped-def]
        value = vector(residual(x, *args), x)
        if not np.isfinite(size_of(value)):
            raise ValueError("an equation of irad.implicit is not finite where the search begins")
        rounding = _ROUNDING * epsilon_of(x)
        tolerance, seen = max(rtol, rounding), larger(vector(x, x), vector(x, x))
        nfev = 1
        for nit in range(limit):
            if size_of(value) == 0.0:
                return outcome(x, True, nit, nfev)
            step, sizes = stepping(x, x, args, value)
            if not np.isfinite(size_of(step)):
                return outcome(x, False, nit, nfev)
            wrong, length, before = relative_size(value, sizes), 1.0, value
            trial = shaped(vector(x, x) - step, x)
            value, nfev = vector(residual(trial, *args), x), nfev + 1
            while not relative_size(value, sizes) < wrong and length > _SHORTEST:
                length *= 0.5
                trial = shaped(vector(x, x) - length * step, x)
                value, nfev = vector(residual(trial, *args), x), nfev + 1
            is_stuck = not relative_size(value, sizes) < wrong
            is_small = is_within(step, vector(x, x), tolerance, atol) and (wrong <= 100.0 * tolerance or atol > 0.0)
            if is_small or wrong <= rounding:
                return outcome(x if is_stuck else trial, True, nit + 1, nfev)
            # no step is better: what is left is rounding, of an equation's terms or of where the search has been
            if is_stuck and (wrong <= tolerance or (wrong >= 0.0 and is_within(step, seen, rounding, atol))):
                return outcome(x, True, nit + 1, nfev)
            # a short step changes no value, though the derivative says that it does: terms cancel to their rounding
            if is_stuck and np.all(value == before) and np.any(vector(trial, trial) != vector(x, x)):
                return outcome(x, True, nit + 1, nfev)
            x, seen = trial, larger(seen, vector(trial, trial))
        return outcome(x, size_of(value) == 0.0, limit, nfev)

    return steps


offer(newton, _newton, "(x0, rtol, atol, maxiter), passed_along(args)", literals=("matrix_free", "full_output"))


@public
def brentq(
    f: Callable[..., Any],
    a: float,
    b: float,
    args: Any = (),
    xtol: float = 0.0,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 500,
    full_output: bool = False,
) -> Any:
    """A root of a function of a number in an interval by Brent's method, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code.

    Args:
        f: takes a number, followed by ``args``, and returns a number.
        a: an end of the interval, where ``f`` has the opposite sign from the other end.
        b: the other end.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        xtol: absolute tolerance of the root; 0 for the relative one only, which is independent of units.
        rtol: relative tolerance of the root. A root at zero is accepted within 1e-32 of the length of the interval.
        maxiter: the largest number of steps.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a solution, instead of
            raising if it is not; a literal in compiled code.

    Returns:
        The root.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles.
        ValueError: ``f`` has the same sign at both ends, or no root is found within ``maxiter`` steps.

    A derivative raises ZeroDivisionError if that of ``f`` with respect to ``x`` is zero.

    Source:
        Brent: Algorithms for minimization without derivatives, Prentice-Hall 1973, chapter 4.

    Examples:
        >>> import irad
        >>> from irad.implicit import brentq
        >>> from numba import njit
        >>> @njit
        ... def cube(x, a):
        ...     return x**3 - a
        >>> round(irad.grad(lambda a: brentq(cube, 0.0, 10.0, (a,)))(8.0), 9)
        0.083333333
    """
    settings = float(a), float(b), float(xtol), float(rtol), int(maxiter)
    return _brentq(primal_of(f), full_output)(settings, passed_along(args))


def _brentq(f: Any, full_output: bool = False) -> Any:
    def make() -> Any:
        error = "irad.implicit.brentq found no root within maxiter steps"
        return solver_of(_brent_steps(f), f, systems.dense(f), error, full_output)

    return remembered(f, (brentq, full_output), make)


def _brent_steps(f: Any) -> Any:
    @inner_njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        low, high, absolute, relative, limit = settings
        a, b = float(low), float(high)
        at_a, at_b = f(a, *args), f(b, *args)
        if not (min(at_a, at_b) <= 0.0 <= max(at_a, at_b)):
            raise ValueError("irad.implicit.brentq is given an interval at whose ends f has the same sign")
        c, at_c, step, before = a, at_a, b - a, b - a
        absolute = max(absolute, 1e-32 * abs(b - a))
        for nit in range(limit):
            if (at_b > 0.0) == (at_c > 0.0) and at_b != 0.0:
                c, at_c, step, before = a, at_a, b - a, b - a
            if abs(at_c) < abs(at_b):
                a, at_a, b, at_b, c, at_c = b, at_b, c, at_c, b, at_b
            small, half = 0.5 * (absolute + relative * abs(b)), 0.5 * (c - b)
            if at_b == 0.0 or abs(half) <= small:
                return outcome(b, True, nit, nit + 2)
            is_taken = False
            if abs(before) > small and abs(at_a) > abs(at_b):
                s = at_b / at_a
                p, q = 2.0 * half * s, 1.0 - s
                if a != c:
                    q, r = at_a / at_c, at_b / at_c
                    p = s * (2.0 * half * q * (q - r) - (b - a) * (r - 1.0))
                    q = (q - 1.0) * (r - 1.0) * (s - 1.0)
                p, q = (p, -q) if p > 0.0 else (-p, q)
                if 2.0 * p < min(3.0 * half * q - abs(small * q), abs(before * q)):
                    before, step, is_taken = step, p / q, True
            if not is_taken:
                step, before = half, half
            a, at_a = b, at_b
            b += step if abs(step) > small else np.copysign(small, half)
            at_b = f(b, *args)
        return outcome(b, False, limit, limit + 2)

    return steps


offer(brentq, _brentq, "(a, b, xtol, rtol, maxiter), passed_along(args)", literals=("full_output",))
