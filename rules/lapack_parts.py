"""What the rules of LAPACK's functions share: types, copies of operands, working memory."""

from __future__ import annotations

from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Phi, Select
from irad.ir.types import FloatType
from irad.ir.values import ConstantInt, Value, const_int, zero
from irad.rules.matrices import I64, NONE, ONE, PTR
from irad.ruleset.interface import ForwardContext, ReverseContext

_KINDS: Final = {ord("s"): types.FLOAT, ord("d"): types.DOUBLE}
_COMPLEX: Final = {ord("c"): "complex64", ord("z"): "complex128"}


def element(kind: Value, operation: str) -> FloatType:
    """The type that a LAPACK letter stands for.

    Raises:
        UnsupportedError: complex numbers, or a letter that is not known at compile time.
    """
    if isinstance(kind, ConstantInt) and kind.value in _KINDS:
        return _KINDS[kind.value]
    if isinstance(kind, ConstantInt) and kind.value in _COMPLEX:
        raise UnsupportedError(
            f"{operation} of {_COMPLEX[kind.value]} matrices has no derivative rule",
            "write it for real matrices: A + iB acts on real vectors as [[A, -B], [B, A]]",
        )
    raise UnsupportedError(
        f"the element type of this {operation} is not known at compile time",
        "call it in separate functions for each element type",
    )


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
        f"{operation} chooses at run time between ways that need different derivatives",
        "choose with an if between calls with constant arguments",
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


def copied(context: ForwardContext, build: Builder, pointer: Value, type_: FloatType, count: Value) -> Value:
    """A copy of so many elements on the tape, made where ``build`` stands: `context.before` or `context.after`."""
    copy = workspace(context, type_, count)
    size = build.mul(count, const_int(I64, types.size_of(type_)))
    never = const_int(types.I1, 0)
    build.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [copy, context.value(pointer), size, never])
    return copy


def kept_result(context: ForwardContext, pointer: Value, type_: FloatType, count: Value) -> Value:
    """What the call leaves in memory, as the reverse sweep finds it: there, or in a copy if it may be overwritten."""
    if not context.overwritten(pointer):
        return context.value(pointer)
    return copied(context, context.after, pointer, type_, count)


def workspace(context: ForwardContext, type_: FloatType, count: Value) -> Value:
    """Memory for so many elements, for the adjoint to work in."""
    return context.allocate(context.before.mul(count, const_int(I64, types.size_of(type_))))


def extent(build: Builder, rows: Value, columns: Value, leading: Value) -> Value:
    """Elements from the first to behind the last of a column-major matrix."""
    count = build.add(build.mul(build.sub(columns, ONE), leading), rows)
    return build.intrinsic("llvm.smax.i64", I64, [count, NONE])


def shadow_or_null(context: ReverseContext, pointer: Value) -> Value:
    """The shadow of a pointer, null where it has none."""
    return context.shadow(pointer) if context.is_active(pointer) else zero(PTR)
