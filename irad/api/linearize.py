"""`linearize`: the value of a function now, its derivative in any direction later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irad.api.argument_types import types_of
from irad.api.forward import pushforward, with_direction
from irad.api.selection import callee_of, chosen, selected
from irad.api.structures.functions import make_zero
from irad.data.floats import floats_only
from irad.data.structure import flattened
from irad.errors import SignatureError
from irad.frontend.calls.problems import default_positions
from irad.frontend.calls.raising import public
from irad.frontend.calls.signature import without_derivative
from irad.frontend.custom.stop_gradient import stop_gradient
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.messages import described
from irad.frontend.values import abi
from irad.frontend.values.tree import LeafKind
from irad.options import Options

TOLERANCE = 1e-6
CHANGED = (
    "the function that was linearized gives another value now than when it was linearized",
    "(a) have it draw no random numbers and change no objects or (b) irad.jvp, which runs the function once",
    "the linear map runs it again at the same arguments, so its derivative would be that of another value",
)


class LinearMap:
    """Maps tangents of a function's arguments to the tangent of its value.

    It may be called repeatedly and in any thread. It copies its arguments, so they may be overwritten.
    """

    __slots__ = ("_are_chosen", "_args", "_name", "_place", "_positions", "_push", "_results")

    def __init__(
        self, primal: Any, push: Any, positions: tuple[int, ...], args: tuple[Any, ...], *, are_chosen: bool
    ) -> None:
        self._name, self._place = primal.py_func.__qualname__, location_of(primal.py_func)
        self._push, self._positions, self._are_chosen = push, positions, are_chosen
        self._args = copied(args)
        self._results: Any = None

    def start(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Runs the function at its own arguments, which it may write to: the value, and what else it returned."""
        zeros = tuple(zeros_of(args[i]) for i in self._positions)
        value, _, *aux = self._push(*with_direction(args, self._positions, zeros))
        self._results = copied(args if value is None else value)
        return value, *aux

    def __call__(self, *tangents: Any) -> Any:
        """The tangent of the value.

        Args:
            tangents: one for each argument, with its structure, or one for each that was selected with argnums or
                argnames; None stands for zeros.

        Returns:
            A tangent with the structure of the value. If the function returns nothing, a tuple with an entry for each
            argument: the tangent of what arrays in it hold afterwards, else None.

        Raises:
            SignatureError: a tangent does not fit its argument; or the function gives another value than before.
        """
        given, args = self._tangents(tangents), copied(self._args)
        value, tangent, *_ = self._push(*with_direction(args, self._positions, given))
        if not alike(args if value is None else value, self._results):
            problem, remedy, reason = CHANGED
            raise SignatureError(problem, remedy, reason, self._place)
        if value is not None:
            return tangent
        written = dict(zip(self._positions, given, strict=True))
        return tuple(written.get(i) for i in range(len(args)))

    def _tangents(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        places = self._positions if self._are_chosen else tuple(range(len(self._args)))
        count = len(places)
        wrong = [i for i, each in zip(places, given, strict=False) if each is not None and i not in self._positions]
        if len(given) != count or wrong:
            raise SignatureError(
                f"the linear map of {self._name} is given "
                + (
                    f"a tangent for argument {wrong[0]}, which has no derivative" if wrong else f"{len(given)} tangents"
                ),
                f"pass {count}, one for each of argnums, None for zeros"
                if self._are_chosen
                else f"pass {count}, one for each argument, and None for those that are not numbers or arrays of these",
                "a derivative is taken in a direction, which the tangents give",
                self._place,
            )
        found = dict(zip(places, given, strict=True))
        return tuple(zeros_of(self._args[i]) if found[i] is None else copied(found[i]) for i in self._positions)

    def __repr__(self) -> str:
        return f"<linear map of {self._name}>"


@public
def linearize(
    f: Callable[..., Any],
    /,
    *args: Any,
    has_aux: bool = False,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function, and its derivative there as a linear map: the counterpart of `vjp` in forward mode.

    All arguments with floats are differentiated, or those that ``argnums`` or ``argnames`` names; ints, strings and the
    like are constants. Arrays that the function writes to are written, as in a plain call. The map takes a tangent for
    each argument, or for each that is named (None for zeros), and returns that of the value. It can be made, and
    called, in compiled code.

    **Cost.** Nothing is saved but copies of the arguments and of the value. Each call of the map runs the function
    again beside its tangents, as `jvp` does, and costs as much; so does `linearize` itself. For directions that are
    known at once, `BatchDuplicated` shares one run. What the function prints, it prints each time; a function that
    gives another value when it runs again, because it draws random numbers, is refused by the map.

    Args:
        f: the function, as in `irad.grad`; it may return anything, or nothing.
        args: its arguments: numbers, arrays, tuples and lists of these, and anything without a derivative.
        has_aux: ``f`` returns ``(value, aux)``, and only ``value`` has a tangent.
        argnums: a position, or a tuple of positions: of the arguments that have a tangent.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        ``(value, map)``; with ``has_aux``, ``(value, map, aux)``.

    Raises:
        SignatureError: no argument has a derivative, or one is an object that cannot be copied.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x):
        ...     return x * x
        >>> value, tangent_at = irad.linearize(squares, np.array([1.0, 3.0]))
        >>> value
        array([1., 9.])
        >>> tangent_at(np.array([1.0, 0.0])), tangent_at(np.array([0.0, 1.0]))
        (array([2., 0.]), array([0., 6.]))
    """
    primal, leading = callee_of(f)
    argnums = chosen(f, argnums, argnames, None)
    kinds = types_of(primal, (*leading, *args))
    for argument in abi.arguments_of(primal.py_func, kinds)[len(leading) : len(leading) + len(args)]:
        check_copyable(primal, argument)
    found = default_positions(primal, kinds) if argnums is None else selected(f, argnums).positions
    given = (position - len(leading) for position in found)
    positions = tuple(position for position in given if argnums is not None or 0 <= position < len(args))
    if not positions:
        raise without_derivative(primal, abi.arguments_of(primal.py_func, kinds))
    push = pushforward(f, positions, has_aux, options=options)
    made = LinearMap(primal, push, positions, args, are_chosen=argnums is not None)
    value, *aux = made.start(args)
    return (value, made, *aux)


def check_copyable(primal: Any, argument: Any) -> None:
    """Checks that a linear map can keep an argument.

    Raises:
        SignatureError: it leads to memory that would not be copied.
    """
    if any(leaf.kind in (LeafKind.OBJECT, LeafKind.RECORD) for leaf in argument.leaves):
        raise SignatureError(
            f"{argument} of {primal.py_func.__qualname__} is {described(argument.type)}, and cannot be copied",
            "(a) irad.jvp, which runs the function at once, or (b) pass its numbers as arrays",
            "a linear map runs the function again at the arguments that it was made with",
            location_of(primal.py_func),
            focus=argument.name,
        )


copied = stop_gradient


def zeros_of(value: Any) -> Any:
    """The tangent of what does not change."""
    return floats_only(make_zero(value))


def alike(one: Any, other: Any) -> bool:
    """Whether values are the same but for rounding; what holds no numbers is not looked at."""
    mine, others = (list(flattened(each)) for each in (one, other))
    return len(mine) == len(others) and all(map(_are_near, mine, others))


def _are_near(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray | int | float | complex | np.number) and np.asarray(one).dtype.kind in "biufc":
        scale = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
        return np.shape(one) == np.shape(other) and np.allclose(
            one, other, TOLERANCE, TOLERANCE * scale, equal_nan=True
        )
    return True
