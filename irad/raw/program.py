"""The program of one derivative: a function and everything that it can reach, in the normal form that the engine reads.

Input   a module, a function in it.
Output  LLVM text with an entry `i32 @irad.entry(ptr value, parameters…)` that calls the function, stores its result and
        returns 0: the convention of the engine's entries, as Numba's functions have it.
Method  what the function cannot reach is dropped; and so is what keeps LLVM from optimising at -O0; then LLVM's scalar
        pipeline, vectors taken apart, unwinding and calls through pointers made plain, and the pipeline again.

Definitions that the linker may replace by others (weak ones) are not part of the program: they become declarations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from irad.backend.optimise import scalarise
from irad.backend.toolchain import Toolchain
from irad.errors import IradError, UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, Phi, Select
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.values import (
    ConstantAggregate,
    ConstantExpression,
    GlobalAlias,
    GlobalVariable,
    GlobalWrapper,
    InlineAsm,
    Value,
    const_int,
    parts_of,
)
from irad.ir.worklist import Worklist
from irad.passes.convention import HostConvention
from irad.passes.memory.record_layouts import scalars
from irad.passes.mode import Mode
from irad.passes.prepare.devirtualise import devirtualise, taken_functions
from irad.raw.checks import check_spaces, mark_copies, mark_spelled
from irad.raw.markers import kind_of
from irad.raw.normal_form.bit_moves import restore_types
from irad.raw.normal_form.by_value import pass_pointers
from irad.raw.normal_form.calls import lower_unwinding, mark_external_clobbers, plain_library_calls
from irad.raw.normal_form.copies import copy_members
from irad.raw.normal_form.masked import expand_masked
from irad.raw.normal_form.openmp import run_with_one_thread
from irad.raw.normal_form.vectors import split_vectors
from irad.raw.symbols import expanded
from irad.ruleset.registry import Registry
from irad.runtime_layouts import EXHAUSTED, NO_DERIVATIVE

ENTRY: Final = "irad.entry"
C: Final = HostConvention(result=0, returned=(0,), exhausted=EXHAUSTED, no_derivative=NO_DERIVATIVE, ruled_result=None)
"""Convention of the entry, as `irad.passes` reads it; C itself has no statuses."""
CANDIDATES: Final = "irad.candidates"
_REPLACEABLE: Final = frozenset({"weak", "common", "extern_weak", "linkonce"})
_OBSTACLES: Final = ("optnone", "noinline")
_NAME: Final = re.compile(r"\bptr @(?:\"([^\"]*)\"|([\w.$-]+))")
"""A name of a function or variable in metadata."""


def load(
    text: str, primal: str, registry: Registry, toolchain: Toolchain, mode: Mode, stay: Collection[str] = ()
) -> str:
    """The program of a function in normal form.

    Args:
        text: the module.
        primal: symbol of the function.
        registry: the rules.
        toolchain: for whose machine LLVM weighs what it does.
        mode: mode of differentiation.
        stay: functions that stay calls, without a body: they have a rule.

    Raises:
        IradError: the program holds what irad cannot follow.
    """
    module = parse_module(text)
    for name in stay:
        _make_declaration(module.functions[name])
    _keep_reachable(module, module.functions[primal])
    _drop_debug_records(module)
    check_spaces(module, toolchain.foreign_spaces)
    # The engine follows memory through arguments and results only, so that functions marked noinline are inlined, too.
    _allow_optimising(module)
    _keep_choices(module)
    pass_pointers(module)
    # Lanes need the extents of arrays, which C does not state, and with atomic additions the bits would vary.
    run_with_one_thread(module)
    plain_library_calls(module)
    copy_members(module)
    _add_entry(module, module.functions[primal], mode)
    return _normal_form(print_module(module), registry, toolchain)


def _normal_form(text: str, registry: Registry, toolchain: Toolchain) -> str:
    """LLVM's scalar pipeline, before and after what it leaves is made plain."""
    module = parse_module(scalarise(text, (ENTRY,), toolchain))
    steps = (lower_unwinding, expand_masked, split_vectors, devirtualise, restore_types)
    changed = [step(module) for step in steps]
    # What the steps made plain LLVM can simplify further, which brings the code to normal form again.
    if any(changed):
        module = parse_module(scalarise(print_module(module), (ENTRY,), toolchain))
        restore_types(module)
    mark_copies(module)
    mark_external_clobbers(module, registry)
    _forget_restrict(module)
    return print_module(module)


