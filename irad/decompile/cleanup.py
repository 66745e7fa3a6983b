"""Brings both sweeps into the form that is rendered: values only, no stack slots, no placeholders, nothing dead.

Input   a `GeneratedPair`, whose functions are changed; nobody compiles them.
Output  `Reads`: which placeholders of the reverse sweep stand for saved values and affine variables.
Method  `clean_up`, at the end, is the order of the steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irad.decompile.pair_memory import STRONG, AffineRead, Reads
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow, edges_from
from irad.ir.clone import clone_instruction
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import (
    Alloca,
    AtomicRMW,
    Binary,
    Br,
    CallSite,
    CmpXchg,
    CondBr,
    FCmp,
    Fence,
    Freeze,
    ICmp,
    Instruction,
    LandingPad,
    Load,
    Phi,
    Select,
    Store,
    Terminator,
    VAArg,
    replace_uses,
)
from irad.ir.loops import Loop, innermost_first, loop_nest
from irad.ir.module import Block, Function
from irad.ir.types import I1, I64, FloatType, PointerType
from irad.ir.values import ConstantFloat, ConstantInt, Undef, Value, const_float, const_int
from irad.ir.worklist import Worklist, reachable
from irad.passes.callees import effects_of, resolve
from irad.passes.generated import GeneratedPair
from irad.passes.plan.materialise import Head, replace_placeholders
from irad.passes.plan.rematerialisation import is_free
from irad.passes.reverse.sweep import Sweep

# Drops what nothing needs.


def remove_dead(captured: GeneratedPair, function: Function, roots: Iterable[Value]) -> None:
    """Removes instructions without effect that nothing needs."""
    used: list[Value] = list(roots)
    for inst in function.instructions():
        if isinstance(inst, Terminator) or inst.targets or _has_effect(captured, inst):
            used.append(inst)
    needed = set(reachable(used, lambda value: value.operands if isinstance(value, Instruction) else ()))
    doomed = [inst for inst in function.instructions() if inst not in needed]
    for inst in doomed:
        inst.set_operands(())
    for inst in doomed:
        inst.erase()


def _has_effect(captured: GeneratedPair, inst: Instruction) -> bool:
    if isinstance(inst, CallSite):
        effects = effects_of(resolve(inst, captured.augmented.unit.registry))
        return effects is None or effects.other or bool(effects.writes or effects.frees or effects.captures)
    return isinstance(inst, Store | AtomicRMW | CmpXchg | Fence | VAArg | LandingPad)


# Which way control came: the condition itself is saved, not a number for the way.


def name_origins(captured: GeneratedPair) -> dict[Value, bool]:
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


def replace_saved(captured: GeneratedPair, old: Value, new: Value) -> None:
    """Lets the plan, and what the reverse sweep wants, name another value that is equal."""
    captured.plan = captured.plan.saving(new if v is old else v for v in captured.plan.saved)
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


def fold_origins(function: Function, notes: dict[Value, bool]) -> None:
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


# Reversed loops that are entered in the middle get one entry.
#
# A loop that is left at several places is entered at several places by the reverse sweep: the last iteration was not
# run to its end. Python has no way into the middle of a loop, so a new head decides, in each iteration, where to begin:
# at the latch, or in the first reversed iteration at the exit that was taken.
#
# Input   a reverse sweep before its stack slots become values, while no values but needs live across blocks; changed.

Ways = dict[Block, tuple[list[Loop], Block]]


def give_single_entries(sweep: Sweep) -> None:
    """Makes heads where they are needed."""
    ways = _ways(sweep)
    for loop in innermost_first(_reversed_loops(sweep)):
        assert loop.latch is not None
        regular = sweep.places[loop.latch].block
        if any(loop in entered and target is not regular for entered, target in ways.values()):
            _make_head(sweep, loop, regular, ways)
    by_target: dict[Block, list[Block]] = {}
    for edge, (_, target) in ways.items():
        by_target.setdefault(target, []).append(edge)
    for target, edges in by_target.items():
        entry = target if len(edges) == 1 else sweep.function.add_block(f"{target.name}.enter")
        if entry is not target:
            Builder(entry).br(target)
        for edge in edges:
            edge.terminator.targets = [entry]


def _reversed_loops(sweep: Sweep) -> list[Loop]:
    """The loops of the primal that have an adjoint; those that put an exception together have none."""
    return [loop for loop in sweep.augmented.unit.loops.loops if loop.latch in sweep.places]


def _ways(sweep: Sweep) -> Ways:
    """The edges that enter reversed loops: the loops, and where each leads."""
    found: Ways = {}
    for loop in _reversed_loops(sweep):
        for place, _ in sweep.loops[loop].entries:
            last = place.block.terminator
            assert isinstance(last, Br)
            entered, _ = found.setdefault(place.block, ([], last.targets[0]))
            entered.append(loop)
    return found


def _make_head(sweep: Sweep, loop: Loop, regular: Block, ways: Ways) -> None:
    """A head for one loop; edges into it note by a number where the iteration begins."""
    state = sweep.loops[loop]
    slot = sweep.new_slot(I64, const_int(I64, 0))
    slot.name = "begin"
    head = sweep.function.add_block(f"{loop.header.name}.begin")
    targets: list[Block] = [regular]
    for edge, (entered, target) in list(ways.items()):
        if loop not in entered:
            continue
        if target not in targets:
            targets.append(target)
        Builder.before(edge.terminator).store(const_int(I64, targets.index(target)), slot)
        ways[edge] = entered, head
    if state.back is not None:
        edge = state.back.block
        while regular not in edge.successors:
            (edge,) = edge.successors
        Builder.before(edge.terminator).store(const_int(I64, 0), slot)
        edge.terminator.targets = [head]
    build = Builder(head)
    number: Value = build.load(I64, slot)
    if len(targets) == 2:
        build.cond_br(build.icmp("ne", number, const_int(I64, 0)), targets[1], regular)
    else:
        build.switch(number, regular, [(const_int(I64, i), t) for i, t in enumerate(targets) if i > 0])


# Stack slots become values.
#
# Method  Braun et al. 2013, "Simple and Efficient Construction of Static Single Assignment Form".


def promote_slots(captured: GeneratedPair, reads: Reads) -> None:
    """Turns the stack slots of the reverse sweep into values; notes which cotangents and counters they held."""
    sweep = captured.sweep
    primal_of = {slot: value for value, slot in sweep.slots.items()}
    loop_of = {state.iteration: loop for loop, state in sweep.loops.items()}
    for inst in [i for i in sweep.function.instructions() if isinstance(i, Alloca) and _is_slot(i)]:
        made = _Promotion(sweep.function, inst).run(reads.cotangents, primal_of.get(inst))
        if inst in loop_of and made:
            reads.numbers[loop_of[inst]] = made[0]


def _is_slot(slot: Alloca) -> bool:
    """True if it is only loaded from and stored to as a whole."""
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
            for source in edges_from(self.cfg.predecessors[phi.block], phi.block):
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


# Sums of cotangents that begin with nothing, and products that keep an empty cotangent empty.


def fold_sums(function: Function) -> None:
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
            other = b if is_zero(a) else a if is_zero(b) else None
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
        doubtful = {p for p in phis if isinstance(p, Phi) and any(not is_zero(v) and v not in phis for v in p.operands)}
        phis -= doubtful
        changed = bool(doubtful)
    return phis


def mark_strong_products(function: Function) -> None:
    """Turns `select(cotangent == 0, 0, product)` into one multiplication with the flag `STRONG`.

    Scalar code chooses the cotangent in place of 0, where it is 0 or NaN: both stay what they are as factors, too.
    """
    for inst in list(function.instructions()):
        match inst:
            case Select(
                operands=[FCmp(predicate="oeq" | "ueq", operands=[a, zero]) as test, nothing, Binary() as product]
            ):
                is_kept = nothing is a if test.predicate == "ueq" else is_zero(nothing)
                if not (is_zero(zero) and is_kept and product.operands[0] is a):
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


def is_zero(value: Value) -> bool:
    """True if a value is the number 0.0."""
    return isinstance(value, ConstantFloat) and value.value == 0.0


# Gives the reverse sweep what it needs of the forward sweep, as `irad.passes.plan.materialise` does, but with names.
#
# A saved value stays a placeholder, an affine variable too; any other value is recomputed from these.


def replace_needs(captured: GeneratedPair, reads: Reads) -> None:
    """Puts what is needed in the place of the placeholders; ``reads`` tells what the ones that are left stand for."""
    saved = dict.fromkeys(captured.plan.saved)
    replace_placeholders(captured.sweep, lambda build: _PlaceholderHead(build, captured.remat, saved, reads))


def keep_choices(captured: GeneratedPair) -> None:
    """Lets the forward sweep keep which array was chosen, where the reverse sweep would choose again.

    In Python that is a variable, and chosen there already.
    """
    plan, remat = captured.plan, captured.remat
    pending = Worklist(need.value for need in captured.sweep.needs if need.placeholder.users)
    chosen: list[Value] = []
    for value in pending:
        if value in plan.saved:
            continue
        if isinstance(value, Select) and isinstance(value.type, PointerType):
            chosen.append(value)
        elif value in remat.affine:
            _, variable = remat.affine[value]
            pending.add(*(v for v in (variable.start, variable.step) if isinstance(v, Value)))
        elif isinstance(value, Instruction) and not is_free(value):
            pending.add(*value.operands)
    captured.plan = plan.saving((*plan.saved, *chosen))


@dataclass(eq=False, slots=True)
class _PlaceholderHead(Head):
    """Leaves placeholders for what is saved, and for affine variables."""

    reads: Reads

    def load(self, value: Value) -> Value:
        made = self._placeholder(value)
        self.reads.saved[made] = value
        return made

    def recompute(self, value: Value) -> Value:
        if not isinstance(value, Instruction):
            return self.load(value)
        if value not in self.remat.affine:
            copy = clone_instruction(value, {v: self.made[v] for v in value.operands if not is_free(v)})
            self.build.insert(copy)
            self.reads.recomputed[copy] = value
            return copy
        loop, variable = self.remat.affine[value]
        start = self.get(variable.start)
        step = variable.step if isinstance(variable.step, int) else self.get(variable.step)
        made = self._placeholder(value)
        made.set_operands([start, step] if isinstance(step, Value) else [start])  # keeps them alive
        self.reads.affine[made] = AffineRead(value, loop, start, step)
        return made

    def _placeholder(self, value: Value) -> Freeze:
        made = Freeze(value.type, value.name, operands=[Undef(value.type)])
        self.build.insert(made)
        return made


# All steps.


def clean_up(captured: GeneratedPair) -> Reads:
    """Brings both sweeps into the form that is written."""
    reads = Reads()
    notes = name_origins(captured)
    fold_origins(captured.sweep.function, notes)
    give_single_entries(captured.sweep)
    replace_needs(captured, reads)
    reverse = captured.sweep.function
    promote_slots(captured, reads)
    fold_sums(reverse)
    mark_strong_products(reverse)
    _close_loops(reverse)
    remove_dead(captured, reverse, list(reads.saved))
    remove_dead(captured, captured.augmented.function, list(captured.plan.saved))
    for table in (reads.saved, reads.affine):
        for placeholder in [p for p in table if not getattr(p, "users", None)]:
            del table[placeholder]
    return reads


def _close_loops(function: Function) -> None:
    """Adds a phi at the exit of a reversed loop for each value used after it, as the forward sweep has them."""
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
