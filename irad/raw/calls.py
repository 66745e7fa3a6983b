"""Calls that ask for a derivative, as the module has them.

Input   a module.
Output  `AutodiffCall`: for each such call the function, the mode, and argument by argument how it takes part.
Limit   the function must be known here, as a symbol.
"""

from __future__ import annotations

from collections.abc import Callable

from irad.errors import IradError, SignatureError, UnsupportedError, UnsupportedProgram
from irad.ir.instructions import Alloca, CallSite, Cast, Load, Ret, Store
from irad.ir.module import Function, Module
from irad.ir.values import ConstantExpression, ConstantInt, GlobalAlias, Parameter, Value
from irad.passes.mode import Mode, forward_mode, reverse_mode
from irad.raw.arguments import MarkedArgument, paired_arguments
from irad.raw.markers import MODES, OTHER_KINDS, PRIMAL_RETURN, WIDTH, kind_of, marker_of
from irad.records import dataclass
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class AutodiffCall:
    """A call that asks for a derivative.

    Attributes:
        call: the call itself.
        primal: the function to differentiate.
        mode: in which mode.
        arguments: one for each of its parameters.
        result: memory for the result of the call where that is returned through a pointer.
        returns_primal: in forward mode, the value is returned, too, before its tangent.
    """

    call: CallSite
    primal: Function
    mode: Mode
    arguments: tuple[MarkedArgument, ...]
    result: Value | None
    returns_primal: bool = False

    @property
    def module(self) -> Module:
        """The module of the primal."""
        assert self.primal.module is not None
        return self.primal.module

    @property
    def is_forward(self) -> bool:
        """True if it asks for a tangent."""
        return self.mode.is_forward


def find_calls(
    module: Module, registry: Registry, holds_integers: Callable[[Parameter, Value], bool]
) -> list[AutodiffCall]:
    """All calls of a module that ask for a derivative, in order.

    Args:
        module: is not changed.
        registry: the rules: what has one need not be defined.
        holds_integers: whether a parameter points to integers only, when a pointer is passed for it.

    Raises:
        IradError: one cannot be understood; several errors come as one.
    """
    found: list[AutodiffCall] = []
    errors: list[IradError] = []
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, CallSite) and (kind := kind_of(inst)) is not None:
                try:
                    found.append(_read(inst, kind, registry, holds_integers))
                except IradError as error:
                    error.instruction = inst
                    errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UnsupportedProgram(errors)
    return found


def _read(
    call: CallSite, kind: str, registry: Registry, holds_integers: Callable[[Parameter, Value], bool]
) -> AutodiffCall:
    if kind not in MODES:
        raise UnsupportedError(
            f"a call of {call.callee.name} asks for {OTHER_KINDS[kind]}, which irad does not support",
            "ask for a gradient with __irad_autodiff, or for a tangent with __irad_fwddiff",
            "for LLVM IR from a file, irad supports only these two",
        )
    mode = MODES[kind]
    values = list(enumerate(call.arguments))
    result = None
    if values and any(word.startswith("sret") for word in call.argument_attributes[0]):
        result = values.pop(0)
    if not values:
        raise SignatureError(
            "a call for a derivative names no function",
            "pass the function as the first argument",
            "the arguments of the call say what to differentiate, and at which point",
        )
    primal = _function(values.pop(0)[1], registry)
    values, width = _without_width(values)
    mode = forward_mode(width) if mode.is_forward else reverse_mode(width)
    given = [each for each in values if not mode.is_forward or marker_of(each[1]) != PRIMAL_RETURN]
    arguments = tuple(paired_arguments(given, primal, call, mode, holds_integers, result))
    place = result[1] if result is not None else None
    return AutodiffCall(call, primal, mode, arguments, place, returns_primal=len(given) < len(values))


def _without_width(values: list[tuple[int, Value]]) -> tuple[list[tuple[int, Value]], int]:
    """The arguments without the marker for the number of directions and what follows it; that number.

    Raises:
        SignatureError: no such number follows, or there are several.
    """
    places = [place for place, (_, value) in enumerate(values) if marker_of(value) == WIDTH]
    if not places:
        return values, 1
    [place, *others] = places
    [*_, (_, number)] = values[: place + 2]
    if others or not isinstance(number, ConstantInt) or number.value < 1:
        raise SignatureError(
            "the call does not say how many tangents or shadows each argument has",
            "pass enzyme_width once, before the arguments, followed by a literal of 1 or more",
            "the derivative is created for a number of directions when the program is compiled",
        )
    return values[:place] + values[place + 2 :], number.value


def _function(value: Value, registry: Registry) -> Function:
    """The function that a value refers to.

    Raises:
        UnsupportedError: it is not known here, or has no body and no rule.
    """
    function = _trace(value)
    if function is None:
        raise UnsupportedError(
            "it is not known at compile time which function to differentiate",
            "pass the function itself; to choose between several, write a branch with one call for each",
            "the derivative is created when the program is compiled, so the function must be known then",
        )
    if function.is_declaration and registry.lookup(str(function.name)) is None:
        raise UnsupportedError(
            f"the function to differentiate, {function.name}, is not defined in this module",
            "link the module that defines it first (llvm-link), or compile both with -flto",
            "a derivative is created from the body of a function, or by a rule",
        )
    if function.function_type.variadic:
        raise UnsupportedError(
            f"{function.name} takes a variable number of arguments",
            "differentiate a function with fixed parameters",
            "which arguments such a function reads is known only at run time",
        )
    return function


def _trace(value: Value) -> Function | None:
    """The one function that a value can be: through casts, local variables and functions that return it."""
    match value:
        case Function():
            return value
        case GlobalAlias(target=Value() as source) | ConstantExpression(opcode="bitcast", operands=(source,)):
            return _trace(source)
        case Cast(opcode="bitcast", operands=[source]):
            return _trace(source)
        case Load(operands=[Alloca() as slot]):
            stored = stored_in(slot)
            return _trace(stored) if stored is not None else None
        case CallSite(callee=Function(is_declaration=False) as callee):
            returned = [b.terminator.operands[0] for b in callee.blocks if isinstance(b.terminator, Ret)]
            return _trace(returned[0]) if len(returned) == 1 else None
        case _:
            return None


def stored_in(slot: Alloca) -> Value | None:
    """Constant content of a local variable: the one value stored there, if nothing else can access the variable."""
    stored: list[Value] = []
    for user in slot.users:
        match user:
            case Load() if user.type is slot.allocated_type:
                pass
            case Store(operands=[value, pointer]) if pointer is slot and value is not slot:
                stored.append(value)
            case CallSite(callee=Function(name=str(name))) if name.startswith(("llvm.lifetime.", "llvm.dbg.")):
                pass
            case _:
                return None
    return stored[0] if len(stored) == 1 else None
