"""Fit a potential to forces: the gradient of an energy inside a function that is differentiated itself.

Molecules exert forces, the negative gradient of an energy with respect to positions. Forces are measured, and the
parameters of the energy are wanted. So the misfit of forces is differentiated with respect to the parameters.
"""

import numpy as np
from numba import njit
from scipy.optimize import minimize

import irad


@njit
def energy(positions, parameters):
    """Morse potentials between all pairs: depth, stiffness and distance at rest."""
    depth, stiffness, rest = parameters[0], parameters[1], parameters[2]
    total = 0.0
    for i in range(positions.shape[0]):
        for j in range(i):
            distance = np.sqrt(((positions[i] - positions[j]) ** 2).sum())
            total += depth * (1.0 - np.exp(-stiffness * (distance - rest))) ** 2
    return total


slope = irad.grad(energy)


@njit
def misfit(parameters, positions, forces):
    """Mean square of the difference of forces."""
    return ((slope(positions, parameters) + forces) ** 2).mean()


def main():
    """Recovers the parameters behind given forces."""
    truth = np.array([1.5, 1.1, 1.3])
    grid = np.arange(8)
    positions = 1.4 * np.stack((grid % 2, grid // 2 % 2, grid // 4), axis=1)
    positions += 0.1 * np.random.default_rng(0).standard_normal(positions.shape)
    forces = -slope(positions, truth)
    start = np.array([1.0, 1.0, 1.0])
    found = minimize(
        irad.value_and_grad(misfit),
        start,
        (positions, forces),
        jac=True,
        hessp=irad.hvp(misfit),
        method="trust-ncg",
        options={"gtol": 1e-10},
    )
    print("found", found.x.round(6), "true", truth, "in", found.nit, "steps")
    return found.x, truth


if __name__ == "__main__":
    main()
