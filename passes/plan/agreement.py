"""Agreement: values that may differ when they are computed twice, and those that must not.

Rounded freely: the result of an operation whose rounding LLVM may choose again wherever it compiles it. It has a
fast-math word (`x / h` becomes `x * (1 / h)` where the reciprocal is at hand, a product and a sum one rounding), or it
becomes a call of a library, of which there are several: one for numbers and one for vectors, one that LLVM runs when
it folds constants. What IEEE 754 rounds in one way only (arithmetic without such words, `sqrt`, `fma`, casts) comes out
the same everywhere.

A decision: an operation whose result jumps when an operand is rounded differently. Whatever is not floating-point is
one (comparisons, conversions to integers, bits), and so are the functions that round to whole numbers, remainders and
`copysign`.

    %q = fdiv fast double %x, %h      rounded freely
    %k = fptosi double %q to i64      a decision, of a number that is rounded freely
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import field
from typing import Final, assert_never, cast

from irad.errors import InternalError
from irad.ir import instructions as ir
from irad.ir.instructions import Alloca, CallSite, Cast, FCmp, Instruction, Load, Phi
from irad.ir.module import Function
from irad.ir.text.keywords import FAST_MATH
from irad.ir.types import VOID, holds_floats
from irad.ir.values import Parameter, Value
from irad.ir.verifier import describe
from irad.ir.worklist import Worklist
from irad.passes.runtime import CHECKS
from irad.records import dataclass
from irad.ruleset.shortcut_slopes import VALUES
from irad.ruleset.symbols import stem_of_symbol, symbols_of_function

# Functions that IEEE 754 defines to the last bit, by the stem of their symbol. Not `fmuladd`, which may be fused or
# not, and not `maxnum` and `fmax`, which may return either zero. What values are passed through returns an argument.
_EXACT: Final = frozenset(
    {"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign", "fma"}
    | {"maximum", "minimum", "maximumnum", "minimumnum"}
    | {stem_of_symbol(symbol) for name in VALUES for symbol, _ in symbols_of_function(name)}
)
_JUMPING: Final = frozenset({"floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign"})


def is_rounded_freely(inst: ir.Instruction) -> bool:
    """True if LLVM may give the result another rounding in one sweep than in the other."""
    shape = cast("ir.AnyInstruction", inst)
    match shape:
        case ir.Binary(opcode="frem"):
            # LLVM makes a library call of a remainder, and there are several libraries.
            return True
        case ir.Binary() | ir.Unary() | ir.Cast() | ir.FCmp() | ir.Select() | ir.Phi():
            return has_fast_math_words(inst)
        case ir.Call() | ir.Invoke() | ir.CallBr():
            return has_fast_math_words(inst) or (_computes_with_floats(shape) and _stem(shape) not in _EXACT)
        case (
            ir.ICmp() | ir.Freeze() | ir.ExtractValue() | ir.InsertValue() | ir.ExtractElement() | ir.InsertElement()
            | ir.ShuffleVector() | ir.Alloca() | ir.Load() | ir.Store() | ir.GetElementPtr() | ir.AtomicRMW()
            | ir.CmpXchg() | ir.Fence() | ir.VAArg() | ir.Ret() | ir.Br() | ir.CondBr() | ir.Switch()
            | ir.IndirectBr() | ir.Unreachable() | ir.Resume() | ir.LandingPad() | ir.ExceptionPad()
            | ir.ExceptionTerminator()
        ):  # fmt: skip
            return False  # they move floats, or are never recomputed
        case _:
            assert_never(shape)


def is_decision(inst: ir.Instruction) -> bool:
    """True if the result jumps when a floating-point operand is rounded differently."""
    if not holds_floats(inst.type):
        return True
    if isinstance(inst, ir.CallSite):
        return _stem(inst) in _JUMPING
    return isinstance(inst, ir.Binary) and inst.opcode == "frem"


def has_fast_math_words(inst: ir.Instruction) -> bool:
    """True if an operation has a flag that lets LLVM change its result."""
    match inst:
        case ir.Binary() | ir.Unary() | ir.Cast() | ir.FCmp() | ir.Select() | ir.Phi() | ir.CallSite():
            return not FAST_MATH.isdisjoint(inst.flags)
        case _:
            return False


def _computes_with_floats(call: ir.CallSite) -> bool:
    return holds_floats(call.type) or any(holds_floats(argument.type) for argument in call.arguments)


def _stem(call: ir.CallSite) -> str:
    """Stem of the called symbol (`stem_of_symbol`); empty if it has no name."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return ""
    return stem_of_symbol(callee.name)


# Pinned values: what the reverse sweep has from the forward sweep or from the tape, but never recomputes.
#
# Input   what could be recomputed, and from what; the values that the reverse sweep itself makes decisions with.
# Output  `Pinned`, asked by `irad.passes.plan.rematerialisation`.
# Method  a value that is recomputed is *loose* if its operation is rounded freely, or one of its floating-point
#         operands is loose. A decision that would be made from loose numbers is pinned: so it is saved, and whatever
#         follows from it (an index, an address, a trip count, what is loaded there) is recomputed from what was
#         saved. Integers, booleans and addresses are therefore never loose, nor is what memory holds.
# Limit   a number that is saved for another reason counts as loose until it is known to be: then the decision is saved
#         as well, which takes its bytes and is never wrong.
#
#     %q = fdiv fast double %x, %h              loose
#     %k = fptosi double %q to i64              pinned
#     %p = getelementptr double, ptr %a, i64 %k recomputed from the saved %k


