"""State of one sweep while it is written.

`integers` reads and fills it first, then `pointers`, then `expressions`; `variables` decides what has a name.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from irad.decompile.loops import LoopForm
from irad.decompile.pair_memory import PairMemory, Reads
from irad.decompile.polynomial import Polynomial
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import Instruction
from irad.ir.loops import Loop, LoopNest
from irad.ir.module import Block, Function
from irad.ir.values import Value
from irad.passes.generated import GeneratedPair


@dataclass(eq=False, slots=True)
class Sheet:
    """One sweep.

    Attributes:
        reads: values of placeholders; empty in the forward sweep.
        texts: expressions that stand for values wherever they are used: parameters, variables, saved values.
        same: values that equal others.
        stable: variables of the forward sweep that keep their value, so that the reverse sweep can name them.
        derivable: those that are computed from parameters and loop variables alone.
        tape: texts of what is saved in loops, by value or start of an array.
        affine: integers that are polynomials in loop variables, and sizes that types tell.
        sizes, nonnegative: parameters that are sizes or strides of arrays; what is known not to be negative.
        truths: parameters that are True or False.
        unsigned: parameters of integer types without sign: their text; that in ``texts`` has a sign.
        chosen: pointers that are variables, one array or another.
        used: called for each value whose text is taken from ``texts``; liveness listens.
    """

    captured: GeneratedPair
    function: Function
    cfg: ControlFlow
    dominators: DominatorTree
    nest: LoopNest
    forms: dict[Loop, LoopForm]
    memory: PairMemory
    reads: Reads
    is_reverse: bool
    same: dict[Value, Value]
    augmented: Sheet | None = None
    stable: set[Value] = field(default_factory=set)
    derivable: set[Value] = field(default_factory=set)
    texts: dict[Value, Callable[[], ast.expr]] = field(default_factory=dict)
    used: Callable[[Value], None] | None = None
    affine: dict[Value, Polynomial] = field(default_factory=dict)
    tape: dict[Value, Callable[[], ast.expr]] = field(default_factory=dict)
    extremes: dict[Value, set[Value]] = field(default_factory=dict)
    sizes: set[Value] = field(default_factory=set)
    nonnegative: set[Value] = field(default_factory=set)
    truths: set[Value] = field(default_factory=set)
    chosen: set[Value] = field(default_factory=set)
    unsigned: dict[Value, Callable[[], ast.expr]] = field(default_factory=dict)


def block_of(inst: Instruction) -> Block:
    """The block of an instruction."""
    assert inst.block is not None
    return inst.block
