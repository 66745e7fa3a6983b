"""The kernels, and for each the reverse kernel that an expert would write."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numba import cuda, float64

from bench.gpu.case import Arrays, GpuCase, Launch, blocks_of

THREADS: Final = 256
TILE: Final = 16
PADDED: Final = TILE + 1  # a column of a tile lies in different banks of the shared memory
BODIES: Final = 128

# ------------------------------------------------------------------------------------------------ stencil


@cuda.jit
def stencil(x, y):
    i = cuda.grid(1)
    if 1 <= i and i < x.size - 1:
        y[i] = 0.25 * x[i - 1] + x[i] * x[i] + 0.25 * x[i + 1]


@cuda.jit
def stencil_reverse(x, dx, dy):
    """Gathers: no atomic additions."""
    i = cuda.grid(1)
    if i >= x.size:
        return
    total = 0.0
    if 2 <= i:
        total += 0.25 * dy[i - 1]
    if 1 <= i and i < x.size - 1:
        total += 2.0 * x[i] * dy[i]
    if i < x.size - 2:
        total += 0.25 * dy[i + 1]
    dx[i] += total


def stencil_arrays(size: int, rng: np.random.Generator) -> Arrays:
    return {"x": rng.random(size), "y": np.zeros(size)}


def stencil_hand(launch: Launch, a: Arrays) -> None:
    stencil_reverse[launch](a["x"], a["dx"], a["dy"])


# ------------------------------------------------------------------------------------------------ reduction


@cuda.jit
def reduction(x, y):
    part = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = x[i] * x[i] if i < x.size else 0.0
    cuda.syncthreads()
    for step in range(8):
        half = THREADS >> (step + 1)
        if t < half:
            part[t] += part[t + half]
        cuda.syncthreads()
    if t == 0:
        cuda.atomic.add(y, 0, part[0])


@cuda.jit
def reduction_reverse(x, dx, dy):
    i = cuda.grid(1)
    if i < x.size:
        dx[i] += 2.0 * x[i] * dy[0]


def reduction_arrays(size: int, rng: np.random.Generator) -> Arrays:
    return {"x": rng.random(size), "y": np.zeros(1)}


def reduction_hand(launch: Launch, a: Arrays) -> None:
    reduction_reverse[launch](a["x"], a["dx"], a["dy"])


# ------------------------------------------------------------------------------------------------ one number


@cuda.jit
def scaled(scale, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = scale * x[i] * x[i]


@cuda.jit
def scaled_reverse(scale, x, dscale, dx, dy):
    """An atomic addition by each thread, as it is written without a second thought."""
    i = cuda.grid(1)
    if i < x.size:
        dx[i] += 2.0 * scale * x[i] * dy[i]
        cuda.atomic.add(dscale, 0, x[i] * x[i] * dy[i])


def scaled_arrays(size: int, rng: np.random.Generator) -> Arrays:
    return {"scale": 1.5, "x": rng.random(size), "y": np.zeros(size)}


def scaled_hand(launch: Launch, a: Arrays) -> None:
    scaled_reverse[launch](a["scale"], a["x"], a["dscale"], a["dx"], a["dy"])


# ------------------------------------------------------------------------------------------------ N-body


@cuda.jit
def nbody(x, y):
    tile = cuda.shared.array((BODIES, 3), float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    n = x.shape[0]
    own = i if i < n else n - 1
    px, py, pz = x[own, 0], x[own, 1], x[own, 2]
    ax = ay = az = 0.0
    for start in range(0, n, BODIES):
        j = start + t if start + t < n else n - 1
        tile[t, 0], tile[t, 1], tile[t, 2] = x[j, 0], x[j, 1], x[j, 2]
        cuda.syncthreads()
        for k in range(BODIES if n - start > BODIES else n - start):
            rx, ry, rz = tile[k, 0] - px, tile[k, 1] - py, tile[k, 2] - pz
            r2 = rx * rx + ry * ry + rz * rz + 0.01
            f = 1.0 / (r2 * math.sqrt(r2))
            ax += f * rx
            ay += f * ry
            az += f * rz
        cuda.syncthreads()
    if i < n:
        y[i, 0], y[i, 1], y[i, 2] = ax, ay, az


@cuda.jit
def nbody_reverse(x, dx, dy):
    """Adjoint of the force on a body and of the one it exerts, in one loop without atomics: it is antisymmetric."""
    tile = cuda.shared.array((BODIES, 6), float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    n = x.shape[0]
    own = i if i < n else n - 1
    px, py, pz = x[own, 0], x[own, 1], x[own, 2]
    qx, qy, qz = dy[own, 0], dy[own, 1], dy[own, 2]
    ax = ay = az = 0.0
    for start in range(0, n, BODIES):
        j = start + t if start + t < n else n - 1
        tile[t, 0], tile[t, 1], tile[t, 2] = x[j, 0], x[j, 1], x[j, 2]
        tile[t, 3], tile[t, 4], tile[t, 5] = dy[j, 0], dy[j, 1], dy[j, 2]
        cuda.syncthreads()
        for k in range(BODIES if n - start > BODIES else n - start):
            rx, ry, rz = tile[k, 0] - px, tile[k, 1] - py, tile[k, 2] - pz
            ux, uy, uz = tile[k, 3] - qx, tile[k, 4] - qy, tile[k, 5] - qz
            r2 = rx * rx + ry * ry + rz * rz + 0.01
            f = 1.0 / (r2 * math.sqrt(r2))
            g = 3.0 * f / r2 * (ux * rx + uy * ry + uz * rz)
            ax += f * ux - g * rx
            ay += f * uy - g * ry
            az += f * uz - g * rz
        cuda.syncthreads()
    if i < n:
        dx[i, 0] += ax
        dx[i, 1] += ay
        dx[i, 2] += az


def nbody_arrays(size: int, rng: np.random.Generator) -> Arrays:
    return {"x": rng.random((size, 3)), "y": np.zeros((size, 3))}


def nbody_hand(launch: Launch, a: Arrays) -> None:
    nbody_reverse[launch](a["x"], a["dx"], a["dy"])


# ------------------------------------------------------------------------------------------------ matrices


@cuda.jit
def matmul(a, b, y):
    """Square matrices whose size is a multiple of the tile's."""
    left = cuda.shared.array((TILE, TILE), float64)
    right = cuda.shared.array((TILE, TILE), float64)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        left[ty, tx] = a[row, start + tx]
        right[ty, tx] = b[start + ty, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    y[row, column] = total


@cuda.jit
def add_product(a, b, y, transposes_left):
    """Y += a · bᵀ, or y += aᵀ · b."""
    left = cuda.shared.array((TILE, PADDED), float64)
    right = cuda.shared.array((TILE, PADDED), float64)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = 0.0
    for start in range(0, a.shape[1], TILE):
        if transposes_left:
            left[tx, ty] = a[start + ty, row - ty + tx]
            right[ty, tx] = b[start + ty, column]
        else:
            left[ty, tx] = a[row, start + tx]
            right[tx, ty] = b[column - tx + ty, start + tx]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    y[row, column] += total


def matmul_arrays(size: int, rng: np.random.Generator) -> Arrays:
    return {"a": rng.random((size, size)), "b": rng.random((size, size)), "y": np.zeros((size, size))}


def matmul_hand(launch: Launch, a: Arrays) -> None:
    add_product[launch](a["dy"], a["b"], a["da"], False)
    add_product[launch](a["a"], a["dy"], a["db"], True)


def tiles(size: int) -> Launch:
    return (size // TILE, size // TILE), (TILE, TILE)


CASES: Final = (
    GpuCase(
        *("stencil", stencil, stencil_arrays, ("x",), "y", stencil_hand, blocks_of(THREADS), 1 << 26, 1000),
        *(lambda n: 5 * 8 * n, "bound by memory; the adjoint of a gather is a scatter"),
    ),
    GpuCase(
        *("reduction", reduction, reduction_arrays, ("x",), "y", reduction_hand, blocks_of(THREADS), 1 << 26, 1000),
        *(lambda n: 3 * 8 * n, "bound by memory; the tree in shared memory is reversed"),
    ),
    GpuCase(
        *("scaled", scaled, scaled_arrays, ("scale", "x"), "y", scaled_hand, blocks_of(THREADS), 1 << 26, 1000),
        *(lambda n: 5 * 8 * n, "all threads add to one number: atomic additions against sums made first"),
    ),
    GpuCase(
        *("nbody", nbody, nbody_arrays, ("x",), "y", nbody_hand, blocks_of(BODIES), 1 << 16, 200),
        *(lambda n: 12 * 8 * n, "bound by arithmetic; every body adds to every other"),
    ),
    GpuCase(
        *("matmul", matmul, matmul_arrays, ("a", "b"), "y", matmul_hand, tiles, 4096, 2 * TILE),
        *(lambda n: 8 * 8 * n * n, "bound by arithmetic; tiles are overwritten, and saved"),
    ),
)
BY_NAME: Final = {case.name: case for case in CASES}
