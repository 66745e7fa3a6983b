"""Objects as arguments: what comes back, what they hold afterwards, sharing, what is refused."""

from __future__ import annotations

import gc
from typing import Any

import numba
import numpy as np
import pytest
from numba import float64, int64, njit, optional, types
from numba.core.extending import as_numba_type
from numba.experimental import jitclass, structref
from numba.typed import Dict, List

import irad
from irad import Active, Const, Duplicated, Reverse

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@jitclass([("w", float64[::1]), ("k", float64), ("n", int64), ("_hidden", float64)])
class Spring:
    def __init__(self, w, k):
        self.w, self.k, self.n, self._hidden = w, k, 3, 1.0

    def energy(self, x):
        self.n += 1
        return self.k * x * x + self.w[0] * x * self._hidden


@jitclass([("left", as_numba_type(Spring)), ("right", as_numba_type(Spring))])
class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right


@njit
def energy(spring, x):
    return spring.energy(x)


@njit
def stretched(spring, x):
    spring.k *= x
    spring.w[0] *= spring.k
    return spring.energy(x)


def spring(k: float = 0.5) -> Any:
    return Spring(np.array([1.5, 2.5]), k)


def test_gradient_is_an_instance():
    """What has no derivative in it is the instance's, as it was before the call."""
    given = spring()
    gradient = irad.grad(energy)(given, 3.0)
    assert type(gradient) is type(given)
    assert gradient.w.tolist() == [3.0, 0.0]
    assert (gradient.k, gradient._hidden) == (9.0, 4.5)
    assert (gradient.n, given.n) == (3, 4)


def test_what_a_gradient_keeps_of_an_instance():
    @jitclass([("name", types.unicode_type), ("index", int64[:]), ("on", types.boolean), ("part", float64[:])])
    class Labelled:
        def __init__(self, name, index, part):
            self.name, self.index, self.on, self.part = name, index, True, part

    @njit
    def chosen(model, x):
        total = 0.0
        for i in model.index:
            total += model.part[i] * x
        model.name = "another"
        model.index = model.index[1:]
        model.on = False
        return total

    index = np.array([0, 2, 2])
    model = Labelled("first " * 20, index, np.arange(4.0))
    _, pullback = irad.vjp(chosen, model, 3.0)
    for gradient in (pullback(1.0)[0], irad.data.copy(pullback(1.0)[0])):
        assert (gradient.name, gradient.on) == ("first " * 20, True)
        assert (gradient.index.tolist(), gradient.part.tolist()) == ([0, 2, 2], [3.0, 0.0, 6.0, 0.0])
    assert np.shares_memory(pullback(1.0)[0].index, index)
    assert (model.name, model.on) == ("another", False)


def test_an_instance_whose_gradient_is_a_named_tuple():
    """The gradient of the pair holds None, and so is not a value of the field."""

    @jitclass([("_pair", types.Tuple((int64, float64))), ("rate", float64)])
    class Numbered:
        def __init__(self, pair, rate):
            self._pair, self.rate = pair, rate

    gradient = irad.grad(njit(lambda m: m._pair[1] * m.rate))(Numbered((1, 2.0), 3.0))
    assert (type(gradient).__name__, gradient) == ("Numbered", ((None, 3.0), 2.0))
    assert gradient._fields == ("pair", "rate")


def test_instance_is_left_as_the_plain_call_leaves_it():
    plain, given = spring(), spring()
    value = stretched(plain, 2.0)
    found, (by_spring, by_x) = irad.value_and_grad(stretched, (0, 1))(given, 2.0)
    assert found == value
    assert (given.w.tolist(), given.k, given.n) == (plain.w.tolist(), plain.k, plain.n)
    # k x³ + w₀ k x²
    assert (by_spring.w.tolist(), by_spring.k, by_x) == ([2.0, 0.0], 8.0 + 6.0, 6.0 + 3.0)
    assert irad.autodiff(Reverse, stretched, Active(spring()), Const(2.0))[0].k == 14.0


