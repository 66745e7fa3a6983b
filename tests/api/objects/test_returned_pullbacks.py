"""Pullbacks and separate reverse sweeps of functions that return lists, dictionaries and instances.

The truth is `irad.autodiff` with a seed, which runs both sweeps in one call, tangents by dot product, and differences.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numba import float64, int64, njit
from numba.core import types
from numba.experimental import jitclass, structref
from numba.typed import Dict, List

import irad
from irad import Active, BatchDuplicated, Const, Duplicated, MixedDuplicated, Reverse
from irad.testing.allocations import allocations

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")

X = 1.5


@jitclass([("w", float64[::1]), ("k", float64), ("n", int64)])
class Spring:
    def __init__(self, w, k):
        self.w, self.k, self.n = w, k, 3


@structref.register
class RodType(types.StructRef):
    def preprocess_fields(self, fields):
        return tuple((name, types.unliteral(numba_type)) for name, numba_type in fields)


class Rod(structref.StructRefProxy):
    def __new__(cls, length, mass):
        return structref.StructRefProxy.__new__(cls, length, mass)


structref.define_proxy(Rod, RodType, ["length", "mass"])


@njit
def typed_list(x):
    made = List()
    for i in range(3):
        made.append(x ** (i + 1))
    made[0] = made[0] * made[1]
    return made


@njit
def python_list(x):
    return [x, 2.0 * x * x]


@njit
def list_of_arrays(x):
    return [np.ones(2) * x, np.ones(3) * x * x]


@njit
def instance(x):
    made = Spring(np.full(2, x * x), x**3)
    made.w[0] *= made.k
    return made


@njit
def dictionary(x):
    made = Dict()
    made[3] = x
    made[1] = x
    made[2] = x**3
    del made[3]
    made[1] = made[1] * x
    return made


@njit
def rod(x):
    return Rod(x * x, np.full(2, x**3))


@njit
def nested(x):
    made = Dict()
    made[1] = List([x, x * x])
    made[7] = List([x * 3.0])
    return x * 2.0, made


@njit
def partly_constant(x):
    """Some of these parts have no shadow."""
    numbers = List([1.0, 2.0]), [3.0, 4.0], List([List([5.0]), List([6.0])])
    return [np.ones(2), np.array([x, x * x])], (Spring(np.ones(1), 2.0), Spring(np.ones(1), x)), numbers


@njit
def empty(x):
    made = List.empty_list(float64)
    if x > 2.0:
        made.append(x)
    return made, x * x


@njit
def strided(x):
    values = np.empty(6)
    for i in range(6):
        values[i] = x ** (i + 1)
    return [values[::-2], values[1:4:2]], (values[:2], [x])


@njit
def same_twice(x):
    a = np.full(2, x * x)
    spring = Spring(a, x)
    return [a, a], [spring, spring], a


@njit
def chosen(x):
    if x > 2.0:
        return None, x
    return List([x, x * x]), x


def by_number(**entries):
    made = Dict()
    for key, value in entries.items():
        made[int(key[1:])] = value
    return made


PAIR = [np.array([1.0, 2.0]), np.array([1.0, 0.0, 5.0])]
SPRINGS = Spring(np.array([3.0]), 5.0), Spring(np.array([7.0]), 11.0)
TWICE = [Spring(np.array([3.0, 0.5]), 5.0), Spring(np.array([7.0, 0.25]), 11.0)]
CASES = [
    (typed_list, List([1.0, 2.0, 10.0])),
    (python_list, [1.0, 10.0]),
    (list_of_arrays, PAIR),
    (instance, Spring(np.array([1.0, 10.0]), 2.0)),
    (dictionary, by_number(_2=10.0, _1=1.0)),
    (rod, (2.0, np.array([1.0, 4.0]))),
    (rod, (None, np.array([1.0, 4.0]))),
    (nested, (1.0, by_number(_7=List([5.0]), _1=List([1.0, 2.0])))),
    (nested, (1.0, None)),
    (nested, (None, by_number(_7=List([5.0]), _1=List([1.0, 2.0])))),
    (partly_constant, ([np.array([3.0, 4.0]), np.array([5.0, 6.0])], SPRINGS, None)),
    (partly_constant, (None, (None, SPRINGS[1]), (List([1.0, 2.0]), [3.0, 4.0], List([List([5.0]), List([6.0])])))),
    (empty, (List.empty_list(float64), 1.0)),
    (strided, ([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])], (np.ones(2), [3.0]))),
    (same_twice, ([np.array([1.0, 2.0]), np.array([4.0, 8.0])], TWICE, np.array([16.0, 32.0]))),
    (chosen, (List([1.0, 10.0]), 2.0)),
]
NAMES = [function.__name__ for function, _ in CASES]


def numbers(value):
    """All floats in a value or a cotangent of it, in order; a None has none."""
    if value is None:
        return []
    if isinstance(value, Spring):
        return [*value.w, value.k]
    if isinstance(value, Rod):
        return [ROD.length(value), *ROD.mass(value)]
    if isinstance(value, np.ndarray):
        return [*value.ravel()]
    if isinstance(value, Dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, tuple | list | List):
        return [number for item in value for number in numbers(item)]
    return [value]


ROD = SimpleNamespace(length=njit(lambda rod: rod.length), mass=njit(lambda rod: rod.mass))


def weights(seed, like):
    """The weight of each float that `numbers` finds in a value: zero where the seed is None."""
    if seed is None:
        return [0.0] * len(numbers(like))
    if isinstance(seed, Spring | Dict | np.ndarray | float):
        return numbers(seed)
    if isinstance(like, Rod):
        return weights(seed[0], ROD.length(like)) + weights(seed[1], ROD.mass(like))
    return [weight for part, its in zip(seed, like, strict=True) for weight in weights(part, its)]


def slope(function, seed):
    """The derivative of the weighted sum, by the tangent that forward mode gives, and by differences."""
    h = 1e-5
    value, tangent = irad.jvp(function, (X,), (1.0,))
    changes = np.subtract(numbers(function(X + h)), numbers(function(X - h))) / (2 * h)
    found = np.dot(weights(seed, value), weights(tangent, value))
    assert found == pytest.approx(np.dot(weights(seed, value), changes), rel=1e-8)
    return found


@pytest.mark.parametrize(("function", "seed"), CASES, ids=NAMES)
def test_cotangents_against_forward_mode_and_one_call(function, seed):
    expected = slope(function, seed)
    assert irad.autodiff(Reverse, function, Active(X), seed=seed) == (pytest.approx(expected, 1e-14),)
    value, pullback = irad.vjp(function, X)
    for _ in range(3):
        assert pullback(seed) == (pytest.approx(expected, rel=1e-14),)
    augmented, reverse = irad.split(irad.ReverseSplitWithPrimal(repeatable=True), function, Active)
    tape, again = augmented(Active(X))
    assert numbers(again) == numbers(value)
    for _ in range(2):
        assert reverse(tape, seed) == (pytest.approx(expected, rel=1e-14),)


@pytest.mark.parametrize("number", [0, 2, 7, 12])
def test_the_plan_that_saves_everything(number):
    function, seed = CASES[number]
    saved = irad.Options(plan="save_all")
    assert irad.vjp(function, X, options=saved)[1](seed) == irad.vjp(function, X)[1](seed)


@njit
def used(x):
    """The reverse sweep reads what is returned."""
    numbers, arrays, spring = List([x, x * x]), [x * np.ones(2)], Spring(np.full(2, x), x**3)
    entries = Dict()
    entries[1] = x * x
    entries[5] = x**3
    total = numbers[0] * numbers[1] + np.sum(arrays[0] ** 2) + spring.k * spring.w[0] + entries[1] * entries[5]
    return (numbers, arrays, spring, entries), total


USED_SLOPE = 3 * X**2 + 4 * X + 4 * X**3 + 5 * X**4
WEIGHTS = (List([1.0, 2.0]), [np.array([3.0, 4.0])], Spring(np.array([5.0, 6.0]), 7.0), by_number(_5=8.0, _1=9.0))
WEIGHTED = 1 + 2 * 2 * X + 7 + 11 + 7 * 3 * X**2 + 8 * 3 * X**2 + 9 * 2 * X


@njit
def disturb(numbers, spring, entries):
    """What is returned becomes longer, shorter and another one."""
    numbers.clear()
    for i in range(1000):
        numbers.append(float(i))
        entries[i] = -1.0
    entries.pop(5)
    spring.w[:] = np.nan
    spring.k, spring.w = np.nan, np.ones(7)


def test_the_value_may_change_before_the_pullback_is_called():
    (value, total), pullback = irad.vjp(used, X)
    assert total == used(X)[1]
    disturb(value[0], value[2], value[3])
    value[1][0][:] = np.nan
    value[1].clear()
    for _ in range(2):
        assert pullback((None, 1.0)) == (pytest.approx(USED_SLOPE, rel=1e-14),)
        assert pullback((WEIGHTS, 1.0)) == (pytest.approx(WEIGHTED + USED_SLOPE, rel=1e-14),)
        assert pullback((WEIGHTS, None)) == (pytest.approx(WEIGHTED, rel=1e-14),)


def test_keys_may_be_gone_before_the_pullback_is_called():
    @njit
    def named(x, name):
        made = Dict()
        made[name] = x * x
        return made

    value, pullback = irad.vjp(named, X, "".join(["fr", "esh"]))
    value.clear()
    cotangent = Dict()
    cotangent["fresh"] = 5.0
    assert pullback(cotangent) == (5.0 * 2.0 * X, None)


def test_the_value_may_be_gone_before_the_pullback_is_called():
    _, pullback = irad.vjp(used, X)
    irad.vjp(used, 2.0)
    assert pullback((WEIGHTS, None)) == (pytest.approx(WEIGHTED, rel=1e-14),)


def test_a_cotangent_is_what_make_zero_makes():
    (value, _), pullback = irad.vjp(used, X)
    cotangent = irad.data.make_zero(value)
    assert pullback((cotangent, 1.0)) == (pytest.approx(USED_SLOPE, rel=1e-14),)
    cotangent[1][0][1], cotangent[2].k, cotangent[3][1] = 3.0, 2.0, 10.0
    slopes = 3.0 + 2.0 * 3 * X**2 + 10.0 * 2 * X
    assert pullback((cotangent, None)) == (pytest.approx(slopes, rel=1e-14),)


@njit
def pull(x, weights):
    value, pullback = irad.vjp(used, x)
    disturb(value[0][0], value[0][2], value[0][3])
    return pullback((weights, 1.0))[0], pullback((weights, None))[0]


AUGMENTED, REVERSED = irad.split(irad.ReverseSplitWithPrimal, used, Active)


@njit
def split_inside(x, weights):
    tape, value = AUGMENTED(Active(x))
    disturb(value[0][0], value[0][2], value[0][3])
    return REVERSED(tape, (weights, 1.0))[0]


def test_in_compiled_code():
    both = pytest.approx(WEIGHTED + USED_SLOPE, rel=1e-14)
    assert pull(X, WEIGHTS) == (both, pytest.approx(WEIGHTED, rel=1e-14))
    assert split_inside(X, WEIGHTS) == both
    tape, _ = AUGMENTED(Active(X))
    assert REVERSED(tape, (WEIGHTS, 1.0)) == (both,)
    with pytest.raises(irad.UsedTapeError):
        REVERSED(tape, (WEIGHTS, 1.0))


@njit
def handed_on(values, arrays, spring, x):
    values.append(values[0] * x)
    values[0] *= 2.0
    return [arrays[0], arrays[0] * x], (spring, values)


def test_arguments_that_are_returned():
    a, spring = np.array([1.0, 2.0]), Spring(np.array([5.0]), 2.0)
    seed = [np.array([1.0, 10.0]), np.array([2.0, 3.0])], (Spring(np.array([4.0]), 6.0), List([1.0, 10.0, 100.0]))

    def given():
        return List([3.0, 4.0]), [a], spring, 2.0

    once = irad.autodiff(Reverse, handed_on, *map(Active, given()), seed=seed)
    assert numbers(once) == [2.0 + 200.0, 10.0, 5.0, 16.0, 4.0, 6.0, 8.0 + 300.0]
    (_, (same, grown)), pullback = irad.vjp(handed_on, *given())
    grown.append(7.0)
    same.k = 100.0
    for _ in range(2):
        assert numbers(pullback(seed)) == numbers(once)


def test_shadows_that_the_caller_gave():
    @njit
    def parts(spring):
        return [spring.w, spring.w * spring.k], spring.w, spring

    augmented, reverse = irad.split(irad.ReverseSplit(repeatable=True), parts, Duplicated)
    spring, shadow = Spring(np.array([5.0]), 2.0), Spring(np.array([100.0]), 1000.0)
    tape = augmented(Duplicated(spring, shadow))
    seed = [np.array([1.0]), np.array([10.0])], np.array([3.0]), Spring(np.array([0.5]), 0.25)
    for number in (1, 2):
        reverse(tape, seed)
        assert numbers(shadow) == [100.0 + number * (1.0 + 20.0 + 3.0 + 0.5), 1000.0 + number * (50.0 + 0.25)]
    with pytest.raises(irad.SignatureError, match="has other lengths, keys or shapes"):
        reverse(tape, ([np.ones(1)], None, None))
    assert numbers(shadow) == [149.0, 1100.5]
    reverse(tape, (None, np.array([1.0]), None))
    assert numbers(shadow) == [150.0, 1100.5]
    mixed, reverse_mixed = irad.split(irad.ReverseSplit, parts, MixedDuplicated)
    found = reverse_mixed(mixed(MixedDuplicated(spring, shadow)), seed)
    assert numbers(found) == numbers(shadow) == [174.5, 1150.75]


def test_several_directions():
    made = njit(lambda a, x: ([a, a * x], x * x))
    augmented, reverse = irad.split(irad.ReverseSplit, made, BatchDuplicated, Const)
    a, shadows = np.array([1.0, 2.0]), (np.zeros(2), np.ones(2))
    tape = augmented(BatchDuplicated(a, shadows), Const(3.0))
    reverse(tape, (([np.array([1.0, 0.0]), np.array([0.0, 1.0])], None), ([np.ones(2), np.ones(2)], 1.0)))
    assert [list(each) for each in shadows] == [[1.0, 3.0], [5.0, 5.0]]


def test_the_first_of_a_pair():
    pair = njit(lambda x: (List([x, x * x]), [x]))
    value, pullback, aux = irad.vjp(pair, X, has_aux=True)
    assert (list(value), aux) == ([X, X * X], [X])
    assert pullback(List([1.0, 10.0])) == (1.0 + 20.0 * X,)


def test_other_numbers():
    @njit
    def made(z, x):
        return [z * z, z], List([x * x]), [np.array([z * x])]

    z, x = 1.0 + 2.0j, np.float32(1.5)
    seed = [1.0 + 0.0j, 2.0j], List([np.float32(3.0)]), [np.array([1.0j])]
    once = irad.autodiff(Reverse, made, Active(z), Active(x), seed=seed)
    assert irad.vjp(made, z, x)[1](seed) == once
    assert once[1] == pytest.approx(3.0 * 2.0 * 1.5 + (np.conj(1.0j) * z).real)


def test_lists_beside_structures():
    """Beside a dictionary, Python's lists are given to compiled code as tuples."""

    @njit
    def parts(params):
        return params, [params["w"] * 2.0, params["w"] * params["k"]], [params["k"] ** 2, params["k"]]

    params = {"w": np.ones(2), "k": 3.0}
    value, pullback = irad.vjp(parts, params)
    cotangent = irad.data.make_zero(value)
    cotangent[0]["w"][:] = 10.0
    cotangent[1][0][0], cotangent[1][1][1], cotangent[2][0] = 0.5, 1.0, 1.0
    for _ in range(2):
        (gradient,) = pullback(cotangent)
        assert (gradient["w"].tolist(), gradient["k"]) == ([11.0, 13.0], 1.0 + 6.0)
    (gradient,) = pullback((value[0], None, [1.0, 10.0]))
    assert (gradient["w"].tolist(), gradient["k"]) == ([1.0, 1.0], 3.0 + 6.0 + 10.0)
    pair = [np.ones(2), np.ones(2)]
    for wrong in ((params, pair, [1.0]), (params, pair[:1], None), (params, [np.ones(2), np.ones(3)], None)):
        with pytest.raises(irad.SignatureError, match="has other lengths, keys or shapes"):
            pullback(wrong)
    with pytest.raises(irad.SignatureError, match=r"the cotangent of value\[1\]"):
        pullback((params, [1.0, 2.0], None))