def _forget_restrict(module: Module) -> None:
    """C lets `restrict` pointers overlap if nothing is written there, but the reverse sweep writes to their shadows."""
    for name, function in module.functions.items():
        if name != ENTRY:
            for param in function.params:
                param.attributes = tuple(word for word in param.attributes if word != "noalias")


# ------------------------------------------------------------------------------------------------ what it can reach


def _keep_reachable(module: Module, primal: Function) -> None:
    """Drops all that the function cannot reach, and what belongs to the module as a whole."""
    search = Worklist[Value]([primal])
    _follow(search)
    candidates = _candidates(module, search)
    reached = search.seen
    for name, function in list(module.functions.items()):
        if function not in reached:
            _erase_body(function)
            del module.functions[name]
    for table in (module.globals, module.aliases):
        for name, value in list(table.items()):
            if value not in reached:
                del table[name]
    if candidates:
        module.globals[CANDIDATES] = _table(candidates)
    _forget_names(module)
    module.asm.clear()
    module.trailer.clear()


def _forget_names(module: Module) -> None:
    """Empties the metadata that names what is no longer there, as the functions that a pointer may point to do."""
    emptied = set()
    for number, node in module.metadata.items():
        names = (quoted or plain for quoted, plain in _NAME.findall(node.text))
        if any(name not in module.functions and name not in module.globals for name in names):
            node.text = "!{}"
            emptied.add(f"!{number}")
    for function in module.defined_functions() if emptied else ():
        for inst in function.instructions():
            inst.metadata = {kind: node for kind, node in inst.metadata.items() if node not in emptied}


def _candidates(module: Module, search: Worklist[Value]) -> list[Function]:
    """The functions that calls through pointers may reach: by type, of those whose address is used in the module."""
    taken = taken_functions(module)
    found: dict[Function, None] = {}
    while True:
        wanted = {type_ for function in search.seen if isinstance(function, Function) for type_ in _called(function)}
        fitting = [f for f in taken if f.function_type in wanted and f not in found and not _asks(f)]
        if not fitting:
            return list(found)
        found.update(dict.fromkeys(fitting))
        search.add(*fitting)
        _follow(search)


def _called(function: Function) -> Iterator[types.FunctionType]:
    """The types with which a function calls through pointers."""
    for inst in function.instructions():
        if isinstance(inst, CallSite) and not isinstance(inst.callee, Function | InlineAsm):
            yield inst.function_type


def _asks(function: Function) -> bool:
    """True if a function asks for a derivative."""
    return any(isinstance(inst, CallSite) and kind_of(inst) is not None for inst in function.instructions())


def _table(functions: list[Function]) -> GlobalVariable:
    """A variable that uses the addresses of functions: what LLVM sees so it keeps as it is."""
    array = types.array_type(len(functions), types.PTR)
    table = GlobalVariable(types.PTR, CANDIDATES, value_type=array)
    table.initializer = ConstantAggregate(array, None, tuple(functions))
    return table


def _make_declaration(function: Function) -> None:
    _erase_body(function)
    function.operands, function.metadata = (), ()
    function.prefix = tuple(w for w in function.prefix if w.startswith("dll"))
    function.suffix = ()


def _erase_body(function: Function) -> None:
    for inst in list(function.instructions()):
        inst.set_operands(())
    function.blocks.clear()


def _follow(search: Worklist[Value]) -> None:
    for value in search:
        search.add(*_references(value))


def _references(value: Value) -> Iterator[Value]:
    """The globals that a value refers to, directly or in a constant."""
    match value:
        case Function():
            _check_calls(value)
            for inst in value.instructions():
                yield from (each for each in inst.operands if _is_static(each))
            yield from (operand for _, operand in value.operands)
        case GlobalVariable(initializer=Value() as content) | GlobalAlias(target=Value() as content):
            yield content
        case _:
            yield from parts_of(value)


def _is_static(value: Value) -> bool:
    statics = (Function, GlobalVariable, GlobalAlias, ConstantExpression, ConstantAggregate, GlobalWrapper)
    return isinstance(value, statics)


def _check_calls(function: Function) -> None:
    """Refuses what cannot be part of a function that is differentiated."""
    for inst in function.instructions():
        error = _call_error(function, inst) if isinstance(inst, CallSite) else None
        if error is not None:
            error.instruction = inst
            raise error


