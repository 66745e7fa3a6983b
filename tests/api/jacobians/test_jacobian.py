"""`irad.jacobian` against closed forms: each mode, shape, type and convention."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import njit
from numba.experimental import jitclass
from numba.typed import List

import irad

MODES = ({"mode": "forward", "chunk": 2}, {"mode": "reverse", "chunk": 2})
each_mode = pytest.mark.parametrize("how", MODES, ids=["forward", "reverse"])
X = np.array([1.0, 2.0, 3.0])
Z = np.array([1.0 + 2.0j, -0.5j])


class Model(NamedTuple):
    scale: float
    weights: np.ndarray


@njit
def scaled_sines(x):
    return np.sin(x) * x[0]


@njit
def several(x, t, n):
    return x.sum() * t, n, np.outer(x, x) * t


@njit
def product(x, y):
    return x * y, x


@njit
def first_from_others(x):
    x[0] = x[1] * x[2]
    x[2] = 5.0 * x[0]


FIRST_FROM_OTHERS = [[0.0, 3.0, 2.0], [0.0, 1.0, 0.0], [0.0, 15.0, 10.0]]


@each_mode
def test_arrays(how):
    expected = np.diag(np.cos(X) * X[0])
    expected[:, 0] += np.sin(X)
    derivative = irad.jacobian(scaled_sines, **how)
    np.testing.assert_allclose(derivative(X), expected, rtol=1e-15)
    assert repr(derivative) == "<irad.jacobian of scaled_sines>"
    assert irad.jacobian(scaled_sines, **how) is derivative


def test_columns_are_computed_in_chunks():
    x = np.linspace(1.0, 2.0, 17)
    expected = irad.jacobian(scaled_sines, mode="reverse")(x)
    for chunk in (1, 3):
        found = irad.jacobian(scaled_sines, mode="forward", chunk=chunk)(x)
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@each_mode
def test_tuples_numbers_and_several_arguments(how):
    value, found = irad.value_and_jacobian(several, (0, 1), **how)(X, 2.0, 7)
    assert value[:2] == (12.0, 7)
    (by_x, by_t), nothing, (matrix_by_x, matrix_by_t) = found
    np.testing.assert_array_equal(by_x, [2.0, 2.0, 2.0])
    assert (by_t, nothing) == (6.0, None)
    unit = np.eye(3)
    expected = 2.0 * (np.einsum("ik,j->ijk", unit, X) + np.einsum("i,jk->ijk", X, unit))
    np.testing.assert_array_equal(matrix_by_x, expected)
    np.testing.assert_array_equal(matrix_by_t, np.outer(X, X))


@each_mode
def test_numbers_in_single_precision(how):
    found = irad.jacobian(product, (0, 1), **how)(np.float32(2.0), np.float32(3.0))
    assert found == ((3.0, 2.0), (1.0, 0.0))
    assert {type(each) for row in found for each in row} == {np.float32}


@each_mode
def test_dtypes_are_those_of_arithmetic_and_any_strides_will_do(how):
    @njit
    def mixed(x, y):
        return x.T * y[0], x

    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)[::2, ::-1]
    by_x, by_y = irad.jacobian(mixed, (0, 1), **how)(x, np.array([2.0]))[0]
    assert (by_x.dtype, by_y.dtype, by_x.shape, by_y.shape) == (np.float64, np.float64, (4, 2, 2, 4), (4, 2, 1))
    np.testing.assert_array_equal(by_x, 2.0 * np.einsum("bi,ak->abik", np.eye(2), np.eye(4)))
    np.testing.assert_array_equal(by_y[:, :, 0], x.T)


@each_mode
def test_tuples_among_the_arguments(how):
    @njit
    def linear(model, x):
        return model.scale * model.weights * x

    found = irad.jacobian(linear, **how)(Model(3.0, X), 2.0)
    np.testing.assert_array_equal(found.scale, 2.0 * X)
    np.testing.assert_array_equal(found.weights, 6.0 * np.eye(3))


def test_no_dimensions_and_no_elements():
    @njit
    def cubes(x, y):
        return x**3, np.zeros((0, 2)) * x.sum(), y

    for how in MODES:
        found = irad.jacobian(cubes, (0, 1), **how)(np.array(2.0), np.zeros((2, 0)))
        shapes = [[each.shape for each in row] for row in found]
        assert shapes == [[(), (2, 0)], [(0, 2), (0, 2, 2, 0)], [(2, 0), (2, 0, 2, 0)]]
        assert found[0][0] == 12.0


# ------------------------------------------------------------------------------------------------ in place


@each_mode
def test_results_in_an_argument(how):
    @njit
    def differences(out, x):
        for i in range(out.size):
            out[i] = x[i + 1] ** 2 - x[i]
        return 0

    out = np.full(2, np.nan)
    found = irad.jacobian(differences, argnums=1, outputs=0, **how)(out, X)
    np.testing.assert_array_equal(found, [[-1.0, 4.0, 0.0], [0.0, -1.0, 6.0]])
    np.testing.assert_array_equal(out, [3.0, 7.0])


@each_mode
@pytest.mark.parametrize("step", [1, -2])
def test_an_argument_that_is_overwritten(how, step):
    memory = np.zeros(6)
    x = memory[::step][:3]
    x[:] = X
    value, found = irad.value_and_jacobian(first_from_others, outputs=(0,), **how)(x)
    np.testing.assert_array_equal(found[0], FIRST_FROM_OTHERS)
    for after in (x, value[0]):  # every column starts with the same content; in the end it is that of a plain call
        np.testing.assert_array_equal(after, [6.0, 2.0, 30.0])


@each_mode
def test_workspace(how):
    @njit
    def through(x, work):
        for i in range(x.size):
            work[i] = x[i] * work[i]
        return work[1:] * x[0]

    work = np.ones(3)
    found = irad.jacobian(through, **how)(X, work)
    np.testing.assert_array_equal(found, [[2.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    np.testing.assert_array_equal(work, X)


@each_mode
def test_a_jacobian_in_arrays_of_the_caller(how):
    @njit
    def results(x, t):
        return x * x[0] * t, t * t * x[1]

    derivative = irad.value_and_jacobian_into(results, (0, 1), **how)
    backwards = np.full((3, 3), np.nan)[::-1]
    out = ((backwards, np.full(3, np.nan)), (np.full(3, np.nan), np.full(1, np.nan)))
    _, expected = irad.value_and_jacobian(results, (0, 1), **how)(X, 2.0)
    value = derivative(out, X, 2.0)
    np.testing.assert_array_equal(value[0], 2.0 * X)
    for found, wanted in zip(out, expected, strict=True):
        for mine, its in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(mine, np.reshape(its, mine.shape))
    shared, shape = (out[0], (X, out[1][1])), ((out[0][0], np.empty(4)), out[1])
    for given, message in (
        (shared, "shares memory"),
        (shape, "another shape"),
        (out[0], "written to"),
        (0.0, "nothing"),
    ):
        with pytest.raises(irad.SignatureError, match=message):
            derivative(given, X, 2.0)


def test_the_choice_of_mode_writes_to_arrays_as_well():
    @njit
    def sums(x, n):
        y = np.zeros(n)
        for i in range(x.size):
            y[i % n] += x[i] ** 2
        return y

    derivative = irad.value_and_jacobian_into(sums, chunk=1)

    @njit
    def compiled(out, x, n):
        return irad.value_and_jacobian_into(sums, chunk=1)(out, x, n)

    for n in (2, 4):
        found, inside = np.full((n, 3), np.nan), np.full((n, 3), np.nan)
        np.testing.assert_array_equal(derivative(found, X, n), sums(X, n))
        np.testing.assert_array_equal(compiled(inside, X, n), sums(X, n))
        for each in (found, inside):
            np.testing.assert_array_equal(each, irad.jacobian(sums, mode="reverse")(X, n))


# ------------------------------------------------------------------------------------------------ the choice of mode


def test_the_mode_is_chosen_by_shape():
    runs = []

    @njit
    def sums(x, n):
        with_blocks = np.zeros(n)
        for i in range(x.size):
            with_blocks[i % n] += x[i] ** 2
        return with_blocks

    derivative = irad.jacobian(sums, chunk=1)
    for n in (1, 2, 3, 4):
        expected = np.zeros((n, 3))
        for i in range(3):
            expected[i % n, i] = 2.0 * X[i]
        np.testing.assert_array_equal(derivative(X, n), expected)
        runs.append(bool(derivative.lazy[1].signatures))
    assert runs == [True, True, True, True]
    tall = irad.jacobian(scaled_sines, chunk=1)
    tall(X)
    assert not tall.lazy[1].signatures  # reverse mode was not compiled


def test_side_effects_happen_once():
    @njit
    def noisy(x, draws):
        draws.append(x[0])
        return x * np.random.normal(0.0, 1.0) + draws[0]

    draws = List([1.0])
    found = irad.jacobian(noisy)(X, draws)
    noise = found[1, 1]
    np.testing.assert_array_equal(found, noise * np.eye(3))
    assert list(draws) == [1.0, 1.0]
    with pytest.raises(irad.UnsupportedError, match=r"(?s)has side effects.*mode=.reverse"):
        irad.jacobian(noisy, mode="forward")(X, draws)

    @njit
    def generated(x, rng):
        return x * rng.normal()

    found = irad.jacobian(generated)(X, np.random.default_rng(1))
    np.testing.assert_array_equal(found, np.random.default_rng(1).normal() * np.eye(3))


# ------------------------------------------------------------------------------------------------ complex numbers


@each_mode
def test_holomorphic_functions(how):
    @njit
    def powers(z, t):
        return z * z * t, np.exp(z[0]) * z[1]

    by_z, by_t = irad.jacobian(powers, (0, 1), **how, holomorphic=True)(Z, 3.0)[0]
    np.testing.assert_allclose(by_z, np.diag(6.0 * Z), rtol=1e-15)
    np.testing.assert_allclose(by_t, Z * Z, rtol=1e-15)
    last = irad.jacobian(powers, **how, holomorphic=True)(Z, 3.0)[1]
    np.testing.assert_allclose(last, [np.exp(Z[0]) * Z[1], np.exp(Z[0])], rtol=1e-15)

    @njit
    def square(z):
        return z * z

    found = irad.jacobian(square, **how, holomorphic=True)(np.complex64(1.0 + 2.0j))
    assert (found, type(found)) == (2.0 + 4.0j, np.complex64)


@each_mode
def test_other_complex_functions(how):
    @njit
    def mixed(z):
        return z * z * np.conj(z), abs(z[0]) ** 2, z[1] * np.conj(z[0])

    (by_z, by_conjugate), real, (last_by_z, last_by_conjugate) = irad.jacobian(mixed, **how, holomorphic=False)(Z)
    np.testing.assert_allclose(by_z, np.diag(2.0 * abs(Z) ** 2), rtol=1e-15)
    np.testing.assert_allclose(by_conjugate, np.diag(Z * Z), rtol=1e-15)
    np.testing.assert_allclose(real, [2.0 * Z[0], 0.0], rtol=1e-15)
    np.testing.assert_allclose(last_by_z, [0.0, np.conj(Z[0])], rtol=1e-15)
    np.testing.assert_allclose(last_by_conjugate, [Z[1], 0.0], rtol=1e-15)


@each_mode
def test_where_one_side_is_real_there_is_one_convention(how):
    @njit
    def phases(t):
        return np.exp(1j * t)

    @njit
    def squares(z):
        return z.real**2 + z.imag**2 * 3.0

    np.testing.assert_allclose(irad.jacobian(phases, **how)(X), np.diag(1j * np.exp(1j * X)), rtol=1e-15)
    found = irad.jacobian(squares, **how)(Z)
    np.testing.assert_allclose(found, np.diag(2.0 * Z.real + 6.0j * Z.imag), rtol=1e-15)


def test_a_complex_function_of_complex_numbers_needs_a_convention():
    @njit
    def square(z):
        return z * z

    @njit
    def real_part(z):
        return z.real

    with pytest.raises(irad.SignatureError, match=r"(?s)holomorphic=True.*holomorphic=False"):
        irad.jacobian(square)(Z)
    with pytest.raises(irad.SignatureError, match="returns a real number"):
        irad.jacobian(real_part, holomorphic=True)(Z)


# ------------------------------------------------------------------------------------------------ where it is called


def test_in_compiled_code():
    derivative = irad.jacobian(scaled_sines, mode="forward", chunk=2)

    @njit
    def both(x):
        written = irad.jacobian(scaled_sines, mode="reverse")(x)
        value, in_place = irad.value_and_jacobian(first_from_others, mode="reverse", outputs=(0,))(x.copy())
        return derivative(x), written, value[0], in_place[0], irad.jacobian(product, (0, 1))(2.0, 3.0)

    known, written, value, in_place, numbers = both(X)
    np.testing.assert_allclose(known, written, rtol=1e-15)
    np.testing.assert_array_equal(known, irad.jacobian(scaled_sines, mode="forward", chunk=2)(X))
    np.testing.assert_array_equal(value, [6.0, 2.0, 30.0])
    np.testing.assert_array_equal(in_place, FIRST_FROM_OTHERS)
    assert numbers == ((3.0, 2.0), (1.0, 0.0))


def test_methods_keywords_and_star_arguments():
    @jitclass([("rate", numba.float64)])
    class Decay:
        def __init__(self, rate):
            self.rate = rate

        def at(self, t):
            return np.exp(-self.rate * t)

    np.testing.assert_allclose(irad.jacobian(Decay(2.0).at, chunk=1)(X), np.diag(-2.0 * np.exp(-2.0 * X)), rtol=1e-15)

    @njit
    def weighted(x, weight=2.0, *more):
        return x * weight * more[1]

    for how in MODES:
        by_x, by_last = irad.jacobian(weighted, (0, 3), **how)(X, 2.0, 1.0, 3.0)
        np.testing.assert_array_equal(by_x, 6.0 * np.eye(3))
        np.testing.assert_array_equal(by_last, 2.0 * X)

    @njit
    def scaled(x, weight=2.0):
        return x * weight

    np.testing.assert_array_equal(irad.jacobian(scaled, chunk=1)(X), 2.0 * np.eye(3))
    np.testing.assert_array_equal(irad.jacobian(scaled, chunk=1)(weight=3.0, x=X), 3.0 * np.eye(3))


def test_an_exception_leaves_nothing_behind():
    @njit
    def checked(x):
        if x[0] > 1.0:
            raise ValueError("too large")
        return x * 2.0

    for how in MODES:
        with pytest.raises(ValueError, match="too large"):
            irad.jacobian(checked, **how)(X + 1.0)
        np.testing.assert_array_equal(irad.jacobian(checked, **how)(X), 2.0 * np.eye(3))


@pytest.mark.parametrize(
    ("keywords", "args", "message"),
    [
        ({"mode": "sideways"}, (X, 1.0, 1), "not a mode"),
        ({"chunk": 0}, (X, 1.0, 1), "not a number of columns"),
        ({"argnums": 2}, (X, 1.0, 1), "no derivative"),
        ({"argnums": 3}, (X, 1.0, 1), "has 3 parameters"),
        ({"outputs": 4}, (X, 1.0, 1), "has 3 parameters"),
        ({"outputs": 1}, (X, 1.0, 1), "outputs=1 names argument 1 (.*) of several, which is a float64"),
        ({"options": 1}, (X, 1.0, 1), "not an irad.Options"),
    ],
)
def test_what_does_not_fit(keywords, args, message):
    with pytest.raises(irad.SignatureError, match=message):
        irad.jacobian(several, **keywords)(*args)


def test_results_without_derivatives():
    @njit
    def counted(x):
        return x.size

    @njit
    def listed(x):
        return [x[0], x[1]]

    with pytest.raises(irad.SignatureError, match=r"(?s)returns nothing.*outputs=0"):
        irad.jacobian(first_from_others)(X)
    with pytest.raises(irad.SignatureError, match="an int64, which has no derivative"):
        irad.jacobian(counted)(X)
    with pytest.raises(irad.UnsupportedError, match="cannot be an entry of a Jacobian"):
        irad.jacobian(listed)(X)
