"""Brings both sweeps into the form that is rendered: values only, no stack slots, no placeholders, nothing dead.

Input   a `GeneratedPair`, whose functions are changed; nobody compiles them.
Output  `Reads`: which placeholders of the reverse sweep stand for saved values and affine variables.
"""

from __future__ import annotations

from irad.decompile.arithmetic.sums import fold_sums, mark_strong_products
from irad.decompile.control.origins import fold_origins, name_origins
from irad.decompile.control.reentry import give_single_entries
from irad.decompile.dead_code import remove_dead
from irad.decompile.memory.reads import Reads
from irad.decompile.memory.slots import promote_slots
from irad.decompile.needs import replace_needs
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import Instruction, Phi
from irad.ir.loops import Loop, innermost_first, loop_nest
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import Value
from irad.passes.generated import GeneratedPair


def clean_up(captured: GeneratedPair) -> Reads:
    """Does all of it."""
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
