"""Fixed points, by Anderson's method."""

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
    shaped,
    size_of,
    started,
    vector,
)


@public
def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int = 500,
    memory: int = 5,
    matrix_free: bool = False,
    full_output: bool = False,
) -> Any:
    """The solution of ``x = func(x, *args)`` by Anderson's method, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code.

    Args:
        func: returns a value with the structure of ``x``.
        x0: the initial guess, as in `irad.implicit.newton`: a number, an array of any shape, or a structure of these.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        rtol: tolerance of each part of ``func(x, *args) - x``, relative to that part of ``x``. Parts that do not reach
            it, since they are zero up to the rounding of larger ones, are accepted after thirty further steps.
        atol: absolute tolerance, added to the relative one.
        maxiter: the largest number of steps.
        memory: number of previous steps that are combined; 0 is the plain iteration.
        matrix_free: whether derivatives use GMRES, with products of the derivative of ``func`` and a vector instead of
            its Jacobian: for many unknowns; a literal in compiled code.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a solution, instead of
            raising if it is not; a literal in compiled code.

    Returns:
        The fixed point, in new memory.

    Raises:
        SignatureError: ``func`` is not a function that Numba compiles.
        ValueError: no fixed point is found within ``maxiter`` steps, ``func`` is not finite at ``x0``, or it has more
            or fewer values than ``x``.

    Source:
        Walker, Ni: Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 49 (2011) 1715-1735.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import fixed_point
        >>> from numba import njit
        >>> @njit
        ... def damped(x, a):
        ...     return 0.5 * np.cos(x) + a
        >>> x, tangent = irad.jvp(lambda a: fixed_point(damped, 0.0, (a,)), (0.1,), (1.0,))
        >>> bool(np.isclose(tangent, 1.0 / (1.0 + 0.5 * np.sin(x))))
        True
    """
    settings = packed((x0, float(rtol), float(atol), int(maxiter), int(memory)))
    return _fixed_point(primal_of(func), matrix_free, full_output)(settings, passed_along(args))


def _fixed_point(f: Any, matrix_free: bool, full_output: bool = False) -> Any:
    def make() -> Any:
        @inner_njit
        def difference(x, *args):  # type: ignore[no-untyped-def]
            return shaped(vector(f(x, *args), x) - vector(x, x), x)

        chosen = systems.matrix_free(difference) if matrix_free else systems.dense(difference)
        error = "irad.implicit.fixed_point found no fixed point within maxiter steps"
        return solver_of(_anderson(f), difference, chosen, error, full_output)

    return remembered(f, (fixed_point, matrix_free, full_output), make)


_ROUNDING = 4.0  # in units of the relative error of a float
_SETTLED = 30  # steps in which smaller unknowns may still settle, once all is rounding beside the largest


def _anderson(f: Any) -> Any:
    @inner_njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit, memory = settings
        like = started(x0)
        kind = vector(like, like)
        x = listed(kind).astype(np.float64)
        change = listed(vector(f(like, *args), like)) - x
        if not np.isfinite(size_of(change)):
            raise ValueError("the function of irad.implicit.fixed_point is not finite where the search begins")
        epsilon, seen, settled = epsilon_of(like), larger(x, x), 0
        most = max(0, min(memory, x.size))
        moves, changes = np.zeros((x.size, most)), np.zeros((x.size, most))
        for k in range(limit):
            # what has fallen to the square of a rounding of where it was is on its way to zero
            if is_within(change, x, max(rtol, _ROUNDING * epsilon), atol + epsilon * epsilon * seen):
                return outcome(shaped(like_listed(x, kind), like), True, k, k + 1)
            settled = settled + 1 if size_of(change) <= _ROUNDING * epsilon * size_of(x) else 0
            if settled > _SETTLED:
                return outcome(shaped(like_listed(x, kind), like), True, k, k + 1)
            known = min(k, most)
            following = x + change
            if known > 0:
                weights = np.linalg.lstsq(changes[:, :known].copy(), change)[0]
                following = following - (moves[:, :known] + changes[:, :known]) @ weights
            value = f(shaped(like_listed(following, kind), like), *args)
            after = listed(vector(value, like)) - following
            if most > 0:
                moves[:, k % most] = following - x
                changes[:, k % most] = after - change
            x, change, seen = following, after, larger(seen, following)
        return outcome(shaped(like_listed(x, kind), like), False, limit, limit + 1)

    return steps


offer(
    fixed_point,
    _fixed_point,
    "(x0, rtol, atol, maxiter, memory), passed_along(args)",
    literals=("matrix_free", "full_output"),
)
