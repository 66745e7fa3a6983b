"""What the bytes of memory objects hold, as far as adjoints of raw copies need it.

Input   a function, where its pointers point, what its arguments hold.
Output  `MemoryTypes`: for each object the scalar types it is accessed as, and its layout where that is known.
Method  seeds from the request; loads and stores add the type they use; copies between objects share what is known.
Limit   types, not offsets, are collected from accesses; a layout comes from the request only, or from a lone float
        type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irad.ir import types
from irad.ir.instructions import CallSite, Instruction, Load, Store
from irad.ir.module import Function
from irad.ir.types import FloatType, Type, VectorType
from irad.ir.values import Parameter, Value
from irad.passes.addresses import offset_modulo
from irad.passes.callees import effects_of, resolve
from irad.passes.objects import ObjectKind, PointsTo
from irad.passes.request import MemoryType
from irad.ruleset.registry import Registry

_BY_TEXT: Mapping[str, FloatType] = {"double": types.DOUBLE, "float": types.FLOAT}


@dataclass(frozen=True, slots=True)
class MemoryTypes:
    """Types by object index.

    Attributes:
        floats: the float types an object's bytes are read or written as.
        layouts: the byte pattern of an object, where the request states it or a copy hands it on.
        holds_pointers: objects in which pointers are stored, as a mask.
        accesses: the types with which (object index, byte offset) is accessed, where offsets are constant.
        vague: objects accessed as floats at offsets that are not constant, as a mask.
        prefixes: bytes at the start of an object that hold integers only, where there are any.
    """

    points_to: PointsTo
    floats: tuple[frozenset[FloatType], ...]
    layouts: tuple[MemoryType | None, ...]
    holds_pointers: int
    accesses: Mapping[tuple[int, int], frozenset[Type]]
    prefixes: Mapping[int, int]
    vague: int

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

    def is_float_at(self, pointer: Value, kind: FloatType) -> bool:
        """Whether what a pointer points to is a float of that type: certainly, or as far as it can be told."""
        return any(self._is_float_in(item.index, pointer, kind) for item in self.points_to.of(pointer))

    def _is_float_in(self, index: int, pointer: Value, kind: FloatType) -> bool:
        layout = self.layouts[index]
        if layout is not None and layout.floats():
            offset = offset_modulo(pointer, layout.stride)
            return offset is None or (offset, str(kind)) in layout.fields
        if kind not in self.floats[index]:
            return False
        offset = offset_modulo(pointer, None, self.points_to.bases)
        if offset is None or kind in self.accesses.get((index, offset), frozenset()):
            return True
        return bool(self.vague >> index & 1) and offset >= self.prefixes.get(index, 0)

    def is_pointer_at(self, pointer: Value) -> bool:
        """Whether a pointer is loaded or stored as one at the place that a pointer points to."""
        offset = offset_modulo(pointer, None, self.points_to.bases)
        return offset is not None and any(
            types.PTR in self.accesses.get((item.index, offset), frozenset()) for item in self.points_to.of(pointer)
        )

    def holds_floats(self, mask: int) -> bool:
        """Whether any object of a set is read or written as floats, or stated to hold some."""
        for item in self.points_to.members(mask):
            layout = self.layouts[item.index]
            if self.floats[item.index] or (layout is not None and layout.floats()):
                return True
        return False

    def _lone(self, index: int) -> MemoryType | None:
        kinds = self.floats[index]
        if len(kinds) != 1:
            return None
        (kind,) = kinds
        return MemoryType(kind.bits // 8, ((0, str(kind)),))


def find_memory_types(
    function: Function, points_to: PointsTo, memory: Mapping[Parameter, MemoryType | None], registry: Registry
) -> MemoryTypes:
    """Collects the types of all objects of a function."""
    count = len(points_to.objects)
    floats: list[set[FloatType]] = [set() for _ in range(count)]
    layouts: list[MemoryType | None] = [None] * count
    pointers = 0
    for item in points_to.objects:
        if item.kind is ObjectKind.ARGUMENT and isinstance(item.value, Parameter):
            layout = memory.get(item.value)
            layouts[item.index] = layout
            floats[item.index] |= {_BY_TEXT[t] for _, t in layout.fields if t in _BY_TEXT} if layout else set()
        if points_to.contents[item.index]:
            pointers |= 1 << item.index
    copies: list[tuple[int, int]] = []
    accesses: dict[tuple[int, int], set[Type]] = {}
    vague = 0
    for inst in function.instructions():
        _collect(inst, points_to, registry, floats, copies)
        vague |= _note_offset(inst, points_to, accesses)
    _spread(copies, points_to, floats, layouts)
    by_offset = {key: frozenset(found) for key, found in accesses.items()}
    return MemoryTypes(
        points_to,
        tuple(frozenset(f) for f in floats),
        tuple(layouts),
        pointers,
        by_offset,
        _prefixes(points_to, registry),
        vague,
    )


def _prefixes(points_to: PointsTo, registry: Registry) -> dict[int, int]:
    found: dict[int, int] = {}
    for item in points_to.objects:
        if item.kind is ObjectKind.ALLOCATION and isinstance(item.value, CallSite):
            effects = effects_of(resolve(item.value, registry))
            if effects is not None and effects.integer_prefix:
                found[item.index] = effects.integer_prefix
    return found


def _note_offset(inst: Instruction, points_to: PointsTo, accesses: dict[tuple[int, int], set[Type]]) -> int:
    """Notes an access at a constant offset; returns the objects accessed as floats elsewhere."""
    match inst:
        case Load():
            pointer, accessed = inst.operands[0], inst.type
        case Store():
            pointer, accessed = inst.operands[1], inst.operands[0].type
        case _:
            return 0
    offset = offset_modulo(pointer, None, points_to.bases)
    if offset is not None:
        for item in points_to.of(pointer):
            accesses.setdefault((item.index, offset), set()).add(accessed)
        return 0
    return points_to.mask(pointer) if _scalar(accessed) is not None else 0


def _collect(
    inst: Instruction,
    points_to: PointsTo,
    registry: Registry,
    floats: list[set[FloatType]],
    copies: list[tuple[int, int]],
) -> None:
    match inst:
        case Load():
            pointer, accessed = inst.operands[0], inst.type
        case Store():
            pointer, accessed = inst.operands[1], inst.operands[0].type
        case CallSite():
            effects = effects_of(resolve(inst, registry))
            for into, source in effects.copies if effects else ():
                arguments = inst.arguments
                copies.append((points_to.mask(arguments[into]), points_to.mask(arguments[source])))
            return
        case _:
            return
    kind = _scalar(accessed)
    if kind is not None:
        for item in points_to.of(pointer):
            floats[item.index].add(kind)


def _scalar(type_: Type) -> FloatType | None:
    if isinstance(type_, VectorType):
        return _scalar(type_.element)
    return type_ if type_ in (types.FLOAT, types.DOUBLE) and isinstance(type_, FloatType) else None


def _spread(
    copies: list[tuple[int, int]],
    points_to: PointsTo,
    floats: list[set[FloatType]],
    layouts: list[MemoryType | None],
) -> None:
    """Objects copied into each other hold the same."""
    changed = True
    while changed:
        changed = False
        for into, source in copies:
            for one, other in ((into, source), (source, into)):
                changed |= _hand_on(one, other, points_to, floats, layouts)


def _hand_on(
    source: int,
    into: int,
    points_to: PointsTo,
    floats: list[set[FloatType]],
    layouts: list[MemoryType | None],
) -> bool:
    changed = False
    for a in points_to.members(source):
        for b in points_to.members(into):
            if not floats[a.index] <= floats[b.index]:
                floats[b.index] |= floats[a.index]
                changed = True
            if layouts[b.index] is None and layouts[a.index] is not None:
                layouts[b.index] = layouts[a.index]
                changed = True
    return changed
