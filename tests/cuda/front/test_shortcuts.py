"""Numba's code takes shortcuts at single points; derivatives of kernels are those of the functions there."""

from __future__ import annotations

import cmath
from functools import cache

import numpy as np
import pytest
from numba import cuda
from numba.core import types
from numba.core.errors import NumbaError

import irad
import irad.cuda
from irad import Duplicated
from irad.backend.cuda.ptx import compile_ptx
from irad.frontend.cuda.program import load_kernel
from tests.cuda.ptx.tools import needs_libdevice

# Function of z in a kernel, derivative in closed form, points at which Numba's code branches, and others.
COMPLEX = {
    "cmath.sqrt(z)": (lambda z: 0.5 / cmath.sqrt(z), [4, 4 + 0j, -4 + 0j, complex(-4, -0.0), 2j, 1 - 1j]),
    "cmath.log(z)": (lambda z: 1 / z, [1, -1, 2j, 1 - 1j]),
    "np.log2(z)": (lambda z: 1 / (z * cmath.log(2)), [1, 2j, 1 - 1j]),
    "np.log10(z)": (lambda z: 1 / (z * cmath.log(10)), [1, 2j, 1 - 1j]),
    "cmath.asin(z)": (lambda z: 1 / cmath.sqrt(1 - z * z), [0, 0.5, 0.3j, 0.5 + 0.2j]),
    "cmath.acos(z)": (lambda z: -1 / cmath.sqrt(1 - z * z), [0, 0.5, 0.3j, 0.5 + 0.2j]),
    "cmath.atan(z)": (lambda z: 1 / (1 + z * z), [0, 0.5, 0.3j, 0.5 + 0.2j]),
    "cmath.asinh(z)": (lambda z: 1 / cmath.sqrt(1 + z * z), [0, 0.5, 0.3j, 0.5 + 0.2j]),
    "cmath.acosh(z)": (lambda z: 1 / (cmath.sqrt(z - 1) * cmath.sqrt(z + 1)), [2, 0.5 + 0.2j, 2j]),
    "cmath.atanh(z)": (lambda z: 1 / (1 - z * z), [0, 0.5, 0.3j, 0.5 + 0.2j]),
    "z ** w": (lambda z: 2 * z, [0, 1, 1j, 0.5 - 0.3j]),
}


@cache
def kernel_of(expression: str):
    scope = {"np": np, "cmath": cmath, "cuda": cuda}
    exec(f"def k(x, v, y):\n    i = cuda.grid(1)\n    z, w = x[i], v[0]\n    y[i] = {expression}\n", scope)
    return cuda.jit(scope["k"])


def derivative(expression: str, points, seed, dtype=np.complex128):
    x, w, y = np.array(points, dtype), np.array([2], dtype), np.zeros(len(points), dtype)
    dx, dw = np.zeros_like(x), np.zeros_like(w)
    with irad.cuda.executor(races=True):
        given = Duplicated(x, dx), Duplicated(w, dw), Duplicated(y, np.zeros_like(y) + np.asarray(seed, dtype))
        irad.cuda.grad(kernel_of(expression))[1, len(points)](*given)
    return y, dx, dw


@pytest.mark.parametrize("expression", COMPLEX)
def test_complex_functions(expression: str):
    """irad's cotangents of complex numbers are those of both parts: seed times the conjugate of the derivative."""
    slope, points = COMPLEX[expression]
    seeds = np.repeat([1.0, 1j], len(points))
    y, dx, _ = derivative(expression, points * 2, seeds)
    wanted = [seed * slope(complex(z)).conjugate() for z, seed in zip(points * 2, seeds, strict=True)]
    np.testing.assert_allclose(dx, wanted, rtol=1e-13, atol=1e-14)
    values = [eval(expression, {"np": np, "cmath": cmath, "z": complex(z), "w": 2}) for z in points * 2]
    np.testing.assert_allclose(y, values, rtol=1e-14, atol=1e-15)


def test_the_exponent_of_a_complex_power():
    points = [0.5 - 0.3j, 1j, 2]
    _, _, dw = derivative("z ** w", points, 1.0)
    wanted = sum((z**2 * cmath.log(z)).conjugate() for z in map(complex, points))
    np.testing.assert_allclose(dw, [wanted], rtol=1e-13)


REMAINDERS = [(4.0, 2.0), (-4.0, 2.0), (0.0, 2.0), (5.0, 2.0), (-5.0, 2.0), (6.0, -3.0), (5.5, -2.0)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("expression", ["a % b", "divmod(a, b)[1]"])
def test_remainders(expression: str, dtype):
    """At multiples as beside them: 1 with respect to the number, minus the quotient with respect to the divisor."""
    scope = {"cuda": cuda}
    exec(f"def k(x, m, y):\n    i = cuda.grid(1)\n    a, b = x[i], m[i]\n    y[i] = {expression}\n", scope)
    x, m = (np.array(each, dtype) for each in zip(*REMAINDERS, strict=True))
    y, dx, dm = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    with irad.cuda.executor(races=True):
        given = Duplicated(x, dx), Duplicated(m, dm), Duplicated(y, np.ones_like(y))
        irad.cuda.grad(cuda.jit(scope["k"]))[1, len(x)](*given)
    np.testing.assert_array_equal(y, x % m)
    np.testing.assert_array_equal(dx, 1.0)
    np.testing.assert_array_equal(dm, -np.floor(x / m))


def test_single_precision():
    _, dx, _ = derivative("cmath.sqrt(z)", [4, 2j], 1.0, np.complex64)
    np.testing.assert_allclose(dx, [(0.5 / cmath.sqrt(z)).conjugate() for z in (4, 2j)], rtol=1e-6)


@needs_libdevice
@pytest.mark.parametrize("expression", ["cmath.asin(z)", "z ** w"])
def test_plain_kernels_have_nothing_of_it(expression: str):
    array = types.complex128[::1]
    text = load_kernel(kernel_of(expression), (array, array, array)).module
    ptx = compile_ptx(text)
    assert "irad_as" not in ptx.replace(".file", "")
    assert "call" not in [line.split()[0] for line in ptx.splitlines() if line.strip()]


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "sinc"])
def test_ufuncs_where_numba_has_them(name: str):
    function = getattr(np, name)
    scope = {"cuda": cuda, "f": function}
    listing = "v" if name == "sinc" else "v, v"
    exec(f"def k(x, y):\n    i = cuda.grid(1)\n    v = x[i]\n    y[i] = f({listing})\n", scope)
    x, dx, y = np.array([0.0, 0.5, 1.0]), np.zeros(3), np.zeros(3)
    try:
        load_kernel(cuda.jit(scope["k"]), (types.float64[::1],) * 2)
    except (NumbaError, KeyError) as error:  # the latter in numba-cuda, where only their types are known
        pytest.skip(f"Numba does not have it in kernels: {type(error).__name__}")
    with irad.cuda.executor():
        irad.cuda.grad(cuda.jit(scope["k"]))[1, 3](Duplicated(x, dx), Duplicated(y, np.ones(3)))
    t = np.pi * np.where(x == 0, 1, x)
    wanted = (
        np.where(x == 0, 0.0, (np.cos(t) - np.sin(t) / t) / np.where(x == 0, 1, x)) if name == "sinc" else np.ones(3)
    )
    np.testing.assert_allclose(dx, wanted, rtol=1e-12, atol=1e-15)
