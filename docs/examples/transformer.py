"""Train a small transformer in compiled code to repeat what it has read.

Each sequence is eight random tokens, twice. From the ninth on every token is known in advance, to a network that
attends to the place eight before: that is what the one layer with two heads learns. All parameters lie in one array, so
that a step of Adam is a loop.
"""

import argparse

import numpy as np
from numba import njit

import irad
from irad import nn

TOKENS, HALF, SIZE, HEADS = 10, 8, 32, 2
LENGTH = 2 * HALF - 1  # the last token is only predicted
SHAPES = [
    (TOKENS, SIZE),
    (LENGTH, SIZE),
    (SIZE, 3 * SIZE),
    (SIZE, SIZE),
    (SIZE, 2 * SIZE),
    (2 * SIZE, SIZE),
    (SIZE, TOKENS),
]
SIZES = tuple(rows * columns for rows, columns in SHAPES)


@njit
def matrix(parameters, number, rows):
    """One of the matrices in the array of parameters."""
    start = 0
    for i in range(number):
        start += SIZES[i]
    return parameters[start : start + SIZES[number]].reshape(rows, SIZES[number] // rows)


@njit
def attend(parameters, x, batch):
    """What the heads find, for each token of (batch · length, size)."""
    mixed = (x @ matrix(parameters, 2, SIZE)).reshape(batch, LENGTH, 3, HEADS, SIZE // HEADS).transpose(2, 0, 3, 1, 4)
    found = nn.dot_product_attention(mixed[0], mixed[1], mixed[2], causal=True)
    return np.ascontiguousarray(found.transpose(0, 2, 1, 3)).reshape(x.shape) @ matrix(parameters, 3, SIZE)


@njit
def scores(parameters, tokens):
    """Logarithms of the probabilities of the next token, (batch · length, tokens)."""
    batch = tokens.shape[0]
    x = nn.gather(matrix(parameters, 0, TOKENS), tokens) + matrix(parameters, 1, LENGTH)
    x = x.reshape(batch * LENGTH, SIZE)
    x = x + attend(parameters, nn.layernorm(x), batch)
    hidden = nn.gelu_tanh(nn.layernorm(x) @ matrix(parameters, 4, SIZE))
    x = x + hidden @ matrix(parameters, 5, 2 * SIZE)
    return nn.logsoftmax(nn.layernorm(x) @ matrix(parameters, 6, SIZE))


@njit
def loss(parameters, sequences):
    """Minus the mean logarithm of the probability of a token that could be known."""
    found, total = scores(parameters, sequences[:, :LENGTH]), 0.0
    for n in range(sequences.shape[0]):
        for place in range(HALF - 1, LENGTH):
            total -= found[n * LENGTH + place, sequences[n, place + 1]]
    return total / (sequences.shape[0] * HALF)


gradient = irad.value_and_grad(loss)


@njit
def draw_sequences(count):
    """Random tokens, twice."""
    sequences = np.empty((count, 2 * HALF), np.int64)
    for n in range(count):
        for i in range(HALF):
            sequences[n, i] = sequences[n, HALF + i] = np.random.randint(TOKENS)
    return sequences


@njit
def train(parameters, steps, rate):
    """Changes the parameters by Adam; the losses on the way."""
    np.random.seed(0)
    losses, mean, square = np.empty(steps), np.zeros_like(parameters), np.zeros_like(parameters)
    for step in range(steps):
        losses[step], slope = gradient(parameters, draw_sequences(32))
        for i in range(slope.size):
            mean[i] = 0.9 * mean[i] + 0.1 * slope[i]
            square[i] = 0.99 * square[i] + 0.01 * slope[i] ** 2
            step_size = mean[i] / (1.0 - 0.9 ** (step + 1))
            parameters[i] -= rate * step_size / (np.sqrt(square[i] / (1.0 - 0.99 ** (step + 1))) + 1e-8)
    return losses


def initial_parameters():
    """Random, by the number of rows."""
    random = np.random.default_rng(0)
    parts = [random.standard_normal(shape).ravel() / np.sqrt(shape[0]) for shape in SHAPES[2:]]
    return np.concatenate([*(0.3 * random.standard_normal(size) for size in SIZES[:2]), *parts]).astype(np.float32)


def main(steps=400):
    """Trains, and says how well what was read is repeated."""
    parameters = initial_parameters()
    losses = train(parameters, steps, np.float32(5e-3))
    sequences = draw_sequences(100)
    guesses = scores(parameters, sequences[:, :LENGTH]).reshape(100, LENGTH, TOKENS)[:, HALF - 1 :].argmax(axis=2)
    share = (guesses == sequences[:, HALF:]).mean()
    print(f"loss {losses[0]:.2f} at first, {losses[-1]:.3f} after {steps} steps; {100 * share:.0f} % repeated")
    return losses, share


def draw(file, losses):
    """The loss over the steps."""
    from matplotlib.figure import Figure  # only for the picture

    figure = Figure(figsize=(5, 3), layout="constrained")
    axes = figure.subplots()
    axes.semilogy(losses, color="C0")
    axes.axhline(np.log(TOKENS), color="0.7", linestyle="--")
    axes.set(xlabel="step", ylabel="loss")
    figure.savefig(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the loss, as PNG or SVG; needs matplotlib")
    options = parser.parse_args()
    losses, _ = main()
    if options.plot:
        draw(options.plot, losses)
