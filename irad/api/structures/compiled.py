"""`irad.data` inside compiled code: functions written for the types that Numba finds, and `VectorSpace` as a value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.core.datamodel import models
from numba.extending import (
    NativeValue,
    box,
    intrinsic,
    make_attribute_wrapper,
    overload,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)
from numba.misc.special import typeof

from irad.api.nopython import literal
from irad.api.structures.functions import (
    accumulate,
    copy,
    dot,
    from_vec,
    leaves,
    make_zero,
    make_zero_,
    norm,
    one_hot,
    recursive_map,
    recursive_map_,
    recursive_map_into,
    remake_zero_,
    to_vec,
)
from irad.api.structures.space import VectorSpace
from irad.errors import HERE, SignatureError
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.structures import functions
from irad.frontend.structures.functions import COPY, ZERO, Call, arithmetic
from irad.frontend.structures.kinds import vectors
from irad.frontend.structures.walk import Operation
from irad.frontend.values.tree import content_of


def _is_default(value: Any) -> bool:
    """True if an argument of a call has its default: None or False."""
    if isinstance(value, types.Omitted | types.Literal):
        value = getattr(value, "literal_value", getattr(value, "value", None))
    return value is None or value is False or value == types.none


def check_options(name: str, **options: Any) -> None:
    """Refuses options that are about objects of Python.

    Raises:
        SignatureError: one is not what it is by default.
    """
    for option, value in options.items():
        if not _is_default(value):
            raise SignatureError(
                f"compiled code passes {option}= to {name}",
                f"(a) leave it out or (b) call {name} from Python",
                "compiled code works on types, but these options concern Python objects",
                HERE,
            )


_OPTIONS = "seen=None, copy_if_inactive=False, inactive=None"


def _new(function: Callable[..., Any], operation: Operation) -> None:
    name = f"irad.data.{function.__name__}"

    def typed(x: Any, seen: Any = None, copy_if_inactive: Any = False, inactive: Any = None) -> Callable[..., Any]:
        check_options(name, seen=seen, copy_if_inactive=copy_if_inactive, inactive=inactive)
        return functions.make(Call(name, f"x, {_OPTIONS}"), operation, {"x": x})

    overload(function, prefer_literal=True, strict=False)(typed)


def _cleared(function: Callable[..., Any], *, keeps: bool) -> None:
    name = f"irad.data.{function.__name__}"

    def typed(x: Any, inactive: Any = None) -> Callable[..., Any]:
        check_options(name, inactive=inactive)
        return functions.overwrite(Call(name, "x, inactive=None"), ZERO, {"x": x}, {"x": x}, keeps=keeps)

    overload(function, strict=False)(typed)


def _of_one(function: Callable[..., Any], write: Callable[..., Any]) -> None:
    name = f"irad.data.{function.__name__}"

    def typed(x: Any, inactive: Any = None) -> Callable[..., Any]:
        check_options(name, inactive=inactive)
        made: Callable[..., Any] = write(Call(name, "x, inactive=None"), {"x": x})
        return made

    overload(function, strict=False)(typed)


@overload(dot, strict=False)
def _dot(x: Any, y: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options("irad.data.dot", inactive=inactive)
    return functions.dot(Call("irad.data.dot", "x, y, inactive=None"), {"x": x, "y": y})


@overload(from_vec, strict=False)
def _from_vec(vector: Any, like: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options("irad.data.from_vec", inactive=inactive)
    return functions.from_vec(Call("irad.data.from_vec", "vector, like, inactive=None"), "vector", "like", like)


@overload(accumulate, prefer_literal=True, strict=False)
def _accumulate(x: Any, y: Any, f: Any = None, atomic: Any = False, inactive: Any = None) -> Callable[..., Any]:
    name = "irad.data.accumulate"
    check_options(name, atomic=atomic, inactive=inactive)
    operation = functions.sum_with(None if _is_default(f) else "f")
    call = Call(name, "x, y, f=None, atomic=False, inactive=None")
    return functions.overwrite(call, operation, {"x": x, "y": y}, {"x": x})


# --- functions that are mapped ----------------------------------------------------------------------------------------

_MOST_INPUTS: Final = 8
_INPUTS: Final = tuple(f"a{i}" for i in range(_MOST_INPUTS))
_ABSENT: Final = "irad: no argument"
_NAMED: Final = {"outputs": "1", "seen": "None", "copy_if_inactive": "False", "inactive": "None"}


def _overload_map(function: Callable[..., Any], write: Callable[..., Any], before: str, *, without: str = "") -> None:
    """Tells Numba of one of these functions: it takes the parameters of a call from those that are written out."""
    name = f"irad.data.{function.__name__}"
    named = {option: default for option, default in _NAMED.items() if option != without}
    inputs, options = (", ".join(f"{each}=_absent" for each in _INPUTS), ", ".join(map("=".join, named.items())))
    head = f"{before}, {inputs}, {options}"
    given = ", ".join(f"{option}={option}" for option in named if option != "outputs")
    body = f"    return typed({before}, ({', '.join(_INPUTS)}), outputs, dict({given}))\n"
    scope = {"_absent": _ABSENT}

    def typed(f: Any, *rest: Any) -> Callable[..., Any]:
        *given_output, arguments, outputs, chosen = rest
        check_options(name, **chosen)
        kinds = {each: kind for each, kind in zip(_INPUTS, arguments, strict=True) if isinstance(kind, types.Type)}
        count = literal(outputs, "outputs")
        operation = functions.mapped("f", f, len(kinds), count)
        found: Callable[..., Any] = write(Call(name, head, scope=scope), operation, kinds, *given_output, count)
        return found

    typing = function_from("typing", f"def typing({head}):\n{body}", "irad.data", {"typed": typed, **scope})
    overload(function, prefer_literal=True, strict=False)(typing)


def _map_into(returns: bool) -> Callable[..., Any]:
    def write(call: Call, operation: Any, kinds: dict[str, Any], output: Any, count: int) -> Callable[..., Any]:
        outputs = {"output": output}
        if count > 1:
            outputs = {f"output[{i}]": output.types[i] for i in range(count)}
        return functions.overwrite(call, operation, kinds, outputs, returns=returns)

    return write


_overload_map(recursive_map, functions.make, "f")
_overload_map(recursive_map_into, _map_into(True), "f, output", without="copy_if_inactive")
_overload_map(recursive_map_, _map_into(False), "f, output", without="copy_if_inactive")


@overload(one_hot, strict=False)
def _one_hot(x: Any, index: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options("irad.data.one_hot", inactive=inactive)

    def made(x, index, inactive=None):  # type: ignore[no-untyped-def]
        vector = np.zeros(len(to_vec(x)))
        if index < 0 or index >= len(vector):
            raise SignatureError(
                "the structure has no such element",
                "pass the index of an element of irad.data.to_vec(x), counted from 0",
                "a shared element counts once, a complex number twice",
                HERE,
            )
        vector[index] = 1.0
        return from_vec(vector, x)

    return made


_new(make_zero, ZERO)
_new(copy, COPY)
_cleared(make_zero_, keeps=False)
_cleared(remake_zero_, keeps=True)
_of_one(norm, functions.norm)
_of_one(to_vec, functions.to_vec)
_of_one(leaves, functions.leaves)


# Vectors.

_NAME: Final = "irad.data.VectorSpace"


class VectorSpaceType(types.Type):
    """The type of a vector.

    Attributes:
        value: that of its structure.
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(name=f"VectorSpace({value})")


