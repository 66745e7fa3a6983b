"""Compiles a function of a rule for one configuration: what is known of its arguments is put in before typing.

Input   Numba's untyped code of the function, and the types of its arguments.
Output  the same code with constants for `is_active(x)`, `config.needs_primal`, `config.overwritten[i]` and the like;
        the branches that they decide are gone.
Method  expressions are evaluated over the definitions of variables; Numba's own pass then prunes. A dead branch may so
        contain what would not compile: the shadow of a constant argument.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from numba.core import ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.untyped_passes import RewriteSemanticConstants

from irad.frontend.custom.annotated import PREDICATES, ConfigType, annotation_of
from irad.frontend.numba_untyped import types


@dataclass(frozen=True)
class _Typed:
    """A value of which the type is known."""

    type: Any


class _Unknown(Exception):
    """Not a constant of the compilation."""


def _evaluate(func_ir: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    """The value of an expression, or its type if that is all there is to know.

    Raises:
        _Unknown: it is not known before the function runs.
    """

    def of(variable: Any) -> Any:
        try:
            definition = func_ir.get_definition(variable)
        except KeyError as error:
            raise _Unknown from error
        return _evaluate(func_ir, arguments, definition)

    match value:
        case ir.Arg():
            found = arguments[value.index]
            return found.config if isinstance(found, ConfigType) else _Typed(found)
        case ir.Const() | ir.Global() | ir.FreeVar():
            return value.value
        case ir.Expr(op="getattr"):
            return _attribute(of(value.value), value.attr)
        case ir.Expr(op="getitem"):
            return _item(of(value.value), of(value.index))
        case ir.Expr(op="static_getitem"):
            return _item(of(value.value), value.index)
        case ir.Expr(op="call") if not value.kws and not value.vararg and len(value.args) == 1:
            argument = of(value.args[0])
            decide = PREDICATES.get(of(value.func))
            if decide is not None and isinstance(argument, _Typed):
                return decide(annotation_of(argument.type))
        case ir.Expr(op="unary") if value.fn is operator.not_:
            return not _plain(of(value.value))
        case _:
            pass
    raise _Unknown


def _attribute(value: Any, name: str) -> Any:
    if isinstance(value, _Typed):
        raise _Unknown
    try:
        return getattr(value, name)
    except AttributeError as error:
        raise _Unknown from error


def _item(value: Any, index: Any) -> Any:
    if isinstance(value, _Typed) and isinstance(value.type, types.BaseTuple) and isinstance(index, int):
        if -len(value.type) <= index < len(value.type):
            return _Typed(value.type[index])
        raise _Unknown
    if isinstance(value, tuple) and isinstance(index, int) and -len(value) <= index < len(value):
        return value[index]
    raise _Unknown


def _plain(value: Any) -> Any:
    if isinstance(value, _Typed):
        raise _Unknown
    return value


@register_pass(mutates_CFG=False, analysis_only=False)
class _PutConstants(FunctionPass):
    """Replaces what is known."""

    _name = "irad_put_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        func_ir, changed = state.func_ir, False
        for block in func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                if not isinstance(statement.value, ir.Expr):
                    continue
                try:
                    found = _evaluate(func_ir, state.args, statement.value)
                except _Unknown:
                    continue
                if isinstance(found, bool | int | tuple):
                    constant = ir.Const(found, statement.loc)
                    definitions = func_ir._definitions[statement.target.name]
                    definitions[definitions.index(statement.value)] = constant
                    statement.value = constant
                    changed = True
        return changed


class _RuleCompiler(CompilerBase):
    """Numba's compiler with the constants put in before dead branches are pruned."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_PutConstants, RewriteSemanticConstants)
        manager.finalize()
        return [manager]


def rule_dispatcher(function: Any) -> CPUDispatcher:
    """The dispatcher of a function of a rule; of one that is decorated, with the options given there."""
    options = dict(getattr(function, "targetoptions", {}))
    options["nopython"] = True
    return CPUDispatcher(getattr(function, "py_func", function), targetoptions=options, pipeline_class=_RuleCompiler)
