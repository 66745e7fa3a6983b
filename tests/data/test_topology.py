"""One thing in several places, also where Python cannot tell; outputs that are reused; memos of callers."""

from __future__ import annotations

import gc
import sys
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest
from numba import deferred_type, float64, njit, optional, typed
from numba.experimental import jitclass

import irad
from irad import data


@jitclass([("w", float64[:]), ("v", float64[:])])
class Tied:
    def __init__(self) -> None:
        self.w = np.ones(3)
        self.v = self.w


@jitclass([("first", Tied.class_type.instance_type), ("second", Tied.class_type.instance_type)])
class Pair:
    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


node_type = deferred_type()


@jitclass([("value", float64), ("next", optional(node_type))])
class Node:
    def __init__(self, value: float) -> None:
        self.value, self.next = value, None


node_type.define(Node.class_type.instance_type)


@njit
def list_of_one_array() -> Any:
    array, made = np.ones(2), typed.List()
    made.append(array)
    made.append(array)
    return made


def test_memory_that_python_sees_as_another_object_each_time() -> None:
    tied = Tied()
    assert tied.w is not tied.w
    assert data.to_vec(tied).size == 3
    data.accumulate(tied, data.copy(tied))
    assert tied.w.tolist() == tied.v.tolist() == [2.0, 2.0, 2.0]
    pair = Pair(tied, tied)
    zero = data.make_zero([pair, tied])
    zero[0].first.w[0] = 5.0
    assert zero[0].second.v[0] == zero[1].v[0] == 5.0
    data.accumulate((pair, tied), data.copy((pair, tied)))
    assert tied.w.tolist() == [4.0, 4.0, 4.0]
    arrays = list_of_one_array()
    data.accumulate(arrays, data.copy(arrays))
    assert arrays[0].tolist() == arrays[1].tolist() == [2.0, 2.0]
    inner = typed.List([1.0])
    doubled = data.recursive_map(lambda v: 2.0 * v, typed.List([inner, inner]))
    doubled[0][0] = 7.0
    assert doubled[1][0] == 7.0


def test_views_of_the_same_elements_are_one_thing() -> None:
    memory = np.ones(6)
    x = [memory, memory[:], (memory[:2], memory[0:2], memory[2:4]), memory.reshape(2, 3)]
    made = data.make_zero(x)
    assert made[0] is made[1]
    assert made[2][0] is made[2][1] is not made[2][2]
    assert data.to_vec([memory[:2], memory[:2], memory[2:4], memory[:2:1]]).size == 4
    total = {"a": memory[:2], "b": memory[:2], "all": memory[2:], "again": memory[2:]}
    data.accumulate(total, data.copy(total))
    assert memory.tolist() == [2.0] * 6
    with pytest.raises(irad.SignatureError, match=r"one object at \['a'\] and \['b'\]; another input holds two"):
        data.recursive_map(np.add, {"a": memory[:2], "b": memory[:2]}, {"a": np.ones(2), "b": np.ones(2)})
    records = np.ones(3, [("x", float)])
    data.accumulate([records[1:], records[1:]], data.copy([records[1:], records[1:]]))
    assert records["x"].tolist() == [1.0, 2.0, 2.0]


def test_gradients_with_an_array_for_each_path_are_summed() -> None:
    w, record, inner = np.array([1.0, 2.0]), np.ones(2, [("x", float), ("n", int)]), [1.0, np.ones(1)]
    x = {"a": w, "b": (w, 3), "c": [inner, inner], "d": record, "e": record, "f": w}
    own = np.full(2, 5.0)
    y = {
        "a": own,
        "b": (np.array([10.0, 20.0]), 3),
        "c": [[2.0, np.full(1, 7.0)], [2.0, np.full(1, 9.0)]],
        "d": np.full(2, 4, record.dtype),
        "e": np.full(2, 6, record.dtype),
        "f": own,  # what both hold once counts once
    }
    data.accumulate(x, y)
    assert w.tolist() == [16.0, 27.0]
    assert inner[0] == 5.0
    assert inner[1].tolist() == [17.0]
    assert record["x"].tolist() == [11.0, 11.0]
    assert record["n"].tolist() == [1, 1]
    loop: list[Any] = [np.ones(1)]
    loop.append(loop)
    unrolled: list[Any] = [np.full(1, 2.0), [np.full(1, 3.0)]]
    unrolled[1].append(unrolled)
    data.accumulate(loop, unrolled)
    assert loop[0].tolist() == [6.0]
    p = {"a": w.copy()}
    p["b"] = p["a"]
    gradient = irad.grad(lambda p: np.sum(p["a"] * p["b"] ** 2))(p)
    total = data.make_zero(p)
    data.accumulate(total, gradient)
    np.testing.assert_allclose(total["a"], 3.0 * w**2, rtol=1e-14)
    with pytest.raises(irad.SignatureError, match="overwritten before it is read"):
        data.accumulate({"a": w, "b": w}, {"a": own, "b": w})
    with pytest.raises(irad.SignatureError, match="shapes"):
        data.accumulate({"a": w, "b": w}, {"a": own, "b": np.ones(3)})