@register_model(VectorSpaceType)
class VectorSpaceModel(models.StructModel):
    """A vector holds its structure."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("value", kind.value)])


make_attribute_wrapper(VectorSpaceType, "value", "value")


@intrinsic
def _vector(_typing_context: Any, value: Any) -> Any:
    """A vector that holds a structure."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_helper(builder, signature.return_type)
        made.value = arguments[0]
        context.nrt.incref(builder, value, arguments[0])
        return made._getvalue()

    return VectorSpaceType(value)(value), generate


@overload(VectorSpace, strict=False)
def _vector_space(value: Any, inactive: Any = None) -> Callable[..., Any]:
    check_options(_NAME, inactive=inactive)
    if isinstance(value, VectorSpaceType):
        return lambda value, inactive=None: value
    return lambda value, inactive=None: _vector(value)


# --- to and from Python -----------------------------------------------------------------------------------------------


@typeof_impl.register(VectorSpace)
def _type_of_vector(vector: VectorSpace, _: Any) -> VectorSpaceType:
    if vector._inactive is not None:
        raise SignatureError(
            "a VectorSpace with inactive= is passed to compiled code",
            "pass one without, or its value",
            "compiled code works on types, but this option concerns Python objects",
            HERE,
        )
    return VectorSpaceType(typeof(vector.value))


