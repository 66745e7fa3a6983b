"""Fixed points, by Anderson's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from irad.api.custom.passed_along import passed_along
from irad.api.functions import primal_of, remembered
from irad.frontend.calls.raising import public
from irad.frontend.packing.packed import packed
from irad.implicit import systems
from irad.implicit.offering import offer
from irad.implicit.theorem import implicit
from irad.implicit.unknowns import like_listed, listed, shaped, size_of, started, vector


@public
def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    xtol: float = 1e-10,
    maxiter: int = 500,
    memory: int = 5,
    matrix_free: bool = False,
) -> Any:
    """The solution of ``x = func(x, *args)`` by Anderson's method, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code.

    Args:
        func: returns what has the structure of ``x``.
        x0: where to begin, as for `newton`: a number, an array of any shape, or a structure of these.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        xtol: of the largest part of ``func(x, *args) - x``.
        maxiter: the most steps.
        memory: how many steps back are combined; 0 is the plain iteration.
        matrix_free: takes derivatives by GMRES, with products of the derivative of ``func`` and a vector in place of
            its Jacobian: for many unknowns; a literal in compiled code.

    Returns:
        The fixed point, in new memory.

    Raises:
        SignatureError: ``func`` is not a function that Numba compiles.
        ValueError: there is no fixed point within ``maxiter`` steps.

    Source:
        Walker, Ni: Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal. 49 (2011).

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
    settings = packed((x0, float(xtol), int(maxiter), int(memory)))
    return _fixed_point(primal_of(func), matrix_free)(settings, passed_along(args))


def _fixed_point(f: Any, matrix_free: bool) -> Any:
    def make() -> Any:
        @njit
        def difference(x, *args):  # type: ignore[no-untyped-def]
            return shaped(vector(f(x, *args), x) - vector(x, x), x)

        chosen = systems.matrix_free(difference) if matrix_free else systems.dense(difference)
        return implicit(_anderson(f), difference, chosen)

    return remembered(f, (fixed_point, matrix_free), make)


def _anderson(f: Any) -> Any:
    @njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, tolerance, limit, memory = settings
        like = started(x0)
        kind = vector(like, like)
        x = listed(kind).copy()
        change = listed(vector(f(like, *args), like)) - x
        most = max(0, min(memory, x.size))
        moves, changes = np.zeros((x.size, most)), np.zeros((x.size, most))
        for k in range(limit):
            if size_of(change) <= tolerance:
                return shaped(like_listed(x, kind), like)
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
            x, change = following, after
        if size_of(change) <= tolerance:
            return shaped(like_listed(x, kind), like)
        raise ValueError("irad.implicit.fixed_point found no fixed point within maxiter steps")

    return steps


offer(fixed_point, _fixed_point, "(x0, xtol, maxiter, memory), passed_along(args)", literals=("matrix_free",))
