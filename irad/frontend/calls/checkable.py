"""Which derivatives `retry` can look through for NaN: numbers, and arrays of them side by side."""

from __future__ import annotations

from collections.abc import Sequence

from numba.core import types

from irad.frontend.calls.annotations import Role, Task
from irad.frontend.values import layouts
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind


def is_checkable(arguments: Sequence[Argument], task: Task) -> bool:
    """Whether all that a derivative goes to can be looked through, where a caller is going to."""
    if not task.speculates or any(is_generator(leaf) for argument in arguments for leaf in argument.leaves):
        return False
    active = (leaf for a in arguments if task.role_of(a.position) is not Role.CONST for leaf in a.leaves)
    return all(map(_is_checkable, active))


def is_generator(leaf: Content) -> bool:
    """Whether a part of an argument draws random numbers, others in each run."""
    return isinstance(leaf.type, types.NumPyRandomGeneratorType)


def _is_checkable(leaf: Content) -> bool:
    if leaf.kind is LeafKind.ARRAY:
        return leaf.type.layout in ("C", "F") and leaf.element in (*layouts.FLOATS, *layouts.COMPLEX)
    return leaf.kind in (LeafKind.NUMBER, LeafKind.INERT)
