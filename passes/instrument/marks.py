"""Places of a derivative that have numbers: those that debug mode watches, and those that the meter of the tape counts.

`watch` and `meter` put them into the code, `watched` says where in the source they are.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from irad.ir.instructions import Instruction
from irad.ir.loops import Loop
from irad.ir.module import Function
from irad.ir.values import Value
from irad.passes.variant import Variant
from irad.records import dataclass


class MarkKind(enum.Enum):
    """Reason for which a place is watched."""

    VALUE = "value"  # an operation of the primal
    DERIVATIVE = "derivative"  # one of an adjoint
    TANGENT = "tangent"  # one of a tangent, in forward mode
    TIE = "tie"  # something decided by two numbers
    CALL = "call"  # where a function of the program is called
    OPAQUE = "opaque"  # a call into code that is not looked into

    @property
    def is_derivative(self) -> bool:
        """True if it is an operation on derivatives."""
        return self in (MarkKind.DERIVATIVE, MarkKind.TANGENT)


@dataclass(frozen=True, eq=False, slots=True)
class WatchedOperation:
    """An operation that is watched.

    Attributes:
        kind: its purpose.
        words: the operation, with ``{0}`` for the first operand.
        primal: of an operation on derivatives, what that is the derivative of; else "".
        ruled: symbol of the function with a rule that is called; else None.
        in_lane: it is in the body of a parallel loop; the outermost loop around it goes through the lane's chunks.
    """

    kind: MarkKind
    words: str
    primal: str
    ruled: str | None
    in_lane: bool


@dataclass(frozen=True, eq=False, slots=True)
class Mark(WatchedOperation):
    """A place that is watched.

    Attributes:
        inst: an instruction that says where it is.
        loops: of the loops around it, outermost first, the slot of the iteration number and the loop.
    """

    inst: Instruction
    loops: tuple[tuple[int, Loop], ...]


@dataclass(frozen=True, eq=False, slots=True)
class TapePart:
    """One value in a unit of a place.

    Attributes:
        value: of the forward sweep; None for what is not a value: links, shadows of local variables, padding.
        bytes: that it takes.
        storage: "frame", "slab" or "record"; "kept" for memory whose size only the program knows: shadows
            of what the function allocates, and what rules keep.
    """

    value: Value | None
    bytes: int
    storage: str


@dataclass(frozen=True, eq=False, slots=True)
class TapeMark:
    """A place of the tape, with the contents of one unit.

    Attributes:
        inst: the allocating instruction; None if it has no place in the source.
        parts: parts of one unit.
        frame_of: a unit is the frame of this variant's pair, after ``parts``.
        loop: of the primal, the innermost in whose iterations it is filled; None outside loops.
    """

    inst: Instruction | None
    parts: tuple[TapePart, ...]
    frame_of: Variant | None = None
    loop: Loop | None = None


@dataclass(frozen=True, eq=False, slots=True)
class FrameParts:
    """Parts of the frame of a variant's pair, and the primal."""

    function: Function
    parts: tuple[TapePart, ...]


def parts_of(mark: TapeMark, frames: Mapping[Variant, FrameParts]) -> tuple[TapePart, ...]:
    """Parts of the tape of a unit, when all pairs are finished."""
    frame = frames.get(mark.frame_of) if mark.frame_of is not None else None
    return (*mark.parts, *(frame.parts if frame is not None else ()))
