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
    nested = typed.List([typed.List([w, w + 1.0]), typed.List([w])])
    pairs = typed.List([(1.0, w), (2.0, np.ones(2))])
    return typed.List([1.0, 2.0]), nested, pairs, typed_dict(a=w, b=w + 2.0), (model, model, Model(w, 1.0, None)), w


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


@pytest.mark.parametrize("wrap", [tuple, typed.List])
def test_what_may_be_shared_is_what_may_be_in_python(wrap: Any) -> None:
    compared = {2: [(added, data.accumulate), (mapped, mapped.py_func)], 3: [(mapped_into, mapped_into.py_func)]}
    refused = 0
    for number in range(11):
        for compiled, python in compared[len(list(sharings())[number])]:
            case, same = list(sharings())[number], list(sharings())[number]
            found = outcome(compiled, tuple(map(wrap, case)))
            refused += found == "refused"
            if number != 9:  # outputs that share less than the first input: Python replaces them, compiled code cannot
                assert found == outcome(python, same), (number, python)
    assert refused == 7
