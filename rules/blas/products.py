"""BLAS as Numba calls it: `np.dot`, `@`, `np.linalg.norm` of contiguous arrays.

Numba's entry points take a letter for the type, sizes, and pointers; matrices are in column-major order with a leading
dimension, scalars come through pointers, the result goes through a pointer, the i32 returned is a status:

    numba_xxdot (kind, conjugate, n, x, y, result)                                     result = x · y
    numba_xxgemv(kind, trans, m, n, alpha, a, lda, x, beta, y)                         y = α op(A) x + β y
    numba_xxgemm(kind, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)   C = α op(A) op(B) + β C
    numba_xxnrm2(kind, n, x, incx, result)                                             result = ‖x‖₂

The adjoints are calls of the same functions. For complex numbers they would need products with conjugates, which BLAS
has only together with a transposition. So the cotangents are conjugated in place for the duration of the call: with X =
conj(Ā) and Y = conj(C̄), Ā += conj(α) C̄ op(B)ᴴ reads X += α Y op(B)ᵀ, which is the real adjoint.

An operand that may change before the reverse sweep comes is copied in the forward sweep. A result's shadow holds the
cotangent of the new content on the way in and that of the old content on the way out. Operands may be one and the same
array (`A @ A`): each contributes to the one shadow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_int
from irad.rules.blas.bilinear import GEMM, GEMM_SHAPES, GEMV, gemv_shapes
from irad.rules.blas.level1 import inner_product_tangent
from irad.rules.blas.operands import add_scaled, conjugated, distance, factor, pointer_to, scale_result, take
from irad.rules.dense.adjoint import Shapes, VectorShape
from irad.rules.dense.elements import ElementType, Scalar, choose, element_of, quotient_or_zero
from irad.rules.dense.kernel import I8, NONE, ONE, TRUE, Kernel
from irad.rules.dense.library import NumbaLibrary
from irad.rules.dense.matrix import NOWHERE, Matrix, Vector, extent
from irad.rules.dense.saved import kept_operand
from irad.rules.dense.tangent import Differential, Interface, Tangent, emit_tangent
from irad.rules.lapack.pseudo_inverse import (
    PRODUCT_EXTRA,
    PRODUCT_PARAMETERS,
    PRODUCT_SHAPES,
    PRODUCT_TANGENT,
    ends_pseudo_inverse,
)
from irad.rules.lapack.systems import GILES
from irad.ruleset.interface import (
    AugmentedContext,
    CallRule,
    Effects,
    ReverseContext,
    Rule,
    TangentContext,
    TangentPart,
)

# Tangents of the products that Numba calls: `products` has the entry points.
#
# Matrix products are calls of the same entry point on operands and tangents: see `bilinear`.


def _dot(r: Tangent) -> None:
    conjugates = r.k.build.icmp("ne", r.sizes["conjugate"], const_int(I8, 0))

    def turned(x: Scalar) -> Scalar:
        return choose(conjugates, x.conj(), x) if r.k.element.is_complex else x

    r.vector_tangent("result")[NONE] = inner_product_tangent(r, turned)


def _norm(r: Tangent) -> None:
    """The real part of Σ conj(x) x' / ‖x‖, 0 at the origin."""
    total, x, norm = r.k.real.variable(), r.vector("x"), r.vector("result")[NONE]
    is_smooth = norm.is_nonzero() if r.k.build.module.strong_zeros else TRUE
    with r.k.when(is_smooth), r.active_vector("x") as tangent, r.k.loop(x.size) as i:
        total.accumulate(r.scaled(tangent[i], (x[i] / norm).conj()).real)
    r.vector_tangent("result")[NONE] = total.value


