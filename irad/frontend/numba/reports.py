"""Requests to Numba that only reports make: typed IR, the program before LLVM, code in place of a derivative.

Nothing here is on the way to a derivative.

Input   a dispatcher and argument types.
Output  *Typed IR*: what Numba made from a function and from those that it calls. Its front end runs again, since the
        program does not keep what it found. *Other code*: a specialisation that runs other machine code for a while.
Method  Numba keeps machine code for the life of the process, and calls it through a table in the dispatcher. So code
        that is wanted for a moment is loaded next to it, in an engine of its own, and the table is refilled before and
        after.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core import bytecode, compiler, errors, ir, types
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type
from numba.core.typing import Signature
from numba.parfors.parfor import Parfor

from irad.backend.link import check_symbols, declared_symbols
from irad.frontend.custom import rule_plugins, ruled_calls
from irad.frontend.numba import private, target
from irad.frontend.numba.cpu import NumbaProgram, linked_text, load_program
from irad.frontend.numba.library import is_loaded_symbol, parse
from irad.frontend.numba.raw_target import ENVIRONMENT_PREFIX
from irad.frontend.numba.target import engine, new_machine, target_context
from irad.frontend.values.tree import content_of, may_hold_floats
from irad.records import dataclass

# ------------------------------------------------------------------------------------------------ typed IR

_OF_THE_USER = re.compile(r"[A-Za-z_]\w*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class TypedLine:
    """A statement of Numba's typed IR.

    Attributes:
        text: as Numba prints it, followed by ``::`` and the type.
        line: line of the source.
        variables: the versions of Python variables in it, as Numba names them ("total.2").
    """

    text: str
    line: int
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypedIR:
    """A typed function.

    Attributes:
        lines: its blocks, in order.
        floats: the variables that hold floating-point numbers in any form.
    """

    lines: tuple[TypedLine, ...]
    floats: frozenset[str]


def typed_ir(dispatcher: Dispatcher, function: object, signature: Signature) -> TypedIR | None:
    """The typed IR of a function, compiled with the options of a dispatcher.

    Call it while the shadow is active.

    Returns:
        None where Numba cannot tell: a callee may have been compiled in another way, with literal types for one, or
        with some of its parameters bound. Nor for a function with a block in object mode: Numba compiles what is left
        of it at once, and keeps no types.
    """
    flags = target.flags_of(dispatcher.targetoptions)
    pipeline = compiler.Compiler(
        target.typing_context(), target.target_context(), None, signature.args, signature.return_type, flags, {}
    )
    state = pipeline.state
    try:
        state.func_id = bytecode.FunctionIdentity.from_function(function)
        if state.func_id.arg_count != len(signature.args):
            return None
        state.bc = bytecode.ByteCode(state.func_id)
        state.lifted = ()
        for define in (
            compiler.DefaultPassBuilder.define_untyped_pipeline,
            compiler.DefaultPassBuilder.define_typed_pipeline,
        ):
            define(state).run(state)
    except (errors.NumbaError, compiler._EarlyPipelineCompletion):
        return None
    lines = tuple(_lines(state.func_ir.blocks, state.typemap, state.calltypes))
    return TypedIR(lines, frozenset(name for name, kind in state.typemap.items() if may_hold_floats(content_of(kind))))


def _lines(
    blocks: dict[int, ir.Block], types: dict[str, Type], calls: dict[ir.Inst, Signature], indent: str = ""
) -> Iterator[TypedLine]:
    for label in sorted(blocks):
        block = blocks[label]
        yield TypedLine(f"{indent}label {label}:", block.loc.line)
        for statement in block.body:
            if isinstance(statement, ir.Del):
                continue
            if isinstance(statement, Parfor):
                nests = ", ".join(str(nest) for nest in statement.loop_nests)
                yield TypedLine(f"{indent}  parfor {nests}", statement.loc.line)
                yield from _lines({-1: statement.init_block, **statement.loop_body}, types, calls, indent + "    ")
                continue
            yield TypedLine(f"{indent}  {_text(statement, types, calls)}", statement.loc.line, _variables(statement))


def _text(statement: ir.Stmt, types: dict[str, Type], calls: dict[ir.Inst, Signature]) -> str:
    match statement:
        case ir.Assign(value=ir.Expr(op="call") as call) if call in calls:
            return f"{statement}  :: {calls[call]}"
        case ir.Assign(target=target):
            return f"{statement}  :: {types.get(target.name, '?')}"
        case ir.SetItem() if statement in calls:
            return f"{statement}  :: {calls[statement]}"
        case _:
            return str(statement)


def _variables(statement: ir.Stmt) -> tuple[str, ...]:
    names = dict.fromkeys(variable.name for variable in statement.list_vars())
    return tuple(name for name in names if _OF_THE_USER.fullmatch(name))


# ------------------------------------------------------------------------------------------------ the program


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """Numba's typed IR of one function.

    Attributes:
        symbol: symbol of its code.
        function: the Python function.
    """

    symbol: str
    function: Callable[..., Any]
    ir: TypedIR


def typed_functions(
    dispatcher: Dispatcher, argument_types: tuple[Type, ...], wanted: Callable[[str], bool]
) -> Iterator[TypedFunction]:
    """Numba's typed IR of a function and of those that it calls, the function itself first.

    Args:
        dispatcher: the function.
        argument_types: Numba types, one per parameter.
        wanted: selects files of called functions.
    """
    program = _program(dispatcher, argument_types)
    calls = {program.entry: (dispatcher.py_func, program.signature)} | program.python_functions
    for symbol, (function, signature) in calls.items():
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is None or not (symbol == program.entry or wanted(code.co_filename)):
            continue
        with private.compiler_lock(), private.shadow().active():
            typed = typed_ir(dispatcher, function, signature)
        if typed is not None:
            yield TypedFunction(symbol, function, typed)


def program_of(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> NumbaProgram:
    """The program that irad reads.

    Raises:
        BackendError: Numba cannot compile it.
    """
    with private.compiler_lock():
        rule_plugins.load()
        return _program(dispatcher, argument_types)


def raw_text(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> str:
    """All of the program's LLVM text as Numba lowers it, linked, before any optimisation.

    Raises:
        BackendError: Numba cannot compile it.
    """
    with private.compiler_lock():
        rule_plugins.load()
        return linked_text(ruled_calls.caller_of(dispatcher), argument_types)


def _program(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> NumbaProgram:
    return load_program(ruled_calls.caller_of(dispatcher), argument_types)


# ------------------------------------------------------------------------------------------------ other code


def kinds_of(dispatcher: Dispatcher, values: tuple[object, ...]) -> tuple[Any, ...]:
    """The specialisation that a call with positional arguments runs, as the types it is filed under."""
    _, kinds = dispatcher.fold_argument_types(tuple(map(dispatcher.typeof_pyval, values)), {})
    return tuple(  # the star's are filed as plain tuples
        types.BaseTuple.from_types(kind.types) if isinstance(kind, types.StarArgTuple | types.StarArgUniTuple) else kind
        for kind in kinds
    )


@contextmanager
def replaced_code(dispatcher: Dispatcher, kinds: tuple[object, ...], rewrite: Callable[[str], str]) -> Iterator[None]:
    """While open, calls of a compiled specialisation run other code.

    Args:
        dispatcher: a derivative.
        kinds: the types of the specialisation; it must have been compiled.
        rewrite: makes the LLVM text of the other code out of the optimised text of what is there. It is compiled as it
            stands, without LLVM's pipeline.

    Raises:
        BackendError: LLVM refuses the text.
    """
    compiled = dispatcher.overloads[kinds]
    loaded = _Loaded(rewrite(compiled.library.get_llvm_str()))
    code = target_context().get_executable(loaded, compiled.fndesc, compiled.environment)
    try:
        _fill(dispatcher, {kinds: code})
        yield
    finally:
        _fill(dispatcher, {})


def _fill(dispatcher: Dispatcher, entries: dict[tuple[Any, ...], Any]) -> None:
    dispatcher._clear()
    for kinds, compiled in dispatcher.overloads.items():
        codes = [kind._code for kind in kinds]
        dispatcher._insert(codes, entries.get(kinds, compiled.entry_point), compiled.objectmode)


class _Loaded:
    """Stands for a code library of Numba where an entry point is made of it."""

    def __init__(self, text: str) -> None:
        numba_engine = engine()
        module = parse(text)
        check_symbols(module, is_loaded_symbol)
        environments = [v.name for v in module.global_variables if v.name.startswith(ENVIRONMENT_PREFIX)]
        elsewhere = [name for name in declared_symbols(module) if not llvm.address_of_symbol(name)]
        self._engine = llvm.create_mcjit_compiler(module, new_machine())
        for name in elsewhere:
            self._engine.add_global_mapping(module.get_function(name), numba_engine.get_function_address(name))
        self._engine.finalize_object()
        for name in environments:
            self._word(name).value = ctypes.c_void_p.from_address(numba_engine.get_global_value_address(name)).value
        self.codegen = self

    def get_pointer_to_function(self, name: str) -> int:
        """As Numba's library."""
        return int(self._engine.get_function_address(name))

    def set_env(self, name: str, environment: object) -> None:
        """As Numba's code generator."""
        self._word(name).value = id(environment)

    def _word(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p.from_address(self._engine.get_global_value_address(name))
