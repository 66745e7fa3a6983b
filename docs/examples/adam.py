"""Fit a small network with Adam, its weights the fields of a jitclass instance.

Adam knows its unknowns only as a vector, through `irad.data.VectorSpace`, and overwrites vectors instead of making new
ones. The same lines train an array, a dictionary or a dataclass.
"""

import argparse

import numpy as np
from numba import float64, njit
from numba.experimental import jitclass

import irad
from irad.data import VectorSpace


@jitclass([("inner", float64[::1]), ("shifts", float64[::1]), ("outer", float64[::1]), ("offset", float64)])
class Network:
    """A hidden layer of tanh units, from one number to one number."""

    def __init__(self, inner, shifts, outer, offset):
        self.inner, self.shifts, self.outer, self.offset = inner, shifts, outer, offset

    def predict(self, x):
        """The output for one input."""
        return self.offset + (self.outer * np.tanh(self.inner * x + self.shifts)).sum()


@njit
def loss(network, x, y):
    total = 0.0
    for i in range(x.size):
        total += (network.predict(x[i]) - y[i]) ** 2
    return total / x.size


def adam(gradient, x, steps, rate=0.02, decay=(0.9, 0.999), floor=1e-8):
    """Minimises in place (Kingma and Ba 2015, algorithm 1)."""
    mean, variance, step = x.zero(), x.zero(), x.zero()
    for count in range(1, steps + 1):
        slope = gradient(x)
        mean *= decay[0]
        mean.axpy(1.0 - decay[0], slope)
        step.map_(np.square, slope)
        variance *= decay[1]
        variance.axpy(1.0 - decay[1], step)
        step.map_(np.sqrt, variance)
        step /= np.sqrt(1.0 - decay[1] ** count)
        step.map_(lambda part, out=None: np.add(part, floor, out=out), step)
        step.map_(np.divide, mean, step)
        x.axpy(-rate / (1.0 - decay[0] ** count), step)


def main(plot=None):
    random = np.random.default_rng(0)
    x = random.uniform(-3.0, 3.0, 400)
    y = np.sin(2.0 * x) + 0.3 * x + 0.1 * random.standard_normal(x.size)
    network = Network(random.standard_normal(16), random.standard_normal(16), 0.1 * random.standard_normal(16), 0.0)
    gradient, first = irad.grad(loss), loss(network, x, y)
    adam(lambda at: VectorSpace(gradient(at.value, x, y)), VectorSpace(network), 2000)
    print(
        f"mean squared error {first:.2f} at first, {loss(network, x, y):.4f} at last; the variance of the noise is 0.01"
    )
    if plot:
        from matplotlib.figure import Figure  # only for the picture

        figure, line = Figure(figsize=(7, 3), layout="constrained"), np.linspace(-3.0, 3.0, 200)
        axes = figure.subplots()
        axes.plot(x, y, ".", markersize=3, color="0.6", label="data")
        axes.plot(line, [network.predict(place) for place in line], color="C3", label="network")
        axes.set(xlabel="input", ylabel="output")
        axes.legend(frameon=False)
        figure.savefig(plot, dpi=110)
    return loss(network, x, y)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the fit, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
