"""Meter: counts the bytes of the tape while the forward sweep fills it, place by place.

Input   a finished augmented primal, and the materialiser that made its storage.
Output  the same; what allocates calls `irad.tape_alloc` instead of `irad.arena_alloc`. A `TapeMark` for each place.
Method  a place counts *units*: iterations of a slab, records, frames of callees. What a unit holds is known here. Of
        memory whose size only the program knows a unit is a byte.
Limit   a function that is called through a pointer is one place, number 0. Tables and local memory of the reverse sweep
        and shadows of containers are no tape.

    %slab = call ptr @irad.arena_alloc_product(ptr %arena, i64 %n, i64 16)
    %slab = call ptr @irad.tape_alloc_product(ptr %arena, i64 %n, i64 16, i64 3)
"""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.builder import Builder
from irad.ir.instructions import Call, replace_uses
from irad.ir.module import Function
from irad.ir.types import I64
from irad.ir.values import ConstantInt, Value, const_int
from irad.passes.forward import Forward
from irad.passes.marks import TapeMark, TapePart
from irad.passes.materialise import Materialiser
from irad.passes.program import Pair, Program
from irad.passes.runtime import ARENA_ALLOC, ARENA_ALLOC_PRODUCT, TAPE_ALLOC, TAPE_ALLOC_PRODUCT, runtime_function
from irad.passes.tape import Records, Slab, size_in_memory

BY_POINTER = 0
"""The place of functions that are called through pointers."""


def meter_pair(forward: Forward, materialiser: Materialiser) -> None:
    """Has the allocations of an augmented primal counted."""
    storages: dict[Value, Slab | Records] = {
        each.base if isinstance(each, Slab) else each.current: each for each in materialiser.storages.values()
    }
    frames = dict(forward.callee_frames.values())
    for call in _allocations(forward.function):
        storage = storages.get(call)
        if storage is None:
            pair = frames.get(call)
            if pair is None:
                _count(forward.program, call, TapeMark(call, (TapePart(call, 1, "kept"),)), by_byte=True)
            else:
                _count(forward.program, call, TapeMark(call, (), pair.variant))
        elif isinstance(storage, Slab):
            parts = tuple(TapePart(v, size_in_memory(v.type), "slab") for v in storage.values)
            _count(forward.program, call, TapeMark(call, parts))
        else:
            values = [TapePart(v, size_in_memory(v.type), "record") for v in storage.offsets]
            link = TapePart(None, storage.layout.size - sum(part.bytes for part in values), "record")
            _count(forward.program, call, TapeMark(call, (*values, link)))
    forward.program.frame_parts[forward.pair.variant] = tuple(_parts_of_frame(forward, materialiser))


def meter_launcher(program: Program, pair: Pair, lane: Pair, head: int) -> None:
    """The same for the records of the lanes of a parallel loop, of which ``head`` bytes lie before the frame."""
    for call in _allocations(pair.augmented):
        _count(program, call, TapeMark(call, (TapePart(None, head, "frame"),), lane.variant))
    program.frame_parts[pair.variant] = ()


def _parts_of_frame(forward: Forward, materialiser: Materialiser) -> Iterator[TapePart]:
    total = -(-max(forward.frame.size, 1) // 64) * 64
    for value in materialiser.frame_slots:
        size = size_in_memory(value.type)
        total -= size
        yield TapePart(value, size, "frame")
    yield TapePart(None, total, "frame")


def _allocations(function: Function) -> list[Call]:
    names = (ARENA_ALLOC, ARENA_ALLOC_PRODUCT)
    calls = [i for i in function.instructions() if isinstance(i, Call)]
    return [c for c in calls if isinstance(c.callee, Function) and c.callee.name in names]


def _count(program: Program, call: Call, mark: TapeMark, *, by_byte: bool = False) -> None:
    """Puts a counted allocation in the place of one."""
    site = BY_POINTER
    if program.request.callee is None:
        site = len(program.tape_marks)
        program.tape_marks.append(mark)
    arena, *sizes = call.arguments
    build = Builder.before(call)
    build.origin, build.metadata = call.origin, call.metadata
    place = const_int(I64, site)
    if program.request.callee is not None or by_byte:
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
