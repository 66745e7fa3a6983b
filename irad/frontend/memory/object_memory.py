"""Shadows of the objects among the arguments of one derivative call, and of the arrays passed with them.

All shadows lie in one buffer; what was noted of them, and the references that are held, in a block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import cgutils
from numba.np.arrayobj import populate_array

from irad.frontend.memory.list_memory import BLOCK_TYPE
from irad.frontend.memory.memory_checks import Tracked
from irad.frontend.memory.object_gradients import Notes
from irad.frontend.memory.object_walk import (
    INTP,
    VOID_POINTER,
    Ledger,
    Owner,
    Stage,
    Walk,
    overlaps_region,
    place_regions,
)
from irad.frontend.memory.shadows import ALIGNMENT, MEMINFO_TYPE, Extent
from irad.frontend.values.abi import reference_of
from irad.frontend.values.tree import Content, Reference


class ObjectMemory:
    """The shadows of objects; ``survey``, ``place`` and ``connect``, in this order, make them.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        leaves: the objects.
        flat: all LLVM arguments of the primal.
        arrays: arrays and records that get their shadows in the same buffer.
        others: what has its shadow elsewhere, or none, by owner: objects, and extents of arrays.
    """

    def __init__(
        self,
        context: Any,
        builder: Any,
        leaves: Sequence[Content],
        flat: Sequence[Any],
        arrays: Sequence[Tracked],
        others: Sequence[tuple[Owner, Content | Extent]] = (),
    ) -> None:
        self._context, self._builder, self._leaves, self._flat, self._arrays = context, builder, leaves, flat, arrays
        self._others = others
        self._ledger = Ledger(builder)
        self.shadows: dict[int, Any] = {}
        self.meminfo: Any = None

    def survey(self, allocate: Callable[[Any], Any]) -> None:
        """Emits the walks that find all regions; ``allocate`` makes zeroed memory that this call holds: a meminfo."""
        builder = self._builder
        self._walk(Stage.COUNT)
        self._block_size = self._ledger.size()
        self._block = allocate(self._block_size)
        self._ledger.open(self._context.nrt.meminfo_data(builder, self._block))
        self._walk(Stage.SURVEY)
        builder.store(builder.load(self._ledger.references), self._ledger.reference_count)

    def meets(self, extent: Extent) -> Any:
        """Whether an extent has an address in common with a region."""
        return overlaps_region(self._context, self._builder, self._ledger, extent)

    def place(self, *, joined: bool) -> Any:
        """Emits how the shadows are laid out: with ``joined``, those of what overlaps overlap in the same way.

        Returns:
            The bytes of all; negative where what overlaps has different owners.
        """
        self._size = place_regions(self._context, self._builder, self._ledger, joined)
        return self._size

    def connect(self, allocate: Callable[[Any], Any]) -> None:
        """Emits the making of the shadows."""
        self.meminfo = allocate(self._size)
        self._data = self._context.nrt.meminfo_data(self._builder, self.meminfo)
        self._ledger.rewind()
        self.shadows = self._walk(Stage.WIRE)

    def _walk(self, stage: Stage) -> dict[int, Any]:
        """Walks through all objects; in WIRE the shadows by LLVM parameter."""
        buffer = self._data if stage is Stage.WIRE else None
        walk = Walk(self._context, self._builder, self._ledger, stage, buffer)
        found = {}
        for leaf in self._leaves:
            found[leaf.data_index] = self._object(walk, leaf)
        for tracked in self._arrays:
            found[tracked.leaf.data_index] = walk.extent(tracked.extent)
        for owner, other in self._others if stage is not Stage.WIRE else ():
            walk = Walk(self._context, self._builder, self._ledger, stage, owner=owner)
            if isinstance(other, Content):
                self._object(walk, other)
            else:
                walk.extent(other)
        return found

    def _object(self, walk: Walk, leaf: Content) -> Any:
        places = (self._builder.bitcast(self._flat[i], VOID_POINTER) for i in (leaf.index, leaf.data_index))
        return walk.reference(reference_of(leaf), *places)

    def release(self, take: Callable[[Any], None]) -> None:
        """Emits a loop over the references that are held on what the objects lead to; none are before the survey."""
        build, ledger = self._builder, self._ledger
        if ledger.reference_table is None:
            return
        with cgutils.for_range(build, build.load(ledger.reference_count), intp=INTP) as loop:
            word = build.load(build.gep(ledger.reference_table, [loop.index]))
            take(build.inttoptr(word, VOID_POINTER))

    def notes(self, fail: Callable[[], None]) -> Notes:
        """What gradients are made from."""
        return Notes(self._context, self._builder, self._ledger.noted, self.meminfo, fail)

    def state(self) -> tuple[Any, Any]:
        """The notes and the shadows as arrays of bytes, new references."""
        return self._bytes(self._block, self._block_size), self._bytes(self.meminfo, self._size)

    def _bytes(self, meminfo: Any, size: Any) -> Any:
        context, build = self._context, self._builder
        context.nrt.incref(build, MEMINFO_TYPE, meminfo)
        array = context.make_array(BLOCK_TYPE)(context, build)
        populate_array(array, context.nrt.meminfo_data(build, meminfo), (size,), (INTP(1),), INTP(1), meminfo)
        return array._getvalue()


def clear_objects(context: Any, builder: Any, objects: Sequence[Reference], noted: Any) -> None:
    """Makes all cotangents in the shadows of objects zero; ``noted`` is the address of the notes."""
    notes = Notes(context, builder, noted, None, _never)
    for content in objects:
        notes.clear(content)


def copy_objects(
    context: Any,
    builder: Any,
    objects: Sequence[Reference],
    state: Sequence[Any],
    arrays: tuple[Sequence[Any], Sequence[Any]],
    fail: Callable[[], None],
) -> tuple[list[Any], list[Any]]:
    """Gradients in a copy of the shadows: of the arrays, whose shadows lie there, too, and of the objects.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        objects: among the differentiated arguments.
        state: notes and shadows as arrays of bytes (struct proxies).
        arrays: shadows of arrays (struct proxies) and their types.
        fail: emits the end of the function when there is no memory.
    """
    noted, buffer = state
    meminfo = context.nrt.meminfo_alloc_aligned_unchecked(builder, buffer.nitems, ALIGNMENT)
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, meminfo)):
        fail()
    data = context.nrt.meminfo_data(builder, meminfo)
    cgutils.raw_memcpy(builder, data, buffer.data, buffer.nitems, 1)
    distance = builder.sub(builder.ptrtoint(data, INTP), builder.ptrtoint(buffer.data, INTP))
    copies = []
    for array, array_type in zip(*arrays, strict=True):
        copy = context.make_array(array_type)(context, builder)
        place = builder.gep(builder.bitcast(array.data, VOID_POINTER), [distance])
        context.nrt.incref(builder, MEMINFO_TYPE, meminfo)
        populate_array(
            copy, builder.bitcast(place, array.data.type), array.shape, array.strides, array.itemsize, meminfo
        )
        copies.append(copy._getvalue())

    def release() -> None:
        context.nrt.decref(builder, MEMINFO_TYPE, meminfo)
        fail()

    notes = Notes(context, builder, noted.data, meminfo, release, distance)
    found = [notes.gradient(content) for content in objects]
    context.nrt.decref(builder, MEMINFO_TYPE, meminfo)
    return copies, found


def _never() -> None:
    """Clearing allocates nothing."""
