"""Gives copies of floats and pointers that LLVM moves as integers their type back.

Input   a function, where its pointers point, what memory holds.
Output  whether anything was changed; the function is rewritten in place.
Method  LLVM moves eight bytes as `i64` when it only copies them. A group of loads, phis, selects and stores that pass
        an integer on to each other and to nothing else, and that touches memory of a float type, moves floats; so it
        gets that type. Likewise pointers.
Limit   bits that are computed with stay integers; `irad.passes.analysis.refusals` refuses them where a derivative would
        be lost.

    %v = load i64, ptr %p        %v = load double, ptr %p
    store i64 %v, ptr %q         store double %v, ptr %q
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from irad.ir import types
from irad.ir.instructions import Freeze, Instruction, Load, Phi, Select, Store
from irad.ir.module import Function
from irad.ir.types import FloatType, IntType, Type
from irad.ir.values import ConstantInt, ConstantNull, Poison, Undef, Value, const_float
from irad.ir.worklist import Worklist
from irad.passes.memory.memory_types import MemoryTypes

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
    """What a group moves: a float, a pointer, or just an integer (None)."""
    if any(_touches(item, float_type, memory) for item in group):
        return float_type
    wide = float_type is types.DOUBLE
    constants = [v for item in group for v in item.operands if isinstance(v, ConstantInt) and v.type is not types.I1]
    if wide and all(c.value == 0 for c in constants) and any(_touches(item, types.PTR, memory) for item in group):
        return types.PTR
    return None


def _is_wide(type_: Type) -> bool:
    return isinstance(type_, IntType) and type_.bits in _FLOAT_OF_BITS


def _bits(type_: Type) -> int:
    assert isinstance(type_, IntType)
    return type_.bits


def copying_group(start: Instruction) -> dict[Instruction, None] | None:
    """All that passes the value of a load on; None if anything else uses or makes it."""
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
    """The values that an instruction passes on as they are, none for a load; None if it does anything else."""
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
    """A constant integer as another type of the same bits; all else as it is."""
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
