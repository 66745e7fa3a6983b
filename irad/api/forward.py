"""`jvp` and `pushforward`: forward mode.

A pushforward is a Numba dispatcher, as gradients are: compiled for each combination of argument types, callable from
Python and from compiled code, where it is inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from numba.core import types

from irad.api.functions import options_or_default
from irad.api.makers import made, made_as_usual, maker
from irad.api.nopython import function_behind, literal
from irad.api.selection import callee_of, selected_if_any
from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described, location_of
from irad.frontend.offered import offer
from irad.message import with_article
from irad.options import Options


@maker
def pushforward(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function together with its derivative in a direction.

    The result takes the arguments of ``f``, and ``tangents`` after the last of those that are differentiated:
    ``(x, tangents, *rest)`` for ``argnums=0``, ``(x, y, (x_tangent, y_tangent), *rest)`` for ``argnums=(0, 1)``. It
    returns ``(value, tangent)``. ``tangents`` has the structure of the argument ``argnums``: a number for a number, an
    array of the same dtype and shape for an array, a tuple for a tuple, for lists, dictionaries and instances what
    `irad.grad` returns for them; of several arguments it is a tuple with an entry for each. The tangent has the same
    structure for the value, with None for parts that have no derivative. All other arguments are constants.

    If ``f`` writes to an array among ``argnums``, its tangent array is overwritten as well: it holds the tangent of the
    array's new content. Tangents that are not overwritten may be any arrays, the arguments themselves among them. Those
    of lists, dictionaries and instances are only read; None in their place stands for zeros.

    Args:
        f: the function, as in `irad.grad`; it may return anything, or nothing.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` has a tangent; the result is ``(value, tangent, aux)``.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that returns ``(value, tangent)``, or ``(value, tangent, aux)`` with ``has_aux``. Arguments up to the
        direction cannot be left out, even if ``f`` has defaults for them.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def powers(x, exponent=2):
        ...     return x**exponent
        >>> irad.pushforward(powers)(np.array([3.0, 5.0]), np.array([1.0, 0.0]))
        (array([ 9., 25.]), array([6., 0.]))
        >>> irad.pushforward(powers)(np.array([3.0, 5.0]), np.array([1.0, 0.0]), 3)
        (array([ 27., 125.]), array([27.,  0.]))
    """
    return made_as_usual("pushforward", f, argnums, argnames, has_aux, options)


def batched_pushforward(
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    width: int,
    has_aux: bool = False,
    *,
    options: Options | None = None,
    shows_zeros: bool = False,
) -> Any:
    """Like `pushforward`, in ``width`` directions beside one run of the function.

    The result is called as ``(directions, *args)``, with a tuple of as many tangents, each as `pushforward` takes them,
    and returns ``(value, tuple of tangents)``, and what `pushforward` returns with ``has_aux``. It can be called in
    compiled code. ``shows_zeros`` is that of its `Task`.

    Raises:
        SignatureError: as `pushforward`.
    """
    return made("pushforward in lanes", f, argnums, None, has_aux, options, None, width, shows_zeros)


def dependence(
    f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, *, options: Options | None = None
) -> Any:
    """Like `batched_pushforward` of width 1, with sets of inputs as tangents; see `irad.passes.forward.dependence`.

    The lowest `SET_SIZE` bits of a tangent are a set; the tangent of the value is the union of those that it depends on
    along the branches that are taken.

    Raises:
        SignatureError: as `pushforward`; where it is called, NoRuleError: dependence is not known of a callee.
    """
    watched = options_or_default(options)
    unwatched = replace(watched, debug=False)  # the bits of a set may be those of a NaN
    return made("dependence", f, argnums, None, has_aux, unwatched)


