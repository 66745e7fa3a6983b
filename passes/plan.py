"""The plan: which needed values are saved on the tape and which are recomputed in the reverse sweep.

Input   a forward sweep, the needs of its reverse sweep.
Output  `Plan`: the values to save. All others that are needed can be recomputed from those.
Method  minimum cut. A value that cannot be recomputed hangs on the source; every needed value on the sink; edges go
        from the operands of a value that can be recomputed to it. A cut through a value costs the bytes of its slot
        times how often it is written. So chains of cheap operations are recomputed from few saved values, and linear
        code saves nothing.
Limit   `save_all` saves every need as it is.

    %i  induction variable of a counted loop        start + step · iteration
    %p  getelementptr, integer arithmetic, casts    recomputed
    %v  load from memory that stays as it is        loaded again
    %e  call of exp, phi of a branch                saved
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from irad.ir.instructions import (
    Binary,
    CallSite,
    Cast,
    ExtractElement,
    ExtractValue,
    FCmp,
    GetElementPtr,
    ICmp,
    InsertElement,
    InsertValue,
    Instruction,
    Load,
    Select,
    ShuffleVector,
    Unary,
)
from irad.ir.loops import Loop
from irad.ir.module import Function
from irad.ir.trip_count import AffineVariable, affine_variables
from irad.ir.values import Constant, GlobalAlias, GlobalVariable, Parameter, Value
from irad.passes.callees import resolve
from irad.passes.forward import Forward
from irad.passes.minimum_cut import Flow, minimum_cut
from irad.passes.reverse.control import ForwardLoops
from irad.passes.tape import size_in_memory
from irad.ruleset.interface import Elementwise

_CHEAP_FUNCTIONS = frozenset(
    {"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign", "fma", "fmuladd"}
    | {"maxnum", "minnum", "maximum", "minimum", "fmax", "fmin"}
)
_TIMES_IN_LOOP = 16.0  # how often a loop body is taken to run more than what is around it


class LoopMode(enum.Enum):
    """How the reverse sweep goes through a loop."""

    COUNTED = "counted"  # the trip count is known before the loop: saved values in a slab
    RECORDED = "recorded"  # it is counted while it runs: a record per iteration


@dataclass(frozen=True, slots=True)
class Plan:
    """What is saved, how loops are reversed; the reason for each value is in ``reasons``."""

    saved: tuple[Value, ...]
    modes: Mapping[Loop, LoopMode]
    reasons: Mapping[Value, str]

    def explain(self, value: Value) -> str:
        """In words: saved, recomputed or not needed, and why."""
        return self.reasons.get(value, "not needed by the reverse sweep")


@dataclass(eq=False, slots=True)
class Recipes:
    """Knows which values of a forward sweep can be computed again in the reverse sweep, and from what."""

    forward: Forward
    loops: ForwardLoops
    primal_of: Mapping[Value, Instruction]
    affine: Mapping[Value, tuple[Loop, AffineVariable]]

    @staticmethod
    def of(forward: Forward, loops: ForwardLoops) -> Recipes:
        """Collects the affine variables of all loops."""
        primal_of = {copy: p for p, copy in forward.values.items() if isinstance(p, Instruction)}
        affine: dict[Value, tuple[Loop, AffineVariable]] = {}
        if not forward.unit.everything:
            for primal, twin in loops.twins.items():
                for phi, variable in affine_variables(twin).items():
                    affine[phi] = (primal, variable)
        return Recipes(forward, loops, primal_of, affine)

    def operands(self, value: Value) -> list[Value] | None:
        """What a value is recomputed from; None when it cannot be, or is not worth it."""
        if self.forward.unit.everything or not isinstance(value, Instruction):
            return None
        if value in self.affine:
            _, variable = self.affine[value]
            return [variable.start] if isinstance(variable.step, int) else [variable.start, variable.step]
        match value:
            case Binary() | Unary() | ICmp() | FCmp() | Cast() | Select() | GetElementPtr() | ExtractValue():
                return value.operands
            case InsertValue() | ExtractElement() | InsertElement() | ShuffleVector():
                return value.operands
            case CallSite() if self._is_cheap_call(value):
                return value.arguments
            case Load() if self._can_load_again(value):
                return value.operands
            case _:
                return None

    def _is_cheap_call(self, call: CallSite) -> bool:
        callee = resolve(call, self.forward.unit.registry)
        if isinstance(callee, Elementwise):
            return callee.name in _CHEAP_FUNCTIONS
        return _is_integer_intrinsic(call)

    def _can_load_again(self, load: Load) -> bool:
        primal = self.primal_of.get(load)
        if not isinstance(primal, Load) or load.volatile or load.ordering is not None:
            return False
        return not self.forward.unit.effects.is_overwritten(primal.operands[0], primal)


def _is_integer_intrinsic(call: CallSite) -> bool:
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return False
    stem = callee.name.rpartition(".")[0]
    return stem in ("llvm.smax", "llvm.smin", "llvm.umax", "llvm.umin", "llvm.abs", "llvm.fshl", "llvm.ctpop")


def is_free(value: Value) -> bool:
    """Whether a value needs neither saving nor recomputing."""
    return isinstance(value, Constant | GlobalVariable | GlobalAlias | Function)


def make_plan(forward: Forward, recipes: Recipes, needs: Iterable[Value]) -> Plan:
    """Chooses what to save for the given needs."""
    wanted = [v for v in dict.fromkeys(needs) if not is_free(v)]
    if forward.unit.everything:
        return Plan(tuple(wanted), _modes(recipes), dict.fromkeys(wanted, "saved: the plan is save_all"))
    flow: Flow[Value] = Flow()
    sources: list[Value] = []
    own = {forward.frame_pointer, forward.arena}
    seen: dict[Value, None] = {}
    pending = list(wanted)
    while pending:
        value = pending.pop()
        if value in seen or is_free(value) or value in own:
            continue
        seen[value] = None
        flow.add_node(value, _cost(value, recipes))
        operands = recipes.operands(value)
        if operands is None:
            sources.append(value)
            continue
        pending.extend(v for v in operands if not is_free(v))
    for value in seen:
        for operand in recipes.operands(value) or ():
            if operand in seen:
                flow.add_edge(operand, value)
    saved = tuple(minimum_cut(flow, sources, wanted)) if sources else ()
    return Plan(saved, _modes(recipes), _reasons(recipes, seen, frozenset(saved)))


def _modes(recipes: Recipes) -> dict[Loop, LoopMode]:
    loops = recipes.loops
    return {loop: LoopMode.RECORDED if loops.trip(loop) is None else LoopMode.COUNTED for loop in loops.twins}


def _cost(value: Value, recipes: Recipes) -> float:
    """Bytes written and read per run, weighted by the depth of the loops around."""
    if isinstance(value, Parameter):
        return 0.01
    depth = 0
    if isinstance(value, Instruction) and value.block is not None:
        depth = depth_of(value, recipes)
    return size_in_memory(value.type) * _TIMES_IN_LOOP**depth


def depth_of(value: Instruction, recipes: Recipes) -> int:
    """How many loops are around a value of the forward sweep."""
    loop = recipes.loops.innermost.get(value.block) if value.block is not None else None
    return loop.depth if loop is not None else 0


def _reasons(recipes: Recipes, seen: Iterable[Value], saved: Set[Value]) -> dict[Value, str]:
    reasons: dict[Value, str] = {}
    for value in seen:
        if value in saved:
            times = f", {depth_of(value, recipes)} loops around" if isinstance(value, Instruction) else ""
            reasons[value] = f"saved: {size_in_memory(value.type)} bytes{times}"
        elif recipes.operands(value) is not None:
            reasons[value] = "recomputed"
        else:
            reasons[value] = "not needed once others are saved"
    return reasons
