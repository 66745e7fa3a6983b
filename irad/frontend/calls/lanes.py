"""Derivatives in several directions at once, or of several orders: the caller's values for each, its lane.

For an argument with a tangent or a shadow the caller gives a tuple with one for each lane; so with a seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from llvmlite.ir import IRBuilder
from numba.core import types
from numba.core.dispatcher import Dispatcher

from irad.errors import SignatureError
from irad.frontend.calls.task import Task
from irad.frontend.numba.messages import described, location_of
from irad.frontend.values.abi import Argument
from irad.passes.mode import Algebra


def no_directions(dispatcher: Dispatcher) -> SignatureError:
    """The error of a batch whose directions cannot be counted."""
    return SignatureError(
        f"the directions of an irad.BatchDuplicated argument of {dispatcher.py_func.__qualname__} are not a nonempty "
        "tuple",
        "pass a tuple of arrays, or of tangents of a number: irad.BatchDuplicated(x, (first, second))",
        "their number must be known when the derivative is compiled",
        location_of(dispatcher.py_func),
    )


def types_of_lanes(dispatcher: Dispatcher, argument: Argument, given: Any, task: Task) -> tuple[Any, ...]:
    """The types of the values given for an argument, lane by lane.

    Raises:
        SignatureError: there is not one for each lane.
    """
    width = task.mode.width
    if not task.is_batched:
        return (given,)
    if isinstance(given, types.BaseTuple) and len(given.types) == width:
        return tuple(given.types)
    if task.mode.algebra is Algebra.TAYLOR:
        raise SignatureError(
            f"the series of {argument} of {dispatcher.py_func.__qualname__} up to order {width} is {described(given)}",
            f"pass a tuple of {width} coefficients, those of t to t**{width}; for a number, None means zero",
            "the coefficients of the value depend on those of all arguments up to that order",
            location_of(dispatcher.py_func),
            focus=argument.name,
        )
    what = "tangents" if task.is_forward else "shadows"
    raise SignatureError(
        f"the {what} of {argument} of {dispatcher.py_func.__qualname__} in {width} directions are {described(given)}",
        f"pass a tuple of {width} {what}, one for each direction",
        f"all arguments have {what} in the same directions",
        location_of(dispatcher.py_func),
        focus=argument.name,
    )


def seed_types_of_lanes(dispatcher: Dispatcher, given: Any, task: Task) -> tuple[Any, ...]:
    """The types of the cotangents of the value, lane by lane; None stands for all.

    Raises:
        SignatureError: there is not one for each lane.
    """
    width = task.mode.width
    if not task.is_batched:
        return (given,)
    if given == types.none:
        return (given,) * width
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
    if kind == types.none:
        return [seed] * task.mode.width
    return [(builder.extract_value(value, lane), kind.types[lane]) for lane in range(task.mode.width)]


def lanes_of(task: Task, target_types: Mapping[int, Any]) -> list[Mapping[int, Any]]:
    """The types of the values given for each argument, by position, lane by lane."""
    if not task.is_batched:
        return [target_types]
    return [{p: kind.types[lane] for p, kind in target_types.items()} for lane in range(task.mode.width)]


def targets_of_lanes(
    builder: IRBuilder, targets: Mapping[int, tuple[Any, Any]], task: Task
) -> Iterator[Mapping[int, tuple[Any, Any]]]:
    """Destinations of each argument, by position, lane by lane."""
    if not task.is_batched:
        yield targets
        return
    for lane in range(task.mode.width):
        yield {p: (builder.extract_value(value, lane), kind.types[lane]) for p, (value, kind) in targets.items()}
