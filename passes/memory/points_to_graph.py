"""The graph of points-to analysis: objects, and the targets of pointers and of pointers in memory.

Everything in it only grows: sets gain objects, places lose factors. `Targets`, a set of objects and a place in them, is
what flows along its edges; the modules that read parameters, calls and instructions say how.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import Constant, GlobalAlias, GlobalVariable, Value, parts_of
from irad.passes.memory.addresses import ANYWHERE, MOST_GROWTHS, START, Position
from irad.passes.memory.objects import (
    NOWHERE,
    MemoryObject,
    ObjectKind,
    Targets,
    follow,
    indices,
    joined,
    place_of,
    stored_at,
    union,
)
from irad.passes.memory.signatures import BOOKKEEPING, kind_of
from irad.records import dataclass
from irad.ruleset.memory_type import MemoryType

_MOST_PLACES: Final = 64  # in one object at which pointers are distinguished


@dataclass(eq=False, slots=True)
class PointsToGraph:
    """Points-to facts about one function so far.

    Attributes:
        pointees: where pointers lead, and values that hold some.
        globals: the objects of global variables and functions.
        parts: where the pointers stored in an object lead, by the place where they lie.
        prefixes: bytes at the start of an object that hold integers only.
        whole: the headers of allocations and other bookkeeping: no pointer points into them, only to their start.
        together: sets of objects any of which may be any other of its set: callers may pass one container for two
            parameters. What is stored in one, all hold; with ``True``, wherever it is stored.
        changed: whether something has grown.
    """

    objects: list[MemoryObject] = field(default_factory=list)
    pointees: dict[Value, Targets] = field(default_factory=dict)
    globals: dict[Value, int] = field(default_factory=dict)
    parts: list[dict[Position, Targets]] = field(default_factory=list)
    prefixes: dict[int, int] = field(default_factory=dict)
    whole: int = 0
    together: dict[object, tuple[int, bool]] = field(default_factory=dict)
    changed: bool = True
    unknown: Targets = field(init=False)
    _growths: dict[Value, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mask = self.new_object(ObjectKind.UNKNOWN, None)
        self.unknown = Targets(mask, ANYWHERE)
        self.hold(self.unknown, self.unknown)

    def new_object(self, kind: ObjectKind, value: Value | None, holds: MemoryType | None = None) -> int:
        """A further object, as a set."""
        item = MemoryObject(kind, len(self.objects), value, holds)
        self.objects.append(item)
        self.parts.append({})
        if holds is not None and holds.integer_prefix:
            self.prefixes[item.index] = holds.integer_prefix
        if is_header(holds) or kind_of(holds) == BOOKKEEPING:
            self.whole |= 1 << item.index
        return 1 << item.index

    def join_group(self, key: object, mask: int, *, anywhere: bool) -> None:
        """Adds objects to a set of those that may be each other."""
        self.together[key] = (self.together.get(key, (0, anywhere))[0] | mask, anywhere)

    # --- what is known ------------------------------------------------------------------------------------------------

    def targets(self, value: Value) -> Targets:
        """Targets of a pointer, as far as known."""
        match value:
            case GlobalVariable():
                return Targets(self._global_mask(value), START)
            case Constant() | GlobalAlias() | Function():
                return Targets(self._constant_mask(value), ANYWHERE)
            case _:
                return self.pointees.get(value, NOWHERE)

    def mask(self, value: Value) -> int:
        """The objects among them."""
        return self.targets(value).mask

    def _constant_mask(self, value: Value) -> int:
        if isinstance(value, GlobalVariable | GlobalAlias | Function):
            return self._global_mask(value)
        return union(map(self._constant_mask, parts_of(value)))

    def _global_mask(self, value: GlobalVariable | GlobalAlias | Function) -> int:
        found = self.globals.get(value)
        if found is not None:
            return found
        mask = self.globals[value] = self.new_object(ObjectKind.GLOBAL, value)
        inside = 0
        if isinstance(value, GlobalVariable):
            inside = self._constant_mask(value.initializer) if value.initializer is not None else 0
            inside |= 0 if value.constant else self.unknown.mask
        elif isinstance(value, GlobalAlias):
            inside = self.unknown.mask
        self.hold(Targets(mask, ANYWHERE), Targets(inside, ANYWHERE))
        return mask

    def loaded(self, where: Targets) -> Targets:
        """Targets of the pointers that are stored there."""
        found = joined(stored_at(self.parts, self._holding(where), where.place))
        return found if found.mask & ~self.whole else Targets(found.mask, START)

    def at(self, mask: int, path: Iterable[Position]) -> int:
        """The objects reached from a set by following pointers."""
        return follow(self.parts, mask, path)

    def reached(self, mask: int) -> int:
        """A set closed under following stored pointers."""
        previous = 0
        while mask != previous:
            previous = mask
            mask |= self.at(mask, (ANYWHERE,))
        return mask

    def _holding(self, where: Targets) -> int:
        """The objects of a set that may hold pointers there."""
        offset = where.place.exact
        if offset is None:
            return where.mask
        return where.mask & ~union(1 << i for i in indices(where.mask) if offset < self.prefixes.get(i, 0))

    # --- what is added ------------------------------------------------------------------------------------------------

    def grow(self, value: Value, new: Targets) -> None:
        """Notes that a value may point there. What a loop moves does so by any multiple."""
        if not new.mask:
            return
        place = new.place if isinstance(value.type, PointerType) else ANYWHERE
        old = self.pointees.get(value)
        if old is not None:
            is_covered = old.place is place or old.place.covers(place)
            if is_covered and not new.mask & ~old.mask:
                return
            place = old.place if is_covered else old.place.or_else(place)
        if old is None or place is not old.place:
            self._growths[value] = self._growths.get(value, 0) + 1
            place = place if self._growths[value] <= MOST_GROWTHS else place.endless()
        self.pointees[value] = Targets(new.mask | (old.mask if old is not None else 0), place)
        self.changed = True

    def store(self, into: Targets, stored: Targets) -> None:
        """Pointers are stored: in all objects that those of a set may be, too."""
        mask = into.mask
        for group, anywhere in self.together.values():
            if group & into.mask and anywhere:
                self.hold(Targets(group, ANYWHERE), stored)
            elif group & into.mask:
                mask |= group
        self.hold(Targets(mask, into.place), stored)

    def hold(self, into: Targets, stored: Targets) -> None:
        """Pointers may lie at a place. Of too many, which a copy within an object makes, the rest are one."""
        if not stored.mask:
            return
        for at in [Position(offset, 0) for offset in into.place.few] or [into.place]:
            for index in indices(self._holding(Targets(into.mask, at))):
                held = self.parts[index]
                known = at if at in held or len(held) < _MOST_PLACES else ANYWHERE
                old = held.get(known, NOWHERE)
                if old.mask and not stored.mask & ~old.mask and old.place.covers(stored.place):
                    continue
                held[known] = joined((old, stored))
                self.changed = True


def declared_place(holder: MemoryType, inner: MemoryType | None) -> Position:
    """Target of a pointer of a declared type: the start of a header's data or of something single, or anywhere."""
    return START if is_header(holder) or (inner is not None and inner.single) else ANYWHERE


def places_behind(holds: MemoryType) -> Iterator[tuple[Position, MemoryType | None]]:
    """The places of the pointers in memory of a declared type, with what they point to."""
    for offset, inner in holds.behind:
        if offset is None or not holds.integer_prefix:
            yield place_of(offset), inner
        else:
            yield Position((holds.integer_prefix + offset) % holds.stride, holds.stride), inner


def is_header(holds: MemoryType | None) -> bool:
    """True if memory is the header of an allocation: the one pointer in it points to the start of the data."""
    if holds is None or holds.is_header:
        return holds is not None
    return holds.single and not holds.fields and len(holds.declared) == 1
