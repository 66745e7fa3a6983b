"""Points-to: the memory objects of a function, and which of them a pointer may point to.

Input   a function in normal form, what its parameters' memory holds, the rules (for callees without body).
Output  `PointsTo`. The function is not changed.
Method  inclusion-based and flow-insensitive: every pointer has a set of objects, every object a set of objects that the
        pointers stored in it may refer to; rules are applied until nothing grows.
        Pointers in memory are told apart by the place where they lie: an array's descriptor in a local variable, the
        fields of nodes. Where a pointer points in its object is found together with the object (`Targets`), in memory,
        too: a loop that descends a tree reads what it stores.
Limit   an element of an array is as good as any other, and there is one object for all allocations of a site.

    %m = call ptr @allocate(i64 %n)      m → {header m}; at byte 24: {allocation m}
    %d = load ptr, ptr (m + 24)                                   d → {allocation m}
    %p = select i1 %c, ptr %d, ptr %arg                           p → {allocation m, argument arg}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, assert_never, cast

from irad.ir import instructions as ir
from irad.ir.instructions import Alloca, AnyInstruction, CallSite, Cast, Instruction
from irad.ir.module import Function
from irad.ir.types import IntType, PointerType, Type
from irad.ir.values import Constant, ConstantExpression, GlobalAlias, GlobalVariable, Parameter, Value
from irad.passes.callees import effects_of, is_remote, resolve
from irad.passes.memory.addresses import ANYWHERE, START, Position, Positions
from irad.passes.memory.call_objects import CallObjects
from irad.passes.memory.objects import (
    SEPARATE,
    MemoryObject,
    ObjectKind,
    PointsTo,
    Targets,
    joined,
    may_hold_pointer,
    place_of,
    reached_by,
    union,
)
from irad.passes.memory.points_to_graph import PointsToGraph, declared_place, is_header, places_behind
from irad.passes.memory.returned_addresses import KnownAddresses
from irad.passes.memory.signatures import Signatures
from irad.passes.request import MemoryType, ParameterKind
from irad.records import dataclass
from irad.ruleset.registry import Registry

# The objects that a function's parameters point to, by what the request and signatures say of their memory.


@dataclass(eq=False, slots=True)
class ParameterObjects:
    """Adds them to a graph.

    Attributes:
        kinds: roles of parameters in the derivative; memory of parameters with different roles is distinguished.
        declared: the request's description of the memory that an argument points to, by object.
    """

    graph: PointsToGraph
    kinds: Mapping[Parameter, ParameterKind]
    declared: dict[int, MemoryType] = field(default_factory=dict)
    _behind: dict[tuple[MemoryType | None, Value | ParameterKind | None], int] = field(default_factory=dict)

    def add(self, param: Parameter, holds: MemoryType | None) -> None:
        """Adds the objects that a parameter points to, directly or through other memory."""
        mask = self.graph.new_object(ObjectKind.ARGUMENT, param, holds)
        self.graph.grow(param, Targets(mask, START))
        self._add_contents(param, mask, holds)

    def _add_contents(self, param: Parameter, mask: int, holds: MemoryType | None) -> None:
        if holds is not None and holds.declared:
            self._add_declared(mask, holds, param)
            return
        if holds is None or holds.holds_unknown_pointers():
            self._add_unclear(param, mask)
            self._hold(mask, None, self._add_behind(param, None), ANYWHERE)
            return
        if holds.behind:
            self.graph.join_group(holds, mask, anywhere=False)
        for place, inner in places_behind(holds):
            stored = Targets(self._add_behind(param, inner), declared_place(holds, inner))
            self.graph.hold(Targets(mask, place), stored)

    def _add_behind(self, param: Parameter, holds: MemoryType | None) -> int:
        """Memory that a parameter's memory points to; one object for containers that several parameters may reach."""
        key = (holds, self.kinds.get(param) if holds is not None and holds.behind else param)
        if key not in self._behind:
            mask = self._behind[key] = self.graph.new_object(ObjectKind.REACHABLE, param, holds)
            if holds is None:
                self._add_unclear(param, mask)
                self._hold(mask, None, mask, ANYWHERE)
            else:
                self._add_contents(param, mask, holds)
        return self._behind[key]

    def _add_unclear(self, param: Parameter, mask: int) -> None:
        """Callers may pass one structure for two parameters, unless these take part in different ways."""
        self.graph.join_group(self.kinds.get(param), mask, anywhere=True)

    def _add_declared(self, mask: int, holds: MemoryType, param: Parameter) -> None:
        """Adds the objects that a parameter's memory points to according to the request."""
        self.declared[mask.bit_length() - 1] = holds
        if holds.declared:
            self.graph.join_group(holds, mask, anywhere=False)
        self.graph.whole |= mask if is_header(holds) else 0
        for offset, inner in holds.declared:
            found = self.graph.new_object(ObjectKind.REACHABLE, param)
            self._hold(mask, offset if holds.single else None, found, declared_place(holds, inner))
            self._add_declared(found, inner, param)

    def _hold(self, mask: int, offset: int | None, behind: int, place: Position) -> None:
        self.graph.hold(Targets(mask, place_of(offset)), Targets(behind, place))


