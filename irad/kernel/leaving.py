"""Kernels in which threads of a block leave while others still wait for each other.

Input   the entry of a kernel.
Output  `leave_apart`: whether threads of a block may pass different numbers of barriers, other than none at all.
Method  a thread that leaves early goes into its reverse sweep, and meets there barriers of its own, while others are at
        theirs in the forward sweep: they would take the one for the other. So it waits at all barriers that the others
        still pass in the forward sweep, and as often before its reverse sweep; then all threads pass the same barriers
        (`meet_anywhere`, `wait_for_others`). Whether a branch may differ within a block is found out from what numbers
        depend on; loops that all threads of a block leave together are harmless.
Limit   memory at an address that is the same for all threads is taken to have the same content for all of them, which
        is so unless the kernel has a race.

    if t >= 8: return          # while the others go on to a barrier: they leave apart, if a barrier has been before
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from irad.errors import UnsupportedError
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.instructions import Alloca, AtomicRMW, CallSite, CmpXchg, CondBr, Instruction, Phi
from irad.ir.module import Block, Function
from irad.ir.types import I32, function_type
from irad.ir.values import Value, const_int
from irad.rules.cuda import BARRIER_ANYWHERE, BLOCK_BARRIER, PREDICATED_BARRIERS

_REGISTER: Final = "llvm.nvvm.read.ptx.sreg."
_SAME_IN_A_BLOCK: Final = (*(f"{_REGISTER}{word}." for word in ("ctaid", "ntid", "nctaid")), f"{_REGISTER}warpsize")
_OF_A_THREAD: Final = tuple(f"irad.cuda.{word}" for word in ("shfl.", "vote.", "match.", "activemask", "lanemask"))


def leave_apart(function: Function) -> bool:
    """True if threads of a block may pass different numbers of barriers, other than none."""
    waiting = {block for block in function.blocks if any(map(is_barrier, block.instructions))}
    if not waiting:
        return False
    cfg = control_flow(function)
    after = {target for block in waiting if block in cfg.position for target in _reached(cfg, cfg.successors[block])}
    return any(
        not waiting.isdisjoint(apart) and not _may_leave_first(cfg, block, waiting, after | waiting)
        for block, apart in _divergent(cfg).items()
    )


def error_of_counting(inst: Instruction) -> UnsupportedError | None:
    """The error for a barrier that counts, in a kernel in which threads leave apart; None for all else."""
    if _symbol(inst) not in PREDICATED_BARRIERS:
        return None
    return UnsupportedError(
        "irad cannot differentiate a kernel with a counting barrier if some threads of a block may exit, or pass it "
        "less often, after they have passed barriers",
        "put an if around the work of the other threads instead of return or break, so that all threads of a block "
        "reach all barriers",
        "in the derivative, threads that have exited wait for the others, and would be counted",
    )


def meet_anywhere(function: Function) -> None:
    """Lets threads wait for each other in different places of a sweep, and say that they have not left."""
    for inst in list(function.instructions()):
        if is_barrier(inst):
            build = Builder.before(inst)
            build.origin, build.metadata = inst, inst.metadata  # the line says that it is the user's
            _wait(build, 0)
            inst.erase()


def wait_for_others(build: Builder) -> Builder:
    """Emits between the sweeps: waits with the others until all have left, and once more for each time.

    Returns:
        Where to go on.
    """
    function, start = build.block.function, build.block
    assert function is not None
    waits, back, again, done = (function.add_block(f"others.{part}") for part in ("leave", "all", "return", "done"))
    build.br(waits)
    build = Builder(waits)
    count = build.phi(I32, [(const_int(I32, 0), start)])
    have_left = build.icmp("ne", _wait(build, 1), const_int(I32, 0))
    count.add_incoming(build.add(count, const_int(I32, 1)), waits)
    build.cond_br(have_left, back, waits)
    build = Builder(back)
    left = build.phi(I32, [(count, waits)])
    build.cond_br(build.icmp("eq", left, const_int(I32, 0)), done, again)
    build = Builder(again)
    _wait(build, 0)
    left.add_incoming(build.sub(left, const_int(I32, 1)), again)
    build.br(back)
    return Builder(done)


def _wait(build: Builder, has_left: int) -> Value:
    callee = build.module.declare(BARRIER_ANYWHERE, function_type(I32, [I32]), ("convergent", "nounwind"))
    return build.call(callee, [const_int(I32, has_left)])


def is_barrier(inst: Instruction) -> bool:
    """True if the threads of a block wait there."""
    return _symbol(inst) in (BLOCK_BARRIER, *PREDICATED_BARRIERS)


def _symbol(inst: Instruction) -> str:
    callee = inst.callee if isinstance(inst, CallSite) else None
    return str(callee.name) if isinstance(callee, Function) else ""


def _may_leave_first(cfg: ControlFlow, block: Block, waiting: set[Block], after: set[Block]) -> bool:
    """True if threads that go apart at the end of a block have not waited, and some of them never will."""
    return block not in after and any(waiting.isdisjoint(_reached(cfg, [each])) for each in cfg.successors[block])


def _reached(cfg: ControlFlow, start: Iterable[Block], stop: Collection[Block] = ()) -> set[Block]:
    """Blocks that can be reached from some, those included, but not beyond where to stop."""
    found: set[Block] = set()
    todo = list(start)
    while todo:
        block = todo.pop()
        if block not in found:
            found.add(block)
            todo += cfg.successors[block] if block not in stop else ()
    return found


def _divergent(cfg: ControlFlow) -> dict[Block, set[Block]]:
    """Blocks at whose end threads may go apart, each with those in which they are, until they meet again."""
    meet = _postdominators(cfg)
    differs: set[Value] = set()
    found: dict[Block, set[Block]] = {}
    changed = True
    while changed:
        changed = False
        for block in cfg.order:
            for inst in block.instructions:
                if inst not in differs and _may_differ(inst, differs):
                    differs.add(inst)
                    changed = True
            end = block.terminator
            if block not in found and isinstance(end, CondBr) and end.operands[0] in differs:
                later = meet[block] - {block}
                ways = [_reached(cfg, [each], later) for each in cfg.successors[block]]
                found[block] = set.union(*ways) - later
                met = set.intersection(*ways)  # a phi where only one way leads is the same for all who come there
                differs |= {phi for each in met for phi in each.instructions if isinstance(phi, Phi)}
                changed = True
    return found


def _may_differ(inst: Instruction, differs: Collection[Value]) -> bool:
    """True if the result may differ between threads of a block, as some values do."""
    if isinstance(inst, Alloca | AtomicRMW | CmpXchg):
        return True
    symbol = _symbol(inst)
    if symbol.startswith(_REGISTER):
        return not symbol.startswith(_SAME_IN_A_BLOCK)
    if symbol in PREDICATED_BARRIERS:
        return False
    return symbol.startswith(_OF_A_THREAD) or any(each in differs for each in inst.operands)


def _postdominators(cfg: ControlFlow) -> dict[Block, set[Block]]:
    """For each block those that every way from it to the end passes, itself included."""
    everything = set(cfg.order)
    found = {block: everything if cfg.successors[block] else {block} for block in cfg.order}
    changed = True
    while changed:
        changed = False
        for block in reversed(cfg.order):
            if cfg.successors[block]:
                after = set.intersection(*(found[each] for each in cfg.successors[block])) | {block}
                if after != found[block]:
                    found[block] = after
                    changed = True
    return found