def test_pullback_does_not_mind_what_happens_to_the_object():
    given = spring()
    value, pullback = irad.vjp(stretched, given, 2.0)
    given.w = np.zeros(2)
    given.k = 0.0
    gc.collect()
    for seed in (1.0, 0.5, 0.0):
        by_spring, by_x = pullback(seed)
        assert (by_spring.w.tolist(), by_spring.k, by_x) == ([2.0 * seed, 0.0], 14.0 * seed, 9.0 * seed)
    assert value == 4.0 + 3.0


def test_gradients_by_one_class_have_one_type():
    first, second = irad.grad(energy)(spring(), 2.0), irad.grad(stretched)(spring(), 2.0)
    assert type(first) is type(second)


def test_gradients_do_not_change_with_the_next_call():
    derivative = irad.grad(stretched)
    first = derivative(spring(), 2.0)
    second = derivative(spring(), 3.0)
    assert (first.w.tolist(), first.k) == ([2.0, 0.0], 14.0)
    assert not np.shares_memory(first.w, second.w)
    _, pullback = irad.vjp(stretched, spring(), 2.0)
    one, other = pullback(1.0), pullback(1.0)
    assert not np.shares_memory(one[0].w, other[0].w)


def test_from_compiled_code():
    gradient = irad.grad(stretched, (0, 1))

    @njit
    def caller(w, x):
        made = Spring(w, 0.5)
        found, by_x = gradient(made, x)
        return found.w[0] + found.k * 100 + by_x * 10000 + made.k * 1000000

    assert caller(np.array([1.5, 2.5]), 2.0) == 2.0 + 1400.0 + 90000.0 + 1000000.0

    by_list = irad.grad(njit(lambda v, d: v[0][0] * v[1][0] * d[1]), (0, 1))

    @njit
    def with_containers(a):
        values, table = [a, a * 2.0], Dict.empty(types.int64, float64)
        table[1] = 3.0
        found, by_table = by_list(values, table)
        return found[0][0] + found[1][0] * 100 + by_table[1] * 10000

    assert with_containers(np.array([2.0])) == 12.0 + 600.0 + 80000.0


# --- sharing ----------------------------------------------------------------------------------------------------------


@njit
def read_only(values, x):
    return values[1][0] * values[0][1] * x[0]


@njit
def overwriting(values, x):
    values[0][0] *= x[1]
    return values[1][0] * values[0][1] * x[0]


def test_shared_arrays_that_are_only_read_have_partial_derivatives():
    x = np.array([2.0, 3.0])
    for values in ([x, x], List([x, x])):
        by_values, by_x = irad.grad(read_only, (0, 1))(values, x)
        assert [a.tolist() for a in by_values] == [[0.0, 4.0], [6.0, 0.0]]
        assert by_x.tolist() == [6.0, 0.0]


def test_shared_arrays_that_are_written_have_one_derivative():
    """It is x₀² x₁³ of the shared array."""
    for kind in (list, List):
        x = np.array([2.0, 3.0])
        by_values, by_x = irad.grad(overwriting, (0, 1))(kind([x, x]), x)
        assert [a.tolist() for a in (*by_values, by_x)] == [[108.0, 108.0]] * 3
        x = np.array([2.0, 3.0])
        _, pullback = irad.vjp(overwriting, kind([x, x]), x)
        for seed in (1.0, 2.0):
            by_values, by_x = pullback(seed)
            assert [a.tolist() for a in (*by_values, by_x)] == [[108.0 * seed, 108.0 * seed]] * 3
            assert np.shares_memory(by_values[0], by_x), "they lie as the arguments lie"


def test_views_that_overlap():
    @njit
    def f(values, x):
        values[0][1] *= x
        return values[1][0] * values[1][1] * values[0][0]

    base = np.array([2.0, 3.0, 4.0])
    by_values = irad.grad(f)(List([base[:2], base[1:]]), 1.5)
    assert by_values[0].tolist() == [18.0, 12.0]
    assert by_values[1].tolist() == [12.0, 9.0]


