"""`irad.records.dataclass` makes what the standard library makes of the same class."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle
from dataclasses import field
from typing import Any

import pytest

from irad.records import dataclass

PARAMETERS: dict[str, dict[str, bool]] = {
    "plain": {},
    "frozen": {"frozen": True},
    "slots": {"frozen": True, "slots": True},
    "identity": {"eq": False, "slots": True},
    "keywords": {"kw_only": True, "frozen": True},
    "without repr": {"repr": False},
}


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float = 2.0


@dataclass
class Tree:
    children: list[Any] = field(default_factory=list)


def classes(parameters: dict[str, bool]) -> list[Any]:
    """The same class by both decorators."""
    found = []
    for decorator in (dataclass, dataclasses.dataclass):

        @decorator(**parameters)
        class Sample:
            """A sample."""

            a: int
            b: Any = 2.0
            hidden: int = field(default=3, repr=False)
            aside: int = field(default=4, compare=False)

        found.append(Sample)
    return found


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_as_the_standard_library(parameters: dict[str, bool]):
    ours, standard = classes(parameters)
    for other in ({"a": 1}, {"a": 2}, {"a": 1, "b": 5}, {"a": 1, "hidden": 7}, {"a": 1, "aside": 9}):
        assert (ours(a=1) == ours(**other)) == (standard(a=1) == standard(**other)), other
    for cls in (ours, standard):
        assert cls(a=1) != Point(1.0), "another class"
    if parameters.get("repr", True):
        assert repr(ours(a=1)) == repr(standard(a=1))
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    if parameters.get("frozen"):
        assert hash(ours(a=1)) == hash(ours(a=1, aside=9)) == hash(standard(a=1))
        with pytest.raises(dataclasses.FrozenInstanceError):
            ours(a=1).a = 2
    assert hasattr(ours(a=1), "__dict__") == hasattr(standard(a=1), "__dict__")
    assert dataclasses.replace(ours(a=1), b=5).b == 5
    assert dataclasses.asdict(ours(a=1)) == dataclasses.asdict(standard(a=1))


def test_a_field_alone_is_compared_by_identity_first():
    @dataclass(frozen=True)
    class Alone:
        value: float

    assert Alone(math.nan) == Alone(math.nan)
    assert Alone(1.0) != Alone(2.0)
    assert hash(Alone(1.0)) == hash((1.0,))


def test_written_methods_stay():
    @dataclass(frozen=True)
    class Written:
        a: int

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert repr(Written(1)) == "mine"
    assert Written(1) == Written(2)
    assert hash(Written(1)) == 7


def test_copies_and_pickles():
    point = Point(1.0)
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == point


def test_what_contains_itself_is_shown():
    tree = Tree()
    tree.children.append(tree)
    assert repr(tree) == "Tree(children=[...])"


@pytest.mark.parametrize("parameters", PARAMETERS.values(), ids=PARAMETERS)
def test_constructors_as_the_standard_library(parameters: dict[str, bool]):
    """The first call compiles it; the second calls what was compiled."""
    ours, standard = classes(parameters)
    for _ in range(2):
        for given in ({"a": 1}, {"a": 1, "aside": None}, {"a": 1, "b": 3, "hidden": 4, "aside": 5}):
            assert dataclasses.asdict(ours(**given)) == dataclasses.asdict(standard(**given))
        for given in ({}, {"a": 1, "c": 2}):
            assert isinstance(refusal_of(ours, given), TypeError)
            assert str(refusal_of(ours, given)) == str(refusal_of(standard, given))
        if not parameters.get("kw_only"):
            assert dataclasses.astuple(ours(1, 2)) == dataclasses.astuple(standard(1, 2))
        else:
            with pytest.raises(TypeError):
                ours(1)


def refusal_of(cls: Any, given: dict[str, Any]) -> Exception | None:
    try:
        cls(**given)
    except TypeError as error:
        return error
    return None


def test_fields_that_are_not_given_and_the_hook():
    for decorator in (dataclass, dataclasses.dataclass):

        @decorator(slots=True)
        class Base:
            items: list[int] = field(default_factory=list)
            made: list[int] = field(default_factory=list, init=False)
            left_out: int = field(init=False)
            constant: int = field(default=7, init=False)

            def __post_init__(self) -> None:
                self.made.append(len(self.items))

        @decorator
        class Derived(Base):
            more: int = 1

        assert (Base([1, 2]).made, Base().items, Base().constant) == ([2], [], 7)
        assert Base().items is not Base().items
        assert (Derived([3], 4).more, Derived([3]).made) == (4, [1])
        assert not hasattr(Base(), "left_out")


def test_a_constructor_that_is_written_stays():
    @dataclass(frozen=True)
    class Twice:
        value: int

        def __init__(self, half: int) -> None:
            object.__setattr__(self, "value", 2 * half)

    assert Twice(3).value == 6


def test_frozen_and_its_subclasses():
    for decorator in (dataclass, dataclasses.dataclass):

        @decorator(frozen=True)
        class Base:
            value: int = 1

        class Derived(Base):
            pass

        derived = Derived()
        derived.other = 3  # type: ignore[attr-defined]
        assert vars(derived) == {"value": 1, "other": 3}
        for change in (
            lambda each: setattr(each, "value", 2),
            lambda each: delattr(each, "value"),
        ):
            for each in (Base(), derived):
                with pytest.raises(dataclasses.FrozenInstanceError, match="'value'"):
                    change(each)
        with pytest.raises(dataclasses.FrozenInstanceError, match="'other'"):
            Base().other = 3  # type: ignore[attr-defined]
