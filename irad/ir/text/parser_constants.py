"""Values: locals (also those defined later), globals, and every form of constant."""

from __future__ import annotations

import math
import re
import struct
from typing import Final

from irad.ir import types
from irad.ir.module import Block, Function
from irad.ir.text.keywords import (
    ADDRESS_WORDS,
    ASM_WORDS,
    BINARY_OPCODES,
    CAST_OPCODES,
    CONSTANT_WRAPPERS,
    CONVENTIONS,
    EXPRESSION_FLAGS,
    FUNCTION_CALLS,
    FUNCTION_WORDS,
    ORDERINGS,
    PARAMETER_CALLS,
    PARAMETER_WORDS,
    VECTOR_OPCODES,
)
from irad.ir.text.lexer import END, tokenize
from irad.ir.text.names import name_key, name_of_key, unescape_bytes
from irad.ir.text.parser_types import TypeReader
from irad.ir.types import ArrayType, FloatType, IntType, PointerType, StructType, Type, VectorType
from irad.ir.values import (
    ConstantAggregate,
    ConstantExpression,
    ConstantFloat,
    ConstantNull,
    ConstantString,
    ConstantZero,
    GlobalAlias,
    GlobalWrapper,
    InlineAsm,
    MetadataOperand,
    Poison,
    TrackedValue,
    Undef,
    Value,
    const_int,
)
from irad.records import dataclass

_BRACKETS: Final = {"{": "}", "[": "]", "<": ">"}
_DECIMAL: Final = re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")
_HEXADECIMAL: Final = re.compile(r"0x[0-9A-Fa-f]{1,16}|0x[KLMHR][0-9A-Fa-f]{1,32}")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_HEX_LETTER: Final[dict[Type, str]] = {
    types.HALF: "H", types.BFLOAT: "R", types.X86_FP80: "K", types.FP128: "L", types.PPC_FP128: "M",
}  # fmt: skip


@dataclass(eq=False, slots=True)
class Forward(TrackedValue):
    """Stands for a local value until its definition is read; its users then get the real one."""


