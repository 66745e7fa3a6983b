"""Effects: which loaded values can be read from memory again in the reverse sweep.

Input   a function, where its pointers point, what its caller does with the arguments' memory.
Output  `Effects`: for a pointer read at an instruction, whether that memory may have changed when the reverse sweep
        comes back.
Method  an object is overwritten for a load when a write that may touch it can run after the load: later in the block,
        or in a block that the load's block reaches; or when it does not outlive the forward sweep. Writes to newer
        arrays of the same allocation do not count (`instances`). Where the reverse of a callee may restore what that
        overwrote, it has changed when the reverse sweep runs for a second time.
        Stores that go to other elements of the array than the one that was read do not count either (`subscripts`).
Limit   other writes are distinguished by object and position, not by address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from irad.ir.cfg import ControlFlow
from irad.ir.instructions import CallSite, Cast, GetElementPtr, Instruction, Load, Store, accessed
from irad.ir.module import Block, Function
from irad.ir.run_order import RunOrder
from irad.ir.values import GlobalVariable, Value
from irad.passes.callees import Pointer
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import MemoryObject, ObjectKind, union
from irad.passes.subscripts.separation import MOST_WRITES, Separation
from irad.records import dataclass

# Arrays that a loop allocates in each iteration: a later iteration writes to another array.
#
# Input   a pointer, the instruction that reads it; an allocation that the pointer may point to.
# Output  `is_of_older_instance`: whether no write that may run afterwards goes to the instance that the pointer
#         points to.
# Method  An allocation that runs again makes a new instance. Each write must go through a pointer that comes from the
#         allocation without a phi: then it goes to the instance that was made last. The pointer that is read points to
#         an instance that was there when its root, not yet offset, was computed. So it is another one where
#         the allocation runs on every way from the root to the instruction, or on every way from there to the write.
# Limit   writes to instances that are passed from one iteration to the next, through phis or memory, are not followed.
#
#     loop:
#       %old = phi ptr [ %first, %entry ], [ %new, %loop ]
#       %new = call ptr @allocate(…)
#       %x = load double, ptr %old                      of the iteration before
#       store double %y, ptr %new                       to another array, in all iterations to come
#       br i1 %more, label %loop, label %done


def is_of_older_instance(pointer: Value, at: Instruction, item: MemoryObject, order: RunOrder, mod_ref: ModRef) -> bool:
    """True if an allocation's writes after an instruction go to other instances than the one that it reads."""
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
    """Pointer before it was offset, into the same memory."""
    while isinstance(pointer, GetElementPtr) or (isinstance(pointer, Cast) and pointer.opcode == "bitcast"):
        pointer = pointer.operands[0]
    return pointer


def _goes_to_latest(write: Instruction, touched: int, item: MemoryObject, mod_ref: ModRef) -> bool:
    """True if all pointers through which an instruction may write to an allocation point to its latest instance."""
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
    """True if a pointer comes from an allocation without a phi: its dominators then include the last run of that."""
    value = _root(pointer)
    while value is not item.value:
        if not isinstance(value, Load) or not _is_own_header(value.operands[0], item, mod_ref):
            return False
        value = _root(value.operands[0])
    return True


def _is_own_header(place: Value, item: MemoryObject, mod_ref: ModRef) -> bool:
    """True if a pointer points to the header of an allocation, which holds the address of its data."""
    members = mod_ref.points_to.of(place)
    return bool(members) and all(m.kind is ObjectKind.HEADER and m.value is item.value for m in members)


