"""`linearize`: the value of a function now, its derivative in any direction later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.extending import overload, register_model

from irad.api.argument_types import types_of
from irad.api.closures import ClosureModel, ClosureType, closure_maker, direction, type_of_call
from irad.api.forward import pushforward, with_direction, written_with_direction
from irad.api.jit import jit
from irad.api.makers import maker
from irad.api.nopython import CallSite, function_behind, offer_call
from irad.api.selection import callee_of, selected_if_any
from irad.api.structures.functions import make_zero
from irad.data.floats import floats_only
from irad.data.structure import flattened
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.problems import default_positions
from irad.frontend.calls.signature import without_derivative
from irad.frontend.calls.untypable import as_numpy
from irad.frontend.custom.rules_from_partials import kept_value, zero_tangent
from irad.frontend.custom.stop_gradient import stop_gradient
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described, location_of
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
        self, primal: CPUDispatcher, push: Any, positions: tuple[int, ...], args: tuple[Any, ...], *, are_chosen: bool
    ) -> None:
        self._name, self._place = primal.py_func.__qualname__, location_of(primal.py_func)
        self._push, self._positions, self._are_chosen = push, positions, are_chosen
        self._args = copied(args)
        self._results: Any = None

    def start(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Runs the function at its own arguments, which it may write to; returns the value, and aux if there is one."""
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


