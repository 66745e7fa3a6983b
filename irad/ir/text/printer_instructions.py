"""One instruction to one line (several for `switch` and `landingpad`), without indentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never, cast

from irad.ir import instructions as ir, types
from irad.ir.module import Block
from irad.ir.text.printer_values import Names
from irad.ir.values import Value


def instruction_text(inst: ir.Instruction, names: Names) -> str:
    """`%r = opcode …, !kind !1`."""
    text = _text(cast("ir.AnyInstruction", inst), names)
    if inst.metadata:
        text += "".join([f", !{kind} {node}" for kind, node in inst.metadata.items()])
    return text if inst.type is types.VOID else f"{names[inst]} = {text}"


def _text(inst: ir.AnyInstruction, n: Names) -> str:
    operands = inst.operands
    match inst:  # the frequent ones first
        case ir.Call():
            flags = _words(inst.flags)
            if inst.tail:
                return f"{inst.tail} call {flags}{_site(inst, n, inst.tail == 'musttail')}"
            return f"call {flags}{_site(inst, n)}"
        case ir.GetElementPtr():
            return f"getelementptr {_words(inst.flags)}{inst.source_type.text}, {_list(operands, n)}"
        case ir.Binary():
            left, right = operands
            return f"{inst.opcode} {_words(inst.flags)}{inst.type.text} {n[left]}, {n[right]}"
        case ir.Load():
            return f"load {_atomic(inst)}{inst.type.text}, {n.typed(operands[0])}{_ordering(inst)}"
        case ir.Store():
            value, pointer = operands
            return f"store {_atomic(inst)}{n.typed(value)}, {n.typed(pointer)}{_ordering(inst)}"
        case ir.Phi():
            incoming = ", ".join([f"[ {n[v]}, {n[b]} ]" for v, b in zip(operands, inst.blocks, strict=True)])
            return f"phi {_words(inst.flags)}{inst.type.text} {incoming}"
        case ir.Br():
            return f"br label {n[inst.targets[0]]}"
        case ir.CondBr():
            yes, no = inst.targets
            return f"br i1 {n[operands[0]]}, label {n[yes]}, label {n[no]}"
        case ir.ICmp():
            left, right = operands
            return f"icmp {_words(inst.flags)}{inst.predicate} {n.typed(left)}, {n[right]}"
        case ir.Cast():
            return f"{inst.opcode} {_words(inst.flags)}{n.typed(operands[0])} to {inst.type.text}"
        case ir.FCmp():
            left, right = operands
            return f"fcmp {_words(inst.flags)}{inst.predicate} {n.typed(left)}, {n[right]}"
        case ir.Select():
            return f"select {_words(inst.flags)}{_list(operands, n)}"
        case ir.ExtractValue():
            return f"extractvalue {n.typed(operands[0])}, {_numbers(inst.indices)}"
        case ir.InsertValue():
            return f"insertvalue {_list(operands, n)}, {_numbers(inst.indices)}"
        case ir.Ret():
            return f"ret {n.typed(operands[0])}" if operands else "ret void"
        case ir.Alloca():
            return _alloca(inst, n)
        case ir.Unary():
            return f"{inst.opcode} {_words(inst.flags)}{n.typed(operands[0])}"
        case ir.Freeze():
            return f"freeze {n.typed(operands[0])}"
        case ir.ExtractElement():
            return f"extractelement {_list(operands, n)}"
        case ir.InsertElement():
            return f"insertelement {_list(operands, n)}"
        case ir.ShuffleVector():
            return f"shufflevector {_list(operands, n)}"
        case ir.Unreachable():
            return "unreachable"
        case _:
            return _rare_text(inst, n)


def _rare_text(
    inst: ir.AtomicRMW | ir.CmpXchg | ir.Fence | ir.VAArg | ir.Invoke | ir.CallBr | ir.Switch | ir.IndirectBr
    | ir.Resume | ir.LandingPad | ir.ExceptionPad | ir.ExceptionTerminator,
    n: Names,
) -> str:  # fmt: skip
    operands = inst.operands
    match inst:
        case ir.AtomicRMW():
            head = f"atomicrmw {'volatile ' if inst.volatile else ''}{inst.opcode} {_list(operands, n)}"
            return f"{head}{_scope(inst.syncscope)} {inst.ordering}{_align(inst.align)}"
        case ir.CmpXchg():
            words = ("weak " if inst.weak else "") + ("volatile " if inst.volatile else "")
            orderings = f"{inst.success} {inst.failure}{_align(inst.align)}"
            return f"cmpxchg {words}{_list(operands, n)}{_scope(inst.syncscope)} {orderings}"
        case ir.Fence():
            return f"fence{_scope(inst.syncscope)} {inst.ordering}"
        case ir.VAArg():
            return f"va_arg {n.typed(operands[0])}, {inst.type}"
        case ir.Invoke():
            normal, unwind = inst.targets
            head = f"invoke {_words(inst.flags)}{_site(inst, n)}"
            return f"{head}\n          to label {n[normal]} unwind label {n[unwind]}"
        case ir.CallBr():
            head = f"callbr {_words(inst.flags)}{_site(inst, n)}"
            return f"{head}\n          to label {n[inst.targets[0]]} [{_labels(inst.targets[1:], n)}]"
        case ir.Switch():
            pairs = zip(operands[1:], inst.targets[1:], strict=True)
            cases = "".join([f"    {n.typed(case)}, label {n[target]}\n" for case, target in pairs])
            return f"switch {n.typed(operands[0])}, label {n[inst.targets[0]]} [\n{cases}  ]"
        case ir.IndirectBr():
            return f"indirectbr {n.typed(operands[0])}, [{_labels(inst.targets, n)}]"
        case ir.Resume():
            return f"resume {n.typed(operands[0])}"
        case ir.LandingPad():
            lines = ["cleanup"] if inst.cleanup else []
            lines += [f"{word} {n.typed(v)}" for word, v in zip(inst.clauses, operands, strict=True)]
            return "\n          ".join([f"landingpad {inst.type}", *lines])
        case ir.ExceptionPad():
            return f"{inst.opcode} within {n[operands[0]]} [{_list(operands[1:], n)}]"
        case ir.ExceptionTerminator():
            return _exception_terminator(inst, n)
        case _:
            assert_never(inst)


def _words(words: tuple[str, ...]) -> str:
    return " ".join(words) + " " if words else ""


def _list(values: Sequence[Value], n: Names) -> str:
    return ", ".join([f"{v.type.text} {n[v]}" for v in values])


def _labels(blocks: Sequence[Block], n: Names) -> str:
    return ", ".join([f"label {n[b]}" for b in blocks])


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _align(align: int | None) -> str:
    return f", align {align}" if align is not None else ""


def _scope(scope: str | None) -> str:
    return f' syncscope("{scope}")' if scope is not None else ""


def _atomic(inst: ir.Load | ir.Store) -> str:
    return ("atomic " if inst.ordering else "") + ("volatile " if inst.volatile else "")


def _ordering(inst: ir.Load | ir.Store) -> str:
    order = f"{_scope(inst.syncscope)} {inst.ordering}" if inst.ordering else ""
    return order + _align(inst.align)


def _alloca(inst: ir.Alloca, n: Names) -> str:
    text = f"alloca {_words(inst.words)}{inst.allocated_type}"
    if inst.operands:
        text += f", {n.typed(inst.operands[0])}"
    text += _align(inst.align)
    type_ = inst.type
    if isinstance(type_, types.PointerType) and type_.addrspace:
        text += f", addrspace({type_.addrspace})"
    return text


def _site(inst: ir.CallSite, n: Names, musttail: bool = False) -> str:
    """From the calling convention to the operand bundles."""
    function_type = inst.function_type
    head = f"{inst.convention} " if inst.convention else ""
    if inst.result_attributes:
        head += _words(inst.result_attributes)
    if inst.addrspace is not None:
        head += f"addrspace({inst.addrspace}) "
    head += function_type.text if function_type.variadic else function_type.result.text
    operands = inst.operands
    arguments = inst.arguments
    if any(inst.argument_attributes):
        attributes = inst.argument_attributes
        inside = ", ".join(
            [
                f"{v.type.text} {_words(attributes[i]) if i < len(attributes) else ''}{n[v]}"
                for i, v in enumerate(arguments)
            ]
        )
    else:
        inside = _list(arguments, n)
    if musttail and function_type.variadic:
        inside += ", ..." if inside else "..."
    tail = f" {' '.join(inst.attributes)}" if inst.attributes else ""
    if inst.bundles:
        tail += _bundles(inst, operands[len(arguments) : -1], n)
    return f"{head} {n[operands[-1]]}({inside}){tail}"


def _bundles(inst: ir.CallSite, operands: list[Value], n: Names) -> str:
    parts: list[str] = []
    start = 0
    for tag, count in inst.bundles:
        parts.append(f'"{tag}"({_list(operands[start : start + count], n)})')
        start += count
    return f" [ {', '.join(parts)} ]"


def _exception_terminator(inst: ir.ExceptionTerminator, n: Names) -> str:
    pad = n[inst.operands[0]]
    if inst.opcode == "catchret":
        return f"catchret from {pad} to label {n[inst.targets[0]]}"
    unwind = "to caller" if inst.unwind_to_caller else f"label {n[inst.targets[-1]]}"
    if inst.opcode == "cleanupret":
        return f"cleanupret from {pad} unwind {unwind}"
    handlers = inst.targets if inst.unwind_to_caller else inst.targets[:-1]
    return f"catchswitch within {pad} [{_labels(handlers, n)}] unwind {unwind}"
