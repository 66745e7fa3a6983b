"""Derivatives of derivatives: every order of the modes, third order, and what the first derivative may consist of.

The truth are closed forms, or central differences of the first derivative, whose tests are elsewhere.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numba import float64, njit, prange
from numba.experimental import jitclass

import irad
from irad.testing.allocations import allocations

X, V = np.array([1.2, 0.7, 2.1, 0.4]), np.array([1.0, -0.5, 0.3, 2.0])


def _differences(f, x, v, step=1e-5):
    gradient = irad.grad(f)
    return (gradient(x + step * v) - gradient(x - step * v)) / (2.0 * step)


# ---------------------------------------------------------------------------------------------------- numbers


@njit
def wave(x):
    return np.sin(x) * x


@njit
def cube(x):
    return x * x * x


@njit
def square(x):
    return x * x


slope, rate = irad.grad(wave), irad.pushforward(wave)
square_slope, square_rate = irad.grad(square), irad.pushforward(square)


@njit
def by_reverse(x):
    return slope(x)


@njit
def by_forward(x):
    return rate(x, 1.0)[1]


@njit
def square_by_reverse(x):
    return square_slope(x)


@njit
def square_by_forward(x):
    return square_rate(x, 1.0)[1]


def _second_of_wave(x):
    return 2.0 * np.cos(x) - x * np.sin(x)


@pytest.mark.parametrize("first", [by_reverse, by_forward])
def test_every_order_of_the_modes(first):
    value, tangent = irad.jvp(first, (1.3,), (1.0,))
    assert value == pytest.approx(np.sin(1.3) + 1.3 * np.cos(1.3))
    assert tangent == pytest.approx(_second_of_wave(1.3))
    assert irad.grad(first)(1.3) == pytest.approx(_second_of_wave(1.3))
    assert irad.grad(first, options=irad.Options(plan="save_all"))(1.3) == pytest.approx(_second_of_wave(1.3))


@pytest.mark.parametrize("first", [square_by_reverse, square_by_forward])
def test_a_first_derivative_that_is_zero(first):
    """Guards of products in the first derivative are not branches of the function."""
    assert irad.jvp(first, (0.0,), (1.0,)) == (0.0, 2.0)
    assert irad.grad(first)(0.0) == 2.0


def test_derivatives_as_functions_to_differentiate():
    assert irad.grad(irad.grad(cube))(2.0) == 12.0
    assert irad.grad(irad.grad(irad.grad(cube)))(2.0) == 6.0
    assert irad.grad(irad.hvp(cube), 1)(1.0, 2.0) == 6.0
    assert irad.jvp(irad.value_and_grad(cube), (2.0,), (1.0,)) == ((8.0, 12.0), (12.0, 12.0))


def test_third_and_fourth_order():
    second = irad.grad(by_reverse)

    @njit
    def third(x):
        return second(x)

    wanted = -3.0 * np.sin(1.3) - 1.3 * np.cos(1.3)
    assert irad.jvp(third, (1.3,), (1.0,))[1] == pytest.approx(wanted)
    assert irad.grad(third)(1.3) == pytest.approx(wanted)
    assert irad.grad(irad.grad(third))(1.3) == pytest.approx(-4.0 * np.cos(1.3) + 1.3 * np.sin(1.3))


def test_perturbations_are_not_confused():
    """D/dx (x · d/dy (x + y)) is 1; a tangent that is taken for the other's gives 2."""

    @njit
    def total(y, x):
        return x + y

    inner = irad.pushforward(total)

    @njit
    def outer(x):
        return x * inner(1.0, 1.0, x)[1]

    assert irad.jvp(outer, (1.0,), (1.0,))[1] == 1.0
    assert irad.grad(outer)(1.0) == 1.0


def test_a_kink_has_no_curvature():
    @njit
    def kink(x):
        return abs(x[0]) * 3.0 + x[0] * x[0]

    push = irad.pushforward(kink)

    @njit
    def slope(x):
        return push(x, np.ones(1))[1]

    x = np.zeros(1)
    assert irad.hessian(kink)(x) == irad.grad(slope)(x) == irad.jvp(slope, (x,), (np.ones(1),))[1] == 2.0


def test_a_guarded_infinite_slope_stays_zero():
    @njit(error_model="numpy")
    def guarded(x):
        return np.sqrt(x) if x > 0.0 else 0.0 * x

    first = irad.grad(guarded)
    assert irad.jvp(first, (4.0,), (1.0,)) == (0.25, pytest.approx(-1.0 / 32.0))
    assert irad.jvp(first, (0.0,), (1.0,)) == (0.0, 0.0)


