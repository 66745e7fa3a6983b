"""`irad.integrate.cubature`: values and derivatives against closed forms, in one to three dimensions."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.special import erf

import irad
from irad.integrate import cubature
from irad.integrate.cubature import points_of, weights_of

H = 1e-30


@njit
def fading(x, p, w):
    total = 0.0
    for i in range(x.size):
        total += w[i] * x[i]
    return np.exp(-p * total)


@njit
def squared(a, b, p, w):
    return cubature(fading, a, b, (p, w), epsrel=1e-10, epsabs=1e-12)[0] ** 2


def closed(a, b, p, w):
    return np.prod((np.exp(-p * w * a) - np.exp(-p * w * b)) / (p * w)) ** 2


def box(n):
    return np.linspace(0.1, 0.3, n), np.linspace(1.0, -0.5, n), 0.7, np.linspace(1.0, 2.0, n)  # one axis is reversed


@pytest.fixture(scope="module")
def gradient():
    return irad.value_and_grad(squared, argnums=(0, 1, 2, 3))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_by_limits_and_arguments(gradient, n):
    given = box(n)
    value, found = gradient(*given)
    assert value == pytest.approx(closed(*given), rel=1e-8)
    for i, each in enumerate(found):
        for j in range(np.size(each)):
            step = 1j * H * (np.eye(n)[j] if np.ndim(each) else 1.0)
            truth = closed(*[x + step if k == i else x for k, x in enumerate(given)]).imag / H
            assert np.ravel(each)[j] == pytest.approx(truth, rel=1e-7, abs=1e-10)


def test_forward_agrees_with_reverse(gradient):
    given = box(2)
    tangents = np.array([0.3, -0.2]), np.array([0.5, 1.0]), 0.4, np.array([1.0, -2.0])
    _, tangent = irad.jvp(squared, given, tangents)
    _, pulled = gradient(*given)
    assert tangent == pytest.approx(sum(np.sum(x * y) for x, y in zip(pulled, tangents, strict=True)), rel=1e-8)


def test_the_rule_is_of_degree_7():
    """On [-1, 1]ⁿ the weights are those of a mean: of 1, and of the even powers of one coordinate."""
    near, far, corner = np.sqrt(9.0 / 70.0), np.sqrt(9.0 / 10.0), np.sqrt(9.0 / 19.0)
    for n in (1, 2, 4):
        middle, one, other, pairs, corners = weights_of(n, 1.0)
        for degree in (2, 4, 6):
            total = 2.0 * one * near**degree + 2.0 * other * far**degree
            total += 4.0 * (n - 1) * pairs * far**degree + 2**n * corners * corner**degree
            assert total[0] == pytest.approx(1.0 / (degree + 1), rel=1e-13)
            if degree < 5:
                assert total[1] == pytest.approx(1.0 / (degree + 1), rel=1e-13)
        whole = middle + 2 * n * (one + other) + 2 * n * (n - 1) * pairs + 2**n * corners
        np.testing.assert_allclose(whole, 1.0, rtol=1e-13)
        assert points_of(n) == 1 + 4 * n + 2 * n * (n - 1) + 2**n


def test_the_limit_and_the_tolerances():
    given = box(2)
    value, error, count = cubature(fading, *given[:2], given[2:], True, limit=1, epsabs=0.0, epsrel=1e-14)
    assert count == points_of(2)
    assert error > 1e-14 * abs(value)
    more, less, _ = cubature(fading, *given[:2], given[2:], True, limit=300, epsabs=0.0, epsrel=1e-9)
    assert less <= 1e-9 * abs(more)
    assert abs(more**2 / closed(*given) - 1.0) < 1e-9


def test_limits_that_are_none():
    with pytest.raises(ValueError, match="differ in length"):
        cubature(fading, (0.0,), (1.0, 2.0), (0.7, np.ones(2)))
    with pytest.raises(ValueError, match="a limit of a cubature is NaN"):
        cubature(fading, (0.0,), (np.nan,), (0.7, np.ones(1)))


@njit
def moments(scales, tied, width):
    def of(x, scales, tied):
        return np.array([scales[0] * x[0] * x[1], tied[1] * x[1] * x[1]]), x[0] * 1j

    (found, number), _ = cubature(of, (0.0, 0.0), (width, 2.0), (scales, tied))
    return found[0] * found[1] + number.imag


def test_structures_with_an_array_in_two_places():
    """A closure made in compiled code, of arrays and complex numbers; the shadow that is shared gets both parts."""

    @irad.jit
    def loss(parameters, width):
        return moments(parameters["scales"], parameters["tied"], width)

    def truth(w, width):
        return w[0] * width**2 * w[1] * width * 8.0 / 3.0 + width**2

    w = np.array([1.2, 0.8])
    parameters = {"scales": w, "tied": w}
    shadow = irad.data.make_zero(parameters)
    by_width = irad.autodiff(irad.Reverse, loss, irad.Duplicated(parameters, shadow), irad.Active(1.5))[-1]
    steps = 1j * H * np.eye(2)
    np.testing.assert_allclose(shadow["scales"], [truth(w + step, 1.5).imag / H for step in steps], rtol=1e-9)
    assert by_width == pytest.approx(truth(w, 1.5 + 1j * H).imag / H, rel=1e-9)


@njit
def bell(x, p, w):
    total = 0.0
    for i in range(x.size):
        total += w[i] * x[i] * x[i]
    return np.exp(-p * total)


@njit
def weight(a, b, p, w):
    return cubature(bell, a, b, (p, w), epsrel=1e-9, epsabs=1e-12, limit=4000)[0]


def closed_weight(a, b, p, w):
    scale = np.sqrt(p * w)
    return np.prod(np.sqrt(np.pi) / (2.0 * scale) * (erf(scale * b) - erf(scale * a)))


INFINITE = [
    (np.array([-np.inf, 0.3]), np.array([np.inf, np.inf])),
    (np.array([-0.4, 0.3]), np.array([-np.inf, 1.1])),  # reversed
    (np.array([-np.inf, np.inf]), np.array([0.7, 0.2])),
]


@pytest.mark.parametrize(("a", "b"), INFINITE)
def test_infinite_boxes(a, b):
    p, w = 0.7, np.array([1.3, 0.8])
    value, found = irad.value_and_grad(weight, argnums=(0, 1, 2, 3))(a, b, p, w)
    assert value == pytest.approx(closed_weight(a, b, p, w), rel=1e-8)

    def difference(change):
        return (closed_weight(*change(1e-6)) - closed_weight(*change(-1e-6))) / 2e-6

    for j in range(2):
        unit = np.eye(2)[j]
        assert found[0][j] == pytest.approx(difference(lambda h, u=unit: (a + h * u, b, p, w)), rel=1e-6, abs=1e-9)
        assert found[1][j] == pytest.approx(difference(lambda h, u=unit: (a, b + h * u, p, w)), rel=1e-6, abs=1e-9)
        assert found[3][j] == pytest.approx(difference(lambda h, u=unit: (a, b, p, w + h * u)), rel=1e-6)
    assert found[2] == pytest.approx(difference(lambda h: (a, b, p + h, w)), rel=1e-6)
    tangents = np.array([0.3, -0.2]), np.array([0.5, 1.0]), 0.4, np.array([1.0, -2.0])
    _, tangent = irad.jvp(weight, (a, b, p, w), tangents)
    assert tangent == pytest.approx(sum(np.sum(x * y) for x, y in zip(found, tangents, strict=True)), rel=1e-7)


def test_a_box_between_equal_infinities_is_empty():
    for a, b in (((np.inf, 0.0), (np.inf, 1.0)), ((0.5, -np.inf), (0.5, np.inf))):
        assert cubature(bell, a, b, (0.7, np.ones(2)))[0] == 0.0
