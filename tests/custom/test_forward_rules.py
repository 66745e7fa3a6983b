"""`irad.rules.forward`: what a rule is given and returns, in each kind of call. The rules differ from true derivatives.

So that a wrong call, to the function itself, shows.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator

import numpy as np
import pytest
from numba import njit, prange, types

import irad
from irad import rules
from irad.errors import NoRuleError
from irad.frontend.custom import catalogue
from irad.rules import AugmentedReturn, StatefulRule, is_active
from irad.testing.allocations import allocations


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = {rule.target for rule in catalogue.rules()}
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


A, B = np.array([1.0, 2.0]), np.array([3.0, -1.0])


@njit
def product(x, y):
    return x * y


def product_forward(config, x, y):
    tangent = 0.0
    if is_active(x):
        tangent += 10.0 * x.tangent * y.value
    if is_active(y):
        tangent += 100.0 * x.value * y.tangent
    return x.value * y.value, tangent


@pytest.mark.parametrize(
    ("tangents", "expected"), [((1.0, 2.0), 10.0 * 4.0 + 600.0), ((1.0, None), 40.0), ((None, 2.0), 600.0)]
)
def test_numbers(tangents, expected):
    rules.forward(product)(product_forward)
    assert irad.jvp(njit(lambda x, y: product(x, y) + 1.0), (3.0, 4.0), tangents) == (13.0, expected)
    assert irad.jvp(product, (3.0, 4.0), tangents) == (12.0, expected)


def test_reverse_mode_and_calls_without_active_arguments_are_as_before():
    rules.forward(product)(product_forward)
    loss = njit(lambda x, y: product(x, y) * product(y, y))
    assert irad.jvp(loss, (3.0, 4.0), (1.0, None)) == (192.0, 640.0)
    assert irad.grad(loss, argnums=(0, 1))(3.0, 4.0) == (64.0, 144.0)
    assert not rules.has_rule(product)


def test_arrays_in_and_out():
    @njit
    def scale(a, k):
        return a * k

    @rules.forward(scale)
    def forward(config, a, k):
        tangent = np.zeros_like(a.value)
        if is_active(a):
            tangent += 10.0 * a.tangent * k.value
        if is_active(k):
            tangent += 100.0 * a.value * k.tangent
        return a.value * k.value, tangent

    loss = njit(lambda a, k: (scale(a, k) * A).sum())
    for tangents, expected in [((B, 2.0), 10 * 3 * (A @ B) + 200 * (A @ A)), ((B, None), 30.0), ((None, 2.0), 1000.0)]:
        assert irad.jvp(loss, (A, 3.0), tangents) == (15.0, expected)
    value, tangent = irad.jvp(scale, (A, 3.0), (B, None))
    np.testing.assert_array_equal(value, 3.0 * A)
    np.testing.assert_array_equal(tangent, 30.0 * B)


def test_the_array_of_an_argument_is_returned():
    @njit
    def tail(a):
        return a[1:]

    @rules.forward(tail)
    def forward(config, a):
        return a.value[1:], a.tangent[1:]

    @njit
    def f(a):
        tail(a)[0] = a[0] * a[0]
        return a[1] * 3.0

    assert irad.jvp(f, (A.copy(),), (B.copy(),)) == (3.0, 18.0)


def test_in_place():
    @njit
    def cube_all(a):
        a[:] = a**3

    @rules.forward(cube_all)
    def forward(config, a):
        for i in range(a.value.size):
            a.tangent[i] *= 10.0 * a.value[i] ** 2
            a.value[i] = a.value[i] ** 3

    @njit
    def loss(x):
        a = x.copy()
        cube_all(a)
        cube_all(a)
        return a.sum()

    value, tangent = irad.jvp(loss, (A,), (B,))
    assert value == (A**9).sum()
    assert tangent == (100.0 * A**8 * B).sum()
    a, da = A.copy(), B.copy()
    irad.pushforward(cube_all)(a, da)
    np.testing.assert_array_equal(a, A**3)
    np.testing.assert_array_equal(da, 10.0 * A**2 * B)


def test_what_is_overwritten_by_a_constant_has_no_tangent():
    @njit
    def fill(out, x):
        out[:] = x

    @rules.forward(fill)
    def forward(config, out, x):
        out.value[:] = x.value
        if is_active(out):
            out.tangent[:] = x.tangent if is_active(x) else 0.0

    @njit
    def loss(a, x):
        b = a * 2.0
        fill(b, x)
        return b.sum() + a[0]

    assert irad.jvp(loss, (A, 5.0), (B, None)) == (11.0, 3.0)
    assert irad.jvp(loss, (A, 5.0), (B, 1.0)) == (11.0, 5.0)


def test_several_results_and_tuples_of_arguments():
    @njit
    def both(pair, n):
        return pair[0] * pair[1], (n, pair[0] * n)

    @rules.forward(both)
    def forward(config, pair, n):
        first, second = pair.value
        tangent = np.zeros_like(first)
        if is_active(pair, 0):
            tangent += 10.0 * pair.tangent[0] * second
        if is_active(pair, 1):
            tangent += 100.0 * first * pair.tangent[1]
        scaled = pair.tangent[0] * n.value if is_active(pair, 0) else np.zeros_like(first)
        return (first * second, (n.value, first * n.value)), (tangent, (None, scaled))

    @njit
    def loss(a, k):
        y, (n, z) = both((a, k), 2)
        return y.sum() * n + z.sum()

    assert irad.jvp(loss, (A, 3.0), (B, 1.0)) == (18.0 + 6.0, 2.0 * (30.0 * B.sum() + 100.0 * 3.0) + 2.0 * B.sum())
    assert irad.jvp(loss, (A, 3.0), (None, 1.0)) == (24.0, 600.0)
    assert irad.jvp(loss, (A, 3.0), (B, None)) == (24.0, 2.0 * 30.0 * B.sum() + 2.0 * B.sum())


def test_complex_numbers_of_which_one_part_is_constant():
    @njit
    def square(z):
        return z * z

    @rules.forward(square)
    def forward(config, z):
        return z.value**2, 20.0 * z.value * z.tangent

    f = njit(lambda x, y: square(complex(x, y)))
    assert irad.jvp(f, (2.0, 3.0), (1.0, None))[1] == 20.0 * (2.0 + 3.0j)
    assert irad.jvp(f, (2.0, 3.0), (None, 1.0))[1] == 20.0 * (2.0 + 3.0j) * 1.0j
    assert irad.jvp(square, (1.0 + 2.0j,), (2.0 - 1.0j,)) == (-3.0 + 4.0j, 20.0 * (1.0 + 2.0j) * (2.0 - 1.0j))


def test_a_value_without_a_tangent():
    @njit
    def count(a):
        return a.size

    @rules.forward(count)
    def forward(config, a):
        return a.value.size, None

    assert irad.jvp(njit(lambda a: a.sum() * count(a)), (A,), (B,)) == (6.0, 4.0)


def test_calls_in_loops():
    rules.forward(product)(product_forward)

    @njit
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y = product(x, y)
        return y

    expected = 0.0
    for i in range(5):
        expected = 10.0 * 2.0**i + 100.0 * 2.0 * expected
    assert irad.jvp(power, (2.0, 5), (1.0, None)) == (32.0, expected)


@pytest.mark.parametrize("parallel", [False, True])
def test_calls_in_parallel_loops(parallel):
    rules.forward(product)(product_forward)

    @njit(parallel=parallel)
    def total(x, k):
        y = np.empty_like(x)
        for i in prange(x.size):
            y[i] = product(x[i], k)
        return y.sum()

    x = np.arange(100.0)
    assert irad.jvp(total, (x, 2.0), (np.ones(100), None)) == (9900.0, 2000.0)
    assert irad.jvp(total, (x, 2.0), (np.ones(100), 1.0)) == (9900.0, 2000.0 + 100.0 * 4950.0)


def test_all_memory_is_released():
    @njit
    def double(a):
        return a + a

    rules.forward(double)(lambda config, a: (a.value + a.value, 2.0 * a.tangent))

    @njit
    def loss(a):
        for _ in range(3):
            a = double(a)
        return a

    push = irad.pushforward(loss)
    push(A, B)
    with allocations() as count:
        for _ in range(5):
            value, tangent = push(A, B)
            np.testing.assert_array_equal(tangent, 8.0 * B)
        del value, tangent
        counted = count()
    assert counted.made == counted.released > 0


def test_nopython_callers():
    rules.forward(product)(product_forward)
    push = irad.pushforward(njit(lambda x, y: product(x, y)), argnums=(0, 1))
    assert njit(lambda x, y: push(x, y, (1.0, 1.0)))(3.0, 4.0) == (12.0, 340.0)


def test_the_most_specific_rule_is_taken():
    @njit
    def double(x):
        return x + x

    rules.forward(double)(lambda config, x: (2.0 * x.value, 20.0 * x.tangent))
    rules.forward(double, signature=(types.Array,))(lambda config, x: (2.0 * x.value, 200.0 * x.tangent))
    assert irad.jvp(double, (1.0,), (1.0,)) == (2.0, 20.0)
    np.testing.assert_array_equal(irad.jvp(double, (A,), (B,))[1], 200.0 * B)


def test_a_c_function():
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    j0 = library.j0
    j0.argtypes, j0.restype = [ctypes.c_double], ctypes.c_double

    @rules.forward("j0")
    def forward(config, x):
        if x.value < 0.0:
            raise ValueError("negative")
        return j0(x.value), 10.0 * x.tangent

    f = njit(lambda x: 3.0 * j0(x))
    for _ in range(2):
        assert irad.jvp(f, (1.5,), (2.0,)) == (f(1.5), 60.0)
        with pytest.raises(ValueError, match="negative"):
            irad.jvp(f, (-1.5,), (2.0,))


def test_exceptions_are_raised():
    @rules.forward(product)
    def forward(config, x, y):
        if x.value < 0.0:
            raise ValueError("negative", 7)
        return x.value * y.value, y.value * x.tangent

    loss = njit(lambda x: product(x, 2.0) + 1.0)
    assert irad.jvp(loss, (1.0,), (1.0,)) == (3.0, 2.0)
    with pytest.raises(ValueError, match="negative") as caught:
        irad.jvp(loss, (-1.0,), (1.0,))
    assert caught.value.args == ("negative", 7)

    @njit
    def caught_inside(x):
        try:
            return product(x, 2.0)
        except Exception:
            return 5.0 * x

    assert irad.jvp(caught_inside, (-1.0,), (1.0,)) == (-5.0, 5.0)


def test_a_rule_with_workspace():
    @njit
    def reverse_all(a):
        a[:] = a[::-1].copy()

    @rules.build_rule(reverse_all)
    def build(signature):
        def state():
            return np.empty(8)

        def unused(config, slot, *rest):
            raise RuntimeError

        def forward(config, slot, a):
            n = a.value.size
            slot.state[:n] = a.tangent
            for i in range(n):
                a.tangent[i] = 10.0 * slot.state[n - 1 - i]
            reverse_all(a.value)

        return StatefulRule(unused, unused, state, forward)

    @njit
    def loss(x):
        a = x * 1.0
        reverse_all(a)
        return a[0]

    for _ in range(3):
        assert irad.jvp(loss, (A,), (B,)) == (2.0, -10.0)


def test_a_function_with_a_rule_for_reverse_mode_only():
    rules.augmented_primal(product)(lambda config, x, y: AugmentedReturn(x.value * y.value, None, None))
    rules.reverse(product)(lambda config, cotangent, tape, x, y: (cotangent * y.value, None))
    loss = njit(lambda x: product(x, 2.0))
    with pytest.raises(NoRuleError, match="product has a rule for reverse mode only") as caught:
        irad.jvp(loss, (1.0,), (1.0,))
    assert "irad.rules.forward(product)" in str(caught.value)
    rules.forward_from_body(product)
    assert irad.jvp(njit(lambda x: product(x, 3.0)), (1.0,), (1.0,)) == (3.0, 3.0)
    with pytest.raises(irad.RuleError, match="the body of j0"):
        rules.forward_from_body("j0")
    assert irad.grad(loss)(1.0) == 2.0
    rules.forward(product)(product_forward)
    assert irad.jvp(loss, (1.0,), (1.0,)) == (2.0, 20.0)
    assert irad.grad(loss)(1.0) == 2.0


def test_constants_by_declaration():
    level = rules.inactive(njit(lambda x: x * x))
    part = rules.inactive_arg(njit(lambda x, w: x * w), 1)
    loss = njit(lambda x: x * level(x) + part(x, x) + rules.stop_gradient(x))
    assert irad.jvp(loss, (3.0,), (1.0,)) == (27.0 + 9.0 + 3.0, 9.0 + 3.0)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda config, x, y: x.value, r"no pair"),
        (lambda config, x, y: (x.value, None), r"the wrong tangent"),
        (lambda config, x, y: (x.value, np.ones(2)), r"the wrong tangent"),
        (lambda config, x, y: (None, x.tangent), r"a value of the wrong type"),
        (lambda config, x, y: (x.value, x.shadow), r"Numba cannot compile the forward of the rule for product"),
    ],
)
def test_what_a_rule_must_return(rule, message):
    rules.forward(product)(rule)
    with pytest.raises(irad.RuleError, match=message):
        irad.jvp(product, (3.0, 4.0), (1.0, None))


def test_a_tangent_of_another_shape_or_layout():
    @njit
    def double(a):
        return a + a

    rules.forward(double)(lambda config, a: (a.value + a.value, a.tangent[1:]))
    with pytest.raises(irad.RuleError, match="shape"):
        irad.jvp(double, (A,), (B,))

    @njit
    def every_other(a):
        return a[::2]

    rules.forward(every_other)(lambda config, a: (a.value[::2], a.tangent[:2]))
    with pytest.raises(irad.RuleError, match="strides"):
        irad.jvp(every_other, (np.ones(4),), (np.ones(4),))
