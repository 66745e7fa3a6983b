"""Kernels that call derivatives: forces of an energy, Newton's method in each thread, a matrix for each cell."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64, njit

import irad
from irad import Const, Duplicated
from tests.cuda.case import Arguments, Case


@njit
def bond_energy(position, i, j, length, stiffness):
    squared = 0.0
    for k in range(3):
        squared += (position[i, k] - position[j, k]) ** 2
    return 0.5 * stiffness * (math.sqrt(squared) - length) ** 2


def bonds(position, start, end, length, stiffness, slope):
    """A thread for each bond adds the slopes of its energy to both of its ends."""
    s = cuda.grid(1)
    if s < start.size:
        i, j = start[s], end[s]
        irad.autodiff(
            irad.Reverse,
            bond_energy,
            Duplicated(position, slope),
            Const(i),
            Const(j),
            Const(length[s]),
            Const(stiffness),
        )


def bonds_reference(position, start, end, length, stiffness, slope):
    d = position[start] - position[end]
    r = np.linalg.norm(d, axis=1)
    pull = (stiffness * (r - length) / r)[:, None] * d
    np.add.at(slope, start, pull)
    np.add.at(slope, end, -pull)


def bonds_arguments(rng: np.random.Generator) -> Arguments:
    start = rng.integers(0, 10, 20)
    return (
        *(rng.normal(size=(10, 3)), start, (start + rng.integers(1, 9, 20)) % 10),
        *(rng.random(20), 2.5, np.zeros((10, 3))),
    )


@njit
def cubic(x, a, b):
    return x * x * x + a * x - b


def roots(a, b, x):
    """Newton's method in each thread, and the slope of the curvature at the root beside it."""
    i = cuda.grid(1)
    if i < a.size:
        root = 1.0
        for _ in range(6):
            value, slope = irad.value_and_grad(cubic)(root, a[i], b[i])
            root -= value / slope
        x[i] = root + 0.01 * irad.grad(irad.grad(cubic))(root, a[i], b[i])


def roots_reference(a, b, x):
    root = np.ones_like(a)
    for _ in range(6):
        root -= (root**3 + a * root - b) / (3.0 * root**2 + a)
    x[:] = root + 0.06 * root


def roots_arguments(rng: np.random.Generator) -> Arguments:
    return 1.0 + rng.random(30), 1.0 + rng.random(30), np.zeros(30)


@njit
def speed(state, flux, gravity):
    """Of shallow water, in place of what is in the memory for it."""
    flux[0] = state[1]
    flux[1] = state[1] * state[1] / state[0] + 0.5 * gravity * state[0] * state[0]


def cells(state, gravity, matrix):
    """The Jacobian of a flux for each cell, by columns in local memory."""
    i = cuda.grid(1)
    if i < state.shape[0]:
        point, direction = cuda.local.array(2, float64), cuda.local.array(2, float64)
        flux, slope = cuda.local.array(2, float64), cuda.local.array(2, float64)
        for column in range(2):
            for k in range(2):
                point[k] = state[i, k]
                direction[k] = 1.0 if k == column else 0.0
                flux[k] = slope[k] = 0.0
            irad.autodiff(irad.Forward, speed, Duplicated(point, direction), Duplicated(flux, slope), Const(gravity))
            for k in range(2):
                matrix[i, k, column] = slope[k]


def cells_reference(state, gravity, matrix):
    depth, flow = state.T
    matrix[:, 0, 0], matrix[:, 0, 1] = 0.0, 1.0
    matrix[:, 1, 0], matrix[:, 1, 1] = gravity * depth - flow**2 / depth**2, 2.0 * flow / depth


def cells_arguments(rng: np.random.Generator) -> Arguments:
    return 1.0 + rng.random((18, 2)), 9.81, np.zeros((18, 2, 2))


CASES = (
    Case(bonds, bonds_reference, bonds_arguments, 3, 8, (5,), (0, 3, 4, 5)),
    Case(roots, roots_reference, roots_arguments, 2, 16, (2,), (0, 1, 2)),
    Case(cells, cells_reference, cells_arguments, 3, 8, (2,), (0, 1, 2)),
)
