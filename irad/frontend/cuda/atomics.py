"""Atomic operations of NVVM and of Numba as LLVM's instructions.

Numba adds the bodies of its own ones as text before it calls NVVM: loops of `cmpxchg`, which nobody could
differentiate. As instructions they do the same, NaN included:

    ___numba_atomic_double_nanmax   `atomicrmw fmax`: a NaN in memory gives way, a NaN as operand changes nothing
    ___numba_atomic_double_max      a NaN in memory stays: if there is one, the operand becomes NaN, and nothing changes

Numba looks for that NaN once, before its loop; here an atomic load does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.frontend.cuda.replacements import Replacement
from irad.ir.builder import Builder
from irad.ir.instructions import AtomicRMW, Call
from irad.ir.types import FloatType, IntType, Type
from irad.ir.values import Value, const_float

ORDERING: Final = "monotonic"
_FLOATS: Final = ("float", "double")


def _atomic(b: Builder, opcode: str, pointer: Value, operand: Value) -> Value:
    inst = AtomicRMW(
        operand.type,
        operands=[pointer, operand],
        metadata=dict(b.metadata),
        opcode=opcode,
        ordering=ORDERING,
        align=_size(operand.type),
    )
    b.insert(inst)
    return inst


def _size(type_: Type) -> int:
    assert isinstance(type_, IntType | FloatType)
    return type_.bits // 8


def _instruction(opcode: str) -> Replacement:
    return lambda b, call: _atomic(b, opcode, *call.arguments)


def _that_keeps_nan(opcode: str) -> Replacement:
    def build(b: Builder, call: Call) -> Value:
        pointer, operand = call.arguments
        before = b.load(operand.type, pointer, align=_size(operand.type))
        before.ordering = ORDERING
        is_nan = b.fcmp("uno", before, before)
        nan = const_float(operand.type, float("nan"))
        return _atomic(b, opcode, pointer, b.select(is_nan, nan, operand))

    return build


def _calls() -> Iterator[tuple[str, Replacement]]:
    for word in _FLOATS:
        yield f"___numba_atomic_{word}_add", _instruction("fadd")
        yield f"___numba_atomic_{word}_sub", _instruction("fsub")
        for kind in ("max", "min"):
            yield f"___numba_atomic_{word}_{kind}", _that_keeps_nan(f"f{kind}")
            yield f"___numba_atomic_{word}_nan{kind}", _instruction(f"f{kind}")
    for kind, opcode in (("inc", "uinc_wrap"), ("dec", "udec_wrap")):
        yield f"___numba_atomic_u64_{kind}", _instruction(opcode)
        for spelled in ("p0", "p0i32"):  # what older LLVM does not upgrade
            yield f"llvm.nvvm.atomic.load.{kind}.32.{spelled}", _instruction(opcode)


CALLS: Final[dict[str, Replacement]] = dict(_calls())
"""What stands in the place of a call, by the callee."""
