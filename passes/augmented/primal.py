"""The forward sweep: a copy of the primal with a shadow pointer for every pointer that has a shadow.

Input   a `Unit`.
Output  `AugmentedPrimal`: the function without its saves yet, and the maps from primal values to its values and
        shadows. Counters, saves and checks for exhausted tape memory are added later (`irad.passes.reverse`,
        `irad.passes.augmented.tape`).

    %p = getelementptr double, ptr %a, i64 %i        %p.shadow = getelementptr double, ptr %a.shadow, i64 %i
    %q = load ptr, ptr %p                            %q.shadow = load ptr, ptr %p.shadow
    store ptr %q, ptr %r                             store ptr %q.shadow, ptr %r.shadow
    store double %x, ptr %p                          (nothing: cotangents flow in the reverse sweep)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from irad.errors import InternalError, IradError, UnsupportedError
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
from irad.ir.types import FunctionType, PointerType
from irad.ir.values import (
    Constant,
    ConstantExpression,
    ConstantInt,
    ConstantNull,
    GlobalVariable,
    Parameter,
    Value,
    const_int,
    zero,
)
from irad.passes.analysis.callees import Pointer, resolve
from irad.passes.augmented.alias_scopes import AliasScopes, rank_objects
from irad.passes.augmented.tape import FrameLayout
from irad.passes.callee_variants import callee_variant, pointer_variant, takes_part
from irad.passes.memory.number_places import is_made_here, number_places
from irad.passes.mode import AUGMENTED
from irad.passes.parallel.modes import WINDOW_SIZE
from irad.passes.program import DerivedFunctions, Program
from irad.passes.request import MemoryType
from irad.passes.runtime import ARENA_ALLOC, PAIR_AUGMENTED, PAIR_FRAME_SIZE, POINTER_PAIR, runtime_function
from irad.passes.unit import Unit
from irad.passes.variant import PointerVariant
from irad.ruleset.interface import CallRule, Inactive


@dataclass(frozen=True, slots=True)
class PointerFrame:
    """A call through a pointer here: the frame, the pair found (see `runtime.POINTER_PAIR`), the call of it."""

    frame: Value
    pair: Value
    call: Value
    variant: PointerVariant


@dataclass(eq=False, slots=True)
class AugmentedPrimal:
    """The forward sweep under construction.

    Attributes:
        values: primal value → value here (parameters, instructions, blocks).
        shadows: primal pointer → shadow here.
        rule_values: what the augmented part of a call's rule passed to its reverse part, by primal call.
        callee_frames: the frame of a call of another pair, by primal call; with the pair.
        pointer_frames: the same of calls through pointers.
        frame: layout of this pair's own frame.
        kept: allocations that the reverse sweep reads again, as a mask.
        windows: number of the window that a lane has of a parameter's array; windows come first in the frame.
        scopes: alias scopes of the augmented primal.
    """

    program: Program
    unit: Unit
    pair: DerivedFunctions
    values: dict[Value, Value] = field(default_factory=dict)
    shadows: dict[Value, Value] = field(default_factory=dict)
    rule_values: dict[CallSite, tuple[Value, ...]] = field(default_factory=dict)
    callee_frames: dict[CallSite, tuple[Value, DerivedFunctions]] = field(default_factory=dict)
    pointer_frames: dict[CallSite, PointerFrame] = field(default_factory=dict)
    frame: FrameLayout = field(default_factory=FrameLayout)
    kept: int = 0
    windows: dict[Parameter, int] = field(default_factory=dict)
    scopes: AliasScopes = field(init=False)

    def __post_init__(self) -> None:
        unit = self.unit
        ranked = rank_objects(unit.points_to, unit.cfg, unit.loops)
        self.scopes = AliasScopes(self.program.module, unit.points_to, not unit.everything, ranked)
        for param in self.unit.sharing.shared() if self.unit.sharing is not None else ():
            self.windows[param] = len(self.windows)
            self.frame.region(WINDOW_SIZE, 8)

    @property
    def function(self) -> Function:
        """The augmented primal."""
        return self.pair[AUGMENTED]

    @property
    def frame_pointer(self) -> Parameter:
        """Its frame."""
        return self.function.params[0]

    @property
    def arena(self) -> Parameter:
        """Its arena."""
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
            return _null(pointer)
        match pointer:
            case GlobalVariable():
                return self.program.shadow_global(pointer)
            case ConstantExpression(opcode="getelementptr" | "addrspacecast" as opcode, operands=(base, *rest)):
                moved = (self.shadow(base), *rest)
                return ConstantExpression(pointer.type, None, opcode, moved, pointer.flags, pointer.source_type)
            case Constant():
                return _null(pointer)
            case _:
                raise InternalError(f"no shadow for {pointer!r} in {self.function.name}")


def build_augmented(program: Program, unit: Unit, pair: DerivedFunctions) -> AugmentedPrimal:
    """Builds the forward sweep of a pair."""
    augmented = AugmentedPrimal(program, unit, pair)
    _name_parameters(augmented)
    clone_function_body(unit.function, pair[AUGMENTED], augmented.values)
    for phi in _shadowed_phis(unit):
        twin = augmented.values[phi]
        assert isinstance(twin, Phi)
        augmented.shadows[phi] = Builder.before(twin).phi(phi.type, name=_shadow_name(phi))
    for block in unit.cfg.order:
        for inst in block.instructions:
            try:
                _Visitor(augmented, inst).visit()
            except IradError as error:
                error.instruction = error.instruction or inst
                raise
    for phi in _shadowed_phis(unit):
        shadow = augmented.shadows[phi]
        assert isinstance(shadow, Phi)
        for value, block in phi.incoming():
            shadow.add_incoming(augmented.shadow(value), augmented.block(block))
    return augmented


def _null(pointer: Value) -> ConstantNull:
    """The shadow of what has none; of an integer that is an address, too."""
    return ConstantNull(pointer.type if isinstance(pointer.type, PointerType) else types.PTR)


def _shadow_name(value: Value) -> str | None:
    return f"{value.name}.shadow" if value.name else None


def _shadowed_phis(unit: Unit) -> list[Phi]:
    return [
        phi
        for block in unit.cfg.order
        for phi in block.phis()
        if isinstance(phi.type, PointerType) and unit.activity.has_shadow(phi)
    ]


def _name_parameters(augmented: AugmentedPrimal) -> None:
    primal, params = augmented.unit.function, augmented.function.params
    params[0].name, params[1].name = "frame", "arena"
    for param, copy in zip(primal.params, params[2:], strict=False):
        copy.name, copy.attributes = param.name, param.attributes
        augmented.values[param] = copy
    for index, copy in zip(augmented.pair.shadows, params[2 + len(primal.params) :], strict=True):
        copy.name = _shadow_name(primal.params[index])
        augmented.shadows[primal.params[index]] = copy


@dataclass(eq=False, slots=True)
class _Visitor:
    """Adds what one primal instruction needs in the forward sweep. It is also the `AugmentedContext` of rules."""

    augmented: AugmentedPrimal
    inst: Instruction
    _after: Builder | None = None

    @property
    def copy(self) -> Instruction:
        found = self.augmented.values[self.inst]
        assert isinstance(found, Instruction)
        return found

    def visit(self) -> None:
        inst, unit = self.inst, self.augmented.unit
        if isinstance(inst, Load):
            self.note_scopes(inst.operands[0])
        match inst:
            case Store():
                self.note_scopes(inst.operands[1])
                self.visit_store(inst)
            case CallSite():
                self.visit_call(inst)
            case Ret() if unit.variant.result_has_shadow:
                self.visit_return(inst)
            case Phi():
                pass
            case _ if isinstance(inst.type, PointerType) and unit.activity.has_shadow(inst):
                self.augmented.shadows[inst] = self.shadow_of_result(inst)
            case _:
                pass

    def note_scopes(self, pointer: Value) -> None:
        """Alias metadata of the primal's own access."""
        copy = self.copy
        copy.metadata = {**copy.metadata, **self.augmented.scopes.primal(self.augmented.unit.points_to.mask(pointer))}

    def shadow_scopes(self, pointer: Value) -> Metadata:
        """Alias metadata of an access of the shadow."""
        return self.augmented.scopes.shadow(self.augmented.unit.points_to.mask(pointer))

    def shadow_of_result(self, inst: Instruction) -> Value:
        build, shadow = self.after, self.augmented.shadow
        name = _shadow_name(inst)
        match inst:
            case Alloca():
                return self.shadow_of_alloca(inst)
            case GetElementPtr(operands=[base, *indices]):
                moved = [self.augmented.value(i) for i in indices]
                return build.gep(inst.source_type, shadow(base), moved, inst.flags, name=name)
            case Load(operands=[pointer]):
                if not self.augmented.unit.activity.has_shadow(pointer):
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
        """Whether the sweep is left before a call through a pointer."""
        made = self.augmented.pointer_frames.get(call)
        return made is not None and made.variant.by_value

    def is_inactive(self, call: CallSite) -> bool:
        """Whether a callee carries no derivative."""
        return isinstance(resolve(call, self.augmented.unit.registry), Inactive)

    def shadow_of_alloca(self, inst: Alloca) -> Value:
        """Allocas of fixed size live in the frame: their shadow must outlive the forward sweep."""
        augmented = self.augmented
        size = types.size_of(inst.allocated_type)
        count = inst.operands[0] if inst.operands else const_int(types.I64, 1)
        is_fixed = isinstance(count, ConstantInt) and inst.block is augmented.unit.function.entry
        build = Builder.at_start(augmented.function.entry) if is_fixed else self.after
        if is_fixed and isinstance(count, ConstantInt):
            size *= count.value
            offset = augmented.frame.region(size, max(8, types.alignment_of(inst.allocated_type)))
            shadow = build.byte_offset(augmented.frame_pointer, offset, name=_shadow_name(inst))
            total: Value = const_int(types.I64, size)
        else:
            wide = build.zext(augmented.value(count), types.I64)
            total = build.mul(wide, const_int(types.I64, size))
            shadow = build.call(self.runtime(ARENA_ALLOC), [augmented.arena, total], name=_shadow_name(inst))
        clear(build, shadow, total)
        return shadow

    def visit_store(self, inst: Store) -> None:
        value, pointer = inst.operands
        if isinstance(value.type, PointerType) and self.augmented.unit.activity.has_shadow(pointer):
            stored = self.after.store(self.augmented.shadow(value), self.augmented.shadow(pointer))
            stored.metadata = {**stored.metadata, **self.shadow_scopes(pointer)}

    def visit_return(self, inst: Ret) -> None:
        """A pointer result takes its shadow along."""
        value = inst.operands[0]
        build = Builder.before(self.copy)
        packed: Value = zero(self.augmented.function.function_type.result)
        packed = build.insert_value(packed, self.augmented.value(value), 0)
        packed = build.insert_value(packed, self.augmented.shadow(value), 1)
        self.copy.set_operands([packed])

    # -------------------------------------------------------------------------------------------- calls

    def visit_call(self, call: CallSite) -> None:
        unit = self.augmented.unit
        callee = resolve(call, unit.registry)
        if isinstance(callee, Function):
            variant = callee_variant(unit, call, callee, self.augmented.program.loops.get(callee))
            if variant is not None:
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
            self.augmented.rule_values[call] = tuple(callee.augmented(self, call))
        elif isinstance(call.type, PointerType) and unit.activity.has_shadow(call):
            is_opaque = unit.mod_ref.of(call).is_opaque
            if is_opaque or call not in self.augmented.shadows:
                self.augmented.shadows[call] = ConstantNull(call.type)

    def augment_call(self, call: CallSite, pair: DerivedFunctions) -> None:
        """Calls the augmented callee instead; its frame comes from the arena."""
        build = self.before
        size = build.load(types.I64, pair.frame_size)
        frame = build.call(self.runtime(ARENA_ALLOC), [self.augmented.arena, size], name="callee.frame")
        packed = build.call(pair[AUGMENTED], self.augmented_arguments(call, frame, pair.shadows), name=call.name)
        self.take_result(build, call, packed, has_shadow=pair.variant.result_has_shadow)
        self.augmented.callee_frames[call] = (frame, pair)

    def augment_pointer_call(self, call: CallSite, variant: PointerVariant) -> None:
        """The same with the pair that is found for the pointer."""
        augmented, build = self.augmented, self.before
        where = [augmented.arena, augmented.program.table(variant), augmented.value(call.callee)]
        pair = build.call(self.runtime(POINTER_PAIR), where, name="callee.pair")
        size = build.load(types.I64, build.byte_offset(pair, PAIR_FRAME_SIZE))
        frame = build.call(self.runtime(ARENA_ALLOC), [augmented.arena, size], name="callee.frame")
        callee = build.load(types.PTR, build.byte_offset(pair, PAIR_AUGMENTED))
        arguments = self.augmented_arguments(call, frame, variant.shadows)
        packed = build.call(callee, arguments, AUGMENTED.type_of(variant, variant.shadows), name=call.name)
        self.take_result(build, call, packed, has_shadow=variant.result_has_shadow)
        augmented.pointer_frames[call] = PointerFrame(frame, pair, packed, variant)

    def augmented_arguments(self, call: CallSite, frame: Value, shadows: tuple[int, ...]) -> list[Value]:
        augmented = self.augmented
        given = [augmented.value(a) for a in call.arguments]
        return [frame, augmented.arena, *given, *(augmented.shadow(call.arguments[i]) for i in shadows)]

    def take_result(self, build: Builder, call: CallSite, packed: Value, *, has_shadow: bool) -> None:
        """Replaces the call by the result of the augmented callee."""
        augmented, copy, result = self.augmented, self.copy, packed
        if has_shadow:
            result = build.extract_value(packed, 0)
            augmented.shadows[call] = build.extract_value(packed, 1, name=_shadow_name(call))
        replace_uses(copy, result)
        copy.erase()
        augmented.values[call] = result

    # -------------------------------------------------------------------------------------------- AugmentedContext

    @property
    def before(self) -> Builder:
        build = Builder.before(self.copy)
        build.origin, build.metadata = self.inst, self.inst.metadata
        return build

    @property
    def after(self) -> Builder:
        if self._after is None:
            self._after = Builder.after(self.copy)
            self._after.origin, self._after.metadata = self.inst, self.inst.metadata
        return self._after

    def is_active(self, value: Value) -> bool:
        return self.augmented.unit.activity.is_active(value)

    def value(self, primal: Value) -> Value:
        return self.augmented.value(primal)

    def shadow(self, pointer: Value) -> Value:
        return self.augmented.shadow(pointer)

    def set_shadow(self, shadow: Value) -> None:
        self.augmented.shadows[self.inst] = shadow

    def allocate(self, size: Value) -> Value:
        return self.before.call(self.runtime(ARENA_ALLOC), [self.augmented.arena, size], name="kept")

    def layout(self, pointer: Value, *path: int) -> MemoryType | None:
        unit = self.augmented.unit
        if not path:
            return unit.memory_types.layout_from(pointer)
        return unit.memory_types.layout(unit.points_to.behind(pointer, path))

    def holds_floats(self, pointer: Value, *path: int) -> bool:
        unit = self.augmented.unit
        return unit.memory_types.holds_floats(unit.points_to.behind(pointer, path))

    def holds_pointers(self, pointer: Value, *path: int) -> bool:
        unit = self.augmented.unit
        return bool(unit.memory_types.holds_pointers & unit.points_to.behind(pointer, path))

    def number_places(self, pointer: Value) -> MemoryType | None:
        return self.layout(pointer) or number_places(self.augmented.unit.memory_types, pointer)

    def is_made_here(self, pointer: Value) -> bool:
        return is_made_here(self.augmented.unit.memory_types, pointer)

    def overwritten(self, pointer: Value) -> bool:
        unit = self.augmented.unit
        if unit.everything or unit.effects.is_overwritten(pointer, self.inst):
            return True
        self.augmented.kept |= unit.points_to.mask(pointer)
        return False

    def declare(self, name: str, call_type: FunctionType, attributes: tuple[str, ...] = ()) -> Function:
        return self.augmented.program.module.declare(name, call_type, attributes)

    def runtime(self, name: str) -> Function:
        return runtime_function(self.augmented.program.module, name)


def clear(build: Builder, pointer: Value, size: Value) -> None:
    """Emits a memset to zero."""
    memset = build.module.declare(
        "llvm.memset.p0.i64", types.function_type(types.VOID, [types.PTR, types.I8, types.I64, types.I1])
    )
    build.call(memset, [pointer, const_int(types.I8, 0), size, const_int(types.I1, 0)])