@maker
def linearize(
    f: Callable[..., Any],
    /,
    *args: Any,
    has_aux: bool = False,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function and its derivative there as a linear map: the counterpart of `irad.vjp` in forward mode.

    All arguments with floats are differentiated, or those that ``argnums`` or ``argnames`` names; ints, strings and the
    like are constants. Arrays that the function writes to are written, as in a plain call. The map takes a tangent for
    each argument, or for each that is named (None for zeros), and returns that of the value. It can be created and
    called in compiled code.

    **Cost.** Only copies of the arguments and of the value are saved. Each call of the map runs the function again with
    its tangents, as `irad.jvp` does, and costs as much; so does `irad.linearize` itself. If several directions are
    known at once, `irad.BatchDuplicated` shares one run. Output that the function prints is printed each time. A
    function that gives another value when it runs again, because it draws random numbers, is refused by the map.

    Args:
        f: the function, as in `irad.grad`; it may return anything, or nothing.
        args: its arguments: numbers, arrays, tuples and lists of these, and anything without a derivative.
        has_aux: ``f`` returns ``(value, aux)``, and only ``value`` has a tangent.
        argnums: position, or tuple of positions, of the arguments that have a tangent.
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
    wanted = selected_if_any(f, argnums, argnames)
    if wanted is not None:
        args = tuple(each if i in wanted.own_positions else as_numpy(each) for i, each in enumerate(args))
    kinds = types_of(primal, (*leading, *args))
    for argument in abi.arguments_of(primal.py_func, kinds)[len(leading) : len(leading) + len(args)]:
        check_copyable(primal, argument)
    if wanted is None:
        given = (position - len(leading) for position in default_positions(primal, kinds))
        positions = tuple(position for position in given if 0 <= position < len(args))
    else:
        positions = wanted.own_positions
    if not positions:
        raise without_derivative(primal, abi.arguments_of(primal.py_func, kinds))
    push = pushforward(f, positions, has_aux, options=options)
    made = LinearMap(primal, push, positions, args, are_chosen=wanted is not None)
    value, *aux = made.start(args)
    return (value, made, *aux)


def check_copyable(primal: CPUDispatcher, argument: Any) -> None:
    """Checks that a linear map can keep an argument.

    Raises:
        SignatureError: it points to memory that would not be copied.
    """
    if any(leaf.kind in (LeafKind.OBJECT, LeafKind.RECORD) for leaf in argument.leaves):
        raise SignatureError(
            f"{argument} of {primal.py_func.__qualname__} is {described(argument.type)}, and cannot be copied",
            "(a) irad.jvp, which runs the function at once, or (b) pass its numbers as arrays",
            "a linear map reruns the function at the arguments for which it was created",
            location_of(primal.py_func),
            focus=argument.name,
        )


copied = stop_gradient


def zeros_of(value: Any) -> Any:
    """The tangent of a constant."""
    return floats_only(make_zero(value))


def alike(one: Any, other: Any) -> bool:
    """True if values are the same but for rounding; values without numbers are ignored."""
    mine, others = (list(flattened(each)) for each in (one, other))
    return len(mine) == len(others) and all(map(_are_near, mine, others))


def _are_near(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray | int | float | complex | np.number) and np.asarray(one).dtype.kind in "biufc":
        scale = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
        return np.shape(one) == np.shape(other) and np.allclose(
            one, other, TOLERANCE, TOLERANCE * scale, equal_nan=True
        )
    return True


# In compiled code a linear map is a value that holds copies of the arguments.

_FILE: Final = "irad.linearize"


class LinearMapType(ClosureType):
    """The type of a linear map, which keeps the arguments and the value; ``count`` is the number of tangents."""

    def __init__(self, apply: Any, count: int, args: Any, value: Any) -> None:
        self._count = count
        super().__init__("linear map", apply, types.Tuple((args, value)))

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the map is called."""
        if len(args) != self._count:
            raise SignatureError(
                f"a linear map is given {len(args)} tangents",
                f"pass {self._count}, one for each argument with a derivative, and None for zeros",
                "a derivative is taken in a direction, which the tangents give",
                SourceLocation.here(),
            )
        return super().get_call_type(context, args, kws)


register_model(LinearMapType)(ClosureModel)


def _typed(call: CallSite) -> Callable[..., Any]:
    """Python code of a call, which Numba compiles, for the types of its arguments."""
    function, given = function_behind(call.first), call.positional
    arguments = [abi.Argument(i, f"argument {i}", each, abi.leaves_of(each)) for i, each in enumerate(given)]
    for argument in arguments:
        check_copyable(function, argument)
    wanted, has_aux = call.selected(function), call.has_aux
    if wanted is None:
        active = tuple(a.position for a in arguments if any(leaf.kind is not LeafKind.INERT for leaf in a.leaves))
    else:
        active = wanted.positions
    if not active:
        raise without_derivative(function, tuple(arguments))
    push = pushforward(function, active, has_aux)
    tangents = types.BaseTuple.from_types(tuple(type_of_call(zero_tangent, given[i]) for i in active))
    value = type_of_call(push, *with_direction(given, active, tangents)).types[0]
    if value == types.none:
        raise SignatureError(
            f"compiled code linearizes {function.py_func.__qualname__}, which returns nothing",
            f"irad.pushforward({function.py_func.__name__}), whose tangents are overwritten like the arguments",
            "a linear map inside compiled code returns the tangent of the value",
            SourceLocation.here(),
        )
    kept = types.BaseTuple.from_types(tuple(type_of_call(kept_value, each) for each in given))
    places = tuple(range(len(given))) if wanted is None else active
    apply = jit(_apply(function, push, places, active, has_aux=has_aux))
    make = closure_maker(LinearMapType(apply, len(places), kept, type_of_call(kept_value, value)))
    zeros = "".join(f"zero_tangent(args[{i}]), " for i in active)
    aux = ", aux" if has_aux else ""
    body = (
        f"    args = ({call.values})\n"
        "    kept = kept_value(args)\n"
        f"    value, _{aux} = push({written_with_direction('args', active, f'({zeros})')})\n"
        f"    return value, make((kept, kept_value(value))){aux}\n"
    )
    scope = {"kept_value": kept_value, "push": push, "zero_tangent": zero_tangent, "make": make}
    return call.function(body, scope)


offer_call(linearize, _typed)


def _apply(
    function: Any, push: Any, places: Sequence[int], active: Sequence[int], *, has_aux: bool
) -> Callable[..., Any]:
    """The function that a linear map calls with tangents of the arguments at these places."""
    tangents = "".join(f", t{i}" for i in places)
    aux = ", _" if has_aux else ""
    directions = "".join(f"direction(t{i}, args[{i}]), " for i in active)
    source = (
        f"def apply(kept{tangents}):\n"
        "    args, value = kept\n"
        "    own = kept_value(args)\n"
        f"    found, tangent{aux} = push({written_with_direction('own', active, f'({directions})')})\n"
        "    if not alike(found, value):\n"
        "        raise SignatureError(problem, remedy, reason)\n"
        "    return tangent\n"
    )
    problem, remedy, reason = CHANGED
    scope = {
        "push": push,
        "direction": direction,
        "kept_value": kept_value,
        "alike": are_alike,
        "SignatureError": SignatureError,
    }
    made = function_from("apply", source, _FILE, {**scope, "problem": problem, "remedy": remedy, "reason": reason})
    made.__name__ = function.py_func.__qualname__
    return made


def are_alike(one: object, other: object) -> Any:
    """True if values are the same but for rounding."""
    raise NotImplementedError("called in compiled code only")


@overload(are_alike)
def _alike_typed(one, other):  # type: ignore[no-untyped-def]
    if isinstance(one, types.BaseTuple):
        parts = "".join(f" and alike(one[{i}], other[{i}])" for i in range(len(one)))
        return function_from("parts", f"def parts(one, other):\n    return True{parts}\n", _FILE, {"alike": are_alike})
    if isinstance(one, types.Array) and isinstance(one.dtype, types.Number):
        return _alike_arrays
    if isinstance(one, types.Number):
        return lambda one, other: one == other or one != one or abs(one - other) <= TOLERANCE * abs(other)
    return lambda one, other: True


def _alike_arrays(one, other):  # type: ignore[no-untyped-def]
    if one.shape != other.shape:
        return False
    scale = 0.0
    for index in np.ndindex(other.shape):
        if np.isfinite(other[index]):
            scale = max(scale, abs(other[index]))
    for index in np.ndindex(one.shape):
        same = one[index] == other[index] or one[index] != one[index]
        if not (same or abs(one[index] - other[index]) <= TOLERANCE * scale):
            return False
    return True
