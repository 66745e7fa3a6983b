"""What LLVM makes vectors of in derivatives, and how they reach memory."""

from __future__ import annotations

import platform
import re

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


@njit(error_model="numpy")
def eliminated(matrix):
    a = matrix.copy()
    for k in range(a.shape[0]):
        for i in range(k + 1, a.shape[0]):
            for j in range(k + 1, a.shape[1]):
                a[i, j] -= a[i, k] * a[k, j]
    return a[-1, -1]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="about instructions of this kind of processor")
def test_loops_over_rows_are_vectors_of_single_loads() -> None:
    positions = np.random.default_rng(0).standard_normal((7, 2))
    text = irad.inspect(irad.value_and_grad(attraction), positions).optimized
    assert "fdiv <" in text
    assert "masked.gather" not in text
    assert "masked.scatter" not in text


def test_rows_are_not_taken_to_have_one_element() -> None:
    text = irad.inspect(irad.value_and_grad(attraction), np.ones((7, 2))).optimized
    # where vectors have two numbers, LLVM compares a trip count with 1, too
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("%min.iters.check")]
    asks = [line for line in lines if re.search(r"icmp (eq|ne) i64 [^,]*, 1\b", line)]
    assert not asks, "a loop for rows of one element"


def test_overlap_of_rows_is_asked_in_the_loop_that_goes_through_them() -> None:
    text = irad.inspect(irad.value_and_grad(eliminated), np.ones((6, 6))).optimized
    assert "fmul <" in text
    assert "vector.memcheck" in text, "LLVM gives the block this name where it has not moved it"


@njit
def plain_sum(x):
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


def test_code_of_others_is_compiled_as_ever() -> None:
    irad.grad(attraction)(np.ones((2, 2)))
    assert plain_sum(np.ones(3)) == 3.0
    (text,) = plain_sum.inspect_llvm().values()
    assert "vector.body" not in text, "sums keep their order, and are loops of scalars, in Numba's own code"
