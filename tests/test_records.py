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
