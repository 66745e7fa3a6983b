"""Reads the text LLVM prints into a `Module`.

The text is scanned once for the names of globals and functions, so that every `@name` is known before the first use;
then everything is read in order. Locals that are used before their definition (phis, blocks further down) are
stand-ins until it comes. What is not understood is a `ParseError`, never a guess.

The input is what `str()` of a module prints: top-level entities begin at the start of a line, a function ends with a
`}` at the start of a line, results and blocks other than the entry are named or numbered explicitly.
"""

from __future__ import annotations

import re
from typing import Final

from irad.ir import types
from irad.ir.instruction_table import READERS
from irad.ir.instructions import CallBr, Instruction, Invoke, Terminator, replace_uses
from irad.ir.module import Block, Function, MetadataNode, Module
from irad.ir.text.keywords import (
    COMDAT_KINDS,
    FUNCTION_CONSTANTS,
    LINKAGE_WORDS,
    POINTER_EXPRESSIONS,
    SANITIZER_WORDS,
    VARIABLE_WORDS,
)
from irad.ir.text.lexer import BODY_END, END, tokenize
from irad.ir.text.names import name_key, name_of_key, unescape
from irad.ir.text.parser_constants import BodyReader, Forward
from irad.ir.types import VOID, NamedStructType, Type
from irad.ir.values import GlobalAlias, GlobalVariable, Parameter, TrackedValue, Value

# Function headers and bodies.

_TERMINATORS: Final = (Terminator, Invoke, CallBr)
_DIGITS: Final = frozenset("0123456789")


