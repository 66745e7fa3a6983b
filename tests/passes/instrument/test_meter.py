from __future__ import annotations

from typing import Any

from irad.ir.instructions import Call
from irad.ir.module import Function
from irad.passes.instrument.marks import parts_of
from irad.passes.mode import AUGMENTED
from irad.passes.program import Program
from irad.passes.runtime import ARENA_ALLOC, ARENA_ALLOC_PRODUCT, TAPE_ALLOC, TAPE_ALLOC_PRODUCT
from tests.passes.augmented.test_allocation_failure import CALLEE
from tests.passes.augmented.test_tape import COUNTED, WHILE
from tests.passes.units import derivative


def _held(program: Program) -> list[list[tuple[str, int]]]:
    """Storage and bytes of what each place of a tape holds."""
    frames = program.frame_parts
    return [[(part.storage, part.bytes) for part in parts_of(mark, frames)] for mark in program.tape_marks]


def storages(text: str, kinds: str) -> list[list[tuple[str, int]]]:
    """Of each place storage and bytes of what a unit holds."""
    return _held(derivative(text, kinds, meters=True).program)


def allocators(text: str, kinds: str, **options: Any) -> set[str | None]:
    functions = [made.pair[AUGMENTED] for made in derivative(text, kinds, **options).pairs]
    calls = [i for f in functions for i in f.instructions() if isinstance(i, Call)]
    names = {call.callee.name for call in calls if isinstance(call.callee, Function)}
    return names & {ARENA_ALLOC, ARENA_ALLOC_PRODUCT, TAPE_ALLOC, TAPE_ALLOC_PRODUCT}


def test_slabs():
    pointers, slab, frame = storages(COUNTED, "scsc")
    assert pointers == [("frame", 1)]
    assert slab == [("slab", 8), ("slab", 4)]
    assert sum(size for _, size in frame) % 64 == 0


def test_records_have_a_link():
    _, record, _ = storages(WHILE, "scsc" if WHILE.count("i64 %n)") else "scs")
    assert {storage for storage, _ in record} == {"record"}
    assert sum(size for _, size in record) % 8 == 0
    assert record[-1] == ("record", 8)


def test_frames_of_callees():
    places = storages(CALLEE, "scsc")
    assert len(places) == 4  # pointers, the callee's frame, its slab, the entry's frame
    assert sum(size for _, size in places[1]) == 64


def test_only_on_request():
    assert allocators(CALLEE, "scsc") == {ARENA_ALLOC, ARENA_ALLOC_PRODUCT}
    assert allocators(CALLEE, "scsc", meters=True) == {TAPE_ALLOC, TAPE_ALLOC_PRODUCT}


def test_places_are_noted_whether_they_are_counted_or_not():
    for text, kinds in ((COUNTED, "scsc"), (CALLEE, "scsc")):
        described, counted = derivative(text, kinds), derivative(text, kinds, meters=True)
        found = [_held(made.program) for made in (described, counted)]
        assert found[0] == found[1]
