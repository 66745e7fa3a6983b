"""Scalar mathematics whose arguments or results go through memory.

numba_frexp(x, exponent)      mantissa of x; an i32 is written
modf(x, whole)                fraction of x; the whole part is written
numba_cpow(a, b, c)           c = a**b of complex numbers
__muldc3(a, b, c, d)          (a + bi) (c + di), __divdc3 the quotient, as compilers call them; __mulsc3, __divsc3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, ExtractElement
from irad.ir.types import FloatType, VectorType
from irad.ir.values import Value, const_float, const_int, zero
from irad.ruleset.expr import call_function
from irad.ruleset.interface import PURE, AugmentedContext, CallRule, Effects, ReverseContext, Rule

# ------------------------------------------------------------------------------------------------ parts of a number


def _frexp_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """The power of two that was taken out of the number, as 1 / 2**exponent."""
    exponent = context.after.load(types.I32, context.value(call.arguments[1]))
    negated = context.after.sub(zero(types.I32), exponent)
    type_ = _float(call)
    return (call_function("ldexp", context.after, [const_float(type_, 1.0), negated], type_),)


def _frexp_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent = context.cotangent(call)
    context.accumulate(call.arguments[0], context.builder.fmul(cotangent, context.value(saved[0])))


def _modf_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    x, whole = call.arguments
    if context.is_active(whole):
        context.builder.store(zero(_float(call)), context.shadow(whole))  # a step function was written there
    context.accumulate(x, context.cotangent(call))


def _float(call: CallSite) -> FloatType:
    type_ = call.type
    assert isinstance(type_, FloatType)
    return type_


# ------------------------------------------------------------------------------------------------ complex power


@dataclass(frozen=True, slots=True)
class _Complex:
    """A complex number under construction."""

    builder: Builder
    re: Value
    im: Value

    @classmethod
    def load(cls, builder: Builder, type_: FloatType, pointer: Value) -> _Complex:
        second = builder.byte_offset(pointer, types.size_of(type_))
        return cls(builder, builder.load(type_, pointer), builder.load(type_, second))

    def store(self, pointer: Value) -> None:
        self.builder.store(self.re, pointer)
        self.builder.store(self.im, self.builder.byte_offset(pointer, types.size_of(self.re.type)))

    def conjugate(self) -> _Complex:
        return _Complex(self.builder, self.re, self.builder.fneg(self.im))

    def __add__(self, other: _Complex) -> _Complex:
        b = self.builder
        return _Complex(b, b.fadd(self.re, other.re), b.fadd(self.im, other.im))

    def __mul__(self, other: _Complex) -> _Complex:
        b = self.builder
        real = b.fsub(b.fmul(self.re, other.re), b.fmul(self.im, other.im))
        return _Complex(b, real, b.fadd(b.fmul(self.re, other.im), b.fmul(self.im, other.re)))

    def scaled(self, factor: Value) -> _Complex:
        b = self.builder
        return _Complex(b, b.fmul(self.re, factor), b.fmul(self.im, factor))

    def unless(self, condition: Value, other: _Complex) -> _Complex:
        b = self.builder
        return _Complex(b, b.select(condition, other.re, self.re), b.select(condition, other.im, self.im))


def _power_type(call: CallSite) -> FloatType:
    return types.FLOAT if call.callee.name == "numba_cpowf" else types.DOUBLE


def _power_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    a, b, c = (context.value(argument) for argument in call.arguments)
    type_ = _power_type(call)
    numbers = (
        _Complex.load(context.before, type_, a),
        _Complex.load(context.before, type_, b),
        _Complex.load(context.after, type_, c),
    )
    return [part for number in numbers for part in (number.re, number.im)]


def _power_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    base, exponent, result = call.arguments
    if not context.is_active(result):
        return
    builder, type_ = context.builder, _power_type(call)
    parts = [context.value(value) for value in saved]
    a, b, c = (_Complex(builder, re, im) for re, im in zip(parts[::2], parts[1::2], strict=True))
    nothing = const_float(type_, 0.0)
    origin = _Complex(builder, nothing, nothing)
    shadow = context.shadow(result)
    cotangent = _Complex.load(builder, type_, shadow)
    origin.store(shadow)
    silent = _is_zero(cotangent)  # a zero cotangent stays zero whatever the partial
    if context.is_active(base):
        partial = _partial_by_base(a, b, c, type_)
        _add(context, base, (cotangent * partial.conjugate()).unless(silent, origin), type_)
    if context.is_active(exponent):
        logarithm = _logarithm(a, type_).unless(_is_zero(a), origin)
        _add(context, exponent, (cotangent * (c * logarithm).conjugate()).unless(silent, origin), type_)


def _is_zero(number: _Complex) -> Value:
    b = number.builder
    nothing = const_float(_type_of(number), 0.0)
    return b.and_(b.fcmp("oeq", number.re, nothing), b.fcmp("oeq", number.im, nothing))


def _type_of(number: _Complex) -> FloatType:
    type_ = number.re.type
    assert isinstance(type_, FloatType)
    return type_


def _partial_by_base(a: _Complex, b: _Complex, c: _Complex, type_: FloatType) -> _Complex:
    """`b c / a`; at a = 0 it is 1 for b = 1 and else 0, the limit for Re b > 1."""
    builder, nothing, one = a.builder, const_float(type_, 0.0), const_float(type_, 1.0)
    square = builder.fadd(builder.fmul(a.re, a.re), builder.fmul(a.im, a.im))
    general = (b * c * a.conjugate()).scaled(builder.fdiv(one, square))
    linear = builder.and_(builder.fcmp("oeq", b.re, one), builder.fcmp("oeq", b.im, nothing))
    at_origin = _Complex(builder, builder.select(linear, one, nothing), nothing)
    return general.unless(_is_zero(a), at_origin)


def _logarithm(a: _Complex, type_: FloatType) -> _Complex:
    builder = a.builder
    length = call_function("hypot", builder, [a.re, a.im], type_)
    angle = call_function("atan2", builder, [a.im, a.re], type_)
    return _Complex(builder, call_function("log", builder, [length], type_), angle)


def _add(context: ReverseContext, pointer: Value, amount: _Complex, type_: FloatType) -> None:
    shadow = context.shadow(pointer)
    (_Complex.load(context.builder, type_, shadow) + amount).store(shadow)


# ------------------------------------------------------------------------------------------------ complex arithmetic


def _parts_of(builder: Builder, number: Value, type_: FloatType) -> _Complex:
    """A complex number that a function returns: a structure, or both parts in one vector register."""
    if not isinstance(number.type, VectorType):
        return _Complex(builder, builder.extract_value(number, 0), builder.extract_value(number, 1))
    parts = [ExtractElement(type_, operands=[number, const_int(types.I64, index)]) for index in range(2)]
    for part in parts:
        builder.insert(part)
    return _Complex(builder, *parts)


def _operands(context: ReverseContext, call: CallSite) -> tuple[_Complex, _Complex]:
    a, b, c, d = (context.value(argument) for argument in call.arguments)
    return _Complex(context.builder, a, b), _Complex(context.builder, c, d)


def _accumulate(context: ReverseContext, call: CallSite, index: int, amount: _Complex, silent: Value) -> None:
    nothing = const_float(_type_of(amount), 0.0)
    amount = amount.unless(silent, _Complex(context.builder, nothing, nothing))
    context.accumulate(call.arguments[index], amount.re)
    context.accumulate(call.arguments[index + 1], amount.im)


def _type_of_arguments(call: CallSite) -> FloatType:
    type_ = call.arguments[0].type
    assert isinstance(type_, FloatType)
    return type_


def _product_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    cotangent = _parts_of(context.builder, context.cotangent(call), _type_of_arguments(call))
    a, b = _operands(context, call)
    silent = _is_zero(cotangent)
    _accumulate(context, call, 0, cotangent * b.conjugate(), silent)
    _accumulate(context, call, 2, cotangent * a.conjugate(), silent)


def _quotient_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    builder, type_ = context.builder, _type_of_arguments(call)
    cotangent = _parts_of(builder, context.cotangent(call), type_)
    a, b = _operands(context, call)
    silent = _is_zero(cotangent)
    square = builder.fadd(builder.fmul(b.re, b.re), builder.fmul(b.im, b.im))
    inverse = b.conjugate().scaled(builder.fdiv(const_float(type_, 1.0), square))
    by_first = cotangent * inverse.conjugate()
    _accumulate(context, call, 0, by_first, silent)
    negated = (a * inverse).scaled(const_float(type_, -1.0))
    _accumulate(context, call, 2, by_first * negated.conjugate(), silent)


_WRITES_INTEGER: Final = Effects(writes=frozenset({1}), writes_no_floats=True, other=False)
_WRITES_FLOAT: Final = Effects(writes=frozenset({1}), other=False)
_POWER_EFFECTS: Final = Effects(reads=frozenset({0, 1}), writes=frozenset({2}), other=False)

_POWER_POLICY: Final = "base 0: 0 by the base unless the exponent is 1, and 0 by the exponent"

RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("numba_frexp", "numba_frexpf", "frexp", "frexpf", "__nv_frexp", "__nv_frexpf"),
        _WRITES_INTEGER,
        _frexp_reverse,
        _frexp_augmented,
    ),
    CallRule(("modf", "modff", "__nv_modf", "__nv_modff"), _WRITES_FLOAT, _modf_reverse),
    CallRule(("__muldc3", "__mulsc3"), PURE, _product_reverse),
    CallRule(("__divdc3", "__divsc3"), PURE, _quotient_reverse),
    CallRule(("numba_cpow", "numba_cpowf"), _POWER_EFFECTS, _power_reverse, _power_augmented, policy=_POWER_POLICY),
)
