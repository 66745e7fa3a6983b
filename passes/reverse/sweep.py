"""The state of a reverse sweep under construction: its blocks, cotangents, and needs of the forward sweep.

A value of the forward sweep that the reverse sweep uses is a *need*: a placeholder at the head of the adjoint block,
which the plan later replaces by a load from the tape or by recomputed code. So nothing is said twice: what is needed is
what the generator asked for.

Cotangents of values whose uses all lie in their own block are plain SSA values; the others live in stack slots, empty
between uses, that LLVM turns into registers. Empty is -0.0: unlike 0.0 it leaves every number as it is when added, so
that LLVM sees which cotangents a loop only passes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Binary, CallSite, Freeze, Instruction, Load, Metadata, Phi, Store
from irad.ir.loops import Loop
from irad.ir.module import Block, Function
from irad.ir.types import FloatType, Type, VectorType, element_types, holds_floats
from irad.ir.values import Constant, GlobalAlias, GlobalVariable, Undef, Value, const_float
from irad.passes.augmented.alias_scopes import AliasScopes
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.memory.objects import ObjectKind, union
from irad.passes.mode import REVERSE
from irad.passes.parallel.ownership import Adding
from irad.passes.products import access_align
from irad.passes.runtime import sum_function
from irad.passes.unit import Unit
from irad.records import dataclass
from irad.ruleset.guards import zero_of

# Updates in place: what is added to an element of an array leaves the element's cotangent as it is.
#
# Input   the analyses of a function, and which of its arrays lanes share.
# Output  `Updates`: the stores whose adjoint does not clear the shadow, and the operands to which nothing is added
# then.
# Method  a stored sum whose first summand was loaded from the same address, in the same block, with nothing between the
#         two that may write there. The cotangent of that summand is that of the element, which has it already.
# Why     clearing a shadow and adding the same number to it again is three accesses of memory, between which others
#         that may be of the same element must keep their places: no such loop becomes vectors.
# Limit   the sum has no other use, and lanes do not share the array. Not under `save_all` and `strict`, where
#         cotangents are added up as the program runs.
#
#     v = load p                                    shadow[p] += v̄         of other uses, if any
#     s = fadd v, e                                 ē += s̄
#     store s, p                                    s̄ = shadow[p]


@dataclass(frozen=True, slots=True)
class Updates:
    """The updates in place of a function.

    Attributes:
        stores: they end one.
        kept: the sums that begin one, and which of their operands was loaded.
    """

    stores: dict[Store, None] = field(default_factory=dict)
    kept: dict[Binary, int] = field(default_factory=dict)


def find_updates(augmented: AugmentedPrimal) -> Updates:
    """Finds all updates of a function; none if they must not be told from other stores."""
    found, unit = Updates(), augmented.unit
    if unit.everything or unit.program.request.strict:
        return found
    partial = union(unit.points_to.mask(array) for array in augmented.windows)  # lanes have partial shadows of these
    for store in unit.function.instructions():
        if isinstance(store, Store) and _may_update(unit, store, partial):
            for total, index in _beginnings(unit, store):
                if not _touches(unit, total.operands[index], store):
                    found.stores[store] = None
                    found.kept[total] = index
                    break
    return found


def _may_update(unit: Unit, store: Store, partial: int) -> bool:
    """True if a number is stored in memory that has a shadow, the same for all lanes."""
    value, pointer = store.operands
    if not isinstance(value.type, FloatType) or not store.is_plain:
        return False
    return unit.activity.is_active(pointer) and not unit.points_to.mask(pointer) & partial


def _beginnings(unit: Unit, store: Store) -> Iterator[tuple[Binary, int]]:
    """The additions that a stored sum may begin with, and the operand that was loaded from the place of the store."""
    active = unit.activity.active
    pending: list[tuple[Value, Instruction]] = [(store.operands[0], store)]
    while pending:
        value, user = pending.pop()
        if not isinstance(value, Binary) or value.opcode not in ("fadd", "fsub") or value.block is not store.block:
            continue
        first, second = value.operands
        if list(value.users) != [user] or value not in active or first is second:
            continue
        for index in (0, 1) if value.opcode == "fadd" else (0,):
            term = value.operands[index]
            if term in active and _is_old_content(term, store):
                yield value, index
            else:
                pending.append((term, value))


def _is_old_content(value: Value, store: Store) -> bool:
    """True if a value was loaded, before a store in the same block, from the place of the store."""
    if not isinstance(value, Load) or not value.is_plain:
        return False
    return value.operands[0] is store.operands[1] and value.block is store.block


def _touches(unit: Unit, load: Value, store: Store) -> bool:
    """True if anything between a load and a store may write to their place, or is a call that may read it."""
    assert store.block is not None
    instructions = store.block.instructions
    assert isinstance(load, Instruction)
    touched = 0
    for inst in instructions[instructions.index(load) + 1 : instructions.index(store)]:
        access = unit.mod_ref.of(inst)
        touched |= access.writes | access.frees | (access.reads if isinstance(inst, CallSite) else 0)
    return bool(unit.points_to.overlapping(touched) & unit.points_to.mask(store.operands[1]))


# Objects that each thread has for itself, so that no other adds to their shadows.
_OWN: Final = frozenset({ObjectKind.LOCAL, ObjectKind.ALLOCATION, ObjectKind.HEADER})


@dataclass(eq=False, slots=True)
class ReversePlace:
    """Place at which values of the forward sweep are wanted: an adjoint block (its head), or an edge of it (its end).

    Attributes:
        block: the block of the reverse sweep.
        primal: the primal block whose iteration is current there.
    """

    block: Block
    primal: Block
    head: Instruction | None = None
    made: dict[Value, Value] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Need:
    """A value of the forward sweep wanted at a place; ``placeholder`` represents it until the plan is carried out."""

    value: Value
    place: ReversePlace
    placeholder: Freeze


@dataclass(eq=False, slots=True)
class LoopState:
    """State of a loop in the reverse sweep: the slot of its iteration number, and its edges.

    Attributes:
        iteration: i64 slot; which iteration of the primal is being reversed.
        entries: (place on the edge, primal exit block): where the reversed loop is entered.
        back: the place on the edge to the previous iteration; None while that edge has not been emitted.
    """

    loop: Loop
    iteration: Alloca
    entries: list[tuple[ReversePlace, Block]] = field(default_factory=list)
    back: ReversePlace | None = None


@dataclass(eq=False, slots=True)
class ReverseLane:
    """State of one direction of the reverse sweep.

    Attributes:
        augmented: its shadows.
        slots: its cotangents on the stack, by primal value.
        local: those of the current block that are plain values.
    """

    augmented: AugmentedPrimal
    slots: dict[Value, Alloca] = field(default_factory=dict)
    local: dict[Value, Value] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Sweep:
    """A reverse sweep under construction.

    Attributes:
        lanes: one for each direction.
        lane: the one in which code is emitted.
        shared: code emitted once beside an instruction, for all lanes.
        deciding: values of the forward sweep that the reverse sweep compares: they must be the very numbers.
        updates: stores that leave the shadow as it is.
    """

    augmented: AugmentedPrimal
    needs: list[Need] = field(default_factory=list)
    places: dict[Block, ReversePlace] = field(default_factory=dict)
    loops: dict[Loop, LoopState] = field(default_factory=dict)
    lanes: tuple[ReverseLane, ...] = field(init=False)
    lane: ReverseLane = field(init=False)
    shared: dict[tuple[Value, object], Value] = field(default_factory=dict)
    place: ReversePlace | None = None
    windows: dict[int, tuple[Value, Value, Value, Value]] = field(default_factory=dict)
    deciding: dict[Value, None] = field(default_factory=dict)
    updates: Updates = field(init=False)
    build: Builder = field(init=False)
    allocas: Block = field(init=False)

    scopes: AliasScopes = field(init=False)

    def __post_init__(self) -> None:
        unit = self.augmented.unit
        self.updates = find_updates(self.augmented)
        ranked = self.augmented.scopes.ranked
        self.lanes = tuple(map(ReverseLane, self.augmented.lanes))
        self.lane = self.lanes[0]
        self.scopes = AliasScopes(
            self.augmented.program.module, unit.points_to, not unit.everything, ranked, len(self.lanes)
        )
        self.allocas = self.function.add_block("entry")
        self.build = Builder(self.allocas)

    @property
    def function(self) -> Function:
        """The function being built."""
        return self.augmented.pair[REVERSE]

    @property
    def frame_pointer(self) -> Value:
        """The parameter that points to the frame."""
        return self.function.params[0]

    @property
    def arena(self) -> Value:
        """The parameter that points to the arena."""
        return self.function.params[1]

    # -------------------------------------------------------------------------------------------- lanes

    def each_lane(self) -> Iterator[ReverseLane]:
        """Goes through the lanes; what is emitted meanwhile is for the one reached. Ends in the first."""
        for lane in self.lanes:
            self.lane = lane
            yield lane
        self.lane = self.lanes[0]

    def once(self, inst: Value, what: object, make: Callable[[], Value]) -> Value:
        """Value that is the same in all lanes of the adjoint of an instruction: the first that asks emits it."""
        if (inst, what) not in self.shared:
            self.shared[inst, what] = make()
        return self.shared[inst, what]

    @property
    def slots(self) -> dict[Value, Alloca]:
        """The stack slots of cotangents, of the current lane."""
        return self.lane.slots

    # -------------------------------------------------------------------------------------------- values of the primal

    def value(self, primal: Value) -> Value:
        """A primal value, here and now."""
        return self.need(self.augmented.value(primal))

    def deciding_value(self, primal: Value) -> Value:
        """A primal value that adjoint code compares, so that another rounding of it would be another decision."""
        value = self.augmented.value(primal)
        self.deciding[value] = None
        return self.need(value)

    def factor(self, primal: Value) -> Value:
        """A primal value that a partial derivative is computed from: it is compared with zero where that wins."""
        return self.deciding_value(primal) if self.zero_wins else self.value(primal)

    def shadow(self, pointer: Value) -> Value:
        """The shadow of a primal pointer."""
        return self.need(self.lane.augmented.shadow(pointer))

    def need(self, value: Value) -> Value:
        """A value of the forward sweep at the current place."""
        assert self.place is not None
        return self.need_at(value, self.place)

    def need_at(self, value: Value, place: ReversePlace) -> Value:
        """A value of the forward sweep at a given place."""
        if isinstance(value, Constant | GlobalVariable | GlobalAlias | Function):
            return value
        # These are parameters of the reverse sweep as well, so they are neither saved nor recomputed.
        if value is self.augmented.frame_pointer:
            return self.frame_pointer
        if value is self.augmented.arena:
            return self.arena
        # One placeholder for all uses at a place, so that the value is loaded or recomputed once there.
        found = place.made.get(value)
        if found is None:
            # Placeholders that have users when the sweep is complete are the needs: simplified code may not ask for all
            # of them.
            placeholder = Freeze(value.type, value.name, operands=[Undef(value.type)])
            place.block.insert(0, placeholder)
            self.needs.append(Need(value, place, placeholder))
            place.made[value] = found = placeholder
        return found

    # -------------------------------------------------------------------------------------------- cotangents

    def is_active(self, primal: Value) -> bool:
        """True if a value has a cotangent, or a pointer a shadow."""
        return self.augmented.unit.activity.is_active(primal)

    def accumulate(self, primal: Value, amount: Value) -> None:
        """Adds to the cotangent of a value; nothing happens when it has none."""
        if primal not in self.augmented.unit.activity.active:
            return
        if self.is_local(primal):
            old = self.lane.local.get(primal)
            self.lane.local[primal] = amount if old is None else self.add(old, amount)
            return
        slot = self.slot(primal)
        self.build.store(self.add(self.build.load(primal.type, slot), amount), slot)

    def take(self, primal: Value) -> Value | None:
        """The cotangent of a value, whose slot is empty from then on; None when it is known to be zero."""
        if primal not in self.augmented.unit.activity.active:
            return None
        if self.is_local(primal):
            return self.lane.local.pop(primal, None)
        slot = self.slots.get(primal)
        if slot is None and not self.is_carried(primal):
            return None
        slot = self.slot(primal)
        taken = self.build.load(primal.type, slot)
        # In a loop, the iteration that is reversed next adds to the same slot.
        self.build.store(empty(primal.type), slot)
        return taken

    def is_carried(self, primal: Value) -> bool:
        """True if an adjoint block emitted later may still add to the cotangent: along the back edge of a loop."""
        block = primal.block if isinstance(primal, Instruction) else None
        return block is not None and self.augmented.unit.loops.loop_of(block) is not None

    def is_local(self, primal: Value) -> bool:
        """True if all that adds to the cotangent lies in the value's own adjoint block."""
        if not isinstance(primal, Instruction) or isinstance(primal, Phi):
            return False
        return all(user.block is primal.block and not isinstance(user, Phi) for user in primal.users)

    def slot(self, primal: Value) -> Alloca:
        """The stack slot of a cotangent."""
        found = self.slots.get(primal)
        if found is None:
            found = self.new_slot(primal.type, empty(primal.type))
            self.slots[primal] = found
        return found

    def new_slot(self, type_: Type, initial: Value) -> Alloca:
        """Stack memory with an initial value."""
        build = Builder(self.allocas)
        if self.allocas.instructions and self.allocas.instructions[-1].targets:
            build = Builder.before(self.allocas.instructions[-1])
        slot = build.alloca(type_)
        build.store(initial, slot)
        return slot

    def add(self, a: Value, b: Value) -> Value:
        """Sum of two cotangents of a float, a vector of floats, or an aggregate holding some."""
        if isinstance(a.type, FloatType | VectorType):
            return self.build.fadd(a, b, self.sum_flags)
        total = a
        for index, element in enumerate(element_types(a.type)):
            if holds_floats(element):
                x, y = self.build.extract_value(a, index), self.build.extract_value(b, index)
                total = self.build.insert_value(total, self.add(x, y), index)
        return total

    @property
    def sum_flags(self) -> tuple[str, ...]:
        """Fast-math words of adjoint sums."""
        # The program says nothing of the order in which cotangents are added, and LLVM makes vectors of sums it may
        # reorder.
        return () if self.augmented.program.request.strict else ("reassoc",)

    @property
    def shares_reciprocals(self) -> bool:
        """True if divisions of cotangents may be products with a reciprocal."""
        request = self.augmented.program.request
        # A product with the reciprocal may differ from the quotient in its last place.
        return not (request.strict or request.watches or self.augmented.unit.everything)

    @property
    def zero_wins(self) -> bool:
        """True if a zero partial derivative makes zero of an infinite cotangent."""
        return self.augmented.program.request.zero_wins

    def load_shadow(self, type_: Type, pointer: Value) -> Value:
        """Loads from the shadow of a primal pointer's target."""
        loaded = self.build.load(type_, self.shadow(pointer), align=access_align(type_))
        loaded.metadata = {**loaded.metadata, **self.scopes_of(pointer)}
        return loaded

    def add_to_shadow(self, pointer: Value, amount: Value) -> None:
        """Adds to the shadow of a primal pointer's target."""
        how = self.adding(pointer, amount.type)
        if how is Adding.PLAIN:
            self.store_shadow(self.add(self.load_shadow(amount.type, pointer), amount), pointer)
            return
        if not isinstance(amount.type, FloatType):
            raise UnsupportedError(
                f"a value of type {amount.type} is read at once from memory that threads share",
                "read one number at a time",
                "cotangents are added to such memory by atomic operations, which take one number",
            )
        shadow = self.shadow(pointer)
        if how is Adding.SUMMED:
            self.build.call(sum_function(self.build.module, amount.type), [shadow, amount])
            return
        added = self.build.atomic("fadd", amount, shadow)
        added.metadata = {**added.metadata, **self.scopes_of(pointer)}

    def adding(self, pointer: Value, type_: Type) -> Adding:
        """The way of adding a number to the shadow of a primal pointer's target."""
        if not self.is_shared(pointer):
            return Adding.PLAIN
        # Where all threads of a warp add to one place, a sum within the warp saves all but one of the atomic additions.
        is_common = pointer in self.augmented.unit.meetings.common and pointer.type is types.PTR
        return Adding.SUMMED if is_common and type_ is not types.HALF else Adding.ATOMIC

    def is_shared(self, pointer: Value) -> bool:
        """True if other threads may add to the shadow of a primal pointer's target."""
        if not self.augmented.program.request.host.is_shared:
            return False
        unit = self.augmented.unit
        if not unit.points_to.mask(pointer) & ~unit.meetings.owned:
            return False
        return any(item.kind not in _OWN for item in unit.points_to.of(pointer))

    def store_shadow(self, value: Value, pointer: Value) -> None:
        """Stores into the shadow of a primal pointer's target."""
        store = self.build.store(value, self.shadow(pointer), align=access_align(value.type))
        store.metadata = {**store.metadata, **self.scopes_of(pointer)}

    def scopes_of(self, pointer: Value) -> Metadata:
        """Alias metadata of an access of a pointer's shadow."""
        return self.shadow_scopes(self.augmented.unit.points_to.mask(pointer))

    def shadow_scopes(self, mask: int) -> Metadata:
        """Alias metadata of an access of the shadows of some objects."""
        return self.scopes.shadow(mask, self.lane.augmented.lane)


def empty(type_: Type) -> Value:
    """Initial value of a slot, to which nothing has been added."""
    # x + -0.0 is x for every x; x + 0.0 would lose the sign of -0.0, and LLVM could not drop the addition.
    return const_float(type_, -0.0) if type_ in (types.FLOAT, types.DOUBLE) else zero_of(type_)
