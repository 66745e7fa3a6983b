"""Dependence: the inputs that each number depends on, as bits in place of its tangent.

Forward mode with another algebra. A set of inputs is kept in a value of the number's own type, so phis, calls and
memory carry it as they carry a tangent; only its bits mean anything. Where a tangent is a sum of products, a set is the
union of those of all operands, whatever the slopes are: a product with zero depends on both factors, and a select on
both choices. Of the branches, those that the function takes count.

    %z = fmul double %x, %y              %z.tangent = %x.tangent | %y.tangent
    %z = select i1 %c, double %x, %y     %z.tangent = %x.tangent | %y.tangent
    %z = fptosi double %x                depends on nothing: integers carry no derivative
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Binary, CallSite, Cast, Instruction, Select, Unary
from irad.ir.types import FloatType, Type, VectorType
from irad.ir.values import Value
from irad.passes.analysis.refusals import unsupported
from irad.passes.forward.instructions import tangent_of
from irad.passes.forward.propagation import Propagation, Tangents
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import CallRule, Elementwise, TangentContext, TangentPart


def _set_of(here: Tangents, inst: Instruction) -> Value | None:
    """Emits the set of the value that an instruction computes; None where that is empty."""
    match inst:
        case Binary() | Unary() | Select():
            # A select takes both choices: LLVM makes selects of branches as it likes, and a pattern must not depend on
            # that.
            return _union_of(here, inst, (v for v in inst.operands if v.type is inst.type))
        case Cast(opcode="fpext" | "fptrunc", operands=[number]):
            known = here.known_tangent(number)
            return None if known is None else _resized(here.after, inst, known)
        case _:
            return tangent_of(here, inst)  # what is left only moves bits


def _set_of_function(here: Tangents, call: CallSite, rule: Elementwise) -> Value | None:
    """The set of a scalar function: the union of the sets of arguments with a derivative."""
    pairs = zip(call.arguments, rule.partials, strict=False)
    return _union_of(here, call, (argument for argument, partial in pairs if partial is not None))


def _union_of(here: Tangents, inst: Instruction, values: Iterable[Value]) -> Value | None:
    """Emits the union of the sets of values of the type of an instruction; None if it is empty."""
    known = [tangent for value in values if (tangent := here.known_tangent(value)) is not None]
    return _joined(here.after, inst, known) if known else None


def _joined(build: Builder, inst: Instruction, sets: Sequence[Value]) -> Value:
    integer = _integer_for(inst, inst.type)
    return build.bitcast(reduce(build.or_, [build.bitcast(each, integer) for each in sets]), inst.type)


def _resized(build: Builder, inst: Cast, given: Value) -> Value:
    """The set as a number of another precision; no more bits are used than the lowest has."""
    narrow, wide = (_integer_for(inst, type_) for type_ in (given.type, inst.type))
    resize = build.zext if inst.opcode == "fpext" else build.trunc
    return build.bitcast(resize(build.bitcast(given, narrow), wide), inst.type)


def _integer_for(inst: Instruction, type_: Type) -> Type:
    """The integer type with the bits of a number."""
    element = type_.element if isinstance(type_, VectorType) else type_
    if element not in (types.FLOAT, types.DOUBLE):
        raise unsupported(inst)
    assert isinstance(element, FloatType)
    return types.as_many(type_, types.int_type(element.bits))


def _part_of_rule(rule: CallRule) -> TangentPart | None:
    """Tangent of a rule: its own if it moves values, otherwise the union of the sets of all numbers that it takes."""
    return rule.tangent if rule.moves else _set_of_numbers


def _set_of_numbers(context: TangentContext, call: CallSite) -> None:
    """Whatever a callee computes of numbers depends on all of them."""
    build, total = context.after, zero_of(call.type)
    for argument in call.arguments:
        if context.is_active(argument):
            total = _joined(build, call, [total, context.tangent(argument)])
    context.set_tangent(total)


SETS: Final = Propagation(_set_of, _set_of_function, _part_of_rule)
