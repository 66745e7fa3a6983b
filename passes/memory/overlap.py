"""Which memory objects of a function may share bytes.

Input   the objects, which parameters the caller knows not to overlap.
Output  for each object the set of those that it may share bytes with, itself included.
Method  by where objects come from: what the function or its callees allocate is apart from everything but memory of
        unknown origin, and so is what lies behind a ``noalias`` parameter; globals are apart from each other.

    argument x, argument y, allocation m          x: {x, y}; m: {m, unknown}
    the same, x and y known to be apart           x: {x};    m: {m, unknown}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from irad.ir.values import Parameter, Value
from irad.passes.memory.objects import SEPARATE, MemoryObject, ObjectKind, union


def find_overlaps(
    objects: Sequence[MemoryObject], numbers: Mapping[Parameter, int], noalias: Set[tuple[int, int]]
) -> tuple[int, ...]:
    """What each object may share bytes with, as sets of objects.

    Args:
        objects: of the function.
        numbers: of its parameters.
        apart: pairs of parameters that are known not to overlap, the lower number first.
    """
    separate = _set_of(item for item in objects if item.kind in SEPARATE)
    unknown = _set_of(item for item in objects if item.kind is ObjectKind.UNKNOWN)
    others = [item for item in objects if item.kind not in SEPARATE]

    def overlaps_of(item: MemoryObject) -> int:
        if item.kind in SEPARATE:
            return 1 << item.index | unknown
        shared = _set_of(other for other in others if _may_share(item, other, numbers, noalias))
        return shared | separate if item.kind is ObjectKind.UNKNOWN else shared

    return tuple(overlaps_of(item) for item in objects)


def _set_of(items: Iterable[MemoryObject]) -> int:
    return union(1 << item.index for item in items)


def _may_share(
    a: MemoryObject, b: MemoryObject, numbers: Mapping[Parameter, int], noalias: Set[tuple[int, int]]
) -> bool:
    """Whether two objects that are not separate may share bytes."""
    if a is b:
        return True
    kinds = (a.kind, b.kind)
    if a.is_exclusive or b.is_exclusive:
        return False
    if kinds == (ObjectKind.ARGUMENT, ObjectKind.ARGUMENT) and _are_apart(a.value, b.value, numbers, noalias):
        return False
    return kinds != (ObjectKind.GLOBAL, ObjectKind.GLOBAL)


def _are_apart(
    a: Value | None, b: Value | None, numbers: Mapping[Parameter, int], noalias: Set[tuple[int, int]]
) -> bool:
    """Whether the caller knows that two parameters' memory does not overlap."""
    if not isinstance(a, Parameter) or not isinstance(b, Parameter):
        return False
    first, second = sorted((numbers[a], numbers[b]))
    return (first, second) in noalias
