from __future__ import annotations

import array
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import float64, typeof
from numba.experimental import jitclass
from numba.typed import Dict as TypedDict, List as TypedList

from irad.data.floats import floats_only, holds_single, in_precision, in_types_of, name_of_float, read_floats
from irad.data.structure import flattened, is_structure, mapped, members, pieces

Pair = namedtuple("Pair", ["a", "b"])


@jitclass([("rate", float64), ("weights", float64[:])])
class Model:
    def __init__(self, rate, weights):
        self.rate = rate
        self.weights = weights


def typed_dictionary(**items: float) -> TypedDict:
    made = TypedDict()
    for key, value in items.items():
        made[key] = value
    return made


@pytest.mark.parametrize(
    ("value", "ways"),
    [
        ((1.0, 2.0), ["[0]", "[1]"]),
        (Pair(1.0, 2.0), [".a", ".b"]),
        ([3.0], ["[0]"]),
        (lambda: TypedList([1.0, 2.0]), ["[0]", "[1]"]),
        ({"x": 1.0, 2: 3.0}, ["['x']", "[2]"]),
        (lambda: typed_dictionary(x=1.0), ["['x']"]),
        (lambda: Model(1.0, np.ones(2)), [".rate", ".weights"]),
    ],
)
def test_members_have_the_names_that_python_gives_them(value: object, ways: list[str]):
    value = value() if callable(value) else value  # each process of a run would compile for it, as it imports this
    assert [way for way, _ in members(value)] == ways


@pytest.mark.parametrize("value", [1.0, "text", b"bytes", bytearray(b"x"), array.array("d", [1.0]), np.ones(2), None])
def test_numbers_arrays_and_text_have_no_members(value: object):
    assert not list(members(value))
    assert not is_structure(value)
    assert list(flattened(value)) == [value] or isinstance(value, np.ndarray)


def test_pieces_look_into_instances():
    weights = np.ones(2)
    found = dict(pieces((Model(1.5, weights), [2.0], "name"), "model"))
    assert list(found) == ["model[0].rate", "model[0].weights", "model[1][0]", "model[2]"]
    assert found["model[0].rate"] == 1.5
    assert found["model[2]"] == "name"


def test_pieces_of_what_holds_itself_end():
    loop: list[object] = [1.0]
    loop.append(loop)
    assert ("[0]", 1.0) in list(pieces(loop))


def test_pieces_of_something_empty():
    assert list(pieces(((), [], {}))) == []


def test_mapped_keeps_types_and_keys():
    value = (Pair(1.0, [2.0]), TypedList([3.0]), typed_dictionary(x=4.0), {"k": (5.0,)})
    found = mapped(lambda x: 10 * x, value)
    assert found[0] == Pair(10.0, [20.0])
    assert isinstance(found[0], Pair)
    assert typeof(found[1:3]) == typeof(value[1:3])
    assert (list(found[1]), dict(found[2]), found[3]) == ([30.0], {"x": 40.0}, {"k": (50.0,)})


@pytest.mark.parametrize(
    "make", [tuple, list, dict, lambda: TypedList.empty_list(float64), lambda: TypedDict.empty(float64, float64)]
)
def test_empty_structures_keep_their_types(make: Any):
    empty = make()
    found = mapped(lambda x: x, empty)
    assert type(found) is type(empty)
    assert not len(found)
    if isinstance(empty, TypedList | TypedDict):
        assert typeof(found) == typeof(empty)


def test_mapped_over_several():
    assert mapped(lambda x, y, z: x + y * z, (1, [2]), (10, [20]), (3, [4])) == (31, [82])
    with pytest.raises(ValueError, match="zip"):
        mapped(lambda x, y: x, (1, 2), (1,))


def test_flattened_down_to_one_kind():
    assert list(flattened((1, [2, (3,)], ()))) == [1, 2, 3]
    assert list(flattened((1, [2, (3,)], (4,)), tuple)) == [1, [2, (3,)], 4]


def test_names_of_floats_in_structures():
    value = (2, [1.0, 1j], typed_dictionary(rate=1.0), Pair(np.ones((2, 2)), 0.5))
    names = [name_of_float(value, number, "p") for number in range(read_floats(value).size)]
    assert names[:4] == ["p[1][0]", "p[1][1].real", "p[1][1].imag", "p[2]['rate']"]
    assert names[4:] == ["p[3].a[0, 0]", "p[3].a[0, 1]", "p[3].a[1, 0]", "p[3].a[1, 1]", "p[3].b"]
    with pytest.raises(IndexError):
        name_of_float(value, len(names), "p")


def test_floats_only():
    assert floats_only((1.0, 2, ("x", 3.0))) == (1.0, None, (None, 3.0))
    assert floats_only((1, "x")) is None
    assert floats_only((1.0, [1, 2], [(0, 1)], {1: (2, 3)}, (4, (5,)))) == (1.0, None, None, None, None)


def test_precision():
    record = np.zeros(2, [("n", np.int32), ("x", np.float32)])
    assert holds_single((1.0, [record]))
    assert not holds_single((1.0, [np.ones(2)]))
    value = (1.5, np.ones((2, 3))[:, ::2], 2, 1j)
    single = in_precision(value, single=True)
    assert [getattr(each, "dtype", None) for each in single] == [np.float32, np.float32, None, np.complex64]
    assert typeof(single[1]).layout == "A"
    back = in_types_of(in_precision(single, single=False), single)
    assert [getattr(each, "dtype", None) for each in back] == [np.float32, np.float32, None, np.complex64]
