"""Calls of functions that have a rule, kept apart from the surrounding code.

Input   a call that Numba lowers in a shadow compile: the callee's type, its signature.
Output  a call of a function of its own, made for this: Numba's calling convention, a symbol that names it; its body is
        what Numba would have put in the place of the call.
Method  the place is where Numba asks for the lowering of a call. There all callees look alike: njit functions, those of
        NumPy that Numba implements in Python, and those that it writes in LLVM code.

So a rule applies whatever the optimiser would have inlined, and the primal is still there where nothing is active.

Inactive arguments are parameters that the engine treats as constant. What it writes for the first derivative is plain
code, in which the next one would find a path from the argument to the result. Where that is to be differentiated, such
an argument is made constant for good: numbers go through a function that carries no derivative. Memory keeps its
address and gets a shadow of its own, which nothing else sees: zeros as tangents, and cotangents that come there
are lost.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, funcdesc, types
from numba.core.base import BaseContext
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.core.typing import Signature

from irad.errors import UnsupportedError
from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.values import layouts, tree
from irad.records import dataclass

PREFIX: Final = "irad.ruled."
_STOP_MEMORY: Final = "irad.stop.memory"
_serial = itertools.count(1)


@dataclass(frozen=True)
class Outlined:
    """A function that stands for the calls of a ruled one.

    Attributes:
        symbol: its LLVM symbol.
        rule: rule of the function.
        signature: Numba's, of the calls.
    """

    symbol: str
    rule: CustomRule
    signature: Signature


def rule_of(callee: Type | None, arguments: tuple[Type, ...]) -> CustomRule | None:
    """The rule of a callee, given as Numba's type of it, for the types of arguments."""
    match callee:
        case types.Dispatcher():
            return catalogue.find(callee.dispatcher, arguments)
        case types.RecursiveCall():
            return catalogue.find(callee.dispatcher_type.dispatcher, arguments)
        case types.Function():
            return catalogue.find(callee.typing_key, arguments)
        case _:
            return None


def outlined_call(
    context: Any, rule: CustomRule, signature: Signature, lower: Callable[..., Value], known: dict[Any, Any]
) -> Callable[..., Value]:
    """The lowering of a call of a ruled function: a call of one of its own.

    Args:
        context: the target context of functions to differentiate.
        rule: rule of the callee.
        signature: signature of the call.
        lower: the lowering of the call as Numba does it.
        known: libraries of the functions made so far, by rule and signature.
    """
    key = rule.target, signature.args, signature.return_type
    library = known.get(key)
    if library is None:
        library = known[key] = _outline(context, rule, signature, lower)

    def call(builder: IRBuilder, arguments: Sequence[Value], loc: object = None) -> Value:
        if context.form.plain and rule.inactive_arguments:
            arguments = list(_with_constants(Emit(context, builder), rule, signature, arguments))
        context.active_code_library.add_linking_library(library)
        return context.call_internal(builder, library.outlined_descriptor, signature, arguments)

    return call


def _with_constants(emit: Emit, rule: CustomRule, signature: Signature, arguments: Sequence[Value]) -> Iterator[Value]:
    """The arguments, those that are inactive as constants of all derivatives."""
    names = inspect.signature(getattr(rule.target, "py_func", rule.target)).parameters
    for position, (name, numba_type, value) in enumerate(zip(names, signature.args, arguments, strict=True)):
        is_constant = position in rule.inactive_arguments
        yield _stopped(emit, numba_type, value, f"'{name}' of {rule.name}") if is_constant else value


def _outline(context: BaseContext, rule: CustomRule, signature: Signature, lower: Callable[..., Value]) -> Any:
    symbol = f"{PREFIX}{next(_serial)}"
    descriptor = funcdesc.ExternalFunctionDescriptor(symbol, signature.return_type, signature.args)
    library = context.codegen().create_library(symbol)
    module = library.create_ir_module(symbol)
    function = context.declare_function(module, descriptor)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    with context.push_code_library(library):
        arguments = context.call_conv.decode_arguments(builder, signature.args, function)
        result = lower(builder, arguments)
        if isinstance(signature.return_type, types.Optional):
            context.call_conv.return_optional_value(builder, signature.return_type, signature.return_type, result)
        else:
            result = context.get_return_value(builder, signature.return_type, result)
            context.call_conv.return_value(builder, result)
    library.add_ir_module(module)
    library.outlined = Outlined(symbol, rule, signature)
    library.outlined_descriptor = descriptor
    return library


# ---------------------------------------------------------------------------------------------- constant arguments


def stopped_number(builder: IRBuilder, value: Value) -> Value:
    """A float as a constant."""
    name = "irad.stop.f64" if isinstance(value.type, ir.DoubleType) else "irad.stop.f32"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(value.type, [value.type]), name)
    # With these LLVM may drop and move such a call, as it may an addition.
    function.attributes.add("nounwind")
    function.attributes.add("readnone")
    return builder.call(function, [value])


