"""``irad.linearize(f, …)`` written inside compiled code: a linear map is a value that holds copies of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.extending import overload, register_model

from irad.api.compiled.call_site import CallSite
from irad.api.compiled.closures import ClosureModel, ClosureType, closure_maker, type_of_call
from irad.api.forward import pushforward, with_direction, written_with_direction
from irad.api.jit import jit
from irad.api.linearize import CHANGED, TOLERANCE, check_copyable, linearize
from irad.api.nopython import function_behind
from irad.api.selection import chosen, selected
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.signature import without_derivative
from irad.frontend.custom.rules_from_partials import kept_value, zero_tangent
from irad.frontend.generated import function_from
from irad.frontend.offered import refuse_on_device
from irad.frontend.values import abi
from irad.frontend.values.tree import LeafKind

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


refuse_on_device(linearize, "irad.jvp(f, args, tangents), for each direction")


@overload(linearize, prefer_literal=True, strict=False)
def typed(f: Any, /, *args: Any, **keywords: Any) -> Callable[..., Any]:
    """What a call does, as Python code that Numba compiles, for the types of its arguments."""
    function, call = function_behind(f), CallSite("linearize", args, keywords)
    given = call.positional
    arguments = [abi.Argument(i, f"argument {i}", each, abi.leaves_of(each)) for i, each in enumerate(given)]
    for argument in arguments:
        check_copyable(function, argument)
    argnums, has_aux = chosen(function, call.option("argnums"), call.option("argnames"), None), call.option("has_aux")
    if argnums is None:
        active = tuple(a.position for a in arguments if any(leaf.kind is not LeafKind.INERT for leaf in a.leaves))
    else:
        active = selected(function, argnums).positions
    if not active:
        raise without_derivative(function, tuple(arguments))
    push = pushforward(function, active, bool(has_aux))
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
    places = active if argnums is not None else tuple(range(len(given)))
    apply = jit(_apply(function, push, places, active, has_aux=bool(has_aux)))
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


def _apply(
    function: Any, push: Any, places: Sequence[int], active: Sequence[int], *, has_aux: bool
) -> Callable[..., Any]:
    """The function behind a linear map, which is given tangents of the arguments at these places."""
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
        "alike": alike,
        "SignatureError": SignatureError,
    }
    made = function_from("apply", source, _FILE, {**scope, "problem": problem, "remedy": remedy, "reason": reason})
    made.__name__ = function.py_func.__qualname__
    return made


def direction(tangent: object, value: object) -> Any:
    """A tangent that may be overwritten: a copy, or zeros for None."""
    raise NotImplementedError("called in compiled code only")


def alike(one: object, other: object) -> Any:
    """Whether values are the same but for rounding."""
    raise NotImplementedError("called in compiled code only")


@overload(direction)
def _direction_typed(tangent, value):  # type: ignore[no-untyped-def]
    if tangent == types.none:
        return lambda tangent, value: zero_tangent(value)
    return lambda tangent, value: kept_value(tangent)


@overload(alike)
def _alike_typed(one, other):  # type: ignore[no-untyped-def]
    if isinstance(one, types.BaseTuple):
        parts = "".join(f" and alike(one[{i}], other[{i}])" for i in range(len(one)))
        return function_from("parts", f"def parts(one, other):\n    return True{parts}\n", _FILE, {"alike": alike})
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
