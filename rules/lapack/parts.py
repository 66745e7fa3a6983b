"""What the rules of LAPACK's functions share: types, copies of operands, working memory."""

from __future__ import annotations

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Phi, Select
from irad.ir.values import ConstantInt, Value, const_int, zero
from irad.rules.blas.elements import Element
from irad.rules.lapack.matrices import I64, NONE, ONE, PTR
from irad.ruleset.interface import AugmentedContext, ReverseContext


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
    """What a letter may be; empty if that is not seen."""
    match value:
        case ConstantInt():
            return frozenset({chr(value.value & 0xFF).upper()})
        case Select(operands=[_, a, b]) | Phi(operands=[a, b]) if depth:
            options = _letters(a, depth - 1), _letters(b, depth - 1)
            return options[0] | options[1] if all(options) else frozenset()
        case _:
            return frozenset()


def same(a: Value, b: Value) -> bool:
    """Whether two operands are one value."""
    if isinstance(a, ConstantInt) and isinstance(b, ConstantInt):
        return a.type is b.type and a.value == b.value
    return a is b


def copied(context: AugmentedContext, build: Builder, pointer: Value, element: Element, count: Value) -> Value:
    """A copy of so many elements on the tape, made where ``build`` stands: `context.before` or `context.after`."""
    copy = workspace(context, element, count)
    size = build.mul(count, const_int(I64, element.size))
    never = const_int(types.I1, 0)
    build.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [copy, context.value(pointer), size, never])
    return copy


def kept_result(context: AugmentedContext, pointer: Value, element: Element, count: Value) -> Value:
    """What the call leaves in memory, as the reverse sweep finds it: there, or in a copy if it may be overwritten."""
    if not context.overwritten(pointer):
        return context.value(pointer)
    return copied(context, context.after, pointer, element, count)


def workspace(context: AugmentedContext, element: Element, count: Value) -> Value:
    """Memory for so many elements, for the adjoint to work in."""
    return context.allocate(context.before.mul(count, const_int(I64, element.size)))


def extent(build: Builder, rows: Value, columns: Value, leading: Value) -> Value:
    """The extent of a column-major matrix in elements, from the first to the end of the last."""
    count = build.add(build.mul(build.sub(columns, ONE), leading), rows)
    return build.intrinsic("llvm.smax.i64", I64, [count, NONE])


def shadow_or_null(context: ReverseContext, pointer: Value) -> Value:
    """The shadow of a pointer, null where it has none."""
    return context.shadow(pointer) if context.is_active(pointer) else zero(PTR)
