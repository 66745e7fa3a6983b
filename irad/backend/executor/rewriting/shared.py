"""Shared memory: one range of bytes for each block, in which every shared array has its place.

A use of a shared array becomes an address in that range. The arrays are globals, and uses are mostly constant
expressions on them, so these become instructions first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from irad.backend.cuda.kernel import DYNAMIC_SHARED
from irad.backend.executor.rewriting.arrays import KnownArray, known_array, shared_words
from irad.errors import InternalError, UnsupportedError
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Function, Module
from irad.ir.types import Type
from irad.ir.values import Constant, ConstantExpression, GlobalVariable, Poison, Undef, Value, parts_of

_SPACE: Final = "addrspace(3)"
_ALIGNMENT: Final = 64


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Where the shared arrays of a kernel are.

    Attributes:
        offsets: bytes from the start of the block's range, by symbol.
        contents: what is there.
        static_bytes: where dynamic shared memory begins.
    """

    offsets: dict[str, int]
    contents: dict[str, Type]
    static_bytes: int

    def words_at(self, offset: int) -> str:
        """What is at an offset into the range."""
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
                "shared memory has none on a GPU either",
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
                "each block has a shared array of its own, so its address is not a constant",
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
