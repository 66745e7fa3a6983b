"""Linear systems with a function for the product, by Krylov methods: the rule behind `cg`, `gmres` and `bicgstab`.

The solution of A(x, p) = b has the derivative of that equation. Its linear systems have the same form: with A again,
and with the transpose of A, whose product is the gradient of wᵀA(v, p) by v. So second derivatives are right, too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit
from numba.extending import overload

from irad.api.functions import remembered
from irad.api.grad import grad
from irad.implicit.iterations import METHODS
from irad.implicit.theorem import implicit

TOLERANCE: Final = 1e-10
ITERATIONS: Final = 10
"""Times the number of unknowns: SciPy's limit."""


def krylov_of(operator: Any, method: str) -> Any:
    """The compiled ``(settings, (b, args)) -> x`` that solves A(x, …) = b, and its rule.

    Args:
        operator: compiled, linear in its first argument, a vector.
        method: a name in `METHODS`.

    The settings are where to begin, the relative and the absolute tolerance of the residual's norm, the most products,
    and how many directions GMRES keeps.
    """

    def make() -> Any:
        @njit
        def residual(x, b, args):  # type: ignore[no-untyped-def]
            return operator(x, *args) - b

        systems = _system(lambda: operator, method), _system(lambda: transpose_of(operator, method), method)
        return implicit(METHODS[method](operator), residual, systems)

    return remembered(operator, (krylov_of, method), make)


def _system(operator: Any, method: str) -> Any:
    """The solution of a system like that which is differentiated; it is made when it is needed, not before."""

    def system(settings: Any, x: Any, args: Any, right: Any) -> Any:
        raise NotImplementedError

    @overload(system, strict=False)
    def system_typed(settings: Any, x: Any, args: Any, right: Any) -> Any:
        solve = krylov_of(operator(), method)

        def solution(settings, x, args, right):  # type: ignore[no-untyped-def]
            _, relative, absolute, limit, restart = settings
            return solve((np.zeros_like(x), relative, absolute, limit, restart), (right, args[1]))

        return solution

    return system


def transpose_of(operator: Any, method: str = "") -> Any:
    """The transposed operator with the same arguments; the conjugate gradients are for symmetric ones."""
    if method == "cg":
        return operator

    def make() -> Any:
        @njit
        def weighted(v, weights, args):  # type: ignore[no-untyped-def]
            return np.dot(weights, operator(v, *args))

        slope = grad(weighted)

        @njit
        def transposed(weights, *args):  # type: ignore[no-untyped-def]
            return slope(np.zeros_like(weights), weights, args)

        declare_transpose(transposed, operator)
        return transposed

    return remembered(operator, (transpose_of,), make)


def declare_transpose(operator: Any, transposed: Any) -> None:
    """Tells the transpose of an operator where it is known."""
    remembered(operator, (transpose_of,), lambda: transposed)
