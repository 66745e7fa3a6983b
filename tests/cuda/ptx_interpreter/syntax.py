"""PTX text to a program: functions with instructions in one row, labels and scopes resolved."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from tests.cuda.ptx_interpreter.faults import PtxSyntaxError
from tests.cuda.ptx_interpreter.types import PtxType, ptx_type

_GRAMMAR = Path(__file__).with_name("ptx.lark")


@dataclass(frozen=True)
class Register:
    """A register of a function, or a special one such as `%tid.x`."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """A variable, a function or a label."""

    name: str


@dataclass(frozen=True)
class Immediate:
    """A number in the text.

    Attributes:
        value: an integer; for a floating-point literal its bits.
        float_bits: width of a floating-point literal, else 0.
    """

    value: int
    float_bits: int = 0

    @property
    def number(self) -> float:
        """Of a floating-point literal."""
        data = self.value.to_bytes(self.float_bits // 8, "little")
        return float(struct.unpack("<d" if self.float_bits == 64 else "<f", data)[0])


@dataclass(frozen=True)
class Address:
    """Memory at a register or a variable, some bytes further."""

    base: Any
    offset: int = 0


@dataclass(frozen=True)
class Negated:
    """A predicate, the other way round."""

    register: Register


@dataclass(frozen=True)
class Vector:
    """Operands in braces."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Pair:
    """Two results, as in `p|q`."""

    parts: tuple[Any, Any]


@dataclass(frozen=True)
class Group:
    """Operands in parentheses: arguments of calls."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Variable:
    """Memory with a name.

    Attributes:
        space: "global", "shared", "const", "local" or "param".
        size: in bytes; 0 for dynamic shared memory.
        initial: its bytes, b"" for zeros; addresses of other variables are added by `addresses`.
        addresses: offset → symbol and bytes after it.
    """

    name: str
    space: str
    align: int
    type: PtxType
    size: int
    initial: bytes = b""
    addresses: tuple[tuple[int, str, int], ...] = ()


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        opcode: as written, `setp.lt.f64`.
        operands: as written.
        guard: the predicate that it depends on, or None.
        line: in the text.
    """

    opcode: str
    operands: tuple[Any, ...]
    guard: Register | Negated | None
    line: int

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.opcode.split("."))


@dataclass
class Function:
    """An entry or a device function.

    Attributes:
        parameters, returned: variables in the space of parameters.
        registers: by name; those of inner scopes are renamed.
        variables: declared inside, renamed like registers.
        labels: name → number of the instruction that it is in front of.
        tables: of `brx.idx`, by label.
    """

    name: str
    is_entry: bool
    parameters: list[Variable]
    returned: Variable | None
    instructions: list[Instruction] = field(default_factory=list)
    registers: dict[str, PtxType] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass
class Program:
    """A module."""

    functions: dict[str, Function]
    variables: dict[str, Variable]

    @property
    def entry(self) -> Function:
        """The only kernel."""
        [entry] = (function for function in self.functions.values() if function.is_entry)
        return entry


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR.read_text("utf-8"), parser="lalr", maybe_placeholders=False, propagate_positions=False)


@lru_cache(64)
def parse(text: str) -> Program:
    """A module.

    Raises:
        PtxSyntaxError: the grammar does not have it.
    """
    try:
        tree = _parser().parse(text)
    except LarkError as error:
        raise PtxSyntaxError(str(error)) from error
    program = Program({}, {})
    for item in tree.children:
        if not isinstance(item, Tree):
            continue
        if item.data == "variable":
            program.variables.update((each.name, each) for each in _variables(item))
        else:
            function = _function(item)
            if function is not None:
                program.functions[function.name] = function
    return program


def _function(tree: Tree[Token]) -> Function | None:
    """None for a declaration."""
    kind = name = ""
    parameters: list[Variable] = []
    returned, body = None, None
    for child in tree.children:
        if isinstance(child, Token):
            kind, name = (str(child), name) if child.type == "KIND" else (kind, str(child))
        elif child.data == "parameters":
            parameters = [_parameter(each) for each in _trees(child)]
        elif child.data == "returned":
            [returned] = (_parameter(each) for each in _trees(child))
        elif child.data == "body":
            body = child
    if body is None:
        return None
    function = Function(name, kind == ".entry", parameters, returned)
    _Scope(function).read(body)
    return function


