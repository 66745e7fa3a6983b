"""Gradient descent in compiled code: the gradient is called, and differentiated through, inside a loop of njit code.

Logistic regression, with momentum. The whole training is a compiled function, so it can be differentiated as well: the
second gradient is that of the loss on other data with respect to the learning rate.
"""

import numpy as np
from numba import njit

import irad


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
    """The weights after so many steps."""
    weights, velocity = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    for _ in range(steps):
        velocity = 0.9 * velocity - rate * gradient(weights, features, labels)
        weights = weights + velocity
    return weights


@njit
def held_out(rate, features, labels, steps):
    """The loss on the second half of the data of what is trained on the first."""
    half = labels.size // 2
    return loss(train(rate, features[:half], labels[:half], steps), features[half:], labels[half:])


def main():
    """Trains, and says how the learning rate matters."""
    random = np.random.default_rng(0)
    features = random.standard_normal((400, 5))
    labels = np.where(features @ np.arange(1.0, 6.0) + random.standard_normal(400) > 0.0, 1.0, -1.0)
    rate, steps = 0.05, 30
    value, slope = irad.value_and_grad(held_out)(rate, features, labels, steps)
    print(f"loss {value:.4f}, its derivative with respect to the learning rate {slope:.4f}")
    difference = held_out(rate + 1e-6, features, labels, steps) - held_out(rate - 1e-6, features, labels, steps)
    return slope, difference / 2e-6


if __name__ == "__main__":
    main()
