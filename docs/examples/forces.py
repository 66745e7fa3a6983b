"""Fit a potential to forces: the gradient of an energy inside a function that is differentiated itself.

Molecules exert forces, the negative gradient of an energy with respect to positions. Forces are measured, and the
parameters of the energy are wanted. So the misfit of forces is differentiated with respect to the parameters.
"""

import argparse

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


def draw(file, curves):
    from matplotlib.figure import Figure  # only for the picture

    figure, distance = Figure(figsize=(7, 3), layout="constrained"), np.linspace(0.8, 4.0, 200)
    axes = figure.subplots()
    for label, style, parameters in curves:
        energies = [energy(np.array([[0.0], [d]]), parameters) for d in distance]
        axes.plot(distance, energies, style, label=label)
    axes.set(xlabel="distance (Å)", ylabel="energy of a pair (eV)")
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


def main(plot=None):
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
    if plot:
        draw(plot, [("true", "C7-", truth), ("start", "k:", start), ("found", "C3--", found.x)])
    return found.x, truth


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the potential, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
