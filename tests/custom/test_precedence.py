"""Several declarations for one function: which hold for a call, which are refused; every kind of call finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import cfunc, float32, float64, njit, types, vectorize

import irad
from irad import rules
from irad.errors import ActivityError, RuleError, SignatureError
from irad.frontend.values import layouts


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    from irad.frontend.custom import catalogue

    before, inactive = {rule.target for rule in catalogue.rules()}, set(layouts.INACTIVE_TYPES)
    yield
    layouts.INACTIVE_TYPES.clear()
    layouts.INACTIVE_TYPES.update(inactive)
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


def square(factor: float = 1.0) -> Any:
    """A function of its own, so that declarations of one test are none of another's."""

    @njit
    def f(x):
        return factor * x * x

    return f


# ------------------------------------------------------------------------------------------------ combined, or refused


def test_a_rule_and_no_derivative_are_refused_together():
    f = square()
    rules.inactive(f)
    with pytest.raises(RuleError, match="f has a rule and is declared inactive"):
        rules.easy_rule(f, 100.0)
    assert irad.grad(f)(2.0) == 0.0
    rules.remove(f)
    rules.easy_rule(f, 100.0)
    with pytest.raises(RuleError, match="f has a rule and is declared inactive"):
        rules.inactive(f)
    assert irad.grad(f)(2.0) == 100.0


def test_a_rule_is_given_inactive_arguments_as_constant():
    @njit
    def product(x, y):
        return x * y

    rules.easy_rule(product, lambda x, y: 10.0 * y, lambda x, y: 10.0 * x)
    rules.inactive_arg(product, "y")
    assert irad.grad(product, argnums=(0, 1))(2.0, 3.0) == (30.0, 0.0)


def test_arguments_are_inactive_whatever_level_has_the_rule():
    def product(x, y):
        return x * y

    compiled = njit(product)
    rules.inactive_arg(product, 1)
    rules.easy_rule(compiled, lambda x, y: 10.0 * y, lambda x, y: 10.0 * x)
    assert irad.grad(compiled, argnums=(0, 1))(2.0, 3.0) == (30.0, 0.0)


def test_a_rule_for_the_python_function_wins():
    f = square()
    rules.inactive(f)
    rules.easy_rule(f.py_func, 100.0)
    assert irad.grad(f)(2.0) == 100.0
    rules.remove(f.py_func)
    assert irad.grad(f)(2.0) == 0.0


def test_a_part_in_the_place_of_an_easy_rule_replaces_both():
    f = square()
    rules.easy_rule(f, 100.0)
    rules.reverse(f)(lambda config, cotangent, tape, x: (cotangent,))
    with pytest.raises(RuleError, match="has no augmented_primal"):
        irad.grad(f)(2.0)


# ------------------------------------------------------------------------------------------------ signatures


def test_the_most_specific_rule_is_taken():
    f = square()
    rules.easy_rule(f, 1.0)
    rules.easy_rule(f, 2.0, signature=(types.Float,))
    rules.easy_rule(f, 3.0, signature="float32(float32)")
    assert irad.grad(f)(2.0) == 2.0
    assert irad.grad(f)(np.float32(2.0)) == 3.0
    assert irad.grad(lambda x: f(x + 0j).real)(2.0) == 1.0


def test_a_signature_left_to_irad():
    f = square()
    rules.easy_rule(f, 100.0)
    rules.opt_out(f, (float32,))
    assert irad.grad(f)(2.0) == 100.0
    assert irad.grad(f)(np.float32(2.0)) == 4.0
    assert rules.has_rule(f)
    assert rules.has_rule(f, "(float64,)")
    assert not rules.has_rule(f, (float32,))
    rules.remove(f, (float32,))
    assert irad.grad(f)(np.float32(2.0)) == 100.0


def test_no_derivative_for_a_signature():
    f = square()
    rules.inactive(f, signature=(float32,))
    assert irad.grad(f)(np.float32(2.0)) == 0.0
    assert irad.grad(f)(2.0) == 4.0
    assert not rules.has_rule(f)


def test_arrays_of_any_layout():
    @njit
    def total(a):
        return a.sum()

    rules.easy_rule(total, lambda a: np.full(a.shape, 7.0), signature="(float64[:],)")
    np.testing.assert_array_equal(irad.grad(total)(np.ones(4)), 7.0)
    np.testing.assert_array_equal(irad.grad(total)(np.ones(4)[::2]), 7.0)
    np.testing.assert_array_equal(irad.grad(total)(np.ones((2, 2))), 1.0)


def test_signatures_that_leave_open_which_is_meant():
    @njit
    def product(x, y):
        return x * y

    rules.easy_rule(product, 1.0, 1.0, signature=(float64, None))
    with pytest.raises(RuleError, match="neither is more specific"):
        rules.easy_rule(product, 2.0, 2.0, signature=(None, float64))
    rules.easy_rule(product, 3.0, 3.0, signature=(float64, float64))
    rules.easy_rule(product, 4.0, 4.0, signature=(None, float64))
    assert irad.grad(product)(1.0, 1.0) == 3.0
    assert irad.grad(product, argnums=1)(1, 1.0) == 4.0
    rules.remove(product, (float64, float64))
    with pytest.raises(RuleError, match="neither is more specific"):
        irad.grad(product)(1.0, 1.0)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ((float64,), "takes 2 arguments; the signature .* has 1"),
        ("no such thing", "is not a signature"),
        ((3, None), "is not a signature"),
        (("none such", None), "is not a signature"),
    ],
)
def test_what_is_not_a_signature(signature, message):
    @njit
    def product(x, y):
        return x * y

    with pytest.raises(RuleError, match=message):
        rules.easy_rule(product, 1.0, 1.0, signature=signature)


