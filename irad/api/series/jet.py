"""`jet`: a Taylor series at given arguments; it is to `taylor` what `jvp` is to `pushforward`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irad.api.forward import directions
from irad.api.linearize import zeros_of
from irad.api.selection import callee_of
from irad.api.series.taylor import taylor
from irad.errors import SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.numba.cpu import location_of
from irad.options import Options


@public
def jet(
    f: Callable[..., Any],
    args: Sequence[Any],
    series: Sequence[Any],
    *,
    order: int | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function and the Taylor series of its value along a curve.

    Args:
        f: the function, as in `irad.taylor`.
        args: its arguments.
        series: the curve: for each argument the tuple of its coefficients from that of ``t`` on, None for a constant.
            Coefficients that are not given are zero: ``(v,)`` is the straight line in the direction ``v``.
        order: the highest order; by default as many coefficients are returned as the longest series has.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        ``(value, series)``, with a tuple of ``order`` coefficients; see `irad.taylor`.

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
    argnums = directions(f, len(args), series)
    longest = max(len(series[i]) for i in argnums)
    wanted = longest if order is None else order
    if wanted < longest:
        primal, *_ = callee_of(f)
        raise SignatureError(
            f"a series of an argument of {primal.py_func.__qualname__} has {longest} coefficients, and order={order}",
            f"(a) order={longest} or (b) leave out the coefficients of higher order",
            "they do not change the result up to that order",
            location_of(primal.py_func),
        )
    if wanted == 0:
        return f(*args), ()
    full = tuple((*series[i], *(zeros_of(args[i]) for _ in range(wanted - len(series[i])))) for i in argnums)
    return taylor(f, wanted, argnums, options=options)(full, *args)
