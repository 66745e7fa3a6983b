"""Loops over a few axes: a gradient is compiled for the number in its first call, and called with any other."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numba import literal_unroll, njit, typeof

import irad
from irad.frontend.numba.cpu import load_program

_RANDOM = np.random.default_rng(5)


def by_names():
    @njit(error_model="numpy")
    def energy(x, w):
        n, axes = x.shape
        total = 0.0
        for i in range(n):
            for j in range(n):
                r2 = 0.0
                for k in range(axes):
                    gap = x[i, k] - x[j, k]
                    r2 += gap * gap
                total += w[i] * w[j] / (1.0 + r2)
        return total

    return energy


def by_rows():
    @njit(error_model="numpy")
    def energy(x, w):
        total = 0.0
        for i in range(len(x)):
            for j in range(len(x)):
                apart = x[i] - x[j]
                total += w[i] * w[j] / (1.0 + np.sum(apart * apart))
        return total

    return energy


def with_a_buffer():
    @njit(error_model="numpy")
    def energy(x, w):
        apart = np.zeros(x.shape[1])
        total = 0.0
        for i in range(len(x)):
            for j in range(len(x)):
                for k in range(-1, -apart.size - 1, -1):
                    apart[k] = x[i, k] - x[j, k]
                total += w[i] * w[j] / (1.0 + np.dot(apart, apart))
        return total

    return energy


FORMS = (by_names, by_rows, with_a_buffer)


def truth(x: Any, w: Any) -> tuple[float, Any, Any]:
    """Value and gradients in closed form."""
    apart = x[:, None] - x[None]
    near = 1.0 / (1.0 + (apart * apart).sum(-1))
    pair = np.outer(w, w) * near
    return pair.sum(), -4.0 * ((pair * near)[..., None] * apart).sum(1), 2.0 * near @ w


def points(n: int, axes: int) -> tuple[Any, Any]:
    return _RANDOM.standard_normal((n, axes)), _RANDOM.standard_normal(n)


def is_true(found: Any, x: Any, w: Any, rtol: float = 1e-11) -> None:
    value, (of_x, of_w) = found
    wanted = truth(x, w)
    assert value == pytest.approx(wanted[0], rel=rtol)
    np.testing.assert_allclose(of_x, wanted[1], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(of_w, wanted[2], rtol=rtol, atol=rtol)


def has_a_version(function: Any, length: int, *args: Any) -> bool:
    text = load_program(function, tuple(map(typeof, args))).text
    return f"icmp eq i64 %arg.x.5.1, {length}" in text and ".other" in text


@pytest.mark.parametrize("make", FORMS)
@pytest.mark.parametrize("first", [1, 2, 3, 8])
def test_the_number_of_the_first_call_and_others(make: Callable[[], Any], first: int):
    energy = make()
    gradient = irad.value_and_grad(energy, argnums=(0, 1))
    x, w = points(260, first)
    is_true(gradient(x, w), x, w)
    if first > 1:  # of a single axis the comparison is part of others
        assert has_a_version(energy, first, x, w)
    for axes in (0, 1, 2, 3, 7, 8, 20):
        for n in (0, 1, 2, 30):
            x, w = points(n, axes)
            is_true(gradient(x, w), x, w)


@pytest.mark.parametrize("make", FORMS)
def test_the_version_is_that_of_the_oracle(make: Callable[[], Any]):
    x, w = points(260, 3)
    found = irad.value_and_grad(make(), argnums=(0, 1))(x, w)
    wanted = irad.value_and_grad(make(), argnums=(0, 1), options=irad.Options(plan="save_all"))(x, w)
    assert found[0] == wanted[0]
    for mine, other in zip(found[1], wanted[1], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [4, 30])
def test_a_small_first_call_says_nothing(n: int):
    energy = by_names()
    gradient = irad.value_and_grad(energy, argnums=(0, 1))
    x, w = points(n, 3)
    is_true(gradient(x, w), x, w)
    assert not has_a_version(energy, 3, x, w)
    x, w = points(260, 3)
    is_true(gradient(x, w), x, w)
    assert has_a_version(energy, 3, x, w)
    assert len(gradient.overloads) == 1
    for size, axes in ((n, 3), (260, 2), (300, 3)):
        compiled = list(gradient.overloads.values())
        x, w = points(size, axes)
        is_true(gradient(x, w), x, w)
        assert list(gradient.overloads.values()) == compiled, "once is enough"


def test_a_first_call_of_another_derivative_says_nothing():
    energy = by_rows()
    x, w = points(5, 3)
    irad.grad(energy)(x, w)
    x, w = points(260, 3)
    is_true(irad.value_and_grad(energy, argnums=(0, 1))(x, w), x, w)
    assert has_a_version(energy, 3, x, w)


def test_late_calls_are_not_looked_at():
    energy = by_names()
    gradient = irad.value_and_grad(energy, argnums=(0, 1))
    for n in (*[5] * 20, 260):
        x, w = points(n, 3)
        is_true(gradient(x, w), x, w)
    assert not has_a_version(energy, 3, x, w)


@pytest.mark.parametrize(
    "options", [irad.Options(strict=True), irad.Options(boundscheck=True), irad.Options(debug=True)]
)
def test_options(options: irad.Options):
    gradient = irad.value_and_grad(by_rows(), argnums=(0, 1), options=options)
    for n, axes in ((260, 3), (20, 2), (20, 4)):
        x, w = points(n, axes)
        is_true(gradient(x, w), x, w)


def test_other_layouts_and_types():
    gradient = irad.value_and_grad(by_rows(), argnums=(0, 1))
    for axes in (3, 2, 5):
        x, w = points(260, axes)
        wide = np.repeat(x, 2, axis=1)
        is_true(gradient(wide[:, ::2], w), x, w)
        is_true(gradient(np.asfortranarray(x), w[::-1][::-1]), x, w)
        x, w = x.astype(np.float32), w.astype(np.float32)
        value, (of_x, _) = gradient(x, w)
        wanted = truth(x.astype(float), w.astype(float))
        assert value == pytest.approx(wanted[0], rel=1e-3)
        np.testing.assert_allclose(of_x, wanted[1], rtol=1e-2, atol=1e-3)


def test_one_array_for_both():
    @njit(error_model="numpy")
    def between(x, y):
        total = 0.0
        for i in range(len(x)):
            for j in range(len(y)):
                total += math.exp(-np.sum((x[i] - y[j]) ** 2))
        return total

    gradient = irad.grad(between, argnums=(0, 1))
    for n, axes in ((260, 2), (10, 3), (10, 1)):
        x, _ = points(n, axes)
        own, other = gradient(x, x)
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)
        apart = x[:, None] - x[None]
        wanted = -2.0 * (np.exp(-(apart**2).sum(-1))[..., None] * apart).sum(1)
        np.testing.assert_allclose(own, wanted, rtol=1e-9, atol=1e-12)
    # One point for all others: rows of one element meet each of several.
    x, y = points(30, 3)[0], points(40, 1)[0]
    np.testing.assert_allclose(gradient(x, y)[0], gradient(x, np.repeat(y, 3, axis=1))[0], rtol=1e-12)
    with pytest.raises(ValueError, match="broadcast"):
        gradient(x, points(30, 2)[0])


def test_other_derivatives():
    energy = by_names()
    x, w = points(260, 2)
    direction = _RANDOM.standard_normal(x.shape)
    _, of_x, _ = truth(x, w)
    assert irad.jvp(energy, (x, w), (direction, np.zeros_like(w)))[1] == pytest.approx(np.vdot(of_x, direction))
    value, pull = irad.vjp(energy, x, w)
    np.testing.assert_allclose(pull(2.0)[0], 2.0 * of_x, rtol=1e-10, atol=1e-12)
    assert value == pytest.approx(truth(x, w)[0])
    step = 1e-6
    plus, minus = (truth(x + sign * step * direction, w)[1] for sign in (1.0, -1.0))
    product = irad.hvp(energy)(x, direction, w)
    np.testing.assert_allclose(product, (plus - minus) / (2.0 * step), rtol=1e-5, atol=1e-6)
    for axes in (1, 3):
        x, w = points(20, axes)
        np.testing.assert_allclose(irad.vjp(energy, x, w)[1](1.0)[0], truth(x, w)[1], rtol=1e-10, atol=1e-12)


def test_structures_and_names():
    @njit(error_model="numpy")
    def energy(cloud, scale=2.0):
        total = 0.0
        for i in range(len(cloud["x"])):
            for k in range(cloud["x"].shape[1]):
                total += scale * cloud["x"][i, k] ** 3 * cloud["w"][k]
        return total

    gradient = irad.grad(energy)
    for n, axes in ((260, 3), (20, 2), (20, 4)):
        x, w = _RANDOM.standard_normal((n, axes)), _RANDOM.standard_normal(axes)
        found = gradient(cloud={"x": x, "w": w})
        np.testing.assert_allclose(found["x"], 6.0 * x**2 * w, rtol=1e-12)
        np.testing.assert_allclose(found["w"], 2.0 * (x**3).sum(0), rtol=1e-11)


def test_arguments_that_a_star_collects():
    @njit(error_model="numpy")
    def total(scale, *arrays):
        found = 0.0
        for array in literal_unroll(arrays):
            for i in range(array.shape[0]):
                for k in range(array.shape[1]):
                    found += scale * array[i, k] ** 2
        return found

    gradient = irad.grad(total, argnums=(1, 2))
    for axes in (3, 2, 9):
        x, y = points(260, axes)[0], points(10, axes + 1)[0]
        for found, wanted in zip(gradient(1.5, x, y), (3.0 * x, 3.0 * y), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_what_is_undefined_stays_so():
    gradient = irad.value_and_grad(by_names(), argnums=(0, 1))
    x, w = points(260, 3)
    gradient(x, w)
    for axes in (3, 4):
        x, w = points(20, axes)
        x[3, 1] = math.nan
        value, (of_x, _) = gradient(x, w)
        assert math.isnan(value)
        assert np.isnan(of_x[3]).all()


def test_all_derivatives_are_compiled_again():
    """A few points first, then many, then another number of axes."""

    @njit(error_model="numpy")
    def norms(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            for k in range(x.shape[1]):
                y[i] += x[i, k] ** 2
        return y

    jacobian, had_many = irad.jacobian(norms), False
    for n, axes in ((3, 2), (150, 2), (3, 2), (20, 3)):
        x = points(n, axes)[0]
        wanted = np.zeros((n, n, axes))
        wanted[np.arange(n), np.arange(n)] = 2.0 * x
        np.testing.assert_allclose(jacobian(x), wanted, rtol=1e-13)
        value, pull = irad.vjp(norms, x)
        np.testing.assert_allclose(value, (x * x).sum(1), rtol=1e-13)
        np.testing.assert_allclose(pull(np.ones(n))[0], 2.0 * x, rtol=1e-13)
        np.testing.assert_allclose(irad.jvp(norms, (x,), (x,))[1], 2.0 * (x * x).sum(1), rtol=1e-13)
        assert has_a_version(norms, 2, x) == (n != 3 or had_many)
        had_many = had_many or n > 3


def test_a_pullback_outlives_the_code_that_it_was_made_by():
    energy = by_names()
    x, w = points(5, 3)
    _, pull = irad.vjp(energy, x, w)
    many = points(260, 3)
    irad.vjp(energy, *many)[1](1.0)
    found = pull(1.0)
    for mine, other in zip(found, truth(x, w)[1:], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12)


def test_threads_that_call_first_with_few_and_with_many():
    energy = by_names()
    gradient = irad.value_and_grad(energy, argnums=(0, 1))
    calls = [points(n, axes) for n, axes in ((5, 3), (260, 3), (8, 2), (270, 2)) * 4]
    with ThreadPoolExecutor(4) as pool:
        for args, found in zip(calls, pool.map(lambda args: gradient(*args), calls), strict=True):
            is_true(found, *args)
