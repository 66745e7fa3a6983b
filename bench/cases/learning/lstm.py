"""An LSTM over a sequence, loss on the last hidden state."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size
from bench.cases.vectors import add_product, exponential


@njit(error_model="numpy")
def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


@njit(error_model="numpy")
def loss(inner, outer, bias, sequence, target):
    width = inner.shape[1]
    hidden, cell = np.zeros(width), np.zeros(width)
    gates = np.empty(4 * width)
    for x in sequence:
        for i in range(4 * width):
            gates[i] = bias[i]
            for j in range(x.size):
                gates[i] += outer[i, j] * x[j]
            for j in range(width):
                gates[i] += inner[i, j] * hidden[j]
        for i in range(width):
            forget, write = sigmoid(gates[i]), sigmoid(gates[width + i])
            cell[i] = forget * cell[i] + write * math.tanh(gates[2 * width + i])
            hidden[i] = sigmoid(gates[3 * width + i]) * math.tanh(cell[i])
    total = 0.0
    for i in range(width):
        total += (hidden[i] - target[i]) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def hand(inner, outer, bias, sequence, target):
    """Gates, cells and hidden states of all steps are kept, after their nonlinearities."""
    n, depth = sequence.shape
    width = inner.shape[1]
    hiddens, cells = np.zeros((n + 1, width)), np.zeros((n + 1, width))
    gates, curves = np.empty((n, 4 * width)), np.empty((n, width))
    for t in range(n):
        x, hidden, gate = sequence[t], hiddens[t], gates[t]
        for i in range(4 * width):
            dot = bias[i]
            for j in range(depth):
                dot += outer[i, j] * x[j]
            for j in range(width):
                dot += inner[i, j] * hidden[j]
            gate[i] = dot
        for i in range(width):
            forget, write = sigmoid(gate[i]), sigmoid(gate[width + i])
            new, show = math.tanh(gate[2 * width + i]), sigmoid(gate[3 * width + i])
            cells[t + 1, i] = forget * cells[t, i] + write * new
            curves[t, i] = math.tanh(cells[t + 1, i])
            hiddens[t + 1, i] = show * curves[t, i]
            gate[i], gate[width + i], gate[2 * width + i], gate[3 * width + i] = forget, write, new, show
    hidden_bar = hiddens[n] - target
    total = 0.0
    for i in range(width):
        total += hidden_bar[i] ** 2
    inner_bar, outer_bar, bias_bar = np.zeros(inner.shape), np.zeros(outer.shape), np.zeros(4 * width)
    cell_bar, gate_bar = np.zeros(width), np.empty(4 * width)
    for t in range(n - 1, -1, -1):
        gate = gates[t]
        for i in range(width):
            forget, write, new, show = gate[i], gate[width + i], gate[2 * width + i], gate[3 * width + i]
            curve = curves[t, i]
            after = cell_bar[i] + hidden_bar[i] * show * (1.0 - curve * curve)
            gate_bar[i] = after * cells[t, i] * forget * (1.0 - forget)
            gate_bar[width + i] = after * new * write * (1.0 - write)
            gate_bar[2 * width + i] = after * write * (1.0 - new * new)
            gate_bar[3 * width + i] = hidden_bar[i] * curve * show * (1.0 - show)
            cell_bar[i] = after * forget
            hidden_bar[i] = 0.0
        for i in range(4 * width):
            factor = gate_bar[i]
            bias_bar[i] += factor
            for j in range(depth):
                outer_bar[i, j] += factor * sequence[t, j]
            for j in range(width):
                inner_bar[i, j] += factor * hiddens[t, j]
                hidden_bar[j] += factor * inner[i, j]
    return 0.5 * total, (inner_bar, outer_bar, bias_bar)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _sigmoid(x):
    return 1.0 / (1.0 + exponential(-x))


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _forward(inner, bias, gates, hiddens, cells, curves):
    """Turns products with the inputs into gates after their nonlinearities; tanh x = 2 sigmoid 2x - 1."""
    n, width = curves.shape
    columns = inner.T.copy()
    for t in range(n):
        gate, cell, after, curve, hidden = gates[t], cells[t], cells[t + 1], curves[t], hiddens[t + 1]
        for i in range(4 * width):
            gate[i] += bias[i]
        add_product(hiddens[t], columns, gate)
        for i in range(2 * width, 3 * width):
            gate[i] *= 2.0
        for i in range(4 * width):
            gate[i] = _sigmoid(gate[i])
        forget, write, new, show = gate[:width], gate[width:], gate[2 * width :], gate[3 * width :]
        for i in range(width):
            new[i] = 2.0 * new[i] - 1.0
            after[i] = forget[i] * cell[i] + write[i] * new[i]
        for i in range(width):
            curve[i] = 2.0 * _sigmoid(2.0 * after[i]) - 1.0
            hidden[i] = show[i] * curve[i]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(inner, outer, bias, sequence, target):
    """Steps are sequential only in what they must be; inputs and gradients of weights are products of matrices."""
    n, width = sequence.shape[0], inner.shape[1]
    hiddens, cells, curves = np.zeros((n + 1, width)), np.zeros((n + 1, width)), np.empty((n, width))
    gates = np.dot(sequence, outer.T)
    _forward(inner, bias, gates, hiddens, cells, curves)
    hidden_bar = hiddens[n] - target
    total = 0.0
    for i in range(width):
        total += hidden_bar[i] ** 2
    cell_bar, bias_bar = np.zeros(width), np.zeros(4 * width)
    for t in range(n - 1, -1, -1):
        gate, cell, curve = gates[t], cells[t], curves[t]
        forgets, writes, news, shows = gate[:width], gate[width:], gate[2 * width :], gate[3 * width :]
        for i in range(width):
            forget, write, new, show = forgets[i], writes[i], news[i], shows[i]
            after = cell_bar[i] + hidden_bar[i] * show * (1.0 - curve[i] * curve[i])
            forgets[i] = after * cell[i] * forget * (1.0 - forget)
            writes[i] = after * new * write * (1.0 - write)
            news[i] = after * write * (1.0 - new * new)
            shows[i] = hidden_bar[i] * curve[i] * show * (1.0 - show)
            cell_bar[i] = after * forget
            hidden_bar[i] = 0.0
        for i in range(4 * width):
            bias_bar[i] += gate[i]
        add_product(gate, inner, hidden_bar)
    return 0.5 * total, (np.dot(gates.T, hiddens[:n]), np.dot(gates.T, sequence), bias_bar)


def flops(inner, outer, bias, sequence, target):
    return sequence.shape[0] * (6 * inner.size + 4 * outer.size)


def make(size: Size) -> tuple[Any, ...]:
    """Weights that keep the variance."""
    n, depth, width = {"small": (3, 2, 2), "medium": (20, 8, 8), "full": (100, 16, 32)}[size]
    rng = np.random.default_rng(18)
    inner = rng.standard_normal((4 * width, width)) / math.sqrt(width)
    outer = rng.standard_normal((4 * width, depth)) / math.sqrt(depth)
    return inner, outer, rng.standard_normal(4 * width), rng.standard_normal((n, depth)), rng.standard_normal(width)


CASE = Case("lstm", "LSTM, 100 steps, 16 inputs, width 32", loss, hand, make, (0, 1, 2), hand_opt, flops)
