"""The values that become Python variables, and those of them that share one.

A value is written where it is used if it is used once, nearby, by the same line of the source, and if no memory that it
is loaded from is written in between. All other values are variables. Values that a phi joins share a variable if none
is needed after another was assigned (the interference of Chaitin's register allocation), so that `total = total_next`
disappears.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from irad.decompile import trees
from irad.decompile.arrays import Array
from irad.decompile.integers import LoopCount, is_sum, polynomial_of
from irad.decompile.loops import LoopVariable
from irad.decompile.names import FreshNames, source_name, source_names
from irad.decompile.pair_memory import PairMemory, is_allocation
from irad.decompile.pointers import place_of
from irad.decompile.sheet import Sheet, block_of
from irad.errors import SourceLocation, UnsupportedError
from irad.ir.instructions import (
    Alloca,
    Binary,
    Call,
    CallSite,
    Cast,
    ExtractValue,
    FCmp,
    Freeze,
    ICmp,
    Instruction,
    Load,
    Phi,
    Select,
    Store,
    Unary,
)
from irad.ir.module import Block
from irad.ir.types import I1, FloatType, IntType, PointerType
from irad.ir.values import Constant, GlobalVariable, Parameter, Value
from irad.passes.callees import effects_of, resolve
from irad.passes.generated import GeneratedPair
from irad.ruleset.interface import Elementwise

_LARGEST = 8  # operations in one expression


@dataclass(eq=False, slots=True)
class VariableChoice:
    """Chooses the variables of one sweep."""

    sheet: Sheet
    line_of: Callable[[Instruction], int | None]
    forced: set[Value]
    variables: set[Value] = field(default_factory=set)
    sizes: dict[Value, int] = field(default_factory=dict)
    positions: dict[Instruction, int] = field(default_factory=dict)

    def run(self) -> set[Value]:
        """The values that become variables."""
        for block in self.sheet.cfg.order:
            for index, inst in enumerate(block.instructions):
                self.positions[inst] = index
        for block in reversed(self.sheet.cfg.order):
            for inst in reversed(block.instructions):
                if self._has_text(inst) and not self._is_inline(inst):
                    self.variables.add(inst)
        for block in self.sheet.cfg.order:
            for inst in block.instructions:
                self._limit(inst)
        return self.variables

    def _has_text(self, inst: Instruction) -> bool:
        """True if a value is written anywhere: pointers and placeholders are not."""
        if inst in self.sheet.affine or inst in self.sheet.reads.saved or inst in self.sheet.reads.affine:
            return False
        if isinstance(inst.type, PointerType):
            return inst in self.sheet.chosen or (isinstance(inst, Call) and is_allocation(inst))
        return isinstance(inst.type, FloatType | IntType) and not isinstance(inst, Alloca)

    def _is_inline(self, inst: Instruction) -> bool:
        if isinstance(inst, Phi) or inst in self.forced or (isinstance(inst, Call) and is_allocation(inst)):
            return False
        if inst in self.sheet.chosen:
            return False
        if isinstance(inst, CallSite) and not self._is_pure(inst):
            return False
        if isinstance(inst, Load):
            return self._load_is_inline(inst)
        if isinstance(inst, Freeze):
            return True
        uses = sum(inst.users.values())
        if isinstance(inst.type, IntType):
            if isinstance(inst, Binary | Cast | ExtractValue) and inst.type is not I1:
                return uses <= 1 or not isinstance(inst, Binary) or is_sum(inst) or self._is_short(inst)
            if isinstance(inst, CallSite) and inst not in polynomial_of(self.sheet, inst).values:
                return True
            if isinstance(inst, ICmp) and self.is_stable(inst):
                return True
            return uses <= 1 and self._is_near(inst)
        return uses <= 1 and self._is_near(inst) and self._same_line(inst)

    def _is_short(self, inst: Binary) -> bool:
        """True if an operation of integers is one of numbers that have names."""
        values = {value for operand in inst.operands for value in polynomial_of(self.sheet, operand).values}
        return all(isinstance(v, Phi | Load | Parameter | LoopVariable) for v in values)

    def _is_pure(self, call: CallSite) -> bool:
        effects = effects_of(resolve(call, self.sheet.captured.augmented.unit.registry))
        return effects is not None and not (effects.other or effects.writes or effects.frees or effects.captures)

    def is_stable(self, value: Value) -> bool:
        """True if a value can be computed anywhere from parameters and loop variables."""
        value = self.sheet.same.get(value, value)
        if isinstance(value.type, PointerType):
            return False
        if isinstance(value, Constant | Parameter | LoopVariable | LoopCount):
            return not isinstance(value, GlobalVariable)
        if isinstance(value.type, IntType) and value.type is not I1:
            leaves = polynomial_of(self.sheet, value).values
            if leaves != {value}:
                return all(map(self.is_stable, leaves))
        if value in self.sheet.reads.saved or value in self.sheet.reads.affine:
            return False
        match value:
            case ICmp() | Binary() | Select() | Cast() | Freeze() if not isinstance(value.type, FloatType):
                if any(isinstance(v.type, FloatType) for v in value.operands):
                    return False
                return all(map(self.is_stable, value.operands))
            case _:
                return False

    def _user(self, inst: Instruction) -> Instruction | None:
        return next(iter(inst.users), None)

    def _is_near(self, inst: Instruction) -> bool:
        """True if the only user is in the same block, or is a phi of a successor."""
        user = self._user(inst)
        if user is None:
            return False
        if isinstance(user, Phi):
            return all(b is inst.block for v, b in user.incoming() if v is inst)
        return user.block is inst.block

    def _same_line(self, inst: Instruction) -> bool:
        """True if it belongs to the statement of its user: Python's statements stay apart."""
        if self.sheet.is_reverse:
            return True
        user = self._user(inst)
        assert user is not None
        mine, theirs = self.line_of(inst), self.line_of(user)
        return mine is None or theirs is None or mine == theirs or isinstance(user, Phi)

    def _load_is_inline(self, load: Load) -> bool:
        try:
            array = place_of(self.sheet, load.operands[0]).array
        except UnsupportedError:
            return False
        if array.name == "result_bar" or array.name.startswith("result_bar_"):
            return True  # a parameter, which is never assigned: see `Writer.check_results`
        if sum(load.users.values()) > 3 or not load.users:
            return False
        writers = [i for i in self.sheet.function.instructions() if self._may_write(i, array)]
        loop = self.sheet.nest.loop_of(block_of(load))
        for user in load.users:
            ends = self._ends(user, load)
            for block, position in ends:
                if self.sheet.nest.loop_of(block) is not loop:
                    return False
                if block is load.block:
                    start = self.positions[load]
                    if any(w.block is block and start < self.positions[w] < position for w in writers):
                        return False
                elif writers:
                    return False
        return True

    def _ends(self, user: Instruction, value: Value) -> Iterable[tuple[Block, int]]:
        """Places where a use is written: at the end of a chain of inline users."""
        if isinstance(user, Phi):
            return [(b, 1 << 30) for v, b in user.incoming() if v is value]
        if user in self.variables or not self._has_text(user):
            return [(block_of(user), self.positions[user])]
        return [end for further in user.users for end in self._ends(further, user)]

    def _may_write(self, inst: Instruction, array: Array) -> bool:
        if isinstance(inst, Store):
            try:
                other = place_of(self.sheet, inst.operands[1]).array
            except UnsupportedError:
                return True
            return array.may_overlap(other)
        return isinstance(inst, CallSite) and not self._is_pure(inst) and not is_silent(inst)

    def _limit(self, inst: Instruction) -> None:
        """Expressions that grow too long are cut."""
        if not self._has_text(inst) or isinstance(inst, Phi):
            return
        size = 1 + sum(self.sizes.get(v, 0) for v in inst.operands if v not in self.variables)
        if isinstance(inst, Load | Cast | ICmp | FCmp) or isinstance(inst.type, IntType):
            size = 0 if isinstance(inst, Load) else 1
        if size > _LARGEST and isinstance(inst, Binary | Unary | Select | CallSite):
            self.variables.add(inst)
        self.sizes[inst] = size


