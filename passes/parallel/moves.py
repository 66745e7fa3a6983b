"""Memory that lanes move: copies and fills, whose adjoint in a lane goes through windows, number by number."""

from __future__ import annotations

from dataclasses import dataclass

from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.values import Value

_COPIES = ("llvm.memcpy.", "llvm.memmove.")
_FILL = "llvm.memset."


@dataclass(frozen=True, slots=True)
class Move:
    """A copy of bytes, or a fill, which has no source."""

    into: Value
    source: Value | None
    size: Value


def move_of(call: CallSite) -> Move | None:
    """What a call moves; None if it does anything else."""
    name = call.callee.name if isinstance(call.callee, Function) else None
    if name is None or not name.startswith((*_COPIES, _FILL)):
        return None
    into, source, size = call.arguments[:3]
    return Move(into, None if name.startswith(_FILL) else source, size)
