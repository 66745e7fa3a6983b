"""The program of one derivative: a function and all that it can reach, in the normal form that the engine reads.

Input   a module, a function in it.
Output  LLVM text with an entry `i32 @irad.entry(ptr value, parameters…)` that calls the function, stores its result and
        returns 0: the convention of the engine's entries, as Numba's functions have it.
Method  what the function cannot reach is dropped; what keeps LLVM from optimising at -O0 too; then LLVM's scalar
        pipeline, vectors taken apart, unwinding and calls through pointers made plain, and the pipeline again.

Definitions that the linker may replace by others (weak ones) are no part of the program: they become declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.backend.optimise import scalarise
from irad.errors import UnsupportedError
from irad.frontend.raw.markers import kind_of
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.parser import parse_module
from irad.ir.printer import print_module
from irad.ir.types import FloatType
from irad.ir.values import (
    ConstantAggregate,
    ConstantExpression,
    GlobalAlias,
    GlobalVariable,
    GlobalWrapper,
    Value,
    const_int,
)
from irad.passes.devirtualise import devirtualise

ENTRY: Final = "irad.entry"
_REPLACEABLE: Final = frozenset({"weak", "common", "extern_weak"})
_GROUPED: Final = "#"


def load(text: str, primal: str) -> str:
    """The program of a function in normal form.

    Args:
        text: the module.
        primal: symbol of the function.

    Raises:
        IradError: the program holds what irad cannot follow.
    """
    module = parse_module(text)
    _keep_reachable(module, module.functions[primal])
    _allow_optimising(module)
    _add_entry(module, module.functions[primal])
    return _normal_form(print_module(module))


def _normal_form(text: str) -> str:
    text = scalarise(text, keep=(ENTRY,))
    module = parse_module(text)
    changed = devirtualise(module)
    return scalarise(print_module(module), keep=(ENTRY,)) if changed else text


# ------------------------------------------------------------------------------------------------ what it can reach


def _keep_reachable(module: Module, primal: Function) -> None:
    """Drops all that the function cannot reach, and what belongs to the module as a whole."""
    reached = _reachable(primal)
    for name, function in list(module.functions.items()):
        if function not in reached:
            _erase_body(function)
            del module.functions[name]
    for table in (module.globals, module.aliases):
        for name, value in list(table.items()):
            if value not in reached:
                del table[name]
    module.asm.clear()
    module.trailer.clear()


def _erase_body(function: Function) -> None:
    for inst in list(function.instructions()):
        inst.set_operands(())
    function.blocks.clear()


def _reachable(primal: Function) -> dict[Value, None]:
    found: dict[Value, None] = {}
    pending: list[Value] = [primal]
    while pending:
        value = pending.pop()
        if value in found:
            continue
        found[value] = None
        pending.extend(_references(value))
    return found


def _references(value: Value) -> Iterator[Value]:
    """The globals that a value refers to, directly or in a constant."""
    match value:
        case Function():
            _check_nested(value)
            for inst in value.instructions():
                yield from (each for each in inst.operands if _is_static(each))
            yield from (operand for _, operand in value.operands)
        case GlobalVariable(initializer=Value() as content) | GlobalAlias(target=Value() as content):
            yield content
        case ConstantExpression(operands=parts) | ConstantAggregate(elements=parts) | GlobalWrapper(operands=parts):
            yield from parts
        case _:
            pass


def _is_static(value: Value) -> bool:
    statics = (Function, GlobalVariable, GlobalAlias, ConstantExpression, ConstantAggregate, GlobalWrapper)
    return isinstance(value, statics)


def _check_nested(function: Function) -> None:
    for inst in function.instructions():
        if isinstance(inst, CallSite) and kind_of(inst) is not None:
            error = UnsupportedError(
                f"{function.name} is differentiated, and asks for a derivative itself",
                "differentiate functions that ask for none: irad has no second derivatives",
            )
            error.instruction = inst
            raise error


# ------------------------------------------------------------------------------------------------ -O0 and linkage


def _allow_optimising(module: Module) -> None:
    """Takes away what -O0 puts on every function; replaceable definitions become declarations."""
    for name, words in module.attribute_groups.items():
        if "optnone" in words:
            module.attribute_groups[name] = tuple(w for w in words if w not in ("optnone", "noinline"))
    for function in module.functions.values():
        if "optnone" in function.attributes:
            function.attributes = tuple(w for w in function.attributes if w not in ("optnone", "noinline"))
        if _REPLACEABLE & set(function.prefix):
            _erase_body(function)
            function.operands, function.metadata = (), ()
        function.prefix = tuple(w for w in function.prefix if w.startswith("dll"))
        function.suffix = tuple(w for w in function.suffix if not w.startswith(("comdat", "section")))
    for variable in module.globals.values():
        variable.suffix = tuple(w for w in variable.suffix if not w.startswith("comdat"))
    module.comdats.clear()


# ------------------------------------------------------------------------------------------------ entry


def _add_entry(module: Module, primal: Function) -> None:
    result = primal.function_type.result
    if not isinstance(result, FloatType | types.IntType | types.PointerType) and result is not types.VOID:
        raise UnsupportedError(
            f"{primal.name} returns a value of type {result}, for which there is no one cotangent",
            "return one number, or write the results to memory that is passed with its shadow",
        )
    params = [types.PTR, *primal.function_type.params]
    entry = module.define(ENTRY, types.function_type(types.I32, params))
    entry.params[0].name, entry.params[0].attributes = "value", ("noalias",)
    for number, (param, source) in enumerate(zip(entry.params[1:], primal.params, strict=True), 1):
        param.name = f"arg.{source.name or number}"
    build = Builder(entry.add_block("entry"))
    call = build.call(primal, entry.params[1:])
    if isinstance(call, CallSite):
        call.convention = primal.convention
    if isinstance(result, FloatType):
        build.store(call, entry.params[0])
    build.ret(const_int(types.I32, 0))
