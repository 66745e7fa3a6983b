"""Has a thread log its accesses to memory that other threads see, in front of each.

The log gives back the address to use, which is another one if the access is outside of its array, or of all arrays
where it is not known which one it is to. Accesses to a thread's own memory are only checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from irad.backend.executor.dialect import Kind
from irad.backend.executor.layout import LAUNCH
from irad.backend.executor.rewriting.arrays import Arrays, Range
from irad.backend.executor.rewriting.sites import Sites
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Function
from irad.ir.trip_count import constant_offset
from irad.ir.values import ConstantInt, Value, const_int

if TYPE_CHECKING:
    from irad.backend.executor.rewriting.arrays import SharedMemory
    from irad.backend.executor.rewriting.thread import Registers

_LOG = types.function_type(types.PTR, [types.PTR, types.PTR, types.I64, types.I32, types.I32, types.PTR, types.I64])
_WORDS = {Kind.READ: "read", Kind.WRITE: "write", Kind.ATOMIC: "atomic operation"}


def instrument(function: Function, registers: Registers, memory: SharedMemory, sites: Sites) -> None:
    """Adds the calls.

    Args:
        function: of a thread; its first block defines the registers.
        registers: what the calls need.
        memory: the shared arrays, which are variables still.
        sites: gets the places of the accesses.
    """
    entry = Builder(function.entry)
    log = entry.load(types.PTR, entry.byte_offset(registers.launch, LAUNCH.offset("log_access")))
    arrays = Arrays(function.entry, memory, registers.launch)
    for block in function.blocks[1:]:
        for inst in list(block.instructions):
            for position, kind, size in _accesses(inst):
                address = inst.operands[position]
                unit = size.value if isinstance(size, ConstantInt) else 1
                found = arrays.range_of(address, unit)
                if found.is_private and _is_inside(address, unit, found):
                    continue
                build = Builder.before(inst)
                kind_ = build.and_(const_int(types.I32, kind), found.logged)
                number = const_int(types.I32, sites.add(_WORDS[kind], inst, found.array))
                what = [registers.thread, address, build.zext(size, types.I64), kind_, number, found.low, found.size]
                inst.set_operand(position, build.call(log, what, _LOG))


def _is_inside(address: Value, unit: int, array: Range) -> bool:
    """Whether a constant offset shows that an access is inside of its array, as most of those to variables are."""
    offset = 0
    while isinstance(address, ir.GetElementPtr) and (more := constant_offset(address)) is not None:
        offset, address = offset + more, address.operands[0]
    return address is array.low and isinstance(array.size, ConstantInt) and 0 <= offset <= array.size.value - unit


def _accesses(inst: ir.Instruction) -> list[tuple[int, Kind, Value]]:
    """Which operands of an instruction are addresses, what happens there, and to how many bytes."""
    match cast("ir.AnyInstruction", inst):
        case ir.Load(ordering=ordering):
            return [(0, Kind.READ if ordering is None else Kind.ATOMIC, _bytes(inst.type))]
        case ir.Store(ordering=ordering):
            return [(1, Kind.WRITE if ordering is None else Kind.ATOMIC, _bytes(inst.operands[0].type))]
        case ir.AtomicRMW() | ir.CmpXchg():
            return [(0, Kind.ATOMIC, _bytes(inst.operands[1].type))]
        case ir.Call() as call if isinstance(call.callee, Function):
            name = call.callee.name or ""
            if name.startswith(("llvm.memcpy.", "llvm.memmove.")):
                return [(0, Kind.WRITE, inst.operands[2]), (1, Kind.READ, inst.operands[2])]
            if name.startswith("llvm.memset."):
                return [(0, Kind.WRITE, inst.operands[2])]
            return []
        case _:
            return []


def _bytes(type_: types.Type) -> Value:
    return const_int(types.I64, types.size_of(type_))
