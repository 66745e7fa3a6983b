"""A call that a limit ends leaves nothing behind: neither memory nor references."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad.testing.allocations import allocations


@njit
def temporaries(x):
    y = np.exp(x)
    z = np.sin(y) * x
    for k in range(3):
        z = np.cos(z * y) + k
    return (z * y).sum()


@njit
def chosen(x):
    y = np.exp(x)
    total = 0.0
    for k in range(5):
        z = np.sin(y) if k % 2 else np.cos(y * y)
        total += (z * x).sum()
        y = z
    return total + y[0]


@njit
def part(x, k):
    y = np.exp(x)
    return np.sin(y * k) if k == 0 else np.cos(part(y * 0.1, k - 1)) * y


@njit
def calls(x):
    return (part(x, 3) * x).sum()


@njit
def returned(x):
    y = np.exp(x)
    return np.sin(y) * x, y


@njit(parallel=True)
def parallel(x):
    y = np.exp(x)
    total = 0.0
    for i in prange(x.size):
        total += np.sin(np.exp(y[i]))
    return total


@pytest.mark.parametrize(
    ("function", "share"),
    [(temporaries, 0.2), (temporaries, 0.95), (chosen, 0.6), (calls, 0.6), (returned, 0.95), (parallel, 0.6)],
)
def test_nothing_stays(function, share):
    x = np.linspace(0.1, 1.0, 2000)
    options = irad.Options(max_tape_bytes=int(share * irad.tape_report(function, x).total))

    def call():
        with pytest.raises(irad.TapeLimitError):
            irad.vjp(function, x, options=options)

    call()
    references = sys.getrefcount(x)
    with allocations() as count:
        for _ in range(4):
            call()
        assert count().kept == 0
    assert sys.getrefcount(x) == references
    assert np.array_equal(x, np.linspace(0.1, 1.0, 2000))