class _Scope:
    """A pair of braces: names that are declared in it hide those around it.

    Labels are visible in the whole function: LLVM writes none into inner braces.
    """

    def __init__(self, function: Function, around: dict[str, str] | None = None, number: int = 0) -> None:
        self.function, self.names, self.number = function, dict(around or {}), number

    def read(self, body: Tree[Token]) -> int:
        """Adds what is in the braces; the number of the last scope."""
        last, label = self.number, ""
        for statement in _trees(body):
            match statement.data:
                case "body":
                    last = _Scope(self.function, self.names, last + 1).read(statement)
                case "label":
                    label = str(statement.children[0])[:-1]
                    self.function.labels[label] = len(self.function.instructions)
                case "targets":
                    self.function.tables[label] = tuple(str(each) for each in statement.children)
                case "registers":
                    self._declare_registers(statement)
                case "variable":
                    for variable in _variables(statement):
                        inner = self._inner(variable.name)
                        self.function.variables[inner] = replace(variable, name=inner)
                case "instruction":
                    self.function.instructions.append(self._instruction(statement))
        return last

    def _inner(self, name: str) -> str:
        self.names[name] = f"{name}#{self.number}" if self.number else name
        return self.names[name]

    def _declare_registers(self, tree: Tree[Token]) -> None:
        type_ = ptx_type(str(tree.children[0])[1:])
        for each in _trees(tree):
            name, *count = map(str, each.children)
            numbers = range(int(count[0])) if count else ()
            for declared in [f"{name}{number}" for number in numbers] if count else [name]:
                self.function.registers[self._inner(declared)] = type_

    def _instruction(self, tree: Tree[Token]) -> Instruction:
        guard, opcode, operands, line = None, "", [], 0
        for child in tree.children:
            if isinstance(child, Token):
                opcode, line = str(child), child.line or 0
            elif child.data == "guard":
                register = Register(self._name(str(child.children[-1])))
                guard = Negated(register) if len(child.children) > 1 else register
            else:
                operands.append(self._operand(child))
        return Instruction(opcode, tuple(operands), guard, line)

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _operand(self, tree: Tree[Token]) -> Any:
        parts = tree.children
        match tree.data:
            case "register":
                return Register(self._name(str(parts[0])))
            case "name":
                name = self._name(str(parts[0]))
                return Register(name) if name in self.function.registers else Symbol(name)
            case "number":
                return _number(parts[0])
            case "negated":
                return Negated(Register(self._name(str(parts[1]))))
            case "address":
                base = self._operand(parts[0])  # type: ignore[arg-type]
                return Address(base, _integer(parts[1]) if len(parts) > 1 else 0)
        inner = tuple(self._operand(part) for part in _trees(tree))
        return {"vector": Vector, "pair": Pair, "group": Group}[tree.data](inner)  # type: ignore[arg-type]


def _trees(tree: Tree[Token]) -> Iterator[Tree[Token]]:
    return (child for child in tree.children if isinstance(child, Tree))


def _integer(token: Any) -> int:
    return int(str(token).rstrip("U"), 0)


def _number(token: Any) -> Immediate:
    if token.type == "FLOAT":
        return Immediate(int(str(token)[2:], 16), 64 if str(token)[1] in "dD" else 32)
    return Immediate(_integer(token))


def _parameter(tree: Tree[Token]) -> Variable:
    type_, name, align, size = None, "", 1, 1
    for child in tree.children:
        if isinstance(child, Token):
            match child.type:
                case "TYPE":
                    type_ = ptx_type(str(child)[1:])
                case "NAME":
                    name = str(child)
        elif child.data == "alignment":
            align = _integer(child.children[0])
        elif child.data == "extent":
            size *= _integer(child.children[0])
    assert type_ is not None
    bytes_ = type_.bits // 8
    is_array = any(child.data == "extent" for child in _trees(tree))
    return Variable(name, "param", align if is_array else bytes_, type_, bytes_ * size)


def _variables(tree: Tree[Token]) -> Iterator[Variable]:
    space, type_, align = "", None, 0
    for child in tree.children:
        if isinstance(child, Token):
            match child.type:
                case "SPACE":
                    space = str(child)[1:]
                case "TYPE":
                    type_ = ptx_type(str(child)[1:])
        elif child.data == "alignment":
            align = _integer(child.children[0])
    assert type_ is not None
    for declarator in tree.find_data("declarator"):
        count = 1
        initial, addresses = b"", []
        for part in _trees(declarator):
            if part.data == "extent":
                count *= _integer(part.children[0]) if part.children else 0
                continue
            for value in _trees(part):
                if value.data == "number":
                    number = _number(value.children[0]).value
                else:
                    addresses.append((len(initial), str(value.children[0]), _offset(value)))
                    number = 0
                initial += (number % (1 << type_.bits)).to_bytes(type_.bits // 8, "little")
        size = type_.bits // 8 * count
        yield Variable(
            str(declarator.children[0]), space, align or type_.bits // 8, type_, size, initial, tuple(addresses)
        )


def _offset(tree: Tree[Token]) -> int:
    return _integer(tree.children[1]) if len(tree.children) > 1 else 0
