"""A gradient is compared before it is timed: a fast wrong one is worth nothing."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from irad.data.floats import Vector, holds_single, read_floats
from irad.errors import IradError
from irad.testing import gradcheck
from irad.testing.gradients.input import CheckedFunction
from irad.testing.gradients.trial import Trial, dot_products, tangent_of

TOLERANCE: Final = 1e-8  # sums in another order differ by less
TOLERANCE_SINGLE: Final = 1e-3
_SEED: Final = 11


def tolerance_for(values: tuple[Any, ...]) -> float:
    """Tolerance, as a part of the largest entry: less of double than of single precision."""
    return TOLERANCE_SINGLE if any(map(holds_single, values)) else TOLERANCE


def check_finite_differences(subject: CheckedFunction, positions: tuple[int, ...]) -> float:
    """Compares with finite differences, along random directions where there are many numbers.

    Returns:
        The relative error that would have been seen.

    Raises:
        GradcheckError: the gradient is wrong, or cannot be checked there.
    """
    report = gradcheck(
        subject.primal, *subject.values, argnums=positions, max_partials=8, directions=2, complex_step=False
    )
    return float(max(argument.accuracy for argument in report.arguments))


def check_forward(
    subject: CheckedFunction, positions: tuple[int, ...], gradients: tuple[Vector, ...], tolerance: float
) -> float:
    """Compares with the derivative that forward mode finds in a random direction.

    Returns:
        The relative difference.

    Raises:
        IradError: it is above the tolerance.
    """
    rng = np.random.default_rng(_SEED)
    directions = {i: rng.standard_normal(each.size) for i, each in zip(positions, gradients, strict=True)}
    trial = Trial(subject.primal, subject.values, tuple(i in positions for i in range(len(subject.values))))
    pushed = trial.push({i: tangent_of(trial.values[i], each) for i, each in directions.items()})
    pairs = zip(gradients, directions.values(), strict=True)
    forward, backward = dot_products([(np.ones(1), pushed.tangent)], pairs)
    scale = max(float(np.linalg.norm(backward)), np.finfo(float).tiny)
    error = abs(float(forward.sum()) - float(backward.sum())) / scale
    _refuse(error, tolerance, subject, "the derivative in a random direction that forward mode finds")
    return error


def check_hand(
    subject: CheckedFunction,
    positions: tuple[int, ...],
    found: tuple[Any, tuple[Vector, ...]],
    hand: Any,
    tolerance: float,
) -> float:
    """Compares with the value and the gradient that a function by hand returned.

    Returns:
        The largest difference of an array or number, relative to its largest entry.

    Raises:
        IradError: it is above the tolerance, or ``hand`` does not return a value with a gradient.
    """
    value, gradients = found
    sizes = [each.size for each in gradients]
    floats = read_floats(hand)
    if not isinstance(hand, tuple) or floats.size != 1 + sum(sizes):
        names = ", ".join(subject.names[i] for i in positions)
        raise IradError(
            f"the hand-written gradient returns {floats.size} numbers instead of the value and {sum(sizes)} "
            "derivatives",
            f"return (value, gradient) with respect to {names}, or name other arguments with --wrt",
            "irad.value_and_grad returns the value and a gradient for each of these arguments",
            subject.location,
        )
    by_hand = np.split(floats[1:], np.cumsum(sizes)[:-1])
    pairs = [(read_floats(value), floats[:1]), *zip(gradients, by_hand, strict=True)]
    error = max(_difference(mine, other) for mine, other in pairs)
    _refuse(error, tolerance, subject, "what the hand-written gradient returns")
    return error


def _difference(found: Vector, expected: Vector) -> float:
    if not found.size:
        return 0.0
    return float(np.max(np.abs(found - expected)) / max(float(np.max(np.abs(expected))), np.finfo(float).tiny))


def _refuse(error: float, tolerance: float, subject: CheckedFunction, other: str) -> None:
    if error <= tolerance:  # NaN is not
        return
    raise IradError(
        f"irad's gradient of {subject.name} differs by {error:.1e} from {other}",
        "find out which one is right: irad check compares irad's with the function's values",
        f"a difference above {tolerance:.0e} of the largest entry is more than rounding, and wrong gradients are not "
        "timed",
        subject.location,
    )
