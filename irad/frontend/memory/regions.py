"""Records of a walk through objects: regions of memory, links between their shadows, and notes for gradients.

`Regions` is the table of this: one block of words, in which are noted words, regions, their order, links, references.
Two walks meet the same things in the same order: the first counts, the second writes. Afterwards the regions are
placed, which gives the bytes of all shadows; when these are allocated, the links are followed: each stores a word in a
shadow or among the noted words.

In code that is differentiated itself `SeparateShadows` takes the place of the table. The addresses that the table
computes are numbers, through which the next derivative cannot follow a pointer. There each shadow is an allocation of
its own, made when the walk meets its memory, its address is stored at once where it belongs, and notes are SSA values.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from functools import reduce
from typing import Any, Final, TypeAlias

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types

from irad.frontend import resident
from irad.frontend.emit import INTP, VOID_POINTER, WORD, Emit
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import MEMINFO_TYPE, Extent
from irad.frontend.numba import private
from irad.records import dataclass

_LOW, _HIGH, _SIZE, _OWNER, _SHADOW = range(5)  # of a region: the last is the shadow's place among all
_HOLDER, _OFFSET, _TARGET, _AWAY = range(4)  # of a link: where it lies, where it points to
_NOTES, _NUMBER = -1, -1  # the holder of a link among the noted words; the target of one that is a plain number
_NOTED, _REGIONS, _ORDER, _LINKS, _REFERENCES = range(5)
_WIDTHS: Final = (1, 5, 1, 4, 1)  # words of an entry


def words_of(size: int) -> int:
    """Number of words that hold a number of bytes."""
    return -(-size // WORD)


class Owner(enum.IntEnum):
    """Owner of the shadow of a region."""

    CALL = 0  # this call makes it
    CALLER = 1  # the caller has given it
    NOBODY = 2  # the region is constant


@dataclass(frozen=True)
class ShadowAt:
    """An address in a shadow: the region, and the bytes from the beginning of its shadow. Both are LLVM numbers."""

    region: Any
    offset: Any

    def plus(self, builder: IRBuilder, offset: Value) -> ShadowAt:
        """An address further on."""
        return ShadowAt(self.region, builder.add(self.offset, offset))


class Regions:
    """The table.

    Args:
        keeps_apart: whether each region counts as one of an owner of its own: none may overlap another.
    """

    def __init__(self, emit: Emit, *, keeps_apart: bool = False) -> None:
        builder = emit.builder
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._keeps_apart = keeps_apart
        self._counts = [cgutils.alloca_once_value(builder, INTP(0)) for _ in _WIDTHS]
        self._tables: list[Any] = []  # none while it is only counted
        self._held = cgutils.alloca_once_value(builder, INTP(0))  # references, once they are taken
        self.meminfo: Value
        self.size: Value

    def open(self, allocate: Callable[[Any], Any]) -> None:
        """Makes room for the counted entries, and starts again; ``allocate`` makes zeroed memory: a meminfo."""
        build = self._builder
        counts = [build.load(count) for count in self._counts]
        # The order has an entry for each region, which nothing counts.
        counts[_ORDER] = counts[_REGIONS]
        words = [build.mul(count, INTP(width)) for count, width in zip(counts, _WIDTHS, strict=True)]
        self.size = build.mul(reduce(build.add, words), INTP(WORD))
        self.meminfo = allocate(self.size)
        place = build.bitcast(self._context.nrt.meminfo_data(build, self.meminfo), INTP.as_pointer())
        for count, length in zip(self._counts, words, strict=True):
            self._tables.append(place)
            place = build.gep(place, [length])
            build.store(INTP(0), count)

    def open_on_stack(self, count: int) -> None:
        """Makes room for a number of entries of each kind, which are not counted first."""
        tables = (cgutils.alloca_once(self._builder, ir.ArrayType(INTP, count * width)) for width in _WIDTHS)
        self._tables = [cgutils.gep_inbounds(self._builder, table, 0, 0) for table in tables]

    def close(self) -> None:
        """The walk has ended."""
        self._builder.store(self._builder.load(self._counts[_REFERENCES]), self._held)

    def _word(self, table: int, number: Any, word: int = 0) -> Value:
        """Address of a word of an entry."""
        index = self._builder.mul(number, INTP(_WIDTHS[table]))
        index = self._builder.add(index, INTP(word)) if word else index
        return self._builder.gep(self._tables[table], [index])

    def _advance(self, table: int, by: int = 1) -> Any:
        """Counts; the result is the number before."""
        before = self._builder.load(self._counts[table])
        self._builder.store(self._builder.add(before, INTP(by)), self._counts[table])
        return before

    def _add(self, table: int, *words: Any) -> Any:
        number = self._advance(table, len(words) // _WIDTHS[table])
        if self._tables:
            first = self._word(table, number)
            for i, word in enumerate(words):
                self._builder.store(word, self._builder.gep(first, [INTP(i)]))
        return number

    # --- what a walk writes -------------------------------------------------------------------------------------------

    def region(self, low: Value, high: Value, size: Value, owner: Owner) -> Any:
        """A region of memory and the bytes of its shadow; returns its number."""
        label = self._builder.load(self._counts[_REGIONS]) if self._keeps_apart else INTP(owner.value)
        return self._add(_REGIONS, low, high, size, label, INTP(0))

    def extent(self, extent: Extent, owner: Owner) -> ShadowAt:
        """The region of an array; returns the shadow of its first element."""
        region = self.region(extent.low, extent.high, extent.size(self._builder), owner)
        return ShadowAt(region, self._builder.sub(extent.data, extent.low))

    def link(self, place: ShadowAt, to: ShadowAt) -> None:
        """An address in a shadow is stored in a shadow."""
        self._add(_LINKS, place.region, place.offset, to.region, to.offset)

    def number(self, place: ShadowAt, word: Value) -> None:
        """A number is stored in a shadow."""
        self._add(_LINKS, place.region, place.offset, INTP(_NUMBER), word)

    def note(self, words: Sequence[Any]) -> None:
        """Numbers and addresses are noted."""
        words = [self._as_word(word) for word in words]
        first = self._add(_NOTED, *(INTP(0) if isinstance(word, ShadowAt) else word for word in words))
        places = (self._builder.mul(self._builder.add(first, INTP(i)), INTP(WORD)) for i in range(len(words)))
        pairs = [(place, word) for place, word in zip(places, words, strict=True) if isinstance(word, ShadowAt)]
        self._add(_LINKS, *(each for place, to in pairs for each in (INTP(_NOTES), place, to.region, to.offset)))

    def _as_word(self, word: Any) -> Any:
        is_address = isinstance(word, Value) and isinstance(word.type, ir.PointerType)
        return self._builder.ptrtoint(word, INTP) if is_address else word

    def note_value(self, numba_type: types.Type, size: int, source: Any) -> None:
        """Notes a value at an address; ``size`` is its bytes."""
        index = self._advance(_NOTED, words_of(size))
        if self._tables:
            place = self._builder.bitcast(self._word(_NOTED, index), VOID_POINTER)
            cgutils.raw_memcpy(self._builder, place, source, INTP(size), 1)

    def notes_of_items(self, count: Any) -> Callable[[], AbstractContextManager[None]]:
        """Context for the notes of each item of a container."""
        return nullcontext

    def hold(self, meminfo: Value) -> None:
        """Takes a reference, for `release`; not if shadows lie apart, which hold their own."""
        if self._keeps_apart:
            return
        self._add(_REFERENCES, self._builder.ptrtoint(meminfo, INTP))
        if self._tables:
            self._context.nrt.incref(self._builder, MEMINFO_TYPE, meminfo)

    # --- use ----------------------------------------------------------------------------------------------------------

    @property
    def noted(self) -> Any:
        """The address of the noted words."""
        return self._tables[_NOTED]

    def place(self, *, joined: bool) -> Value:
        """Gives each region its place among the shadows; returns the bytes of all.

        Args:
            joined: regions that overlap have shadows that overlap in the same way; otherwise each has its own. The
                result is odd where regions of different owners overlap.
        """
        pointer = types.CPointer(types.intp)
        signature, place = types.intp(pointer, pointer, types.intp), _place_joined if joined else _place_apart
        return self._context.compile_internal(self._builder, place, signature, self.in_order())

    def compared(self, other: Regions, compare: Callable[..., bool]) -> Value:
        """Result of a function of two tables, both placed: regions, order and count of each are its arguments."""
        pointer = types.CPointer(types.intp)
        signature = types.boolean(*(pointer, pointer, types.intp) * 2)
        values = [value for table in (self, other) for value in table.in_order()]
        return self._context.compile_internal(self._builder, compare, signature, values)

    def in_order(self) -> list[Any]:
        """The regions, the order of their addresses, and how many there are."""
        return [self._tables[_REGIONS], self._tables[_ORDER], self._builder.load(self._counts[_REGIONS])]

    def meets(self, extent: Extent) -> Value:
        """True if an extent has an address in common with a region."""
        signature = types.boolean(types.CPointer(types.intp), types.intp, types.intp, types.intp)
        values = [self._tables[_REGIONS], self._builder.load(self._counts[_REGIONS]), extent.low, extent.high]
        return self._context.compile_internal(self._builder, _meets, signature, values)

    def connect(self, shadows: Value) -> None:
        """Follows the links; ``shadows`` is the address of all shadows."""
        build = self._builder
        first, notes = build.ptrtoint(shadows, INTP), build.ptrtoint(self.noted, INTP)
        with cgutils.for_range(build, build.load(self._counts[_LINKS]), intp=INTP) as loop:
            holder, offset, target, away = (build.load(self._word(_LINKS, loop.index, i)) for i in range(4))
            place = build.add(self._shadow_or(first, holder, notes), offset)
            word = build.add(self._shadow_or(first, target, INTP(0)), away)
            build.store(word, build.inttoptr(place, INTP.as_pointer()))

    def _shadow_or(self, first: Any, region: Any, other: Any) -> Value:
        is_none = self._builder.icmp_signed("<", region, INTP(0))
        found = self._builder.load(self._word(_REGIONS, self._builder.select(is_none, INTP(0), region), _SHADOW))
        return self._builder.select(is_none, other, self._builder.add(first, found))

    def address(self, shadows: Value, at: ShadowAt) -> Value:
        """An address in a shadow; ``shadows`` is that of all shadows."""
        place = self._builder.load(self._word(_REGIONS, at.region, _SHADOW))
        return self._builder.gep(shadows, [self._builder.add(place, at.offset)])

    def release(self, take: Callable[[Any], None]) -> None:
        """Emits a loop over the references that are held: none before the walk has ended."""
        if not self._tables:
            return
        with cgutils.for_range(self._builder, self._builder.load(self._held), intp=INTP) as loop:
            word = self._builder.load(self._word(_REFERENCES, loop.index))
            take(self._builder.inttoptr(word, VOID_POINTER))


class TableNotes:
    """Reads the words of a table, one after the other.

    Args:
        address: address of the first.
        moved: bytes from the shadows to a copy of them, into which addresses are to point.
    """

    def __init__(self, emit: Emit, address: Any, moved: Any = None) -> None:
        builder = self._builder = emit.builder
        self._moved = moved
        self._words = builder.bitcast(address, INTP.as_pointer())
        self._next = cgutils.alloca_once(builder, INTP)
        self.rewind()

    def rewind(self) -> None:
        """The next word is the first."""
        self._builder.store(INTP(0), self._next)

    def _place(self, words: int) -> Any:
        index = self._builder.load(self._next)
        self._builder.store(self._builder.add(index, INTP(words)), self._next)
        return self._builder.gep(self._words, [index])

    def word(self) -> Any:
        """A number."""
        return self._builder.load(self._place(1))

    def shadow(self) -> Any:
        """An address in a shadow."""
        address = self.word()
        if self._moved is not None:
            address = self._builder.add(address, self._moved)
        return self._builder.inttoptr(address, VOID_POINTER)

    def value(self, size: int, model: Any) -> Any:
        """A value; ``size`` is its bytes."""
        place = self._builder.bitcast(self._place(words_of(size)), model.get_data_type().as_pointer())
        return model.load_from_data_pointer(self._builder, place)

    def items(self) -> Callable[[Any], AbstractContextManager[None]]:
        """Context for reading each item of a container, from its number."""
        return lambda _: nullcontext()


def _place_apart(regions: Any, order: Any, count: int) -> int:
    """Compiled by Numba."""
    total = 0
    for i in range(count):
        regions[5 * i + 4] = total
        # Rounded up, so that the next shadow begins at a cache line, whatever alignment its type needs.
        total += (regions[5 * i + 2] + 63) & ~63
    return total


def _place_joined(regions: Any, order: Any, count: int) -> int:
    """Compiled by Numba: sorts the regions (a heap sort) and joins neighbours that overlap.

    Words are assigned one by one, not as tuples, which take Numba longer to compile.
    """
    for i in range(count):
        order[i] = 5 * i
    start = count // 2
    end = count
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            order[end], order[0] = order[0], order[end]
        root = start
        while 2 * root + 1 < end:
            child = 2 * root + 1
            if child + 1 < end and regions[order[child]] < regions[order[child + 1]]:
                child += 1
            if regions[order[root]] >= regions[order[child]]:
                break
            order[root], order[child] = order[child], order[root]
            root = child
    base = low = high = owner = size = mixed = 0
    for i in range(count):
        k = order[i]
        begin = regions[k]
        if begin >= high:
            base = (size + 63) & ~63
            low = begin
            high = begin
            owner = regions[k + 3]
        elif begin < regions[k + 1] and regions[k + 3] != owner:
            mixed = 1
        high = max(high, regions[k + 1])
        regions[k + 4] = base + begin - low
        size = max(size, regions[k + 4] + regions[k + 2])
    # Sizes are even, so an odd one tells that regions of different owners overlap.
    return ((size + 63) & ~63) + mixed


def _meets(regions: Any, count: int, low: int, high: int) -> bool:
    """Compiled by Numba."""
    for i in range(0, 5 * count, 5):
        if low < regions[i + 1] and regions[i] < high and low < high and regions[i] < regions[i + 1]:
            return True
    return False


# --- notes in SSA values ----------------------------------------------------------------------------------------------
# For code that follows at once. For items and entries, of which there may be any number, structs lie in an arena.


@dataclass
class ItemNotes:
    """The notes of the items of a container: a struct for each.

    Attributes:
        slot: where the address of the first struct is.
        parts: members of a struct.
    """

    slot: Any
    parts: list[Note] = field(default_factory=list)

    @property
    def pointer_type(self) -> Any:
        """LLVM type of a pointer to a struct."""
        kinds = [VOID_POINTER if isinstance(part, ItemNotes) else part.type for part in self.parts]
        return ir.LiteralStructType(kinds).as_pointer()


Note: TypeAlias = Value | ItemNotes


class SsaRecorder:
    """Records notes as SSA values, for `SsaNotes`.

    Args:
        arena: outlives this.
        fail: emits the end of the function when there is no memory.
    """

    def __init__(self, emit: Emit, arena: Value, fail: Callable[[], None]) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._arena, self._fail = arena, fail
        self.kept: list[Note] = []

    def allocated(self, size: Any) -> Any:
        """Memory of the arena."""
        memory = self._unchecked(size)
        self._check(memory)
        return memory

    def _unchecked(self, size: Any) -> Any:
        # Code that is differentiated itself needs the function that has a rule.
        name = "irad.arena_alloc" if private.shadow().differentiates() else "irad.arena_memory"
        return resident.call(self._builder, name, VOID_POINTER, self._arena, size)

    def _check(self, memory: Any) -> None:
        with cgutils.if_unlikely(self._builder, cgutils.is_null(self._builder, memory)):
            self._fail()

    def note(self, words: Sequence[Any]) -> None:
        """Keeps numbers and addresses."""
        self.kept += words

    def note_value(self, numba_type: types.Type, size: int, source: Any) -> None:
        """Keeps the value at an address."""
        model = self._context.data_model_manager[numba_type]
        pointer = self._builder.bitcast(source, model.get_data_type().as_pointer())
        self.kept.append(model.load_from_data_pointer(self._builder, pointer))

    def notes_of_items(self, count: Any) -> Callable[[], AbstractContextManager[None]]:
        """Makes a block for ``count`` items; returns a context for the notes of each, in the loop that follows."""
        build, before = self._builder, self._builder.block
        block = ItemNotes(cgutils.alloca_once(build, VOID_POINTER))
        counter = cgutils.alloca_once(build, INTP)
        build.store(INTP(0), counter)
        self.kept.append(block)

        @contextmanager
        def each() -> Iterator[None]:
            first = build.load(block.slot)
            self._check(first)
            outer, self.kept = self.kept, block.parts
            yield
            self.kept = outer
            with build.goto_block(before):  # now it is known what is kept
                size = self._context.get_abi_sizeof(block.pointer_type.pointee)
                build.store(self._unchecked(build.mul(count, INTP(size))), block.slot)
            number = build.load(counter)
            build.store(build.add(number, INTP(1)), counter)
            place = build.gep(build.bitcast(first, block.pointer_type), [number])
            for i, part in enumerate(block.parts):
                value = build.load(part.slot) if isinstance(part, ItemNotes) else part
                build.store(value, cgutils.gep_inbounds(build, place, 0, i))

        return each


class SsaNotes:
    """Reads notes that are SSA values, in the order in which they were recorded: in place of `TableNotes`.

    Args:
        kept: by an `SsaRecorder`.
    """

    def __init__(self, emit: Emit, kept: Sequence[Note]) -> None:
        self._builder, self._kept = emit.builder, kept
        self.rewind()

    def rewind(self) -> None:
        """Returns to the first note."""
        self._parts: Iterator[Note] = iter(self._kept)
        self._place: Any = None  # of the item that is read
        self._number = 0  # how much of it was

    def _next(self) -> tuple[Note, Any]:
        part = next(self._parts)
        if self._place is None:
            return part, self._builder.load(part.slot) if isinstance(part, ItemNotes) else part
        self._number += 1
        return part, self._builder.load(cgutils.gep_inbounds(self._builder, self._place, 0, self._number - 1))

    def word(self) -> Any:
        """A number."""
        return self._next()[1]

    def shadow(self) -> Any:
        """An address in a shadow."""
        return self._next()[1]

    def value(self, size: int, model: Any) -> Any:
        """A value."""
        return self._next()[1]

    def items(self) -> Callable[[Any], AbstractContextManager[None]]:
        """Context for reading each item of a container, from its number."""
        block, first = self._next()
        assert isinstance(block, ItemNotes)

        @contextmanager
        def each(index: Any) -> Iterator[None]:
            outer = self._parts, self._place, self._number
            start = self._builder.bitcast(first, block.pointer_type)
            self._parts, self._place, self._number = iter(block.parts), self._builder.gep(start, [index]), 0
            yield
            self._parts, self._place, self._number = outer

        return each


# --- shadows in code that is differentiated itself --------------------------------------------------------------------

_NOTHING: Final = ir.VoidType()


class SeparateShadows(SsaRecorder):
    """Makes them, for a walk: in place of `regions.Regions`.

    Args:
        references: of the call, which ends when there is no memory.
    """

    def __init__(self, emit: Emit, references: References) -> None:
        builder = emit.builder
        arena = resident.call(builder, "irad.arena_new", VOID_POINTER)
        SsaRecorder.__init__(self, emit, arena, references.fail)
        self._check(arena)
        references.loops.append(lambda _: resident.call(builder, "irad.arena_delete", _NOTHING, arena))

    # --- what a walk meets --------------------------------------------------------------------------------------------

    def region(self, low: Value, high: Value, size: Value, owner: Owner) -> Any:
        """The shadow of a region of memory: its address."""
        memory = self.allocated(size)
        cgutils.memset(self._builder, memory, size, 0)
        return memory

    def extent(self, extent: Extent, owner: Owner) -> ShadowAt:
        """The shadow of the first element of an array."""
        memory = self.region(extent.low, extent.high, extent.size(self._builder), owner)
        return ShadowAt(memory, self._builder.sub(extent.data, extent.low))

    def address(self, at: ShadowAt) -> Any:
        """An address in a shadow."""
        return self._builder.gep(at.region, [at.offset])

    def link(self, place: ShadowAt, to: ShadowAt) -> None:
        """Stores an address in a shadow."""
        self.number(place, self.address(to))

    def number(self, place: ShadowAt, word: Any) -> None:
        """Stores a number in a shadow."""
        self._builder.store(word, self._builder.bitcast(self.address(place), word.type.as_pointer()))

    def hold(self, meminfo: Value) -> None:
        """Takes a reference, until the call ends."""
        self._context.nrt.incref(self._builder, MEMINFO_TYPE, meminfo)
        resident.call(self._builder, "irad.arena_defer", _NOTHING, self._arena, meminfo)

    def note(self, words: Sequence[Any]) -> None:
        """Keeps numbers and addresses in shadows."""
        SsaRecorder.note(self, [self.address(word) if isinstance(word, ShadowAt) else word for word in words])
