"""Arrays that change between `irad.vjp` and the pullback."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numba import njit
from numba.typed import List

import irad
from irad import rules
from irad.rules import AugmentedReturn
from tests.debug.lines import DEBUG


@njit
def energy(x, scale):
    return (np.sin(x) * x).sum() * scale


def test_an_unchanged_argument():
    x = np.arange(1.0, 4.0)
    _, pullback = irad.vjp(energy, x, 2.0, options=DEBUG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = pullback(1.0)
    expected = irad.vjp(energy, x, 2.0)[1](1.0)
    assert np.array_equal(found[0], expected[0])


def test_a_changed_argument_is_named():
    x = np.arange(1.0, 4.0)
    expected = irad.vjp(energy, x, 2.0)[1](1.0)
    _, pullback = irad.vjp(energy, x, 2.0, options=DEBUG)
    x[1] = 7.0
    with pytest.warns(irad.ChangedBufferWarning, match="the argument x was changed") as caught:
        found = pullback(1.0)
    assert caught[0].filename == __file__
    assert np.array_equal(found[0], expected[0])


def test_arrays_in_tuples_and_lists():
    @njit
    def f(pair, items):
        return (pair[0] * pair[1]).sum() + (items[0] * items[1]).sum()

    pair, items = (np.ones(2), np.full(2, 3.0)), List([np.ones(2), np.full(2, 3.0)])
    _, pullback = irad.vjp(f, pair, items, options=DEBUG)
    pair[1][0] = 0.0
    items[0][1] = -1.0
    with pytest.warns(irad.ChangedBufferWarning, match=r"the argument pair\[1\] and the argument items\[0\]"):
        pullback(1.0)


@pytest.fixture
def halves():
    """A function with a rule whose tape is an argument or a copy, as the caller says."""

    @njit
    def square(x, copies):
        return (x * x).sum()

    @rules.augmented_primal(square)
    def augmented(config, x, copies):
        tape = x.value.copy() if copies.value else x.value
        return AugmentedReturn((x.value * x.value).sum(), None, tape)

    @rules.reverse(square)
    def reverse(config, cotangent, tape, x, copies):
        x.shadow[:] += 2.0 * cotangent * tape
        return None, None

    yield square
    rules.remove(square)


def test_a_rule_that_reads_the_argument_again(halves):
    @njit
    def f(x, copies):
        return halves(x, copies)

    x = np.arange(1.0, 4.0)
    for copies in (True, False):
        _, pullback = irad.vjp(f, x, copies, options=DEBUG)
        assert np.array_equal(pullback(1.0)[0], 2.0 * x)
        x += 1.0
        if copies:
            with pytest.warns(irad.ChangedBufferWarning, match="the argument x"):
                found = pullback(1.0)
            assert np.array_equal(found[0], 2.0 * (x - 1.0))
        else:
            with pytest.raises(irad.ChangedBufferError, match="the argument x was changed") as caught:
                pullback(1.0)
            assert caught.value.location.file == __file__
    assert np.array_equal(x, np.arange(3.0, 6.0))  # nobody's memory was left otherwise
