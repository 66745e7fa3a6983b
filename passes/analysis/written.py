"""Which memory a program may write: its arguments', and what is neither theirs nor its own."""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.types import PointerType
from irad.passes.memory.objects import SEPARATE, ObjectKind
from irad.passes.unit import Unit


def written_parameters(entry: Unit) -> Iterator[int]:
    """Parameters of the entry whose memory the program may write, or what is reached by pointers in it.

    Writes through a pointer of unknown origin may be writes to any of them.
    """
    points_to, written = entry.points_to, entry.effects.written
    unknown = any(item.kind is ObjectKind.UNKNOWN and written >> item.index & 1 for item in points_to.objects)
    for index, param in enumerate(entry.function.params):
        reached = points_to.reachable(points_to.mask(param))  # parameters may share the memory that they lead to
        if isinstance(param.type, PointerType) and (unknown or reached & written):
            yield index


def writes_elsewhere(entry: Unit) -> bool:
    """Whether the program may write to memory that is neither its own nor that of its parameters."""
    written = entry.effects.written
    kinds = {item.kind for item in entry.points_to.objects if written >> item.index & 1}
    return not kinds <= {*SEPARATE, ObjectKind.ARGUMENT}
