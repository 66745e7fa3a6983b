"""Spelling of names, strings and operands in LLVM text: escapes, quotes, sigils, numbers.

LLVM names are bytes; here they are `str` in UTF-8 with `surrogateescape`, so every byte string has one spelling.
"""

from __future__ import annotations

import re
from typing import Final

from irad.errors import InternalError
from irad.ir import types
from irad.ir.module import Function, Module
from irad.ir.text.keywords import CAST_OPCODES
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
    Poison,
    Undef,
    Value,
)

_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")
_UNPRINTABLE: Final = re.compile(rb'[^ -~]|["\\]')
_PLAIN: Final = re.compile(r"[-A-Za-z._][-A-Za-z._0-9]*")
_PLAIN_METADATA: Final = re.compile(r"[-A-Za-z$._][-A-Za-z$._0-9]*")
_UNPRINTABLE_METADATA: Final = re.compile(rb"^[^-A-Za-z$._]|[^-A-Za-z$._0-9]")


def unescape_bytes(text: str) -> bytes:
    r"""Bytes that the inside of a quoted string denotes: `\0A` is one byte, a doubled backslash one backslash."""
    raw = text.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_byte, raw) if b"\\" in raw else raw


def _byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return code if code == b"\\" else bytes((int(code, 16),))


def escape_bytes(data: bytes) -> str:
    """The inside of a quoted string, as LLVM prints it."""
    return _UNPRINTABLE.sub(_escaped_byte, data).decode("ascii")


def _escaped_byte(match: re.Match[bytes]) -> bytes:
    return b"\\\\" if match[0] == b"\\" else b"\\%02X" % match[0][0]


def unescape(text: str) -> str:
    """A name or string from the inside of its quotes."""
    return unescape_bytes(text).decode("utf-8", "surrogateescape") if "\\" in text else text


def escape(name: str) -> str:
    """The inside of the quotes of a name or string."""
    return escape_bytes(name.encode("utf-8", "surrogateescape"))


def spell_name(name: str) -> str:
    """A name without sigil, in quotes only where LLVM needs them (`%"5"` is a name, `%5` a number)."""
    return name if _PLAIN.fullmatch(name) else f'"{escape(name)}"'


def spell_metadata_name(name: str) -> str:
    """The name of a named metadata node, which has escapes but no quotes."""
    if _PLAIN_METADATA.fullmatch(name):
        return name
    raw = name.encode("utf-8", "surrogateescape")
    return _UNPRINTABLE_METADATA.sub(lambda m: b"\\%02X" % m[0][0], raw).decode("ascii")


def name_key(token: str) -> str:
    """One key for all spellings of a name: `%x` for `%"x"`; names that need quotes and numbers stay apart."""
    if token[1:2] != '"':
        return token
    name = unescape(token[2:-1])
    return token[0] + (name if _PLAIN_METADATA.fullmatch(name) else f'"{escape(name)}"')


def name_of_key(key: str) -> str | None:
    """The raw name that a key belongs to; None if it is a number."""
    if key[1:2] == '"':
        return unescape(key[2:-1])
    return None if key[1:].isdecimal() else key[1:]


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
