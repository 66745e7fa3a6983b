"""Train a small convolutional network, in compiled code, to recognise shapes in noise.

Each image has a cross, a ring or a line in it, somewhere. Two layers of convolution and pooling tell which.
"""

import argparse

import numpy as np
from numba import njit

import irad
from irad import nn

SIZE, BATCH = 12, 24
SHAPES = np.stack([np.eye(5) + np.eye(5)[::-1], np.pad(np.zeros((3, 3)), 1, constant_values=1.0), np.eye(5)])


@njit
def predict(first, second, weights, images):
    """Logarithms of the probabilities of the shapes."""
    hidden = nn.maxpool(nn.relu(nn.conv(images, first, pad=1)), 2)
    hidden = nn.maxpool(nn.relu(nn.conv(hidden, second, pad=1)), SIZE // 2)
    return nn.logsoftmax(hidden.reshape(images.shape[0], second.shape[0]) @ weights, 1)


@njit
def loss(first, second, weights, images, labels):
    scores, total = predict(first, second, weights, images), 0.0
    for n in range(labels.size):
        total -= scores[n, labels[n]]
    return total / labels.size


gradient = irad.value_and_grad(loss, argnums=(0, 1, 2))


@njit
def train(first, second, weights, images, labels, steps, rate):
    losses = np.empty(steps)
    for step in range(steps):
        losses[step], slopes = gradient(first, second, weights, images[step::steps], labels[step::steps])
        first -= rate * slopes[0]
        second -= rate * slopes[1]
        weights -= rate * slopes[2]
    return losses


def images_of(count, random):
    images, labels = 0.3 * random.standard_normal((count, 1, SIZE, SIZE)), random.integers(3, size=count)
    for image, label, (row, column) in zip(images, labels, random.integers(SIZE - 4, size=(count, 2)), strict=True):
        image[0, row : row + 5, column : column + 5] += SHAPES[label]
    return images, labels


def main(plot=None, steps=300):
    random = np.random.default_rng(0)
    sizes = (8, 1, 3, 3), (12, 8, 3, 3), (12, 3)
    parameters = [random.standard_normal(size) / np.sqrt(np.prod(size[1:])) for size in sizes]
    losses = train(*parameters, *images_of(steps * BATCH, random), steps, 0.1)
    images, labels = images_of(300, random)
    guesses = predict(*parameters, images).argmax(axis=1)
    right = (guesses == labels).mean()
    print(f"loss {losses[0]:.2f} at first, {losses[-20:].mean():.3f} at last; {right:.0%} of new images recognised")
    if plot:
        from matplotlib.figure import Figure  # only for the picture

        upper, lower = Figure(figsize=(7, 4), layout="constrained").subplots(2, 1)
        upper.semilogy(losses)
        upper.set(xlabel="step", ylabel="loss (nats per image)")
        lower.imshow(np.hstack(images[:8, 0]), cmap="gray")
        names = np.array(["cross", "ring", "line"])[guesses[:8]]
        lower.set(xticks=SIZE * np.arange(0.5, 8.0), xticklabels=names, yticks=[])
        upper.figure.savefig(plot, dpi=110)
    return losses, right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the loss and some images, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
