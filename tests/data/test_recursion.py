"""The rules of recursion over structures: topology, mutability, activity."""

from __future__ import annotations

import copy
import operator
import sys
import threading
import tracemalloc
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from numba import float64, int64, njit, optional, typed, typeof
from numba.experimental import jitclass

import irad
from irad import data

Layer = namedtuple("Layer", ["weights", "bias", "name"])
PARTICLE = np.dtype([("position", np.float64, 3), ("mass", np.float32), ("number", np.int64)])


@dataclass
class Model:
    weights: Any
    bias: float
    layers: list[Any] = field(default_factory=list)
    steps: int = 3


@dataclass(frozen=True, slots=True)
class Frozen:
    weights: Any
    bias: float


class Quaternion:
    """Immutable, with the operations of a vector."""

    def __init__(self, *parts: float) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quaternion) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Quaternion) -> Quaternion:
        return Quaternion(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __mul__(self, factor: float) -> Quaternion:
        return Quaternion(*(a * factor for a in self.parts))


@pytest.fixture
def quaternions():
    data.register_vector(
        Quaternion,
        zero=lambda value: Quaternion(0.0, 0.0, 0.0, 0.0),
        dot=lambda x, y: float(np.dot(x.parts, y.parts)),
        read=lambda value: np.array(value.parts),
        refilled=lambda value, doubles: Quaternion(*doubles.tolist()),
    )
    yield
    data.unregister(Quaternion)


def sum_and_difference(a: Any, b: Any) -> tuple[Any, Any]:
    return a + b, a - b


def test_r1_several_inputs_and_several_outputs() -> None:
    x = {"w": np.array([1.0, 2.0]), "rest": [3.0, (4.0, Layer(np.ones((2, 2)), 1j, "first"))]}
    y = {"w": np.array([0.5, 0.5]), "rest": [1.0, (2.0, Layer(np.full((2, 2), 3.0), 2.0 + 0j, "first"))]}
    total, difference = data.recursive_map(sum_and_difference, x, y, outputs=2)
    assert total["w"].tolist() == [1.5, 2.5]
    assert difference["w"].tolist() == [0.5, 1.5]
    assert total["rest"][:1] == [4.0]
    assert total["rest"][1][0] == 6.0
    assert total["rest"][1][1].bias == 2.0 + 1j
    assert difference["rest"][1][1].weights.tolist() == [[-2.0, -2.0], [-2.0, -2.0]]
    assert total["rest"][1][1].name == "first"


def test_r1_a_function_that_returns_too_few_results() -> None:
    with pytest.raises(irad.SignatureError, match="return a tuple of 2"):
        data.recursive_map(lambda v: v, [1.0], outputs=2)
    with pytest.raises(irad.SignatureError, match="no structure"):
        data.recursive_map(lambda v: v)


def test_r2_vectors_are_floats_complex_numbers_arrays_and_registered_types(quaternions: None) -> None:
    called: list[Any] = []
    x = [1.0, 2j, np.float32(3.0), np.complex64(1j), np.array(2.0), np.ones((2, 3), np.float16), Quaternion(1, 2, 3, 4)]
    data.recursive_map(lambda v: called.append(v) or v, [*x, 5, True, "text", np.arange(3), np.array([True]), None])
    assert all(mine is theirs for mine, theirs in zip(called, x, strict=True))


@pytest.mark.parametrize(
    "x",
    [
        (1.0, 2.0),
        [1.0, (2.0,)],
        Layer(np.ones(2), 1.0, "name"),
        {"a": 1.0, 2: [np.ones(2)]},
        OrderedDict(b=1.0, a=2.0),
        Model(np.ones(2), 1.0, [np.ones(1)]),
        Frozen(np.ones(2, np.float32), 1.0),
        SimpleNamespace(a=1.0),
        np.zeros(2, PARTICLE),
        np.array([1.0, [2.0], None], dtype=object),
        1.0,
        np.float32(1.0),
        np.array(1.0),
        np.ones((2, 3), order="F"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_r3_types_are_reproduced(x: Any) -> None:
    made = data.make_zero(x)
    assert repr(made) == repr(data.recursive_map(lambda v: v * 0, x))
    assert type(made) is type(x)
    assert data.norm(made) == 0.0
    if isinstance(x, np.ndarray):
        assert (made.dtype, made.shape, made.flags.f_contiguous) == (x.dtype, x.shape, x.flags.f_contiguous)
    if isinstance(x, dict):
        assert list(made) == list(x)


def test_r4_what_is_one_object_becomes_one_object() -> None:
    a = np.ones(3)
    x = [a, (a, {"a": a})]
    y = data.make_zero(x)
    assert y[0] is y[1][0] is y[1][1]["a"]
    assert y[0] is not a
    shared = (1.0, a)
    z = data.make_zero({"first": shared, "second": shared})
    assert z["first"] is z["second"]
    total, difference = data.recursive_map(sum_and_difference, x, x, outputs=2)
    assert total[0] is total[1][0]
    assert difference[0] is difference[1][0] is not total[0]


def test_r5_cycles() -> None:
    a = np.ones(2)
    looped: list[Any] = [a]
    looped.append(looped)
    made = data.make_zero(looped)
    assert made[1] is made
    assert made[0].tolist() == [0.0, 0.0]
    through_tuple: list[Any] = [1.0]
    pair = (2.0, through_tuple)
    through_tuple.append(pair)
    copied = data.copy(pair)
    assert copied[1][1] is copied
    assert copied[0] == 2.0
    assert copied[1][0] == 1.0
    model = Model(a, 1.0)
    model.layers.append(model)
    data.make_zero_(model)
    assert model.layers[0] is model
    assert model.bias == 0.0
    assert a.tolist() == [0.0, 0.0]
    frozen = Frozen([a], 1.0)
    frozen.weights.append(frozen)
    doubled = data.recursive_map(lambda v: v + 1.0, frozen)
    assert doubled.weights[1] is doubled
    assert doubled.bias == 2.0


def test_r5_inactive_cycles() -> None:
    nothing: list[Any] = [1, "text"]
    nothing.append(nothing)
    assert data.make_zero(nothing) is nothing
    assert data.make_zero([1.0, nothing])[1] is nothing


def test_r6_a_memo_that_several_calls_share() -> None:
    a, b = np.ones(2), np.ones(3)
    seen: dict[int, Any] = {}
    first = data.make_zero([a, b], seen=seen)
    second = data.make_zero({"a": a, "new": np.ones(1)}, seen=seen)
    assert second["a"] is first[0] is seen[id(a)]
    stand_in = np.full(2, 7.0)
    assert data.make_zero([a], seen={id(a): stand_in})[0] is stand_in
    seen = {}
    made = data.recursive_map(sum_and_difference, [a], [a], outputs=2, seen=seen)
    assert seen[id(a)][1] is made[1][0]


def test_r6_numbers_are_not_remembered() -> None:
    number = 1.5
    seen: dict[int, Any] = {}
    data.make_zero([number], seen=seen)
    assert id(number) not in seen


def test_r7_inactive_parts_are_shared_or_copied_with_their_topology() -> None:
    text = ["inactive", 1]
    x = [np.ones(2), text, text]
    assert data.make_zero(x)[1] is text
    made = data.make_zero(x, copy_if_inactive=True)
    assert made[1] is made[2] is not text
    assert made[1] == text
    integers = np.arange(3)
    assert data.make_zero((1.0, integers))[1] is integers
    assert data.make_zero((1.0, integers), copy_if_inactive=True)[1] is not integers


def test_r8_an_inactive_object_is_returned_itself() -> None:
    for x in (("a", 1), [1, "b"], {"a": None}, 3, None, Layer(1, 2, "c"), np.arange(3), np.zeros(2, [("k", int)])):
        assert data.make_zero(x) is x
        assert data.recursive_map_into(np.add, x, x, x) is x
    assert data.make_zero((text := ["a"],), copy_if_inactive=True)[0] is not text


def test_r9_inactivity_is_looked_up_when_it_is_needed_and_extended_by_a_predicate() -> None:
    class Sealed:
        def __init__(self) -> None:
            self.values = np.ones(2)

    x = [Sealed(), np.ones(2)]
    assert data.make_zero(x)[0] is x[0]  # a class that states no fields
    data.register_container(Sealed, ["values"])
    try:
        assert data.make_zero(x)[0].values.tolist() == [0.0, 0.0]
        data.register_inactive(Sealed)
        assert data.make_zero(x)[0] is x[0]
    finally:
        data.unregister(Sealed)
    kept = np.ones(2)
    made = data.make_zero((kept, np.ones(3)), inactive=lambda value: value is kept)
    assert made[0] is kept
    assert made[1].tolist() == [0.0, 0.0, 0.0]
    numbers = (1.0, [2.0])  # in place is legal, since what cannot be overwritten is inactive
    data.make_zero_(numbers, inactive=lambda value: isinstance(value, float) and value == 1.0)
    assert numbers == (1.0, [0.0])


def test_r10_partially_in_place() -> None:
    array, holder = np.ones(2), [1.0]
    x = (1.0, array, holder)
    made = data.recursive_map_into(np.add, x, x, x)
    assert made == (2.0, array, holder)
    assert made[1] is array
    assert made[2] is holder
    assert array.tolist() == [2.0, 2.0]
    assert holder == [2.0]
    assert x[0] == 1.0
    frozen = Frozen(array, 1.0)
    rebuilt = data.recursive_map_into(lambda v: v * 3.0, frozen, frozen)
    assert rebuilt is not frozen
    assert rebuilt.weights is array
    assert (rebuilt.bias, frozen.bias) == (3.0, 1.0)
    assert array.tolist() == [6.0, 6.0]


@pytest.mark.parametrize("x", [(1.0, [1.0]), 1.0, Frozen([2.0], 1.0), ([3.0], (np.float32(1.0),))], ids=repr)
def test_r11_in_place_is_refused_before_anything_is_written(x: Any) -> None:
    before = copy.deepcopy(x)
    with pytest.raises(irad.SignatureError, match="cannot be overwritten"):
        data.make_zero_(x)
    assert x == before


def test_r11_read_only_memory_is_refused() -> None:
    for array in (np.ones(2, [("a", float)]), np.array([1.0, None], dtype=object), np.ones(1)):
        array.flags.writeable = False
        before = array.tolist()
        with pytest.raises(irad.SignatureError, match="cannot be overwritten"):
            data.make_zero_((array,))
        assert array.tolist() == before


def test_r11_the_error_names_the_part() -> None:
    array = np.ones(2)
    array.flags.writeable = False
    with pytest.raises(irad.SignatureError, match=r"the ndarray at \[1\]\.weights cannot"):
        data.make_zero_((np.ones(1), Layer(array, np.ones(1), "name")))


def test_r12_one_mutable_layer_is_enough() -> None:
    arrays = (np.ones(2), np.array(1.0))
    data.make_zero_(arrays)
    assert arrays[0].tolist() == [0.0, 0.0]
    assert arrays[1] == 0.0
    numbers = [1.0, 2.0]
    data.make_zero_(numbers)
    assert numbers == [0.0, 0.0]


def test_r13_three_layers() -> None:
    array, inner = np.ones(2), [1.0]
    x = [(array, inner), (2.0,)]
    pair = x[0]
    data.make_zero_(x)
    assert x == [(array, [0.0]), (0.0,)]
    assert x[0] is pair
    assert x[0][1] is inner
    assert array.tolist() == [0.0, 0.0]


def test_r14_the_first_input_is_the_reference() -> None:
    a, b, c = np.ones(2), np.full(2, 2.0), np.full(2, 3.0)
    total = data.recursive_map(np.add, [a, b], [c, c])  # more aliasing in another input does no harm
    assert total[0] is not total[1]
    assert total[1].tolist() == [5.0, 5.0]
    with pytest.raises(irad.SignatureError, match=r"one object at \[0\] and \[1\]; another input holds two"):
        data.recursive_map(np.add, [a, a], [b, c])
    with pytest.raises(irad.SignatureError, match="an output holds one object"):
        data.recursive_map_into(np.add, [c, c], [a, b], [a, b])
    assert c.tolist() == [3.0, 3.0]
    output = [np.zeros(2), np.zeros(2)]  # less aliasing is reused, and takes the topology of the first input
    first = output[0]
    made = data.recursive_map_into(np.add, output, [a, a], [b, b])
    assert made is output
    assert made[0] is made[1] is first
    assert first.tolist() == [3.0, 3.0]
    with pytest.raises(irad.SignatureError, match="cannot be overwritten"):
        data.recursive_map_(np.add, (np.zeros(2), np.zeros(2)), (a, a), (b, b))


def test_r14_structures_that_differ() -> None:
    for x, y in (
        ([1.0], [1.0, 2.0]),
        ({"a": 1.0}, {"b": 1.0}),
        ([1.0], (1.0,)),
        (np.ones(2), np.ones(3)),
        (np.ones(2), np.ones(2, np.float32)),
        ([np.ones(1)], [1.0]),
        (1.0, 1),
    ):
        with pytest.raises(irad.SignatureError, match="structures differ"):
            data.recursive_map(np.add, x, y)


def test_r15_input_and_output_may_be_one_object() -> None:
    x = {"a": np.array([1.0, 2.0]), "b": [3.0]}
    assert data.recursive_map_into(np.multiply, x, x, x) is x
    assert x["a"].tolist() == [1.0, 4.0]
    assert x["b"] == [9.0]


def test_r16_what_is_missing_stays_missing() -> None:
    partial = Model.__new__(Model)
    partial.weights = np.ones(2)
    made = data.make_zero(partial)
    assert made.weights.tolist() == [0.0, 0.0]
    assert not hasattr(made, "bias")
    assert data.make_zero([None, 1.0]) == [None, 0.0]
    slots = Frozen.__new__(Frozen)
    assert not hasattr(data.make_zero([slots, 1.0])[0], "weights")


def test_r17_members_may_be_of_any_types() -> None:
    array = np.ones(2)
    made = data.make_zero([1.0, "a", array, (2j,), 3, None, {"k": np.float32(2.0)}])
    assert made[:2] == [0.0, "a"]
    assert made[2].tolist() == [0.0, 0.0]
    assert made[3:] == [(0j,), 3, None, {"k": np.float32(0.0)}]
    assert type(made[6]["k"]) is np.float32


def test_r18_keys_keep_their_identity_and_the_result_is_independent() -> None:
    class Key:
        pass

    key = Key()
    x = {key: np.ones(2)}
    made = data.make_zero(x)
    assert next(iter(made)) is key
    made["new"] = 1.0
    assert "new" not in x
    x[key][0] = 5.0
    assert made[key].tolist() == [0.0, 0.0]


def test_r19_zeros_are_thin_wrappers_and_obey_one_registration(quaternions: None) -> None:
    x = [Quaternion(1.0, 2.0, 3.0, 4.0), np.ones(2)]
    made = data.make_zero(x)
    assert made[0] == Quaternion(0.0, 0.0, 0.0, 0.0)
    data.accumulate(made, x)
    assert made[0] == x[0]
    assert data.norm(made) == pytest.approx(np.sqrt(32.0))
    assert data.from_vec(data.to_vec(x) + 1.0, x)[0] == Quaternion(2.0, 3.0, 4.0, 5.0)
    data.make_zero_(x)
    assert x[0] == Quaternion(0.0, 0.0, 0.0, 0.0)
    assert x[1].tolist() == [0.0, 0.0]


def test_r19_remake_zero_leaves_what_is_immutable() -> None:
    array, read_only = np.ones(2), np.ones(2)
    read_only.flags.writeable = False
    x = (1.0, array, [2.0, (3.0, array)], read_only, Frozen([4.0], 5.0))
    data.remake_zero_(x)
    assert x[0] == 1.0
    assert x[2] == [0.0, (3.0, array)]
    assert x[4] == Frozen([0.0], 5.0)
    assert array.tolist() == [0.0, 0.0]
    assert read_only.tolist() == [1.0, 1.0]


def test_r20_shared_vectors_are_added_to_once() -> None:
    a = np.ones(2)
    total = [a, a, (a,)]
    data.accumulate(total, data.copy(total))
    assert a.tolist() == [2.0, 2.0]
    data.accumulate(total, total)
    assert a.tolist() == [4.0, 4.0]


def test_r21_accumulation_leaves_what_is_inactive_and_applies_a_function() -> None:
    z, numbers = np.array([1.0 + 1j]), [1.0, 2]
    x = {"z": z, "numbers": numbers, "text": "mine"}
    data.accumulate(x, {"z": np.array([2.0 + 3j]), "numbers": [5.0, 7], "text": "theirs"}, np.conj)
    assert z.tolist() == [3.0 - 2j]
    assert numbers == [6.0, 2]
    assert x["text"] == "mine"
    assert x["z"] is z
    assert x["numbers"] is numbers
    half = np.zeros(2, np.float32)
    data.accumulate((half,), (np.ones(2, np.float32),), lambda v: 0.5 * v)
    assert half.tolist() == [0.5, 0.5]
    assert half.dtype == np.float32
    with pytest.raises(irad.SignatureError, match="cannot be overwritten"):
        data.accumulate((1.0, half), (1.0, half))
    assert half.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_r21_atomic_accumulation_loses_nothing(dtype: Any) -> None:
    total, increment = [np.zeros(20_000, dtype)], [np.ones(20_000, dtype)]
    threads = [
        threading.Thread(target=lambda: [data.accumulate(total, increment, atomic=True) for _ in range(25)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (total[0] == 100).all()


def test_r21_atomic_accumulation_of_numbers() -> None:
    total = {"a": 0.0}

    def add() -> None:
        for _ in range(300):
            data.accumulate(total, {"a": 1.0}, atomic=True)

    adding = [threading.Thread(target=add) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in adding:
            thread.start()
        for thread in adding:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert total == {"a": 1200.0}


def test_r22_a_structure_as_a_vector() -> None:
    x = data.VectorSpace(Layer(np.array([3.0, 0.0]), 4.0, "layer"))
    y = data.VectorSpace(Layer(np.array([1.0, 1.0]), 2.0, "layer"))
    assert x.norm() == 5.0
    assert x.dot(y) == 11.0
    total = 2.0 * x - y / 2 + (-y)
    assert total.value.weights.tolist() == [4.5, -1.5]
    assert total.value.bias == 5.0
    assert total.value.name == "layer"
    assert (np.float64(2.0) * x).value.weights.tolist() == [6.0, 0.0]
    z = x.zero()
    assert z.norm() == 0.0
    y.copyto(z)
    z.axpy(3.0, x)
    assert z.value.weights.tolist() == [10.0, 1.0]
    assert z.value.bias == 14.0
    array = z.value.weights
    z += x
    z -= y
    z *= 2.0
    z /= 4.0
    assert z.value.weights is array
    assert array.tolist() == [6.0, 0.0]
    assert z.value.bias == 8.0
    z.zero_()
    assert z.norm() == 0.0
    assert x.norm() == 5.0
    single = data.VectorSpace([np.ones(2, np.float32)])
    assert (np.float64(2.0) * single).value[0].dtype == np.float32


def test_r22_what_is_not_a_number_or_a_vector_is_refused() -> None:
    x = data.VectorSpace([1.0])
    with pytest.raises(irad.SignatureError, match=r"x\.dot\(y\)"):
        operator.mul(x, x)
    with pytest.raises(irad.SignatureError, match="wrap the structure"):
        operator.add(x, [1.0])


def test_r22_in_place_nothing_is_written_that_has_no_room() -> None:
    x = data.VectorSpace([np.array([1.0 + 1j]), np.ones(1)])
    for operation in (operator.imul, operator.itruediv):
        with pytest.raises(irad.SignatureError, match="an array of float64 is multiplied by a complex number"):
            operation(x, 1j)
    with pytest.raises(irad.SignatureError, match="complex"):
        x.axpy(1j, x)
    assert x.value[0].tolist() == [1.0 + 1j]
    assert (1j * x).value[1].tolist() == [1j]
    z = data.VectorSpace([np.array([1.0 + 1j]), 1.0])
    z *= 1j
    assert (z.value[0].tolist(), z.value[1]) == ([-1.0 + 1j], 1j)


def test_r23_flat_vectors_respect_sharing() -> None:
    a = np.array([1.0, 2.0])
    x = [a, a, (3.0, 4 + 5j, "text"), np.zeros(0), np.ones((1, 2), np.float32)]
    vector = data.to_vec(x)
    assert vector.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0]
    back = data.from_vec(2.0 * vector, x)
    assert back[0] is back[1]
    assert back[0].tolist() == [2.0, 4.0]
    assert back[2] == (6.0, 8 + 10j, "text")
    assert back[4].dtype == np.float32
    assert back[4].shape == (1, 2)
    hot = data.one_hot(x, 4)
    assert hot[2] == (0.0, 1j, "text")
    assert data.norm(hot) == 1.0
    for wrong in (vector[1:], np.append(vector, 0.0)):
        with pytest.raises(irad.SignatureError, match="elements"):
            data.from_vec(wrong, x)
    for index in (-1, 7):
        with pytest.raises(irad.SignatureError, match="no element"):
            data.one_hot(x, index)
    assert data.to_vec(("text", 1)).size == 0
    with pytest.raises(irad.SignatureError, match="complex numbers"):
        data.from_vec(np.ones(1, complex), [1j])


def test_r24_nothing_is_allocated_in_place() -> None:
    size = 10_000
    x = {"w": np.ones(size), "layers": [np.ones((100, 100)), (np.ones(size, np.float32), 3)], "b": 1.0}
    y, vector = data.copy(x), data.VectorSpace(data.copy(x))
    other = data.VectorSpace(data.copy(x))

    def calls() -> None:
        data.accumulate(x, y)
        data.make_zero_(x)
        vector.axpy(0.5, other)

    calls()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        calls()
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert max(peak, after) - before < 4 * size, "no array"


def test_r25_arrays_of_records_are_mapped_field_by_field() -> None:
    called: list[tuple[int, ...]] = []
    particles = np.zeros(1000, PARTICLE)
    particles["position"], particles["mass"], particles["number"] = 1.0, 2.0, np.arange(1000)
    made = data.recursive_map(lambda v: called.append(v.shape) or 3.0 * v, {"p": particles[::2]})["p"]
    assert called == [(500, 3), (500,)]
    assert made["mass"].tolist() == [6.0] * 500
    assert (made["number"] == np.arange(0, 1000, 2)).all()
    assert (data.make_zero(particles)["number"] == np.arange(1000)).all()
    assert data.norm(data.make_zero(particles)) == 0
    data.accumulate(particles, particles)
    assert particles["position"].sum() == 6000.0
    assert (particles["number"] == np.arange(1000)).all()
    one = particles[1]
    data.make_zero_(one)
    assert particles["mass"][1] == 0.0
    assert one["number"] == 1
    assert particles["mass"][2] == 4.0


def test_r26_handles_and_locks_are_inactive() -> None:
    x = Layer(np.ones(2), sys.stdout, threading.Lock())
    for copies in (False, True):
        made = data.make_zero(x, copy_if_inactive=copies)
        assert made.bias is sys.stdout
        assert made.name is x.name
        assert made.weights.tolist() == [0.0, 0.0]
    data.make_zero_(x)
    assert x.weights.tolist() == [0.0, 0.0]


def test_r27_complex_vectors_are_accumulated_once() -> None:
    z = np.array([1.0 + 2j, 3.0])
    x = {"first": z, "again": [z], "number": 1j}
    data.accumulate(x, data.copy(x), np.conj)
    assert z.tolist() == [2.0, 6.0]
    assert x["number"] == 0.0
    assert data.dot(x, x) == 4.0 + 36.0
    assert data.dot([1j, 2.0], [1.0, 1j]) == -1j + 2j


def test_r27_holomorphic_derivatives_are_seeded_once() -> None:
    z = np.array([1.0 + 2j, 3.0 - 1j])
    x = {"first": z, "again": [z], "number": 0.5j}

    @njit
    def f(p):
        return np.sum(p["first"] ** 2) * np.sum(p["again"][0]) * p["number"]

    slopes = [irad.jvp(f, (x,), (data.one_hot(x, index),))[1] for index in range(data.to_vec(x).size)]
    truth = np.append(x["number"] * (2 * z * z.sum() + (z**2).sum()), (z**2).sum() * z.sum())
    np.testing.assert_allclose(slopes[::2], truth, rtol=1e-14)
    np.testing.assert_allclose(slopes[1::2], 1j * truth, rtol=1e-14)


def test_closures_hold_vectors() -> None:
    def make(scale: float) -> Any:
        weights, calls = np.ones(2), [0]

        def model(x: float) -> Any:
            calls[0] += 1
            return weights * scale * x

        model.note = "kept"  # type: ignore[attr-defined]
        return model

    f = make(3.0)
    doubled = data.recursive_map(lambda v: 2.0 * v, f)
    assert doubled(1.0).tolist() == [12.0, 12.0]
    assert f(1.0).tolist() == [3.0, 3.0]
    assert doubled.note == "kept"
    data.make_zero_(f)
    assert f(1.0).tolist() == [0.0, 0.0]

    def recursive(n: int, start: float = 2.0) -> float:
        return start * offset if n == 0 else recursive(n - 1)

    offset = 5.0
    assert data.make_zero(recursive)(3) == 0.0
    assert recursive(3) == 10.0


def test_what_was_computed_from_fields_is_not_copied() -> None:
    @dataclass
    class Square:
        side: float

        @cached_property
        def area(self) -> float:
            return self.side**2

    square = Square(3.0)
    assert square.area == 9.0
    assert data.recursive_map(lambda v: 2.0 * v, square).area == 36.0
    assert vars(square) == {"side": 3.0, "area": 9.0}


def test_attrs_classes() -> None:
    @attrs.define
    class Mutable:
        weights: Any
        name: str

    @attrs.frozen
    class Immutable:
        weights: Any

    x = [Mutable(1.0, "a"), Immutable(2.0)]
    made = data.make_zero(x)
    assert made == [Mutable(0.0, "a"), Immutable(0.0)]
    data.make_zero_(x[0])
    assert x[0].weights == 0.0
    with pytest.raises(irad.SignatureError, match="cannot be overwritten"):
        data.make_zero_(x[1])


def test_record_fields_with_objects_are_inactive() -> None:
    x = np.array([(1.0, "text")], [("a", float), ("b", object)])
    made = data.make_zero(x)
    assert made["a"][0] == 0.0
    assert made["b"][0] == "text"


@jitclass([("weights", float64[:]), ("bias", float64), ("steps", int64), ("cache", optional(float64[:]))])
class Compiled:
    def __init__(self, weights: Any, bias: float) -> None:
        self.weights, self.bias, self.steps, self.cache = weights, bias, 3, None


def test_instances_of_jitclasses() -> None:
    weights = np.ones(3)
    model = Compiled(weights, 2.0)
    made = data.make_zero({"model": model, "again": model})
    zero = made["model"]
    assert made["again"] is zero
    assert type(zero) is type(model)
    assert zero.cache is None
    assert zero.steps == 3
    assert zero.weights.tolist() == [0.0] * 3
    assert zero.bias == 0.0
    assert model.bias == 2.0
    zero.weights[0] = 7.0
    assert weights[0] == 1.0
    data.accumulate(zero, model, lambda v: 2.0 * v)
    assert zero.bias == 4.0
    assert zero.weights.tolist() == [9.0, 2.0, 2.0]
    assert data.to_vec(zero).tolist() == [9.0, 2.0, 2.0, 4.0]
    data.make_zero_((model,))
    assert model.bias == 0.0
    assert weights.tolist() == [0.0] * 3


def test_typed_containers() -> None:
    numbers, arrays = typed.List([1.0, 2.0]), typed.Dict()
    arrays["w"] = np.ones(2)
    made = data.make_zero({"n": numbers, "a": arrays})
    assert type(made["n"]) is typed.List
    assert list(made["n"]) == [0.0, 0.0]
    assert list(numbers) == [1.0, 2.0]
    assert type(made["a"]) is typed.Dict
    assert made["a"]["w"].tolist() == [0.0, 0.0]
    assert arrays["w"].tolist() == [1, 1]
    data.accumulate(arrays, arrays)
    data.make_zero_(numbers)
    assert arrays["w"].tolist() == [2.0, 2.0]
    assert list(numbers) == [0.0, 0.0]
    assert data.make_zero([typed.List.empty_list(int64), 1.0])[1] == 0.0


def test_what_a_function_returns_is_checked_before_anything_is_written() -> None:
    for returned in (lambda v: None, lambda v: v * 1j, lambda v: "text", lambda v: np.ones(5), lambda v: v[None]):
        numbers, record = [np.ones(2), 1.0], np.ones(2, [("x", float), ("y", complex)])
        for x in ({"first": np.ones(1), "rest": numbers}, [np.ones(1), record]):
            before = copy.deepcopy(x)

            def last(v: Any, returned: Any = returned) -> Any:
                return v if np.shape(v) == (1,) else returned(v)

            with pytest.raises((irad.SignatureError, TypeError)):
                data.recursive_map_(last, x, x)
            assert repr(x) == repr(before)
    for bad in (None, "text"):
        with pytest.raises(irad.SignatureError, match=r"returns .* for the vector at"):
            data.recursive_map(lambda v, bad=bad: bad, [np.ones(2)])
    x = [1.0, np.float32(2.0), np.ones(2, np.float32)]
    data.recursive_map_(lambda v: (2 * v).astype(int) if isinstance(v, np.ndarray) else int(2 * v), x, x)
    assert [type(each) for each in x[:2]] == [float, np.float32]
    assert (x[0], x[1], x[2].tolist(), x[2].dtype) == (2.0, 4.0, [2.0, 2.0], np.float32)
    assert data.recursive_map(lambda v: v * 1j, [np.ones(1), 1.0]) == [1j, 1j]
    with pytest.raises(irad.SignatureError, match="complex128"):
        data.accumulate([np.ones(1), 1.0], [np.ones(1), 1j])


@pytest.mark.parametrize(
    "view",
    [
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(12.0).reshape(3, 4)[:, 1],
        np.arange(4.0)[::-1],
        np.arange(24.0).reshape(2, 3, 4).transpose(1, 0, 2),
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.ones(6, [("a", float), ("b", float)])[::2],
    ],
)
def test_shadows_of_views_have_their_type(view: Any) -> None:
    for made in (data.make_zero(view), data.copy(view), data.from_vec(data.to_vec(view), view)):
        assert (made.shape, made.dtype) == (view.shape, view.dtype)
        assert typeof(made).layout == typeof(view).layout == "A"
        assert made.flags.writeable
        assert not np.may_share_memory(made, view)


def test_a_shadow_of_a_view_is_accepted() -> None:
    @njit
    def squares(x):
        return (x * x).sum()

    view = np.arange(6.0).reshape(2, 3)[:, ::2]
    shadow = data.make_zero(view)
    irad.autodiff(irad.Reverse, squares, irad.Duplicated(view, shadow))
    np.testing.assert_array_equal(shadow, 2.0 * view)
