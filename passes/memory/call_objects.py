"""Effects of calls on pointers: the memory that callees make, and the addresses that they store and return.

A callee with a rule or a summary does what its `Effects` say. One with a body, or an indirect one, may store any
pointer that it can reach or makes, wherever its signature lets it; one of which nothing is known may store anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import Value
from irad.passes.callees import Pointer, effects_of, resolve
from irad.passes.memory.addresses import ANYWHERE, START
from irad.passes.memory.objects import (
    ObjectKind,
    Targets,
    indices,
    joined,
    may_hold_pointer,
    moved_item,
    place_of,
    union,
)
from irad.passes.memory.points_to_graph import PointsToGraph, declared_place, places_behind
from irad.passes.memory.returned_addresses import KnownAddresses, may_return_address, may_store_address
from irad.passes.memory.signatures import Kind, Signatures, kind_of, kinds_behind
from irad.passes.request import MemoryType
from irad.records import dataclass
from irad.ruleset.interface import Effects, MemoryPath, Origin
from irad.ruleset.registry import Registry


@dataclass(eq=False, slots=True)
class CallObjects:
    """Adds the effects of calls to a graph.

    Attributes:
        signatures: signatures of callees.
        addresses: facts about callees in the module.
        own: the new memory that callees with a body may return, by what it holds.
    """

    graph: PointsToGraph
    registry: Registry
    signatures: Signatures
    addresses: KnownAddresses
    own: dict[CallSite, dict[MemoryType | None, int]] = field(default_factory=dict)
    _made: dict[CallSite, list[int]] = field(default_factory=dict)
    _filled: dict[CallSite, dict[Kind, int]] = field(default_factory=dict)

    # --- the memory that a call makes ---------------------------------------------------------------------------------

    def add(self, call: CallSite) -> None:
        """The objects that a call makes."""
        callee = resolve(call, self.registry)
        effects = effects_of(callee)
        if effects is None:
            if isinstance(callee, Function | Pointer):
                self._add_of_body(call)
            return
        if effects.result is Origin.FRESH and isinstance(call.type, PointerType):
            self.graph.grow(call, Targets(self._new_result(call, effects), START))
        if effects.fills:
            self._add_filled(call, effects)
        if effects.makes:
            self._made[call] = [self._new_container(call, parts) for _, parts in effects.makes]

    def _new_result(self, call: CallSite, effects: Effects) -> int:
        """Object that a call allocates: the data, or their header."""
        data = self.graph.new_object(ObjectKind.ALLOCATION, call)
        if effects.header is None:
            return data
        if effects.integer_prefix:
            self.graph.prefixes[data.bit_length() - 1] = effects.integer_prefix
        header = self.graph.new_object(ObjectKind.HEADER, call)
        self.graph.whole |= header
        self.graph.hold(Targets(header, place_of(effects.header)), Targets(data, START))
        return header

    def _new_container(self, call: CallSite, parts: Iterable[int]) -> int:
        """An object that a callee makes, with the memory its parts point to."""
        container = self.graph.new_object(ObjectKind.HEADER, call)
        for offset in parts:
            data = self.graph.new_object(ObjectKind.ALLOCATION, call)
            self.graph.hold(Targets(container, place_of(offset)), Targets(data, START))
        return container

    def _add_of_body(self, call: CallSite) -> None:
        """New memory that a callee may return, one object for each kind."""
        memory = self._signature(call)
        if not may_hold_pointer(call.type) and not self._may_store(call):
            self.own[call] = {}
            return
        types_say_all = all(kind_of(holds) is not None for holds in memory) and not may_hold_pointer(call.type)
        self.own[call] = self._new_by_kind(call, memory, types_say_all)

    def _new_by_kind(
        self, call: CallSite, memory: Sequence[MemoryType | None], types_say_all: bool
    ) -> dict[MemoryType | None, int]:
        """New memory that some memory may point to, by its contents: one object for each kind; None: unknown."""
        own: dict[MemoryType | None, int] = {}
        for kind, holds in kinds_behind(memory):
            if kind is not None:
                is_header = holds is not None and holds.is_header
                own[holds] = self.graph.new_object(
                    ObjectKind.HEADER if is_header else ObjectKind.ALLOCATION, call, holds
                )
        if not types_say_all or None in (kind for kind, _ in kinds_behind(memory)):
            mask = own[None] = self.graph.new_object(ObjectKind.ALLOCATION, call)
            # One object stands for all that the callee makes of no known type, and some of it may point to the rest.
            self.graph.hold(Targets(mask, ANYWHERE), Targets(mask, ANYWHERE))
        return own

    def _add_filled(self, call: CallSite, effects: Effects) -> None:
        """New memory whose addresses a callee stores in memory of its arguments, and the pointers in it."""
        memory = [self._declared_argument(call, i) for i in sorted(effects.fills)]
        own = self._new_by_kind(call, memory, all(kind_of(holds) is not None for holds in memory))
        made = self._filled[call] = {kind_of(holds): mask for holds, mask in own.items()}
        if None in made:
            self.graph.hold(Targets(made[None], ANYWHERE), Targets(union(made.values()), ANYWHERE))
        for kind, mask in made.items():
            self._lead_to(made, kind, Targets(mask, START))

    def _lead_to(self, made: Mapping[Kind, int], kind: Kind, where: Targets) -> None:
        """Memory of some kind may receive addresses of new memory wherever its type allows pointers."""
        if not isinstance(kind, MemoryType):
            return
        for offset, inner in places_behind(kind):
            stored = Targets(made[kind_of(inner)], declared_place(kind, inner))
            self.graph.store(Targets(where.mask, where.place.moved(offset)), stored)

    def _declared_argument(self, call: CallSite, number: int) -> MemoryType | None:
        """Memory of a callee's argument, by its signature."""
        declared = self._declared(call)
        return None if declared is None else declared[number]

    def _declared(self, call: CallSite) -> tuple[MemoryType | None, ...] | None:
        return self.signatures.get(call.callee) if isinstance(call.callee, Function) else None

    def _signature(self, call: CallSite) -> tuple[MemoryType | None, ...]:
        """Types of the memory that the arguments of a call point to, if they are or may be pointers."""
        declared = self._declared(call)
        if declared is None:
            return tuple(None for a in call.arguments if may_hold_pointer(a.type))
        return tuple(
            holds for holds, a in zip(declared, call.arguments, strict=True) if isinstance(a.type, PointerType)
        )

    def _may_store(self, call: CallSite) -> bool:
        """True if a callee with a body may store an address anywhere."""
        return may_store_address(call.callee, self.registry, self.addresses.storing)

    # --- the addresses that it stores and returns ---------------------------------------------------------------------

    def visit(self, call: CallSite) -> None:
        """Adds to the targets of pointers, based on the arguments."""
        callee = resolve(call, self.registry)
        effects = effects_of(callee)
        if effects is not None:
            self._visit_effects(call, effects)
        elif isinstance(callee, Function | Pointer):
            self._visit_body(call)
        else:
            graph = self.graph
            given = graph.reached(union(graph.mask(a) for a in call.arguments))
            graph.store(Targets(given, ANYWHERE), graph.unknown)
            if may_hold_pointer(call.type):
                graph.grow(call, graph.unknown)

    def _visit_body(self, call: CallSite) -> None:
        """A callee with a body may store any pointer that it can reach or create, wherever its signature allows it."""
        by_kind: dict[Kind, int] = {}
        for holds, mask in self.handed(call).items():
            kind = kind_of(holds)
            by_kind[kind] = by_kind.get(kind, 0) | mask
        anything = Targets(union(by_kind.values()), ANYWHERE)
        unclear = by_kind.pop(None, 0)
        if self._may_store(call):
            # only a run-time function moves what a header points to, and to memory that is new
            headers, new = unclear & self.graph.whole, union(self.own[call].values())
            self.graph.store(Targets(headers, ANYWHERE), Targets(new, ANYWHERE))
            self.graph.store(Targets(unclear & ~headers, ANYWHERE), anything)
            for kind, mask in by_kind.items():
                if not isinstance(kind, MemoryType):
                    continue
                for place, inner in places_behind(kind):
                    fitting = kind_of(inner)
                    stored = anything.mask if fitting is None else by_kind[fitting] | unclear
                    self.graph.store(Targets(mask, place), Targets(stored, declared_place(kind, inner)))
        if not may_hold_pointer(call.type):
            return
        if may_return_address(call.callee, self.registry, self.addresses.returning):
            self.graph.grow(call, anything)
        else:
            # An integer that the callee hands through may still be an address.
            self.graph.grow(
                call, joined(self.graph.targets(a) for a in call.arguments if isinstance(a.type, types.IntType))
            )

    def handed(self, call: CallSite) -> dict[MemoryType | None, int]:
        """Objects that a callee with a body receives or makes, by the contents that its signature states.

        Where types are known, integers are not addresses.
        """
        found: dict[MemoryType | None, int] = dict(self.own[call])
        declared = self._declared(call)
        for number, argument in enumerate(call.arguments):
            if declared is None:
                self._hand(found, self.graph.mask(argument), None)
            elif isinstance(argument.type, PointerType):
                self._hand(found, self.graph.mask(argument), declared[number])
        if None in found:
            found[None] = self.graph.reached(found[None])
        return found

    def _hand(self, found: dict[MemoryType | None, int], mask: int, holds: MemoryType | None) -> None:
        """Adds memory that a callee is given, and the memory that this points to, by its signature."""
        if not mask:
            return
        holds = None if kind_of(holds) is None else holds
        found[holds] = found.get(holds, 0) | mask
        for place, inner in places_behind(holds) if holds is not None else ():
            self._hand(found, self.graph.loaded(Targets(mask, place)).mask, inner)

    def _visit_effects(self, call: CallSite, effects: Effects) -> None:
        graph, arguments = self.graph, call.arguments
        self._capture(call, effects)
        for i in sorted(effects.fills):
            self._fill(call, i)
        for into, source in effects.copies:
            self._copy(arguments[into], arguments[source])
        for (i, _), made in zip(effects.makes, self._made.get(call, ()), strict=True):
            graph.store(graph.targets(arguments[i]), Targets(made, START))
        for i, path in effects.links:
            graph.store(graph.targets(arguments[i]), Targets(self._place(call, path), ANYWHERE))
        for target, origin in effects.moves:
            self._move(self._place(call, target), self._place(call, origin))
        if not may_hold_pointer(call.type) or isinstance(call.type, types.StructType):
            return
        if effects.keeps is not None:
            self._copy(call, arguments[effects.keeps])
        self._return(call, effects)

    def _return(self, call: CallSite, effects: Effects) -> None:
        match effects.result:
            case Origin.ARGUMENT:
                mask = self.graph.mask(call.arguments[effects.result_argument])
                if effects.header is None:
                    self.graph.grow(call, Targets(mask, ANYWHERE))
                else:
                    data = self.graph.loaded(Targets(mask, place_of(effects.header)))
                    self.graph.grow(call, Targets(data.mask, START))
            case Origin.UNKNOWN if isinstance(call.type, PointerType):
                self.graph.grow(call, self.graph.unknown)
            case Origin.UNKNOWN | Origin.FRESH:
                pass

    def _capture(self, call: CallSite, effects: Effects) -> None:
        """A callee stores its arguments, or pointers that they point to."""
        if not effects.captures_into:
            return
        given = [self.graph.targets(call.arguments[i]) for i in sorted(effects.captures)]
        behind = [self.graph.loaded(Targets(mask, ANYWHERE)) for mask, _ in given]
        for i in sorted(effects.captures_into):
            self.graph.store(Targets(self.graph.mask(call.arguments[i]), ANYWHERE), joined([*given, *behind]))

    def _place(self, call: CallSite, path: MemoryPath) -> int:
        """The objects that a place of a callee may be."""
        return self.graph.at(self.graph.mask(call.arguments[path[0]]), map(place_of, path[1:]))

    def _fill(self, call: CallSite, number: int) -> None:
        """A callee stores addresses of new memory in that of an argument."""
        made, into = self._filled[call], self.graph.targets(call.arguments[number])
        kind = kind_of(self._declared_argument(call, number))
        if isinstance(kind, MemoryType):
            self._lead_to(made, kind, into)
        else:
            self.graph.store(Targets(into.mask, ANYWHERE), Targets(union(made.values()), ANYWHERE))

    def _move(self, into: int, source: int) -> None:
        """An item is put into a container, or taken out: from a variable of its size, or to one."""
        for index in indices(source):
            for place, stored in list(self.graph.parts[index].items()):
                for target in indices(into):
                    to = moved_item(place, self.graph.objects[index], self.graph.objects[target])
                    self.graph.store(Targets(1 << target, to), stored)

    def _copy(self, into: Value, source: Value) -> None:
        """Bytes move: pointers in them keep their targets, at the same distance from the beginning of the copy."""
        to, origin = self.graph.targets(into), self.graph.targets(source)
        distance = origin.place.distance_to(to.place)
        for index in indices(origin.mask):
            for place, stored in list(self.graph.parts[index].items()):
                self.graph.store(Targets(to.mask, place.moved(distance)), stored)
