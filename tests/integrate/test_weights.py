"""Weights of `irad.integrate.quad`: values against SciPy and closed forms, derivatives against closed forms."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import scipy.integrate
from numba import njit
from scipy.special import dawsn, expi

import irad
from irad.integrate import quad

TIGHT = {"epsabs": 1e-11, "epsrel": 1e-11}


@njit
def growth(x, rate):
    return np.exp(rate * x)


@njit
def bell(x, rate):
    return np.exp(-rate * x * x)


# ------------------------------------------------------------------------------------------------ a pole


@njit
def with_pole(a, b, c, rate):
    return quad(growth, a, b, (rate,), epsabs=1e-11, epsrel=1e-11, weight="cauchy", wvar=c)[0]


@njit
def bell_with_pole(a, b, c, rate):
    return quad(bell, a, b, (rate,), epsabs=1e-10, epsrel=1e-10, weight="cauchy", wvar=c)[0]


# The pole nearer to either end, in the middle, the range reversed, the pole outside.
RANGES = [
    (-1.0, 2.0, -0.3, 0.7),
    (-1.0, 2.0, 1.4, 0.7),
    (0.0, 1.0, 0.5, -1.2),
    (2.0, -1.0, 0.1, 0.7),
    (0.0, 1.0, 3.0, 0.7),
]


@pytest.mark.parametrize("given", RANGES)
def test_a_pole(given):
    a, b, c, rate = given
    value, found = irad.value_and_grad(with_pole, argnums=(0, 1, 2, 3))(*given)
    expected = np.exp(rate * c) * (expi(rate * (b - c)) - expi(rate * (a - c)))
    assert value == pytest.approx(expected, rel=1e-9)
    plain = scipy.integrate.quad(lambda x: np.exp(rate * x), a, b, weight="cauchy", wvar=c)
    assert value == pytest.approx(plain[0], rel=1e-8)
    at_a, at_b = np.exp(rate * a) / (a - c), np.exp(rate * b) / (b - c)
    by_rate = c * expected + (np.exp(rate * b) - np.exp(rate * a)) / rate
    truth = -at_a, at_b, rate * expected - at_b + at_a, by_rate
    np.testing.assert_allclose(found, truth, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_pole_in_an_infinite_range(reverse):
    """On all numbers it is a Hilbert transform: of the bell, by Dawson's integral."""
    c, rate, sign = 0.6, 1.3, -1.0 if reverse else 1.0
    root = np.sqrt(rate)
    limits = (np.inf, -np.inf) if reverse else (-np.inf, np.inf)
    value, found = irad.value_and_grad(bell_with_pole, argnums=(2, 3))(*limits, c, rate)
    assert value == pytest.approx(-2.0 * sign * np.sqrt(np.pi) * dawsn(root * c), rel=1e-8)
    slope = 1.0 - 2.0 * root * c * dawsn(root * c)
    expected = -2.0 * sign * np.sqrt(np.pi) * slope * np.array([root, 0.5 * c / root])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    half = bell_with_pole(0.0, np.inf, c, rate) + bell_with_pole(-np.inf, 0.0, c, rate)
    assert half == pytest.approx(sign * value, rel=1e-8)


# ------------------------------------------------------------------------------------------------ powers at the ends


@njit
def with_powers(a, b, p, q, rate, with_logs):
    if with_logs:
        return quad(growth, a, b, (rate,), epsabs=1e-11, epsrel=1e-11, weight="alg-log", wvar=(p, q))[0]
    return quad(growth, a, b, (rate,), epsabs=1e-11, epsrel=1e-11, weight="alg", wvar=(p, q))[0]


def closed_with_powers(a, b, p, q, rate):
    scale = mpmath.exp(rate * a) * (b - a) ** (1 + p + q) * mpmath.beta(p + 1, q + 1)
    return scale * mpmath.hyp1f1(p + 1, p + q + 2, rate * (b - a))


@pytest.mark.parametrize("with_logs", [False, True])
@pytest.mark.parametrize("powers", [(-0.5, -0.3), (-0.9, 2.5), (0.0, 0.0), (0.3, -0.95)])
def test_powers_at_the_ends(powers, with_logs):
    """Logarithms are derivatives with respect to both exponents."""
    given, orders = (0.5, 1.75, *powers, 0.7), (0, 0, int(with_logs), int(with_logs), 0)
    value, found = irad.value_and_grad(with_powers, argnums=(0, 1, 2, 3, 4))(*given, with_logs)
    with mpmath.workdps(30):
        expected = [mpmath.diff(closed_with_powers, given, orders)]
        for i in range(5):
            further = tuple(order + (k == i) for k, order in enumerate(orders))
            expected.append(mpmath.diff(closed_with_powers, given, further))
    np.testing.assert_allclose([value, *found], np.array(expected, float), rtol=1e-8, atol=1e-9)


def test_powers_and_logarithms_at_the_ends():
    for weight in ("alg", "alg-loga", "alg-logb", "alg-log"):
        found = quad(growth, 0.5, 2.0, (0.7,), weight=weight, wvar=(-0.5, 0.3), **TIGHT)
        expected = scipy.integrate.quad(lambda x: np.exp(0.7 * x), 0.5, 2.0, weight=weight, wvar=(-0.5, 0.3))[0]
        assert found[0] == pytest.approx(expected, rel=1e-9)
        assert 0.0 <= found[1] <= 1e-10


# ------------------------------------------------------------------------------------------------ oscillations


@njit
def decay(x, rate):
    return np.exp(-rate * x)


