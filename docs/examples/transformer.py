"""Train a small transformer, in compiled code, to repeat what it has read.

Each sequence is eight random tokens, twice. From the ninth on, each token is determined by those before, for a network
that attends to the place eight tokens ago: that is what one layer with two heads learns.
"""

import argparse

import numpy as np
from numba import njit

import irad
from irad import nn

TOKENS, HALF, SIZE, HEADS = 10, 8, 32, 2
LENGTH = 2 * HALF - 1  # the last token is only predicted


@njit
def predict(weights, tokens):
    """Logarithms of the probabilities of each next token, of shape (batch · length, tokens)."""
    embedding, positions, to_heads, from_heads, widen, narrow, read = weights
    x = (nn.gather(embedding, tokens) + positions).reshape(-1, SIZE)
    heads = (nn.layernorm(x) @ to_heads).reshape(-1, LENGTH, 3, HEADS, SIZE // HEADS).transpose(2, 0, 3, 1, 4)
    found = nn.dot_product_attention(heads[0], heads[1], heads[2], causal=True)
    x = x + np.ascontiguousarray(found.transpose(0, 2, 1, 3)).reshape(x.shape) @ from_heads
    x = x + nn.gelu_tanh(nn.layernorm(x) @ widen) @ narrow
    return nn.logsoftmax(nn.layernorm(x) @ read)


@njit
def loss(weights, sequences):
    """Minus the mean logarithm of the probability of the tokens that are repeated."""
    found, total = predict(weights, sequences[:, :LENGTH]), 0.0
    for n in range(sequences.shape[0]):
        for place in range(HALF - 1, LENGTH):
            total -= found[n * LENGTH + place, sequences[n, place + 1]]
    return total / (sequences.shape[0] * HALF)


gradient = irad.value_and_grad(loss)


@njit
def train(weights, means, squares, batches, rate):
    """Changes the weights by Adam, without its correction of bias; returns the losses on the way."""
    losses = np.empty(len(batches))
    for step in range(len(batches)):
        losses[step], slopes = gradient(weights, batches[step])
        for weight, slope, mean, square in zip(weights, slopes, means, squares):  # noqa: B905  Numba's zip has no strict
            mean[:] = 0.9 * mean + 0.1 * slope
            square[:] = 0.99 * square + 0.01 * slope**2
            weight -= rate * mean / (np.sqrt(square) + 1e-8)
    return losses


def main(plot=None, steps=400):
    random, wide = np.random.default_rng(0), 2 * SIZE
    shapes = (TOKENS, SIZE), (LENGTH, SIZE), (SIZE, 3 * SIZE), (SIZE, SIZE), (SIZE, wide), (wide, SIZE), (SIZE, TOKENS)
    weights = tuple((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for shape in shapes)
    means, squares = (tuple(np.zeros_like(weight) for weight in weights) for _ in range(2))
    sequences = np.tile(random.integers(TOKENS, size=(steps + 4, 32, HALF)), 2)
    losses, unseen = train(weights, means, squares, sequences[:steps], 5e-3), sequences[steps:].reshape(-1, 2 * HALF)
    guesses = predict(weights, unseen[:, :LENGTH]).reshape(-1, LENGTH, TOKENS)[:, HALF - 1 :].argmax(axis=2)
    share = (guesses == unseen[:, HALF:]).mean()
    print(f"loss {losses[0]:.2f} at first, {losses[-1]:.0e} after {steps} steps; {share:.0%} of new tokens repeated")
    if plot:
        from matplotlib.figure import Figure  # only for the picture

        figure = Figure(figsize=(7, 3), layout="constrained")
        figure.subplots().semilogy(losses)
        figure.axes[0].set(xlabel="step", ylabel="loss (nats per token)")
        figure.savefig(plot, dpi=110)
    return losses, share


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the loss, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