@unbox(VectorSpaceType)
def _unboxed(kind: Any, vector: Any, c: Any) -> NativeValue:
    structure = c.pyapi.object_getattr_string(vector, "value")
    native = c.unbox(kind.value, structure)
    c.pyapi.decref(structure)
    made = c.context.make_helper(c.builder, kind)
    made.value = native.value
    return NativeValue(made._getvalue(), native.is_error, native.cleanup)


@box(VectorSpaceType)
def _boxed(kind: Any, vector: Any, c: Any) -> Any:
    structure = c.box(kind.value, c.context.make_helper(c.builder, kind, value=vector).value)
    cls = c.pyapi.unserialize(c.pyapi.serialize_object(VectorSpace))
    made = c.pyapi.call_function_objargs(cls, (structure,))
    c.pyapi.decref(cls)
    c.pyapi.decref(structure)
    return made


# --- operators --------------------------------------------------------------------------------------------------------


def _misfit(problem: str, remedy: str) -> SignatureError:
    return SignatureError(problem, remedy, "a vector space has sums of vectors, and products with numbers", HERE)


def _check_vector(other: Any) -> None:
    if not isinstance(other, VectorSpaceType):
        raise _misfit(
            f"compiled code combines a vector with {described(other)}",
            "wrap the structure first: irad.data.VectorSpace(structure)",
        )


def _check_number(vector: VectorSpaceType, factor: Any) -> None:
    if not isinstance(factor, types.Number | types.Boolean):
        raise _misfit(
            f"compiled code multiplies or divides a vector by {described(factor)}",
            "multiply it by a number; of two vectors, x.dot(y) is the inner product",
        )
    real = [part for part in vectors(content_of(vector.value)) if not functions.is_complex(part.type)]
    if isinstance(factor, types.Complex) and real:
        raise _misfit(
            f"compiled code multiplies or divides a vector by a complex number, which holds {described(real[0].type)}",
            "use complex numbers in the structure, or a real factor",
        )


def _call(head: str) -> Call:
    return Call(_NAME, head, "vector({})", {"vector": _vector})


def _sum(function: Callable[..., Any], symbol: str, write: str, *, is_in_place: bool) -> None:
    """Tells Numba of an operator with two vectors."""
    operation = arithmetic(f"{{0}} {symbol} {{1}}", write)

    def typed(x: Any, y: Any) -> Callable[..., Any] | None:
        if not isinstance(x, VectorSpaceType):
            return None
        _check_vector(y)
        values = {"x.value": x.value, "y.value": y.value}
        if is_in_place:
            return functions.overwrite(_call("x, y"), operation, values, {"x.value": x.value}, returns=True)
        return functions.make(_call("x, y"), operation, values)

    overload(function, strict=False)(typed)


def _product(function: Callable[..., Any], symbol: str, write: str, *, is_in_place: bool) -> None:
    """Tells Numba of an operator with a vector and a number."""

    def typed(x: Any, y: Any) -> Callable[..., Any] | None:
        names = ("x", "y")
        if isinstance(y, VectorSpaceType) and function is operator.mul and not isinstance(x, VectorSpaceType):
            x, y, names = y, x, ("y", "x")
        if not isinstance(x, VectorSpaceType):
            return None
        _check_number(x, y)
        vector, number = names
        operation = arithmetic(f"{{0}} {symbol} {number}", write.format(out="{out}", number=number))
        values = {f"{vector}.value": x.value}
        if is_in_place:
            return functions.overwrite(_call("x, y"), operation, values, values, returns=True)
        return functions.make(_call("x, y"), operation, values)

    overload(function, strict=False)(typed)


