"""The function that all bridges are tried with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit
def steps(x: Any, count: int, weights: tuple[Any, Any]) -> tuple[Any, Any, int]:
    """Several results, one of them an integer, of a structure and a constant."""
    y = x * weights[0]
    for _ in range(count):
        y = np.sin(y) * weights[1]
    return y, y.sum(), count
