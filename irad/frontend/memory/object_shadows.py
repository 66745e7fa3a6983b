"""Shadows of the objects among the arguments of one derivative call, and of the arrays passed with them.

All shadows lie in one buffer; what was noted of them, and the references that are held, in a block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils

from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.caller_values import CallerValues, MessageWords, Visit, VisitBlock
from irad.frontend.memory.object_gradients import NotesVisitor, ObjectGradients
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import Owner, Regions, SeparateShadows, ShadowAt, SsaNotes, TableNotes
from irad.frontend.memory.shadow_contract import Tracked
from irad.frontend.memory.shadows import MEMINFO_TYPE, Extent, array_at, bytes_at
from irad.frontend.memory.walks import ArgumentWalk
from irad.frontend.values.abi import reference_of
from irad.frontend.values.gradients import gradient_of_content
from irad.frontend.values.tree import Content, Reference


class ObjectShadows:
    """The shadows of objects; ``survey``, ``place`` and ``connect``, in this order, make them.

    Args:
        leaves: the objects.
        flat: all LLVM arguments of the primal.
        arrays: arrays and records that get their shadows in the same buffer.
        others: objects and extents of arrays whose shadow is elsewhere, or that have none, by owner.
        keeps_apart: no two of these may share memory.
    """

    def __init__(
        self,
        emit: Emit,
        leaves: Sequence[Content],
        flat: Sequence[Any],
        arrays: Sequence[Tracked],
        others: Sequence[tuple[Owner, Content | Extent]] = (),
        *,
        keeps_apart: bool = False,
    ) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._leaves, self._flat, self._arrays = leaves, flat, arrays
        self._others = others
        self.regions = Regions(emit, keeps_apart=keeps_apart)
        self.meets, self.release = self.regions.meets, self.regions.release
        self.shadows: dict[int, Any] = {}
        self.meminfo: Any = None

    def survey(self, allocate: Callable[[Any], Any]) -> None:
        """Emits the walks that find all regions; ``allocate`` makes zeroed memory that this call holds: a meminfo."""
        # The first walk only counts, and gives the size of the table that the second one fills.
        self._walk()
        self.regions.open(allocate)
        self._found = self._walk()
        self.regions.close()

    def _walk(self) -> dict[int, ShadowAt]:
        """Walks through everything; returns the places of the shadows that are made here, by LLVM parameter."""
        walk = ArgumentWalk(self._emit, self.regions)
        found = {leaf.data_index: self._object(walk, leaf) for leaf in self._leaves}
        found |= {tracked.leaf.data_index: walk.extent(tracked.extent) for tracked in self._arrays}
        for owner, other in self._others:
            walk = ArgumentWalk(self._emit, self.regions, owner)
            _ = self._object(walk, other) if isinstance(other, Content) else walk.extent(other)
        return found

    def place(self, *, joined: bool) -> Value:
        """Emits how the shadows are laid out, as `Regions.place` does; returns a bit: whether owners are mixed."""
        found = self.regions.place(joined=joined)
        # The lowest bit says whether owners are mixed; sizes are even.
        self._size = self._builder.and_(found, INTP(-2))
        return self._builder.trunc(found, ir.IntType(1))

    def connect(self, allocate: Callable[[Any], Any]) -> None:
        """Emits the making of the shadows."""
        build = self._builder
        self.meminfo = allocate(self._size)
        data = self._context.nrt.meminfo_data(build, self.meminfo)
        self.regions.connect(data)
        self.shadows = {index: self.regions.address(data, at) for index, at in self._found.items()}

    def _object(self, walk: ArgumentWalk, leaf: Content) -> ShadowAt:
        return _walked(self._builder, walk, leaf, self._flat)

    def notes(self, fail: Callable[[], None]) -> ObjectGradients:
        """Notes from which gradients are made."""
        return ObjectGradients(self._emit, TableNotes(self._emit, self.regions.noted), self.meminfo, fail)

    def given(
        self, references: References, words: MessageWords, visit: Visit | None, visit_block: VisitBlock | None = None
    ) -> CallerValues:
        """Follower of tangents or memory that the caller gave, like `GivenValues`."""
        noted = TableNotes(self._emit, self.regions.noted)
        return CallerValues(self._emit, noted, references.refuse, words, visit, visit_block)

    def state(self) -> tuple[Any, Any]:
        """The notes and the shadows as arrays of bytes, new references."""
        return self._bytes(self.regions.meminfo, self.regions.size), self._bytes(self.meminfo, self._size)

    def _bytes(self, meminfo: Value, size: Value) -> Any:
        context, build = self._context, self._builder
        context.nrt.incref(build, MEMINFO_TYPE, meminfo)
        return bytes_at(self._emit, context.nrt.meminfo_data(build, meminfo), size, meminfo)


class SeparateObjects:
    """The shadows of objects in code that is differentiated itself.

    Args:
        leaves: the objects.
        flat: all LLVM arguments of the primal.
        references: references of the call.
    """

    def __init__(
        self,
        emit: Emit,
        leaves: Sequence[Content],
        flat: Sequence[Any],
        references: References,
    ) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._shadows = SeparateShadows(emit, references)
        walk = ArgumentWalk(emit, self._shadows)
        found = {leaf.data_index: _walked(emit.builder, walk, leaf, flat) for leaf in leaves}
        self.shadows = {index: self._shadows.address(at) for index, at in found.items()}

    def notes(self, fail: Callable[[], None]) -> ObjectGradients:
        """Notes from which gradients are made."""
        return ObjectGradients(self._emit, SsaNotes(self._emit, self._shadows.kept), None, fail)

    def given(
        self, references: References, words: MessageWords, visit: Visit | None, visit_block: VisitBlock | None = None
    ) -> CallerValues:
        """Follower of tangents or memory that the caller gave, like `GivenValues`."""
        noted = SsaNotes(self._emit, self._shadows.kept)
        return CallerValues(self._emit, noted, references.refuse, words, visit, visit_block)


def _walked(builder: IRBuilder, walk: ArgumentWalk, leaf: Content, flat: Sequence[Any]) -> ShadowAt:
    """Walks through an object among the arguments."""
    places = (builder.bitcast(flat[i], VOID_POINTER) for i in (leaf.index, leaf.data_index))
    return walk.follow(reference_of(leaf), *places)


def clear_objects(emit: Emit, objects: Sequence[Reference], noted: Any) -> None:
    """Makes all cotangents in the shadows of objects zero; ``noted`` is the address of the notes."""
    builder = emit.builder
    notes = TableNotes(emit, noted)
    clearing = NotesVisitor(emit, notes, lambda place, size: cgutils.memset(builder, place, size, 0))
    for content in objects:
        clearing.visit(content)


def copy_objects(
    emit: Emit,
    objects: Mapping[Reference, bool],
    state: Sequence[Any],
    arrays: tuple[Sequence[Any], Sequence[Any]],
    references: References,
) -> tuple[list[Any], list[Any]]:
    """Gradients in a copy of the shadows: of the arrays, whose shadows lie there, too, and of the objects.

    Args:
        objects: all that are differentiated, in order, and whether their gradients are wanted.
        state: notes and shadows as arrays of bytes (struct proxies).
        arrays: shadows of arrays (struct proxies) and their types.
        references: hold the gradients, as results, and the copy.
    """
    context, builder = emit.context, emit.builder
    noted, buffer = state
    meminfo = references.allocated(buffer.nitems, references.slot(references.transient), zeroed=False)
    data = context.nrt.meminfo_data(builder, meminfo)
    cgutils.raw_memcpy(builder, data, buffer.data, buffer.nitems, 1)
    distance = builder.sub(builder.ptrtoint(data, INTP), builder.ptrtoint(buffer.data, INTP))
    copies = []
    for array, array_type in zip(*arrays, strict=True):
        place = builder.gep(builder.bitcast(array.data, VOID_POINTER), [distance])
        context.nrt.incref(builder, MEMINFO_TYPE, meminfo)
        copies.append(array_at(emit, array_type, place, array.shape, array.strides, meminfo))
        references.keep(array_type, copies[-1])
    notes = ObjectGradients(emit, TableNotes(emit, noted.data, distance), meminfo, references.fail)
    gradients = []
    for content, is_wanted in objects.items():
        if is_wanted:
            gradients.append(references.keep(gradient_of_content(content), notes.visit(content)))
        else:
            # Notes are read in the order in which they were written, so those of unwanted gradients have to be passed.
            notes.skip(content)
    return copies, gradients
