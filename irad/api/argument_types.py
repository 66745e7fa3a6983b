"""Numba's types of the arguments of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from numba import typeof
from numba.core import types
from numba.core.errors import ForceLiteralArg
from numba.core.registry import CPUDispatcher

from irad.errors import SignatureError
from irad.frontend.calls.signature import check_representable
from irad.frontend.calls.untypable import untypable
from irad.frontend.numba.messages import location_of
from irad.frontend.packing.packed import packed

_T = TypeVar("_T")


def with_types(primal: CPUDispatcher, args: tuple[Any, ...], use: Callable[[tuple[Any, ...]], _T]) -> _T:
    """Result of ``use`` for the types of a call's arguments, called again with literal types where Numba asks for them.

    Args:
        primal: the dispatcher.
        args: arguments of one call, or Numba types in their place.
        use: takes one type per parameter, star arguments as one tuple.

    Raises:
        SignatureError: the function does not take such arguments.
        BackendError: Numba cannot type one.
    """
    values = bound(primal, args)
    kinds = kinds_of(primal, values)
    return literal_where_asked(primal, values, kinds, lambda found: use(tuple(found.values())))


def literal_where_asked(
    primal: CPUDispatcher, values: dict[str, Any], kinds: dict[str, Any], use: Callable[[dict[str, Any]], _T]
) -> _T:
    """Result of ``use`` for the types of the parameters, called again with literal types where Numba asks for them.

    Args:
        primal: the dispatcher.
        values: of the parameters, as `bound` gives them.
        kinds: their types, as `kinds_of` gives them.
        use: takes the type of each parameter, by name.
    """
    while True:
        try:
            return use(kinds)
        except ForceLiteralArg as wanted:
            kinds = _with_literals(primal, kinds, values, wanted)


def types_of(primal: CPUDispatcher, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Numba types of a call, one for each parameter: star arguments as one tuple, defaults as Numba passes them.

    Raises:
        SignatureError: the function takes another number of arguments.
        BackendError: Numba has no type for one.
    """
    return tuple(kinds_of(primal, bound(primal, args)).values())


def bound(primal: CPUDispatcher, args: tuple[Any, ...]) -> dict[str, Any]:
    """The value of each parameter as Numba is passed it, defaults included."""
    signature = inspect.signature(primal.py_func)
    try:
        bound = signature.bind(*args)
    except TypeError as error:
        raise SignatureError(
            f"{primal.py_func.__qualname__} cannot be called with these arguments: {error}",
            f"pass the arguments of one call: {primal.py_func.__name__}{signature}",
            "irad examines the code that Numba compiles for the argument types of one call",
            location_of(primal.py_func),
        ) from None
    values = {}
    for name, parameter in signature.parameters.items():
        missing = () if parameter.kind is parameter.VAR_POSITIONAL else types.Omitted(parameter.default)
        values[name] = packed(bound.arguments.get(name, missing))
    return values


def kinds_of(primal: CPUDispatcher, values: dict[str, Any]) -> dict[str, Any]:
    """The Numba type of each parameter.

    Raises:
        IradError: Numba has no type for one, or irad cannot represent it.
    """
    wrong = untypable(primal.py_func, values)
    if wrong is not None:
        raise wrong
    kinds = {name: _type_of(value) for name, value in values.items()}
    check_representable(primal.py_func, tuple(kinds.values()))
    return kinds


def _type_of(value: Any) -> Any:
    if isinstance(value, types.Type):
        return value
    if isinstance(value, tuple) and any(isinstance(entry, types.Type) for entry in value):
        return types.BaseTuple.from_types(tuple(map(_type_of, value)))
    return typeof(value)


def _with_literals(primal: CPUDispatcher, kinds: dict[str, Any], values: dict[str, Any], wanted: Any) -> dict[str, Any]:
    """The types with those that Numba asks for made literal."""
    names = list(kinds)
    changed = {names[i]: types.literal(values[names[i]]) for i in wanted.requested_args if _is_value(values[names[i]])}
    if all(kinds[name] == kind for name, kind in changed.items()):
        raise SignatureError(
            f"{primal.py_func.__qualname__} needs the values of {', '.join(names[i] for i in wanted.requested_args)}",
            "pass values, not types",
            "Numba compiles the function for these values, not for their types",
            location_of(primal.py_func),
        )
    return {**kinds, **changed}


def _is_value(value: Any) -> bool:
    return isinstance(value, int | str | bool)
