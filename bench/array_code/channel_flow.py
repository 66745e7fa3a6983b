"""Flow through a channel, periodic along it, by pressure correction (step 12 of Barba and Forsyth's CFD Python, 2018).

Slices at both ends of the channel wrap around, so each equation is written three times: inside and at the two ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from bench.array_code.program import ArrayProgram


@njit
def _source(u, v, density, dt, dx, dy):
    """The right-hand side of the equation for the pressure."""
    s = np.zeros_like(u)
    s[1:-1, 1:-1] = density * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx) + (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)) ** 2
    )
    s[1:-1, -1] = density * (
        1 / dt * ((u[1:-1, 0] - u[1:-1, -2]) / (2 * dx) + (v[2:, -1] - v[:-2, -1]) / (2 * dy))
        - ((u[1:-1, 0] - u[1:-1, -2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, -1] - u[:-2, -1]) / (2 * dy) * (v[1:-1, 0] - v[1:-1, -2]) / (2 * dx))
        - ((v[2:, -1] - v[:-2, -1]) / (2 * dy)) ** 2
    )
    s[1:-1, 0] = density * (
        1 / dt * ((u[1:-1, 1] - u[1:-1, -1]) / (2 * dx) + (v[2:, 0] - v[:-2, 0]) / (2 * dy))
        - ((u[1:-1, 1] - u[1:-1, -1]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 0] - u[:-2, 0]) / (2 * dy) * (v[1:-1, 1] - v[1:-1, -1]) / (2 * dx))
        - ((v[2:, 0] - v[:-2, 0]) / (2 * dy)) ** 2
    )
    return s


@njit
def _relax(p, s, dx, dy, sweeps):
    """Jacobi sweeps for the pressure."""
    for _ in range(sweeps):
        q = p.copy()
        p[1:-1, 1:-1] = ((q[1:-1, 2:] + q[1:-1, :-2]) * dy**2 + (q[2:, 1:-1] + q[:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * s[1:-1, 1:-1]
        p[1:-1, -1] = ((q[1:-1, 0] + q[1:-1, -2]) * dy**2 + (q[2:, -1] + q[:-2, -1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * s[1:-1, -1]
        p[1:-1, 0] = ((q[1:-1, 1] + q[1:-1, -1]) * dy**2 + (q[2:, 0] + q[:-2, 0]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * s[1:-1, 0]
        p[-1, :] = p[-2, :]
        p[0, :] = p[1, :]


@njit
def loss(u, v, p, density, viscosity, force, steps, sweeps):
    u, v, p = u.copy(), v.copy(), p.copy()
    dy, dx = 2 / (u.shape[0] - 1), 2 / (u.shape[1] - 1)
    dt = 0.1 / ((u.shape[0] - 1) * (u.shape[1] - 1))
    change, step = 1.0, 0
    while change > 1e-3 and step < steps:
        a, b = u.copy(), v.copy()
        source = _source(u, v, density, dt, dx, dy)
        _relax(p, source, dx, dy, sweeps)
        u[1:-1, 1:-1] = (
            a[1:-1, 1:-1]
            - a[1:-1, 1:-1] * dt / dx * (a[1:-1, 1:-1] - a[1:-1, :-2])
            - b[1:-1, 1:-1] * dt / dy * (a[1:-1, 1:-1] - a[:-2, 1:-1])
            - dt / (2 * density * dx) * (p[1:-1, 2:] - p[1:-1, :-2])
            + viscosity
            * (
                dt / dx**2 * (a[1:-1, 2:] - 2 * a[1:-1, 1:-1] + a[1:-1, :-2])
                + dt / dy**2 * (a[2:, 1:-1] - 2 * a[1:-1, 1:-1] + a[:-2, 1:-1])
            )
            + force * dt
        )
        v[1:-1, 1:-1] = (
            b[1:-1, 1:-1]
            - a[1:-1, 1:-1] * dt / dx * (b[1:-1, 1:-1] - b[1:-1, :-2])
            - b[1:-1, 1:-1] * dt / dy * (b[1:-1, 1:-1] - b[:-2, 1:-1])
            - dt / (2 * density * dy) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + viscosity
            * (
                dt / dx**2 * (b[1:-1, 2:] - 2 * b[1:-1, 1:-1] + b[1:-1, :-2])
                + dt / dy**2 * (b[2:, 1:-1] - 2 * b[1:-1, 1:-1] + b[:-2, 1:-1])
            )
        )
        u[1:-1, -1] = (
            a[1:-1, -1]
            - a[1:-1, -1] * dt / dx * (a[1:-1, -1] - a[1:-1, -2])
            - b[1:-1, -1] * dt / dy * (a[1:-1, -1] - a[:-2, -1])
            - dt / (2 * density * dx) * (p[1:-1, 0] - p[1:-1, -2])
            + viscosity
            * (
                dt / dx**2 * (a[1:-1, 0] - 2 * a[1:-1, -1] + a[1:-1, -2])
                + dt / dy**2 * (a[2:, -1] - 2 * a[1:-1, -1] + a[:-2, -1])
            )
            + force * dt
        )
        u[1:-1, 0] = (
            a[1:-1, 0]
            - a[1:-1, 0] * dt / dx * (a[1:-1, 0] - a[1:-1, -1])
            - b[1:-1, 0] * dt / dy * (a[1:-1, 0] - a[:-2, 0])
            - dt / (2 * density * dx) * (p[1:-1, 1] - p[1:-1, -1])
            + viscosity
            * (
                dt / dx**2 * (a[1:-1, 1] - 2 * a[1:-1, 0] + a[1:-1, -1])
                + dt / dy**2 * (a[2:, 0] - 2 * a[1:-1, 0] + a[:-2, 0])
            )
            + force * dt
        )
        v[1:-1, -1] = (
            b[1:-1, -1]
            - a[1:-1, -1] * dt / dx * (b[1:-1, -1] - b[1:-1, -2])
            - b[1:-1, -1] * dt / dy * (b[1:-1, -1] - b[:-2, -1])
            - dt / (2 * density * dy) * (p[2:, -1] - p[:-2, -1])
            + viscosity
            * (
                dt / dx**2 * (b[1:-1, 0] - 2 * b[1:-1, -1] + b[1:-1, -2])
                + dt / dy**2 * (b[2:, -1] - 2 * b[1:-1, -1] + b[:-2, -1])
            )
        )
        v[1:-1, 0] = (
            b[1:-1, 0]
            - a[1:-1, 0] * dt / dx * (b[1:-1, 0] - b[1:-1, -1])
            - b[1:-1, 0] * dt / dy * (b[1:-1, 0] - b[:-2, 0])
            - dt / (2 * density * dy) * (p[2:, 0] - p[:-2, 0])
            + viscosity
            * (
                dt / dx**2 * (b[1:-1, 1] - 2 * b[1:-1, 0] + b[1:-1, -1])
                + dt / dy**2 * (b[2:, 0] - 2 * b[1:-1, 0] + b[:-2, 0])
            )
        )
        u[0, :] = 0
        u[-1, :] = 0
        v[0, :] = 0
        v[-1, :] = 0
        change = (np.sum(u) - np.sum(a)) / np.sum(u)
        step += 1
    return np.sum(u * u) + np.sum(v * v)


def make() -> tuple[Any, ...]:
    rng = np.random.default_rng(3)
    u, v = rng.uniform(0.5, 1.0, (7, 6)), rng.uniform(-0.1, 0.1, (7, 6))
    return u, v, rng.uniform(0.9, 1.1, (7, 6)), 1.0, 0.1, 1.0, 3, 4


PROGRAM = ArrayProgram("channel_flow", "Navier-Stokes in two dimensions", loss, make, (0, 1, 2, 3, 4, 5))
