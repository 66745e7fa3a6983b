"""What users declare of functions holds in derivatives of derivatives: in every order and mode, up to the third."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import irad
from irad import rules
from irad.errors import NoRuleError, UnsupportedError
from irad.frontend.custom import catalogue
from irad.frontend.values import layouts
from irad.rules import AugmentedReturn

ORDERS: Final = tuple("".join(modes) for count in (1, 2, 3) for modes in itertools.product("rf", repeat=count))


@pytest.fixture(scope="module", autouse=True)
def no_rules_left() -> Iterator[None]:
    before, types = {rule.target for rule in catalogue.rules()}, set(layouts.INACTIVE_TYPES)
    declare()
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)
    layouts.INACTIVE_TYPES.clear()
    layouts.INACTIVE_TYPES.update(types)


def derived(f: Any, modes: str) -> Any:
    """A derivative with respect to the first of two arguments by reverse and forward modes, the innermost first."""
    for mode in modes:
        if mode == "r":
            f = njit(lambda x, which, f=f: irad.grad(f)(x, which))
        else:
            f = njit(lambda x, which, f=f: irad.jvp(f, (x, which), (1.0, None))[1])
    return f


# ---------------------------------------------------------------------------------------------- the declared functions


def level(x):
    return x * x


def level_that_stays(x):
    return x * x


@njit
def cube(x):
    return x**3


@njit
def cube_that_stays(x):
    return x**3


@njit
def slope(x):
    return irad.grad(cube)(x)


@njit
def weighted(w, x):
    return w * x * x


@njit
def weighted_complex(z, w):
    return (z * w).real


@njit
def easy(x):
    return x * x


@njit
def easy_weighted(x, w):
    return w * x * x


@njit
def easy_with_level(x):
    return x**3


@njit
def opted_out(x):
    return x**3


@njit
def by_parts(x):
    return x * x


@njit
def from_body(x):
    return x**3


@irad.custom_jvp
def by_custom_jvp(x):
    return x * x


@irad.custom_vjp
def by_custom_vjp(x):
    return x * x


level, level_that_stays = njit(level), njit(level_that_stays)


@njit
def equation(y, x):
    return y**3 - level(x) * x


@irad.implicit.solves(equation)
@njit
def root(guess, x):
    return x


@njit
def squares(a):
    return a * a


@njit
def squares_into(out, a):
    for i in range(a.size):
        out[i] = a[i] ** 2


@njit
def moment(a, w):
    total = 0.0
    for i in range(a.size):
        total += a[i] ** 2 * w[i]
    return total


@njit
def product(a, w):
    return np.dot(a * a, w)


@njit
def scale(a, w):
    for i in range(a.size):
        a[i] *= a[i] * w[i]


@njit
def scaled_by_parts(x, weights):
    return x * x * weights[0] * weights[1][0]


@jitclass([("rate", float64)])
class Settings:
    def __init__(self, rate):
        self.rate = rate


def declare() -> None:
    for function in (level, level_that_stays, slope, squares, squares_into):
        rules.inactive(function)
    rules.noinline(level_that_stays)
    rules.noinline(cube_that_stays)
    for function, argument in ((weighted, 0), (weighted_complex, 1), (easy_weighted, 1), (moment, 1), (product, 1)):
        rules.inactive_arg(function, argument)
    rules.inactive_arg(scale, "w")
    rules.inactive_arg(scaled_by_parts, "weights")
    rules.inactive_type(Settings)
    rules.easy_rule(easy, lambda x: 20.0 * x)
    rules.easy_rule(easy_weighted, lambda x, w: w * x * x, lambda x, w: 7.0 * x)
    rules.easy_rule(easy_with_level, lambda x: x * level(x))
    rules.easy_rule(opted_out, lambda x: 20.0 * x)
    rules.opt_out(opted_out, "(float64,)")
    rules.augmented_primal(by_parts)(lambda config, x: AugmentedReturn(by_parts(x.value), None, x.value))
    rules.reverse(by_parts)(lambda config, cotangent, tape, x: (20.0 * cotangent * tape,))
    rules.forward(by_parts)(lambda config, x: (by_parts(x.value), 20.0 * x.value * x.tangent))
    rules.augmented_primal(from_body)(lambda config, x: AugmentedReturn(from_body(x.value), None, None))
    rules.reverse(from_body)(lambda config, cotangent, tape, x: (3.0 * cotangent * x.value**2,))
    rules.forward_from_body(from_body)
    for function in (by_custom_jvp, by_custom_vjp):
        function.defjvp(lambda primals, tangents, f=function: (f(primals[0]), 20.0 * primals[0] * tangents[0]))
        function.defvjp(lambda x, f=function: (f(x), x), lambda x, cotangent: (20.0 * x * cotangent,))


# ------------------------------------------------------------------------------------------------------ every order


@njit
def numbers(x, which):
    """Cases of numbers, so that one compilation has them all."""
    if which == 0:
        return x * level(x)
    if which == 1:
        return x * level_that_stays(x)
    if which == 2:
        return x * slope(x)
    if which == 3:
        return weighted(x, x)
    if which == 4:
        return weighted_complex(complex(x * x, x), complex(x, 2.0 * x))
    if which == 5:
        return cube_that_stays(x)
    if which == 6:
        return easy(x)
    if which == 7:
        return easy_weighted(x, x)
    if which == 8:
        return easy_with_level(x)
    if which == 9:
        return opted_out(x)
    if which == 10:
        return by_parts(x)
    if which == 11:
        return from_body(x)
    if which == 12:
        return by_custom_jvp(x)
    if which == 13:
        return by_custom_vjp(x)
    return x * irad.stop_gradient(x * x)


@njit
def arrays(x, which):
    """Cases of arrays, and of functions that write to them."""
    a, b = np.full(3, x), np.full(6, x)[::-2]
    if which == 0:
        return (squares(a) * a).sum()
    if which == 1:
        found = np.zeros(3)
        squares_into(found, a)
        return (found * a).sum()
    if which == 2:
        return moment(a, b)
    if which == 3:
        return product(a, a)
    if which == 4:
        scale(a, b)
        return a.sum()
    return scaled_by_parts(x, (x, b))


def of_numbers(x: float) -> tuple[tuple[float, float, float], ...]:
    """The three derivatives of each case."""
    constant, cubic, by_rule = (x**2, 0.0, 0.0), (3 * x**2, 6 * x, 6.0), (20 * x, 20.0, 0.0)
    slopes = (3 * x**2, 0.0, 0.0), (2 * x**2, 2 * x, 0.0), (2 * x**2 - 2 * x, 2 * x, 0.0)
    rules_with_constants = (x**3, 2 * x**2, 2 * x), (x**3, x**2, 0.0)
    first = (constant, constant, *slopes, cubic, by_rule, *rules_with_constants, cubic, by_rule, cubic)
    return (*first, by_rule, by_rule, constant)


def of_arrays(x: float) -> tuple[tuple[float, float, float], ...]:
    """The three derivatives of each case."""
    constant, weighed = (3 * x**2, 0.0, 0.0), (6 * x**2, 6 * x, 0.0)
    return constant, constant, weighed, weighed, weighed, (2 * x**3, 2 * x**2, 0.0)


@pytest.mark.parametrize("modes", ORDERS)
def test_functions_of_numbers(modes):
    f = derived(numbers, modes)
    found = [f(1.5, which) for which in range(15)]
    np.testing.assert_allclose(found, [each[len(modes) - 1] for each in of_numbers(1.5)], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("modes", ORDERS)
def test_functions_of_arrays(modes):
    f = derived(arrays, modes)
    found = [f(1.5, which) for which in range(6)]
    np.testing.assert_allclose(found, [each[len(modes) - 1] for each in of_arrays(1.5)], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("modes", ORDERS)
def test_a_solution(modes):
    """Of y³ = l·x with a constant l, which is x²."""
    f = derived(njit(lambda x, which: root(x, x)), modes)
    expected = (1.0 / 3.0, -2.0 / (9.0 * 1.5), 10.0 / (27.0 * 1.5**2))
    assert f(1.5, 0) == pytest.approx(expected[len(modes) - 1], rel=1e-12)


@pytest.mark.parametrize("modes", ORDERS)
def test_an_inactive_type(modes):
    f = derived(njit(lambda x, s: x**3 * s.rate), modes)
    assert f(1.5, Settings(2.0)) == pytest.approx((13.5, 18.0, 12.0)[len(modes) - 1])


# ------------------------------------------------------------------------------------------------ several arguments


def test_what_is_constant_at_first_and_active_next():
    """The slope with respect to x of x·g(y) calls g as it is; what was declared of g holds for the next slope."""

    @njit
    def f(x, y):
        return x * (easy(y) + level(y) * y + weighted(y * y, y))

    in_reverse = njit(lambda x, y: irad.grad(f)(x, y))
    forward = njit(lambda x, y: irad.jvp(f, (x, y), (1.0, 0.0))[1])
    y = 2.0
    for slope_of_x in (in_reverse, forward):
        expected = 20.0 * y + y**2 + 2.0 * y**3
        assert irad.grad(slope_of_x, argnums=1)(3.0, y) == expected
        assert irad.jvp(slope_of_x, (3.0, y), (0.0, 1.0))[1] == expected


@njit
def energy(a, b):
    """Of Σ aᵢ(aᵢ²)' + Σ (bᵢ)' aᵢ²bᵢ, where primes are constants."""
    return (a * squares(a)).sum() + moment(a * b**0.5, b)


def test_products_and_matrices_of_arrays():
    """From Python and from compiled code, with respect to one argument and to both."""
    a, b, v, w = (np.array(each) for each in ([1.0, 2.0, 3.0], [0.5, 1.5, 2.5], [1.0, -1.0, 0.5], [2.0, 0.3, -1.0]))
    by_a, by_b, mixed = 2.0 * b**2, 0.0 * b, 2.0 * a * b  # b·a·√b²: of the three factors one is a constant
    np.testing.assert_allclose(irad.hessian(energy)(a, b), np.diag(by_a))
    slope_of_a = irad.grad(energy)
    np.testing.assert_allclose(slope_of_a(a, b), a**2 + 2.0 * a * b**2)
    np.testing.assert_allclose(irad.pushforward(slope_of_a)(a, v, b)[1], by_a * v)
    both = njit(lambda a, b, v, w: irad.jvp(lambda a, b: irad.grad(energy, argnums=(0, 1))(a, b), (a, b), (v, w))[1])
    for found in (irad.jvp(irad.grad(energy, argnums=(0, 1)), (a, b), (v, w))[1], both(a, b, v, w)):
        np.testing.assert_allclose(found[0], by_a * v + mixed * w)
        np.testing.assert_allclose(found[1], mixed * v + by_b * w)


def test_the_arguments_of_a_function_in_place():
    """Overlapping views as active and as inactive argument, backwards, and of no elements."""

    @njit
    def f(x, n):
        a = np.full(4, x)
        scale(a[:n], a[::-1][:n])
        return a.sum()

    assert irad.grad(irad.grad(f))(1.5, 2) == pytest.approx(4.0 * 1.5)
    assert irad.grad(irad.grad(f))(1.5, 0) == 0.0


# ------------------------------------------------------------------------------------------------ what is refused


def test_an_object_as_inactive_argument_is_refused_by_name():
    @njit
    def rated(x, items):
        return x * x * items[0]

    rules.inactive_arg(rated, "items")
    f = njit(lambda x: rated(x, [x]))
    assert irad.grad(f)(3.0) == 18.0
    for outer in (irad.grad, lambda g: lambda x: irad.jvp(g, (x,), (1.0,))):
        with pytest.raises(UnsupportedError, match=r"'items' of .*rated, an inactive argument, is a list"):
            outer(irad.grad(f))(3.0)


@pytest.mark.parametrize("outer", "rf")
@pytest.mark.parametrize("inner", "rf")
def test_a_rule_for_one_mode_is_refused_in_the_other(inner, outer):
    only_forward, only_reverse = irad.custom_jvp(lambda x: x * x), irad.custom_vjp(lambda x: x * x)
    only_forward.defjvp(lambda primals, tangents: (primals[0] ** 2, 20.0 * primals[0] * tangents[0]))
    only_reverse.defvjp(lambda x: (x * x, x), lambda x, cotangent: (20.0 * x * cotangent,))
    for function, mode in ((only_forward, "f"), (only_reverse, "r")):
        f = derived(njit(lambda x, which, function=function: function(x)), inner + outer)
        # The code of the rule is differentiated in whatever mode; a rule for tangents is transposed.
        if inner == mode or mode == "f":
            assert f(1.5, 0) == 20.0
        else:
            with pytest.raises(
                NoRuleError, match=r"no rule for reverse mode|rule for reverse mode only|no rule for forward mode"
            ):
                f(1.5, 0)
