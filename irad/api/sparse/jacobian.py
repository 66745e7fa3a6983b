"""`sparse_jacobian`: a Jacobian with few entries, of a few products instead of one for each column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.api.sparse.matrix import Mode, SparseDerivative, sparse_derivative
from irad.frontend.calls.raising import public
from irad.frontend.offered import refuse_in_compiled_code
from irad.options import Options


@public
def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int = 0,
    has_aux: bool = False,
    *,
    pattern: Any = None,
    mode: Mode | None = None,
    outputs: int | None = None,
    check: bool = True,
    argnames: str | None = None,
    options: Options | None = None,
) -> SparseDerivative:
    """The Jacobian of an array with respect to an array as a sparse matrix of SciPy's.

    Columns that have no row in common are computed together, in forward mode, or rows that have no column in common, in
    reverse mode: a tridiagonal Jacobian takes three products, whatever its size. The matrix has a row for each number
    returned and a column for each number of the argument, in C order.

    Which entries may differ from zero is the *pattern*. It is found at the arguments of `prepare`, for the branches
    that the function takes there. ``"dependence"`` follows through the compiled code what each result is computed from,
    whatever the slopes are. ``"probe"`` looks where a NaN in the place of a tangent comes out. Unless it is given,
    dependence is followed; where that is not known of something that the function calls, as of matrix products and
    functions with rules of yours, the pattern is probed.

    Elsewhere the function may take other branches. Each Jacobian is therefore compared with a further product in a
    random direction, and a pattern that lacks an entry raises an error. ``check=False`` leaves that out: an entry that
    the pattern lacks then makes others wrong.

    Args:
        f: the function, as in `irad.grad`; it returns an array of floats or a float.
        argnums: the position of the argument, an array of floats.
        has_aux: ``f`` returns ``(value, aux)``, and the result is ``(jacobian, aux)``; with ``outputs``, ``aux`` is
            what ``f`` returns.
        pattern: "dependence", "probe", or an array or sparse matrix that differs from zero wherever a derivative may.
        mode: "forward" or "reverse"; None: the one that takes fewer products and passes through all that ``f`` calls.
        outputs: the position of the array that ``f`` writes its results to, in place of what it returns.
        check: whether each Jacobian is compared with one more product.
        argnames: in place of ``argnums``, the name of the parameter.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that takes the arguments of ``f``. Its method ``prepare`` takes them, too, and returns a callable to
        be reused, with the attributes ``pattern``, ``mode``, ``colours`` (of the columns or rows) and ``products`` (how
        many).

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or SciPy is not installed; in a call: ``f`` maps no
            array to an array, or the pattern does not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def residual(u):
        ...     r = u**3
        ...     r[1:] -= u[:-1]
        ...     return r
        >>> prepared = irad.sparse_jacobian(residual).prepare(np.ones(1000))
        >>> prepared.products
        2
        >>> prepared(np.arange(1000.0))[:3, :3].toarray()
        array([[ 0.,  0.,  0.],
               [-1.,  3.,  0.],
               [ 0., -1., 12.]])
    """
    return sparse_derivative(
        "sparse_jacobian", f, argnums, argnames, pattern, mode, outputs, check, bool(has_aux), options
    )


refuse_in_compiled_code(sparse_jacobian, "(a) irad.jacobian, which returns an array or (b) call it from Python")
