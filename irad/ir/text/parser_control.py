"""Calls, terminators and the pads of exception handling."""

from __future__ import annotations

from typing import Final, TypeVar

from irad.ir import types
from irad.ir.instructions import (
    Br,
    Call,
    CallBr,
    CallSite,
    CondBr,
    ExceptionPad,
    ExceptionTerminator,
    IndirectBr,
    Instruction,
    Invoke,
    LandingPad,
    Resume,
    Ret,
    Switch,
    Unreachable,
)
from irad.ir.module import Block
from irad.ir.text.keywords import FAST_MATH
from irad.ir.text.parser_instructions import BodyReader, InstructionParser
from irad.ir.types import FunctionType
from irad.ir.values import Value

_C = TypeVar("_C", bound=CallSite)


def _site(r: BodyReader, kind: type[_C], name: str | None, opcode: str = "") -> _C:
    """What `call`, `invoke` and `callbr` have in common."""
    flags = r.words(FAST_MATH) if kind is Call else ()
    convention = r.convention()
    result_attributes = r.parameter_attributes()
    addrspace = int(r.take()[10:-1]) if r.tokens[r.i].startswith("addrspace(") else None
    result = r.type()
    function_type = r.function_type(result) if r.tokens[r.i] == "(" else None
    callee = r.value(types.pointer_type(addrspace) if addrspace else types.PTR)
    operands, argument_attributes = _arguments(r, opcode == "musttail")
    if function_type is None:
        function_type = types.function_type(result, [v.type for v in operands])
    else:
        _check_arguments(r, function_type, operands)
    attributes = r.function_attributes()
    bundles = _bundles(r, operands) if r.tokens[r.i] == "[" else ()
    operands.append(callee)
    return kind(
        result, name, {}, operands,
        function_type=function_type, convention=convention, result_attributes=result_attributes,
        argument_attributes=argument_attributes, attributes=attributes, bundles=bundles, flags=flags,
        addrspace=addrspace,
    )  # fmt: skip


def _arguments(r: BodyReader, musttail: bool) -> tuple[list[Value], tuple[tuple[str, ...], ...]]:
    r.expect("(")
    operands: list[Value] = []
    attributes: list[tuple[str, ...]] = []
    tokens = r.tokens
    while tokens[r.i] != ")":
        if operands:
            r.expect(",")
        if musttail and r.accept("..."):  # passes the variadic arguments of the caller on; implied by the callee's type
            break
        type_ = r.type()
        attributes.append(r.parameter_attributes())
        operands.append(r.value(type_))
    r.expect(")")
    return operands, tuple(attributes)


def _check_arguments(r: BodyReader, written: FunctionType, operands: list[Value]) -> None:
    fixed = len(written.params)
    given = tuple([v.type for v in operands])
    if given[:fixed] != written.params or (len(given) > fixed and not written.variadic):
        r.fail(f"the arguments do not fit {written}", r.i - 1)


def _bundles(r: BodyReader, operands: list[Value]) -> tuple[tuple[str, int], ...]:
    """`[ "tag"(T v, …), … ]`; the operands go after the arguments."""

    def bundle() -> tuple[str, int]:
        tag = r.string()
        r.expect("(")
        given = r.listed(")", r.typed_value)
        operands.extend(given)
        return tag, len(given)

    r.expect("[")
    return tuple(r.listed("]", bundle))