def _call_error(function: Function, call: CallSite) -> IradError | None:
    if kind_of(call) is not None:
        return UnsupportedError(
            f"{function.name} is differentiated, and asks for a derivative itself",
            "differentiate functions that do not ask for derivatives: irad does not support second derivatives of "
            "LLVM IR",
            "derivatives are inserted into the program only after its functions have been differentiated",
        )
    callee, module = call.callee, function.module
    if isinstance(callee, Function) and module is not None and "returns_twice" in expanded(callee, module):
        return UnsupportedError(
            f"a call of {callee.name} may return more than once, which has no derivative in irad",
            "(a) use a condition instead, or (b) call it outside of the function",
            "the reverse sweep must know where control may have come from",
        )
    return None


def _drop_debug_records(module: Module) -> None:
    """They name values by number, which shift where others are added; lines are in the metadata of instructions."""
    for function in module.defined_functions():
        for block in function.blocks:
            block.trailing_records = ()
            for inst in block.instructions:
                inst.debug_records = ()


# ------------------------------------------------------------------------------------------------ -O0 and linkage


def _allow_optimising(module: Module) -> None:
    """Takes away what forbids to optimise and to inline; replaceable definitions become declarations.

    Functions marked `noinline` are inlined too, as all are at -O0: irad knows most of what it sees in one piece.
    """
    for function in module.defined_functions():
        if "optnone" in expanded(function, module):
            mark_spelled(function)
    for name, words in module.attribute_groups.items():
        module.attribute_groups[name] = tuple(w for w in words if w not in _OBSTACLES)
    for function in module.functions.values():
        function.attributes = tuple(w for w in function.attributes if w not in _OBSTACLES)
        if _REPLACEABLE & set(function.prefix):
            _make_declaration(function)
        function.prefix = tuple(w for w in function.prefix if w.startswith("dll"))
        function.suffix = tuple(w for w in function.suffix if not w.startswith(("comdat", "section")))
    for variable in module.globals.values():
        variable.suffix = tuple(w for w in variable.suffix if not w.startswith("comdat"))
        if not variable.constant:  # what is not part of this program writes there, too
            variable.prefix = tuple(w for w in variable.prefix if w not in ("internal", "private"))
    module.comdats.clear()


def _keep_choices(module: Module) -> None:
    """Keeps choices between equal sides, so that the derivative is that of the side that is taken.

    Where the sign of zero does not matter, LLVM makes a choice between what was compared a maximum, which has no sides.
    """
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, Select | Phi):
                inst.flags = tuple(word for word in inst.flags if word not in ("fast", "nsz"))


# ------------------------------------------------------------------------------------------------ entry


def returns_numbers(result: types.Type) -> bool:
    """True if a result is a number, or a structure with numbers and no pointers."""
    if result is types.VOID:
        return False
    kinds = [kind for _, kind in scalars(result)]
    has_numbers = any(kind in (types.FLOAT, types.DOUBLE) for kind in kinds)
    return has_numbers and all(kind in (types.FLOAT, types.DOUBLE) or isinstance(kind, types.IntType) for kind in kinds)


def _add_entry(module: Module, primal: Function, mode: Mode) -> None:
    result = primal.function_type.result
    has_derivative = returns_numbers(result) and (mode.is_forward or isinstance(result, types.FloatType))
    if not has_derivative and not isinstance(result, types.IntType | types.PointerType) and result is not types.VOID:
        if mode.is_forward:
            raise UnsupportedError(
                f"{primal.name} returns a value of type {result}, whose tangent irad cannot return",
                "return numbers only, or write the results to memory that is passed with its shadow",
                "a tangent is returned as the value is: a number, or a structure of numbers",
            )
        raise UnsupportedError(
            f"{primal.name} returns a value of type {result}, which has no single cotangent",
            "return a single number, or write the results to memory that is passed with its shadow",
            "the reverse sweep starts with the number 1 as the cotangent of the result",
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
    if has_derivative:
        _store_numbers(build, call, entry.params[0])
    build.ret(const_int(types.I32, 0))


def _store_numbers(build: Builder, value: Value, place: Value) -> None:
    """Stores each number of a value by itself: LLVM leaves the store of a structure with padding as it is."""
    match value.type:
        case types.StructType() | types.NamedStructType() | types.ArrayType():
            elements = types.element_types(value.type)
            if isinstance(value.type, types.ArrayType):
                offsets = tuple(index * types.size_of(value.type.element) for index in range(value.type.count))
            else:
                offsets = types.field_offsets(value.type)
            for index, offset in zip(range(len(elements)), offsets, strict=True):
                _store_numbers(build, build.extract_value(value, index), build.byte_offset(place, offset))
        case _:
            build.store(value, place)