def test_one_instance_twice():
    @njit
    def f(pair, x):
        pair.left.k *= x
        return pair.left.k * pair.right.k

    one = spring(3.0)
    gradient = irad.grad(f)(Pair(one, one), 2.0)
    assert (gradient.left.k, gradient.right.k) == (24.0, 24.0), "of 4 k²"
    gradient = irad.grad(f)(Pair(spring(3.0), spring(5.0)), 2.0)
    assert (gradient.left.k, gradient.right.k) == (10.0, 6.0)

    @njit
    def both(a, b, w):
        a.w[0] *= w[1]
        return b.w[0] * w[0]

    one = spring()
    by_a, by_b, by_w = irad.grad(both, (0, 1, 2))(one, one, one.w)
    assert [g.tolist() for g in (by_a.w, by_b.w, by_w)] == [[18.75, 11.25]] * 3, "of w₀² w₁²"


def test_one_list_twice():
    @njit
    def f(values, more, table):
        values.append(more[0] * 2.0)
        table[1][0] *= 3.0
        return values[1][0] * more[1][0] * table[1][0]

    for kind in (list, List):
        values, table = kind([np.array([2.0])]), Dict.empty(int64, float64[::1])
        table[1] = values[0]
        # 3 (2v)² v for the shared array
        by_values, by_more, by_table = irad.grad(f, (0, 1, 2))(values, values, table)
        assert [by_values[0][0], by_more[0][0], by_table[1][0]] == [144.0] * 3


def test_sharing_with_a_constant_is_refused():
    x = np.array([2.0, 3.0])
    for call in (
        lambda: irad.grad(overwriting, 0)([x, x], x),
        lambda: irad.grad(overwriting, 0)(List([x, x]), x),
        lambda: irad.autodiff(Reverse, overwriting, Active(List([x, x])), Duplicated(x, np.zeros(2))),
    ):
        with pytest.raises(irad.SignatureError, match="shares memory") as caught:
            call()
        assert "pass a copy" in caught.value.remedy
    assert irad.grad(read_only, 0)(List([x, x]), x)[0].tolist() == [0.0, 4.0], "nothing is written"

    @njit
    def written_beside(x, values):
        x[0] *= 2.0
        return x[0] * values[0][0]

    for values in ([x], List([x])):
        with pytest.raises(irad.SignatureError, match="shares memory"):
            irad.grad(written_beside)(x, values)
    assert x.tolist() == [2.0, 3.0]
    assert irad.grad(written_beside)(x, [x.copy()]).tolist() == [4.0, 0.0]


def test_a_list_in_an_object_that_is_another_argument():
    @njit
    def f(rows, numbers, x):
        rows[0][0] *= x
        numbers[1] *= x
        return rows[0][0] * numbers[0] * numbers[1]

    numbers = List([2.0, 3.0])
    rows = List([numbers])
    for argnums in (0, 1):
        with pytest.raises(irad.SignatureError, match="shares memory"):
            irad.grad(f, argnums)(rows, numbers, 1.0)
    by_rows, by_numbers = irad.grad(f, (0, 1))(rows, numbers, 5.0)
    # (5 a)² (5 b)
    assert list(by_rows[0]) == list(by_numbers) == [125.0 * 2 * 2.0 * 3.0, 125.0 * 4.0]


def test_a_given_shadow_must_not_lie_in_an_object():
    x, shadow = np.array([2.0, 3.0]), np.zeros(2)
    with pytest.raises(irad.SignatureError, match="overlaps an argument"):
        irad.autodiff(Reverse, read_only, Active(List([shadow, x])), Duplicated(x, shadow))
    (by_values, _) = irad.autodiff(Reverse, read_only, Active(List([x.copy(), x])), Duplicated(x, shadow))
    assert (by_values[0].tolist(), shadow.tolist()) == ([0.0, 4.0], [6.0, 0.0])


# --- edges ------------------------------------------------------------------------------------------------------------


def test_empty_containers():
    @njit
    def f(values, x):
        return len(values) * x + x * x

    table = Dict.empty(types.unicode_type, float64[:])
    for values in (List.empty_list(float64[:]), table):
        gradient, by_x = irad.grad(f, (0, 1))(values, 3.0)
        assert (type(gradient), len(gradient), by_x) == (type(values), 0, 6.0)
    gradient = irad.grad(njit(lambda v: v[0].size + v[1][0]))([np.zeros(0), np.ones(1)])
    assert [a.tolist() for a in gradient] == [[], [1.0]]