@njit
def wave(a, b, omega, rate, is_sine):
    if is_sine:
        return quad(decay, a, b, (rate,), epsabs=1e-11, epsrel=1e-11, weight="sin", wvar=omega)[0]
    return quad(decay, a, b, (rate,), epsabs=1e-11, epsrel=1e-11, weight="cos", wvar=omega)[0]


def closed_wave(a, b, omega, rate, is_sine):
    """The integral of a decaying exponential, and its derivatives with respect to limits, frequency and rate."""
    s = 1j * omega - rate
    upper, lower = (np.exp(s * x) if np.isfinite(x) else 0.0 for x in (b, a))
    first = ((b * upper if np.isfinite(b) else 0.0) - (a * lower if np.isfinite(a) else 0.0)) / s
    value = (upper - lower) / s
    by_s = first - value / s
    parts = np.array([value, -lower, upper, 1j * by_s, -by_s])
    return parts.imag if is_sine else parts.real


@pytest.mark.parametrize("is_sine", [False, True])
@pytest.mark.parametrize("omega", [0.0, 0.3, 2.0, -3.0, 157.0])
@pytest.mark.parametrize("limits", [(0.5, np.inf), (0.5, 3.0), (3.0, -0.5), (np.inf, 0.2)])
def test_waves(limits, omega, is_sine):
    rate = 0.7
    value, found = irad.value_and_grad(wave, argnums=(0, 1, 2, 3))(*limits, omega, rate, is_sine)
    expected = closed_wave(*limits, omega, rate, is_sine)
    np.testing.assert_allclose([value, *found], expected, rtol=1e-8, atol=2e-9)


def test_waves_in_forward_mode():
    for given in ((0.5, np.inf, 2.0, 0.7, True), (0.5, 3.0, 2.0, 0.7, True)):
        tangents = 0.3, -0.2, 0.5, 1.0
        found = irad.grad(wave, argnums=(0, 1, 2, 3))(*given)
        assert irad.jvp(wave, given, (*tangents, None))[1] == pytest.approx(np.dot(found, tangents), rel=1e-8)


@njit
def slow(x, shift):
    return 1.0 / (x + shift)


@njit
def phase(x, shift):
    return np.exp(-x * x) * np.exp(1j * shift * x)


def test_a_wave_times_what_falls_slowly():
    """Where the integral without the wave diverges; from SciPy's own limit of precision on."""
    for name, trigonometric in (("cos", mpmath.cos), ("sin", mpmath.sin)):
        for omega in (0.5, 3.0):
            expected = mpmath.quadosc(
                lambda x, f=trigonometric, w=omega: f(w * x) / (x + 0.7), [0.5, mpmath.inf], omega=omega
            )
            found = quad(slow, 0.5, np.inf, (0.7,), weight=name, wvar=omega)
            assert found[0] == pytest.approx(float(expected), rel=1e-9)
            assert 0.0 <= found[1] < 1e-7


def test_waves_over_all_numbers_of_complex_values():
    for low, high, sign in ((-np.inf, np.inf, 1.0), (np.inf, -np.inf, -1.0)):
        found = quad(phase, low, high, (0.5,), weight="cos", wvar=2.0, **TIGHT)[0]
        sides = [np.exp(-((0.5 + s * 2.0) ** 2) / 4.0) for s in (-1.0, 1.0)]
        assert found == pytest.approx(sign * 0.5 * np.sqrt(np.pi) * sum(sides), rel=1e-10)
    assert quad(phase, np.inf, np.inf, (0.5,), weight="cos", wvar=2.0)[0] == 0.0


# ------------------------------------------------------------------------------------------------ refusals


@njit
def constant(x):
    return 1.0


@njit
def of_a_name(name):
    return quad(constant, 0.0, 1.0, weight=name, wvar=1.0)[0]


@njit
def with_points(x):
    return quad(constant, 0.0, 1.0, weight="cos", wvar=1.0, points=(x,))[0]


def test_what_does_not_fit_is_refused():
    for wrong in (
        {"weight": "tan", "wvar": 1.0},
        {"weight": "cos"},
        {"weight": "cos", "wvar": (1.0, 2.0)},
        {"weight": "alg", "wvar": 1.0},
        {"weight": "cos", "wvar": 1.0, "full_output": True},
        {"weight": "cos", "wvar": 1.0, "points": (0.5,)},
        {"weight": "cos", "wvar": 1.0, "batch": True},
    ):
        with pytest.raises(irad.SignatureError, match=r"quad: (wvar of )?weight"):
            quad(constant, 0.0, 1.0, **wrong)
    with pytest.raises(irad.SignatureError, match=r"weight .* known only at run time"):
        of_a_name("cos")
    with pytest.raises(irad.SignatureError, match="together with"):
        with_points(0.5)
    for c in (0.0, 1.0):
        with pytest.raises(ValueError, match="a limit is the pole"):
            quad(growth, 0.0, 1.0, (0.7,), weight="cauchy", wvar=c)
    with pytest.raises(ValueError, match="exponents of a weight must be greater than -1"):
        quad(growth, 0.0, 1.0, (0.7,), weight="alg", wvar=(-1.0, 0.0))
    for limits in ((1.0, 0.0), (0.0, np.inf), (0.0, np.nan)):
        with pytest.raises(ValueError, match="finite limits in ascending order"):
            quad(growth, *limits, (0.7,), weight="alg", wvar=(0.0, 0.0))
    for omega in (1e9, np.nan):
        with pytest.raises(ValueError, match="oscillates too often"):
            quad(decay, 0.0, 1.0, (0.7,), weight="cos", wvar=omega)
    with pytest.raises(ValueError, match=r"does not converge|less precise"):
        quad(growth, 0.0, np.inf, (0.7,), weight="cos", wvar=1.0)