@maker
def jvp(
    f: Callable[..., Any],
    args: Sequence[Any],
    tangents: Any,
    has_aux: bool = False,
    *,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function and its derivative in a direction: the product of its Jacobian and a vector.

    If ``f`` writes to an array, the array that was passed as its tangent is overwritten, too: it then holds the tangent
    of the new contents. Pass a copy of a direction that is to be used again.

    Args:
        f: the function, as in `irad.pushforward`.
        args: its arguments, a tuple or list.
        tangents: the direction: for each argument its tangent, None for a constant; with ``argnums`` or ``argnames``
            the tangent of that argument alone, or a tuple of those of several.
        has_aux: ``f`` returns ``(value, aux)``, and only ``value`` has a tangent.
        argnums: positions of the arguments that have a tangent, as in `irad.pushforward`.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        ``(value, tangent)``, the tangent with the structure of the value; with ``has_aux``, ``(value, tangent, aux)``.

    Raises:
        SignatureError: there are not as many tangents as arguments, all are None, or one does not fit its argument.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def area(width, height):
        ...     return width * height
        >>> irad.jvp(area, (3.0, 4.0), (1.0, 0.0))
        (12.0, 4.0)
        >>> irad.jvp(area, (3.0, 4.0), (None, 1.0))
        (12.0, 3.0)
        >>> irad.jvp(area, (3.0, 4.0), 1.0, argnames="height")
        (12.0, 3.0)
    """
    _check_sequence(f, "args", args)
    wanted = selected_if_any(f, argnums, argnames)
    if wanted is None:
        _check_sequence(f, "tangents", tangents)
        argnums = places = directions(f, len(args), tangents)
        tangents = tuple(tangents[i] for i in places)
    else:
        places = wanted.own_positions
        argnums = places[0] if wanted.single else places
    return pushforward(f, argnums, has_aux, options=options)(*with_direction(args, places, tangents))


def _check_sequence(f: Callable[..., Any], name: str, given: Any) -> None:
    if isinstance(given, tuple | list):
        return
    function = callee_of(f)[0].py_func
    raise SignatureError(
        f"the {name} of irad.jvp({function.__qualname__}, …) are {with_article(type(given).__name__)}, not a tuple",
        "pass a tuple with one entry for each argument, also of one: irad.jvp(f, (x,), (dx,))",
        "irad.jvp takes the arguments of the function together, and their tangents",
        location_of(function),
    )


def with_direction(args: Sequence[Any], positions: Sequence[int], direction: Any) -> tuple[Any, ...]:
    """The arguments of a call of `pushforward`: the direction follows the last argument that is differentiated."""
    after = max(positions) + 1
    return *args[:after], direction, *args[after:]


def written_with_direction(args: str, positions: Sequence[int], direction: str) -> str:
    """Code for arguments of `pushforward` from a tuple: Numba needs each one before a star spelled out."""
    after = max(positions) + 1
    return "".join(f"{args}[{i}], " for i in range(after)) + f"{direction}, *{args}[{after}:]"


def directions(f: Callable[..., Any], count: int, tangents: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the tangents that are not None.

    Raises:
        SignatureError: there are more or fewer tangents than the ``count`` arguments of a call, or all are None.
    """
    argnums = tuple(i for i, tangent in enumerate(tangents) if tangent is not None)
    if len(tangents) == count and argnums:
        return argnums
    raise SignatureError(
        f"{getattr(f, '__qualname__', repr(f))} is called with {count} arguments and {len(tangents)} tangents, of "
        f"which {len(argnums)} are not None",
        "pass one tangent for each argument, None for constants, and at least one that is not None",
        "a derivative is taken in a direction, which the tangents give",
        location_of(callee_of(f)[0].py_func),
    )


def _jvp_typed(
    f: Any, args: Any, tangents: Any, has_aux: Any = False, argnums: Any = None, argnames: Any = None
) -> Callable[..., Any]:
    """Gives the implementation of a call of `jvp` by its types: which tangents are None is known then."""
    function, aux = function_behind(f), literal(has_aux, "has_aux")
    wanted = selected_if_any(function, literal(argnums, "argnums"), literal(argnames, "argnames"))
    if wanted is not None:
        return _pushed(function, wanted.argnums, aux, wanted.positions, "tangents")
    for name, value in (("args", args), ("tangents", tangents)):
        if not isinstance(value, types.BaseTuple):
            raise SignatureError(
                f"{name} of irad.jvp inside compiled code is {described(value)}",
                "write a tuple: irad.jvp(f, (x,), (x_tangent,))",
                "which arguments have a tangent is decided when the function is compiled",
                SourceLocation.here(),
            )
    given = directions(function, len(args.types), [None if each == types.none else each for each in tangents.types])
    return _pushed(function, given, aux, given, f"({''.join(f'tangents[{i}], ' for i in given)})")


def _pushed(
    function: Any, argnums: int | Sequence[int], has_aux: bool, positions: Sequence[int], direction: str
) -> Callable[..., Any]:
    """Code of a call of `jvp`."""
    parameters = "f, args, tangents, has_aux=False, argnums=None, argnames=None"
    call = written_with_direction("args", positions, direction)
    body = f"def jvp({parameters}):\n    return push({call})\n"
    return function_from("jvp", body, "irad.jvp", {"push": pushforward(function, argnums, has_aux)})


offer(jvp, _jvp_typed)
