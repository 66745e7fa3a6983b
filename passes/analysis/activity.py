"""Activity: which values carry a derivative, and which memory needs a shadow.

Input   a function, where its pointers point, how its parameters take part, the rules.
Output  `Activity`. The function is not changed.
Method  varied: forward from what the request differentiates; useful: backward from what the caller gets to see;
        active is both. Memory is followed object by object. Then shadows: every object that is active, or merges in a
        pointer with one that has a shadow, or holds pointers to one. All of it only grows, so it ends.
Limit   an object is active as a whole: one active element makes the array active.

    %m = fmul double %x, %x          x active → m varied; m stored to the result → m useful: active
    %i = fptosi double %m to i64     integers carry no derivative
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import field
from typing import assert_never, cast

from irad.ir import instructions as ir
from irad.ir.instructions import CallSite, Instruction
from irad.ir.module import Function
from irad.ir.types import ArrayType, FunctionType, NamedStructType, StructType, holds_floats
from irad.ir.values import Constant, GlobalVariable, Parameter, Value
from irad.passes.callees import Pointer, Unknown, is_from_outside, is_remote, resolve
from irad.passes.memory.memory_types import MemoryTypes
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import MemoryObject, ObjectKind, PointsTo
from irad.passes.memory.signatures import Signatures, takes_no_numbers
from irad.passes.request import ParameterKind
from irad.records import dataclass
from irad.ruleset.interface import CallRule, Elementwise, Inactive
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class Activity:
    """Values and memory that carry a derivative.

    Attributes:
        active: float values (and aggregates of them) with a cotangent.
        shadowed: the memory objects that have a shadow, as a mask.
        active_objects: those whose floats are active, as a mask; the others have a shadow
            only because a pointer may reach both.
        points_to: the result this one is built on.
        varied, useful: floats that depend on an active input; floats on which an output depends.
        varied_objects, useful_objects: the same of memory, as masks.
        constant_calls: calls that stay as they are: of rules, where nothing active comes out; and those of which only
            `save_all` takes the arguments as active.
        remote_calls: calls that take part whatever is active.
        calls_by_value: under `save_all` the calls that `passes_by_value` is true of.
        really_varied: under `save_all` what ``varied`` is without it.
    """

    active: frozenset[Value]
    shadowed: int
    active_objects: int
    points_to: PointsTo
    reasons: Mapping[Value, str]
    varied: frozenset[Value] = frozenset()
    useful: frozenset[Value] = frozenset()
    varied_objects: int = 0
    useful_objects: int = 0
    constant_calls: frozenset[Value] = frozenset()
    remote_calls: frozenset[Value] = frozenset()
    calls_by_value: frozenset[Value] | None = None
    really_varied: frozenset[Value] | None = None

    def takes_part(self, call: ir.CallSite) -> bool:
        """True if any argument or the result of a call is active, or numbers of other programs pass through it."""
        if call in self.remote_calls:
            return True
        if call in self.constant_calls:
            return False
        return self.is_active(call) or any(self.is_active(a) for a in call.arguments)

    def passes_by_value(self, call: ir.CallSite) -> bool:
        """True if memory with a shadow goes into a call, or comes out, through a pointer in an aggregate."""
        if self.calls_by_value is not None:
            return call in self.calls_by_value
        values = (*call.arguments, call)
        return any(isinstance(v.type, StructType | NamedStructType | ArrayType) and self.has_shadow(v) for v in values)

    def is_active(self, value: Value) -> bool:
        """True if a float value carries a derivative, or a pointer has a shadow."""
        return value in self.active or self.has_shadow(value)

    def depends_on_input(self, value: Value) -> bool:
        """True if a float depends on an active input; an output's derivative with respect to it may still be zero."""
        return value in (self.varied if self.really_varied is None else self.really_varied)

    def has_shadow(self, pointer: Value) -> bool:
        """True if a pointer comes with a shadow pointer."""
        return bool(self.points_to.mask(pointer) & self.shadowed)

    def explain(self, value: Value) -> str:
        """In words: why active, why constant."""
        if value in self.active:
            return f"active: {self.reasons.get(value, 'depends on an active input and reaches an active output')}"
        if self.has_shadow(value):
            return f"has a shadow: {self.points_to.explain(value)}"
        if not holds_floats(value.type):
            return "constant: its type holds no floating-point number"
        return f"constant: {self.reasons.get(value, 'no active input reaches it')}"


