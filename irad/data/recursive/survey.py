"""The first look at a structure, before anything is written: its parts, which are active, and whether inputs agree.

The first input is the reference. Wherever it holds one object twice, so must the other inputs; results will, too. Given
outputs may hold no object twice that it does not, since such an object would have to become two things.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from irad.data.recursive.kinds import INACTIVE, Container, Inactive, Kind, Vector, kind_of
from irad.errors import HERE, SignatureError
from irad.message import with_article
from irad.records import dataclass

Values: TypeAlias = tuple[Any, ...]
Memo: TypeAlias = dict[Any, Any]
Way: TypeAlias = "tuple[Way, Container, Any] | None"
"""The way to a place: the way to its container, the container and the key there."""


@dataclass(eq=False, slots=True)
class Place:
    """One object of the first input, with what is at the same place of the other inputs and outputs.

    Attributes:
        kind: kind of the object.
        inputs: the object, and its counterparts.
        outputs: structures to overwrite.
        way: the first path to it.
        keys: its identity, also after the call: its id, and where its memory is. Numbers and
            views of fields have none.
        is_fresh: whether it was made when it was asked for, so that nothing else has its id.
        parts: its members, for containers.
        is_active: whether it is or holds a vector.
        is_rebuilt: whether its outputs cannot be kept: they, or what they hold, cannot be overwritten.
        results: its replacements, once they are known.
        merged: where the other inputs hold several objects in place of one of the first, the further ones.
    """

    kind: Kind
    inputs: Values
    outputs: Values | None
    way: Way
    keys: tuple[Any, ...]
    is_fresh: bool
    parts: list[Part] = field(default_factory=list)
    is_active: bool = False
    is_rebuilt: bool = False
    results: Values | None = None
    merged: list[Values] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The way to it as Python writes it: ``[0].weights``."""
        return _written(self.way) or "the top"


@dataclass(eq=False, slots=True)
class Part:
    """A member of a container: its key, its place, and the members of the outputs at that key."""

    key: Any
    place: Place
    outputs: Values | None


def _written(way: Way) -> str:
    words = []
    while way is not None:
        way, kind, key = way
        words.append(kind.way(key))
    return "".join(reversed(words))


def survey(
    inputs: Values,
    outputs: Values | None = None,
    seen: Memo | None = None,
    inactive: Callable[[Any], bool] | None = None,
    *,
    merges: bool = False,
) -> Place:
    """The place of the whole; those of what it holds follow as parts, one object being one place.

    Args:
        inputs: at least one; all of one structure.
        outputs: structures like that, which are to be overwritten.
        seen: by the keys of objects the tuple of what takes their place; they are not looked into.
        inactive: says of an object whether it is inactive, although it may hold vectors.
        merges: whether other inputs may hold several objects where the first holds one.

    Raises:
        SignatureError: the structures differ, or have objects in common where the first input has not.
    """
    surveyor = _Surveyor(seen if seen is not None else {}, inactive, merges=merges)
    root = surveyor.place(inputs, outputs, None)
    surveyor.look_into_all()
    surveyor.merge_all()
    surveyor.check_reads()
    _propagate(surveyor.containers)
    return root


def vectors_of(root: Place) -> Iterator[Place]:
    """The places of vectors, each once, in reading order."""
    done: set[int] = set()
    stack = [root]
    while stack:
        place = stack.pop()
        if not place.is_active or id(place) in done:
            continue
        done.add(id(place))
        if isinstance(place.kind, Vector):
            yield place
        stack.extend(part.place for part in reversed(place.parts))


class _ByValue(tuple[Any, ...]):
    """The identity of something that is recognised by all its counterparts."""

    __slots__ = ()


