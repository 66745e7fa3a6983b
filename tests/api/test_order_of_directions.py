"""Where derivatives take a direction: after the last argument that is differentiated; and that they leave it alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from scipy.optimize import minimize

import irad
from irad.testing.allocations import allocations

X, Y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
V, W = np.array([1.0, -1.0]), np.array([0.5, 2.0])


@njit
def energy(x, y, scale=2.0):
    return scale * (x**2 * y).sum()


@njit
def starred(x, *more):
    return x.sum() ** 2 * more[0] ** 3 * more[1]


@njit
def cubes_in_place(x):
    total = 0.0
    for i in range(x.size):
        x[i] = x[i] ** 3
        total += x[i] * x[0]
    return total


def hessian_of_energy(x, y, scale):
    """For (x, y), of `scale * sum(x² y)`."""
    mixed = np.diag(2.0 * scale * x)
    return np.block([[np.diag(2.0 * scale * y), mixed], [mixed, np.zeros((x.size, x.size))]])


@pytest.mark.parametrize("rest", [(), (3.0,)], ids=["default", "given"])
def test_after_the_last_differentiated_argument(rest: tuple[float, ...]):
    scale = rest[0] if rest else 2.0
    matrix, out = hessian_of_energy(X, Y, scale), np.empty(2)
    along_both = matrix @ np.concatenate((V, W))
    np.testing.assert_allclose(irad.hvp(energy)(X, V, Y, *rest), 2.0 * scale * Y * V)
    np.testing.assert_allclose(np.concatenate(irad.hvp(energy, (0, 1))(X, Y, (V, W), *rest)), along_both)
    np.testing.assert_allclose(np.concatenate(irad.hvp(energy, (1, 0))(X, Y, (W, V), *rest)[::-1]), along_both)
    np.testing.assert_allclose(irad.hvp_and_grad(energy)(X, V, Y, *rest)[0], 2.0 * scale * Y * V)
    assert irad.hvp_into(energy)(out, X, V, Y, *rest) == energy(X, Y, scale)
    np.testing.assert_allclose(out, 2.0 * scale * Y * V)
    value, slope = irad.pushforward(energy, 1)(X, Y, W, *rest)
    assert (value, slope) == (energy(X, Y, scale), scale * (X**2 * W).sum())
    assert irad.taylor(energy, 1, 1)(X, Y, (W,), *rest) == (value, (slope,))
    assert irad.jvp(energy, (X, Y, *rest), W, argnums=1) == (value, slope)


def test_names_and_defaults():
    np.testing.assert_allclose(irad.hvp(energy)(X, V, y=Y, scale=3.0), 6.0 * Y * V)
    np.testing.assert_allclose(irad.hvp(energy)(x=X, vector=V, y=Y), 4.0 * Y * V)
    assert irad.hvp(energy, 2)(X, Y, 2.0, 1.0) == 0.0
    assert irad.pushforward(energy, argnames="scale")(X, Y, 3.0, tangents=1.0)[1] == (X**2 * Y).sum()
    with pytest.raises(irad.SignatureError, match="missing a required argument: 'scale'"):
        irad.hvp(energy, 2)(X, Y, vector=1.0)  # the default does not stand for what the direction belongs to
    with pytest.raises(irad.SignatureError, match=r"call it with the arguments \(x, vector, y, scale=2.0\)"):
        irad.hvp(energy)(X)


def test_among_star_arguments():
    np.testing.assert_allclose(irad.hvp(starred)(X, V, 2.0, 5.0), np.zeros(2))
    assert irad.hvp(starred, 1)(X, 2.0, 1.0, 5.0) == 6.0 * 2.0 * 9.0 * 5.0
    by_x, by_first, by_second = irad.hvp(starred, (0, 1, 2))(X, 2.0, 5.0, (V, 1.0, 1.0))
    assert by_x.tolist() == [2 * 3.0 * (3 * 4.0 * 5.0 + 8.0)] * 2
    assert (by_first, by_second) == (9.0 * (6 * 2.0 * 5.0 + 3 * 4.0), 9.0 * 3 * 4.0)
    assert irad.pushforward(starred, (1, 2))(X, 2.0, 5.0, (1.0, 0.0)) == irad.jvp(
        starred, (X, 2.0, 5.0), (None, 1.0, 0.0)
    )
    with pytest.raises(irad.SignatureError, match="2 arguments, so there is no direction"):
        irad.hvp(starred, 1)(X, 2.0)


def test_in_compiled_code():
    products = irad.hvp(energy, (0, 1))

    @njit
    def several(out, x, v, y, w):
        irad.hvp_into(energy)(out, x, v, y)
        both = products(x, y, (v, w), 3.0)
        along = irad.jvp(starred, (x, 2.0, 5.0), (None, 1.0, None))
        return irad.hvp(energy)(x, v, y, 3.0), both, along, irad.pushforward(starred, 1)(x, 2.0, 1.0, 5.0)

    out = np.empty(2)
    product, both, along, pushed = several(out, X, V, Y, W)
    np.testing.assert_allclose(out, 4.0 * Y * V)
    np.testing.assert_allclose(product, 6.0 * Y * V)
    np.testing.assert_allclose(np.concatenate(both), hessian_of_energy(X, Y, 3.0) @ np.concatenate((V, W)))
    assert along == pushed == (starred(X, 2.0, 5.0), 9.0 * 3 * 4.0 * 5.0)


@jitclass([("stiffness", float64)])
class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def energy(self, x, power):
        return self.stiffness * (x**power).sum()


def test_of_methods():
    spring, out = Spring(3.0), np.empty(2)
    wanted = 3.0 * 6.0 * X * V
    np.testing.assert_allclose(irad.hvp(spring.energy)(X, V, 3), wanted)
    irad.hvp_into(spring.energy)(out, X, V, 3)
    np.testing.assert_allclose(out, wanted)
    assert irad.pushforward(spring.energy)(X, V, 2) == (15.0, 6.0 * (X * V).sum())


def test_pickled():
    product = pickle.loads(pickle.dumps(irad.hvp(energy)))
    np.testing.assert_allclose(product(X, V, Y), 4.0 * Y * V)


@pytest.mark.parametrize("method", ["Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"])
def test_as_scipy_calls_it(method: str):
    def valley(x, a, b):
        return (b * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2).sum()

    found = minimize(
        irad.value_and_grad(valley), np.zeros(8), (1.0, 100.0), method, jac=True, hessp=irad.hvp(valley), tol=1e-8
    )
    assert found.success
    np.testing.assert_allclose(found.x, 1.0, rtol=1e-6)


def test_directions_of_integers():
    """They are the caller's, and so may have another type than the memory that products are computed in."""
    direction = np.array([1, -1], np.int8)
    np.testing.assert_allclose(irad.hvp(energy)(X, direction, Y), irad.hvp(energy)(X, V, Y))
    single = irad.hvp(energy)(X.astype(np.float32), direction, Y.astype(np.float32), np.float32(2.0))
    assert single.dtype == np.float32
    found = irad.hvp(energy, (0, 1))(X, Y, (direction, W))
    for each, wanted in zip(found, irad.hvp(energy, (0, 1))(X, Y, (V, W)), strict=True):
        np.testing.assert_allclose(each, wanted)
    np.testing.assert_allclose(irad.hvp_and_grad(energy)(X, direction, Y)[0], irad.hvp_and_grad(energy)(X, V, Y)[0])
    np.testing.assert_array_equal(direction, [1, -1])
    with pytest.raises(irad.SignatureError, match="the tangent is"):
        irad.hvp(energy)(X, np.array([[1, -1]]), Y)