def test_table_that_has_holes():
    @njit
    def f(table):
        table[3] = table[2] * table[0]
        return table[3] * table[5]

    table = Dict.empty(int64, float64)
    for i in range(6):
        table[i] = i + 1.0
    for i in (1, 4):
        del table[i]
    table[9] = 1.0
    del table[9]
    assert dict(irad.grad(f)(table)) == {0: 18.0, 2: 6.0, 3: 0.0, 5: 3.0}


def test_objects_that_are_constant_take_no_active_values():
    @njit
    def stores(values, x):
        values[0][0] = x
        return x * x

    for values in ([np.ones(1)], List([np.ones(1)])):
        with pytest.raises(irad.IradError, match="argument 'values', which was passed as constant"):
            irad.autodiff(Reverse, stores, Const(values), Active(2.0))
        assert irad.grad(stores, 1)(values, 2.0) == 4.0


def test_exceptions():
    @njit
    def f(model, values, x):
        model.k *= x
        values.append(values[0] * x)
        if x < 0:
            raise ValueError("negative")
        return model.k * values[-1][0]

    plain, given = spring(), spring()
    with pytest.raises(ValueError, match="negative"):
        f(plain, List([np.ones(1)]), -1.0)
    with pytest.raises(ValueError, match="negative"):
        irad.grad(f, (0, 1))(given, List([np.ones(1)]), -1.0)
    assert given.k == plain.k


def test_constants_in_objects_have_no_derivative():
    @njit
    def f(values, table):
        return values[0][1] * table["a"][1]

    values = List([(3, 2.0, "x")])
    table = Dict()
    table["a"] = ("y", 5.0)
    by_values, by_table = irad.grad(f, (0, 1))(values, table)
    assert list(by_values) == [(None, 5.0, None)]
    assert by_table["a"] == (None, 2.0)
    with pytest.raises(irad.SignatureError, match="no derivative"):
        irad.grad(njit(lambda v: v[0][0] * 1.0))(List([np.ones(1, np.int64)]))


# --- refusals ---------------------------------------------------------------------------------------------------------


@jitclass([("value", optional(float64)), ("w", float64[:])])
class Maybe:
    def __init__(self, w):
        self.w, self.value = w, None


_node = numba.deferred_type()


@jitclass([("value", float64), ("next", optional(_node))])
class Node:
    def __init__(self, value):
        self.value, self.next = value, None


_node.define(as_numba_type(Node))


def test_what_is_refused_by_name():
    @njit
    def f(o, x):
        return x * 2.0

    for given, part in ((Maybe(np.ones(2)), "Optional.*in the field value"), (Node(1.0), "in the field next")):
        with pytest.raises(irad.UnsupportedError, match=rf"argument 0 \(o\).*{part}") as caught:
            irad.grad(f)(given, 1.0)
        assert "leave it out" in caught.value.remedy
        assert irad.grad(f, 1)(given, 1.0) == 2.0


def test_a_returned_object_takes_a_cotangent():
    @njit
    def f(o, x):
        return o, o.k * x

    given = spring()
    _, pullback = irad.vjp(f, given, 3.0)
    by_spring, by_x = pullback((None, 2.0))
    assert (by_spring.k, by_x) == (6.0, 1.0)
    weight = spring()
    by_spring, by_x = pullback((weight, 2.0))
    assert (by_spring.k, list(by_spring.w), by_x) == (6.0 + weight.k, list(weight.w), 1.0)


@structref.register
class RodType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(numba_type)) for name, numba_type in fields)


class Rod(structref.StructRefProxy):
    def __new__(cls, length, mass):
        return structref.StructRefProxy.__new__(cls, length, mass)


structref.define_proxy(Rod, RodType, ["length", "mass"])


def test_structref():
    @njit
    def f(rod, x):
        rod.mass *= x
        return rod.mass * rod.length[0]

    gradient = irad.grad(f)(Rod(np.array([2.0]), 3.0), 5.0)
    assert (gradient._fields, gradient.length.tolist(), gradient.mass) == (("length", "mass"), [15.0], 10.0)
