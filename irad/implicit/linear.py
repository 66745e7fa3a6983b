"""`cg`, `minres`, `gmres` and `bicgstab`: linear systems with a function for the product of the matrix and a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba.core import types

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.inner import inner_overload
from irad.frontend.numba.messages import described
from irad.implicit.compiled import offer
from irad.implicit.krylov import ITERATIONS, TOLERANCE, krylov_of


@public
def cg(
    A: Callable[..., Any],
    b: Any,
    x0: Any = None,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    maxiter: int = 0,
    M: Callable[..., Any] | None = None,
    full_output: bool = False,
) -> Any:
    """The solution of ``A(x, *args) = b`` by conjugate gradients, with derivatives with respect to ``b`` and ``args``.

    It can be called from Python and in compiled code.

    Args:
        A: a function, linear in its first argument, whose matrix is symmetric and positive definite.
        b: the right-hand side, an array of real numbers with one axis.
        x0: the initial guess, an array like ``b``; None for zeros.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: tolerance of the norm of the residual, relative to the norm of ``b``; 1e-10 by default.
        atol: absolute tolerance of the norm of the residual; the greater of both tolerances applies.
        maxiter: the largest number of products with the matrix; 0 for ten times the number of unknowns.
        M: a preconditioner, an approximate inverse of the matrix: a function of the same arguments as ``A`` and
            linear, too, whose matrix is symmetric and positive definite; None for none. It saves steps and has no
            derivative: the solution does not depend on it.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is the solution and counts
            steps and products, instead of raising if there is none; a literal in compiled code.

    Returns:
        The solution, in new memory. Unlike in SciPy there is no code for success: without ``full_output`` it raises
        if it does not converge.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or finds that the matrix or ``M`` is not positive definite.

    Source:
        Hestenes, Stiefel: Methods of conjugate gradients for solving linear systems, J. Res. NBS 49 (1952) 409-436.

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
    return _called("cg", A, b, x0, args, (float(rtol), float(atol), int(maxiter), 0), M, full_output)


@public
def minres(
    A: Callable[..., Any],
    b: Any,
    x0: Any = None,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    maxiter: int = 0,
    M: Callable[..., Any] | None = None,
    full_output: bool = False,
) -> Any:
    """The solution of ``A(x, *args) = b`` by MINRES, for symmetric matrices that need not be positive definite.

    It differentiates with respect to ``b`` and ``args``, in Python and in compiled code.

    Args:
        A: a function, linear in its first argument, whose matrix is symmetric.
        b: the right-hand side, an array of real numbers with one axis.
        x0: the initial guess, an array like ``b``; None for zeros.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: tolerance of the norm of the residual, relative to the norm of ``b``; 1e-10 by default.
        atol: absolute tolerance of the norm of the residual; the greater of both tolerances applies.
        maxiter: the largest number of products with the matrix; 0 for ten times the number of unknowns.
        M: a preconditioner, an approximate inverse of the matrix: a function of the same arguments as ``A`` and
            linear, too, whose matrix is symmetric and positive definite; None for none. It saves steps and has no
            derivative: the solution does not depend on it.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is the solution and counts
            steps and products, instead of raising if there is none; a literal in compiled code.

    Returns:
        The solution, in new memory.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, the matrix is singular, or ``M`` is not positive definite.

    Source:
        Paige, Saunders: Solution of sparse indefinite systems of linear equations, SIAM J. Numer. Anal. 12 (1975)
        617-629.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import minres
        >>> from numba import njit
        >>> @njit
        ... def product(x, a):
        ...     return np.array([a * x[0] + x[1], x[0] - 2.0 * x[1]])
        >>> round(irad.grad(lambda a: minres(product, np.ones(2), args=(a,))[0])(1.0), 6)
        -0.666667
    """
    return _called("minres", A, b, x0, args, (float(rtol), float(atol), int(maxiter), 0), M, full_output)


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
    M: Callable[..., Any] | None = None,
    full_output: bool = False,
) -> Any:
    """The solution of ``A(x, *args) = b`` by GMRES, with derivatives with respect to ``b`` and ``args``.

    It can be called from Python and in compiled code. Derivatives solve a system with the transposed matrix, whose
    product with a vector irad derives from ``A``.

    Args:
        A: a function, linear in its first argument.
        b: the right-hand side, an array of real numbers with one axis.
        x0: the initial guess, an array like ``b``; None for zeros.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: tolerance of the norm of the residual, relative to the norm of ``b``; 1e-10 by default.
        atol: absolute tolerance of the norm of the residual; the greater of both tolerances applies.
        restart: number of directions that are kept before a restart.
        maxiter: the largest number of products with the matrix; 0 for ten times the number of unknowns.
        M: a preconditioner, an approximate inverse of the matrix: a function of the same arguments as ``A`` and
            linear, too; None for none. It saves steps and has no derivative: the solution does not depend on it.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is the solution and counts
            steps and products, instead of raising if there is none; a literal in compiled code.

    Returns:
        The solution, in new memory.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or the matrix is singular.

    Source:
        Saad, Schultz: GMRES, SIAM J. Sci. Stat. Comput. 7 (1986) 856-869.

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
    return _called("gmres", A, b, x0, args, (float(rtol), float(atol), int(maxiter), int(restart)), M, full_output)


@public
def bicgstab(
    A: Callable[..., Any],
    b: Any,
    x0: Any = None,
    args: Any = (),
    rtol: float = TOLERANCE,
    atol: float = 0.0,
    maxiter: int = 0,
    M: Callable[..., Any] | None = None,
    full_output: bool = False,
) -> Any:
    """The solution of ``A(x, *args) = b`` by the stabilised biconjugate gradient method, with derivatives.

    It differentiates with respect to ``b`` and ``args``, in Python and in compiled code, as `irad.implicit.gmres` does.

    Args:
        A: a function, linear in its first argument.
        b: the right-hand side, an array of real numbers with one axis.
        x0: the initial guess, an array like ``b``; None for zeros.
        args: a tuple of further arguments of ``A``: numbers, arrays and structures of these.
        rtol: tolerance of the norm of the residual, relative to the norm of ``b``; 1e-10 by default.
        atol: absolute tolerance of the norm of the residual; the greater of both tolerances applies.
        maxiter: the largest number of steps, of two products each; 0 for ten times the number of unknowns.
        M: a preconditioner, an approximate inverse of the matrix: a function of the same arguments as ``A`` and
            linear, too; None for none. It saves steps and has no derivative: the solution does not depend on it.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is the solution and counts
            steps and products, instead of raising if there is none; a literal in compiled code.

    Returns:
        The solution, in new memory.

    Raises:
        SignatureError: ``A`` is not a function that Numba compiles.
        ValueError: it does not converge, or breaks down.

    Source:
        van der Vorst: Bi-CGSTAB, SIAM J. Sci. Stat. Comput. 13 (1992) 631-644.

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
    return _called("bicgstab", A, b, x0, args, (float(rtol), float(atol), int(maxiter), 0), M, full_output)