@dataclass(frozen=True, slots=True)
class Effects:
    """Answers whether memory read at one place is still the same in the reverse sweep."""

    mod_ref: ModRef
    order: RunOrder
    written: int  # the objects that are written at all
    lost: int
    kept: int
    writing_blocks: Mapping[int, int]  # for each object the blocks that write it, as a mask of positions
    last_writes: Mapping[tuple[int, Block], int]  # and the position of the last write in each of them
    writers: Mapping[int, Sequence[Instruction]]  # what writes it
    separation: Separation | None  # tells elements of arrays apart
    _known: dict[tuple[Value, Instruction], str | None] = field(default_factory=dict)

    def is_overwritten(self, pointer: Value, at: Instruction) -> bool:
        """True if memory at ``pointer``, read or written by ``at``, may change until the reverse reaches ``at``."""
        return self._why(pointer, at) is not None

    def explain(self, pointer: Value, at: Instruction) -> str:
        """Description of the instruction that overwrites the memory."""
        return self._why(pointer, at) or "not overwritten before the reverse sweep reads it"

    def _why(self, pointer: Value, at: Instruction) -> str | None:
        if (pointer, at) not in self._known:
            self._known[pointer, at] = self._find_why(pointer, at)
        return self._known[pointer, at]

    def _find_why(self, pointer: Value, at: Instruction) -> str | None:
        points_to = self.mod_ref.points_to
        mask = points_to.mask(pointer)
        if not mask:
            return "it points to no known object"
        if mask & self.lost:
            return f"{points_to.members(mask & self.lost)[0]} may change before the reverse sweep"
        for item in points_to.members(points_to.overlapping(mask) & self.written):
            if (
                self._is_written_after(item, at)
                and not is_of_older_instance(pointer, at, item, self.order, self.mod_ref)
                and not self._is_written_elsewhere(item, pointer, at)
            ):
                return f"{item} is written later"
        return None

    def _is_written_elsewhere(self, item: MemoryObject, pointer: Value, at: Instruction) -> bool:
        """True if all that is written to an object after an access goes to other elements than the one accessed."""
        separation = self.separation
        if separation is None or not isinstance(at, Load | Store) or accessed(at) is not pointer or not at.is_plain:
            return False
        later = (write for write in self.writers[item.index] if self.order.may_follow(at, write))
        return all(
            number < MOST_WRITES and isinstance(write, Store) and separation.is_apart_later(at, write)
            for number, write in enumerate(later)
        )

    def _is_written_after(self, item: MemoryObject, at: Instruction) -> bool:
        assert at.block is not None
        if self.last_writes.get((item.index, at.block), -1) > self.order.position[at]:
            return True
        return bool(self.order.reach[at.block] & self.writing_blocks.get(item.index, 0))


def find_effects(
    cfg: ControlFlow,
    mod_ref: ModRef,
    *,
    arguments_change: bool,
    kept: int = 0,
    stays: int = 0,
    restores: bool = False,
    separation: Separation | None = None,
) -> Effects:
    """Collects the writes of a function.

    Args:
        cfg: the graph of the function.
        mod_ref: of the same function.
        arguments_change: whether the caller may write argument memory between the sweeps.
        kept: allocations, as a mask, whose memory is kept until the reverse sweep has ended.
        stays: arguments, as a mask, whose memory the caller keeps and does not write between the sweeps.
        restores: whether the reverse of a callee may put back what the callee overwrote.
        separation: tells elements of arrays apart; None where others than the function may write to them.
    """
    points_to, written = mod_ref.points_to, 0
    writing_blocks: dict[int, int] = {}
    last_writes: dict[tuple[int, Block], int] = {}
    writers: dict[int, list[Instruction]] = {}
    lost = 0
    for block in cfg.order:
        last: dict[int, int] = {}  # by set of objects: many writes go to the same
        for index, inst in enumerate(block.instructions):
            mask = mod_ref.of(inst).writes
            last[mask] = index
            for item in points_to.members(mask):
                writers.setdefault(item.index, []).append(inst)
            if restores and isinstance(inst, CallSite) and isinstance(mod_ref.callee(inst), Function | Pointer):
                lost |= mask
        for mask, index in last.items():
            written |= mask
            for item in points_to.members(mask):
                writing_blocks[item.index] = writing_blocks.get(item.index, 0) | 1 << cfg.position[block]
                last_writes[item.index, block] = max(index, last_writes.get((item.index, block), -1))
    for item in points_to.objects:
        if not stays >> item.index & 1 and _is_lost(item, arguments_change, bool(kept >> item.index & 1)):
            lost |= 1 << item.index
    return Effects(mod_ref, RunOrder.of(cfg), written, lost, kept, writing_blocks, last_writes, writers, separation)


def _is_lost(item: MemoryObject, arguments_change: bool, kept: bool) -> bool:
    match item.kind:
        # Locals end with the forward sweep, and of unknown memory nobody promises that it stays.
        case ObjectKind.UNKNOWN | ObjectKind.LOCAL:
            return True
        case ObjectKind.ALLOCATION | ObjectKind.HEADER:
            return not kept
        case ObjectKind.ARGUMENT | ObjectKind.REACHABLE:
            return arguments_change
        case ObjectKind.GLOBAL:
            return not (isinstance(item.value, GlobalVariable) and item.value.constant)
