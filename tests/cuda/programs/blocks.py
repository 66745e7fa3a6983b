"""Threads of a block that work together in shared memory."""

from __future__ import annotations

import numpy as np
from numba import cuda, float64

from tests.cuda.case import Arguments, Case

BLOCK = 32
WITH_HALO = BLOCK + 2
BINS = 8
TILE = 4


def stencil(x, a, y):
    """A tile with a halo of one element on each side; zero outside the array."""
    tile = cuda.shared.array(WITH_HALO, float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x + 1
    tile[t] = x[i] if i < x.size else 0.0
    if t == 1:
        tile[0] = x[i - 1] if i > 0 else 0.0
    if t == cuda.blockDim.x:
        tile[t + 1] = x[i + 1] if i + 1 < x.size else 0.0
    cuda.syncthreads()
    if i < x.size:
        y[i] = tile[t] + a * (tile[t - 1] - 2.0 * tile[t] + tile[t + 1]) * tile[t]


def stencil_reference(x, a, y):
    wide = np.concatenate((np.zeros(1, x.dtype), x, np.zeros(1, x.dtype)))
    y[:] = x + a * (wide[:-2] - 2.0 * x + wide[2:]) * x


def stencil_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=70), 0.3, np.zeros(70)


def bitonic_sort(x, y):
    """Batcher's network; LLVM gives the comparisons of both directions one switch."""
    s = cuda.shared.array(BINS, float64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    k = 2
    while k <= BINS:
        j = k >> 1
        while j > 0:
            p = t ^ j
            if p > t:
                a = s[t]
                b = s[p]
                if (t & k) == 0:
                    if a > b:
                        s[t] = b
                        s[p] = a
                else:
                    if a < b:
                        s[t] = b
                        s[p] = a
            cuda.syncthreads()
            j >>= 1
        k <<= 1
    y[t] = s[t]


def bitonic_sort_reference(x, y):
    y[:] = np.sort(x)


def bitonic_sort_arguments(rng: np.random.Generator) -> Arguments:
    return rng.permutation(BINS) + rng.uniform(0.1, 0.9, BINS), np.zeros(BINS)


def block_reduction(x, out):
    """The sum of squares: a tree in shared memory, then one atomic addition for each block."""
    part = cuda.shared.array(BLOCK, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] * x[i] if i < x.size else 0.0
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])


def block_reduction_reference(x, out):
    out[0] += np.sum(x * x)


def block_reduction_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=90), np.array([0.5])


def histogram(x, weight, bins):
    """A weighted histogram of numbers in [0, 1): atomic additions to shared memory, then to global memory."""
    mine = cuda.shared.array(BINS, float64)
    t = cuda.threadIdx.x
    if t < BINS:
        mine[t] = 0.0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(mine, int(x[i] * BINS), weight[i] * weight[i])
    cuda.syncthreads()
    if t < BINS:
        cuda.atomic.add(bins, t, mine[t])


def histogram_reference(x, weight, bins):
    np.add.at(bins, (x * BINS).astype(int), weight * weight)


def histogram_arguments(rng: np.random.Generator) -> Arguments:
    return rng.random(80), rng.normal(size=80), np.zeros(BINS)


def matmul(a, b, c):
    """C = A·B in square tiles, for shapes that the tiles do not divide."""
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    column, row = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = 0.0
    for tile in range((a.shape[1] + TILE - 1) // TILE):
        k = tile * TILE
        left[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else 0.0
        right[ty, tx] = b[k + ty, column] if k + ty < b.shape[0] and column < b.shape[1] else 0.0
        cuda.syncthreads()
        for j in range(TILE):
            total += left[ty, j] * right[j, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def matmul_reference(a, b, c):
    c[:] = a @ b


def matmul_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(6, 9)), rng.normal(size=(9, 7)), np.zeros((6, 7))


def scan(x, y):
    """Running products of the numbers of a block (Hillis and Steele), in dynamic shared memory."""
    part = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i]
    cuda.syncthreads()
    step = 1
    while step < cuda.blockDim.x:
        value = part[t]
        if t >= step:
            value *= part[t - step]
        cuda.syncthreads()
        part[t] = value
        cuda.syncthreads()
        step *= 2
    y[i] = part[t]


def scan_reference(x, y):
    y[:] = np.cumprod(x.reshape(-1, 16), axis=1).ravel()


def scan_arguments(rng: np.random.Generator) -> Arguments:
    return 0.5 + rng.random(48), np.zeros(48)


CASES = (
    Case(stencil, stencil_reference, stencil_arguments, 3, BLOCK, outputs=(2,), active=(0, 1, 2)),
    Case(bitonic_sort, bitonic_sort_reference, bitonic_sort_arguments, 1, BINS, outputs=(1,), active=(0, 1)),
    Case(block_reduction, block_reduction_reference, block_reduction_arguments, 3, BLOCK, outputs=(1,), active=(0, 1)),
    Case(histogram, histogram_reference, histogram_arguments, 3, BLOCK, outputs=(2,), active=(1, 2)),
    Case(matmul, matmul_reference, matmul_arguments, (2, 2), (TILE, TILE), outputs=(2,), active=(0, 1, 2)),
    Case(scan, scan_reference, scan_arguments, 3, 16, outputs=(1,), active=(0, 1), shared=16 * 8),
)