def test_a_tuple_is_what_it_holds() -> None:
    pair = (1.0, 2.0)
    assert data.recursive_map(np.add, [pair] * 2, [(1.0, 1.0), (2.0, 2.0)]) == [(2.0, 3.0), (3.0, 4.0)]
    w = np.ones(1)
    with pytest.raises(irad.SignatureError, match="another input holds two"):
        data.recursive_map(np.add, [(w,)] * 2, [(np.ones(1),), (np.ones(1),)])


def test_long_chains() -> None:
    """Deeper than Python's own stack."""
    chain: Any = np.ones(2)
    for i in range(5 * sys.getrecursionlimit()):
        chain = [chain, 1.0] if i % 2 else (chain,)
    lists = sys.getrecursionlimit() * 5 // 2
    zero, twice = data.make_zero(chain), data.recursive_map(lambda v: 2 * v, chain)
    assert data.to_vec(zero).tolist() == [0.0] * (lists + 2)
    data.accumulate(twice, chain)
    assert data.dot(twice, chain) == 3.0 * (lists + 2)
    data.make_zero_(twice)
    assert data.norm(twice) == 0.0
    with pytest.raises(irad.SignatureError, match=r"the vector at .*, an array"):
        data.recursive_map_(lambda v: None, twice, chain)


def test_instances_that_lead_back_to_themselves() -> None:
    first, second = Node(1.0), Node(2.0)
    first.next, second.next = second, first
    made, negative = data.recursive_map(lambda v: (2.0 * v, -v), first, outputs=2)
    assert (made.value, made.next.value, negative.next.value) == (2.0, 4.0, -2.0)
    made.value = 9.0
    assert made.next.next.value == 9.0
    data.make_zero_(first)
    assert (first.value, second.value) == (0.0, 0.0)


def _memo_of(x: Any) -> dict[Any, Any]:
    seen: dict[Any, Any] = {}
    data.make_zero(x, seen=seen)
    return seen


def test_a_memo_knows_memory_and_objects_but_no_objects_that_are_gone() -> None:
    tied = Tied()
    seen: dict[Any, Any] = {}
    zero = data.make_zero(tied, seen=seen)
    assert seen[id(tied)] is zero
    another = tied.w  # an object that Python has not seen, for the same memory
    again = data.make_zero([another, tied], seen=seen)
    assert again[1] is zero
    again[0][0] = 3.0
    assert zero.v[0] == 3.0
    assert {key for key in seen if isinstance(key, int)} >= {id(tied), id(another)}
    assert {id(tied)} == {key for key in _memo_of(tied) if isinstance(key, int)}


def test_what_is_read_at_one_place_is_not_overwritten_at_another() -> None:
    a, b = np.array([1.0]), np.array([10.0])
    with pytest.raises(irad.SignatureError, match=r"an output holds at \[1\] the object that an input holds at \[0\]"):
        data.accumulate([a, b], [b, a])
    with pytest.raises(irad.SignatureError, match="overwritten before it is read"):
        data.recursive_map_into(np.add, [a, b], [b, a], [b, a])
    records = [np.ones(2, [("x", float)]), np.zeros(2, [("x", float)])]
    with pytest.raises(irad.SignatureError, match="an output holds at"):
        data.accumulate(records, records[::-1])
    assert (a.tolist(), b.tolist(), records[0]["x"].tolist()) == ([1.0], [10.0], [1.0, 1.0])
    data.accumulate([a, b], data.copy([b, a]))
    assert (a.tolist(), b.tolist()) == ([11.0], [11.0])
    lists = [[1.0], [10.0]]  # numbers are read before anything is stored
    data.accumulate(lists, lists[::-1])
    assert lists == [[11.0], [11.0]]