def is_silent(inst: CallSite) -> bool:
    """True if a call is left out: reference counts, and release of memory."""
    return (inst.callee.name or "").startswith(("NRT_incref", "NRT_decref", "NRT_Free", "irad.arena_defer"))


@dataclass(eq=False, slots=True)
class Site:
    """A statement: the variables that it uses and assigns; ``copied`` is the variable that it copies, if any."""

    uses: set[Value]
    defines: Value | None = None
    copied: Value | None = None


@dataclass(eq=False, slots=True)
class Interference:
    """The variables that are needed while another is assigned.

    Attributes:
        sites: the statements of each block.
        edges: values used on the edge from one block to another.
        at_end: values needed after the end of the function.
        carried: other values needed at the end of a block: those that a `for` passes on while its last iteration ends.
    """

    sheet: Sheet
    sites: dict[Block, list[Site]]
    edges: dict[tuple[Block, Block], set[Value]]
    at_end: set[Value]
    carried: dict[Block, set[Value]] = field(default_factory=dict)
    pairs: set[frozenset[Value]] = field(default_factory=set)

    def run(self) -> set[frozenset[Value]]:
        """The pairs."""
        live_in = self._live()
        for block, sites in self.sites.items():
            live = self._live_out(block, live_in)
            for site in reversed(sites):
                if site.defines is not None:
                    live.discard(site.defines)
                    self._note(site.defines, live - {site.copied})
                live |= site.uses
            phis = [p for p in block.phis() if p not in self.sheet.affine]
            for phi in phis:
                self._note(phi, (live | set(phis)) - {phi})
        return self.pairs

    def _note(self, defined: Value, live: Iterable[Value]) -> None:
        for other in live:
            if other is not defined:
                self.pairs.add(frozenset((defined, other)))

    def _live(self) -> dict[Block, set[Value]]:
        live_in: dict[Block, set[Value]] = {block: set() for block in self.sites}
        changed = True
        while changed:
            changed = False
            for block in reversed(self.sheet.cfg.order):
                live = self._live_out(block, live_in)
                for site in reversed(self.sites[block]):
                    if site.defines is not None:
                        live.discard(site.defines)
                    live |= site.uses
                live -= set(block.phis())
                if live != live_in[block]:
                    live_in[block] = live
                    changed = True
        return live_in

    def _live_out(self, block: Block, live_in: dict[Block, set[Value]]) -> set[Value]:
        found = set() if self.sheet.cfg.successors[block] else set(self.at_end)
        found |= self.carried.get(block, set())
        for successor in self.sheet.cfg.successors[block]:
            found |= live_in[successor]
            found |= self.edges.get((block, successor), set())
        return found