def _stopped(emit: Emit, numba_type: Type, value: Value, name: str) -> Value:
    """An argument as a constant.

    Args:
        numba_type: numba type of the argument.
        value: it.
        name: of the argument and its function, for the message.

    Raises:
        UnsupportedError: it is memory that holds pointers to other memory.
    """
    builder = emit.builder
    if numba_type in layouts.FLOATS:
        return stopped_number(builder, value)
    if numba_type in layouts.COMPLEX:
        for part in range(2):
            number = stopped_number(builder, builder.extract_value(value, part))
            value = builder.insert_value(value, number, part)
        return value
    if isinstance(numba_type, types.BaseTuple):
        for i, item_type in enumerate(numba_type.types):
            item = _stopped(emit, item_type, builder.extract_value(value, i), name)
            value = builder.insert_value(value, item, i)
        return value
    match tree.kind_of(numba_type):
        case tree.LeafKind.INERT:
            return value
        case tree.LeafKind.ARRAY:
            return _stopped_array(emit, numba_type, value)
        case tree.LeafKind.RECORD:
            return _stopped_memory(
                builder, value, cgutils.intp_t(0), cgutils.intp_t(layouts.size_of_element(numba_type))
            )
        case _:
            raise UnsupportedError(
                f"{name}, an inactive argument, is {described(numba_type)}, and a derivative is differentiated",
                "pass the numbers and arrays in it as arguments of their own",
                "irad can keep numbers and arrays constant in all derivatives, but not yet memory that holds pointers",
            )


def _stopped_array(emit: Emit, numba_type: Any, value: Value) -> Value:
    context, builder = emit.context, emit.builder
    array = context.make_array(numba_type)(context, builder, value)
    shape, strides = cgutils.unpack_tuple(builder, array.shape), cgutils.unpack_tuple(builder, array.strides)
    low, size = _extent(builder, shape, strides, layouts.size_of_element(numba_type.dtype))
    array.data = _stopped_memory(builder, array.data, low, size)
    return array._getvalue()


def _extent(builder: IRBuilder, shape: Sequence[Value], strides: Sequence[Value], item: int) -> tuple[Value, Value]:
    """Start of an array's memory, in bytes from its first element, and its size in bytes."""
    zero = cgutils.intp_t(0)
    low: Value = zero
    high: Value = cgutils.intp_t(item)
    is_empty: Value = cgutils.false_bit
    for count, stride in zip(shape, strides, strict=True):
        reach = builder.mul(builder.sub(count, cgutils.intp_t(1)), stride)
        is_backwards = builder.icmp_signed("<", reach, zero)
        low = builder.add(low, builder.select(is_backwards, reach, zero))
        high = builder.add(high, builder.select(is_backwards, zero, reach))
        is_empty = builder.or_(is_empty, builder.icmp_signed("==", count, zero))
    return builder.select(is_empty, zero, low), builder.select(is_empty, zero, builder.sub(high, low))


def _stopped_memory(builder: IRBuilder, pointer: Value, low: Value, size: Value) -> Value:
    """A pointer whose memory, from ``low`` bytes after it on, is a constant."""
    bytes_ = cgutils.voidptr_t
    kind = ir.FunctionType(bytes_, [bytes_, cgutils.intp_t])
    function = cgutils.get_or_insert_function(builder.module, kind, _STOP_MEMORY)
    start = builder.gep(builder.bitcast(pointer, bytes_), [low])
    apart = builder.call(function, [start, size])
    return builder.bitcast(builder.gep(apart, [builder.neg(low)]), pointer.type)


# A function that has a rule and is itself differentiated: a function that does nothing but call it.

_MEMO = "_irad_caller"  # on the dispatcher: the caller refers to it


def caller_of(dispatcher: Dispatcher) -> Any:
    """A dispatcher to differentiate instead of one: itself, unless something is declared for it.

    For where no call of it is lowered, which is where rules are found: it is the entry, or a function value.
    """
    if not catalogue.is_declared(dispatcher):
        return dispatcher
    made = dispatcher.__dict__.get(_MEMO)
    if made is None:
        made = dispatcher.__dict__[_MEMO] = _caller(dispatcher)
    return made


def _caller(dispatcher: Dispatcher) -> object:
    function = dispatcher.py_func
    parameters = inspect.signature(function).parameters.values()
    names = [f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters]
    listing = ", ".join(names)
    is_dispatcher = isinstance(dispatcher, CPUDispatcher)
    options = {"nopython": True}
    scope = {"irad_callee": dispatcher if is_dispatcher else CPUDispatcher(function, targetoptions=options)}
    source = f"def caller({listing}):\n    return irad_callee({listing})\n"
    caller = function_from("caller", source, "irad.rules caller", scope)
    caller.__defaults__ = function.__defaults__
    functools.update_wrapper(caller, function, updated=())
    if is_dispatcher:
        return CPUDispatcher(caller, targetoptions=options)
    return type(dispatcher)(caller, targetoptions=dispatcher.targetoptions)  # of a ufunc: nothing but its loop calls it
