"""Late checks: a loop that raises at a division by zero raises after the loop instead.

Input   the entry in normal form, where its pointers point.
Output  whether the function has been rewritten.
Method  A division by zero does no harm by itself: a loop that goes on computes infinities and NaNs until it ends. So if
        all that it writes is lost when the function raises, and all its checks raise the same, they only note that
        one has failed, and after the loop that is raised. What the caller sees is the same. Without exits in the
        middle LLVM makes vectors of the loop, and of what the derivative adds to it.
Limit   innermost loops that are counted, in which every iteration runs the checks, call nothing but elementary
        functions, and find memory by its counters alone: neither by a float, nor by a number that was loaded.

    loop:                                          loop:
      %zero = fcmp oeq double %d, 0.0                %zero = fcmp oeq double %d, 0.0
      br i1 %zero, label %raise, label %rest         %noted = or i1 %failed, %zero
    rest:                                            %q = fdiv double %n, %d
      %q = fdiv double %n, %d                        br i1 %more, label %loop, label %end
      br i1 %more, label %loop, label %end         end:
    end: …                                           br i1 %noted, label %raise, label %end.rest
"""

from __future__ import annotations

from collections.abc import Collection

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import (
    Binary,
    Br,
    CallSite,
    Cast,
    CondBr,
    FCmp,
    Freeze,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Ret,
    Select,
    Store,
    Unary,
)
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.text.keywords import POISONING
from irad.ir.trip_count import is_invariant, trip_count
from irad.ir.values import Constant, ConstantFloat, ConstantInt, Value, const_int
from irad.ir.worklist import Worklist
from irad.passes.augmented.allocation_failure import split_before
from irad.passes.callees import is_elementary
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import SEPARATE, union
from irad.records import dataclass

_DIVISIONS = frozenset({"udiv", "sdiv", "urem", "srem"})


@dataclass(frozen=True, slots=True)
class _Check:
    """A branch in a loop to code that raises, or further into the loop."""

    branch: CondBr
    raising: Block
    goes_on: Block


def postpone_checks_of_a_loop(
    cfg: ControlFlow,
    dominators: DominatorTree,
    loops: Collection[Loop],
    live: Collection[Block],
    mod_ref: ModRef,
    result: Value,
) -> bool:
    """Moves the checks of divisors after their loop, for the first loop that allows it; False if there is none.

    The end of the loop is split for them, so afterwards the arguments are out of date.

    Args:
        cfg, dominators, loops: of the entry.
        live: the blocks from which it returns without an error.
        mod_ref: effects of its instructions on memory.
        result: the pointer to memory that nobody reads if it raises.
    """
    lost = _lost_memory(cfg, mod_ref, result)
    for loop in loops:
        ends = [(block, outside) for block, outside in loop.exits if outside in live]
        if loop.children or loop.preheader is None or loop.latch is None or len(ends) != 1 or len(loop.exits) < 2:
            continue
        checks = [_check(block, outside, loop) for block, outside in loop.exits if outside not in live]
        found = [each for each in checks if each is not None]
        always = all(dominators.dominates(block, loop.latch) for block, _ in loop.exits)
        ((last, end),) = ends
        # The end gets a phi with one input, the last note, so nothing but the loop may branch there.
        if len(found) < len(checks) or not always or len(cfg.predecessors[end]) > 1:
            continue
        # After the loop nobody knows which check failed first, so all of them have to raise the same.
        if len({_what(each.raising) for each in found}) > 1:
            continue
        if trip_count(loop, cfg, dominators, last) is not None and _is_harmless(loop, mod_ref, lost):
            _postpone(loop, found, last, end)
            return True
    return False


def _check(block: Block, raising: Block, loop: Loop) -> _Check | None:
    """The branch of a block, if it only raises, and does so where a divisor is zero."""
    branch = block.terminator
    if not isinstance(branch, CondBr):
        return None
    inside = [target for target in branch.targets if target in loop.blocks]
    tested = _tested_for_zero(branch.operands[0], where_true=branch.targets[0] is raising)
    # What raises moves to after the loop, where values of an iteration are not at hand: it may store constants only.
    only_raises = all(isinstance(inst, Br | Ret) or _stores_constant(inst) for inst in raising.instructions)
    if not tested or len(inside) != 1 or not only_raises:
        return None
    divisors = [i.operands[1] for each in loop.order for i in each.instructions if _divides(i)]
    # Only a division by zero does no harm when it runs anyway; other checks guard accesses that must not happen.
    return _Check(branch, raising, inside[0]) if all(value in divisors for value in tested) else None


def _divides(inst: Instruction) -> bool:
    return isinstance(inst, Binary) and inst.opcode == "fdiv"


