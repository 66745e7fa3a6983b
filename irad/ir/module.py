"""Functions, blocks and the module that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from irad.ir import types
from irad.ir.instructions import CallBr, Instruction, Invoke, Phi, Terminator
from irad.ir.types import FunctionType, NamedStructType
from irad.ir.values import GlobalAlias, GlobalVariable, Parameter, TrackedValue, Value
from irad.records import dataclass


@dataclass(eq=False, slots=True)
class Block(Value):
    """A basic block: phis first, a terminator last. It is a `label` value so that `blockaddress` can name it."""

    instructions: list[Instruction] = field(default_factory=list, repr=False)
    function: Function | None = field(default=None, repr=False)
    trailing_records: tuple[str, ...] = field(default=(), repr=False)

    @property
    def terminator(self) -> Instruction:
        """The last instruction."""
        last = self.instructions[-1]
        assert isinstance(last, Terminator | Invoke | CallBr), f"block {self.name} has no terminator"
        return last

    @property
    def successors(self) -> list[Block]:
        """Successors in printed order, each once."""
        return list(dict.fromkeys(self.terminator.targets))

    def phis(self) -> list[Phi]:
        """The phis at its head."""
        found: list[Phi] = []
        for inst in self.instructions:
            if not isinstance(inst, Phi):
                break
            found.append(inst)
        return found

    def append(self, inst: Instruction) -> None:
        """Adds an instruction at the end."""
        inst.block = self
        self.instructions.append(inst)

    def insert(self, index: int, inst: Instruction) -> None:
        """Inserts an instruction at a position."""
        inst.block = self
        self.instructions.insert(index, inst)


@dataclass(eq=False, slots=True)
class Function(TrackedValue):
    """A function, defined (``blocks``) or declared (none). Its own type is a pointer.

    Attributes:
        function_type: result and parameters.
        prefix: words before the result type as printed, without convention and result attributes: linkage,
            preemption, visibility, DLL storage class.
        convention: `fastcc`, `cc 10`, … or None for C.
        result_attributes: result attributes of the result.
        attributes: after the parameter list: `unnamed_addr`, `#4`, `alwaysinline`, `"key"="value"`.
        suffix: the rest before the body, as printed: `section "…"`, `comdat`, `align 16`, `gc "…"`.
        operands: (keyword, constant) pairs of `prefix`, `prologue`, `personality`.
        metadata: attachments (kind, node), e.g. `dbg`.
    """

    function_type: FunctionType = field(default_factory=lambda: types.function_type(types.VOID, ()))
    params: list[Parameter] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list, repr=False)
    prefix: tuple[str, ...] = ()
    convention: str | None = None
    result_attributes: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    operands: tuple[tuple[str, Value], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    module: Module | None = field(default=None, repr=False)

    @property
    def is_declaration(self) -> bool:
        """True if it has no body here."""
        return not self.blocks

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    def instructions(self) -> Iterator[Instruction]:
        """All instructions in block order."""
        for block in self.blocks:
            yield from block.instructions

    def add_block(self, name: str | None = None, after: Block | None = None) -> Block:
        """A new, empty block at the end, or just after another."""
        block = Block(types.LABEL, name, [], self)
        self.blocks.insert(self.blocks.index(after) + 1 if after else len(self.blocks), block)
        return block


@dataclass(eq=False, slots=True)
class MetadataNode:
    """`!7 = distinct !{…}`: ``text`` follows the `=` (and `distinct`); references stay as printed."""

    text: str
    distinct: bool = False


@dataclass(eq=False, slots=True)
class Module:
    """An LLVM module.

    Attributes:
        source_name: of `source_filename`; None when absent.
        layout, triple: `target datalayout` and `target triple`.
        asm: lines of `module asm`.
        structs: named struct types by name, in printed order.
        comdats: name → selection kind.
        globals, aliases, functions: by name, in printed order; unnamed globals by their number.
        attribute_groups: `#4` → the attributes between its braces, one string each.
        named_metadata: `!llvm.module.flags` → node references.
        metadata: number → node.
        trailer: summary or use-list lines kept verbatim.
        opaque_guards: guards of products are calls, whose derivative is known (`irad.ruleset.guards`).
        strong_zeros: products have guards.
        shows_zeros: products that are zero of their factors' accord do not look like zeros (`irad.ruleset.guards`).
    """

    source_name: str | None = None
    layout: str | None = None
    triple: str | None = None
    asm: list[str] = field(default_factory=list)
    structs: dict[str, NamedStructType] = field(default_factory=dict, repr=False)
    comdats: dict[str, str] = field(default_factory=dict, repr=False)
    globals: dict[str, GlobalVariable] = field(default_factory=dict, repr=False)
    aliases: dict[str, GlobalAlias] = field(default_factory=dict, repr=False)
    functions: dict[str, Function] = field(default_factory=dict, repr=False)
    attribute_groups: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    named_metadata: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    metadata: dict[int, MetadataNode] = field(default_factory=dict, repr=False)
    trailer: list[str] = field(default_factory=list, repr=False)
    opaque_guards: bool = field(default=False, repr=False)
    strong_zeros: bool = field(default=True, repr=False)
    shows_zeros: bool = field(default=False, repr=False)
    _free_number: int = field(default=0, repr=False)
    _shared_nodes: dict[str, str] = field(default_factory=dict, repr=False)

    def declare(self, name: str, type_: FunctionType, attributes: tuple[str, ...] = ()) -> Function:
        """The function of that name; declared on first use.

        Raises:
            TypeError: it exists with another type.
        """
        found = self.functions.get(name)
        if found is None:
            params = [Parameter(t, None) for t in type_.params]
            found = Function(types.PTR, name, function_type=type_, params=params, attributes=attributes, module=self)
            self.functions[name] = found
        if found.function_type is not type_:
            raise TypeError(f"@{name} is {found.function_type}, not {type_}")
        return found

    def define(self, name: str, type_: FunctionType, param_names: list[str] | None = None) -> Function:
        """A new, empty function of a fresh name."""
        if name in self.functions and not self.functions[name].is_declaration:
            raise TypeError(f"@{name} is defined already")
        function = self.declare(name, type_)
        for param, param_name in zip(function.params, param_names or (), strict=False):
            param.name = param_name
        return function

    def new_metadata_number(self) -> int:
        """A number that no node of ``metadata`` has, higher than those given before."""
        while self._free_number in self.metadata:
            self._free_number += 1
        return self._free_number

    def shared_metadata(self, text: str) -> str:
        """A reference to the node of a text, which is added when it is first asked for."""
        found = self._shared_nodes.get(text)
        if found is None:
            number = self.new_metadata_number()
            self.metadata[number] = MetadataNode(text, False)
            found = self._shared_nodes[text] = f"!{number}"
        return found

    def loop_mark(self, *properties: str) -> str:
        """A reference to a new node for the branch that closes a loop, with properties such as `!{!"llvm.loop.…"}`."""
        shared = list(map(self.shared_metadata, properties))
        number = self.new_metadata_number()
        self.metadata[number] = MetadataNode(f"!{{{', '.join((f'!{number}', *shared))}}}", distinct=True)
        return f"!{number}"

    def defined_functions(self) -> list[Function]:
        """Functions with a body."""
        return [f for f in self.functions.values() if not f.is_declaration]
