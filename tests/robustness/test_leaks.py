"""The process does not grow: memory of tapes, shadows, containers and exceptions comes back.

``IRAD_ROBUSTNESS=all``: 100,000 calls each. `tests/api/objects/test_memory.py` counts Numba's own allocations.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
import pytest

import irad
from tests.robustness.programs import PROGRAMS, arguments
from tests.robustness.test_scale import resident

ROOT = Path(__file__).parents[2]
CALLS = 100_000 if os.environ.get("IRAD_ROBUSTNESS") == "all" else 3000


@numba.njit
def records(x, limit):
    """A loop whose number of iterations is not known saves a record in each; temporaries and lists on the way."""
    s, i, kept = 0.1, 0, [x[0]]
    while s < 20.0:
        y = x * s
        s = s * 1.2 + np.sin(y[i % x.size]) * 0.1
        kept.append(s * x[1])
        i += 1
        if i > limit:
            raise ValueError("too many")
    return s * kept[-1]


@numba.njit
def deep(x, n):
    if n == 0:
        return x[0]
    y = x * 0.9
    return deep(y, n - 1) * x[1] + y[0]


X = np.linspace(0.5, 1.5, 300)


def failing():
    with pytest.raises(ValueError, match="too many"):
        irad.grad(records)(X, 3)


def failing_plain():
    with pytest.raises(ValueError, match="too many"):
        records(X, 3)


WORK = {
    "records": lambda: irad.grad(records)(X, 1000),
    "recursion": lambda: irad.grad(deep)(X, 20),
    "pullback": lambda: irad.vjp(records, X, 1000)[1](1.0),
    "pullback dropped": lambda: irad.vjp(records, X, 1000),
    "matrices": lambda: irad.value_and_grad(matrices, (0, 1))(*arguments()),
}

matrices = numba.njit(PROGRAMS[4])


def growth(work, calls):
    for _ in range(100):
        work()
    gc.collect()
    before = resident()
    for _ in range(calls):
        work()
    gc.collect()
    return resident() - before


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_calls_do_not_grow_the_process(work):
    assert growth(work, CALLS) < 2e6


def test_failing_calls_grow_it_no_more_than_those_of_the_plain_function():
    assert growth(failing, CALLS) < growth(failing_plain, CALLS) + 2e6


def test_threads_that_end_give_their_arenas_back():
    def work():
        thread = threading.Thread(target=lambda: irad.grad(records)(X, 1000))
        thread.start()
        thread.join()

    assert growth(work, CALLS // 30) < 4e6


RELEASED = """
import numpy as np
from numba import njit

import irad
from tests.robustness.test_scale import resident


@njit
def long_tape(x, n):
    y = x.copy()
    for _ in range(n):
        for i in range(x.size):
            y[i] = np.sin(y[i]) + x[i]
    return y.sum()


gradient, x = irad.grad(long_tape), np.linspace(0.5, 1.5, 1000)
expected = gradient(x, 3)
irad.release_memory()
before = resident()
gradient(x, 6000)  # 48 MB of tape
kept = resident() - before
irad.release_memory()
assert kept > 30e6, kept
assert resident() - before < 0.5 * kept, resident() - before
np.testing.assert_array_equal(gradient(x, 3), expected)
"""


def test_the_memory_of_a_thread_can_be_given_back():
    """In a process of its own: in one that has run other tests the tape lies in memory that these have left."""
    done = subprocess.run([sys.executable, "-c", RELEASED], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