def _part(
    name: str,
    parameters: str,
    shapes: Shapes,
    output: str,
    tangent: Differential,
    extra: Mapping[str, Callable[[CallSite], Value]] | None = None,
) -> TangentPart:
    interface = Interface(name, parameters, shapes, output, extra or {})

    def emit(context: TangentContext, call: CallSite) -> None:
        emit_tangent(interface, tangent, NumbaLibrary(element_of(call.arguments[0], "np.dot")), context, call)

    return emit


def gemm_tangent(context: TangentContext, call: CallSite) -> None:
    """The tangent of a matrix product, or of the pseudo-inverse that it ends."""
    (_pseudo_inverse_tangent if ends_pseudo_inverse(call) else _gemm_tangent)(context, call)


_X: Final = VectorShape("n")
_NUMBER: Final = VectorShape(lambda sizes: ONE)
_gemm_tangent: Final = _part(
    "numba_xxgemm", "kind transa transb m n k alpha a lda b ldb beta c ldc", GEMM_SHAPES, "c", GEMM
)

_pseudo_inverse_tangent: Final = _part("pinv", PRODUCT_PARAMETERS, PRODUCT_SHAPES, "a", PRODUCT_TANGENT, PRODUCT_EXTRA)
gemv_tangent: Final = _part("numba_xxgemv", "kind trans m n alpha a lda x beta y", gemv_shapes("", ""), "y", GEMV)
dot_tangent: Final = _part(
    "numba_xxdot",
    "kind conjugate n x y result",
    {"x": _X, "y": _X, "result": _NUMBER},
    "result",
    Differential(before=_dot),
)
norm_tangent: Final = _part(
    "numba_xxnrm2",
    "kind n x incx result",
    {"x": VectorShape("n", "incx"), "result": VectorShape(lambda sizes: ONE, is_real=True)},
    "result",
    Differential(after=_norm),
)


# Taylor series of the products that Numba calls.
#
# A product has the coefficient of order k
#
#     A₀·Bₖ + Aₖ·B₀ + Σ Aⱼ·Bₖ₋ⱼ, j from 1 to k - 1
#
# The first two are what its tangent is, with coefficients for tangents; each of the others is a call of the same entry
# point, on the operands' coefficients.

Accumulate: TypeAlias = Callable[[Kernel, str, dict[int, Value], Value], None]
"""Emits a call with these arguments, by position, and adds what it computes to what is at an address."""


def _series(left: int, right: int, output: int, tangent: TangentPart, accumulate: Accumulate) -> TangentPart:
    """The part for a product; the arguments of its entry point are given by position."""

    def emit(context: TangentContext, call: CallSite) -> None:
        tangent(context, call)
        a, b, out = (call.arguments[index] for index in (left, right, output))
        if not (context.is_active(a) and context.is_active(b)):
            return
        k = Kernel(context.after, element_of(call.arguments[0], "np.dot"))
        for order in range(1, context.order):
            given = {number: context.value(each) for number, each in enumerate(call.arguments)}
            given[left], given[right] = (
                context.shadow_of_order(a, order),
                context.shadow_of_order(b, context.order - order),
            )
            accumulate(k, str(call.callee.name), given, context.shadow(out))

    return emit


def _add_scalar(k: Kernel, symbol: str, given: dict[int, Value], place: Value) -> None:
    """The product of two vectors overwrites its output."""
    given[5] = k.slot(k.element.type)
    _call(k, symbol, given)
    k.store(k.load(place) + k.load(given[5]), place)


def _add_array(keep: int, output: int) -> Accumulate:
    """Others multiply it by what is at the argument ``keep``, and add."""

    def add(k: Kernel, symbol: str, given: dict[int, Value], place: Value) -> None:
        given[keep], given[output] = k.constant(1.0), place
        _call(k, symbol, given)

    return add


def _call(k: Kernel, symbol: str, given: dict[int, Value]) -> None:
    k.entry(symbol, *(given[number] for number in range(1, len(given))))


