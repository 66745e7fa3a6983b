"""Parallel loops at their edges: hardly any iterations, changing numbers of threads, several callers, no memory."""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait should not take time from other tests

import numba
import numpy as np
import pytest
from numba import njit, prange

import irad
from tests.tools.catalogue import floats

ROOT = Path(__file__).parents[2]
THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]


@njit(parallel=True, error_model="numpy")
def smooth(a, c, start, stop):
    """A stencil that saves what it computed, and a sum, over any range."""
    b = np.zeros_like(a)
    for i in prange(start, stop):
        b[i] = math.exp(c * (a[i - 1] - 2 * a[i] + a[i + 1]))
    s = 0.0
    for i in prange(start, stop):
        s += b[i] * a[i]
    return s


def smooth_gradient(a, c, start, stop):
    """The same by NumPy: value, gradients with respect to a and c."""
    gradient, by_c, value = np.zeros_like(a), 0.0, 0.0
    for i in range(start, stop):
        d = a[i - 1] - 2 * a[i] + a[i + 1]
        e = math.exp(c * d)
        value += e * a[i]
        gradient[i] += e - 2 * c * e * a[i]
        gradient[i - 1] += c * e * a[i]
        gradient[i + 1] += c * e * a[i]
        by_c += d * e * a[i]
    return value, gradient, by_c


def check_smooth(size, start, stop):
    a = floats(size)
    value, (by_a, by_c) = irad.value_and_grad(smooth, argnums=(0, 1))(a, 0.3, start, stop)
    expected = smooth_gradient(a, 0.3, start, stop)
    assert value == pytest.approx(expected[0], rel=1e-12)
    assert by_a == pytest.approx(expected[1], rel=1e-12, abs=1e-14)
    assert by_c == pytest.approx(expected[2], rel=1e-12, abs=1e-14)


def with_threads(threads, work):
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        return work()
    finally:
        numba.set_num_threads(before)


RANGES = [(0, 1, 0), (3, 1, 1), (5, 3, 1), (3, 1, 2), (4, 1, 3), (6, 1, 5), (20, 7, 12)]


def check_ranges() -> None:
    """No iterations, also with a start after the stop, one, as many as threads, one more."""
    for threads in range(1, THREADS + 1):
        for bounds in RANGES:
            with_threads(threads, lambda bounds=bounds: check_smooth(*bounds))


def check_changes() -> None:
    """The pullback runs with another number of threads than the forward sweep: the same bits."""
    a = floats(501)
    for forward in range(1, THREADS + 1):
        _, pullback = with_threads(forward, lambda: irad.vjp(smooth, a, 0.3, 1, 500))
        results = [with_threads(n, lambda p=pullback: p(1.0)) for n in range(1, THREADS + 1) for _ in range(2)]
        bits = {(by_a.tobytes(), np.float64(by_c).tobytes()) for by_a, by_c, *_ in results}
        assert len(bits) == 1
        assert results[0][0] == pytest.approx(smooth_gradient(a, 0.3, 1, 500)[1], rel=1e-12, abs=1e-14)


def check_callers() -> None:
    """Four threads call at once: gradients, own pullbacks, and one that all share."""
    a = floats(801)
    expected = smooth_gradient(a, 0.3, 1, 800)[1]
    derivative = irad.grad(smooth)
    _, shared = irad.vjp(smooth, a, 0.3, 1, 800)
    derivative(a, 0.3, 1, 800)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(15):
                assert derivative(a, 0.3, 1, 800) == pytest.approx(expected, rel=1e-12, abs=1e-14)
                _, own = irad.vjp(smooth, a, 0.3, 1, 800)
                assert own(1.0)[0] == pytest.approx(expected, rel=1e-12, abs=1e-14)
                assert shared(2.0)[0] == pytest.approx(2 * expected, rel=1e-12, abs=1e-14)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures, failures


# ------------------------------------------------------------------------------------------------ no memory


