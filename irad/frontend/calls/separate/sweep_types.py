"""The types of what the two sweeps return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numba.core import types

from irad.frontend.calls.lanes import lanes_of
from irad.frontend.calls.result_types import gradient_types_of, in_all_lanes
from irad.frontend.calls.separate.state import STATE_TYPE
from irad.frontend.derivation import Derivation
from irad.frontend.memory.shadows import BYTES
from irad.frontend.values import gradients
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content


def augmented_type(derivation: Derivation, targets: Mapping[int, Any]) -> Any:
    """What the forward sweep returns; ``targets`` are the types of the given shadows, by position.

    The shadows are those of the first direction, then of the second, ….
    """
    shadows = types.BaseTuple.from_types(
        tuple(each for lane in lanes_of(derivation.task, targets) for each in _shadow_types(derivation, lane))
    )
    return types.Tuple((types.intp, gradients.owned_type(derivation.return_type), STATE_TYPE, shadows))


def _shadow_types(derivation: Derivation, targets: Mapping[int, Any]) -> tuple[Any, ...]:
    """The types of the shadows in one direction."""
    return (
        *(_shadow_type(argument, leaf, targets) for argument, leaf in derivation.active_memory()),
        *(BYTES for _ in derivation.active_lists()),
        *((BYTES, BYTES) if derivation.active_objects() else ()),
        *(part_of_type(targets[a.position], leaf.path) for a, leaf in objects_given(derivation)),
    )


def objects_given(derivation: Derivation) -> list[tuple[Argument, Content]]:
    """The objects that the caller gives memory for."""
    role_of = derivation.task.role_of
    return [(a, leaf) for a, leaf in derivation.active_objects() if role_of(a.position).takes_derivative]


def part_of_type(given: Any, path: tuple[int, ...]) -> Any:
    """The type of a part of nested tuples."""
    for step in path:
        given = given.types[step]
    return given


def _shadow_type(argument: Argument, leaf: Content, targets: Mapping[int, Any]) -> Any:
    """The type of the shadow of an array or record; that of a record is an array of one."""
    if not leaf.is_array:
        return types.Array(leaf.type, 0, "C")
    if argument.position not in targets:
        return types.Array(leaf.type.dtype, leaf.type.ndim, leaf.type.layout)
    return part_of_type(targets[argument.position], leaf.path)


def gradients_type(derivation: Derivation, targets: Mapping[int, Any]) -> Any:
    """What the pullback returns: one entry for each argument."""
    return types.BaseTuple.from_types(
        tuple(
            in_all_lanes(derivation.task, gradient_types_of(derivation, a.position, targets))
            if derivation.task.role_of(a.position).is_returned
            else types.none
            for a in derivation.arguments
        )
    )
