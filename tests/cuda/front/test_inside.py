"""Derivatives that device code calls: on the executor, on the CPU from the same source, as PTX, differentiated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda, njit
from numba.core.target_extension import target_override

import irad
import irad.cuda
from irad import Duplicated
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.cuda.toolkit import assemble
from irad.frontend.cuda.program import load_kernel
from irad.frontend.offered import check_launched_by_irad
from tests.cuda.ptx.tools import needs_libdevice, needs_ptxas


@njit
def energy(x, k):
    return 0.5 * k * x * x + math.sin(x)


@cuda.jit(device=True)
def energy_of_device(x, k):
    return 0.5 * k * x * x + math.sin(x)


@njit
def lennard_jones(r):
    s6 = (1.0 / r) ** 6
    return 4.0 * (s6 * s6 - s6)


made_outside = irad.grad(energy, argnums=(0, 1))


def gradient(x, k):
    return -irad.grad(energy_of_device)(x, k)


def value_and_gradient(x, k):
    value, (by_x, by_k) = irad.value_and_grad(energy, (0, 1))(x, k)
    return value + by_x * by_k


def outside(x, k):
    by_x, by_k = made_outside(x, k)
    return by_x * by_k


def tangent(x, k):
    value, slope = irad.jvp(energy, (x, k), (1.0, 0.5))
    return value * slope


def pushed(x, k):
    _, slope = irad.pushforward(energy, argnames="k")(x, k, 2.0)
    return slope


def annotated(x, k):
    found, value = irad.autodiff(irad.ReverseWithPrimal, energy, irad.Active(x), irad.Active(k))
    return found[0] * found[1] * value


def annotated_forward(x, k):
    return irad.autodiff(irad.Forward, energy, irad.Duplicated(x, 3.0), irad.Const(k))


def second(x, k):
    return irad.grad(irad.grad(energy))(x, k)


def product(x, k):
    return irad.hvp(energy)(x, 2.0, k)


def third(x, k):
    return irad.grad(irad.grad(irad.grad(energy)))(x, k)


def of_library(x, k):
    return k * irad.grad(lennard_jones)(1.0 + x)


@njit
def flux(state, g):
    depth, flow = state
    return flow, flow * flow / depth + 0.5 * g * depth * depth


def jacobian(x, k):
    (a, b), (c, d) = irad.jacobian(flux)((1.0 + x, k), 9.81)
    return a + 10.0 * b + 100.0 * c + 1000.0 * d


def value_and_jacobian(x, k):
    (_, value), (_, (_, by_flow)) = irad.value_and_jacobian(flux_of_both, (0, 1))(1.0 + x, k)
    return value * by_flow


@njit
def flux_of_both(depth, flow):
    return flow, flow * flow / depth


def hessian(x, k):
    ((xx, xk), (kx, kk)) = irad.hessian(energy, (0, 1))(x, k)
    return xx * xk + kx + kk


def pulled(x, k):
    value, pullback = irad.vjp(energy, x, k)
    by_x, by_k = pullback(2.0)
    return value * by_x + by_k


def pulled_back_from_tuple(x, k):
    _, pullback = irad.vjp(flux, (1.0 + x, k), 9.81, argnums=0)
    by_depth, by_flow = pullback((1.0, 2.0))
    return by_depth + by_flow


@njit
def with_count(x, k):
    return energy(x, k), (3, x)


def with_aux(x, k):
    slope, (count, _) = irad.grad(with_count, has_aux=True)(x, k)
    return slope * count


def by_name(x, k):
    return irad.grad(energy, argnames="k")(x, k)


def undecorated(x, k):
    return x * x * k


def of_plain_function(x, k):
    return irad.grad(undecorated)(x, k)


def series(x, k):
    _, (_, curvature) = irad.taylor(energy, 2)(x, (1.0, 0.0), k)
    return curvature


@njit
def with_stop(x, k):
    return x * irad.stop_gradient(x * k)


def stopped(x, k):
    return irad.grad(with_stop)(x, k)


@dataclass(frozen=True)
class Case:
    """A device function, and what it computes, in closed form."""

    function: Callable[..., Any]
    expected: Callable[[Any, Any], Any]


H = lambda x: 1.0 + x  # noqa: E731
E = lambda x, k: 0.5 * k * x * x + np.sin(x)  # noqa: E731
F = lambda x, k: k * x + np.cos(x)  # noqa: E731
CASES = [
    Case(gradient, lambda x, k: -F(x, k)),
    Case(value_and_gradient, lambda x, k: E(x, k) + F(x, k) * 0.5 * x * x),
    Case(outside, lambda x, k: F(x, k) * 0.5 * x * x),
    Case(tangent, lambda x, k: E(x, k) * (F(x, k) + 0.25 * x * x)),
    Case(pushed, lambda x, k: x * x),
    Case(annotated, lambda x, k: F(x, k) * 0.5 * x * x * E(x, k)),
    Case(annotated_forward, lambda x, k: 3.0 * F(x, k)),
    Case(second, lambda x, k: k - np.sin(x)),
    Case(product, lambda x, k: 2.0 * (k - np.sin(x))),
    Case(third, lambda x, k: -np.cos(x) + 0.0 * k),
    Case(jacobian, lambda x, k: 10.0 + 100.0 * (9.81 * H(x) - k * k / H(x) ** 2) + 1000.0 * 2.0 * k / H(x)),
    Case(value_and_jacobian, lambda x, k: k * k / H(x) * (2.0 * k / H(x))),
    Case(hessian, lambda x, k: (k - np.sin(x)) * x + x + 0.0 * k),
    Case(pulled, lambda x, k: E(x, k) * 2.0 * F(x, k) + x * x),
    Case(pulled_back_from_tuple, lambda x, k: 2.0 * (9.81 * H(x) - k * k / H(x) ** 2) + 1.0 + 4.0 * k / H(x)),
    Case(with_aux, lambda x, k: 3.0 * F(x, k)),
    Case(by_name, lambda x, k: 0.5 * x * x + 0.0 * k),
    Case(of_plain_function, lambda x, k: 2.0 * x * k),
    Case(series, lambda x, k: 0.5 * (k - np.sin(x))),
    Case(of_library, lambda x, k: k * 4.0 * (-12.0 * (1.0 + x) ** -13 + 6.0 * (1.0 + x) ** -7)),
]
OF_CPU = [case for case in CASES if case.function not in (gradient, of_plain_function)][1::3]
X, K = np.array([0.0, 0.3, 0.7, 1.1, 2.3]), np.array([2.0])
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.function.__name__)


def kernel_of(function: Callable[..., Any]) -> Any:
    device_function = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(x, k, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = device_function(x[i], k[0])

    return kernel


def outcome(kernel: Any, *arrays: Any, threads: int = 4) -> list[Any]:
    """The arrays after a launch, on copies."""
    copies = [array.copy() for array in arrays]
    with irad.cuda.executor(races=True):
        kernel[2, threads](*copies)
    return copies


@pytest.mark.parametrize("case", CASES[::6], ids=lambda case: case.function.__name__)
def test_launch(case: Case):
    *_, found = outcome(kernel_of(case.function), X, K, np.zeros(5))
    np.testing.assert_allclose(found, case.expected(X, K[0]), rtol=1e-13, atol=1e-14)


@each_case
def test_derivative_of_a_launch(case: Case):
    """What the kernel computes, and the derivative of that, by complex steps."""
    weights, step = np.array([1.0, -2.0, 0.5, 3.0, 1.5]), 1e-30j
    y, dx, dk, dy = np.zeros(5), np.zeros(5), np.zeros(1), weights.copy()
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel_of(case.function))[2, 4](Duplicated(X, dx), Duplicated(K, dk), Duplicated(y, dy))
    np.testing.assert_allclose(y, case.expected(X, K[0]), rtol=1e-13, atol=1e-14)
    by_x = (case.expected(X + step, K[0]) / 1e-30).imag
    by_k = (case.expected(X + 0.0, K[0] + step) / 1e-30).imag
    np.testing.assert_allclose(dx, weights * by_x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(dk, np.sum(weights * by_k), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("case", OF_CPU, ids=lambda case: case.function.__name__)
def test_same_on_cpu(case: Case):
    assert njit(case.function)(0.7, 2.0) == pytest.approx(case.expected(0.7, 2.0), rel=1e-13)


@cuda.jit(device=True)
def twice(x, k):
    return 2.0 * energy_of_device(x, k)


def test_of_device_functions_on_the_cpu():
    """From Python and in compiled code; device functions that they call are compiled for the CPU, too."""
    assert irad.grad(twice)(0.7, 2.0) == pytest.approx(2.0 * F(0.7, 2.0), rel=1e-14)
    assert njit(gradient)(0.7, 2.0) == pytest.approx(-F(0.7, 2.0), rel=1e-14)


def test_what_numba_compiles_itself_is_refused():
    """A kernel that is launched by Numba, before anything of `irad.cuda` was used."""
    with target_override("cuda"), pytest.raises(irad.UnsupportedError) as refused:
        check_launched_by_irad("energy")
    assert "irad.cuda.jit" in refused.value.remedy


@needs_libdevice
@needs_ptxas
@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.function.__name__)
def test_assembles(case: Case):
    types = tuple(map(numba.typeof, (X, K, X)))
    done = assemble(compile_ptx(load_kernel(kernel_of(case.function), types).module, "sm_80"), "sm_80")
    assert done.spill_stores == done.spill_loads == 0
    assert done.stack <= 40, "libdevice's, of large angles: the tape is in registers"


def test_stopped_gradient():
    """Nothing flows through it, inside of a kernel and through one."""
    kernel = kernel_of(stopped)
    *_, found = outcome(kernel, X, K, np.zeros(5))
    np.testing.assert_allclose(found, X * K[0], rtol=1e-15)
    dx, dk = np.zeros(5), np.zeros(1)
    with irad.cuda.executor():
        irad.cuda.grad(kernel)[2, 4](Duplicated(X, dx), Duplicated(K, dk), Duplicated(np.zeros(5), np.ones(5)))
        assert not dx.any()
        assert not dk.any()
        irad.cuda.grad(kernel_of(with_stop))[2, 4](
            Duplicated(X, dx), Duplicated(K, dk), Duplicated(np.zeros(5), np.ones(5))
        )
    np.testing.assert_allclose(dx, X * K[0], rtol=1e-15)
    assert not dk.any()


def of_checkpoint(x, k):
    return irad.checkpoint(energy)(x, k)


def of_linear_map(x, k):
    return irad.linearize(energy, x, k)[0]


def of_sweeps(x, k):
    return irad.split(irad.ReverseSplitWithPrimal, energy, irad.Active, irad.Active)[0](x, k)


def of_unknown_position(x, k):
    return irad.grad(energy, int(k))(x, k)


def of_integer(x, k):
    return irad.grad(energy)(int(x), k)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (of_checkpoint, "device code calls irad.checkpoint"),
        (of_linear_map, "device code calls irad.linearize"),
        (of_sweeps, "device code calls irad.split"),
        (of_unknown_position, "argnums of a derivative inside compiled code is an int64 whose value is known only"),
        (of_integer, "is an int64, which has no derivative"),
    ],
)
def test_refused(function: Callable[..., Any], problem: str):
    with pytest.raises(irad.IradError) as refused:
        load_kernel(kernel_of(function), tuple(map(numba.typeof, (X, K, X))))
    assert problem in str(refused.value)
