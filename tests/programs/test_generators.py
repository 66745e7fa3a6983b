"""Generators, whose loops can be entered at several places once they are compiled; other loops of that kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@njit
def accumulate(z):
    total = 0.0
    for value in z:
        total += value * value
        yield total * value


@njit
def conditional(z):
    total = 0.0
    i = 0
    while i < z.size:
        total += z[i] * z[i]
        if total > 1.0:
            yield total * z[i]
            total *= 0.5
        else:
            total *= 1.1
        i += 1
        if i == 5:
            yield total


@njit
def nested(z, count):
    for i in range(count):
        for j in range(z.size):
            if z[j] > 0.5:
                yield z[j] * i
            elif z[j] > 0.2:
                yield z[j] * z[j]


@njit
def recurrence(x, count):
    a, b = x, x * x
    for _ in range(count):
        yield a
        a, b = b, a + b * 0.1


@PROGRAMS.at(floats(9))
@njit
def yields_in_a_loop(x):
    total = 0.0
    for value in accumulate(x):
        total += value * value
    return total


@PROGRAMS.at(floats(9))
@PROGRAMS.at(floats(0))
@njit
def yields_under_conditions(x):
    total = 0.0
    for value in conditional(x):
        total += value * value
    return total


@PROGRAMS.at(floats(9), 4)
@PROGRAMS.at(floats(9), 0)
@njit
def yields_in_nested_loops(x, count):
    total = 0.0
    for value in nested(x, count):
        total += math.sin(value)
    return total


@PROGRAMS.at(floats(9), 4)
@njit
def two_generators_at_once(x, count):
    total = 0.0
    for a, b in zip(nested(x, count), conditional(x)):  # noqa: B905 (Numba does not support strict)
        total += a * b
    return total


@PROGRAMS.at(1.1, 9)
@njit
def left_early(x, count):
    total = 0.0
    values = recurrence(x, count)
    for _ in range(3):
        total += next(values)
    for value in values:
        total += value * value
        if value > 2.0:
            break
    return total


@PROGRAMS.at(floats(6))
@njit
def generator_in_a_loop(x):
    total = 0.0
    for i in range(x.size):
        for value in conditional(x[: i + 1]):
            total += value * x[i]
    return total


@njit
def temporaries(z):
    buffer = z * z
    for i in range(z.size):
        buffer[i] *= 2.0
        if buffer[i] > 0.3:
            yield buffer


@PROGRAMS.at(floats(5))
@njit
def yields_its_array(x):
    total = 0.0
    for buffer in temporaries(x):
        total += (buffer * x).sum()
    return total


@PROGRAMS.at(floats(12), 0)
@PROGRAMS.at(floats(12), 2)
@njit
def state_machine(x, state):
    i = 0
    total = 1.0
    while i < x.size:
        if state == 0:
            total += x[i]
            state = 1 if x[i] > 0.5 else 2
        elif state == 1:
            total *= x[i]
            state = 2
        else:
            total += math.sin(total * x[i])
            state = 0
        i += 1
    return total


@njit
def failing(z):
    for value in z:
        if value > 0.0:
            yield value * value
        elif value < -1.0:
            raise ValueError("too small")


@njit
def consume(x):
    total = 0.0
    for value in failing(x):
        total += value
    return total


def test_a_generator_that_raises():
    with pytest.raises(ValueError, match="too small"):
        irad.grad(consume)(np.array([1.0, -0.5, -2.0, 3.0]))
    np.testing.assert_array_equal(irad.grad(consume)(np.array([1.0, -0.5, 3.0])), [2.0, 0.0, 6.0])


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