dot_series: Final = _series(3, 4, 5, dot_tangent, _add_scalar)
gemv_series: Final = _series(5, 7, 9, gemv_tangent, _add_array(8, 9))
gemm_series: Final = _series(7, 9, 12, gemm_tangent, _add_array(11, 12))


_PLAIN: Final = const_int(I8, ord("n"))
_TRANSPOSED: Final = const_int(I8, ord("t"))


def _kernel(context: ReverseContext, call: CallSite, operation: str = "np.dot") -> Kernel:
    return Kernel(context.builder, element_of(call.arguments[0], operation))


def _kept_pair(context: AugmentedContext, element: ElementType, *operands: tuple[Value, Value]) -> tuple[Value, ...]:
    """Two operands and their extents: each is kept if the other is active."""
    (a, size_a), (b, size_b) = operands
    return (
        kept_operand(context, a, element, size_a) if context.is_active(b) else NOWHERE,
        kept_operand(context, b, element, size_b) if context.is_active(a) else NOWHERE,
    )


# ------------------------------------------------------------------------------------------------ dot


def _dot_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, _, count, x, y, _ = call.arguments
    count = context.value(count)
    return _kept_pair(context, element_of(kind, "np.dot"), (x, count), (y, count))


def _dot_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """Of Σ x y both operands get c̄ conj(other). Of Σ conj(x) y, x gets conj(c̄) y and y gets c̄ x."""
    _, conjugate, count, x, y, result = call.arguments
    if not context.is_active(result):
        return
    k = _kernel(context, call)
    cotangent, length = take(context, k, result), context.value(count)
    for operand, other, beside in ((x, saved[1], y), (y, saved[0], x)):
        if not context.is_active(operand):
            continue
        scale, sign = cotangent, None
        if k.element.is_complex:
            conjugates = k.build.icmp("ne", context.value(conjugate), const_int(I8, 0))
            scale = choose(conjugates, cotangent.conj(), cotangent) if operand is x else cotangent
            sign = choose(conjugates, k.number(1.0), k.number(-1.0))
        vector, shadow = (Vector(k, data, length, ONE) for data in (context.value(other), context.shadow(operand)))
        add_scaled(
            scale,
            vector,
            shadow,
            sign=sign,
            zero_wins=context.zero_wins,
            varies=k.build.module.shows_zeros and context.is_active(beside),
        )


# ------------------------------------------------------------------------------------------------ norm


def _norm_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, count, x, step, result = call.arguments
    element, build = element_of(kind, "np.linalg.norm"), context.before
    norm = context.after.load(element.scalar, context.value(result))
    if not context.is_active(x):
        return NOWHERE, norm
    size = extent(build, ONE, context.value(count), distance(build, context.value(step)))
    return kept_operand(context, x, element, size), norm


def _norm_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    _, count, x, step, result = call.arguments
    if not context.is_active(result):
        return
    k = _kernel(context, call, "np.linalg.norm")
    cotangent = take(context, k.real, result)
    if not context.is_active(x):
        return
    norm = Scalar(k.build, (context.value(saved[1]),))
    # At the origin the subgradient 0 is taken; a zero cotangent stays zero whatever the norm.
    scale = quotient_or_zero(cotangent, norm) if k.build.module.strong_zeros else cotangent / norm
    if k.build.module.strong_zeros:
        at_origin = 0.0 if context.zero_wins else _zero_at_origin(cotangent)
        scale = choose(norm.is_zero(), at_origin, scale)
    length, apart = context.value(count), distance(k.build, context.value(step))
    add_scaled(scale, *(Vector(k, data, length, apart) for data in (context.value(saved[0]), context.shadow(x))))


def _zero_at_origin(cotangent: Scalar) -> Scalar | float:
    """The factor of the subgradient: 0, or NaN where that is to be seen (`irad.ruleset.guards.shown`)."""
    if not cotangent.build.module.shows_zeros:
        return 0.0
    is_shown = cotangent.build.and_(cotangent.is_nonzero(), cotangent.lifted(1e-30) > cotangent.magnitude())
    return choose(is_shown, cotangent.lifted(math.nan), 0.0)


