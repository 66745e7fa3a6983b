"""`jet`: a Taylor series at given arguments; it is to `taylor` what `jvp` is to `pushforward`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irad.api.forward import directions, with_direction
from irad.api.linearize import zeros_of
from irad.api.positions import chosen
from irad.api.selection import callee_of, selected
from irad.api.series.taylor import taylor
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.numba.cpu import location_of
from irad.frontend.offered import refuse_in_compiled_code
from irad.options import Options


@public
def jet(
    f: Callable[..., Any],
    args: Sequence[Any],
    series: Any,
    has_aux: bool = False,
    *,
    order: int | None = None,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function and the Taylor series of its value along a curve.

    Args:
        f: the function, as in `irad.taylor`.
        args: its arguments.
        series: the curve: for each argument the tuple of its coefficients from that of ``t`` on, None for a constant.
            Coefficients that are not given are zero: ``(v,)`` is the straight line in the direction ``v``. With
            ``argnums`` or ``argnames`` the series of that argument alone, or a tuple of those of several.
        has_aux: ``f`` returns ``(value, aux)``, and only ``value`` has a series.
        order: the highest order; by default as many coefficients are returned as the longest series has.
        argnums: the positions of the arguments that have a series, as in `irad.taylor`.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        ``(value, series)``, with a tuple of ``order`` coefficients; with ``has_aux``, ``(value, series, aux)``.

    Raises:
        SignatureError: there are not as many series as arguments, all are None, one is longer than ``order``, or a
            coefficient does not fit its argument.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def cube(x):
        ...     return x * x * x
        >>> irad.jet(cube, (2.0,), ((1.0,),), order=4)  # (2 + t)**3
        (8.0, (12.0, 6.0, 1.0, 0.0))
        >>> irad.jet(cube, (np.array([1.0, 2.0]),), ((np.array([0.0, 1.0]), np.array([1.0, 0.0])),))
        (array([1., 8.]), (array([ 0., 12.]), array([3., 6.])))
    """
    where = chosen(f, argnums, argnames, None)
    if where is None:
        where = directions(f, len(args), series)
        series = tuple(series[i] for i in where)
    elif not isinstance(where, Sequence):
        where, series = (where,), (series,)
    places = selected(f, where).own_positions
    longest = max(map(len, series))
    wanted = longest if order is None else order
    if wanted < longest:
        primal, _ = callee_of(f)
        raise SignatureError(
            f"a series of an argument of {primal.py_func.__qualname__} has {longest} coefficients, and order={order}",
            f"(a) order={longest} or (b) leave out the coefficients of higher order",
            "they do not change the result up to that order",
            location_of(primal.py_func),
        )
    if wanted == 0:
        value, *aux = f(*args) if has_aux else (f(*args),)
        return value, (), *aux
    full = (
        (*each, *(zeros_of(args[i]) for _ in range(wanted - len(each)))) for i, each in zip(places, series, strict=True)
    )
    return taylor(f, wanted, where, has_aux, options=options)(*with_direction(args, places, tuple(full)))


refuse_in_compiled_code(jet, "irad.taylor(f, order)(series, …), with a coefficient for each order in each series")
