"""Guards of products: zero times any partial derivative is zero, whatever the partial is, infinite or nan.

A guard is a select, which a derivative of the derivative would take for a branch of the function: of the derivative
``2·x`` of ``x·x`` it would find slope zero where ``x`` is zero. Code that is differentiated itself therefore has calls
in their place (`Module.opaque_guards`). Such a call has a rule (`irad.rules.guards`) and is inlined in the end.

A sweep whose caller repeats it where a result is NaN has none (`irad.passes.analysis.speculation`).
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import FCmp, Instruction, Select
from irad.ir.types import FloatType, Type, function_type
from irad.ir.values import ConstantFloat, Value, const_float, zero

GUARDS: Final = {types.DOUBLE: "irad.strong_zero_f64", types.FLOAT: "irad.strong_zero_f32"}
LEAST: Final = 2.0**-149  # the smallest positive number of single precision
_RARELY: Final = '!{!"branch_weights", i32 1, i32 1000000}'


def zero_of(type_: Type) -> Value:
    """Zero of a float, vector or aggregate type."""
    if type_ in (types.FLOAT, types.DOUBLE):
        return const_float(type_, 0.0)
    return zero(type_)


def strong_zero(build: Builder, derivative: Value, product: Value) -> Value:
    """``product`` where the derivative is not zero, else zero.

    The guard tells LLVM that it rarely applies: in a loop that is not vectorised, a predicted branch is cheaper than a
    comparison.
    """
    type_ = derivative.type
    if not build.module.strong_zeros:
        return product
    # A derivative of this code would take a select for a branch of the function, of slope zero where the derivative is
    # zero.
    if build.module.opaque_guards and type_ in GUARDS:
        guard = build.module.declare(GUARDS[type_], function_type(type_, [type_, type_]), ATTRIBUTES)
        return build.call(guard, [derivative, product])
    return guarded(build, derivative, product)


def guarded(build: Builder, derivative: Value, product: Value) -> Value:
    """Value of a guard, as a select."""
    nothing = zero_of(derivative.type)
    made = build.select(build.fcmp("oeq", derivative, nothing), nothing, product)
    if isinstance(made, Select) and isinstance(derivative.type, FloatType):
        made.metadata = {**made.metadata, "prof": build.module.shared_metadata(_RARELY)}
    return made


def shown(build: Builder, derivative: Value, product: Value) -> Value:
    """A product that is zero although the derivative is not, as the least positive number of single precision.

    Sums do not cancel such numbers, and conversions keep them. For `Module.shows_zeros`.
    """
    type_ = product.type
    if not build.module.shows_zeros or not isinstance(type_, FloatType):
        return product
    nothing = zero_of(type_)
    is_hidden = build.and_(build.fcmp("oeq", product, nothing), build.fcmp("une", derivative, nothing))
    return build.select(is_hidden, const_float(type_, LEAST), product)


def guarded_by(inst: Instruction) -> Value | None:
    """The comparison of the cotangent with zero, if an instruction of a reverse sweep is a guard of a float."""
    match inst:
        case Select(operands=[FCmp(predicate="oeq") as test, ConstantFloat(), _]) if "prof" in inst.metadata:
            return test
        case _:
            return None


def partial_zero(build: Builder, derivative: Value, partial: Value, product: Value) -> Value:
    """``product`` where the partial derivative is not zero, or the derivative is NaN; else zero."""
    # A NaN stays one, whatever it is multiplied by, so that it is seen.
    is_number = build.fcmp("oeq", derivative, derivative)
    if build.module.opaque_guards and partial.type in GUARDS:
        return strong_zero(build, build.select(is_number, partial, derivative), product)
    is_zero = build.fcmp("oeq", partial, zero_of(partial.type))
    return build.select(build.and_(is_zero, is_number), zero_of(derivative.type), product)


ATTRIBUTES: Final = ("nounwind", "willreturn", "memory(none)")