class FunctionReader(BodyReader):
    """Reads whole functions."""

    __slots__ = ()

    # -------------------------------------------------------------------------------------------- header

    def function(self) -> Function:
        """A declaration or definition; the `Function` itself has been made when the text was scanned for globals."""
        defined = self.take() == "define"
        metadata = self.attachments()
        prefix = self.words(LINKAGE_WORDS)
        convention = self.convention()
        result_attributes = self.parameter_attributes()
        result = self.type()
        found = self.globals.get(name_key(self.take()))
        if not isinstance(found, Function) or found.function_type.params or found.params:
            self.fail("this function was not found when the text was scanned, or is there twice", self.i - 1)
        found.prefix, found.convention, found.result_attributes = prefix, convention, result_attributes
        self.scope, self.inside = {}, defined
        self._parameters(found, result)
        found.attributes = self.function_attributes()
        self._placement(found)
        if defined:  # those of a declaration come first; after it a metadata node may follow
            metadata.update(self.attachments())
        found.metadata = tuple(metadata.items())
        if defined:
            if not self.accept("{"):
                self.unexpected("'{'")
            self._body(found)
        self.scope, self.inside = {}, False
        return found

    def _parameters(self, function: Function, result: Type) -> None:
        self.expect("(")
        variadic = False
        params = function.params
        while not self.accept(")"):
            if params:
                self.expect(",")
            if variadic := self.accept("..."):
                self.expect(")")
                break
            type_ = self.type()
            attributes = self.parameter_attributes()
            name = None
            key = f"%{len([p for p in params if p.name is None])}"
            if self.tokens[self.i][0] == "%":
                key = self.sigil("%", "the name of a parameter")
                name = name_of_key(key)
            param = Parameter(type_, name, {}, attributes)
            params.append(param)
            self._define(key, param, self.i - 1)
        function.function_type = types.function_type(result, [p.type for p in params], variadic=variadic)

    def _placement(self, function: Function) -> None:
        """Section, comdat, alignment and the like; then the constants of `prefix`, `prologue` and `personality`."""
        suffix: list[str] = []
        while True:
            token = self.tokens[self.i]
            if token in ("section", "partition", "gc"):
                self.i += 1
                suffix.append(f"{token} {self.quoted()}")
            elif token in ("align", "prefalign"):
                self.i += 1
                suffix.append(f"{token} {self.integer()}")
            elif token == "comdat" or token.startswith(("comdat(", "prefalign(")):
                self.i += 1
                suffix.append(token)
            else:
                break
        function.suffix = tuple(suffix)
        operands: list[tuple[str, Value]] = []
        while self.tokens[self.i] in FUNCTION_CONSTANTS:
            operands.append((self.take(), self.typed_value()))
        function.operands = tuple(operands)

    def attachments(self) -> dict[str, str]:
        """`!dbg !4 !prof !5` of a function."""
        found: dict[str, str] = {}
        while self.tokens[self.i][0] == "!" and self.tokens[self.i + 1] != "=":  # else the module's metadata begins
            kind = self.sigil("!", "a kind of metadata")
            found[kind[1:]] = self.node()
        return found

    def node(self) -> str:
        """A metadata node as printed: `!4`, `!{…}` or `!DIExpression(…)`."""
        token = self.tokens[self.i]
        if token[0] != "!" or len(token) < 2:
            self.unexpected("a metadata node")
        self.i += 1
        return token

    # -------------------------------------------------------------------------------------------- body

    def _body(self, function: Function) -> None:
        tokens = self.tokens
        block = self._entry(function)
        records: list[str] = []
        instructions = block.instructions
        closed = False
        while True:
            token = tokens[self.i]
            first = token[0]
            if first == "%" or token in READERS:
                if closed:
                    self.unexpected("a label or the end of the function")
                inst = self._instruction(token)
                inst.block = block
                instructions.append(inst)
                if records:
                    inst.debug_records = tuple(records)
                    records = []
                closed = isinstance(inst, _TERMINATORS)
            elif token[-1] == ":":
                self._close(block, records, closed)
                block = self._label(function, token)
                instructions, records, closed = block.instructions, [], False
            elif token.startswith(("#dbg_", "uselistorder")):
                records.append(token)
                self.i += 1
            elif token == BODY_END:
                break
            else:
                self.unexpected("an instruction or label")
        self._close(block, records, closed)
        self.i += 1
        self.metadata_operands.clear()
        for key, index in self.pending.items():
            self.fail(f"{key} is not defined in this function", index)

    def _instruction(self, token: str) -> Instruction:
        tokens = self.tokens
        start = self.i
        if token[0] == "%":
            if tokens[start + 1] != "=" or token == "%":
                self.unexpected("an instruction")
            key = token
            if token[1] in _DIGITS:
                name = None
            elif token[1] != '"':
                name = token[1:]
            else:
                key = name_key(token)
                name = name_of_key(key)
            opcode = tokens[start + 2]
            self.i = start + 3
        else:
            key, name, opcode = "", None, token
            self.i = start + 1
        read = READERS.get(opcode)
        if read is None:
            self.fail(f"unknown instruction {opcode.strip()!r}", self.i - 1)
        inst = read(self, opcode, name)
        if (inst.type is VOID) != (not key):
            self.fail(f"{opcode} of type {inst.type} {'with' if key else 'without'} a result name", start)
        if key:
            if key in self.scope:
                self._define(key, inst, start)
            else:
                self.scope[key] = inst
        if tokens[self.i] == ",":
            self._attach(inst)
        return inst

    def _attach(self, inst: Instruction) -> None:
        tokens = self.tokens
        metadata = inst.metadata
        while tokens[self.i] == ",":
            self.i += 1
            kind = self.sigil("!", "metadata at the end of the instruction")
            metadata[kind[1:]] = self.node()

    def _define(self, key: str, value: Value, index: int) -> None:
        scope = self.scope
        known = scope.get(key)
        if known is not None:
            if not isinstance(known, Forward):
                self.fail(f"{key} is defined twice", index)
            if known.type is not value.type:
                self.fail(f"{key} was used as {known.type} and is {value.type}", index)
            del self.pending[key]
            replace_uses(known, value)
            for operand in self.metadata_operands:
                if operand.value is known:
                    operand.value = value
        scope[key] = value

    def _entry(self, function: Function) -> Block:
        token = self.tokens[self.i]
        if token[-1] == ":" and token[0] != "!":
            return self._label(function, token)
        return self._begin(function, f"%{sum(p.name is None for p in function.params)}", self.i)

    def _label(self, function: Function, token: str) -> Block:
        if token == ":":
            self.unexpected("a label")
        self.i += 1
        return self._begin(function, name_key(f"%{token[:-1]}"), self.i - 1)

    def _begin(self, function: Function, key: str, index: int) -> Block:
        block = self.scope.get(key)
        if block is None:
            block = self.scope[key] = Block(types.LABEL, name_of_key(key))
        if not isinstance(block, Block) or block.function is not None:
            self.fail(f"{key} is defined twice", index)
        self.pending.pop(key, None)
        block.function = function
        function.blocks.append(block)
        return block

    def _close(self, block: Block, records: list[str], closed: bool) -> None:
        if not closed:
            self.unexpected("a terminator before the end of the block")
        if records:
            block.trailing_records = tuple(records)