@pytest.mark.parametrize("made", [lambda x: x.copy(), lambda x: np.repeat(x, 2)[::2]], ids=["contiguous", "strided"])
def test_direction_is_the_callers(made):
    """Of a function that overwrites its argument: Hessian of `x₀⁶ + x₀³ x₁³` by hand."""
    a, b = X
    wanted = np.array([[30 * a**4 + 6 * a * b**3, 9 * a**2 * b**2], [9 * a**2 * b**2, 6 * a**3 * b]]) @ V
    direction, out, gradient = made(V), np.empty(2), np.empty(2)
    products = (
        lambda: irad.hvp(cubes_in_place)(made(X), direction),
        lambda: irad.hvp_and_grad(cubes_in_place)(made(X), direction)[0],
        lambda: (irad.hvp_into(cubes_in_place)(out, made(X), direction), out)[1],
        lambda: (irad.hvp_and_grad_into(cubes_in_place)((out, gradient), made(X), direction), out)[1],
    )
    for product in products:
        for _ in range(2):
            np.testing.assert_allclose(product(), wanted)
            assert direction.tolist() == V.tolist()
    x = made(X)
    irad.hvp(cubes_in_place)(x, direction)
    assert x.tolist() == [1.0, 8.0]  # as the function leaves it
    irad.pushforward(cubes_in_place)(made(X), direction)
    np.testing.assert_allclose(direction, 3.0 * X**2 * V)  # the tangent of what the array holds now


def test_copies_of_directions_do_not_leak():
    @njit
    def raising(x, fails):
        x[0] = x[0] ** 3
        if fails:
            raise ValueError("no")
        return x[0] * x[1]

    product = irad.hvp(raising)

    def calls():
        product(X.copy(), V, False)
        with pytest.raises(ValueError, match="no"):
            product(X.copy(), V, True)

    calls()
    with allocations() as counted:
        for _ in range(3):
            calls()
        found = counted()
    assert found.made > 0
    assert (found.kept, found.kept_headers) == (0, 0)


def test_directions_in_tuples_and_star_arguments_stay():
    @njit
    def scaled(*pairs):
        pairs[1][0][:] *= pairs[0]
        return (pairs[1][0] ** 2).sum() * pairs[1][1]

    direction = (V.copy(), 0.5)
    product = irad.hvp(scaled, 1)(3.0, (X.copy(), 2.0), direction)
    assert direction[0].tolist() == V.tolist()
    np.testing.assert_allclose(product[0], 18.0 * (2.0 * V + 0.5 * X))  # of 9 |x|² w
    assert product[1] == pytest.approx(18.0 * X @ V)
