"""Minima: of a function, by BFGS, and of a sum of squares, by Levenberg and Marquardt. At both the gradient is zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from irad.api.custom.passed_along import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.grad import grad, value_and_grad
from irad.api.jacobians.jacobian import jacobian
from irad.frontend.calls.raising import public
from irad.frontend.packing.packed import packed
from irad.implicit import systems
from irad.implicit.offering import offer
from irad.implicit.theorem import implicit
from irad.implicit.unknowns import like_listed, listed, shaped, size_of, started, vector


@public
def argmin(fun: Callable[..., Any], x0: Any, args: Any = (), gtol: float = 1e-8, maxiter: int = 200) -> Any:
    """A local minimum of ``fun(x, *args)`` by BFGS, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code. The derivative is that of the point where the gradient is zero:
    one linear system with the Hessian.

    Args:
        fun: returns a number.
        x0: where to begin, as for `newton`: a number, an array of any shape, or a structure of these.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        gtol: of the largest part of the gradient.
        maxiter: the most steps.

    Returns:
        The minimum, in new memory.

    Raises:
        SignatureError: ``fun`` is not a function that Numba compiles.
        ValueError: no minimum is found within ``maxiter`` steps.

    Where the Hessian cannot be inverted, a derivative raises LinAlgError (ZeroDivisionError for numbers).

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
    return _argmin(primal_of(fun))(packed((x0, float(gtol), int(maxiter))), passed_along(args))


def _stationary(objective: Any) -> Any:
    """The gradient with respect to the first argument, as a function with a rule of nothing but its code."""
    slope = grad(objective)

    @njit
    def gradient(x, *args):  # type: ignore[no-untyped-def]
        return slope(x, *args)

    return gradient


def _argmin(objective: Any) -> Any:
    def make() -> Any:
        gradient = _stationary(objective)
        return implicit(_bfgs(value_and_grad(objective)), gradient, systems.dense(gradient))

    return remembered(objective, (argmin,), make)


def _bfgs(both: Any) -> Any:
    @njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, tolerance, limit = settings
        like = started(x0)
        kind = vector(like, like)
        x = listed(kind).copy()
        value, found = both(like, *args)
        gradient = listed(vector(found, like))
        inverse = np.eye(x.size) / max(1.0, size_of(gradient))
        for k in range(limit):
            if size_of(gradient) <= tolerance:
                return shaped(like_listed(x, kind), like)
            step = -np.dot(inverse, gradient)
            slope, length = np.dot(gradient, step), 1.0
            while True:
                move = length * step
                after, found = both(shaped(like_listed(x + move, kind), like), *args)
                change = listed(vector(found, like)) - gradient
                # where rounding hides the decrease of the value, that of the slope decides
                is_lower = after <= value + 1e-4 * length * slope or (
                    after <= value + 1e-12 * abs(value) and abs(slope + np.dot(change, step)) <= 0.9 * abs(slope)
                )
                if is_lower or length < 1e-12:
                    break
                length *= 0.5
            curvature = np.dot(move, change)
            if curvature > 0.0:
                if k == 0:
                    inverse = np.eye(x.size) * (curvature / np.dot(change, change))
                rest = np.eye(x.size) - np.outer(move, change) / curvature
                inverse = rest @ inverse @ rest.T + np.outer(move, move) / curvature
            else:
                inverse = np.eye(x.size) / max(1.0, size_of(gradient))
            x, value, gradient = x + move, after, gradient + change
        if size_of(gradient) <= tolerance:
            return shaped(like_listed(x, kind), like)
        raise ValueError("irad.implicit.argmin found no minimum within maxiter steps")

    return steps


offer(argmin, _argmin, "(x0, gtol, maxiter), passed_along(args)")


@public
def least_squares(fun: Callable[..., Any], x0: Any, args: Any = (), gtol: float = 1e-8, maxiter: int = 100) -> Any:
    """A local minimum of the sum of the squares of ``fun(x, *args)``, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code. The method is that of Levenberg and Marquardt. The derivative is
    that of the point where the gradient of the sum is zero, with the second derivatives of ``fun``.

    Args:
        fun: returns an array.
        x0: where to begin: an array with one axis.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        gtol: of the largest part of half the gradient.
        maxiter: the most steps.

    Returns:
        The minimum, in new memory.

    Raises:
        SignatureError: ``fun`` is not a function that Numba compiles.
        ValueError: no minimum is found within ``maxiter`` steps.

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
    return _least_squares(primal_of(fun))((x0, float(gtol), int(maxiter)), passed_along(args))


def _least_squares(residuals: Any) -> Any:
    def make() -> Any:
        @njit
        def half_squares(x, *args):  # type: ignore[no-untyped-def]
            r = residuals(x, *args).ravel()
            return 0.5 * np.dot(r, r)

        gradient = _stationary(half_squares)
        return implicit(_levenberg_marquardt(residuals), gradient, systems.dense(gradient))

    return remembered(residuals, (least_squares,), make)


def _levenberg_marquardt(residuals: Any) -> Any:
    @njit
    def flat(x, *args):  # type: ignore[no-untyped-def]
        return residuals(x, *args).ravel()

    slope = jacobian(flat)

    @njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, tolerance, limit = settings
        x, damping = started(x0), 1e-3
        r = flat(x, *args)
        for _ in range(limit):
            j = slope(x, *args)
            gradient, square, matrix = j.T @ r, np.dot(r, r), j.T @ j
            if size_of(gradient) <= tolerance:
                return x
            trial, after = x, r
            while damping < 1e15:
                scale = np.maximum(np.diag(matrix), 1e-12)
                trial = x - np.linalg.solve(matrix + damping * np.diag(scale), gradient)
                after = flat(trial, *args)
                if np.dot(after, after) <= square:
                    break
                damping *= 4.0
            x, r, damping = trial, after, max(damping / 8.0, 1e-15)
        if size_of(slope(x, *args).T @ r) <= tolerance:
            return x
        raise ValueError("irad.implicit.least_squares found no minimum within maxiter steps")

    return steps


offer(least_squares, _least_squares, "(x0, gtol, maxiter), passed_along(args)")