class ValueReader(TypeReader):
    """Reads values. ``scope`` and ``globals`` map spellings with sigil to values; ``inside`` a function.

    ``pending`` are the locals used but not defined so far, with the place of their first use.
    """

    __slots__ = ("constants", "globals", "inside", "metadata_operands", "pending", "scope")

    def __init__(self, source: str, tokens: list[str], outer: ValueReader | None = None) -> None:
        super().__init__(source, tokens, outer)
        self.constants: dict[tuple[Type, str], Value] = {} if outer is None else outer.constants
        self.globals: dict[str, TrackedValue] = {} if outer is None else outer.globals
        self.scope: dict[str, Value] = {} if outer is None else outer.scope
        self.pending: dict[str, int] = {} if outer is None else outer.pending
        self.inside: bool = outer is not None and outer.inside
        self.metadata_operands: list[MetadataOperand] = [] if outer is None else outer.metadata_operands

    def typed_value(self) -> Value:
        """`T v`."""
        i, tokens = self.i, self.tokens
        type_ = self.types.get(tokens[i])
        if type_ is not None:  # a short way for known names and constants; `value` does it all again with checks
            token = tokens[i + 1]
            found = self.scope.get(token) or self.constants.get((type_, token))
            if found is not None and found.type is type_:
                self.i = i + 2
                return found
        return self.value(self.type())

    def pair(self) -> tuple[Value, Value]:
        """`T a, b`."""
        left = self.typed_value()
        if self.tokens[self.i] != ",":
            self.unexpected("','")
        self.i += 1
        return left, self.value(left.type)

    def value(self, type_: Type) -> Value:
        """An operand whose type is known."""
        token = self.tokens[self.i]
        found = self.scope.get(token)
        if found is not None and found.type is type_:
            self.i += 1
            return found
        if token[0] == "%":
            return self._local(type_, token)
        key = (type_, token)
        found = self.constants.get(key)
        if found is None:
            if token[0] == "@":
                return self._global(type_, token)
            found = self._one_token_constant(type_, token)
            if found is None:
                return self._long_constant(type_, token)
            self.constants[key] = found
        self.i += 1
        return found

    # -------------------------------------------------------------------------------------------- names

    def _local(self, type_: Type, token: str) -> Value:
        scope = self.scope
        if not self.inside:
            self.fail(f"the local {token} outside of a function")
        key = self.sigil("%", "the name of a local")
        found = scope.get(key)
        if found is None:
            found = scope[key] = Forward(type_, key)
            self.pending[key] = self.i - 1
        elif found.type is not type_:
            self.fail(f"{token} is of type {found.type}, not {type_}", self.i - 1)
        return found

    def _global(self, type_: Type, token: str) -> Value:
        found = self.globals.get(name_key(token))
        if found is None:
            self.fail(f"{token} is not defined")
        if found.type is not type_:
            # The address space of a function or alias stands in its own line, perhaps further down in the text.
            unread = isinstance(found, Function) and found.module is None
            unread = unread or (isinstance(found, GlobalAlias) and found.target is None)
            if not (unread and isinstance(type_, PointerType)):
                self.fail(f"{token} is of type {found.type}, not {type_}")
            found.type = type_
        self.constants[type_, token] = found
        self.i += 1
        return found

    # -------------------------------------------------------------------------------------------- constants

    def _one_token_constant(self, type_: Type, token: str) -> Value | None:
        match type_:
            case IntType():
                found = self._integer(type_, token)
            case FloatType():
                found = self._float(type_, token)
            case PointerType() if token == "null":
                found = ConstantNull(type_)
            case types.TOKEN if token == "none":
                found = ConstantNull(type_)
            case types.METADATA if token[0] == "!" and len(token) > 1:
                return MetadataOperand(type_, None, token)
            case _:
                found = None
        if found is not None:
            return found
        match token:
            case "undef":
                return Undef(type_)
            case "poison":
                return Poison(type_)
            case "zeroinitializer":
                return ConstantZero(type_)
            case _ if token.startswith('c"') and isinstance(type_, ArrayType):
                data = unescape_bytes(token[2:-1])
                if len(data) != type_.count or type_.element is not types.I8:
                    self.fail(f"a string of {len(data)} bytes is not a value of type {type_}")
                return ConstantString(type_, None, data)
            case _:
                return None

    def _integer(self, type_: IntType, token: str) -> Value | None:
        if _INTEGER.fullmatch(token):
            number = int(token)
            if not -(1 << (type_.bits - 1)) <= number < 1 << type_.bits:
                self.fail(f"{token} does not fit into {type_}")
            return const_int(type_, number)
        if type_.bits == 1 and token in ("true", "false"):
            return const_int(type_, token == "true")
        return None

    def _float(self, type_: FloatType, token: str) -> Value | None:
        if _DECIMAL.fullmatch(token):
            return ConstantFloat(type_, None, float(token), token)
        if _HEXADECIMAL.fullmatch(token):
            letter = _HEX_LETTER.get(type_, "")
            if token[2:3].upper() not in "KLMHR":
                letter, digits = "", token[2:]
            else:
                digits = token[3:]
                if token[2] != letter:
                    self.fail(f"{token} is not a value of type {type_}")
            return ConstantFloat(type_, None, _hexadecimal_value(letter, int(digits, 16)), token)
        return None

    def _long_constant(self, type_: Type, token: str) -> Value:
        start = self.i
        self.i += 1
        word = token.partition("(")[0]
        if type_ is types.METADATA:
            self.i = start
            return self._wrapped_metadata()
        if token in _BRACKETS:
            return self._elements(type_, token)
        if token == "splat" and isinstance(type_, VectorType):
            self.expect("(")
            element = self.typed_value()
            self.expect(")")
            return ConstantAggregate(type_, None, (element,), True)
        if token == "asm":
            return self._asm(type_)
        if word == "blockaddress":
            return self._block_address(type_, token)
        if token in CONSTANT_WRAPPERS:
            return self._wrapper(type_, token)
        if not (
            token in CAST_OPCODES or token in BINARY_OPCODES or token in VECTOR_OPCODES or token == "getelementptr"
        ):
            self.i = start
            self.unexpected(f"a value of type {type_}")
        return self.expression(type_, token)

    def _elements(self, type_: Type, opening: str) -> Value:
        """`{ … }`, `<{ … }>`, `[ … ]` or `< … >`, the opening bracket read."""
        packed = opening == "<" and self.accept("{")
        closing = "}" if packed else _BRACKETS[opening]
        elements = self.listed(closing, self.typed_value)
        if packed:
            self.expect(">")
        given = [v.type for v in elements]
        match type_:
            case ArrayType(count=count, element=element):
                fits = opening == "[" and given == [element] * len(given) and len(given) == count
            case VectorType(count=count, element=element):
                fits = opening == "<" and not packed and given == [element] * len(given) and len(given) == count
            case StructType() | types.NamedStructType():
                plain = opening == "{" or packed
                fits = plain and tuple(given) == self.fields(type_) and types.struct_body(type_).packed == packed
            case _:
                fits = False
        if not fits:
            self.fail(f"these {len(given)} elements make no {type_}", self.i - 1)
        return ConstantAggregate(type_, None, tuple(elements))

    def _asm(self, type_: Type) -> Value:
        words = ["asm", *self.words(ASM_WORDS)]
        text = self.quoted()
        self.expect(",")
        return InlineAsm(type_, None, f"{' '.join(words)} {text}, {self.quoted()}")

    def _block_address(self, type_: Type, token: str) -> Value:
        inner = ValueReader(token, tokenize(token[len("blockaddress") :]), self)
        inner.expect("(")
        function = inner.take()
        inner.expect(",")
        block = inner.take()
        inner.expect(")")
        found = self.globals.get(name_key(function))
        if not isinstance(found, Function) or block[0] != "%" or inner.tokens[inner.i] != END:
            self.fail(f"{token} is not a blockaddress")
        name = name_of_key(name_key(block))
        return GlobalWrapper(type_, None, "blockaddress", (found,), name if name is not None else block)

    def _wrapper(self, type_: Type, word: str) -> Value:
        if word != "ptrauth":
            return GlobalWrapper(type_, None, word, (self.value(type_),))
        self.expect("(")
        operands = [self.typed_value()]
        while self.accept(","):
            operands.append(self.typed_value())
        self.expect(")")
        return GlobalWrapper(type_, None, word, tuple(operands))

    def expression(self, type_: Type | None, opcode: str) -> Value:
        """Parses a constant expression after its opcode; without a given type, a pointer expression."""
        start, tokens = self.i, self.tokens
        while tokens[self.i] in EXPRESSION_FLAGS or tokens[self.i].startswith("inrange("):
            self.i += 1
        flags = tuple(tokens[start : self.i])
        self.expect("(")
        source_type = None
        if opcode == "getelementptr":
            source_type = self.type()
            self.expect(",")
        operands = [self.typed_value()]
        while self.accept(","):
            operands.append(self.typed_value())
        if opcode in CAST_OPCODES:
            self.expect("to")
            target = self.type()
            type_ = type_ or target
            if target is not type_:
                self.fail(f"a cast to {type_} is wanted", self.i - 1)
        self.expect(")")
        type_ = type_ or operands[0].type
        return ConstantExpression(type_, None, opcode, tuple(operands), flags, source_type)

    def _wrapped_metadata(self) -> Value:
        wrapped = self.typed_value()
        found = MetadataOperand(types.METADATA, None, "", wrapped)
        if isinstance(wrapped, Forward):
            self.metadata_operands.append(found)
        return found