class _Surveyor:
    def __init__(self, seen: Memo, inactive: Callable[[Any], bool] | None, *, merges: bool) -> None:
        self._seen, self._inactive, self._merges = seen, inactive, merges
        self._open: list[tuple[Place, Iterator[tuple[Any, Values, Values | None]]]] = []  # Python's stack is too small
        self._unmerged: list[tuple[Place, Values]] = []
        self._known: dict[Any, Place] = {}
        self._owners: dict[Any, Place] = {}  # by the identity of an output, the place that overwrites it
        self.containers: list[Place] = []

    def place(self, inputs: Values, outputs: Values | None, way: Way, *, is_fresh: bool = False) -> Place:
        first = inputs[0]
        kind = kind_of(first)
        if isinstance(kind, Inactive) or (self._inactive is not None and self._inactive(first)):
            return Place(INACTIVE, inputs, outputs, way, (), is_fresh)
        identity = kind.identity(first) if _has_identity(kind, way) else None
        if (known := self._known.get(identity)) is not None:
            if _is_repeated(known, inputs):
                return known
            if _has_value_only(kind, first):  # where a tuple is does not matter: it is what it holds
                identity = _ByValue([identity, *map(id, inputs)])
                if (known := self._known.get(identity)) is not None:
                    return known
            elif self._merges:
                self._unmerged.append((known, inputs))
                return known
            else:
                raise _repeated(known, way)
        keys = () if isinstance(identity, _ByValue) else _keys(identity, first, is_fresh=is_fresh)
        place = Place(kind, inputs, outputs, way, keys, is_fresh)
        if identity is not None:
            self._known[identity] = place
            if (found := next(filter(None, map(self._seen.get, place.keys)), None)) is not None:
                self._seen.update(dict.fromkeys(place.keys, found))
                _take(found, place)
                return place
        for other in (*inputs[1:], *(outputs or ())):
            _check_alike(place, other)
        if identity is not None and outputs is not None:
            self._own(place, kind)
        if isinstance(kind, Container):
            self.containers.append(place)
            self._open.append((place, _members(place, kind, inputs, outputs)))
        else:
            place.is_active = True
            place.is_rebuilt = not _are_storage(place)
        return place

    def look_into_all(self) -> None:
        """Finds what containers hold, in reading order."""
        while self._open:
            place, members = self._open[-1]
            assert isinstance(place.kind, Container)
            is_fresh = place.is_fresh or place.kind.makes_members
            for key, inputs, outputs in members:
                part = self.place(inputs, outputs, (place.way, place.kind, key), is_fresh=is_fresh)
                place.parts.append(Part(key, part, outputs))
                if self._open[-1][0] is not place:  # what that holds comes before the next member
                    break
            else:
                self._open.pop()

    def merge_all(self) -> None:
        """Gives places the further objects that other inputs hold there."""
        done: dict[Any, Values] = {}  # keeps objects alive whose ids it holds
        while self._unmerged:
            place, inputs = self._unmerged.pop()
            kind, others = place.kind, inputs[1:]
            if isinstance(kind, Inactive):
                continue
            if not isinstance(kind, Vector) or kind.assign is not None:
                key = (id(place), *map(id, others))
                if key in done or _is_repeated(place, inputs):
                    continue
                done[key] = inputs
            for other in others:
                _check_alike(place, other)
            if isinstance(kind, Vector) or kind.is_memory:
                place.merged.append(others)
                continue
            members = {key: each for key, each, _ in _members(place, kind, inputs, None)}
            self._unmerged += [(part.place, members[part.key]) for part in reversed(place.parts)]

    def check_reads(self) -> None:
        """Refuses to overwrite at one place, before it is read, what is read at another."""
        if not self._owners:
            return
        for place in self._known.values():
            kind = place.kind
            if isinstance(kind, Inactive) or not (isinstance(kind, Vector) or kind.is_memory):
                continue
            for value in place.inputs if place.results is None else ():
                owner = self._owners.get(kind.identity(value), place)
                if owner is not place:
                    raise _overwritten(owner, place)
            for value in itertools.chain.from_iterable(place.merged):  # it is read after the first has been added
                if (other := self._owners.get(kind.identity(value))) is not None:
                    raise _overwritten(other, place)

    def _own(self, place: Place, kind: Vector | Container) -> None:
        for output in place.outputs or ():
            if not _is_storage(kind, output):
                continue  # it is replaced
            identity = kind.identity(output)
            owner = self._owners.get(identity)
            if owner is not None:
                raise SignatureError(
                    f"two outputs hold one object at {place.name}"
                    if owner is place
                    else f"an output holds one object at {owner.name} and {place.name}; the first input holds two",
                    "pass an output that shares no more than the input does, such as irad.data.make_zero(input)",
                    "one object cannot hold two results",
                    HERE,
                )
            self._owners[identity] = place


def _keys(identity: Any, value: Any, *, is_fresh: bool) -> tuple[Any, ...]:
    if identity is None or identity == id(value):
        return () if identity is None or is_fresh else (identity,)
    return (identity,) if is_fresh else (identity, id(value))


def is_same(kind: Vector | Container, one: Any, other: Any) -> bool:
    """True if two values of a kind are one thing."""
    return one is other or (type(one) is type(other) and bool(kind.identity(one) == kind.identity(other)))


def _are_same(place: Place, some: Iterable[Any], others: Iterable[Any]) -> bool:
    """True if values at a place are the same things, one by one."""
    assert not isinstance(place.kind, Inactive)
    return all(map(partial(is_same, place.kind), some, others))


def _has_identity(kind: Kind, way: Way) -> bool:
    if isinstance(kind, Vector) and kind.assign is None:
        return False
    return way is None or not way[1].is_memory


def _take(found: Values, place: Place) -> None:
    place.results, place.is_active = found, True
    place.is_rebuilt = not _are_same(place, found, place.outputs or found)


