"""`irad.integrate.quad` with ``batch``: integrands that fill an array with their values at all points of a panel."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numba import njit

import irad
from irad.integrate import quad
from irad.testing.allocations import allocations

H = 1e-30
LOOSE, TIGHT = 1e9, 1e-13
W = np.array([1.5, -0.5])
GIVEN = -1.0, 2.0, 0.7, W


@njit
def pair(xs, out, p, w):
    """A wave; and a root up to p, which takes many intervals, with a constant after it."""
    for k in range(xs.size):
        out[k, 0] = w[0] * np.cos(p * xs[k])
        out[k, 1] = w[1] * np.sqrt(abs(xs[k])) if xs[k] < p else 1.0


@njit
def product(a, b, p, w, tolerance):
    value, error, count = quad(pair, a, b, (p, w), True, 0.0, tolerance, points=(p,), batch=w.size)
    return value[0] * value[1] + error, count


def closed(a, b, p, w):
    """For a < 0 < p < b."""
    root = 2.0 / 3.0 * (p**1.5 + (-a) ** 1.5)
    return w[0] * (np.sin(p * b) - np.sin(p * a)) / p * (w[1] * root + b - p)


@pytest.fixture(scope="module")
def gradient():
    return irad.value_and_grad(product, argnums=(0, 1, 2, 3), has_aux=True)


def test_by_limits_arguments_and_break_points(gradient):
    (value, _), found = gradient(*GIVEN, TIGHT)
    assert value == pytest.approx(closed(*GIVEN), rel=1e-11)
    for i, each in enumerate(found):
        for j in range(np.size(each)):
            step = 1j * H * (np.eye(2)[j] if np.ndim(each) else 1.0)
            truth = closed(*[x + step if k == i else x for k, x in enumerate(GIVEN)]).imag / H
            assert np.ravel(each)[j] == pytest.approx(truth, rel=1e-11)


def test_over_nothing_and_backwards(gradient):
    (value, _), found = gradient(0.5, 0.5, 0.7, W, TIGHT)
    assert (value, *found[:3]) == (0.0, 0.0, 0.0, 0.0)
    np.testing.assert_array_equal(found[3], [0.0, 0.0])
    (value, _), found = gradient(2.0, -1.0, 0.7, W, TIGHT)  # both factors change their sign
    forwards = gradient(*GIVEN, TIGHT)
    assert value == pytest.approx(forwards[0][0], rel=1e-11)
    np.testing.assert_allclose(np.hstack(found)[[1, 0, 2, 3, 4]], np.hstack(forwards[1]), rtol=1e-11)


def test_forward_agrees_with_reverse(gradient):
    tangents = 0.3, -0.2, 0.5, np.array([1.0, 2.0])
    value, tangent, _ = irad.jvp(product, (*GIVEN, TIGHT), (*tangents, None), has_aux=True)
    assert value == product(*GIVEN, TIGHT)[0]
    pulled = gradient(*GIVEN, TIGHT)[1]
    assert tangent == pytest.approx(sum(np.sum(a * b) for a, b in zip(pulled, tangents, strict=True)), rel=1e-11)


def test_the_error_has_no_derivative(gradient):
    """It is large here, and part of what is differentiated; the slope by a limit is that of the product without it."""
    a, b, p, w = GIVEN
    value, error, count = quad(pair, a, b, (p, w), True, 0.0, LOOSE, points=(p,), batch=(2,))
    assert (error > 1e-3, count) == (True, 42)
    expected = -w[0] * np.cos(p * a) * value[1] - w[1] * np.sqrt(abs(a)) * value[0]
    assert gradient(*GIVEN, LOOSE)[1][0] == pytest.approx(expected, rel=1e-14)


def traced(call):
    """The most memory of Python that a call holds; Numba's runtime takes its own from there."""
    tracemalloc.start()
    try:
        call()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def counted(call):
    """How many points a call took, and how many blocks Numba's runtime makes for it."""
    call()
    with allocations() as count:
        _, points = call()
        return points, count().made