# ---------------------------------------------------------------------------------------------------- arrays


@njit
def loops(x):
    y = x.copy()
    for _ in range(4):
        for i in range(1, y.size):
            y[i] = np.tanh(y[i] * y[i - 1]) if y[i] > 0.5 else y[i] * y[i - 1]
    return y.sum()


@njit
def until(x):
    y, n = x[0], 0
    while y < 50.0:
        y = y * (1.0 + x[1]) + np.exp(x[2] * 0.1)
        n += 1
    return y * y + x[3] ** n


@njit
def ordered(x):
    y = np.sort(x)
    return y[1] * y[2] ** 2 + np.median(x) ** 2


@njit
def overwriting(x):
    x[1] *= x[0]
    x[2:] += x[:2] ** 2
    return (x**3).sum()


@njit
def factorised(x):
    a = np.outer(x, x) + np.diag(np.arange(2.0, 6.0) * x)
    lower = np.linalg.cholesky(a)
    return np.log(np.linalg.det(a)) + np.linalg.solve(a, x).sum() + (lower @ x)[3] + np.linalg.eigvalsh(a)[3]


@njit
def complex_inside(x):
    z = np.exp(1j * x) * (x + 2j)
    return np.abs(z.sum()) ** 2


ARRAYS = [loops, until, ordered, overwriting, factorised, complex_inside]


@pytest.mark.parametrize("f", ARRAYS)
def test_products_of_the_hessian(f):
    wanted = _differences(f, X, V)
    product, gradient = irad.hvp_and_grad(f)(X.copy(), V.copy())
    np.testing.assert_allclose(gradient, irad.grad(f)(X.copy()), rtol=1e-13)
    np.testing.assert_allclose(product, wanted, rtol=1e-6, atol=1e-6)
    if f is factorised:
        return  # reverse over reverse: refused; the memory of the factorisations' adjoints is cleared as a whole
    _, pullback = irad.vjp(irad.grad(f), X.copy())
    np.testing.assert_allclose(pullback(V)[0], product, rtol=1e-10)


def test_a_loss_of_forces():
    """A fit through forces: the gradient of an energy stands in the function; its parameter is what is fitted."""

    @njit
    def energy(r, k):
        total = 0.0
        for i in range(r.size - 1):
            total += 0.5 * k * (r[i + 1] - r[i] - 1.0) ** 2 + np.exp(-k * r[i] ** 2)
        return total

    forces = irad.grad(energy)

    @njit
    def loss(k, r):
        return ((forces(r, k) - 0.3) ** 2).sum()

    forces(X, 1.5)  # what is compiled for Python is not what is differentiated
    step = 1e-6
    wanted = (loss(1.5 + step, X) - loss(1.5 - step, X)) / (2.0 * step)
    assert irad.grad(loss)(1.5, X) == pytest.approx(wanted, rel=1e-7)
    assert irad.jvp(loss, (1.5, X), (1.0, None))[1] == pytest.approx(wanted, rel=1e-7)


def test_several_arguments_have_mixed_derivatives():
    @njit
    def mixed(x, k):
        return k * k * (x**2).sum()

    products = irad.hvp(mixed, (0, 1))(X, 2.0, (V, 3.0))
    np.testing.assert_allclose(products[0], 8.0 * V + 8.0 * 3.0 * X)
    assert products[1] == pytest.approx(2.0 * 3.0 * (X**2).sum() + 8.0 * (X @ V))


def test_hessians():
    @njit
    def mixed(x, k):
        return k * k * (x[0] * x[1:] ** 2).sum()

    x = X[:3]
    wanted = 8.0 * np.array([[0.0, x[1], x[2]], [x[1], x[0], 0.0], [x[2], 0.0, x[0]]])
    np.testing.assert_allclose(irad.hessian(mixed)(x, 2.0), wanted, atol=1e-14)
    blocks = irad.hessian(mixed, (0, 1), chunk=2)(x, 2.0)
    np.testing.assert_allclose(blocks[0][0], wanted, atol=1e-14)
    np.testing.assert_allclose(blocks[0][1], irad.grad(mixed)(x, 2.0))  # k² has the slope 2k, which is k² for k = 2
    np.testing.assert_allclose(blocks[1][0], blocks[0][1])
    assert blocks[1][1] == pytest.approx(mixed(x, 1.0) * 2.0)
    hessian = irad.hessian(mixed)
    assert njit(lambda x: np.trace(hessian(x, 1.0)))(x) == pytest.approx(4.0 * x[0])
    assert repr(irad.hessian(cube)) == "<irad.hessian of cube>"
    assert irad.hessian(cube)(2.0) == 12.0


