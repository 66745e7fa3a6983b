"""Sinking: what is differentiated on one side of a branch only is computed there.

Input   a function in normal form, its dominators, loops and effects on memory.
Output  none; the function is rewritten.
Method  at a branch, floats that its block computes or loads are copied to the beginning of a side that nothing else
        enters, if they are used there, and elsewhere only where no derivative flows: in comparisons and conversions to
        integers, and in others of their kind. The side uses the copies. It is done where an element is among them
        whose index the loop loads, too.
Why     the condition is computed from what it guards: ``if r2 < cutoff: energy += f(r2)``. The cotangent of ``r2`` is
        zero on the other side, but the sweep would add it to the shadow of each element that ``r2`` was made of. The
        primal computes nothing twice: LLVM finds that the copies are equal to what came before the branch. Where no
        index is loaded, LLVM makes vectors of a sweep that adds zeros, and of one with branches it does not.
Limit   calls are not copied but for intrinsics: LLVM may not know that others yield the same again. Loads are not
        copied over a write to what they read.

    %p = getelementptr double, ptr %x, i64 %index        %p = …
    %r2 = load double, ptr %p                            %r2 = load double, ptr %p
    %near = fcmp olt double %r2, 4.0                     %near = fcmp olt double %r2, 4.0
    br i1 %near, label %side, label %rest                br i1 %near, label %side, label %rest
  side:                                                side:
    %e = fmul double %r2, %r2                            %copy = load double, ptr %p
                                                         %e = fmul double %copy, %copy
"""

from __future__ import annotations

from irad.ir.clone import clone_instruction
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import Binary, Call, Cast, CondBr, FCmp, Instruction, Load, Phi, Select, Unary
from irad.ir.loops import Loop, LoopNest
from irad.ir.module import Block, Function
from irad.ir.types import FloatType
from irad.ir.values import Value
from irad.ir.worklist import Worklist
from irad.passes.memory.mod_ref import ModRef
from irad.ruleset.interface import Elementwise

_CONSTANT_CASTS = ("fptosi", "fptoui")


def sink_to_branches(nest: LoopNest, dominators: DominatorTree, mod_ref: ModRef, live: frozenset[Block]) -> None:
    """Rewrites all branches of a function, those first that come first: what was sunk may sink further.

    Args:
        nest: loops of the function.
        dominators: its dominators.
        mod_ref: its effects on memory.
        live: the blocks after which it may return; a branch to others, which raise, chooses nothing.
    """
    for block in dominators.cfg.order:
        match block.terminator, nest.loop_of(block):
            case CondBr(targets=[yes, no]), Loop() as loop if yes is not no and live.issuperset((yes, no)):
                for side in (yes, no):
                    chosen = _chosen(block, side, dominators, mod_ref)
                    if any(isinstance(inst, Load) and _is_by_index(inst.operands[0], loop) for inst in chosen):
                        _sink(chosen, side, dominators)
            case _:
                pass


def _is_by_index(address: Value, loop: Loop) -> bool:
    """True if an address is computed from a number that the loop loads."""
    found = Worklist([address])
    for value in found:
        if isinstance(value, Instruction) and value.block in loop.blocks:
            if isinstance(value, Load):
                return True
            found.add(*(() if isinstance(value, Phi) else value.operands))
    return False


def _sink(chosen: dict[Instruction, None], side: Block, dominators: DominatorTree) -> None:
    copies = dict[Value, Value]()
    at = next(i for i, inst in enumerate(side.instructions) if not isinstance(inst, Phi))
    for number, inst in enumerate(reversed(chosen)):
        copies[inst] = copy = clone_instruction(inst, copies)
        side.insert(at + number, copy)
    for inst in chosen:  # users before what they use
        for user in list(inst.users):
            if user not in chosen and _is_within(inst, user, side, dominators):
                for index, operand in enumerate(user.operands):
                    if operand is inst:
                        user.set_operand(index, copies[inst])
        if not inst.users:
            inst.erase()


def _chosen(block: Block, side: Block, dominators: DominatorTree, mod_ref: ModRef) -> dict[Instruction, None]:
    """Instructions to copy to a side, from the end of the block to its beginning."""
    chosen, written = dict[Instruction, None](), 0
    if dominators.cfg.predecessors[side] != (block,):
        return chosen
    for inst in reversed(block.instructions):
        if _can_be_copied(inst, written, mod_ref):
            uses = [user for user in inst.users if not _is_decision(user)]
            if uses and all(user in chosen or _is_within(inst, user, side, dominators) for user in uses):
                chosen[inst] = None
        written |= mod_ref.points_to.overlapping(_changed(inst, mod_ref))
    return chosen


def _can_be_copied(inst: Instruction, written: int, mod_ref: ModRef) -> bool:
    if not isinstance(inst.type, FloatType):
        return False
    match inst:
        case Load():
            touched = mod_ref.points_to.mask(inst.operands[0])
            is_known = touched and not mod_ref.points_to.is_shared(touched)
            return inst.is_plain and bool(is_known) and not touched & written
        case Call(callee=Function(name=str(name))):
            return name.startswith("llvm.") and isinstance(mod_ref.callee(inst), Elementwise)
        case Binary() | Unary() | Select() | Cast():
            return True
        case _:
            return False


def _changed(inst: Instruction, mod_ref: ModRef) -> int:
    access = mod_ref.of(inst)
    return access.writes | mod_ref.points_to.reachable(access.frees)


def _is_decision(user: Instruction) -> bool:
    """True if no derivative flows through an instruction."""
    return isinstance(user, FCmp) or (isinstance(user, Cast) and user.opcode in _CONSTANT_CASTS)


def _is_within(value: Instruction, user: Instruction, side: Block, dominators: DominatorTree) -> bool:
    """True if a value is used on a side of a branch only, as far as an instruction uses it."""
    if isinstance(user, Phi):
        return all(dominators.dominates(side, origin) for used, origin in user.incoming() if used is value)
    return user.block is not None and dominators.dominates(side, user.block)
