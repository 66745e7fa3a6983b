"""A small convolutional network, trained in compiled code.

Images of noise with a cross, a ring or a bar in them, somewhere; two layers of convolution and pooling tell which. The
whole of the training is one compiled function: it draws batches, calls the gradient and takes the steps.
"""

import argparse

import numpy as np
from numba import njit

import irad
from irad import nn

SIZE, CLASSES, BATCH = 12, 3, 24


@njit
def images_of(count, seed):
    """Images, (count, 1, size, size), and what is in them."""
    np.random.seed(seed)
    images = (0.3 * np.random.standard_normal(count * SIZE * SIZE)).reshape(count, 1, SIZE, SIZE)
    labels = np.random.randint(0, CLASSES, count)
    for n in range(count):
        row, column = np.random.randint(2, SIZE - 2, 2)
        for k in range(-2, 3):
            for m in range(-2, 3):
                is_cross, is_ring = k == 0 or m == 0, max(abs(k), abs(m)) == 2
                if (is_cross, is_ring, k == 0)[labels[n]]:
                    images[n, 0, row + k, column + m] += 1.0
    return images, labels


@njit
def predict(parameters, images):
    """Logarithms of the probabilities of the classes."""
    first, first_bias, second, second_bias, weights = parameters
    hidden = nn.maxpool(nn.bias_act(nn.relu, nn.conv(images, first, pad=1), first_bias), 2)
    hidden = nn.bias_act(nn.relu, nn.conv(hidden, second, pad=1), second_bias)
    return nn.logsoftmax(nn.maxpool(hidden, SIZE // 2).reshape(images.shape[0], second.shape[0]) @ weights, 1)


@njit
def loss(parameters, images, labels):
    """Mean of minus the logarithm of the probability of what is there."""
    scores, total = predict(parameters, images), 0.0
    for n in range(labels.size):
        total -= scores[n, labels[n]]
    return total / labels.size


gradient = irad.value_and_grad(loss)


@njit
def descend(parameter, change, velocity, rate):
    """A step of gradient descent with momentum."""
    x, d, v = parameter.reshape(parameter.size), change.reshape(change.size), velocity.reshape(velocity.size)
    for k in range(x.size):
        v[k] = 0.9 * v[k] + d[k]
        x[k] -= rate * v[k]


@njit
def train(parameters, velocities, images, labels, steps, rate):
    """Changes the parameters; returns the loss of each batch."""
    losses = np.empty(steps)
    for step in range(steps):
        start = step * BATCH % (labels.size - BATCH + 1)
        batch = slice(start, start + BATCH)
        losses[step], changes = gradient(parameters, images[batch], labels[batch])
        descend(parameters[0], changes[0], velocities[0], rate)
        descend(parameters[1], changes[1], velocities[1], rate)
        descend(parameters[2], changes[2], velocities[2], rate)
        descend(parameters[3], changes[3], velocities[3], rate)
        descend(parameters[4], changes[4], velocities[4], rate)
    return losses


def draw(file, losses):
    """The loss of each batch."""
    from matplotlib.figure import Figure  # only for the picture

    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(losses, color="C0")
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    figure.savefig(file)


def main(steps=200):
    """Trains the network, and says how many new images it gets right."""
    random = np.random.default_rng(0)
    shapes = (8, 1, 3, 3), (8,), (12, 8, 3, 3), (12,), (12, CLASSES)
    scales = 0.4, 0.0, 0.15, 0.0, 0.3
    parameters = tuple(scale * random.standard_normal(shape) for shape, scale in zip(shapes, scales, strict=True))
    velocities = tuple(np.zeros(shape) for shape in shapes)
    losses = train(parameters, velocities, *images_of(40 * BATCH, 1), steps, 0.03)
    images, labels = images_of(300, 2)
    share = (predict(parameters, images).argmax(axis=1) == labels).mean()
    print(f"loss {losses[0]:.2f} → {losses[-20:].mean():.3f}, {share:.0%} of new images right")
    return losses, share


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the loss, as PNG or SVG; needs matplotlib")
    options = parser.parse_args()
    losses, _ = main()
    if options.plot:
        draw(options.plot, losses)
