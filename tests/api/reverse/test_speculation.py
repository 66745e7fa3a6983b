"""Gradients without strong zeros, where a NaN in the result has them recomputed with strong zeros."""

from __future__ import annotations

import ctypes
import math
import pickle
from typing import Any

import numba
import numpy as np
import pytest
from numba import carray, njit
from numba.extending import intrinsic
from numba.typed import List

import irad
from irad.frontend import resident
from irad.testing.allocations import allocations

CERTAIN = irad.Options(speculative=False)


@njit(error_model="numpy")
def roots(x, y):
    total = 0.0
    for i in range(x.size):
        for j in range(y.size):
            total += math.sqrt(x[i]) * y[j] * (i - 1.0)
    return total


@njit(error_model="numpy")
def products(x, y):
    total = 0.0
    for i in range(x.size):
        for j in range(y.size):
            total += math.exp(y[j] * x[i]) * (0.0 if i == 1 else 1.0)
    return total


@njit(error_model="numpy")
def quotients(x, y):
    scaled = np.zeros_like(x)
    for _ in range(y.size):
        for i in range(x.size):
            scaled[i] += min(y[0] / x[i], 5.0)
    return scaled.sum() + y.sum()


@njit(error_model="numpy")
def of_numbers(x: float, y: float):
    total = 0.0
    for i in range(10):
        total += (x * i) ** 0.5 * y * i
    return total


ARRAYS = (roots, products, quotients)


def is_retried(derivative: Any, *args: Any) -> bool:
    """Whether a call meets a NaN."""
    before = derivative.task
    derivative(*args)
    return derivative.task is not before


@pytest.mark.parametrize("function", ARRAYS, ids=lambda f: f.py_func.__name__)
def test_finite_partials_are_not_computed_twice(function: Any):
    x, y = np.array([0.5, 1.5, 2.0]), np.array([0.3, 0.1])
    derivative = irad.value_and_grad(function, argnums=(0, 1))
    assert not is_retried(derivative, x, y)
    assert any("has_nan" in text for text in derivative.inspect_llvm().values())
    for mine, other in zip(derivative(x, y)[1], irad.grad(function, (0, 1), options=CERTAIN)(x, y), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-14)


@pytest.mark.parametrize("function", ARRAYS, ids=lambda f: f.py_func.__name__)
def test_zero_times_infinity_is_zero(function: Any):
    x = np.array([1.0, 1e3 if function is products else 0.0, 2.0])
    y = np.array([0.3, 0.9])
    derivative = irad.grad(function, argnums=(0, 1))
    with np.errstate(all="ignore"):
        assert is_retried(derivative, x, y)
        found = derivative(x, y)
        assert all(np.isfinite(each).all() for each in found)
        for mine, other in zip(found, irad.grad(function, (0, 1), options=CERTAIN)(x, y), strict=True):
            np.testing.assert_array_equal(mine, other)


def test_numbers():
    derivative = irad.grad(of_numbers, argnums=(0, 1))
    assert is_retried(derivative, 2.0, 0.0)
    slopes = [i**1.5 for i in range(10)]
    np.testing.assert_allclose(derivative(2.0, 3.0), (sum(slopes) * 3 / 8**0.5, sum(slopes) * 2**0.5))


def test_destinations():
    x, y = np.array([1.0, 0.0, 2.0]), np.array([0.3, 0.9])
    out = np.full(3, math.nan), np.full(2, math.nan)
    derivative = irad.value_and_grad_into(roots, argnums=(0, 1))
    assert is_retried(derivative, out, x, y)
    for mine, other in zip(out, irad.grad(roots, (0, 1), options=CERTAIN)(x, y), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_compiled_callers_have_strong_zeros():
    derivative = irad.grad(roots)

    @njit
    def call(f, x, y):
        return f(x, y)

    @njit
    def closed_over(x, y):
        return derivative(x, y)

    x, y = np.array([1.0, 0.0, 2.0]), np.ones(2)
    wanted = irad.grad(roots, options=CERTAIN)(x, y)
    np.testing.assert_array_equal(call(derivative, x, y), wanted)
    np.testing.assert_array_equal(closed_over(x, y), wanted)
    assert derivative.task.speculates
    np.testing.assert_array_equal(derivative(x, y), wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(derivative))(x, y), wanted)


def test_a_result_that_is_nan_stays():
    x = np.array([1.0, math.nan, 2.0])
    derivative = irad.value_and_grad(products)
    assert is_retried(derivative, x, np.ones(2))
    value, found = derivative(x, np.ones(2))
    assert math.isnan(value)
    np.testing.assert_array_equal(found, irad.grad(products, options=CERTAIN)(x, np.ones(2)))


def test_nothing_is_leaked():
    x, y = np.array([1.0, 0.0, 2.0]), np.ones(2)

    @njit(error_model="numpy")
    def with_more(x, y):
        return roots(x, y), (x + 1.0, "more")

    derivatives = irad.value_and_grad(with_more, argnums=(0, 1), has_aux=True), irad.grad(with_more, has_aux=True)
    for derivative in derivatives:
        assert not is_retried(derivative, y, y)
        with allocations() as counted:
            assert is_retried(derivative, x, y)
            assert (counted().kept, counted().kept_headers) == (0, 0)


