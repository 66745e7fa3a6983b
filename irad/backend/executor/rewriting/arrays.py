"""The array that each access is to, as far as the text of a kernel says: an index beyond it is an error.

A shared, local or constant array is known with its size. Of an array that the kernel was given, the address is known;
the launch has the size.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Final

from irad.backend.cuda.kernel import DYNAMIC_SHARED
from irad.backend.executor.layout import LAUNCH
from irad.errors import InternalError, UnsupportedError
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Block, Function, Module
from irad.ir.types import Type
from irad.ir.values import (
    Constant,
    ConstantExpression,
    ConstantNull,
    GlobalVariable,
    Poison,
    Undef,
    Value,
    const_int,
    parts_of,
)
from irad.records import dataclass

LOCAL: Final = "local."
CONSTANT: Final = "constant."
"""Prefix of the names of the user's local and constant arrays."""
_UNKNOWN: Final = const_int(types.I64, -1)
_LOGGED: Final = const_int(types.I32, -1)
_PRIVATE: Final = const_int(types.I32, 0)
_CHOSEN: Final = "an array that was chosen from several"
_MADE: Final = re.compile(r"_cudapy|irad\.|$")
_SHADOW: Final = re.compile(r"\.shadow\d*$")


@dataclass(frozen=True, slots=True)
class KnownArray:
    """An array of a known size.

    Attributes:
        words: which one, for messages.
        itemsize: bytes of an element.
        count: of its elements, None if the launch says how many.
    """

    words: str
    itemsize: int
    count: int | None

    def element(self, offset: int) -> str:
        """The element at an offset of bytes."""
        return f"element {offset // self.itemsize} of {self.words}"


@dataclass(frozen=True, slots=True)
class Range:
    """The array of an access, as the log takes it.

    Attributes:
        low: its address, or one that is in it; null if nothing is known.
        size: its bytes, -1 if they are not known.
        logged: a mask of the kind of access: 0 for memory to which other threads cannot write.
        array: the array, if its size is known.
    """

    low: Value
    size: Value
    logged: Value = _LOGGED
    array: KnownArray | None = None

    @property
    def is_private(self) -> bool:
        """True if no other thread can write to it."""
        return self.logged is _PRIVATE


@dataclass(eq=False, slots=True)
class Arrays:
    """Finds the arrays of accesses in the function of a thread.

    Attributes:
        entry: the block in which parameters are loaded.
        memory: the shared arrays, which are variables still.
        launch: the record of the launch.
    """

    entry: Block
    memory: SharedMemory
    launch: Value
    _dynamic: Value | None = None
    _chosen: dict[Value, Range] = field(default_factory=dict)

    def range_of(self, address: Value, unit: int) -> Range:
        """The array that an address is in; ``unit`` is the size of an element where its type does not tell it."""
        root = _root(address)
        match root:
            case ir.Alloca(operands=[]):
                array = known_array(_words("local", root.name or "", LOCAL), root.allocated_type, unit)
                return _range(root, array, root.allocated_type, private=True)
            case GlobalVariable(name=name) if name == DYNAMIC_SHARED:
                array = KnownArray("dynamic shared memory", unit, None)
                return Range(root, self._dynamic_bytes(), array=array)
            case GlobalVariable(name=str(name)) if name in self.memory.contents:
                return _range(root, self.memory.array(name, unit), self.memory.contents[name])
            case GlobalVariable(constant=True):
                array = known_array(_words("constant", root.name or "", CONSTANT), root.value_type, unit)
                return _range(root, array, root.value_type, private=True)
            case ir.Load() if root.block is self.entry:
                return Range(root, _UNKNOWN)
            case ir.Select() | ir.Phi():
                found = self._chosen.get(root) or self._choose(root, unit)
                return replace(found, array=KnownArray(_CHOSEN, unit, None))
            case _:
                return Range(ConstantNull(types.PTR), _UNKNOWN)

    def _choose(self, root: ir.Select | ir.Phi, unit: int) -> Range:
        """The range of an address that is chosen when the kernel runs, chosen in the same way."""
        if isinstance(root, ir.Select):
            condition, *arms = root.operands
            one, other = (self.range_of(each, unit) for each in arms)
            build = Builder.after(root)
            chosen = self._chosen[root] = Range(
                build.select(condition, one.low, other.low),
                build.select(condition, one.size, other.size),
                build.select(condition, one.logged, other.logged),
            )
            return chosen
        low, size, logged = (Builder.before(root).phi(each) for each in (types.PTR, types.I64, types.I32))
        self._chosen[root] = Range(low, size, logged)  # a cycle finds it
        for value, source in root.incoming():
            found = self.range_of(value, unit)
            for phi, part in zip((low, size, logged), (found.low, found.size, found.logged), strict=True):
                phi.add_incoming(part, source)
        return self._chosen[root]

    def _dynamic_bytes(self) -> Value:
        if self._dynamic is None:
            build = Builder(self.entry)
            place = build.byte_offset(self.launch, LAUNCH.offset("dynamic_bytes"))
            self._dynamic = build.zext(build.load(types.I32, place), types.I64)
        return self._dynamic


