"""What kernels are made of, each in a small one: derivatives against differences of the kernel itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, float64, int32

from irad.backend.executor.scheduler import IN_ORDER, Schedule
from irad.errors import IradError, UnsupportedError
from irad.options import Options
from irad.passes.mode import FORWARD_MODE
from tests.cuda.case import Case
from tests.kernel.launches import launch_of

RNG = np.random.default_rng(1)
X = RNG.normal(size=64)
Y = np.zeros(64)
CHECKED: list[Any] = []


def checked(
    *arguments: Any,
    grid: int | tuple[int, ...] = 2,
    block: int | tuple[int, ...] = 32,
    outputs: tuple[int, ...] = (1,),
    active: tuple[int, ...] = (0, 1),
    shared: int = 0,
    tolerance: float = 1e-6,
) -> Callable[[Any], Any]:
    """Adds a kernel to those that are tested."""

    def add(kernel: Any) -> Any:
        def fresh(rng: np.random.Generator) -> tuple[Any, ...]:
            return tuple(each.copy(order="K") if isinstance(each, np.ndarray) else each for each in arguments)

        case = Case(kernel, kernel, fresh, grid, block, outputs, active, shared, tolerance)
        CHECKED.append(pytest.param(case, id=kernel.__name__))
        return kernel

    return add


@checked(X, Y)
def is_overwritten_in_shared_memory(x, y):
    s = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] * x[i]
    cuda.syncthreads()
    if t < 16:
        s[t + 16] = x[i] * 3.0
    cuda.syncthreads()
    y[i] = s[t] * s[t]


@checked(X, Y, grid=1, block=64)
def is_overwritten_in_global_memory(x, y):
    i = cuda.grid(1)
    y[i] = x[i] * x[i]
    cuda.syncthreads()
    if i < 32:
        y[i + 32] = x[i] * 3.0
    cuda.syncthreads()
    v = y[i] * y[i]
    cuda.syncthreads()
    y[i] = v


@checked(X, np.zeros(2))
def largest_of_a_block(x, y):
    """What the refusal of atomic maxima recommends."""
    part = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    part[t] = x[cuda.grid(1)] ** 2
    cuda.syncthreads()
    half = 16
    while half > 0:
        if t < half:
            part[t] = max(part[t], part[t + half])
        cuda.syncthreads()
        half //= 2
    if t == 0:
        y[cuda.blockIdx.x] = part[0]


@checked(X, Y, 50)
def leaves_early(x, y, n):
    s = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = 0.0
    if i >= n:
        return
    s[t] = x[i] * x[i]
    cuda.syncthreads()
    y[i] = s[t] * s[t - 1 if t > 0 else 0]
    cuda.syncthreads()
    s[t] = y[i] * 2
    cuda.syncthreads()
    y[i] += s[t - 1 if t > 0 else 0] * x[i]


@cuda.jit(device=True)
def block_sum(s, t, v):
    s[t] = v
    cuda.syncthreads()
    total = 0.0
    for k in range(32):
        total += s[k] * (k + 1)
    cuda.syncthreads()
    return total


@checked(X, Y)
def waits_in_a_device_function(x, y):
    s = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    a = block_sum(s, t, x[i])
    b = block_sum(s, t, a * x[i] * 1e-2)
    y[i] = math.sin(b)


@checked(X, outputs=(0,), active=(0,))
def overwrites_its_argument(x):
    i = cuda.grid(1)
    if i < x.size:
        for _ in range(3):
            x[i] = math.sin(x[i]) * x[i]


@checked(X, Y)
def local_array(x, y):
    a = cuda.local.array(8, float64)
    i = cuda.grid(1)
    for k in range(8):
        a[k] = x[(i + k) % x.size]
    for k in range(1, 8):
        a[k] = a[k] * a[k - 1] + a[k]
    y[i] = a[7] + a[3]


def product_of_two(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j] * x[j % x.shape[0], i % x.shape[1]]


checked(RNG.normal(size=(9, 7)), np.zeros((9, 7)), grid=(3, 2), block=(4, 4))(product_of_two)


@checked(np.asfortranarray(RNG.normal(size=(9, 7))), np.zeros((18, 14))[::2, ::2], grid=(3, 2), block=(4, 4))
def strided_arrays(x, y):
    i, j = cuda.grid(2)
    if i < x.shape[0] and j < x.shape[1]:
        y[i, j] = x[i, j] * x[j % x.shape[0], i % x.shape[1]]


@checked(RNG.normal(size=(3, 4, 5)), np.zeros((3, 4, 5)), grid=(2, 2, 3), block=(2, 2, 2))
def three_axes(x, y):
    i, j, k = cuda.grid(3)
    if i < x.shape[0] and j < x.shape[1] and k < x.shape[2]:
        y[i, j, k] = math.exp(x[i, j, k]) * x[0, 0, 0]


@checked(X * 0.5, Y, grid=1, block=64)
def shuffles(x, y):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = x[i]
    a = cuda.shfl_down_sync(0xFFFFFFFF, v * v, 3)
    b = cuda.shfl_up_sync(0xFFFFFFFF, a * v, 5)
    c = cuda.shfl_xor_sync(0xFFFFFFFF, b + v, 7)
    d = cuda.shfl_sync(0xFFFFFFFF, c * v, (lane * lane + 1) % 32)
    e = cuda.shfl_sync(0xFFFFFFFF, d * v, 4)
    y[i] = a * b + c * d + e * e


@checked(X * 0.5, Y, grid=1, block=64)
def shuffles_at_distances_that_differ(x, y):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = x[i]
    a = cuda.shfl_down_sync(0xFFFFFFFF, v * v, lane % 4)
    b = cuda.shfl_up_sync(0xFFFFFFFF, a * v, lane % 3)
    c = cuda.shfl_xor_sync(0xFFFFFFFF, b + v, lane % 2)
    y[i] = a * b + c * c * c


@checked(X * 0.5, Y, grid=1, block=64)
def shuffles_of_half_a_warp(x, y):
    i = cuda.grid(1)
    v = x[i]
    if cuda.laneid < 16:
        a = cuda.shfl_xor_sync(0x0000FFFF, v * v, 3)
        b = cuda.shfl_sync(0x0000FFFF, a * v, 2)
        c = cuda.shfl_down_sync(0x0000FFFF, b * v, 1)  # undefined in the last lane
        y[i] = a * b + (c if cuda.laneid < 15 else b)
    else:
        y[i] = v


@checked(X * 0.5, Y, tolerance=5e-2)
def shuffles_in_single_precision(x, y):
    i = cuda.grid(1)
    v = float32(x[i])
    y[i] = cuda.shfl_down_sync(0xFFFFFFFF, v * v, 1)


@checked(X, Y)
def votes(x, y):
    i = cuda.grid(1)
    v = x[i]
    if cuda.any_sync(0xFFFFFFFF, v > 1.0):
        v = v * v
    mask = cuda.ballot_sync(0xFFFFFFFF, v > 0)
    if (mask >> cuda.laneid) & 1:
        v = v * 3
    y[i] = v * cuda.popc(mask)


@checked(X, np.zeros(4), np.zeros(3), outputs=(1, 2), active=(0, 1, 2))
def atomic_sums(x, y, z):
    i = cuda.grid(1)
    cuda.atomic.add(y, i % 4, x[i] * x[i])
    cuda.atomic.sub(z, i % 3, math.sin(x[i]))


@checked(X[:32].copy(), np.zeros(1), np.zeros(32), np.zeros(1, np.int64), grid=1)
def compaction(x, y, kept, count):
    """What is kept where depends on the order of the threads, the sum does not."""
    i = cuda.grid(1)
    if x[i] > 0:
        kept[cuda.atomic.add(count, 0, 1)] = x[i] * x[i] * x[i]
    cuda.syncthreads()
    if i == 0:
        for k in range(count[0]):
            y[0] += kept[k]


CHECKED[-1] = pytest.param(
    Case(compaction, compaction, CHECKED[-1].values[0].arguments, 1, 32, (1,), (0, 1, 2), tolerance=1e-6),
    id="compaction",
    marks=pytest.mark.executor_only("what is kept where depends on the order of the threads"),
)


@checked(X, Y, np.zeros(1, np.int64))
def compares_and_swaps_integers(x, y, flag):
    i = cuda.grid(1)
    cuda.atomic.cas(flag, 0, 0, 1)
    y[i] = x[i] * x[i]


@checked(X, RNG.permutation(64).astype(np.int32), Y, outputs=(2,), active=(0, 2))
def integers_in_shared_memory(x, index, y):
    s = cuda.shared.array(32, int32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    s[t] = index[i]
    cuda.syncthreads()
    y[i] = x[s[31 - t]] ** 2


WEIGHTS = np.array([1.0, 2.0, 3.0])


@checked(X, Y)
def constant_memory(x, y):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    y[i] = weights[i % 3] * x[i] ** 2


@checked(X, Y)
def constant_or_global_memory(x, y):
    """The shadow of constant memory takes what would flow there: it must be memory that can be written."""
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    chosen = weights if i % 2 == 0 else x
    y[i] = chosen[i % 3] * x[i] ** 2


@checked(X, Y)
def barriers_that_count(x, y):
    i = cuda.grid(1)
    n = cuda.syncthreads_count(int32(x[i] > 0))
    if cuda.syncthreads_or(int32(x[i] > 2)):
        n += 1
    y[i] = n * x[i] ** 2


@checked(X * 0.3, Y)
def a_while_loop_with_barriers(x, y):
    s = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i]
    cuda.syncthreads()
    k = 1
    while k < 32:
        v = s[t] + 0.5 * s[(t + k) % 32] * s[t]
        cuda.syncthreads()
        s[t] = v
        cuda.syncthreads()
        k *= 2
    y[i] = s[t]


@checked(X, outputs=(0,), active=(0,))
def reversed_in_place(x):
    s = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    start = cuda.blockIdx.x * 32
    s[t] = x[start + t]
    cuda.syncthreads()
    x[start + 31 - t] = s[t] * s[t]


@checked(X, Y, grid=1)
def a_loop_that_copies(x, y):
    i = cuda.grid(1)
    if i < 8:
        for k in range(8):
            y[i * 8 + k] = x[i * 8 + k]


@checked(X, Y, shared=32 * 8 + 32 * 4)
def two_dynamic_arrays(x, y):
    """Both begin at the start of the dynamic shared memory."""
    a = cuda.shared.array(0, float64)
    order = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    a[t] = x[i]
    order[64 + t] = t + 1
    cuda.syncthreads()
    y[i] = a[order[64 + 31 - t] - 1] ** 2


@checked(X, Y)
def raises(x, y):
    i = cuda.grid(1)
    if x[i] > 100:
        raise ValueError("too large")
    y[i] = x[i] ** 2


@checked(X, Y)
def waits_for_its_warp(x, y):
    s = cuda.shared.array(32, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] ** 2
    cuda.syncwarp()
    y[i] = s[31 - t]


@checked(np.array([0.3, 0.7]), Y, outputs=(1,))
def parameters_that_all_threads_read(x, y):
    i = cuda.grid(1)
    y[i] = math.sin(x[0] * i) + x[1] * x[0]


@checked(np.zeros(0), np.zeros(0))
def nothing_to_do(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] ** 2


@pytest.mark.parametrize("case", CHECKED)
def test_derivatives(case: Case):
    launch = launch_of(case)
    rng = np.random.default_rng(2)
    fresh = case.fresh()
    tangents = {p: rng.normal(size=np.shape(fresh[p])) for p in case.active}
    seeds = {p: rng.normal(size=np.shape(fresh[p])) * (p in case.outputs) for p in case.active}
    step, ends = 1e-6, []
    for sign in (step, -step):
        arguments = list(case.fresh())
        for p in case.active:
            arguments[p] += sign * tangents[p]
        launch.run(arguments, races=True)
        ends.append(arguments)
    outputs = [p for p in case.outputs if p in case.active]
    expected = sum(np.vdot(seeds[p], ends[0][p] - ends[1][p]) / (2 * step) for p in outputs)

    carried = {p: like(fresh[p], tangents[p]) for p in case.active}
    launch.run_derivative(launch.derivative(FORWARD_MODE), case.fresh(), carried, races=True)
    assert sum(np.vdot(seeds[p], carried[p]) for p in outputs) == pytest.approx(
        expected, case.tolerance, case.tolerance
    )
    for plan, apart, schedule in (
        ("default", True, IN_ORDER),
        ("default", False, Schedule("reversed")),
        ("default", True, Schedule("shuffled", 3)),
        ("save_all", False, IN_ORDER),
    ):
        shadows = {p: like(fresh[p], seeds[p]) for p in case.active}
        made = launch.derivative(options=Options(plan=plan), apart=apart)
        launch.run_derivative(made, case.fresh(), shadows, schedule, races=True)
        found = sum(np.vdot(shadows[p], tangents[p]) for p in case.active)
        assert found == pytest.approx(expected, case.tolerance, case.tolerance), (plan, apart, str(schedule))


def like(array: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Values in an array with the strides of another."""
    made = array.copy(order="K")
    made[...] = values
    return made