# ------------------------------------------------------------------------------------------------ matrix times vector


def _gemv_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, trans, m, n, alpha, a, lda, x, beta, _ = call.arguments
    element, build = element_of(kind, "np.dot"), context.before
    flag, rows, columns, lead = (context.value(v) for v in (trans, m, n, lda))
    length = build.select(_is_plain(build, flag), columns, rows)
    return (
        *_kept_pair(context, element, (a, extent(build, rows, columns, lead)), (x, length)),
        *factor(context, alpha, element, "alpha"),
        *factor(context, beta, element, "beta"),
    )


def _gemv_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    _, trans, m, n, _, a, lda, x, _, y = call.arguments
    if not context.is_active(y):
        return
    k = _kernel(context, call)
    flag, rows, columns, lead = (context.value(v) for v in (trans, m, n, lda))
    alpha, beta = _factors(context, k, saved[2:])
    scale, one, plain = pointer_to(k, alpha), pointer_to(k, Scalar(k.build, k.element.one)), _is_plain(k.build, flag)
    length, other = k.build.select(plain, rows, columns), k.build.select(plain, columns, rows)
    y_bar = Matrix.dense(k, context.shadow(y), length, ONE)
    with conjugated(y_bar):
        if context.is_active(a):
            # A is m × n as stored: its cotangent is α ȳ xᵀ, or α x ȳᵀ where the product took Aᵀ.
            vector, a_bar = context.value(saved[1]), Matrix(k, context.shadow(a), rows, columns, lead)
            left, right = k.build.select(plain, y_bar.data, vector), k.build.select(plain, vector, y_bar.data)
            with conjugated(a_bar):
                sizes, factors = (rows, columns, ONE), (left, k.larger(rows, ONE), right, ONE)
                k.entry("numba_xxgemm", "n", "n", *sizes, scale, *factors, one, a_bar.data, lead)
        if context.is_active(x):
            x_bar = Matrix.dense(k, context.shadow(x), other, ONE)
            with conjugated(x_bar):
                product = (scale, context.value(saved[0]), lead, y_bar.data)
                k.entry("numba_xxgemv", _flipped(k.build, flag), rows, columns, *product, one, x_bar.data)
        scale_result(beta, y_bar)


# ------------------------------------------------------------------------------------------------ matrix times matrix


def _gemm_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, _, _ = call.arguments
    element, build = element_of(kind, "np.dot"), context.before
    if ends_pseudo_inverse(call):
        return ()

    def size(flag: Value, rows: Value, columns: Value, leading: Value) -> Value:
        letter, *extents, lead = (context.value(v) for v in (flag, rows, columns, leading))
        return extent(build, *_stored(build, letter, extents[0], extents[1]), lead)

    return (
        *_kept_pair(context, element, (a, size(transa, m, k, lda)), (b, size(transb, k, n, ldb))),
        *factor(context, alpha, element, "alpha"),
        *factor(context, beta, element, "beta"),
    )