def find_activity(
    function: Function,
    kinds: Mapping[Parameter, ParameterKind],
    mod_ref: ModRef,
    shadowable: frozenset[Parameter],
    *,
    result_active: bool = False,
    constant: int = 0,
) -> Activity:
    """Solves activity for one function.

    Args:
        function: in normal form.
        kinds: role of each parameter.
        mod_ref: of the same function.
        shadowable: the pointer parameters whose memory can have a shadow.
        result_active: whether the caller has a cotangent for the returned value.
        constant: objects that are taken to hold nothing active, whatever is stored there.
    """
    solver = _Solver(function, kinds, mod_ref, mod_ref.points_to, shadowable, result_active, constant)
    solver.solve()
    return solver.result()


def mask_of(items: Iterable[MemoryObject]) -> int:
    """A set of objects."""
    mask = 0
    for item in items:
        mask |= 1 << item.index
    return mask


def can_have_shadow(item: MemoryObject, shadowable: frozenset[Parameter], registry: Registry) -> bool:
    """True if there may be a shadow of an object."""
    if isinstance(item.value, ir.CallSite) and isinstance(resolve(item.value, registry), Inactive):
        return False  # what it makes is constant
    match item.kind:
        case ObjectKind.LOCAL | ObjectKind.ALLOCATION | ObjectKind.HEADER:
            return True
        case ObjectKind.ARGUMENT | ObjectKind.REACHABLE:
            return item.value in shadowable
        case ObjectKind.GLOBAL:
            return isinstance(item.value, GlobalVariable) and item.value.initializer is not None
        case ObjectKind.UNKNOWN:
            return False