def _is_repeated(known: Place, inputs: Values) -> bool:
    """True if all inputs hold what they held where the object was met before."""
    return _are_same(known, known.inputs, inputs)


def _has_value_only(kind: Kind, value: Any) -> bool:
    """True if it does not matter which of several equal objects a container is: a tuple, which nobody can change."""
    return isinstance(kind, Container) and kind.identity is id and not kind.is_mutable(value)


def _repeated(known: Place, way: Way) -> SignatureError:
    return SignatureError(
        f"the first input holds one object at {known.name} and {_written(way)}; another input holds two",
        "pass inputs that share what the first one shares, such as copies made by irad.data.copy",
        "each object becomes one object of the result, which has one value",
        HERE,
    )


def _overwritten(owner: Place, place: Place) -> SignatureError:
    return SignatureError(
        f"an output holds at {owner.name} the object that an input holds at {place.name}",
        "pass a copy of the input, made by irad.data.copy",
        "it would be overwritten before it is read",
        HERE,
    )


def _members(
    place: Place, kind: Container, inputs: Values, outputs: Values | None
) -> Iterator[tuple[Any, Values, Values | None]]:
    """For each member its key, what inputs hold there, and what outputs hold there."""
    columns = [dict(kind.members(value)) for value in (*inputs, *(outputs or ()))]
    keys, count = columns[0].keys(), len(inputs)
    if any(column.keys() != keys for column in columns[1:]):
        raise _unlike(place, "do not hold the same members")
    for key in keys:
        members = tuple([column[key] for column in columns])
        yield key, members[:count], None if outputs is None else members[count:]


def _check_alike(place: Place, other: Any) -> None:
    first = place.inputs[0]
    if other is first:
        return
    if type(other) is not type(first) and kind_of(other) is not place.kind:
        raise _unlike(place, f"are {with_article(type(first).__name__)} and {with_article(type(other).__name__)}")
    for what in ("dtype", "shape") if hasattr(first, "shape") and not isinstance(first, np.number) else ():
        mine, its = getattr(first, what, None), getattr(other, what, None)
        if mine != its:
            raise _unlike(place, f"have the {what}s {mine} and {its}")


def _unlike(place: Place, how: str) -> SignatureError:
    return SignatureError(
        f"the structures differ: the values at {place.name} {how}",
        "pass structures of the same form, such as those made by irad.data.make_zero and irad.data.copy",
        "a function of several structures is called with their values at the same place",
        HERE,
    )


# --- what follows from the parts --------------------------------------------------------------------------------------


def _propagate(containers: list[Place]) -> None:
    """Marks holders of active parts as active, and those of replaced parts that cannot be overwritten as rebuilt."""
    holders: dict[int, list[Place]] = {}
    active: list[Place] = []
    for place in containers:
        for part in place.parts:
            if isinstance(part.place.kind, Container):
                holders.setdefault(id(part.place), []).append(place)
            elif part.place.is_active:
                place.is_active = True
        if place.is_active:
            active.append(place)
    _spread(active, holders, _activate)
    if any(place.outputs is not None for place in containers[:1]):
        rebuilt = [place for place in containers if place.is_active and _is_rebuilt_by_itself(place)]
        for place in rebuilt:
            place.is_rebuilt = True
        _spread(rebuilt, holders, _rebuild)


def _spread(stack: list[Place], holders: dict[int, list[Place]], give: Callable[[Place], bool]) -> None:
    """Gives what each place of a stack has to its holders, and theirs."""
    stack = list(stack)
    while stack:
        stack.extend(holder for holder in holders.get(id(stack.pop()), ()) if give(holder))


def _activate(holder: Place) -> bool:
    is_new = not holder.is_active
    holder.is_active = True
    return is_new


def _rebuild(holder: Place) -> bool:
    is_new = not holder.is_rebuilt and not _are_storage(holder)
    holder.is_rebuilt = holder.is_rebuilt or is_new
    return is_new


def _is_storage(kind: Vector | Container, output: Any) -> bool:
    """True if an output can be overwritten, rather than replaced."""
    return kind.may_assign(output) if isinstance(kind, Vector) else kind.is_mutable(output)


def _are_storage(place: Place) -> bool:
    assert not isinstance(place.kind, Inactive)
    return all(map(partial(_is_storage, place.kind), place.outputs or ()))


def _is_rebuilt_by_itself(place: Place) -> bool:
    """True if it cannot be changed, and holds a vector that cannot, or two objects where the first input has one."""
    if _are_storage(place):
        return False
    return any(
        part.place.is_active
        and ((part.place.is_rebuilt and not isinstance(part.place.kind, Container)) or not _has_outputs_of(part))
        for part in place.parts
    )


def _has_outputs_of(part: Part) -> bool:
    """True if what the given outputs hold there is what becomes the result."""
    return _are_same(part.place, part.place.outputs or (), part.outputs or ())
