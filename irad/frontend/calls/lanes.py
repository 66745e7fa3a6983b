"""Derivatives in several directions at once: what the caller gives for each of them, its lane.

For an argument with a tangent or a shadow the caller gives a tuple with one for each lane; so with a seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llvmlite.ir import IRBuilder
from numba.core import types

from irad.errors import SignatureError
from irad.frontend.calls.annotations import Task
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.messages import described
from irad.frontend.values.abi import Argument


def types_of_lanes(dispatcher: Any, argument: Argument, given: Any, task: Task) -> tuple[Any, ...]:
    """The types of what is given for an argument, lane by lane.

    Raises:
        SignatureError: there is not one for each lane.
    """
    width = task.mode.width
    if not task.is_batched:
        return (given,)
    if isinstance(given, types.BaseTuple) and len(given.types) == width:
        return tuple(given.types)
    what = "tangents" if task.is_forward else "shadows"
    raise SignatureError(
        f"the {what} of {argument} of {dispatcher.py_func.__qualname__} in {width} directions are {described(given)}",
        f"pass a tuple of {width} {what}, one for each direction",
        f"all arguments have {what} in the same directions",
        location_of(dispatcher.py_func),
        focus=argument.name,
    )


def seed_types_of_lanes(dispatcher: Any, given: Any, task: Task) -> tuple[Any, ...]:
    """The types of the cotangents of the value, lane by lane.

    Raises:
        SignatureError: there is not one for each lane.
    """
    width = task.mode.width
    if not task.is_batched:
        return (given,)
    if isinstance(given, types.BaseTuple) and len(given.types) == width:
        return tuple(given.types)
    raise SignatureError(
        f"the cotangents of the value of {dispatcher.py_func.__qualname__} in {width} directions are "
        f"{described(given)}",
        f"pass a tuple of {width} cotangents, one for each direction",
        "the shadows of the arguments are given in as many directions",
        location_of(dispatcher.py_func),
    )


def seeds_of_lanes(builder: IRBuilder, seed: tuple[Any, Any], task: Task) -> list[tuple[Any, Any]]:
    """The cotangents of the value with their types, lane by lane."""
    if not task.is_batched:
        return [seed]
    value, kind = seed
    return [(builder.extract_value(value, lane), kind.types[lane]) for lane in range(task.mode.width)]


def targets_of_lanes(
    builder: IRBuilder, targets: Mapping[int, tuple[Any, Any]], task: Task
) -> Iterator[Mapping[int, tuple[Any, Any]]]:
    """What is given for each argument, by position, lane by lane."""
    if not task.is_batched:
        yield targets
        return
    for lane in range(task.mode.width):
        yield {p: (builder.extract_value(value, lane), kind.types[lane]) for p, (value, kind) in targets.items()}