@dataclass(eq=False, slots=True)
class _Solver:
    function: Function
    kinds: Mapping[Parameter, ParameterKind]
    mod_ref: ModRef
    points_to: PointsTo
    shadowable: frozenset[Parameter]
    result_active: bool
    constant: int = 0
    varied: dict[Value, None] = field(default_factory=dict)
    useful: dict[Value, None] = field(default_factory=dict)
    varied_objects: int = 0
    useful_objects: int = 0
    changed: bool = True

    def solve(self) -> None:
        seeds = 0
        for param, kind in self.kinds.items():
            if kind is ParameterKind.ACTIVE:
                self.varied[param] = None
            elif kind is ParameterKind.SHADOW:
                seeds |= self.points_to.mask(param)
        self.varied_objects = self.useful_objects = self.points_to.reachable(seeds) & ~self.constant
        instructions = list(self.function.instructions())
        self.run(instructions, self.vary)
        self.run(instructions[::-1], self.use)

    def run(self, instructions: list[ir.Instruction], step: Callable[[ir.Instruction], None]) -> None:
        self.changed = True
        while self.changed:
            self.changed = False
            for inst in instructions:
                step(inst)

    # -------------------------------------------------------------------------------------------- varied

    def mark_varied(self, value: Value) -> None:
        if value not in self.varied and holds_floats(value.type):
            self.varied[value] = None
            self.changed = True

    def vary_objects(self, mask: int) -> None:
        mask &= ~self.constant
        if mask & ~self.varied_objects:
            self.varied_objects |= mask
            self.changed = True

    def vary(self, inst: ir.Instruction) -> None:
        match inst:
            case ir.Store(operands=[value, pointer]):
                if value in self.varied:
                    self.vary_objects(self.points_to.mask(pointer))
            case ir.Load():
                if self.points_to.mask(inst.operands[0]) & self.varied_objects:
                    self.mark_varied(inst)
            case ir.CallSite():
                self.vary_call(inst)
            case _ if differentiable_operands(inst):
                if any(v in self.varied for v in differentiable_operands(inst)):
                    self.mark_varied(inst)
            case _:
                pass

    def vary_call(self, call: ir.CallSite) -> None:
        callee = self.mod_ref.callee(call)
        match callee:
            case Elementwise():
                if any(callee.depends_on(i) and call.arguments[i] in self.varied for i in range(callee.arity)):
                    self.mark_varied(call)
            case Inactive():
                if any(v in self.varied for v in call.arguments):
                    self.vary_objects(self.points_to.mask(call))  # a Python object made of it
            case CallRule() | Function() | Pointer() | Unknown():
                access = self.mod_ref.of(call)
                is_varied = access.numbers_from & self.varied_objects or any(v in self.varied for v in call.arguments)
                if is_varied or is_remote(callee):
                    self.mark_varied(call)
                    self.vary_objects((access.numbers_to | access.made) & ~self.own_objects(call, callee))
                for to, origin in access.moves:
                    if origin & self.varied_objects:
                        self.vary_objects(to)

    def own_objects(self, call: ir.CallSite, callee: object) -> int:
        """The objects in which a rule leaves what depends on their own content only, as a mask."""
        if not isinstance(callee, CallRule) or not callee.own:
            return 0
        own = others = 0
        for i in sorted(callee.effects.writes):
            mask = self.points_to.mask(call.arguments[i])
            own, others = (own | mask, others) if i in callee.own else (own, others | mask)
        return own & ~others

    # -------------------------------------------------------------------------------------------- useful

    def mark_useful(self, value: Value) -> None:
        if value not in self.useful and not isinstance(value, Constant) and holds_floats(value.type):
            self.useful[value] = None
            self.changed = True

    def use_objects(self, mask: int) -> None:
        if mask & ~self.useful_objects:
            self.useful_objects |= mask
            self.changed = True

    def use(self, inst: ir.Instruction) -> None:
        match inst:
            case ir.Store(operands=[value, pointer]):
                if self.points_to.mask(pointer) & self.useful_objects:
                    self.mark_useful(value)
            case ir.Load():
                if inst in self.useful:
                    self.use_objects(self.points_to.mask(inst.operands[0]))
            case ir.CallSite():
                self.use_call(inst)
            case ir.Ret():
                if self.result_active:
                    for value in inst.operands:
                        self.mark_useful(value)
            case _:
                if inst in self.useful:
                    for value in differentiable_operands(inst):
                        self.mark_useful(value)

    def use_call(self, call: ir.CallSite) -> None:
        callee = self.mod_ref.callee(call)
        match callee:
            case Elementwise():
                if call in self.useful:
                    for i in range(callee.arity):
                        if callee.depends_on(i):
                            self.mark_useful(call.arguments[i])
            case Inactive():
                pass
            case CallRule() | Function() | Pointer() | Unknown():
                access = self.mod_ref.of(call)
                is_useful = call in self.useful or (access.numbers_to | access.made) & self.useful_objects
                if is_useful or is_remote(callee):
                    for value in call.arguments:
                        self.mark_useful(value)
                    self.use_objects(access.numbers_from)
                for to, origin in access.moves:
                    if to & self.useful_objects:
                        self.use_objects(origin)

    # -------------------------------------------------------------------------------------------- shadows

    def result(self) -> Activity:
        active = frozenset(v for v in self.varied if v in self.useful)
        active_objects = self.varied_objects & self.useful_objects
        shadowed, idle = self.without_idle_calls(active_objects, active)
        reasons = {v: "no output depends on it" for v in self.varied if v not in self.useful}
        return Activity(
            active,
            shadowed,
            active_objects,
            self.points_to,
            reasons,
            frozenset(self.varied),
            frozenset(self.useful),
            self.varied_objects,
            self.useful_objects,
            constant_calls=idle,
            remote_calls=frozenset(self.remote_calls()),
        )

    def remote_calls(self) -> Iterator[ir.CallSite]:
        """The calls in which numbers leave the program or come into it."""
        for call in self.function.instructions():
            if isinstance(call, ir.CallSite) and is_remote(self.mod_ref.callee(call)):
                yield call

    def without_idle_calls(self, active_objects: int, active: Set[Value]) -> tuple[int, frozenset[Value]]:
        """The objects with a shadow, and the calls of rules from which nothing comes out that has a derivative.

        Such a call is left as it is: its rule would get no cotangent. What a rule writes has to be known for that, and
        nothing of it may need a shadow for other reasons.
        """
        outputs = {call: mask for call, mask in self.outputs_of_rules() if call not in active}
        idle = {call for call, mask in outputs.items() if not mask & active_objects}
        while True:
            shadowed = self.close_shadows(active_objects, idle)
            busy = {call for call in idle if outputs[call] & shadowed}
            if not busy:
                return shadowed, frozenset(idle)
            idle -= busy

    def outputs_of_rules(self) -> Iterator[tuple[ir.CallSite, int]]:
        """Calls of functions with a user's rule, and the objects that they write, if known."""
        for call in self.function.instructions():
            if not (isinstance(call, ir.CallSite) and isinstance(call.callee, Function)):
                continue
            access = self.mod_ref.of(call)
            if not access.is_opaque and is_from_outside(call.callee, self.mod_ref.registry):
                yield call, access.numbers_to | access.made

    def close_shadows(self, active_objects: int, idle: Set[Value]) -> int:
        possible = mask_of(
            o for o in self.points_to.objects if can_have_shadow(o, self.shadowable, self.mod_ref.registry)
        )
        groups = dict.fromkeys(mask for mask, _ in self.points_to.pointees.values())
        for call in self.function.instructions():
            if isinstance(call, ir.CallSite) and call not in idle and (access := self.mod_ref.of(call)).is_opaque:
                groups[access.reads] = None
        shadowed = active_objects & possible
        previous = -1
        while shadowed != previous:
            previous = shadowed
            for mask in groups:
                if mask & shadowed:
                    shadowed |= mask & possible
            for item in self.points_to.members(possible & ~shadowed):
                if self.points_to.contents[item.index] & shadowed:
                    shadowed |= 1 << item.index
        return shadowed


