"""Device functions with an augmented primal, a reverse and a forward of the user's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Duplicated
from irad.backend.cuda.ptx import compile_ptx
from irad.errors import UnsupportedError
from irad.rules import AugmentedReturn, is_active
from tests.cuda.case import Case
from tests.kernel.launches import launch_of

N = 8
X = np.linspace(0.5, 2.0, N)


def gradient(kernel: Any, x: np.ndarray = X) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient of a kernel, one thread for each element."""
    value, shadow, seed = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, N](Duplicated(x.copy(), shadow), Duplicated(value, seed))
    return value, shadow


def tangent(kernel: Any) -> tuple[np.ndarray, np.ndarray]:
    value, made = np.zeros(N), np.zeros(N)
    with irad.cuda.executor(races=True):
        irad.cuda.autodiff(irad.Forward, kernel)[1, N](Duplicated(X, np.ones(N)), Duplicated(value, made))
    return value, made


def value_of(kernel: Any) -> np.ndarray:
    value = np.zeros(N)
    with irad.cuda.executor():
        kernel[1, N](X, value)
    return value


@cuda.jit(device=True)
def product(x, n, a):
    return x * x * n * a


def product_augmented(config, x, n, a):
    value = product(x.value, n.value, a.value) if config.needs_primal else None
    return AugmentedReturn(value, None, tape=(x.value, (n.value, a.value), None))


def product_reverse(config, cotangent, tape, x, n, a):
    """Marked by factors: ten times the derivative with respect to a, twenty times that of x·x for x."""
    if is_active(a) and not config.overwritten[0] and config.has_cotangent and cotangent is not None:
        by_a = 10.0 * cotangent * tape[0] ** 2 * n.value
    else:
        by_a = a.shadow
    return 20.0 * cotangent * tape[0] * tape[1][0] * tape[1][1], None, by_a


def product_forward(config, x, n, a):
    change = 40.0 * x.value * x.tangent * n.value * a.value if config.needs_shadow else None
    if is_active(a):
        change += a.tangent * x.value**2
    return product(x.value, n.value, a.value), change


@cuda.jit
def in_a_loop(x, y):
    i = cuda.grid(1)
    v = x[i]
    for k in range(3):
        v = product(v, k + 1, math.sin(x[i]))
    y[i] = v


@cuda.jit
def once(x, y):
    i = cuda.grid(1)
    y[i] = product(x[i], 3, 0.5)


@pytest.fixture
def ruled() -> Iterator[Callable[..., None]]:
    """Registers functions of a rule of `product`."""

    def register(*parts: Callable[..., Any]) -> None:
        for part in parts:
            getattr(irad.rules, part.__name__.removeprefix("product_").replace("augmented", "augmented_primal"))(
                product
            )(part)

    yield register
    irad.rules.remove(product)


