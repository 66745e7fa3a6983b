"""Exceptions with computed arguments: what is written to the caller's memory before them is kept, or refused."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from irad.errors import UnsupportedError
from tests.report.pseudo_python import python, run


@numba.njit
def marks_and_raises(out, x):
    if x < 0.0:
        out[0] = 7.0
        raise ValueError("x is", x)
    return out[0] * x


@numba.njit
def fills_and_raises(out, x):
    if x < 0.0:
        for i in range(out.size):
            out[i] = np.sin(x) * i
        raise ValueError("x is", x)
    return out[0] * x


@numba.njit
def raises_with_own_memory(out, x):
    if x < 0.0:
        raise ValueError("x and its double are", (x, 2.0 * x))
    return out[0] * x


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_stored_before_the_exception_is_stored(exact):
    text = python(marks_and_raises, (np.ones(2), 1.0), (0, 1))
    out = np.array([3.0, 4.0])
    function = text.namespace(exact=exact)[text.name]
    with pytest.raises(ValueError, match="x is"):
        function(out, np.float64(-1.0))
    np.testing.assert_array_equal(out, [7.0, 4.0])


def test_a_loop_that_stores_before_the_exception_is_refused():
    with pytest.raises(UnsupportedError, match="written to arguments before an exception"):
        python(fills_and_raises, (np.ones(2), 1.0), (0, 1))


def test_what_the_exception_is_made_of_is_left_out():
    text = python(raises_with_own_memory, (np.ones(2), 1.0), (0, 1))
    with pytest.raises(ValueError, match="double"):
        run(text, (np.ones(2), -1.0))