# --- half precision ---------------------------------------------------------------------------------------------------


def halves(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i] * x[i] + x[i]
        if v > x[0]:
            v = v / x[1]
        for _ in range(2):
            v = v - x[i] * np.float16(0.5)
        y[i] = v


def test_half_precision():
    """Numbers of few digits, with which half precision computes exactly: its differences are those of real numbers."""
    x = np.array([1.0, 2.0, -3.0, 4.0, 0.5, -0.25], np.float16)
    case = Case(halves, halves, lambda rng: (x.copy(), np.zeros(6, np.float16)), 1, 32, (1,), (0, 1))
    launch = launch_of(case)
    value = case.fresh()
    launch.run(value)
    v = x * x + x
    large = v > x[0]
    np.testing.assert_array_equal(value[1], np.where(large, v / x[1], v) - x)
    seed = np.array([1, 2, 1, -1, 4, 1], np.float16)
    scale = np.where(large, 0.5, 1.0)
    expected = seed * (scale * (2.0 * x + 1.0) - 1.0)
    expected[1] -= np.sum(seed * large * v / 4.0)
    for plan in ("default", "save_all"):
        shadows = {0: np.zeros(6, np.float16), 1: seed.copy()}
        arguments = case.fresh()
        launch.run_derivative(launch.derivative(options=Options(plan=plan)), arguments, shadows, races=True)
        np.testing.assert_array_equal(arguments[1], value[1])
        np.testing.assert_array_equal(shadows[0], expected.astype(np.float16))
    tangents = {0: seed.copy(), 1: np.zeros(6, np.float16)}
    launch.run_derivative(launch.derivative(FORWARD_MODE), case.fresh(), tangents)
    forward = seed * (scale * (2.0 * x + 1.0) - 1.0) - large * v / 4.0 * seed[1]
    np.testing.assert_allclose(tangents[1], forward, rtol=2e-3)


