"""Brings both sweeps into the form that is rendered: values only, no stack slots, no placeholders, nothing dead.

Input   a `CapturedPair`, whose functions are changed; nobody compiles them.
Output  `Reads`: which placeholders of the reverse sweep stand for saved values and affine variables.
Method  what `irad.passes.materialise` does, with names in place of addresses: a saved value stays a placeholder, an
        affine variable too, any other is computed again from these. Then stack slots become values (Braun et al. 2013,
        "Simple and Efficient Construction of Static Single Assignment Form"), sums with an empty cotangent vanish.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.clone import clone_instruction
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import (
    Alloca,
    Binary,
    CallSite,
    Cast,
    CondBr,
    FCmp,
    Freeze,
    ICmp,
    Instruction,
    Load,
    Phi,
    Ret,
    Select,
    Store,
    replace_uses,
)
from irad.ir.loops import Loop, innermost_first, loop_nest
from irad.ir.module import Block, Function
from irad.ir.types import I1, FloatType, PointerType
from irad.ir.values import ConstantFloat, ConstantInt, Undef, Value, const_float
from irad.passes.callees import effects_of, resolve
from irad.passes.recipes import is_free
from irad.passes.reverse.sweep import Place
from irad.report.pseudo_python.capture import CapturedPair
from irad.report.pseudo_python.reentry import give_single_entries


@dataclass(frozen=True, slots=True)
class AffineRead:
    """``value``, affine in a loop: start + step · number of the iteration."""

    value: Value
    loop: Loop
    start: Value
    step: Value | int


@dataclass(eq=False, slots=True)
class Reads:
    """What placeholders of the reverse sweep stand for, by placeholder.

    Attributes:
        saved: values of the forward sweep.
        affine: affine variables.
        numbers: of each loop, the number of the iteration that is being reversed, a phi.
        recomputed: values of the reverse sweep that are values of the forward sweep, computed again.
        cotangents: values of the reverse sweep that are the cotangent of a primal value.
    """

    saved: dict[Value, Value] = field(default_factory=dict)
    affine: dict[Value, AffineRead] = field(default_factory=dict)
    numbers: dict[Loop, Value] = field(default_factory=dict)
    cotangents: dict[Value, Value] = field(default_factory=dict)
    recomputed: dict[Value, Value] = field(default_factory=dict)


def clean_up(captured: CapturedPair) -> Reads:
    """Does all of it."""
    reads = Reads()
    notes = _name_origins(captured)
    _fold_origins(captured.sweep.function, notes)
    give_single_entries(captured.sweep)
    _replace_needs(captured, reads)
    reverse = captured.sweep.function
    _promote_slots(captured, reads)
    _fold_sums(reverse)
    _mark_strong_products(reverse)
    _close_loops(reverse)
    remove_dead(captured, reverse, list(reads.saved))
    remove_dead(captured, captured.forward.function, list(captured.plan.saved))
    for table in (reads.saved, reads.affine):
        for placeholder in [p for p in table if not getattr(p, "users", None)]:
            del table[placeholder]
    return reads


# ---------------------------------------------------------------------------------------------------- needs


def _replace_needs(captured: CapturedPair, reads: Reads) -> None:
    sweep = captured.sweep
    placeholders = {need.placeholder for need in sweep.needs}
    heads: dict[Block, _Head] = {}
    for need in sweep.needs:
        block = need.place.block
        if block not in heads:
            anchor = next(i for i in block.instructions if i not in placeholders)
            heads[block] = _Head(captured, reads, need.place, Builder.before(anchor))
        if need.placeholder.users:
            replace_uses(need.placeholder, heads[block].get(need.value))
    for need in sweep.needs:
        need.placeholder.erase()


@dataclass(eq=False, slots=True)
class _Head:
    """Makes values at the head of one adjoint block, each once."""

    captured: CapturedPair
    reads: Reads
    place: Place
    build: Builder
    made: dict[Value, Value] = field(default_factory=dict)

    def get(self, value: Value) -> Value:
        pending = [value]
        while pending:
            wanted = pending[-1]
            missing = [v for v in self._parts(wanted) if self._at_hand(v) is None] if not self._at_hand(wanted) else []
            if missing:
                pending.extend(reversed(missing))
                continue
            if self._at_hand(wanted) is None:
                self.made[wanted] = self._make(wanted)
            pending.pop()
        found = self._at_hand(value)
        assert found is not None
        return found

    def _at_hand(self, value: Value) -> Value | None:
        return value if is_free(value) else self.made.get(value)

    def _parts(self, value: Value) -> Iterable[Value]:
        captured = self.captured
        if value in captured.plan.saved:
            return ()
        if value in captured.recipes.affine:
            _, variable = captured.recipes.affine[value]
            return (variable.start,) if isinstance(variable.step, int) else (variable.start, variable.step)
        return value.operands if isinstance(value, Instruction) else ()

    def _make(self, value: Value) -> Value:
        captured = self.captured
        if value in captured.recipes.affine and value not in captured.plan.saved:
            loop, variable = captured.recipes.affine[value]
            start = self._at_hand(variable.start)
            step: Value | int = variable.step
            assert start is not None
            if isinstance(step, Value):
                found = self._at_hand(step)
                assert found is not None
                step = found
            placeholder = self._placeholder(value)
            placeholder.set_operands([start, step] if isinstance(step, Value) else [start])  # keeps them alive
            self.reads.affine[placeholder] = AffineRead(value, loop, start, step)
            return placeholder
        if value in captured.plan.saved or not isinstance(value, Instruction):
            placeholder = self._placeholder(value)
            self.reads.saved[placeholder] = value
            return placeholder
        copy = clone_instruction(value, {v: self.made[v] for v in value.operands if not is_free(v)})
        self.build.insert(copy)
        self.reads.recomputed[copy] = value
        return copy

    def _placeholder(self, value: Value) -> Freeze:
        made = Freeze(value.type, value.name, operands=[Undef(value.type)])
        self.build.insert(made)
        return made


# ---------------------------------------------------------------------------------------------------- origins


def _name_origins(captured: CapturedPair) -> dict[Value, bool]:
    """Lets the forward sweep note a condition where it notes which of two ways it came.

    Returns:
        The placeholders of these notes; whether the way with number 1 is the one on which the condition is true.
    """
    found: dict[Value, bool] = {}
    loops = captured.loops
    for number in [v for v in captured.plan.saved if isinstance(v, Phi) and v.name == "from"]:
        decided = _decision(loops.cfg, loops.dominators, number)
        if decided is None:
            continue
        condition, is_one = decided
        block = number.block
        assert block is not None
        note = condition
        home = condition.block if isinstance(condition, Instruction) else None
        if home is not None and loops.innermost.get(home) is not loops.innermost.get(block):
            note = Freeze(I1, "from", operands=[condition])
            Builder.before(next(i for i in block.instructions if not isinstance(i, Phi))).insert(note)
        for need in captured.sweep.needs:
            if need.value is number:
                found[need.placeholder] = is_one
        replace_saved(captured, number, note)
    return found


def replace_saved(captured: CapturedPair, old: Value, new: Value) -> None:
    """Lets the plan, and what the reverse sweep wants, name another value that is equal."""
    plan = captured.plan
    saved = dict.fromkeys(new if v is old else v for v in plan.saved)
    object.__setattr__(plan, "saved", tuple(saved))
    for need in captured.sweep.needs:
        if need.value is old:
            need.value = new


def _decision(cfg: ControlFlow, tree: DominatorTree, number: Phi) -> tuple[Value, bool] | None:
    """The condition that decides between the two values of a phi of 0 and 1, and whether it is true for 1."""
    block = number.block
    assert block is not None
    values = [v.value for v, _ in number.incoming() if isinstance(v, ConstantInt)]
    if sorted(set(values)) != [0, 1] or len(values) != len(number.operands):
        return None
    decider = tree.immediate[block]
    if decider is None or not isinstance(decider.terminator, CondBr):
        return None
    branch = decider.terminator
    truths: dict[int, set[bool]] = {0: set(), 1: set()}
    for value, (_, source) in zip(values, number.incoming(), strict=True):
        for index, target in enumerate(branch.targets):
            direct = source is decider and target is block
            if direct or (target is not block and source is not decider and tree.dominates(target, source)):
                truths[value].add(index == 0)
        if not truths[value]:
            return None
    if len(truths[0]) != 1 or len(truths[1]) != 1 or truths[0] == truths[1]:
        return None
    single = all(len(cfg.predecessors[t]) == 1 for t in branch.targets if t is not block)
    return (branch.operands[0], truths[1] == {True}) if single else None


def _fold_origins(function: Function, notes: dict[Value, bool]) -> None:
    """``note != 0`` is the condition itself, or its negation."""
    for inst in list(function.instructions()):
        if isinstance(inst, ICmp) and inst.predicate == "ne" and inst.operands[0] in notes:
            note = inst.operands[0]
            note.type = I1
            if notes[note]:
                replace_uses(inst, note)
                inst.erase()
            else:
                inst.predicate = "eq"
                inst.set_operand(1, ConstantInt(I1, None, 0))


# ---------------------------------------------------------------------------------------------------- stack slots


def _promote_slots(captured: CapturedPair, reads: Reads) -> None:
    sweep = captured.sweep
    primal_of = {slot: value for value, slot in sweep.slots.items()}
    loop_of = {state.iteration: loop for loop, state in sweep.loops.items()}
    for inst in [i for i in sweep.function.instructions() if isinstance(i, Alloca) and _is_slot(i)]:
        made = _Promotion(sweep.function, inst).run(reads.cotangents, primal_of.get(inst))
        if inst in loop_of and made:
            reads.numbers[loop_of[inst]] = made[0]


def _is_slot(slot: Alloca) -> bool:
    """Whether it is only loaded from and stored to as a whole."""
    return not slot.operands and all(
        (isinstance(user, Load) and user.type is slot.allocated_type)
        or (isinstance(user, Store) and user.operands[0] is not slot and user.operands[0].type is slot.allocated_type)
        for user in slot.users
    )


class _Promotion:
    """Turns one slot into values."""

    def __init__(self, function: Function, slot: Alloca) -> None:
        self.function, self.slot = function, slot
        self.cfg = control_flow(function)
        self.at_end: dict[Block, Value] = {}
        self.at_start: dict[Block, Value] = {}
        self.phis: list[Phi] = []
        self.replaced: dict[Value, Value] = {}

    def run(self, cotangents: dict[Value, Value], primal: Value | None) -> list[Phi]:
        """Returns the phis that are left; notes what is the cotangent of ``primal``."""
        doomed: list[Instruction] = []
        for block in self.cfg.order:
            current = None
            for inst in list(block.instructions):
                if isinstance(inst, Load) and inst.operands[0] is self.slot:
                    current = self._start(block) if current is None else current
                    replace_uses(inst, current)
                    self.replaced[inst] = current
                    doomed.append(inst)
                elif isinstance(inst, Store) and inst.operands[1] is self.slot:
                    current = inst.operands[0]
                    doomed.append(inst)
                    if primal is not None and isinstance(current, Instruction):
                        cotangents.setdefault(current, primal)
            if current is not None:
                self.at_end[block] = current
        for phi in self.phis:
            assert phi.block is not None
            for source in self.cfg.predecessors[phi.block]:
                phi.add_incoming(self._end(source), source)
        for inst in reversed(doomed):
            inst.erase()
        for user in list(self.slot.users):  # in blocks that nothing reaches
            replace_uses(user, Undef(user.type))
            user.erase()
        self.slot.erase()
        remove_trivial_phis(self.function)
        left = [phi for phi in self.phis if phi.block is not None]
        if primal is not None:
            cotangents.update(dict.fromkeys(left, primal))
        return left

    def _start(self, block: Block) -> Value:
        """The value at the start of a block; phis are filled when all blocks are known."""
        chain: list[Block] = []
        while block not in self.at_start:
            sources = self.cfg.predecessors[block]
            if len(sources) == 1:
                chain.append(block)
                if sources[0] in self.at_end:
                    self.at_start[block] = self.at_end[sources[0]]
                    break
                block = sources[0]
                continue
            if not sources:
                self.at_start[block] = Undef(self.slot.allocated_type)
            else:
                phi = Builder.at_start(block).phi(self.slot.allocated_type)
                self.phis.append(phi)
                self.at_start[block] = phi
        found = self.at_start[block]
        for each in chain:
            self.at_start[each] = found
        return found

    def _end(self, block: Block) -> Value:
        known = self.at_end.get(block)
        return known if known is not None else self._start(block)


def remove_trivial_phis(function: Function) -> None:
    """Removes phis that merge one value, and those that nobody but phis uses."""
    changed = True
    while changed:
        changed = False
        for block in function.blocks:
            for phi in block.phis():
                others = {id(v): v for v in phi.operands if v is not phi}
                same = list(others.values())
                if len(same) > 1 and all(_are_equal(v, same[0]) for v in same):
                    same = same[:1]
                if len(same) == 1 and not (isinstance(same[0], Instruction) and same[0].block is None):
                    replace_uses(phi, same[0])
                    phi.erase() if not phi.users else None
                    changed = True


def _are_equal(a: Value, b: Value) -> bool:
    """Of constants: whether they are one number; both zeros are, for they are empty cotangents."""
    if isinstance(a, ConstantFloat) and isinstance(b, ConstantFloat):
        return a.value == b.value
    return isinstance(a, ConstantInt) and isinstance(b, ConstantInt) and a.value == b.value


def _fold_sums(function: Function) -> None:
    """Removes additions of zero: those that begin the sum of a cotangent."""
    changed = True
    while changed:
        changed = False
        for phi in _zero_phis(function):
            assert isinstance(phi, Phi)
            replace_uses(phi, const_float(phi.type, 0.0))
            phi.erase()
        for inst in list(function.instructions()):
            if not isinstance(inst, Binary) or inst.opcode != "fadd":
                continue
            a, b = inst.operands
            other = b if _is_zero(a) else a if _is_zero(b) else None
            if other is not None and other is not inst:
                replace_uses(inst, other)
                inst.erase()
                changed = True
        remove_trivial_phis(function)


def _zero_phis(function: Function) -> set[Value]:
    """Phis that merge nothing but zeros and each other: cotangents that stay empty."""
    phis: set[Value] = {p for b in function.blocks for p in b.phis() if isinstance(p.type, FloatType)}
    changed = True
    while changed:
        doubtful = {
            p for p in phis if isinstance(p, Phi) and any(not _is_zero(v) and v not in phis for v in p.operands)
        }
        phis -= doubtful
        changed = bool(doubtful)
    return phis


def _mark_strong_products(function: Function) -> None:
    """A product behind `select(cotangent == 0, 0, product)` becomes one instruction with the flag `STRONG`."""
    for inst in list(function.instructions()):
        match inst:
            case Select(operands=[FCmp(predicate="oeq", operands=[a, zero]) as test, nothing, Binary() as product]):
                if not (_is_zero(zero) and _is_zero(nothing) and product.operands[0] is a):
                    continue
                if product.opcode not in ("fmul", "fdiv") or list(product.users) != [inst]:
                    continue
                product.flags = (*product.flags, STRONG)
                product.origin = inst.origin or product.origin
                replace_uses(inst, product)
                inst.erase()
                if not test.users:
                    test.erase()
            case _:
                pass


STRONG = "strong"


def _is_zero(value: Value) -> bool:
    return isinstance(value, ConstantFloat) and value.value == 0.0


# ---------------------------------------------------------------------------------------------------- loops


def _close_loops(function: Function) -> None:
    """Values of a reversed loop that are used behind it get a phi at its exit, as the forward sweep has them."""
    cfg = control_flow(function)
    tree = dominators(cfg)
    for loop in innermost_first(loop_nest(cfg, tree).loops):
        exits = list(dict.fromkeys(target for _, target in loop.exits))
        for block in loop.order:
            for inst in block.instructions:
                outside = [u for u in inst.users if not _used_inside(u, inst, loop)]
                if outside and not isinstance(inst.type, PointerType) and len(exits) == 1:
                    sources = cfg.predecessors[exits[0]]
                    closed = Builder.at_start(exits[0]).phi(inst.type, [(inst, b) for b in sources])
                    for user in outside:
                        for index, value in enumerate(user.operands):
                            if value is inst and not (isinstance(user, Phi) and user.blocks[index] in loop.blocks):
                                user.set_operand(index, closed)


def _used_inside(user: Instruction, value: Value, loop: Loop) -> bool:
    if isinstance(user, Phi):
        return all(b in loop.blocks for v, b in user.incoming() if v is value)
    return user.block in loop.blocks


# ---------------------------------------------------------------------------------------------------- dead code


def remove_dead(captured: CapturedPair, function: Function, roots: Iterable[Value]) -> None:
    """Removes instructions without effect that nothing needs."""
    needed: set[Value] = set()
    pending: list[Value] = list(roots)
    for inst in function.instructions():
        if inst.targets or _has_effect(captured, inst):
            pending.append(inst)
    while pending:
        value = pending.pop()
        if value in needed or not isinstance(value, Instruction):
            continue
        needed.add(value)
        pending.extend(value.operands)
    doomed = [inst for inst in function.instructions() if inst not in needed]
    for inst in doomed:
        inst.set_operands(())
    for inst in doomed:
        inst.erase()


def _has_effect(captured: CapturedPair, inst: Instruction) -> bool:
    if isinstance(inst, Store | Ret):
        return True
    if isinstance(inst, CallSite):
        effects = effects_of(resolve(inst, captured.forward.unit.registry))
        return effects is None or effects.other or bool(effects.writes or effects.frees or effects.captures)
    return not isinstance(inst, Load | Phi | Freeze | Binary | ICmp | Cast | Alloca) and type(inst).__name__ in (
        "AtomicRMW",
        "CmpXchg",
        "Fence",
        "VAArg",
        "Unreachable",
        "Resume",
        "LandingPad",
    )