def known_array(words: str, type_: Type, unit: int) -> KnownArray:
    """An array by its type; bytes stand for elements of another type."""
    element, count = type_, 1
    while isinstance(element, types.ArrayType):
        count, element = count * element.count, element.element
    size = types.size_of(element)
    if size == 1 and unit > 1:
        return KnownArray(words, unit, count // unit)
    return KnownArray(words, max(size, 1), count)


def shared_words(name: str) -> str:
    """A shared array in the user's words: the front end gives it the name of the variable."""
    shadow = _SHADOW.search(name)
    if shadow is not None:
        return f"the shadow of {_words('shared', name[: shadow.start()])}"
    return _words("shared", name)


def _words(kind: str, name: str, prefix: str = "") -> str:
    own = name.removeprefix(prefix).partition(".")[0] if name.startswith(prefix) else ""
    return f"a {kind} array" if _MADE.match(own) else f"the {kind} array {own}"


def _range(root: Value, array: KnownArray, type_: Type, *, private: bool = False) -> Range:
    return Range(root, const_int(types.I64, types.size_of(type_)), _PRIVATE if private else _LOGGED, array)


def _root(address: Value) -> Value:
    """The pointer that an address was computed from."""
    while True:
        match address:
            case ir.GetElementPtr(operands=[base, *_]):
                address = base
            case ir.Cast(opcode="bitcast", operands=[base]) | ir.Freeze(operands=[base]):
                address = base
            case ConstantExpression(opcode="getelementptr" | "bitcast" | "addrspacecast", operands=[base, *_]):
                address = base
            case ir.ExtractValue(operands=[whole], indices=path) if (part := _part(whole, path)) is not None:
                address = part
            case _:
                return address


def _part(whole: Value, path: tuple[int, ...]) -> Value | None:
    """A part of the struct of an array, as it was put there."""
    while isinstance(whole, ir.InsertValue):
        if whole.indices == path:
            return whole.operands[1]
        whole = whole.operands[0]
    return None


# Shared memory: one range of bytes for each block, in which every shared array has its place.
#
# A use of a shared array becomes an address in that range. The arrays are globals, and uses are mostly constant
# expressions on them, so these become instructions first.

_SPACE: Final = "addrspace(3)"
_ALIGNMENT: Final = 64


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Places of the shared arrays of a kernel.

    Attributes:
        offsets: bytes from the start of the block's range, by symbol.
        contents: its contents.
        static_bytes: where dynamic shared memory begins.
    """

    offsets: dict[str, int]
    contents: dict[str, Type]
    static_bytes: int

    def words_at(self, offset: int) -> str:
        """Words for the memory at an offset into the range."""
        for name, start in self.offsets.items():
            if start <= offset < start + types.size_of(self.contents[name]):
                return self.array(name, 1).element(offset - start)
        return f"byte {offset - self.static_bytes} of dynamic shared memory"

    def array(self, name: str, unit: int) -> KnownArray:
        """One of the arrays; ``unit`` is the size of an element where its type does not tell it."""
        return known_array(shared_words(name), self.contents[name], unit)


def lay_out_shared(module: Module) -> SharedMemory:
    """Gives each array its place, in order, and makes it a declaration, of whose contents LLVM can assume nothing.

    Raises:
        UnsupportedError: an array has initial contents.
    """
    offsets, found, end = dict[str, int](), dict[str, Type](), 0
    for name, variable in module.globals.items():
        if _SPACE not in variable.prefix:
            continue
        if variable.initializer is not None and not isinstance(variable.initializer, Undef | Poison):
            raise UnsupportedError(
                f"the shared array {name} has initial contents",
                "write them in the kernel",
                "shared memory is uninitialised on a GPU, too",
            )
        variable.prefix, variable.initializer, variable.constant = ("external",), None, False
        if name != DYNAMIC_SHARED:
            offsets[name], found[name] = _round_up(end), variable.value_type
            end = offsets[name] + types.size_of(variable.value_type)
    return SharedMemory(offsets, found, _round_up(end))


def _round_up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def place_shared(function: Function, memory: SharedMemory, base: Value) -> None:
    """Replaces the uses of shared arrays in a function, the only one of its module.

    Args:
        function: changed in place.
        memory: the places of the arrays, which are taken out of the module.
        base: the start of the range, defined in front of every use.
    """
    assert function.module is not None
    names = {*memory.offsets, DYNAMIC_SHARED} & function.module.globals.keys()
    symbols = {id(variable): variable for name, variable in function.module.globals.items() if name in names}
    for block in function.blocks:
        for inst in list(block.instructions):
            for index, operand in enumerate(inst.operands):
                if isinstance(operand, GlobalVariable | Constant) and _mentions(operand, symbols):
                    address = _address(operand, _position(inst, index), symbols, memory, base)
                    ir.replace_operand(inst, index, address)
    for name in names:
        del function.module.globals[name]


def _mentions(value: Value, symbols: dict[int, GlobalVariable]) -> bool:
    return id(value) in symbols or any(_mentions(part, symbols) for part in parts_of(value))


def _position(inst: ir.Instruction, index: int) -> Builder:
    """In front of an instruction; of a phi, at the end of the block that the operand comes from."""
    return Builder.before(inst.blocks[index].terminator if isinstance(inst, ir.Phi) else inst)


def _address(
    value: Value, build: Builder, symbols: dict[int, GlobalVariable], memory: SharedMemory, base: Value
) -> Value:
    """Instructions for a constant that mentions a shared array."""
    if id(value) in symbols:
        return build.byte_offset(base, memory.offsets.get(value.name or "", memory.static_bytes))
    if not isinstance(value, ConstantExpression):
        if _mentions(value, symbols):
            raise UnsupportedError(
                "the address of a shared array is part of a constant struct or array",
                "use the shared array itself",
                "each block has its own shared array, so its address is not a constant",
            )
        return value
    operands = [_address(part, build, symbols, memory, base) for part in value.operands]
    match value:
        case ConstantExpression(opcode="getelementptr", source_type=Type() as source):
            return build.gep(source, operands[0], operands[1:])
        case ConstantExpression(opcode="ptrtoint" | "inttoptr" | "bitcast" | "trunc" | "ptrtoaddr" as opcode):
            return build.cast(opcode, operands[0], value.type)
        case ConstantExpression(opcode="add" | "sub" | "xor" as opcode):
            return build.binary(opcode, operands[0], operands[1])
        case _:
            raise InternalError(f"a constant {value.opcode} on the address of a shared array")
