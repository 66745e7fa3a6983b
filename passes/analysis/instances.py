"""Arrays that a loop allocates in each iteration: a later iteration writes to another array.

Input   a `Unit`, a pointer that is passed to an instruction.
Output  `stays_in_its_instance`: whether the memory is not written after that instruction, although the loop writes to
        what it allocates in the same place.
Method  The pointer must lead to one allocation only, and come from it without a phi: then it leads to the instance that
        was made last. Each write that can run afterwards must come behind the next run of the allocation, and go
        through a pointer that comes from it in the same way: then it goes to another instance.
Limit   instances that are passed from one iteration to the next, through phis or memory, are not followed.

    loop:
      %m = call ptr @allocate(…)      %p = load ptr, ptr (%m + 24)
      store double %x, ptr %p                          of the next iteration: to another array
      call void @ruled(ptr %p)                         what it is passed stays as it is
      br i1 %more, label %loop, label %done
"""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.instructions import CallSite, Cast, GetElementPtr, Instruction, Load, Store
from irad.ir.module import Block
from irad.ir.values import Value
from irad.ir.worklist import reachable
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.unit import Unit


def stays_in_its_instance(unit: Unit, pointer: Value, at: Instruction) -> bool:
    """Whether the memory of a pointer that is passed to an instruction is not written afterwards, and stays alive."""
    mask = unit.points_to.mask(pointer)
    members = unit.points_to.members(mask)
    if len(members) != 1 or members[0].kind is not ObjectKind.ALLOCATION or mask & unit.effects.lost:
        return False
    (item,) = members
    if not isinstance(item.value, CallSite) or not _is_latest(unit, pointer, item):
        return False
    touched = unit.points_to.overlapping(mask)
    return not any(
        _may_run_before_the_next(unit, write, at, item.value) or not _goes_to_latest(unit, write, touched, item)
        for write in _writes_afterwards(unit, touched, at)
    )


def _writes_afterwards(unit: Unit, touched: int, at: Instruction) -> Iterator[Instruction]:
    """The instructions that may write to objects and may run after another."""
    assert at.block is not None
    reached = unit.effects.reach[at.block]
    for block in unit.cfg.order:
        is_reached = reached >> unit.cfg.position[block] & 1
        for index, inst in enumerate(block.instructions):
            is_later = block is at.block and index > unit.effects.position[at]
            if (is_reached or is_later) and unit.mod_ref.of(inst).writes & touched:
                yield inst


def _is_latest(unit: Unit, pointer: Value, item: MemoryObject) -> bool:
    """Whether a pointer comes from an allocation without a phi: its dominators then include the last run of that."""
    value = pointer
    while value is not item.value:
        match value:
            case GetElementPtr() | Cast(opcode="bitcast"):
                value = value.operands[0]
            case Load() if _is_own_header(unit, value.operands[0], item):
                value = value.operands[0]
            case _:
                return False
    return True


def _is_own_header(unit: Unit, place: Value, item: MemoryObject) -> bool:
    """Whether a pointer leads to the header of an allocation, which holds the address of its data."""
    members = unit.points_to.of(place)
    return bool(members) and all(m.kind is ObjectKind.HEADER and m.value is item.value for m in members)


def _goes_to_latest(unit: Unit, write: Instruction, touched: int, item: MemoryObject) -> bool:
    """Whether all pointers through which an instruction may write to an allocation lead to its latest instance."""
    match write:
        case Store(operands=[_, pointer]):
            return _is_latest(unit, pointer, item)
        case CallSite() if not unit.mod_ref.of(write).is_opaque:
            touching = (a for a in write.arguments if unit.points_to.mask(a) & touched)
            return all(_is_latest(unit, argument, item) for argument in touching)
        case _:
            return False


def _may_run_before_the_next(unit: Unit, write: Instruction, at: Instruction, allocation: CallSite) -> bool:
    """Whether a write may follow an instruction with no run of the allocation between them."""
    assert write.block is not None
    assert at.block is not None
    assert allocation.block is not None
    position = unit.effects.position
    if write.block is at.block and position[write] > position[at]:
        return not (allocation.block is at.block and position[at] < position[allocation] < position[write])
    if allocation.block is at.block and position[allocation] > position[at]:
        return False  # on every way from here
    reached = _reached_without(unit, at.block, allocation.block)
    if write.block is allocation.block:
        return position[write] < position[allocation] and allocation.block in reached
    return write.block in reached


def _reached_without(unit: Unit, start: Block, allocating: Block) -> set[Block]:
    """The blocks that may run after one, up to the next run of the block of an allocation, which is among them."""
    successors = unit.cfg.successors
    return set(reachable(successors[start], lambda block: () if block is allocating else successors[block]))
