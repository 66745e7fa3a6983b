"""Lists, dictionaries and instances in forward mode, against closed forms, reverse mode and differences."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core import types
from numba.experimental import jitclass, structref
from numba.typed import Dict, List

import irad
from irad.testing.allocations import allocations

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")

PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])
KINDS = pytest.mark.parametrize("make", [list, List], ids=["reflected", "typed"])


@njit
def grown(v, x):
    v[0] = v[1] * x
    v.append(v[0] * v[0])
    return v[0] + v[2]


@njit
def popped(v, x):
    total = v.pop() * x
    total += v.pop(0) ** 2
    v.insert(0, x)
    return total * v[0] + v[-1]


@njit
def sorted_items(v, x):
    v.sort()
    total = 0.0
    for i in range(len(v)):
        total += (i + 1) * v[i] * x
    return total


@njit
def turned(v, x):
    w = v[::-1]
    w.extend(v)
    del w[1]
    return w[0] * w[1] + w[-1] * x


@KINDS
@PLANS
@pytest.mark.parametrize("function", [grown, popped, sorted_items, turned], ids=lambda function: function.__name__)
def test_lists_of_numbers_as_arguments(function, make, plan):
    options, direction, h = irad.Options(plan=plan), [0.5, -2.0, 1.0], 1e-5
    values, given = [3.0, 1.5, 2.5], make(direction)
    changed, expected = make(values), make(values)
    value, tangent = irad.jvp(function, (changed, 2.0), (given, 3.0), options=options)
    assert value == function(expected, 2.0)
    assert (list(changed), list(given)) == (list(expected), direction)
    by_v, by_x = irad.grad(function, (0, 1), options=options)(make(values), 2.0)
    assert tangent == pytest.approx(np.dot(list(by_v), direction) + 3.0 * by_x, rel=1e-14)
    shifted = [function(make([v + s * h * d for v, d in zip(values, direction, strict=True)]), 2.0 + s * h * 3.0)
               for s in (1, -1)]  # fmt: skip
    assert tangent == pytest.approx((shifted[0] - shifted[1]) / (2 * h), rel=1e-8)


@KINDS
def test_the_tangent_may_be_the_list_itself(make):
    v = make([1.0, 3.0])
    assert irad.jvp(grown, (v, 2.0), (v, None)) == (42.0, 3.0 * 26.0)
    assert list(v) == [6.0, 3.0, 36.0]


def test_empty_lists():
    @njit
    def first_appended(v, x):
        v.append(x * x)
        return v[0] * len(v)

    empty = List.empty_list(types.float64)
    assert irad.jvp(first_appended, (empty, 2.0), (List.empty_list(types.float64), 1.0)) == (4.0, 4.0)
    _, tangent = irad.jvp(lambda v: v, (List.empty_list(types.float64),), (List.empty_list(types.float64),))
    assert len(tangent) == 0


def test_single_precision_and_complex_items():
    @njit
    def squares(v):
        return v[0] * v[0] + v[1]

    single = [np.float32(1.5), np.float32(1.0)]
    assert irad.jvp(squares, (single,), ([np.float32(1.0), np.float32(2.0)],)) == (3.25, 5.0)
    assert irad.jvp(squares, ([1.0 + 2.0j, 0j],), ([1j, 2.0 + 0j],)) == (-3.0 + 4.0j, 2.0 * (1.0 + 2.0j) * 1j + 2.0)


def test_lists_in_tuples_and_in_annotations():
    @njit
    def both(pair, x):
        return pair[0][1] * pair[1] * x

    assert irad.jvp(both, (([1.0, 3.0], 2.0), 5.0), (([0.0, 1.0], 1.0), None)) == (30.0, 10.0 + 15.0)
    assert irad.autodiff(irad.Forward, both, irad.Duplicated(([1.0, 3.0], 2.0), (None, 1.0)), irad.Const(5.0)) == 15.0
    given = irad.Duplicated([1.0, 3.0], [0.0, 1.0]), irad.Const(2.0)
    assert irad.autodiff(irad.ForwardWithPrimal, grown, *given) == (26.0, 42.0)


def test_inside_compiled_code():
    @njit
    def slope(n):
        values, direction = [1.0 * i for i in range(n)], [1.0 for _ in range(n)]
        return irad.jvp(sorted_items, (values, 2.0), (direction, None))[1]

    assert slope(4) == 2.0 * (1 + 2 + 3 + 4)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0], r"different length: \(1,\), not \(2,\)"),
        (lambda: List([1.0, 2.0, 3.0]), "the tangent is a ListType"),
        ([1, 2], "the tangent is a list"),
        ((1.0, 2.0), "the tangent is a UniTuple"),
        (np.ones(2), "the tangent is a float64"),
        (1.0, "the tangent is a float64"),
    ],
)
def test_tangents_of_lists_that_do_not_fit(given, message):
    v = [1.0, 3.0]
    given = given() if callable(given) else given  # each process of a run would compile for it, as it imports this
    with pytest.raises(irad.SignatureError, match=message):
        irad.jvp(grown, (v, 2.0), (given, None))
    assert v == [1.0, 3.0]
    with pytest.raises(irad.SignatureError, match=r"different length: \(3,\), not \(2,\)"):
        irad.jvp(grown, (List(v), 2.0), (List([1.0, 2.0, 3.0]), None))


# ------------------------------------------------------------------------------------------------ objects


@jitclass([("rate", types.float64), ("state", types.float64[:]), ("steps", types.int64)])
class Model:
    def __init__(self, rate, state):
        self.rate = rate
        self.state = state
        self.steps = 3

    def advance(self):
        for _ in range(self.steps):
            self.state[:] = self.state * (1.0 - self.rate * self.state)


@structref.register
class PairType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Pair(structref.StructRefProxy):
    def __new__(cls, left, right):
        return structref.StructRefProxy.__new__(cls, left, right)


structref.define_proxy(Pair, PairType, ["left", "right"])


@njit
def advanced(model, x):
    model.advance()
    model.rate *= x
    return model.state.sum() * model.rate


@njit
def of_a_pair(pair, x):
    pair.right[0] = pair.left * x
    pair.left = pair.right.sum()
    return pair.left * pair.right[1]


@njit
def of_arrays(arrays, x):
    arrays[0][0] *= x
    arrays.append(arrays[0] * arrays[1][0])
    arrays.pop(1)
    total = 0.0
    for each in arrays:
        total += (each**2).sum()
    return total


@njit
def of_numbers(table, x):
    table["c"] = table["a"] * x
    table["a"] = 3.0
    total = table.pop("b") ** 2
    for name in table:
        total += table[name] * len(name)
    return total * table["c"]


@njit
def of_nested(table, x):
    table[3].append(x * table[1][0])
    table[1] = table[3]
    total = 0.0
    for values in table.values():
        for value in values:
            total += value * value
    return total


@njit
def of_tuples(pairs, x):
    total = 0.0
    for number, array in pairs:
        total += number * array.sum() * x
    return total


def model():
    return Model(0.2, np.array([0.5, 0.25, 1.0]))


def table_of_numbers():
    table = Dict()
    for i, name in enumerate("dab"):
        table[name] = i + 1.5
    return table


def table_of_lists():
    table = Dict()
    table[3] = List([1.0, 2.0])
    table[1] = List([0.5])
    return table


CASES = [
    pytest.param(advanced, model, id="jitclass"),
    pytest.param(of_a_pair, lambda: Pair(2.0, np.array([1.0, 3.0])), id="structref"),
    pytest.param(of_arrays, lambda: List([np.array([1.0, 2.0]), np.array([3.0])]), id="typed list of arrays"),
    pytest.param(of_arrays, lambda: [np.array([1.0, 2.0]), np.array([3.0])], id="list of arrays"),
    pytest.param(of_numbers, table_of_numbers, id="dictionary of numbers"),
    pytest.param(of_nested, table_of_lists, id="dictionary of lists"),
    pytest.param(of_tuples, lambda: [(1.0, np.ones(2)), (2.0, np.arange(3.0))], id="list of tuples"),
]


@PLANS
@pytest.mark.parametrize(("function", "make"), CASES)
def test_objects_as_arguments(function, make, plan):
    """A gradient is a direction; in that of the gradient itself, the slope is its squared length."""
    options = irad.Options(plan=plan)
    gradient, by_x = irad.grad(function, (0, 1), options=options)(make(), 1.25)
    expected = make()
    value, tangent = irad.jvp(function, (make(), 1.25), (gradient, 2.0), options=options)
    assert value == function(expected, 1.25)
    assert tangent == pytest.approx(irad.data.norm(gradient) ** 2 + 2.0 * by_x, rel=1e-13)
    plain = irad.jvp(function, (make(), 1.25), (None, 2.0), options=options)[1]
    assert plain == pytest.approx(2.0 * by_x, rel=1e-14)


def test_an_instance_by_differences():
    direction, h = np.array([1.0, -2.0, 0.5]), 1e-5
    given = Model(0.5, direction)
    tangent = irad.jvp(advanced, (model(), 1.25), (given, None))[1]
    shifted = [advanced(Model(0.2 + s * h * 0.5, model().state + s * h * direction), 1.25) for s in (1, -1)]
    assert tangent == pytest.approx((shifted[0] - shifted[1]) / (2 * h), rel=1e-8)
    assert irad.jvp(advanced, (model(), 1.25), ((0.5, direction, None), None))[1] == tangent
    zero = irad.jvp(advanced, (model(), 1.25), ((0.5, None, None), None))[1]
    assert zero == pytest.approx(0.5 * irad.grad(advanced)(model(), 1.25).rate, rel=1e-14)


@pytest.mark.parametrize(
    ("function", "make", "given", "message"),
    [
        (advanced, model, (1.0, np.ones(2), None), r"different shape from the array: \(2,\), not \(3,\)"),
        (advanced, model, (1.0, np.ones(3)), "the tangent is a Tuple"),
        (advanced, model, (1.0, np.ones(3, np.float32), None), "the tangent is a Tuple"),
        (advanced, model, (1.0, np.ones(3), 1), "the tangent is a Tuple"),
        (of_nested, table_of_lists, table_of_numbers, "the tangent is a DictType"),
        (of_arrays, CASES[3].values[1], [np.ones(2)], r"different length: \(1,\), not \(2,\)"),
    ],
)
def test_tangents_of_objects_that_do_not_fit(function, make, given, message):
    given = given() if callable(given) else given
    with pytest.raises(irad.SignatureError, match=message):
        irad.jvp(function, (make(), 1.25), (given, None))


def test_a_dictionary_with_other_keys_does_not_fit():
    given = table_of_numbers()
    del given["a"]
    with pytest.raises(irad.SignatureError, match=r"different length: \(2,\), not \(3,\)"):
        irad.jvp(of_numbers, (table_of_numbers(), 2.0), (given, None))
    given["x"] = 1.0
    with pytest.raises(irad.SignatureError, match="lacks one of its keys"):
        irad.jvp(of_numbers, (table_of_numbers(), 2.0), (given, None))


def test_what_is_reached_in_two_ways_has_one_tangent():
    shared = np.array([1.0, 2.0])
    one, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])

    @njit
    def written(arrays):
        arrays[0][0] *= 3.0
        return arrays[0][0] * arrays[1][1] + arrays[1][0]

    assert irad.jvp(written, ([shared.copy()] * 2,), ([one, one.copy()],)) == (9.0, 9.0)
    with pytest.raises(irad.SignatureError, match="two tangents, which differ"):
        irad.jvp(written, ([shared] * 2,), ([one, other],))

    @njit
    def read(arrays):
        return arrays[0][0] * arrays[1][1]

    assert irad.jvp(read, ([shared] * 2,), ([one, other],)) == (2.0, 3.0)


# ------------------------------------------------------------------------------------------------ results


@PLANS
def test_returned_containers(plan):
    @njit
    def returned(x):
        typed, table = List(), Dict.empty(types.unicode_type, types.float64[::1])
        typed.append(x * x)
        typed.append(2.0)
        for name in ("a", "b", "c"):
            table[name] = np.full(2, x**3)
        table["b"] = np.ones(1)
        del table["a"]
        return [x, 1.0], typed, (table, [np.ones(2) * x, np.ones(1)])

    _, (numbers, typed, (table, arrays)) = irad.jvp(returned, (2.0,), (3.0,), options=irad.Options(plan=plan))
    assert (numbers, list(typed)) == ([3.0, 0.0], [12.0, 0.0])
    assert {name: list(array) for name, array in table.items()} == {"b": [0.0], "c": [36.0, 36.0]}
    assert [list(array) for array in arrays] == [[3.0, 3.0], [0.0]]


def test_returned_instances():
    @njit
    def returned(x):
        models = List()
        for i in range(3):
            models.append(Model(x * i, np.ones(i) * x))
        return models, Pair(x * x, np.ones(1))

    _, (models, pair) = irad.jvp(returned, (2.0,), (1.0,))
    assert [(m.rate, list(m.state), m.steps) for m in models] == [(0.0, [], 3), (1.0, [1.0], 3), (2.0, [1.0] * 2, 3)]
    assert (pair.left, list(pair.right)) == (4.0, [0.0])


@KINDS
def test_an_argument_that_is_returned(make):
    @njit
    def doubled(v):
        for i in range(len(v)):
            v[i] *= 2.0 * v[i]
        v.append(5.0)
        v.append(v[0])
        return v

    v = make([1.0, 3.0])
    value, tangent = irad.jvp(doubled, (v,), (make([1.0, 0.5]),))
    assert (list(value), list(tangent)) == ([2.0, 18.0, 5.0, 2.0], [4.0, 6.0, 0.0, 4.0])


def test_results_that_do_not_depend_on_the_argument():
    @njit
    def constant(x, table):
        return [1.0, 2.0], table, List([3.0]), x

    _, tangent = irad.jvp(constant, (2.0, table_of_lists()), (1.0, None))
    assert (tangent[0], list(tangent[2]), tangent[3]) == ([0.0, 0.0], [0.0], 1.0)
    assert {key: list(values) for key, values in tangent[1].items()} == {3: [0.0, 0.0], 1: [0.0]}


def test_sets_are_refused():
    @njit
    def in_a_set(x):
        return {x, 2.0 * x}

    with pytest.raises(irad.UnsupportedError, match="whose tangent irad cannot represent"):
        irad.jvp(in_a_set, (1.0,), (1.0,))


def test_a_list_or_none():
    @njit
    def or_none(x):
        if x > 1.0:
            return None
        return [x * x]

    @njit
    def maybe(x):
        return x, or_none(x)

    assert irad.jvp(maybe, (0.5,), (1.0,)) == ((0.5, [0.25]), (1.0, [1.0]))
    assert irad.jvp(maybe, (2.0,), (1.0,)) == ((2.0, None), (1.0, None))


def test_references_are_given_back():
    arrays, tangents = [np.array([1.0, 2.0]), np.array([3.0])], [np.ones(2), np.ones(1)]

    @njit
    def returned(x):
        return [np.ones(2) * x], table_with(x), Model(x, np.ones(2) * x)

    @njit
    def table_with(x):
        table = Dict.empty(types.int64, types.float64[::1])
        table[3] = np.full(2, x)
        return table

    def run():
        irad.jvp(of_arrays, (arrays[:], 1.0), (tangents, None))
        irad.jvp(advanced, (model(), 1.0), ((1.0, np.ones(3), None), None))
        irad.jvp(of_nested, (table_of_lists(), 1.0), (table_of_lists(), None))
        irad.jvp(returned, (2.0,), (1.0,))
        with pytest.raises(irad.SignatureError):
            irad.jvp(of_arrays, (arrays[:], 1.0), (tangents[:1], None))

    run()
    with allocations() as counted:
        run()
        assert (counted().kept, counted().kept_headers) == (0, 0)
