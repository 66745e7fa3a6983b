"""Find the conductivity of a rod from its temperature: the adjoint of a solver, with checkpoints.

The heat equation is solved in 2,000 explicit steps. Instead of a tape of all of them, `irad.checkpoint_loop` stores 20
snapshots and recomputes the steps between.
"""

import argparse

import numpy as np
from numba import njit
from scipy.optimize import minimize

import irad

CELLS, STEPS, DT = 16, 2_000, 0.2


@njit
def step(temperature, conductivity):
    """One step in time; the ends keep their temperature."""
    new = temperature.copy()
    for i in range(1, temperature.size - 1):
        left = 0.5 * (conductivity[i - 1] + conductivity[i]) * (temperature[i] - temperature[i - 1])
        right = 0.5 * (conductivity[i] + conductivity[i + 1]) * (temperature[i + 1] - temperature[i])
        new[i] += DT * (right - left)
    return new


evolve = irad.checkpoint_loop(step, STEPS, snapshots=20)


@njit
def misfit(logarithms, starts, measured):
    """Squared differences after the last step of several runs; a small penalty on rough conductivities."""
    conductivity, total = np.exp(logarithms), 0.0
    for run in range(starts.shape[0]):
        total += ((evolve(starts[run], conductivity) - measured[run]) ** 2).sum()
    return total + 1e-9 * (np.diff(logarithms) ** 2).sum()


def draw(file, found, truth):
    from matplotlib.figure import Figure  # only for the picture

    place = np.linspace(0.0, 1.0, CELLS)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(place, truth, color="0.7", linewidth=4, label="true")
    axes.plot(place, found, "o-", markersize=4, label="found")
    axes.set(xlabel="position (rod lengths)", ylabel="conductivity (cells² per unit of time)", ylim=(0.0, None))
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


def main(plot=None):
    """Recovers a conductivity from the final temperatures of three runs."""
    place = np.linspace(0.0, 1.0, CELLS)
    truth = 0.005 * (1.0 + 2.0 * np.exp(-30.0 * (place - 0.6) ** 2))
    starts = np.stack([np.sin(np.pi * k * place) + place for k in (1, 2, 3)])
    measured = np.stack([evolve(start, truth) for start in starts])
    first = np.full(CELLS, np.log(0.01))
    found = minimize(irad.value_and_grad(misfit), first, (starts, measured), jac=True, method="L-BFGS-B", tol=1e-14)
    conductivity = np.exp(found.x)
    print(f"largest error of the conductivity: {np.abs(conductivity / truth - 1.0).max():.1%}")
    if plot:
        draw(plot, conductivity, truth)
    return conductivity, truth


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the conductivity, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