def share_variables(
    sheet: Sheet, variables: set[Value], conflicts: set[frozenset[Value]], may_share: Callable[[Value, Value], bool]
) -> dict[Value, list[Value]]:
    """Joins phis with their incoming values; variable → all values in it, one list for each variable."""
    ordered = [inst for block in sheet.cfg.order for inst in block.instructions if inst in variables]
    classes: dict[Value, list[Value]] = {v: [v] for v in ordered}
    against: dict[Value, set[Value]] = {}
    for pair in conflicts:
        a, b = tuple(pair)
        against.setdefault(a, set()).add(b)
        against.setdefault(b, set()).add(a)
    for block in sheet.cfg.order:
        for phi in block.phis():
            if phi not in classes:
                continue
            for value in phi.operands:
                if value not in classes or classes[value] is classes[phi] or value.type is not phi.type:
                    continue
                mine, theirs = classes[phi], classes[value]
                clash = any(against.get(v, set()) & set(theirs) for v in mine)
                if clash or not all(may_share(a, b) for a in mine for b in theirs):
                    continue
                mine.extend(theirs)
                for each in theirs:
                    classes[each] = mine
    return classes


# How variables are called: as in the source, by what they are, or by the value of which they are the cotangent.

_NOTES = {"from": "branch", "last": "last_step", "begin": "begin"}


