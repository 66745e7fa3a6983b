"""What a Python value is to the recursion: a vector, a container, or inactive; and the registration of types.

The kind of a value follows from its type, and for arrays from the dtype. A type that is not registered has the kind of
the nearest class that it is derived from; one that has none is inactive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irad.errors import HERE, SignatureError

Member: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """The kind of values that are vectors by themselves: numbers, arrays, and types that are registered as such.

    Attributes:
        zero: the zero of the space that a value is in.
        dot: the sum of the products of conjugated elements of one value and elements of another.
        read: the elements of a value as a flat array of doubles; a complex number is two of them.
        refilled: a value like another one, with elements from a flat array of doubles.
        length: how many doubles `read` returns.
        assign: ``assign(target, source)`` overwrites the elements of a value; None where values are immutable.
        is_writable: whether `assign` may be called for a value.
        takes_ufuncs: whether the functions of NumPy take values, also as ``out``.
        identity: equal for values that are one thing: an object's id, or where its memory is.
    """

    zero: Callable[[Any], Any]
    dot: Callable[[Any, Any], Any]
    read: Callable[[Any], NDArray[np.float64]]
    refilled: Callable[[Any, NDArray[np.float64]], Any]
    length: Callable[[Any], int]
    assign: Callable[[Any, Any], None] | None = None
    is_writable: Callable[[Any], bool] = lambda value: True
    takes_ufuncs: bool = False
    identity: Callable[[Any], Any] = id

    def may_assign(self, value: Any) -> bool:
        """Whether a value is storage that can be overwritten."""
        return self.assign is not None and self.is_writable(value)


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """The kind of values that hold other values.

    The recursion makes one that can be filled as a shallow copy, in which members are replaced; one that cannot is
    built around all of its members.

    Attributes:
        members: key and value of each member that there is; two values of one structure have the same keys.
        way: how Python writes the way to a member: ``[3]``, ``.weights``.
        copied: a copy that holds the same members; None where values are built.
        store: replaces the member at a key.
        built: a value like another one with other members, in the order of `members`, maybe of other types.
        is_mutable: whether users may replace members of a value.
        fields: the names of the attributes of an instance; None for other containers.
        is_memory: whether members are views of the memory of a value, so that what is written to them is stored.
        identity: as for a vector.
        makes_members: whether members are Python objects that are made whenever they are asked for: their ids say
            nothing afterwards.
    """

    members: Callable[[Any], Iterable[Member]]
    way: Callable[[Any], str]
    copied: Callable[[Any], Any] | None = None
    store: Callable[[Any, Any, Any], None] | None = None
    built: Callable[[Any, list[Any]], Any] | None = None
    is_mutable: Callable[[Any], bool] = lambda value: True
    fields: Callable[[Any], tuple[str, ...]] | None = None
    is_memory: bool = False
    identity: Callable[[Any], Any] = id
    makes_members: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Inactive:
    """The kind of values that no derivative is with respect to."""


INACTIVE: Final = Inactive()
Kind: TypeAlias = Vector | Container | Inactive
Chooser: TypeAlias = Callable[[Any], Kind]
"""Where the kind of a value depends on more than its type."""

_registered: Final[dict[type, Kind | Chooser]] = {}
_found: Final[dict[type, Kind | Chooser]] = {}
_families: Final[list[Callable[[type], Kind | Chooser | None]]] = []
_listeners: Final[list[Callable[[], None]]] = [_found.clear]


def kind_of(value: Any) -> Kind:
    """What a value is to the recursion."""
    kind = kind_of_type(type(value))
    return kind if isinstance(kind, Vector | Container | Inactive) else kind(value)


def kind_of_type(cls: type) -> Kind | Chooser:
    """What values of a type are, or what says so of each."""
    return _found.get(cls) or _look_up(cls)


def _look_up(cls: type) -> Kind | Chooser:
    found = _of_class(cls)
    _found[cls] = found
    return found


def _of_class(cls: type) -> Kind | Chooser:
    if cls in _registered:
        return _registered[cls]
    for family in _families:
        if (kind := family(cls)) is not None:
            return kind
    return next((_registered[base] for base in cls.__mro__ if base in _registered), INACTIVE)


def set_kind(cls: type, kind: Kind | Chooser) -> None:
    """States the kind of the values of a class, and of those of its subclasses that have none of their own."""
    _registered[cls] = kind
    _forget_found()


def add_family(family: Callable[[type], Kind | Chooser | None]) -> None:
    """States kinds of classes that have no common base: of a dataclass, say.

    A class that is registered comes first, then the family that was stated last.
    """
    _families.insert(0, family)
    _forget_found()


def forget_kind(cls: type) -> None:
    """Takes back what `set_kind` was called with."""
    if cls not in _registered:
        raise SignatureError(
            f"{cls.__qualname__} is not registered",
            "pass the class that was registered itself, not one derived from it",
            "a registration is of one class, though it holds for those derived from it",
            HERE,
        )
    del _registered[cls]
    _forget_found()


def when_changed(forget: Callable[[], None]) -> None:
    """Has a function called whenever the kind of a class may have changed."""
    _listeners.append(forget)


def _forget_found() -> None:
    for forget in _listeners:
        forget()