def _called(
    method: str,
    operator: Any,
    b: Any,
    x0: Any,
    args: Any,
    rest: tuple[float, float, int, int],
    preconditioner: Any,
    full_output: bool,
) -> Any:
    right = doubles_of(method, b)
    start = np.zeros_like(right) if x0 is None else doubles_of(method, x0)
    relative, absolute, limit, restart = rest
    settings = start, relative, absolute, limit or ITERATIONS * right.size, restart
    chosen = None if preconditioner is None else primal_of(preconditioner)
    return krylov_of(primal_of(operator), method, chosen, full_output)(settings, (right, passed_along(args)))


def doubles_of(name: str, given: Any) -> Any:
    """A vector in double precision, in Python."""
    found = np.asarray(given)
    if found.ndim != 1 or found.dtype.kind not in "biuf":
        raise _not_a_vector(name, f"an array of {found.dtype} with {found.ndim} axes")
    return found.astype(np.float64)


def _not_a_vector(name: str, what: str) -> SignatureError:
    return SignatureError(
        f"{name} is given {what} where a vector is needed",
        "pass an array of real numbers with one axis, such as b.ravel()",
        "it solves a linear system in double precision",
        SourceLocation.here(),
    )


def doubles(name: str, given: Any, b: Any) -> Any:
    """A vector in double precision, in compiled code; zeros like another one for None."""
    raise NotImplementedError


@inner_overload(doubles, strict=False, prefer_literal=True)
def _doubles_typed(name: Any, given: Any, b: Any) -> Any:
    if given is None or isinstance(given, types.NoneType | types.Omitted):
        if given == b:
            raise _not_a_vector(name.literal_value, "None")
        return lambda name, given, b: np.zeros(b.size)
    if not isinstance(given, types.Array) or given.ndim != 1 or not isinstance(given.dtype, _REAL):
        raise _not_a_vector(name.literal_value, described(given))
    return lambda name, given, b: given.astype(np.float64)


_REAL: Final = (types.Float, types.Integer, types.Boolean)

for _function, _restart in ((cg, "0"), (minres, "0"), (gmres, "restart"), (bicgstab, "0")):
    _name = _function.__name__
    _settings = f"(doubles('{_name}', x0, b), rtol, atol, maxiter or {ITERATIONS} * b.size, {_restart})"
    offer(
        _function,
        lambda operator, full_output, preconditioner, method=_name: krylov_of(
            operator, method, preconditioner, full_output
        ),
        f"{_settings}, (doubles('{_name}', b, b), passed_along(args))",
        literals=("full_output",),
        functions=("M",),
        doubles=doubles,
    )
