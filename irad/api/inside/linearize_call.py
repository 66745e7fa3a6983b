"""``irad.linearize(f, …)`` written inside compiled code: a linear map is a value that holds copies of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numba.core import cgutils, types, typing
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, overload, register_model

from irad.api.forward import pushforward
from irad.api.inside.written_call import WrittenCall
from irad.api.jit import jit
from irad.api.linearize import CHANGED, TOLERANCE, check_copyable, linearize
from irad.api.nopython import function_behind
from irad.api.positions import chosen
from irad.api.selection import selected
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.signature import without_derivative
from irad.frontend.custom.contract import kept_value
from irad.frontend.custom.forward.partials import zero_tangent
from irad.frontend.generated import emit_generated, function_from
from irad.frontend.numba.target import typing_context
from irad.frontend.values import abi
from irad.frontend.values.tree import LeafKind

_CALL: Final = "irad.linear_map"
_FILE: Final = "irad.linearize"


class LinearMapType(types.Callable):
    """The type of a linear map.

    Attributes:
        apply: the compiled ``(args, value, *tangents) -> tangent``.
        count: how many tangents it takes.
        args: the type of the arguments, a tuple.
        value: the type of the value.
    """

    def __init__(self, apply: Any, count: int, args: Any, value: Any) -> None:
        self.apply, self.count, self.args, self.value = apply, count, args, value
        super().__init__(name=f"linear map of {apply.py_func.__name__} ({id(apply)}, {args}, {value})")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the map is called."""
        if len(args) != self.count:
            raise SignatureError(
                f"a linear map is given {len(args)} tangents",
                f"pass {self.count}, one for each argument with a derivative, and None for zeros",
                "a derivative is taken in a direction, which the tangents give",
                SourceLocation.here(),
            )
        found = context.resolve_function_type(types.Dispatcher(self.apply), (self.args, self.value, *args), kws)
        return None if found is None else typing.signature(found.return_type, *args, recvr=self)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook for messages."""
        return [], True

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook when it lowers a call."""
        return _CALL


@register_model(LinearMapType)
class LinearMapModel(models.StructModel):
    """What a linear map holds."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("args", kind.args), ("value", kind.value)])


@lower_builtin(_CALL, LinearMapType, types.VarArg(types.Any))
def _call_map(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
    kind, *tangents = signature.args
    held = cgutils.create_struct_proxy(kind)(context, builder, values[0])
    names = "".join(f", t{i}" for i in range(len(tangents)))
    call = function_from(
        "call", f"def call(a, v{names}):\n    return apply(a, v{names})\n", _FILE, {"apply": kind.apply}
    )
    inner = typing.signature(signature.return_type, kind.args, kind.value, *tangents)
    return emit_generated(context, builder, call, inner, (held.args, held.value, *values[1:]))


def _maker(kind: LinearMapType) -> Any:
    """An intrinsic that makes a linear map of copies of the arguments and of the value."""

    @intrinsic
    def make(context: Any, args: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
        def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            made.args, made.value = values
            for value, value_type in zip(values, signature.args, strict=True):
                context.nrt.incref(builder, value_type, value)
            return made._getvalue()

        return kind(args, value), lower

    return make


@overload(linearize, prefer_literal=True, strict=False)
def typed(f: Any, /, *args: Any, **keywords: Any) -> Callable[..., Any]:
    """What a call does, as Python code that Numba compiles, for the types of its arguments."""
    function, call = function_behind(f), WrittenCall("linearize", args, keywords)
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
    tangents = types.BaseTuple.from_types(tuple(_typed(zero_tangent, given[i]) for i in active))
    value = _typed(push, tangents, *given).types[0]
    if value == types.none:
        raise SignatureError(
            f"compiled code linearizes {function.py_func.__qualname__}, which returns nothing",
            f"irad.pushforward({function.py_func.__name__}), whose tangents are overwritten like the arguments",
            "a linear map inside compiled code returns the tangent of the value",
            SourceLocation.here(),
        )
    kept = types.BaseTuple.from_types(tuple(_typed(kept_value, each) for each in given))
    places = active if argnums is not None else tuple(range(len(given)))
    apply = jit(_apply(function, push, places, active, has_aux=bool(has_aux)))
    make = _maker(LinearMapType(apply, len(places), kept, _typed(kept_value, value)))
    zeros = "".join(f"zero_tangent(args[{i}]), " for i in active)
    aux = ", aux" if has_aux else ""
    body = (
        f"    args = ({call.values})\n"
        "    kept = kept_value(args)\n"
        f"    value, _{aux} = push(({zeros}), *args)\n"
        f"    return value, make(kept, kept_value(value)){aux}\n"
    )
    scope = {"kept_value": kept_value, "push": push, "zero_tangent": zero_tangent, "make": make}
    return call.function(body, scope)


def _typed(function: Any, *given: Any) -> Any:
    """The type of what a function returns."""
    context = typing_context()
    kind = types.Dispatcher(function) if hasattr(function, "py_func") else context.resolve_value_type(function)
    return context.resolve_function_type(kind, given, {}).return_type


def _apply(
    function: Any, push: Any, places: Sequence[int], active: Sequence[int], *, has_aux: bool
) -> Callable[..., Any]:
    """The function behind a linear map, which is given tangents of the arguments at these places."""
    tangents = "".join(f", t{i}" for i in places)
    aux = ", _" if has_aux else ""
    directions = "".join(f"direction(t{i}, args[{i}]), " for i in active)
    source = (
        f"def apply(args, value{tangents}):\n"
        f"    found, tangent{aux} = push(({directions}), *kept_value(args))\n"
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
