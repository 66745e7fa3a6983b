"""The check of the gradient against one written by hand, and the times."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from irad.demo.fit import ValueAndGradient
from irad.demo.model import Floats, log_sum_exp, negative_log_likelihood

# The gradient of the demo's model written by hand: an independent truth and a yardstick.


@njit(error_model="numpy")
def value_and_gradient(parameters: Floats, points: Floats, components: int) -> tuple[float, Floats]:
    """Value and gradient of `irad.demo.model.negative_log_likelihood` by its parameters.

    One sweep over the points. With r = responsibility of component c for point x, and whitened = L⁻¹(x − mean), the
    cotangent of the whitened point is r·whitened; the triangular solve is reversed row by row.
    """
    n, d = points.shape
    k = components
    means = parameters[k : k + k * d].reshape(k, d)
    log_diagonals = parameters[k + k * d : k + 2 * k * d].reshape(k, d)
    below = parameters[k + 2 * k * d :].reshape(k, d * (d - 1) // 2)
    gradient = np.zeros(parameters.size)
    logits_bar = gradient[:k]
    means_bar = gradient[k : k + k * d].reshape(k, d)
    log_diagonals_bar = gradient[k + k * d : k + 2 * k * d].reshape(k, d)
    below_bar = gradient[k + 2 * k * d :].reshape(k, d * (d - 1) // 2)
    inverse_diagonals = np.exp(-log_diagonals)
    normaliser = log_sum_exp(parameters[:k])
    terms, whitened, whitened_bar = np.empty(k), np.empty((k, d)), np.empty(d)
    total = 0.0
    for i in range(n):
        for c in range(k):
            terms[c] = parameters[c]
            position = 0
            for row in range(d):
                rest = points[i, row] - means[c, row]
                for column in range(row):
                    rest -= below[c, position] * whitened[c, column]
                    position += 1
                whitened[c, row] = rest * inverse_diagonals[c, row]
                terms[c] -= log_diagonals[c, row] + 0.5 * whitened[c, row] ** 2
        evidence = log_sum_exp(terms)
        total -= evidence
        for c in range(k):
            responsibility = math.exp(terms[c] - evidence) / n
            logits_bar[c] -= responsibility
            for row in range(d):
                whitened_bar[row] = responsibility * whitened[c, row]
            for row in range(d - 1, -1, -1):
                log_diagonals_bar[c, row] += responsibility - whitened_bar[row] * whitened[c, row]
                rest_bar = whitened_bar[row] * inverse_diagonals[c, row]
                means_bar[c, row] -= rest_bar
                start = row * (row - 1) // 2
                for column in range(row):
                    below_bar[c, start + column] -= rest_bar * whitened[c, column]
                    whitened_bar[column] -= rest_bar * below[c, start + column]
    for c in range(k):
        logits_bar[c] += math.exp(parameters[c] - normaliser)
    return total / n + normaliser + 0.5 * d * math.log(2.0 * math.pi), gradient


# The check of the gradient and the times.

HAND_TOLERANCE = 1e-12  # both are exact up to rounding
DIFFERENCE_TOLERANCE = 1e-7  # central differences themselves are wrong by about the cube root of the precision, squared


@dataclass(frozen=True)
class GradientCheck:
    """Largest differences of irad's gradient from others, relative to its largest entry."""

    from_hand: float
    from_differences: float

    @property
    def passed(self) -> bool:
        """True if both are as small as rounding explains."""
        return self.from_hand <= HAND_TOLERANCE and self.from_differences <= DIFFERENCE_TOLERANCE


def check_gradient(gradient: ValueAndGradient, parameters: Floats, points: Floats, components: int) -> GradientCheck:
    """Compare a gradient with the hand-written one and with central differences."""
    _, found = gradient(parameters, points, components)
    _, by_hand = value_and_gradient(parameters, points, components)
    by_differences = difference_gradient(parameters, points, components)
    scale = np.max(np.abs(by_hand))
    return GradientCheck(
        from_hand=float(np.max(np.abs(found - by_hand)) / scale),
        from_differences=float(np.max(np.abs(found - by_differences)) / scale),
    )


def difference_gradient(parameters: Floats, points: Floats, components: int) -> Floats:
    """Central differences with the step that balances truncation and rounding."""
    step = np.cbrt(np.finfo(np.float64).eps)
    gradient = np.empty_like(parameters)
    for i, value in enumerate(parameters):
        h = step * max(1.0, abs(value))
        up, down = parameters.copy(), parameters.copy()
        up[i] += h
        down[i] -= h
        rise = negative_log_likelihood(up, points, components) - negative_log_likelihood(down, points, components)
        gradient[i] = rise / (up[i] - down[i])
    return gradient


def measure_times(
    gradient: ValueAndGradient, parameters: Floats, points: Floats, components: int, rounds: int = 15
) -> dict[str, float]:
    """Seconds of CPU time of one call, medians; the functions take turns and are compiled before."""
    functions: dict[str, Callable[[Floats, Floats, int], object]] = {
        "likelihood alone": negative_log_likelihood,
        "value and gradient, irad": gradient,
        "value and gradient, hand-written": value_and_gradient,
        "central differences": difference_gradient,
    }
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function(parameters, points, components)
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.thread_time()
            function(parameters, points, components)
            samples[name].append(time.thread_time() - start)
    return {name: statistics.median(values) for name, values in samples.items()}
