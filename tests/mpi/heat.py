"""The heat equation on a grid whose rows are spread over the ranks, against the same on one rank."""

from __future__ import annotations

from typing import Any

import numba_mpi as mpi
import numpy as np
from mpi4py import MPI
from numba import njit

import irad

NOBODY = MPI.PROC_NULL
STEPS, SNAPSHOTS, SHAPE = 12, 4, (8, 5)


@njit
def exchange(u):
    """The first and the last row are copies of the neighbours' rows, if there are neighbours."""
    rank, size = mpi.rank(), mpi.size()
    above = rank - 1 if rank > 0 else NOBODY
    below = rank + 1 if rank < size - 1 else NOBODY
    _, first = mpi.irecv(u[0], above, 1)
    _, second = mpi.irecv(u[-1], below, 2)
    _, third = mpi.isend(u[-2], below, 1)
    _, fourth = mpi.isend(u[1], above, 2)
    mpi.waitall((first, second, third, fourth))


@njit
def step(u, conductivity):
    """One step; rows beyond the grid and the outer columns are kept cold."""
    exchange(u)
    new = np.zeros_like(u)
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            flow = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
            new[i, j] = u[i, j] + 0.1 * conductivity[i - 1, j] * (1.0 + u[i, j] ** 2) * flow
    return new


evolve = irad.checkpoint_loop(step, STEPS, snapshots=SNAPSHOTS)


@njit
def energy(start, conductivity):
    """The sum of squares at the end, of all ranks, times the share of this rank."""
    u = np.zeros((start.shape[0] + 2, start.shape[1]))
    u[1:-1] = start
    u = evolve(u, conductivity)
    total = np.zeros(1)
    mpi.allreduce((u[1:-1] ** 2).sum(), total)
    return total[0] / mpi.size()


@njit
def serial_energy(start, conductivity):
    u = np.zeros((start.shape[0] + 2, start.shape[1]))
    u[1:-1] = start
    for _ in range(STEPS):
        new = np.zeros_like(u)
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                flow = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j]
                new[i, j] = u[i, j] + 0.1 * conductivity[i - 1, j] * (1.0 + u[i, j] ** 2) * flow
        u = new
    return (u[1:-1] ** 2).sum()


def check(world: Any, options: irad.Options) -> None:
    """The gradient of each rank's rows is that of these rows of the whole."""
    rng = np.random.default_rng(0)
    start, conductivity = rng.uniform(size=SHAPE), rng.uniform(0.2, 1.0, size=SHAPE)
    bounds = [SHAPE[0] * each // world.size for each in range(world.size + 1)]
    rows = slice(bounds[world.rank], bounds[world.rank + 1])
    gradient = irad.value_and_grad(energy, argnums=(0, 1), options=options)
    value, found = gradient(start[rows].copy(), conductivity[rows].copy())
    whole, wanted = irad.value_and_grad(serial_energy, argnums=(0, 1), options=options)(start, conductivity)
    np.testing.assert_allclose(value * world.size, whole, rtol=1e-13)
    for mine, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, expected[rows], rtol=1e-12, atol=1e-15)
