"""Derivatives inside kernels: their tape, how they add to shadows, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda, float32, njit

import irad
import irad.cuda
from irad import Active, Const, Duplicated, UnsupportedError
from irad.backend.cuda.ptx import compile_ptx
from irad.backend.cuda.toolkit import assemble
from irad.frontend.cuda.program import load_kernel
from tests.cuda.ptx.tools import ARCHITECTURES, needs_libdevice, needs_ptxas

X = np.array([0.2, 0.45, 0.6, 0.85])
P = np.array([[0.3, 0.9, 1.4], [1.1, 0.2, 0.7], [0.5, 0.6, 1.9], [1.3, 0.8, 0.4]])


@njit
def potential(p):
    total = 0.0
    for j in range(3):
        total += p[j] ** 2 * math.exp(-p[j])
    return total + p[0] * p[1] * p[2]


def gradient_of_potential(p: Any) -> Any:
    """In closed form, of points in rows."""
    return (2.0 * p - p**2) * np.exp(-p) + np.prod(p, axis=1)[:, None] / p


def potential_at(p: Any) -> Any:
    return np.sum(p**2 * np.exp(-p), axis=1) + np.prod(p, axis=1)


@cuda.jit
def in_local_memory(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        point, slope = cuda.local.array(3, numba.float64), cuda.local.array(3, numba.float64)
        for j in range(3):
            point[j] = p[i, j]
            slope[j] = 7.0  # is overwritten
        value = irad.value_and_grad_into(potential)(slope, point)
        for j in range(3):
            out[i, j] = slope[j] * value


@cuda.jit
def in_global_memory(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        irad.autodiff(irad.Reverse, potential, Duplicated(p[i], out[i]), seed=2.0)


@cuda.jit
def in_columns(p, out):
    i = cuda.grid(1)
    if i < p.shape[1]:
        irad.autodiff(irad.Reverse, potential, Duplicated(p[:, i], out[:, i]))


@cuda.jit
def in_shared_memory(p, out):
    i = cuda.threadIdx.x
    points, slopes = cuda.shared.array((4, 3), numba.float64), cuda.shared.array((4, 3), numba.float64)
    if i < 4:
        for j in range(3):
            points[i, j], slopes[i, j] = p[i, j], 0.0
    cuda.syncthreads()
    if i < 4:
        irad.autodiff(irad.Reverse, potential, Duplicated(points[3 - i], slopes[3 - i]))
    cuda.syncthreads()
    if i < 4:
        for j in range(3):
            out[i, j] = slopes[i, j]


@njit
def either(p, q, first):
    r = p if first else q
    return r[0] * r[1] * r[2]


@cuda.jit
def in_either(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        point, slope = cuda.local.array(3, numba.float64), cuda.local.array(3, numba.float64)
        for j in range(3):
            point[j], slope[j] = 1.0, 0.0
        irad.autodiff(
            irad.Reverse, either, Duplicated(p[i], out[i]), Duplicated(point, slope), Const(potential(p[i]) > 2.0)
        )
        for j in range(3):
            out[i, j] += slope[j]


@njit
def spring(x, i):
    return 0.5 * (x[i + 1] - x[i]) ** 2


@cuda.jit
def forces(x, out):
    i = cuda.grid(1)
    if i + 1 < x.size:
        irad.autodiff(irad.Reverse, spring, Duplicated(x, out), Const(i))


@cuda.jit
def of_tuples(x, out):
    i = cuda.grid(1)
    if i < x.size:
        a, (b, _) = irad.grad(product_with_power, (0, 1))(x[i], (2.0 * x[i], 3))
        out[i] = a + b


@njit
def product_with_power(x, pair):
    return x * x * pair[0] ** pair[1]


@cuda.jit
def with_product(p, out):
    """The Hessian times (1, 2, 3), and the gradient."""
    i = cuda.grid(1)
    if i < p.shape[0]:
        point, vector = cuda.local.array(3, numba.float64), cuda.local.array(3, numba.float64)
        product, slope = cuda.local.array(3, numba.float64), cuda.local.array(3, numba.float64)
        for j in range(3):
            point[j], vector[j] = p[i, j], 1.0 + j
            product[j] = slope[j] = 7.0
        irad.hvp_and_grad_into(potential)((product, slope), point, vector)
        for j in range(3):
            out[i, j] = product[j] + 10.0 * slope[j]


@njit
def squares(p, out):
    for j in range(3):
        out[j] = p[j] * p[j] * p[(j + 1) % 3]


@cuda.jit
def of_outputs(p, out):
    """Of a function that returns nothing, with cotangents (1, 2, 3) of what it writes."""
    i = cuda.grid(1)
    if i < p.shape[0]:
        value, cotangent = cuda.local.array(3, numba.float64), cuda.local.array(3, numba.float64)
        for j in range(3):
            value[j], cotangent[j] = 0.0, 1.0 + j
        irad.autodiff(irad.Reverse, squares, Duplicated(p[i], out[i]), Duplicated(value, cotangent), seed=None)


@njit
def of_pair(p, factor):
    return factor * factor * p[0] * p[1] + p[2]


@cuda.jit
def into_several(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        slope, number = cuda.local.array(3, numba.float64), cuda.local.array(1, numba.float64)
        irad.value_and_grad_into(of_pair, (0, 1))((slope, number), p[i], 2.0)
        for j in range(3):
            out[i, j] = slope[j] + number[0]


@njit
def of_same_twice(p, q):
    return p[0] * q[1] + p[2] * q[2]


@cuda.jit
def in_one_shadow(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        irad.autodiff(irad.Reverse, of_same_twice, Duplicated(p[i], out[i]), Duplicated(p[i], out[i]))


@cuda.jit
def in_two_directions(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        other = cuda.local.array(3, numba.float64)
        for j in range(3):
            other[j] = 0.0
        irad.autodiff(irad.Reverse, potential, irad.BatchDuplicated(p[i], (out[i], other)), seed=(1.0, 2.0))
        for j in range(3):
            out[i, j] += other[j]


def hessian_times(p: Any, vector: Any) -> Any:
    """In closed form, of points in rows."""
    away = np.stack([p[:, 1] * vector[2] + p[:, 2] * vector[1], p[:, 0] * vector[2] + p[:, 2] * vector[0]], axis=1)
    third = (p[:, 0] * vector[1] + p[:, 1] * vector[0])[:, None]
    return (2.0 - 4.0 * p + p**2) * np.exp(-p) * vector + np.concatenate([away, third], axis=1)


def launched(kernel: Any, *arrays: Any, grid: tuple[int, int] = (1, 8)) -> Any:
    """The last of the arrays after a launch, on copies."""
    copies = [array.copy(order="K") for array in arrays]
    with irad.cuda.executor(races=True):
        kernel[grid](*copies)
    return copies[-1]


def gradient_agrees(kernel: Any, at: Any, out: Any) -> None:
    """Compares the derivative of a launch with differences, in one direction."""
    random = np.random.default_rng(3)
    direction, weights = random.normal(size=at.shape), random.normal(size=out.shape)
    shadow, step = np.zeros_like(at), 1e-5
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel)[1, 8](Duplicated(at.copy(), shadow), Duplicated(out.copy(), weights.copy()))
    far = [launched(kernel, at + n * step * direction, out) for n in (-2, -1, 1, 2)]
    slope = (8.0 * (far[2] - far[1]) - (far[3] - far[0])) / (12.0 * step)
    assert np.sum(shadow * direction) == pytest.approx(np.sum(slope * weights), rel=1e-8)


def text_of(kernel: Any, *arrays: Any) -> str:
    return load_kernel(kernel, tuple(map(numba.typeof, arrays))).module.text


SLOPES = gradient_of_potential(P)
ARRAYS = {
    "local": (in_local_memory, P, SLOPES * potential_at(P)[:, None]),
    "global": (in_global_memory, P, 2.0 * SLOPES),
    "shared": (in_shared_memory, P, SLOPES),
    "columns": (in_columns, np.ascontiguousarray(P.T), SLOPES.T),
    "either": (in_either, P, np.where(potential_at(P)[:, None] > 2.0, np.prod(P, axis=1)[:, None] / P, 1.0)),
    "springs": (forces, X, np.array([X[0] - X[1], 2 * X[1] - X[0] - X[2], 2 * X[2] - X[1] - X[3], X[3] - X[2]])),
    "product": (with_product, P, hessian_times(P, np.array([1.0, 2.0, 3.0])) + 10.0 * SLOPES),
    "outputs": (
        of_outputs,
        P,
        2.0 * P * np.roll(P, -1, axis=1) * [1.0, 2.0, 3.0] + np.roll(P**2 * [1.0, 2.0, 3.0], 1, axis=1),
    ),
    "several": (
        into_several,
        P,
        np.stack([4.0 * P[:, 1], 4.0 * P[:, 0], np.ones(4)], axis=1) + 4.0 * (P[:, 0] * P[:, 1])[:, None],
    ),
    "same": (in_one_shadow, P, np.stack([P[:, 1], P[:, 0], 2.0 * P[:, 2]], axis=1)),
    "directions": (in_two_directions, P, 3.0 * SLOPES),
    "tuples": (of_tuples, X, 2 * X * (2 * X) ** 3 + X * X * 3 * (2 * X) ** 2),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str):
    kernel, at, expected = ARRAYS[name]
    np.testing.assert_allclose(launched(kernel, at, np.zeros_like(at)), expected, rtol=1e-13, atol=1e-15)
    if name != "either":  # its derivative is that of the branch, and differences may cross it
        gradient_agrees(kernel, at, np.zeros_like(at))


@pytest.mark.parametrize(("name", "count"), [("local", 0), ("global", 6), ("springs", 2), ("tuples", 0)])
def test_additions_are_atomic_but_to_local_memory(name: str, count: int):
    kernel, at, _ = ARRAYS[name]
    assert text_of(kernel, at, at).count("atomicrmw") == count


@needs_libdevice
def test_where_a_pointer_leads_decides_how_is_added():
    """To an address that may be local or not: the thread asks when it runs."""
    assert "isspacep.local" in compile_ptx(load_kernel(in_either, (numba.typeof(P),) * 2).module)
    assert "isspacep.local" not in compile_ptx(load_kernel(in_global_memory, (numba.typeof(P),) * 2).module)


@needs_libdevice
@needs_ptxas
@pytest.mark.parametrize("name", ["local", "shared", "either", "product"])
def test_assembles(name: str):
    kernel, at, _ = ARRAYS[name]
    module = load_kernel(kernel, (numba.typeof(at), numba.typeof(at))).module
    for arch in ARCHITECTURES:
        done = assemble(compile_ptx(module, arch), arch)
        assert done.spill_stores == done.spill_loads == 0


# ---------------------------------------------------------------------------------------------------- single precision


@njit
def wave(x, y):
    return x * x * y + math.sin(x)


@cuda.jit
def in_single_precision(x, out):
    i = cuda.grid(1)
    if i < x.size:
        by_x, by_y = irad.grad(wave, (0, 1))(x[i], float32(2.0))
        out[i] = by_x + by_y * irad.grad(irad.grad(wave))(x[i], x[i])


def test_single_precision():
    x = X.astype(np.float32)
    found = launched(in_single_precision, x, np.zeros(4, np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 4 * X + np.cos(X) + X * X * (2 * X - np.sin(X)), rtol=1e-6)
    assert " double " not in text_of(in_single_precision, x, x).partition("ret void")[0]


# ---------------------------------------------------------------------------------------------------- tape


@njit
def counted(x):
    for _ in range(40):
        x = 3.2 * x * (1.0 - x)
    return x


@njit
def nested(x):
    for _ in range(6):
        for _ in range(90):
            x = 1.001 * math.sin(x)
        x += 0.5
    return x


@njit
def converging(x):
    root = 1.0
    for _ in range(60):
        step = (root * root - x) / (2.0 * root)
        root -= step
        if abs(step) < 1e-14:
            break
    return root


def kernel_of_gradient(function: Callable[..., Any]) -> Any:
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = irad.grad(function)(x[i])

    return kernel


@pytest.mark.parametrize("function", [counted, nested, converging], ids=lambda each: each.__name__)
def test_tape_of_known_size(function: Callable[..., Any]):
    gradient = irad.grad(function)
    found = launched(kernel_of_gradient(function), X, np.zeros(4))
    np.testing.assert_allclose(found, [gradient(x) for x in X], rtol=1e-12)


def test_tape_is_differentiated():
    shadow, second = np.zeros(4), irad.grad(irad.grad(converging))
    with irad.cuda.executor(races=True):
        irad.cuda.grad(kernel_of_gradient(converging))[1, 8](
            Duplicated(X.copy(), shadow), Duplicated(np.zeros(4), np.ones(4))
        )
    np.testing.assert_allclose(shadow, -0.25 * X**-1.5, rtol=1e-10)
    np.testing.assert_allclose(shadow, [second(x) for x in X], rtol=1e-12)


@njit
def repeated(x, n):
    for _ in range(n):
        x = 3.2 * x * (1.0 - x)
    return x


@cuda.jit
def of_unknown_length(x, out, n):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = irad.grad(repeated)(x[i], n)


@cuda.jit
def forward_of_unknown_length(x, out, n):
    i = cuda.grid(1)
    if i < x.size:
        _, out[i] = irad.jvp(repeated, (x[i], n), (1.0, None))


def test_forward_mode_needs_no_tape():
    out = np.zeros(4)
    with irad.cuda.executor(races=True):
        forward_of_unknown_length[1, 8](X, out, 40)
    np.testing.assert_allclose(out, launched(kernel_of_gradient(counted), X, np.zeros(4)), rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- equal numbers


@njit
def at_a_number(x):
    return x**3 if x == 2.0 else 5.0 * x * x


@cuda.jit
def second_at_a_number(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = irad.grad(irad.grad(at_a_number))(x[i])


def test_a_number_that_was_compared_keeps_its_derivative():
    """LLVM would take x for 2 where it is known to be."""
    x, dx = np.array([1.0, 2.0, 3.0]), np.zeros(3)
    np.testing.assert_allclose(launched(second_at_a_number, x, np.zeros(3)), [10.0, 12.0, 10.0], rtol=1e-15)
    with irad.cuda.executor():
        irad.cuda.grad(second_at_a_number)[1, 8](Duplicated(x, dx), Duplicated(np.zeros(3), np.ones(3)))
    np.testing.assert_allclose(dx, [0.0, 6.0, 0.0], rtol=1e-15)


# ---------------------------------------------------------------------------------------------------- refusals


@njit
def long(x):
    for _ in range(100_000):
        x = math.sin(x)
    return x


@cuda.jit
def of_long(x, out):
    out[0] = irad.grad(long)(x[0])


@cuda.jit(device=True)
def waiting(x):
    cuda.syncthreads()
    return x * x


@cuda.jit
def of_waiting(x, out):
    out[0] = irad.grad(waiting)(x[0])


@cuda.jit
def as_new_array(p, out):
    out[0, 0] = irad.grad(potential)(p[0])[0]


@cuda.jit
def matrix_of_arrays(p, out):
    out[0, 0] = irad.jacobian(potential)(p[0])[0]


@cuda.jit
def of_constant_or_not(p, out):
    irad.autodiff(irad.Reverse, either, Duplicated(p[0], out[0]), Const(p[1]), Const(p[2, 0] > 1.0))


@pytest.mark.parametrize(
    ("kernel", "arguments", "problem", "remedy"),
    [
        (of_constant_or_not, (P, P), "reads numbers from q, which is constant", "irad.Duplicated(q, shadow)"),
        (of_unknown_length, (X, X, 3), "repeated inside a kernel needs a tape of a size that is not known", "irad.jvp"),
        (of_long, (X, X), "long inside a kernel needs a tape of 800000 bytes", "irad.cuda.grad"),
        (of_waiting, (X, X), "waiting is differentiated inside a kernel, and its threads wait", "outside"),
        (
            as_new_array,
            (P, P),
            "device code asks for its gradient as a new array",
            "irad.value_and_grad_into(f)(out, p)",
        ),
        (matrix_of_arrays, (P, P), "the Jacobian of potential in device code takes or returns arrays", "as a tuple"),
    ],
)
def test_refused(kernel: Any, arguments: Any, problem: str, remedy: str):
    with pytest.raises(UnsupportedError) as refused:
        load_kernel(kernel, tuple(map(numba.typeof, arguments)))
    assert problem in str(refused.value)
    assert remedy in refused.value.remedy
    assert refused.value.location is not None
    assert refused.value.location.file == __file__


def test_a_shadow_of_another_layout_is_refused():
    @cuda.jit(debug=True, opt=False)
    def kernel(p, out):
        irad.autodiff(irad.Reverse, potential, Duplicated(p[:, 0], out[0]))

    with irad.cuda.executor(), pytest.raises(ValueError, match="other strides"):
        kernel[1, 1](np.ascontiguousarray(P.T), np.zeros((4, 3)))


@cuda.jit
def with_numbers(p, out):
    i = cuda.grid(1)
    if i < p.shape[0]:
        found = irad.autodiff(irad.Reverse, scaled, Duplicated(p[i], out[i]), Active(p[i, 0]))
        out[i, 0] += found[1]


@njit
def scaled(p, factor):
    return factor * (p[1] + p[2] ** 2)


def test_numbers_beside_arrays():
    expected = np.stack([P[:, 1] + P[:, 2] ** 2, P[:, 0], 2.0 * P[:, 0] * P[:, 2]], axis=1)
    np.testing.assert_allclose(launched(with_numbers, P, np.zeros_like(P)), expected, rtol=1e-14)