_sum(operator.add, "+", "add({out}, {1})", is_in_place=False)
_sum(operator.sub, "-", "subtract({out}, {1})", is_in_place=False)
_sum(operator.iadd, "+", "add({out}, {1})", is_in_place=True)
_sum(operator.isub, "-", "subtract({out}, {1})", is_in_place=True)
_product(operator.mul, "*", "multiply({out}, {number})", is_in_place=False)
_product(operator.truediv, "/", "divide({out}, {number})", is_in_place=False)
_product(operator.imul, "*", "multiply({out}, {number})", is_in_place=True)
_product(operator.itruediv, "/", "divide({out}, {number})", is_in_place=True)


@overload(operator.neg, strict=False)
def _negated(x: Any) -> Callable[..., Any] | None:
    return (lambda x: x * -1.0) if isinstance(x, VectorSpaceType) else None


@overload(operator.pos, strict=False)
def _positive(x: Any) -> Callable[..., Any] | None:
    return (lambda x: x) if isinstance(x, VectorSpaceType) else None


# --- methods ----------------------------------------------------------------------------------------------------------


def _method(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Tells Numba of a method of vectors."""
    made: Callable[..., Any] = overload_method(VectorSpaceType, name, strict=False)
    return made


@_method("dot")
def _dot_of_vectors(x: Any, other: Any) -> Callable[..., Any]:
    _check_vector(other)
    return lambda x, other: dot(x.value, other.value)


@_method("norm")
def _norm(x: Any) -> Callable[..., Any]:
    return lambda x: norm(x.value)


@_method("zero")
def _zero(x: Any) -> Callable[..., Any]:
    return lambda x: _vector(make_zero(x.value))


@_method("zero_")
def _zero_(x: Any) -> Callable[..., Any]:
    return lambda x: make_zero_(x.value)


@_method("copy")
def _copy(x: Any) -> Callable[..., Any]:
    return lambda x: _vector(copy(x.value))


@_method("copyto")
def _copyto(x: Any, target: Any) -> Callable[..., Any]:
    _check_vector(target)
    operation = Operation(COPY.number, COPY.array, lambda kind: "assign({out}, {0})")
    values, outputs = {"x.value": x.value}, {"target.value": target.value}
    return functions.overwrite(Call(f"{_NAME}.copyto", "x, target"), operation, values, outputs)


@_method("axpy")
def _axpy(x: Any, factor: Any, other: Any) -> Callable[..., Any]:
    _check_vector(other)
    _check_number(x, factor)
    operation = arithmetic("{0} + factor * {1}", "add_multiple({out}, {1}, factor)")
    values = {"x.value": x.value, "other.value": other.value}
    return functions.overwrite(Call(f"{_NAME}.axpy", "x, factor, other"), operation, values, {"x.value": x.value})


@_method("map")
def _map(x: Any, f: Any, *others: Any) -> Callable[..., Any]:
    return _mapped("vector(recursive_map(f, x.value{}))", others)


@_method("map_")
def _map_(x: Any, f: Any, *others: Any) -> Callable[..., Any]:
    return _mapped("recursive_map_(f, x.value{})", others)


def _mapped(call: str, others: tuple[Any, ...]) -> Callable[..., Any]:
    """A method that calls one of the functions that map."""
    if len(others) == 1 and isinstance(others[0], types.StarArgTuple | types.StarArgUniTuple):
        others = others[0].types
    for other in others:
        _check_vector(other)
    values = "".join(f", others[{i}].value" for i in range(len(others)))
    scope = {"vector": _vector, "recursive_map": recursive_map, "recursive_map_": recursive_map_}
    body = f"def mapped(x, f, *others):\n    return {call.format(values)}\n"
    return function_from("mapped", body, functions.FILE, scope)
