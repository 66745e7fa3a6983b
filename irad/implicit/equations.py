"""A user's own solver with the derivative of what it solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.api.functions import primal_of
from irad.api.jit import jit
from irad.frontend.calls.raising import public
from irad.implicit import systems
from irad.implicit.theorem import implicit


@public
def solves(
    residual: Callable[..., Any], tolerance: float = 1e-6, matrix_free: bool = False, atol: float = 0.0
) -> Callable[[Callable[..., Any]], Any]:
    """Decorates a solver of ``residual(x, …) = 0``: its derivative is that of the solution.

    Args:
        residual: takes ``x`` and the arguments of the equation, and returns what has the structure of ``x``.
        tolerance: how large each part of the residual may be where a derivative is taken, relative to the terms that
            it is the sum of: to the sum of ``abs(derivative * unknown)`` over the unknowns.
        matrix_free: solves the linear system of the derivative by GMRES, with products of the residual's derivative and
            a vector, in place of its Jacobian: for many unknowns.
        atol: what each part of the residual may be in any case, in its unit: for equations whose terms vanish at the
            solution.

    Returns:
        A decorator of functions ``solver(guess, …) -> x``, compiled or not, whose arguments after the guess are those
        of the residual. ``x`` is a float, an array of floats, or a structure of these like one that was passed in, in
        new memory; the residual may return its parts as a tuple. What it makes can be called from Python and compiled
        code. The guess has no derivative: a solution does not depend on where the search began.

    Raises:
        SignatureError: ``residual`` or the solver is not a function that Numba compiles.

    A derivative raises ValueError if what the solver returned does not solve the equation or the residual has more or
    fewer values than there are unknowns, and LinAlgError
    (ZeroDivisionError for numbers, ValueError with ``matrix_free``) where the residual's derivative with respect
    to ``x`` cannot be inverted.

    Source:
        Blondel et al.: Efficient and modular implicit differentiation, NeurIPS 2022.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def residual(x, a):
        ...     return x * x - a
        >>> @irad.implicit.solves(residual)
        ... def root(guess, a):
        ...     low, high = 0.0, max(a, 1.0)
        ...     for _ in range(60):
        ...         middle = 0.5 * (low + high)
        ...         low, high = (middle, high) if middle * middle < a else (low, middle)
        ...     return high
        >>> round(irad.grad(root, argnums=1)(0.0, 4.0), 9)
        0.25
    """
    checked, tolerances = primal_of(residual), (float(tolerance), float(atol))
    chosen = systems.matrix_free(checked, tolerances) if matrix_free else systems.dense(checked, tolerances)
    return lambda solver: _solution(primal_of(solver), checked, chosen)


def _solution(solver: Any, residual: Any, chosen: tuple[Any, Any]) -> Any:
    core = implicit(solver, residual, chosen)

    @jit(error_model="python")  # takes dictionaries and other structures from Python
    def solution(guess, *args):  # type: ignore[no-untyped-def]
        return core(guess, args)

    solution.__doc__ = solver.py_func.__doc__
    return solution
