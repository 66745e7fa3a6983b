"""`irad.jvp` and `irad.pushforward`, against closed forms."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import resource

import numba
import numpy as np
import pytest
from numba import njit, prange
from numba.experimental import jitclass

import irad


@njit
def wave(x):
    return np.sin(x) * x


@njit
def weighted(x, weight):
    total = 0.0
    for i in range(x.size):
        total += weight * x[i] ** 2
    return total


@njit
def products(x):
    y = np.zeros_like(x)
    for i in range(1, x.size):
        y[i] = x[i] * x[i - 1]
    return y


X = np.array([1.0, 2.0, 3.0, 4.0])


def test_a_number():
    value, tangent = irad.jvp(wave, (0.7,), (2.0,))
    assert value == wave(0.7)
    assert tangent == pytest.approx(2.0 * (math.cos(0.7) * 0.7 + math.sin(0.7)), rel=1e-15)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_arrays_and_numbers(plan):
    direction = np.array([1.0, 0.0, -1.0, 0.5])
    found = irad.jvp(weighted, (X, 2.0), (direction, 3.0), options=irad.Options(plan=plan))
    assert found == (60.0, pytest.approx(4.0 * direction @ X + 3.0 * 30.0, rel=1e-15))


def test_none_is_a_constant():
    assert irad.jvp(weighted, (X, 2.0), (np.ones(4), None)) == (60.0, 40.0)
    assert irad.jvp(weighted, (X, 2.0), (None, 1.0)) == (60.0, 30.0)


def test_an_array_is_returned_with_a_tangent_of_its_own():
    value, tangent = irad.jvp(products, (X,), (X,))  # the direction may be the argument
    np.testing.assert_array_equal(value, products(X))
    np.testing.assert_array_equal(tangent, 2.0 * products(X))
    tangent[:] = 7.0
    np.testing.assert_array_equal(X, [1.0, 2.0, 3.0, 4.0])


def test_a_tuple_keeps_its_structure_with_none_for_what_has_no_derivative():
    @njit
    def several(x):
        return x.sum(), 3, (x * 2.0, x[0] + 1j), x

    _, tangent = irad.jvp(several, (X,), (np.array([1.0, 0.0, 0.0, 0.0]),))
    assert tangent[:2] == (1.0, None)
    np.testing.assert_array_equal(tangent[2][0], [2.0, 0.0, 0.0, 0.0])
    assert tangent[2][1] == 1.0 + 0.0j
    np.testing.assert_array_equal(tangent[3], [1.0, 0.0, 0.0, 0.0])


def test_an_array_that_does_not_depend_on_the_argument_has_a_tangent_of_zeros():
    @njit
    def constant(x):
        return np.arange(3.0), x

    _, tangent = irad.jvp(constant, (2.0,), (1.0,))
    np.testing.assert_array_equal(tangent[0], np.zeros(3))
    assert tangent[1] == 1.0


def test_arrays_in_place_carry_their_tangents():
    @njit
    def first_from_others(x):
        x[0] = x[1] * x[2]
        x[3] = 5.0

    x, direction = X.copy(), np.array([9.0, 1.0, 1.0, 1.0])
    assert irad.jvp(first_from_others, (x,), (direction,)) == (None, None)
    np.testing.assert_array_equal(x, [6.0, 2.0, 3.0, 5.0])
    np.testing.assert_array_equal(direction, [5.0, 1.0, 1.0, 0.0])


@pytest.mark.parametrize(
    ("x", "direction"),
    [
        (X[::2], np.ones(2)),
        (X[::2], np.ones(4)[::2]),
        (X, np.ones(8)[::2]),
        (X[::-1], np.ones(4)),
        (np.zeros(0), np.zeros(0)),
        (X[:1], np.ones(1)),
        (X, np.broadcast_to(1.0, 4)),
    ],
    ids=["strided", "both strided", "strided tangent", "reversed", "empty", "one", "read-only"],
)
def test_layouts_of_arrays_that_are_only_read(x, direction):
    assert irad.jvp(weighted, (x, 1.5), (direction, None)) == (weighted(x, 1.5), 3.0 * x.sum())


def test_elements_that_repeat_have_tangents_of_their_own():
    direction = np.arange(12.0).reshape(3, 4)

    @njit
    def squares(x):
        s = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                s += x[i, j] ** 2 * (i + 1)
        return s

    repeated = np.broadcast_to(X, (3, 4))
    expected = (2.0 * repeated * direction * np.array([[1.0], [2.0], [3.0]])).sum()
    assert irad.jvp(squares, (repeated,), (direction,))[1] == pytest.approx(expected, rel=1e-15)


def test_arrays_in_two_dimensions():
    @njit
    def row_sums(x):
        return x[1:, :].T.sum(axis=0) * x[0, 0]

    for order in "CF":
        x = np.asarray(np.arange(6.0).reshape(2, 3) + 1.0, order=order)
        direction = np.asarray(np.ones((2, 3)), order="C")
        value, tangent = irad.jvp(row_sums, (x,), (direction,))
        np.testing.assert_allclose(value, [15.0])
        np.testing.assert_allclose(tangent, [15.0 + 3.0])


def test_single_precision_and_complex_numbers():
    value, tangent = irad.jvp(weighted, (X.astype(np.float32), np.float32(2.0)), (np.ones(4, np.float32), None))
    assert (value, tangent) == (60.0, 40.0)

    @njit
    def square(z):
        return z * z

    assert irad.jvp(square, (1.0 + 2.0j,), (1j,)) == (-3.0 + 4.0j, 2.0 * (1.0 + 2.0j) * 1j)


def test_a_pushforward_inside_compiled_code():
    push = irad.pushforward(weighted)

    @njit
    def curvature(x, direction, step):
        return (push(x + step * direction, direction, 1.0)[1] - push(x, direction, 1.0)[1]) / step

    assert curvature(X, np.ones(4), 1e-3) == pytest.approx(8.0, rel=1e-9)


def test_written_inside_compiled_code():
    @njit
    def slopes(x, weight):
        both = irad.jvp(weighted, (x, weight), (np.ones_like(x), 1.0))
        one = irad.jvp(weighted, (x, weight), (None, 1.0))
        return both, one, irad.pushforward(weighted, 1)(x, weight, 1.0)

    assert slopes(X, 2.0) == ((60.0, 70.0), (60.0, 30.0), (60.0, 30.0))


def test_what_cannot_be_written_inside_compiled_code_says_so():
    @njit
    def without_tuple(x):
        return irad.jvp(wave, x, x)

    @njit
    def without_tangent(x):
        return irad.jvp(wave, (x,), (None,))

    for function, message in ((without_tuple, "write a tuple"), (without_tangent, "of which 0 are not None")):
        with pytest.raises(irad.SignatureError, match=message):
            function(1.0)


def test_methods_of_instances():
    @jitclass([("rate", numba.float64)])
    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def at(self, t):
            return np.exp(-self.rate * t)

    decay = Decay(2.0)
    expected = math.exp(-1.0), -2.0 * math.exp(-1.0)
    assert irad.jvp(decay.at, (0.5,), (1.0,)) == pytest.approx(expected, rel=1e-15)
    assert irad.pushforward(decay.at)(0.5, 1.0) == pytest.approx(expected, rel=1e-15)


def test_argnums():
    push = irad.pushforward(weighted, argnums=(1, 0))
    assert push(X, 2.0, (1.0, np.ones(4))) == (60.0, 70.0)
    assert irad.pushforward(weighted, -1)(X, 2.0, 1.0) == (60.0, 30.0)
    assert irad.pushforward(weighted, 0) is irad.pushforward(weighted, 0)
    assert repr(push) == "<irad.pushforward of weighted>"


def test_parallel_loops():
    @njit(parallel=True)
    def sums(x):
        y, s = np.empty_like(x), 0.0
        for i in prange(x.size):
            y[i] = np.sin(x[i]) * x[i]
            s += y[i] * x[i]
        return y, s

    x = np.linspace(0.1, 3.0, 1001)
    slope = np.cos(x) * x + np.sin(x)
    before = numba.get_num_threads()
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            _, tangent = irad.jvp(sums, (x,), (np.ones_like(x),))
            np.testing.assert_allclose(tangent[0], slope, rtol=1e-14, atol=1e-15)
            assert tangent[1] == pytest.approx((slope * x + np.sin(x) * x).sum(), rel=1e-13)
    finally:
        numba.set_num_threads(before)


def test_a_zero_tangent_keeps_an_infinite_slope_out():
    @njit
    def roots(x):
        return np.sqrt(x[0]) + x[1]

    assert irad.jvp(roots, (np.array([0.0, 1.0]),), (np.array([0.0, 1.0]),)) == (1.0, 1.0)
    assert irad.jvp(roots, (np.array([0.0, 1.0]),), (np.array([1.0, 0.0]),)) == (1.0, math.inf)


def test_temporary_arrays_are_freed_with_their_tangents():
    @njit
    def steps(x, n):
        for _ in range(n):
            x = x + 1e-6 * np.sin(x)
        return x

    def resident() -> int:
        with open("/proc/self/statm") as status:
            return int(status.read().split()[1]) * resource.getpagesize()

    x = np.linspace(0.0, 1.0, 10_000)
    irad.jvp(steps, (x, 1), (x, None))
    before, highest = resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, tangent = irad.jvp(steps, (x, 5000), (np.ones_like(x), None))  # 400 MB of temporaries, and as much of tangents
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - highest < 50_000  # KiB
    h = 1e-4
    np.testing.assert_allclose(tangent, (steps(x + h, 5000) - steps(x - h, 5000)) / (2 * h), rtol=1e-8)
    for _ in range(1000):
        irad.jvp(steps, (x, 3), (x, None))
    assert resident() - before < 50_000_000


def test_an_exception_leaves_nothing_behind():
    @njit
    def checked(x):
        y = x * 2.0
        if y[0] > 1.0:
            raise ValueError("too large")
        return y

    with pytest.raises(ValueError, match="too large"):
        irad.jvp(checked, (X,), (X,))
    np.testing.assert_array_equal(irad.jvp(checked, (X * 0.1,), (X,))[1], 2.0 * X)


@pytest.mark.parametrize(
    ("args", "tangents", "message"),
    [
        ((X, 2.0), (np.ones(4),), "2 arguments and 1 tangents"),
        ((X, 2.0), (None, None), "of which 0 are not None"),
        ((X, 2.0), (np.ones(3), None), "different shape"),
        ((X, 2.0), (np.ones(4, np.float32), None), "float32"),
        ((X, 2.0), (1.0, None), "the tangent"),
        ((X, 2.0), (None, np.ones(1)), "the tangent"),
        ((X, 2), (None, 1.0), "has no derivative"),
        ((X, 2.0), (None, 1.0j), "a small change of its argument, and so of the same type"),
    ],
)
def test_tangents_that_do_not_fit(args, tangents, message):
    with pytest.raises(irad.SignatureError, match=message):
        irad.jvp(weighted, args, tangents)


def test_tangents_of_arrays_that_are_written_have_the_memory_of_a_shadow():
    @njit
    def doubled(x):
        x *= 2.0

    x = X.copy()
    with pytest.raises(irad.SignatureError, match="shares memory"):
        irad.jvp(doubled, (x,), (x,))
    with pytest.raises(irad.SignatureError, match="strides"):
        irad.jvp(doubled, (np.ones(8)[::2],), (np.ones(12)[::3],))


@pytest.mark.parametrize("step", [1, 2])
def test_an_array_is_read_where_another_argument_is_written(step):
    @njit
    def moved(x, z):
        z[0] = z[1] * 2.0
        return x[0]

    base, direction = np.arange(8.0), np.arange(8.0) + 1.0
    view, tangent = base[::step], direction[::step]
    expected = 2.0 * tangent[1]
    assert irad.jvp(moved, (view, view), (tangent, tangent))[1] == expected == direction[0]


def test_an_array_without_tangent_that_is_part_of_one_with_a_tangent_is_refused_where_one_is_written():
    @njit
    def overwritten(x, y):
        x[0] = y[1] * y[0]
        y[2] = x[0] * x[1]
        return y[2]

    for whole in (np.ones(5), np.arange(4.0)):
        with pytest.raises(
            irad.SignatureError, match=r"argument 1 \(y\) has no tangent but shares memory with argument 0"
        ):
            irad.jvp(overwritten, (whole[1:], whole[:-1]), (np.ones(whole.size - 1), None))
    x = np.array([2.0, 3.0, 4.0])
    assert irad.jvp(overwritten, (x.copy(), x.copy()), (np.ones(3), None)) == (18.0, 6.0)


def test_a_read_only_tangent_of_an_array_that_is_written_is_refused():
    @njit
    def doubled(x, y):
        x *= y

    direction = np.ones(4)
    direction.flags.writeable = False
    with pytest.raises(irad.SignatureError, match="pass a writeable array of the same dtype and shape"):
        irad.jvp(doubled, (X.copy(), X), (direction, None))
    found = np.ones(4)
    assert irad.jvp(doubled, (X.copy(), X), (found, direction)) == (None, None)
    np.testing.assert_array_equal(found, 2.0 * X)


def test_a_limit_of_the_tape_is_always_kept():
    assert irad.jvp(weighted, (X, 2.0), (None, 1.0), options=irad.Options(max_tape_bytes=1)) == (60.0, 30.0)


# ------------------------------------------------------------------------------------------------ autodiff


def test_autodiff_returns_the_tangent_and_the_value():
    given = irad.Duplicated(X, np.ones(4)), irad.Duplicated(2.0, 1.0)
    assert irad.autodiff(irad.Forward, weighted, *given) == 70.0
    assert irad.autodiff(irad.ForwardWithPrimal, weighted, *given) == (70.0, 60.0)
    assert irad.autodiff(irad.Forward, weighted, given[0], irad.Const(2.0)) == 40.0
    assert irad.autodiff(irad.Forward, weighted, irad.Const(X), irad.Const(2.0)) == 0.0


def test_autodiff_of_tuples():
    @njit
    def model(parameters, x):
        scale, weights = parameters
        return scale * (weights * x).sum(), weights * scale

    given = irad.MixedDuplicated((3.0, X), (1.0, np.ones(4))), irad.Const(X)
    tangent, value = irad.autodiff(irad.ForwardWithPrimal, model, *given)
    assert (value[0], tangent[0]) == (90.0, 60.0)
    np.testing.assert_array_equal(tangent[1], X + 3.0)


def test_autodiff_carries_tangents_of_arrays_in_place():
    @njit
    def squared(x, out):
        out[:] = x * x

    out, tangent = np.empty(4), np.full(4, np.nan)
    assert irad.autodiff(irad.Forward, squared, irad.Duplicated(X, np.ones(4)), irad.Duplicated(out, tangent)) is None
    np.testing.assert_array_equal(out, X * X)
    np.testing.assert_array_equal(tangent, 2.0 * X)


def test_a_constant_that_takes_active_values_is_refused():
    @njit
    def squared(x, out):
        out[:] = x * x

    with pytest.raises(irad.ActivityError) as caught:
        irad.autodiff(irad.Forward, squared, irad.Duplicated(X, np.ones(4)), irad.Const(np.empty(4)))
    assert "irad.jvp or irad.pushforward, which create one" in caught.value.remedy


def test_a_function_without_rule_is_refused_with_a_remedy_of_forward_mode():
    significand = ctypes.CDLL(ctypes.util.find_library("m")).significand
    significand.argtypes, significand.restype = [ctypes.c_double], ctypes.c_double
    with pytest.raises(irad.NoRuleError, match="significand") as caught:
        irad.jvp(njit(lambda x: significand(x)), (3.0,), (1.0,))
    assert "irad.rules.easy_rule or irad.rules.forward" in caught.value.remedy


def test_autodiff_inside_compiled_code():
    @njit
    def slope(x):
        return irad.autodiff(irad.ForwardWithPrimal, wave, irad.Duplicated(x, 1.0))

    assert slope(0.7) == pytest.approx((math.cos(0.7) * 0.7 + math.sin(0.7), wave(0.7)), rel=1e-15)


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [((irad.Active(1.0),), {}, "for reverse mode"), ((irad.Duplicated(1.0, 1.0),), {"seed": 2.0}, "given a seed")],
)
def test_what_belongs_to_reverse_mode_is_refused(arguments, keywords, message):
    with pytest.raises(irad.SignatureError, match=message):
        irad.autodiff(irad.Forward, wave, *arguments, **keywords)
