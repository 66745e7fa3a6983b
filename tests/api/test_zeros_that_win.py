"""Zero cotangents that win over an infinity: which are reported, and the option that gives NaN in their place."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from numba import njit

import irad
from irad.testing import gradcheck

AS_IN_ARITHMETIC: Final = irad.Options(zero_times_infinity="nan")
POINTS: Final = np.array([0.0, 1.0, 2.0])


def told(f: Callable[..., Any], *args: Any) -> tuple[Any, list[str]]:
    """What a call returns, and the warnings of zeros that won."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        result = f(*args)
    return result, [str(each.message) for each in caught if each.category is irad.NonFiniteWarning]


@njit
def product_of_two_roots(s):
    return 0.5 * math.sqrt(s) * math.sqrt(4.0 * s)


@njit
def product_of_norms(x):
    return 0.5 * np.linalg.norm(x) * np.linalg.norm(2.0 * x)


@njit
def product_of_deviations(x):
    return 0.5 * np.std(x) * np.std(2.0 * x)


@njit
def spread(x):
    return 0.5 * np.sqrt(np.var(x)) * np.sqrt(4.0 * np.var(x))


@njit
def products_of_two_roots(x):
    return 0.5 * (np.sqrt(x) * np.sqrt(4.0 * x)).sum()


@njit
def square_of_root_and_power(x):
    return math.sqrt(x) * x**1.5


@njit
def product_of_roots(x):
    """The third number is that of a branch that is not taken, in the same call."""
    total = 0.0
    for i in range(x.size):
        total += math.sqrt(x[i]) * math.sqrt(2.0 * x[i])
    return total + np.where(x > 0, np.log(x), 0.0).sum()


@njit
def cosine_of_root(x):
    return np.cos(np.sqrt(x)).sum()


@njit
def product_of_vectors(x):
    return np.dot(np.sqrt(x), np.sqrt(x))


SMOOTH: Final = (
    (product_of_two_roots, 0.0, [0.0]),
    (products_of_two_roots, POINTS, [0.0, 1.0, 1.0]),
    (square_of_root_and_power, 0.0, [0.0]),  # the only one of these where zero is the limit
    (cosine_of_root, POINTS[:2], [0.0, -0.5 * math.sin(1.0)]),
    (product_of_vectors, POINTS, [0.0, 1.0, 1.0]),
    (product_of_roots, POINTS, [0.0, math.sqrt(2.0) + 1.0, math.sqrt(2.0) + 0.5]),
)


@pytest.mark.parametrize(("f", "x", "expected"), SMOOTH, ids=lambda each: getattr(each, "__name__", ""))
def test_a_zero_that_is_the_slope_of_what_is_computed(f, x, expected):
    """The warning comes once, names the line and the operation, and leaves the numbers as they are."""
    derivative = irad.grad(f)
    found, messages = told(derivative, x)
    np.testing.assert_allclose(np.atleast_1d(found), expected)
    assert len(messages) == 1
    assert f"in a derivative of {f.py_func.__name__}, zero times infinity was taken as zero: " in messages[0]
    assert f"{__file__}:" in messages[0]
    assert "= inf, in the derivative of" in messages[0]
    assert told(derivative, x)[1] == []
    assert np.isnan(irad.grad(f, options=AS_IN_ARITHMETIC)(x)).any()


@njit
def chosen(x):
    return np.where(x > 0, x * np.log(x), 0.0).sum() + (x * x).sum()


@njit(error_model="numpy")
def branched(x):
    total = 0.0
    for i in range(x.size):
        if x[i] > 0:
            total += x[i] * np.log(x[i])
    return total


@njit
def masked(x):
    return ((x > 0) * np.sqrt(x)).sum()


@njit
def weighted(x):
    return (np.array([0.0, 1.0, 2.0]) * np.sqrt(x)).sum()


@njit
def sliced(x):
    return np.sqrt(x)[1:].sum() + x.sum()


@njit
def clipped(x):
    return np.minimum(1.0, np.maximum(0.0, np.sqrt(x) - 0.5)).sum()


