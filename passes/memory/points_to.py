"""Points-to: the memory objects of a function, and which of them a pointer may point to.

Input   a function in normal form, what its parameters' memory holds, the rules (for callees without body).
Output  `PointsTo`. The function is not changed.
Method  inclusion-based and flow-insensitive: every pointer has a set of objects, every object a set of objects that the
        pointers stored in it may refer to; rules are applied until nothing grows.
        Pointers in memory are told apart by byte offset where that is constant: an array's descriptor in a local
        variable.
Limit   an element of an array is as good as any other, and there is one object for all allocations of a site.

    %m = call ptr @allocate(i64 %n)      m → {header m}; at byte 24: {allocation m}
    %d = load ptr, ptr (m + 24)                                   d → {allocation m}
    %p = select i1 %c, ptr %d, ptr %arg                           p → {allocation m, argument arg}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, assert_never, cast

from irad.ir import types
from irad.ir.instructions import (
    Alloca,
    AnyInstruction,
    AtomicRMW,
    Binary,
    Br,
    Call,
    CallBr,
    CallSite,
    Cast,
    CmpXchg,
    CondBr,
    ExceptionPad,
    ExceptionTerminator,
    ExtractElement,
    ExtractValue,
    FCmp,
    Fence,
    Freeze,
    GetElementPtr,
    ICmp,
    IndirectBr,
    InsertElement,
    InsertValue,
    Instruction,
    Invoke,
    LandingPad,
    Load,
    Phi,
    Resume,
    Ret,
    Select,
    ShuffleVector,
    Store,
    Switch,
    Unary,
    Unreachable,
    VAArg,
)
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import (
    Constant,
    ConstantExpression,
    GlobalAlias,
    GlobalVariable,
    Parameter,
    Value,
    parts_of,
)
from irad.passes.analysis.callees import Pointer, effects_of, resolve
from irad.passes.memory.addresses import ANYWHERE, START, Position, Positions
from irad.passes.memory.objects import (
    SEPARATE,
    Contents,
    MemoryObject,
    ObjectKind,
    PointsTo,
    follow,
    indices,
    may_hold_pointer,
    moved_item,
    place_of,
    union,
)
from irad.passes.memory.overlap import find_overlaps
from irad.passes.memory.returned_addresses import KnownAddresses, may_return_address, may_store_address
from irad.passes.memory.signatures import Kind, Signatures, kind_of, kinds_behind
from irad.passes.memory.starts import data_of_headers, declared_starts, loaded_starts, solve_with_starts
from irad.passes.request import MemoryType, ParameterKind
from irad.ruleset.interface import Effects, MemoryPath, Origin
from irad.ruleset.registry import Registry

NO_SIGNATURES: Final[Signatures] = MappingProxyType({})
_NO_KINDS: Mapping[Parameter, ParameterKind] = MappingProxyType({})


def find_objects(
    function: Function,
    memory: Mapping[Parameter, MemoryType | None],
    registry: Registry,
    noalias: frozenset[tuple[int, int]] = frozenset(),
    signatures: Signatures = NO_SIGNATURES,
    kinds: Mapping[Parameter, ParameterKind] = _NO_KINDS,
    addresses: KnownAddresses | None = None,
) -> PointsTo:
    """Solves the points-to problem of one function.

    Args:
        function: in normal form.
        memory: what its parameters point to.
        registry: the rules.
        apart: pairs of parameters that are known not to overlap.
        signatures: of callees.
        kinds: how the parameters take part; what lies behind those of different kinds is told apart.
        addresses: what was found of callees in analyses of the same module.
    """
    callees = KnownAddresses() if addresses is None else addresses
    numbers = {param: number for number, param in enumerate(function.params)}

    def solve(assumed: frozenset[Value]) -> tuple[PointsTo, Positions]:
        solver = _Solver(function, memory, registry, noalias, signatures, kinds, numbers, callees, assumed)
        solver.solve()
        return solver.result(), solver.places

    return solve_with_starts(function, registry, solve)


@dataclass(eq=False, slots=True)
class _Solver:
    function: Function
    memory: Mapping[Parameter, MemoryType | None]
    registry: Registry
    noalias: frozenset[tuple[int, int]]
    signatures: Signatures
    kinds: Mapping[Parameter, ParameterKind]
    numbers: Mapping[Parameter, int]
    addresses: KnownAddresses
    assumed: frozenset[Value]
    bases: set[Value] = field(init=False)
    objects: list[MemoryObject] = field(default_factory=list)
    contents: Contents = field(default_factory=Contents)
    places: Positions = field(init=False)
    pointees: dict[Value, int] = field(default_factory=dict)
    globals: dict[Value, int] = field(default_factory=dict)
    made: dict[CallSite, list[int]] = field(default_factory=dict)
    filled: dict[CallSite, dict[Kind, int]] = field(default_factory=dict)
    own: dict[CallSite, dict[MemoryType | None, int]] = field(default_factory=dict)
    behind: dict[tuple[MemoryType | None, Value | ParameterKind | None], int] = field(default_factory=dict)
    declared: dict[int, MemoryType] = field(default_factory=dict)
    unknown: int = 0
    twins: dict[MemoryType, int] = field(default_factory=dict)  # containers of one layout: callers may pass one for two
    unclear: dict[ParameterKind | None, int] = field(default_factory=dict)  # what may hold any pointers, by kind
    headers: int = 0  # objects that hold the address of data and no other pointer
    changed: bool = True

    def new_object(self, kind: ObjectKind, value: Value | None, holds: MemoryType | None = None) -> int:
        item = MemoryObject(kind, len(self.objects), value, holds)
        self.objects.append(item)
        self.contents.add_object(0 if holds is None else holds.integer_prefix)
        return 1 << item.index

    def set_content(self, mask: int, content: int, offset: int | None = None) -> None:
        """What a new object holds."""
        self.contents.parts[mask.bit_length() - 1][place_of(offset)] = content

    def position(self, pointer: Value) -> Position:
        """Where a pointer points in its object."""
        return self.places.of(pointer)

    def solve(self) -> None:
        self.bases = set(self.assumed)
        self.unknown = self.new_object(ObjectKind.UNKNOWN, None)
        self.set_content(self.unknown, self.unknown)
        for param in self.function.params:
            if isinstance(param.type, PointerType):
                self.add_parameter(param)
        known = set(declared_starts(self.function, self.memory))
        self.bases |= known
        for inst in self.function.instructions():
            for operand in inst.operands:
                if isinstance(operand, GlobalVariable | GlobalAlias | ConstantExpression):
                    self.mask(operand)  # so that every global in use is an object, loads of floats from it included
        instructions = [i for i in self.function.instructions() if self.may_matter(i)]
        for inst in instructions:
            self.seed(inst)
        known |= data_of_headers(instructions, self.bases, self.pointees, self.contents.parts, self.headers)
        self.bases |= known
        self.assumed -= known
        self.places = Positions(self.bases)
        while self.changed:
            self.changed = False
            for inst in instructions:
                self.visit(inst)
            if not self.changed:
                self.visit_made_up(instructions)

    def visit_made_up(self, instructions: Iterable[Instruction]) -> None:
        """Addresses that were computed from no pointer lead anywhere; known only when all pointers are."""
        for inst in instructions:
            if isinstance(inst, Cast) and inst.opcode == "inttoptr" and not self.mask(inst.operands[0]):
                self.grow(inst, self.unknown)

    def add_parameter(self, param: Parameter) -> None:
        holds = self.memory.get(param)
        mask = self.pointees[param] = self.new_object(ObjectKind.ARGUMENT, param, holds)
        self.add_contents(param, mask, holds)

    def add_contents(self, param: Parameter, mask: int, holds: MemoryType | None) -> None:
        """What lies behind pointers in a parameter's memory."""
        if holds is not None and holds.declared:
            self.add_declared(mask, holds, param)
            return
        if holds is None or holds.holds_unknown_pointers():
            self.add_unclear(param, mask)
            self.set_content(mask, self.add_behind(param, None))
            return
        if holds.is_header:
            self.headers |= mask
        if holds.behind:
            self.twins[holds] = self.twins.get(holds, 0) | mask
        for offset, inner in holds.behind:
            self.changed |= self.contents.hold(mask, self.add_behind(param, inner), place_of(offset))

    def add_behind(self, param: Parameter, holds: MemoryType | None) -> int:
        """Memory behind a parameter. Containers that may lie behind several they share: one may store, another load."""
        key = (holds, self.kinds.get(param) if holds is not None and holds.behind else param)
        if key not in self.behind:
            mask = self.behind[key] = self.new_object(ObjectKind.REACHABLE, param, holds)
            if holds is None:
                self.add_unclear(param, mask)
                self.set_content(mask, mask)
            else:
                self.add_contents(param, mask, holds)
        return self.behind[key]

    def add_unclear(self, param: Parameter, mask: int) -> None:
        """Callers may pass one structure for two parameters, unless these take part in different ways."""
        kind = self.kinds.get(param)
        self.unclear[kind] = self.unclear.get(kind, 0) | mask

    def add_declared(self, mask: int, holds: MemoryType, param: Parameter) -> None:
        """Objects for what the request says a parameter's memory leads to."""
        self.declared[mask.bit_length() - 1] = holds
        if holds.declared:
            self.twins[holds] = self.twins.get(holds, 0) | mask
        if holds.single and not holds.fields and len(holds.declared) == 1:
            self.headers |= mask
        for offset, inner in holds.declared:
            found = self.new_object(ObjectKind.REACHABLE, param)
            self.changed |= self.contents.hold(mask, found, place_of(offset if holds.single else None))
            self.add_declared(found, inner, param)

    def may_matter(self, inst: Instruction) -> bool:
        """Whether an instruction can carry or move a pointer (or its bits)."""
        if isinstance(inst, Store | CallSite | Ret):
            return True
        return may_hold_pointer(inst.type)

    def seed(self, inst: Instruction) -> None:
        if isinstance(inst, Alloca):
            self.pointees[inst] = self.new_object(ObjectKind.LOCAL, inst)
        elif isinstance(inst, CallSite):
            self.seed_call(inst)

    def seed_call(self, call: CallSite) -> None:
        callee = resolve(call, self.registry)
        effects = effects_of(callee)
        if isinstance(callee, Function | Pointer) and effects is None:
            self.seed_body_call(call)
        elif effects is not None and effects.result is Origin.FRESH and isinstance(call.type, PointerType):
            self.bases.add(call)
            self.pointees[call] = self.new_object(ObjectKind.ALLOCATION, call)
            if effects.header is not None:
                data = self.pointees[call]
                self.pointees[call] = self.new_object(ObjectKind.HEADER, call)
                self.headers |= self.pointees[call]
                self.set_content(self.pointees[call], data, effects.header)
                if effects.integer_prefix:
                    self.contents.prefixes[data.bit_length() - 1] = effects.integer_prefix
        if effects is not None and effects.fills:
            self.seed_filled(call, effects)
        if effects is not None and effects.makes:
            self.made[call] = [self.new_container(call, parts) for _, parts in effects.makes]

    def seed_body_call(self, call: CallSite) -> None:
        """New memory that a callee may hand back, one object for each kind."""
        memory = self.signature(call)
        if not may_hold_pointer(call.type) and not self.may_store(call):
            self.own[call] = {}
            return
        types_say_all = all(kind_of(holds) is not None for holds in memory) and not may_hold_pointer(call.type)
        self.own[call] = self.new_by_kind(call, memory, types_say_all)

    def new_by_kind(
        self, call: CallSite, memory: Sequence[MemoryType | None], types_say_all: bool
    ) -> dict[MemoryType | None, int]:
        """New memory that some memory may lead to, by what it holds: one object for each kind, None: of no known."""
        own: dict[MemoryType | None, int] = {}
        for kind, holds in kinds_behind(memory):
            if kind is not None:
                is_header = holds is not None and holds.is_header
                own[holds] = self.new_object(ObjectKind.HEADER if is_header else ObjectKind.ALLOCATION, call, holds)
                self.headers |= own[holds] if is_header else 0
        if not types_say_all or None in (kind for kind, _ in kinds_behind(memory)):
            own[None] = self.new_object(ObjectKind.ALLOCATION, call)
            self.set_content(own[None], own[None])
        return own

    def seed_filled(self, call: CallSite, effects: Effects) -> None:
        """New memory whose addresses a callee stores in that of its arguments, and what in it leads to the rest."""
        memory = [self.declared_argument(call, i) for i in sorted(effects.fills)]
        own = self.new_by_kind(call, memory, all(kind_of(holds) is not None for holds in memory))
        made = self.filled[call] = {kind_of(holds): mask for holds, mask in own.items()}
        if None in made:
            self.set_content(made[None], union(made.values()))
        for kind, mask in made.items():
            self.lead_to(made, kind, mask, START)

    def lead_to(self, made: Mapping[Kind, int], kind: Kind, mask: int, start: Position) -> None:
        """Memory of some kind comes to hold addresses of new memory, wherever its type lets it."""
        for offset, inner in kind.behind if isinstance(kind, MemoryType) else ():
            self.grow_content(mask, made[kind_of(inner)], ANYWHERE if offset is None else start.moved(place_of(offset)))

    def declared_argument(self, call: CallSite, number: int) -> MemoryType | None:
        """What the signature of a callee says of the memory of one of its arguments."""
        declared = self.signatures.get(call.callee) if isinstance(call.callee, Function) else None
        return None if declared is None else declared[number]

    def may_store(self, call: CallSite) -> bool:
        """Whether a callee with a body may store an address anywhere."""
        return may_store_address(call.callee, self.registry, self.addresses.storing)

    def signature(self, call: CallSite) -> tuple[MemoryType | None, ...]:
        """What the arguments of a call that are or may be pointers lead to."""
        declared = self.signatures.get(call.callee) if isinstance(call.callee, Function) else None
        if declared is None:
            return tuple(None for a in call.arguments if may_hold_pointer(a.type))
        return tuple(
            holds for holds, a in zip(declared, call.arguments, strict=True) if isinstance(a.type, PointerType)
        )

    def new_container(self, call: CallSite, parts: Iterable[int]) -> int:
        """An object that a callee makes, with the memory its parts point to."""
        container = self.new_object(ObjectKind.HEADER, call)
        for offset in parts:
            self.set_content(container, self.new_object(ObjectKind.ALLOCATION, call), offset)
        return container

    def mask(self, value: Value) -> int:
        found = self.pointees.get(value)
        if found is not None:
            return found
        if isinstance(value, GlobalVariable | GlobalAlias | Function):
            return self.global_mask(value)
        return union(map(self.mask, parts_of(value)))

    def global_mask(self, value: Value) -> int:
        found = self.globals.get(value)
        if found is not None:
            return found
        mask = self.new_object(ObjectKind.GLOBAL, value)
        self.globals[value] = mask
        if isinstance(value, GlobalVariable):
            inside = self.mask(value.initializer) if value.initializer is not None else 0
            written = not value.constant
            self.set_content(mask, inside | (self.unknown if written else 0))
        elif isinstance(value, GlobalAlias):
            self.set_content(mask, self.unknown)
        return mask

    def place(self, call: CallSite, place: MemoryPath) -> int:
        """The objects that a place of a callee may be."""
        return follow(self.contents.parts, self.mask(call.arguments[place[0]]), map(place_of, place[1:]))

    def grow(self, value: Value, mask: int) -> None:
        old = self.pointees.get(value, 0)
        if mask & ~old:
            self.pointees[value] = old | mask
            self.changed = True

    def grow_content(self, into: int, mask: int, place: Position = ANYWHERE) -> None:
        """Pointers are stored. What a parameter holds at first is its own; what is stored then, its twins hold, too."""
        for group in self.unclear.values():
            if into & group:
                self.changed |= self.contents.hold(group, mask, ANYWHERE)
        into |= union(group for group in self.twins.values() if group & into)
        self.changed |= self.contents.hold(into, mask, place)

    def visit(self, inst: Instruction) -> None:
        shape = cast("AnyInstruction", inst)
        match shape:
            case GetElementPtr(operands=[base, *_]) if not isinstance(base, Constant):
                self.grow(inst, self.mask(base))  # indices are numbers
            case (
                Phi() | Select() | Freeze() | Cast() | GetElementPtr() | Binary() | ExtractValue() | InsertValue()
                | ExtractElement() | InsertElement() | ShuffleVector()
            ):  # fmt: skip
                self.grow(inst, union(self.mask(v) for v in inst.operands))
            case Load(operands=[pointer]):
                self.load(inst, pointer)
            case Store(operands=[value, pointer]):
                self.store(value, pointer)
            case AtomicRMW(operands=[pointer, value]) | CmpXchg(operands=[pointer, _, value]):
                self.load(inst, pointer)
                self.store(value, pointer)
            case Call() | Invoke() | CallBr():
                self.visit_call(shape)
            case Load() | Store() | AtomicRMW() | CmpXchg() | VAArg() | LandingPad() | ExceptionPad():
                self.grow(inst, self.unknown)
            case (
                Alloca() | Ret() | Br() | CondBr() | Switch() | IndirectBr() | Unreachable() | Resume() | Fence()
                | Unary() | ICmp() | FCmp() | ExceptionTerminator()
            ):  # fmt: skip
                pass
            case _:
                assert_never(shape)

    def load(self, inst: Instruction, pointer: Value) -> None:
        self.grow(inst, self.contents.behind(self.mask(pointer), self.position(pointer)))

    def store(self, value: Value, pointer: Value) -> None:
        mask = self.mask(value)
        if mask:
            self.grow_content(self.mask(pointer), mask, self.position(pointer))

    def visit_call(self, call: CallSite) -> None:
        callee = resolve(call, self.registry)
        effects = effects_of(callee)
        if isinstance(callee, Function | Pointer) and effects is None:
            self.visit_body_call(call)
            return
        if effects is None:
            self.grow_content(self.reached(union(self.mask(a) for a in call.arguments)), self.unknown)
            self.grow(call, self.unknown if may_hold_pointer(call.type) else 0)
            return
        self.visit_effects(call, effects)

    def visit_body_call(self, call: CallSite) -> None:
        """A callee with a body may store any pointer it can reach, or makes, wherever its signature lets it."""
        by_kind: dict[Kind, int] = {}
        for holds, mask in self.handed(call).items():
            kind = kind_of(holds)
            by_kind[kind] = by_kind.get(kind, 0) | mask
        anything = union(by_kind.values())
        unclear = by_kind.pop(None, 0)
        stores = self.may_store(call)
        self.grow_content(unclear if stores else 0, anything)
        for kind, mask in by_kind.items() if stores else ():
            for offset, inner in kind.behind if isinstance(kind, MemoryType) else ():
                fitting = kind_of(inner)
                stored = anything if fitting is None else by_kind[fitting] | unclear
                self.grow_content(mask, stored, place_of(offset))
        if may_hold_pointer(call.type):
            given = union(self.mask(a) for a in call.arguments if isinstance(a.type, types.IntType))
            returns = may_return_address(call.callee, self.registry, self.addresses.returning)
            self.grow(call, anything if returns else given)

    def handed(self, call: CallSite) -> dict[MemoryType | None, int]:
        """The objects that a callee with a body is given or makes, by what its signature says that they hold.

        Where types are known, integers are not addresses.
        """
        found: dict[MemoryType | None, int] = dict(self.own[call])
        declared = self.signatures.get(call.callee) if isinstance(call.callee, Function) else None
        for number, argument in enumerate(call.arguments):
            if declared is None:
                self.hand(found, self.mask(argument), None)
            elif isinstance(argument.type, PointerType):
                self.hand(found, self.mask(argument), declared[number])
        if None in found:
            found[None] = self.reached(found[None])
        return found

    def hand(self, found: dict[MemoryType | None, int], mask: int, holds: MemoryType | None) -> None:
        """Adds memory that a callee is given, and what its signature says lies behind."""
        if not mask:
            return
        holds = None if kind_of(holds) is None else holds
        found[holds] = found.get(holds, 0) | mask
        for offset, inner in holds.behind if holds is not None else ():
            self.hand(found, self.contents.behind(mask, place_of(offset)), inner)

    def reached(self, mask: int) -> int:
        """A set closed under following stored pointers."""
        previous = 0
        while mask != previous:
            previous = mask
            mask |= self.contents.behind(mask)
        return mask

    def visit_effects(self, call: CallSite, effects: Effects) -> None:
        arguments = call.arguments
        captured = union(
            self.mask(arguments[i]) | self.contents.behind(self.mask(arguments[i])) for i in sorted(effects.captures)
        )
        for i in sorted(effects.captures_into):
            self.grow_content(self.mask(arguments[i]), captured)
        for i in sorted(effects.fills):
            self.fill(call, i)
        for into, source in effects.copies:
            self.copy_content(arguments[into], arguments[source])
        for (i, _), made in zip(effects.makes, self.made.get(call, ()), strict=True):
            self.grow_content(self.mask(arguments[i]), made, self.position(arguments[i]))
        for i, place in effects.links:
            self.grow_content(self.mask(arguments[i]), self.place(call, place), self.position(arguments[i]))
        for target, origin in effects.moves:
            self.move_content(self.place(call, target), self.place(call, origin))
        if not may_hold_pointer(call.type) or isinstance(call.type, types.StructType):
            return
        if effects.keeps is not None:
            self.copy_content(call, arguments[effects.keeps])
        match effects.result:
            case Origin.ARGUMENT:
                mask = self.mask(arguments[effects.result_argument])
                self.grow(
                    call, mask if effects.header is None else self.contents.behind(mask, place_of(effects.header))
                )
            case Origin.UNKNOWN:
                self.grow(call, self.unknown if isinstance(call.type, PointerType) else 0)
            case Origin.FRESH:
                pass

    def fill(self, call: CallSite, number: int) -> None:
        """A callee stores addresses of new memory in that of an argument."""
        made, into = self.filled[call], call.arguments[number]
        kind = kind_of(self.declared_argument(call, number))
        if isinstance(kind, MemoryType):
            self.lead_to(made, kind, self.mask(into), self.position(into))
        else:
            self.grow_content(self.mask(into), union(made.values()))

    def move_content(self, into: int, source: int) -> None:
        """An item is put into a container, or taken out: from a variable of its size, or to one."""
        for index in indices(source):
            for place, stored in list(self.contents.parts[index].items()):
                for target in indices(into):
                    self.grow_content(1 << target, stored, moved_item(place, self.objects[index], self.objects[target]))

    def copy_content(self, into: Value, source: Value) -> None:
        """Bytes move: what they point to moves along, as far from where the copy begins as it was before."""
        distance = self.position(source).distance_to(self.position(into))
        for index in indices(self.mask(source)):
            for place, stored in list(self.contents.parts[index].items()):
                self.grow_content(self.mask(into), stored, place.moved(distance))

    def result(self) -> PointsTo:
        overlaps = find_overlaps(self.objects, self.numbers, self.noalias)
        parts = tuple(self.contents.parts)
        contents = tuple(union(iter(places.values())) for places in parts)
        handed = {call: self.handed(call) for call in self.own}
        objects, bases = tuple(self.objects), frozenset(self.bases)
        found = PointsTo(objects, self.pointees, contents, self.globals, overlaps, bases, parts, handed, self.declared)
        found = replace(found, prefixes=self.contents.prefixes)
        bases = loaded_starts(self.function, found, self.headers, self.registry, self.addresses.storing, self.assumed)
        return replace(found, bases=bases, exposed=found.reachable(self.known_elsewhere()))

    def known_elsewhere(self) -> int:
        """Memory that did not begin in this function, and what is handed to code whose effects are not known."""
        mask = union(1 << item.index for item in self.objects if item.kind not in SEPARATE and not item.is_exclusive)
        for inst in self.function.instructions():
            if isinstance(inst, CallSite) and effects_of(resolve(inst, self.registry)) is None:
                mask |= union(self.mask(argument) for argument in inst.arguments)
        return mask
