"""Which memory a program may write: its arguments', and what is neither theirs nor its own."""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.instructions import CallSite, GetElementPtr, Load
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import ConstantExpression, Value
from irad.ir.worklist import Worklist
from irad.passes.memory.objects import SEPARATE, ObjectKind
from irad.passes.unit import Unit


def written_parameters(entry: Unit) -> Iterator[int]:
    """Parameters of the entry whose memory the program may write, or what is reached by pointers in it.

    Writes through a pointer of unknown origin may be writes to any of them.
    """
    points_to, written = entry.points_to, entry.effects.written
    unknown = any(item.kind is ObjectKind.UNKNOWN and written >> item.index & 1 for item in points_to.objects)
    for index, param in enumerate(entry.function.params):
        reached = points_to.reachable(points_to.mask(param))  # parameters may share the memory that they lead to
        if isinstance(param.type, PointerType) and (unknown or reached & written):
            yield index


def writes_elsewhere(entry: Unit) -> bool:
    """Whether the program may write to memory that is neither its own nor that of its parameters."""
    written = entry.effects.written
    kinds = {item.kind for item in entry.points_to.objects if written >> item.index & 1}
    return not kinds <= {*SEPARATE, ObjectKind.ARGUMENT} or _may_write_to_numbers(entry)


def _may_write_to_numbers(entry: Unit) -> bool:
    """Whether a function that returns, or one that it calls, may write to an address that the program has as a number.

    Such an address leads to no object.
    """
    functions = Worklist([entry.function])
    for function in functions:
        for inst in function.instructions():
            if function is entry.function and inst.block not in entry.live:
                continue
            if not isinstance(inst, Load | GetElementPtr) and any(map(_is_number, inst.operands)):
                return True
            if isinstance(inst, CallSite) and isinstance(inst.callee, Function):
                functions.add(inst.callee)
    return False


def _is_number(pointer: Value) -> bool:
    while isinstance(pointer, GetElementPtr):
        pointer = pointer.operands[0]
    return isinstance(pointer, ConstantExpression) and (
        pointer.opcode == "inttoptr" or any(map(_is_number, pointer.operands))
    )
