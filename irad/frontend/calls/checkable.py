"""Which derivatives `retry` can look through for NaN: numbers, and arrays of them side by side."""

from __future__ import annotations

from collections.abc import Sequence

from numba.core import types

from irad.frontend.calls.annotations import Role, Task
from irad.frontend.values import layouts
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind


def checked_axes(arguments: Sequence[Argument], task: Task) -> tuple[int, ...] | None:
    """How many axes each array has that a derivative goes to; None where not all can be looked through, or need be."""
    if not task.speculates or any(is_generator(leaf) for argument in arguments for leaf in argument.leaves):
        return None
    active = [leaf for a in arguments if task.role_of(a.position) is not Role.CONST for leaf in a.leaves]
    if not all(map(_is_checkable, active)):
        return None
    return tuple(leaf.type.ndim for leaf in active if leaf.kind is LeafKind.ARRAY)


def is_generator(leaf: Content) -> bool:
    """Whether a part of an argument draws random numbers, others in each run."""
    return isinstance(leaf.type, types.NumPyRandomGeneratorType)


def _is_checkable(leaf: Content) -> bool:
    if leaf.kind is LeafKind.ARRAY:
        return leaf.type.layout in ("C", "F") and leaf.element in (*layouts.FLOATS, *layouts.COMPLEX)
    return leaf.kind in (LeafKind.NUMBER, LeafKind.INERT)
