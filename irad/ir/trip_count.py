"""Affine variables of a loop and the exact number of its iterations.

A variable is affine when its value in iteration i (from 0) is start + i·step, modulo 2^bits. An exit is counted when
its branch, run in every iteration, compares such a variable, or its next value, with a loop-invariant bound:

    header:  %i = phi i64 [ 0, %preheader ], [ %next, %latch ]
             …
    latch:   %next = add nuw nsw i64 %i, 1
             %more = icmp slt i64 %next, %n            ⇒  the back edge is taken max(n, 1) - 1 times
             br i1 %more, label %header, label %exit

Method: with the first compared value x (start, or start + step) and the predicate under which the loop goes on,
    ne           (bound - x) / step mod 2^bits; an odd step meets every value and has an inverse, an even one needs a
                 constant distance that it divides
    eq           1 if x is the bound, else 0
    < and >      0 if they fail at once, else ⌈distance / |step|⌉
    ≤ and ≥      0 if they fail at once, else ⌊distance / |step|⌋ + 1
Orders need that the variable does not wrap around between the last value that goes on and the one that does not: a step
of one cannot step over a bound, a constant bound leaves room, or the increment has `nsw` (`nuw` for unsigned orders;
wrapping would be poison, and the branch on it undefined). What is not certain is not counted.

The count also bounds the iterations of a loop that leaves through another exit: storage sized by it is large enough.
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.folding import signed, unsigned
from irad.ir.instructions import Binary, CondBr, GetElementPtr, ICmp, Instruction, Phi
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.types import IntType, PointerType
from irad.ir.values import Constant, ConstantInt, Value, const_int
from irad.records import dataclass

_NEGATED: Final = {
    "eq": "ne", "ne": "eq",
    "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip
_SWAPPED: Final = {
    "eq": "eq", "ne": "ne",
    "slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle",
    "ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AffineVariable:
    """start + i·step. Of a pointer, ``step`` is an int and counts bytes; a step that is a value has the phi's type."""

    start: Value
    step: Value | int


@dataclass(frozen=True, slots=True)
class TripCount:
    """Number of times that a loop takes its back edge if it leaves through one exit.

    Attributes:
        exiting: the block of the exit; it runs in every iteration.
        variable: the affine variable compared.
        start: its first value.
        step: increment in each iteration, not 0.
        bound: the value that it is compared with.
        predicate: the loop goes on while `variable predicate bound`.
        compares_next: the compared value is that of the next iteration.
        speculative: the loop may leave before it compares for the first time.
    """

    exiting: Block
    variable: Phi
    start: Value
    step: int
    bound: Value
    predicate: str
    compares_next: bool
    speculative: bool

    def emit(self, builder: Builder) -> Value:
        """Emits the count as an i64, to be read as unsigned; ``builder`` is positioned in the preheader or after it."""
        start, bound = self.start, self.bound
        if self.speculative:  # the loop might never branch on them, so they may be poison
            start, bound = _frozen(builder, start), _frozen(builder, bound)
        type_ = self.variable.type
        first = builder.add(start, const_int(type_, self.step)) if self.compares_next else start
        if self.predicate == "eq":
            return builder.zext(builder.icmp("eq", first, bound), types.I64)
        if self.predicate == "ne":
            return builder.zext(_divided(builder, builder.sub(bound, first), self.step), types.I64)
        distance = builder.sub(bound, first) if self.step > 0 else builder.sub(first, bound)
        goes_on = builder.icmp(self.predicate, first, bound)
        count = self._steps(builder, builder.zext(distance, types.I64))
        return builder.select(goes_on, count, const_int(types.I64, 0))

    def _steps(self, builder: Builder, distance: Value) -> Value:
        """Iterations until the order fails, for a distance for which it holds at first."""
        one, size = const_int(types.I64, 1), const_int(types.I64, abs(self.step))
        if self.predicate.endswith("e"):
            return builder.add(builder.udiv(distance, size), one)
        if abs(self.step) == 1:
            return distance
        return builder.add(builder.udiv(builder.sub(distance, one), size), one)


def affine_variables(loop: Loop) -> dict[Phi, AffineVariable]:
    """The affine header phis of a loop with a preheader and one latch.

    Integers advanced by `add` of a loop-invariant value or by `sub` of a constant; pointers advanced by a getelementptr
    of constant offset.
    """
    found: dict[Phi, AffineVariable] = {}
    if loop.preheader is None or loop.latch is None:
        return found
    for phi in loop.header.phis():
        step = _step(loop, phi, phi.value_from(loop.latch))
        if step is not None:
            found[phi] = AffineVariable(phi.value_from(loop.preheader), step)
    return found


def trip_count(loop: Loop, cfg: ControlFlow, dom: DominatorTree, exiting: Block | None = None) -> TripCount | None:
    """The count of the first counted exit, or of the exit from ``exiting``.

    Args:
        loop: with a preheader and one latch; others are not counted.
        cfg: the graph the loop was found in.
        dom: its dominator tree.
        exiting: the block whose exit to count, instead of any.
    """
    if loop.preheader is None or loop.latch is None:
        return None
    for block, _ in loop.exits:
        if exiting is not None and block is not exiting:
            continue
        found = _counted_exit(loop, cfg, dom, block)
        if found is not None:
            return found
    return None


