"""BLAS as Numba calls it: `np.dot`, `@`, `np.linalg.norm` of contiguous arrays.

Numba's entry points take a letter for the type, sizes, and pointers; matrices are in column-major order with a leading
dimension, scalars come through pointers, the result goes through a pointer, the i32 returned is a status:

    numba_xxdot (kind, conjugate, n, x, y, result)                                     result = x · y
    numba_xxgemv(kind, trans, m, n, alpha, a, lda, x, beta, y)                         y = α op(A) x + β y
    numba_xxgemm(kind, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)   C = α op(A) op(B) + β C
    numba_xxnrm2(kind, n, x, incx, result)                                             result = ‖x‖₂

The adjoints are calls of the same functions. Of complex numbers they would need products with conjugates, which BLAS
has only together with a transposition. So the cotangents are conjugated in place for the duration of the call: with
X = conj(Ā) and Y = conj(C̄), Ā += conj(α) C̄ op(B)ᴴ reads X += α Y op(B)ᵀ, which is the real adjoint.

An operand that may change before the reverse sweep comes is copied in the forward sweep. A result's shadow holds the
cotangent of the new content on the way in and that of the old content on the way out. Operands may be one and the same
array (`A @ A`): each contributes to the one shadow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_float, const_int
from irad.rules.blas.elements import Element, Factor, element_of
from irad.rules.blas.operands import (
    ONE,
    PLAIN,
    TRANSPOSED,
    at_least_one,
    chosen,
    conjugated,
    extent,
    factor,
    flipped,
    is_plain,
    kept,
    scale_result,
    slot,
    take,
)
from irad.rules.kernels import add_scaled, add_scaled_complex
from irad.rules.lapack.pseudo_inverse import ends_pseudo_inverse
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule

_GILES: Final = (
    "Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation"
)
_I32, _I64, _CHAR, _PTR = types.I32, types.I64, types.I8, types.PTR
_DOT: Final = types.function_type(_I32, (_CHAR, _CHAR, _I64, _PTR, _PTR, _PTR))
_GEMV: Final = types.function_type(_I32, (_CHAR, _CHAR, _I64, _I64, _PTR, _PTR, _I64, _PTR, _PTR, _PTR))
_GEMM: Final = types.function_type(
    _I32, (_CHAR, _CHAR, _CHAR, _I64, _I64, _I64, _PTR, _PTR, _I64, _PTR, _I64, _PTR, _PTR, _I64)
)


# ------------------------------------------------------------------------------------------------ dot


def _dot_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, _, count, x, y, _ = call.arguments
    element, count = element_of(kind, "np.dot"), context.value(count)
    return (
        kept(context, x, element, lambda _: count, wanted=context.is_active(y)),
        kept(context, y, element, lambda _: count, wanted=context.is_active(x)),
    )


def _dot_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, conjugate, count, x, y, result = call.arguments
    if not context.is_active(result):
        return
    element, builder = element_of(kind, "np.dot"), context.builder
    cotangent = take(context, result, element)
    length = context.value(count)
    for operand, other in ((x, saved[1]), (y, saved[0])):
        if not context.is_active(operand):
            continue
        vector, shadow = context.value(other), context.shadow(operand)
        if element.is_complex:
            conjugates = builder.icmp("ne", context.value(conjugate), const_int(_CHAR, 0))
            scale, sign = _complex_dot_factors(builder, element, cotangent, conjugates, is_left=operand is x)
            add_scaled_complex(
                builder, element.scalar, length, scale, sign, vector, shadow, ONE, zero_wins=context.zero_wins
            )
        else:
            zero_wins = context.zero_wins
            add_scaled(builder, element.scalar, length, cotangent[0], vector, shadow, ONE, zero_wins=zero_wins)


def _complex_dot_factors(
    builder: Builder, element: Element, cotangent: Factor, conjugates: Value, *, is_left: bool
) -> tuple[tuple[Value, Value], Value]:
    """By what the other vector is multiplied, and −1 where its conjugate is taken.

    Of Σ x y both operands get c̄ conj(other). Of Σ conj(x) y, x gets conj(c̄) y and y gets c̄ x.
    """
    real, imag = cotangent
    one, minus = const_float(element.scalar, 1.0), const_float(element.scalar, -1.0)
    if is_left:
        imag = builder.select(conjugates, builder.fneg(imag), imag)
    return (real, imag), builder.select(conjugates, one, minus)


# ------------------------------------------------------------------------------------------------ norm


def _norm_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, count, x, step, result = call.arguments
    element = element_of(kind, "np.linalg.norm")
    count, step = context.value(count), context.value(step)

    def length(builder: Builder) -> Value:
        distance = builder.intrinsic("llvm.abs.i64", _I64, [step, const_int(types.I1, 0)])
        return extent(builder, ONE, count, distance)

    norm = context.after.load(element.scalar, context.value(result))
    return kept(context, x, element, length, wanted=context.is_active(x)), norm


def _norm_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, count, x, step, result = call.arguments
    if not context.is_active(result):
        return
    element, builder = element_of(kind, "np.linalg.norm"), context.builder
    type_ = element.scalar
    [cotangent] = take(context, result, Element(type_, False))  # the norm is real
    if not context.is_active(x):
        return
    norm, nothing = context.value(saved[1]), const_float(type_, 0.0)
    # At the origin the subgradient 0 is taken; a zero cotangent stays zero whatever the norm.
    silent = builder.or_(builder.fcmp("oeq", norm, nothing), builder.fcmp("oeq", cotangent, nothing))
    scale = builder.select(silent, nothing, builder.fdiv(cotangent, norm))
    length, vector, shadow, distance = (
        context.value(count),
        context.value(saved[0]),
        context.shadow(x),
        context.value(step),
    )
    if element.is_complex:
        one = const_float(type_, 1.0)
        add_scaled_complex(builder, type_, length, (scale, nothing), one, vector, shadow, distance)
    else:
        add_scaled(builder, type_, length, scale, vector, shadow, distance)


# ------------------------------------------------------------------------------------------------ matrix times vector


def _gemv_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, trans, m, n, alpha, a, lda, x, beta, _ = call.arguments
    element = element_of(kind, "np.dot")
    trans, m, n, lda = (context.value(v) for v in (trans, m, n, lda))

    def extent_a(builder: Builder) -> Value:
        return extent(builder, m, n, lda)

    def length_x(builder: Builder) -> Value:
        return builder.select(is_plain(builder, trans), n, m)

    return (
        kept(context, a, element, extent_a, wanted=context.is_active(x)),
        kept(context, x, element, length_x, wanted=context.is_active(a)),
        *factor(context, alpha, element, "alpha"),
        *factor(context, beta, element, "beta"),
    )


def _gemv_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, trans, m, n, _, a, lda, x, _, y = call.arguments
    if not context.is_active(y):
        return
    element, builder = element_of(kind, "np.dot"), context.builder
    flag, rows, columns, leading = (context.value(v) for v in (trans, m, n, lda))
    alpha, beta = _factors(context, saved[2:])
    scale, one = slot(builder, alpha, element), slot(builder, element.one, element)
    plain, y_shadow = is_plain(builder, flag), context.shadow(y)
    length = builder.select(plain, rows, columns)
    with conjugated(builder, element, length, ONE, y_shadow, length):
        if context.is_active(a):
            # A is m × n as stored: its cotangent is α ȳ xᵀ, or α x ȳᵀ where the product took Aᵀ.
            vector, a_shadow = context.value(saved[1]), context.shadow(a)
            left, right = builder.select(plain, y_shadow, vector), builder.select(plain, vector, y_shadow)
            gemm = context.declare("numba_xxgemm", _GEMM)
            args = [kind, PLAIN, PLAIN, rows, columns, ONE, scale, left, at_least_one(builder, rows), right, ONE]
            with conjugated(builder, element, rows, columns, a_shadow, leading):
                builder.call(gemm, [*args, one, a_shadow, leading])
        if context.is_active(x):
            gemv, x_shadow = context.declare("numba_xxgemv", _GEMV), context.shadow(x)
            args = [kind, flipped(builder, flag), rows, columns, scale, context.value(saved[0]), leading]
            other = builder.select(plain, columns, rows)
            with conjugated(builder, element, other, ONE, x_shadow, other):
                builder.call(gemv, [*args, y_shadow, one, x_shadow])
        scale_result(builder, element, beta, y_shadow, length, ONE, length)


# ------------------------------------------------------------------------------------------------ matrix times matrix


def _gemm_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    kind, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, _, _ = call.arguments
    element = element_of(kind, "np.dot")
    if ends_pseudo_inverse(call):
        return ()
    transa, transb, m, n = (context.value(v) for v in (transa, transb, m, n))
    k, lda, ldb = (context.value(v) for v in (k, lda, ldb))

    def length(flag: Value, rows: Value, columns: Value, leading: Value) -> Callable[[Builder], Value]:
        def emitted(builder: Builder) -> Value:
            stored = chosen(builder, is_plain(builder, flag), (rows, columns), (columns, rows))
            return extent(builder, stored[0], stored[1], leading)

        return emitted

    return (
        kept(context, a, element, length(transa, m, k, lda), wanted=context.is_active(b)),
        kept(context, b, element, length(transb, k, n, ldb), wanted=context.is_active(a)),
        *factor(context, alpha, element, "alpha"),
        *factor(context, beta, element, "beta"),
    )


def _gemm_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    kind, transa, transb, m, n, k, _, a, lda, b, ldb, _, c, ldc = call.arguments
    if not saved or not context.is_active(c):
        return
    element, builder = element_of(kind, "np.dot"), context.builder
    flag_a, flag_b, rows, columns, inner = (context.value(v) for v in (transa, transb, m, n, k))
    lead_a, lead_b, lead_c = (context.value(v) for v in (lda, ldb, ldc))
    alpha, beta = _factors(context, saved[2:])
    scale, one = slot(builder, alpha, element), slot(builder, element.one, element)
    gemm, c_shadow = context.declare("numba_xxgemm", _GEMM), context.shadow(c)
    with conjugated(builder, element, rows, columns, c_shadow, lead_c):
        if context.is_active(a):
            # Ā += α C̄ op(B)ᵀ (m × k), or α op(B) C̄ᵀ (k × m) where the product took Aᵀ.
            operand, shadow, plain_a = context.value(saved[1]), context.shadow(a), is_plain(builder, flag_a)
            plain = [PLAIN, flipped(builder, flag_b), rows, inner, columns, scale, c_shadow, lead_c, operand, lead_b]
            other = [flag_b, TRANSPOSED, inner, rows, columns, scale, operand, lead_b, c_shadow, lead_c]
            height, width = chosen(builder, plain_a, (rows, inner), (inner, rows))
            with conjugated(builder, element, height, width, shadow, lead_a):
                builder.call(gemm, [kind, *chosen(builder, plain_a, plain, other), one, shadow, lead_a])
        if context.is_active(b):
            # B̄ += α op(A)ᵀ C̄ (k × n), or α C̄ᵀ op(A) (n × k) where the product took Bᵀ.
            operand, shadow, plain_b = context.value(saved[0]), context.shadow(b), is_plain(builder, flag_b)
            plain = [flipped(builder, flag_a), PLAIN, inner, columns, rows, scale, operand, lead_a, c_shadow, lead_c]
            other = [TRANSPOSED, flag_a, columns, inner, rows, scale, c_shadow, lead_c, operand, lead_a]
            height, width = chosen(builder, plain_b, (inner, columns), (columns, inner))
            with conjugated(builder, element, height, width, shadow, lead_b):
                builder.call(gemm, [kind, *chosen(builder, plain_b, plain, other), one, shadow, lead_b])
        scale_result(builder, element, beta, c_shadow, rows, columns, lead_c)


def _factors(context: ReverseContext, saved: Sequence[Value]) -> tuple[Factor, Factor]:
    """Alpha and beta out of what the augmented part returned last."""
    values = tuple(map(context.value, saved))
    return values[: len(values) // 2], values[len(values) // 2 :]


def _effects(reads: tuple[int, ...], writes: int) -> Effects:
    return Effects(reads=frozenset(reads), writes=frozenset({writes}), other=False)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(("numba_xxdot",), _effects((3, 4), 5), _dot_reverse, _dot_augmented, _GILES),
    CallRule(("numba_xxnrm2",), _effects((2,), 4), _norm_reverse, _norm_augmented, policy="0 at the origin"),
    CallRule(("numba_xxgemv",), _effects((4, 5, 7, 8, 9), 9), _gemv_reverse, _gemv_augmented, _GILES),
    CallRule(("numba_xxgemm",), _effects((6, 7, 9, 11, 12), 12), _gemm_reverse, _gemm_augmented, _GILES),
)
