"""Types of the bytes of memory objects, as far as adjoints of raw copies need them.

Input   a function, where its pointers point, what its arguments hold.
Output  `MemoryTypes`: for each object the scalar types it is accessed as, and its layout where that is known.
Method  seeds from the request; loads and stores add the type they use; copies between objects share what is known.
Limit   types, not offsets, are collected from accesses; a layout comes from the request only, or from a lone float
        type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from irad.ir import types
from irad.ir.instructions import Alloca, CallSite, Instruction, Load, Store
from irad.ir.module import Function
from irad.ir.types import (
    FloatType,
    NamedStructType,
    Type,
)
from irad.ir.values import Parameter, Value
from irad.passes.memory.addresses import ANYWHERE, Position
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import MemoryObject, ObjectKind, PointsTo, fixed_size
from irad.passes.memory.record_layouts import FloatAccess, record_layout, record_of, scalars
from irad.passes.request import MemoryType
from irad.records import dataclass

_BACK: Final = Position(-1, 0)
_MOST_PLACES: Final = 64  # in one object at which floats are distinguished
_BY_TEXT: Mapping[str, FloatType] = {"double": types.DOUBLE, "float": types.FLOAT, "half": types.HALF}


@dataclass(frozen=True, slots=True)
class MemoryTypes:
    """Types by object index.

    Attributes:
        floats: the float types an object's bytes are read or written as.
        layouts: the byte pattern of an object, where the request states it or a copy passes it on.
        holds_pointers: objects in which pointers are stored, as a mask.
        accesses: the types with which an object is accessed at a byte offset, where offsets are constant.
        spread: where objects are accessed as floats at offsets that are not constant, by object.
        elements: where objects are accessed as floats if all pointers of unknown origin point to a start, by object.
        opaque: objects that callees read or write, as a mask: what they hold there is not known.
        skewed: objects without layout whose numbers are not aligned as in an array of them, as a mask.
        strays: where copies may put floats, in addition to those that an object's own accesses or its layout show.
        prefixes: bytes at the start of an object that hold integers only, where there are any.
    """

    points_to: PointsTo
    floats: tuple[frozenset[FloatType], ...]
    layouts: tuple[MemoryType | None, ...]
    holds_pointers: int
    accesses: Mapping[int, Mapping[int, frozenset[Type]]]
    prefixes: Mapping[int, int]
    spread: Mapping[int, frozenset[tuple[Position, FloatType]]]
    elements: Mapping[int, frozenset[tuple[Position, FloatType]]]
    opaque: int
    skewed: int
    strays: Mapping[int, frozenset[tuple[Position, FloatType]]]

    def layout(self, mask: int) -> MemoryType | None:
        """The one pattern that all objects of a set have; a set of lone float type is an array of it.

        None when unknown or when they differ. An empty pattern (no fields) means: no floats in it.
        """
        found: set[MemoryType] = set()
        for item in self.points_to.members(mask):
            layout = self.layouts[item.index] or self._lone(item.index)
            if layout is not None:
                found.add(layout)
        return next(iter(found)) if len(found) == 1 else None

    def layout_from(self, pointer: Value) -> MemoryType | None:
        """The pattern of the memory from a pointer on, or from the object's start if the offset is unknown."""
        layout = self.layout(self.points_to.mask(pointer))
        if layout is None or not layout.floats() or layout.lone_float() is not None:
            return layout
        return layout.seen_from(self.points_to.record_position(pointer).modulo(layout.stride) or 0)

    def common_layout(self, mask: int) -> MemoryType | None:
        """The pattern of all objects of a set; None where that of one is not known."""
        found = {self.layouts[item.index] or self._lone(item.index) for item in self.points_to.members(mask)}
        return found.pop() if len(found) == 1 else None

    def is_float_at(self, pointer: Value, kind: FloatType, distance: int = 0) -> bool:
        """True if there is a float of that type some bytes from where a pointer points, as far as is known."""
        shift = Position(distance, 0)
        # declared types alone are not trusted: `x.view(np.int64)` has integers where the floats of ``x`` are
        return any(self._is_float_in(item.index, pointer, kind, shift) for item in self.points_to.of(pointer))

    def _is_float_in(self, index: int, pointer: Value, kind: FloatType, shift: Position) -> bool:
        layout = self.layouts[index]
        if layout is not None and layout.floats():
            offset = self.points_to.record_position(pointer).moved(shift).modulo(layout.stride)
            return offset is None or (offset, str(kind)) in layout.fields or self._is_stray(index, pointer, kind, shift)
        if kind not in self.floats[index]:
            return False
        place = self.points_to.position(pointer).moved(shift)
        offset = place.exact
        if self.opaque >> index & 1 and (offset is None or index in self.spread):
            place = ANYWHERE  # callees may have put floats elsewhere
        known = self.accesses.get(index, {})
        met = [o for o in known if place.may_be(Position(o, 0))] if offset is None else [offset]
        if any(kind in known.get(o, ()) for o in met):
            return True
        if offset is not None and offset < self.prefixes.get(index, 0):
            return False
        return any(found is kind and place.may_be(other) for other, found in self.spread.get(index, ()))

    def _is_stray(self, index: int, pointer: Value, kind: FloatType, shift: Position) -> bool:
        place = self.points_to.position(pointer).moved(shift)
        return any(found is kind and place.may_be(other) for other, found in self.strays.get(index, ()))

    def is_inside_float(self, pointer: Value) -> bool:
        """True if the byte that a pointer points to is a part of a float, as far as is known."""
        return any(self._is_inside(item.index, pointer) for item in self.points_to.of(pointer))

    def _is_inside(self, index: int, pointer: Value) -> bool:
        layout = self.layouts[index]
        if layout is not None and layout.floats():
            offset = self.points_to.record_position(pointer).modulo(layout.stride)
            return offset is None or any(
                start <= offset < start + _BY_TEXT[text].bits // 8 for start, text in layout.fields if text in _BY_TEXT
            )
        is_described = layout is not None or self.points_to.objects[index].kind is not ObjectKind.ARGUMENT
        floats = self.elements.get(index, frozenset() if is_described else {(Position(0, 4), types.FLOAT)})
        place = self.points_to.record_position(pointer)
        return any(
            place.may_be(start.moved(Position(inner, 0))) for start, kind in floats for inner in range(kind.bits // 8)
        )

    def is_pointer_at(self, pointer: Value) -> bool:
        """True if a pointer is loaded or stored as one at the place that a pointer points to."""
        if any(self._states_pointer(item.index, pointer) for item in self.points_to.of(pointer)):
            return True
        offset = self.points_to.position(pointer).exact
        return offset is not None and any(
            types.PTR in self.accesses.get(item.index, {}).get(offset, ()) for item in self.points_to.of(pointer)
        )

    def _states_pointer(self, index: int, pointer: Value) -> bool:
        layout = self.layouts[index] if index in self.points_to.declared else None
        if layout is None:
            return False
        offset = self.points_to.record_position(pointer).modulo(layout.stride)
        return offset is not None and (offset, "ptr") in layout.fields

    def holds_floats(self, mask: int) -> bool:
        """True if any object of a set is read or written as floats, or declared to hold some."""
        if mask & self.opaque:
            return True
        return any(self.has_floats(item.index) for item in self.points_to.members(mask))

    def has_floats(self, index: int) -> bool:
        """True if an object is read or written as floats, or declared to hold some."""
        layout = self.layouts[index]
        return bool(self.floats[index]) or (layout is not None and bool(layout.floats()))

    def explain(self, pointer: Value) -> str:
        """Description of the contents of the memory at a pointer."""
        mask = self.points_to.mask(pointer)
        layout = self.layout(mask)
        if layout is not None:
            fields = ", ".join(f"{text} at {offset}" for offset, text in layout.fields)
            return f"records of {layout.stride} bytes: {fields}" if fields else "no numbers that carry a derivative"
        found = sorted({str(kind) for item in self.points_to.members(mask) for kind in self.floats[item.index]})
        beside = " beside pointers" if mask & self.holds_pointers else ""
        if found:
            return f"{' and '.join(found)}{beside}, where is not known"
        return "what callees put there" if mask & self.opaque else f"no floats{beside}"

    def _lone(self, index: int) -> MemoryType | None:
        kinds = self.floats[index]
        if len(kinds) != 1 or (self.holds_pointers | self.skewed) >> index & 1:
            return None
        (kind,) = kinds
        return MemoryType(kind.bits // 8, ((0, str(kind)),))


def find_memory_types(
    function: Function, mod_ref: ModRef, memory: Mapping[Parameter, MemoryType | None]
) -> MemoryTypes:
    """Collects the types of all objects of a function."""
    collector = _Collector(mod_ref, mod_ref.points_to)
    collector.seed(memory)
    for inst in function.instructions():
        collector.visit(inst)
    collector.find_records()
    # Before facts spread from copy to copy: these layouts come from the own accesses of variables.
    elements = collector.elements()
    collector.spread()
    collector.spread_elements(elements)
    return collector.result()


@dataclass(eq=False, slots=True)
class _Collector:
    mod_ref: ModRef
    points_to: PointsTo
    floats: list[set[FloatType]] = field(init=False)
    layouts: list[MemoryType | None] = field(init=False)
    accesses: dict[int, dict[int, set[Type]]] = field(default_factory=dict)
    prefixes: dict[int, int] = field(init=False)
    copies: list[tuple[int, int, Position]] = field(default_factory=list)
    numbers: dict[int, list[FloatAccess]] = field(default_factory=dict)
    moves: list[tuple[int, int]] = field(default_factory=list)
    places: dict[int, set[tuple[Position, FloatType]]] = field(default_factory=dict)
    strays: dict[int, set[tuple[Position, FloatType]]] = field(default_factory=dict)
    noted: set[tuple[int, Position, Position, Type, int | None]] = field(default_factory=set)
    opaque: int = 0
    skewed: int = 0

    def __post_init__(self) -> None:
        count = len(self.points_to.objects)
        self.floats = [set() for _ in range(count)]
        self.layouts = [None] * count
        self.prefixes = dict(self.points_to.prefixes)

    def seed(self, memory: Mapping[Parameter, MemoryType | None]) -> None:
        """Takes the contents of arguments from the request, and those of allocations from rules."""
        for item in self.points_to.objects:
            if item.kind is ObjectKind.ARGUMENT and isinstance(item.value, Parameter):
                self.seed_layout(item.index, memory.get(item.value))
            elif item.index in self.points_to.declared:
                self.seed_layout(item.index, self.points_to.declared[item.index])
            elif item.holds is not None:
                self.seed_declared(item, item.holds)

    def seed_layout(self, index: int, holds: MemoryType | None) -> None:
        """Records the request's description of an object."""
        if holds is None:
            return
        self.layouts[index] = holds.pattern()
        if holds.integer_prefix:
            self.prefixes[index] = holds.integer_prefix
        self.floats[index] |= {_BY_TEXT[text] for _, text in holds.floats()}

    def seed_declared(self, item: MemoryObject, holds: MemoryType) -> None:
        """Takes contents from signatures; for a callee's own numbers only types: there may be several patterns."""
        self.note_declared(item.index, holds)
        if not holds.integer_prefix and (holds.behind or item.kind is ObjectKind.REACHABLE):
            self.layouts[item.index] = holds

    def visit(self, inst: Instruction) -> None:
        """Records the facts from one instruction."""
        match inst:
            case Load():
                self.note_access(inst.operands[0], inst.type, inst.align)
            case Store():
                self.note_access(inst.operands[1], inst.operands[0].type, inst.align)
            case CallSite():
                self.visit_call(inst)
            case _:
                pass

    def visit_call(self, call: CallSite) -> None:
        """Raw copies tie objects together; other callees may hold anything where they read and write."""
        if call in self.points_to.handed:
            for holds, mask in self.points_to.handed[call].items():
                self.hand(mask, holds)
            return
        access = self.mod_ref.of(call)
        for target, source in access.copies:
            distance = self.points_to.position(source).distance_to(self.points_to.position(target))
            self.copies.append((self.points_to.mask(target), self.points_to.mask(source), distance))
        self.moves += access.moves
        self.opaque |= access.unseen

    def hand(self, mask: int, holds: MemoryType | None) -> None:
        """Memory in which a callee reads and writes the contents stated by its signature."""
        if holds is None:
            self.opaque |= mask
            return
        for item in self.points_to.members(mask):
            if item.holds is None:
                self.note_declared(item.index, holds)

    def note_declared(self, index: int, holds: MemoryType) -> None:
        """Notes where memory is said to hold numbers; its pattern may begin after integers."""
        for offset, text in holds.floats():
            kind = _BY_TEXT[text]
            start = (holds.integer_prefix + offset) % holds.stride
            place = Position(start, holds.stride)
            self.floats[index].add(kind)
            self.numbers.setdefault(index, []).append(FloatAccess(place, kind, kind.bits // 8))
            self.places.setdefault(index, set()).add((place, kind))

    def note_access(self, pointer: Value, accessed: Type, align: int | None) -> None:
        """Notes each scalar of an accessed type, at its offset if that is constant."""
        mask = self.points_to.mask(pointer)
        place, record = self.points_to.position(pointer), self.points_to.record_position(pointer)
        if (mask, place, record, accessed, align) in self.noted:
            return  # hundreds of accesses may go to the same hundreds of objects
        self.noted.add((mask, place, record, accessed, align))
        items = self.points_to.members(mask)
        for inner, scalar in scalars(accessed):
            for item in items:
                if scalar in (types.FLOAT, types.DOUBLE) and isinstance(scalar, FloatType):
                    self.floats[item.index].add(scalar)
                    access = FloatAccess(record.moved(Position(inner, 0)), scalar, align or scalar.bits // 8)
                    self.numbers.setdefault(item.index, []).append(access)
                    if place.exact is None:
                        self.places.setdefault(item.index, set()).add((place.moved(Position(inner, 0)), scalar))
                if place.exact is not None:
                    known = self.accesses.setdefault(item.index, {})
                    known.setdefault(place.exact + inner, set()).add(scalar)

    def find_records(self) -> None:
        """Layouts of objects that are not arrays of one type of numbers, as declared or by their own accesses."""
        for item in self.points_to.objects:
            if self.layouts[item.index] is None:
                self.layouts[item.index] = self.declared(item)
        for index, accesses in self.numbers.items():
            skewed = any(access.is_skewed() for access in accesses)
            if self.layouts[index] is None and (skewed or len(self.floats[index]) > 1):
                self.layouts[index] = record_layout(accesses)
                self.skewed |= skewed << index

    def declared(self, item: MemoryObject) -> MemoryType | None:
        """The layout of a local variable of structure type, if the accesses agree."""
        variable = item.value
        if not isinstance(variable, Alloca) or variable.operands:
            return None
        layout = record_of(variable.allocated_type) if isinstance(variable.allocated_type, NamedStructType) else None
        if layout is None or not layout.floats():
            return None
        return layout if all(_agrees(layout, access) for access in self.numbers.get(item.index, ())) else None

    def spread(self) -> None:
        """Objects copied into each other hold the same."""
        changed = True
        while changed:
            changed = False
            for into, source, distance in (*self.copies, *((*move, ANYWHERE) for move in self.moves)):
                for one, other, way in ((source, into, distance), (into, source, distance.times(_BACK))):
                    changed |= self.hand_on(one, other, way)
                    changed |= self.hand_on_layout(one, other)

    def hand_on(self, source: int, into: int, distance: Position) -> bool:
        """Passes the facts about one set of objects on to another; returns whether anything was new.

        Numbers come to lie as far from where the copy begins as they did before. Where it is not known how far it moves
        them, it counts as one of whole elements or records if the other object holds numbers of that type itself.
        """
        changed = False
        for a in self.points_to.members(source):
            for b in self.points_to.members(into):
                if (self.skewed >> a.index & 1) > (self.skewed >> b.index & 1):
                    self.skewed |= 1 << b.index
                    changed = True
                if distance == ANYWHERE and self.floats[a.index] <= self.floats[b.index]:
                    continue
                for place, kind in sorted(self.float_places(a.index), key=str):
                    changed |= self.note_copied(b.index, place.moved(distance), kind)
        return changed

    def float_places(self, index: int) -> set[tuple[Position, FloatType]]:
        """Places at which an object holds floats, as far as known."""
        layout = self.layouts[index]
        found = set(self.places.get(index, ()))
        found |= {(Position(o, layout.stride), _BY_TEXT[text]) for o, text in layout.floats()} if layout else set()
        for offset, kinds in self.accesses.get(index, {}).items():
            found |= {(Position(offset, 0), kind) for kind in kinds if isinstance(kind, FloatType)}
        known = {kind for _, kind in found}
        return {(place, kind) for place, kind in found if kind in self.floats[index]} | {
            (ANYWHERE, kind) for kind in self.floats[index] - known
        }

    def note_copied(self, index: int, place: Position, kind: FloatType) -> bool:
        """A float may be copied to a place; returns whether that was news."""
        known = self.float_places(index)
        if any(other is kind and at.covers(place) for at, other in known):
            return False
        at = place if len(known) < _MOST_PLACES else ANYWHERE
        self.floats[index].add(kind)
        self.places.setdefault(index, set()).add((at, kind))
        self.strays.setdefault(index, set()).add((at, kind))
        self.numbers.setdefault(index, []).append(FloatAccess(at, kind, kind.bits // 8))
        return True

    def hand_on_layout(self, source: int, into: int) -> bool:
        """Gives a copy the layout of its source, if source and target are certain."""
        layouts = {self.layouts[a.index] for a in self.points_to.members(source)}
        targets = list(self.points_to.members(into))
        if len(layouts) != 1 or len(targets) != 1 or self.layouts[targets[0].index] is not None:
            return False
        (self.layouts[targets[0].index],) = layouts
        return self.layouts[targets[0].index] is not None

    def elements(self) -> dict[int, MemoryType]:
        """Layouts of local variables whose bytes are moved to or from containers, by their own accesses.

        What is moved from a variable was stored there field by field, so all its fields are known. Of what is moved to
        one, the fields that are read are known: no other has a cotangent.
        """
        into = from_ = 0
        for to, origin in self.moves:
            into, from_ = into | to, from_ | origin
        for to, origin, _ in self.copies:
            into, from_ = into | to | origin, from_ | to | origin
        found: dict[int, MemoryType] = {}
        for item in self.points_to.members((into ^ from_) & ~self.opaque):
            size = fixed_size(item)
            if size is not None and self.floats[item.index] and item.index not in self.places:
                found[item.index] = self.layout_of_accesses(item.index, size)
        return found

    def layout_of_accesses(self, index: int, size: int) -> MemoryType:
        """The fields of an object of which every access is known."""
        known = self.accesses.get(index, {})
        fields = {(offset, str(kind)) for offset, kinds in known.items() for kind in kinds}
        return MemoryType(size, tuple(sorted(fields)))

    def spread_elements(self, known: Mapping[int, MemoryType]) -> None:
        """Gives the elements of a container the types of the values moved into it, if the container is certain."""
        sources: dict[int, set[MemoryType]] = {}
        for to, origin in self.moves:
            targets = list(self.points_to.members(to))
            for item in self.points_to.members(origin):
                if item.index in known and len(targets) == 1:
                    sources.setdefault(targets[0].index, set()).add(known[item.index])
        for index, layout in known.items():
            self.layouts[index] = self.layouts[index] or layout
        for index, layouts in sources.items():
            if self.layouts[index] is None and len({layout.stride for layout in layouts}) == 1:
                (stride,) = {layout.stride for layout in layouts}
                fields = sorted({item for layout in layouts for item in layout.fields})
                self.layouts[index] = MemoryType(stride, tuple(fields))

    def result(self) -> MemoryTypes:
        """The frozen result."""
        pointers = 0
        for item in self.points_to.objects:
            pointers |= bool(self.points_to.contents[item.index]) << item.index
        return MemoryTypes(
            self.points_to,
            tuple(frozenset(found) for found in self.floats),
            tuple(self.layouts),
            pointers,
            {
                index: {offset: frozenset(kinds) for offset, kinds in found.items()}
                for index, found in self.accesses.items()
            },
            self.prefixes,
            {index: frozenset(found) for index, found in self.places.items()},
            {index: frozenset((a.place, a.kind) for a in found) for index, found in self.numbers.items()},
            self.opaque,
            self.skewed,
            {index: frozenset(found) for index, found in self.strays.items()},
        )


def _agrees(layout: MemoryType, access: FloatAccess) -> bool:
    """True if a number of that type may lie there."""
    fields = (Position(offset, layout.stride) for offset, text in layout.fields if text == str(access.kind))
    return any(access.place.may_be(field) for field in fields)
