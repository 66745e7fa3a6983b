"""Numba's front end alone: a Python function and its argument types become typed IR, and no code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from numba.core import bytecode, compiler, errors, ir
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type
from numba.core.typing import Signature
from numba.parfors.parfor import Parfor

from irad.frontend.numba import target
from irad.frontend.values.tree import (
    content_of,
    may_hold_floats,
)

_OF_THE_USER = re.compile(r"[A-Za-z_]\w*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class TypedLine:
    """A statement of Numba's typed IR.

    Attributes:
        text: as Numba prints it, with the type behind ``::``.
        line: of the source.
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