MISFITS = [
    (python_list, [1.0]),
    (list_of_arrays, [np.ones(2), np.ones(2)]),
    (nested, (1.0, Dict.empty(int64, types.ListType(float64)))),
    (nested, (1.0, by_number(_7=List([5.0]), _2=List([1.0, 2.0])))),
    (nested, (1.0, by_number(_7=List([5.0]), _1=List([1.0])))),
    (instance, Spring(np.ones(3), 1.0)),
    (rod, (1.0, np.ones(3))),
]


@pytest.mark.parametrize(("function", "seed"), MISFITS)
def test_cotangents_that_do_not_fit(function, seed):
    """They are refused, and the pullback can be called again."""
    good = next(each for known, each in CASES if known is function)
    _, pullback = irad.vjp(function, X)
    expected = pullback(good)
    with pytest.raises(irad.SignatureError, match="has other lengths, keys or shapes than what the function returned"):
        pullback(seed)
    assert pullback(good) == expected


def test_what_may_be_none():
    _, pullback = irad.vjp(chosen, 3.0)
    assert pullback((None, 1.0)) == (1.0,)
    with pytest.raises(irad.SignatureError, match=r"is a value, but value\[0\] is None"):
        pullback((List([1.0, 10.0]), 1.0))
    sometimes = njit(lambda x: None if x < 0.0 else [x * x])
    assert irad.vjp(sometimes, X)[1]([1.0]) == (2.0 * X,)


def test_debug_mode():
    options = irad.Options(debug=True)
    value, pullback = irad.vjp(list_of_arrays, X, options=options)
    value[0][0] = 7.0
    assert pullback(PAIR) == (3.0 + 6.0 * 2.0 * X,)
    with pytest.raises(irad.NonFiniteError):
        pullback([np.array([1.0, np.nan]), np.ones(3)])


def test_nothing_leaks():
    def run():
        for function, seed in CASES:
            _, pullback = irad.vjp(function, X)
            pullback(seed)
            pullback(seed)
        for function, seed in MISFITS:
            with pytest.raises(irad.SignatureError):
                irad.vjp(function, X)[1](seed)
        irad.vjp(dictionary, X)  # its pullback is never called
        pull(X, WEIGHTS)
        split_inside(X, WEIGHTS)

    run()
    with allocations() as counted:
        run()
        assert (counted().kept, counted().kept_headers) == (0, 0)
