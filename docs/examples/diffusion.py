"""Diffusion by implicit steps: a rule of your own for the linear solver, with a workspace kept between calls.

A step solves (1 - dt d/dx k d/dx) v = u and overwrites u by v. The matrix is symmetric, so the cotangent of u is one
such step applied to the cotangent of v. That of k needs v, which the rule stores in memory that it keeps.
"""

import argparse

import numpy as np
from numba import njit

import irad
from irad.rules import AugmentedReturn, StatefulRule

CELLS, STEPS, DT = 60, 50, 0.5  # of unit width


@njit
def step(u, k):
    """Overwrites u by v with Thomas's algorithm; k[i] is the conductivity between cells i and i + 1."""
    factors, flow, diagonal = np.empty(u.size), 0.0, 1.0
    for i in range(u.size):
        right = DT * k[i] if i < k.size else 0.0
        diagonal = 1.0 + flow + right - flow**2 / diagonal
        u[i] = (u[i] + flow * (u[i - 1] if i > 0 else 0.0)) / diagonal
        factors[i], flow = right / diagonal, right
    for i in range(u.size - 2, -1, -1):
        u[i] += factors[i] * u[i + 1]


@irad.rules.build_rule(step)
def build(signature):
    def state():
        return np.empty(CELLS)

    def augmented_primal(config, slot, u, k):
        step(u.value, k.value)
        slot.state[:] = u.value
        return AugmentedReturn(None, None, None)

    def reverse(config, slot, cotangent, tape, u, k):
        step(u.shadow, k.value)
        k.shadow[:] -= DT * np.diff(u.shadow) * np.diff(slot.state)

    return StatefulRule(augmented_primal, reverse, state)


@njit
def outflow(k, start):
    u = start.copy()
    for _ in range(STEPS):
        step(u, k)
    return u[u.size // 2 :].sum()


def main(plot=None):
    k, start = np.ones(CELLS - 1), np.where(np.arange(CELLS) < 20, 1.0, 0.0)
    gradient = irad.grad(outflow)
    slopes = gradient(k, start)
    probes = np.arange(1, CELLS - 1, 6)
    nudges = 1e-5 * np.eye(CELLS - 1)[probes]
    differences = [(outflow(k + nudge, start) - outflow(k - nudge, start)) / 2e-5 for nudge in nudges]
    error, slots = np.abs(slopes[probes] - differences).max(), irad.rules.workspace(gradient).spare
    print(f"largest difference from finite differences {error:.0e}; {slots} slots kept for the next call")
    if plot:
        from matplotlib.figure import Figure  # only for the picture

        axes = Figure(figsize=(7, 3), layout="constrained").subplots()
        axes.plot(slopes, label="by the rule")
        axes.plot(probes, differences, "o", markersize=4, label="by finite differences")
        axes.set(xlabel="position (cells)", ylabel="sensitivity of the outflow\nto the conductivity")
        axes.legend(frameon=False)
        axes.figure.savefig(plot, dpi=110)
    return slopes[probes], differences


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the gradient, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
