"""Has a thread log its accesses to memory that other threads see, in front of each.

The log gives back the address to use, which is another one if the access is outside of all arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from irad.backend.executor.dialect import Kind
from irad.backend.executor.layout import LAUNCH
from irad.backend.executor.rewriting.sites import Sites
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Function
from irad.ir.values import GlobalVariable, Value, const_int

if TYPE_CHECKING:
    from irad.backend.executor.rewriting.thread import Registers

_LOG = types.function_type(types.PTR, [types.PTR, types.PTR, types.I64, types.I32, types.I32])
_WORDS = {Kind.READ: "read", Kind.WRITE: "write", Kind.ATOMIC: "atomic operation"}


def instrument(function: Function, registers: Registers, sites: Sites) -> None:
    """Adds the calls.

    Args:
        function: of a thread; its first block defines the registers.
        registers: what the calls need.
        sites: gets the places of the accesses.
    """
    entry = Builder(function.entry)
    log = entry.load(types.PTR, entry.byte_offset(registers.launch, LAUNCH.offset("log_access")))
    for block in function.blocks[1:]:
        for inst in list(block.instructions):
            for position, kind, size in _accesses(inst):
                if not _is_private(inst.operands[position]):
                    build = Builder.before(inst)
                    number = const_int(types.I32, sites.add(_WORDS[kind], inst))
                    size_64 = build.zext(size, types.I64)
                    arguments = [registers.thread, inst.operands[position], size_64, const_int(types.I32, kind), number]
                    inst.set_operand(position, build.call(log, arguments, _LOG))


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


def _is_private(address: Value) -> bool:
    """Whether memory is known to be the thread's own, or constant."""
    while isinstance(address, ir.GetElementPtr):
        address = address.operands[0]
    return isinstance(address, ir.Alloca | GlobalVariable)
