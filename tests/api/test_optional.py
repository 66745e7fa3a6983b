"""Arguments that may be None: a number, or none, in the compiled function's own signature."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import irad

SIGNATURES = ["float64(optional(float64), float64)", "float64(optional(complex128), float64)"]


@pytest.fixture(scope="module", params=SIGNATURES, ids=["float", "complex"])
def scaled(request):
    @numba.njit(request.param)
    def scaled(a, x):
        if a is None:
            return x * x
        return (a * a * x).real

    return scaled


def test_a_number(scaled):
    assert irad.grad(scaled, (0, 1))(2.0, 3.0) == (12.0, 4.0)
    value, pullback = irad.vjp(scaled, 2.0, 3.0)
    assert (value, pullback(0.5)) == (12.0, (6.0, 2.0))
    assert irad.autodiff(irad.Reverse, scaled, irad.Active(2.0), irad.Active(3.0)) == (12.0, 4.0)


def test_none(scaled):
    assert irad.grad(scaled, (0, 1))(None, 3.0) == (None, 6.0)
    assert irad.value_and_grad(scaled)(None, 3.0) == (9.0, None)
    assert irad.vjp(scaled, None, 3.0)[1](0.5) == (None, 3.0)


def test_a_complex_number():
    @numba.njit(SIGNATURES[1])
    def f(a, x):
        return x if a is None else (a * x).imag

    assert irad.grad(f)(1 + 2j, 3.0) == 3j
    assert irad.grad(f)(2.0, 3.0) == 0.0


def test_from_compiled_code(scaled):
    gradient = irad.grad(scaled, (0, 1))

    @numba.njit
    def caller(a, x):
        given = None if x > 5 else a
        by_a, by_x = gradient(given, x)
        return (-1.0 if by_a is None else by_a), by_x

    assert caller(2.0, 3.0) == (12.0, 4.0)
    assert caller(2.0, 6.0) == (-1.0, 12.0)


def test_none_for_a_plain_parameter():
    @numba.njit
    def f(a, x):
        return x if a is None else a * x

    with pytest.raises(irad.SignatureError, match=r"argument 0 \(a\)"):
        irad.grad(f)(None, 1.0)
    assert irad.grad(f, 1)(None, 1.0) == 1.0


def test_single_precision():
    @numba.njit("float32(optional(float32))")
    def f(a):
        return np.float32(0) if a is None else a * a

    found = irad.grad(f)(np.float32(1.5))
    assert (found, type(found)) == (3.0, np.float32)
