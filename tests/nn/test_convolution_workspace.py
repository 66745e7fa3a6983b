"""What convolutions work in belongs to their rules: from the second call of a derivative on nothing is allocated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

import irad
from irad import rules
from irad.nn.convolution.kernels import add_conv
from irad.testing.allocations import allocations

ROOT = Path(__file__).parents[2]


@njit
def convolve(y, x, w, settings):
    add_conv(y, x, w, settings, np.empty(0))


def _drawn(channels: int, filters: int, size: int) -> list[Any]:
    random = np.random.default_rng(channels)
    shapes = (1, filters, 1, size - 2, 4), (1, channels, 1, size, 4), (filters, channels, 1, 3, 3)
    return [random.standard_normal(shape) for shape in shapes]


def check() -> None:
    one = np.int64(1)
    settings = (one, one, one), (0 * one, 0 * one, 0 * one, 0 * one, one, one), (one, one, one), 1, True

    def gradient(arrays: list[Any]) -> list[Any]:
        shadows = [np.zeros_like(each) for each in arrays]
        shadows[0][:] = 1.0
        given = [irad.Duplicated(each.copy(), shadow) for each, shadow in zip(arrays, shadows, strict=True)]
        with allocations() as count:
            irad.autodiff(irad.Reverse, convolve, *given, irad.Const(settings), seed=None)
            made.append(count().made)
        return [given[0].value, *shadows[1:]]

    made: list[int] = []
    cases = [_drawn(2, 3, 6), _drawn(16, 16, 5), _drawn(1, 2, 5)]  # the second needs the most
    gradient(cases[0])
    rules.close(convolve)
    made.clear()
    wanted = [gradient(each) for each in cases]
    assert rules.workspace(convolve) == rules.Workspace(0, 1)
    others = 6 + 1  # headers that Numba gives to arrays from Python; the empty array
    assert made == [others + 3, others + 1, others]  # the slot, an empty array, one that fits; a larger one
    for each, found in [(each, gradient(each)) for each in cases]:
        for mine, first in zip(found, wanted.pop(0), strict=True):
            np.testing.assert_array_equal(mine, first)  # whatever the memory held
        y, by_x, by_w = found
        np.testing.assert_allclose((by_x * each[1]).sum(), (y - each[0]).sum(), rtol=1e-12)
        np.testing.assert_allclose((by_w * each[2]).sum(), (y - each[0]).sum(), rtol=1e-12)
    assert made[3:] == [others] * 3
    rules.close(convolve)
    assert rules.workspace(convolve) == rules.Workspace(0, 0)


def test_nothing_is_allocated_from_the_second_call_on():
    """In a process of its own: the count depends on what was compiled in it before."""
    code = "from tests.nn.test_convolution_workspace import check; check()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
