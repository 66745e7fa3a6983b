"""Calls of functions that have a rule, kept apart from what surrounds them.

Input   a call that Numba lowers in a shadow compile: the callee's type, its signature.
Output  a call of a function of its own, made for this: Numba's calling convention, a symbol that names it; its body is
        what Numba would have put in the place of the call.
Method  the place is where Numba asks for the lowering of a call. There all callees look alike: njit functions, those of
        NumPy that Numba implements in Python, and those that it writes in LLVM code.

So a rule applies whatever the optimiser would have inlined, and the primal is still there where nothing is active.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import funcdesc, types
from numba.core.base import BaseContext
from numba.core.types import Type
from numba.core.typing import Signature

from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.custom.constants import stopped

PREFIX: Final = "irad.ruled."
_serial = itertools.count(1)


@dataclass(frozen=True)
class Outlined:
    """A function that stands for the calls of a ruled one.

    Attributes:
        symbol: its LLVM symbol.
        rule: of the function.
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
    context: BaseContext, rule: CustomRule, signature: Signature, lower: Callable[..., Value], known: dict[Any, Any]
) -> Callable[..., Value]:
    """The lowering of a call of a ruled function: a call of one of its own.

    Args:
        context: Numba's target context.
        rule: of the callee.
        signature: of the call.
        lower: the lowering of the call as Numba does it.
        known: libraries of the functions made so far, by rule and signature.
    """
    key = rule.target, signature.args, signature.return_type
    library = known.get(key)
    if library is None:
        library = known[key] = _outline(context, rule, signature, lower)

    def call(builder: IRBuilder, arguments: Sequence[Value], loc: object = None) -> Value:
        if context.form.plain and rule.inactive_arguments:
            arguments = list(_with_constants(context, builder, rule, signature, arguments))
        context.active_code_library.add_linking_library(library)
        return context.call_internal(builder, library.outlined_descriptor, signature, arguments)

    return call


def _with_constants(
    context: BaseContext, builder: IRBuilder, rule: CustomRule, signature: Signature, arguments: Sequence[Value]
) -> Iterator[Value]:
    """The arguments, those that are inactive as constants of all derivatives."""
    for position, (numba_type, value) in enumerate(zip(signature.args, arguments, strict=True)):
        is_constant = position in rule.inactive_arguments
        name = f"argument {position} of {rule.name}"
        yield stopped(context, builder, numba_type, value, name) if is_constant else value


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
