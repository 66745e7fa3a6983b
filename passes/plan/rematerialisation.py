"""Rematerialisation: the values of a forward sweep that the reverse sweep can recompute, their operands and cost.

Input   both sweeps, what the reverse sweep knows about loops.
Output  `Rematerialisation`, asked by the plan and by the materialiser.
Limit   how often a loop runs is not known: a value in a loop is taken to be saved 16 times as often as one around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from irad.ir import instructions as ir, types
from irad.ir.loops import Loop
from irad.ir.module import Function
from irad.ir.trip_count import AffineVariable, affine_variables, is_invariant
from irad.ir.values import Constant, GlobalAlias, GlobalVariable, Parameter, Value
from irad.ir.worklist import Worklist
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.augmented.tape import size_in_memory
from irad.passes.callees import resolve
from irad.passes.memory.objects import ObjectKind
from irad.passes.plan.agreement import Pinned, has_fast_math_words
from irad.passes.plan.neighbouring_loads import Neighbour, neighbours_of
from irad.passes.plan.stored_values import StoredPlace, StoredValues
from irad.passes.reverse.control import AugmentedLoops
from irad.passes.reverse.sweep import Sweep
from irad.records import dataclass
from irad.ruleset.interface import Elementwise
from irad.ruleset.shortcut_slopes import VALUES

# Loads that find the same in each iteration of an outer loop: one slot serves for all of them.
#
# Input   the forward sweep, what the reverse sweep knows about loops.
# Output  `Repeated.around`: the loop around an inner loop in whose iterations a load runs through the same values.
# Method  the address depends on the inner loop's iteration only, the outer loop writes nothing there, and the inner
#         loop runs equally often in each of its iterations: its bounds, and the condition under which it is entered,
#         come from outside.
# Limit   one loop, the next around the innermost one; none in kernels, nor in code that is differentiated again.
#
#     for i: for j: s[i] += w[i, j] * x[j]      a slot for each j holds x[j], rewritten for each i


@dataclass(eq=False, slots=True)
class Repeated:
    """Answers for the loads of one forward sweep."""

    loops: AugmentedLoops
    affine: Mapping[Value, tuple[Loop, AffineVariable]]
    primal_of: Mapping[Value, ir.Instruction]
    _written: dict[Loop, int] = field(default_factory=dict)

    def around(self, value: Value) -> Loop | None:
        """The loop of the primal for all of whose iterations a value needs one slot; None if there is no such loop."""
        request = self.loops.augmented.program.request
        if not isinstance(value, ir.Load) or value.block is None or request.is_primal or request.host.is_shared:
            return None
        loop = self.loops.innermost.get(value.block)
        outer = loop.parent if loop is not None else None
        if loop is None or outer is None or not self._repeats(value, loop, outer):
            return None
        return outer if self.loops.runs_alike(loop, outer) else None

    def _repeats(self, value: Value, loop: Loop, outer: Loop) -> bool:
        """True if a value is a function of a loop's iteration, the same in each iteration of the loop around it."""
        twin = self.loops.twins[outer]
        pending = Worklist([value])
        for needed in pending:
            if is_invariant(needed, twin):
                continue
            match needed:
                case ir.Phi() if needed in self.affine and self.affine[needed][0] is loop:
                    variable = self.affine[needed][1]
                    pending.add(variable.start, *(() if isinstance(variable.step, int) else (variable.step,)))
                case ir.Load() if self._stays(needed, outer):
                    pending.add(*needed.operands)
                case ir.Binary() | ir.Cast() | ir.GetElementPtr() | ir.ICmp() | ir.Select():
                    pending.add(*needed.operands)
                case _:
                    return False
        return True

    def _stays(self, load: ir.Load, outer: Loop) -> bool:
        """True if a loop leaves the memory alone that a load reads."""
        primal, mod_ref = self.primal_of.get(load), self.loops.augmented.unit.mod_ref
        if not isinstance(primal, ir.Load) or not primal.is_plain:
            return False
        if outer not in self._written:
            self._written[outer] = mod_ref.changed_by(outer.order)
        touched = mod_ref.points_to.mask(primal.operands[0])
        return bool(touched) and not touched & self._written[outer] and not mod_ref.points_to.is_shared(touched)


_CHEAP_FUNCTIONS = frozenset(
    {"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign", "fma", "fmuladd"}
    | {"maxnum", "minnum", "maximum", "minimum", "fmax", "fmin"}
    | set(VALUES)  # they return an argument
)
_EFFORT = 0.25  # bytes saved and loaded in the time of one operation
_SLOW = 8  # operations that take as long as a division or a square root
_LIBRARY_CALL = 40  # operations that take as long as an exponential
_TIMES_IN_LOOP = 16.0  # how often a loop body is taken to run more than what is around it
_SCARCE = 1000.0  # how much dearer a slot for each iteration is where the size of the tape has to be a constant


