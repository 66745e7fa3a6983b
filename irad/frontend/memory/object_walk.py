"""Walks through the objects among the arguments, in generated code, before the primal runs.

Every walk meets the same things in the same order; what it does with them is its *stage*:

COUNT   counts regions of memory, references and noted words
SURVEY  writes down the regions and takes the references: nothing that an argument leads to is freed in the call
WIRE    each region has a shadow now: connects the shadows as the regions are connected, and notes where the shadows of
        numbers and arrays are, for `object_gradients`

What is noted comes from the arguments as they are before the call, which may change them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from irad.frontend.memory.shadows import MEMINFO_TYPE, Extent, extent_of_array
from irad.frontend.numba.untyped import types
from irad.frontend.values.layouts import ARRAY_DATA, HEADER_DATA, HEADER_SIZE
from irad.frontend.values.tree import (
    ArrayContent,
    Content,
    DictionaryContent,
    InstanceContent,
    ListContent,
    Reference,
    TupleContent,
    has_derivative,
    is_headed,
    is_plain,
    pointer_at,
)

INTP: Final = cgutils.intp_t
VOID_POINTER: Final = cgutils.voidptr_t
WORD: Final = 8

REGION_WORDS: Final = 5  # where it begins and ends; bytes of its shadow; whose it is; the shadow's place among all
_LOW, _HIGH, _SIZE, _OWNER, _SHADOW = range(REGION_WORDS)

_HEADER_SIZE_SLOT: Final = 32  # where a header has the size of the data
_LIST_STRUCT, _DICT_STRUCT = 24, 48  # bytes of the shadows `%irad.list` and `%irad.dict`
_DICT_KEYS, _ENTRY_COUNT = 8, 16  # in NB_Dict the table; in that, how many entries it has (numba/cext/dictobject.h)
_ITERATOR_SIZE, _ITERATOR_NEXT = 32, 24  # of NB_DictIter; where it has the number of the next entry
_LIST_ALLOCATED: Final = 8  # in the payload of a reflected list, after the size


class Stage(enum.Enum):
    """What a walk does."""

    COUNT = "count"
    SURVEY = "survey"
    WIRE = "wire"


class Owner(enum.IntEnum):
    """Where the shadow of a region is."""

    CALL = 0  # this call makes it
    CALLER = 1  # the caller has given it
    NOBODY = 2  # the region is constant


class Ledger:
    """Where the walks write: counters, and a block with noted words, regions, their order, and references.

    Args:
        builder: of llvmlite.
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.words, self.regions, self.references = (self._counter() for _ in range(3))
        self.noted: Any = None
        self.region_table: Any = None
        self.order: Any = None
        self.reference_table: Any = None
        self.reference_count = self._counter()  # those that are held

    def _counter(self) -> Any:
        return cgutils.alloca_once_value(self.builder, INTP(0))

    def size(self) -> Any:
        """Bytes of the block, after all is counted."""
        build = self.builder
        words, regions, references = (build.load(c) for c in (self.words, self.regions, self.references))
        total = build.add(build.add(words, references), build.mul(regions, INTP(REGION_WORDS + 1)))
        return build.mul(total, INTP(WORD))

    def open(self, block: Any) -> None:
        """Divides a block of that size; the counters start again."""
        build = self.builder
        words, regions = build.load(self.words), build.load(self.regions)
        self.noted = build.bitcast(block, INTP.as_pointer())
        self.region_table = build.gep(self.noted, [words])
        self.order = build.gep(self.region_table, [build.mul(regions, INTP(REGION_WORDS))])
        self.reference_table = build.gep(self.order, [regions])
        self.rewind()

    def rewind(self) -> None:
        """Before a walk."""
        for counter in (self.words, self.regions, self.references):
            self.builder.store(INTP(0), counter)

    def advance(self, counter: Any, by: Any) -> Any:
        """Counts; the result is the number before."""
        before = self.builder.load(counter)
        self.builder.store(self.builder.add(before, by), counter)
        return before

    def region(self, number: Any, word: int) -> Any:
        """Where a word of a region is."""
        index = self.builder.add(self.builder.mul(number, INTP(REGION_WORDS)), INTP(word))
        return self.builder.gep(self.region_table, [index])