def test_numbers_that_are_rounded_to_half_precision():
    def rounded(x, y):
        i = cuda.grid(1)
        y[i] = float64(np.float16(x[i]) * np.float16(x[i]))

    case = Case(rounded, rounded, lambda rng: (X.copy(), Y.copy()), 2, 32, (1,), (0, 1))
    launch = launch_of(case)
    shadows = {0: np.zeros(64), 1: np.ones(64)}
    launch.run_derivative(launch.derivative(), case.fresh(), shadows)
    np.testing.assert_array_equal(shadows[0], 2.0 * X.astype(np.float16).astype(float))


# --- refusals ---------------------------------------------------------------------------------------------------------


def atomic_maximum(x, y):
    cuda.atomic.max(y, 0, x[cuda.grid(1)])


def atomic_minimum(x, y):
    cuda.atomic.min(y, 0, x[cuda.grid(1)])


def result_of_an_atomic_sum(x, y):
    i = cuda.grid(1)
    x[i] = cuda.atomic.add(y, 0, x[i])


def compares_and_swaps_numbers(x, y):
    i = cuda.grid(1)
    cuda.atomic.compare_and_swap(y.view(np.int64), 0, 1)
    y[i] = x[i] * y[0]


def fence_between_blocks(x, y):
    i = cuda.grid(1)
    y[i] = x[i] ** 2
    cuda.threadfence()


def synchronises_the_grid(x, y):
    i = cuda.grid(1)
    y[i] = x[i] ** 2
    cuda.cg.this_grid().sync()
    y[i] += y[0]


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (atomic_maximum, "cuda.atomic.max on active memory"),
        (atomic_minimum, "cuda.atomic.min on active memory"),
        (result_of_an_atomic_sum, "the result of cuda.atomic.add on active memory is used"),
        (compares_and_swaps_numbers, "cuda.atomic.cas on active memory"),
        (fence_between_blocks, r"cuda.threadfence\(\)"),
        (synchronises_the_grid, "synchronises the grid"),
    ],
)
def test_refusals_name_the_operation_and_the_line(kernel: Any, named: str):
    case = Case(kernel, kernel, lambda rng: (X.copy(), Y.copy()), 2, 32, (1,), (0, 1))
    with pytest.raises(UnsupportedError, match=named) as caught:
        launch_of(case).derivative()
    assert all(kernel.__name__ in str(each.location) or each.location.line for each in errors_of(caught.value))
    assert "_ZN" not in str(caught.value)


def errors_of(error: IradError) -> list[IradError]:
    return list(getattr(error, "errors", [error]))
