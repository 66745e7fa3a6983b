"""Gradient descent in compiled code: the gradient is called, and differentiated through, inside a loop of njit code.

Logistic regression, with momentum. The whole training is a compiled function, so it can be differentiated as well: here
the loss on held-out data with respect to the learning rate.
"""

import argparse

import numpy as np
from numba import njit

import irad

RATES = np.linspace(0.02, 0.2, 50)


@njit
def loss(weights, features, labels):
    """Mean logistic loss; labels are -1 and 1."""
    total = 0.0
    for i in range(labels.size):
        total += np.log1p(np.exp(-labels[i] * (features[i] * weights).sum()))
    return total / labels.size


gradient = irad.grad(loss)


@njit
def train(rate, features, labels, steps):
    """The weights after a number of steps."""
    weights, velocity = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for _ in range(steps):
        velocity = 0.9 * velocity - rate * gradient(weights, features, labels)
        weights = weights + velocity
    return weights


@njit
def held_out(rate, features, labels, steps):
    """The loss on the second half of the data, after training on the first half."""
    half = labels.size // 2
    return loss(train(rate, features[:half], labels[:half], steps), features[half:], labels[half:])


def main(plot=None):
    random = np.random.default_rng(0)
    features = random.standard_normal((400, 5))
    labels = np.where(features @ np.arange(1.0, 6.0) + random.standard_normal(400) > 0.0, 1.0, -1.0)
    rate, steps = 0.05, 30
    value, slope = irad.value_and_grad(held_out)(rate, features, labels, steps)
    print(f"loss {value:.4f}, its derivative with respect to the learning rate {slope:.4f}")
    difference = held_out(rate + 1e-6, features, labels, steps) - held_out(rate - 1e-6, features, labels, steps)
    if plot:
        draw(plot, [held_out(r, features, labels, steps) for r in RATES], rate, value, slope)
    return slope, difference / 2e-6


def draw(file, losses, rate, value, slope):
    from matplotlib.figure import Figure  # only for the picture

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(RATES, losses, label="loss on held-out data")
    near = rate + np.array([-0.02, 0.02])
    axes.plot(near, value + slope * (near - rate), color="C3", label="its derivative at 0.05")
    axes.set(xlabel="learning rate", ylabel="loss (nats per example)")
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the loss against the learning rate, as PNG or SVG; needs matplotlib"
    )
    main(parser.parse_args().plot)
