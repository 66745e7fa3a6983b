"""Integrate a gradient over time: adaptive quadrature of a function whose values are dictionaries.

The rule knows its integrand only as a vector, `irad.data.VectorSpace`. Here that is the gradient of a decaying signal;
the integral of the gradient is the gradient of the integral, which has a closed form.
"""

import argparse

import numpy as np
from numba import njit

import irad
from irad import data
from irad.data import VectorSpace

NODES, WEIGHTS = np.polynomial.legendre.leggauss(7)


def panel(integrand, low, high):
    """Gauss's rule with seven points."""
    half = 0.5 * (high - low)
    first, *rest = (half * w * integrand(low + half * (1.0 + x)) for x, w in zip(NODES, WEIGHTS, strict=True))
    return sum(rest, start=first)


def integrate(integrand, low, high, tolerance, whole=None):
    """The integral, as a vector; intervals are halved until the sum of their halves agrees with them."""
    whole, middle = whole or panel(integrand, low, high), 0.5 * (low + high)
    left, right = panel(integrand, low, middle), panel(integrand, middle, high)
    if (left + right - whole).norm() <= tolerance:
        return left + right
    tolerance *= 0.5
    return integrate(integrand, low, middle, tolerance, left) + integrate(integrand, middle, high, tolerance, right)


@njit
def signal(parameters, time):
    """A sum of decays."""
    return parameters["scale"] * np.sum(np.exp(-parameters["rates"] * time))


def draw(file, parameters, points):
    from matplotlib.figure import Figure  # only for the picture

    times, gradient = np.geomspace(1e-4, 4.0, 400), irad.grad(signal)
    slopes = np.array([gradient(parameters, time)["rates"] for time in times]).T
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for rate, slope in zip(parameters["rates"], slopes, strict=True):
        axes.semilogx(times, slope, label=f"with respect to the rate {rate:g} / s")
    axes.plot(points, np.full(len(points), 0.1), "|", color="0.4", label="evaluations")
    axes.set(xlabel="time (s)", ylabel="derivative of the signal (s)", ylim=(None, 0.2))
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


def main(plot=None):
    """Compares the integral of the gradient with the gradient of the integral."""
    scale, rates, end = 2.0, np.array([0.5, 3.0, 100.0]), 4.0
    parameters = {"scale": scale, "rates": rates}
    gradient, points = irad.grad(signal), []

    def integrand(time):
        points.append(time)
        return VectorSpace(gradient(parameters, time))

    integral = integrate(integrand, 0.0, end, 1e-9).value
    faded = np.exp(-rates * end)
    truth = {"scale": np.sum((1.0 - faded) / rates), "rates": scale * (end * faded - (1.0 - faded) / rates) / rates}
    error = np.abs(data.to_vec(integral) - data.to_vec(truth)).max()
    print(f"{len(points)} evaluations, largest error {error:.1e}")
    if plot:
        draw(plot, parameters, points)
    return integral, truth


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the integrand, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
