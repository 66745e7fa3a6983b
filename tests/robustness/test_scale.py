"""Large functions, large tapes, large arrays, many specialisations.

``IRAD_ROBUSTNESS=all`` takes the full sizes: 20,000 instructions, a tape of a gigabyte, 1,000 specialisations.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import irad
from irad.driver import derive
from irad.ir.text.parser import parse_module
from tests.passes.units import canonical, registry, request_of
from tests.robustness import large

FULL = os.environ.get("IRAD_ROBUSTNESS") == "all"


def seconds_to_derive(shape, size):
    text = canonical(shape(size // large.SHAPES[shape]))
    function = next(f for f in parse_module(text).defined_functions() if f.name == "f")
    request = request_of(function, "ssc")
    start = time.process_time()
    derive(text, request, registry())
    return time.process_time() - start


@pytest.mark.parametrize("shape", large.LINEAR, ids=lambda shape: shape.__name__)
def test_time_grows_with_the_size_of_the_function_not_with_its_square(shape):
    """Four times the size takes at most nine times as long (a square: sixteen), in one of three attempts."""
    size = 5000 if FULL else 1500
    ratios = []
    for _ in range(3):
        ratios.append(seconds_to_derive(shape, 4 * size) / seconds_to_derive(shape, size))
        if ratios[-1] < 9:
            return
    pytest.fail(f"{4 * size} instructions take {min(ratios):.1f} times as long as {size}")


@numba.njit
def chain(x, steps):
    for _ in range(steps):
        x = np.sin(x) * 1.0001
    return x


def test_a_tape_of_a_gigabyte_is_given_back():
    """Each step saves two numbers."""
    steps = 2**26 if FULL else 2**22
    gradient = irad.grad(chain)
    gradient(0.5, 10)
    gc.collect()
    before = resident()
    found = gradient(0.5, steps)
    assert resident() - before < 100e6
    assert np.isfinite(found)
    factor, x = 1.0, 0.5
    for _ in range(1000):
        x, factor = np.sin(x) * 1.0001, factor * np.cos(x) * 1.0001
    np.testing.assert_allclose(gradient(0.5, 1000), factor, rtol=1e-10)


def test_arrays_of_ten_million():
    @numba.njit
    def f(x):
        total = 0.0
        for i in range(1, x.size):
            total += np.exp(-x[i]) * x[i - 1]
        return total

    x = np.linspace(0.0, 1.0, 10_000_000)
    gradient = irad.grad(f)(x)
    e = np.exp(-x)
    expected = np.r_[e[1], e[2:] - e[1:-1] * x[:-2], -e[-1] * x[-2]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-12)


def test_memory_of_many_specialisations():
    """What stays of a function and its derivative is about as much as Numba keeps of any two functions."""
    count = 1000 if FULL else 40

    def specialise(i):
        @numba.njit
        def f(x):
            return np.sin(x) * x + i

        return f

    kept = []
    for i in range(10):
        irad.grad(specialise(i))(0.5)
    gc.collect()
    before = resident()
    for i in range(count):
        f = specialise(10 + i)
        irad.grad(f)(0.5)
        kept.append(f)
    gc.collect()
    each = (resident() - before) / count
    assert each < 1.5e6, f"{each / 1e6:.2f} MB for each specialisation"


def resident() -> float:
    """Bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * resource.getpagesize())
