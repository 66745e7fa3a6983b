"""`irad.integrate.quad`: values against SciPy, derivatives against closed forms and complex steps, second order."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from numba import njit

import irad
from irad.integrate import quad


@njit
def integrand(x, kind, p, weights):
    """Several integrands in one function, which is compiled once."""
    if kind == 0:
        return np.exp(-p * x * x) * weights[0]
    if kind == 1:
        return weights[1] * p / (1.0 + x * x)
    if kind == 2:
        return weights[0] if x < p else weights[1] * x
    if kind == 3:
        return np.sqrt(abs(x - p)) * weights[1]
    return np.cos(p * x) + weights[0] * x


@njit
def integral(a, b, kind, p, weights, points):
    return quad(integrand, a, b, (kind, p, weights), points=points)[0]


WEIGHTS = np.array([1.5, -0.5])
NONE = np.zeros(0)
RANGES = [
    (0, -np.inf, np.inf),
    (0, 0.3, np.inf),
    (0, np.inf, 0.3),
    (1, -np.inf, 1.0),
    (1, 1.0, -np.inf),
    (3, -1.0, 2.0),
    (4, 2.0, -1.0),
    (4, 0.5, 0.5),
]


@pytest.mark.parametrize(("kind", "a", "b"), RANGES)
def test_values_are_those_of_scipy(kind, a, b):
    arguments = (kind, 0.7, WEIGHTS)
    value, error, count = quad(integrand, a, b, arguments, full_output=True)
    expected, _ = scipy.integrate.quad(integrand.py_func, a, b, arguments, epsabs=1e-12, epsrel=1e-12)
    assert abs(value - expected) <= max(error, 1e-13)
    assert error <= 1.5e-8 * max(1.0, abs(value))
    assert count % 21 == 0


gradient = irad.grad(integral, argnums=(0, 1, 3, 4))


def expected_gradient(a, b, p, w):
    """Of kind 4, whose antiderivative is sin(p x)/p + w[0] x²/2."""

    def whole(a, b, p, w0):
        return (np.sin(p * b) - np.sin(p * a)) / p + w0 * (b * b - a * a) / 2.0

    h = 1e-30j
    return (
        whole(a + h, b, p, w[0]).imag / 1e-30,
        whole(a, b + h, p, w[0]).imag / 1e-30,
        whole(a, b, p + h, w[0]).imag / 1e-30,
        [whole(a, b, p, w[0] + h).imag / 1e-30, 0.0],
    )


@pytest.mark.parametrize(("a", "b"), [(-1.0, 2.0), (2.0, -1.0), (0.5, 0.5)])
def test_gradient_by_limits_and_arguments(a, b):
    found = gradient(a, b, 4, 0.7, WEIGHTS, NONE)
    for one, other in zip(found, expected_gradient(a, b, 0.7, WEIGHTS), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_infinite_limits_have_no_derivative():
    by_a, by_b, by_p, by_weights = gradient(-np.inf, np.inf, 0, 0.7, WEIGHTS, NONE)
    assert (by_a, by_b) == (0.0, 0.0)
    whole = np.sqrt(np.pi / 0.7)
    assert by_p == pytest.approx(-0.5 * WEIGHTS[0] * whole / 0.7, rel=1e-9)
    np.testing.assert_allclose(by_weights, [whole, 0.0], rtol=1e-9)


@njit
def with_moving_jump(p):
    return quad(integrand, 0.0, 2.0, (2, p, np.array([1.5, -0.5])), points=(p,))[0]


def test_a_break_point_that_moves_with_a_jump():
    """∫ = 1.5 p - 0.25 (4 - p²)"""
    for p in (0.6, 1.9):
        assert with_moving_jump(p) == pytest.approx(1.5 * p - 0.25 * (4.0 - p * p), rel=1e-12)
        assert irad.grad(with_moving_jump)(p) == pytest.approx(1.5 + 0.5 * p, rel=1e-12)
    assert irad.jvp(with_moving_jump, (0.6,), (2.0,))[1] == pytest.approx(2.0 * 1.8, rel=1e-12)
    assert irad.grad(with_moving_jump)(5.0) == 0.0  # beyond the range


def test_forward_agrees_with_reverse():
    tangents = 0.3, -0.2, 0.5, np.array([1.0, 2.0])
    arguments = -1.0, 2.0, 4, 0.7, WEIGHTS, NONE
    value, tangent = irad.jvp(integral, arguments, (*tangents[:2], None, *tangents[2:], None))
    assert value == integral(*arguments)
    pulled = gradient(*arguments)
    assert tangent == pytest.approx(sum(np.sum(a * b) for a, b in zip(pulled, tangents, strict=True)), rel=1e-9)


def test_a_small_cotangent_is_as_precise():
    """Tolerances are relative to it: 1e-12 of a gradient is not an error that is small enough."""
    small = irad.grad(lambda p: 1e-12 * integral(-1.0, 2.0, 4, p, WEIGHTS, NONE))
    assert small(0.7) == pytest.approx(1e-12 * expected_gradient(-1.0, 2.0, 0.7, WEIGHTS)[2], rel=1e-9)


@njit
def fan_of(x, arrays, p):
    return np.array([np.sin(arrays[0][0] * x) * p, arrays[1][1] * x * x]), p * x * 1j


@njit
def vector_loss_of(rates, tied, p):
    (vector, number), error = quad(fan_of, 0.0, p, ((rates, tied), p))
    return vector[0] * vector[1] + number.imag + 0.0 * error


def closed(rates, tied, p):
    return p * (1.0 - np.cos(rates[0] * p)) / rates[0] * tied[1] * p**3 / 3.0 + p**3 / 2.0


def test_tuples_of_arrays_over_a_structure_that_shares():
    """The same array in two places of a structure: a shadow that shares gets the sum of both."""

    @irad.jit
    def loss(parameters, p):
        return vector_loss_of(parameters["rates"], parameters["tied"], p)

    w = np.array([1.2, 0.8])
    parameters = {"rates": w, "tied": w}
    shadow = irad.data.make_zero(parameters)
    irad.autodiff(irad.Reverse, loss, irad.Duplicated(parameters, shadow), irad.Const(1.5))
    steps = [np.where(np.arange(2) == i, 1e-30j, 0.0) for i in range(2)]
    np.testing.assert_allclose(shadow["rates"], [closed(w + h, w + h, 1.5).imag / 1e-30 for h in steps], rtol=1e-9)
    assert irad.grad(loss, argnums=1)(parameters, 1.5) == pytest.approx(closed(w, w, 1.5 + 1e-30j).imag / 1e-30)


def test_arguments_that_change_afterwards():
    @njit
    def loss(w):
        value = quad(integrand, -1.0, 2.0, (4, 0.7, w))[0]
        w[0] = 100.0
        return value * value

    w = WEIGHTS.copy()
    value = integral(-1.0, 2.0, 4, 0.7, WEIGHTS, NONE)
    np.testing.assert_allclose(irad.grad(loss)(w), [2.0 * value * 1.5, 0.0], rtol=1e-9)


def test_second_order():
    """d²/dp² ∫ cos(p x) = -∫ x² cos(p x)"""

    @njit
    def of_p(p):
        return quad(integrand, 0.0, 1.0, (4, p, np.array([0.0, 0.0])))[0]

    expected = -scipy.integrate.quad(lambda x: x * x * np.cos(0.7 * x), 0.0, 1.0)[0]
    assert irad.grad(irad.grad(of_p))(0.7) == pytest.approx(expected, rel=1e-8)


@njit
def scribbles(x, w):
    w[0] = x
    return x * w[1]


def test_an_integrand_that_writes_is_refused():
    with pytest.raises(irad.UnsupportedError, match="writes to the extra arguments"):
        irad.grad(lambda w: quad(scribbles, 0.0, 1.0, (w,))[0])(np.ones(2))


def test_an_integrand_of_text_is_refused():
    with pytest.raises(irad.IradError, match="an integrand returns"):
        quad(njit(lambda x: "text"), 0.0, 1.0)


SINGULAR = [  # where an end is not at zero, the distance from it has few digits
    (0.0, 1.0, (0.9, 0.5, 0.3, 0.2, 0.1)),
    (0.0, 1.0, (0.9, 0.5, 0.3, 0.2)),
    (1.0, np.inf, (0.9, 0.5, 0.3, 0.2)),
    (0.0, np.inf, (0.4, 0.3, 0.2)),
]


@njit
def singular(x, kind, p):
    if kind == 0:
        return x ** (p - 1.0) * np.exp(-x)
    if kind == 1:
        return (1.0 - x) ** (p - 1.0)
    if kind == 2:
        return x ** (-1.0 - p)
    return x ** (p - 1.0) / (1.0 + x)


@njit
def masses(shapes, kind, a, b):
    found = np.empty(shapes.size)
    for i in range(shapes.size):
        found[i] = quad(singular, a, b, (kind, shapes[i]), limit=60)[0]
    return found


def mass_of(kind, p):
    """Closed forms and series of the same integrals, by mpmath."""
    mpmath = pytest.importorskip("mpmath")
    if kind == 0:
        return mpmath.gammainc(p, 0, 1)
    return (1 / p, 1 / p, mpmath.pi / mpmath.sin(mpmath.pi * p))[kind - 1]


def test_singular_ends():
    """All are sums of powers of the distance, times logarithms in the derivative: both by one compilation."""
    mpmath = pytest.importorskip("mpmath")
    for kind, (a, b, shapes) in enumerate(SINGULAR):
        arguments = np.array(shapes), kind, a, b
        values, slopes = irad.jvp(masses, arguments, (np.ones(len(shapes)), None, None, None))
        expected = [float(mass_of(kind, mpmath.mpf(p))) for p in shapes]
        np.testing.assert_allclose(values, expected, rtol=1e-9)
        expected = [float(mpmath.diff(lambda p, kind=kind: mass_of(kind, p), p)) for p in shapes]
        np.testing.assert_allclose(slopes, expected, rtol=1e-8)


@pytest.mark.slow
def test_singular_ends_in_reverse():
    weighted = irad.grad(lambda shapes, weights, kind, a, b: np.dot(weights, masses(shapes, kind, a, b)))
    for kind, (a, b, shapes) in enumerate(SINGULAR):
        tangents, weights = np.linspace(0.5, 1.5, len(shapes)), np.linspace(2.0, -1.0, len(shapes))
        slopes = irad.jvp(masses, (np.array(shapes), kind, a, b), (tangents, None, None, None))[1]
        found = weighted(np.array(shapes), weights, kind, a, b)
        assert np.dot(found, tangents) == pytest.approx(np.dot(weights, slopes), rel=1e-7)


@pytest.mark.slow
def test_second_derivatives_at_singular_ends():
    """d²/dp² ∫ (1 - x)^(p-1) = 2/p³"""
    second = irad.jvp(irad.grad(lambda p: quad(singular, 0.0, 1.0, (1, p), limit=60)[0]), (0.5,), (1.0,))[1]
    assert second == pytest.approx(16.0, rel=1e-6)


def test_smooth_integrands_are_called_as_often_as_without_extrapolation():
    """The counts are those of halving the interval with the largest error."""
    for kind, a, b, points in (
        (4, -1.0, 2.0, 21),
        (4, 0.0, 200.0, 315),
        (0, -np.inf, np.inf, 315),
        (1, 1.0, -np.inf, 105),
    ):
        assert quad(integrand, a, b, (kind, 0.7, WEIGHTS), full_output=True)[2] == points


@njit
def of_pole(p):
    return quad(singular, 0.0, 1.0, (2, p))[0]


def test_what_is_not_precise_enough_is_told():
    with pytest.warns(irad.IntegrationWarning, match="less precise") as warned:
        quad(singular, 0.0, 1.0, (2, 0.5))
    assert warned[0].filename == __file__
    with pytest.raises(ValueError, match="an integral is less precise"):
        of_pole(0.5)  # diverges
    with pytest.raises(ValueError, match="an integral is less precise"):
        irad.grad(of_pole)(0.5)
    value, error, _ = quad(singular, 0.0, 1.0, (2, 0.5), full_output=True)
    assert error > 1e-8 * abs(value)


@njit
def nearly_flat(p):
    """The integrand is 1 at p = 0; its derivative, 1 / x, has no integral."""
    return quad(with_pole_in_its_slope, 0.0, 1.0, (p,))[0]


@njit
def with_pole_in_its_slope(x, p):
    return 1.0 + p / x


def test_a_derivative_that_is_not_precise_enough_is_told():
    assert nearly_flat(0.0) == pytest.approx(1.0)
    for derivative in (irad.grad(nearly_flat), lambda p: irad.jvp(nearly_flat, (p,), (1.0,))):
        with pytest.raises(ValueError, match="derivative of an integral is less precise"):
            derivative(0.0)


def test_the_limit_is_kept_and_the_error_tells():
    value, error, count = quad(
        integrand, 0.0, 1.0, (3, 0.3, WEIGHTS), limit=3, epsabs=0.0, epsrel=1e-15, full_output=True
    )
    assert count == 21 * 5
    assert error > 1e-15
    assert abs(value - WEIGHTS[1] * (0.3**1.5 + 0.7**1.5) / 1.5) < error


@njit
def broken(x, kind, p):
    if kind == 0:
        return np.log(abs(x - p))
    if kind == 1:
        return np.sqrt(abs(x - p))
    return abs(x - p) ** -0.2


def whole(kind, p):
    if kind == 0:
        return p * np.log(p) + (1.0 - p) * np.log(1.0 - p) - 1.0
    power = (0.5, -0.2)[kind - 1] + 1.0
    return (p**power + (1.0 - p) ** power) / power


@pytest.mark.parametrize("kind", range(3))
def test_the_error_of_singularities_within_the_range(kind):
    """Both sums of a panel may agree by chance: one in ten was a hundred times as far off as the estimate said."""
    found = [
        (p, *quad(broken, 0.0, 1.0, (kind, p), full_output=True)) for p in np.random.default_rng(5).uniform(0, 1, 60)
    ]
    assert all(abs(value - whole(kind, p)) <= 4.0 * max(error, 1e-15) for p, value, error, _ in found)
    assert sum(abs(value - whole(kind, p)) <= error for p, value, error, _ in found) >= 54


@njit
def peak(x, scale):
    return scale / (1e-4 + (x - 0.3) ** 2)


def test_small_integrals_to_a_relative_tolerance():
    expected = 100.0 * (np.arctan(70.0) + np.arctan(30.0))
    for scale in (1e-12, 1e-30, 1e30):
        value, error = quad(peak, 0.0, 1.0, (scale,), epsabs=0.0)
        assert value == pytest.approx(scale * expected, rel=1e-9)
        assert error <= 1.5e-8 * value
    assert [quad(peak, x, x, (1.0,))[0] for x in (np.inf, -np.inf, 0.3)] == [0.0, 0.0, 0.0]
    assert quad(peak, 0.0, 1.0, (1e-12,))[1] > 1e-12 * expected * 0.1  # SciPy's default is absolute, and tells so
