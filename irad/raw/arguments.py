"""The arguments of a call for a derivative: which parameter each is for, how it takes part, and what comes after it.

Input   the arguments after the function, and the function.
Output  `MarkedArgument`, one for each parameter.
Method  without a marker a pointer is `dup` unless it points to nothing but integers; a floating-point number is `out`,
        in forward mode `dup`; all else is `const`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from irad.errors import SignatureError, UnsupportedError
from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import FloatType, IntType, PointerType, holds_floats
from irad.ir.values import Parameter, Value
from irad.passes.mode import Mode
from irad.raw.markers import PRIMAL_RETURN, ROLES, SPACED, ArgumentRole, marker_of
from irad.records import dataclass

_INSTEAD: Final = {
    PRIMAL_RETURN: "leave it out, and call the function itself for its value: only __enzyme_fwddiff returns both",
}
"""Remedies for markers that irad does not have."""


@dataclass(frozen=True, slots=True)
class MarkedArgument:
    """One argument of the differentiated function. ``position`` is that of ``value`` among the call's arguments.

    Attributes:
        shadows: of a pointer; of a number in forward mode its tangents.
        distance: number of bytes between the shadows of several directions, of which the first is given.
        is_result: the function writes there what it returns, and its shadow is what the call returns.
    """

    value: Value
    role: ArgumentRole
    position: int
    shadows: tuple[Value, ...] = ()
    distance: Value | None = None
    is_result: bool = False

    @property
    def is_duplicated(self) -> bool:
        """True if it is memory that comes with a shadow."""
        return bool(self.shadows) and not self.has_tangent

    @property
    def has_tangent(self) -> bool:
        """True if it is a number that comes with its tangent."""
        return bool(self.shadows) and isinstance(self.value.type, FloatType)


def paired_arguments(
    values: Sequence[tuple[int, Value]],
    primal: Function,
    call: CallSite,
    mode: Mode,
    holds_integers: Callable[[Parameter, Value], bool],
    result: tuple[int, Value] | None,
) -> Iterator[MarkedArgument]:
    """Pairs the call's arguments with the parameters.

    Args:
        values: the arguments after the function, with their positions.
        primal: the function to differentiate.
        call: the call.
        mode: the mode that it asks for.
        holds_integers: whether a parameter points to integers only, when a pointer is passed for it.
        result: memory for the result of the call where that is returned through a pointer.

    Raises:
        IradError: they do not fit.
    """
    rest = list(values)
    for number, param in enumerate(primal.params):
        where = f"argument {number + 1} of {primal.name}"
        if _is_result(param) and number == 0 and mode.is_forward and result is not None:
            position, memory = result
            yield MarkedArgument(memory, ArgumentRole.DUP, position, (memory,), is_result=True)
            continue
        marker = distance = None
        while rest and (text := marker_of(rest[0][1])) is not None:
            marker = _role(text, marker)
            rest.pop(0)
            if text in SPACED:
                distance = _distance(rest.pop(0)[1] if rest else None, param, where)
        if not rest:
            raise SignatureError(
                f"{primal.name} has {len(primal.params)} parameters, the call for its derivative gives {number}",
                _what_to_pass(mode),
                "the arguments after the function are those of its parameters, in order",
            )
        position, value = rest.pop(0)
        role = marker or _default(value, param, where, mode)
        if marker is None and role is ArgumentRole.DUP and holds_integers(param, value):
            role = ArgumentRole.CONST
        _check_passing(call.argument_attributes[position], param, where)
        _check_types(value, param, where)
        _check(role, param, where, mode)
        shadows = []
        if role in (ArgumentRole.DUP, ArgumentRole.DUP_NO_NEED):
            for _ in range(mode.width if distance is None else 1):
                following = rest.pop(0) if rest and marker_of(rest[0][1]) is None else None
                shadows.append(_shadow(value, param, where, call, mode, following))
        yield MarkedArgument(value, role, position, tuple(shadows), distance)
    if rest:
        raise SignatureError(
            f"the call for the derivative of {primal.name} passes more than its {len(primal.params)} parameters",
            _what_to_pass(mode),
            "the arguments after the function are those of its parameters, in order",
        )


def _what_to_pass(mode: Mode) -> str:
    numbers = "number or pointer" if mode.is_forward else "pointer"
    follows = "its tangent or shadow" if mode.is_forward else "its shadow"
    if mode.width > 1:
        follows = f"its {mode.width} {'tangents or ' if mode.is_forward else ''}shadows"
    return f"pass an argument for each parameter and, after each {numbers} that is not enzyme_const, {follows}"


def _of_several(mode: Mode) -> str:
    return f" in each of {mode.width} directions" if mode.width > 1 else ""


def _distance(given: Value | None, param: Parameter, where: str) -> Value:
    """Number of bytes between the shadows of an argument.

    Raises:
        SignatureError: no integer follows the marker, or the argument is not a pointer.
    """
    if given is not None and isinstance(given.type, IntType) and isinstance(param.type, PointerType):
        return given
    raise SignatureError(
        f"{where} is not a pointer" if given is not None else f"no distance between the shadows of {where} is given",
        "(a) pass a pointer: enzyme_dupv, distance in bytes, argument, first shadow or (b) enzyme_dup, argument, and "
        "each shadow or tangent",
        "enzyme_dupv says how many bytes lie between the shadows of an argument in memory",
    )


def _shadow(
    value: Value, param: Parameter, where: str, call: CallSite, mode: Mode, following: tuple[int, Value] | None
) -> Value:
    """Value that follows an argument: the pointer to its shadow, or its tangent.

    Raises:
        SignatureError: something else follows.
    """
    if isinstance(param.type, FloatType):
        if following is None or not isinstance(following[1].type, FloatType):
            raise SignatureError(
                f"{where} is a number without its tangent" + _of_several(mode),
                "(a) pass its tangent after it, as a floating-point number, or (b) put enzyme_const before it",
                "forward mode computes the derivative along the tangents of the arguments",
            )
        return following[1]
    is_structure = is_by_value(param.attributes)
    place, shadow = following if following is not None else (0, None)
    misplaced = following is not None and _is_by_value(call, place) and not (is_structure and mode.is_forward)
    if shadow is None or not isinstance(shadow.type, PointerType) or misplaced:
        raise SignatureError(
            f"{where} is a {'structure by value' if is_structure else 'pointer'} without its shadow"
            + _of_several(mode),
            "(a) pass the address of the shadow after it, or (b) put enzyme_const before it",
            "the derivative of memory is in its shadow; there is nowhere else to put it",
        )
    if shadow.type is not value.type:
        raise SignatureError(
            f"the shadow of {where} is a {shadow.type}, and not a {value.type}",
            "pass a pointer to the same address space",
            "the derivative computes the address of the shadow in the same way as that of the memory",
        )
    return shadow


def _role(text: str, before: ArgumentRole | None) -> ArgumentRole:
    known = ROLES | SPACED
    if before is not None or text not in known:
        raise UnsupportedError(
            f"irad does not know the marker enzyme_{text}" + (" after another one" if text in known else ""),
            _INSTEAD.get(text, "use enzyme_const, enzyme_dup, enzyme_dupnoneed or enzyme_out, one before an argument"),
            "a marker says how the following argument takes part; irad does not guess",
        )
    return known[text]


def _default(value: Value, param: Parameter, where: str, mode: Mode) -> ArgumentRole:
    """Role of an argument without a marker.

    Raises:
        SignatureError: it may hold numbers, and nothing says whether they have a derivative.
    """
    if is_by_value(param.attributes) or (holds_floats(value.type) and not isinstance(value.type, FloatType)):
        raise SignatureError(
            f"{where} is a structure that is passed by value, and no marker says how it takes part",
            "(a) take a pointer to it, and pass it with its shadow, or (b) put enzyme_const before it",
            "it may hold numbers, whose derivatives need a shadow",
        )
    if isinstance(value.type, PointerType):
        return ArgumentRole.DUP
    if isinstance(value.type, FloatType):
        return ArgumentRole.DUP if mode.is_forward else ArgumentRole.OUT
    return ArgumentRole.CONST


def is_by_value(attributes: tuple[str, ...]) -> bool:
    """True if a structure is passed by value in memory where these attributes stand."""
    return any(word.startswith("byval") for word in attributes)


def _is_by_value(call: CallSite, position: int) -> bool:
    return is_by_value(call.argument_attributes[position])


def _is_result(param: Parameter) -> bool:
    """True if the function returns a structure through this parameter."""
    return any(word.startswith(("sret", "inalloca", "preallocated")) for word in param.attributes)


def _check_passing(given: tuple[str, ...], param: Parameter, where: str) -> None:
    if _is_result(param):
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


def _check(role: ArgumentRole, param: Parameter, where: str, mode: Mode) -> None:
    is_pointer, is_number = isinstance(param.type, PointerType), isinstance(param.type, FloatType)
    is_forward = mode.is_forward
    if role is ArgumentRole.OUT and is_forward:
        raise SignatureError(
            f"{where} is marked enzyme_out, which is for reverse mode",
            "mark it enzyme_dup and pass its tangent after it, or mark it enzyme_const",
            "forward mode takes tangents of arguments, and returns that of the result",
        )
    if role in (ArgumentRole.DUP, ArgumentRole.DUP_NO_NEED) and not is_pointer and not (is_forward and is_number):
        raise SignatureError(
            f"{where} is not a pointer, so it has no shadow",
            "mark it enzyme_const" if is_forward else "mark it enzyme_out or enzyme_const",
            "a shadow is memory; the derivative with respect to a number is returned"
            if not is_forward
            else "only numbers and memory have tangents",
        )
    if role is ArgumentRole.OUT and not is_number:
        remedy = "mark it enzyme_dup and pass its shadow after it" if is_pointer else "mark it enzyme_const"
        raise SignatureError(
            f"{where} is not a floating-point number, so it has no derivative to return",
            remedy,
            "enzyme_out asks for the derivative with respect to a number",
        )
    if role is not ArgumentRole.CONST and is_number and param.type not in (types.FLOAT, types.DOUBLE):
        raise UnsupportedError(
            f"{where} is of type {param.type}: irad differentiates only single and double precision",
            "(a) take it as float or double, or (b) mark it enzyme_const",
            "rules exist only for these two types",
        )
