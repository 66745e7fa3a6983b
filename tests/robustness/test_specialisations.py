"""Many derivatives in one process: each takes as long as the first ones, and ends with its function.

``IRAD_ROBUSTNESS=all``: a thousand. Measured: 0.18 s and 1.55 MB each, the last hundred as the first, none left alive.
In a process that has run other tests before, thirty of them grow by 1.5 to 2.2 MB each: pages are taken in blocks.
"""

from __future__ import annotations

import gc
import os
import time
import types

import numba
import numpy as np
import pytest

import irad
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.linkable import Linkable
from tests.robustness.programs import branches, in_place, reductions, tuples, while_loop
from tests.robustness.test_scale import resident
from tests.tools.catalogue import floats

KINDS = [
    (program, x)
    for program in (reductions, branches, in_place, while_loop, tuples)
    for x in (floats(6), floats(6, dtype=np.float32), floats(12)[::2], floats(6)[::-1])
]
COUNT = 1000 if os.environ.get("IRAD_ROBUSTNESS") == "all" else 3 * len(KINDS)


def specialise(i):
    """Differentiates a function that Numba has not seen, and drops it; the result is the time that took."""
    program, x = KINDS[i % len(KINDS)]
    mine = types.FunctionType(program.__code__, {**program.__globals__, "serial": i}, program.__name__)
    start = time.process_time()
    irad.grad(numba.njit(mine))(x, 0.8)
    return time.process_time() - start


def alive():
    gc.collect()
    return sum(type(thing) in (DerivativeDispatcher, Linkable) for thing in gc.get_objects())


@pytest.fixture(scope="module")
def figures():
    """Times of all specialisations; bytes that each of the second half left, and how many derivatives are left."""
    for i in range(len(KINDS)):
        specialise(i)
    before = alive()
    times = [specialise(i) for i in range(COUNT // 2)]
    gc.collect()
    memory = resident()
    times += [specialise(i) for i in range(COUNT // 2, COUNT)]
    left = alive() - before
    return times, (resident() - memory) / (COUNT - COUNT // 2), left


@pytest.mark.slow
def test_time_is_constant(figures):
    """Medians of the first and the last third: the same mixture of functions."""
    times, _, _ = figures
    third = COUNT // 3 // len(KINDS) * len(KINDS)
    first, last = np.median(times[:third]), np.median(times[-third:])
    assert last < 1.4 * first, f"{first:.3f} s, {last:.3f} s later"


def test_derivatives_end_with_their_functions(figures):
    assert figures[2] <= 2


def test_memory_grows_by_what_numba_keeps_of_code(figures):
    """Numba never unloads machine code."""
    _, each, _ = figures
    assert each < 4e6, f"{each / 1e6:.2f} MB for each"


def test_a_pullback_keeps_what_it_needs():
    def value_and_pullback():
        @numba.njit
        def f(x):
            y = [x[0] * 2.0]
            for a in x:
                y.append(y[-1] * a)
            return np.array(y)

        return irad.vjp(f, floats(4))

    value, pullback = value_and_pullback()
    gc.collect()
    (gradient,) = pullback(np.ones(5))
    np.testing.assert_allclose(gradient[-1], value[-1] / floats(4)[-1])
    del pullback
    gc.collect()


def test_compiled_code_keeps_the_derivative_it_calls():
    def caller():
        @numba.njit
        def f(x):
            return np.sin(x) * x

        derivative = irad.grad(f)

        @numba.njit
        def g(x):
            return 2.0 * derivative(x)

        g(0.5)
        return g

    g = caller()
    gc.collect()
    np.testing.assert_allclose(g(0.7), 2.0 * (np.cos(0.7) * 0.7 + np.sin(0.7)))
    np.testing.assert_allclose(g(np.float32(0.7)), 2.0 * (np.cos(0.7) * 0.7 + np.sin(0.7)), rtol=1e-5)
