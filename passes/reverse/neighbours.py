"""Additions of a loop to adjacent places, and whether its iterations touch memory that others write.

Input   a candidate of `increments`.
Output  `Neighbours`: groups of additions to the same elements; `independent`: what has to hold for iterations to run in
        any order, side by side.
Method  addresses are linear in the iteration. Places with one root are told apart by their distance and the stride,
        others by a check in front of the loop.

    x_bar[i] += a;  x_bar[i + 1] -= b;  y_bar[i] += c      two groups: numbers 0 and 1 of x_bar, number 0 of y_bar
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Final

from irad.ir.instructions import Instruction, Store
from irad.ir.values import Value
from irad.passes.reverse.increments import Addition, Candidate, Place, may_touch
from irad.passes.reverse.sweep import Sweep
from irad.records import dataclass

# Each stride between two additions is a number that the loop passes on in a register.
_MOST_APART: Final = 8
"""The most strides between neighbours."""
_MOST_CHECKS: Final = 48


@dataclass(eq=False, slots=True)
class Neighbours:
    """Additions to the same elements of one array.

    Attributes:
        root: the address that their offsets are relative to.
        offset: in bytes, of those at number 0.
        numbers: of each addition: how many strides it lies after that.
    """

    root: Value
    offset: int
    numbers: dict[Addition, int] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The lowest number."""
        return min(self.numbers.values())

    @property
    def spread(self) -> int:
        """Number of strides between the lowest and the highest."""
        return max(self.numbers.values()) - self.first

    @property
    def hull(self) -> Place:
        """Place that covers all bytes that they touch in one iteration."""
        return hull_of([one.place for one in self.numbers])

    @property
    def example(self) -> Addition:
        """Any addition of the group."""
        return next(iter(self.numbers))


def hull_of(places: Sequence[Place]) -> Place:
    """The bytes from the first to the last of some places at offsets from one root."""
    low = min(place.offset for place in places)
    return Place(places[0].root, low, max(place.offset + place.size for place in places) - low)


@dataclass(slots=True)
class Independence:
    """Reasons why the iterations of a loop are independent.

    Attributes:
        checks: pairs of places that must be apart in all iterations.
        least_steps: by root whose stride is known when the loop runs: how many bytes that must have at least.
    """

    checks: dict[tuple[Place, Place], None] = field(default_factory=dict)
    least_steps: dict[Value, int] = field(default_factory=dict)


def neighbours_of(found: Candidate) -> list[Neighbours]:
    """The additions of a loop in groups."""
    groups: list[Neighbours] = []
    for addition in found.additions:
        place, stride = addition.place, found.strides.of(addition.place.root)
        near = next((each for each in groups if _belongs(addition, each, stride)), None)
        if near is None:
            near = Neighbours(place.root, place.offset)
            groups.append(near)
        near.numbers[addition] = (place.offset - near.offset) // stride if isinstance(stride, int) and stride else 0
    return groups


