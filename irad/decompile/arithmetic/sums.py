"""Sums of cotangents that begin with nothing, and products that keep an empty cotangent empty."""

from __future__ import annotations

from irad.decompile.memory.reads import STRONG
from irad.decompile.memory.slots import remove_trivial_phis
from irad.ir.instructions import Binary, FCmp, Phi, Select, replace_uses
from irad.ir.module import Function
from irad.ir.types import FloatType
from irad.ir.values import ConstantFloat, Value, const_float


def fold_sums(function: Function) -> None:
    """Removes additions of zero: those that begin the sum of a cotangent."""
    changed = True
    while changed:
        changed = False
        for phi in _zero_phis(function):
            assert isinstance(phi, Phi)
            replace_uses(phi, const_float(phi.type, 0.0))
            phi.erase()
        for inst in list(function.instructions()):
            if not isinstance(inst, Binary) or inst.opcode != "fadd":
                continue
            a, b = inst.operands
            other = b if is_zero(a) else a if is_zero(b) else None
            if other is not None and other is not inst:
                replace_uses(inst, other)
                inst.erase()
                changed = True
        remove_trivial_phis(function)


def _zero_phis(function: Function) -> set[Value]:
    """Phis that merge nothing but zeros and each other: cotangents that stay empty."""
    phis: set[Value] = {p for b in function.blocks for p in b.phis() if isinstance(p.type, FloatType)}
    changed = True
    while changed:
        doubtful = {p for p in phis if isinstance(p, Phi) and any(not is_zero(v) and v not in phis for v in p.operands)}
        phis -= doubtful
        changed = bool(doubtful)
    return phis


def mark_strong_products(function: Function) -> None:
    """A product behind `select(cotangent == 0, 0, product)` becomes one instruction with the flag `STRONG`."""
    for inst in list(function.instructions()):
        match inst:
            case Select(operands=[FCmp(predicate="oeq", operands=[a, zero]) as test, nothing, Binary() as product]):
                if not (is_zero(zero) and is_zero(nothing) and product.operands[0] is a):
                    continue
                if product.opcode not in ("fmul", "fdiv") or list(product.users) != [inst]:
                    continue
                product.flags = (*product.flags, STRONG)
                product.origin = inst.origin or product.origin
                replace_uses(inst, product)
                inst.erase()
                if not test.users:
                    test.erase()
            case _:
                pass


def is_zero(value: Value) -> bool:
    """Whether a value is the number 0.0."""
    return isinstance(value, ConstantFloat) and value.value == 0.0
