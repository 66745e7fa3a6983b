"""Alpha and beta of a product, and the loops that its adjoint needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from irad.errors import UnsupportedError
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, CallSite, GetElementPtr, Store
from irad.ir.types import FloatType
from irad.ir.values import ConstantFloat, ConstantInt, GlobalVariable, TrackedValue, Value, const_float, const_int
from irad.rules.dense.elements import ElementType, Parts, Scalar, product_or_zero
from irad.rules.dense.kernel import I1, I64, INLINED, NONE, Kernel
from irad.rules.dense.matrix import Matrix, Vector
from irad.ruleset.guards import partial_zero, shown
from irad.ruleset.interface import AugmentedContext, ReverseContext


def factor(context: AugmentedContext, pointer: Value, element: ElementType, name: str) -> Parts:
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
    """True if a call leaves a slot as it is: a lifetime marker, or a product that takes it as alpha or beta."""
    name = call.callee.name or ""
    factors = {"numba_xxgemv": (4, 8), "numba_xxgemm": (6, 11)}.get(name, ())
    positions = [index for index, argument in enumerate(call.arguments) if argument is pointer]
    return name.startswith("llvm.lifetime.") or all(index in factors for index in positions)


def pointer_to(k: Kernel, number: Scalar) -> Value:
    """A pointer to a number: a constant of the module, or a slot in the frame that is filled here."""
    if isinstance(number.parts[0], ConstantFloat) and not k.element.is_complex:
        return k.constant(number.parts[0].value)
    slot = k.slot(k.element.type)
    k.store(number, slot)
    return slot


# ------------------------------------------------------------------------------------------------ cotangents


def take(context: ReverseContext, k: Kernel, result: Value) -> Scalar:
    """The cotangent of a result in memory; it is zero afterwards."""
    shadow = context.shadow(result)
    cotangent = k.load(shadow)
    k.store(k.nothing, shadow)
    return cotangent


@contextmanager
def conjugated(*matrices: Matrix) -> Iterator[None]:
    """For the code emitted inside, matrices in memory are their conjugates; nothing happens to real ones."""
    _conjugate(matrices)
    yield
    _conjugate(matrices)


def _conjugate(matrices: tuple[Matrix, ...]) -> None:
    for a in matrices:
        if a.k.element.is_complex:
            a.k.outline("conjugate_matrix", lambda _, a: a.conjugate(), a, attributes=INLINED)


def scale_result(beta: Scalar, bar: Matrix) -> None:
    """Turns the cotangent of the new content of a result, or its conjugate, into that of the old one: β times it.

    A β of zero clears what is there, NaN included.
    """
    if len(beta.parts) == 1 and isinstance(beta.parts[0], ConstantFloat) and beta.parts[0].value == 1.0:
        return
    bar.k.outline("scale_matrix", _scale, bar, beta, attributes=INLINED)


def _scale(_: Kernel, a: Matrix, factor: Scalar) -> None:
    a.fill(lambda i, j: product_or_zero(factor, a[i, j]))


def add_scaled(
    scale: Scalar,
    x: Vector,
    y: Vector,
    *,
    sign: Scalar | None = None,
    zero_wins: bool = False,
    varies: bool = False,
) -> None:
    """`y += scale * x`; nothing at all where ``scale`` is zero.

    Args:
        scale: the factor.
        x, y: the vectors.
        sign: of the imaginary parts of complex x: −1 takes the conjugate.
        zero_wins: a zero of ``x`` adds nothing where ``scale`` is infinite.
        varies: ``x`` depends on what is differentiated.
    """
    k = x.k
    signs: tuple[Scalar, ...] = ()
    if k.element.is_complex:
        scale, signs = scale.as_complex(), (k.number(1.0) if sign is None else sign,)
    name = "add_scaled" + "_zero_wins" * zero_wins + "_varies" * varies
    k.outline(name, partial(_add_scaled, zero_wins, varies), x, y, scale, *signs, attributes=INLINED)


def _add_scaled(zero_wins: bool, varies: bool, k: Kernel, x: Vector, y: Vector, scale: Scalar, *signs: Scalar) -> None:
    multiply = partial(_product_or_zero, k) if zero_wins else k.build.fmul
    if varies:
        multiply = partial(_shown, k.build, multiply)
    with k.loop(k.build.select(scale.counts(), x.size, NONE)) as i:
        item = x[i]
        for sign in signs:
            item = Scalar(k.build, (item.parts[0], (sign * item.imag).parts[0]))
        y[i] = y[i] + scale.product(item, multiply)


def _shown(build: Builder, multiply: Callable[[Value, Value], Value], scale: Value, x: Value) -> Value:
    return shown(build, scale, multiply(scale, x))


def _product_or_zero(k: Kernel, scale: Value, x: Value) -> Value:
    """The product, or zero where ``x`` is and ``scale`` is a number."""
    return partial_zero(k.build, scale, x, k.build.fmul(scale, x))


def distance(build: Builder, step: Value) -> Value:
    """Between the elements of a vector: a negative step walks the same memory backwards."""
    return build.intrinsic("llvm.abs.i64", I64, [step, const_int(I1, 0)])