def test_an_output_may_hold_one_immutable_object_twice() -> None:
    zero = (0.0,)
    assert data.recursive_map_into(np.add, [zero, zero], [(1.0,), (2.0,)], [(1.0,), (2.0,)]) == [(2.0,), (4.0,)]


def test_several_outputs_are_reused_as_far_as_they_can_be() -> None:
    x = {"w": np.array([1.0, 2.0]), "rest": [3.0, (4.0, 5)], "model": Tied()}
    outputs = data.make_zero(x), data.recursive_map(lambda v: v * np.nan, x)  # what is in them does not matter
    arrays = [each["w"] for each in outputs]
    made = data.recursive_map_into(lambda a, b: (a + b, a - b), outputs, x, x, outputs=2)
    assert [each is output for each, output in zip(made, outputs, strict=True)] == [True, True]
    assert [each["w"] is array for each, array in zip(made, arrays, strict=True)] == [True, True]
    assert [each["w"].tolist() for each in made] == [[2.0, 4.0], [0.0, 0.0]]
    assert [each["rest"] for each in made] == [[6.0, (8.0, 5)], [0.0, (0.0, 5)]]
    assert [each["model"].v.tolist() for each in made] == [[2.0] * 3, [0.0] * 3]
    data.recursive_map_(lambda a: (3.0 * a, 0.5 * a), made, x, outputs=2)
    assert [each["rest"] for each in made] == [[9.0, (12.0, 5)], [1.5, (2.0, 5)]]
    with pytest.raises(irad.SignatureError, match="two outputs hold one object at the top"):
        data.recursive_map_(lambda a: (a, a), (made[0], made[0]), x, outputs=2)
    with pytest.raises(irad.SignatureError, match="not a tuple of 2"):
        data.recursive_map_into(lambda a: (a, a), made[0], x, outputs=2)


def test_none_is_a_structure_not_a_missing_output() -> None:
    assert data.recursive_map_into(np.add, None, None, None) is None
    assert data.recursive_map_into(np.add, (None, 1.0), (None, 2.0), (None, 3.0)) == (None, 5.0)
    with pytest.raises(irad.SignatureError, match="structures differ"):
        data.recursive_map_into(np.add, None, [1.0], [1.0])


def test_inactive_parts_do_not_hinder_work_in_place() -> None:
    x = (np.ones(2), 3, "text", (None, np.arange(2)), frozenset([1.0]))
    data.make_zero_(x)
    assert x[0].tolist() == [0.0, 0.0]
    assert x[1:3] == (3, "text")


def test_a_memo_of_the_caller_in_place() -> None:
    shared, done = np.ones(2), np.full(2, 5.0)
    seen: dict[Any, Any] = {}
    data.recursive_map_(np.add, [shared], [shared], [shared], seen=seen)
    again = {"again": shared}
    data.recursive_map_(np.add, again, again, again, seen=seen)  # it has its result
    assert shared.tolist() == [2.0, 2.0]
    output: dict[str, Any] = {"a": np.zeros(2)}
    data.recursive_map_(np.add, output, {"a": shared}, {"a": shared}, seen={id(shared): done})
    assert output["a"] is done


class Buffer:
    """A vector that can be overwritten, with an operation that NumPy does not know."""

    def __init__(self, *items: float) -> None:
        self.items = list(items)

    def __add__(self, other: Buffer) -> Buffer:
        return Buffer(*(a + b for a, b in zip(self.items, other.items, strict=True)))

    def __sub__(self, other: Buffer) -> Buffer:
        return self + other * -1.0

    def __mul__(self, factor: float) -> Buffer:
        return Buffer(*(a * factor for a in self.items))

    def __truediv__(self, divisor: float) -> Buffer:
        return self * (1.0 / divisor)


class Derived(Buffer):
    pass


@pytest.fixture
def buffers():
    data.register_vector(
        Buffer,
        zero=lambda value: type(value)(*(0.0 for _ in value.items)),
        dot=lambda x, y: float(np.dot(x.items, y.items)),
        read=lambda value: np.array(value.items),
        refilled=lambda value, doubles: type(value)(*doubles.tolist()),
        assign=lambda target, source: target.items.__setitem__(slice(None), source.items),
    )
    yield
    data.unregister(Buffer)


