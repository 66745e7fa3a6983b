"""What the rules of BLAS share: operands kept for the reverse sweep, factors, cotangents of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, CallSite, GetElementPtr, Store
from irad.ir.types import FloatType
from irad.ir.values import ConstantFloat, ConstantInt, GlobalVariable, TrackedValue, Value, const_float, const_int, zero
from irad.rules.blas.elements import Element, Factor
from irad.rules.kernels import conjugate_matrix, scale_complex_matrix, scale_matrix
from irad.ruleset.interface import AugmentedContext, ReverseContext

ONE: Final = const_int(types.I64, 1)
PLAIN: Final = const_int(types.I8, ord("n"))
TRANSPOSED: Final = const_int(types.I8, ord("t"))


def kept(
    context: AugmentedContext, pointer: Value, element: Element, count: Callable[[Builder], Value], *, wanted: bool
) -> Value:
    """An operand as the reverse sweep finds it: itself, or a copy if it may be overwritten; null if not wanted."""
    if not wanted:
        return zero(types.PTR)
    operand = context.value(pointer)
    if not context.overwritten(pointer):
        return operand
    size = context.before.mul(count(context.before), const_int(types.I64, element.size))
    copy, never = context.allocate(size), const_int(types.I1, 0)
    context.before.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [copy, operand, size, never])
    return copy


# ------------------------------------------------------------------------------------------------ factors


def factor(context: AugmentedContext, pointer: Value, element: Element, name: str) -> Factor:
    """The value of alpha or beta, read before the call.

    Raises:
        UnsupportedError: it depends on active values. Numba passes constants.
    """
    known = _constants_in(pointer, element.scalar)
    is_constant = isinstance(pointer, GlobalVariable) and pointer.constant
    if known is None and context.is_active(pointer) and not is_constant:
        raise UnsupportedError(
            f"the BLAS factor {name} depends on differentiated values",
            "multiply by it outside the product",
            "irad differentiates the product with respect to its operands only, not that factor",
        )
    if not element.is_complex and known is not None and len({constant.text for constant in known}) == 1:
        return (known[0],)
    return element.load(context.before, context.value(pointer))


def _constants_in(pointer: Value, type_: FloatType) -> list[ConstantFloat] | None:
    """The floats that a slot can hold, if they are all constants; None if they are not."""
    if isinstance(pointer, GlobalVariable):
        constant = pointer.initializer if pointer.constant else None
        return [constant] if isinstance(constant, ConstantFloat) else None
    return _constants_stored(pointer, type_) if isinstance(pointer, Alloca) else None


def _constants_stored(pointer: TrackedValue, type_: FloatType) -> list[ConstantFloat] | None:
    found: list[ConstantFloat] = []
    for user in pointer.users:
        match user:
            case Store(operands=[ConstantFloat() as stored, target]) if target is pointer:
                found.append(stored)
            case GetElementPtr():
                inside = _constants_stored(user, type_)
                if inside is None:
                    return None
                found += inside
            case CallSite() if _clears(user):
                found.append(const_float(type_, 0.0))
            case CallSite() if _only_reads(user, pointer):
                pass
            case _:
                return None
    return found or None


def _clears(call: CallSite) -> bool:
    name, fill = call.callee.name or "", call.arguments[1:2]
    return name.startswith("llvm.memset.") and [f.value for f in fill if isinstance(f, ConstantInt)] == [0]


def _only_reads(call: CallSite, pointer: Value) -> bool:
    """Whether a call leaves a slot as it is: a lifetime marker, or a product that takes it as alpha or beta."""
    name = call.callee.name or ""
    factors = {"numba_xxgemv": (4, 8), "numba_xxgemm": (6, 11)}.get(name, ())
    positions = [index for index, argument in enumerate(call.arguments) if argument is pointer]
    return name.startswith("llvm.lifetime.") or all(index in factors for index in positions)


def slot(builder: Builder, value: Factor, element: Element) -> Value:
    """A pointer to a number: a constant of the module, or a slot in the frame that is filled here."""
    if len(value) == 1 and isinstance(value[0], ConstantFloat):
        return _constant_slot(builder, value[0], element.scalar)
    place = Builder.at_start(builder.function.entry).alloca(types.array_type(len(value), element.scalar))
    element.store(builder, value, place)
    return place


def _constant_slot(builder: Builder, value: ConstantFloat, type_: FloatType) -> GlobalVariable:
    name = f"irad_constant_{type_}_{value.text}"
    found = builder.module.globals.get(name)
    if found is None:
        found = GlobalVariable(
            types.PTR, name, value_type=type_, initializer=value, constant=True, prefix=("private", "unnamed_addr")
        )
        builder.module.globals[name] = found
    return found


# ------------------------------------------------------------------------------------------------ cotangents


def take(context: ReverseContext, result: Value, element: Element) -> Factor:
    """The cotangent of a result in memory; it is zero afterwards."""
    shadow, nothing = context.shadow(result), zero(element.scalar)
    cotangent = element.load(context.builder, shadow)
    element.store(context.builder, tuple(nothing for _ in cotangent), shadow)
    return cotangent


@contextmanager
def conjugated(
    builder: Builder, element: Element, rows: Value, columns: Value, matrix: Value, leading: Value
) -> Iterator[None]:
    """For the code emitted inside, a matrix in memory is its conjugate; nothing happens to a real one."""
    if element.is_complex:
        conjugate_matrix(builder, element.scalar, rows, columns, matrix, leading)
    yield
    if element.is_complex:
        conjugate_matrix(builder, element.scalar, rows, columns, matrix, leading)


def scale_result(
    builder: Builder, element: Element, beta: Factor, shadow: Value, rows: Value, columns: Value, leading: Value
) -> None:
    """Turns the cotangent of the new content of a result, or its conjugate, into that of the old one: β times it."""
    if len(beta) == 2:
        scale_complex_matrix(builder, element.scalar, rows, columns, (beta[0], beta[1]), shadow, leading)
        return
    if not (isinstance(beta[0], ConstantFloat) and beta[0].value == 1.0):
        scale_matrix(builder, element.scalar, rows, columns, beta[0], shadow, leading)


# ------------------------------------------------------------------------------------------------ shapes


def is_plain(builder: Builder, flag: Value) -> Value:
    """Whether a transposition letter says "as it is" (`n` or `N`)."""
    lower = builder.or_(flag, const_int(types.I8, 0x20))
    return builder.icmp("eq", lower, PLAIN)


def flipped(builder: Builder, flag: Value) -> Value:
    """The other transposition letter."""
    return builder.select(is_plain(builder, flag), TRANSPOSED, PLAIN)


def chosen(builder: Builder, condition: Value, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
    """One of two lists of arguments."""
    return [builder.select(condition, x, y) for x, y in zip(a, b, strict=True)]


def at_least_one(builder: Builder, size: Value) -> Value:
    """A leading dimension that BLAS accepts for an empty matrix too."""
    return builder.intrinsic("llvm.smax.i64", types.I64, [size, ONE])


def extent(builder: Builder, rows: Value, columns: Value, leading: Value) -> Value:
    """The extent of a column-major matrix in elements, from the first to the end of the last."""
    last = builder.add(builder.mul(builder.sub(columns, ONE), leading), rows)
    return builder.intrinsic("llvm.smax.i64", types.I64, [last, const_int(types.I64, 0)])
