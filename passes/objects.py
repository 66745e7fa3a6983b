"""Memory objects, and which of them a pointer may point to.

Input   a function in normal form, what its parameters' memory holds, the rules (for callees without body).
Output  `PointsTo`. The function is not changed.
Method  inclusion-based and flow-insensitive: every pointer has a set of objects, every object a set of objects that the
        pointers stored in it may refer to; rules are applied until nothing grows.
Limit   an object is one thing: no fields, no elements, one object for all allocations of a site.

    %m = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)      m → {allocation m}
    %d = load ptr, ptr (m + 24)                                   d → {allocation m}: a block's header points to the block
    %p = select i1 %c, ptr %d, ptr %arg                           p → {allocation m, argument arg}
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irad.ir import types
from irad.ir.instructions import (
    Alloca,
    AtomicRMW,
    Binary,
    CallSite,
    Cast,
    CmpXchg,
    ExtractValue,
    Freeze,
    GetElementPtr,
    InsertValue,
    Instruction,
    Load,
    Phi,
    Ret,
    Select,
    Store,
)
from irad.ir.module import Function
from irad.ir.types import PointerType, Type
from irad.ir.values import (
    ConstantAggregate,
    ConstantExpression,
    GlobalAlias,
    GlobalVariable,
    Parameter,
    Value,
)
from irad.passes.callees import effects_of, resolve
from irad.passes.request import MemoryType
from irad.ruleset.interface import Effects, Origin
from irad.ruleset.registry import Registry


class ObjectKind(enum.Enum):
    """Where an object comes from."""

    ARGUMENT = "argument"  # what a pointer parameter points to
    REACHABLE = "reachable"  # what can be reached by loading pointers out of an argument's memory
    LOCAL = "local"  # an alloca
    ALLOCATION = "allocation"  # made by a call
    GLOBAL = "global"
    UNKNOWN = "unknown"  # anything at all


@dataclass(eq=False, slots=True)
class MemoryObject:
    """One abstract piece of memory; ``value`` is the parameter, alloca, call or global it belongs to."""

    kind: ObjectKind
    index: int
    value: Value | None = None

    def __str__(self) -> str:
        name = f" {self.value.name}" if self.value is not None and self.value.name else ""
        return f"{self.kind.value}{name}"


_SEPARATE = (ObjectKind.LOCAL, ObjectKind.ALLOCATION)


@dataclass(frozen=True, slots=True)
class PointsTo:
    """Where pointers may point. Sets are bit masks over ``objects`` (bit i is ``objects[i]``)."""

    objects: tuple[MemoryObject, ...]
    pointees: Mapping[Value, int]
    contents: tuple[int, ...]
    globals: Mapping[Value, int]
    overlaps: tuple[int, ...]

    def mask(self, pointer: Value) -> int:
        """The set of objects that a pointer (or an aggregate holding pointers) may point to."""
        found = self.pointees.get(pointer)
        return _constant_mask(pointer, self.globals) if found is None else found

    def of(self, pointer: Value) -> tuple[MemoryObject, ...]:
        """The same as objects."""
        return tuple(self.members(self.mask(pointer)))

    def members(self, mask: int) -> Iterator[MemoryObject]:
        """The objects of a set, in order."""
        while mask:
            low = mask & -mask
            yield self.objects[low.bit_length() - 1]
            mask ^= low

    def overlapping(self, mask: int) -> int:
        """All objects that may share bytes with one of the set."""
        result = mask
        for item in self.members(mask):
            result |= self.overlaps[item.index]
        return result

    def may_overlap(self, a: int, b: int) -> bool:
        """Whether two sets of objects may share bytes."""
        return bool(self.overlapping(a) & b)

    def reachable(self, mask: int) -> int:
        """The set closed under following pointers stored in memory."""
        pending, result = mask, mask
        while pending:
            new = 0
            for item in self.members(pending):
                new |= self.contents[item.index]
            pending = new & ~result
            result |= new
        return result

    def explain(self, value: Value) -> str:
        """In words: the objects a pointer may point to."""
        names = ", ".join(str(item) for item in self.of(value))
        return f"may point to {names}" if names else "points to no object (null or undefined)"


def find_objects(function: Function, memory: Mapping[Parameter, MemoryType | None], registry: Registry) -> PointsTo:
    """Solves the points-to problem of one function."""
    solver = _Solver(function, memory, registry)
    solver.solve()
    return solver.result()


def _constant_mask(value: Value, known: Mapping[Value, int]) -> int:
    match value:
        case ConstantExpression(operands=operands):
            return _union(_constant_mask(v, known) for v in operands)
        case ConstantAggregate(elements=elements):
            return _union(_constant_mask(v, known) for v in elements)
        case GlobalVariable() | GlobalAlias() | Function():
            return known.get(value, 0)
        case _:
            return 0


def _union(masks: Iterator[int]) -> int:
    result = 0
    for mask in masks:
        result |= mask
    return result


@dataclass(eq=False, slots=True)
class _Solver:
    function: Function
    memory: Mapping[Parameter, MemoryType | None]
    registry: Registry
    objects: list[MemoryObject] = field(default_factory=list)
    contents: list[int] = field(default_factory=list)
    pointees: dict[Value, int] = field(default_factory=dict)
    globals: dict[Value, int] = field(default_factory=dict)
    unknown: int = 0
    changed: bool = True

    def new_object(self, kind: ObjectKind, value: Value | None) -> int:
        item = MemoryObject(kind, len(self.objects), value)
        self.objects.append(item)
        self.contents.append(0)
        return 1 << item.index

    def solve(self) -> None:
        self.unknown = self.new_object(ObjectKind.UNKNOWN, None)
        self.contents[0] = self.unknown
        for param in self.function.params:
            if isinstance(param.type, PointerType):
                self.add_parameter(param)
        instructions = [i for i in self.function.instructions() if self.may_matter(i)]
        for inst in instructions:
            self.seed(inst)
        while self.changed:
            self.changed = False
            for inst in instructions:
                self.visit(inst)

    def add_parameter(self, param: Parameter) -> None:
        mask = self.new_object(ObjectKind.ARGUMENT, param)
        self.pointees[param] = mask
        holds = self.memory.get(param)
        if holds is None or any(text == "ptr" for _, text in holds.fields):
            beyond = self.new_object(ObjectKind.REACHABLE, param)
            self.contents[beyond.bit_length() - 1] = beyond
            self.contents[mask.bit_length() - 1] = beyond

    def may_matter(self, inst: Instruction) -> bool:
        """Whether an instruction can carry or move a pointer (or its bits)."""
        if isinstance(inst, Store | CallSite | Ret):
            return True
        return _may_hold_pointer(inst.type)

    def seed(self, inst: Instruction) -> None:
        match inst:
            case Alloca():
                self.pointees[inst] = self.new_object(ObjectKind.LOCAL, inst)
            case CallSite():
                callee = resolve(inst, self.registry)
                effects = effects_of(callee)
                fresh = effects is not None and effects.result is Origin.FRESH
                if isinstance(callee, Function) or (fresh and _may_hold_pointer(inst.type)):
                    mask = self.new_object(ObjectKind.ALLOCATION, inst)
                    self.contents[mask.bit_length() - 1] = mask
                    self.pointees[inst] = mask if isinstance(inst.type, PointerType) else 0
            case _:
                pass

    # -------------------------------------------------------------------------------------------- reading

    def mask(self, value: Value) -> int:
        found = self.pointees.get(value)
        if found is not None:
            return found
        if isinstance(value, GlobalVariable | GlobalAlias | Function):
            return self.global_mask(value)
        if isinstance(value, ConstantExpression):
            return _union(self.mask(v) for v in value.operands)
        if isinstance(value, ConstantAggregate):
            return _union(self.mask(v) for v in value.elements)
        return 0

    def global_mask(self, value: Value) -> int:
        found = self.globals.get(value)
        if found is not None:
            return found
        mask = self.new_object(ObjectKind.GLOBAL, value)
        self.globals[value] = mask
        if isinstance(value, GlobalVariable):
            inside = self.mask(value.initializer) if value.initializer is not None else 0
            written = not value.constant
            self.contents[mask.bit_length() - 1] = inside | (self.unknown if written else 0)
        elif isinstance(value, GlobalAlias):
            self.contents[mask.bit_length() - 1] = self.unknown
        return mask

    def content(self, mask: int) -> int:
        result = 0
        index = 0
        while mask:
            if mask & 1:
                result |= self.contents[index]
            mask >>= 1
            index += 1
        return result

    # -------------------------------------------------------------------------------------------- transfer

    def grow(self, value: Value, mask: int) -> None:
        old = self.pointees.get(value, 0)
        if mask & ~old:
            self.pointees[value] = old | mask
            self.changed = True

    def grow_content(self, into: int, mask: int) -> None:
        index = 0
        while into:
            if into & 1 and mask & ~self.contents[index]:
                self.contents[index] |= mask
                self.changed = True
            into >>= 1
            index += 1

    def visit(self, inst: Instruction) -> None:
        match inst:
            case Alloca():
                pass
            case Phi() | Select() | Freeze() | GetElementPtr() | Binary() | ExtractValue() | InsertValue():
                self.grow(inst, _union(self.mask(v) for v in inst.operands))
            case Cast():
                mask = self.mask(inst.operands[0])
                is_made_up = inst.opcode == "inttoptr" and not mask
                self.grow(inst, self.unknown if is_made_up else mask)
            case Load():
                self.grow(inst, self.content(self.mask(inst.operands[0])))
            case Store(operands=[value, pointer]):
                mask = self.mask(value)
                if mask:
                    self.grow_content(self.mask(pointer), mask)
            case AtomicRMW() | CmpXchg():
                self.grow(inst, self.unknown)
            case CallSite():
                self.visit_call(inst)
            case Ret():
                pass
            case _:
                if isinstance(inst.type, PointerType):
                    self.grow(inst, self.unknown)

    def visit_call(self, call: CallSite) -> None:
        callee = resolve(call, self.registry)
        if isinstance(callee, Function):
            self.visit_body_call(call)
            return
        effects = effects_of(callee)
        if effects is None:
            self.grow(call, self.unknown if _may_hold_pointer(call.type) else 0)
            return
        self.visit_effects(call, effects)

    def visit_body_call(self, call: CallSite) -> None:
        """A callee with a body may store any pointer it can reach, or makes, into anything it can reach."""
        own = 1 << next(o.index for o in self.objects if o.value is call)
        reached = own | _union(self.mask(a) for a in call.arguments)
        previous = 0
        while reached != previous:
            previous = reached
            reached |= self.content(reached)
        self.grow_content(reached, reached)
        if _may_hold_pointer(call.type):
            self.grow(call, reached)

    def visit_effects(self, call: CallSite, effects: Effects) -> None:
        arguments = call.arguments
        captured = _union(self.mask(arguments[i]) | self.content(self.mask(arguments[i])) for i in sorted(effects.captures))
        for i in sorted(effects.captures_into):
            self.grow_content(self.mask(arguments[i]), captured)
        for into, source in effects.copies:
            self.grow_content(self.mask(arguments[into]), self.content(self.mask(arguments[source])))
        if not isinstance(call.type, PointerType):
            return
        match effects.result:
            case Origin.ARGUMENT:
                self.grow(call, self.mask(arguments[effects.result_argument]))
            case Origin.UNKNOWN:
                self.grow(call, self.unknown)
            case Origin.FRESH:
                pass

    # -------------------------------------------------------------------------------------------- result

    def result(self) -> PointsTo:
        overlaps = tuple(self.overlaps_of(item) for item in self.objects)
        return PointsTo(tuple(self.objects), self.pointees, tuple(self.contents), self.globals, overlaps)

    def overlaps_of(self, item: MemoryObject) -> int:
        return _union(1 << other.index for other in self.objects if self.may_share(item, other))

    def may_share(self, a: MemoryObject, b: MemoryObject) -> bool:
        if a is b:
            return True
        kinds = (a.kind, b.kind)
        if any(kind in _SEPARATE for kind in kinds):
            return ObjectKind.UNKNOWN in kinds
        if any(_is_exclusive(item) for item in (a, b)):
            return False
        both_global = kinds == (ObjectKind.GLOBAL, ObjectKind.GLOBAL)
        return not both_global


def _is_exclusive(item: MemoryObject) -> bool:
    value = item.value
    return item.kind is ObjectKind.ARGUMENT and isinstance(value, Parameter) and "noalias" in value.attributes


def _may_hold_pointer(type_: Type) -> bool:
    """Pointers, aggregates of them, and integers wide enough to carry their bits."""
    match type_:
        case PointerType():
            return True
        case types.IntType(bits=bits):
            return bits == 64
        case types.StructType() | types.NamedStructType() | types.ArrayType():
            return any(_may_hold_pointer(t) for t in types.element_types(type_))
        case types.VectorType(element=element):
            return _may_hold_pointer(element)
        case _:
            return False


