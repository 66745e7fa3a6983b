"""`sparse_hessian`: a Hessian with few entries, of a few products with vectors instead of one for each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.api.sparse.matrix import SparseDerivative, sparse_derivative
from irad.frontend.calls.raising import public
from irad.frontend.offered import refuse_in_compiled_code
from irad.options import Options


@public
def sparse_hessian(
    f: Callable[..., Any],
    argnums: int = 0,
    has_aux: bool = False,
    *,
    pattern: Any = None,
    check: bool = True,
    argnames: str | None = None,
    options: Options | None = None,
) -> SparseDerivative:
    """The Hessian of a function that returns a float as a sparse matrix of SciPy's.

    It is put together of products with vectors, as `irad.hvp` computes them. Because it is symmetric, an entry may be
    read where it stands or where its mirror image does, so that they are fewer than those of a Jacobian with this
    pattern: two for a matrix with a full row, a full column and a diagonal. The matrix has a row and a column for each
    number of the argument, in C order.

    The pattern is that of the gradient's dependence on the argument, found as by `irad.sparse_jacobian`: what is linear
    in all numbers leaves no entry. Each Hessian is compared with a further product in a random direction.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, an array of floats.
        has_aux: ``f`` returns ``(value, aux)``, and the result is ``(hessian, aux)``.
        pattern: "dependence", "probe", or an array or sparse matrix that is symmetric and differs from zero wherever a
            second derivative may.
        check: whether each Hessian is compared with one more product.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``colours`` (of the columns) and ``products`` (how many).

    Raises:
        SignatureError: as `irad.sparse_jacobian`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def chain(x):
        ...     return ((x[1:] - x[:-1]) ** 4).sum() + x[0] * x[-1]
        >>> prepared = irad.sparse_hessian(chain).prepare(np.ones(1000))
        >>> prepared.products <= 5
        True
        >>> prepared(np.arange(1000.0))[:3, :3].toarray()
        array([[ 12., -12.,   0.],
               [-12.,  24., -12.],
               [  0., -12.,  24.]])
    """
    return sparse_derivative("sparse_hessian", f, argnums, argnames, pattern, None, None, check, bool(has_aux), options)


refuse_in_compiled_code(sparse_hessian, "(a) irad.hessian, which returns an array or (b) call it from Python")
