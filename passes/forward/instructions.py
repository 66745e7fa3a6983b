"""The tangent of each instruction that is neither a call nor a phi, and touches no memory.

Most instructions are linear in their floats: they are repeated on the tangents. Slopes of functions may be infinite
where their values are finite: see `irad.passes.products`. Those of products and quotients are not; they are guarded
where zero is wanted of zero times infinity.

    z = fadd x, y       ż = fadd ẋ, ẏ                z = fmul x, y     ż = ẋ·y + x·ẏ
    z = select c x y    ż = select c ẋ ẏ             z = fdiv x, y     ż = (ẋ - z·ẏ) / y
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.instructions import (
    Binary,
    CallSite,
    Cast,
    ExtractElement,
    ExtractValue,
    Freeze,
    InsertElement,
    InsertValue,
    Instruction,
    Select,
    ShuffleVector,
    Unary,
)
from irad.ir.types import FloatType, holds_floats
from irad.ir.values import Constant, ConstantFloat, Value
from irad.passes import products
from irad.passes.analysis.refusals import unsupported
from irad.passes.forward.propagation import Propagation, Tangents
from irad.ruleset.expr import Expr, emit, symbols_of
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import Elementwise


def tangent_of(here: Tangents, inst: Instruction) -> Value | None:
    """Emits the tangent of the value that an instruction computes; None when that is zero."""
    match inst:
        case Binary(opcode="fadd" | "fsub"):
            return _sum(here, inst)
        case Binary(opcode="fmul"):
            a, b = inst.operands
            return _added(here, _scaled(here, a, lambda: here.value(b)), _scaled(here, b, lambda: here.value(a)))
        case Binary(opcode="fdiv"):
            return _quotient(here, inst)
        case Binary(opcode="frem"):
            return _remainder(here, inst)
        case Cast(opcode="bitcast") if not holds_floats(inst.operands[0].type):
            return None  # bits of an integer: were they an active number's, the program would have been refused
        case Cast(opcode="fpext" | "fptrunc" | "bitcast") | Unary() | Freeze() | Select():
            return _repeated(here, inst)
        case ExtractValue() | InsertValue() | ExtractElement() | InsertElement() | ShuffleVector():
            return _repeated(here, inst)
        case Cast(opcode="sitofp" | "uitofp"):
            return None
        case _:
            raise unsupported(inst)


def elementwise_tangent(here: Tangents, call: CallSite, rule: Elementwise) -> Value | None:
    """The tangent of a scalar function: its partial derivatives times the tangents of the arguments."""
    number_type = call.type
    assert isinstance(number_type, FloatType)
    total: Value | None = None
    for number, (argument, partial) in enumerate(zip(call.arguments, rule.partials, strict=False)):
        tangent = here.known_tangent(argument) if partial is not None else None
        if partial is None or tangent is None:
            continue

        def emitted(partial: Expr = partial) -> Value:
            values = {name: here.value(_named(call, name)) for name in sorted(symbols_of(partial))}
            return emit(partial, here.after, values, number_type)

        factor = here.once(f"partial {number}", emitted)
        # The slope may be infinite where the tangent is zero; the product is zero there, as in reverse mode.
        total = _added(here, total, products.product_or_zero(here.after, tangent, factor))
    return total


def _named(call: CallSite, name: str) -> Value:
    return call if name == "y" else call.arguments[int(name[1:])]


def _repeated(here: Tangents, inst: Instruction) -> Value | None:
    """Repeats an instruction on tangents in place of the numbers."""
    numbers = [v for v in inst.operands if holds_floats(v.type)]
    tangents = {v: here.known_tangent(v) for v in numbers}
    if not any(tangents.values()):
        return None
    values = {v: here.value(v) for v in inst.operands if not isinstance(v, Constant)}
    copy = clone_instruction(inst, values)
    for index, operand in enumerate(inst.operands):
        if operand in tangents:
            copy.set_operand(index, tangents[operand] or zero_of(operand.type))
    copy.name = None
    here.after.insert(copy)
    return copy


def _sum(here: Tangents, inst: Binary) -> Value | None:
    a, b = (here.known_tangent(v) for v in inst.operands)
    if inst.opcode == "fadd":
        return _added(here, a, b, inst.flags)
    if b is None:
        return a
    return here.after.fneg(b) if a is None else here.after.fsub(a, b, inst.flags)


def _added(here: Tangents, a: Value | None, b: Value | None, flags: tuple[str, ...] = ()) -> Value | None:
    if a is None or b is None:
        return a or b
    return here.after.fadd(a, b, flags)


def _scaled(here: Tangents, value: Value, factor: Callable[[], Value]) -> Value | None:
    """The tangent of a value times a number."""
    tangent = here.known_tangent(value)
    if tangent is None:
        return None
    # Slopes of products and quotients are infinite only where their values are, and a guard costs a fifth of the time.
    product = products.product_or_zero if here.zero_wins else Builder.fmul
    return product(here.after, tangent, factor())


def _quotient(here: Tangents, inst: Binary) -> Value | None:
    """D (a / b) = (da - (a / b) db) / b, of a reciprocal without another division."""
    a, b = inst.operands
    if isinstance(a, ConstantFloat) and a.value == 1.0 and not here.zero_wins:
        product = _scaled(here, b, lambda: here.value(inst))
        return None if product is None else here.after.fneg(here.after.fmul(product, here.value(inst)))
    numerator = here.known_tangent(a)
    product = _scaled(here, b, lambda: here.value(inst))
    if product is not None:
        numerator = here.after.fneg(product) if numerator is None else here.after.fsub(numerator, product)
    if numerator is None:
        return None
    if here.zero_wins:
        return products.divided(here.after, numerator, here.value(b), zero_wins=True)
    return here.after.fdiv(numerator, here.value(b))


def _remainder(here: Tangents, inst: Binary) -> Value | None:
    """D fmod(a, b) = da - n db, where fmod(a, b) = a - n·b; a quotient that is rounded up to n + 1 is not asked."""
    a, b = inst.operands

    def minus_n() -> Value:
        return here.after.fdiv(here.after.fsub(here.value(inst), here.value(a)), here.value(b))

    return _added(here, here.known_tangent(a), _scaled(here, b, minus_n))


TANGENTS: Final = Propagation(tangent_of, elementwise_tangent, attrgetter("tangent"))
