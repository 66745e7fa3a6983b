"""What iterations leave on the tape of a thread: rows of every width, records, and how many bytes they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import cuda

from tests.cuda.case import Case
from tests.kernel.launches import launch_of

RNG = np.random.default_rng(4)
THREADS, STEPS = 40, 11
X = 0.5 + 0.4 * RNG.random(THREADS)
BITS = RNG.integers(0, 2**STEPS, THREADS)


def squares(x, n, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(n):
            v = v * v
        y[i] = v


def branches(x, bits, n, y):
    """Only which way it went is needed: linear in x."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for k in range(n):
            if (bits[i] >> k) & 1:
                cuda.atomic.add(y, i, v)
            v = v * 1.5
        cuda.atomic.add(y, i, v)


def squares_and_branches(x, bits, n, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for k in range(n):
            if (bits[i] >> k) & 1:
                cuda.atomic.add(y, i, v)
            v = v * v
        cuda.atomic.add(y, i, v)


def steps_in_steps(x, bits, n, y):
    """Loops that are not counted beforehand, in one another: records with links around records without."""
    i = cuda.grid(1)
    if i < x.size:
        v, rest = x[i], bits[i]
        while rest > 0:
            m = rest
            while m > 0:
                v = v + 0.01 * v * v
                m //= 4
            v = v * (1.0 + 0.1 * v)
            rest //= 8
        y[i] = v


def slope_of(kernel: Any, *given: Any) -> np.ndarray:
    """By differences."""
    ends = []
    for sign in (1e-6, -1e-6):
        x, y = X + sign, np.zeros(THREADS)
        case = Case(kernel, kernel, lambda rng: (x, *given, y), 2, 32, (), ())  # noqa: B023
        launch_of(case).run(case.fresh())
        ends.append(y)
    return (ends[0] - ends[1]) / 2e-6


def gradient_of(kernel: Any, *given: Any) -> tuple[np.ndarray, int]:
    """By the derivative, whose tape is as large as it has to be; and how many bytes that is."""
    case = Case(kernel, kernel, lambda rng: (X.copy(), *given, np.zeros(THREADS)), 2, 32, (), (0, len(given) + 1))
    launch = launch_of(case)
    made = launch.derivative(apart=True)
    _, report = launch.run_derivative(made, case.fresh(), {0: np.zeros(THREADS), len(given) + 1: np.ones(THREADS)})
    size = int(report[0])
    shadow = np.zeros(THREADS)
    beside = {0: shadow, len(given) + 1: np.ones(THREADS)}
    _, report = launch.run_derivative(made, case.fresh(), beside, races=True, size=size)
    assert list(report) == [size, 0]
    _, report = launch.run_derivative(made, case.fresh(), beside, size=size - 8)
    assert list(report) == [size, 1]
    return shadow, size


@pytest.mark.parametrize(
    ("kernel", "given", "row"),
    [(squares, (STEPS,), 8), (branches, (BITS, STEPS), 1), (squares_and_branches, (BITS, STEPS), 16)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_rows(kernel: Any, given: tuple[Any, ...], row: int):
    shadow, size = gradient_of(kernel, *given)
    np.testing.assert_allclose(shadow, slope_of(kernel, *given), rtol=1e-6, atol=1e-9)
    assert size == -(-STEPS * row // 8) * 8


def test_rows_of_single_precision():
    x, shadow = X.astype(np.float32), np.zeros(THREADS, np.float32)
    case = Case(squares, squares, lambda rng: (x.copy(), 3, np.zeros_like(x)), 2, 32, (), (0, 2))
    launch = launch_of(case)
    beside = {0: shadow, 2: np.ones_like(x)}
    _, report = launch.run_derivative(launch.derivative(), case.fresh(), beside, races=True, size=16)
    np.testing.assert_allclose(shadow, 8 * x**7, rtol=1e-5)
    assert list(report) == [16, 0]


def test_records():
    given = (BITS, STEPS)
    shadow, _ = gradient_of(steps_in_steps, *given)
    np.testing.assert_allclose(shadow, slope_of(steps_in_steps, *given), rtol=1e-6)