@njit(error_model="numpy")
def distances(x):
    total = 0.0
    for i in range(x.size):
        for j in range(x.size):
            r = math.sqrt((x[i] - x[j]) ** 2)
            total += r * r
    return total


@njit(error_model="numpy")
def reciprocal_distances(x):
    total = 0.0
    for i in range(x.size):
        for j in range(x.size):
            r = math.sqrt((x[i] - x[j]) ** 2)
            total += 1 / r if r > 0 else 0.0
    return total


HARMLESS: Final = (
    (chosen, [0.0, 3.0, 5.0 + math.log(2.0)]),
    (branched, [0.0, 1.0, 1.0 + math.log(2.0)]),
    (masked, [0.0, 0.5, 0.5 / math.sqrt(2.0)]),
    (weighted, [0.0, 0.5, 1.0 / math.sqrt(2.0)]),
    (sliced, [1.0, 1.5, 1.0 + 0.5 / math.sqrt(2.0)]),
    (clipped, [0.0, 0.5, 0.5 / math.sqrt(2.0)]),
    (distances, [-12.0, 0.0, 12.0]),
    (reciprocal_distances, [2.5, 0.0, -2.5]),
)


@pytest.mark.parametrize(("f", "expected"), HARMLESS, ids=lambda each: getattr(each, "__name__", ""))
def test_what_does_not_contribute_is_not_told(f, expected):
    """Branches not taken, masks, constant weights; and roots whose argument has slope zero, where zero is right."""
    found, messages = told(irad.grad(f), POINTS)
    np.testing.assert_allclose(found, expected, atol=1e-15)
    assert messages == []


def test_into_an_array():
    """The run that looks for such zeros leaves nothing in it."""
    out = np.full(3, 7.0)
    value, messages = told(irad.value_and_grad_into(products_of_two_roots), out, POINTS)
    assert value == pytest.approx(3.0)
    np.testing.assert_allclose(out, [0.0, 1.0, 1.0])
    assert len(messages) == 1


@njit
def with_a_gap(x):
    return (np.sqrt(x) * np.sqrt(2.0 * x)).sum() + x[1] * x[2]


def test_elements_that_stay_nan_hide_no_others():
    """What is NaN of itself is not told; a zero that won beside it is."""
    _, messages = told(irad.grad(with_a_gap), np.array([1.0, np.nan, 1.0]))
    assert messages == []
    found, messages = told(irad.grad(with_a_gap), np.array([0.0, np.nan, 1.0]))
    assert found[0] == 0.0
    assert len(messages) == 1
    assert "0.5 / 0.0 = inf, in the derivative of sqrt" in messages[0]


def test_later_calls_are_looked_at():
    """The first NaN was that of a branch that is not taken; of later calls the 1st, the 2nd, the 4th are looked at."""
    derivative = irad.grad(product_of_roots_or_root)
    assert told(derivative, np.array([-1.0, 1.0]))[1] == []
    assert told(derivative, np.array([2.0, 1.0]))[1] == []
    assert len(told(derivative, np.array([2.0, 0.0]))[1]) == 1
    assert told(derivative, np.array([2.0, 0.0]))[1] == []


@njit
def product_of_roots_or_root(x):
    return np.sqrt(x[1]) * np.sqrt(2.0 * x[1]) + np.where(x[0] > 0, np.sqrt(x[0]), 0.0)


# ------------------------------------------------------------------------------------------------ other derivatives


@njit
def cosines_of_roots(x):
    return np.cos(np.sqrt(x))


DIRECTION: Final = np.array([1.0, 2.0, 3.0])
FLAT: Final = np.ones(3)


