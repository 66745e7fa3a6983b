"""Function headers and bodies."""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.instructions import CallBr, Instruction, Invoke, Terminator, replace_uses
from irad.ir.module import Block, Function
from irad.ir.text.keywords import FUNCTION_CONSTANTS, LINKAGE_WORDS
from irad.ir.text.lexer import BODY_END
from irad.ir.text.names import name_key, name_of_key
from irad.ir.text.parser_constants import Forward
from irad.ir.text.parser_control import CONTROL
from irad.ir.text.parser_instructions import COMPUTATIONS, BodyReader, InstructionParser
from irad.ir.types import VOID, Type
from irad.ir.values import Parameter, Value

_PARSERS: Final[dict[str, InstructionParser]] = {**COMPUTATIONS, **CONTROL}
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
            if first == "%" or token in _PARSERS:
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
        parser = _PARSERS.get(opcode)
        if parser is None:
            self.fail(f"unknown instruction {opcode.strip()!r}", self.i - 1)
        inst = parser(self, opcode, name)
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
