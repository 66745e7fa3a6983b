"""The adjoint of each instruction that is neither a call nor a terminator.

Products have a strong zero: see `irad.passes.products`.

    z = fadd x, y       x̄ += z̄, ȳ += z̄              z = load p        shadow[p] += z̄
    z = fmul x, y       x̄ += z̄·y, ȳ += z̄·x          store z, p        z̄ += shadow[p]; shadow[p] = 0
    z = fdiv x, y       x̄ += z̄/y, ȳ −= (z̄/y)·z      z = select c x y  x̄ += c ? z̄ : 0, ȳ += c ? 0 : z̄
"""

from __future__ import annotations

from collections.abc import Callable

from irad.ir import types
from irad.ir.instructions import (
    Binary,
    Cast,
    ExtractElement,
    ExtractValue,
    Freeze,
    InsertElement,
    InsertValue,
    Instruction,
    Load,
    Phi,
    Select,
    ShuffleVector,
    Store,
    Unary,
)
from irad.ir.types import FloatType, PointerType, Type, VectorType, holds_floats
from irad.ir.values import Value, const_int
from irad.passes import products
from irad.passes.analysis.refusals import unsupported
from irad.passes.reverse.sweep import Sweep
from irad.passes.reverse.windows import window_of
from irad.ruleset.guards import shown, zero_of


def reverse_instruction(sweep: Sweep, inst: Instruction) -> None:
    """Emits the adjoint of an instruction; nothing when nothing active touches it."""
    if isinstance(inst, Store):
        reverse_store(sweep, inst)
        return
    if isinstance(inst, Phi):
        return  # at the end of the block: `Control.finish`
    cotangent = sweep.take(inst)
    if cotangent is None:
        return
    match inst:
        case Binary():
            _reverse_binary(sweep, inst, cotangent)
        case Unary():
            sweep.accumulate(inst.operands[0], sweep.build.fneg(cotangent))
        case Load():
            _reverse_load(sweep, inst, cotangent)
        case Select():
            _reverse_select(sweep, inst, cotangent)
        case Freeze():
            sweep.accumulate(inst.operands[0], cotangent)
        case Cast():
            _reverse_cast(sweep, inst, cotangent)
        case ExtractValue() | InsertValue():
            _reverse_aggregate(sweep, inst, cotangent)
        case ExtractElement() | InsertElement() | ShuffleVector():
            _reverse_vector(sweep, inst, cotangent)
        case _:
            raise unsupported(inst)


def scaled(sweep: Sweep, cotangent: Value, factor: Value, *, varies: bool = True) -> Value:
    """Cotangent times partial; ``varies``: the partial depends on active values."""
    product = products.scaled(sweep.build, cotangent, factor, zero_wins=sweep.zero_wins)
    return shown(sweep.build, cotangent, product) if varies else product


def _reverse_binary(sweep: Sweep, inst: Binary, cotangent: Value) -> None:
    build, (a, b) = sweep.build, inst.operands
    match inst.opcode:
        case "fadd" | "fsub":
            kept = sweep.updates.kept.get(inst)
            if kept != 0:
                sweep.accumulate(a, cotangent)
            if kept != 1:
                sweep.accumulate(b, cotangent if inst.opcode == "fadd" else build.fneg(cotangent))
        case "fmul" if a is b:
            # Twice the cotangent, not twice the product: squares that are added up share it.
            _accumulate_lazily(sweep, a, lambda: scaled(sweep, sweep.add(cotangent, cotangent), sweep.factor(a)))
        case "fmul":
            _accumulate_lazily(sweep, a, lambda: scaled(sweep, cotangent, sweep.factor(b), varies=sweep.is_active(b)))
            _accumulate_lazily(sweep, b, lambda: scaled(sweep, cotangent, sweep.factor(a), varies=sweep.is_active(a)))
        case "fdiv":
            if not (sweep.is_active(a) or sweep.is_active(b)):
                return
            zero_wins, by_reciprocal = sweep.zero_wins, sweep.shares_reciprocals
            quotient = products.divided(
                build, cotangent, sweep.factor(b), zero_wins=zero_wins, by_reciprocal=by_reciprocal
            )
            sweep.accumulate(a, quotient)
            _accumulate_lazily(sweep, b, lambda: _negated(sweep, quotient, inst))
        case "frem":
            sweep.accumulate(a, cotangent)
            _accumulate_lazily(sweep, b, lambda: _remainder_divisor(sweep, inst, cotangent))
        case _:
            raise unsupported(inst)


def _negated(sweep: Sweep, quotient: Value, inst: Binary) -> Value:
    """D (a / b) / db = -(a / b) / b."""
    product = products.scaled_again(sweep.build, quotient, sweep.factor(inst), zero_wins=sweep.zero_wins)
    return sweep.build.fneg(product)


