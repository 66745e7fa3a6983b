"""Prints a `Module`, or parts of it, as LLVM text.

The layout is LLVM's own, without its comments. Unnamed values are numbered as LLVM numbers them, equal names of one
function are distinguished by a suffix; nothing in the module is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never, cast

from irad.errors import InternalError
from irad.ir import instructions as ir, types
from irad.ir.instructions import Instruction
from irad.ir.module import Block, Function, Module
from irad.ir.text.keywords import CAST_OPCODES
from irad.ir.text.names import escape, escape_bytes, spell_metadata_name, spell_name
from irad.ir.values import (
    ConstantAggregate,
    ConstantExpression,
    ConstantFloat,
    ConstantInt,
    ConstantNull,
    ConstantString,
    ConstantZero,
    GlobalAlias,
    GlobalVariable,
    GlobalWrapper,
    InlineAsm,
    MetadataOperand,
    Parameter,
    Poison,
    TrackedValue,
    Undef,
    Value,
)

# Spelling of operands: a dictionary from values to text that fills itself.

_LONGEST: Final = 1000  # bytes; LLVM reads 1,024 of a local name, a suffix may follow


class Names(dict[Value, str]):
    """Spelling of each value without its type. Locals must be entered; constants and globals enter themselves.

    Those that miss in the names of a function are looked up in ``outer``, the names of its module.
    """

    __slots__ = ("outer",)

    def __init__(self, outer: Names | None = None) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, value: Value) -> str:
        if isinstance(value, MetadataOperand):  # may wrap a local
            return value.text or self.typed(_wrapped(value))
        text = self.outer[value] if self.outer is not None else self._spell(value)
        self[value] = text
        return text

    def typed(self, value: Value) -> str:
        """`T v`."""
        return f"{value.type.text} {self[value]}"

    def _spell(self, value: Value) -> str:
        match value:
            case ConstantInt(type=type_, value=number):
                return ("true" if number else "false") if type_ is types.I1 else str(number)
            case ConstantFloat(text=text) | InlineAsm(text=text):
                return text
            case GlobalVariable() | Function() | GlobalAlias():
                if value.name is None:
                    raise InternalError("a global without name outside of a module cannot be printed")
                return f"@{spell_name(value.name)}"
            case ConstantNull(type=type_):
                return "none" if type_ is types.TOKEN else "null"
            case ConstantZero():
                return "zeroinitializer"
            case Undef():
                return "undef"
            case Poison():
                return "poison"
            case ConstantAggregate():
                return self._aggregate(value)
            case ConstantString(data=data):
                return f'c"{escape_bytes(data)}"'
            case ConstantExpression():
                return self._expression(value)
            case GlobalWrapper():
                return self._wrapper(value)
            case _:
                raise InternalError(f"an operand of type {value.type} is not part of the printed function")

    def _list(self, values: tuple[Value, ...]) -> str:
        return ", ".join([self.typed(v) for v in values])

    def _aggregate(self, value: ConstantAggregate) -> str:
        inside = self._list(value.elements)
        match value.type:
            case types.VectorType():
                return f"splat ({inside})" if value.splat else f"<{inside}>"
            case types.ArrayType():
                return f"[{inside}]"
            case _:
                braces = f"{{ {inside} }}" if inside else "{}"
                return f"<{braces}>" if types.struct_body(value.type).packed else braces

    def _expression(self, value: ConstantExpression) -> str:
        head = " ".join((value.opcode, *value.flags))
        source = f"{value.source_type}, " if value.source_type is not None else ""
        target = f" to {value.type}" if value.opcode in CAST_OPCODES else ""
        return f"{head} ({source}{self._list(value.operands)}{target})"

    def _wrapper(self, value: GlobalWrapper) -> str:
        if value.text == "blockaddress":
            block = value.block or ""
            spelled = block if block[:1] == "%" else f"%{spell_name(block)}"
            return f"blockaddress({self[value.operands[0]]}, {spelled})"
        if value.text == "ptrauth":
            return f"ptrauth ({self._list(value.operands)})"
        return f"{value.text} {self[value.operands[0]]}"


def _wrapped(value: MetadataOperand) -> Value:
    if value.value is None:
        raise InternalError("a metadata operand without text and value")
    return value.value


def module_names(module: Module) -> Names:
    """Names of the globals; those without a name get numbers in the order LLVM prints them."""
    names = Names()
    number = 0
    for table in (module.globals, module.aliases, module.functions):
        for value in table.values():
            if value.name is None:
                names[value] = f"@{number}"
                number += 1
    return names


def function_names(function: Function, outer: Names) -> Names:
    """Names and numbers of everything local: parameters, blocks and results share one count, as in LLVM.

    Of several values with one name the first keeps it, the others get `.1`, `.2`, … after it. Names are cut where LLVM
    would not read them.
    """
    names = Names(outer)
    taken: set[str] = set()
    again: list[Value] = []
    number = 0
    for value in _locals(function):
        name = _legible(value.name)
        if name is None:
            names[value] = f"%{number}"
            number += 1
        elif name in taken:
            again.append(value)
        else:
            taken.add(name)
            names[value] = f"%{spell_name(name)}"
    counts: dict[str, int] = {}
    for value in again:
        stem = _legible(value.name) or ""
        count = counts.get(stem, 0) + 1
        while f"{stem}.{count}" in taken:
            count += 1
        counts[stem] = count
        taken.add(f"{stem}.{count}")
        names[value] = f"%{spell_name(f'{stem}.{count}')}"
    return names


def _legible(name: str | None) -> str | None:
    """The name, or its beginning; labels are made of mangled symbols, which hold the types of all arguments."""
    if name is None or len(name) <= _LONGEST // 4:
        return name
    return name.encode("utf-8", "surrogateescape")[:_LONGEST].decode("utf-8", "surrogateescape")


def _locals(function: Function) -> list[Value]:
    found: list[Value] = list(function.params)
    void = types.VOID
    for block in function.blocks:
        found.append(block)
        found += [inst for inst in block.instructions if inst.type is not void]
    return found


# One instruction to one line (several for `switch` and `landingpad`), without indentation.


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


def print_module(module: Module) -> str:
    """The whole module, ended by a newline."""
    names = module_names(module)
    parts = [_head(module)]
    parts.append("".join([_global_variable(g, names) for g in module.globals.values()]))
    parts.append("".join([_alias(a, names) for a in module.aliases.values()]))
    parts += [_function(f, names) for f in module.functions.values()]
    parts.append("".join([f"attributes {k} = {{ {' '.join(v)} }}\n" for k, v in module.attribute_groups.items()]))
    parts.append(
        "".join([f"!{spell_metadata_name(k)} = !{{{', '.join(v)}}}\n" for k, v in module.named_metadata.items()])
    )
    parts.append("".join([f"!{k} = {'distinct ' if v.distinct else ''}{v.text}\n" for k, v in module.metadata.items()]))
    parts.append("".join([f"{line}\n" for line in module.trailer]))
    return "\n".join([part for part in parts if part])


def print_function(function: Function) -> str:
    """One function, declared or defined, ended by a newline."""
    return _function(function, _outer_names(function))


def format_instruction(inst: Instruction) -> str:
    """The instruction on one line, for messages; it may be detached or half built."""
    names = _names_around(inst)
    return " ".join([line.strip() for line in instruction_text(inst, names).split("\n")])


def format_value(value: Value) -> str:
    """Type and spelling of an operand, for messages: `double %x`, `i64 3`."""
    return f"{value.type} {spelling(value)}"


def spelling(value: Value) -> str:
    """The spelling of an operand without its type, for messages: `%x`, `3`."""
    return _names_of(value)[value]


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line of a printed function with its ``instruction``, None for heads, labels and records."""

    text: str
    instruction: Instruction | None = None