def test_what_has_no_signature_or_is_not_one_of_a_call():
    with pytest.raises(RuleError, match="C function, is limited"):
        rules.inactive("erf", signature=(float64,))  # type: ignore[type-var]
    with pytest.raises(RuleError, match="not the signature of a call"):
        rules.has_rule(square(), (types.Float,))


def test_what_is_promised_to_be_new_overlaps_no_argument():
    @njit
    def either(a, is_same):
        return a if is_same else a.copy()

    @rules.augmented_primal(either)
    def augmented(config, a, is_same):
        return rules.AugmentedReturn(a.value.copy(), np.zeros_like(a.value), None)

    @rules.reverse(either)
    def reverse(config, cotangent, tape, a, is_same):
        a.shadow[:] += 100.0 * cotangent if config.overwritten[0] else cotangent

    @njit
    def f(a, is_same):
        b = either(a, is_same)
        b[0] *= 2.0
        return b.sum()

    np.testing.assert_array_equal(irad.grad(f)(np.ones(2), False), [200.0, 100.0])
    rules.noalias(either)
    np.testing.assert_array_equal(irad.grad(f)(np.ones(2), False), [2.0, 1.0])


# ------------------------------------------------------------------------------------------------ every kind of call


@pytest.mark.parametrize("declare", [lambda f: rules.easy_rule(f, 100.0), rules.inactive], ids=["rule", "inactive"])
def test_a_function_value_has_its_rule(declare):
    @njit(float64(float64))
    def first(x):
        return x * x

    @njit(float64(float64))
    def second(x):
        return 3.0 * x

    functions = (first, second)

    @njit
    def chosen(x, i):
        return functions[i](x)

    @njit
    def picked(x, i):
        function = second if i else first
        return function(x)

    @njit(float64(types.FunctionType(float64(float64)), float64))
    def given(function, x):
        return function(x)

    assert irad.grad(chosen)(2.0, 0) == irad.grad(picked)(2.0, 0) == 4.0
    declare(first)
    wanted = irad.grad(first)(2.0)
    assert wanted in (0.0, 100.0)
    assert irad.grad(chosen)(2.0, 0) == irad.grad(given, argnums=1)(first, 2.0) == wanted
    assert irad.grad(picked)(2.0, 0) == wanted
    assert irad.grad(chosen)(2.0, 1) == irad.grad(given, argnums=1)(second, 2.0) == irad.grad(picked)(2.0, 1) == 3.0


def test_a_function_behind_a_pointer_of_c_has_its_rule():
    def squared(x):
        return x * x

    pointed = cfunc(float64(float64))(squared)

    @njit(float64(types.FunctionType(float64(float64)), float64))
    def given(function, x):
        return function(x)

    rules.easy_rule(squared, 100.0)
    assert irad.grad(given, argnums=1)(pointed, 2.0) == 100.0


def test_the_loop_of_a_ufunc_finds_the_rule_of_its_function():
    def squared(x):
        return x * x

    ufunc = vectorize([float64(float64)])(squared)

    @njit
    def total(a):
        return ufunc(a).sum()

    rules.easy_rule(squared, 100.0)
    np.testing.assert_array_equal(irad.grad(total)(np.ones(2)), 100.0)


def test_recursive_calls_find_what_is_declared():
    @njit
    def scaled(n, x, w):
        if n == 0:
            return x * w
        return scaled(n - 1, x, x * w)

    @njit
    def f(x):
        return scaled(2, x, 3.0)

    assert irad.grad(f)(2.0) == 36.0
    rules.inactive_arg(scaled, "w")
    assert irad.grad(f)(2.0) == 12.0


# ------------------------------------------------------------------------------------------------ no derivative


@pytest.mark.parametrize("declare", [rules.inactive, lambda f: rules.inactive_arg(f, "out")], ids=["all", "argument"])
def test_overwriting_what_has_a_derivative_is_refused(declare):
    @njit
    def reset(out, x):
        out[0] = 3.0
        return x

    declare(reset)

    @njit
    def f(x):
        out = np.empty(1)
        out[0] = x
        return reset(out, x) + out[0]

    with pytest.raises(ActivityError, match=r"reset, .* declared inactive, writes to memory, which has a derivative"):
        irad.grad(f)(2.0)


def test_arrays_of_an_inactive_dtype_have_no_derivative():
    dtype = np.dtype([("weight", np.float64), ("count", np.int64)])

    @njit
    def f(a, x):
        total = 0.0
        for i in range(a.size):
            total += a[i].weight * x * x
        return total

    a = np.ones(3, dtype)
    rules.inactive_type(dtype)
    assert irad.grad(f, argnums=1)(a, 2.0) == 12.0
    assert irad.vjp(f, a, 2.0)[1](1.0) == (None, 12.0)
    with pytest.raises(SignatureError, match="which has no derivative") as caught:
        irad.grad(f)(a, 2.0)
    assert "was declared inactive with irad.rules.inactive_type" in str(caught.value)
