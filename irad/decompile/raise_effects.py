"""What code does on its way to an exception that the caller sees: it is not left out with the exception.

out[0] = x          seen: the caller has the array
ValueError(x)       not seen: new memory, in which the exception is put together
"""

from __future__ import annotations

from typing import Final

from irad.ir.instructions import Alloca, Call, CallSite, Cast, GetElementPtr, Instruction, Load, Phi, Select, Store
from irad.ir.module import Block
from irad.ir.types import PointerType
from irad.ir.values import Constant, Value
from irad.ir.worklist import reachable

_QUIET: Final = ("NRT_", "llvm.lifetime", "llvm.dbg", "llvm.assume", "irad.")
_WRITES_FIRST: Final = ("llvm.memcpy", "llvm.memmove", "llvm.memset")


def is_seen(inst: Instruction, slot: Value) -> bool:
    """Whether an instruction changes memory that is left when the exception in ``slot`` has been raised."""
    match inst:
        case Store(operands=[_, pointer]):
            return not _is_new(pointer, slot, set())
        case CallSite():
            return _is_seen_call(inst, slot)
        case _:
            return False


def blocks_behind(block: Block) -> list[Block]:
    """The blocks that control may reach from the end of one."""
    return list(reachable(block.successors, lambda each: each.successors))


def _is_seen_call(call: CallSite, slot: Value) -> bool:
    name = str(getattr(call.callee, "name", None) or "")
    pointers = [argument for argument in call.arguments if isinstance(argument.type, PointerType)]
    if name.startswith(_QUIET):
        return False
    if name.startswith(_WRITES_FIRST):
        return not _is_new(pointers[0], slot, set())
    return any(not _is_new(pointer, slot, set()) for pointer in pointers if not isinstance(pointer, Constant))


def _is_new(pointer: Value, slot: Value, seen: set[Value]) -> bool:
    """Whether memory is the function's own: local, new, reached from there, or the place of the exception."""
    if pointer is slot or pointer in seen:
        return True
    seen.add(pointer)
    match pointer:
        case Alloca() | Call():
            return True
        case Load(operands=[source]):
            return not isinstance(source, Alloca) and _is_new(source, slot, seen)
        case GetElementPtr() | Cast():
            return _is_new(pointer.operands[0], slot, seen)
        case Phi():
            return all(_is_new(value, slot, seen) for value in pointer.operands)
        case Select(operands=[_, a, b]):
            return _is_new(a, slot, seen) and _is_new(b, slot, seen)
        case _:
            return False
