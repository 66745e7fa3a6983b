"""Calls that ask for a derivative: `__irad_autodiff` and `__enzyme_autodiff`, with their markers.

    double d = __enzyme_autodiff((void *)f, x);                        d: the derivative, w.r.t. x
    __enzyme_autodiff((void *)f, enzyme_dup, x, dx, enzyme_const, n);  dx[i] += that w.r.t. x[i]

Input   a module.
Output  `AutodiffCall`: for each such call the function and, argument by argument, how it takes part.
Method  the marker of an argument is an integer that is loaded from a global called `enzyme_…` or `irad_…`, or metadata
        with that text. Without a marker a pointer is `dup` unless it leads to nothing but integers, a floating-point
        number `out`, all else `const`.
Limit   the function must be known here, as a symbol.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from irad.errors import IradError, SignatureError, UnsupportedError, UnsupportedProgram
from irad.ir import types
from irad.ir.instructions import Alloca, CallSite, Cast, Freeze, Load, Phi, Ret, Store
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, IntType, PointerType
from irad.ir.values import (
    ConstantExpression,
    GlobalAlias,
    GlobalVariable,
    MetadataOperand,
    Parameter,
    Value,
    const_int,
)
from irad.passes.analysis.activity import is_differentiable
from irad.ruleset.registry import Registry

_NAMES: Final = ("__irad_autodiff", "__enzyme_autodiff")
_PREFIXES: Final = ("irad_", "enzyme_")
_OTHERS: Final = {
    "fwddiff": "forward mode",
    "augmentfwd": "the two sweeps as calls of their own",
    "reverse": "the two sweeps as calls of their own",
    "virtualreverse": "derivatives of pointers to functions as calls of their own",
    "batch": "a batch of calls",
}


class ArgumentRole(enum.Enum):
    """How an argument takes part."""

    CONST = "const"  # no derivative
    DUP = "dup"  # a pointer, followed by its shadow
    DUP_NO_NEED = "dupnoneed"  # the same; the caller does not read what the primal leaves there
    OUT = "out"  # a number whose derivative is returned


_ROLES: Final = {role.value: role for role in ArgumentRole}


@dataclass(frozen=True, slots=True)
class MarkedArgument:
    """One argument of the differentiated function. ``position`` is that of ``value`` among the call's arguments."""

    value: Value
    role: ArgumentRole
    position: int
    shadow: Value | None = None

    @property
    def is_duplicated(self) -> bool:
        """Whether it comes with a shadow."""
        return self.role in (ArgumentRole.DUP, ArgumentRole.DUP_NO_NEED)


@dataclass(frozen=True, slots=True)
class AutodiffCall:
    """A call that asks for a derivative.

    Attributes:
        call: the call itself.
        primal: the function to differentiate.
        arguments: one for each of its parameters.
        result: memory for the result where that is returned through a pointer.
    """

    call: CallSite
    primal: Function
    arguments: tuple[MarkedArgument, ...]
    result: Value | None


def find_calls(
    module: Module, registry: Registry, holds_integers: Callable[[Parameter, Value], bool]
) -> list[AutodiffCall]:
    """All calls of a module that ask for a derivative, in order.

    Args:
        module: is not changed.
        registry: the rules: what has one need not be defined.
        holds_integers: whether a parameter leads to integers only, when a pointer is passed for it.

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


def kind_of(call: CallSite) -> str | None:
    """What a call asks for: "autodiff", or the name of what irad does not have; None for ordinary calls."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None or not callee.is_declaration:
        return None
    name = callee.name
    if any(each in name for each in _NAMES):
        return "autodiff"
    return next((kind for kind in _OTHERS if f"__enzyme_{kind}" in name or f"__irad_{kind}" in name), None)


