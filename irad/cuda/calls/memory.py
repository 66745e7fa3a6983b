"""Memory that arguments share, decided by the extents of arrays when a kernel is launched.

* A shadow overlaps no array that is passed for itself, and no shadow of another direction.
* Arrays that overlap have shadows that overlap in the same way: the same distance from array to shadow.
* Arrays that do not overlap have shadows that do not overlap.
* A constant does not overlap an array that has a derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TypeAlias

from irad.cuda.calls.annotated import ArrayPart, NumberPart
from irad.cuda.devices.device import ArrayView, Device
from irad.cuda.devices.pool import Buffer
from irad.errors import SignatureError


def overlap(left: ArrayView, right: ArrayView) -> bool:
    """True if two arrays have an address in common, as far as their extents tell."""
    (low, high), (other_low, other_high) = left.extent, right.extent
    return low < other_high and other_low < high and low < high and other_low < other_high


def check_overlap(arrays: Sequence[ArrayPart], numbers: Sequence[NumberPart]) -> bool:
    """Checks the rules above.

    Returns:
        Whether each array that has a derivative lies apart from all others.

    Raises:
        SignatureError: two of them do not go together; it names the arguments.
    """
    _check_shadows_apart_from_arrays(arrays)
    _check_directions(arrays)
    _check_places(arrays, numbers)
    check_constants(arrays)
    for left, right in combinations(arrays, 2):
        if left.is_active and right.is_active:
            _check_pair(left, right, together=overlap(left.view, right.view))
    return lie_apart(arrays)


def lie_apart(arrays: Sequence[ArrayPart]) -> bool:
    """True if each array that has a derivative lies apart from all others."""
    pairs = combinations(arrays, 2)
    return not any(overlap(left.view, right.view) for left, right in pairs if left.is_active or right.is_active)


def check_constants(arrays: Sequence[ArrayPart]) -> None:
    """Checks the last of the rules above.

    Raises:
        SignatureError: a constant overlaps an array that has a derivative.
    """
    for left, right in combinations(arrays, 2):
        if left.is_active is not right.is_active and overlap(left.view, right.view):
            active, constant = (left, right) if left.is_active else (right, left)
            raise SignatureError(
                f"{constant.name} is constant and shares memory with {active.name}, which has a derivative",
                f"(a) pass a copy of {constant.name}, or (b) annotate both as irad.Duplicated, with the same shadow",
                "an element that is reached in two ways has one derivative",
            )


def _check_shadows_apart_from_arrays(arrays: Sequence[ArrayPart]) -> None:
    for part in arrays:
        for shadow in part.shadows:
            other = next((each for each in arrays if overlap(shadow, each.view)), None)
            if other is not None:
                whose = "it" if other is part else other.name
                raise SignatureError(
                    f"the shadow of {part.name} shares memory with {whose}",
                    "pass separate memory, filled with zeros for an array that is only read",
                    "the derivative would overwrite values that the kernel uses",
                )


def _check_directions(arrays: Sequence[ArrayPart]) -> None:
    lanes = [(part, lane, shadow) for part in arrays for lane, shadow in enumerate(part.shadows)]
    for (part, lane, shadow), (other, other_lane, other_shadow) in combinations(lanes, 2):
        if lane != other_lane and overlap(shadow, other_shadow):
            raise SignatureError(
                f"the shadows of {part.name} and {other.name} in different directions share memory",
                "pass separate arrays",
                "each direction has a derivative of its own",
            )


def _check_pair(left: ArrayPart, right: ArrayPart, *, together: bool) -> None:
    """Two arrays that have a derivative."""
    if together and (left.is_workspace or right.is_workspace):
        raise SignatureError(
            f"{left.name} and {right.name} share memory, and irad.Cache makes a shadow of its own",
            "annotate both as irad.Duplicated, with shadows that share memory in the same way",
            "an element that is reached in two ways has one derivative",
        )
    for shadow, other in zip(left.shadows, right.shadows, strict=False):
        if together and shadow.address - left.view.address != other.address - right.view.address:
            raise SignatureError(
                f"{left.name} and {right.name} share memory, and their shadows do not share it in the same way",
                "(a) pass the same shadow for the same array, and the same views of it, or (b) pass copies",
                "an element that is reached in two ways has one derivative",
            )
        if not together and overlap(shadow, other):
            raise SignatureError(
                f"the shadows of {left.name} and {right.name} share memory, and the arrays do not",
                "pass separate shadows",
                "the derivatives with respect to both would be added up",
            )


def _check_places(arrays: Sequence[ArrayPart], numbers: Sequence[NumberPart]) -> None:
    """Refuses memory for cotangents of numbers that overlaps with anything else."""
    places = [(number.name, place) for number in numbers for place in number.places]
    others = [(part.name, each) for part in arrays for each in (part.view, *part.shadows)]
    pairs = [*((place, other) for place in places for other in others), *combinations(places, 2)]
    for (name, place), (other_name, other) in pairs:
        if overlap(place, other):
            raise SignatureError(
                f"the memory for the derivative with respect to {name} is shared with {other_name}",
                "pass memory of its own",
                "the derivative is added to it while the kernel runs",
            )


# Copies of memory that a launch may change, to put it back.

MemoryRange: TypeAlias = tuple[int, int]
"""The first address, and that after the last."""
Copy: TypeAlias = tuple[MemoryRange, Buffer]
"""A range of memory and the copy of its content."""


def extents_of(views: Iterable[ArrayView]) -> list[MemoryRange]:
    """Ranges of memory that arrays span, without empty ones."""
    return [view.extent for view in views if view.size]


def merged(extents: Sequence[MemoryRange]) -> list[MemoryRange]:
    """Extents that share no address, which cover the same."""
    found: list[MemoryRange] = []
    for low, high in sorted(extents):
        if found and low < found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def copied(device: Device, extents: Sequence[MemoryRange], lend: Callable[[int], Buffer], stream: int) -> list[Copy]:
    """Copies of memory, in buffers that ``lend`` gives."""
    found = []
    for low, high in extents:
        copy = lend(high - low)
        device.copy(copy.address, low, high - low, stream)
        found.append(((low, high), copy))
    return found


def put_back(device: Device, copies: Sequence[Copy], stream: int) -> None:
    """Restores memory from the copy."""
    for (low, high), copy in copies:
        device.copy(low, copy.address, high - low, stream)