def test_what_dispatchers_tell():
    x, y = np.array([1.0, 0.0, 2.0]), np.ones(2)
    derivative = irad.grad(roots, argnums=(1, 0))
    assert not is_retried(derivative, y, y)
    kind = numba.typeof(derivative)
    ((signature, _),) = derivative.overloads.items()
    wanted = irad.grad(roots, argnums=(1, 0), options=CERTAIN)(x, y)
    for mine, other in zip(derivative.get_overload(signature)(x, y), wanted, strict=True):
        np.testing.assert_array_equal(mine, other)
    derivative.disable_compile()
    assert is_retried(derivative, x, y)
    assert numba.typeof(derivative) == kind
    assert derivative.signatures == [signature]
    with pytest.raises(TypeError):
        derivative(x.astype(np.float32), y)
    derivative.disable_compile(False)
    derivative(x.astype(np.float32), y)
    assert set(derivative.inspect_llvm()) == set(derivative.signatures)
    assert len(derivative.signatures) == 2


@njit(error_model="numpy")
def prints(x):
    total = 0.0
    for i in range(9):
        total += x * x * i
    print("once")
    return math.sqrt(x * 0.0) * total


@njit(error_model="numpy")
def draws(x):
    total = 0.0
    for _ in range(9):
        total += x * np.random.normal()
    return math.sqrt(x * 0.0) * total


@njit(error_model="numpy")
def draws_from(x, generator):
    total = 0.0
    for _ in range(9):
        total += x * generator.normal()
    return math.sqrt(x * 0.0) * total


@njit(error_model="numpy")
def writes(x, work):
    for i in range(9):
        work[0] += x * i
    return math.sqrt(x * 0.0) * work[0]


@njit(error_model="numpy")
def appends(x, work):
    for i in range(9):
        work.append(i)
    return math.sqrt(x * 0.0) * len(work)


COUNTER = np.zeros(1)


@intrinsic
def at(_: Any, address: Any):
    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

    return numba.types.CPointer(numba.float64)(address), lower


ADDRESS = COUNTER.ctypes.data


@njit(error_model="numpy")
def writes_to_address(x):
    carray(at(ADDRESS), 1)[0] += 1.0
    total = 0.0
    for i in range(9):
        total += x * x * i
    return math.sqrt(x * 0.0) * total


@njit(error_model="numpy", fastmath=True)
def fast(x):
    total = 0.0
    for i in range(9):
        total += x * x * i
    return math.sqrt(x) * total


@njit(error_model="numpy")
def little_work(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (prints, (2.0,)),
        (draws, (2.0,)),
        (draws_from, (2.0, np.random.default_rng(1))),
        (writes, (2.0, np.zeros(1))),
        (writes_to_address, (2.0,)),
        (fast, (2.0,)),
        (little_work, (np.ones(3),)),
    ],
    ids=lambda given: getattr(getattr(given, "py_func", None), "__name__", ""),
)
def test_what_is_not_run_twice(function: Any, arguments: tuple[Any, ...], capfd: Any):
    derivative, before = irad.grad(function), COUNTER[0]
    assert not is_retried(derivative, *arguments)
    assert capfd.readouterr().out.count("once") == (function is prints)
    assert COUNTER[0] - before == (function is writes_to_address)


def test_lists_that_are_appended_to():
    work = List([1.0])
    assert not is_retried(irad.grad(appends), 2.0, work)
    assert len(work) == 10


@pytest.mark.parametrize(
    "options",
    [
        irad.Options(strict=True),
        irad.Options(plan="save_all"),
        irad.Options(debug=True),
        irad.Options(max_tape_bytes=10**9),
        irad.Options(zero_times_infinity="zero"),
        CERTAIN,
    ],
    ids=["strict", "oracle", "debug", "limit", "zero", "off"],
)
def test_options_that_keep_strong_zeros(options: irad.Options):
    x, y = np.array([1.0, 0.0, 2.0]), np.ones(2)
    derivative = irad.grad(roots, options=options)
    if options.debug:
        with pytest.raises(irad.NonFiniteError):
            irad.grad(roots, options=options)(np.array([0.0, 1.0]), y)
    assert not is_retried(derivative, x, y)


def test_complex_numbers_and_columns():
    @njit(error_model="numpy")
    def f(z, a):
        total = 0.0
        for k in range(3):
            for i in range(a.shape[0]):
                for j in range(a.shape[1]):
                    total += abs(z[k]) * a[i, j] * (k - 1.0)
        return total

    z, a = np.array([1.0 + 1.0j, 0.0, 2.0j]), np.asfortranarray(np.arange(6.0).reshape(2, 3))
    for given in (a, a.astype(np.float32), a[:, ::2]):
        derivative = irad.grad(f, argnums=(0, 1))
        found = derivative(z, given)
        for mine, other in zip(found, irad.grad(f, (0, 1), options=CERTAIN)(z, given), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-6)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 9, 63, 64, 65])
def test_the_look_for_nan(size: int, bits: int):
    look = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64)(
        resident.address_of(f"irad.has_nan_f{bits}")
    )
    content = np.full(size, math.inf, dtype=f"f{bits // 8}")
    assert not look(content.ctypes.data, size)
    for place in range(size):
        content[place] = -math.nan
        assert look(content.ctypes.data, size)
        content[place] = 0.0
