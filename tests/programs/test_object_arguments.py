"""Class instances, dictionaries and lists of arrays as differentiated arguments: read, written, grown, shared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, int64, njit, types
from numba.core.extending import as_numba_type
from numba.experimental import jitclass, structref
from numba.typed import Dict, List

import irad
from irad import data
from irad.data.copies import same_bits
from irad.options import Options
from irad.testing.check_gradient import reference
from irad.testing.gradients.trial import optimisation_limited
from tests.tools.catalogue import Case, Catalogue, later

PROGRAMS = Catalogue()

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")

ARRAYS = [np.array([1.5, -0.5]), np.array([0.75, 1.25, 2.0]), np.array([0.5])]
SINGLE = [array.astype(np.float32) for array in ARRAYS]
VIEWS = [np.arange(6.0)[::2], np.arange(1.0, 9.0)[::-2], np.arange(9.0)[1::3]]


def dictionary(items: dict[Any, Any]) -> Any:
    result = Dict()
    for key, value in items.items():
        result[key] = value
    return result


def worn(items: dict[Any, Any]) -> Any:
    """A dictionary from which entries were deleted, the last among them."""
    result = dictionary({**items, 99: next(iter(items.values()))})
    first = next(iter(items))
    value = result.pop(first)
    del result[99]
    result[first] = value
    result[98] = value
    del result[98]
    return result


# --- lists ------------------------------------------------------------------------------------------------------------


@PROGRAMS.at(ARRAYS, 1.5)
@PROGRAMS.at(later(List, ARRAYS), 1.5)
@PROGRAMS.at(later(List, VIEWS), 1.5)
@PROGRAMS.at(later(List, SINGLE), np.float32(1.5))
@njit
def arrays_read(values, x):
    s = x - x
    for a in values:
        for i in range(a.size):
            s += a[i] * a[0] * x
    return s


@PROGRAMS.at(ARRAYS, 1.5)
@PROGRAMS.at(later(List, VIEWS), 1.5)
@njit
def arrays_written(values, x):
    s = 0.0
    for a in values:
        a *= a[0]
        s += a.sum()
    values[1][0] = s * x
    return values[1][0] * values[0][0] + s


@PROGRAMS.at(ARRAYS, 1.5, 5)
@PROGRAMS.at(ARRAYS, 1.5, 0)
@PROGRAMS.at(later(List, ARRAYS), 1.5, 5)
@njit
def list_grown(values, x, n):
    for i in range(n):
        values.append(values[i] * x)
        values[i] = values[-1]
        values[-1][0] *= values[0][0]
    s = 0.0
    for a in values:
        s += a[0] * a[a.size - 1]
    return s


@PROGRAMS.at(ARRAYS, 1.5)
@PROGRAMS.at(later(List, ARRAYS), 1.5)
@njit
def list_shrunk(values, x):
    last = values.pop()
    first = values.pop(0)
    values.insert(0, first * last[0])
    values.append(first)
    return values[0][0] * values[-1][1] * x + values[1][2]


@PROGRAMS.at([(1.5, 2.5), (0.5, -1.5)], 2.0)
@PROGRAMS.at(later(List, [(np.float32(1.5), 2.5), (np.float32(0.5), -1.5)]), 2.0)
@njit
def pairs(values, x):
    s = 0.0
    for a, b in values:
        s += a * b * x
    a, b = values[0]
    values[1] = values[0]
    values.append((a, b))
    return s * values[1][0] + values[-1][1]


@PROGRAMS.at([(1.5, ARRAYS[0], 2), (0.5, ARRAYS[2], 0)], 2.0)
@PROGRAMS.at(later(List, [(1.5, ARRAYS[0], 2), (0.5, ARRAYS[2], 0)]), 2.0)
@njit
def tuples_with_arrays(values, x):
    s = 0.0
    for a, b, n in values:
        b[0] *= a
        s += a * b.sum() * x + n
    a, b, n = values[0]
    values[1] = (a * x, b * 2.0, n)
    return s * values[1][1][0]


@PROGRAMS.at(later(lambda: List([List([1.5, 2.5]), List([0.5, 2.0, 3.0])])), 2.0)
@njit
def nested_lists(values, x):
    values[0][1] *= x
    values[1].append(values[0][1] * values[1][2])
    s = 0.0
    for row in values:
        for a in row:
            s += a * a
    values.append(values[0])
    return s * values[2][0]


@PROGRAMS.at(later(List, [np.array([[1.5, 2.5], [0.5, 1.0]]), np.array([[0.25, 2.0]])]), np.array([1.5, 0.5]))
@njit
def matrices(values, y):
    s = 0.0
    for a in values:
        z = a @ y
        s += (z * z).sum()
        a[0, :] = a[0, ::-1] * s
    return s + values[0][0, 0]


@PROGRAMS.at((ARRAYS, 2.0, [1.5, 2.5]), later(List, [array + 1.0 for array in ARRAYS]))
@njit
def objects_in_tuples(t, more):
    values, x, numbers = t
    numbers.append(values[0][0] * x)
    more[0] = values[1]
    return numbers[-1] * more[0][1] * numbers[0]


@PROGRAMS.at(ARRAYS, 1.5)
@njit
def returned_part(values, x):
    values[0] *= x
    return values[0], values[1] * x, values[2][0]


# --- dictionaries -----------------------------------------------------------------------------------------------------


@PROGRAMS.at(later(dictionary, {"a": 1.5, "b": 2.5, "c": -0.5}), 2.0)
@PROGRAMS.at(later(dictionary, {"a": np.float32(1.5), "b": np.float32(2.5), "c": np.float32(-0.5)}), np.float32(2.0))
@njit
def numbers_by_name(table, x):
    table["a"] = table["b"] * x
    table["d"] = table["a"] * table["c"]
    s = x - x
    for value in table.values():
        s += value * value
    return s * table.pop("b")


@PROGRAMS.at(later(worn, {1: ARRAYS[0], 5: ARRAYS[1], 2: ARRAYS[2]}), 1.5)
@PROGRAMS.at(later(dictionary, {1: VIEWS[0], 5: VIEWS[1], 2: VIEWS[2]}), 1.5)
@njit
def arrays_by_number(table, x):
    s = 0.0
    for key, a in table.items():
        s += a.sum() * key
    table[1][0] *= s * x
    table[7] = table[1] * x
    table[2] = table[7]
    del table[5]
    for i in range(10, 30):  # the table is rebuilt
        table[i] = table[2] * s
    return table[29][0] * s + table[2].sum()


@PROGRAMS.at(later(dictionary, {(1, 2): (1.5, ARRAYS[0]), (2, 1): (0.5, ARRAYS[1])}), 1.5)
@njit
def tuples_by_pair(table, x):
    a, v = table[(1, 2)]
    table[(2, 1)] = (a * x, v * a)
    s = 0.0
    for b, w in table.values():
        w[0] *= b
        s += b * w.sum()
    return s


@PROGRAMS.at(later(dictionary, {0.5: 1.5, 0.25: 2.5}), 1.5)
@njit
def float_keys(table, x):
    s = 0.0
    for key in table:
        s += key * table[key] * x
    return s


@PROGRAMS.at(later(lambda: dictionary({1: List([1.5, 2.5]), 2: List([0.5])})), 1.5)
@njit
def lists_by_number(table, x):
    table[1].append(table[2][0] * x)
    table[2] = table[1]
    table[2][0] *= x
    return table[1][2] * table[1][0] + table[2][1]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


# --- instances --------------------------------------------------------------------------------------------------------


@jitclass([("weights", float64[::1]), ("bias", float64), ("count", int64), ("name", types.unicode_type)])
class Layer:
    def __init__(self, weights, bias):
        self.weights = weights
        self.bias = bias
        self.count = 0
        self.name = "layer"

    def apply(self, x):
        self.count += 1
        return (self.weights * x).sum() * self.bias + self.bias

    def scale(self, x):
        self.bias *= x
        self.weights[0] *= self.bias
        self.weights = self.weights * x


LAYER = as_numba_type(Layer)


@jitclass(
    [
        ("first", LAYER),
        ("second", LAYER),
        ("_step", float64),
        ("index", int64[::1]),
        ("pair", types.Tuple((float64, int64, float64[::1]))),
        ("numbers", types.ListType(float64)),
        ("arrays", types.ListType(float64[::1])),
        ("table", types.DictType(int64, float64[::1])),
        ("layers", types.ListType(LAYER)),
    ]
)
class Model:
    def __init__(self, first, second, step, pair, numbers, arrays, table, layers):
        self.first, self.second, self._step = first, second, step
        self.index = np.array([1, 0])
        self.pair, self.numbers, self.arrays, self.table, self.layers = pair, numbers, arrays, table, layers

    def run(self, x):
        s = self.first.apply(x) * self.second.apply(self._step) + self.pair[0] * self.pair[2][self.index[0]]
        for a in self.numbers:
            s += a * a * x
        for b in self.arrays:
            s *= b[0]
        for c in self.table.values():
            s += c[0] * x
        for layer in self.layers:
            s += layer.apply(s)
        return s


@jitclass([("weights", float32[:, ::1]), ("bias", float32)])
class Single:
    def __init__(self, weights, bias):
        self.weights, self.bias = weights, bias


@structref.register
class RodType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(numba_type)) for name, numba_type in fields)


class Rod(structref.StructRefProxy):
    def __new__(cls, length, mass, kind):
        return structref.StructRefProxy.__new__(cls, length, mass, kind)


structref.define_proxy(Rod, RodType, ["length", "mass", "kind"])


@njit
def layer(weights, bias, x):
    return Layer(weights, bias), x


@njit
def layers(w, a, v, b, x):
    return Layer(w, a), Layer(v, b), x


@njit
def model(w, a, v, b, step, p, q, numbers, c, d, e, u, f, x):
    table = Dict.empty(types.int64, float64[::1])
    table[5], table[2] = d, e
    made = Model(
        Layer(w, a), Layer(v, b), step, (p, 3, q), List([numbers[0], numbers[1]]), List([c]), table, List([Layer(u, f)])
    )
    return made, x


@njit
def rod(length, mass, x):
    return Rod(length, mass, 3), x


MODEL = (
    *(np.array([1.5, -0.5, 0.25]), 0.75, np.array([0.5, 2.0]), 1.25, 0.5, 2.5, np.array([0.5, 0.75])),
    *(np.array([1.5, 2.5]), np.array([0.75, 2.0]), np.array([0.25]), np.array([0.125]), np.array([0.5]), 0.5, 0.75),
)
WEIGHTS = np.array([1.5, -0.5, 0.25])


@njit
def read(o, x):
    return o.apply(x) * o.bias


@njit
def written(o, x):
    o.scale(x)
    o.bias = o.bias * o.weights[0]
    return o.apply(x) * o.bias


@njit
def looped(o, x):
    for _ in range(4):
        o.weights = o.weights * x + o.bias
        o.bias += o.weights[1] * 0.1
        if o.bias > 5.0:
            break
    return o.apply(x)


@njit
def swapped(o, p, x):
    o.weights, p.weights = p.weights, o.weights
    o.scale(x)
    o.bias, p.bias = p.bias, o.bias
    return o.apply(x) * p.apply(x)


@njit
def collected(o, p, x):
    values = [o, p]
    s = 0.0
    for value in values:
        value.weights[0] *= x
        s += value.weights.sum() * value.bias
    return s * o.weights[0]


@njit
def model_read(o, x):
    return o.run(x)


@njit
def model_written(o, x):
    o._step *= x
    o.numbers.append(o._step)
    o.first.weights[0] *= o.numbers[-1]
    o.arrays.append(o.first.weights * x)
    o.table[7] = o.arrays[0]
    o.arrays[0][0] *= x
    o.second = o.first
    o.second.scale(x)
    o.index[0] = 0
    o.pair = (o.pair[0] * x, 2, o.arrays[-1])
    o.layers.append(o.first)
    o.layers[0].bias *= x
    result = o.run(x)
    o.index[0] = 1
    return result


@njit
def rod_written(o, x):
    o.mass = o.mass * x
    o.length[0] *= o.mass
    o.length = o.length * x
    return o.length[0] * o.mass + o.length.sum() * o.kind


@njit
def rods(o, x):
    other = Rod(o.length * x, x, 2)
    other.length[0] = o.mass
    o.length = other.length
    o.mass, other.mass = other.mass, o.mass
    return o.length.sum() * o.mass + other.length[1]


@njit
def arrays_out(o, x):
    o.scale(x)
    return o.weights, o.bias * x


INSTANCES = [
    (read, layer, (WEIGHTS, 0.75, 1.5)),
    (written, layer, (WEIGHTS, 0.75, 1.5)),
    (looped, layer, (WEIGHTS, 0.75, 1.5)),
    (swapped, layers, (WEIGHTS, 0.75, np.array([0.5, 2.0]), 1.25, 1.5)),
    (collected, layers, (WEIGHTS, 0.75, np.array([0.5, 2.0]), 1.25, 1.5)),
    (model_read, model, MODEL),
    (model_written, model, MODEL),
    (rod_written, rod, (np.array([1.5, 2.5]), 0.75, 1.5)),
    (rods, rod, (np.array([1.5, 2.5]), 0.75, 1.5)),
    (arrays_out, layer, (WEIGHTS, 0.75, 1.5)),
]


def composed(f: Callable[..., Any], make: Callable[..., Any]) -> Any:
    return njit(lambda *numbers: f(*make(*numbers)))


def fresh(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.copy() if isinstance(value, np.ndarray) else value for value in values)


def fields(value: Any) -> Any:
    """What is in an object, as tuples."""
    kind = getattr(value, "_numba_type_", None)
    match kind:
        case types.ClassInstanceType():
            return tuple(fields(getattr(value, name)) for name in kind.struct if not name.startswith("_"))
        case types.StructRef():
            return tuple(fields(_field(value, name)) for name in kind.field_dict)
        case types.DictType():
            return tuple((key, fields(entry)) for key, entry in value.items())
        case types.ListType():
            return tuple(map(fields, value))
    return value


def _field(value: Any, name: str) -> Any:
    scope: dict[str, Any] = {}
    exec(f"def get(value): return value.{name}", scope)
    return njit(scope["get"])(value)


@pytest.mark.parametrize(("f", "make", "values"), INSTANCES, ids=lambda part: getattr(part, "__name__", ""))
def test_instances(f, make, values):
    """The gradient with respect to objects is that of the numbers and arrays they are made of, in the same order."""
    with optimisation_limited():
        expected = reference(composed(f, make), values)
        plain = make(*fresh(values))
        f(*plain)

    def check(value, given, results):
        wanted = np.concatenate(expected.derivatives)
        assert same_bits(value, expected.value)
        assert same_bits(fields(given[0]), fields(plain[0])), "memory afterwards"
        for result in results:
            np.testing.assert_allclose(data.to_vec(result), wanted, rtol=1e-6, atol=1e-6 * np.max(np.abs(wanted)))

    if expected.seed is None:
        given = make(*fresh(values))
        value, gradients = irad.value_and_grad(f, tuple(range(len(given))))(*given)
        check(value, given, [gradients])
    seed = 1.0 if expected.seed is None else expected.seed
    for plan, limit in (("default", nullcontext), ("save_all", optimisation_limited)):
        given = make(*fresh(values))
        with limit():
            value, pullback = irad.vjp(f, *given, options=Options(plan=plan))
            check(value, given, [pullback(seed), pullback(seed)])


def test_single_precision():
    @njit
    def f(o):
        o.bias *= o.weights[0, 1]
        return o.bias * o.weights[1, 0]

    weights = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    gradient = irad.grad(f)(Single(weights, 0.5))
    assert gradient.weights.dtype == np.float32
    np.testing.assert_array_equal(gradient.weights, [[0.0, 1.5], [1.0, 0.0]])
    assert gradient.bias == 6.0