def print_lines(function: Function) -> tuple[list[PrintedLine], Mapping[Value, str]]:
    """What `print_function` prints, line by line, and the spelling of each value in it."""
    names = function_names(function, _outer_names(function))
    lines = [PrintedLine(line, inst) for text, inst in _lines(function, names) for line in text.split("\n")]
    return lines, names


# ------------------------------------------------------------------------------------------------ module level


def _head(module: Module) -> str:
    lines: list[str] = []
    if module.source_name is not None:
        lines.append(f'source_filename = "{escape(module.source_name)}"')
    if module.layout is not None:
        lines.append(f'target datalayout = "{escape(module.layout)}"')
    if module.triple is not None:
        lines.append(f'target triple = "{escape(module.triple)}"')
    blocks = ["\n".join(lines)]
    blocks.append("\n".join([f'module asm "{escape(line)}"' for line in module.asm]))
    blocks.append("\n".join([f"{s} = type {'opaque' if s.body is None else s.body}" for s in module.structs.values()]))
    blocks.append("\n".join([f"${spell_name(name)} = comdat {kind}" for name, kind in module.comdats.items()]))
    text = "\n\n".join([block for block in blocks if block])
    return f"{text}\n" if text else ""


def _properties(suffix: tuple[str, ...], metadata: tuple[tuple[str, str], ...]) -> str:
    """What follows a variable: properties with commas, then metadata, then attributes without."""
    listed = [word for word in suffix if word[0] not in '#"']
    attributes = [f" {word}" for word in suffix if word[0] in '#"']
    listed += [f"!{kind} {node}" for kind, node in metadata]
    return "".join([f", {word}" for word in listed]) + "".join(attributes)


