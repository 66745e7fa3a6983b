"""Gives copies of floats and pointers that LLVM moves as integers their type back.

Input   a function, where its pointers point, what memory holds.
Output  whether anything was changed; the function is rewritten in place.
Method  LLVM moves eight bytes as `i64` when it only copies them. A group of loads, phis, selects and stores that pass
        an integer on to each other and to nothing else, and that touches memory of a float type, moves floats; so it
        gets that type. So do pointers.
Limit   bits that are computed with stay integers; `irad.passes.analysis.refusals` refuses them where a derivative would
        be lost.

    %v = load i64, ptr %p        %v = load double, ptr %p
    store i64 %v, ptr %q         store double %v, ptr %q
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import field

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Cast, Freeze, Instruction, Load, Phi, Select, Store, replace_uses
from irad.ir.module import Function
from irad.ir.types import FloatType, IntType, Type
from irad.ir.values import ConstantInt, ConstantNull, Poison, Undef, Value, const_float
from irad.ir.worklist import Worklist
from irad.passes.memory.memory_types import MemoryTypes
from irad.records import dataclass

_FLOAT_OF_BITS = {64: types.DOUBLE, 32: types.FLOAT}


def retype_copies(function: Function, memory: MemoryTypes) -> bool:
    """Rewrites all groups of a function."""
    changed = False
    seen: set[Instruction] = set()
    for inst in list(function.instructions()):
        if inst in seen or not isinstance(inst, Load) or not _is_wide(inst.type):
            continue
        group = copying_group(inst)
        if group is None:
            continue
        seen.update(group)
        kind = _kind_moved(group, _FLOAT_OF_BITS[_bits(inst.type)], memory)
        if kind is not None:
            _retype(list(group), kind)
            changed = True
    return changed


def _kind_moved(group: Iterable[Instruction], float_type: FloatType, memory: MemoryTypes) -> Type | None:
    """Type that a group moves: a float, a pointer, or just an integer (None)."""
    if any(_touches(item, float_type, memory) for item in group):
        return float_type
    wide = float_type is types.DOUBLE
    constants = [v for item in group for v in item.operands if isinstance(v, ConstantInt) and v.type is not types.I1]
    # Null is the only constant that pointers are merged with; with any other the group moves an integer.
    if wide and all(c.value == 0 for c in constants) and any(_touches(item, types.PTR, memory) for item in group):
        return types.PTR
    return None


def _is_wide(type_: Type) -> bool:
    return isinstance(type_, IntType) and type_.bits in _FLOAT_OF_BITS


def _bits(type_: Type) -> int:
    assert isinstance(type_, IntType)
    return type_.bits


def copying_group(start: Instruction) -> dict[Instruction, None] | None:
    """All instructions that pass on the value of a load; None if anything else uses or makes it."""
    group = Worklist([start])
    for inst in group:
        moved = moved_values(inst)
        if moved is None:
            return None
        for value in moved:
            if isinstance(value, Instruction):
                group.add(value)
            elif not isinstance(value, ConstantInt | Undef | Poison):
                return None
        if not isinstance(inst, Store):
            if any(isinstance(user, Store) and user.operands[1] is inst for user in inst.users):
                return None
            group.add(*inst.users)
    return group.seen


def moved_values(inst: Instruction) -> list[Value] | None:
    """The values that an instruction passes on unchanged, none for a load; None if it does anything else."""
    match inst:
        case Store():
            return inst.operands[:1]
        case Phi() | Freeze():
            return list(inst.operands)
        case Select():
            return inst.operands[1:]
        case Load():
            return []
        case _:
            return None


def _touches(inst: Instruction, kind: Type, memory: MemoryTypes) -> bool:
    match inst:
        case Load(operands=[pointer]) | Store(operands=[_, pointer]):
            if isinstance(kind, FloatType):
                return memory.is_float_at(pointer, kind)
            return memory.is_pointer_at(pointer)
        case _:
            return False


def _retype(group: list[Instruction], kind: Type) -> None:
    for inst in group:
        if not isinstance(inst, Store):
            inst.type = kind
    for inst in group:
        first = 1 if isinstance(inst, Select) else 0
        last = 1 if isinstance(inst, Store | Freeze) else len(inst.operands)
        if isinstance(inst, Load):
            continue
        for index in range(first, last):
            inst.set_operand(index, converted(inst.operands[index], kind))


def converted(value: Value, kind: Type) -> Value:
    """A constant integer as another type of the same bits; other values unchanged."""
    match value:
        case ConstantInt() if kind is types.PTR:
            return ConstantNull(kind)
        case ConstantInt(value=bits) if kind is types.DOUBLE:
            return const_float(kind, struct.unpack("<d", struct.pack("<q", bits))[0])
        case ConstantInt(value=bits) if kind is types.HALF:
            return const_float(kind, struct.unpack("<e", struct.pack("<h", bits))[0])
        case ConstantInt(value=bits):
            return const_float(kind, struct.unpack("<f", struct.pack("<i", bits))[0])
        case Undef():
            return Undef(kind)
        case Poison():
            return Poison(kind)
        case _:
            return value


# Gives addresses that LLVM keeps as integers in local variables the type of pointers back.
#
# Input   a function.
# Output  the function, rewritten in place.
# Method  LLVM splits a block of local memory into variables, and makes an `i64` of one that is cleared and then holds a
#         pointer. Phis and selects that choose between addresses and zeros choose between pointers; a variable in which
#         nothing else is stored holds pointers.
# Limit   an integer that anything is computed with, or that comes out of memory of another kind, stays what it is.
#
#     %slot = alloca i64                          %slot = alloca ptr
#     %a = ptrtoint ptr %p to i64
#     store i64 %a, ptr %slot                     store ptr %p, ptr %slot
#     %c = phi i64 [ %a, %x ], [ 0, %y ]          %c = phi ptr [ %p, %x ], [ null, %y ]
#     %q = inttoptr i64 %c to ptr


def retype_addresses(function: Function) -> None:
    """Rewrites a function."""
    pointers = _Pointers()
    for inst in list(function.instructions()):
        if isinstance(inst, Alloca) and inst.allocated_type is types.I64:
            pointers.retype(inst)
    for inst in list(function.instructions()):
        if isinstance(inst, Cast) and inst.opcode == "inttoptr" and pointers.is_address(inst.operands[0]):
            pointer = pointers.of(inst.operands[0])
            if isinstance(pointer, Instruction) and pointer.name is None:
                pointer.name = inst.name
            replace_uses(inst, pointer)
            inst.erase()


@dataclass(eq=False, slots=True)
class _Pointers:
    """The pointers whose addresses integers are."""

    made: dict[Value, Value] = field(default_factory=dict)
    slots: set[Value] = field(default_factory=set)

    def retype(self, slot: Alloca) -> None:
        """Makes a variable hold pointers, if it holds nothing but addresses."""
        stores = [user for user in slot.users if isinstance(user, Store) and user.operands[1] is slot]
        values = [store.operands[0] for store in stores]
        if all(map(_is_zero, values)) or not all(map(self.is_address, values)):
            return
        slot.allocated_type = types.PTR
        self.slots.add(slot)
        for store, value in zip(stores, values, strict=True):
            store.set_operand(0, self.of(value))

    def is_address(self, value: Value) -> bool:
        """True if an integer is nothing but a choice between addresses and zeros."""
        seen: set[Value] = set()
        pending = [value]
        while pending:
            one = pending.pop()
            if one in seen or _is_zero(one) or isinstance(one, Undef | Poison):
                continue
            seen.add(one)
            match one:
                case Cast(opcode="ptrtoint", operands=[pointer]) if pointer.type is types.PTR:
                    pass
                case Load(operands=[place]) if place in self.slots:
                    pass
                case Phi() | Freeze():
                    pending += one.operands
                case Select():
                    pending += one.operands[1:]
                case _:
                    return False
        return value.type is types.I64

    def of(self, value: Value) -> Value:
        """The pointer for such an integer, which is next to it."""
        if not isinstance(value, Instruction):
            return ConstantNull(types.PTR) if _is_zero(value) else Undef(types.PTR)
        if value not in self.made:
            found = self._new(value)
            self.made.setdefault(value, found)  # a cycle through a phi has made it already
        return self.made[value]

    def _new(self, value: Instruction) -> Value:
        match value:
            case Cast(operands=[pointer]):
                return pointer
            case Load(operands=[place]):
                return Builder.before(value).load(types.PTR, place, value.align)
            case Freeze(operands=[number]):
                return Builder.before(value).freeze(self.of(number))
            case Select(operands=[condition, one, other]):
                return Builder.before(value).select(condition, self.of(one), self.of(other))
            case Phi():
                phi = self.made[value] = Builder.before(value).phi(types.PTR)
                for number, block in value.incoming():
                    phi.add_incoming(self.of(number), block)
                return phi
            case _:
                raise AssertionError(f"{value} is not an address")


def _is_zero(value: Value) -> bool:
    return isinstance(value, ConstantInt) and value.value == 0