def test_single_precision():
    @njit
    def cubes(x):
        return (x * x * x).sum()

    product = irad.hvp(cubes)(X.astype(np.float32), V.astype(np.float32))
    assert product.dtype == np.float32
    np.testing.assert_allclose(product, 6.0 * X * V, rtol=1e-5)


def test_strided_and_empty_arrays():
    @njit
    def cubes(x):
        return (x * x * x).sum()

    both = np.repeat(X, 2)[::2]
    np.testing.assert_allclose(irad.hvp(cubes)(both, np.repeat(V, 2)[::2]), 6.0 * X * V)
    assert irad.hvp(cubes)(np.zeros(0), np.zeros(0)).shape == (0,)


@njit
def residuals(x, a):
    r = np.linalg.solve(a + np.diag(x), x)
    z = np.vdot(x * (1 + 2j), r * (1 - 1j))
    return np.dot(r, x) ** 2 + (r**2).sum() + ((a @ x) ** 2).sum() + np.abs(z) ** 2 + (z * z).real


def test_cotangents_and_tangents_that_are_zero_and_do_not_stay_so():
    """Library calls skip what is zero; a derivative that is differentiated may be zero here and not nearby."""
    a, v = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 1.0, 5.0]]), np.array([1.0, -0.5, 0.3])
    zeros = np.zeros(3)
    inverse = np.linalg.inv(a)
    wanted = 2.0 * (inverse.T @ inverse + a.T @ a) @ v  # the others are of order four
    np.testing.assert_allclose(irad.hvp(residuals)(zeros, v, a), wanted, rtol=1e-12)
    np.testing.assert_allclose(irad.vjp(irad.grad(residuals), zeros, a)[1](v)[0], wanted, rtol=1e-12)

    rate = irad.pushforward(residuals)
    in_direction = njit(lambda v, x, a: rate(x, v, a)[1])
    np.testing.assert_allclose(irad.grad(in_direction)(zeros, v, a), irad.grad(residuals)(v, a), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- calls


def test_methods():
    @jitclass([("weights", float64[:])])
    class Model:
        def __init__(self, weights):
            self.weights = weights

        def energy(self, x):
            return (self.weights * x**3).sum()

    model = Model(np.arange(1.0, 5.0))
    np.testing.assert_allclose(irad.hvp(model.energy)(X, V), 6.0 * np.arange(1.0, 5.0) * X * V)


def test_exceptions_pass_and_nothing_is_lost():
    @njit
    def positive(x):
        y = x * 2.0
        if y[0] < 0.0:
            raise ValueError("negative")
        return (y**3).sum()

    product = irad.hvp(positive)
    np.testing.assert_allclose(product(X, V), 48.0 * X * V)
    with allocations() as count:
        for _ in range(3):
            product(X, V)
            with pytest.raises(ValueError, match="negative"):
                product(-X, V)
        counted = count()
    assert (counted.kept, counted.kept_headers) == (0, 0)


def test_a_misfit_in_the_inner_call_is_raised():
    inner = irad.pushforward(overwriting)

    @njit
    def wrong(x, v):
        return inner(x, v)[1]

    with pytest.raises(irad.SignatureError, match="different shape"):
        irad.grad(wrong)(X.copy(), np.ones(2))

    # code that raises, optimised by LLVM for the calls in that derivative, is not used for other calls
    _, pullback = irad.vjp(njit(lambda x: x * 2.0), X)
    with pytest.raises(irad.SignatureError, match=r"\(2,\), not \(4,\)"):
        pullback(np.ones(2))


def test_rules_are_differentiated_by_their_functions():
    @njit
    def scaled(a, k):
        return a * k

    @irad.rules.augmented_primal(scaled)
    def scaled_augmented(config, a, k):
        return irad.rules.AugmentedReturn(a.value * k.value, np.zeros_like(a.value), a.value)

    @irad.rules.reverse(scaled)
    def scaled_reverse(config, cotangent, tape, a, k):
        if not irad.rules.is_active(cotangent):
            return None, 0.0
        if irad.rules.is_active(a):
            a.shadow[:] += cotangent * k.value
        return None, (cotangent * tape).sum() if irad.rules.is_active(k) else 0.0

    @njit
    def tripled(x):
        return x * x * x

    irad.rules.easy_rule(tripled, lambda x: 3.0 * x * x)

    @njit
    def loss(a, k):
        total = 0.0
        for b in scaled(a, k):
            total += tripled(b)
        return total

    def of_cube(x):
        return tripled(x) ** 2 + tripled(x - 1.0) ** 2

    assert (
        irad.hvp(njit(of_cube))(1.0, 1.0) == 30.0
    )  # where x - 1 is zero, so are the cotangent and the tangent of a cube
    rate = irad.pushforward(tripled)
    assert irad.grad(njit(lambda v, x: rate(x, v)[1]))(0.0, 2.0) == 12.0

    products = irad.hvp(loss, (0, 1))(X, 3.0, (V, 1.0))
    np.testing.assert_allclose(products[0], 6.0 * 27.0 * X * V + 27.0 * 3.0 * X**2)
    assert products[1] == pytest.approx(27.0 * 3.0 * (X**2 @ V) + 18.0 * (X**3).sum())


def test_options_of_derivatives_that_are_differentiated():
    watched = irad.Options(debug=True, max_tape_bytes=10**6)
    assert irad.grad(irad.grad(cube, options=watched))(2.0) == 12.0

    gradient = irad.grad(loops)

    @njit
    def size(x):
        return (gradient(x) ** 2).sum()

    expected = irad.grad(size)(X)
    zero = irad.Options(zero_times_infinity="zero")
    for options in (irad.Options(debug=True), irad.Options(max_tape_bytes=10**6), irad.Options(boundscheck=True), zero):
        np.testing.assert_allclose(irad.grad(size, options=options)(X), expected, rtol=1e-12)
    with pytest.raises(irad.TapeLimitError):
        irad.grad(size, options=irad.Options(max_tape_bytes=16))(X)


def test_zero_slopes_that_win_over_infinite_cotangents():
    """The zero that a zero slope makes is not a constant: the slope of x·x is zero at zero, its slope is 2."""
    zero = irad.Options(zero_times_infinity="zero")

    @njit
    def mixed(x, y):
        return np.cbrt(x[0] ** 3) + x[0] * x[0] + x @ y + np.dot(x, y) ** 2

    x, y, v = np.zeros(2), np.array([1.2, 0.7]), np.array([1.0, -0.5])
    by_x, by_y = irad.jvp(irad.grad(mixed, (0, 1), options=zero), (x, y), (v, v), options=zero)[1]
    np.testing.assert_allclose(by_x, v + 2.0 * y * (y @ v) + [2.0, 0.0])
    np.testing.assert_allclose(by_y, v)
    _, pullback = irad.vjp(irad.grad(mixed, (0, 1), options=zero), x, y, options=zero)
    np.testing.assert_allclose(pullback((v, v))[0], by_x)
    rate = irad.pushforward(square, options=zero)
    assert irad.grad(njit(lambda v, x: rate(x, v)[1]), (0, 1), options=zero)(1.0, 0.0) == (0.0, 2.0)


def test_parallel_loops():
    """Those of the first derivative run serially; sums are added up in another order then."""

    def bonds(x):
        pairs, along = np.empty((x.size, 2)), np.zeros(2)
        for i in prange(x.size):
            for j in range(2):
                pairs[i, j] = np.tanh(x[i] * (j + 1)) * x[(i + 1) % x.size]
        for i in prange(x.size):
            along += pairs[i] ** 2
        return (np.exp(0.1 * x) + along.sum()).sum()

    serial, parallel = njit(bonds), njit(parallel=True)(bonds)
    wanted = irad.hvp(serial)(X, V)
    np.testing.assert_allclose(irad.hvp(parallel)(X, V), wanted, rtol=1e-12)
    np.testing.assert_allclose(irad.vjp(irad.grad(parallel), X)[1](V)[0], wanted, rtol=1e-12)
    in_direction = irad.pushforward(parallel)
    rate = njit(lambda x: in_direction(x, V)[1])
    assert irad.jvp(rate, (X,), (V,))[1] == pytest.approx(V @ wanted, rel=1e-12)
    np.testing.assert_allclose(irad.grad(rate)(X), wanted, rtol=1e-12)

    slope_of_cube = irad.grad(cube)

    @njit(parallel=True)
    def with_a_derivative_in_each_iteration(x):
        total = 0.0
        for i in prange(x.size):
            total += x[i] * slope_of_cube(x[i])
        return total

    np.testing.assert_allclose(irad.grad(with_a_derivative_in_each_iteration)(X), 9.0 * X**2)
    np.testing.assert_allclose(irad.hvp(with_a_derivative_in_each_iteration)(X, V), 18.0 * X * V)


def _growing(state, rate):
    return state * (1.0 + rate) + 0.1 * np.sin(state)


def test_checkpoints():
    """In a derivative that is differentiated they are calls of their functions."""
    step = njit(_growing)
    end, loop = irad.checkpoint(njit(lambda x: (x**3).sum())), irad.checkpoint_loop(step, 5, 2)
    until_large = irad.checkpoint_while(njit(lambda state, rate: state.sum() < 30.0), step, 2)

    def checkpointed(x, rate):
        return end(until_large(loop(x, rate), rate))

    def plain(x, rate):
        for _ in range(5):
            x = step(x, rate)
        while x.sum() < 30.0:
            x = step(x, rate)
        return (x**3).sum()

    found, wanted = (irad.hvp(njit(f), (0, 1))(X, 0.3, (V, 0.5)) for f in (checkpointed, plain))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    assert found[1] == pytest.approx(wanted[1], rel=1e-12)


def test_names_and_pickles():
    product = irad.hvp(cube)
    assert repr(product) == "<irad.hvp of cube>"
    assert pickle.loads(pickle.dumps(irad.hvp(_importable)))(2.0, 1.0) == 2.0


@njit
def _importable(x):
    return x * x


@njit
def weighted_pseudo_inverse(a):
    found = np.linalg.pinv(a)
    return (found * found * np.arange(1.0, 7.0).reshape(found.shape)).sum()


along_a = irad.pushforward(weighted_pseudo_inverse)


@njit
def tangent_of_pseudo_inverse(v, a):
    return along_a(a, v)[1]


@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
def test_a_pseudo_inverse(shape):
    """Its two calls of libraries are one function only where nothing else sees what is between them."""
    a, v = np.array([1.0, 0.3, -0.7, 0.4, 1.9, 0.8]).reshape(shape), np.arange(6.0).reshape(shape) - 2.0
    wanted = _differences(weighted_pseudo_inverse, a, v, 1e-6)
    np.testing.assert_allclose(irad.hvp(weighted_pseudo_inverse)(a, v), wanted, rtol=1e-7, atol=1e-7)
    assert irad.jvp(tangent_of_pseudo_inverse, (v, a), (None, v))[1] == pytest.approx((wanted * v).sum(), rel=1e-7)


# ---------------------------------------------------------------------------------------------------- third order


@njit
def scaled_by(x, c):
    return x.copy() * np.sin(c)


copies = irad.pushforward(scaled_by)


@njit
def uses_copies(x, c):
    y = copies(x - 0.5 * x[::-1], np.array([np.sin(c), c]), np.cos(x[1]))[1]
    return (x * y).sum() + y[1]


along = irad.pushforward(uses_copies, (0, 1))


@njit
def uses_tangents_of_copies(a, b):
    return along(np.array([b, np.tanh(b)]), a, (np.array([a, np.cos(a)]), b))[1]


def test_copies_of_arrays_in_tangents_of_tangents():
    """What a copy moves is known: headers of shadows lie apart from the data."""
    columns = [irad.jvp(uses_tangents_of_copies, (0.3, 0.4), d)[1] for d in ((1.0, 0.0), (0.0, 1.0))]
    assert irad.grad(uses_tangents_of_copies, (0, 1))(0.3, 0.4) == pytest.approx(tuple(columns), rel=1e-12)


@njit
def indexed(x, c):
    t = c * c
    for _ in range(3):
        t = np.tanh(t + np.cos(c) * (x * x[::-1]).sum())
    return t + x[1]


by_indexed = irad.grad(indexed, (0, 1))


@njit
def uses_gradient(x, c):
    x[1:] += 0.5 * x[:-1] * c
    y, t = by_indexed(np.sin(x) * x, np.sin(c))
    return y[0] + t + y[1] + x[2]


by_uses_gradient = irad.grad(uses_gradient, (0, 1))


@njit
def uses_second(x, c):
    y, t = by_uses_gradient(x.copy(), c)
    return (y * x).sum() + t


def test_a_loop_saves_indices_beside_numbers():
    """In the tape of a derivative that is differentiated they lie in places that can be told apart."""
    x, v, step = X[:3] - 1.0, V[:3], 1e-6
    by_x, by_c = irad.grad(uses_second, (0, 1))(x, 0.3)
    wanted = (uses_second(x + step * v, 0.3) - uses_second(x - step * v, 0.3)) / (2.0 * step)
    assert by_x @ v == pytest.approx(wanted, rel=1e-7)
    assert by_c == pytest.approx((uses_second(x, 0.3 + step) - uses_second(x, 0.3 - step)) / (2.0 * step), rel=1e-7)
