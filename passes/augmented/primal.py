"""The augmented primal under construction: the maps from primal values to their counterparts.

It is the first function of each mode: in reverse mode the forward sweep, in forward mode the primal with its tangents.
`irad.passes.augmented.shadows` builds it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import field
from typing import Any

from irad.errors import InternalError
from irad.ir import types
from irad.ir.instructions import (
    CallSite,
)
from irad.ir.module import Block, Function
from irad.ir.types import PointerType
from irad.ir.values import (
    Constant,
    ConstantExpression,
    ConstantNull,
    GlobalVariable,
    Parameter,
    Value,
)
from irad.passes.augmented.alias_scopes import AliasScopes, rank_objects
from irad.passes.augmented.tape import FrameLayout
from irad.passes.parallel.modes import WINDOW_SIZE
from irad.passes.program import DerivedFunctions, Program
from irad.passes.unit import Unit
from irad.passes.variant import PointerVariant
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class PointerFrame:
    """A call through a pointer here: the frame, the pair found (see `runtime.POINTER_PAIR`), the call of it."""

    frame: Value
    pair: Value
    call: Value
    variant: PointerVariant


@dataclass(eq=False, slots=True)
class AugmentedPrimal:
    """The augmented primal under construction.

    Attributes:
        values: primal value → value here (parameters, instructions, blocks).
        shadows: primal pointer → shadow here.
        tangents: active primal float → tangent here, in forward mode; None where it is known to be zero.
        rule_values: values passed from the augmented to the reverse part of a call's rule, by primal call.
        callee_frames: the frame of a call of another pair, by primal call; with the pair.
        pointer_frames: the same of calls through pointers.
        frame: layout of this pair's own frame.
        kept: allocations that the reverse sweep reads again, as a mask.
        windows: number of the window that a lane has of a parameter's array; windows come first in the frame.
        scopes: alias scopes of the augmented primal.
        lanes: the same with what each direction has of its own, shadows and tangents; this is the first.
        lane: its number.
        lane_rules: calls whose rule adds something in each lane.
        shared: values made once beside an instruction, for all lanes.
    """

    program: Program
    unit: Unit
    pair: DerivedFunctions
    values: dict[Value, Value] = field(default_factory=dict)
    shadows: dict[Value, Value] = field(default_factory=dict)
    tangents: dict[Value, Value | None] = field(default_factory=dict)
    rule_values: dict[CallSite, tuple[Value, ...]] = field(default_factory=dict)
    callee_frames: dict[CallSite, tuple[Value, DerivedFunctions]] = field(default_factory=dict)
    pointer_frames: dict[CallSite, PointerFrame] = field(default_factory=dict)
    frame: FrameLayout = field(default_factory=FrameLayout)
    kept: int = 0
    windows: dict[Parameter, int] = field(default_factory=dict)
    scopes: AliasScopes = field(init=False)
    lanes: list[AugmentedPrimal] = field(default_factory=list)
    lane: int = 0
    lane_rules: set[CallSite] = field(default_factory=set)
    shared: dict[tuple[Value, str], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unit, width = self.unit, self.program.request.mode.width
        ranked = rank_objects(unit.points_to, unit.cfg, unit.loops)
        self.scopes = AliasScopes(self.program.module, unit.points_to, not unit.everything, ranked, width)
        shared = self.unit.sharing.shared() if self.unit.sharing is not None else []
        self.frame.region(WINDOW_SIZE * len(shared) * width, 8)
        self.lanes.append(self)
        for lane in range(1, width):
            other = copy(self)
            other.shadows, other.tangents, other.rule_values, other.windows, other.lane = {}, {}, {}, {}, lane
            self.lanes.append(other)
        for each in self.lanes:
            each.windows |= {param: each.lane * len(shared) + number for number, param in enumerate(shared)}

    @property
    def function(self) -> Function:
        """The function."""
        return self.pair.first

    @property
    def frame_pointer(self) -> Parameter:
        """The parameter that points to the frame."""
        return self.function.params[0]

    @property
    def arena(self) -> Parameter:
        """The parameter that points to the arena."""
        return self.function.params[1]

    def value(self, primal: Value) -> Value:
        """The value here of a primal value; constants and globals are their own copies."""
        return self.values.get(primal, primal)

    def block(self, primal: Block) -> Block:
        """The copy of a primal block."""
        found = self.values[primal]
        assert isinstance(found, Block)
        return found

    def shadow(self, pointer: Value) -> Value:
        """The shadow of a primal pointer; null where it has none."""
        found = self.shadows.get(pointer)
        if found is not None:
            return found
        if not self.unit.activity.has_shadow(pointer):
            return null_shadow(pointer)
        match pointer:
            case GlobalVariable():
                return self.program.shadow_global(pointer, self.lane)
            case ConstantExpression(opcode="getelementptr" | "addrspacecast" as opcode, operands=(base, *rest)):
                moved = (self.shadow(base), *rest)
                type_ = pointer.type if opcode == "addrspacecast" else moved[0].type
                return ConstantExpression(type_, None, opcode, moved, pointer.flags, pointer.source_type)
            case Constant():
                return null_shadow(pointer)
            case _:
                raise InternalError(f"no shadow for {pointer!r} in {self.function.name}")


def shadow_name(value: Value) -> str | None:
    """Name of the shadow of a value."""
    return f"{value.name}.shadow" if value.name else None


def null_shadow(pointer: Value) -> ConstantNull:
    """The shadow of a value that has none, including an integer that is an address."""
    return ConstantNull(pointer.type if isinstance(pointer.type, PointerType) else types.PTR)
