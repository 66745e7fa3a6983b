"""Carries a plan out: saves in the forward sweep, real code for the reverse sweep's placeholders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import field

from irad.errors import PlanError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import (
    Alloca,
    Binary,
    CallSite,
    FCmp,
    Instruction,
    Load,
    Metadata,
    Select,
    Unary,
    replace_uses,
)
from irad.ir.loops import Loop, innermost_first
from irad.ir.module import Block, Function
from irad.ir.text.keywords import POISONING
from irad.ir.types import PointerType
from irad.ir.values import Parameter, Value, const_int
from irad.ir.worklist import Worklist, reachable
from irad.passes.augmented.tape import (
    NULL,
    WORD,
    FrameLayout,
    Records,
    Slab,
    load_value,
    make_records,
    make_slab,
    size_in_memory,
    store_value,
)
from irad.passes.plan.neighbouring_loads import Neighbour
from irad.passes.plan.plan import LoopMode, Plan
from irad.passes.plan.rematerialisation import Rematerialisation, is_free
from irad.passes.plan.stored_values import StoredPlace
from irad.passes.reverse.control import AugmentedLoops
from irad.passes.reverse.sweep import Sweep
from irad.passes.runtime import (
    ARENA_ALLOC,
    ARENA_ALLOC_PRODUCT,
    THREAD_ALLOC,
    THREAD_ALLOC_PRODUCT,
    runtime_function,
)
from irad.records import dataclass


@dataclass(eq=False, slots=True)
class Materialiser:
    """Replaces the placeholders of one sweep."""

    sweep: Sweep
    loops: AugmentedLoops
    remat: Rematerialisation
    saved: dict[Value, None] = field(default_factory=dict)
    saved_in: dict[Loop | None, list[Value]] = field(default_factory=dict)
    frame_slots: dict[Value, int] = field(default_factory=dict)
    storages: dict[Loop, Slab | Records] = field(default_factory=dict)
    shared: dict[Value, Slab] = field(default_factory=dict)
    record_slots: dict[Loop, Alloca] = field(default_factory=dict)
    last_records: dict[tuple[Loop, Block], Value] = field(default_factory=dict)
    found_later: list[Value] = field(default_factory=list)

    def carry_out(self, plan: Plan) -> None:
        """Carries the plan out in both sweeps."""
        for value in plan.saved:
            self.save(value)
        self.found_later = [value for value in self.recomputed() if value in self.remat.neighbours]
        # The address of an inner loop's slab is a value of the loop around it, which is therefore stored later.
        for loop in innermost_first(self.sweep.augmented.unit.loops.loops):
            self.store_loop(loop, plan.modes[loop])
        self.store_frame()
        for loop, storage in self.storages.items():
            if isinstance(storage, Records):
                self.follow_records(loop, storage)
        self.replace_placeholders()

    def replace_placeholders(self) -> None:
        """Puts real code in their place."""
        replace_placeholders(self.sweep, lambda build: _StoredHead(build, self.remat, self.saved, self))

    def recomputed(self) -> Iterator[Value]:
        """The values that the reverse sweep needs and that are not saved."""
        needed = [need.value for need in self.sweep.needs]
        found = reachable(needed, lambda value: () if value in self.saved else self.remat.operands(value) or ())
        return (value for value in found if value not in self.saved)

    # -------------------------------------------------------------------------------------------- forward sweep

    def loop_of(self, value: Value) -> Loop | None:
        """The innermost primal loop around a value of the forward sweep."""
        if not isinstance(value, Instruction) or value.block is None:
            return None
        return self.loops.innermost.get(value.block)

    def save(self, value: Value) -> None:
        """Saves a value at its definition; loops around that place are stored later."""
        if value not in self.saved:
            self.saved[value] = None
            self.saved_in.setdefault(self.loop_of(value), []).append(value)

    def store_loop(self, loop: Loop, mode: LoopMode) -> None:
        """Makes the storage of a loop for the values saved in it, and the saves."""
        # Wide values come first, so that the arrays after them are aligned.
        values = sorted(self.saved_in.get(loop, ()), key=lambda v: -size_in_memory(v.type))
        again = [] if self.sweep.augmented.unit.everything else [v for v in values if self.remat.repeated.around(v)]
        if again and loop.parent is not None:
            slab = self.store_in_slab(loop.parent, self.loops.trip_before(loop, loop.parent), again, loop)
            self.shared.update(dict.fromkeys(again, slab))
            values = [v for v in values if v not in self.shared]
        if not values:
            return
        if self.alternates:
            _check_words(values)
        last = self.loops.trip(loop)
        if mode is LoopMode.COUNTED and last is not None:
            self.storages[loop] = self.store_in_slab(loop, last, values, loop)
        else:
            self.store_in_records(loop, values)

    def store_in_slab(self, before: Loop, last: Value, values: list[Value], loop: Loop) -> Slab:
        """Save the values of a loop whose trip count is known on entry: an array with a slot per iteration.

        Args:
            before: the loop in front of which the array is allocated: this one, or the one around it.
            last: number of the last iteration, known there.
            values: the saved values.
            loop: in which they are made.
        """
        augmented, twin = self.sweep.augmented, self.loops.twins[before]
        is_primal = augmented.program.request.is_primal
        has_rows = self.alternates or (is_primal and len({value.type for value in values}) > 1)
        ahead = self.saved_ahead(values)
        more = max((number for each in ahead.values() for number in each.values()), default=0)
        slab = Slab(twin, last, values, has_rows=has_rows, alternates=self.alternates, more=more)
        allocate = THREAD_ALLOC_PRODUCT if self.alternates else ARENA_ALLOC_PRODUCT
        make_slab(slab, self.runtime(allocate), augmented.arena)
        counter = self.loops.counter(loop)
        for value in values:
            count = slab.count if slab.is_behind_others(value) else None
            for saved, number in (*ahead[value].items(), (value, 0)):
                # After those that are ahead, or vectors of iterations would leave an earlier number in a slot.
                build = self.after(saved, *([] if number else ahead[value]))
                index = build.add(counter, const_int(types.I64, number)) if number else counter
                slot = slab.slot(build, slab.base, count, value, index)
                store_value(build, saved, slot, augmented.scopes.tape())
        self.save(slab.base)
        if any(map(slab.is_behind_others, values)):
            self.plan_more(slab.count)
        return slab

    def saved_ahead(self, values: Sequence[Value]) -> dict[Value, dict[Value, int]]:
        """For each value the loads that find it some iterations earlier, with the number of these, farthest first."""
        found: dict[Value, dict[Value, int]] = {value: {} for value in values}
        neighbours = self.remat.neighbours
        for load in sorted(self.found_later, key=lambda each: -neighbours[each].ahead):
            if neighbours[load].load in found:
                found[neighbours[load].load][load] = neighbours[load].ahead
        return found

    def storage_of(self, value: Value) -> Slab | Records | None:
        """Slab or records in which a value is stored; None for the frame."""
        loop = self.loop_of(value)
        return None if loop is None else self.shared.get(value) or self.storages[loop]

    def all_storages(self) -> Iterator[tuple[Loop, Slab | Records]]:
        """All slabs and records, each with the loop of its values."""
        yield from self.storages.items()
        for slab in dict.fromkeys(self.shared.values()):
            loop = self.loop_of(slab.values[0])
            assert loop is not None
            yield loop, slab

    def plan_more(self, value: Value) -> None:
        """A value that storage needs: recomputed if that needs nothing new, else saved."""
        if not is_free(value) and not self.is_available(value):
            self.save(value)

    def is_available(self, value: Value) -> bool:
        """True if the reverse sweep can obtain a value from those saved so far."""
        pending = Worklist([value])
        for needed in pending:
            if is_free(needed) or needed in self.saved:
                continue
            operands = self.remat.operands(needed)
            if operands is None:
                return False
            pending.add(*operands)
        return True

    def store_in_records(self, loop: Loop, values: list[Value]) -> None:
        """Save the values of any other loop: a record per iteration, each linked to the one before."""
        augmented, twin = self.sweep.augmented, self.loops.twins[loop]
        has_links = not self.alternates or any(map(loop.contains, self.storages))
        layout = FrameLayout(WORD if has_links else 0)
        offsets = {v: layout.region(size_in_memory(v.type), min(8, size_in_memory(v.type))) for v in values}
        records = Records(twin, offsets, layout, has_links, self.alternates)
        allocate = THREAD_ALLOC if self.alternates else ARENA_ALLOC
        make_records(records, self.runtime(allocate), augmented.arena)
        for value in values:
            build = self.after(value, records.current)
            slot = records.slot(build, records.current, value)
            store_value(build, value, slot, augmented.scopes.tape())
        self.storages[loop] = records
        for _, exit_block in self.sweep.loops[loop].entries:
            key = (loop, exit_block)
            if key not in self.last_records:
                last = self.loops.carried_out(loop, exit_block, records.current, NULL)
                self.last_records[key] = last
                self.save(last)

    def after(self, value: Value, *also: Value) -> Builder:
        """Builder after the definition of a value, and after others where these are made in the same block."""
        if isinstance(value, Parameter):
            return Builder.at_start(self.sweep.augmented.function.entry)
        assert isinstance(value, Instruction)
        assert value.block is not None
        beside = [each for each in also if isinstance(each, Instruction) and each.block is value.block]
        return Builder.after(max((value, *beside), key=value.block.instructions.index) if beside else value)

    def store_frame(self) -> None:
        """Save the values that are computed once per call in the frame."""
        augmented = self.sweep.augmented
        for value in sorted(self.saved_in.get(None, ()), key=lambda v: -size_in_memory(v.type)):
            size = size_in_memory(value.type)
            offset = augmented.frame.region(size, min(8, types.alignment_of(value.type)))
            self.frame_slots[value] = offset
            build = self.after(value)
            store_value(build, value, build.byte_offset(augmented.frame_pointer, offset), augmented.scopes.tape())

    @property
    def alternates(self) -> bool:
        """True if places on the tape alternate with those of other threads."""
        host = self.sweep.augmented.program.request.host
        return host.is_shared and not host.is_inside

    def runtime(self, name: str) -> Function:
        """A run-time function."""
        return runtime_function(self.sweep.augmented.program.module, name)

    # -------------------------------------------------------------------------------------------- reverse sweep

    def follow_records(self, loop: Loop, records: Records) -> None:
        """Keeps the record of the iteration being reversed in a slot, set where the reversed loop is entered."""
        slot = self.sweep.new_slot(types.PTR, NULL)
        self.record_slots[loop] = slot
        state = self.sweep.loops[loop]
        for place, exit_block in state.entries:
            here = self.sweep.places[exit_block]
            last = self.sweep.need_at(self.last_records[loop, exit_block], here)
            build = Builder.before(place.block.terminator)
            build.store(last, slot)
        if state.back is not None:
            build = Builder.before(state.back.block.terminator)
            build.store(records.before(build, build.load(types.PTR, slot)), slot)


def _check_words(values: list[Value]) -> None:
    """Refuses values that do not fit in one word of a tape interleaved with those of other threads."""
    for value in values:
        if size_in_memory(value.type) > WORD:
            error = PlanError(
                f"a value of type {value.type} would have to be saved in a loop of a kernel",
                "use its parts instead, numbers of at most eight bytes",
                "the tapes of the threads of a warp are interleaved word by word",
            )
            error.instruction = value if isinstance(value, Instruction) else None
            raise error


@dataclass(eq=False, slots=True)
class Head(ABC):
    """Produces values of the forward sweep at the head of one adjoint block, where ``build`` is, each once."""

    build: Builder
    remat: Rematerialisation
    saved: Container[Value]
    made: dict[Value, Value] = field(default_factory=dict, init=False)

    def get(self, value: Value) -> Value:
        """A value of the forward sweep, as one of the reverse sweep.

        What it is computed from is made first, from a list of what is pending: a chain may be as long as the function.
        """
        pending = [value]
        while pending:
            needed = pending[-1]
            missing = [v for v in self.parts(needed) if self.at_hand(v) is None] if self.at_hand(needed) is None else []
            if missing:
                pending.extend(reversed(missing))
                continue
            if self.at_hand(needed) is None:
                self.made[needed] = self.load(needed) if needed in self.saved else self.recompute(needed)
            pending.pop()
        found = self.at_hand(value)
        assert found is not None
        return found

    def at_hand(self, value: Value) -> Value | None:
        """The value in the reverse sweep, if it needs no code or its code is there."""
        return value if is_free(value) else self.made.get(value)

    def parts(self, value: Value) -> tuple[Value, ...]:
        """Values that `load` or `recompute` will ask for."""
        if value in self.saved:
            return self.parts_of_saved(value)
        if value in self.remat.affine or value in self.remat.stored:
            return tuple(self.remat.operands(value) or ())
        return tuple(value.operands) if isinstance(value, Instruction) else ()

    def parts_of_saved(self, value: Value) -> tuple[Value, ...]:
        """Values that `load` will ask for."""
        return ()

    @abstractmethod
    def load(self, value: Value) -> Value:
        """A value that is saved."""

    @abstractmethod
    def recompute(self, value: Value) -> Value:
        """Any other value, from its parts."""


def replace_placeholders(sweep: Sweep, head_at: Callable[[Builder], Head]) -> None:
    """Replaces the placeholders by the needed values; ``head_at`` makes the code that produces them in one block."""
    heads: dict[Block, Head] = {}
    placeholders = {need.placeholder for need in sweep.needs}
    for need in sweep.needs:
        block = need.place.block
        if block not in heads:
            anchor = next(i for i in block.instructions if i not in placeholders)
            heads[block] = head_at(Builder.before(anchor))
        if need.placeholder.users:
            replace_uses(need.placeholder, heads[block].get(need.value))
    for need in sweep.needs:
        need.placeholder.erase()


@dataclass(eq=False, slots=True)
class _StoredHead(Head):
    """Loads the values that the `Materialiser` has stored."""

    owner: Materialiser

    def at_hand(self, value: Value) -> Value | None:
        sweep = self.owner.sweep
        if value is sweep.augmented.frame_pointer:
            return sweep.frame_pointer
        return sweep.arena if value is sweep.augmented.arena else Head.at_hand(self, value)

    def parts(self, value: Value) -> tuple[Value, ...]:
        if value in self.remat.neighbours and value not in self.saved:
            return self.parts_of_saved(self.remat.neighbours[value].load)
        return Head.parts(self, value)

    def parts_of_saved(self, value: Value) -> tuple[Value, ...]:
        storage = self.owner.storage_of(value)
        if not isinstance(storage, Slab):
            return ()
        return (storage.base, storage.count) if storage.is_behind_others(value) else (storage.base,)

    def load(self, value: Value) -> Value:
        owner = self.owner
        loop, storage = owner.loop_of(value), owner.storage_of(value)
        if loop is None or storage is None:
            return self.load_from(self.build.byte_offset(owner.sweep.frame_pointer, owner.frame_slots[value]), value)
        if isinstance(storage, Records):
            record = self.build.load(types.PTR, owner.record_slots[loop])
            return self.load_from(storage.slot(self.build, record, value), value)
        return self.load_from(self.slot_in(storage, value, self.iteration(loop)), value)

    def slot_in(self, slab: Slab, value: Value, index: Value) -> Value:
        """Address of a value's slot in a slab."""
        base = self.get(slab.base)
        count = self.get(slab.count) if slab.is_behind_others(value) else None
        return slab.slot(self.build, base, count, value, index)

    def load_later(self, value: Value, neighbour: Neighbour) -> Value:
        """Loads what another load has found in a later iteration."""
        owner, later = self.owner, neighbour.load
        loop, storage = owner.loop_of(later), owner.storage_of(later)
        assert loop is not None
        assert isinstance(storage, Slab)
        index = self.build.add(self.iteration(loop), const_int(types.I64, neighbour.ahead))
        return self.load_from(self.slot_in(storage, later, index), value)

    def load_from(self, slot: Value, value: Value) -> Value:
        """Loads a saved value."""
        return load_value(self.build, value.type, slot, value.name, self.owner.sweep.scopes.tape())

    def iteration(self, loop: Loop) -> Value:
        """The number of the iteration being reversed."""
        return self.build.load(types.I64, self.owner.sweep.loops[loop].iteration)

    def recompute(self, value: Value) -> Value:
        if value in self.remat.affine:
            return self.affine(value)
        if value in self.remat.stored:
            return self.load_stored(value, self.remat.stored[value])
        if value in self.remat.neighbours:
            return self.load_later(value, self.remat.neighbours[value])
        if self.remat.operands(value) is None or not isinstance(value, Instruction):
            raise PlanError(
                f"the value {value!r} is neither saved nor recomputable",
                'use irad.Options(plan="save_all"), and report it with the function',
                "the reverse sweep needs this value of the forward sweep and has no way to obtain it",
            )
        mapped: dict[Value, Value] = {v: self.get(v) for v in value.operands if not is_free(v)}
        copy = clone_instruction(value, mapped)
        if isinstance(value, Load):
            self.load_again(value, copy)
        elif isinstance(copy, Binary | Unary | Select | FCmp | CallSite):
            copy.flags = tuple(word for word in copy.flags if word not in POISONING)  # the primal may overflow
        self.build.insert(copy)
        return copy

    def load_again(self, load: Load, copy: Instruction) -> None:
        """Repeats a load: its alias scopes are those of this function."""
        primal = self.owner.remat.primal_of[load]
        own = {k: v for k, v in load.metadata.items() if k not in ("alias.scope", "noalias")}
        copy.metadata = {**own, **self.keep(primal.operands[0])}

    def load_stored(self, value: Value, place: StoredPlace) -> Value:
        """Loads the values that the forward sweep has stored."""
        pointer = self.get(self.owner.sweep.augmented.value(place.pointer))
        if place.behind:
            pointer = self.build.byte_offset(pointer, place.behind)
        loaded = self.build.load(value.type, pointer, align=place.store.align, name=value.name)
        loaded.metadata = {**loaded.metadata, **self.keep(place.pointer)}
        return loaded

    def keep(self, pointer: Value) -> Metadata:
        """Keeps the memory that a primal pointer points to; returns the alias scopes of an access."""
        sweep = self.owner.sweep
        mask = sweep.augmented.unit.points_to.mask(pointer)
        sweep.augmented.kept |= mask
        return sweep.scopes.primal(mask)

    def affine(self, value: Value) -> Value:
        """Start + step · iteration."""
        loop, variable = self.remat.affine[value]
        start, number = self.get(variable.start), self.iteration(loop)
        build = self.build
        if isinstance(value.type, PointerType):
            assert isinstance(variable.step, int)
            return build.byte_offset(start, build.mul(number, const_int(types.I64, variable.step)), name=value.name)
        step = const_int(value.type, variable.step) if isinstance(variable.step, int) else self.get(variable.step)
        build = self.build
        narrow = number if value.type is types.I64 else build.trunc(number, value.type)
        return build.add(start, build.mul(narrow, step), name=value.name)