def _gemm_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    _, transa, transb, m, n, k_, _, a, lda, b, ldb, _, c, ldc = call.arguments
    if not saved or not context.is_active(c):
        return
    k = _kernel(context, call)
    flag_a, flag_b, rows, columns, inner = (context.value(v) for v in (transa, transb, m, n, k_))
    lead_a, lead_b, lead_c = (context.value(v) for v in (lda, ldb, ldc))
    alpha, beta = _factors(context, k, saved[2:])
    scale, one = pointer_to(k, alpha), pointer_to(k, Scalar(k.build, k.element.one))
    c_bar = Matrix(k, context.shadow(c), rows, columns, lead_c)
    result = (c_bar.data, lead_c)

    def accumulate(operand: Value, leading: Value, flag: Value, plain: Sequence[Value], other: Sequence[Value]) -> None:
        """Adds one product where the call took the operand as it is, another where it took its transpose."""
        is_plain = _is_plain(k.build, flag)
        chosen = [k.build.select(is_plain, x, y) for x, y in zip(plain, other, strict=True)]
        shadow = Matrix(k, context.shadow(operand), chosen[2], chosen[3], leading)
        with conjugated(shadow):
            k.entry("numba_xxgemm", *chosen[:5], scale, *chosen[5:], one, shadow.data, leading)

    with conjugated(c_bar):
        if context.is_active(a):
            # Ā += α C̄ op(B)ᵀ (m × k), or α op(B) C̄ᵀ (k × m) where the product took Aᵀ.
            factor_b = (context.value(saved[1]), lead_b)
            accumulate(
                a,
                lead_a,
                flag_a,
                (_PLAIN, _flipped(k.build, flag_b), rows, inner, columns, *result, *factor_b),
                (flag_b, _TRANSPOSED, inner, rows, columns, *factor_b, *result),
            )
        if context.is_active(b):
            # B̄ += α op(A)ᵀ C̄ (k × n), or α C̄ᵀ op(A) (n × k) where the product took Bᵀ.
            factor_a = (context.value(saved[0]), lead_a)
            accumulate(
                b,
                lead_b,
                flag_b,
                (_flipped(k.build, flag_a), _PLAIN, inner, columns, rows, *factor_a, *result),
                (_TRANSPOSED, flag_a, columns, inner, rows, *result, *factor_a),
            )
        scale_result(beta, c_bar)


# ------------------------------------------------------------------------------------------------ letters and factors


def _is_plain(build: Builder, flag: Value) -> Value:
    """Test that a transposition letter says "as it is" (`n` or `N`)."""
    return build.icmp("eq", build.or_(flag, const_int(I8, 0x20)), _PLAIN)


def _flipped(build: Builder, flag: Value) -> Value:
    """The other transposition letter."""
    return build.select(_is_plain(build, flag), _TRANSPOSED, _PLAIN)


def _stored(build: Builder, flag: Value, rows: Value, columns: Value) -> tuple[Value, Value]:
    """Rows and columns in memory of a matrix whose op has ``rows`` and ``columns``."""
    plain = _is_plain(build, flag)
    return build.select(plain, rows, columns), build.select(plain, columns, rows)


def _factors(context: ReverseContext, k: Kernel, saved: Sequence[Value]) -> tuple[Scalar, Scalar]:
    """Alpha and beta out of what the augmented part returned last."""
    values = tuple(map(context.value, saved))
    half = len(values) // 2
    return Scalar(k.build, values[:half]), Scalar(k.build, values[half:])


def _effects(reads: tuple[int, ...], writes: int) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset({writes}), other=False)


_AT_ORIGIN: Final = "0 at the origin"

RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("numba_xxdot",),
        _effects((3, 4), 5),
        _dot_reverse,
        _dot_augmented,
        GILES,
        tangent=dot_tangent,
        series=dot_series,
        factors=((3,), (4,)),
    ),
    CallRule(
        ("numba_xxnrm2",), _effects((2,), 4), _norm_reverse, _norm_augmented, policy=_AT_ORIGIN, tangent=norm_tangent
    ),
    CallRule(
        ("numba_xxgemv",),
        _effects((4, 5, 7, 8, 9), 9),
        _gemv_reverse,
        _gemv_augmented,
        GILES,
        tangent=gemv_tangent,
        series=gemv_series,
        factors=((4,), (5,), (7,), (8,)),
    ),
    CallRule(
        ("numba_xxgemm",),
        _effects((6, 7, 9, 11, 12), 12),
        _gemm_reverse,
        _gemm_augmented,
        GILES,
        tangent=gemm_tangent,
        series=gemm_series,
        factors=((6,), (7,), (9,), (11,)),
    ),
)
