"""Compiles a function of a rule for one configuration: facts about its arguments become constants before typing.

Input   Numba's untyped code of the function, and the types of its arguments.
Output  the same code with constants for `is_active(x)`, `config.needs_primal`, `config.overwritten[i]` and the like;
        the branches that they decide are gone, and calls for each of several directions (`in_lanes`) written out.
Method  expressions are evaluated over the definitions of variables; Numba's own pass then prunes. So a dead branch may
        contain code that would not compile: the shadow of a constant argument. Compiled functions that the rule calls
        with annotated arguments, the configuration or None are compiled in the same way.
"""

from __future__ import annotations

import operator
import weakref
from types import FunctionType
from typing import Any, Final

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder, StateDict
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.core.untyped_passes import RewriteSemanticConstants, WithLifting

from irad.frontend.custom.rule_arguments import (
    PREDICATES,
    AnnotatedType,
    ConfigType,
    RuleConfig,
    annotation_of,
    in_lanes,
)
from irad.frontend.custom.targets import jitable
from irad.frontend.numba import internals
from irad.frontend.numba.library import LinkIntoCallers, OnlyLink
from irad.records import dataclass

ONLY_LINKED: Final = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of code that derivatives link: it is called neither from Python nor through a pointer."""


@dataclass(frozen=True)
class _Typed:
    """A value whose type is known."""

    type: Type


class _Unknown(Exception):
    """Not a compile-time constant."""


def _evaluate(func_ir: ir.FunctionIR, arguments: tuple[Type, ...], value: object) -> Any:
    """The value of an expression, or its type if that is all there is to know.

    Raises:
        _Unknown: it is not known before the function runs.
    """

    def of(variable: ir.Var) -> Any:
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
        case ir.Expr(op="call") if not value.kws and not value.vararg and value.args:
            decide = _predicate(of(value.func))
            argument, *part = (of(each) for each in value.args)
            if decide is not None and isinstance(argument, _Typed):
                return decide(argument.type, *part)
        case ir.Expr(op="unary") if value.fn is operator.not_:
            return not _plain(of(value.value))
        case ir.Expr(op="binop") if value.fn in (operator.is_, operator.is_not):
            return _is_none(of(value.lhs), of(value.rhs)) is (value.fn is operator.is_)
        case _:
            pass
    raise _Unknown


def _predicate(function: object) -> Any:
    """The function that decides a call of a predicate; None for a call of anything else.

    A callee that cannot be hashed (a C function of ctypes) is not a predicate.
    """
    return PREDICATES.get(function) if isinstance(function, FunctionType) else None


def _is_none(*values: object) -> bool:
    """True if a value is None that is compared to None: its type tells, unless it may be either."""
    others = [value for value in values if value is not None]
    if len(others) == 2 or any(isinstance(each.type, types.Optional) for each in others if isinstance(each, _Typed)):
        raise _Unknown
    return all(isinstance(each, _Typed) and each.type == types.none for each in others)


def _attribute(value: object, name: str) -> Any:
    if isinstance(value, _Typed) and isinstance(value.type, AnnotatedType) and name in value.type.fields:
        return _Typed(value.type[value.type.fields.index(name)])
    if isinstance(value, _Typed):
        raise _Unknown
    try:
        return getattr(value, name)
    except AttributeError as error:
        raise _Unknown from error


def _item(value: object, index: object) -> Any:
    if isinstance(value, _Typed) and isinstance(value.type, types.BaseTuple) and isinstance(index, int):
        if -len(value.type) <= index < len(value.type):
            return _Typed(value.type[index])
        raise _Unknown
    if isinstance(value, tuple) and isinstance(index, int) and -len(value) <= index < len(value):
        return value[index]
    raise _Unknown


def _plain(value: object) -> Any:
    if isinstance(value, _Typed):
        raise _Unknown
    return value


class _Rewrite(FunctionPass):
    """A pass that looks at each assignment of an expression, and changes some."""

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: StateDict) -> bool:
        changed = False
        for block in state.func_ir.blocks.values():
            for statement in list(block.find_insts(ir.Assign)):
                if isinstance(statement.value, ir.Expr) and self.rewrite(state, block, statement):
                    changed = True
        return changed

    def rewrite(self, state: StateDict, block: ir.Block, statement: ir.Assign) -> bool:
        """Changes a statement, or not; returns whether it did."""
        raise NotImplementedError


@register_pass(mutates_CFG=False, analysis_only=False)
class _PutConstants(_Rewrite):
    """Replaces expressions of known values by constants."""

    _name = "irad_put_constants"

    def rewrite(self, state: StateDict, block: ir.Block, statement: ir.Assign) -> bool:
        try:
            found = _evaluate(state.func_ir, state.args, statement.value)
        except _Unknown:
            return False
        if not isinstance(found, bool | int | tuple):
            return False
        constant = ir.Const(found, statement.loc)
        internals.redefine(state.func_ir, statement.target.name, statement.value, constant)
        statement.value = constant
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _WriteOutLanes(_Rewrite):
    """``in_lanes(config, f, x)`` becomes ``(f(0, x), f(1, x), …)``."""

    _name = "irad_write_out_lanes"

    def rewrite(self, state: StateDict, block: ir.Block, statement: ir.Assign) -> bool:
        call = statement.value
        if call.op != "call" or call.kws or call.vararg or len(call.args) < 2:
            return False
        try:
            known = [
                _evaluate(state.func_ir, state.args, state.func_ir.get_definition(each))
                for each in (call.func, call.args[0])
            ]
        except (_Unknown, KeyError):
            return False
        if known[0] is not in_lanes or not isinstance(known[1], RuleConfig):
            return False
        _, function, *arguments = call.args
        found = []
        for lane in range(known[1].width):
            number = ir.Const(lane, statement.loc)
            given = [_insert(state.func_ir, block, statement, "$irad.lane", number), *arguments]
            one = ir.Expr.call(function, given, (), statement.loc)
            found.append(_insert(state.func_ir, block, statement, "$irad.in_lane", one))
        packed = ir.Expr.build_tuple(found, statement.loc)
        internals.redefine(state.func_ir, statement.target.name, call, packed)
        statement.value = packed
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _SpecialiseHelpers(_Rewrite):
    """Compiles functions to which the rule passes values that decide branches in the same way as the rule itself."""

    _name = "irad_specialise_helpers"

    def rewrite(self, state: StateDict, block: ir.Block, statement: ir.Assign) -> bool:
        helper = _helper_called(state.func_ir, state.args, statement.value)
        if helper is None:
            return False
        taken = ir.Global("irad_helper", helper, statement.loc)
        statement.value.func = _insert(state.func_ir, block, statement, "$irad.helper", taken)
        return True


def _helper_called(func_ir: ir.FunctionIR, arguments: tuple[Type, ...], call: ir.Expr) -> CPUDispatcher | None:
    """The specialising form of a compiled function that is called with an argument that decides branches, or None."""
    if call.op != "call":
        return None
    try:
        called = _evaluate(func_ir, arguments, func_ir.get_definition(call.func))
    except (_Unknown, KeyError):
        return None
    if isinstance(called, FunctionType):
        called = jitable(called)
    # Not of a subclass: derivatives are such dispatchers, with code that no compilation of their Python function makes.
    if type(called) is not CPUDispatcher:
        return None
    for variable in (*call.args, *(each for _, each in call.kws)):
        try:
            given = func_ir.get_definition(variable)
            found = _evaluate(func_ir, arguments, given)
        except (_Unknown, KeyError):
            continue
        if isinstance(given, ir.Expr) and given.op == "getattr":
            continue  # a plain value: Numba itself prunes what its parameters decide
        if isinstance(found, RuleConfig) or (isinstance(found, _Typed) and _decides(found.type)):
            return _helper(called)
    return None


def _decides(numba_type: Type) -> bool:
    if isinstance(numba_type, types.BaseTuple) and annotation_of(numba_type) is None:
        return any(map(_decides, numba_type.types))
    return annotation_of(numba_type) is not None or numba_type == types.none or isinstance(numba_type, ConfigType)


def _helper(dispatcher: CPUDispatcher) -> CPUDispatcher:
    made = _HELPERS.get(dispatcher)
    if made is None:
        made = _HELPERS[dispatcher] = rule_dispatcher(dispatcher)
    return made


_HELPERS: Final[weakref.WeakKeyDictionary[CPUDispatcher, CPUDispatcher]] = weakref.WeakKeyDictionary()


@register_pass(mutates_CFG=False, analysis_only=False)
class _SpellEllipsis(_Rewrite):
    """``a[...]`` becomes ``a[(...,)]``: Numba types the bare index, but has no code for it."""

    _name = "irad_spell_ellipsis"

    def rewrite(self, state: StateDict, block: ir.Block, statement: ir.Assign) -> bool:
        read = statement.value
        if read.op != "getitem" or not _is_ellipsis(state.func_ir, read.index):
            return False
        spelled = ir.Expr.build_tuple([read.index], statement.loc)
        read.index = _insert(state.func_ir, block, statement, "$irad.index", spelled)
        return True


def _is_ellipsis(func_ir: ir.FunctionIR, variable: ir.Var) -> bool:
    try:
        return _evaluate(func_ir, (), func_ir.get_definition(variable)) is Ellipsis
    except (_Unknown, KeyError, IndexError):
        return False


def _insert(func_ir: ir.FunctionIR, block: ir.Block, before: ir.Assign, name: str, value: ir.Inst) -> ir.Var:
    """A new variable that gets a value before a statement."""
    variable = block.scope.redefine(name, before.loc)
    place = next(i for i, each in enumerate(block.body) if each is before)
    block.body.insert(place, ir.Assign(value, variable, before.loc))
    internals.define(func_ir, variable.name, value)
    return variable


class _RuleCompiler(CompilerBase):
    """Numba's compiler with the constants put in before dead branches are pruned; its code is left to the callers."""

    library: Any = LinkIntoCallers

    def define_pipelines(self) -> list[PassManager]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_PutConstants, RewriteSemanticConstants)
        manager.add_pass_after(_SpecialiseHelpers, _PutConstants)
        manager.add_pass_after(_WriteOutLanes, WithLifting)  # before Numba inlines the functions that they call
        manager.add_pass_after(_SpellEllipsis, _PutConstants)
        manager.add_pass_after(self.library, RewriteSemanticConstants)
        manager.finalize()
        return [manager]


class _PartCompiler(_RuleCompiler):
    """For functions that only the code around a rule calls, which sets their environment."""

    library = OnlyLink


def rule_dispatcher(function: Any, *, is_part: bool = False) -> CPUDispatcher:
    """The dispatcher of a function of a rule; of one that is decorated, with the options given there.

    Its code is linked into that of its callers, and has no entry for Python.

    Args:
        function: it.
        is_part: only the code around the rule calls it, and sets its environment.
    """
    options = getattr(function, "targetoptions", {}) | ONLY_LINKED
    compiler = _PartCompiler if is_part else _RuleCompiler
    made_of = getattr(function, "py_func", function)
    return internals.EntrylessDispatcher(made_of, targetoptions=options, pipeline_class=compiler)
