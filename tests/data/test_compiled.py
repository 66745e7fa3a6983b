"""irad.data inside compiled code: the results of the Python functions, and what is shared stays shared."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import float64, int64, njit, optional, typed
from numba.experimental import jitclass

import irad
from irad import data
from irad.testing.allocations import allocations

Layer = namedtuple("Layer", ["weights", "bias", "steps"])
PARTICLE = np.dtype([("position", np.float64, 3), ("mass", np.float32), ("number", np.int64)])


@jitclass([("weights", float64[:]), ("bias", float64), ("steps", int64), ("cache", optional(float64[:]))])
class Model:
    def __init__(self, weights: Any, bias: float, cache: Any) -> None:
        self.weights, self.bias, self.steps, self.cache = weights, bias, 3, cache


def typed_dict(**items: Any) -> Any:
    made = typed.Dict()
    for key, item in items.items():
        made[key] = item
    return made


def particles() -> Any:
    made = np.zeros(3, PARTICLE)
    made["position"], made["mass"], made["number"] = np.arange(9.0).reshape(3, 3), 0.5, 7
    return made


def tuples() -> Any:
    """Arrays of all layouts, none in a list."""
    w = np.array([1.0, 2.0])
    layer = Layer(np.array(2.0), np.zeros(0), 3)
    layouts = (np.arange(6.0).reshape(2, 3).T, np.array([1 + 2j, 0, 3])[::-2])
    return w, w, (w.copy(), np.ones(2, np.float32), np.arange(3), None, "text"), layer, layouts, particles()[::2]


def lists() -> Any:
    """Lists and dictionaries, which hold arrays twice; instances with optional fields."""
    w = np.array([1.0, -2.0])
    model = Model(np.array([1.0, -2.0]), 3.0, w)
    return typed.List([1.0, 2.0]), typed_dict(a=(1.0, w)), (model, Model(w, 1.0, None)), w


@njit
def sums(x: Any) -> Any:
    return data.norm(x), data.dot(x, x), data.to_vec(x)


@njit
def made(x: Any) -> Any:
    return data.make_zero(x), data.copy(x), data.from_vec(2.0 * data.to_vec(x), x)


@njit
def changed(x: Any, y: Any) -> Any:
    data.accumulate(x, y)
    total = data.to_vec(x)
    data.make_zero_(x)
    return total


@pytest.mark.parametrize("build", [tuples, lists])
def test_the_results_are_those_of_the_python_functions(build: Any) -> None:
    x = build()
    norm, product, vector = sums(x)
    assert norm == pytest.approx(data.norm(x), rel=1e-12)
    assert product == pytest.approx(data.dot(x, x), rel=1e-12)
    assert vector.tolist() == data.to_vec(x).tolist()
    zero, copy, twice = made(x)
    for mine, factor in ((zero, 0.0), (copy, 1.0), (twice, 2.0)):
        assert list(map(type, mine)) == list(map(type, x))
        assert sums(mine)[2].tolist() == (factor * vector).tolist()  # Python gets an object for each place
    total = changed(x, copy)
    assert total.tolist() == (2.0 * vector).tolist()
    assert data.norm(x) == 0.0
    assert sums(copy)[2].tolist() == vector.tolist()


# --- what is shared ---------------------------------------------------------------------------------------------------


@njit
def added(x: Any, y: Any) -> None:
    data.accumulate(x, y)


@njit
def mapped(x: Any, y: Any) -> Any:
    return data.recursive_map(np.subtract, x, y)


@njit
def mapped_into(out: Any, x: Any, y: Any) -> Any:
    return data.recursive_map_into(np.subtract, out, x, y)


def sharings() -> Any:
    """Structures of two arrays that share some: first two inputs, then an output and two inputs."""
    a, b, c, d = (np.full(2, value) for value in (1.0, 2.0, 5.0, 7.0))
    yield from (((a, a), (b, b)), ((a, a), (b, c)), ((a, c), (b, b)), ((a, b), (b, a)), ((a, b), (a, b)))
    yield from (((c, c), (a, b), (a, b)), ((a, b), (b, a), (c, c)), ((a, b), (a, b), (a, b)))
    yield from (((a, c), (b, d), (b, a)), ((c, d), (a, a), (b, b)), ((c, c), (a, a), (b, b)))


def outcome(f: Any, arguments: Any) -> Any:
    """What a call returns, or that it is refused; then nothing has been written."""
    before = data.to_vec(list(arguments))
    try:
        found = f(*arguments)
    except irad.SignatureError:
        assert data.to_vec(list(arguments)).tolist() == before.tolist()
        return "refused"
    return [array.tolist() for array in arguments[0]], None if found is None else [array.tolist() for array in found]


def test_what_long_lists_share() -> None:
    arrays = [np.full(2, float(i)) for i in range(100)]
    x, y = typed.List(arrays + arrays[::-1]), typed.List(arrays[::-1] + arrays)
    with pytest.raises(irad.SignatureError, match="read, or overwritten again"):
        added(x, y)
    added(x, x)
    copies = [array.copy() for array in arrays]
    added(x, typed.List(copies + copies[::-1]))
    assert [array[0] for array in arrays] == [4.0 * i for i in range(100)]


@pytest.mark.parametrize("wrap", [tuple, typed.List])
def test_what_may_be_shared_is_what_may_be_in_python(wrap: Any) -> None:
    compared = {2: [(added, data.accumulate), (mapped, mapped.py_func)], 3: [(mapped_into, mapped_into.py_func)]}
    refused = 0
    for number in range(11):
        for compiled, python in compared[len(list(sharings())[number])]:
            case, same = list(sharings())[number], list(sharings())[number]
            found = outcome(compiled, tuple(map(wrap, case)))
            refused += found == "refused"
            if number == 1 and python is data.accumulate:  # Python adds up what the second structure holds
                assert found == "refused"
            elif (
                number != 9
            ):  # outputs that share less than the first input: Python replaces them, compiled code cannot
                assert found == outcome(python, same), (number, python)
    assert refused == 7


# --- vectors ----------------------------------------------------------------------------------------------------------


@njit
def conjugate_gradients(model: Any, steps: int) -> Any:
    """Solves ``2 x + (sum of x) = model``, for instances of a jitclass."""
    b = data.VectorSpace(model)
    x, residual, direction = b.zero(), b.copy(), b.copy()
    for _ in range(steps):
        image = 2.0 * direction
        image.value.weights += direction.value.weights.sum()
        before = residual.dot(residual)
        length = before / direction.dot(image)
        x.axpy(length, direction)
        residual.axpy(-length, image)
        direction = residual + (residual.dot(residual) / before) * direction
    return x, residual.norm()


def test_conjugate_gradients_over_an_instance() -> None:
    right = np.array([1.0, -2.0, 4.0])
    x, rest = conjugate_gradients(Model(right, 3.0, None), 3)
    assert isinstance(x, data.VectorSpace)
    np.testing.assert_allclose(x.value.weights, np.linalg.solve(2.0 * np.eye(3) + np.ones((3, 3)), right), rtol=1e-12)
    assert x.value.bias == pytest.approx(1.5, rel=1e-12)
    assert x.value.steps == 3
    assert x.value.cache is None
    assert rest < 1e-12


@njit
def operators(x: Any, y: Any) -> Any:
    z = (2.0 * x - y / 4 + (-y)).copy()
    z += x
    z -= y
    z *= 2.0
    z /= 4.0
    z.axpy(3.0, x)
    y.copyto(x)
    y.zero_()
    y.map_(np.add, x, x)
    return z, x, y, x.map(np.multiply, x)


def test_operators_of_vectors_are_those_in_python() -> None:
    def vectors() -> Any:
        values = ((np.array([1.0, 2.0]), np.array([1j, 2.0])[::-1]), (np.array([3.0, 5.0]), np.array([1.0, 4j])[::-1]))
        return map(data.VectorSpace, values)

    for mine, expected in zip(operators(*vectors()), operators.py_func(*vectors()), strict=True):
        for part, wanted in zip(mine.value, expected.value, strict=True):
            np.testing.assert_allclose(part, wanted, rtol=1e-15)


# --- memory, derivatives, refusals ------------------------------------------------------------------------------------


@njit
def repeated(x: Any, y: Any, steps: int) -> None:
    for _ in range(steps):
        data.accumulate(x, y)
        data.make_zero_(x)
        data.VectorSpace(x).axpy(0.5, data.VectorSpace(y))


def test_nothing_is_allocated_in_place() -> None:
    a, numbers = np.ones(3), typed.List([1.0, 2.0])
    x, y = (
        (Model(array, 1.0, None), array, numbers.copy(), typed.List([array + i for i in range(1, 15)] + [array]))
        for array in (a, a + 1.0)
    )
    repeated(x, y, 1)
    made = []
    for steps in (1, 10_000):
        with allocations() as counted:
            repeated(x, y, steps)
            found = counted()
        assert (found.kept, found.kept_headers) == (0, 0)
        made.append(found.made)
    assert made[0] == made[1]


@njit
def loss(x: Any) -> float:
    y = data.copy(x)
    data.accumulate(y, x)
    return data.norm(x) ** 3 + data.dot(x, y) + data.norm(data.make_zero(x))


@pytest.mark.parametrize("wrap", [tuple, typed.List])
def test_gradients_of_what_is_shared(wrap: Any) -> None:
    w = np.array([1.0, -2.0])
    value, gradient = irad.value_and_grad(loss)(wrap([w, np.array([3.0]), w]))
    vector = np.array([1.0, -2.0, 3.0])
    norm = np.sqrt(14.0)
    assert value == pytest.approx(norm**3 + 28.0)
    for part, wanted in zip(gradient, np.split((3.0 * norm + 4.0) * vector, [2]), strict=False):
        np.testing.assert_allclose(part, wanted, rtol=1e-12)


@irad.jit
def step(params: Any, gradient: Any) -> Any:
    return data.recursive_map(lambda value, slope: value - 0.5 * slope, params, gradient), data.one_hot(params, 1)


def test_packed_structures_and_mapped_functions() -> None:
    params = {"w": np.array([1.0, 2.0], np.float32), "b": 3.0, "rest": [None, np.array(1.0)], "name": "first"}
    made, hot = step(params, data.copy(params))
    assert (made["b"], made["name"], made["rest"][0], hot["b"]) == (1.5, "first", None, 0.0)
    assert made["w"].tolist() == [0.5, 1.0]
    assert made["w"].dtype == np.float32
    assert made["rest"][1] == 0.5
    assert hot["w"].tolist() == [0.0, 1.0]


@njit
def several(x: Any) -> Any:
    data.remake_zero_(x[2])
    return data.recursive_map(lambda a, b: (a + b, a - b), x, x, outputs=2), data.leaves(x[:2])


def test_several_results_leaves_and_what_cannot_be_overwritten() -> None:
    x = (np.ones(2), np.zeros(1), (2.0, np.ones(3)), [1.0, 2.0])
    (total, difference), leaves = several(x)
    assert total[0].tolist() == [2.0, 2.0]
    assert (total[2][0], total[2][1].tolist(), total[3]) == (4.0, [0.0, 0.0, 0.0], [2.0, 4.0])
    assert difference[3] == [0.0, 0.0]
    assert [leaf.tolist() for leaf in leaves] == [[1.0, 1.0], [0.0]]
    assert leaves[0][0] == 1.0


def test_overlapping_arrays_are_read_before_they_are_overwritten() -> None:
    mine, expected = np.arange(4.0), np.arange(4.0)
    added((mine[1:],), (mine[:3],))
    data.accumulate((expected[1:],), (expected[:3],))
    assert mine.tolist() == expected.tolist() == [0.0, 1.0, 3.0, 5.0]


@pytest.mark.parametrize(
    ("f", "arguments", "words"),
    [
        (lambda x: data.make_zero_(x), ((1.0, np.ones(1)),), r"a float64 at \[0\] cannot be overwritten"),
        (lambda x, y: data.dot(x, y), ((1.0,), (1,)), "the structures differ"),
        (lambda x, y: data.dot(x, y), ((np.ones(1),), (np.ones(2),)), "arrays of different shapes"),
        (lambda x: data.from_vec(np.ones(3), x), ((1.0, 2.0),), "more or fewer elements"),
        (lambda x: data.leaves(x), ((1.0, np.ones(1)),), "different types"),
        (lambda x: data.copy(x, copy_if_inactive=True), ((1.0, 2),), "copy_if_inactive="),
        (lambda x: data.recursive_map(lambda v: v * 1j, x), ((1.0,),), "returns a complex128 for a float64"),
        (lambda x: data.copy(x), (particles()[0],), "a new record would be needed"),
        (lambda x: data.VectorSpace(x) * data.VectorSpace(x), ((1.0,),), r"x\.dot\(y\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(f: Any, arguments: Any, words: str) -> None:
    with pytest.raises(irad.SignatureError, match=words):
        njit(f)(*arguments)
