"""Complex numbers: differentiated arguments and results, cmath, ufuncs, powers, views, containers."""

from __future__ import annotations

import cmath
import math
from collections import namedtuple

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests

Z, W = 0.75 + 0.5j, -1.25 + 0.625j
SINGLE = {"rtol": 1e-3}
Wave = namedtuple("Wave", ["amplitude", "phase"])
SAMPLE = np.dtype([("tag", np.int8), ("z", np.complex128), ("w", np.complex64), ("x", np.float64)])


def numbers(count: int, dtype: type = np.complex128, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng((seed, count))
    return (rng.uniform(0.5, 1.5, count) * np.exp(1j * rng.uniform(-2.5, 2.5, count))).astype(dtype)


def matrix(*shape: int, dtype: type = np.complex128, seed: int = 0) -> np.ndarray:
    return numbers(math.prod(shape), dtype, seed).reshape(shape)


def samples() -> np.ndarray:
    found = np.zeros(3, SAMPLE)
    found["tag"], found["x"] = 7, (0.5, 1.5, -1.0)
    found["z"], found["w"] = numbers(3), numbers(3, np.complex64, 1)
    return found


# ------------------------------------------------------------------------------------------------ arithmetic, results


@PROGRAMS.at(Z, W)
@PROGRAMS.at(np.complex64(Z), np.complex64(W))
@njit
def arithmetic(z, w):
    a = z * w + z / w - w
    b = (a - 2.0) * (1j - z) / 3.0
    return b.real * b.imag + (-b).real


@PROGRAMS.at(Z)
@njit
def complex_result(z):
    return z * z * 1j


@PROGRAMS.at(Z, numbers(3))
@njit
def several_complex_results(z, a):
    return z * a[0], a * z, (abs(z), 3, np.conj(a[1:]))


@PROGRAMS.at(Z, 1.5)
@PROGRAMS.at(Z, np.float32(1.5))
@njit
def mixed_with_floats(z, x):
    w = z * x + x / z + x**z
    return abs(w * complex(x, -x)) ** 2


@PROGRAMS.at(Z, (W, 0.5, numbers(2)), Wave(Z, 0.25))
@njit
def in_tuples(z, t, wave):
    s = t[0] * t[2][0] + wave.amplitude * cmath.exp(1j * wave.phase) * t[2][1]
    return (s * z).real * t[1]


@PROGRAMS.at(samples())
@njit
def in_records(r):
    s = 0.0
    for i in range(r.size):
        v = r[i].z * r[i].w + r[i].x
        s += v.real * v.imag
    return s


@PROGRAMS.at(Z, 0.75)
@PROGRAMS.at(Z, 2.75)
@njit
def branches(z, x):
    if z != W and z.real > x - 1 and not z == 0:
        return abs(z * x)
    return (z * z).imag * x


@PROGRAMS.at(Z, 5)
@PROGRAMS.at(Z, 0)
@njit
def iteration(z, n):
    w = 0.1j
    for _ in range(n):
        w = w * w + z / 2
    return abs(w)


# ------------------------------------------------------------------------------------------------ functions


FUNCTIONS = {
    "exp": cmath.exp,
    "log": cmath.log,
    "log10": cmath.log10,
    "sqrt": cmath.sqrt,
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": cmath.atan,
    "asinh": cmath.asinh,
    "acosh": cmath.acosh,
    "atanh": cmath.atanh,
    "numpy.exp2": np.exp2,
    "numpy.expm1": np.expm1,
    "numpy.log2": np.log2,
    "numpy.log1p": np.log1p,
    "numpy.square": np.square,
    "numpy.reciprocal": np.reciprocal,
    "numpy.conj": np.conj,
    "numpy.sign": np.sign,
}


def _make(function):
    @njit
    def applied(z):
        return function(z)

    return applied


for _name, _function in FUNCTIONS.items():
    _program = _make(_function)
    _program.py_func.__name__ = _name
    _program.__name__ = _name
    for _point in (Z, W, 0.3 - 1.5j):  # in three quadrants
        PROGRAMS.at(_point)(_program)


@PROGRAMS.at(Z)
@PROGRAMS.at(W)
@PROGRAMS.at(np.complex64(W))
@njit
def parts(z):
    return (
        abs(z) * cmath.phase(z) + z.conjugate().imag * z.real + np.angle(z) ** 2 + np.abs(z) + np.real(z) * np.imag(z)
    )


@PROGRAMS.at(1.5, 0.75)
@njit
def polar_and_back(r, phi):
    z = cmath.rect(r, phi)
    radius, angle = cmath.polar(z * z + 1)
    return radius * angle + math.hypot(z.real, z.imag)


@PROGRAMS.at(Z)
@njit
def predicates(z):
    if cmath.isfinite(z) and not cmath.isnan(z) and not np.isinf(z):
        return abs(z)
    return 0.0


# ------------------------------------------------------------------------------------------------ powers


@PROGRAMS.at(Z)
@PROGRAMS.at(np.complex64(Z), **SINGLE)
@njit
def constant_powers(z):
    return z**2, z**3, z**-1, z**0, z**0.5, z**2.5, z ** (1 + 0.5j)


@PROGRAMS.at(Z, 3)
@PROGRAMS.at(Z, -2)
@PROGRAMS.at(Z, 0)
@njit
def integer_powers(z, n):
    return z**n


@PROGRAMS.at(Z, 1.5, W)
@njit
def active_exponents(z, x, w):
    return z**x, z**w, x**w, np.power(z, w)


# ------------------------------------------------------------------------------------------------ arrays


@MORE.at(numbers(4), numbers(4, seed=1))
@MORE.at(numbers(4, np.complex64), numbers(4, np.complex64, 1), **SINGLE)
@njit
def array_expressions(a, b):
    c = np.exp(a) * np.conj(b) + a / b - a**2
    return np.sum(np.abs(c)) + np.sum(np.angle(c) * c.real) + np.sum(np.imag(a) ** 2 * np.real(b))


@PROGRAMS.at(numbers(5))
@njit
def reductions(a):
    return np.sum(a), np.prod(a), np.mean(a), np.cumsum(a)[2]


@PROGRAMS.at(numbers(4), 1.5)
@njit
def views_of_parts(a, x):
    real, imag = a.real, a.imag
    s = 0.0
    for i in range(a.size):
        s += real[i] * imag[i] * x
    return s


@PROGRAMS.at(numbers(4))
@njit
def parts_written(a):
    real, imag = a.real, a.imag
    for i in range(1, a.size):
        real[i] = imag[i - 1] * real[i]
    imag[0] = 2.0
    s = 0j
    for z in a:
        s += z * z * z.conjugate()
    return s.real


@PROGRAMS.at(numbers(4))
@njit
def seen_as_floats(a):
    v = a.view(np.float64)
    return np.sum(v * v * v)


@PROGRAMS.at(numbers(6))
@njit
def written_in_place(a):
    for i in range(1, a.size):
        a[i] *= a[i - 1]
    a[0] = 1j
    return np.abs(a[-1]) + a[2].imag


@PROGRAMS.at(matrix(4, 6)[:, ::2])
@PROGRAMS.at(matrix(4, 3).T)
@PROGRAMS.at(np.zeros((0, 3), complex))
@njit
def strided(a):
    s = 0j
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] * a[i, 0] * (i + 1j)
    return abs(s + 1) ** 2