def _hexadecimal_value(letter: str, bits: int) -> float:
    match letter:
        case "":
            value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        case "H":
            value = struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]
        case "R":
            value = struct.unpack("<f", struct.pack("<I", (bits & 0xFFFF) << 16))[0]
        case _:
            value = math.nan
    return value


# Attributes of parameters, results, calls and functions: recognised by name, kept as printed.


class AttributeReader(ValueReader):
    """Reads attributes and calling conventions."""

    __slots__ = ()

    def parameter_attributes(self) -> tuple[str, ...]:
        """Parses attributes of a parameter, argument or result."""
        token = self.tokens[self.i]
        first = token[0]
        if first == "%" or first == "@" or first == "," or first == ")":
            return ()
        found: list[str] = []
        while True:
            token = self.tokens[self.i]
            if token in PARAMETER_WORDS or (token[-1] == ")" and token.partition("(")[0] in PARAMETER_CALLS):
                found.append(token)
                self.i += 1
            elif token == "align":
                self.i += 1
                found.append(f"align {self.integer()}")
            elif token[0] == '"':
                found.append(self._string_attribute())
            else:
                return tuple(found)

    def function_attributes(self) -> tuple[str, ...]:
        """Parses attributes of a function or call: words, strings, groups (`#4`)."""
        if self.tokens[self.i] == ",":
            return ()
        found: list[str] = []
        while True:
            token = self.tokens[self.i]
            if token[0] == "#" and token[1:].isdecimal():
                found.append(token)
                self.i += 1
                continue
            if (
                token in FUNCTION_WORDS
                or token in ADDRESS_WORDS
                or (token[-1] == ")" and token.partition("(")[0] in FUNCTION_CALLS)
                or token.startswith("addrspace(")
            ):
                found.append(token)
                self.i += 1
            elif token[0] == '"':
                found.append(self._string_attribute())
            else:
                return tuple(found)

    def group_attributes(self) -> tuple[str, ...]:
        """Between the braces of `attributes #4 = { … }`; all kinds of attributes may stand there."""
        found: list[str] = []
        while not self.accept("}"):
            token = self.tokens[self.i]
            name = token.partition("(")[0]
            if token[0] == '"':
                found.append(self._string_attribute())
            elif token in FUNCTION_WORDS or token in PARAMETER_WORDS or token in ("align", "alignstack"):
                self.i += 1
                found.append(f"{token}={self.integer()}" if self.accept("=") else token)
            elif token[-1] == ")" and (name in FUNCTION_CALLS or name in PARAMETER_CALLS):
                self.i += 1
                found.append(token)
            else:
                self.unexpected("an attribute")
        return tuple(found)

    def _string_attribute(self) -> str:
        key = self.quoted()
        return f"{key}={self.quoted()}" if self.accept("=") else key

    def convention(self) -> str | None:
        """A calling convention; None for the default."""
        token = self.tokens[self.i]
        if token in CONVENTIONS or token.startswith("riscv_vls_cc("):
            self.i += 1
            return None if token == "ccc" else token
        if token[:2] == "cc" and token[2:].isascii() and token[2:].isdigit():
            self.i += 1
            return token if int(token[2:]) else None
        if token == "cc":
            self.i += 1
            number = self.integer()
            return f"cc{number}" if number else None
        return None