def test_registered_vectors_that_can_be_overwritten(buffers: None) -> None:
    shared = Buffer(1.0, 2.0)
    x = (shared, [shared], Derived(3.0))
    vector = data.VectorSpace(x)
    assert vector.norm() == pytest.approx(np.sqrt(14.0))
    vector.axpy(2.0, vector.copy())
    vector /= 3.0
    vector -= 0.5 * vector
    assert vector.value is x
    assert (shared.items, x[2].items) == ([0.5, 1.0], [1.5])
    data.accumulate(x, data.copy(x))
    assert shared.items == [1.0, 2.0]
    data.make_zero_(x)
    assert (shared.items, x[2].items) == ([0.0, 0.0], [0.0])
    made = data.from_vec(np.array([7.0, 8.0, 9.0]), x)
    assert made[0] is made[1][0]
    assert type(made[2]) is Derived
    assert made[2].items == [9.0]


class Image(np.ndarray):
    pass


@pytest.mark.parametrize(
    "x",
    [
        np.ones((2, 3)).view(Image),
        np.rec.array([(1.0, 2)], dtype=[("a", float), ("b", int)]),
        np.ma.array([1.0, 2.0], mask=[False, True]),
        defaultdict(list, a=[1.0]),
        OrderedDict(a=1.0),
        deque([1.0, 2.0], maxlen=5),
    ],
    ids=lambda x: type(x).__name__,
)
def test_classes_of_libraries_are_reproduced(x: Any) -> None:
    for made in (data.make_zero(x), data.copy(x), data.recursive_map(lambda v: 2.0 * v, x)):
        assert type(made) is type(x)
    assert data.norm(data.make_zero(x)) == 0.0
    assert data.norm(x) == pytest.approx(np.linalg.norm(data.to_vec(x)))
    if isinstance(x, defaultdict | deque):
        assert (getattr(made, "default_factory", None), getattr(made, "maxlen", None)) == (
            getattr(x, "default_factory", None),
            getattr(x, "maxlen", None),
        )


def test_r24_ten_thousand_calls_leave_nothing_behind() -> None:
    x = {"w": np.ones(3), "b": (np.ones(2),)}
    y = data.copy(x)

    def blocks_after(count: int) -> int:
        for _ in range(count):
            data.accumulate(x, y)
            data.make_zero_(y)
        gc.collect()
        return sys.getallocatedblocks()

    before = blocks_after(100)
    assert blocks_after(10_000) - before < 100


def test_records_that_overlap_are_read_before_they_are_written() -> None:
    particle = np.dtype([("a", float), ("p", float, 3)])
    records = np.ones(60_000, particle)
    for output, value in ((records[1:], records[:-1]), (records[:-1], records[1:]), (records, records[::-1])):
        expected = {name: output[name] + value[name] for name in particle.names}
        data.accumulate([output], [value])
        assert all(np.array_equal(output[name], expected[name]) for name in particle.names)


NESTED = np.dtype(
    [("p", np.float64, 3), ("in", [("m", np.float32), ("n", np.int64)], 2), ("z", np.complex128), ("o", "O")]
)


@pytest.mark.parametrize("shape", [(), (3,), (5000,), (40, 300), (3, 0)], ids=str)
def test_records_in_blocks_are_those_without(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(3)
    x, y = (np.zeros(shape, NESTED) for _ in range(2))
    for each in (x, y):
        each["p"], each["in"]["m"] = random.standard_normal((*shape, 3)), random.standard_normal((*shape, 2))
        each["z"], each["in"]["n"] = random.standard_normal(shape) * 1j, 7
    x["o"] = y["o"] = "text"
    whole = data.recursive_map(lambda a, b: a + b, x, y)  # not known to work element by element
    total, summed = data.recursive_map(np.add, x, y), data.copy(x)
    data.accumulate(summed, y)
    vector = data.VectorSpace(data.copy(x))
    vector.axpy(2.0, data.VectorSpace(y))
    vector.axpy(-1.0, data.VectorSpace(y))
    for made in (total, summed):
        assert type(made) is type(whole)
        assert np.array_equal(made, whole)
    np.testing.assert_allclose(data.to_vec(vector.value), data.to_vec(whole), rtol=1e-6, atol=1e-6)
    assert (data.make_zero(x)["in"]["n"] == 7).all()
    both = data.recursive_map(lambda a, b: (a + b, a - b), x, y, outputs=2)
    assert np.array_equal(both[0], whole)
    kept = data.make_zero(x, inactive=lambda value: value.dtype == np.complex128)
    assert np.array_equal(kept["z"], x["z"])
    assert not kept["p"].any()
