"""The check of the gradient and the times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irad.demo.fit import ValueAndGradient
from irad.demo.hand import value_and_gradient as hand_gradient
from irad.demo.model import Floats, negative_log_likelihood

HAND_TOLERANCE = 1e-12  # both are exact up to rounding
DIFFERENCE_TOLERANCE = 1e-7  # central differences themselves are wrong by about the cube root of the precision, squared


@dataclass(frozen=True)
class GradientCheck:
    """Largest differences of irad's gradient from others, relative to its largest entry."""

    from_hand: float
    from_differences: float

    @property
    def passed(self) -> bool:
        """Whether both are as small as rounding explains."""
        return self.from_hand <= HAND_TOLERANCE and self.from_differences <= DIFFERENCE_TOLERANCE


def check_gradient(gradient: ValueAndGradient, parameters: Floats, points: Floats, components: int) -> GradientCheck:
    """Compare a gradient with the hand-written one and with central differences."""
    _, found = gradient(parameters, points, components)
    _, by_hand = hand_gradient(parameters, points, components)
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
        "value and gradient, hand-written": hand_gradient,
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
