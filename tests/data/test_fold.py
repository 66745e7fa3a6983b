"""One fold over structures: what it does in which order, and that values and types are treated alike."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numba import float64, typed, typeof
from numba.core import types
from numba.experimental import jitclass

from irad.data.recursive import kinds as kinds_of_values
from irad.data.recursive.fold import Form, Treatment, steps
from irad.frontend.structures import kinds as kinds_of_types
from irad.frontend.values import instances as instances  # registers jitclasses
from irad.frontend.values.tree import content_of

Pair = namedtuple("Pair", "a b")
RECORDS = np.zeros(2, [("x", np.float64), ("n", np.int64)])


@jitclass([("x", float64)])
class Cell:
    def __init__(self):
        self.x = 1.0


def typed_list() -> typed.List:
    return typed.List([1.0, 2.0])


def table() -> typed.Dict:
    made = typed.Dict.empty(types.int64, types.float64)
    made[1] = 2.0
    return made


@pytest.mark.parametrize(
    ("value", "treatment"),
    [
        (3, Treatment.KEPT),
        ("text", Treatment.KEPT),
        (1.0, Treatment.VECTOR),
        (1.0 + 2.0j, Treatment.VECTOR),
        (np.ones(2), Treatment.VECTOR),
        (RECORDS, Treatment.VIEWED),
        (RECORDS[0], Treatment.VIEWED),
        ((1.0, 2.0), Treatment.BUILT),
        (Pair(1.0, np.ones(2)), Treatment.BUILT),
        (typed_list, Treatment.FILLED),
        (table, Treatment.FILLED),
        (Cell, Treatment.FILLED),
    ],
    ids=lambda each: getattr(each, "__name__", type(each).__name__),
)
def test_a_value_and_its_type_are_treated_alike(value: Any, treatment: Treatment):
    value = value() if callable(value) else value  # each process of a run would compile for it, as it imports this
    assert kinds_of_values.kind_of(value).treatment is treatment
    assert kinds_of_types.kind_of(content_of(typeof(value))).treatment is treatment


@dataclass(eq=False)
class Place:
    value: Any
    results: Any = None


@dataclass
class Written(Form[Place, Place, str]):
    """Writes an expression of lists and tuples, and the order in which results are known."""

    known: list[str] = field(default_factory=list)

    def write(self, value: Any) -> str:
        place = Place(value)
        for member in steps(self, place):
            member.results = self.write(member.value)
        return place.results

    def treatment(self, place: Place) -> Treatment:
        found = {tuple: Treatment.BUILT, list: Treatment.FILLED, float: Treatment.VECTOR, memoryview: Treatment.VIEWED}
        return found.get(type(place.value), Treatment.KEPT)

    def kept(self, place: Place) -> str:
        return repr(place.value)

    def vector(self, place: Place) -> str:
        return f"f({place.value})"

    def viewed(self, place: Place) -> str:
        return "view"

    def begun(self, place: Place) -> str:
        return f"list{len(place.value)}"

    def members(self, place: Place, begun: str | None) -> Iterable[Place]:
        return map(Place, place.value)

    def store(self, place: Place, member: Place, begun: str) -> None:
        self.known.append(f"{begun} takes {member.results}")

    def built(self, place: Place, members: Sequence[Place]) -> str:
        return f"({', '.join(member.results for member in members)})"

    def finish(self, place: Place, results: str) -> None:
        place.results = results
        self.known.append(results)


def test_members_come_before_what_is_built_of_them():
    form = Written()
    assert form.write((1.0, "a", (2.0, memoryview(b"")))) == "(f(1.0), 'a', (f(2.0), view))"
    assert form.known == ["f(1.0)", "'a'", "f(2.0)", "view", "(f(2.0), view)", "(f(1.0), 'a', (f(2.0), view))"]


def test_what_is_filled_is_known_before_its_members():
    form = Written()
    assert form.write([1.0, (2.0,)]) == "list2"
    assert form.known == ["list2", "f(1.0)", "list2 takes f(1.0)", "f(2.0)", "(f(2.0))", "list2 takes (f(2.0))"]