@njit(parallel=True)
def ragged(a, counts):
    """One iteration saves as many numbers as its count says."""
    out = np.zeros_like(a)
    for i in prange(a.size):
        x = a[i]
        for _ in range(counts[i]):
            x = math.sin(x) + a[i]
        out[i] = x
    return out.sum()


def resident() -> int:
    """Bytes of memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def check_exhaustion() -> None:
    """One lane, or all, ask for more memory than there is: MemoryError, and all is as before.

    Numba's lock is held again, the size of its chunks is restored, memory is given back, the next call works.
    """
    gradient = irad.grad(ragged)
    a, few = floats(8), np.full(8, 3)
    expected = gradient(a, few)
    limit = 1 << 31
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    numba.set_parallel_chunksize(2)
    before = 0
    for turn in range(12):
        counts = few.copy()
        counts[[7] if turn % 2 else slice(None)] = 1 << 29
        for call in (lambda counts=counts: gradient(a, counts), lambda counts=counts: irad.vjp(ragged, a, counts)):
            with pytest.raises(MemoryError):
                call()
            assert numba.get_parallel_chunksize() == 2
        assert np.array_equal(gradient(a, few), expected)
        before = before or resident()
    assert resident() < before + (8 << 20)


@njit
def deep(x, n):
    return x if n == 0 else math.sin(deep(x, n - 1)) + x


@njit(parallel=True)
def recursions(a, n):
    out = np.zeros_like(a)
    for i in prange(a.size):
        out[i] = deep(a[i], n)
    return out.sum()


def test_no_stack_for_the_pullback():
    """The forward sweep had enough, the thread of the pullback has not: MemoryError; elsewhere it works again."""
    a = floats(4)
    expected = irad.grad(recursions)(a, 10_000)
    _, pullback = irad.vjp(recursions, a, 10_000)
    errors: list[BaseException] = []

    def work() -> None:
        try:
            pullback(1.0)
        except MemoryError as error:
            errors.append(error)

    before = threading.stack_size(1 << 19)
    try:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    finally:
        threading.stack_size(before)
    assert errors
    assert np.array_equal(pullback(1.0)[0], expected)


def test_hardly_any_iterations():
    check_ranges()


def test_another_number_of_threads_for_the_pullback():
    check_changes()


def test_several_callers_at_once():
    check_callers()


@njit
def weighted(w, x):
    s = 0.0
    for k in range(w.size):
        s += math.exp(-w[k] * x[k]) * x[k]
    return s * s


weighted_gradient, smooth_derivative = irad.grad(weighted), irad.grad(smooth)


@njit(parallel=True)
def batch(w, xs):
    """A gradient in each iteration; that of a parallel function every other time."""
    out = np.zeros((xs.shape[0], w.size))
    for i in prange(xs.shape[0]):
        if i % 2 == 0:
            out[i] = weighted_gradient(w, xs[i])
        else:
            out[i] = smooth_derivative(xs[i], 0.3, 1, w.size - 1)
    return out


def check_batch() -> None:
    w, xs = floats(30), floats(41, 30, seed=1)
    for _ in range(3):
        found = batch(w, xs)
        for i, x in enumerate(xs):
            expected = weighted_gradient(w, x) if i % 2 == 0 else smooth_gradient(x, 0.3, 1, 29)[1]
            assert found[i] == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_gradients_in_the_iterations_of_a_loop():
    numba.get_num_threads()  # starts them
    if numba.threading_layer() == "workqueue":
        pytest.skip("parallel loops cannot be nested")
    check_batch()


def check_layer() -> None:
    """All of the above, in a process of its own: the last one leaves it little memory."""
    check_ranges()
    check_changes()
    if numba.threading_layer() != "workqueue":  # which ends the process when it is called by several threads
        check_callers()
        check_batch()
    check_exhaustion()


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "threads"), [("omp", 3), ("workqueue", 4), ("tbb", 5)])
def test_threading_layers(layer: str, threads: int):
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": str(threads)}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
    code = "from tests.programs.test_parallel_edges import check_layer; check_layer()"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    if "No threading layer could be loaded" in done.stderr:
        pytest.skip(f"no threading layer {layer}")
    assert done.returncode == 0, done.stderr
