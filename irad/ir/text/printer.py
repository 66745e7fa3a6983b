"""Prints a `Module`, or parts of it, as LLVM text.

The layout is LLVM's own, without its comments. Unnamed values are numbered as LLVM numbers them, equal names of one
function are distinguished by a suffix; nothing in the module is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from irad.errors import InternalError
from irad.ir import types
from irad.ir.instruction_table import text_of
from irad.ir.instructions import Instruction
from irad.ir.module import Block, Function, Module
from irad.ir.text.names import Names, escape, function_names, module_names, spell_metadata_name, spell_name
from irad.ir.values import (
    ConstantExpression,
    GlobalAlias,
    GlobalVariable,
    MetadataOperand,
    Parameter,
    TrackedValue,
    Value,
)
from irad.records import dataclass


def instruction_text(inst: Instruction, names: Names) -> str:
    """`%r = opcode …, !kind !1`: one line, several for `switch` and `landingpad`, without indentation."""
    text = text_of(inst, names)
    if inst.metadata:
        text += "".join([f", !{kind} {node}" for kind, node in inst.metadata.items()])
    return text if inst.type is types.VOID else f"{names[inst]} = {text}"


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
    """Lines that `print_function` prints, and the spelling of each value in them."""
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
    """Text after a variable: properties with commas, then metadata, then attributes without."""
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