def _global_variable(value: GlobalVariable, names: Names) -> str:
    head = " ".join(
        [names[value], "=", *value.prefix, "constant" if value.constant else "global", str(value.value_type)]
    )
    initializer = f" {names[value.initializer]}" if value.initializer is not None else ""
    return f"{head}{initializer}{_properties(value.suffix, value.metadata)}\n"


def _alias(value: GlobalAlias, names: Names) -> str:
    if value.target is None:
        raise InternalError(f"the alias {names[value]} has no target")
    head = " ".join([names[value], "=", *value.prefix, value.keyword, str(value.value_type)])
    target = names[value.target] if isinstance(value.target, ConstantExpression) else names.typed(value.target)
    return f"{head}, {target}{_properties(value.suffix, ())}\n"


# ------------------------------------------------------------------------------------------------ functions


def _function(function: Function, outer: Names) -> str:
    texts = [text for text, _ in _lines(function, function_names(function, outer))]
    return "\n".join([*texts, ""])


def _lines(function: Function, names: Names) -> Iterator[tuple[str, Instruction | None]]:
    """The lines of a function with their instructions, None for heads, labels and records; some have several lines."""
    yield _opening(function, names), None
    if function.is_declaration:
        return
    for index, block in enumerate(function.blocks):
        if index:
            yield "", None
        if index or block.name is not None:
            yield f"{names[block][1:]}:", None
        for inst in block.instructions:
            if inst.debug_records:
                yield from [(f"    {record}", None) for record in inst.debug_records]
            yield f"  {instruction_text(inst, names)}", inst
        yield from [(f"    {record}", None) for record in block.trailing_records]
    yield "}", None


def _opening(function: Function, names: Names) -> str:
    """The first line."""
    metadata = " ".join([f"!{kind} {node}" for kind, node in function.metadata])
    if function.is_declaration:
        return _header("declare " + (f"{metadata} " if metadata else ""), function, names)
    return _header("define ", function, names) + (f" {metadata}" if metadata else "") + " {"


def _header(keyword: str, function: Function, names: Names) -> str:
    words = [*function.prefix]
    if function.convention:
        words.append(function.convention)
    words += function.result_attributes
    words.append(str(function.function_type.result))
    declared = function.is_declaration
    params: list[str] = []
    for param in function.params:
        spelled = () if declared and param.name is None else (names[param],)
        params.append(" ".join((str(param.type), *param.attributes, *spelled)))
    if function.function_type.variadic:
        params.append("...")
    rest = [*function.attributes, *function.suffix, *[f"{word} {names.typed(v)}" for word, v in function.operands]]
    tail = " " + " ".join(rest) if rest else ""
    return f"{keyword}{' '.join(words)} {names[function]}({', '.join(params)}){tail}"


# ------------------------------------------------------------------------------------------------ messages


class _MessageNames(Names):
    """Names for messages: never fails; a value of unknown number is `%?`."""

    __slots__ = ()

    def __missing__(self, value: Value) -> str:
        if isinstance(value, Block | TrackedValue) and not isinstance(value, GlobalVariable | GlobalAlias | Function):
            return f"%{spell_name(value.name)}" if value.name is not None else "%?"
        return super().__missing__(value)


def _outer_names(function: Function) -> Names:
    return module_names(function.module) if function.module is not None else Names()


def _message_names(function: Function | None) -> Names:
    names = _MessageNames(_outer_names(function) if function is not None else None)
    if function is not None:
        names.update(function_names(function, Names()))
    return names


def _names_around(inst: Instruction) -> Names:
    """Numbers the whole function only where the instruction mentions an unnamed value."""
    mentioned: list[Value] = [inst, *inst.operands, *inst.targets, *getattr(inst, "blocks", ())]
    function = inst.block.function if inst.block is not None else None
    needed = any(v.name is None for v in mentioned if isinstance(v, Block | TrackedValue))
    return _message_names(function if needed else None)


def _names_of(value: Value) -> Names:
    if isinstance(value, MetadataOperand) and value.value is not None:
        return _names_of(value.value)
    match value:
        case Instruction(name=None, block=Block(function=Function() as function)):
            return _message_names(function)
        case Block(name=None, function=Function() as function):
            return _message_names(function)
        case Parameter(name=None, users=users):  # does not know its function, but its users do
            functions = [user.block.function for user in users if user.block is not None]
            return _message_names(next((f for f in functions if f is not None and value in f.params), None))
        case _:
            return _message_names(None)
