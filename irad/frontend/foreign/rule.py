"""Rules in compiled code that call closures of Python; functions in compiled code that call those of Python.

Input   a `Foreign`, the Numba types of a call.
Output  an augmented primal and a reverse, or a forward, as `irad.rules` takes them; an njit function for one that
        Numba cannot compile.
Method  the functions are written for the types when Numba types them (`overload`): blocks in object mode need the types
        of what comes out of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba import njit, objmode
from numba.core import cgutils, sigutils, types
from numba.core.base import BaseContext
from numba.core.datamodel.models import OpaqueModel
from numba.core.types import Type
from numba.core.typing import Signature
from numba.extending import intrinsic, overload, register_model
from numba.np.numpy_support import as_dtype

from irad.errors import RuleError, SignatureError
from irad.frontend.calls.exceptions import raise_kept
from irad.frontend.custom.catalogue import location_of, name_of
from irad.frontend.custom.rule_arguments import AugmentedReturn, ConstArgument, annotation_of
from irad.frontend.emit import Emit
from irad.frontend.foreign import closures
from irad.frontend.foreign.closures import Elements, Foreign, Number, finish, value_of
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.numba.target import typing_context
from irad.frontend.values.layouts import mapped

Declared = Callable[[tuple[Any, ...]], Any]
_FILE: Final = "irad.rules import"
_HANDLE: Final = types.Array(types.int64, 1, "C")


def make_rule(target: object, foreign: Foreign) -> tuple[Callable[..., object], Callable[..., object]]:
    """The augmented primal and the reverse of a function with a rule in Python."""

    def begin(arguments: object) -> Any:
        raise NotImplementedError

    def run_backward(cotangent: object, tape: object, arguments: object) -> Any:
        raise NotImplementedError

    @overload(begin)
    def _begin_typed(arguments):  # type: ignore[no-untyped-def]
        given = [_value_type(each) for each in arguments.types]
        _check_arguments(target, foreign, given)
        sources = [f"arguments[{i}].value" for i in range(len(given))]
        return _begin(closures.begin, foreign, _owned(_result_of(target, tuple(given))), sources)

    @overload(run_backward)
    def _backward_typed(cotangent, tape, arguments):  # type: ignore[no-untyped-def]
        return _backward(foreign, cotangent, arguments.types)

    def augmented(config, *arguments):  # type: ignore[no-untyped-def]
        number, promised = begin(arguments)
        if number == 0:
            _carry_on()
        primal, tape = finish_rule(number, promised)
        if config.needs_shadow:
            return AugmentedReturn(primal, shadow_of(primal), tape)
        return AugmentedReturn(primal, None, tape)

    def reverse(config, cotangent, tape, *arguments):  # type: ignore[no-untyped-def]
        result, has_raised = run_backward(cotangent, tape, arguments)
        if has_raised:
            _carry_on()
        return result

    return augmented, reverse


def make_forward(target: object, foreign: Foreign) -> Callable[..., object]:
    """The rule for forward mode of a function with one in Python."""

    def begin(arguments: object) -> Any:
        raise NotImplementedError

    @overload(begin)
    def _begin_typed(arguments):  # type: ignore[no-untyped-def]
        given = [_value_type(each) for each in arguments.types]
        _check_arguments(target, foreign, given)
        result = _owned(_result_of(target, tuple(given)))
        sources = [f"arguments[{i}].value" for i in range(len(given))]
        for i, each in enumerate(arguments.types):
            sources.append("None" if annotation_of(each) is ConstArgument else f"arguments[{i}].tangent")
        return _begin(closures.push, foreign, types.Tuple((result, result)), sources)

    def forward(config, *arguments):  # type: ignore[no-untyped-def]
        number, promised = begin(arguments)
        if number == 0:
            _carry_on()
        return finish_call(number, promised)

    return forward


def make_callable(function: Any, returns: object, parameters: tuple[str, ...]) -> object:
    """An njit function that calls one of Python, whose value has a declared type."""
    declared = _declaration(function, returns)
    foreign = Foreign(function, function)

    def begin(arguments: object) -> Any:
        raise NotImplementedError

    @overload(begin)
    def _begin_typed(arguments):  # type: ignore[no-untyped-def]
        sources = [f"arguments[{i}]" for i in range(len(arguments.types))]
        return _begin(closures.call, foreign, _owned(declared(tuple(arguments.types))), sources)

    listing = ", ".join(parameters)
    source = (
        f"def call({listing}):\n"
        f"    number, promised = begin(({listing}{',' * bool(parameters)}))\n"
        f"    if number == 0:\n"
        f"        carry_on()\n"
        f"    return finish(number, promised)\n"
    )
    made = function_from("call", source, _FILE, {"begin": begin, "carry_on": _carry_on, "finish": finish_call})
    made.__name__ = made.__qualname__ = getattr(function, "__name__", type(function).__name__)
    made.__doc__ = getattr(function, "__doc__", None)
    return njit(made)


def parameters_of(function: Any) -> tuple[str, ...]:
    """The names of the parameters of a function.

    Raises:
        SignatureError: they are not known, or their number is not fixed.
    """
    try:
        found = tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise _unclear(function) from error
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.KEYWORD_ONLY) for each in found):
        raise _unclear(function)
    return tuple(each.name for each in found)


def _unclear(function: object) -> SignatureError:
    return SignatureError(
        f"the parameters of {name_of(function)} are not a fixed number of positional ones",
        "wrap it: def f(x, y): return g(x, y)",
        "compiled code passes a fixed number of arguments, by position",
        location_of(function),
    )


# ------------------------------------------------------------------------------------------------ code for types


class _Promise(types.Opaque):
    """A value of no content that carries a type: that of what is waiting in Python."""

    def __init__(self, carried: object) -> None:
        self.carried = carried
        super().__init__(f"irad.promise({carried})")


register_model(_Promise)(OpaqueModel)


def _begin(method: Callable[..., int], foreign: Foreign, result: Any, sources: Sequence[str]) -> Callable[..., Any]:
    """Code that calls Python with parts of ``arguments``: the number under which the result waits, and its type."""

    @intrinsic
    def promise(context: BaseContext) -> object:
        return _Promise(result)(), lambda context, builder, signature, values: context.get_dummy_value()

    names = [f"x{i}" for i in range(len(sources))]
    lines = [
        *(f"{name} = {source}" for name, source in zip(names, sources, strict=True)),
        "with objmode(number=number_type):",
        f"    number = method({', '.join(['rule', 'wanted', *names])})",
        "return number, promise()",
    ]
    wanted = _expectation(result)
    scope = {"method": method, "rule": foreign.number, "wanted": wanted, "number_type": types.int64}
    scope |= {"objmode": objmode, "promise": promise}
    return function_from("run", "def run(arguments):\n" + "".join(f"    {line}\n" for line in lines), _FILE, scope)


def finish_rule(number: object, promised: object) -> Any:
    """The value and the handle that a rule has made; in compiled code."""
    raise NotImplementedError


@overload(finish_rule)
def _finish_rule_typed(number, promised):  # type: ignore[no-untyped-def]
    result_type, handle_type = promised.carried, _HANDLE

    def run(number, promised):  # type: ignore[no-untyped-def]
        with objmode(primal=result_type, handle=handle_type):
            primal, handle = finish(number)
        return primal, handle

    return run


def finish_call(number: object, promised: object) -> object:
    """The value that a function has returned; in compiled code."""
    raise NotImplementedError


@overload(finish_call)
def _finish_call_typed(number, promised):  # type: ignore[no-untyped-def]
    result_type = promised.carried

    def run(number, promised):  # type: ignore[no-untyped-def]
        with objmode(value=result_type):
            value = value_of(number)
        return value  # noqa: RET504  # a block in object mode cannot return

    return run


@intrinsic
def _carry_on(context: BaseContext) -> Any:
    """Raises what a closure raised."""

    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, values: Value) -> Value:
        with builder.if_then(cgutils.true_bit):  # so that what follows has a block
            raise_kept(Emit(context, builder))
        return context.get_dummy_value()

    return types.none(), lower


def _backward(foreign: Foreign, cotangent: object, arguments: tuple[Any, ...]) -> Callable[..., object]:
    """Cotangents of numbers are returned, those of arrays are added to their shadows."""
    active = [i for i, each in enumerate(arguments) if annotation_of(each) is not ConstArgument]
    if cotangent == types.none:
        zeros = ("None" if isinstance(_value_type(each), types.Array) else "0.0" for each in arguments)
        source = f"def run(cotangent, tape, arguments):\n    return ({', '.join(zeros)},), False\n"
        return function_from("run", source, _FILE, {})
    values = {i: _value_type(arguments[i]) for i in active}
    outs = {f"out{i}": _owned(values[i]) for i in active}
    arrays = [i for i in active if isinstance(values[i], types.Array)]

    wanted = [_expectation(values[i]) if i in values else None for i in range(len(arguments))]
    declared = "".join(f"{name}={name}_type, " for name in outs)
    shapes = [f"shape{i}" for i in arrays]
    given = ["rule", "wanted", "number", "cotangent", *shapes]
    returned = ["None" if i not in active or i in arrays else f"out{i}" for i in range(len(arguments))]
    lines = [
        "number = tape[0]",
        *(f"shape{i} = arguments[{i}].shadow.shape" for i in arrays),
        f"with objmode({declared}has_raised=flag_type):",
        f"    {', '.join([*outs, 'has_raised'])} = backward({', '.join(given)})",
        *(f"add(arguments[{i}].shadow, out{i})" for i in arrays),
        f"return ({', '.join(returned)},), has_raised",
    ]
    scope: dict[str, object] = {f"{name}_type": numba_type for name, numba_type in outs.items()}
    scope["flag_type"] = types.boolean
    source = "def run(cotangent, tape, arguments):\n" + "".join(f"    {line}\n" for line in lines)
    scope |= {"backward": closures.backward, "rule": foreign.number, "wanted": wanted, "add": _add, "objmode": objmode}
    return function_from("run", source, _FILE, scope)


@njit
def _add(shadow, amount):  # type: ignore[no-untyped-def]
    for index in np.ndindex(shadow.shape):
        shadow[index] += amount[index]


def shadow_of(primal: object) -> Any:
    """Zeros for the arrays in a value, None for its numbers; in compiled code."""
    raise NotImplementedError


@overload(shadow_of)
def _shadow_of_typed(primal):  # type: ignore[no-untyped-def]
    if isinstance(primal, types.Array):
        return lambda primal: np.zeros_like(primal)
    if isinstance(primal, types.BaseTuple):
        items = "".join(f"shadow_of(primal[{i}]), " for i in range(len(primal)))
        return function_from(
            "shadows", f"def shadows(primal):\n    return ({items})\n", _FILE, {"shadow_of": shadow_of}
        )
    return lambda primal: None


# ------------------------------------------------------------------------------------------------ types


def _value_type(annotated: Any) -> Type:
    return annotated.types[0]


def _owned(numba_type: Type) -> Any:
    """The type of a value that Python code returns: arrays are new ones."""
    return mapped(numba_type, lambda t: types.Array(t.dtype, t.ndim, "C") if isinstance(t, types.Array) else t)


def _expectation(numba_type: Type) -> Any:
    if isinstance(numba_type, types.BaseTuple):
        return tuple(_expectation(item) for item in numba_type.types)
    if isinstance(numba_type, types.Array):
        return Elements(as_dtype(numba_type.dtype), numba_type.ndim)
    return Number(as_dtype(numba_type))


def _result_of(target: object, given: tuple[Any, ...]) -> Any:
    """The type of the function's value."""
    context = typing_context()
    return context.resolve_function_type(context.resolve_value_type(target), given, {}).return_type


def _check_arguments(target: object, foreign: Foreign, given: list[Any]) -> None:
    for position, each in enumerate(given):
        if isinstance(each, types.BaseTuple):
            raise RuleError(
                f"argument {position} of {name_of(target)}, whose rule is imported, is {described(each)}",
                "pass numbers and arrays one by one",
                "Python code receives each number and each array as an argument",
                location_of(foreign.rule),
            )


def _declaration(function: object, returns: object) -> Declared:
    """The type of a function's value from the types of its arguments."""
    if callable(returns) and not isinstance(returns, types.Type):
        return lambda given: returns(*given)
    try:
        declared = sigutils.normalize_signature(f"{returns}()")[1] if isinstance(returns, str) else returns
    except Exception as error:
        raise _undeclared(function, returns) from error
    if not isinstance(declared, types.Type):
        raise _undeclared(function, returns)
    return lambda given: declared


def _undeclared(function: object, returns: object) -> SignatureError:
    return SignatureError(
        f"returns={returns!r} does not say which type {name_of(function)} returns",
        '(a) give a type of Numba, numba.float64, or its name, "float64[:]" or (b) a function that gives the type from '
        "those of the arguments",
        "Numba infers types only from code that it compiles, which this is not",
        location_of(function),
    )
