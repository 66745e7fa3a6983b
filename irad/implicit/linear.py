"""`cg`, `gmres` and `bicgstab`: linear systems with a function for the product of the matrix and a vector."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload

from irad.api.custom.passed_along import passed_along
from irad.api.functions import primal_of
from irad.frontend.calls.raising import public
from irad.implicit.krylov import ITERATIONS, TOLERANCE, krylov_of
from irad.implicit.offering import offer


@public
def cg(
    A: Callable[..., Any],
    b: Any,
    x0: Any = None,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    maxiter: int = 0,
) -> Any:
    """The solution of ``A(x, *args) = b`` by conjugate gradients, with derivatives with respect to ``b`` and ``args``.

    It can be called from Python and in compiled code.

    Args:
        A: a function, linear in its first argument, whose matrix is symmetric and positive definite.
        b: an array of floats with one axis.
        x0: where to begin; None: at zero.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: of the norm of the residual, relative to that of ``b``.
        atol: the same, absolute; the greater of both counts.
        maxiter: the most products; 0: ten times the number of unknowns.

    Returns:
        The solution. There is no code for success, unlike in SciPy: where it does not converge, it raises.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or finds that the matrix is not positive definite.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import cg
        >>> from numba import njit
        >>> @njit
        ... def stiffness(x, k):  # springs between neighbours and to both ends
        ...     found = 2.0 * k * x
        ...     found[1:] -= k * x[:-1]
        ...     found[:-1] -= k * x[1:]
        ...     return found
        >>> round(irad.grad(lambda k: cg(stiffness, np.ones(3), args=(k,))[1])(2.0), 6)
        -0.5
    """
    return _called("cg", A, b, x0, args, (float(rtol), float(atol), int(maxiter), 0))


@public
def gmres(
    A: Callable[..., Any],
    b: Any,
    x0: Any = None,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int = 0,
) -> Any:
    """The solution of ``A(x, *args) = b`` by GMRES, with derivatives with respect to ``b`` and ``args``.

    It can be called from Python and in compiled code. Derivatives solve a system with the transposed matrix, whose
    product irad makes from ``A``.

    Args:
        A: a function, linear in its first argument.
        b: an array of floats with one axis.
        x0: where to begin; None: at zero.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: of the norm of the residual, relative to that of ``b``.
        atol: the same, absolute; the greater of both counts.
        restart: how many directions are kept.
        maxiter: the most products; 0: ten times the number of unknowns.

    Returns:
        The solution.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or the matrix is singular.

    Source:
        Saad, Schultz: GMRES, SIAM J. Sci. Stat. Comput. 7 (1986).

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import gmres
        >>> from numba import njit
        >>> @njit
        ... def product(x, a):
        ...     return np.array([a * x[0] + x[1], 4.0 * x[1]])
        >>> round(irad.grad(lambda a: gmres(product, np.ones(2), args=(a,))[0])(2.0), 6)
        -0.1875
    """
    return _called("gmres", A, b, x0, args, (float(rtol), float(atol), int(maxiter), int(restart)))


@public
def bicgstab(
    A: Callable[..., Any],
    b: Any,
    x0: Any = None,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    maxiter: int = 0,
) -> Any:
    """The solution of ``A(x, *args) = b`` by stabilised bi-conjugate gradients, with derivatives: as `gmres`.

    Args:
        A: a function, linear in its first argument.
        b: an array of floats with one axis.
        x0: where to begin; None: at zero.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: of the norm of the residual, relative to that of ``b``.
        atol: the same, absolute; the greater of both counts.
        maxiter: the most steps, of two products each; 0: ten times the number of unknowns.

    Returns:
        The solution.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or breaks down.

    Source:
        van der Vorst: Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13 (1992).

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import bicgstab
        >>> from numba import njit
        >>> @njit
        ... def product(x, a):
        ...     return np.array([a * x[0] + x[1], 4.0 * x[1]])
        >>> round(irad.grad(lambda a: bicgstab(product, np.ones(2), args=(a,))[0])(2.0), 6)
        -0.1875
    """
    return _called("bicgstab", A, b, x0, args, (float(rtol), float(atol), int(maxiter), 0))


def _called(method: str, operator: Any, b: Any, x0: Any, args: Any, rest: tuple[float, float, int, int]) -> Any:
    right = np.asarray(b, np.float64)
    start = np.zeros_like(right) if x0 is None else np.array(x0, np.float64)
    relative, absolute, limit, restart = rest
    settings = start, relative, absolute, limit or ITERATIONS * right.size, restart
    return krylov_of(primal_of(operator), method)(settings, (right, passed_along(args)))


def begun(x0: Any, b: Any) -> Any:
    """Where to begin: zeros for None."""
    raise NotImplementedError


@overload(begun, strict=False)
def _begun_typed(x0: Any, b: Any) -> Any:
    if x0 is None or x0 == types.none or isinstance(x0, types.Omitted):
        return lambda x0, b: np.zeros_like(b)
    return lambda x0, b: x0


for _function, _restart in ((cg, "0"), (gmres, "restart"), (bicgstab, "0")):
    _settings = f"(begun(x0, b), rtol, atol, maxiter or {ITERATIONS} * b.size, {_restart})"
    offer(
        _function, partial(krylov_of, method=_function.__name__), f"{_settings}, (b, passed_along(args))", begun=begun
    )