@dataclass(eq=False, slots=True)
class Rematerialisation:
    """Decides which values of a forward sweep can be recomputed in the reverse sweep, and from which operands."""

    augmented: AugmentedPrimal
    loops: AugmentedLoops
    primal_of: Mapping[Value, ir.Instruction]
    affine: Mapping[Value, tuple[Loop, AffineVariable]]
    deciding: Mapping[Value, None]
    repeated: Repeated = field(init=False)
    stored: Mapping[Value, StoredPlace] = field(init=False)
    neighbours: Mapping[Value, Neighbour] = field(init=False)
    _pinned: Pinned = field(init=False)

    def __post_init__(self) -> None:
        self._pinned = Pinned(self._again, self.deciding)
        self.repeated = Repeated(self.loops, self.affine, self.primal_of)
        self.stored = {
            value: place
            for value, place in StoredValues.of(self.augmented).items()
            if self._is_worth_keeping(place.pointer, self.depth_of(value))
        }
        self.neighbours = {}
        self.neighbours = neighbours_of(self.augmented, self.loops.is_counted, self._needs_own_slots)

    @staticmethod
    def of(sweep: Sweep, loops: AugmentedLoops) -> Rematerialisation:
        """Collects the affine variables of all loops."""
        augmented = sweep.augmented
        primal_of = {copy: p for p, copy in augmented.values.items() if isinstance(p, ir.Instruction)}
        affine: dict[Value, tuple[Loop, AffineVariable]] = {}
        # The oracle recomputes nothing, not even the counters of loops.
        if not augmented.unit.everything:
            for primal, twin in loops.twins.items():
                for phi, variable in affine_variables(twin).items():
                    affine[phi] = (primal, variable)
        return Rematerialisation(augmented, loops, primal_of, affine, sweep.deciding)

    def operands(self, value: Value) -> list[Value] | None:
        """Operands from which a value is recomputed; None when it cannot be, must not be, or is not worth it."""
        # A recomputed float may be rounded differently: a decision or an index made of it would differ from the
        # forward sweep's, and reach another element or unwind another number of iterations.
        return None if self._pinned.is_pinned(value) else self._again(value)

    def _again(self, value: Value) -> list[Value] | None:
        """Operands from which a value is recomputed, without regard to pinned roundings."""
        if self.augmented.unit.everything or not isinstance(value, ir.Instruction):
            return None
        if value in self.affine:
            _, variable = self.affine[value]
            return [variable.start] if isinstance(variable.step, int) else [variable.start, variable.step]
        if value in self.stored:
            return [self.augmented.value(self.stored[value].pointer)]
        if value in self.neighbours:
            return [self.neighbours[value].load]
        match value:
            case (
                ir.Binary()
                | ir.Unary()
                | ir.ICmp()
                | ir.FCmp()
                | ir.Cast()
                | ir.Select()
                | ir.GetElementPtr()
                | ir.ExtractValue()
            ):
                return value.operands
            case ir.InsertValue() | ir.ExtractElement() | ir.InsertElement() | ir.ShuffleVector():
                return value.operands
            # Inside a kernel the tape has no room for a slot per iteration, so that even an exponential is called
            # again.
            case ir.CallSite() if self._is_cheap_call(value) or (self._is_scarce and self._is_function(value)):
                return value.arguments
            case ir.Load() if self._can_load_again(value):
                return value.operands
            case _:
                return None

    def cost(self, value: Value) -> float:
        """Of saving a value: bytes written and read per run, weighted by the depth of the loops around."""
        if isinstance(value, Parameter):
            return 0.01
        depth = self.depth_of(value)
        # The load runs through the same values in each iteration of the outer loop, which share one slot.
        slots_of = depth - 1 if depth > 1 and self.repeated.around(value) is not None else depth
        return (
            size_in_memory(value.type) * _TIMES_IN_LOOP**slots_of * (_SCARCE if slots_of and self._is_scarce else 1.0)
        )

    @property
    def _is_scarce(self) -> bool:
        """True if the tape is in the local memory of a thread: a loop may have no slot for each of its iterations."""
        return self.augmented.program.request.host.is_inside

    def effort(self, value: Value) -> float:
        """Of computing a value again from its operands, in the unit of `cost`."""
        return _EFFORT * self._operations(value) * _TIMES_IN_LOOP ** self.depth_of(value)

    def depth_of(self, value: Value) -> int:
        """Number of loops around a value of the forward sweep."""
        block = value.block if isinstance(value, ir.Instruction) else None
        loop = self.loops.innermost.get(block) if block is not None else None
        return loop.depth if loop is not None else 0

    def obstacle(self, value: Value) -> str:
        """In words: why a value whose `operands` are None is not recomputed."""
        if self._pinned.is_pinned(value):
            return self._why_pinned(value)
        match value:
            case Parameter():
                return "it is an argument"
            case ir.Phi():
                return "its value depends on which branch ran"
            case ir.CallSite():
                return f"{self._described(value)} is not called again"
            case ir.Load():
                return self._why_not_again(value)
            case _:
                return "only the forward sweep computes it"

    def _why_pinned(self, value: Value) -> str:
        by_user = any(map(has_fast_math_words, self.augmented.function.instructions()))
        cause = "fastmath may round" if by_user else "LLVM may round"
        return f"it decides something, and {cause} what it is made of differently in the reverse sweep"

    def _described(self, call: ir.CallSite) -> str:
        callee = call.callee
        rule = resolve(call, self.augmented.unit.registry)
        if isinstance(rule, Elementwise):
            return f"{rule.name}, which costs more than a load,"
        return str(callee.name) if isinstance(callee, Function) else "the target of a pointer"

    def _why_not_again(self, load: ir.Load) -> str:
        primal = self.primal_of.get(load)
        if not isinstance(primal, ir.Load):
            return "a pointer in shadow memory is not loaded again"
        if not load.is_plain:
            return "it is a volatile or atomic load"
        if not self.augmented.unit.effects.is_overwritten(primal.operands[0], primal):
            return "it is not loaded again: its array, made as often, would have to stay alive"
        return f"it is not loaded again: {self.augmented.unit.effects.explain(primal.operands[0], primal)}"

    def _operations(self, value: Value) -> int:
        """Number of operations that a value takes; those on addresses and integers do not count."""
        match value:
            case _ if isinstance(value, ir.Load) or value in self.stored:
                return 1
            case ir.Binary(opcode="fdiv" | "frem"):
                return _SLOW
            case ir.CallSite() if isinstance(callee := resolve(value, self.augmented.unit.registry), Elementwise):
                cheap = _SLOW if callee.name == "sqrt" else 1
                return cheap if callee.name in _CHEAP_FUNCTIONS else _LIBRARY_CALL
            case ir.Binary() | ir.Unary() | ir.FCmp() | ir.Select() | ir.Cast():
                return any(types.holds_floats(operand.type) for operand in value.operands)
            case _:
                return 0

    def _is_function(self, call: ir.CallSite) -> bool:
        return isinstance(resolve(call, self.augmented.unit.registry), Elementwise)

    def _is_cheap_call(self, call: ir.CallSite) -> bool:
        callee = resolve(call, self.augmented.unit.registry)
        if isinstance(callee, Elementwise):
            return callee.name in _CHEAP_FUNCTIONS
        return _is_integer_intrinsic(call)

    def _can_load_again(self, load: ir.Load) -> bool:
        primal = self.primal_of.get(load)
        if not isinstance(primal, ir.Load) or not load.is_plain:
            return False
        if self.augmented.unit.effects.is_overwritten(primal.operands[0], primal):
            return False
        return self._is_worth_keeping(primal.operands[0], self.depth_of(load))

    def _needs_own_slots(self, value: Value) -> bool:
        """True if a value can only be saved, once in each iteration."""
        return self.operands(value) is None and self.repeated.around(value) is None

    def _is_worth_keeping(self, pointer: Value, depth: int) -> bool:
        """True if memory is read more often than allocated: many small arrays that stay alive cost more than a tape."""
        unit, depths = self.augmented.unit, [0]
        for item in unit.points_to.of(pointer):
            if item.kind is ObjectKind.ALLOCATION and item.value is not None:
                depths.append(self.depth_of(self.augmented.values.get(item.value, item.value)))
        return depth > max(depths) or not max(depths)


def _is_integer_intrinsic(call: ir.CallSite) -> bool:
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return False
    stem = callee.name.rpartition(".")[0]
    return stem in ("llvm.smax", "llvm.smin", "llvm.umax", "llvm.umin", "llvm.abs", "llvm.fshl", "llvm.ctpop")


def is_free(value: Value) -> bool:
    """True if a value needs neither saving nor recomputing."""
    return isinstance(value, Constant | GlobalVariable | GlobalAlias | Function)
