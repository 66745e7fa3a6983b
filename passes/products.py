"""Products of a derivative, a cotangent or a tangent, with a partial derivative.

Strong zero: zero times any partial is zero, whatever the partial is, infinite or nan. LLVM turns branches into selects
that compute both sides, so a guard in the user's source protects nothing; the guard here does
(`irad.ruleset.guards`).

With ``zero_wins`` a zero partial is zero as well, whatever the derivative but NaN.

In forward mode a select chooses between tangents as it does between values, so no guard is needed for it. Left are
functions that are finite where their slope is infinite, or have slope zero after one that is: `product_or_zero`.
"""

from __future__ import annotations

import math

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.types import FloatType, Type
from irad.ir.values import ConstantFloat, Value, const_float
from irad.ruleset.guards import partial_zero, strong_zero, zero_of


def access_align(type_: Type) -> int:
    """Alignment assumed of accesses of shadows: that of a scalar at most, records may be packed: 1."""
    return 1 if not isinstance(type_, FloatType) else min(8, types.alignment_of(type_))


def scaled(build: Builder, derivative: Value, factor: Value, *, zero_wins: bool) -> Value:
    """Derivative times partial, with strong zero."""
    known = factor.value if isinstance(factor, ConstantFloat) else math.inf
    if math.isfinite(known) and not (known == 0.0 and zero_wins):
        return build.fmul(derivative, factor)
    return scaled_again(build, derivative, factor, zero_wins=zero_wins)


def scaled_again(build: Builder, derivative: Value, factor: Value, *, zero_wins: bool) -> Value:
    """Like `scaled`, for a derivative that is itself a product."""
    product = build.fmul(derivative, factor)
    if zero_wins:
        product = partial_zero(build, derivative, factor, product)
    return strong_zero(build, derivative, product)


def product_or_zero(build: Builder, derivative: Value, factor: Value) -> Value:
    """Derivative times partial, zero where either is, unless arithmetic is to decide."""
    if not build.module.strong_zeros:
        return build.fmul(derivative, factor)
    nothing = zero_of(derivative.type)
    if isinstance(factor, ConstantFloat) and not build.module.shows_zeros:
        return build.fmul(derivative, factor) if math.isfinite(factor.value) and factor.value else nothing
    if build.module.shows_zeros:  # a slope of zero that stops an infinite tangent is to be seen
        return strong_zero(build, derivative, build.fmul(derivative, factor))
    if build.module.opaque_guards:
        return strong_zero(build, derivative, strong_zero(build, factor, build.fmul(derivative, factor)))
    is_zero = build.or_(build.fcmp("oeq", derivative, nothing), build.fcmp("oeq", factor, nothing))
    return build.select(is_zero, nothing, build.fmul(derivative, factor))


def divided(
    build: Builder, derivative: Value, divisor: Value, *, zero_wins: bool, by_reciprocal: bool = False
) -> Value:
    """Derivative over divisor, with strong zero. Where zero wins: one over infinity is zero.

    With ``by_reciprocal`` a double is multiplied by the reciprocal, and may differ in the last place. All divisions by
    the same number share it, and it need not wait for the derivative. In single precision it would too often overflow.
    """
    if by_reciprocal and divisor.type is types.DOUBLE:
        quotient = build.fmul(derivative, build.fdiv(const_float(divisor.type, 1.0), divisor))
    else:
        quotient = build.fdiv(derivative, divisor)
    if zero_wins:
        is_zero = build.and_(_is_infinite(build, divisor), build.fcmp("oeq", derivative, derivative))
        quotient = build.select(is_zero, zero_of(derivative.type), quotient)
    return strong_zero(build, derivative, quotient)


def _is_infinite(build: Builder, number: Value) -> Value:
    """Test that a number is an infinity and not a NaN."""
    if isinstance(number.type, FloatType):
        suffix = "f64" if number.type is types.DOUBLE else "f32"
        size = build.intrinsic(f"llvm.fabs.{suffix}", number.type, [number])
        return build.fcmp("oeq", size, const_float(number.type, math.inf))
    difference = build.fsub(number, number)
    return build.and_(build.fcmp("une", difference, difference), build.fcmp("oeq", number, number))
