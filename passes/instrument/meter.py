"""Meter: allocations of the forward sweep on the tape, place by place; on request counted while the sweep runs.

Input   a finished augmented primal, and the materialiser that made its storage.
Output  a `TapeMark` for each place that allocates. Where it is counted, what allocates calls `irad.tape_alloc` instead
        of `irad.arena_alloc`.
Method  a place counts *units*: iterations of a slab, records, frames of callees. What a unit holds is known here. Of
        memory whose size only the program knows a unit is a byte.
Limit   a function that is called through a pointer is one place, number 0. Tables and local memory of the reverse sweep
        and shadows of containers are not tape.

    %slab = call ptr @irad.arena_alloc_product(ptr %arena, i64 %n, i64 16)
    %slab = call ptr @irad.tape_alloc_product(ptr %arena, i64 %n, i64 16, i64 3)
"""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.builder import Builder
from irad.ir.instructions import Call, replace_uses
from irad.ir.loops import Loop
from irad.ir.module import Function
from irad.ir.types import I64
from irad.ir.values import ConstantInt, Value, const_int
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.augmented.tape import Records, Slab, size_in_memory
from irad.passes.callees import is_from_outside
from irad.passes.instrument.marks import FrameParts, TapeMark, TapePart
from irad.passes.mode import AUGMENTED
from irad.passes.plan.materialise import Materialiser
from irad.passes.program import DerivedFunctions, Program
from irad.passes.runtime import (
    ARENA_ALLOC,
    ARENA_ALLOC_PRODUCT,
    TAPE_ALLOC,
    TAPE_ALLOC_PRODUCT,
    THREAD_ALLOC,
    THREAD_ALLOC_PRODUCT,
    runtime_function,
)

BY_POINTER = 0
"""The place of functions that are called through pointers."""


def note_tape(augmented: AugmentedPrimal, materialiser: Materialiser) -> tuple[TapeMark, ...]:
    """Records the allocations of an augmented primal, and adds code that counts them on request."""
    program = augmented.program
    loops = {augmented.values.get(block): augmented.unit.loops.loop_of(block) for block in augmented.unit.cfg.order}
    primal_loops = {_made(storage): loop for loop, storage in materialiser.all_storages()}
    storages = {_made(storage): storage for _, storage in materialiser.all_storages()}
    frames = dict(augmented.callee_frames.values())
    marks = []
    for call in _allocations(augmented.function):
        loop = primal_loops.get(call) or loops.get(call.block)
        pair = frames.get(call)
        if pair is None or is_from_outside(pair.variant.function, program.registry):
            mark = _mark(call, storages.get(call), loop)
        else:
            mark = TapeMark(call, (), pair.variant, loop)
        marks.append(mark)
        _note(program, call, mark)
    parts = tuple(_parts_of_frame(augmented, materialiser))
    program.frame_parts[augmented.pair.variant] = FrameParts(augmented.unit.function, parts)
    return tuple(marks)


def _made(storage: Slab | Records) -> Value:
    return storage.base if isinstance(storage, Slab) else storage.current


def _mark(call: Call, storage: Slab | Records | None, loop: Loop | None) -> TapeMark:
    match storage:
        case Slab(values=values):
            return TapeMark(call, tuple(TapePart(v, size_in_memory(v.type), "slab") for v in values), loop=loop)
        case Records():
            held = [TapePart(v, size_in_memory(v.type), "record") for v in storage.offsets]
            link = TapePart(None, storage.layout.size - sum(part.bytes for part in held), "record")
            return TapeMark(call, (*held, link), loop=loop)
        case None:
            return TapeMark(call, (TapePart(call, 1, "kept"),), loop=loop)


def note_launcher(
    program: Program, pair: DerivedFunctions, lane: DerivedFunctions, head: int, size: int
) -> tuple[TapeMark, ...]:
    """Tape marks of the records of the lanes of a parallel loop.

    Args:
        program: program of both.
        pair: the loop as its caller sees it.
        lane: the pair of one lane.
        head: bytes of a record before the lane's frame.
        size: bytes of the frame of ``pair``.
    """
    marks = []
    for call in _allocations(pair[AUGMENTED]):
        marks.append(TapeMark(call, (TapePart(None, head, "frame"),), lane.variant))
        _note(program, call, marks[-1])
    program.frame_parts[pair.variant] = FrameParts(pair.variant.function, (TapePart(None, size, "frame"),))
    return tuple(marks)


def _parts_of_frame(augmented: AugmentedPrimal, materialiser: Materialiser) -> Iterator[TapePart]:
    total = -(-max(augmented.frame.size, 1) // 64) * 64
    for value in materialiser.frame_slots:
        size = size_in_memory(value.type)
        total -= size
        yield TapePart(value, size, "frame")
    yield TapePart(None, total, "frame")


def _allocations(function: Function) -> list[Call]:
    """Allocations on the tape; the primal may contain a derivative, which allocates in an arena of its own."""
    names = (ARENA_ALLOC, ARENA_ALLOC_PRODUCT, THREAD_ALLOC, THREAD_ALLOC_PRODUCT)
    _, arena, *_ = function.params
    calls = [i for i in function.instructions() if isinstance(i, Call) and arena in i.arguments]
    return [c for c in calls if isinstance(c.callee, Function) and c.callee.name in names]


def _note(program: Program, call: Call, mark: TapeMark) -> None:
    """Gives a place its number, and has it counted."""
    site = BY_POINTER
    if program.request.callee is None:
        site = len(program.tape_marks)
        program.tape_marks.append(mark)
    if program.request.meters:
        is_kept = any(part.storage == "kept" for part in mark.parts)
        _count(program, call, site, by_byte=is_kept or program.request.callee is not None)


def _count(program: Program, call: Call, site: int, *, by_byte: bool) -> None:
    """Replaces an allocation by a counted one."""
    arena, *sizes = call.arguments
    build = Builder.before(call)
    build.origin, build.metadata = call.origin, call.metadata
    place = const_int(I64, site)
    if by_byte:
        size = sizes[0] if len(sizes) == 1 else build.mul(sizes[0], sizes[1])
        made = build.call(runtime_function(program.module, TAPE_ALLOC), [arena, size, place, size], name=call.name)
    elif len(sizes) == 1:
        one: ConstantInt = const_int(I64, 1)
        made = build.call(runtime_function(program.module, TAPE_ALLOC), [arena, sizes[0], place, one], name=call.name)
    else:
        function = runtime_function(program.module, TAPE_ALLOC_PRODUCT)
        made = build.call(function, [arena, *sizes, place], name=call.name)
    replace_uses(call, made)
    call.erase()