def _read(
    call: CallSite, kind: str, registry: Registry, holds_integers: Callable[[Parameter, Value], bool]
) -> AutodiffCall:
    if kind != "autodiff":
        raise UnsupportedError(
            f"a call of {call.callee.name} asks for {_OTHERS[kind]}, which irad does not have",
            "ask for a gradient with __irad_autodiff (or __enzyme_autodiff)",
            "for LLVM IR from a file, irad supports only reverse mode",
        )
    values = list(enumerate(call.arguments))
    result = None
    if values and any(word.startswith("sret") for word in call.argument_attributes[0]):
        result = values.pop(0)[1]
    if not values:
        raise SignatureError(
            "a call for a derivative names no function",
            "pass the function as the first argument",
            "the arguments of the call say what to differentiate, and at which point",
        )
    primal = _function(values.pop(0)[1], registry)
    arguments = tuple(_arguments(values, primal, call, holds_integers))
    return AutodiffCall(call, primal, arguments, result)


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
    """What a local variable always holds: the one value stored there, if nothing else can access the variable."""
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


def _arguments(
    values: list[tuple[int, Value]],
    primal: Function,
    call: CallSite,
    holds_integers: Callable[[Parameter, Value], bool],
) -> Iterator[MarkedArgument]:
    """Pairs the call's arguments with the parameters."""
    rest = list(values)
    for number, param in enumerate(primal.params):
        marker = None
        while rest and (text := marker_of(rest[0][1])) is not None:
            marker = _role(text, marker)
            rest.pop(0)
        if not rest:
            raise SignatureError(
                f"{primal.name} has {len(primal.params)} parameters, the call for its derivative gives {number}",
                "pass every argument and, after each pointer that is not enzyme_const, its shadow",
                "the arguments after the function are those of its parameters, in order",
            )
        position, value = rest.pop(0)
        where = f"argument {number + 1} of {primal.name}"
        role = marker or _default(value, param, where)
        if marker is None and role is ArgumentRole.DUP and holds_integers(param, value):
            role = ArgumentRole.CONST
        _check_passing(call.argument_attributes[position], param, where)
        _check_types(value, param, where)
        _check(role, param, where)
        shadow = None
        if role in (ArgumentRole.DUP, ArgumentRole.DUP_NO_NEED):
            place, shadow = rest.pop(0) if rest and marker_of(rest[0][1]) is None else (position, None)
            if shadow is None or not isinstance(shadow.type, PointerType) or _is_by_value(call, place):
                kind = "structure by value" if is_by_value(param.attributes) else "pointer"
                raise SignatureError(
                    f"{where} is a {kind} without its shadow",
                    "(a) pass the address of the shadow after it, or (b) put enzyme_const before it",
                    "the derivative of memory is added to its shadow; there is nowhere else to put it",
                )
            if shadow.type is not value.type:
                raise SignatureError(
                    f"the shadow of {where} is a {shadow.type}, and not a {value.type}",
                    "pass a pointer to the same address space",
                    "the derivative finds the shadow by the steps that lead to the memory itself",
                )
        yield MarkedArgument(value, role, position, shadow)
    if rest:
        raise SignatureError(
            f"the call for the derivative of {primal.name} gives more than its {len(primal.params)} parameters take",
            "pass an argument for each parameter and, after each pointer that is not enzyme_const, its shadow",
            "the arguments after the function are those of its parameters, in order",
        )


def _role(text: str, before: ArgumentRole | None) -> ArgumentRole:
    if before is not None or text not in _ROLES:
        raise UnsupportedError(
            f"irad does not know the marker enzyme_{text}" + (" after another one" if text in _ROLES else ""),
            "use enzyme_const, enzyme_dup, enzyme_dupnoneed or enzyme_out, one before an argument",
            "a marker says how the following argument takes part; irad does not guess",
        )
    return _ROLES[text]


def _default(value: Value, param: Parameter, where: str) -> ArgumentRole:
    """How an argument without a marker takes part.

    Raises:
        SignatureError: it may hold numbers, and nothing says whether they have a derivative.
    """
    if is_by_value(param.attributes) or (is_differentiable(value.type) and not isinstance(value.type, FloatType)):
        raise SignatureError(
            f"{where} is a structure that is passed by value, and no marker says how it takes part",
            "(a) take a pointer to it, and pass it with its shadow, or (b) put enzyme_const before it",
            "it may hold numbers, whose derivatives need a shadow",
        )
    if isinstance(value.type, PointerType):
        return ArgumentRole.DUP
    return ArgumentRole.OUT if isinstance(value.type, FloatType) else ArgumentRole.CONST