# Which memory objects of a function may share bytes.
#
# Input   the objects, which parameters the caller knows not to overlap.
# Output  for each object the set of those that it may share bytes with, itself included.
# Method  by where objects come from: what the function or its callees allocate is apart from everything but memory of
#         unknown origin, and so is what a ``noalias`` parameter points to; globals are apart from each other.
#
#     argument x, argument y, allocation m          x: {x, y}; m: {m, unknown}
#     the same, x and y known to be apart           x: {x};    m: {m, unknown}


def find_overlaps(
    objects: Sequence[MemoryObject], numbers: Mapping[Parameter, int], noalias: Set[tuple[int, int]]
) -> tuple[int, ...]:
    """Objects with which each object may share bytes, as sets.

    Args:
        objects: objects of the function.
        numbers: numbers of its parameters.
        apart: pairs of parameters that are known not to overlap, the lower number first.
    """
    separate = _set_of(item for item in objects if item.kind in SEPARATE)
    unknown = _set_of(item for item in objects if item.kind is ObjectKind.UNKNOWN)
    others = [item for item in objects if item.kind not in SEPARATE]

    def overlaps_of(item: MemoryObject) -> int:
        if item.kind in SEPARATE:
            return 1 << item.index | unknown
        shared = _set_of(other for other in others if _may_share(item, other, numbers, noalias))
        return shared | separate if item.kind is ObjectKind.UNKNOWN else shared

    return tuple(overlaps_of(item) for item in objects)


def _set_of(items: Iterable[MemoryObject]) -> int:
    return union(1 << item.index for item in items)


def _may_share(
    a: MemoryObject, b: MemoryObject, numbers: Mapping[Parameter, int], noalias: Set[tuple[int, int]]
) -> bool:
    """True if two objects that are not separate may share bytes."""
    if a is b:
        return True
    kinds = (a.kind, b.kind)
    if a.is_exclusive or b.is_exclusive:
        return False
    if kinds == (ObjectKind.ARGUMENT, ObjectKind.ARGUMENT) and _are_apart(a.value, b.value, numbers, noalias):
        return False
    return kinds != (ObjectKind.GLOBAL, ObjectKind.GLOBAL)


def _are_apart(
    a: Value | None, b: Value | None, numbers: Mapping[Parameter, int], noalias: Set[tuple[int, int]]
) -> bool:
    """True if the caller knows that two parameters' memory does not overlap."""
    if not isinstance(a, Parameter) or not isinstance(b, Parameter):
        return False
    first, second = sorted((numbers[a], numbers[b]))
    return (first, second) in noalias


