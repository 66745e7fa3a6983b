"""Choices between equal active values: one warning for each place."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numba import njit, prange

import irad
from irad.debug import events
from tests.debug.lines import DEBUG, line_of


def ties_of(derivative, *args):
    """The warnings of one call: lines and texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        derivative(*args)
    return [(each.lineno, str(each.message)) for each in caught if each.category is irad.TieWarning]


@njit
def branches(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 1.5:  # branch
                total += x[i, j] ** 2
            else:
                total -= x[i, j]
    return total


def test_a_branch():
    x = np.array([[1.0, 2.0, 3.0], [0.5, 1.5, 1.5]])
    gradient = irad.grad(branches, options=DEBUG)
    [(line, text)] = ties_of(gradient, x)
    assert line == line_of(branches, "# branch")
    assert "equal numbers decided a branch: 1.5 > 1.5" in text
    assert f"iteration 1 of the loop at line {line - 2}" in text
    assert f"iteration 1 of the loop at line {line - 1}" in text
    assert ties_of(gradient, x) == []  # once for each place
    assert np.array_equal(gradient(x), irad.grad(branches)(x))


def test_no_tie_no_warning():
    assert ties_of(irad.grad(branches, options=DEBUG), np.array([[1.0, 2.0]])) == []


@njit
def kinks(x, y):
    a = abs(x - 2.0)  # abs
    b = max(y, x)  # max
    c = np.minimum(x, 2.0)  # minimum
    return a + b + c


def test_kinks():
    found = dict(ties_of(irad.grad(kinks, (0, 1), options=DEBUG), 2.0, 2.0))
    assert set(found) == {line_of(kinks, f"# {name}") for name in ("abs", "max", "minimum")}
    assert "abs(0.0)" in found[line_of(kinks, "# abs")]


@njit
def of_constants(x, k):
    return x * 2.0 if k == 3.0 else x


def test_choices_that_do_not_depend_on_active_values():
    assert ties_of(irad.grad(of_constants, options=DEBUG), 1.0, 3.0) == []


@njit
def not_a_number(x):
    return x if np.isnan(x) else 2.0 * x


def test_a_test_for_nan_is_no_tie():
    assert ties_of(irad.grad(not_a_number, options=DEBUG), 1.0) == []


@njit
def sorting(x):
    return (np.sort(x) * np.arange(x.size)).sum()


def test_sorting():
    assert ties_of(irad.grad(sorting, options=DEBUG), np.array([3.0, 1.0, 2.0, 5.0])) == []
    [(line, _), *_] = ties_of(irad.grad(sorting, options=DEBUG), np.array([3.0, 1.0, 2.0, 1.0]))
    assert line == line_of(sorting, "np.sort")


@njit
def largest(x):
    return np.max(x) * 2.0


def test_a_maximum():
    assert ties_of(irad.grad(largest, options=DEBUG), np.array([3.0, 1.0, 2.0])) == []
    assert len(ties_of(irad.grad(largest, options=DEBUG), np.array([3.0, 1.0, 3.0]))) == 1


@njit(parallel=True)
def rectified(x):
    total = 0.0
    for i in prange(x.size):
        if x[i] > 0.0:
            total += x[i]
    return total


def test_parallel_loops():
    x = np.ones(50)
    x[33] = 0.0
    [(line, text)] = ties_of(irad.grad(rectified, options=DEBUG), x)
    assert line == line_of(rectified, "if x[i]")
    assert "index 33 of the parallel loop" in text


@njit
def single(x):
    return abs(x)


def test_as_an_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error", irad.TieWarning)
        with pytest.raises(irad.TieWarning, match=r"abs\(0.0\)"):
            irad.grad(single, options=DEBUG)(np.float32(0.0))


@njit
def masked(x):
    positive = x > 0.0  # mask
    return np.where(positive, 2.0 * x, -3.0 * x).sum()


@njit
def only_compared(x, y):
    return x * x if x - y > 0.0 else y  # difference


@njit
def counted(x):
    return x.sum() * (x > 0.0).sum()


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_what_decides(plan):
    options = irad.Options(debug=True, plan=plan)
    x = np.array([1.0, 0.0, -1.0])
    for function, args, mark in ((masked, (x,), "# mask"), (only_compared, (2.0, 2.0), "# difference")):
        for known in events._by_symbol.values():  # equal places are warned of once, whatever the plan
            known.warned.clear()
        [(line, _)] = ties_of(irad.grad(function, tuple(range(len(args))), options=options), *args)
        assert line == line_of(function, mark)
    assert ties_of(irad.grad(counted, options=options), x) == []
    assert ties_of(irad.grad(of_constants, 0, options=options), 2.0, 3.0) == []