_GLOBAL_NAME: Final = r'@(?:[-A-Za-z0-9_$.]+|"[^"\n]*")'
_DECLARATION: Final = re.compile(
    rf'^(?:({_GLOBAL_NAME}) *= *([^"\n{{]*?)\b(global|constant|alias|ifunc)\b'
    rf"|(?:define|declare) .*?({_GLOBAL_NAME})\()",
    re.MULTILINE,
)
_ADDRESS_SPACE: Final = re.compile(r"addrspace\((\d+)\)")
_NODE_WORDS: Final = re.compile(r"![0-9]+|!\{.*\}|!DI[A-Za-z]+\(.*\)|!GenericDINode\(.*\)", re.DOTALL)


def parse_module(text: str) -> Module:
    """The module that a text describes.

    Raises:
        ParseError: with line and column, at the first thing that is not understood.
    """
    return _ModuleReader(text).module_()


class _ModuleReader(FunctionReader):
    """Reads the top level."""

    __slots__ = ("module",)

    def __init__(self, text: str) -> None:
        super().__init__(text, tokenize(text))
        self.module = Module()
        for match in _DECLARATION.finditer(text):
            self._announce(match)

    def _announce(self, match: re.Match[str]) -> None:
        """Makes the object of a global before anything refers to it."""
        token = match[1] or match[4]
        key = name_key(token)
        name = name_of_key(key)
        space = _ADDRESS_SPACE.search(match[2] or "")
        type_ = types.pointer_type(int(space[1])) if space else types.PTR
        if key in self.globals:
            self.fail(f"{token} is defined twice", self._token_at(match.start(1 if match[1] else 4)))
        known = name if name is not None else key[1:]
        found: TrackedValue
        match match[3]:
            case None:
                found = self.module.functions[known] = Function(type_, name)
            case "alias" | "ifunc":
                found = self.module.aliases[known] = GlobalAlias(types.PTR, name, keyword=match[3])
            case _:
                found = self.module.globals[known] = GlobalVariable(type_, name, constant=match[3] == "constant")
        self.globals[key] = found

    def _token_at(self, offset: int) -> int:
        return len(tokenize(self.source[:offset])) - 2

    def module_(self) -> Module:
        """Reads everything."""
        tokens = self.tokens
        while (token := tokens[self.i]) != END:
            first = token[0]
            if token in ("define", "declare"):
                self._function()
            elif first == "@":
                self._variable()
            elif first == "!":
                self._metadata()
            elif first == "%":
                self._struct()
            elif first == "$":
                self._comdat()
            elif first == "^" or token.startswith("uselistorder"):
                self.module.trailer.append(self.take().rstrip())
            else:
                self._directive(token)
        self._check_structs()
        return self.module

    def _function(self) -> None:
        start = self.i
        function = self.function()
        for word in function.attributes:
            space = _ADDRESS_SPACE.fullmatch(word)
            if space is not None:
                function.type = types.pointer_type(int(space[1]))
        space_used = isinstance(function.type, types.PointerType) and function.type.addrspace
        if space_used and not any(_ADDRESS_SPACE.fullmatch(word) for word in function.attributes):
            self.fail(f"@{function.name} is used in address space {space_used} but not there", start)
        function.module = self.module

    def _struct(self) -> None:
        struct = self.named_struct()
        self.expect("=")
        self.expect("type")
        if struct.name in self.module.structs:
            self.fail(f"{struct} is defined twice", self.i - 3)
        struct.body = self.struct_body()
        self.module.structs[struct.name] = struct

    def _check_structs(self) -> None:
        for key, found in self.types.items():
            if isinstance(found, NamedStructType) and found.name not in self.module.structs:
                uses = [i for i, token in enumerate(self.tokens) if token[0] == "%" and name_key(token) == key]
                self.fail(f"{found} is not defined", uses[0])

    def _comdat(self) -> None:
        key = self.sigil("$", "the name of a comdat")
        self.expect("=")
        self.expect("comdat")
        kind = self.take()
        if kind not in COMDAT_KINDS:
            self.fail(f"unknown kind of comdat {kind!r}", self.i - 1)
        self.module.comdats[unescape(key[2:-1]) if key[1] == '"' else key[1:]] = kind

    def _directive(self, token: str) -> None:
        module = self.module
        self.i += 1
        match token:
            case "source_filename":
                self.expect("=")
                module.source_name = self.string()
            case "target":
                word = self.take()
                if word not in ("datalayout", "triple"):
                    self.fail(f"unknown target property {word!r}", self.i - 1)
                self.expect("=")
                setting = self.string()
                if word == "triple":
                    module.triple = setting
                else:
                    module.layout = setting
            case "module":
                self.expect("asm")
                module.asm.append(self.string())
            case "attributes":
                group = self.sigil("#", "the number of an attribute group")
                self.expect("=")
                self.expect("{")
                module.attribute_groups[group] = self.group_attributes()
            case _:
                self.i -= 1
                self.unexpected("a top-level entity")

    def _metadata(self) -> None:
        token = self.sigil("!", "the name of a metadata node")
        self.expect("=")
        if token[1:].isdecimal():
            distinct = self.accept("distinct")
            node = self.tokens[self.i]
            if not _NODE_WORDS.fullmatch(node):
                self.unexpected("a metadata node")
            self.i += 1
            if int(token[1:]) in self.module.metadata:
                self.fail(f"{token} is defined twice", self.i - 1)
            self.module.metadata[int(token[1:])] = MetadataNode(node, distinct)
            return
        node = self.take()
        if node[:2] != "!{":
            self.fail("expected '!{'", self.i - 1)
        inside = node[2:-1].strip()
        self.module.named_metadata[unescape(token[1:])] = tuple(re.split(r"\s*,\s*", inside)) if inside else ()

    # -------------------------------------------------------------------------------------------- variables

    def _variable(self) -> None:
        found = self.globals[name_key(self.take())] if name_key(self.tokens[self.i]) in self.globals else None
        self.expect("=")
        start = self.i
        tokens = self.tokens
        while tokens[self.i] in VARIABLE_WORDS or tokens[self.i].startswith(("thread_local(", "addrspace(")):
            self.i += 1
        prefix = tuple(tokens[start : self.i])
        keyword = self.take()
        if isinstance(found, GlobalAlias) and keyword == found.keyword:
            self._alias(found, prefix)
        elif isinstance(found, GlobalVariable) and keyword == ("constant" if found.constant else "global"):
            self._global_variable(found, prefix)
        else:
            self.fail("expected a global variable, alias or ifunc", self.i - 1)

    def _global_variable(self, found: GlobalVariable, prefix: tuple[str, ...]) -> None:
        found.prefix = prefix
        found.value_type = self.type()
        if "external" not in prefix and "extern_weak" not in prefix:
            found.initializer = self.value(found.value_type)
        suffix: list[str] = []
        metadata: list[tuple[str, str]] = []
        while self.accept(","):
            if self.tokens[self.i][0] == "!":
                metadata.append((self.take()[1:], self.node()))
            else:
                suffix.append(self._variable_property())
        suffix.extend(self.function_attributes())
        found.suffix, found.metadata = tuple(suffix), tuple(metadata)

    def _variable_property(self) -> str:
        token = self.take()
        if token in ("section", "partition", "code_model"):
            return f"{token} {self.quoted()}"
        if token == "align":
            return f"align {self.integer()}"
        if not (token == "comdat" or token.startswith("comdat(") or token in SANITIZER_WORDS):
            self.i -= 1
            self.unexpected("a property of a global variable")
        return token

    def _alias(self, found: GlobalAlias, prefix: tuple[str, ...]) -> None:
        found.prefix = prefix
        found.value_type = self.type_or_function_type()
        self.expect(",")
        if self.tokens[self.i] in POINTER_EXPRESSIONS:
            target = self.expression(None, self.take())
        else:
            target = self.typed_value()
        if not isinstance(target.type, types.PointerType):
            self.fail("the target of an alias must be a pointer", self.i - 1)
        found.type, found.target = target.type, target
        suffix: list[str] = []
        while self.accept(","):
            self.expect("partition")
            suffix.append(f"partition {self.quoted()}")
        found.suffix = tuple(suffix)
