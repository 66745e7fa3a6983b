"""`hessian`, and `hvp` and `hvp_and_grad`, its products with a vector: forward mode over reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from irad.api.forward import directional
from irad.api.functions import options_or_default
from irad.api.grad import grad
from irad.api.jacobians.jacobian import derivative_matrix
from irad.api.nopython import function_behind, literal, offer_maker
from irad.api.selection import Selection, selected
from irad.frontend.calls.raising import public
from irad.frontend.calls.task import Returns
from irad.frontend.offered import offer
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
    return hessian_of("hessian", f, argnums, has_aux, chunk, argnames, options)


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
    gradient = partial(grad, wanted.primal, wanted.argnums, has_aux)
    rebuild = (_second, (kind, selected(wanted.primal, wanted.argnums), has_aux, options, returns))

    def make(gradient: Any, options: Options, *tellers: Any) -> Any:
        of_gradient = selected(gradient, wanted.argnums)
        kept = of_gradient.positions
        return directional(kind, of_gradient, options, rebuild, *tellers, returns=returns, has_aux=has_aux, kept=kept)

    found = telling(make, gradient, options)
    found.names_primal = False
    return wanted.bound(found)


def hessian_of(
    kind: str,
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    chunk: int | None,
    argnames: str | Sequence[str] | None,
    options: Options | None,
) -> Any:
    """What `hessian` and `hessian_into` return."""
    wanted, options = selected(f, argnums, argnames), options_or_default(options)

    def make(gradient: Any, options: Options, *tellers: Any) -> Any:
        return derivative_matrix(
            kind, gradient, wanted.argnums, has_aux, "forward", chunk, None, None, options, *tellers
        )

    found = telling(make, partial(grad, wanted.primal, wanted.argnums, has_aux), options)
    return wanted.bound(found, leading=int(kind == "hessian_into"))


def telling(make: Callable[..., Any], gradient_with: Callable[..., Any], options: Options) -> Any:
    """A derivative of a gradient that tells, called from Python, of zeros that won over infinities in the gradient.

    Args:
        make: makes it, of a gradient, with options, and with what `directional` takes to tell of zeros.
        gradient_with: the gradient with ``options``.
        options: those of the call.
    """
    gradient = gradient_with(options=options)
    plain = None
    if options.speculates:
        plain = gradient_with(options=replace(options, zero_times_infinity="nan"))

    def shows_zeros(watched: bool) -> Any:
        return make(gradient.shows_all_zeros(False), replace(options, debug=watched, cache=False))

    return make(gradient, options, plain, shows_zeros)


def offer_hessian(derive: Callable[..., Any]) -> None:
    """Lets compiled code call `hessian`, or a function with the same parameters."""

    def typed(
        f: Any, argnums: Any = 0, has_aux: Any = False, chunk: Any = None, argnames: Any = None
    ) -> Callable[..., Any]:
        numbers, aux, size = literal(argnums, "argnums"), literal(has_aux, "has_aux"), literal(chunk, "chunk")
        found = derive(function_behind(f), numbers, aux, chunk=size, argnames=literal(argnames, "argnames"))
        return lambda f, argnums=0, has_aux=False, chunk=None, argnames=None: found

    offer(derive, typed)


offer_hessian(hessian)
for _maker in (hvp, hvp_and_grad):
    offer_maker(_maker)