def _tested_for_zero(condition: Value, *, where_true: bool) -> list[Value] | None:
    """The numbers of which one is zero where a condition has that outcome; None if something else is tested."""
    match condition:
        case FCmp(operands=[value, ConstantFloat(value=0.0)]) | FCmp(operands=[ConstantFloat(value=0.0), value]):
            return [value]
        case Select(operands=[first, shortcut, second]) if isinstance(shortcut, ConstantInt) and where_true:
            parts = [first, second]
        case Select(operands=[first, second, shortcut]) if isinstance(shortcut, ConstantInt):
            parts = [first, second]
        case Binary(opcode="or" | "and"):
            parts = condition.operands
        case _:
            return None
    found = [_tested_for_zero(part, where_true=where_true) for part in parts]
    return [value for each in found if each is not None for value in each] if all(found) else None


def _what(raising: Block) -> tuple[object, ...]:
    """Key of the effect of a block that only raises."""
    (target,) = raising.successors or (None,)
    status = () if target is None else (str(phi.value_from(raising)) for phi in target.phis())
    return (target, *status, *(tuple(inst.operands) for inst in raising.instructions))


def _stores_constant(inst: Instruction) -> bool:
    return isinstance(inst, Store) and not isinstance(inst.operands[0], Instruction)


def _lost_memory(cfg: ControlFlow, mod_ref: ModRef, result: Value) -> int:
    """The memory that nobody can reach after the function has raised: its own, unless it is known elsewhere."""
    points_to = mod_ref.points_to
    own = union(1 << item.index for item in points_to.objects if item.kind in SEPARATE)
    elsewhere = (item for item in points_to.objects if item.kind not in SEPARATE and item.value is not result)
    known = points_to.reachable(union(1 << item.index for item in elsewhere))
    # An opaque call may have kept each address that escapes, and use it after the exception.
    if any(mod_ref.of(inst).is_opaque for block in cfg.order for inst in block.instructions):
        known |= points_to.exposed
    return own & ~known


def _is_harmless(loop: Loop, mod_ref: ModRef, lost: int) -> bool:
    """True if iterations after one that should have raised change nothing that is seen, and do not fail."""
    return all(_may_run(inst, loop, mod_ref, lost) for block in loop.order for inst in block.instructions)


def _may_run(inst: Instruction, loop: Loop, mod_ref: ModRef, lost: int) -> bool:
    # With these words an infinity or a NaN is poison, on which the loop may branch.
    if not POISONING.isdisjoint(getattr(inst, "flags", ())):
        return False
    match inst:
        case Load(operands=[pointer]) | Store(operands=[_, pointer]):
            return inst.is_plain and _is_counted(pointer, loop) and not mod_ref.of(inst).writes & ~lost
        case CallSite(callee=callee):
            return is_elementary(callee, mod_ref.registry)
        # A division of integers by zero traps, unlike one of floats.
        case Binary(opcode=opcode, operands=[_, divisor]) if opcode in _DIVISIONS:
            return isinstance(divisor, Constant)
        case Phi() | Binary() | Unary() | Cast() | ICmp() | FCmp() | Select() | Freeze() | GetElementPtr():
            return True
        case _:
            return isinstance(inst, Br | CondBr)


def _is_counted(pointer: Value, loop: Loop) -> bool:
    """True if an address in a loop is computed from counters and values known before the loop."""
    pending = Worklist[Value]([pointer])
    for value in pending:
        if is_invariant(value, loop):
            continue
        match value:
            case Phi() | GetElementPtr() | Freeze() | Binary() | Cast(opcode="sext" | "zext" | "trunc"):
                pending.add(*value.operands)
            # A float or a loaded number may be what the missed check was about, and lead outside of the array.
            case _:
                return False
    return True


def _postpone(loop: Loop, checks: list[_Check], last: Block, end: Block) -> None:
    """Makes the checks record a failure and continue; the exception is raised at the end."""
    assert loop.preheader is not None
    assert loop.latch is not None
    failed = Builder.at_start(loop.header).phi(types.I1, [(const_int(types.I1, 0), loop.preheader)], "failed")
    noted: Value = failed
    for check in checks:
        build = Builder.before(check.branch)
        condition = check.branch.operands[0]
        fails = condition if check.branch.targets[0] is check.raising else build.xor(condition, const_int(types.I1, 1))
        noted = build.or_(noted, fails)
        build.br(check.goes_on)
        check.branch.erase()
    failed.add_incoming(noted, loop.latch)
    failed_at_end = Builder.at_start(end).phi(types.I1, [(noted, last)])
    rest = split_before(next(inst for inst in end.instructions if not isinstance(inst, Phi)))
    Builder(end).cond_br(failed_at_end, checks[0].raising, rest)
