"""The augmented primal: a copy of the primal with a shadow pointer for every pointer that has a shadow.

Input   a `Unit`.
Output  `AugmentedPrimal`: the function without its saves yet. Counters, saves and checks for exhausted tape memory are
        added later (`irad.passes.reverse`, `irad.passes.augmented.tape`).

    %p = getelementptr double, ptr %a, i64 %i        %p.shadow = getelementptr double, ptr %a.shadow, i64 %i
    %q = load ptr, ptr %p                            %q.shadow = load ptr, ptr %p.shadow
    store ptr %q, ptr %r                             store ptr %q.shadow, ptr %r.shadow
    store double %x, ptr %p                          (nothing: cotangents flow in the reverse sweep)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Self

from irad.errors import IradError, UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.clone import clone_function_body
from irad.ir.instructions import (
    Alloca,
    CallSite,
    Cast,
    ExtractValue,
    Freeze,
    GetElementPtr,
    Instruction,
    Load,
    Metadata,
    Phi,
    Ret,
    Select,
    Store,
    replace_uses,
)
from irad.ir.module import Block, Function
from irad.ir.types import PointerType
from irad.ir.values import (
    ConstantInt,
    ConstantNull,
    Value,
    const_int,
    zero,
)
from irad.passes.augmented.primal import AugmentedPrimal, PointerFrame, shadow_name
from irad.passes.callee_variants import callee_variant, pointer_variant, takes_part
from irad.passes.callees import Pointer, resolve
from irad.passes.program import DerivedFunctions, Program
from irad.passes.rule_context import RuleContext
from irad.passes.runtime import ARENA_ALLOC, PAIR_AUGMENTED, PAIR_FRAME_SIZE, POINTER_PAIR, runtime_function
from irad.passes.unit import Unit
from irad.passes.variant import PointerVariant, Variant
from irad.records import dataclass
from irad.ruleset.interface import CallRule, Inactive


def build_augmented(program: Program, unit: Unit, pair: DerivedFunctions) -> AugmentedPrimal:
    """Builds the forward sweep of a pair."""
    augmented = AugmentedPrimal(program, unit, pair)
    copy_primal(augmented)
    phis = {lane: shadow_phis(lane, unit.cfg.order) for lane in augmented.lanes}
    visit_blocks(unit.cfg.order, lambda inst: visit_lanes(ShadowVisitor(augmented, inst)))
    for lane, pointers in phis.items():
        connect_phis(lane, pointers)
    return augmented


def copy_primal(augmented: AugmentedPrimal) -> None:
    """Copies the primal."""
    _name_parameters(augmented)
    clone_function_body(augmented.unit.function, augmented.function, augmented.values)


def shadow_phis(augmented: AugmentedPrimal, blocks: Iterable[Block]) -> list[Phi]:
    """Gives each phi of pointers with a shadow another one beside it, still empty."""
    found = [
        phi
        for block in blocks
        for phi in block.phis()
        if isinstance(phi.type, PointerType) and augmented.unit.activity.has_shadow(phi)
    ]
    for phi in found:
        twin = augmented.values[phi]
        assert isinstance(twin, Phi)
        augmented.shadows[phi] = Builder.before(twin).phi(phi.type, name=shadow_name(phi))
    return found


def visit_blocks(blocks: Iterable[Block], visit: Callable[[Instruction], None]) -> None:
    """Adds the code that the copies of the instructions in some blocks of the primal need beside them."""
    for block in blocks:
        for inst in block.instructions:
            try:
                visit(inst)
            except IradError as error:
                error.instruction = error.instruction or inst
                raise


def visit_lanes(visitor: ShadowVisitor) -> None:
    """Adds the code that one instruction needs, lane by lane."""
    visitor.visit()
    if visitor.is_for_all_lanes:
        return
    for lane in visitor.augmented.lanes[1:]:
        visitor = visitor.in_lane(lane)
        visitor.visit()


def connect_phis(augmented: AugmentedPrimal, phis: Iterable[Phi]) -> None:
    """Fills the phis of shadows."""
    for phi in phis:
        shadow = augmented.shadows[phi]
        assert isinstance(shadow, Phi)
        for value, block in phi.incoming():
            shadow.add_incoming(augmented.shadow(value), augmented.block(block))


def _name_parameters(augmented: AugmentedPrimal) -> None:
    primal, params = augmented.unit.function, augmented.function.params
    params[0].name, params[1].name = "frame", "arena"
    for param, copy in zip(primal.params, params[2:], strict=False):
        copy.name, copy.attributes = param.name, param.attributes
        augmented.values[param] = copy
    first, shadows = 2 + len(primal.params), augmented.pair.shadows
    for number, lane in enumerate(augmented.lanes):
        start = first + number * len(shadows)
        for index, copy in zip(shadows, params[start : start + len(shadows)], strict=True):
            copy.name = shadow_name(primal.params[index])
            lane.shadows[primal.params[index]] = copy


@dataclass(eq=False, slots=True)
class ShadowVisitor(RuleContext):
    """Adds the code that one primal instruction needs beside its copy. It is also the `AugmentedContext` of rules."""

    augmented: AugmentedPrimal
    inst: Instruction
    _after: Builder | None = None
    _touched: bool = False  # a shadow, by the rule that is being applied

    @property
    def unit(self) -> Unit:
        """The primal."""
        return self.augmented.unit

    def in_lane(self, lane: AugmentedPrimal) -> Self:
        """This context for the next lane."""
        return type(self)(lane, self.inst, self._after)

    @property
    def is_for_all_lanes(self) -> bool:
        """True if an instruction is repeated once, with operands common to all lanes."""
        inst = self.inst
        if isinstance(inst, CallSite):
            return isinstance(resolve(inst, self.unit.registry), Function | Pointer)
        return isinstance(inst, Ret)

    @property
    def copy(self) -> Instruction:
        """The copy of the instruction."""
        found = self.augmented.values[self.inst]
        assert isinstance(found, Instruction)
        return found

    def is_carried(self, pointer: Value, *path: int) -> bool:
        """True if code that moves the memory of a pointer also moves its shadow."""
        return self.holds_pointers(pointer, *path)

    def visit(self) -> None:
        """Adds the shadow of the instruction."""
        inst, unit = self.inst, self.augmented.unit
        if isinstance(inst, Load):
            self.note_scopes(inst.operands[0])
        match inst:
            case Store():
                self.note_scopes(inst.operands[1])
                self.visit_store(inst)
            case CallSite():
                self.visit_call(inst)
            case Ret():
                self.visit_return(inst)
            # Made before all others by `shadow_phis`: in loops they are used before the instructions are visited.
            case Phi():
                pass
            case _ if isinstance(inst.type, PointerType) and unit.activity.has_shadow(inst):
                self.augmented.shadows[inst] = self.shadow_of_result(inst)
            case _:
                pass

    def note_scopes(self, pointer: Value) -> None:
        """Alias metadata of the primal's own access."""
        copy = self.copy
        copy.metadata = {**copy.metadata, **self.augmented.scopes.primal(self.unit.points_to.mask(pointer))}

    def shadow_scopes(self, pointer: Value) -> Metadata:
        """Alias metadata of an access of the shadow."""
        return self.augmented.scopes.shadow(self.unit.points_to.mask(pointer), self.augmented.lane)

    def shadow_of_result(self, inst: Instruction) -> Value:
        """The shadow of the pointer that an instruction computes."""
        build, shadow = self.after, self.augmented.shadow
        name = shadow_name(inst)
        match inst:
            case Alloca():
                return self.shadow_of_alloca(inst)
            case GetElementPtr(operands=[base, *indices]):
                moved = [self.augmented.value(i) for i in indices]
                return build.gep(inst.source_type, shadow(base), moved, inst.flags, name=name)
            case Load(operands=[pointer]):
                # No shadow of the loaded pointer was ever stored in memory that has no shadow itself.
                if not self.unit.activity.has_shadow(pointer):
                    return ConstantNull(inst.type)
                loaded = build.load(inst.type, shadow(pointer), name=name)
                loaded.metadata = {**loaded.metadata, **self.shadow_scopes(pointer)}
                return loaded
            case Select(operands=[condition, a, b]):
                return build.select(self.augmented.value(condition), shadow(a), shadow(b), name=name)
            case Freeze(operands=[value]):
                return build.freeze(shadow(value), name=name)
            case Cast(operands=[value]) if isinstance(value.type, PointerType):
                return build.cast(inst.opcode, shadow(value), inst.type, inst.flags, name=name)
            case ExtractValue(operands=[CallSite() as call]) if self.never_returns(call):
                return ConstantNull(inst.type)
            case Cast(opcode="inttoptr", operands=[CallSite() as call]) if self.is_inactive(call):
                return ConstantNull(inst.type)  # an address that a callee without derivative tells: of a size, say
            case _:
                raise UnsupportedError(
                    "irad cannot follow a pointer to active memory through this operation",
                    "keep the array itself in a variable, not an integer address or a packed value",
                    "the address of its shadow is computed the same way as its own, which this operation does not "
                    "allow",
                )

    def never_returns(self, call: CallSite) -> bool:
        """True if the sweep is left before a call through a pointer."""
        made = self.augmented.pointer_frames.get(call)
        return made is not None and made.variant.by_value

    def is_inactive(self, call: CallSite) -> bool:
        """True if a callee carries no derivative."""
        return isinstance(resolve(call, self.unit.registry), Inactive)

    def shadow_of_alloca(self, inst: Alloca) -> Value:
        """Allocas of fixed size live in the frame: their shadow must outlive the forward sweep.

        In code that is differentiated itself each has memory of its own: in the frame they could not be told from each
        other, and from what is saved there, where one is handed to a callee.
        """
        augmented = self.augmented
        size = types.size_of(inst.allocated_type)
        count = inst.operands[0] if inst.operands else const_int(types.I64, 1)
        is_fixed = isinstance(count, ConstantInt) and inst.block is augmented.unit.function.entry
        build = Builder.at_start(augmented.function.entry) if is_fixed else self.after
        if is_fixed and isinstance(count, ConstantInt) and not augmented.program.request.is_primal:
            size *= count.value
            offset = augmented.frame.region(size, max(8, types.alignment_of(inst.allocated_type)))
            shadow = build.byte_offset(augmented.frame_pointer, offset, name=shadow_name(inst))
            total: Value = const_int(types.I64, size)
        else:
            wide = build.zext(augmented.value(count), types.I64)
            total = build.mul(wide, const_int(types.I64, size))
            shadow = build.call(self.runtime(ARENA_ALLOC), [augmented.arena, total], name=shadow_name(inst))
        clear(build, shadow, total)
        return shadow

    def visit_store(self, inst: Store) -> None:
        """A pointer that is stored takes its shadow along."""
        value, pointer = inst.operands
        if isinstance(value.type, PointerType) and self.unit.activity.has_shadow(pointer):
            stored = self.after.store(self.augmented.shadow(value), self.augmented.shadow(pointer))
            stored.metadata = {**stored.metadata, **self.shadow_scopes(pointer)}

    def visit_return(self, inst: Ret) -> None:
        """A pointer result takes its shadow along."""
        if self.unit.variant.result_has_shadow:
            self.pack_result(inst, [lane.shadow(inst.operands[0]) for lane in self.augmented.lanes])

    def pack_result(self, inst: Ret, beside: Iterable[Value]) -> None:
        """Returns something together with the result."""
        build = Builder.before(self.copy)
        packed: Value = zero(self.augmented.function.function_type.result)
        for number, part in enumerate((self.value(inst.operands[0]), *beside)):
            packed = build.insert_value(packed, part, number)
        self.copy.set_operands([packed])

    # -------------------------------------------------------------------------------------------- calls

    def visit_call(self, call: CallSite) -> None:
        """Calls the augmented callee, or adds the code of the call's rule."""
        unit = self.unit
        callee = resolve(call, unit.registry)
        if isinstance(callee, Function):
            variant = callee_variant(unit, call, callee, self.augmented.program.loops.get(callee))
            if variant is not None:
                # The callee's reverse reads this memory again, so this sweep must not free it.
                for number in sorted(variant.stays):
                    self.augmented.kept |= unit.points_to.mask(call.arguments[number])
                self.augment_call(call, self.augmented.program.derive(variant))
            return
        if isinstance(callee, Pointer):
            needed = pointer_variant(unit, call, callee)
            if needed is not None:
                self.augment_pointer_call(call, needed)
            return
        if isinstance(callee, CallRule) and takes_part(unit, call):
            self.apply_rule(call, callee)
        elif isinstance(call.type, PointerType) and unit.activity.has_shadow(call):
            is_opaque = unit.mod_ref.of(call).is_opaque
            if is_opaque or call not in self.augmented.shadows:
                self.augmented.shadows[call] = ConstantNull(call.type)

    def apply_rule(self, call: CallSite, rule: CallRule) -> None:
        """Adds the code of a call's rule; code that touches no shadow is the same in all lanes."""
        first = self.augmented.lanes[0]
        if self.augmented is not first and call not in first.lane_rules:
            self.augmented.rule_values[call] = first.rule_values[call]
            return
        self._touched = False
        self.augmented.rule_values[call] = tuple(rule.augmented(self, call))
        if self._touched:
            first.lane_rules.add(call)

    def augment_call(self, call: CallSite, pair: DerivedFunctions) -> None:
        """Calls the augmented callee instead."""
        build = self.before
        frame = self.callee_frame(build, pair.frame_size)
        packed = build.call(
            pair.first, self.augmented_arguments(call, frame, pair.variant, pair.shadows), name=call.name
        )
        self.take_result(build, call, packed, pair.variant)
        self.augmented.callee_frames[call] = (frame, pair)

    def augment_pointer_call(self, call: CallSite, variant: PointerVariant) -> None:
        """Augments an indirect call, with the pair that is found for the pointer at run time."""
        augmented, build = self.augmented, self.before
        where = [augmented.arena, augmented.program.table(variant), augmented.value(call.callee)]
        pair = build.call(self.runtime(POINTER_PAIR), where, name="callee.pair")
        frame = self.callee_frame(build, build.byte_offset(pair, PAIR_FRAME_SIZE))
        callee = build.load(types.PTR, build.byte_offset(pair, PAIR_AUGMENTED))
        arguments = self.augmented_arguments(call, frame, variant, variant.shadows)
        first = augmented.program.request.mode.functions[0]
        packed = build.call(callee, arguments, first.type_of(variant, variant.shadows), name=call.name)
        self.take_result(build, call, packed, variant)
        augmented.pointer_frames[call] = PointerFrame(frame, pair, packed, variant)

    def callee_frame(self, build: Builder, size: Value) -> Value:
        """The frame of a callee, from the arena; ``size`` is where its size is found."""
        # From the arena, not the stack: the reverse sweep needs the frame when this function has returned.
        return build.call(
            self.runtime(ARENA_ALLOC), [self.augmented.arena, build.load(types.I64, size)], name="callee.frame"
        )

    def augmented_arguments(
        self, call: CallSite, frame: Value, variant: Variant | PointerVariant, shadows: tuple[int, ...]
    ) -> list[Value]:
        """Arguments of the augmented callee."""
        augmented = self.augmented
        given = [augmented.value(a) for a in call.arguments]
        beside = (lane.shadow(call.arguments[i]) for lane in augmented.lanes for i in shadows)
        return [frame, augmented.arena, *given, *beside]

    def take_result(self, build: Builder, call: CallSite, packed: Value, variant: Variant | PointerVariant) -> None:
        """Replaces the call by the result of the augmented callee."""
        augmented, copy, result = self.augmented, self.copy, packed
        if packed.type is not call.type:
            result = build.extract_value(packed, 0)
        if variant.result_has_shadow:
            for lane in augmented.lanes:
                lane.shadows[call] = build.extract_value(packed, 1 + lane.lane, name=shadow_name(call))
        replace_uses(copy, result)
        copy.erase()
        augmented.values[call] = result

    # -------------------------------------------------------------------------------------------- AugmentedContext

    @property
    def before(self) -> Builder:
        """Emits before the copy."""
        build = Builder.before(self.copy)
        build.origin, build.metadata = self.inst, self.inst.metadata
        return build

    @property
    def after(self) -> Builder:
        """Emits after the copy, and after code emitted there before."""
        if self._after is None:
            self._after = Builder.after(self.copy)
            self._after.origin, self._after.metadata = self.inst, self.inst.metadata
        return self._after

    @property
    def lane(self) -> int:
        """The number of the lane."""
        self._touched = True
        return self.augmented.lane

    @property
    def width(self) -> int:
        """The number of lanes."""
        return len(self.augmented.lanes)

    def restate(self, index: int, value: Value) -> None:
        """Changes an argument of the copy."""
        self.copy.set_operand(index, value)

    def value(self, primal: Value) -> Value:
        """The value here of a primal value."""
        return self.augmented.value(primal)

    def shadow(self, pointer: Value) -> Value:
        """The shadow of a pointer."""
        self._touched = True
        return self.augmented.shadow(pointer)

    def set_shadow(self, shadow: Value) -> None:
        """States the shadow of the call's result."""
        self._touched = True
        self.augmented.shadows[self.inst] = shadow

    def allocate(self, size: Value) -> Value:
        """Memory of the tape, made before the call."""
        return self.before.call(self.runtime(ARENA_ALLOC), [self.augmented.arena, size], name="kept")

    def overwritten(self, pointer: Value) -> bool:
        """True if memory that the call reads may change before the reverse sweep comes back."""
        unit = self.unit
        if unit.everything or unit.effects.is_overwritten(pointer, self.inst):
            return True
        self.augmented.kept |= unit.points_to.mask(pointer)
        return False

    def earlier(self, call: CallSite) -> Sequence[Value]:
        """Values that the augmented part of another call returned."""
        return () if self.unit.everything else self.augmented.rule_values.get(call, ())

    def runtime(self, name: str) -> Function:
        """A function of the run-time support."""
        return runtime_function(self.augmented.program.module, name)


def clear(build: Builder, pointer: Value, size: Value) -> None:
    """Emits a memset to zero."""
    memset = build.module.declare(
        "llvm.memset.p0.i64", types.function_type(types.VOID, [types.PTR, types.I8, types.I64, types.I1])
    )
    build.call(memset, [pointer, const_int(types.I8, 0), size, const_int(types.I1, 0)])
