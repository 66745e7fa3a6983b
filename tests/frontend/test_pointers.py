"""Pairs for function pointers at run time: which functions are found, and what happens when there is none."""

from __future__ import annotations

import ctypes
import gc
import math
from typing import Any

import numpy as np
import pytest
from numba import cfunc, cuda, float64, njit, prange
from numba.core.types import WrapperAddressProtocol

import irad
from irad.frontend import pointers
from irad.frontend.cuda.program import load_kernel
from irad.frontend.numba.raw_target import function_at
from irad.testing.check_gradient import check_gradient

SIGNATURE = float64(float64)
LIBM = ctypes.CDLL("libm.so.6")
significand = LIBM.significand
significand.argtypes, significand.restype = [ctypes.c_double], ctypes.c_double


class Foreign(WrapperAddressProtocol):
    """A first-class function that Numba did not compile."""

    def __init__(self, pointer: Any) -> None:
        self.pointer = pointer

    def __wrapper_address__(self) -> int:
        address = ctypes.cast(self.pointer, ctypes.c_void_p).value
        assert address is not None
        return address

    def signature(self) -> Any:
        return SIGNATURE


@cfunc(SIGNATURE)
def wave(x):
    return x * math.sin(x)


def new_wave() -> Any:
    return cfunc(SIGNATURE)(wave.__wrapped__)


@cfunc(float64(float64[::1], float64))
def reads_an_array(v, x):
    return v[0] * v[1] * x


@njit
def array_by_value(f, v, x):
    return f(v, x) * x


@cfunc(SIGNATURE)
def without_derivative(x):
    return significand(x)


@njit(SIGNATURE)
def cubed(x):
    return x**3


@njit
def counts(f, x, counter):
    counter[0] += 1
    s = f(x) * x
    counter[0] += 1
    return s


@njit
def constant_use(f, n, x):
    return f(float(n)) * x


@njit
def both(f, g, x):
    return f(x) * g(x)


foreign = Foreign(significand)


@njit
def constant_foreign(x):
    return foreign(x)


@njit
def constant_foreign_of_a_constant(n, x):
    return foreign(n + 0.5) * x


def test_functions_are_found_by_their_entries():
    found = function_at(wave.address)
    assert found is not None
    assert found.function is wave
    assert found.is_wrapper
    compiled = cubed.overloads[(float64,)]
    for name in (compiled.fndesc.llvm_cfunc_wrapper_name, compiled.fndesc.llvm_func_name):
        found = function_at(compiled.library.get_pointer_to_function(name))
        assert found is not None
        assert found.function is cubed
        assert found.is_wrapper == name.startswith("cfunc")
    assert function_at(Foreign(significand).__wrapper_address__()) is None
    assert function_at(0) is None


@cuda.jit(device=True)
def doubled(x):
    return 2.0 * x


@cuda.jit
def kernel(x):
    x[0] = doubled(x[0])


def test_device_functions_are_passed_over():
    load_kernel(kernel, (float64[::1],))  # they have no address here
    assert function_at(Foreign(significand).__wrapper_address__()) is None


def test_functions_are_found_where_objects_were_put_aside():
    gc.freeze()
    found = function_at(wave.address)
    assert found is not None
    assert found.function is wave
    assert gc.get_freeze_count() > 100_000


def test_code_that_is_not_numbas_is_an_error_of_the_call():
    gradient = irad.grad(counts, 1)
    counter = np.zeros(1, np.int64)
    with pytest.raises(irad.NoRuleError, match="points to code without a derivative: significand of libm"):
        gradient(foreign, 0.7, counter)
    assert counter[0] == 1  # what the primal did before it came to the pointer is done
    gradient(wave, 0.7, counter)
    assert counter[0] == 3


@njit(parallel=True)
def in_lanes(f, g, place, x):
    total = 0.0
    for i in prange(x.size):
        if place == i or place == -2:
            total += g(x[i])
        else:
            total += f(x[i])
    return total


def test_the_error_comes_out_of_every_lane():
    x = np.linspace(0.0, 1.0, 64)
    gradient = irad.grad(in_lanes, 3)
    for place in (0, 40, 63, -2):
        with pytest.raises(irad.NoRuleError, match="points to code without a derivative: significand of libm"):
            gradient(wave, foreign, place, x)
    np.testing.assert_allclose(gradient(wave, foreign, -1, x), np.sin(x) + x * np.cos(x))
    pointers._failures.clear()  # of the other lanes, where all failed


def test_an_interrupt_while_a_pair_is_made(monkeypatch: pytest.MonkeyPatch):
    def interrupted(address):
        raise KeyboardInterrupt

    monkeypatch.setattr(pointers, "function_at", interrupted)
    with pytest.raises(KeyboardInterrupt):
        irad.grad(counts, 1)(new_wave(), 0.7, np.zeros(1, np.int64))
    assert not pointers._failures


def test_the_error_comes_out_of_a_pullback_too():
    with pytest.raises(irad.NoRuleError, match="points to code without a derivative"):
        irad.vjp(counts, foreign, 0.7, np.zeros(1, np.int64))


def test_a_function_without_derivative_is_refused_with_its_place():
    with pytest.raises(
        irad.NoRuleError, match=r"call to significand(?s:.*)test_pointers\.py:\d+ in without_derivative"
    ):
        irad.grad(counts, 1)(without_derivative, 0.7, np.zeros(1, np.int64))


def test_nothing_is_asked_for_where_nothing_is_active():
    check_gradient(constant_use, foreign, 3, 0.7)
    check_gradient(constant_use, without_derivative, 3, 0.7)
    check_gradient(constant_foreign_of_a_constant, 3, 0.7)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_arrays_passed_by_value_are_refused(plan: Any):
    options = irad.Options(plan=plan)
    with pytest.raises(irad.UnsupportedError, match="arrays are passed by value through a function pointer"):
        irad.grad(array_by_value, (1, 2), options=options)(reads_an_array, np.ones(2), 0.7)


def test_a_constant_is_refused_before_anything_runs():
    with pytest.raises(irad.NoRuleError, match=r"call to significand(?s:.*)test_pointers\.py:\d+ in constant_foreign"):
        irad.grad(constant_foreign)(0.7)


def test_a_known_name_has_its_rule():
    erf = LIBM.erf
    erf.argtypes, erf.restype = [ctypes.c_double], ctypes.c_double
    constant = Foreign(erf)

    @njit
    def f(x):
        return constant(x)

    check_gradient(f, 0.7)


def test_after_an_error_the_next_call_works():
    gradient = irad.grad(both, 2)
    for _ in range(2):
        with pytest.raises(irad.NoRuleError):
            gradient(wave, foreign, 0.7)
        check_gradient(both, wave, wave, 0.7)