def _call(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    if opcode != "call":
        r.expect("call")
    call = _site(r, Call, name, opcode)
    call.tail = None if opcode == "call" else opcode
    return call


def _invoke(r: BodyReader, _: str, name: str | None) -> Instruction:
    invoke = _site(r, Invoke, name)
    r.expect("to")
    normal = r.label()
    r.expect("unwind")
    invoke.targets = [normal, r.label()]
    return invoke


def _callbr(r: BodyReader, _: str, name: str | None) -> Instruction:
    callbr = _site(r, CallBr, name)
    r.expect("to")
    callbr.targets = [r.label(), *_labels(r)]
    return callbr


def _labels(r: BodyReader) -> list[Block]:
    """`[label %a, label %b]`."""
    r.expect("[")
    return r.listed("]", r.label)


def _ret(r: BodyReader, _: str, name: str | None) -> Instruction:
    type_ = r.type()
    return Ret(types.VOID, name, {}, [] if type_ is types.VOID else [r.value(type_)])


def _br(r: BodyReader, _: str, name: str | None) -> Instruction:
    if r.tokens[r.i] == "label":
        return Br(types.VOID, name, targets=[r.label()])
    condition = r.typed_value()
    if condition.type is not types.I1:
        r.fail("a condition must be i1", r.i - 1)
    r.expect(",")
    first = r.label()
    r.expect(",")
    return CondBr(types.VOID, name, {}, [condition], targets=[first, r.label()])


def _switch(r: BodyReader, _: str, name: str | None) -> Instruction:
    operands = [r.typed_value()]
    r.expect(",")
    targets = [r.label()]
    r.expect("[")
    while not r.accept("]"):
        case = r.typed_value()
        if case.type is not operands[0].type:
            r.fail(f"a case must be {operands[0].type}", r.i - 1)
        operands.append(case)
        r.expect(",")
        targets.append(r.label())
    return Switch(types.VOID, name, {}, operands, targets=targets)


def _indirectbr(r: BodyReader, _: str, name: str | None) -> Instruction:
    address = r.typed_value()
    r.expect(",")
    return IndirectBr(types.VOID, name, {}, [address], targets=_labels(r))


def _unreachable(_r: BodyReader, _: str, name: str | None) -> Instruction:
    return Unreachable(types.VOID, name)


def _resume(r: BodyReader, _: str, name: str | None) -> Instruction:
    return Resume(types.VOID, name, {}, [r.typed_value()])


def _landingpad(r: BodyReader, _: str, name: str | None) -> Instruction:
    type_ = r.type()
    cleanup = r.accept("cleanup")
    clauses: list[str] = []
    operands: list[Value] = []
    while r.tokens[r.i] in ("catch", "filter"):
        clauses.append(r.take())
        operands.append(r.typed_value())
    return LandingPad(type_, name, {}, operands, cleanup=cleanup, clauses=tuple(clauses))


def _pad(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    r.expect("within")
    operands = [r.value(types.TOKEN)]
    r.expect("[")
    operands += r.listed("]", r.typed_value)
    return ExceptionPad(types.TOKEN, name, {}, operands, opcode=opcode)


def _catchswitch(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    r.expect("within")
    within = r.value(types.TOKEN)
    targets = _labels(r)
    to_caller = _unwind(r, targets)
    return ExceptionTerminator(
        types.TOKEN, name, {}, [within], targets=targets, opcode=opcode, unwind_to_caller=to_caller
    )


def _unwind(r: BodyReader, targets: list[Block]) -> bool:
    """`unwind to caller`, or `unwind label %b`, which is added to the targets."""
    r.expect("unwind")
    if r.accept("to"):
        r.expect("caller")
        return True
    targets.append(r.label())
    return False


def _pad_return(r: BodyReader, opcode: str, name: str | None) -> Instruction:
    r.expect("from")
    pad = r.value(types.TOKEN)
    targets: list[Block] = []
    to_caller = False
    if opcode == "catchret":
        r.expect("to")
        targets.append(r.label())
    else:
        to_caller = _unwind(r, targets)
    return ExceptionTerminator(types.VOID, name, {}, [pad], targets=targets, opcode=opcode, unwind_to_caller=to_caller)


CONTROL: Final[dict[str, InstructionParser]] = {
    "call": _call,
    "tail": _call,
    "musttail": _call,
    "notail": _call,
    "invoke": _invoke,
    "callbr": _callbr,
    "ret": _ret,
    "br": _br,
    "switch": _switch,
    "indirectbr": _indirectbr,
    "unreachable": _unreachable,
    "resume": _resume,
    "landingpad": _landingpad,
    "catchpad": _pad,
    "cleanuppad": _pad,
    "catchswitch": _catchswitch,
    "catchret": _pad_return,
    "cleanupret": _pad_return,
}
