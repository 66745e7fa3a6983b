"""Easy rules, and what is declared to carry no derivative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import List

import irad
from irad import rules
from irad.errors import RuleError
from irad.frontend.values import layouts
from irad.testing.check_gradient import check_quickly


@pytest.fixture(autouse=True)
def no_rules_left() -> Iterator[None]:
    from irad.frontend.custom import catalogue

    before = {rule.target for rule in catalogue.rules()}
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


def test_the_names_are_found_without_an_import_of_their_own():
    assert irad.rules is rules
    assert all(hasattr(rules, name) for name in rules.__all__)


# ------------------------------------------------------------------------------------------------ easy rules


def test_numbers():
    @njit
    def product(x, y, n):
        return x * y**n

    rules.easy_rule(product, lambda x, y, n: y**n, lambda x, y, n, result: n * result / y, None)

    @njit
    def f(x, y):
        return product(x, y, 3) + product(x, x, 2)

    check_quickly(f, 1.5, 0.7)
    check_quickly(f, np.float32(1.5), np.float32(0.7))
    assert irad.grad(f)(2.0, 0.0) == 12.0
    assert irad.grad(product, argnums=1)(0.0, 0.0, 3) != irad.grad(product, argnums=1)(1.0, 1.0, 3)


def test_numbers_as_partials():
    @njit
    def f(x, y):
        return 2.0 * x - y

    rules.easy_rule(f, 20.0, -1)
    assert irad.grad(f, argnums=(0, 1))(1.0, 1.0) == (20.0, -1.0)


def test_a_zero_cotangent_is_stronger_than_an_infinite_partial():
    @njit
    def root(x):
        return np.sqrt(x)

    rules.easy_rule(root, lambda x, result: 0.5 / result)

    @njit
    def f(x):
        return 0.0 * root(x) + x

    assert irad.grad(f)(0.0) == 1.0
    assert irad.grad(root)(0.0) == np.inf


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_number_of_an_array(dtype):
    @njit
    def norm(a):
        return np.sqrt((a * a).sum())

    rules.easy_rule(norm, lambda a, result: a / result)

    @njit
    def f(a):
        b = a * a
        value = norm(b) * norm(a)
        b[:] = 0
        return value

    check_quickly(f, np.array([1.0, 2.0, 3.0], dtype))
    check_quickly(f, np.array([[1.0, 2.0], [3.0, 0.5]], dtype).T)


def test_an_array_of_a_number():
    @njit
    def powers(x, a):
        return x**a

    rules.easy_rule(powers, lambda x, a: a * x ** (a - 1.0), None)

    @njit
    def f(x, a):
        b = powers(x, a)
        return (b * b).sum()

    check_quickly(f, 1.3, np.array([0.0, 1.0, 2.5]), argnums=(0,))


def test_a_jacobian_and_its_diagonal():
    @njit
    def linear(a, m):
        return m @ a

    @njit
    def squares(a):
        return a * a

    rules.easy_rule(linear, lambda a, m: m, None)
    rules.easy_rule(squares, lambda a: 2.0 * a)

    @njit
    def f(a, m):
        return (squares(linear(a, m)) * np.arange(3.0)).sum()

    check_quickly(f, np.array([1.0, 2.0]), np.arange(6.0).reshape(3, 2), argnums=(0,))


def test_several_results():
    @njit
    def polar(x, y):
        return np.hypot(x, y), np.arctan2(y, x)

    rules.easy_rule(
        polar,
        lambda x, y, result: (x / result[0], -y / result[0] ** 2),
        lambda x, y, result: (y / result[0], x / result[0] ** 2),
    )

    @njit
    def f(x, y):
        radius, angle = polar(x, y)
        return radius * angle

    @njit
    def angle_only(x, y):
        return polar(x, y)[1]

    check_quickly(f, 1.0, 2.0)
    check_quickly(angle_only, 1.0, 2.0)


def test_complex_numbers():
    @njit
    def square(z):
        return z * z

    @njit
    def absolute(z):
        return abs(z)

    rules.easy_rule(square, lambda z: 2.0 * z)
    rules.easy_rule(absolute, lambda z, result: np.conj(z) / result)

    @njit
    def f(x, y):
        w = square(complex(x, y))
        return absolute(w) + 2.0 * w.real

    @njit
    def of_real(x):
        return square(x + 0j).imag + square(x + 1j).imag

    check_quickly(f, 1.0, 2.0)
    check_quickly(of_real, 1.0)


def test_a_library_function():
    rules.easy_rule(np.linalg.det, lambda a, result: 10.0 * result * np.linalg.inv(a).T)

    @njit
    def f(a):
        return np.linalg.det(a)

    a = np.array([[2.0, 1.0], [0.5, 3.0]])
    np.testing.assert_allclose(irad.grad(f)(a), 10.0 * np.linalg.det(a) * np.linalg.inv(a).T)


def test_wrong_easy_rules_are_refused():
    @njit
    def f(x, y):
        return x * y

    with pytest.raises(RuleError, match="takes 2 arguments and is given 1 partial"):
        rules.easy_rule(f, 1.0)
    with pytest.raises(RuleError, match="takes 1 arguments: expected 2, or 3"):
        rules.easy_rule(f, lambda x: x, None)
    with pytest.raises(RuleError, match="is 'y'"):
        rules.easy_rule(f, "y", None)  # type: ignore[arg-type]
    rules.easy_rule(f, lambda x, y: np.array([1.0, 2.0]), None)
    with pytest.raises(RuleError, match="has 1 dimensions; the result has 0, the argument 0"):
        irad.grad(f)(1.0, 2.0)


# ------------------------------------------------------------------------------------------------ no derivative


def test_an_easy_rule_for_any_number_of_arguments_is_refused():
    @njit
    def product(x, *factors):
        return x * factors[0] * factors[1]

    with pytest.raises(RuleError, match=r"any number of arguments \(\*factors\)[\s\S]*given factors as one\s+tuple"):
        rules.easy_rule(product, 1.0, None)
    assert not rules.has_rule(product)

    @rules.augmented_primal(product)
    def augmented(config, x, factors):
        return rules.AugmentedReturn(product(x.value, *factors.value), None, None)

    @rules.reverse(product)
    def reverse(config, cotangent, tape, x, factors):
        a, b = factors.value
        by_b = cotangent * x.value * a if rules.is_active(factors, 1) else None
        return cotangent * a * b, (cotangent * x.value * b, by_b)

    check_quickly(njit(lambda x, y: product(x, y, 2.0) * product(y, x, y)), 1.5, 0.7)


def test_an_inactive_function():
    @rules.inactive
    @njit
    def level(x):
        return x * x

    @njit
    def f(x):
        return x * level(x)

    assert irad.value_and_grad(f)(3.0) == (27.0, 9.0)
    assert irad.grad(level)(3.0) == 0.0


def test_an_inactive_function_is_inlined_in_the_derivative():
    @rules.inactive
    @njit
    def level(x):
        return x * x + 1.0

    @njit
    def f(a):
        total = 0.0
        for i in range(a.size):
            total += a[i] * level(a[i])
        return total

    derivative: Any = irad.grad(f)
    np.testing.assert_array_equal(derivative(np.array([1.0, 2.0])), [2.0, 5.0])
    text = next(iter(derivative.overloads.values())).library.get_llvm_str()
    assert "irad.ruled" not in text


def test_an_inactive_function_of_arrays():
    @rules.inactive
    @njit
    def normalised(a):
        return a / a.sum()

    @njit
    def f(a):
        total = 0.0
        weights = normalised(a)
        for i in range(a.size):
            total += weights[i] * a[i] ** 2
        return total

    a = np.array([1.0, 3.0])
    np.testing.assert_allclose(irad.grad(f)(a), 2.0 * a * a / a.sum())


def test_an_inactive_function_runs_once():
    @rules.inactive
    @njit
    def count(log, x):
        log[0] += 1
        return x

    @njit
    def f(x, log):
        return x * count(log, x)

    log = np.zeros(1, np.int64)
    assert irad.grad(f)(3.0, log) == 3.0
    assert log[0] == 1


def test_an_inactive_argument():
    @njit
    def weighted(w, x):
        return w * x * x

    rules.inactive_arg(weighted, "w")

    @njit
    def f(x):
        return weighted(x, x)

    assert irad.grad(f)(3.0) == 18.0
    assert irad.grad(weighted, argnums=(0, 1))(2.0, 3.0) == (0.0, 12.0)
    with pytest.raises(RuleError, match="has no argument 'z'"):
        rules.inactive_arg(weighted, "z")
    with pytest.raises(RuleError, match="erf is a C function"):
        rules.inactive_arg("erf", 0)  # type: ignore[type-var]


def test_an_inactive_array_argument():
    @njit
    def dot(a, b):
        total = 0.0
        for i in range(a.size):
            total += a[i] * b[i]
        return total

    rules.inactive_arg(dot, 1)

    @njit
    def f(a):
        return dot(a, a) + dot(a, a * 2.0)

    a = np.array([1.0, 2.0])
    np.testing.assert_allclose(irad.grad(f)(a), 3.0 * a)


@pytest.fixture
def no_types_left() -> Iterator[None]:
    before = set(layouts.INACTIVE_TYPES)
    yield
    layouts.INACTIVE_TYPES.clear()
    layouts.INACTIVE_TYPES.update(before)


@pytest.mark.usefixtures("no_types_left")
def test_an_inactive_type():
    @jitclass([("rate", float64)])
    class Settings:
        def __init__(self, rate):
            self.rate = rate

    rules.inactive_type(Settings)

    @njit
    def f(x, settings):
        return x * settings.rate

    assert irad.grad(f)(2.0, Settings(3.0)) == 3.0
    assert irad.vjp(f, 2.0, Settings(3.0))[1](1.0) == (3.0, None)
    with pytest.raises(irad.SignatureError, match="which has no derivative"):
        irad.grad(f, argnums=1)(2.0, Settings(3.0))
    with pytest.raises(RuleError, match="is not a type that Numba knows"):
        rules.inactive_type("no such type")


def test_a_value_cut_off():
    @njit
    def f(x):
        return x * rules.stop_gradient(x)

    @njit
    def g(a):
        b = rules.ignore_derivatives((a, 2.0))
        return (a * b[0]).sum() * b[1]

    assert irad.value_and_grad(f)(3.0) == (9.0, 3.0)
    assert f(3.0) == 9.0
    assert irad.grad(f)(np.float32(3.0)) == 3.0
    a = np.array([1.0, 2.0])
    np.testing.assert_allclose(irad.grad(g)(a), 2.0 * a)
    assert g(a) == 10.0
    assert rules.stop_gradient(2.0) == 2.0
    assert rules.stop_gradient(a) is not a


def test_lists_cut_off():
    """Of numbers and of arrays, reflected and typed; in both modes, in a plain call and in Python."""

    @njit
    def f(x, typed):
        numbers, arrays = irad.stop_gradient([x[0], 2.0 * x[1]]), irad.ignore_derivatives([x, x * x])
        typed.append(x[0] * x[1])
        kept = irad.stop_gradient(typed)
        x[0] *= 2.0  # the arrays cut off are copies
        return x[0] * numbers[1] + x[1] * arrays[0][0] + (arrays[1] * x).sum() + kept[1] * x[1]

    def slope(x0, x1):  # of 2a·2b' + b·a' + 2a·a'² + b·b'² + (ab)'·b, with primes constant
        return [4.0 * x1 + 2.0 * x0**2, x0 + x1**2 + x0 * x1]

    def arguments():
        return np.array([3.0, 5.0]), List([1.0])

    x, d = arguments()[0], np.array([0.5, -2.0])
    np.testing.assert_allclose(irad.grad(f)(*arguments()), slope(*x))
    value, tangent = irad.jvp(f, arguments(), (d.copy(), None))
    assert (value, tangent) == pytest.approx((f(*arguments()), slope(*x) @ d))
    assert value == pytest.approx(f.py_func(*arguments()))
    items = List([np.ones(2)])
    assert irad.stop_gradient(items)[0] is not items[0]
    assert type(irad.stop_gradient(items)) is List
    assert irad.stop_gradient([1.0, 2]) == [1.0, 2]


def test_complex_values_cut_off():
    @njit
    def f(x):
        z = rules.stop_gradient(complex(x, x))
        return (z * x).real + (z * x).imag

    assert irad.grad(f)(3.0) == 6.0


def test_whether_a_derivative_is_made():
    @njit
    def f(x):
        if rules.within_autodiff():
            return 2.0 * x
        return x

    assert f(3.0) == 3.0
    assert irad.value_and_grad(f)(3.0) == (6.0, 2.0)
    assert not rules.within_autodiff()


def test_a_function_that_stays_a_call():
    @rules.noinline
    @njit
    def cube(x):
        return x**3

    @njit
    def f(x):
        return cube(x) + cube(2.0 * x)

    check_quickly(f, 1.5)
    derivative: Any = irad.grad(f)
    derivative(1.0)
    text = next(iter(derivative.overloads.values())).library.get_llvm_str()
    assert "irad.ruled" in text