def _belongs(addition: Addition, group: Neighbours, stride: object) -> bool:
    """True if an addition lies beside those of a group."""
    place, other = addition.place, group.example
    distance = place.offset - group.offset
    if place.root is not group.root or place.size != other.place.size:
        return False
    # One access stands for the whole group and has the metadata of one of them, which must be true of all.
    if other.store.metadata.get("alias.scope") != addition.store.metadata.get("alias.scope"):
        return False
    # Neighbours are counted in strides, which have to be known and no shorter than an element.
    if not isinstance(stride, int) or abs(stride) < place.size:
        return distance == 0
    numbers = [*group.numbers.values(), distance // stride]
    return distance % stride == 0 and max(numbers) - min(numbers) <= _MOST_APART


def independent(sweep: Sweep, found: Candidate, groups: Sequence[Neighbours]) -> Independence | None:
    """Reasons why iterations are independent, but for sums; None if they are not."""
    if found.needs_order:
        return None
    wanted = Independence(checks_of(found, groups))
    accesses = [_Access(each.example.store, each.hull, each) for each in groups if found.strides.of(each.root) != 0]
    accesses += [_Access(inst, place) for inst, place in found.others.items()]
    if not all(_goes_on(found, each, wanted) for each in accesses if each.writes):
        return None
    meeting = [
        (one, other)
        for one, other in combinations(accesses, 2)
        if (one.writes or other.writes) and may_touch(sweep, one.inst, other.inst)
    ]
    if not all(_are_apart(found, one, other, wanted) for one, other in meeting):
        return None
    wanted.checks = _by_root(wanted.checks)
    return wanted if len(wanted.checks) <= _MOST_CHECKS else None


def commute(sweep: Sweep, found: Candidate) -> bool:
    """True if iterations may run in any order, one after the other, without a check: additions to shadows commute."""
    wanted = Independence()
    accesses = [_Access(inst, place) for inst, place in found.others.items()]
    accesses += [
        _Access(each.store, each.place, Neighbours(each.place.root, each.place.offset, {each: 0}))
        for each in found.additions
    ]
    meeting = [
        (one, other)
        for one, other in combinations(accesses, 2)
        # Iterations run one after the other, and two additions commute whatever they touch.
        if (one.writes or other.writes) and (one.group is None or other.group is None)
        if may_touch(sweep, one.inst, other.inst)
    ]
    stores = (each for each in accesses if each.writes and each.group is None)
    are_apart = all(_goes_on(found, each, wanted) for each in stores) and all(
        _are_apart(found, one, other, wanted) for one, other in meeting
    )
    return are_apart and not found.needs_order and not wanted.checks and not wanted.least_steps


def _by_root(checks: Mapping[tuple[Place, Place], None]) -> dict[tuple[Place, Place], None]:
    """One check in place of those between places at offsets from the same two roots."""
    places: dict[Value, list[Place]] = {}
    for pair in checks:
        for place in pair:
            places.setdefault(place.root, []).append(place)
    hulls = {root: hull_of(behind) for root, behind in places.items()}
    pairs = {frozenset((one.root, other.root)): (hulls[one.root], hulls[other.root]) for one, other in checks}
    return dict.fromkeys(pairs.values())


def checks_of(found: Candidate, groups: Sequence[Neighbours]) -> dict[tuple[Place, Place], None]:
    """Places from which additions must be apart, by group."""
    hulls = {one.place: each.hull for each in groups for one in each.numbers}
    return {(hulls[one], other): None for one, other in found.checks}


@dataclass(frozen=True, slots=True)
class _Access:
    """Memory that an instruction, or a group of additions, touches."""

    inst: Instruction
    hull: Place | None
    group: Neighbours | None = None

    @property
    def writes(self) -> bool:
        return isinstance(self.inst, Store)

    @property
    def places(self) -> list[Place | None]:
        return [self.hull] if self.group is None else [one.place for one in self.group.numbers]


def _goes_on(found: Candidate, access: _Access, wanted: Independence) -> bool:
    """True if the places of an access are others in each iteration."""
    for place in access.places:
        if place is None:
            return False
        stride = found.strides.of(place.root)
        if not isinstance(stride, int):
            wanted.least_steps[place.root] = max(place.size, wanted.least_steps.get(place.root, 0))
        elif abs(stride) < place.size:
            return False
    return True


def _are_apart(found: Candidate, one: _Access, other: _Access, wanted: Independence) -> bool:
    """True if what one iteration does to one and another to the other is apart, by a check if need be."""
    if one.hull is None or other.hull is None:
        return False
    if one.hull.root is not other.hull.root:
        wanted.checks[one.hull, other.hull] = None
        return True
    stride = found.strides.of(one.hull.root)
    is_dense = isinstance(stride, int) and abs(stride) == one.hull.size
    if one.writes and one.hull == other.hull and not is_dense:
        return False  # of loops that are independent LLVM reorders strided accesses without a look at an iteration
    return all(_lie_apart(found, a, b, wanted) for a in one.places for b in other.places if a and b)


def _lie_apart(found: Candidate, one: Place, other: Place, wanted: Independence) -> bool:
    """True if two places at offsets from one root never overlap."""
    stride, distance, size = found.strides.of(one.root), abs(one.offset - other.offset), max(one.size, other.size)
    if not isinstance(stride, int):
        wanted.least_steps[one.root] = max(distance + size, wanted.least_steps.get(one.root, 0))
        return distance >= size or one == other
    if one == other:
        return abs(stride) >= size
    return stride != 0 and size <= distance % abs(stride) <= abs(stride) - size
