"""`hessian`, and `hvp` and `hvp_and_grad`, its products with a vector: forward mode over reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irad.api.bound import BoundDerivative, bound_method
from irad.api.forward import directional
from irad.api.grad import grad
from irad.api.jacobians.jacobian import derivative_matrix
from irad.frontend.calls.annotations import Returns
from irad.frontend.calls.raising import public
from irad.options import Options


@public
def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    chunk: int | None = None,
    options: Options | None = None,
) -> Any:
    """All second derivatives of a function that returns a float.

    The result takes the arguments of ``f``. For an array ``argnums`` it is an array of the shape
    ``(*argument.shape, *argument.shape)``, for a number a number; for several arguments a tuple with a row of blocks
    for each, mixed derivatives among them. It is the Jacobian of the gradient, of which ``chunk`` columns at a time
    are computed. Where a few products with vectors will do, `irad.hvp` is much cheaper.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        chunk: how many columns are computed in each run, 8 unless given.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable, also in compiled code.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> irad.hessian(product)(np.array([3.0, 5.0]))
        array([[ 0., 10.],
               [10.,  6.]])
    """
    method = bound_method(f)
    if method is not None:
        positions = method.positions(argnums)
        return BoundDerivative(hessian(method.function, positions, chunk=chunk, options=options), method.instance)
    gradient = grad(f, argnums, options=options)
    return derivative_matrix("hessian", gradient, argnums, "forward", chunk, None, None, options)


@public
def hvp(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, options: Options | None = None) -> Any:
    """The product of the Hessian of a function that returns a float and a vector.

    The result is called as ``(tangents, *args)``. ``tangents`` has the structure of the argument ``argnums``, as in
    `irad.pushforward`; so has the product. For several arguments, both are tuples with an entry for each, and the
    product has mixed derivatives in it. It costs a few gradients, whatever the size of the Hessian.

    If ``f`` writes to an array among ``argnums``, that array and its tangent are overwritten, as by
    `irad.pushforward`.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(tangents, *args) -> product``, also in compiled code.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> irad.hvp(product)(np.array([1.0, 0.0]), np.array([3.0, 5.0]))
        array([ 0., 10.])
    """
    return _second("hvp", hvp, f, argnums, options, Returns.GRADIENT)


@public
def hvp_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, *, options: Options | None = None) -> Any:
    """As `irad.hvp`, with the gradient that is computed on the way.

    Args:
        f: the function, as in `irad.hvp`.
        argnums: as in `irad.hvp`.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(tangents, *args) -> (product, gradient)``, also in compiled code.

    Raises:
        SignatureError: as in `irad.hvp`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def cube(x):
        ...     return x**3
        >>> irad.hvp_and_grad(cube)(1.0, 2.0)
        (12.0, 12.0)
    """
    return _second("hvp_and_grad", hvp_and_grad, f, argnums, options, Returns.GRADIENT_AND_VALUE)


def _second(
    kind: str,
    maker: Callable[..., Any],
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    options: Options | None,
    returns: Returns,
) -> Any:
    method = bound_method(f)
    if method is not None:
        found = _second(kind, maker, method.function, method.positions(argnums), options, returns)
        return BoundDerivative(found, method.instance, leading=1)
    gradient = grad(f, argnums, options=options)
    found = directional(kind, gradient, argnums, options, (maker, (f, argnums)), returns=returns)
    found.names_primal = False
    return found
