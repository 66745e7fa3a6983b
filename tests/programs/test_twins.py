"""Hyperbolic sines beside cosines of the same argument: in loops, after them, and in those that follow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@njit
def halved(n, v):
    """Recursive, so that LLVM moves nothing across it."""
    return v if n == 0 else halved(n - 1, v * 0.5) + v


@njit
def grown(v, w, limit):
    """A loop of unknown length."""
    s, k = 0.3, 0
    while True:
        s = s + halved(k % 3, w) + math.sinh(v) * w
        k += 1
        if s > limit:
            return s


@PROGRAMS.at(0.7, 20.0)
@njit
def behind_a_loop_of_unknown_length(v, limit):
    kept = [1.0]
    s = 0.1
    while True:
        kept.append(s)
        s += math.sinh(v) * kept[-1]
        if s >= limit:
            break
    return s * math.cosh(v)


@PROGRAMS.at(floats(4), 0.4)
@njit
def behind_an_inner_loop(x, w):
    total = 0.0
    for i in range(x.size):
        v = math.sqrt(x[i])
        s = grown(v, w, 4.0 + i)
        total += s * math.cosh(v)
    return total


@PROGRAMS.at(floats(4), 0.4)
@njit
def in_the_next_loop(x, w):
    total = 0.0
    for i in range(x.size):
        v = math.sqrt(x[i])
        s = grown(v, w, 4.0 + i)
        for k in range(3):
            total += halved(k % 3, s) * math.cosh(v) * 0.1
    return total


@PROGRAMS.at(floats(4), 0.4)
@njit
def before_the_loop(x, w):
    total = 0.0
    for i in range(x.size):
        v, k = math.sqrt(x[i]), 0
        s = math.sinh(v) * 0.3
        while True:
            s = s + halved(k % 3, w) + math.cosh(v) * w
            k += 1
            if s > 4.0 + i:
                break
        total += s
    return total


@PROGRAMS.at(floats(5, dtype=np.float32))
@PROGRAMS.at(floats(5))
@njit
def rotations(angles):
    x, y = angles[0], angles[0] * 0
    for angle in angles:
        if angle > 1.0:
            x, y = x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)
        else:
            x = x * np.cos(angle)
    return x * y + y


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
