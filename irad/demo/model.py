"""The model: a Gaussian mixture, its parameters as one vector, its log-likelihood as ordinary Numba code.

Layout of the parameter vector for K components in d dimensions:

    K           logits of the weights: weight = softmax(logits)
    K · d       means
    K · d       logarithms of the diagonals of the Cholesky factors L of the covariances, L·Lᵀ
    K · d(d−1)/2  entries of L below the diagonal, row by row

Every vector of real numbers is a valid mixture, so the optimiser needs no constraints.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


@njit(error_model="numpy")
def negative_log_likelihood(parameters: Floats, points: Floats, components: int) -> float:
    """Mean negative log-likelihood of the points.

    Args:
        parameters: as above.
        points: one per row.
        components: K.
    """
    n, d = points.shape
    k = components
    logits = parameters[:k]
    means = parameters[k : k + k * d].reshape(k, d)
    log_diagonals = parameters[k + k * d : k + 2 * k * d].reshape(k, d)
    below = parameters[k + 2 * k * d :].reshape(k, d * (d - 1) // 2)
    offset = log_sum_exp(logits) + 0.5 * d * math.log(2.0 * math.pi)
    terms = np.empty(k)
    whitened = np.empty(d)
    total = 0.0
    for i in range(n):
        for c in range(k):
            terms[c] = logits[c] - offset
            position = 0
            for row in range(d):
                rest = points[i, row] - means[c, row]
                for column in range(row):
                    rest -= below[c, position] * whitened[column]
                    position += 1
                whitened[row] = rest * math.exp(-log_diagonals[c, row])
                terms[c] -= log_diagonals[c, row] + 0.5 * whitened[row] ** 2
        total -= log_sum_exp(terms)
    return total / n


@njit(error_model="numpy")
def log_sum_exp(values: Floats) -> float:
    """The logarithm of the sum of exponentials, without overflow."""
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    total = 0.0
    for value in values:
        total += math.exp(value - largest)
    return largest + math.log(total)


@dataclass(frozen=True)
class Mixture:
    """A mixture in readable form: ``weights[c]``, ``means[c]`` and ``covariances[c]`` of its components."""

    weights: Floats
    means: Floats
    covariances: Floats

    @classmethod
    def from_parameters(cls, parameters: Floats, components: int, dimension: int) -> Mixture:
        """The mixture that a parameter vector represents."""
        k, d = components, dimension
        logits, means, log_diagonals, below = np.split(parameters, [k, k + k * d, k + 2 * k * d])
        factors = np.zeros((k, d, d))
        rows, columns = np.tril_indices(d, -1)
        factors[:, rows, columns] = below.reshape(k, -1)
        factors[:, range(d), range(d)] = np.exp(log_diagonals.reshape(k, d))
        weights = np.exp(logits - np.max(logits))
        covariances = factors @ factors.transpose(0, 2, 1)
        return cls(weights / np.sum(weights), means.reshape(k, d), covariances)

    def to_parameters(self) -> Floats:
        """A parameter vector of this mixture; the logits are logarithms of the weights."""
        factors = np.linalg.cholesky(self.covariances)
        d = self.means.shape[1]
        rows, columns = np.tril_indices(d, -1)
        log_diagonals = np.log(factors[:, range(d), range(d)])
        parts = (np.log(self.weights), self.means, log_diagonals, factors[:, rows, columns])
        return np.concatenate([part.ravel() for part in parts]).astype(np.float64)

    def sample(self, count: int, rng: np.random.Generator) -> Floats:
        """Independent points of the mixture, one per row."""
        labels = rng.choice(len(self.weights), size=count, p=self.weights)
        normal = rng.standard_normal((count, self.means.shape[1]))
        factors = np.linalg.cholesky(self.covariances)
        return np.asarray(self.means[labels] + np.einsum("nij,nj->ni", factors[labels], normal))

    def reordered(self, order: NDArray[np.intp]) -> Mixture:
        """This mixture with its components in another order."""
        return Mixture(self.weights[order], self.means[order], self.covariances[order])
