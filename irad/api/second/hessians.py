"""`hessian`, and `hvp` and `hvp_and_grad`, its products with a vector: forward mode over reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from irad.api.forward import directional
from irad.api.functions import options_or_default
from irad.api.grad import grad
from irad.api.jacobians.jacobian import derivative_matrix
from irad.api.selection import Selection, selected
from irad.frontend.calls.annotations import Returns
from irad.frontend.calls.raising import public
from irad.options import Options


@public
def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    chunk: int | None = None,
    argnames: str | Sequence[str] | None = None,
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
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated; the result is ``(hessian, aux)``.
        chunk: how many columns are computed in each run, 8 unless given.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
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
    wanted = selected(f, argnums, argnames)
    gradient = grad(wanted.primal, wanted.argnums, has_aux, options=options)

    def make(gradient: Any, options: Options | None) -> Any:
        return derivative_matrix("hessian", gradient, wanted.argnums, has_aux, "forward", chunk, None, None, options)

    return wanted.bound(_telling(make(gradient, options), gradient, make, options))


@public
def hvp(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The product of the Hessian of a function that returns a float and a vector.

    The result takes the arguments of ``f``, and the vector after the last of those that are differentiated:
    ``(x, vector, *rest)``, the order in which `scipy.optimize.minimize` calls ``hessp``; ``(x, y, (v, w), *rest)`` for
    ``argnums=(0, 1)``. The vector has the structure of the argument ``argnums``, as in `irad.pushforward`; so has the
    product. For several arguments, both are tuples with an entry for each, and the product has mixed derivatives in it.
    It costs a few gradients, whatever the size of the Hessian.

    If ``f`` writes to an array among ``argnums``, that array is overwritten, as by ``f``; the vector never is.

    Args:
        f: the function, as in `irad.grad`.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` is differentiated; the result is ``(product, aux)``.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(x, vector, *rest) -> product``, also in compiled code.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def product(x):
        ...     return x[0] * x[1] ** 2
        >>> irad.hvp(product)(np.array([3.0, 5.0]), np.array([1.0, 0.0]))
        array([ 0., 10.])
    """
    return _second("hvp", selected(f, argnums, argnames), bool(has_aux), options, Returns.GRADIENT)


@public
def hvp_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """As `irad.hvp`, with the gradient that is computed on the way.

    Args:
        f: the function, as in `irad.hvp`.
        argnums: as in `irad.hvp`.
        has_aux: as in `irad.hvp`; the result is ``(product, gradient, aux)``.
        argnames: as in `irad.hvp`.
        options: how the derivatives are created; see `irad.Options`.

    Returns:
        A callable ``(x, vector, *rest) -> (product, gradient)``, also in compiled code.

    Raises:
        SignatureError: as in `irad.hvp`.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def cube(x):
        ...     return x**3
        >>> irad.hvp_and_grad(cube)(2.0, 1.0)
        (12.0, 12.0)
    """
    return _second("hvp_and_grad", selected(f, argnums, argnames), bool(has_aux), options, Returns.GRADIENT_AND_VALUE)


def _second(kind: str, wanted: Selection, has_aux: bool, options: Options | None, returns: Returns) -> Any:
    options = options_or_default(options)
    gradient = grad(wanted.primal, wanted.argnums, has_aux, options=options)
    rebuild = (_second, (kind, selected(wanted.primal, wanted.argnums), has_aux, options, returns))

    def make(gradient: Any, options: Options) -> Any:
        of_gradient = selected(gradient, wanted.argnums)
        kept = of_gradient.positions
        return directional(kind, of_gradient, options, rebuild, returns=returns, has_aux=has_aux, kept=kept)

    found = _telling(make(gradient, options), gradient, make, options)
    found.names_primal = False
    return wanted.bound(found)


def _telling(found: Any, gradient: Any, make: Callable[[Any, Any], Any], options: Options | None) -> Any:
    """A derivative of a gradient that in debug mode tells of zeros that won over infinities in the gradient.

    Args:
        found: it.
        gradient: it is a derivative of this.
        make: makes it, of a gradient and with options.
        options: those of the call.
    """
    used = options_or_default(options)
    if used.debug and gradient.shows_all_zeros is not None and not found.tells_zeros:
        found.tell_of_zeros(lambda watched: make(gradient.shows_all_zeros(False), replace(used, debug=watched)))
    return found
