"""Taylor series along a curve: `taylor` makes a callable of an order, `jet` computes one series.

Both hold Taylor coefficients, not derivatives: they stay in range where factorials leave it, and are what
`irad.passes.forward` computes. `jet` is to `taylor` what `jvp` is to `pushforward`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irad.api.forward import directions, with_direction
from irad.api.linearize import zeros_of
from irad.api.makers import made, maker
from irad.api.selection import callee_of, chosen, selected
from irad.errors import SignatureError
from irad.frontend.numba.messages import location_of
from irad.options import Options


@maker
def taylor(
    f: Callable[..., Any],
    order: int,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function together with the Taylor series of its value along a curve.

    The result takes the arguments of ``f``, and ``series`` after the last of those that are differentiated, as for
    `irad.pushforward`; it returns ``(value, series)``. Along the curve
    ``x(t) = x + x1 t + x2 t**2 + …`` through the argument ``x`` the value is ``y + y1 t + y2 t**2 + …``; a series is
    the tuple of the coefficients of ``t`` to ``t**order``. Each has the structure that a tangent has for `pushforward`;
    for a number, None stands for zero. With several ``argnums``, ``series`` is a tuple with a series for each. The
    coefficient of ``t**k`` times ``k!`` is the ``k``-th derivative; the first is what `pushforward` returns.

    If ``f`` writes to an array among ``argnums``, the arrays of its series are overwritten as well: they hold the
    series of the array's new content.

    **Cost.** One run, in which each operation on numbers takes time proportional to ``order**2``: nested derivatives
    take ``2**order``.

    **Limits.** What has a rule of its own for first derivatives only is refused by name before code is generated:
    factorisations, Fourier transforms, random draws, and functions with a rule that you wrote.

    Args:
        f: the function, as in `irad.pushforward`.
        order: the highest order, a constant of at least 1.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` has a series; the result is ``(value, series, aux)``.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable ``(x, series, *rest) -> (value, series)``, or ``-> (value, series, aux)`` with ``has_aux``.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, ``order`` is not a positive integer, or there is no
            argument at that position.

    Source:
        Griewank and Walther, Evaluating Derivatives, 2nd edition, chapter 13.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def inverse(x):
        ...     return 1.0 / x
        >>> irad.taylor(inverse, 4)(1.0, (-1.0, 0.0, 0.0, 0.0))  # 1 / (1 - t)
        (1.0, (1.0, 1.0, 1.0, 1.0))
    """
    if type(order) is not int or order < 1:
        raise SignatureError(
            f"order={order!r} of irad.taylor is not a positive integer",
            "pass the highest order that you want, as in irad.taylor(f, 3)",
            "the derivative is created for one order; that of order 0 is the function itself",
        )
    return made("taylor", f, argnums, argnames, has_aux, options, None, order)


@maker
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
