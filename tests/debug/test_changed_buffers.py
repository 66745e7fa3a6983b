"""Arrays that change between `irad.vjp` and the pullback."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
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


def test_arguments_that_overlap_are_left_as_they_are(halves):
    @njit
    def f(x, y, copies):
        return halves(x, copies) + y.sum()

    x = np.arange(6.0)
    _, pullback = irad.vjp(f, x, x[2:], True, options=DEBUG)
    x += 10.0
    with pytest.warns(irad.ChangedBufferWarning, match="the argument x and the argument y were changed"):
        found = pullback(1.0)
    assert np.array_equal(found[0], 2.0 * np.arange(6.0))
    assert np.array_equal(x, 10.0 + np.arange(6.0))


def test_a_view_that_is_read_only_is_put_back_too(halves):
    @njit
    def f(x, copies):
        return halves(x, copies)

    x = np.arange(1.0, 4.0)
    view = x[:]
    view.flags.writeable = False
    _, pullback = irad.vjp(f, view, False, options=DEBUG)
    x += 1.0
    with pytest.raises(irad.ChangedBufferError):
        pullback(1.0)
    assert np.array_equal(x, np.arange(2.0, 5.0))


def test_a_cotangent_in_the_memory_that_has_changed(halves):
    @njit
    def f(x, copies):
        return x * halves(x, copies)

    x = np.arange(1.0, 4.0)
    _, pullback = irad.vjp(f, x, True, options=DEBUG)
    x *= 2.0
    with pytest.warns(irad.ChangedBufferWarning, match="the argument x was changed"):
        found = pullback(x)
    assert np.allclose(found[0], [84.0, 168.0, 252.0])  # c Σx² + 2x (c·x), at the old x and c = 2x


@jitclass([("weights", float64[:]), ("bias", float64)])
class Layer:
    def __init__(self, weights, bias):
        self.weights, self.bias = weights, bias


def test_records_and_the_numbers_of_lists_and_instances():
    @njit
    def f(record, numbers, rows, layer):
        return record.a * numbers[0] * rows[0].sum() * layer.bias

    records = np.array([(2.0, 1)], np.dtype([("a", np.float64), ("b", np.int64)], align=True))
    numbers, rows, layer = List([1.0, 2.0]), List([np.ones(2), np.ones(2)]), Layer(np.ones(2), 3.0)
    record = records[0]
    _, pullback = irad.vjp(f, record, numbers, rows, layer, options=DEBUG)

    def changed():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            pullback(1.0)
        return [str(each.message).partition(" changed between")[0] for each in caught]

    assert changed() == []
    numbers[1], layer.bias = 3.0, 4.0
    assert changed() == ["the argument numbers[1] and the argument layer.bias were"]
    numbers[1], layer.bias = 2.0, 3.0
    record["a"] = 5.0
    assert changed() == ["the argument record['a'] was"]
    record["a"] = 2.0
    rows[1] = np.ones(2)
    assert changed() == ["the argument rows[1] was"]
