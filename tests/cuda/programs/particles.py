"""Particles: forces between all, forces of springs, rows of tables."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64

from tests.cuda.case import Arguments, Case

BODIES = 16


def nbody(position, mass, softening, acceleration):
    """Gravity between all bodies; a block reads them tile by tile into shared memory."""
    tile = cuda.shared.array((BODIES, 4), float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    n = position.shape[0]
    x = y = z = 0.0
    if i < n:
        x, y, z = position[i, 0], position[i, 1], position[i, 2]
    ax = ay = az = 0.0
    for start in range(0, n, cuda.blockDim.x):
        j = start + t
        tile[t, 3] = 0.0
        if j < n:
            tile[t, 0], tile[t, 1], tile[t, 2] = position[j, 0], position[j, 1], position[j, 2]
            tile[t, 3] = mass[j]
        cuda.syncthreads()
        for k in range(cuda.blockDim.x if n - start > cuda.blockDim.x else n - start):
            dx, dy, dz = tile[k, 0] - x, tile[k, 1] - y, tile[k, 2] - z
            r2 = dx * dx + dy * dy + dz * dz + softening
            f = tile[k, 3] / (r2 * math.sqrt(r2))
            ax += f * dx
            ay += f * dy
            az += f * dz
        cuda.syncthreads()
    if i < n:
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2] = ax, ay, az


def nbody_reference(position, mass, softening, acceleration):
    d = position[None, :, :] - position[:, None, :]
    r2 = np.sum(d * d, axis=2) + softening
    acceleration[:] = np.einsum("ij,ijk->ik", mass[None, :] / r2**1.5, d)


def nbody_arguments(rng: np.random.Generator) -> Arguments:
    return rng.normal(size=(20, 3)), rng.random(20), 0.05, np.zeros((20, 3))


def springs(position, start, end, length, stiffness, force):
    """A thread for each spring adds its force to both of its ends."""
    s = cuda.grid(1)
    if s >= start.size:
        return
    i, j = start[s], end[s]
    d = cuda.local.array(3, float64)
    square = 0.0
    for k in range(3):
        d[k] = position[i, k] - position[j, k]
        square += d[k] * d[k]
    distance = math.sqrt(square)
    f = stiffness * (distance - length[s]) / distance
    for k in range(3):
        cuda.atomic.sub(force, (i, k), f * d[k])
        cuda.atomic.add(force, (j, k), f * d[k])


def springs_reference(position, start, end, length, stiffness, force):
    d = position[start] - position[end]
    distance = np.sqrt(np.sum(d * d, axis=1))
    f = (stiffness * (distance - length) / distance)[:, None] * d
    np.subtract.at(force, start, f)
    np.add.at(force, end, f)


def springs_arguments(rng: np.random.Generator) -> Arguments:
    start = np.arange(24, dtype=np.int32) % 11
    end = (start + 1 + np.arange(24, dtype=np.int32) // 11) % 11
    return rng.normal(size=(11, 3)), start, end, 0.5 + rng.random(24), 3.0, np.zeros((11, 3))


@cuda.jit(device=True)
def pull(x, i, j, i2, j2, rest, a):
    """Component ``a`` of the force of the spring from particle (i, j) to (i2, j2); none beyond the edge."""
    if i2 < 0 or j2 < 0 or i2 >= x.shape[0] or j2 >= x.shape[1]:
        return 0.0
    square = 0.0
    for b in range(3):
        square += (x[i2, j2, b] - x[i, j, b]) ** 2
    distance = math.sqrt(square)
    return (distance - rest) * (x[i2, j2, a] - x[i, j, a]) / distance


def cloth(x, v, stiffness, dt, x_next, v_next):
    """A step of a mass-spring cloth (semi-implicit Euler); the first row hangs fixed."""
    j, i = cuda.grid(2)
    if i >= x.shape[0] or j >= x.shape[1]:
        return
    for a in range(3):
        f = -0.1 * v[i, j, a]
        if a == 2:
            f -= 9.81
        f += stiffness * pull(x, i, j, i - 1, j, 0.1, a)
        f += stiffness * pull(x, i, j, i + 1, j, 0.1, a)
        f += stiffness * pull(x, i, j, i, j - 1, 0.1, a)
        f += stiffness * pull(x, i, j, i, j + 1, 0.1, a)
        speed = v[i, j, a] + dt * f if i > 0 else 0.0
        v_next[i, j, a] = speed
        x_next[i, j, a] = x[i, j, a] + dt * speed


def cloth_reference(x, v, stiffness, dt, x_next, v_next):
    f = -0.1 * v
    f[:, :, 2] -= 9.81
    for axis in (0, 1):
        d = np.diff(x, axis=axis)
        distance = np.sqrt(np.sum(d * d, axis=2, keepdims=True))
        pulls = stiffness * (distance - 0.1) * d / distance
        if axis == 0:
            f[:-1] += pulls
            f[1:] -= pulls
        else:
            f[:, :-1] += pulls
            f[:, 1:] -= pulls
    v_next[:] = v + dt * f
    v_next[0] = 0.0
    x_next[:] = x + dt * v_next


def cloth_arguments(rng: np.random.Generator) -> Arguments:
    x = np.zeros((5, 6, 3))
    x[:, :, :2] = 0.1 * np.stack(np.meshgrid(np.arange(5), np.arange(6), indexing="ij"), axis=2)
    x += 0.02 * rng.normal(size=x.shape)
    return x, rng.normal(size=x.shape), 40.0, 0.01, np.zeros_like(x), np.zeros_like(x)


def gather_scatter(x, weight, source, target, y):
    """y[target] += weight · x[source]: many threads may add to one element, in no order."""
    i = cuda.grid(1)
    if i < source.size:
        cuda.atomic.add(y, target[i], weight[i] * x[source[i]])


def gather_scatter_reference(x, weight, source, target, y):
    np.add.at(y, target, weight * x[source])


def gather_scatter_arguments(rng: np.random.Generator) -> Arguments:
    source, target = (rng.integers(0, 9, size=50) for _ in range(2))
    return rng.normal(size=9), rng.normal(size=50), source, target, rng.normal(size=9)


CASES = (
    Case(nbody, nbody_reference, nbody_arguments, 2, BODIES, outputs=(3,), active=(0, 1, 2, 3)),
    Case(springs, springs_reference, springs_arguments, 1, 32, outputs=(5,), active=(0, 3, 4, 5)),
    Case(cloth, cloth_reference, cloth_arguments, (2, 2), (4, 4), outputs=(4, 5), active=(0, 1, 2, 3, 4, 5)),
    Case(gather_scatter, gather_scatter_reference, gather_scatter_arguments, 2, 32, outputs=(4,), active=(0, 1, 4)),
)