@PROGRAMS.at(numbers(4), Z)
@njit
def filled_and_stacked(a, z):
    b = np.full(4, z)
    c = np.concatenate((a, b))
    c[1] += c[6]
    return abs(c[1] * c[3]) + c[5].imag


@PROGRAMS.at(numbers(4))
@njit
def lists_of_numbers(a):
    items = [z * z for z in a]
    items.append(items[0] * a[1])
    s = 0j
    for z in items:
        s += z
    return abs(s)


# ------------------------------------------------------------------------------------------------ products


@PROGRAMS.at(matrix(3, 2), matrix(2, 4, seed=1), numbers(4))
@njit
def matrix_products(a, b, v):
    c = a @ b
    d = np.dot(c, v)
    e = d @ a
    return abs(np.dot(e, e)) + np.vdot(d, c[:, 0].copy()).imag * np.linalg.norm(e)


@PROGRAMS.at(matrix(3, 3))
@njit
def product_with_itself(a):
    b = a
    for _ in range(3):
        b = b @ a
    return np.trace(b).imag


@PROGRAMS.at(matrix(2, 2), np.array([[0.5, 1.5], [2.0, -1.0]]))
@njit
def product_with_reals(a, x):
    out = np.empty_like(a)
    np.dot(a, x * (1.0 + 0.0j), out)
    return abs(out[0, 1]) + out[1, 0].imag


@PROGRAMS.at(numbers(3), np.array([0.5, 1.5, 2.5]))
@njit
def from_parts(a, x):
    z = x + 1j * x[::-1]
    z[0] = a[0]
    return np.sum(z * a).imag


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case):
    case.check()


def test_single_precision_seen_as_floats():
    """Finite differences would promote the array and not the view."""

    def cubes(a):
        v = a.view(np.float32)
        return np.sum(v * v * v)

    a = numbers(4, np.complex64)
    found = irad.grad(cubes)(a)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, 3 * (a.real**2 + 1j * a.imag**2), rtol=1e-5)
