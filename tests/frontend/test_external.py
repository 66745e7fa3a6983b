"""Functions given by address: what they are called, and derivatives through them."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import llvmlite.binding as llvm
import pytest
from numba import cfunc, float64, njit, types
from numba.extending import get_cython_function_address

import irad
from irad.frontend.external import symbol_of
from irad.ruleset.python_names import python_name
from irad.testing.check_gradient import check_gradient

D = ctypes.c_double
LIBM = ctypes.CDLL("libm.so.6")


def function(name: str, *arguments: type, library: ctypes.CDLL = LIBM) -> Any:
    found = library[name]
    found.argtypes, found.restype = arguments, D
    return found


erf = function("erf", D)
sine = function("sin", D)
power = function("pow", D, D)
lgamma = function("lgamma", D)
significand = function("significand", D)


def address_of(pointer: Any) -> int:
    address = ctypes.cast(pointer, ctypes.c_void_p).value
    assert address is not None
    return address


@pytest.mark.parametrize("name", ["erf", "sin", "exp", "pow", "sinf", "tgamma"])
def test_the_c_library_goes_by_its_own_names(name: str):
    pointer = LIBM[name]
    assert symbol_of(address_of(pointer), pointer, 1) == name


def test_without_a_name_the_address_decides():
    address = address_of(sine)
    assert symbol_of(address, ctypes.CFUNCTYPE(D, D)(address), 1) == "sin"


def test_a_name_is_not_believed():
    """`significand` in the disguise of `erf`."""
    disguised = ctypes.CFUNCTYPE(D, D)(address_of(significand))
    disguised.__name__ = "erf"
    symbol = symbol_of(address_of(significand), disguised, 1)
    assert symbol != "erf"
    assert llvm.address_of_symbol(symbol) == address_of(significand)


def test_a_callback_is_described():
    callback = ctypes.CFUNCTYPE(D, D)(lambda x: x)
    symbol = symbol_of(address_of(callback), callback, 1)
    assert symbol.startswith("irad.external.")
    assert llvm.address_of_symbol(symbol) == address_of(callback)
    assert "irad.external" not in python_name(symbol)


@pytest.mark.parametrize(
    ("exported", "arity", "symbol"),
    [
        ("j0", 1, "scipy.special.j0"),
        ("j0", 2, "scipy.special.j0.dispatch"),
        ("__pyx_fuse_1jv", 2, "scipy.special.jv"),
        ("__pyx_fuse_1expit", 1, "scipy.special.expit.f32"),
        ("__pyx_fuse_1expn", 2, "scipy.special.expn.i64"),
    ],
)
def test_scipy(exported: str, arity: int, symbol: str):
    address = get_cython_function_address("scipy.special.cython_special", exported)
    assert symbol_of(address, None, arity) == symbol
    assert llvm.address_of_symbol(symbol) is not None


@pytest.mark.parametrize(
    ("module", "exported", "text"),
    [
        ("scipy.special.cython_special", "__pyx_fuse_0erf", "scipy.special.cython_special.__pyx_fuse_0erf"),
        ("scipy.linalg.cython_blas", "ddot", "scipy.linalg.cython_blas.ddot"),
    ],
)
def test_other_exports_of_cython_are_named(module: str, exported: str, text: str):
    address = get_cython_function_address(module, exported)
    assert python_name(symbol_of(address, None, 5)) == text


def test_a_wrong_number_of_arguments_has_no_rule():
    address = get_cython_function_address("scipy.special.cython_special", "j0")
    assert python_name(symbol_of(address, None, 4)) == "scipy.special.j0 with 4 arguments"


# ------------------------------------------------------------------------------------------------ programs


@njit
def through_ctypes(x, y):
    return erf(x) * power(y, x) + sine(x * y) * lgamma(y)


@njit
def constant_use(n, x):
    return significand(float(n)) * x * x


@njit
def active_use(x):
    y = x * x
    return significand(y)


@cfunc(float64(float64))
def cubed(x):
    return x**3


address: Any = cubed.address
through_address = ctypes.CFUNCTYPE(D, D)(address)


through_ctypes_of_the_callback = cubed.ctypes


@njit
def calls_an_address(x):
    return through_address(x) * through_ctypes_of_the_callback(x + 1)


by_symbol = types.ExternalFunction("erf", float64(float64))
unknown_by_symbol = types.ExternalFunction("significand", float64(float64))


@njit
def external_function(x):
    return by_symbol(x) * x


@njit
def external_function_without_rule(x):
    return unknown_by_symbol(x)


@njit
def external_function_of_a_constant(n, x):
    return unknown_by_symbol(n + 0.5) * x


def test_programs():
    check_gradient(through_ctypes, 0.7, 1.3)
    check_gradient(external_function, 0.7)
    check_gradient(calls_an_address, 0.7)


def test_a_function_without_rule_may_be_used_where_nothing_is_active():
    check_gradient(constant_use, 12, 0.7)
    check_gradient(external_function_of_a_constant, 12, 0.7)


@pytest.mark.parametrize("f", [active_use, external_function_without_rule], ids=lambda f: f.__name__)
def test_a_function_without_rule_is_refused_by_name_and_line(f):
    with pytest.raises(irad.NoRuleError, match=rf"call to significand(?s:.*)test_external\.py:\d+ in {f.__name__}"):
        irad.grad(f)(0.7)


def test_values_are_those_of_the_function():
    value, _ = irad.value_and_grad(through_ctypes, (0, 1))(0.7, 1.3)
    assert value == through_ctypes(0.7, 1.3)
    assert value == pytest.approx(math.erf(0.7) * 1.3**0.7 + math.sin(0.7 * 1.3) * math.lgamma(1.3))