def test_nothing_is_allocated_for_a_panel(gradient):
    """Two panels of 21 points allocate as much as forty, with the derivative as well."""
    calls = {tolerance: lambda t=tolerance: product(*GIVEN, t) for tolerance in (LOOSE, TIGHT)}
    derivatives = {tolerance: lambda t=tolerance: gradient(*GIVEN, t) for tolerance in (LOOSE, TIGHT)}
    few, allocated = counted(calls[LOOSE])
    many, again = counted(calls[TIGHT])
    assert few == 42
    assert many >= 840
    assert 0 < allocated == again
    (_, allocated), (_, again) = counted(derivatives[LOOSE]), counted(derivatives[TIGHT])
    assert 0 < allocated == again
    for each in (calls, derivatives):
        assert traced(each[TIGHT]) <= traced(each[LOOSE]) + 200


@njit
def decay(xs, out, rate):
    for k in range(xs.size):
        out[k] = np.exp(-rate * xs[k])


@njit
def amount(start, rate):
    return quad(decay, start, np.inf, rate, epsrel=1e-11, batch=True)[0]


def test_infinite_limits_and_second_derivatives():
    """∫ exp(-r x) from s = exp(-r s)/r"""
    s, r = 0.4, 1.3
    value = np.exp(-r * s) / r
    by_rate = irad.grad(amount, 1)
    assert amount(s, r) == pytest.approx(value, rel=1e-11)
    assert by_rate(s, r) == pytest.approx(-value * (s + 1.0 / r), rel=1e-9)
    expected = s * r * value, value * ((s + 1.0 / r) ** 2 + 1.0 / r**2)
    np.testing.assert_allclose(irad.grad(by_rate, (0, 1))(s, r), expected, rtol=1e-8)


def test_from_python():
    value, error, count = quad(decay, 0.0, 2.0, (0.7,), True, batch=True)
    assert value == pytest.approx((1.0 - np.exp(-1.4)) / 0.7, rel=1e-14)
    assert error < 1e-9
    assert count == 21
    assert quad(pair, -1.0, 2.0, (0.7, W), batch=(2,))[0].shape == (2,)


def test_a_structure_in_which_arrays_are_shared():
    """A closure made in compiled code over the arrays of a structure; the shadow that is shared gets both parts."""

    @irad.jit
    def loss(parameters, width):
        def scaled(xs, out, rates, tied):
            for k in range(xs.size):
                out[k] = rates[0] * tied[0] * xs[k] + tied[1]

        return quad(scaled, 0.0, width, (parameters["rates"], parameters["tied"]), batch=True)[0]

    w = np.array([1.2, 0.8])
    parameters = {"rates": w, "tied": w, "label": "both"}
    shadow = irad.data.make_zero(parameters)
    irad.autodiff(irad.Reverse, loss, irad.Duplicated(parameters, shadow), irad.Const(1.5))
    assert shadow["rates"] is shadow["tied"]
    np.testing.assert_allclose(shadow["tied"], [1.2 * 1.5**2, 1.5], rtol=1e-12)


@njit
def scribbles(xs, out, w):
    for k in range(xs.size):
        out[k] = w[0] * xs[k]
    w[1] = 1.0


def test_refused():
    with pytest.raises(irad.SignatureError, match="the integrand of a batch returns a float64"):
        quad(njit(lambda xs, out: 1.0), 0.0, 1.0, batch=True)
    with pytest.raises(irad.SignatureError, match="known only at run time"):
        njit(lambda flag: quad(decay, 0.0, 1.0, 1.0, batch=flag))(True)
    with pytest.raises(irad.UnsupportedError, match="writes to the extra arguments"):
        irad.grad(lambda w: quad(scribbles, 0.0, 1.0, (w,), batch=True)[0])(np.ones(2))


def test_what_is_not_filled_in_is_no_number():
    assert np.isnan(quad(njit(lambda xs, out: None), 0.0, 1.0, batch=True)[0])
