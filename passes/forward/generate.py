"""Forward mode: the augmented primal without a tape, with a tangent beside each active float.

Input   a `Unit`, a function of `mode.FORWARD_MODE` to fill.
Output  `AugmentedPrimal` with tangents. The tangent of a number in memory lies in the shadow of that memory.
Method  shadow pointers as in reverse mode; each instruction on active floats is followed by its tangent. Blocks from
        which the function does not return normally have none.

    %x = load double, ptr %p                         %x.tangent = load double, ptr %p.shadow
    %y = fmul double %x, %c                          %y.tangent = fmul double %x.tangent, %c
    store double %y, ptr %q                          store double %y.tangent, ptr %q.shadow
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from irad.errors import InternalError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, CallSite, Load, Phi, Ret, Store
from irad.ir.types import PointerType
from irad.ir.values import Constant, ConstantInt, ConstantNull, Value, const_int
from irad.passes.augmented.primal import AugmentedPrimal, shadow_name
from irad.passes.augmented.shadows import (
    ShadowVisitor,
    clear,
    connect_phis,
    copy_primal,
    shadow_phis,
    visit_blocks,
    visit_lanes,
)
from irad.passes.callees import resolve
from irad.passes.forward.dependence import SETS
from irad.passes.forward.instructions import TANGENTS
from irad.passes.forward.propagation import Made, Propagation
from irad.passes.forward.taylor import TAYLOR
from irad.passes.mode import Algebra
from irad.passes.products import access_align
from irad.passes.program import DerivedFunctions, Program
from irad.passes.runtime import ARENA_REWIND, ARENA_SHADOW, ARENA_TOP, SHADOW_ALLOC, SHADOW_FREE, SHADOW_REALLOC
from irad.passes.unit import Unit
from irad.passes.variant import ParameterKind, PointerVariant, Variant
from irad.records import dataclass
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import CallRule, Elementwise, Inactive
from irad.ruleset.registry import Registry

_NO_FRAME: Final = ConstantNull(types.PTR)
_ALIGNMENT: Final = 64
_PROPAGATIONS: Final[Mapping[Algebra, Propagation]] = {
    Algebra.TANGENTS: TANGENTS,
    Algebra.TAYLOR: TAYLOR,
    Algebra.SETS: SETS,
}


def build_tangent(program: Program, unit: Unit, functions: DerivedFunctions) -> AugmentedPrimal:
    """Builds the function of forward mode."""
    augmented = AugmentedPrimal(program, unit, functions)
    copy_primal(augmented)
    _name_tangents(augmented)
    live = [block for block in unit.cfg.order if block in unit.live]
    active = [phi for block in live for phi in block.phis() if phi in unit.activity.active]
    for lane in augmented.lanes:
        pointers = shadow_phis(lane, live)
        for phi in active:
            twin = augmented.values[phi]
            assert isinstance(twin, Phi)
            lane.tangents[phi] = Builder.before(twin).phi(phi.type, name=_tangent_name(phi))
    visit_blocks(live, lambda inst: visit_lanes(TangentVisitor(augmented, inst)))
    for lane in augmented.lanes:
        connect_phis(lane, pointers)
        for phi in active:
            tangent = lane.tangents[phi]
            assert isinstance(tangent, Phi)
            for value, block in phi.incoming():
                tangent.add_incoming(_tangent(lane, value) or zero_of(phi.type), augmented.block(block))
    return augmented


def _tangent_name(value: Value) -> str | None:
    return f"{value.name}.tangent" if value.name else None


def _name_tangents(augmented: AugmentedPrimal) -> None:
    """The tangents of the active parameters follow the shadows; those of constant ones are zero, also to the oracle."""
    unit, functions = augmented.unit, augmented.pair
    params = unit.function.params
    active = [p for p, kind in zip(params, functions.variant.kinds, strict=True) if kind is ParameterKind.ACTIVE]
    given = iter(augmented.function.params[2 + len(params) + len(functions.shadows) * len(augmented.lanes) :])
    for lane in augmented.lanes:
        lane.tangents.update(dict.fromkeys(params))
        for param in active:
            tangent = next(given)
            tangent.name = _tangent_name(param)
            lane.tangents[param] = tangent


def _tangent(augmented: AugmentedPrimal, value: Value) -> Value | None:
    """The tangent of a value; None when it is known to be zero."""
    if isinstance(value, Constant) or value not in augmented.unit.activity.active:
        return None
    if value not in augmented.tangents:
        raise InternalError(f"no tangent for {value!r} in {augmented.function.name}")
    return augmented.tangents[value]


@dataclass(eq=False, slots=True)
class TangentVisitor(ShadowVisitor):
    """Adds the tangent of one primal instruction, in a lane. It is also the `TangentContext` of rules."""

    @property
    def order(self) -> int:
        """The number of the lane, from 1."""
        return self.augmented.lane + 1

    @property
    def registry(self) -> Registry:
        """The rules."""
        return self.unit.registry

    @property
    def propagation(self) -> Propagation:
        """The algebra by which the contents of lanes follow from instruction to instruction."""
        return _PROPAGATIONS[self.unit.program.request.mode.algebra]

    def once(self, what: str, make: Callable[[], Made]) -> Made:
        """Value that is the same in all lanes: the first that asks makes it."""
        shared, key = self.augmented.shared, (self.inst, what)
        if key not in shared:
            shared[key] = make()
        found: Made = shared[key]
        return found

    def visit(self) -> None:
        """Adds the tangent of the instruction."""
        ShadowVisitor.visit(self)
        inst = self.inst
        if isinstance(inst, CallSite | Phi) or inst not in self.unit.activity.active:
            return
        self.set_tangent(
            self.load_tangent(inst) if isinstance(inst, Load) else self.propagation.of_instruction(self, inst)
        )

    # -------------------------------------------------------------------------------------------- memory

    def shadow_of_alloca(self, inst: Alloca) -> Value:
        """A local variable beside the primal's, with tangents in it."""
        size: Value = const_int(types.I64, types.size_of(inst.allocated_type))
        count = inst.operands[0] if inst.operands else None
        is_fixed = isinstance(count, ConstantInt | None) and inst.block is self.unit.function.entry
        build = Builder.at_start(self.augmented.function.entry) if is_fixed else self.after
        given = None if count is None else self.value(count)
        align = max(8, inst.align or types.alignment_of(inst.allocated_type))
        shadow = build.alloca(inst.allocated_type, given, align, name=shadow_name(inst))
        if given is not None:
            size = build.mul(build.zext(given, types.I64), size)
        clear(build, shadow, size)
        return shadow

    def load_tangent(self, inst: Load) -> Value | None:
        """The tangent of a number in memory."""
        pointer = inst.operands[0]
        if not self.is_active(pointer):
            return None
        loaded = self.after.load(inst.type, self.shadow(pointer), access_align(inst.type), name=_tangent_name(inst))
        loaded.metadata = {**loaded.metadata, **self.shadow_scopes(pointer)}
        return loaded

    def visit_store(self, inst: Store) -> None:
        """Stores the tangent with the value; a value without one clears the tangent that was there."""
        value, pointer = inst.operands
        if isinstance(value.type, PointerType) or not self.is_active(pointer):
            ShadowVisitor.visit_store(self, inst)
            return
        # Also if the value is constant: the tangent of what was there before has to go.
        stored = self.after.store(self.tangent(value), self.shadow(pointer), access_align(value.type))
        stored.metadata = {**stored.metadata, **self.shadow_scopes(pointer)}

    # -------------------------------------------------------------------------------------------- calls

    def visit_return(self, inst: Ret) -> None:
        """A result takes its shadow, or its tangent, along."""
        if self.unit.variant.result_active:
            [result] = inst.operands
            self.pack_result(inst, self._in_all_lanes([result]))
        else:
            ShadowVisitor.visit_return(self, inst)

    def visit_call(self, call: CallSite) -> None:
        """Calls the callee with tangents, or adds the code of the call's rule."""
        callee = resolve(call, self.unit.registry)
        if isinstance(callee, Elementwise) and call in self.unit.activity.active:
            self.set_tangent(self.propagation.of_function(self, call, callee))
            return
        if isinstance(callee, Inactive) and callee.tangent is not None:
            callee.tangent(self, call)
        ShadowVisitor.visit_call(self, call)
        if call in self.unit.activity.active and call not in self.augmented.tangents:
            self.set_tangent(None)

    def apply_rule(self, call: CallSite, rule: CallRule) -> None:
        """Adds the tangent of the rule."""
        part = self.propagation.part_of_rule(rule)
        if part is None:
            raise InternalError(f"{call.callee.name} was not refused")
        part(self, call)

    def callee_frame(self, build: Builder, size: Value) -> Value:
        """There is no tape, and so no frame."""
        return _NO_FRAME

    def augmented_arguments(
        self, call: CallSite, frame: Value, variant: Variant | PointerVariant, shadows: tuple[int, ...]
    ) -> list[Value]:
        """Tangents follow the shadows."""
        known = ShadowVisitor.augmented_arguments(self, call, frame, variant, shadows)
        active = [a for a, k in zip(call.arguments, variant.kinds, strict=False) if k is ParameterKind.ACTIVE]
        return [*known, *self._in_all_lanes(active)]

    def _in_all_lanes(self, values: Sequence[Value]) -> Iterator[Value]:
        """The tangents of values in one lane after the other."""
        return (_tangent(lane, value) or zero_of(value.type) for lane in self.augmented.lanes for value in values)

    def take_result(self, build: Builder, call: CallSite, packed: Value, variant: Variant | PointerVariant) -> None:
        """The tangent of a result comes with it."""
        if variant.result_active:
            for lane in self.augmented.lanes:
                lane.tangents[call] = build.extract_value(packed, 1 + lane.lane, name=_tangent_name(call))
        ShadowVisitor.take_result(self, build, call, packed, variant)

    # -------------------------------------------------------------------------------------------- tangents

    def is_carried(self, pointer: Value, *path: int) -> bool:
        """Tangents move with the numbers that they belong to."""
        return self.holds_pointers(pointer, *path) or self.holds_floats(pointer, *path)

    def mark(self) -> Value:
        """The top of the arena."""
        return self.once("top", lambda: self.before.call(self.runtime(ARENA_TOP), [self.augmented.arena], name="top"))

    def release(self, mark: Value) -> None:
        """Goes back to it, when all lanes are done."""
        if self.augmented is self.augmented.lanes[-1]:
            self.after.call(self.runtime(ARENA_REWIND), [self.augmented.arena, mark])

    def allocate_owned(self, size: Value) -> Value:
        """Memory outside the arena."""
        return self.before.call(self.runtime(SHADOW_ALLOC), [self.augmented.arena, size])

    def allocate_attached(self, size: Value) -> tuple[Value, Value | None]:
        """Allocates attached memory of all lanes in one piece; also returns what frees it."""
        lane, count, build = self.augmented.lane, len(self.augmented.lanes), self.before
        if count == 1:
            return self.allocate_owned(size), self.runtime(SHADOW_FREE)
        # Whole cache lines keep each lane's part aligned as memory of its own would be.
        raised = build.add(size, const_int(types.I64, _ALIGNMENT - 1))
        each = build.and_(raised, const_int(types.I64, -_ALIGNMENT))
        whole = self.once("attached", lambda: self.allocate_owned(build.mul(each, const_int(types.I64, count))))
        mine = build.byte_offset(whole, build.mul(each, const_int(types.I64, lane)))
        return mine, None if lane else self.runtime(SHADOW_FREE)

    def allocate_beside(self, arena: Value, size: Value) -> Value:
        """Memory in an arena of the program's own, which ends with it."""
        return self.before.call(self.runtime(ARENA_SHADOW), [self.augmented.arena, arena, size])

    def reallocate_owned(self, size: Value) -> Value:
        """Resizes owned shadow memory, after the call that changes the size of the primal memory."""
        assert isinstance(self.inst, CallSite)
        shadow = self.shadow(self.inst.arguments[0])
        made, null = self.copy, ConstantNull(types.PTR)
        moved = self.after.call(self.runtime(SHADOW_REALLOC), [self.augmented.arena, made, shadow, size])
        return self.after.select(self.after.icmp("eq", made, null), null, moved)

    def known_tangent(self, primal: Value) -> Value | None:
        """The tangent of a value; None when it is known to be zero."""
        return _tangent(self.augmented, primal)

    def coefficient(self, primal: Value, order: int) -> Value | None:
        """Value that another lane, from 1 on, holds for a value; lane 0 holds its copy."""
        return self.value(primal) if order == 0 else _tangent(self.augmented.lanes[order - 1], primal)

    def shadow_of_order(self, pointer: Value, order: int) -> Value:
        """The shadow of a pointer in another lane, from 1."""
        return self.augmented.lanes[order - 1].shadow(pointer)

    def tangent(self, argument: Value) -> Value:
        """The tangent of a value."""
        return self.known_tangent(argument) or zero_of(argument.type)

    def set_tangent(self, amount: Value | None) -> None:
        """States the tangent of the instruction's value; None for zero."""
        self.augmented.tangents[self.inst] = amount