@dataclass(eq=False, slots=True)
class ValueNames:
    """The names of one pair.

    Attributes:
        place_of: the user's line of an instruction.
        known: the names in the source.
        counters: values that count the iterations of a `while`.
        names: of variables.
        tape_names: names of values saved in loops.
    """

    captured: GeneratedPair
    memory: PairMemory
    namer: FreshNames
    place_of: Callable[[Instruction], SourceLocation | None]
    known: set[str]
    counters: set[Value]
    names: dict[Value, str] = field(default_factory=dict)
    tape_names: dict[Value, str] = field(default_factory=dict)
    primal_of: dict[Value, Value] = field(init=False)

    def __post_init__(self) -> None:
        self.primal_of = {shadow: primal for primal, shadow in self.captured.augmented.shadows.items()}

    def reader(self, value: Value) -> Callable[[], ast.expr]:
        """Reader of a variable: writes its name when it has one."""
        return lambda: trees.name(self.names.get(value) or "_")

    def may_share(self, a: Value, b: Value) -> bool:
        """Variables of different names in the source stay apart."""
        mine, theirs = source_name(a.name, self.known), source_name(b.name, self.known)
        return mine is None or theirs is None or mine == theirs

    def name_classes(self, classes: dict[Value, list[Value]], name_of: Callable[[Value], str | None]) -> None:
        """Gives each variable a name, by the values in it; words that follow ~ only where there is no name."""
        done: set[int] = set()
        for members in classes.values():
            if id(members) in done or self.names.get(members[0]):
                continue
            done.add(id(members))
            wanted = [n for n in map(name_of, members) if n is not None]
            good = [n for n in wanted if not n.startswith("~")]
            name = self.namer.new((good or [w[1:] for w in wanted] or ["value"])[0])
            self.names.update(dict.fromkeys(members, name))

    def name_recomputed(self, sheet: Sheet, classes: dict[Value, list[Value]]) -> None:
        """Gives a recomputed value its name in the forward sweep, if that has one value only."""
        assert sheet.augmented is not None
        for members in classes.values():
            again = sheet.reads.recomputed.get(members[0])
            if len(members) == 1 and again in sheet.augmented.stable and again in self.names:
                self.names[members[0]] = self.names[again]

    def augmented_name(self, value: Value) -> str | None:
        """The source's name of a value, or ~ followed by a word that describes it."""
        if isinstance(value.type, PointerType):
            return self._pointer_name(value)
        found = source_name(value.name, self.known)
        if found is not None:
            return found
        if value in self.counters:
            return "step"
        if isinstance(value, Instruction) and not isinstance(value, Phi):
            place = self.place_of(value)
            if place is not None and self._is_root(value, place):
                assigned = source_names(place.file).assigned.get(place.line)
                if assigned is not None:
                    return assigned
        word = self._word(value)
        return f"~{word}" if word else None

    def _pointer_name(self, value: Value) -> str:
        """The name of a variable that is one array or another, from its phi or from the line that chooses."""
        primal = self.primal_of.get(value)
        if primal is not None:
            own = self.names.get(self.captured.augmented.values.get(primal, primal))
            return f"{own or self._pointer_name(primal).removeprefix('~')}_bar"
        if isinstance(value, Phi):
            return source_name(value.name, self.known) or "~source"
        place = self.place_of(value) if isinstance(value, Instruction) else None
        assigned = source_names(place.file).assigned.get(place.line) if place is not None else None
        return assigned or "~source"

    def _is_root(self, value: Instruction, place: SourceLocation) -> bool:
        """True if the statement of its line assigns the value: nothing else there is computed from it."""
        return isinstance(value.type, FloatType) and all(
            isinstance(user, Phi) or self.place_of(user) != place for user in value.users
        )

    def _word(self, value: Value) -> str | None:
        match value:
            case Instruction(name="from" | "last" | "begin" as word):
                return _NOTES[word]
            case CallSite():
                callee = resolve(value, self.captured.augmented.unit.registry)
                return callee.name.removeprefix("as_") if isinstance(callee, Elementwise) else "called"
            case Load(operands=[pointer]):
                array = self.memory.array_behind(pointer)
                return f"{array.name}_i" if array is not None else "loaded"
            case ICmp() | FCmp():
                return "condition"
            case Select():
                return "chosen"
            case Phi():
                words = {
                    w
                    for v in value.operands
                    if isinstance(v, Instruction) and not isinstance(v, Phi)
                    for w in [self._word(v)]
                }
                return words.pop() if len(words) == 1 else None
            case Binary(opcode="fadd" | "fsub"):
                return "total"
            case Binary(opcode="fmul"):
                return "product"
            case Binary(opcode="fdiv"):
                return "quotient"
            case _:
                return None

    def array_name(self, origin: Value) -> str:
        """The name of new memory."""
        place = self.place_of(origin) if isinstance(origin, Instruction) else None
        assigned = source_names(place.file).assigned.get(place.line) if place is not None else None
        return assigned or "temporary"

    def reverse_name(self, sheet: Sheet, value: Value) -> str | None:
        """The name of the recomputed value, or of the value whose cotangent this is."""
        again = sheet.reads.recomputed.get(value)
        if again is not None:
            return self.names.get(again) or self.augmented_name(again)
        primal = sheet.reads.cotangents.get(value)
        if primal is None and isinstance(value, Instruction):
            primal = self._consumer(value)
        if primal is not None:
            return self._bar(primal)
        word = self._word(value)
        return f"~{word}" if word else None

    def _consumer(self, value: Instruction) -> Value | None:
        """The primal instruction whose adjoint a value goes into: it is the cotangent of that."""
        origins = {id(user.origin): user.origin for user in value.users if user.origin is not None}
        if len(origins) != 1 or value.origin is None:
            return None
        (origin,) = origins.values()
        return origin if origin is not value.origin and isinstance(origin.type, FloatType) else None

    def _bar(self, primal: Value) -> str:
        if isinstance(primal, Parameter):
            return f"{source_name(primal.name, self.known) or 'value'}_bar"
        copy = self.captured.augmented.values.get(primal, primal)
        known = self.names.get(copy)
        if known:
            return f"{known}_bar"
        tape = self.tape_names.get(copy)
        name = tape.removeprefix("saved_") if tape else (self.augmented_name(copy) or "value")
        return f"~{name.removeprefix('~')}_bar" if name.startswith("~") else f"{name}_bar"
