"""Which lengths of a call count where a derivative is compiled for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit, typeof

from irad.frontend.numba.lengths import observed_lengths, observing
from irad.frontend.values.abi import arguments_of


class Cloud(NamedTuple):
    points: Any
    weights: Any


@njit
def function(x, w, *rest):
    return x, w, rest


@njit
def other(x, w, *rest):
    return x, w, rest


POINTS, WEIGHTS = np.ones((300, 3)), np.ones(300)


def lengths(x: Any, w: Any, rest: tuple[Any, ...] = (), *, seen: Any = function, asked: Any = function) -> list[Any]:
    """The names of LLVM parameters, as numbers of arguments and axes, and the lengths."""
    kinds = typeof(x), typeof(w), typeof(rest)
    with observing((seen,), {"x": x, "w": w, "rest": rest}):
        found = observed_lengths(asked, kinds)
    leaves = [(a.position, leaf) for a in arguments_of(asked.py_func, kinds) for leaf in a.leaves]
    names = {leaf.index + 5 + axis: (p, axis) for p, leaf in leaves if leaf.is_array for axis in range(leaf.type.ndim)}
    assert observed_lengths(asked, kinds) == {}, "of a call that is over"
    return sorted((names[index], length) for index, length in found.items())


def test_arrays():
    assert lengths(POINTS, WEIGHTS) == [((0, 1), 3)]
    assert lengths(POINTS.T, WEIGHTS[:8]) == [((0, 0), 3), ((1, 0), 8)]
    assert lengths(np.ones((32, 9)), np.ones((300, 0))) == [], "too long, and nothing to run along"


def test_parts_of_tuples_and_of_a_star():
    assert lengths((1.0, POINTS), Cloud(POINTS[:, :2], WEIGHTS)) == [((0, 1), 3), ((1, 1), 2)]
    assert lengths(1.0, WEIGHTS, (POINTS, np.ones(4))) == [((2, 1), 3), ((3, 0), 4)]


def test_numbers_that_are_counts():
    assert lengths(np.ones(3), 1000) == [((0, 0), 3)]
    assert lengths(np.ones(3), 255) == []
    assert lengths(np.ones(3), 1000.0) == []


def test_small_calls_may_be_tries():
    assert lengths(POINTS[:85], WEIGHTS[:85]) == []
    assert lengths(POINTS[:86], WEIGHTS[:85]) == [((0, 1), 3)]


def test_calls_of_other_functions():
    assert lengths(POINTS, WEIGHTS, seen=other) == []


@pytest.mark.parametrize("value", [None, [1.0, 2.0], "text", np.float64(3.0)])
def test_other_values(value: Any):
    assert lengths(POINTS, value) == [((0, 1), 3)]