def _counted_exit(loop: Loop, cfg: ControlFlow, dom: DominatorTree, exiting: Block) -> TripCount | None:
    assert loop.preheader is not None
    assert loop.latch is not None
    branch = exiting.terminator
    # In an inner loop the branch would run several times in an iteration.
    runs_always = dom.dominates(exiting, loop.latch) and not any(child.contains(exiting) for child in loop.children)
    if not runs_always or not isinstance(branch, CondBr) or not isinstance(branch.operands[0], ICmp):
        return None
    stays = [loop.contains(target) for target in branch.targets]
    if stays[0] == stays[1]:
        return None
    compare = branch.operands[0]
    predicate = compare.predicate if stays[0] else _NEGATED[compare.predicate]
    left, right = compare.operands
    speculative = exiting is not loop.header and len(loop.exits) > 1
    for phi in loop.header.phis():
        start, advance = phi.value_from(loop.preheader), phi.value_from(loop.latch)
        for tested, bound, relation in ((left, right, predicate), (right, left, _SWAPPED[predicate])):
            if tested not in (phi, advance) or not is_invariant(bound, loop):
                continue
            step = _step(loop, phi, advance)
            if (
                isinstance(step, int)
                and isinstance(advance, Binary)
                and _is_exact(relation, start, step, bound, advance)
            ):
                return TripCount(exiting, phi, start, step, bound, relation, tested is not phi, speculative)
    return None


def is_invariant(value: Value, loop: Loop) -> bool:
    """True if a value is computed outside of the loop."""
    return not isinstance(value, Instruction) or (value.block is not None and value.block not in loop.blocks)


def _step(loop: Loop, phi: Phi, advance: Value) -> Value | int | None:
    """Step that ``advance`` adds to the phi in each iteration; constants as int, other than 0."""
    if isinstance(phi.type, PointerType):
        if isinstance(advance, GetElementPtr) and advance.operands[0] is phi:
            return constant_offset(advance) or None
        return None
    if not isinstance(advance, Binary) or advance.opcode not in ("add", "sub") or not isinstance(phi.type, IntType):
        return None
    left, right = advance.operands
    if left is not phi:
        left, right = right, left
        if advance.opcode == "sub":
            return None
    if left is not phi or not is_invariant(right, loop):
        return None
    if isinstance(right, ConstantInt):
        size = signed(right)
        # The smallest number is its own negation: neither sign describes it.
        return None if size == -(1 << (phi.type.bits - 1)) else (size if advance.opcode == "add" else -size) or None
    return right if advance.opcode == "add" and not isinstance(right, Constant) else None


def constant_offset(gep: GetElementPtr) -> int | None:
    """The bytes a getelementptr adds to its base, if they are constant."""
    total = 0
    current: types.Type = gep.source_type
    for depth, index in enumerate(gep.operands[1:]):
        if not isinstance(index, ConstantInt):
            return None
        if depth == 0:
            total += index.value * types.size_of(current)
        elif isinstance(current, types.ArrayType):
            current = current.element
            total += index.value * types.size_of(current)
        elif isinstance(current, types.StructType | types.NamedStructType):
            total += types.field_offsets(current)[index.value]
            current = types.struct_body(current).elements[index.value]
        else:
            return None
    return total


def _is_exact(predicate: str, start: Value, step: int, bound: Value, advance: Binary) -> bool:
    """True if the formula of the module's docstring holds for all values (see there)."""
    # Counts are numbers of 64 bits.
    if not isinstance(bound.type, IntType) or bound.type.bits > 64:
        return False
    if predicate == "eq":
        return True
    if predicate == "ne":
        if isinstance(start, ConstantInt) and isinstance(bound, ConstantInt):
            return (bound.value - start.value) % _even_part(step) == 0
        return step % 2 == 1
    upwards = predicate[1] == "l"
    if upwards != (step > 0):
        return False
    strict = predicate.endswith("t")
    if strict and abs(step) == 1:
        return True
    if predicate[0] == "s" and "nsw" in advance.flags:
        return True
    # `nuw` takes the operands as unsigned: an `add nuw` of -1 is not a decrement.
    if predicate[0] == "u" and "nuw" in advance.flags and (advance.opcode == "add") == (step > 0):
        return True
    return isinstance(bound, ConstantInt) and _has_room(predicate, step, bound, strict)


def _has_room(predicate: str, step: int, bound: ConstantInt, strict: bool) -> bool:
    """True if the last compared value, at most this far beyond the bound, is in the range of the type."""
    assert isinstance(bound.type, IntType)
    bits = bound.type.bits
    beyond = abs(step) - 1 if strict else abs(step)
    if predicate[0] == "s":
        low, high, limit = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, signed(bound)
    else:
        low, high, limit = 0, (1 << bits) - 1, unsigned(bound)
    return limit + beyond <= high if step > 0 else limit - beyond >= low


def _even_part(step: int) -> int:
    """The largest power of two that divides it."""
    return step & -step


def _divided(builder: Builder, distance: Value, step: int) -> Value:
    """The smallest i with i·step = distance modulo 2^bits; the even part of the step divides the distance."""
    assert isinstance(distance.type, IntType)
    bits, even = distance.type.bits, _even_part(step)
    odd_inverse = const_int(distance.type, pow(step // even, -1, 1 << bits))
    quotient = builder.lshr(distance, const_int(distance.type, even.bit_length() - 1))
    mask = const_int(distance.type, (1 << bits) // even - 1)
    return builder.and_(builder.mul(quotient, odd_inverse), mask)


def _frozen(builder: Builder, value: Value) -> Value:
    return value if isinstance(value, Constant) else builder.freeze(value)