def differentiable_operands(inst: ir.Instruction) -> list[Value]:
    """The operands through which a derivative flows into the result; not for loads, stores and calls."""
    match cast("ir.AnyInstruction", inst):
        case (
            ir.Binary()
            | ir.Unary()
            | ir.Phi()
            | ir.Freeze()
            | ir.ExtractValue()
            | ir.InsertValue()
            | ir.ShuffleVector()
        ):
            return inst.operands if holds_floats(inst.type) else []
        case ir.Select():
            return inst.operands[1:]
        case ir.Cast(opcode="fpext" | "fptrunc" | "bitcast"):
            return inst.operands
        case ir.ExtractElement() | ir.InsertElement():
            return inst.operands[:-1]
        case (
            ir.Load()
            | ir.Store()
            | ir.AtomicRMW()
            | ir.CmpXchg()
            | ir.VAArg()
            | ir.Call()
            | ir.Invoke()
            | ir.CallBr()
            | ir.Ret()
        ):
            return []  # by way of memory, or of a callee: `refusals` sees to what cannot be followed
        case (
            ir.GetElementPtr() | ir.ICmp() | ir.Br() | ir.CondBr() | ir.Cast() | ir.FCmp() | ir.Alloca() | ir.Fence()
            | ir.Switch() | ir.IndirectBr() | ir.Unreachable() | ir.Resume() | ir.LandingPad() | ir.ExceptionPad()
            | ir.ExceptionTerminator()
        ):  # fmt: skip
            return []  # no numbers, or none that change smoothly
        case shape:
            assert_never(shape)


# What the oracle treats as active: everything, as far as it can.
#
# Input   a function with its analyses, its real activity among them.
# Output  an `Activity` in which every float is active and all memory has a shadow.


def everything(
    function: Function,
    points_to: PointsTo,
    memory_types: MemoryTypes,
    shadowable: frozenset[Parameter],
    registry: Registry,
    really: Activity,
    signatures: Signatures | None = None,
) -> Activity:
    """The plan `save_all`: every float is active and all memory has a shadow, as far as it can.

    Not the results of callees that may have no derivative, where nothing is ``really`` active: they stay constant, as
    do calls of functions that take no numbers by their ``signatures``. Nor
    memory that is one of several a pointer may point to, if another can have no shadow: the pointer's might be null.
    """
    declared = signatures or {}
    constant = frozenset(i for i in function.instructions() if _is_constant_call(i, registry, really, declared))
    active: dict[Value, None] = {p: None for p in function.params if holds_floats(p.type)}
    for inst in function.instructions():
        if holds_floats(inst.type) and inst not in constant:
            active[inst] = None
    shadowed = mask_of(
        o
        for o in points_to.objects
        if can_have_shadow(o, shadowable, registry)
        and (memory_types.holds_floats(1 << o.index) or memory_types.holds_pointers >> o.index & 1)
    )
    by_value = frozenset(i for i in function.instructions() if isinstance(i, CallSite) and really.passes_by_value(i))
    shadowed = _without_mixed(points_to, shadowed, really.shadowed)
    return Activity(
        frozenset(active),
        shadowed,
        shadowed,
        points_to,
        {},
        constant_calls=constant,
        remote_calls=really.remote_calls,
        calls_by_value=by_value,
        really_varied=really.varied,
    )


def _without_mixed(points_to: PointsTo, shadowed: int, needed: int) -> int:
    """Removes from a set of objects those that a pointer may mix with others, and the objects they point to."""
    groups = dict.fromkeys(mask for mask, _ in points_to.pointees.values())
    previous = -1
    while shadowed != previous:
        previous = shadowed
        for mask in groups:
            if mask & ~shadowed:
                shadowed &= ~mask | needed
        for item in points_to.objects:
            if not shadowed >> item.index & 1:
                shadowed &= ~points_to.contents[item.index] | needed
    return shadowed


def _is_constant_call(inst: Instruction, registry: Registry, really: Activity, signatures: Signatures) -> bool:
    """True if a call gives a constant: an unknown callee to which active values go has been refused before."""
    if not isinstance(inst, CallSite):
        return False
    match resolve(inst, registry):
        case Inactive() | Unknown():
            return True
        case Pointer() | Function(function_type=FunctionType(variadic=True)):
            return not really.takes_part(inst)
        case Function() as function:
            return takes_no_numbers(function, signatures)
        case Elementwise() | CallRule():
            return False
