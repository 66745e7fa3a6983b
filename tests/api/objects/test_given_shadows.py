"""Memory that the caller gives for derivatives with respect to lists, dictionaries and instances."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float64, int64, njit
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad import Active, BatchDuplicated, Const, Duplicated, DuplicatedNoNeed, MixedDuplicated, Reverse, data
from irad.testing.allocations import allocations

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@jitclass([("w", float64[::1]), ("k", float64), ("n", int64)])
class Spring:
    def __init__(self, w, k):
        self.w, self.k, self.n = w, k, 3


@njit
def energy(model, x):
    return model.k * x * x + model.w[0] * x


@njit
def hardened(model, x):
    """Writes k x and w₀ k x, and puts another array in the place of the one that it has written to."""
    model.w[0] *= model.k * x
    model.k *= x
    model.w = model.w * 2.0


def spring(k: float = 0.5) -> Any:
    return Spring(np.array([1.5, 2.5]), k)


def test_the_derivative_is_added_to_a_shadow():
    model, shadow = spring(), data.make_zero(spring())
    for count in (1, 2):
        assert irad.autodiff(Reverse, energy, Duplicated(model, shadow), Active(3.0)) == (None, 3.0 + 1.5)
        assert (shadow.w.tolist(), shadow.k, shadow.n) == ([3.0 * count, 0.0], 9.0 * count, 3)
    assert irad.value_and_grad_into(energy)(shadow, model, 3.0) == energy(model, 3.0)
    assert (shadow.w.tolist(), shadow.k) == ([3.0, 0.0], 9.0), "a destination is overwritten"
    irad.autodiff(Reverse, energy, DuplicatedNoNeed(model, shadow), Const(3.0))
    assert shadow.k == 18.0

    @njit
    def compiled(model, shadow, x):
        return irad.autodiff(irad.Reverse, energy, irad.Duplicated(model, shadow), irad.Active(x))

    assert compiled(model, shadow, 3.0) == (None, 4.5)
    assert shadow.k == 27.0


def test_a_shadow_holds_the_cotangent_of_what_is_left():
    """Shadow of what the object pointed to before: the array that the function put there has none."""
    model, shadow, array = spring(), spring(1.0), np.array([1.0, 10.0])
    shadow.w = array
    expected = [0.5 * 3.0, 10.0]
    by_k = 1.0 * 3.0 + 1.0 * 1.5 * 3.0
    gradients = irad.autodiff(Reverse, hardened, Duplicated(model, shadow), Active(3.0), seed=None)
    assert (shadow.w.tolist(), shadow.k) == (expected, by_k)
    assert gradients == (None, 1.0 * 0.5 + 1.0 * 1.5 * 0.5)
    assert np.shares_memory(shadow.w, array)
    assert (model.w.tolist(), model.k) == ([1.5 * 0.5 * 3.0 * 2.0, 5.0], 1.5)


@njit
def of_numbers(values, x):
    return values[0] * values[1] * x


@njit
def of_arrays(values, x):
    return values[0][1] * values[1][0] * x


@njit
def of_tuples(values, x):
    return values[1][0] * values[1][1][0] * values[0][0] * x


@njit
def of_a_table(table, x):
    return table["a"] * table["b"] * x


@njit
def of_a_table_of_models(table, x):
    return table[1][0].k * table[2][0].w[1] * x


def table(**entries: float) -> Any:
    made = Dict()
    for name, value in entries.items():
        made[name] = value
    return made


def table_of_models() -> Any:
    made = Dict()
    for key in (2, 1):
        made[key] = List([spring(0.25 * key)])
    return made


CASES = [
    pytest.param(of_numbers, lambda: [2.0, 3.0], id="list of numbers"),
    pytest.param(of_numbers, lambda: List([2.0, 3.0]), id="typed list of numbers"),
    pytest.param(of_arrays, lambda: [np.arange(3.0), np.ones(2)], id="list of arrays"),
    pytest.param(of_arrays, lambda: List([np.arange(3.0), np.ones(2)]), id="typed list of arrays"),
    pytest.param(of_tuples, lambda: List([(2.0, np.ones(1)), (3.0, np.full(2, 5.0))]), id="typed list of tuples"),
    pytest.param(of_a_table, lambda: table(a=2.0, b=3.0), id="dictionary"),
    pytest.param(of_a_table_of_models, table_of_models, id="dictionary of lists of instances"),
]


@pytest.mark.parametrize(("function", "make"), CASES)
def test_shadows_of_containers(function, make):
    """The gradient that is returned is the truth; it is compared with differences elsewhere."""
    value, shadow = make(), data.make_zero(make())
    expected = data.to_vec(irad.grad(function)(make(), 1.5))
    assert np.any(expected)
    for count in (1, 2):
        irad.autodiff(Reverse, function, Duplicated(value, shadow), Active(1.5))
        assert data.to_vec(shadow).tolist() == (count * expected).tolist()
    assert irad.value_and_grad_into(function)(shadow, value, 1.5) == function(make(), 1.5)
    assert data.to_vec(shadow).tolist() == expected.tolist()
    assert data.to_vec(value).tolist() == data.to_vec(make()).tolist()


def test_a_dictionary_with_another_order_and_holes():
    shadow = table(z=0.0, b=1.0, a=0.0)
    del shadow["z"]
    irad.autodiff(Reverse, of_a_table, Duplicated(table(a=2.0, b=3.0), shadow), Const(5.0))
    assert dict(shadow) == {"b": 1.0 + 10.0, "a": 15.0}


# --- what does not fit ------------------------------------------------------------------------------------------------


def _with(model: Any, array: Any) -> Any:
    model.w = array
    return model


MISFITS = [
    (energy, spring, lambda model: model, "the shadow of model shares memory with an argument"),
    (energy, spring, lambda model: _with(spring(), model.w), "shares memory with an argument"),
    (energy, spring, lambda model: _with(spring(), np.zeros(3)), r"shadow of model.w has a different shape.*\(3,\)"),
    (energy, spring, lambda model: (np.zeros(2), 0.0, 0), "memory given for its derivative is a Tuple"),
    (of_numbers, lambda: [2.0, 3.0], lambda values: [0.0], r"shadow of values has a different length: \(1,\)"),
    (of_numbers, lambda: [2.0, 3.0], lambda values: List([0.0, 0.0]), "memory given for its derivative is a ListType"),
    (of_numbers, lambda: List([2.0, 3.0]), lambda values: values, "shares memory with an argument"),
    (of_a_table, lambda: table(a=2.0, b=3.0), lambda _: table(a=0.0, c=0.0), "table, a dictionary, lacks one"),
    (of_a_table, lambda: table(a=2.0, b=3.0), lambda _: table(a=0.0), "table has a different length"),
    (of_arrays, CASES[3].values[1], lambda _: List([np.zeros(3), np.zeros(1)]), r"values\[…\] has a different shape"),
    (of_arrays, CASES[2].values[1], lambda _: [np.zeros((3, 1)), np.zeros((2, 1))], "memory given for its deriv"),
]


@pytest.mark.parametrize(("function", "make", "shadow_of", "message"), MISFITS)
def test_shadows_that_do_not_fit(function, make, shadow_of, message):
    value = make()
    shadow = shadow_of(value)
    before = data.to_vec(shadow).tolist()
    with pytest.raises(irad.SignatureError, match=message):
        irad.autodiff(Reverse, function, Duplicated(value, shadow), Active(1.5))
    assert data.to_vec(shadow).tolist() == before
    assert data.to_vec(value).tolist() == data.to_vec(make()).tolist()


def test_what_an_argument_shares_its_shadow_shares():
    @njit
    def square(values, x):
        return values[0][0] * values[1][0] * x

    @njit
    def changed(values, x):
        values[0][0] *= x
        return values[0][0] * values[1][0]

    a, zeros = np.array([3.0]), np.zeros(1)
    for kind in (list, List):
        for function, value in ((square, kind([a, a])), (changed, kind([a.copy()] * 2))):
            shared = data.make_zero([zeros, zeros])
            irad.autodiff(Reverse, function, Duplicated(value, kind(shared)), Const(2.0))
            assert shared[0] is shared[1]
            assert shared[0].tolist() == ([12.0] if function is square else [24.0])
            with pytest.raises(irad.SignatureError, match="does not share the memory that the argument shares"):
                irad.autodiff(Reverse, function, Duplicated(value, kind([zeros, np.zeros(1)])), Const(2.0))
        with pytest.raises(irad.SignatureError, match="that the argument does not share"):
            irad.autodiff(Reverse, square, Duplicated(kind([a, a.copy()]), kind([zeros, zeros])), Const(2.0))
    assert zeros.tolist() == [0.0]


def test_shadows_of_lists_of_numbers_in_tuples_are_refused():
    """Numba does not write them back to Python."""
    with pytest.raises(irad.SignatureError, match=r"pass numba\.typed\.List"):
        irad.autodiff(
            Reverse, of_numbers, BatchDuplicated([2.0, 3.0], ([0.0, 0.0], [0.0, 0.0])), Const(1.0), seed=(1.0, 1.0)
        )
    with pytest.raises(irad.SignatureError, match=r"pass numba\.typed\.List"):
        irad.value_and_grad_into(of_numbers, (0, 1))(([0.0, 0.0], np.zeros(1)), [2.0, 3.0], 1.0)
    found = List([0.0, 0.0]), np.zeros(1)
    irad.value_and_grad_into(of_numbers, (0, 1))(found, List([2.0, 3.0]), 2.0)
    assert (list(found[0]), found[1].tolist()) == ([6.0, 4.0], [6.0])


# --- other ways to call -----------------------------------------------------------------------------------------------


def test_several_directions():
    @njit
    def both(model, x):
        return model.k * x, model.w[0] * model.w[1] * x

    model, shadows = spring(), (data.make_zero(spring()), data.make_zero(spring()))
    seeds = (1.0, 0.0), (0.0, 1.0)
    assert irad.autodiff(Reverse, both, BatchDuplicated(model, shadows), Const(2.0), seed=seeds) == (None, None)
    assert [(s.k, s.w.tolist()) for s in shadows] == [(2.0, [0.0, 0.0]), (0.0, [5.0, 3.0])]
    with pytest.raises(irad.SignatureError, match="shares memory, within itself or with another shadow"):
        irad.autodiff(Reverse, both, BatchDuplicated(model, (shadows[0],) * 2), Const(2.0), seed=seeds)


def test_an_object_in_a_tuple():
    @njit
    def product(parts, x):
        return parts[0].k * parts[1] * parts[2][0] * x

    parts, shadow = (spring(), 2.0, np.array([3.0])), (data.make_zero(spring()), 0.0, np.zeros(1))
    ((by_model, by_scale, by_array), by_x) = irad.autodiff(
        Reverse, product, MixedDuplicated(parts, shadow), Active(1.5)
    )
    assert (by_model.k, by_scale, by_array.tolist(), by_x) == (9.0, 2.25, [1.5], 3.0)
    assert (shadow[0].k, by_array is shadow[2]) == (9.0, True)


def test_split_sweeps():
    augmented, reverse = irad.split(irad.ReverseSplit(repeatable=True), energy, Duplicated, Active)
    model, shadow = spring(), data.make_zero(spring())
    tape = augmented(Duplicated(model, shadow), Active(3.0))
    model.k = 0.0
    assert (reverse(tape), shadow.k, shadow.w.tolist()) == ((None, 4.5), 9.0, [3.0, 0.0])
    assert (reverse(tape, 2.0), shadow.k, shadow.w.tolist()) == ((None, 9.0), 27.0, [9.0, 0.0])
    shadow.w = np.zeros(3)
    for _ in range(2):
        with pytest.raises(irad.SignatureError, match=r"shadow of model\.w has a different shape"):
            reverse(tape)
    assert shadow.k == 27.0
    shadow.w = np.zeros(2)
    assert (reverse(tape), shadow.k, shadow.w.tolist()) == ((None, 4.5), 36.0, [3.0, 0.0])


def test_tangents_that_are_instances():
    model, tangent = spring(), spring(0.25)
    expected = 0.25 * 9.0 + 1.5 * 3.0
    assert irad.jvp(energy, (model, 3.0), (tangent, 0.0)) == (energy(model, 3.0), expected)
    assert irad.autodiff(irad.Forward, energy, Duplicated(model, tangent), Const(3.0)) == expected
    irad.autodiff(irad.Forward, hardened, Duplicated(model, tangent), Const(3.0))
    assert (tangent.k, tangent.w.tolist()) == (0.25, [1.5, 2.5]), "it is only read"


# --- memory -----------------------------------------------------------------------------------------------------------


def test_nothing_leaks_and_exceptions_leave_shadows_alone():
    @njit
    def fails(model, values, x):
        model.k *= 2.0
        values[0][0] *= x
        if x < 0.0:
            raise ValueError("negative")
        return model.k * values[0][0] * x

    model, shadow = spring(), data.make_zero(spring())
    values, shadows = List([np.ones(2)]), List([np.zeros(2)])
    augmented, reverse = irad.split(irad.ReverseSplit, fails, Duplicated, Duplicated, Active)

    def calls() -> None:
        given = Duplicated(model, shadow), Duplicated(values, shadows)
        irad.autodiff(Reverse, fails, *given, Active(2.0))
        reverse(augmented(*given, Active(2.0)))
        before = data.to_vec([shadow, *shadows]).tolist()
        with pytest.raises(ValueError, match="negative"):
            irad.autodiff(Reverse, fails, *given, Active(-2.0))
        with pytest.raises(irad.SignatureError, match="length"):
            irad.autodiff(Reverse, fails, given[0], Duplicated(values, List([np.zeros(2)] * 2)), Active(2.0))
        with pytest.raises(irad.SignatureError, match="shares"):
            irad.autodiff(Reverse, fails, given[0], Duplicated(values, values), Active(2.0))
        assert data.to_vec([shadow, *shadows]).tolist() == before

    calls()
    with allocations() as counted:
        calls()
        assert (counted().kept, counted().kept_headers) == (0, 0)
