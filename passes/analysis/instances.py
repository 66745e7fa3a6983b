"""Arrays that a loop allocates in each iteration: a later iteration writes to another array.

Input   a pointer, the instruction that reads it; an allocation that the pointer may lead to.
Output  `is_of_older_instance`: whether no write that may run afterwards goes to the instance that the pointer leads to.
Method  An allocation that runs again makes a new instance. Each write must go through a pointer that comes from the
        allocation without a phi: then it goes to the instance that was made last. The pointer that is read leads to an
        instance that was there when its root, where it was not yet offset, was computed. So it is another one where
        the allocation runs on every way from the root to the instruction, or on every way from there to the write.
Limit   writes to instances that are passed from one iteration to the next, through phis or memory, are not followed.

    loop:
      %old = phi ptr [ %first, %entry ], [ %new, %loop ]
      %new = call ptr @allocate(…)
      %x = load double, ptr %old                      of the iteration before
      store double %y, ptr %new                       to another array, in all iterations to come
      br i1 %more, label %loop, label %done
"""

from __future__ import annotations

from irad.ir.instructions import CallSite, Cast, GetElementPtr, Instruction, Load, Store
from irad.ir.run_order import RunOrder
from irad.ir.values import Value
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import MemoryObject, ObjectKind, union


def is_of_older_instance(pointer: Value, at: Instruction, item: MemoryObject, order: RunOrder, mod_ref: ModRef) -> bool:
    """Whether an allocation's writes after an instruction go to other instances than the one that it reads."""
    made = item.value
    if item.kind is not ObjectKind.ALLOCATION or not isinstance(made, CallSite):
        return False
    root = _root(pointer)
    is_older = isinstance(root, Instruction) and not order.may_avoid(made, root, at)
    touched = mod_ref.points_to.overlapping(1 << item.index)
    return all(
        (is_older or not order.may_avoid(made, at, write)) and _goes_to_latest(write, touched, item, mod_ref)
        for write in order.after(at)
        if mod_ref.of(write).writes & touched
    )


def _root(pointer: Value) -> Value:
    """What a pointer was before it was offset: the same memory."""
    while isinstance(pointer, GetElementPtr) or (isinstance(pointer, Cast) and pointer.opcode == "bitcast"):
        pointer = pointer.operands[0]
    return pointer


def _goes_to_latest(write: Instruction, touched: int, item: MemoryObject, mod_ref: ModRef) -> bool:
    """Whether all pointers through which an instruction may write to an allocation lead to its latest instance."""
    match write:
        case Store(operands=[_, pointer]):
            return _is_latest(pointer, item, mod_ref)
        case CallSite() if not mod_ref.of(write).is_opaque:
            touching = [a for a in write.arguments if mod_ref.points_to.mask(a) & touched]
            inside = mod_ref.of(write).writes & touched & ~union(map(mod_ref.points_to.mask, touching))
            return not inside and all(_is_latest(argument, item, mod_ref) for argument in touching)
        case _:
            return False


def _is_latest(pointer: Value, item: MemoryObject, mod_ref: ModRef) -> bool:
    """Whether a pointer comes from an allocation without a phi: its dominators then include the last run of that."""
    value = _root(pointer)
    while value is not item.value:
        if not isinstance(value, Load) or not _is_own_header(value.operands[0], item, mod_ref):
            return False
        value = _root(value.operands[0])
    return True


def _is_own_header(place: Value, item: MemoryObject, mod_ref: ModRef) -> bool:
    """Whether a pointer leads to the header of an allocation, which holds the address of its data."""
    members = mod_ref.points_to.of(place)
    return bool(members) and all(m.kind is ObjectKind.HEADER and m.value is item.value for m in members)