NO_SIGNATURES: Final[Signatures] = MappingProxyType({})
_WORD: Final = 64
_NO_KINDS: Mapping[Parameter, ParameterKind] = MappingProxyType({})


def find_objects(
    function: Function,
    memory: Mapping[Parameter, MemoryType | None],
    registry: Registry,
    noalias: frozenset[tuple[int, int]] = frozenset(),
    signatures: Signatures = NO_SIGNATURES,
    kinds: Mapping[Parameter, ParameterKind] = _NO_KINDS,
    addresses: KnownAddresses | None = None,
    *,
    is_entry: bool = False,
) -> PointsTo:
    """Solves the points-to problem of one function.

    Args:
        function: in normal form.
        memory: memory that its parameters point to.
        registry: the rules.
        noalias: pairs of parameters that are known not to overlap.
        signatures: signatures of callees.
        kinds: roles of the parameters; memory of parameters with different roles is distinguished.
        addresses: results for callees from analyses of the same module.
        is_entry: whether nothing ran before it that may have lent the memory of its parameters.
    """
    graph = PointsToGraph()
    parameters = ParameterObjects(graph, kinds)
    calls = CallObjects(graph, registry, signatures, KnownAddresses() if addresses is None else addresses)
    for param in function.params:
        if isinstance(param.type, PointerType):
            parameters.add(param, memory.get(param))
    _Solver(function, graph, calls).solve()
    contents = tuple(joined(parts.values()).mask for parts in graph.parts)
    numbers = {param: number for number, param in enumerate(function.params)}
    found = PointsTo(
        objects=tuple(graph.objects),
        pointees=graph.pointees,
        contents=contents,
        globals=graph.globals,
        overlaps=find_overlaps(graph.objects, numbers, noalias),
        parts=tuple(graph.parts),
        handed={call: calls.handed(call) for call in calls.own},
        declared=parameters.declared,
        prefixes=graph.prefixes,
    )
    exposed = found.reachable(_known_elsewhere(function, graph, registry))
    return replace(found, exposed=exposed, lent=_lent(function, found, registry, is_entry))


def _lent(function: Function, found: PointsTo, registry: Registry, is_entry: bool) -> int:
    """Memory whose address a library may have kept: memory lent here, by callees, or before by callers."""
    mask = 0
    for inst in function.instructions():
        if isinstance(inst, CallSite):
            callee = resolve(inst, registry)
            effects = effects_of(callee)
            if effects is None and is_remote(callee):
                mask |= reached_by(inst, found)
            elif effects is not None and effects.lends:
                mask |= union(found.mask(inst.arguments[number]) for number in effects.lends)
            elif effects is None or not effects.takes_lent:
                continue
            if not is_entry:
                mask |= union(1 << item.index for item in found.objects if item.kind not in SEPARATE)
    return mask


def _known_elsewhere(function: Function, graph: PointsToGraph, registry: Registry) -> int:
    """Memory that was not allocated in this function, and memory passed to code with unknown effects."""
    mask = union(1 << item.index for item in graph.objects if item.kind not in SEPARATE and not item.is_exclusive)
    for inst in function.instructions():
        if isinstance(inst, CallSite) and effects_of(resolve(inst, registry)) is None:
            mask |= union(graph.mask(argument) for argument in inst.arguments)
    return mask