class Walk:
    """One walk.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        ledger: where it writes.
        stage: what it does.
        buffer: in the last stage the memory of all shadows.
        owner: of the regions; references are held on what gets a shadow here.
    """

    def __init__(
        self,
        context: Any,
        builder: Any,
        ledger: Ledger,
        stage: Stage,
        buffer: Any = None,
        owner: Owner = Owner.CALL,
    ) -> None:
        self._context, self._builder, self._ledger, self._stage = context, builder, ledger, stage
        self._buffer, self._owner = buffer, owner

    # --- what is met --------------------------------------------------------------------------------------------------

    def region(self, low: Any, high: Any, size: Any = None) -> Any:
        """A region of memory, and the bytes of its shadow, if they are not as many; returns the shadow in WIRE."""
        build, ledger = self._builder, self._ledger
        number = ledger.advance(ledger.regions, INTP(1))
        if self._stage is Stage.SURVEY:
            words = (low, high, build.sub(high, low) if size is None else size, INTP(self._owner.value))
            for word, value in zip((_LOW, _HIGH, _SIZE, _OWNER), words, strict=True):
                build.store(value, ledger.region(number, word))
        if self._stage is not Stage.WIRE:
            return None
        return build.gep(self._buffer, [build.load(ledger.region(number, _SHADOW))])

    def extent(self, extent: Extent) -> Any:
        """The region of an array; returns the shadow of its first element in WIRE."""
        base = self.region(extent.low, extent.high)
        return None if base is None else self._builder.gep(base, [self._builder.sub(extent.data, extent.low)])

    def _hold(self, meminfo: Any) -> None:
        build, ledger = self._builder, self._ledger
        if self._owner is not Owner.CALL:
            return
        number = ledger.advance(ledger.references, INTP(1))
        if self._stage is Stage.SURVEY:
            self._context.nrt.incref(build, MEMINFO_TYPE, meminfo)
            build.store(build.ptrtoint(meminfo, INTP), build.gep(ledger.reference_table, [number]))

    def _note(self, words: Sequence[Any]) -> None:
        build, ledger = self._builder, self._ledger
        number = ledger.advance(ledger.words, INTP(len(words)))
        if self._stage is Stage.WIRE:
            for i, word in enumerate(words):
                value = build.ptrtoint(word, INTP) if isinstance(word.type, ir.PointerType) else word
                build.store(value, build.gep(ledger.noted, [build.add(number, INTP(i))]))

    def _note_bytes(self, source: Any, size: int) -> None:
        build, ledger = self._builder, self._ledger
        number = ledger.advance(ledger.words, INTP(size // WORD))
        if self._stage is Stage.WIRE:
            place = build.bitcast(build.gep(ledger.noted, [number]), VOID_POINTER)
            cgutils.raw_memcpy(build, place, source, INTP(size), 1)

    # --- the walk -----------------------------------------------------------------------------------------------------

    def value(self, content: Content, place: Any, shadow: Any) -> None:
        """A value in memory; in WIRE with the shadow of that memory."""
        match content:
            case ArrayContent():
                self._array(content, place, shadow)
            case TupleContent():
                self._parts(content.parts, place, shadow)
            case InstanceContent() | ListContent() | DictionaryContent():
                pointer = self._load(place, pointer_at(content))
                found = self.reference(content, self._load(place, 0), pointer)
                if found is not None:
                    self._store(found, shadow, pointer_at(content))
            case _:
                pass

    def reference(self, reference: Reference, meminfo: Any, pointer: Any) -> Any:
        """What a reference leads to; returns the shadow of that in WIRE."""
        self._hold(meminfo)
        match reference:
            case InstanceContent():
                return self._instance(reference, pointer)
            case ListContent() if is_headed(reference):
                return self._reflected_list(reference, pointer)
            case ListContent():
                return self._typed_list(reference, pointer)
            case DictionaryContent():
                return self._dictionary(reference, pointer)

    def _parts(self, parts: tuple[Content, ...], place: Any, shadow: Any) -> None:
        for part in parts:
            self.value(part, self._at(place, part.offset), self._at(shadow, part.offset))

    def _array(self, content: ArrayContent, place: Any, shadow: Any) -> None:
        build, context = self._builder, self._context
        model = context.data_model_manager[content.type]
        stored = build.bitcast(place, model.get_data_type().as_pointer())
        array = context.make_array(content.type)(context, build, model.load_from_data_pointer(build, stored))
        self._hold(array.meminfo)
        extent = extent_of_array(context, build, array, content.type)
        found = self.extent(extent)
        if found is not None:
            self._store(found, shadow, ARRAY_DATA)
        if not has_derivative(content):
            return
        dimensions = [*cgutils.unpack_tuple(build, array.shape), *cgutils.unpack_tuple(build, array.strides)]
        low = found if found is None else build.sub(build.ptrtoint(found, INTP), build.sub(extent.data, extent.low))
        self._note([_zero_if_none(found), _zero_if_none(low), extent.size(build), *dimensions])

    def _instance(self, instance: InstanceContent, pointer: Any) -> Any:
        header = None
        fields = pointer
        if is_headed(instance):
            header = self._span(pointer, INTP(HEADER_SIZE))
            fields = self._load(pointer, HEADER_DATA)
        shadow = self._span(fields, INTP(instance.size))
        self._connect(header, shadow, INTP(instance.size))
        if has_derivative(instance):
            self._note([_zero_if_none(shadow)])
        self._parts(instance.parts, fields, shadow)
        return shadow if header is None else header

    def _reflected_list(self, found: ListContent, pointer: Any) -> Any:
        build = self._builder
        header = self._span(pointer, INTP(HEADER_SIZE))
        payload = self._load(pointer, HEADER_DATA)
        count, room = self._load_word(payload, 0), self._load_word(payload, _LIST_ALLOCATED)
        size = build.add(INTP(found.prefix), build.mul(room, INTP(found.stride)))
        shadow = self._span(payload, size)
        self._connect(header, shadow, size)
        self._items(found, count, self._at(payload, found.prefix), self._at(shadow, found.prefix))
        return header

    def _connect(self, header: Any, data: Any, size: Any) -> None:
        """The shadow of a header leads to that of its data."""
        if header is not None:
            self._store(data, header, HEADER_DATA)
            self._store(size, header, _HEADER_SIZE_SLOT)

    def _typed_list(self, found: ListContent, pointer: Any) -> Any:
        build = self._builder
        struct = self._span(pointer, INTP(WORD), INTP(_LIST_STRUCT))
        count = self._call("numba_list_length", INTP, [pointer])
        items = self._call("numba_list_base_ptr", VOID_POINTER, [pointer])
        shadow = self._span(items, build.mul(count, INTP(found.stride)))
        if struct is not None:
            for i, word in enumerate((shadow, count, INTP(found.stride))):
                self._store(word, struct, WORD * i)
        self._items(found, count, items, shadow)
        return struct

    def _items(self, found: ListContent, count: Any, items: Any, shadow: Any) -> None:
        build = self._builder
        if has_derivative(found):
            self._note([count, _zero_if_none(shadow)])
        if is_plain(found.item):
            return
        with cgutils.for_range(build, count, intp=INTP) as loop:
            offset = build.mul(loop.index, INTP(found.stride))
            self.value(found.item, build.gep(items, [offset]), None if shadow is None else build.gep(shadow, [offset]))

    def _dictionary(self, found: DictionaryContent, pointer: Any) -> Any:
        build = self._builder
        struct = self._span(pointer, INTP(WORD), INTP(_DICT_STRUCT))
        keys = self._load(pointer, _DICT_KEYS)
        entries = self._load_word(keys, _ENTRY_COUNT)
        table = self._span(keys, INTP(WORD), build.mul(entries, INTP(WORD)))
        if struct is not None:
            sizes = (INTP(found.key_size), INTP(found.value_at), INTP(found.value_size))
            for i, word in enumerate((table, entries, entries, *sizes)):
                self._store(word, struct, WORD * i)
        if has_derivative(found):
            self._note([self._call("numba_dict_length", INTP, [pointer])])
        with self._entries(pointer) as (number, key, value):
            end = build.add(build.ptrtoint(value, INTP), INTP(found.value_size))
            cell = self.region(build.ptrtoint(key, INTP), end)
            if cell is not None:
                build.store(cell, build.gep(build.bitcast(table, VOID_POINTER.as_pointer()), [number]))
            self._hold_key(found, key)
            if has_derivative(found):
                self._note([_zero_if_none(cell)])
                self._note_bytes(key, found.value_at)
            self.value(found.value, value, self._at(cell, found.value_at))
        return struct

    def _hold_key(self, found: DictionaryContent, place: Any) -> None:
        build, context = self._builder, self._context
        model = context.data_model_manager[found.key.type]
        if not model.contains_nrt_meminfo():
            return
        key = model.load_from_data_pointer(build, build.bitcast(place, model.get_data_type().as_pointer()))
        for _, meminfo in context.nrt.get_meminfos(build, found.key.type, key):
            self._hold(meminfo)

    @contextmanager
    def _entries(self, pointer: Any) -> Any:
        """A loop over the entries of a dictionary: number, address of the key, address of the value."""
        build = self._builder
        iterator = build.bitcast(cgutils.alloca_once(build, ir.ArrayType(INTP, _ITERATOR_SIZE // WORD)), VOID_POINTER)
        key, value = (cgutils.alloca_once(build, VOID_POINTER) for _ in range(2))
        self._call("numba_dict_iter", ir.VoidType(), [iterator, pointer])
        head = build.append_basic_block("entry")
        body, end = build.append_basic_block("entry.body"), build.append_basic_block("entry.end")
        build.branch(head)
        build.position_at_end(head)
        status = self._call("numba_dict_iter_next", ir.IntType(32), [iterator, key, value])
        build.cbranch(build.icmp_signed("==", status, ir.IntType(32)(0)), body, end)
        build.position_at_end(body)
        number = build.sub(self._load_word(iterator, _ITERATOR_NEXT), INTP(1))
        yield number, build.load(key), build.load(value)
        build.branch(head)
        build.position_at_end(end)

    # --- words --------------------------------------------------------------------------------------------------------

    def _span(self, pointer: Any, size: Any, shadow_size: Any = None) -> Any:
        low = self._builder.ptrtoint(pointer, INTP)
        return self.region(low, self._builder.add(low, size), shadow_size)

    def _call(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        function_type = ir.FunctionType(result, [argument.type for argument in arguments])
        return self._builder.call(cgutils.get_or_insert_function(self._builder.module, function_type, name), arguments)

    def _at(self, pointer: Any, offset: int) -> Any:
        return None if pointer is None else self._builder.gep(pointer, [INTP(offset)])

    def _load(self, pointer: Any, offset: int) -> Any:
        return self._builder.load(self._builder.bitcast(self._at(pointer, offset), VOID_POINTER.as_pointer()))

    def _load_word(self, pointer: Any, offset: int) -> Any:
        return self._builder.load(self._builder.bitcast(self._at(pointer, offset), INTP.as_pointer()))

    def _store(self, value: Any, pointer: Any, offset: int) -> None:
        self._builder.store(value, self._builder.bitcast(self._at(pointer, offset), value.type.as_pointer()))


def _zero_if_none(value: Any) -> Any:
    return INTP(0) if value is None else value


def place_regions(context: Any, builder: Any, ledger: Ledger, joined: bool) -> Any:
    """Gives each region of a ledger its place among the shadows; returns the bytes of all.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        ledger: after the walks of stage SURVEY.
        joined: regions that overlap have shadows that overlap in the same way; otherwise each has its own. The result
            is negative where regions of different owners overlap.
    """
    pointer = types.CPointer(types.intp)
    count = builder.load(ledger.regions)
    values = [ledger.region_table, ledger.order, count]
    signature = types.intp(pointer, pointer, types.intp)
    return context.compile_internal(builder, _place_joined if joined else _place_apart, signature, values)


def _place_apart(regions: Any, order: Any, count: int) -> int:
    """Compiled by Numba."""
    total = 0
    for i in range(count):
        regions[5 * i + 4] = total
        total += (regions[5 * i + 2] + 63) & ~63
    return total


def _place_joined(regions: Any, order: Any, count: int) -> int:
    """Compiled by Numba: sorts the regions (a heap sort) and joins neighbours that overlap."""
    for i in range(count):
        order[i] = 5 * i
    start, end = count // 2, count
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
    base, size, low, high, owner = 0, 0, 0, 0, 0
    for i in range(count):
        k = order[i]
        begin, end = regions[k], regions[k + 1]
        if begin >= end:  # no bytes
            regions[k + 4] = base
            continue
        if begin >= high or high == 0:
            base += (size + 63) & ~63
            low, high, size, owner = begin, end, 0, regions[k + 3]
        elif regions[k + 3] != owner:
            return -1
        high = max(high, end)
        size = max(size, begin - low + regions[k + 2])
        regions[k + 4] = base + begin - low
    return base + ((size + 63) & ~63)


def overlaps_region(context: Any, builder: Any, ledger: Ledger, extent: Extent) -> Any:
    """Whether an extent has an address in common with a region."""
    signature = types.boolean(types.CPointer(types.intp), types.intp, types.intp, types.intp)
    values = [ledger.region_table, builder.load(ledger.regions), extent.low, extent.high]
    return context.compile_internal(builder, _meets, signature, values)


def _meets(regions: Any, count: int, low: int, high: int) -> bool:
    """Compiled by Numba."""
    for i in range(0, 5 * count, 5):
        if low < regions[i + 1] and regions[i] < high and low < high and regions[i] < regions[i + 1]:
            return True
    return False