@dataclass(eq=False, slots=True)
class Pinned:
    """Tells which values must not be recomputed.

    Attributes:
        again: operands from which a value could be recomputed; None if it could not.
        deciding: numbers that decide something in the reverse sweep.
    """

    again: Callable[[Value], Sequence[Value] | None]
    deciding: Container[Value]
    _loose: dict[Value, bool] = field(default_factory=dict)

    def is_pinned(self, value: Value) -> bool:
        """True if a value decides something and would be computed from numbers that are rounded freely."""
        return (
            isinstance(value, Instruction)
            and (value in self.deciding or is_decision(value))
            and self._may_differ(value, self.again(value))
        )

    def _may_differ(self, value: Instruction, operands: Sequence[Value] | None) -> bool:
        """True if a value that is recomputed from these may be another number."""
        if operands is None:
            return False
        return is_rounded_freely(value) or any(self._is_loose(v) for v in operands if holds_floats(v.type))

    def _is_loose(self, value: Value) -> bool:
        """The operands are decided first, with an explicit stack, since chains are as long as functions."""
        pending = [value]
        while pending:
            current = pending[-1]
            operands = None if current in self._loose else self.again(current)
            unsettled = [v for v in operands or () if holds_floats(v.type) and v not in self._loose]
            if unsettled:
                pending.extend(unsettled)
                continue
            if current not in self._loose:
                self._loose[current] = (
                    isinstance(current, Instruction)
                    # What decides is saved where it would be loose, and so is nothing loose for what is computed from
                    # it.
                    and current not in self.deciding
                    and not is_decision(current)
                    and self._may_differ(current, operands)
                )
            pending.pop()
        return self._loose[value]


# Checks the contract on a finished pair: no decision is made again from numbers that are rounded freely.
#
# Input   the two functions of a pair, whatever made them.
# Output  none; an `InternalError` names the first violation.
# Method  from each comparison, conversion and other decision of the reverse sweep backwards along floating-point
#         operands, through code that is a copy of the forward sweep's: up to the tape, to memory, to arguments. Code of
#         adjoints is looked at, too, unless a cotangent is among what it compares: those exist in one sweep only.
# Limit   that memory and the tape hold what the forward sweep used is taken for granted.
#
#     %q = fdiv fast double %x, %h      a copy of the forward sweep's
#     %k = fptosi double %q to i64      violation: the forward sweep may have used another number


def check_agreement(augmented: Function, reverse: Function) -> None:
    """Checks that the reverse sweep makes no decision a second time.

    Raises:
        InternalError: it does.
    """
    origins = _Origins(augmented)
    for inst in reverse.instructions():
        if inst.type is VOID or not is_decision(inst) or not any(holds_floats(v.type) for v in inst.operands):
            continue
        if origins.is_copy(inst):
            found = origins.rounded_freely(inst)
        elif isinstance(inst, FCmp | Cast):
            found = origins.rounded_freely(inst, stops_at_cotangents=True)
        else:
            continue  # a call for a cotangent
        if found is not None:
            raise InternalError(
                f"in @{reverse.name}, {describe(inst)} decides something by {describe(found)}, which is recomputed "
                "and may be rounded differently from the one in the forward sweep"
            )


@dataclass(frozen=True, slots=True)
class _Origins:
    """Distinguishes code that is recomputed from code of adjoints."""

    augmented: Function

    def is_copy(self, inst: Instruction) -> bool:
        """True if an instruction of the reverse sweep is a copy of one of the forward sweep."""
        origin = inst.origin
        return origin is not None and origin.block is not None and origin.block.function is self.augmented

    def rounded_freely(self, decision: Instruction, *, stops_at_cotangents: bool = False) -> Instruction | None:
        """The recomputed and freely rounded number that a decision depends on; None if there is none.

        Args:
            decision: where to start.
            stops_at_cotangents: a decision in which a cotangent takes part is not looked at.
        """
        found: Instruction | None = None
        pending = Worklist[Value]([decision])
        for value in pending:
            is_copy = isinstance(value, Instruction) and self.is_copy(value)
            if not is_copy and stops_at_cotangents and self._is_cotangent(value):
                return None
            if not isinstance(value, Instruction) or isinstance(value, Load):
                continue
            if is_copy and not _is_watched(value) and (is_rounded_freely(value) or _was_rounded_freely(value)):
                found = found or value
            pending.add(*(v for v in value.operands if holds_floats(v.type)))
        return found

    def _is_cotangent(self, value: Value) -> bool:
        """True if a value that is not a copy may be made of cotangents: it comes from a slot, a shadow, a call."""
        match value:
            case Parameter() | Phi():
                return True
            case Load(operands=[pointer]):
                return value.origin is not None or isinstance(pointer, Alloca)
            case CallSite():
                return not all(holds_floats(v.type) for v in value.arguments)
            case _:
                return False


def _was_rounded_freely(copy: Instruction) -> bool:
    """True if the original is: a copy may have lost its fast-math words, and is another number for that very reason."""
    return copy.origin is not None and is_rounded_freely(copy.origin)


def _is_watched(inst: Instruction) -> bool:
    """True if it passes a number on to debug mode."""
    return isinstance(inst, CallSite) and isinstance(inst.callee, Function) and inst.callee.name in CHECKS.values()