@dataclass(eq=False, slots=True)
class _Solver:
    function: Function
    graph: PointsToGraph
    calls: CallObjects
    steps: Positions = field(default_factory=lambda: Positions(ANYWHERE))

    def solve(self) -> None:
        for inst in self.function.instructions():
            for operand in inst.operands:
                if isinstance(operand, GlobalVariable | GlobalAlias | ConstantExpression):
                    self.graph.mask(operand)  # so that every global in use is an object, loads of floats included
        instructions = [inst for inst in self.function.instructions() if _may_matter(inst)]
        for inst in instructions:
            if isinstance(inst, Alloca):
                self.graph.grow(inst, Targets(self.graph.new_object(ObjectKind.LOCAL, inst), START))
            elif isinstance(inst, CallSite):
                self.calls.add(inst)
        while self.graph.changed:
            self.graph.changed = False
            for inst in instructions:
                self.visit(inst)
            # An integer without pointees may still get some while the solution grows, so made-up addresses come last.
            if not self.graph.changed:
                self.visit_made_up(instructions)

    def visit_made_up(self, instructions: Iterable[Instruction]) -> None:
        """Addresses that were computed from no pointer may point anywhere; known only when all pointers are."""
        for inst in instructions:
            if isinstance(inst, Cast) and inst.opcode == "inttoptr" and not self.graph.mask(inst.operands[0]):
                self.graph.grow(inst, self.graph.unknown)

    def visit(self, inst: Instruction) -> None:
        graph, shape = self.graph, cast("AnyInstruction", inst)
        match shape:
            case ir.GetElementPtr(operands=[base, *_]) if not isinstance(base, Constant):
                mask, place = graph.targets(base)  # indices are numbers
                if mask:
                    graph.grow(inst, Targets(mask, place.moved(self.steps.steps_of(shape))))
            case ir.Phi() | ir.Select() | ir.Freeze() | ir.Cast(opcode="addrspacecast"):
                graph.grow(inst, joined(map(graph.targets, inst.operands)))
            case (
                ir.Cast() | ir.GetElementPtr() | ir.Binary() | ir.ExtractValue() | ir.InsertValue()
                | ir.ExtractElement() | ir.InsertElement() | ir.ShuffleVector()
            ):  # fmt: skip
                # Arithmetic on an address stays in its objects, at a place that nobody follows.
                graph.grow(inst, Targets(union(map(graph.mask, inst.operands)), ANYWHERE))
            case ir.Load(operands=[pointer]):
                self.load(inst, pointer)
            case ir.Store(operands=[value, pointer]):
                self.store(value, pointer)
            case ir.AtomicRMW(operands=[pointer, value]) | ir.CmpXchg(operands=[pointer, _, value]):
                self.load(inst, pointer)
                self.store(value, pointer)
            case ir.Call() | ir.Invoke() | ir.CallBr():
                self.calls.visit(shape)
            case (
                ir.Load() | ir.Store() | ir.AtomicRMW() | ir.CmpXchg() | ir.VAArg() | ir.LandingPad()
                | ir.ExceptionPad()
            ):  # fmt: skip
                graph.grow(inst, graph.unknown)
            case (
                ir.Alloca() | ir.Ret() | ir.Br() | ir.CondBr() | ir.Switch() | ir.IndirectBr() | ir.Unreachable()
                | ir.Resume() | ir.Fence() | ir.Unary() | ir.ICmp() | ir.FCmp() | ir.ExceptionTerminator()
            ):  # fmt: skip
                pass
            case _:
                assert_never(shape)

    def load(self, inst: Instruction, pointer: Value) -> None:
        self.graph.grow(inst, self.graph.loaded(_accessed(self.graph.targets(pointer), inst.type)))

    def store(self, value: Value, pointer: Value) -> None:
        self.graph.store(_accessed(self.graph.targets(pointer), value.type), self.graph.targets(value))


def _accessed(where: Targets, type_: Type) -> Targets:
    """Places of the pointers in a value that is loaded or stored: in a wide one, which may hold several, anywhere."""
    is_one = isinstance(type_, PointerType) or (isinstance(type_, IntType) and type_.bits <= _WORD)
    return where if is_one else Targets(where.mask, ANYWHERE)


def _may_matter(inst: Instruction) -> bool:
    """True if an instruction can carry or move a pointer (or its bits)."""
    return isinstance(inst, ir.Store | ir.Ret | CallSite) or may_hold_pointer(inst.type)