def _calls(n: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Derivatives of another kind than `grad`, and what they take besides the point."""
    rows, product = np.full((n, n), np.nan), np.full(n, np.nan)
    return {
        "hvp": (irad.hvp, ()),
        "hvp_and_grad": (irad.hvp_and_grad, ()),
        "hessian": (irad.hessian, ()),
        "hessian_into": (irad.hessian_into, (rows,)),
        "hvp_into": (irad.hvp_into, (product,)),
        "hvp_and_grad_into": (irad.hvp_and_grad_into, ((product, np.full(n, np.nan)),)),
    }


@pytest.mark.parametrize("kind", _calls(3))
@pytest.mark.parametrize("options", [irad.Options(), irad.Options(debug=True)], ids=["", "debug"])
def test_second_derivatives(kind, options):
    """All that Python calls tell, in debug mode and outside it; and the numbers are right where nothing is hidden."""
    make, leading = _calls(3)[kind]
    derivative = make(product_of_deviations if options.debug else product_of_norms, options=options)
    more = (DIRECTION,) if kind.startswith("hvp") else ()
    at = FLAT if options.debug else np.zeros(3)

    away, messages = told(derivative, *leading, DIRECTION[::-1].copy(), *more)
    assert messages == []
    if not options.debug:
        expected = 2.0 * (DIRECTION if more else np.eye(3))
        np.testing.assert_allclose(_first(leading[0] if leading else away), expected, atol=1e-14)
    found, messages = told(derivative, *leading, at, *more)
    np.testing.assert_array_equal(_first(leading[0] if leading else found), 0.0)
    assert len(messages) == 1
    assert f"{__file__}:" in messages[0]
    assert told(derivative, *leading, at, *more)[1] == []


def _first(found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


@pytest.mark.parametrize("f", [cosines_of_roots, products_of_two_roots], ids=["columns", "rows"])
@pytest.mark.parametrize("make", [irad.jacobian, irad.value_and_jacobian], ids=["", "value"])
def test_jacobians(f, make):
    derivative = make(f)
    assert told(derivative, DIRECTION)[1] == []
    found, messages = told(derivative, POINTS)
    found = _first(found[::-1]) if isinstance(found, tuple) else found
    assert np.isfinite(found).all()
    assert len(messages) == 1
    assert "0.5 / 0.0 = inf, in the derivative of sqrt" in messages[0]


def test_pushforwards():
    """Where an infinite tangent meets a slope of zero; what is NaN is seen anyway."""
    push = irad.pushforward(cosines_of_roots)
    (_, tangent), messages = told(push, POINTS, DIRECTION)
    assert tangent[0] == 0.0
    assert len(messages) == 1
    (_, tangent), messages = told(irad.pushforward(products_of_two_roots), POINTS, DIRECTION)
    assert np.isnan(tangent)
    assert messages == []


def test_nothing_is_run_twice_that_has_effects(capfd):
    @njit
    def printing(x):
        print("once")
        return np.cos(np.sqrt(x)).sum()

    irad.pushforward(printing)(POINTS, DIRECTION)
    irad.jacobian(printing)(POINTS)
    irad.hvp(printing)(DIRECTION, POINTS)
    assert capfd.readouterr().out == "once\n" * 3


@njit
def relu_network(x):
    hidden = np.maximum(x - 1.0, 0.0)
    return np.sqrt(hidden.sum() + 1.0) + (hidden * hidden).sum()


@njit
def guarded_root(x):
    return np.where(x > 0, np.sqrt(x) * x, 0.0).sum() + (x * x).sum()


@njit
def padded_logarithm(x):
    padded = np.zeros(5)
    padded[:3] = x + 1.0
    return np.where(padded > 0, np.log(padded), 0.0).sum() * x.sum()


@njit
def entropy(x):
    total = 0.0
    for i in range(x.size):
        if x[i] > 0:
            total -= x[i] * math.log(x[i])
    return total


@njit
def soft_absolute(x):
    return np.sqrt(x * x + 1e-6).sum()


ORDINARY: Final = (relu_network, guarded_root, padded_logarithm, entropy, soft_absolute, chosen, branched, clipped)


@pytest.mark.parametrize("f", ORDINARY, ids=lambda f: f.py_func.__name__)
def test_ordinary_programs_are_not_told_of(f):
    """At a point with a zero, in first and second order."""
    for derivative, args in ((irad.grad(f), ()), (irad.jacobian(f), ()), (irad.hvp(f), (DIRECTION,))):
        found, messages = told(derivative, POINTS, *args)
        assert np.isfinite(found).all()
        assert messages == []


def test_the_warning_can_be_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", irad.NonFiniteWarning)
        with pytest.raises(irad.NonFiniteWarning, match="zero times infinity"):
            irad.grad(njit(lambda s: math.sqrt(s) * math.sqrt(2.0 * s)))(0.0)


@pytest.mark.parametrize(
    ("f", "x"), [(product_of_two_roots, 0.0), (product_of_norms, np.zeros(2)), (spread, np.ones(3))]
)
def test_nan_in_place_of_zeros(f, x):
    """In both orders and modes; far from the point nothing changes."""
    away = x + 0.7 * np.arange(1.0, 1.0 + np.size(x)) if np.ndim(x) else 0.7
    for derivative in (irad.grad, irad.hessian):
        assert np.isnan(derivative(f, options=AS_IN_ARITHMETIC)(x)).all()
        np.testing.assert_array_equal(derivative(f, options=AS_IN_ARITHMETIC)(away), derivative(f)(away))
    direction = np.ones_like(x) if np.ndim(x) else 1.0
    assert np.isnan(irad.jvp(f, (x,), (direction,), options=AS_IN_ARITHMETIC)[1])


def test_nan_for_branches_that_are_not_taken():
    """As arithmetic has it, and JAX and PyTorch."""
    found = irad.grad(chosen, options=AS_IN_ARITHMETIC)(POINTS)
    assert np.isnan(found[0])
    np.testing.assert_allclose(found[1:], [3.0, 5.0 + math.log(2.0)])


# ------------------------------------------------------------------------------------------------ debug mode, checks

DEBUG: Final = irad.Options(debug=True)


@njit
def penalty(x):
    return np.where(x > 0, np.log(x), 0.0).sum() + (x**3).sum()


def test_debug_mode_tells_of_gradients():
    found, messages = told(irad.grad(product_of_two_roots, options=DEBUG), 0.0)
    assert found == 0.0
    assert len(messages) == 1
    assert "0.5 / 0.0 = inf, in the derivative of sqrt" in messages[0]
    assert told(irad.grad(chosen, options=DEBUG), POINTS)[1] == []
    assert told(irad.grad(product_of_deviations, options=DEBUG), np.ones(3))[1] == []  # zero is right


@pytest.mark.parametrize(("f", "x"), [(product_of_norms, np.zeros(2)), (spread, np.ones(3))])
def test_debug_mode_tells_of_second_derivatives(f, x):
    """The zeros of the gradient are right there, and their slopes are lost."""
    for derivative, args in ((irad.hessian, (x,)), (irad.hvp, (x, np.arange(1.0, 1.0 + x.size)))):
        made = derivative(f, options=DEBUG)
        found, messages = told(made, *args)
        assert not found.any()
        assert len(messages) == 1
        assert f"in a derivative of {f.py_func.__name__}, zero times infinity was taken as zero" in messages[0]
        assert told(made, *args)[1] == []


def test_debug_mode_tells_of_no_second_derivative_that_is_right():
    found, messages = told(irad.hessian(penalty, options=DEBUG), POINTS)
    np.testing.assert_allclose(found, np.diag([0.0, 5.0, 11.75]))
    assert messages == []
    assert told(irad.hessian(product_of_norms, options=DEBUG), np.ones(2))[1] == []


def test_debug_mode_does_not_repeat_what_changes_something():
    @njit
    def counted(x, calls):
        calls[0] += 1
        return np.cos(np.sqrt(x)).sum()

    calls = np.zeros(1, np.int64)
    assert told(irad.grad(counted, options=DEBUG), POINTS, calls)[1] == []
    assert calls[0] == 1


def test_a_wrong_gradient_has_its_reason_in_the_report():
    report = gradcheck(products_of_two_roots, np.array([0.0, 1.0]), raises=False)
    assert report.verdict.value == "wrong"
    assert report.hidden_zero.startswith("zero times infinity was taken as zero: 0.5 / 0.0 = inf")
    assert f"at {__file__}:" in report.hidden_zero
    assert report.hidden_zero in report.remarks()
    assert "zero times infinity" in gradcheck(irad.grad(spread), np.ones(3), raises=False).hidden_zero
    assert gradcheck(products_of_two_roots, np.array([0.5, 1.0])).hidden_zero == ""
