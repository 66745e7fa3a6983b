"""The fold over structures: the order in which they are taken apart and made again, for values and for code alike.

`mapping` runs it over values of Python. `irad.frontend.structures.walk` runs it over types, and writes code that does
the same for values of compiled code. Both are a `Form`, which says what is done at a place; this module says when.

    treatment   what takes the place of a value
    kept        the value itself: no derivative is with respect to it
    vector      what a function makes of it
    viewed      a copy or a given output, whose members are views of its memory and are overwritten
    filled      a copy or a given output, in which members are replaced one by one
    built       a new value around all of its members
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

P = TypeVar("P")
M = TypeVar("M")
R = TypeVar("R")


class Treatment(enum.Enum):
    """Way to make what takes the place of a value."""

    KEPT = "kept"
    VECTOR = "vector"
    VIEWED = "viewed"
    FILLED = "filled"
    BUILT = "built"


class Form(ABC, Generic[P, M, R]):
    """Operation at a place ``P`` with members ``M``; ``R`` are the results that take its place."""

    @abstractmethod
    def treatment(self, place: P) -> Treatment:
        """The way to make the results of a place."""

    @abstractmethod
    def kept(self, place: P) -> R:
        """Results of what has no derivative."""

    @abstractmethod
    def vector(self, place: P) -> R:
        """Results of a vector."""

    @abstractmethod
    def viewed(self, place: P) -> R:
        """Results of what has members in its own memory."""

    @abstractmethod
    def begun(self, place: P) -> R:
        """Results that hold those of members before these are known: given outputs, or copies."""

    @abstractmethod
    def members(self, place: P, begun: R | None) -> Iterable[M]:
        """The members whose results are wanted; ``begun`` is what they are stored in, None where a value is built."""

    @abstractmethod
    def store(self, place: P, member: M, begun: R) -> None:
        """Puts the results of a member where the results of the whole hold them."""

    @abstractmethod
    def built(self, place: P, members: Sequence[M]) -> R:
        """Results around those of all members."""

    @abstractmethod
    def finish(self, place: P, results: R) -> None:
        """Notes the results of a place."""


def steps(form: Form[P, M, R], place: P) -> Iterator[M]:
    """The fold at one place: yields each member, which must have its results when the next one is asked for."""
    match form.treatment(place):
        case Treatment.VECTOR:
            form.finish(place, form.vector(place))
        case Treatment.KEPT:
            form.finish(place, form.kept(place))
        case Treatment.VIEWED:
            form.finish(place, form.viewed(place))
        case Treatment.FILLED:
            begun = form.begun(place)
            form.finish(place, begun)  # before those of members, which may hold it
            for member in form.members(place, begun):
                yield member
                form.store(place, member, begun)
        case Treatment.BUILT:
            members = list(form.members(place, None))
            yield from members
            form.finish(place, form.built(place, members))