def _remainder_divisor(sweep: Sweep, inst: Binary, cotangent: Value) -> Value:
    """D fmod(a, b) / db = -n, where fmod(a, b) = a - n·b; a quotient a / b that is rounded up to n + 1 is not asked."""
    build = sweep.build
    a, b = (sweep.factor(v) for v in inst.operands)
    return scaled(sweep, cotangent, build.fdiv(build.fsub(sweep.factor(inst), a), b))


def _accumulate_lazily(sweep: Sweep, value: Value, amount: Callable[[], Value]) -> None:
    if sweep.is_active(value):
        sweep.accumulate(value, amount())


def _reverse_load(sweep: Sweep, inst: Load, cotangent: Value) -> None:
    pointer = inst.operands[0]
    window = window_of(sweep, pointer)
    if window is not None:
        window.add(pointer, cotangent)
    elif sweep.is_active(pointer):
        sweep.add_to_shadow(pointer, cotangent)


def reverse_store(sweep: Sweep, inst: Store) -> None:
    """The stored value gets the cotangent of the memory, which is zero before the store: its old content is gone.

    Not so where the old content is a summand of what is stored: see `irad.passes.reverse.sweep`.
    """
    value, pointer = inst.operands
    if not sweep.is_active(pointer) or isinstance(value.type, PointerType):
        return
    window = window_of(sweep, pointer)
    if window is not None:
        sweep.accumulate(value, window.take(pointer, value.type))
        return
    # A constant has no cotangent, but its store still ends that of what it overwrites.
    if value in sweep.augmented.unit.activity.active:
        sweep.accumulate(value, sweep.load_shadow(value.type, pointer))
    if inst not in sweep.updates.stores:
        sweep.store_shadow(_cleared(value.type), pointer)


def _cleared(type_: Type) -> Value:
    if isinstance(type_, FloatType | VectorType):
        return zero_of(type_)
    if isinstance(type_, types.IntType):
        return const_int(type_, 0)
    return zero_of(type_)


def _reverse_select(sweep: Sweep, inst: Select, cotangent: Value) -> None:
    condition, a, b = inst.operands
    if not (sweep.is_active(a) or sweep.is_active(b)):
        return
    build, zero = sweep.build, zero_of(inst.type)
    chosen = sweep.value(condition)
    _accumulate_lazily(sweep, a, lambda: build.select(chosen, cotangent, zero))
    _accumulate_lazily(sweep, b, lambda: build.select(chosen, zero, cotangent))


def _reverse_cast(sweep: Sweep, inst: Cast, cotangent: Value) -> None:
    source = inst.operands[0]
    match inst.opcode:
        case "fpext":
            sweep.accumulate(source, sweep.build.fptrunc(cotangent, source.type))
        case "fptrunc":
            sweep.accumulate(source, sweep.build.fpext(cotangent, source.type))
        case "bitcast" if holds_floats(source.type):
            sweep.accumulate(source, sweep.build.bitcast(cotangent, source.type))
        case "bitcast" if sweep.augmented.unit.everything:
            pass  # bits of an integer: were they an active number's, the program would have been refused
        case "bitcast":
            raise unsupported(inst)
        case "sitofp" | "uitofp":
            pass  # from an integer: no derivative
        case _:
            raise unsupported(inst)


def _reverse_aggregate(sweep: Sweep, inst: ExtractValue | InsertValue, cotangent: Value) -> None:
    build, whole = sweep.build, inst.operands[0]
    match inst:
        case ExtractValue():
            spread = build.insert_value(zero_of(whole.type), cotangent, inst.indices)
            sweep.accumulate(whole, spread)
        case InsertValue():
            part = inst.operands[1]
            if holds_floats(part.type):
                sweep.accumulate(part, build.extract_value(cotangent, inst.indices))
            rest = build.insert_value(cotangent, zero_of(part.type), inst.indices)
            sweep.accumulate(whole, rest)


def _reverse_vector(sweep: Sweep, inst: ExtractElement | InsertElement | ShuffleVector, cotangent: Value) -> None:
    whole = inst.operands[0]
    match inst:
        case ExtractElement():
            index = sweep.value(inst.operands[1])
            spread = InsertElement(whole.type, operands=[zero_of(whole.type), cotangent, index])
            sweep.build.insert(spread)
            sweep.accumulate(whole, spread)
        case InsertElement():
            _, part, position = inst.operands
            index = sweep.value(position)
            taken = ExtractElement(part.type, operands=[cotangent, index])
            sweep.build.insert(taken)
            sweep.accumulate(part, taken)
            rest = InsertElement(whole.type, operands=[cotangent, zero_of(part.type), index])
            sweep.build.insert(rest)
            sweep.accumulate(whole, rest)
        case ShuffleVector():
            raise unsupported(inst)
