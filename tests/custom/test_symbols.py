"""Rules for C functions and intrinsics, by symbol."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import carray, njit, types
from numba.extending import intrinsic

import irad
from irad import rules
from irad.errors import RuleError
from irad.rules import AugmentedReturn
from irad.testing.check_gradient import check_quickly

libc = ctypes.CDLL(None)
libm = ctypes.CDLL(ctypes.util.find_library("m"))


@pytest.fixture(autouse=True)
def no_rules_left() -> Iterator[None]:
    from irad.frontend.custom import catalogue

    before = {rule.target for rule in catalogue.rules()}
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


def with_marked_rule(target: Any, value: Any, factor: float) -> None:
    @rules.augmented_primal(target)
    def augmented(config, x):
        return AugmentedReturn(value(x.value), None, None)

    @rules.reverse(target)
    def reverse(config, cotangent, tape, x):
        return (factor * cotangent,)


def test_easy_rules_of_c_functions_know_the_number_of_arguments():
    """As ctypes or Numba declares them: Python's `inspect` cannot tell it, or tells that of the object."""
    scalb = libm.scalb
    scalb.argtypes, scalb.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double
    declared = types.ExternalFunction("fdim", types.float64(types.float64, types.float64))
    for function in (scalb, declared):
        with pytest.raises(RuleError, match="takes 2 arguments and is given 1 partial"):
            rules.easy_rule(function, 1.0)
        rules.easy_rule(function, 2.0, 3.0)

    @njit
    def f(x, y):
        return scalb(x, y) + declared(x, y)

    assert irad.grad(f, (0, 1))(7.0, 2.0) == (4.0, 6.0)


def test_an_easy_rule_of_a_function_that_nobody_defines():
    """Numba would end the process: the rule calls the function."""
    missing = types.ExternalFunction("nobody_defines_this_function", types.float64(types.float64))
    rules.easy_rule(missing, 2.0)
    with pytest.raises(irad.BackendError, match="no definition of nobody_defines_this_function"):
        irad.grad(njit(lambda x: missing(x)))(1.0)


def test_a_function_of_ctypes():
    scalb = libm.scalb  # x·2^y
    scalb.argtypes, scalb.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double

    @njit
    def f(x, y):
        return scalb(x, math.floor(y)) * x

    with pytest.raises(irad.NoRuleError):
        irad.grad(f)(7.0, 2.0)

    @rules.augmented_primal(scalb)
    def augmented(config, x, y):
        return AugmentedReturn(scalb(x.value, y.value), None, 2.0**y.value)

    @rules.reverse(scalb)
    def reverse(config, cotangent, power, x, y):
        return cotangent * power, 0.0

    check_quickly(f, 7.3, 2.5)

    @njit
    def loop(x, n):
        total = 0.0
        for i in range(n):
            total += scalb(x * i, 3.0) ** 2
        return total

    check_quickly(loop, 0.7, 5)


def test_a_symbol_and_the_built_in_rule():
    @njit
    def f(x):
        return math.erf(x)

    with_marked_rule("erf", njit(lambda x: x), 42.0)
    assert irad.grad(f)(0.5) == 42.0
    rules.remove("erf")
    assert irad.grad(f)(0.5) != 42.0


def test_an_external_function():
    hypot = types.ExternalFunction("hypot", types.float64(types.float64, types.float64))

    @njit
    def f(x, y):
        return hypot(x, y)

    @rules.augmented_primal(hypot)
    def augmented(config, x, y):
        return AugmentedReturn(hypot(x.value, y.value), None, None)

    @rules.reverse(hypot)
    def reverse(config, cotangent, tape, x, y):
        return 2.0 * cotangent, 3.0 * cotangent

    assert irad.grad(f, argnums=(0, 1))(3.0, 4.0) == (2.0, 3.0)


def test_an_intrinsic_of_llvm():
    @njit
    def f(x):
        return np.sin(x) + 0.5 * math.sin(x)

    with_marked_rule("llvm.sin.f64", np.sin, 10.0)
    assert irad.grad(f)(0.5) in (10.0 + 0.5 * math.cos(0.5), 15.0)


def test_the_higher_level_wins():
    @njit
    def f(x):
        return math.erf(x)

    with_marked_rule("erf", njit(lambda x: x), 42.0)
    with_marked_rule(math.erf, njit(lambda x: x), 43.0)
    assert irad.grad(f)(0.5) == 43.0


def test_pointers_have_shadows():
    @intrinsic
    def address(context, array):
        def lower(context, builder, signature, values):
            data = context.make_array(signature.args[0])(context, builder, values[0]).data
            return builder.bitcast(data, context.get_value_type(types.voidptr))

        return types.voidptr(array), lower

    swab = libc.memfrob  # XORs bytes: nothing that irad could know
    swab.argtypes, swab.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_int

    @njit
    def f(a):
        b = a.copy()
        swab(address(b), 0)
        return (b * b).sum()

    with pytest.raises(irad.IradError):
        irad.grad(f)(np.array([1.0, 2.0]))

    @rules.augmented_primal(swab)
    def augmented(config, pointer, size):
        return AugmentedReturn(0, None, None)

    @rules.reverse(swab)
    def reverse(config, cotangent, tape, pointer, size):
        shadow = carray(pointer.shadow, 2, np.float64)
        shadow[:] = shadow * 100.0

    np.testing.assert_array_equal(irad.grad(f)(np.array([1.0, 2.0])), [200.0, 400.0])


def test_what_a_rule_for_a_symbol_raises():
    cbrt = libm.significand
    cbrt.argtypes, cbrt.restype = [ctypes.c_double], ctypes.c_double

    @rules.augmented_primal(cbrt)
    def augmented(config, x):
        if x.value < 0.0:
            raise ValueError("negative")
        return AugmentedReturn(x.value, None, None)

    @rules.reverse(cbrt)
    def reverse(config, cotangent, tape, x):
        if x.value == 0.0:
            raise ZeroDivisionError("zero")
        return (cotangent,)

    @njit
    def f(x):
        return 2.0 * cbrt(x)

    assert irad.grad(f)(1.0) == 2.0
    for derivative in (irad.grad(f), lambda x: irad.vjp(f, x)[1](1.0)):
        with pytest.raises(ValueError, match="negative"):
            derivative(-1.0)
        with pytest.raises(ZeroDivisionError, match="zero"):
            derivative(0.0)
    assert irad.grad(f)(1.0) == 2.0


def test_inactive_symbols():
    noise = libm.scalb
    noise.argtypes, noise.restype = [ctypes.c_double, ctypes.c_double], ctypes.c_double

    @njit
    def f(x):
        return x + noise(x, 2.0)

    rules.inactive(noise)
    assert irad.grad(f)(3.5) == 1.0


def test_what_cannot_have_a_rule():
    with pytest.raises(RuleError, match="is not a function"):
        rules.augmented_primal(3.0)
    bare = ctypes.CDLL(None).labs
    with pytest.raises(RuleError, match="has no argtypes"):
        rules.reverse(bare)