class BodyReader(AttributeReader):
    """Reads the inside of one function body at a time."""

    __slots__ = ()

    def label(self) -> Block:
        """`label %b`."""
        self.expect("label")
        return self.block()

    def block(self) -> Block:
        """`%b`: the block of that name, made on first mention."""
        token = self.tokens[self.i]
        found = self.scope.get(token)
        if isinstance(found, Block):
            self.i += 1
            return found
        key = self.sigil("%", "the name of a block")
        found = self.scope.get(key)
        if found is None:
            found = self.scope[key] = Block(types.LABEL, name_of_key(key))
            self.pending[key] = self.i - 1
        if not isinstance(found, Block):
            self.fail(f"{token} is not a block", self.i - 1)
        return found

    def alignment(self) -> int | None:
        """`, align n`, if there."""
        i, tokens = self.i, self.tokens
        if tokens[i] != "," or tokens[i + 1] != "align":
            return None
        self.i = i + 2
        return self.integer()

    def sync_scope(self) -> str | None:
        """`syncscope("…")`, if there: the name with its quotes taken off."""
        token = self.tokens[self.i]
        if not token.startswith('syncscope("'):
            return None
        self.i += 1
        return token[11:-2]

    def ordering(self) -> str:
        """An atomic ordering."""
        token = self.tokens[self.i]
        if token not in ORDERINGS:
            self.unexpected("an atomic ordering")
        self.i += 1
        return token

    def predicate(self, allowed: frozenset[str]) -> str:
        """A predicate of a comparison."""
        token = self.tokens[self.i]
        if token not in allowed:
            self.unexpected("a predicate")
        self.i += 1
        return token
