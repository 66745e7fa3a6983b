"""Levenberg and Marquardt's method with a sparse Jacobian: a smooth curve through outliers.

There is an unknown for each of 20,000 points. Each residual depends on three of them at most, so the Jacobian is
computed in a few products, whatever the number of points, and a step solves a banded system.
"""

import argparse

import numpy as np
from numba import njit
from scipy.sparse import identity
from scipy.sparse.linalg import spsolve

import irad


@njit
def residuals(curve, data, stiffness):
    """How far the curve is from the data, where outliers count less, and how much it bends."""
    count = curve.size
    found = np.zeros(2 * count)
    for i in range(count):
        found[i] = np.arcsinh(curve[i] - data[i])
    for i in range(1, count - 1):
        found[count + i] = stiffness * (curve[i - 1] - 2.0 * curve[i] + curve[i + 1])
    return found


def fit(data, stiffness):
    """The curve with the least sum of squares of residuals, and the number of steps."""
    curve, damping = np.full(data.size, np.median(data)), 1e-2
    jacobian = irad.sparse_jacobian(residuals).prepare(curve, data, stiffness)
    now = residuals(curve, data, stiffness)
    steps, gain = 0, 1.0
    while steps < 100 and not 0.0 <= gain < 1e-10:
        steps += 1
        slope = jacobian(curve, data, stiffness)
        gradient = slope.T @ now
        move = spsolve((slope.T @ slope + damping * identity(data.size)).tocsc(), -gradient)
        then = residuals(curve + move, data, stiffness)
        gain = 1.0 - (then @ then) / (now @ now)
        if gain > 0.0:
            curve, now = curve + move, then
        damping *= 0.1 if gain > 0.0 else 10.0
    return curve, steps, jacobian.products


def draw(file, data, curve):
    from matplotlib.figure import Figure  # only for the picture

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes, points = figure.subplots(), np.arange(0, data.size, 20)
    axes.plot(points, data[::20], ".", markersize=2, color="0.6", label="data")
    axes.plot(points, curve[::20], label="fit")
    axes.set(xlabel="point", ylabel="value", ylim=(-3.0, 25.0))
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


def main(plot=None):
    """Fits a curve to a noisy wave, a tenth of whose points are outliers."""
    random = np.random.default_rng(1)
    truth = np.sin(np.linspace(0.0, 12.0, 20_000))
    data = truth + 0.1 * random.standard_normal(truth.size)
    data[random.random(truth.size) < 0.1] += 20.0
    curve, steps, products = fit(data, 1e4)
    error = np.sqrt(((curve - truth) ** 2).mean())
    print(f"{steps} steps, {products} products for each Jacobian, error {error:.3f}")
    if plot:
        draw(plot, data, curve)
    return error, products


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the fit, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
