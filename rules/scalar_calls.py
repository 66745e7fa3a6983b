"""Scalar mathematics whose arguments or results go through memory.

numba_frexp(x, exponent)      mantissa of x; an i32 is written
modf(x, whole)                fraction of x; the whole part is written
numba_cpow(a, b, c)           c = a**b of complex numbers
__muldc3(a, b, c, d)          (a + bi) (c + di), __divdc3 the quotient, as compilers call them; __mulsc3, __divsc3
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, ExtractElement, InsertElement
from irad.ir.types import FloatType, VectorType
from irad.ir.values import Value, const_float, const_int, zero
from irad.rules.dense.elements import ElementType, Scalar, choose, product_or_zero
from irad.rules.dense.kernel import Cell, Kernel
from irad.ruleset.expr import call_function
from irad.ruleset.interface import PURE, CallRule, CopyContext, Effects, ReverseContext, Rule, TangentContext

# ------------------------------------------------------------------------------------------------ parts of a number


def _frexp_augmented(context: CopyContext, call: CallSite) -> Sequence[Value]:
    """The exponent of the power of two that was taken out of the number, negated."""
    exponent = context.after.load(types.I32, context.value(call.arguments[1]))
    return (context.after.sub(zero(types.I32), exponent),)


def _scaled(builder: Builder, number: Value, exponent: Value) -> Value:
    """Not by a factor: that of a subnormal number is infinite."""
    return call_function("ldexp", builder, [number, exponent], _float_type(number))


def _frexp_tangent(context: TangentContext, call: CallSite) -> None:
    (exponent,) = _frexp_augmented(context, call)
    context.set_tangent(_scaled(context.after, context.tangent(call.arguments[0]), exponent))


def _frexp_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    context.accumulate(call.arguments[0], _scaled(context.builder, context.cotangent(call), context.value(saved[0])))


def _modf_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    x, whole = call.arguments
    if context.is_active(whole):
        context.builder.store(zero(_float_type(call)), context.shadow(whole))  # a step function was written there
    context.accumulate(x, context.cotangent(call))


def _modf_tangent(context: TangentContext, call: CallSite) -> None:
    x, whole = call.arguments
    if context.is_active(whole):
        context.after.store(zero(_float_type(call)), context.shadow(whole))
    context.set_tangent(context.tangent(x))


# ------------------------------------------------------------------------------------------------ complex power


def _kernel(builder: Builder, call: CallSite) -> Kernel:
    return Kernel(builder, ElementType(types.FLOAT if call.callee.name == "numba_cpowf" else types.DOUBLE, True))


def _power_augmented(context: CopyContext, call: CallSite) -> Sequence[Value]:
    builders = context.before, context.before, context.after
    places = [(_kernel(builder, call), argument) for builder, argument in zip(builders, call.arguments, strict=True)]
    return [part for k, argument in places for part in k.load(context.value(argument)).parts]


def _power_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    base, exponent, result = call.arguments
    if not context.is_active(result):
        return
    k = _kernel(context.builder, call)
    parts = [context.value(value) for value in saved]
    a, b, c = (Scalar(k.build, pair) for pair in zip(parts[::2], parts[1::2], strict=True))
    shadow = Cell(k, context.shadow(result))
    cotangent = shadow.value
    shadow.value = k.nothing
    if context.is_active(base):
        bar = Cell(k, context.shadow(base))
        bar.value = bar.value + product_or_zero(cotangent, _partial_by_base(a, b, c).conj())
    if context.is_active(exponent):
        bar = Cell(k, context.shadow(exponent))
        logarithm = choose(a.is_zero(), 0.0, _logarithm(a))
        bar.value = bar.value + product_or_zero(cotangent, (c * logarithm).conj())


def _power_tangent(context: TangentContext, call: CallSite) -> None:
    base, exponent, result = call.arguments
    if not context.is_active(result):
        return
    before, k = _kernel(context.before, call), _kernel(context.after, call)
    tangents = {x: before.load(context.shadow(x)).parts for x in (base, exponent) if context.is_active(x)}
    parts = _power_augmented(context, call)
    a, b, c = (Scalar(k.build, pair) for pair in zip(parts[::2], parts[1::2], strict=True))
    logarithm = choose(a.is_zero(), 0.0, _logarithm(a))
    total = k.nothing
    for argument, partial in ((base, _partial_by_base(a, b, c)), (exponent, c * logarithm)):
        if argument in tangents:
            tangent = Scalar(k.build, tangents[argument])
            total = total + product_or_zero(tangent, partial)
    Cell(k, context.shadow(result)).value = total


def _partial_by_base(a: Scalar, b: Scalar, c: Scalar) -> Scalar:
    """`b c / a`; at a = 0 the limit 0 for Re b > 1, 1 for b = 1, 0 for b = 0, where the power is constant, else NaN."""
    general = b * c * a.conj() * _inverse(a.square())
    real = b.parts[0]
    is_smooth = a.build.fcmp("ogt", real, const_float(_float_type(real), 1.0))
    at_origin = choose(is_smooth, 0.0, choose(b.is_zero(), 0.0, general))
    at_origin = choose((b - 1.0).is_zero(), a.lifted(1.0), at_origin)
    return choose(a.is_zero(), at_origin, general)


def _inverse(number: Scalar) -> Scalar:
    return number.lifted(1.0) / number


def _logarithm(a: Scalar) -> Scalar:
    real, imag = a.parts
    type_ = _float_type(real)
    length = call_function("hypot", a.build, [real, imag], type_)
    angle = call_function("atan2", a.build, [imag, real], type_)
    return Scalar(a.build, (call_function("log", a.build, [length], type_), angle))


def _float_type(value: Value) -> FloatType:
    assert isinstance(value.type, FloatType)
    return value.type


# ------------------------------------------------------------------------------------------------ complex arithmetic


def _returned(builder: Builder, number: Value, type_: FloatType) -> Scalar:
    """A complex number that a function returns: a structure, or both parts in one vector register."""
    if not isinstance(number.type, VectorType):
        return Scalar(builder, (builder.extract_value(number, 0), builder.extract_value(number, 1)))
    parts = [ExtractElement(type_, operands=[number, const_int(types.I64, index)]) for index in range(2)]
    for part in parts:
        builder.insert(part)
    return Scalar(builder, tuple(parts))


def _arithmetic(context: ReverseContext, call: CallSite) -> tuple[Scalar, Scalar, Scalar]:
    """The cotangent of the result, and both operands."""
    build, (a, b, c, d) = context.builder, (context.value(argument) for argument in call.arguments)
    cotangent = _returned(build, context.cotangent(call), _float_type(a))
    return cotangent, Scalar(build, (a, b)), Scalar(build, (c, d))


def _accumulate(context: ReverseContext, call: CallSite, *amounts: Scalar) -> None:
    """Adds to the operands."""
    parts = [part for amount in amounts for part in amount.parts]
    for argument, part in zip(call.arguments, parts, strict=True):
        context.accumulate(argument, part)


def _product_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent, a, b = _arithmetic(context, call)
    _accumulate(context, call, product_or_zero(cotangent, b.conj()), product_or_zero(cotangent, a.conj()))


def _quotient_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent, a, b = _arithmetic(context, call)
    inverse = b.conj() * _inverse(b.square())
    dividend_bar = product_or_zero(cotangent, inverse.conj())
    # Of the cotangent itself, not of dividend_bar: that may pass zero with a slope, where a guard would be a constant.
    _accumulate(context, call, dividend_bar, product_or_zero(cotangent, (-(a * inverse) * inverse).conj()))


def _operands(build: Builder, parts: Sequence[Value]) -> tuple[Scalar, Scalar]:
    a, b, c, d = parts
    return Scalar(build, (a, b)), Scalar(build, (c, d))


def _set_complex_tangent(context: TangentContext, call: CallSite, number: Scalar) -> None:
    build = context.after
    packed: Value = zero(call.type)
    for index, part in enumerate(number.parts):
        if isinstance(call.type, VectorType):
            inserted = InsertElement(call.type, operands=[packed, part, const_int(types.I64, index)])
            build.insert(inserted)
            packed = inserted
        else:
            packed = build.insert_value(packed, part, index)
    context.set_tangent(packed)


def _product_tangent(context: TangentContext, call: CallSite) -> None:
    """D (a b) = a' b + a b'."""
    a, b = _operands(context.after, [context.value(argument) for argument in call.arguments])
    a_dot, b_dot = _operands(context.after, [context.tangent(argument) for argument in call.arguments])
    _set_complex_tangent(context, call, a_dot * b + a * b_dot)


def _quotient_tangent(context: TangentContext, call: CallSite) -> None:
    """D (a / b) = (a' - (a / b) b') / b."""
    _, b = _operands(context.after, [context.value(argument) for argument in call.arguments])
    a_dot, b_dot = _operands(context.after, [context.tangent(argument) for argument in call.arguments])
    quotient = _returned(context.after, context.value(call), _float_type(call.arguments[0]))
    _set_complex_tangent(context, call, (a_dot - quotient * b_dot) * (b.conj() * _inverse(b.square())))


_WRITES_INTEGER: Final = Effects(writes=frozenset({1}), writes_no_floats=True, other=False)
_WRITES_FLOAT: Final = Effects(writes=frozenset({1}), other=False)
_POWER_EFFECTS: Final = Effects(reads=frozenset({0, 1}), writes=frozenset({2}), other=False)

_POWER_POLICY: Final = (
    "base 0: with respect to the base, the limit if Re b > 1 or b = 1, 0 if b = 0, otherwise NaN; with respect to the "
    "exponent, 0"
)


RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("numba_frexp", "numba_frexpf", "frexp", "frexpf", "__nv_frexp", "__nv_frexpf"),
        _WRITES_INTEGER,
        _frexp_reverse,
        _frexp_augmented,
        tangent=_frexp_tangent,
        series=_frexp_tangent,
    ),
    CallRule(
        ("modf", "modff", "__nv_modf", "__nv_modff"),
        _WRITES_FLOAT,
        _modf_reverse,
        tangent=_modf_tangent,
        series=_modf_tangent,
    ),
    CallRule(("__muldc3", "__mulsc3"), PURE, _product_reverse, tangent=_product_tangent, factors=((0, 1), (2, 3))),
    CallRule(("__divdc3", "__divsc3"), PURE, _quotient_reverse, tangent=_quotient_tangent),
    CallRule(
        ("numba_cpow", "numba_cpowf"),
        _POWER_EFFECTS,
        _power_reverse,
        _power_augmented,
        policy=_POWER_POLICY,
        tangent=_power_tangent,
    ),
)
