"""Sharing of shadows by the reverse of the lanes of a parallel loop.

Input   a `Unit` of one lane, what the front end knows about the loop's arrays.
Output  `Sharing`: for each parameter with a shadow how lanes add to it, or why lanes have to be reversed one by one.
Method  Two lanes never touch the same element unless both only read it: the primal would have a race. So a cotangent
        may be taken out of a shadow at any time, but only be added to it where no other lane adds. Arrays that are read
        get *partial shadows*, one for each lane, added up in the order of the lanes. Each lane also has a *window* of
        the array, which no other lane has, and adds there to the shadow itself; partial shadows are for the rest.
Limit   elements are distinguished at run time only. A lane that hands an active array to a callee with a body, or uses
        it through a pointer that may point to another, too, makes lanes run one by one.

    out[i] = a[i - 1] + a[i + 1]        out direct, a by window
    out[i] = a[i].copy()                the same: bytes that are moved are numbers that are moved
    s += np.dot(a[i], w)                a and w private: the rule adds wherever it likes
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from irad.ir.instructions import CallSite, Instruction, Load, Store
from irad.ir.module import Function
from irad.ir.types import PointerType, Type
from irad.ir.values import Parameter, Value
from irad.passes.callee_variants import takes_part
from irad.passes.callees import Callee, Pointer, Unknown, resolve
from irad.passes.memory.objects import MemoryObject, ObjectKind, reached_by
from irad.passes.parallel.flatten import ParallelLoop
from irad.passes.parallel.modes import Sharing, SharingMode
from irad.passes.unit import Unit
from irad.records import dataclass
from irad.ruleset.interface import CallRule, Elementwise, Inactive


def find_sharing(unit: Unit, loop: ParallelLoop) -> Sharing:
    """Decides for one lane's function."""
    collector = _Collector(unit)
    for block in unit.cfg.order:
        if block in unit.live:
            for inst in block.instructions:
                collector.visit(inst)
    return collector.result(loop)


@dataclass(eq=False, slots=True)
class _Collector:
    unit: Unit
    added: int = 0
    taken: int = 0
    handed: int = 0
    accesses: dict[int, set[str]] = field(default_factory=dict)
    obstacle: str | None = None

    def visit(self, inst: Instruction) -> None:
        activity, points_to = self.unit.activity, self.unit.points_to
        match inst:
            case Load(operands=[pointer]) if inst in activity.active and activity.has_shadow(pointer):
                self.added |= points_to.mask(pointer)
                self.expect_one_array(pointer, inst.type)
            case Store(operands=[value, pointer]) if activity.has_shadow(pointer) and not _is_pointer(value):
                self.taken |= points_to.mask(pointer)
                self.expect_one_array(pointer, value.type)
            case CallSite() if takes_part(self.unit, inst):
                self.visit_call(inst, resolve(inst, self.unit.registry))
            case _:
                pass

    def visit_call(self, call: CallSite, callee: Callee) -> None:
        points_to = self.unit.points_to
        match callee:
            case Elementwise() | Inactive():
                pass
            case CallRule() if (move := move_of(call)) is not None:
                self.visit_move(move)
            case CallRule():
                access = self.unit.mod_ref.of(call)
                for index in access.sources:
                    self.expect_one_array(call.arguments[index], None)
                self.added |= access.reads
                self.taken |= access.writes
                # The adjoint of a library call adds to an array as a whole, so it takes all of the lane's partial
                # shadow.
                self.handed |= access.reads | access.writes
            case Function() | Pointer() | Unknown():
                if any(True for _ in self.shared_objects(reached_by(call, points_to))):
                    self.obstacle = self.obstacle or f"an active array is handed to {_name(callee)}"

    def visit_move(self, move: Move) -> None:
        points_to = self.unit.points_to
        self.taken |= points_to.mask(move.into)
        self.expect_one_array(move.into, None)
        if move.source is not None:
            self.added |= points_to.mask(move.source)
            self.expect_one_array(move.source, None)

    def expect_one_array(self, pointer: Value, type_: Type | None) -> None:
        """A pointer must not point to more than one array that lanes share, apart from memory of the lane's own."""
        shared = list(self.shared_objects(self.unit.points_to.mask(pointer)))
        for item in shared:
            if type_ is not None:
                self.accesses.setdefault(item.index, set()).add(str(type_))
        # A window belongs to one array: an addition would not know which window its element may be in.
        if len(shared) > 1:
            self.obstacle = self.obstacle or "a pointer may point to several arrays"

    def shared_objects(self, mask: int) -> Iterator[MemoryObject]:
        """Objects that more than one lane can see."""
        mine = (ObjectKind.LOCAL, ObjectKind.ALLOCATION, ObjectKind.HEADER)
        for item in self.unit.points_to.members(mask & self.unit.activity.shadowed):
            if item.kind not in mine:
                yield item

    def result(self, loop: ParallelLoop) -> Sharing:
        modes: dict[Parameter, SharingMode] = {}
        obstacle = self.obstacle
        for item in self.shared_objects(self.added | self.taken):
            if item.kind is not ObjectKind.ARGUMENT or not isinstance(item.value, Parameter):
                obstacle = obstacle or "active memory is reached through pointers in memory, or is global"
                continue
            mode = self.mode(item.index)
            modes[item.value] = mode
            array = loop.array_of(self.unit.function.params.index(item.value))
            number = array.memory.lone_float() if array is not None and array.memory is not None else None
            is_plain = number is not None and self.accesses.get(item.index, set()) <= {number}
            if array is None or (mode is not SharingMode.DIRECT and not is_plain):
                obstacle = obstacle or "an array's elements are not plain floating-point numbers"
            elif mode is SharingMode.WRITTEN_WINDOW and self.handed >> item.index & 1:
                obstacle = obstacle or "an array is read and written by a library call"
        ordered = {p: modes[p] for p in self.unit.function.params if p in modes}
        return Sharing(ordered, obstacle)

    def mode(self, index: int) -> SharingMode:
        added, taken, handed = (bool(mask >> index & 1) for mask in (self.added, self.taken, self.handed))
        # Each lane stores to elements of its own, so where nothing is added the shadow needs no window.
        if not added:
            return SharingMode.DIRECT
        if taken:
            return SharingMode.WRITTEN_WINDOW
        return SharingMode.PRIVATE if handed else SharingMode.WINDOW


def _is_pointer(value: Value) -> bool:
    return isinstance(value.type, PointerType)


def _name(callee: Callee) -> str:
    return f"{callee.name}" if isinstance(callee, Function) else "a callee"


# Memory that lanes move: copies and fills, whose adjoint in a lane goes through windows, number by number.

_COPIES: Final = ("llvm.memcpy.", "llvm.memmove.")
_FILL: Final = "llvm.memset."


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of bytes, or a fill, which has no source."""

    into: Value
    source: Value | None
    size: Value


def move_of(call: CallSite) -> Move | None:
    """Move of memory by a call; None if the call does anything else."""
    name = call.callee.name if isinstance(call.callee, Function) else None
    if name is None or not name.startswith((*_COPIES, _FILL)):
        return None
    into, source, size = call.arguments[:3]
    return Move(into, None if name.startswith(_FILL) else source, size)
