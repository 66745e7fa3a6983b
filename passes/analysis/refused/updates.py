"""Atomic updates of active memory: none of them has a derivative, but for sums that kernels do not use (`irad.kernel`).

%old = atomicrmw fmax ptr %y, double %v monotonic        refused where y is active
"""

from __future__ import annotations

from typing import Final

from irad.errors import IradError, UnsupportedError
from irad.ir.instructions import AtomicRMW, CmpXchg, Instruction
from irad.ir.types import IntType, holds_floats
from irad.passes.analysis.integer_taint import meets_numbers
from irad.passes.unit import Unit


def update_error(unit: Unit, update: AtomicRMW | CmpXchg) -> IradError | None:
    """The refusal of an atomic update; None where nothing active is touched."""
    if not (_updates_numbers(unit, update) or _updates_pointers(unit, update)):
        return None
    if unit.program.request.host.is_shared:
        return _update_by_threads(update)
    return UnsupportedError(
        "an atomic update of active memory has no derivative in irad yet",
        "use an ordinary update, x[i] += …",
        "the reverse sweep would have to read what other threads are writing",
    )


def _update_by_threads(update: AtomicRMW | CmpXchg) -> IradError:
    """The refusal of an update of memory that the threads of a kernel share."""
    name = _ATOMICS.get(update.opcode, "exch") if isinstance(update, AtomicRMW) else "cas"
    if name in ("add", "sub"):
        return UnsupportedError(
            f"the result of cuda.atomic.{name} on active memory is used",
            "use the operation for its effect only, and read the memory after a barrier or in another kernel",
            "what an element held before depends on the order of the threads, and so would the derivative",
        )
    return UnsupportedError(
        f"cuda.atomic.{name} on active memory has no derivative in irad",
        "(a) reduce in shared memory between barriers (x[t] = max(x[t], x[t + half])), or (b) do it on an array that "
        "has no derivative",
        "which thread wins is known only when all blocks are done, but a block is reversed before the others have run",
    )


_ATOMICS: Final = {
    "fadd": "add", "fsub": "sub", "fmax": "max", "fmin": "min", "max": "max", "min": "min", "umax": "max",
    "umin": "min", "add": "add", "sub": "sub", "and": "and_", "or": "or_", "xor": "xor", "xchg": "exch",
    "uinc_wrap": "inc", "udec_wrap": "dec",
}  # fmt: skip
"""What Numba calls atomic operations."""


def _updates_numbers(unit: Unit, inst: Instruction) -> bool:
    """Whether an atomic update puts active numbers, or their bits, into memory, or meets some there."""
    pointer, *given = inst.operands
    if any(value in unit.activity.varied for value in given):
        return True
    moved, objects = given[-1].type, unit.activity.varied_objects | unit.activity.shadowed
    if holds_floats(moved):
        return bool(unit.points_to.mask(pointer) & objects)
    return isinstance(moved, IntType) and meets_numbers(unit, pointer, moved, objects)


def _updates_pointers(unit: Unit, inst: Instruction) -> bool:
    """Whether an atomic update moves a pointer to active memory: its shadow would stay behind."""
    given = inst.operands[1:]
    met = given if isinstance(given[-1].type, IntType) else (inst, *given)
    return any(map(unit.activity.has_shadow, met))
