"""The gradient of parallel loops is the same bits in every run, and the same numbers with any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import njit, prange

import irad
from tests.tools.catalogue import floats

THREADS: int = vars(numba.config)["NUMBA_NUM_THREADS"]

ROOT = Path(__file__).parents[2]


@njit(parallel=True, error_model="numpy")
def model(a, w, index, c):
    """Everything that lanes can share: a stencil, weights that all read, a gather, reductions, an array in place."""
    b = np.zeros_like(a)
    for i in prange(1, a.size - 1):
        b[i] = c * (a[i - 1] - 2 * a[i] + a[i + 1]) * w[i % w.size] + a[index[i]]
    total, largest = 0.1, 0.0
    for i in prange(a.size):
        b[i] *= np.exp(-b[i] * w[0]) + np.dot(w, w)
        total += b[i] ** 2 * a[a.size - 1 - i]
        largest = max(largest, b[i])
    left, right = b[:-1], b[1:]
    return total * largest + (left * right).sum()


def arguments(size: int = 1003) -> tuple[object, ...]:
    return floats(size), floats(7, seed=1), np.random.default_rng(2).integers(0, size, size), 0.3


def gradients(threads: int, runs: int = 5) -> list[tuple[bytes, ...]]:
    """The bits of the value and the gradient in several runs."""
    numba.set_num_threads(threads)
    try:
        derivative = irad.value_and_grad(model, argnums=(0, 1, 3))
        results = [derivative(*arguments()) for _ in range(runs)]
    finally:
        numba.set_num_threads(THREADS)
    return [(np.float64(v).tobytes(), *(np.asarray(g).tobytes() for g in found)) for v, found in results]


def close(one: tuple[bytes, ...], other: tuple[bytes, ...]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(np.allclose(np.frombuffer(a), np.frombuffer(b), rtol=1e-10, atol=0) for a, b in pairs)


@njit(parallel=True, error_model="numpy")
def large(a):
    """Arrays that are cleared and copied by several threads."""
    b, c = np.zeros_like(a), a.copy()
    for i in prange(1, a.size - 1):
        b[i] = a[i - 1] * c[i] + a[i + 1]
        c[i] = b[i] * a[i]
    return b * c


def check_large_arrays(threads: int) -> None:
    """The pullback of ones, twice, against the formula; exact, for each sum has few terms and integers hold it."""
    numba.set_num_threads(threads)
    try:
        for dtype in (np.float64, np.float32):
            a = np.random.default_rng(3).integers(-4, 5, 900_001).astype(dtype)
            value, pullback = irad.vjp(large, a)
            left, here, right = a[:-2], a[1:-1], a[2:]
            b = left * here + right
            expected = np.zeros_like(a)
            expected[1:-1] += b * b + 2 * b * here * left
            expected[:-2] += 2 * b * here * here
            expected[2:] += 2 * b * here
            assert np.array_equal(value[1:-1], b * b * here)
            for _ in range(2):
                [gradient] = pullback(np.ones_like(a))
                assert np.array_equal(gradient, expected), (threads, dtype)
    finally:
        numba.set_num_threads(THREADS)


def check_threads() -> None:
    """Every number of threads: the same bits in each run, the primal's value, the gradient of one thread."""
    [single, *_] = gradients(1, 1)
    for threads in range(1, THREADS + 1):
        first, *others = gradients(threads)
        assert all(other == first for other in others), threads
        assert close(first, single), threads
        numba.set_num_threads(threads)
        plain = np.float64(model(*arguments())).tobytes()
        if numba.threading_layer() == "tbb":  # which steals work: the plain sum has other bits in each run
            assert close((plain,), first[:1]), threads
        else:
            assert plain == first[0], threads
    check_large_arrays(THREADS)


def test_every_number_of_threads():
    check_threads()


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "threads"), [("workqueue", 3), ("omp", 5), ("tbb", 4)])
def test_other_threading_layers(layer: str, threads: int):
    environment = {**os.environ, "NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": str(threads)}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
    code = "from tests.programs.test_parallel_threads import check_threads; check_threads()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    if "No threading layer could be loaded" in done.stderr:
        pytest.skip(f"no threading layer {layer}")
    assert done.returncode == 0, done.stderr
