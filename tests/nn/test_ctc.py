"""ctc_loss against the sum over all alignments."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check


def _of_all_alignments(x: Any, labels: Any, blank: int) -> float:
    """Of one sample, (time, classes)."""
    log_p = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    total = 0.0
    for path in itertools.product(range(x.shape[1]), repeat=x.shape[0]):
        merged = [c for c, _ in itertools.groupby(path) if c != blank]
        if merged == list(labels):
            total += np.exp(sum(log_p[t, c] for t, c in enumerate(path)))
    with np.errstate(divide="ignore"):
        return -np.log(total)


X = np.random.default_rng(0).standard_normal((5, 4, 3))
LABELS = np.array([[0, 1, 9], [1, 1, 0], [9, 9, 9], [1, 1, 1], [1, 9, 9]])
LENGTHS = np.array([4, 4, 3, 4, 0])  # the labels of the fourth need 5, the fifth has no time at all
COUNTS = np.array([2, 3, 0, 3, 1])


@pytest.mark.parametrize("blank", [-1, 2])
def test_values(blank: int):
    found = nn.ctc_loss(X, LABELS, LENGTHS, COUNTS, blank)
    wanted = [
        _of_all_alignments(x[:time], row[:count], 2)
        for x, row, time, count in zip(X, LABELS, LENGTHS, COUNTS, strict=True)
    ]
    np.testing.assert_allclose(found, wanted, rtol=1e-13)
    assert np.isinf(found).tolist() == [False, False, False, True, True]


def test_a_blank_in_front_and_all_lengths():
    labels = np.array([[1, 2]] * 5, np.int32)
    wanted = [_of_all_alignments(x, (1, 2), 0) for x in X]
    np.testing.assert_allclose(nn.ctc_loss(X, labels, None, None, 0), wanted, rtol=1e-13)
    x = 300.0 * X  # neither overflows nor underflows
    assert np.isfinite(nn.ctc_loss(x, labels, blank=0)).all()
    assert nn.ctc_loss(np.float32(X), labels, blank=0).dtype == np.float32
    np.testing.assert_allclose(nn.ctc_loss(np.float32(X), labels, blank=0), wanted, rtol=1e-5)


def test_every_mode_and_order():
    feasible = (X[:3], LABELS[:3], LENGTHS[:3], COUNTS[:3])
    check(nn.ctc_loss, *feasible)


def test_what_cannot_be_aligned_has_no_derivative():
    @njit
    def loss(x, labels, lengths, counts):
        y = nn.ctc_loss(x, labels, lengths, counts)
        total = 0.0
        for n in range(y.size):
            total += y[n]
        return total

    gradient = irad.grad(loss)(X, LABELS, LENGTHS, COUNTS)
    np.testing.assert_array_equal(gradient[3:], 0.0)
    np.testing.assert_array_equal(gradient[2, 3], 0.0)  # after the end
    np.testing.assert_allclose(gradient.sum(axis=2), 0.0, atol=1e-15)
    masked = X[:1].copy()
    masked[0, :, 1] = -np.inf  # the class of a label has no probability
    assert nn.ctc_loss(masked, LABELS[:1], LENGTHS[:1], COUNTS[:1])[0] == np.inf
    np.testing.assert_array_equal(irad.grad(loss)(masked, LABELS[:1], LENGTHS[:1], COUNTS[:1]), 0.0)


@pytest.mark.parametrize(
    ("labels", "lengths", "counts", "error", "message"),
    [
        ([[0, 3]], [4], [2], IndexError, "label 3 at position 1 of sample 0"),
        ([[2, 0]], [4], [1], IndexError, "not the blank, 2"),
        ([[0, 0]], [5], [2], ValueError, "sample 0 has length 5 of 4"),
        ([[0, 0]], [4], [3], ValueError, "and 3 of 2 labels"),
        ([[0], [0]], [4], [1], ValueError, "1 samples, 2 rows of labels"),
    ],
)
def test_what_is_refused(labels: Any, lengths: Any, counts: Any, error: Any, message: str):
    with pytest.raises(error, match=message):
        nn.ctc_loss(X[:1], np.array(labels), np.array(lengths), np.array(counts))
