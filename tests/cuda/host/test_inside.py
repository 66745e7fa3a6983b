"""Kernels that call derivatives, launched: on a GPU, from a tape, and fitted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import cuda, njit

import irad
import irad.cuda
from irad import Duplicated
from irad.frontend.cuda.device_derivatives import calls_derivatives
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_gpu import Foreign


@njit
def morse(r, depth, width):
    return depth * (1.0 - math.exp(-width * (r - 1.0))) ** 2


derivative_of_morse = irad.grad(morse)


@cuda.jit(device=True)
def force(r, parameters):
    return -irad.grad(morse)(r, parameters[0], parameters[1])


@cuda.jit
def step(x, v, parameters, dt):
    """Velocity Verlet for particles that are held by a potential."""
    i = cuda.grid(1)
    if i < x.size:
        half = v[i] + 0.5 * dt * force(x[i], parameters)
        x[i] += dt * half
        v[i] = half + 0.5 * dt * force(x[i], parameters)


@cuda.jit
def misfit(x, wanted, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, (x[i] - wanted[i]) ** 2)


@cuda.jit
def by_name_of_another(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = derivative_of_morse(x[i], 2.0, 1.5)


@cuda.jit
def plain(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = morse(x[i], 2.0, 1.5)


R, PARAMETERS = np.array([0.8, 1.1, 1.7]), np.array([2.0, 1.5])


def slope(r, depth, width):
    decay = np.exp(-width * (r - 1.0))
    return 2.0 * depth * width * (1.0 - decay) * decay


def trajectory(depth, width):
    """The same in NumPy."""
    x, v, dt = R + 0j, np.zeros(3) + 0j, 0.05
    for _ in range(4):
        half = v - 0.5 * dt * slope(x, depth, width)
        x = x + dt * half
        v = half - 0.5 * dt * slope(x, depth, width)
    return np.sum((x - R) ** 2)


def loss(parameters):
    x, v, out = cuda.to_device(R), cuda.to_device(np.zeros(3)), cuda.to_device(np.zeros(1))
    for _ in range(4):
        step[1, 32](x, v, parameters, 0.05)
    misfit[1, 32](x, cuda.to_device(R), out)
    return out


def test_fit_through_forces():
    """A tape differentiates launches of kernels in which forces are the derivative of an energy."""
    with irad.cuda.executor():
        value, gradient = irad.cuda.value_and_grad(loss)(cuda.to_device(PARAMETERS))
    tiny = 1e-30j
    by_depth, by_width = (trajectory(2.0 + tiny, 1.5) / 1e-30).imag, (trajectory(2.0, 1.5 + tiny) / 1e-30).imag
    assert value == pytest.approx(trajectory(2.0, 1.5).real, rel=1e-13)
    np.testing.assert_allclose(gradient, [by_depth, by_width], rtol=1e-11)


def test_launch_on_a_gpu(monkeypatch):
    """Numba cannot compile such a kernel: irad launches it by the driver, here a stand-in."""
    library = fake_gpu.install(monkeypatch)
    x, out = R.copy(), np.zeros(3)
    by_name_of_another[1, 32](Foreign(x), Foreign(out))
    assert library.calls.count("cuLaunchKernel") == 1
    np.testing.assert_allclose(out, slope(R, 2.0, 1.5), rtol=1e-13)
    by_name_of_another.forall(3)(Foreign(x), Foreign(out))
    assert library.calls.count("cuLaunchKernel") == 2


def test_derivative_of_a_launch_on_a_gpu(monkeypatch):
    library = fake_gpu.install(monkeypatch)
    x, dx, out, dout = R.copy(), np.zeros(3), np.zeros(3), np.ones(3)
    irad.cuda.grad(by_name_of_another)[1, 32](
        Duplicated(Foreign(x), Foreign(dx)), Duplicated(Foreign(out), Foreign(dout))
    )
    assert "cuLaunchKernel" in library.calls
    np.testing.assert_allclose(dx, (slope(R + 1e-30j, 2.0, 1.5) / 1e-30).imag, rtol=1e-12)


def test_which_kernels_call_derivatives():
    assert calls_derivatives(step)
    assert calls_derivatives(by_name_of_another)
    assert not calls_derivatives(misfit)
    assert not calls_derivatives(plain)


def test_configured_outside_of_the_executor():
    launch, out = by_name_of_another[1, 32], np.zeros(3)
    with irad.cuda.executor():
        launch(R, out)
    np.testing.assert_allclose(out, slope(R, 2.0, 1.5), rtol=1e-13)
