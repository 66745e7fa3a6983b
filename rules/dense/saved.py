"""Facts about operands that rules of BLAS and LAPACK find while generating code, and the parts they keep."""

from __future__ import annotations

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Phi, Select
from irad.ir.values import ConstantInt, Value, const_int
from irad.rules.dense.elements import ElementType
from irad.rules.dense.kernel import I64
from irad.rules.dense.matrix import NOWHERE
from irad.rules.dense.triangular import read_pivots
from irad.ruleset.interface import AugmentedContext, Context, CopyContext


def letter(value: Value, known: str, operation: str) -> str:
    """An option of LAPACK that is a letter.

    Raises:
        UnsupportedError: it is none of the known ones, or is chosen at run time.
    """
    letters = _letters(value, 4)
    if len(letters) == 1 and letters <= frozenset(known):
        return next(iter(letters))
    raise _unknown_option(operation)


def check_letters(value: Value, known: str, operation: str) -> None:
    """Checks an option that may be chosen at run time among the known letters.

    Raises:
        UnsupportedError: it may be another.
    """
    letters = _letters(value, 4)
    if not letters or not letters <= frozenset(known):
        raise _unknown_option(operation)


def _unknown_option(operation: str) -> UnsupportedError:
    return UnsupportedError(
        f"{operation} chooses at run time between variants that need different derivatives",
        "use an if statement to choose between calls with constant arguments",
        "which derivative is needed must be known when the program is compiled",
    )


def _letters(value: Value, depth: int) -> frozenset[str]:
    """Values a letter may have; empty if that is unknown."""
    match value:
        case ConstantInt():
            return frozenset({chr(value.value & 0xFF).upper()})
        case Select(operands=[_, a, b]) | Phi(operands=[a, b]) if depth:
            options = _letters(a, depth - 1), _letters(b, depth - 1)
            return options[0] | options[1] if all(options) else frozenset()
        case _:
            return frozenset()


def same(a: Value, b: Value) -> bool:
    """True if two operands are one value."""
    if isinstance(a, ConstantInt) and isinstance(b, ConstantInt):
        return a.type is b.type and a.value == b.value
    return a is b


# ------------------------------------------------------------------------------------------------ kept memory


def copied(context: CopyContext, build: Builder, pointer: Value, element: ElementType, count: Value) -> Value:
    """A copy of ``count`` elements on the tape, made where ``build`` stands: `context.before` or `context.after`."""
    copy = workspace(context, element, count)
    size = build.mul(count, const_int(I64, element.size))
    never = const_int(types.I1, 0)
    build.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [copy, context.value(pointer), size, never])
    return copy


def kept_operand(context: AugmentedContext, pointer: Value, element: ElementType, count: Value) -> Value:
    """An operand as the reverse sweep finds it: there, or in a copy if it may be overwritten."""
    if not context.overwritten(pointer):
        return context.value(pointer)
    return copied(context, context.before, pointer, element, count)


def kept_result(context: AugmentedContext, pointer: Value, element: ElementType, count: Value) -> Value:
    """Result that the call leaves in memory, for the reverse sweep: there, or in a copy if it may be overwritten."""
    if not context.overwritten(pointer):
        return context.value(pointer)
    return copied(context, context.after, pointer, element, count)


def kept_pivots(context: CopyContext, pointer: Value, size: Value) -> Value:
    """The row exchanges of a factorisation, on the tape as i64."""
    rows = context.allocate(context.before.mul(size, const_int(I64, 8)))
    read_pivots(context.after, size, context.value(pointer), rows)
    return rows


def workspace(context: CopyContext, element: ElementType, count: Value) -> Value:
    """Memory for ``count`` elements, for a derivative to work in."""
    return context.allocate(context.before.mul(count, const_int(I64, element.size)))


def shadow_or_null(context: Context, pointer: Value) -> Value:
    """The shadow of a pointer, null where it has none."""
    return context.shadow(pointer) if context.is_active(pointer) else NOWHERE
