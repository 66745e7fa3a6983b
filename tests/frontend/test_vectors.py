"""What LLVM makes vectors of in derivatives, and how they reach memory."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from numba import njit

import irad


@njit(error_model="numpy")
def attraction(positions):
    total = 0.0
    for i in range(positions.shape[0]):
        for j in range(i):
            x, y = positions[i, 0] - positions[j, 0], positions[i, 1] - positions[j, 1]
            total += 1.0 / (x * x + y * y)
    return total


@pytest.mark.skipif(platform.machine() != "x86_64", reason="about instructions of this kind of processor")
def test_loops_over_rows_are_vectors_of_single_loads() -> None:
    positions = np.random.default_rng(0).standard_normal((7, 2))
    text = irad.inspect(irad.value_and_grad(attraction), positions).optimized
    assert "fdiv <" in text
    assert "masked.gather" not in text
    assert "masked.scatter" not in text
