"""Watch: in debug mode, calls that look for NaNs, infinities and ties while a derivative runs.

Input   the two functions of a finished pair, or the one of forward mode.
Output  the same with checks; a `Mark` for each place that is checked, from which the driver makes what a message says.
Method  after each floating-point operation stands a call of `irad.check_f64`, whose result takes the place of that of
        the operation: the number itself, or a NaN that names the place. In front of a comparison of active values that
        decides something stands a call of `irad.tie_f64`. Each function keeps an *activation*: the one before, the
        numbers of the iterations that its loops are in, the table of places, the place of the call that is running, and
        of a lane the schedule. The arena has the innermost.
Limit   what calls do to memory is not seen; such calls are marked as opaque, to be named as candidates.

    %y = fdiv double %a, %b           %y = fdiv double %a, %b
                                      %y.checked = call double @irad.check_f64(%arena, @table, 7, %y, %a, %b, 0.0)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import (
    Alloca,
    Binary,
    Call,
    CallSite,
    Cast,
    CondBr,
    FCmp,
    ICmp,
    Instruction,
    Load,
    Phi,
    Ret,
    Select,
    Store,
    replace_uses,
)
from irad.ir.loops import Loop
from irad.ir.module import Block, Function, Module
from irad.ir.text.keywords import POISONING
from irad.ir.types import FloatType
from irad.ir.values import Constant, GlobalVariable, Value, const_float, const_int
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.callees import is_from_outside, resolve
from irad.passes.instrument.marks import Mark, MarkKind
from irad.passes.parallel.flatten import CHUNKS, SCHEDULE, STEP
from irad.passes.parallel.launch import lane_head, lane_parameter
from irad.passes.program import DerivedFunctions
from irad.passes.reverse.control import AugmentedLoops
from irad.passes.reverse.sweep import Sweep
from irad.passes.runtime import ARENA_ALLOC, CHECKS, TIE, runtime_function
from irad.passes.unit import Unit
from irad.records import dataclass
from irad.ruleset.interface import CallRule, Elementwise
from irad.ruleset.python_names import python_name
from irad.runtime_layouts import ARENA

# Choices: whether a branch or a selection depends on a comparison.
#
# Input   a function in normal form with its analyses.
# Output  a yes or no for each comparison. The function is not changed.
# Method  forward along users; through memory from a store to the loads of the same type that may read it, as arrays of
#         booleans are written by one loop and read by the next.
# Limit   what leaves a function other than the entry may be asked for elsewhere, so it counts as deciding. What memory
#         copies move is not followed.
#
#     %c = fcmp ogt double %x, 0.0      decides, …
#     store i1 %c, ptr %mask
#     %m = load i1, ptr %mask           … if %mask may be what was written
#     br i1 %m, label %a, label %b


@dataclass(frozen=True, slots=True)
class Choices:
    """Decisions of the comparisons of a function."""

    unit: Unit

    def depend_on(self, comparison: FCmp) -> bool:
        """True if a choice depends on a comparison."""
        pending: list[tuple[Instruction, Value]] = [(user, comparison) for user in comparison.users]
        seen: set[Instruction] = set()
        while pending:
            user, value = pending.pop()
            if user in seen:
                continue
            seen.add(user)
            match user:
                case CondBr() | Select():
                    return True
                case Ret() | CallSite() if self._leaves(user):
                    return True
                case Store(operands=[stored, pointer]) if stored is value:
                    if not self.unit.variant.is_entry:
                        return True
                    pending.extend((reader, load) for load in self._readers(pointer, value) for reader in load.users)
                case Binary() | Cast() | ICmp() | Phi():
                    pending.extend((each, user) for each in user.users)
                case _:
                    pass
        return False

    def _leaves(self, user: Instruction) -> bool:
        """True if a returned or passed value may decide something elsewhere."""
        if isinstance(user, CallSite):
            return isinstance(resolve(user, self.unit.registry), Function)
        return not self.unit.variant.is_entry

    def _readers(self, pointer: Value, value: Value) -> Iterator[Load]:
        points_to = self.unit.points_to
        mask = points_to.mask(pointer)
        for inst in self.unit.function.instructions():
            if isinstance(inst, Load) and inst.type is value.type and points_to.mask(inst.operands[0]) & mask:
                yield inst


ACTIVATION: Final = ARENA.offset("activation")
_PARENT, _ITERATIONS, _TABLE, _SITE, _SCHEDULE, _STEP = range(0, 48, 8)  # in an activation
_WORDS: Final = {
    "fadd": "{0} + {1}",
    "fsub": "{0} - {1}",
    "fmul": "{0} * {1}",
    "fdiv": "{0} / {1}",
    "frem": "{0} % {1}",
}
_ORDER: Final = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_KINKS: Final = {"fabs": "abs({0})", "fmax": "max({0}, {1})", "fmin": "min({0}, {1})"}


def watch_pair(augmented: AugmentedPrimal, sweep: Sweep, loops: AugmentedLoops) -> None:
    """Inserts the checks into both functions of a pair."""
    numbers = {loop: slot for slot, loop in enumerate(augmented.unit.loops.loops)}
    _Watch(augmented, augmented.function, numbers, _blocks_of_forward(loops)).run(loops, None)
    _Watch(augmented, sweep.function, numbers, _blocks_of_reverse(sweep)).run(loops, sweep)


def watch_tangent(augmented: AugmentedPrimal) -> None:
    """Inserts the checks into the function of forward mode."""
    loops = AugmentedLoops(augmented)
    numbers = {loop: slot for slot, loop in enumerate(augmented.unit.loops.loops)}
    _Watch(augmented, augmented.function, numbers, _blocks_of_forward(loops)).run(loops, None)


def _blocks_of_forward(loops: AugmentedLoops) -> dict[Block, Block]:
    values = loops.augmented.values
    blocks = loops.augmented.unit.function.blocks
    return {copy: block for block in blocks if isinstance(copy := values.get(block), Block)}


def _blocks_of_reverse(sweep: Sweep) -> dict[Block, Block]:
    """The primal block of each block of the reverse: an edge belongs to the block at its end."""
    found = {place.block: primal for primal, place in sweep.places.items()}
    for need in sweep.needs:
        found.setdefault(need.place.block, need.place.primal)
    for state in sweep.loops.values():
        for place in [place for place, _ in state.entries] + ([state.back] if state.back is not None else []):
            found.setdefault(place.block, place.primal)
    for block in sweep.function.blocks:
        if block not in found and len(block.successors) == 1 and block.successors[0] in found:
            found[block] = found[block.successors[0]]
    return found


@dataclass(eq=False, slots=True)
class _Watch:
    """Inserts the checks of one function."""

    augmented: AugmentedPrimal
    function: Function
    numbers: dict[Loop, int]
    primal_blocks: dict[Block, Block]
    activation: Value = field(init=False)
    iterations: Value = field(init=False)
    ruled_slots: dict[Value, str] = field(default_factory=dict)
    sites: dict[CallSite, int] = field(default_factory=dict)
    located: dict[Block, Instruction] = field(default_factory=dict)

    @property
    def arena(self) -> Value:
        return self.function.params[1]

    @property
    def module(self) -> Module:
        return self.augmented.program.module

    @property
    def table(self) -> GlobalVariable:
        return self.augmented.program.places()

    def run(self, loops: AugmentedLoops, sweep: Sweep | None) -> None:
        watched = dict.fromkeys(inst for block in self.function.blocks for inst in block.instructions)
        self.open_activation()
        self.note_iterations(loops, sweep)
        for inst in watched:
            if isinstance(inst, CallSite):
                self.note_call(inst)
        for block in self.function.blocks:
            self.rewrite(block, watched)

    def rewrite(self, block: Block, watched: Collection[Instruction]) -> None:
        """Rebuilds a block with the checks: everything is appended, so that long blocks take linear time."""
        instructions, block.instructions = block.instructions, []
        for inst in instructions:
            if inst not in watched:
                block.append(inst)
                continue
            if isinstance(inst, CallSite) and inst in self.sites:
                build = Builder(block)
                build.store(const_int(types.I64, self.sites[inst]), build.byte_offset(self.activation, _SITE), align=8)
            self.watch(inst)

    # -------------------------------------------------------------------------------------------- activations

    def open_activation(self) -> None:
        """Makes this function's activation the innermost one, and restores the previous one at its returns."""
        entry = self.function.entry
        build = Builder.before(next(i for i in entry.instructions if not isinstance(i, Alloca | Phi)))
        count = const_int(types.I64, max(1, len(self.numbers)))
        self.iterations = build.alloca(types.I64, count, name="iterations")
        self.activation = build.alloca(types.I64, const_int(types.I64, 6), name="activation")
        innermost = build.byte_offset(self.arena, ACTIVATION)
        parent = build.load(types.PTR, innermost, name="activation.before")
        build.store(parent, build.byte_offset(self.activation, _PARENT), align=8)
        build.store(self.iterations, build.byte_offset(self.activation, _ITERATIONS), align=8)
        build.store(self.table, build.byte_offset(self.activation, _TABLE), align=8)
        build.store(const_int(types.I64, 0), build.byte_offset(self.activation, _SITE), align=8)
        if self.augmented.unit.variant.is_lane:
            self.note_schedule(build)
        build.store(self.activation, innermost, align=8)
        for block in self.function.blocks:
            if isinstance(block.terminator, Ret):
                leave = Builder.before(block.terminator)
                leave.store(parent, leave.byte_offset(self.arena, ACTIVATION), align=8)

    def note_schedule(self, build: Builder) -> None:
        """The chunks of a lane, from its record, after which its frame lies: they say which iterations are which.

        Numba frees the schedule after the loop, so the reverse sweep is left a copy.
        """
        before = lane_head(self.augmented.pair)
        slots = [build.byte_offset(self.function.params[0], lane_parameter(i) - before) for i in (SCHEDULE, STEP)]
        if self.function is self.augmented.function:
            schedule, chunks, step = (self.function.params[2 + i] for i in (SCHEDULE, CHUNKS, STEP))
            size = build.mul(chunks, step)
            kept = build.call(runtime_function(self.module, ARENA_ALLOC), [self.arena, size], name="schedule")
            copy = types.function_type(types.VOID, [types.PTR, types.PTR, types.I64, types.I1])
            memcpy = self.module.declare("llvm.memcpy.p0.p0.i64", copy)
            build.call(memcpy, [kept, schedule, size, const_int(types.I1, 0)])
            build.store(kept, slots[0], align=8)
        for slot, type_, field_ in zip(slots, (types.PTR, types.I64), (_SCHEDULE, _STEP), strict=True):
            build.store(build.load(type_, slot, align=8), build.byte_offset(self.activation, field_), align=8)

    def note_iterations(self, loops: AugmentedLoops, sweep: Sweep | None) -> None:
        """Keeps the numbers of the iterations in the activation: of the primal's loops, in both sweeps."""
        for loop, slot in self.numbers.items():
            if sweep is None:
                twin = loops.twins[loop]
                counter = loops.counter(loop)
                build = Builder.at_start(twin.header)
                build.store(counter, self.slot_of(build, slot), align=8)
            else:
                # The sweep's own slot becomes a word of the activation, where reports look for the number.
                old = sweep.loops[loop].iteration
                build = Builder.before(old)
                replace_uses(old, build.byte_offset(self.iterations, 8 * slot))
                old.erase()

    def slot_of(self, build: Builder, slot: int) -> Value:
        return build.byte_offset(self.iterations, 8 * slot)

    def note_call(self, call: CallSite) -> None:
        """Remembers the place of a call of a pair, which is reported before it, and where rules put numbers."""
        callee = call.callee
        pair = self.pair_called(call)
        if pair is None and (isinstance(callee, Function) or not isinstance(call, Call)):
            return
        if pair is not None and is_from_outside(pair.variant.function, self.augmented.unit.registry):
            name = str(pair.variant.function.name)
            self.mark(MarkKind.OPAQUE, call, "a rule", ruled=name)
            for value in call.arguments:
                if isinstance(value, Alloca):
                    self.ruled_slots[value] = name
        self.sites[call] = self.mark(MarkKind.CALL, call, "")

    def pair_called(self, call: CallSite) -> DerivedFunctions | None:
        """The pair to which a called function belongs, which is watched itself."""
        callee = call.callee
        return self.augmented.program.owners.get(callee) if isinstance(callee, Function) else None

    # -------------------------------------------------------------------------------------------- checks

    def watch(self, inst: Instruction) -> None:
        """Appends an instruction to its block, with the code that it needs before and after it."""
        block = inst.block
        assert block is not None
        # With nnan or ninf LLVM could assume that there is nothing to find, and drop the check.
        if isinstance(inst, Binary | FCmp | Select | CallSite) and POISONING & set(inst.flags):
            inst.flags = tuple(_watched_flags(inst.flags))
        if self.is_primal(inst):
            self.watch_choice(inst)
        block.append(inst)
        if isinstance(inst.type, FloatType) and inst.type in (types.FLOAT, types.DOUBLE) and inst.users:
            self.watch_result(inst)
        if isinstance(inst, Call):
            self.note_opaque(inst)

    def is_primal(self, inst: Instruction) -> bool:
        """True if it is the copy of an instruction of the primal, not code added beside it."""
        return inst.origin is not None and self.augmented.values.get(inst.origin) is inst

    def watch_result(self, inst: Instruction) -> None:
        match inst:
            case Binary(opcode=opcode):
                words, operands = _WORDS[opcode], inst.operands
            case Cast(opcode="fptrunc"):
                words, operands = "{0} in single precision", inst.operands
            case Call(callee=Function(name=str(symbol))) if self.pair_called(inst) is None:
                operands = [v for v in inst.arguments if isinstance(v.type, FloatType)][:3]
                slots = iter(range(3))
                given = (f"{{{next(slots)}}}" if v in operands else "…" for v in inst.arguments)
                words = f"{self.name_of(inst, symbol)}({', '.join(given)})"
            case Load(operands=[pointer]) if pointer in self.ruled_slots:
                self.check(inst, "a rule", (), ruled=self.ruled_slots[pointer])
                return
            case _:
                return
        self.check(inst, words, operands)

    def name_of(self, call: CallSite, symbol: str) -> str:
        rule = resolve(call, self.augmented.unit.registry)
        if isinstance(rule, Elementwise):
            return rule.name
        return python_name(symbol)

    def check(self, inst: Instruction, words: str, operands: Sequence[Value], ruled: str | None = None) -> None:
        """Replaces a result by a checked number."""
        number = self.mark(self.kind_of(inst), inst, words, ruled=ruled)
        assert inst.block is not None
        build = Builder(inst.block)
        build.origin, build.metadata = inst.origin, _debug_only(inst)
        wide = [build.cast("fpext", v, types.DOUBLE) if v.type is types.FLOAT else v for v in operands]
        wide += [const_float(types.DOUBLE, 0.0)] * (3 - len(wide))
        check = runtime_function(self.module, CHECKS[inst.type])
        # Listed before the check is made, which is a user of the number, too.
        users = list(inst.users)
        checked = build.call(check, [self.arena, self.table, const_int(types.I64, number), inst, *wide])
        for user in users:
            for index, value in enumerate(user.operands):
                if value is inst:
                    user.set_operand(index, checked)

    def kind_of(self, inst: Instruction) -> MarkKind:
        """Kind of a result: of the primal, which the reverse sweep may recompute, or a derivative."""
        if self.augmented.program.request.mode.is_forward:
            return MarkKind.VALUE if self.is_primal(inst) else MarkKind.TANGENT
        if self.function is self.augmented.function:
            return MarkKind.VALUE
        origin = inst.origin
        again = origin is not None and origin.block is not None and origin.block.function is self.augmented.function
        return MarkKind.VALUE if again else MarkKind.DERIVATIVE

    def watch_choice(self, inst: Instruction) -> None:
        """A comparison that decides something, and functions with a kink, of numbers that depend on active inputs."""
        activity = self.augmented.unit.activity
        primal = inst.origin
        assert primal is not None
        if not any(activity.depends_on_input(v) for v in primal.operands if isinstance(v.type, FloatType)):
            return
        match inst:
            case FCmp(operands=[a, b], predicate=predicate) if a is not b and predicate[1:] in _ORDER:
                if isinstance(primal, FCmp) and Choices(self.augmented.unit).depend_on(primal):
                    self.tie(inst, f"{{0}} {_ORDER[predicate[1:]]} {{1}}", a, b)
            case Call(callee=Function(name=str(symbol))):
                name = self.name_of(inst, symbol)
                words = _KINKS.get(name)
                if words is not None:
                    a, *rest = inst.arguments
                    self.tie(inst, words, a, rest[0] if rest else const_float(a.type, 0.0))
            case _:
                pass

    def tie(self, inst: Instruction, words: str, a: Value, b: Value) -> None:
        if a.type not in (types.FLOAT, types.DOUBLE) or (isinstance(a, Constant) and isinstance(b, Constant)):
            return
        number = self.mark(MarkKind.TIE, inst, words)
        assert inst.block is not None
        build = Builder(inst.block)
        x, y = (build.cast("fpext", v, types.DOUBLE) if v.type is types.FLOAT else v for v in (a, b))
        build.call(runtime_function(self.module, TIE), [self.arena, self.table, const_int(types.I64, number), x, y])

    def note_opaque(self, call: Call) -> None:
        """A call of a library that accesses memory may make a NaN there without being noticed."""
        if not isinstance(call.callee, Function) or str(call.callee.name).startswith("llvm.mem"):
            return
        rule = resolve(call, self.augmented.unit.registry)
        computes = isinstance(rule, CallRule) and rule.effects.writes and not rule.effects.writes_no_floats
        if computes and self.is_primal(call):
            self.mark(MarkKind.OPAQUE, call, python_name(str(call.callee.name)))

    # -------------------------------------------------------------------------------------------- marks

    def mark(self, kind: MarkKind, inst: Instruction, words: str, ruled: str | None = None) -> int:
        """Adds a place to the program's list; returns its number."""
        assert inst.block is not None
        block = self.primal_blocks.get(inst.block)
        around = list(self.loops_around(block)) if block is not None else []
        where: Instruction = inst
        if inst.origin is None and "dbg" not in inst.metadata and block is not None:
            where = self.located_in(block)
        primal = self.primal_words(inst) if kind.is_derivative else ""
        marks = self.augmented.program.marks
        in_lane = self.augmented.unit.variant.is_lane
        marks.append(Mark(kind, words, primal, ruled, in_lane, where, tuple(around)))
        return len(marks) - 1

    def located_in(self, block: Block) -> Instruction:
        """An instruction of a block of the primal that knows its line, if any does."""
        if block not in self.located:
            self.located[block] = next((i for i in block.instructions if "dbg" in i.metadata), block.terminator)
        return self.located[block]

    def loops_around(self, block: Block) -> Iterator[tuple[int, Loop]]:
        found: list[Loop] = []
        loop = self.augmented.unit.loops.loop_of(block)
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        for each in reversed(found):
            yield self.numbers[each], each

    def primal_words(self, inst: Instruction) -> str:
        """The instruction of the primal that one differentiates, in words without values."""
        match inst.origin:
            case Binary(opcode=opcode) if opcode in _WORDS:
                return _WORDS[opcode][4]
            case CallSite(callee=Function(name=str(symbol))) as call:
                return self.name_of(call, symbol)
            case _:
                return ""


def _debug_only(inst: Instruction) -> dict[str, str]:
    return {kind: node for kind, node in inst.metadata.items() if kind == "dbg"}


def _watched_flags(flags: Sequence[str]) -> Iterator[str]:
    """Fast-math words without the promise that there are no NaNs and infinities."""
    for word in flags:
        if word == "fast":
            yield from ("reassoc", "nsz", "arcp", "contract", "afn")
        elif word not in POISONING:
            yield word
