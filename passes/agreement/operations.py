"""What may come out differently when it is computed twice, and what must not.

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

from typing import Final, assert_never, cast

from irad.ir import instructions as ir
from irad.ir.module import Function
from irad.ir.text.keywords import FAST_MATH
from irad.ir.types import holds_floats
from irad.ruleset.symbols import stem_of_symbol

# Functions that IEEE 754 defines to the last bit, by the stem of their symbol. Not `fmuladd`, which may be fused or
# not, and not `maxnum` and `fmax`, which may return either zero.
_EXACT: Final = frozenset(
    {"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign", "fma"}
    | {"maximum", "minimum", "maximumnum", "minimumnum"}
)
_JUMPING: Final = frozenset({"floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "copysign"})


def is_rounded_freely(inst: ir.Instruction) -> bool:
    """Whether LLVM may give the result another rounding in one sweep than in the other."""
    shape = cast("ir.AnyInstruction", inst)
    match shape:
        case ir.Binary(opcode="frem"):
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
            return False  # they move floats, or are never computed again
        case _:
            assert_never(shape)


def is_decision(inst: ir.Instruction) -> bool:
    """Whether the result jumps when a floating-point operand is rounded differently."""
    if not holds_floats(inst.type):
        return True
    if isinstance(inst, ir.CallSite):
        return _stem(inst) in _JUMPING
    return isinstance(inst, ir.Binary) and inst.opcode == "frem"


def has_fast_math_words(inst: ir.Instruction) -> bool:
    """Whether an operation has one of the words that let LLVM change what it computes."""
    match inst:
        case ir.Binary() | ir.Unary() | ir.Cast() | ir.FCmp() | ir.Select() | ir.Phi() | ir.CallSite():
            return not FAST_MATH.isdisjoint(inst.flags)
        case _:
            return False


def _computes_with_floats(call: ir.CallSite) -> bool:
    return holds_floats(call.type) or any(holds_floats(argument.type) for argument in call.arguments)


def _stem(call: ir.CallSite) -> str:
    """Of what is called (`stem_of_symbol`); empty where that has no name."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return ""
    return stem_of_symbol(callee.name)