def is_by_value(attributes: tuple[str, ...]) -> bool:
    """Whether a structure is passed by value in memory where these attributes stand."""
    return any(word.startswith("byval") for word in attributes)


def _is_by_value(call: CallSite, position: int) -> bool:
    return is_by_value(call.argument_attributes[position])


def _check_passing(given: tuple[str, ...], param: Parameter, where: str) -> None:
    if any(word.startswith(("sret", "inalloca", "preallocated")) for word in param.attributes):
        raise UnsupportedError(
            f"{where} is a structure that is returned by value in memory",
            "differentiate a function that takes a pointer to it",
            "the call supplies no shadow of the memory that the result is written to",
        )
    if is_by_value(given) and not is_by_value(param.attributes):
        raise SignatureError(
            f"{where} is a pointer, the call passes a structure by value",
            "pass its address",
            "arguments of a variadic call are not converted",
        )


def _check_types(value: Value, param: Parameter, where: str) -> None:
    """Numbers become what the parameter is, integers narrower: more the promotions of C do not ask for."""
    match value.type, param.type:
        case (FloatType(), FloatType()):
            return
        case (IntType(bits=given), IntType(bits=taken)) if given >= taken:
            return
        case (given_type, taken_type) if given_type is taken_type:
            return
    raise SignatureError(
        f"{where} is of type {param.type}, the call passes {value.type}",
        "convert it where it is passed",
        "arguments of a variadic call are not converted",
    )


def _check(role: ArgumentRole, param: Parameter, where: str) -> None:
    is_pointer, is_number = isinstance(param.type, PointerType), isinstance(param.type, FloatType)
    if role in (ArgumentRole.DUP, ArgumentRole.DUP_NO_NEED) and not is_pointer:
        raise SignatureError(
            f"{where} is not a pointer, so it has no shadow",
            "mark it enzyme_out or enzyme_const",
            "a shadow is memory; the derivative with respect to a number is returned",
        )
    if role is ArgumentRole.OUT and not is_number:
        remedy = "mark it enzyme_dup and pass its shadow behind it" if is_pointer else "mark it enzyme_const"
        raise SignatureError(
            f"{where} is not a floating-point number, so it has no derivative to return",
            remedy,
            "enzyme_out asks for the derivative with respect to a number",
        )
    if role is ArgumentRole.OUT and param.type not in (types.FLOAT, types.DOUBLE):
        raise UnsupportedError(
            f"{where} is of type {param.type}: irad differentiates only single and double precision",
            "(a) take it as float or double, or (b) mark it enzyme_const",
            "rules exist only for these two types",
        )


def marker_of(value: Value) -> str | None:
    """The text of a marker without its prefix, or None if a value is none."""
    match value:
        case Load(operands=[GlobalVariable(name=str(name)) as variable]) if isinstance(value.type, IntType):
            text = _marker_text(name)
            return text if variable.initializer is None or text in _ROLES else None
        case Cast(operands=[source]) | Freeze(operands=[source]):
            return marker_of(source)
        case Phi(operands=[Value() as first, *others]) if all(each is first for each in others):
            return marker_of(first)
        case MetadataOperand(text=text):
            return _marker_text(text.strip('!"'))
        case _:
            return None


def _marker_text(name: str) -> str | None:
    prefix = next((each for each in _PREFIXES if name.startswith(each)), None)
    return name.removeprefix(prefix) if prefix is not None else None


def drop_markers(module: Module) -> None:
    """Replaces loads of markers that are no longer used by a constant: their globals are declared, never defined.

    The loads stay, for debug records count the instructions of a function.
    """
    stand_in = GlobalVariable(types.PTR, "irad.marker", value_type=types.I32, constant=True, prefix=("private",))
    stand_in.initializer = const_int(types.I32, 0)
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, Load) and not inst.users and not inst.volatile and marker_of(inst) is not None:
                inst.set_operand(0, stand_in)
    if stand_in.users:
        module.globals["irad.marker"] = stand_in
