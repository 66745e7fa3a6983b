"""Complex arguments and results, and gradients in single precision, through every public function."""

from __future__ import annotations

from collections import namedtuple

import numba
import numpy as np
import pytest

import irad

Pair = namedtuple("Pair", "a b")
DTYPES = [np.complex64, np.complex128]
POINT = 1.5 - 0.5j


@numba.njit
def energy(z, w):
    """The derivative of Re(z · w) with respect to z is conj(w)."""
    return (z * w).real


@numba.njit
def square(z):
    return z * z


@numba.njit
def scale_in_place(a, z):
    for i in range(a.size):
        a[i] *= z


def python_type(dtype):
    return np.complex64 if dtype is np.complex64 else complex


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_is_by_real_plus_i_times_by_imaginary_part(dtype):
    z, w = dtype(POINT), dtype(2 + 1j)
    gradients = irad.grad(energy, (0, 1))(z, w)
    assert gradients == (w.conjugate(), z.conjugate())
    assert {type(g) for g in gradients} == {python_type(dtype)}


def test_gradient_of_the_square_of_the_modulus():
    gradient = irad.grad(lambda z: z.real**2 + z.imag**2)
    assert gradient(POINT) == 2 * POINT, "the direction of steepest ascent"


def test_a_complex_result_needs_a_cotangent():
    with pytest.raises(irad.SignatureError, match="complex128") as caught:
        irad.grad(square)(POINT)
    assert "irad.vjp" in caught.value.remedy
    with pytest.raises(irad.SignatureError, match="complex128"):
        irad.autodiff(irad.Reverse, square, irad.Active(POINT))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", [1, 2.0, 1j, 0.5 - 2j, np.complex64(1j)])
def test_cotangent_of_a_complex_result(dtype, seed):
    """Re(conj(cotangent) · dz) is paired, so a holomorphic f gives cotangent · conj(f')."""
    value, pullback = irad.vjp(square, dtype(POINT))
    assert value == dtype(POINT) ** 2
    [found] = pullback(seed)
    assert found == seed * np.conj(2 * POINT)
    assert type(found) is python_type(dtype)
    [[again]] = [irad.autodiff(irad.Reverse, square, irad.Active(dtype(POINT)), seed=seed)]
    assert again == found
    assert type(again) is python_type(dtype)


def test_a_complex_cotangent_of_a_float_is_refused():
    _, pullback = irad.vjp(energy, POINT, POINT)
    with pytest.raises(irad.SignatureError, match="a float"):
        pullback(1j)


def test_a_real_argument_of_a_complex_function_has_a_real_gradient():
    @numba.njit("complex128(complex128, complex128)")
    def product(z, w):
        return z * w

    _, pullback = irad.vjp(product, 2.0, 1j)
    by_z, by_w = pullback(3.0 + 1j)
    assert (by_z, by_w) == (1.0, 6.0 + 2j)
    assert isinstance(by_z, float)


def test_shadows():
    a, da = np.array([1 + 1j, 2.0]), np.array([1.0, 1j])
    [_, by_z] = irad.autodiff(irad.Reverse, scale_in_place, irad.Duplicated(a, da), irad.Active(2 + 1j), seed=None)
    np.testing.assert_array_equal(a, [1 + 3j, 4 + 2j])
    np.testing.assert_array_equal(da, [2 - 1j, 1j * (2 - 1j)])
    assert by_z == np.conj(1 + 1j) + 2j


@pytest.mark.parametrize("dtype", DTYPES)
def test_into(dtype):
    @numba.njit
    def f(z, t):
        return energy(z, t[0]) + np.sum(t[1] * t[1]).imag

    z, t = dtype(POINT), (dtype(1j), np.array([1, 1j], dtype))
    out = np.ones(1, dtype), (np.ones(1, dtype), np.ones(2, dtype))
    value = irad.value_and_grad_into(f, (0, 1))(out, z, t)
    assert value == f(z, t)
    assert out[0][0] == -1j
    assert out[1][0][0] == np.conj(POINT)
    np.testing.assert_array_equal(out[1][1], [2j, 2])
    with pytest.raises(irad.SignatureError, match="one complex"):
        irad.value_and_grad_into(f)(np.ones(1), z, t)


def test_from_compiled_code():
    gradient = irad.grad(energy)

    @numba.njit
    def descend(z, steps):
        for _ in range(steps):
            z = z - 0.5 * gradient(z, z)
        return z

    assert descend(1 + 1j, 1) == 0.5 + 1.5j


# ------------------------------------------------------------------------------------------------ single precision


def test_single_precision_stays_single_where_python_sees_it():
    @numba.njit
    def f(x, z, pair, pairs):
        return x * pair.b * pairs[0] * pairs[1] + (z * pair.a).real

    x, z = np.float32(1.5), np.complex64(1 + 2j)
    pair, pairs = Pair(np.float32(2), 3.0), (np.float32(1), np.float32(2))
    expected = (np.float32, np.complex64, (np.float32, float), (np.float32, np.float32))

    def types_of(found):
        return tuple(map(types_of, found)) if isinstance(found, tuple) else type(found)

    arguments, positions = (x, z, pair, pairs), (0, 1, 2, 3)
    assert types_of(irad.grad(f, positions)(*arguments)) == expected
    value, gradients = irad.value_and_grad(f, positions)(*arguments)
    assert types_of(gradients) == expected
    assert type(value) is type(f(*arguments)), "the value is what the plain call gives"
    assert isinstance(gradients[2], Pair)
    assert types_of(irad.vjp(f, *arguments)[1](1.0)) == expected
    assert types_of(irad.autodiff(irad.Reverse, f, *map(irad.Active, arguments))) == expected
    gradients, value = irad.autodiff(irad.ReverseWithPrimal, f, *map(irad.Active, arguments))
    assert types_of(gradients) == expected
    assert type(value) is float


def test_single_precision_beside_an_auxiliary_value():
    @numba.njit
    def f(x):
        return x * x, x

    gradient, aux = irad.grad(f, has_aux=True)(np.float32(1.5))
    assert (gradient, type(gradient)) == (3.0, np.float32)
    assert type(aux) is float


def test_single_precision_in_a_homogeneous_named_tuple():
    gradient = irad.grad(lambda p: p.a * p.b)(Pair(np.float32(2), np.float32(3)))
    assert gradient == Pair(3, 2)
    assert {type(g) for g in gradient} == {np.float32}


def test_compiled_callers_see_the_number():
    gradient = irad.grad(lambda x: x * x)

    @numba.njit
    def twice(x):
        return gradient(x) * np.float32(2)

    assert twice(np.float32(1.5)) == 6.0
    [signature] = twice.nopython_signatures
    assert signature.return_type == numba.float32
