"""Threads that work together: shuffles, votes, barriers with a predicate, dynamic shared memory."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda, float32, float64, types

from irad.backend.executor.scheduler import IN_ORDER, shuffled
from irad.frontend.cuda.program import load_kernel
from tests.cuda.run import run

ALL = 0xFFFFFFFF
LANES = np.arange(32)


def shuffles(x, y):
    i = cuda.grid(1)
    y[0, i] = cuda.shfl_sync(ALL, x[i], 5)
    y[1, i] = cuda.shfl_up_sync(ALL, x[i], 3)
    y[2, i] = cuda.shfl_down_sync(ALL, x[i], 3)
    y[3, i] = cuda.shfl_xor_sync(ALL, x[i], 9)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_shuffles_move_numbers_as_numbers(dtype: type):
    x = (np.arange(64) * 2**24 + 7).astype(dtype)
    y = np.zeros((4, 64), dtype)
    run(shuffles, 1, 64, (x, y), schedule=shuffled(1))
    for first in (0, 32):
        warp, found = x[first : first + 32], y[:, first : first + 32]
        np.testing.assert_array_equal(found[0], warp[5])
        np.testing.assert_array_equal(found[1], warp[np.where(LANES >= 3, LANES - 3, LANES)])
        np.testing.assert_array_equal(found[2], warp[np.where(LANES < 29, LANES + 3, LANES)])
        np.testing.assert_array_equal(found[3], warp[LANES ^ 9])
    suffix = {"int32": "i32", "int64": "i64", "float32": "f32", "float64": "f64"}[np.dtype(dtype).name]
    array = types.Array(types.float64 if suffix == "f64" else getattr(types, np.dtype(dtype).name), 1, "C")
    text = load_kernel(cuda.jit(shuffles), (array, types.Array(array.dtype, 2, "C"))).module.text
    for kind in ("idx", "up", "down", "bfly"):
        assert f"@irad.cuda.shfl.{kind}.{suffix}(" in text
    assert "bitcast" not in text


def test_votes():
    def kernel(x, y):
        i = cuda.grid(1)
        y[0, i] = cuda.all_sync(ALL, x[i] > 0)
        y[1, i] = cuda.any_sync(ALL, x[i] > 0)
        y[2, i] = cuda.eq_sync(ALL, x[i] > 0)
        y[3, i] = cuda.ballot_sync(ALL, x[i] > 0)

    for x in (np.ones(32), -np.ones(32), np.where(LANES % 5 == 0, 1.0, -1.0)):
        y = np.zeros((4, 32), np.int64)
        run(kernel, 1, 32, (x, y), schedule=shuffled(2))
        ballot = int(np.sum(np.where(x > 0, 1 << LANES, 0)))
        wanted = [np.all(x > 0), np.any(x > 0), len(set(x)) == 1, np.int32(np.uint32(ballot))]
        assert [set(row) for row in y] == [{int(each)} for each in wanted]


def test_matches():
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = cuda.match_any_sync(ALL, x[i])

    for dtype in (np.int32, np.int64, np.float32, np.float64):
        x = (LANES % 7).astype(dtype)
        y = np.zeros(32, np.int64)
        run(kernel, 1, 32, (x, y))
        wanted = [np.int32(np.uint32(sum(1 << j for j in range(32) if x[j] == x[i]))) for i in range(32)]
        np.testing.assert_array_equal(y, wanted)


def test_barriers_with_a_predicate():
    def kernel(x, y):
        i = cuda.threadIdx.x
        y[0, i] = cuda.syncthreads_count(x[i])
        y[1, i] = cuda.syncthreads_and(x[i])
        y[2, i] = cuda.syncthreads_or(x[i])

    for x in (np.zeros(48, int), np.ones(48, int), np.arange(48) % 3):
        y = np.zeros((3, 48), int)
        run(kernel, 1, 48, (x, y), schedule=shuffled(1))
        wanted = np.array([np.count_nonzero(x), np.all(x), np.any(x)])
        np.testing.assert_array_equal(y, np.repeat(wanted[:, None], 48, axis=1))


def test_lanes_masks_and_fences():
    def kernel(y):
        i = cuda.grid(1)
        cuda.syncwarp()
        cuda.threadfence()
        cuda.threadfence_block()
        cuda.threadfence_system()
        y[0, i] = cuda.laneid
        y[1, i] = cuda.warpsize
        y[2, i] = cuda.lanemask_lt()
        y[3, i] = cuda.popc(cuda.activemask()) > 0

    y = np.zeros((4, 64), np.int64)
    run(kernel, 1, 64, (y,))
    lanes = np.arange(64) % 32
    np.testing.assert_array_equal(y, [lanes, np.full(64, 32), (1 << lanes) - 1, np.ones(64)])


def test_all_dynamic_shared_memory_is_one():
    """As in CUDA: two arrays of dynamic size begin at the same address; each has all of it."""

    def kernel(x, sizes):
        doubles = cuda.shared.array(0, float64)
        singles = cuda.shared.array(0, float32)
        i = cuda.threadIdx.x
        doubles[i] = x[i]
        cuda.syncthreads()
        if i == 0:
            sizes[0], sizes[1] = doubles.size, singles.size
            sizes[2] = 0
            for k in range(singles.size):
                if singles[k] != 0:
                    sizes[2] += 1

    sizes = np.zeros(3, np.int64)
    run(kernel, 1, 8, (2.0 ** np.arange(8), sizes), shared=64)
    np.testing.assert_array_equal(sizes, [8, 16, 8])  # of these powers of two only the upper halves are not zero


def test_grids():
    def kernel(y):
        i, j, k = cuda.grid(3)
        n, m, p = cuda.gridsize(3)
        y[i, j, k] = (i * m + j) * p + k + 1000 * cuda.gridDim.y + 100000 * cuda.blockDim.z
        if cuda.grid(2)[1] != j or cuda.gridsize(1) != n or cuda.gridsize(2)[1] != m:
            y[i, j, k] = -1

    y = np.zeros((4, 6, 3), np.int64)
    run(kernel, (2, 3, 1), (2, 2, 3), (y,), schedule=IN_ORDER)
    np.testing.assert_array_equal(y.ravel(), np.arange(72) + 3000 + 300000)
