"""BLAS and LAPACK reached by address, as programs do it: by exports of SciPy, and by symbols of a loaded library."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import njit, types
from numba.extending import get_cython_function_address

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


def exported(name: str, count: int, result: Any = None, module: str = "cython_blas") -> Any:
    """A function pointer as users make it."""
    address = get_cython_function_address(f"scipy.linalg.{module}", name)
    return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * count)(address)


ddot, dnrm2, dgemm = exported("ddot", 5, ctypes.c_double), exported("dnrm2", 3, ctypes.c_double), exported("dgemm", 13)
daxpy, dswap, dtrsm = exported("daxpy", 6), exported("dswap", 5), exported("dtrsm", 11)


dgetrf, dgetrs = exported("dgetrf", 6, module="cython_lapack"), exported("dgetrs", 9, module="cython_lapack")


@njit
def whole(value):
    return np.array([value], np.int32)


@njit
def letter(text):
    return np.array([ord(text)], np.uint8)


@njit
def product(a, b):
    """Of matrices in C order: the product of their transposes, the other way round."""
    (m, k), n = a.shape, b.shape[1]
    c, one, nothing = np.full((m, n), np.nan), np.array([1.0]), np.array([0.0])
    plain, sizes = letter("n"), np.array([n, m, k], np.int32)
    dgemm(
        plain.ctypes, plain.ctypes, sizes.ctypes, sizes[1:].ctypes, sizes[2:].ctypes, one.ctypes,
        b.ctypes, sizes.ctypes, a.ctypes, sizes[2:].ctypes, nothing.ctypes, c.ctypes, sizes.ctypes,
    )  # fmt: skip
    return c


@PROGRAMS.at(floats(3, 2), floats(2, 4))
@PROGRAMS.at(floats(1, 1), floats(1, 1))
@njit
def network(a, b):
    c = np.tanh(product(a, b))
    return product(c.T.copy(), a), c


@PROGRAMS.at(floats(5), floats(5), 1.5)
@njit
def steps_in_a_loop(x, y, rate):
    """Sizes and letters change in memory that is used again, and alpha depends on what was computed."""
    n, augmented, backward, alpha = whole(0), whole(1), whole(-1), np.array([rate])
    total = 0.0
    for i in range(1, 6):
        n[0] = i
        daxpy(n.ctypes, alpha.ctypes, x.ctypes, backward.ctypes, y.ctypes, augmented.ctypes)
        alpha[0] = 0.1 * ddot(n.ctypes, x.ctypes, augmented.ctypes, y.ctypes, augmented.ctypes)
        total += dnrm2(n.ctypes, y.ctypes, augmented.ctypes) * alpha[0]
    return total


@PROGRAMS.at(floats(3, 3) + 2.0 * np.eye(3), floats(3, 2))
@njit
def triangular_system(a, b):
    sizes, one, x = np.array([3, 2], np.int32), np.array([1.0]), b.T.copy()
    left, lower, transposed, plain = letter("l"), letter("u"), letter("t"), letter("n")
    dtrsm(
        left.ctypes, lower.ctypes, transposed.ctypes, plain.ctypes, sizes.ctypes, sizes[1:].ctypes, one.ctypes,
        a.ctypes, sizes.ctypes, x.ctypes, sizes.ctypes,
    )  # fmt: skip
    a[:] = 0.0
    return x


@PROGRAMS.at(floats(3, 3), floats(3))
@njit
def factorise_once_and_solve_often(a, b):
    factors, x = a.T.copy(), b.copy()
    n, one, pivots, info = whole(3), whole(1), np.zeros(3, np.int32), whole(0)
    dgetrf(n.ctypes, n.ctypes, factors.ctypes, n.ctypes, pivots.ctypes, info.ctypes)
    for k in range(3):
        flag = letter("n" if k else "t")
        dgetrs(
            flag.ctypes, n.ctypes, one.ctypes, factors.ctypes, n.ctypes, pivots.ctypes, x.ctypes, n.ctypes, info.ctypes
        )
        x *= x
    return x, factors[0, 0]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


def test_blas_stays_blas():
    gradient = irad.grad(lambda a, b: network(a, b)[1].sum())
    gradient(floats(3, 2), floats(2, 2))
    text = "\n".join(gradient.inspect_llvm().values())
    called = re.findall(r'call (?:void|ptr) @"?scipy\.linalg\.cython_blas\.(\w+)"?\(', text)
    assert len(called) >= 3
    assert set(called) == {"dgemm"}


# ------------------------------------------------------------------------------------------------ symbols


for _name in ("dgemv", "dger", "dznrm2", "zgemv", "zgeru", "ztrmv", "ztrsv"):  # those that derivatives call, too
    llvm.add_symbol(f"{_name}_", get_cython_function_address("scipy.linalg.cython_blas", _name))

dgemv_ = types.ExternalFunction("dgemv_", types.void(*[types.voidptr] * 11))


@njit
def by_symbol(a, x):
    y, sizes, factors, plain = np.zeros(2), np.array([2, 3, 1], np.int32), np.array([2.0, 0.0]), letter("N")
    dgemv_(
        plain.ctypes, sizes.ctypes, sizes[1:].ctypes, factors.ctypes, a.ctypes, sizes.ctypes,
        x.ctypes, sizes[2:].ctypes, factors[1:].ctypes, y.ctypes, sizes[2:].ctypes,
    )  # fmt: skip
    return y[0] * y[1]


zgeru_ = types.ExternalFunction("zgeru_", types.void(*[types.voidptr] * 9))
dznrm2_ = types.ExternalFunction("dznrm2_", types.float64(*[types.voidptr] * 3))
ztrsv_ = types.ExternalFunction("ztrsv_", types.void(*[types.voidptr] * 8))


@njit
def complex_by_symbol(a, x, y):
    """A system with the transposed triangle, an update of rank one, a real result of complex elements."""
    one, n, z, factor = whole(1), whole(x.size), x.copy(), np.array([0.5 - 0.25j])
    lower, transposed, plain = letter("l"), letter("t"), letter("n")
    ztrsv_(lower.ctypes, transposed.ctypes, plain.ctypes, n.ctypes, a.ctypes, n.ctypes, z.ctypes, one.ctypes)
    zgeru_(
        n.ctypes, n.ctypes, factor.ctypes, z.ctypes, one.ctypes, y.ctypes, one.ctypes, a.ctypes, n.ctypes
    )  # fmt: skip
    total = a.sum()
    return total.real * total.imag + dznrm2_(n.ctypes, z.ctypes, one.ctypes)


def test_complex_symbols_of_fortran():
    a, x, y = (floats(*shape) + 1j * floats(*shape, seed=9) for shape in ((3, 3), (3,), (3,)))
    Case("symbol", complex_by_symbol, (a + 3.0 * np.eye(3), x, y[::-1].copy())).check()


def test_a_symbol_of_fortran():
    Case("symbol", by_symbol, (floats(3, 2), floats(3))).check()


# ------------------------------------------------------------------------------------------------ refusals

drotg = exported("drotg", 4)


@njit
def rotation(x):
    a, b, c, s = x[:1].copy(), x[1:].copy(), np.zeros(1), np.zeros(1)
    drotg(a.ctypes, b.ctypes, c.ctypes, s.ctypes)
    return c[0]


@njit
def exchanged(x, y):
    n, one = whole(3), whole(1)
    dswap(n.ctypes, x.ctypes, one.ctypes, y.ctypes, one.ctypes)
    return x[0] * y[1] * y[2]


def test_a_constant_array_takes_no_active_values():
    x, y = floats(3), floats(3, seed=1)
    Case("both", exchanged, (x.copy(), y.copy())).check()
    with pytest.raises(irad.ActivityError, match="argument 'y', which was passed as constant"):
        irad.autodiff(irad.Reverse, exchanged, irad.Duplicated(x, np.zeros(3)), irad.Const(y))


def test_what_has_no_rule_is_refused_by_name():
    with pytest.raises(irad.NoRuleError, match="drotg"):
        irad.grad(rotation)(floats(2))
