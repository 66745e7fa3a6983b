"""Distance of a gradient from the derivatives of the program, by the complex step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

STEP: Final = 1e-40
DIRECTIONS: Final = 2


def error(
    analytic: Callable[..., complex],
    argnums: Sequence[int],
    args: tuple[Any, ...],
    found: tuple[float, tuple[Any, ...]],
) -> float:
    """Largest difference of the value, and of the gradients along random directions, from the complex step.

    Relative to the value; and to the sum of the sizes of what is added up along a direction.

    Args:
        analytic: the program for complex arguments.
        argnums: positions of the arguments with gradients.
        args: arguments.
        found: a value and its gradients.
    """
    rng = np.random.default_rng(1)
    value, gradients = found
    errors = []
    for _ in range(DIRECTIONS):
        directions = [rng.standard_normal(np.shape(args[number])) for number in argnums]
        moved = list(map(_complex, args))
        for number, direction in zip(argnums, directions, strict=True):
            moved[number] = moved[number] + 1j * STEP * direction
        exact = analytic(*moved)
        products = [np.sum(g * d) for g, d in zip(gradients, directions, strict=True)]
        sizes = [np.sum(np.abs(g * d)) for g, d in zip(gradients, directions, strict=True)]
        errors += [abs(value - exact.real) / abs(value), abs(sum(products) - exact.imag / STEP) / sum(sizes)]
    return float(np.max(errors))  # NaN where one is


def _complex(arg: Any) -> Any:
    is_float = np.issubdtype(np.asarray(arg).dtype, np.floating)
    return np.asarray(arg) + 0j if is_float and np.ndim(arg) else complex(arg) if is_float else arg
