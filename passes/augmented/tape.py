"""The tape: where saved values of the forward sweep live, and the code that stores and reloads them.

Every pair has a *frame*, memory that its caller provides: regions for shadows of local variables, then a slot for each
saved value that lies in no loop. Values of a loop are saved once per iteration:

    counted loop     a slab, allocated before the loop when its trip count is known: one array per saved value,
                     indexed by the iteration number; in code that is differentiated again, an array of rows where
                     values differ in type, since a place in a row tells what it holds
    other loops      a record per iteration, allocated when the iteration starts, with a link to the one before

Where the iterations of an outer loop run through the same values (`Repeated` in `plan/rematerialisation.py`), they
share the slab of the inner loop; a load that finds what another one finds later shares its array
(`plan/neighbouring_loads.py`). Slab pointers and the links to last records are themselves saved values of the
surrounding loop, so nests of any shape (ragged, data dependent) need nothing special.

In a kernel the words of a thread's tape lie apart, between those of the other threads of its warp. A pointer points to
the first byte of a slab or record, and `apart` says how far after it another byte lies. A slab has rows there: the
values of an iteration are found by one address and constants. Records follow each other without links, if no inner loop
allocates anything between them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Metadata
from irad.ir.loops import Loop
from irad.ir.types import ArrayType, IntType, Type
from irad.ir.values import ConstantNull, Value, const_int
from irad.records import dataclass

WORD: Final = 8
_DISTANCE: Final = 32 * WORD  # from one word of a thread's tape to its next, where those of a warp alternate


@dataclass(eq=False, slots=True)
class FrameLayout:
    """Offsets in a frame or record, assigned in the order of requests."""

    size: int = 0

    def region(self, size: int, align: int) -> int:
        """The offset of a new region."""
        offset = -(-self.size // align) * align
        self.size = offset + size
        return offset


def stored_type(type_: Type) -> Type:
    """The type a value has in memory: odd integers are widened to bytes."""
    if isinstance(type_, IntType) and type_.bits % 8:
        return types.int_type(-(-type_.bits // 8) * 8)
    return type_


def store_value(build: Builder, value: Value, pointer: Value, scopes: Metadata) -> None:
    """Saves a value, frozen: poison must not differ between the sweeps."""
    # Poison may be another value at each use, and both sweeps must see the same.
    frozen = build.freeze(value)
    store = build.store(build.cast("zext", frozen, stored_type(value.type)), pointer, align=_align(value.type))
    store.metadata = {**store.metadata, **scopes}


def load_value(build: Builder, type_: Type, pointer: Value, name: str | None, scopes: Metadata) -> Value:
    """Reloads a saved value."""
    loaded = build.load(stored_type(type_), pointer, align=_align(type_), name=name)
    loaded.metadata = {**loaded.metadata, **scopes}
    return build.cast("trunc", loaded, type_)


def apart(offset: int) -> int:
    """Distance of a byte from the first one, on a tape whose words alternate with those of other threads."""
    return offset // WORD * _DISTANCE + offset % WORD


def _align(type_: Type) -> int:
    return min(8, types.alignment_of(stored_type(type_)))


def size_in_memory(type_: Type) -> int:
    """Bytes of a saved value."""
    return types.size_of(stored_type(type_))


@dataclass(eq=False, slots=True)
class Slab:
    """Storage of a counted loop: one array per saved value.

    Attributes:
        loop: loop of the forward sweep.
        last: number of its last iteration, a value at the preheader.
        values: saved values in the order of their arrays, wide ones first, so that every array is aligned.
        has_rows: whether the values of an iteration lie side by side.
        alternates: whether words alternate with those of other threads; then it has rows.
        more: number of slots of each value beyond those of the iterations.
        count, base: slots of each value and slab, made at the preheader.
    """

    loop: Loop
    last: Value
    values: list[Value]
    has_rows: bool = False
    alternates: bool = False
    more: int = 0
    count: Value = field(init=False)
    base: Value = field(init=False)

    def prefix(self, value: Value) -> int:
        """Bytes per iteration of the values in front of a value."""
        total = 0
        for other in self.values:
            if other is value:
                return total
            total += size_in_memory(other.type)
        raise AssertionError("not a value of this slab")

    def is_behind_others(self, value: Value) -> bool:
        """True if the number of iterations is needed to find a value."""
        return not self.has_rows and self.prefix(value) > 0

    def bytes_per_iteration(self) -> int:
        """Bytes of all arrays per iteration, or of a row; short rows of a kernel share words."""
        total = sum(size_in_memory(v.type) for v in self.values)
        if self.alternates and total < WORD:
            # Short rows share a word, so that their size has to divide it.
            return 1 << (total - 1).bit_length()
        # Rows are whole words, so that values of the next row are aligned.
        return -(-total // WORD) * WORD if self.has_rows else total

    def slot(self, build: Builder, base: Value, count: Value | None, value: Value, index: Value) -> Value:
        """Address of a value's slot for one iteration; ``count`` where `is_behind_others`."""
        prefix, size = self.prefix(value), size_in_memory(value.type)
        if self.alternates:
            return build.byte_offset(self.row(build, base, index), apart(prefix))
        if self.has_rows:
            row = build.gep(ArrayType(self.bytes_per_iteration(), types.I8), base, [index])
            return build.byte_offset(row, prefix)
        start = base if count is None else build.byte_offset(base, build.mul(count, const_int(types.I64, prefix)))
        return build.byte_offset(start, build.mul(index, const_int(types.I64, size)))

    def row(self, build: Builder, base: Value, index: Value) -> Value:
        """Address of a row, on a tape whose words alternate."""
        size = self.bytes_per_iteration()
        if size >= WORD:
            return build.byte_offset(base, build.mul(index, const_int(types.I64, apart(size))))
        offset = build.mul(index, const_int(types.I64, size))
        inside = build.and_(offset, const_int(types.I64, WORD - 1))
        words = build.mul(build.sub(offset, inside), const_int(types.I64, _DISTANCE // WORD))
        return build.byte_offset(build.byte_offset(base, words), inside)


@dataclass(eq=False, slots=True)
class Records:
    """Storage of a loop whose iterations are not counted beforehand.

    Attributes:
        loop: loop of the forward sweep.
        offsets: of each saved value in a record.
        layout: layout of a record.
        has_links: whether a record starts with a link to the one before; without links, records follow each other.
        alternates: whether words alternate with those of other threads.
        current: the record of the current iteration, made in the header.
    """

    loop: Loop
    offsets: dict[Value, int]
    layout: FrameLayout
    has_links: bool = True
    alternates: bool = False
    current: Value = field(init=False)

    def slot(self, build: Builder, record: Value, value: Value) -> Value:
        """Address of a value in a record."""
        offset = self.offsets[value]
        return build.byte_offset(record, apart(offset) if self.alternates else offset)

    def before(self, build: Builder, record: Value) -> Value:
        """The record of the iteration before."""
        if self.has_links:
            return build.load(types.PTR, record, align=8)
        words = -(-self.layout.size // WORD)
        return build.byte_offset(record, -(apart(words * WORD) if self.alternates else words * WORD))


NULL = ConstantNull(types.PTR)


def make_slab(slab: Slab, allocate: Value, arena: Value) -> None:
    """Allocates a slab at the preheader."""
    assert slab.loop.preheader is not None
    build = Builder.before(slab.loop.preheader.terminator)
    slab.count = build.add(slab.last, const_int(types.I64, 1 + slab.more), name="iterations")
    bytes_each = const_int(types.I64, slab.bytes_per_iteration())
    slab.base = build.call(allocate, [arena, slab.count, bytes_each], name="slab")


def make_records(records: Records, allocate: Value, arena: Value) -> None:
    """Allocates a record at the start of each iteration and links it to the one before."""
    loop = records.loop
    assert loop.preheader is not None
    assert loop.latch is not None
    build = Builder.at_start(loop.header)
    size = const_int(types.I64, records.layout.size)
    records.current = build.call(allocate, [arena, size], name="record")
    if records.has_links:
        before = Builder.at_start(loop.header).phi(types.PTR, name="record.before")
        build.store(before, records.current, align=8)
        before.add_incoming(NULL, loop.preheader)
        before.add_incoming(records.current, loop.latch)