def expected(slope: Callable[..., tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Value and derivative of `in_a_loop`, for partials of `product` by x and a."""
    v, change, a = X, np.ones(N), np.sin(X)
    for n in (1, 2, 3):
        by_x, by_a = slope(v, n, a)
        v, change = v * v * n * a, by_x * change + by_a * np.cos(X)
    return v, change


def test_reverse_mode(ruled: Callable[..., None]):
    ruled(product_augmented, product_reverse)
    value, shadow = gradient(in_a_loop)
    wanted = expected(lambda v, n, a: (20 * v * n * a, 10 * v * v * n))
    np.testing.assert_allclose(value, wanted[0])
    np.testing.assert_allclose(shadow, wanted[1])
    np.testing.assert_allclose(value_of(in_a_loop), wanted[0])


def test_forward_mode(ruled: Callable[..., None]):
    ruled(product_forward)
    wanted = expected(lambda v, n, a: (40 * v * n * a, v * v))
    np.testing.assert_allclose(tangent(in_a_loop), wanted)
    by_body = expected(lambda v, n, a: (2 * v * n * a, v * v * n))
    np.testing.assert_allclose(gradient(in_a_loop), by_body, err_msg="without a reverse the body is differentiated")


def test_a_rule_for_reverse_mode_only(ruled: Callable[..., None]):
    ruled(product_augmented, product_reverse)
    with pytest.raises(UnsupportedError, match="rule for reverse mode, and none for forward mode") as caught:
        tangent(once)
    assert caught.value.location is not None
    irad.rules.forward_from_body(product)
    np.testing.assert_allclose(tangent(once)[1], 3.0 * X)


def test_arguments_without_a_derivative(ruled: Callable[..., None]):
    def product_reverse(config, cotangent, tape, x, n, a):
        return 20.0 * cotangent * tape[0] * n.value, None, a.shadow if is_active(a) else None

    irad.rules.inactive_arg(product, "a")
    ruled(product_augmented, product_reverse)
    np.testing.assert_allclose(gradient(once)[1], 60.0 * X)


def test_a_rule_for_some_types(ruled: Callable[..., None]):
    irad.rules.augmented_primal(product, signature=("float32", None, None))(product_augmented)
    irad.rules.reverse(product, signature=("float32", None, None))(product_reverse)
    np.testing.assert_allclose(gradient(once)[1], 3.0 * X)
    _, shadow = gradient(once, X.astype(np.float32))
    np.testing.assert_allclose(shadow, 30.0 * X.astype(np.float32), rtol=1e-6)


def test_what_is_differentiated_is_the_augmented_primal():
    @cuda.jit(device=True)
    def rounded(x):
        return float(int(x * 4.0)) / 4.0

    @irad.rules.augmented_primal(rounded)
    def augmented(config, x):
        return AugmentedReturn(x.value + 1.0, None, None)

    @irad.rules.reverse(rounded)
    def reverse(config, cotangent, tape, x):
        return (7.0 * cotangent,)

    @cuda.jit
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = rounded(x[i]) ** 2

    value, shadow = gradient(kernel)
    np.testing.assert_allclose(value, (X + 1.0) ** 2)
    np.testing.assert_allclose(shadow, 14.0 * (X + 1.0))
    np.testing.assert_allclose(value_of(kernel), (np.floor(X * 4) / 4) ** 2)


def test_both_modes_and_plans_and_ptx(ruled: Callable[..., None]):
    ruled(product_augmented, product_reverse, product_forward)
    np.testing.assert_allclose(tangent(once)[1], 60.0 * X)
    case = Case(once.py_func, once.py_func, lambda rng: (X.copy(), np.zeros(N)), 1, N, (1,), (0, 1))
    for plan in ("default", "save_all"):
        launch, shadow = launch_of(case), np.zeros(N)
        made = launch.derivative(options=irad.Options(plan=plan))
        launch.run_derivative(made, case.fresh(), {0: shadow, 1: np.ones(N)}, races=True)
        np.testing.assert_allclose(shadow, 30.0 * X)
        assert "rule_part" not in compile_ptx(made.module)


def keeps_an_array(config, x, n, a):
    return AugmentedReturn(1.0, None, cuda.local.array(2, np.float64))


def passes_on(config, x, n, a):
    return AugmentedReturn(product(x, n, a), None, None)


def uses_a_shadow(config, x, n, a):
    return AugmentedReturn(x.shadow, None, None)


def forgets_a_cotangent(config, cotangent, tape, x, n, a):
    return None, None, cotangent


def returns_a_number(config, x, n, a):
    return 1.0


@pytest.mark.parametrize(
    ("augmented", "named"),
    [
        (keeps_an_array, r"product has a rule that kernels cannot use: it keeps array"),
        (passes_on, "passes_on passes x on"),
        (uses_a_shadow, r"uses_a_shadow uses x.shadow"),
        (returns_a_number, "returns no AugmentedReturn"),
        (lambda config, x, n, a: None, "whose source can be read"),
    ],
)
def test_refusals(augmented: Callable[..., Any], named: str, ruled: Callable[..., None]):
    irad.rules.augmented_primal(product)(augmented)
    ruled(product_reverse)
    with pytest.raises(UnsupportedError, match=named):
        gradient(once)


def test_a_cotangent_that_is_missing_is_refused(ruled: Callable[..., None]):
    ruled(product_augmented)
    irad.rules.reverse(product)(forgets_a_cotangent)
    with pytest.raises(UnsupportedError, match="returns none in the place of a number"):
        gradient(once)


def test_functions_of_arrays_are_refused():
    @cuda.jit(device=True)
    def first(x):
        return x[0]

    @irad.rules.augmented_primal(first)
    def augmented(config, x):
        return AugmentedReturn(x.value[0], None, None)

    @irad.rules.reverse(first)
    def reverse(config, cotangent, tape, x):
        x.shadow[0] += cotangent
        return (None,)

    @cuda.jit
    def kernel(x, y):
        y[cuda.grid(1)] = first(x)

    with pytest.raises(UnsupportedError, match="first has a rule that kernels cannot use: it is called with array"):
        gradient(kernel)
