from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import typeof

from irad.data.copies import copied, same_bits
from irad.data.floats import has_floats, read_floats, with_floats

Pair = namedtuple("Pair", ["a", "b"])
RECORD = np.dtype([("n", np.int32), ("x", np.float32), ("v", np.float64, (2,)), ("in", [("y", np.float64)])])

MATRIX = np.arange(12.0).reshape(3, 4)
LAYOUTS = [
    MATRIX,
    np.asfortranarray(MATRIX),
    MATRIX[::2, ::-1],
    MATRIX.T,
    MATRIX[1:, 2],
    np.array(2.5),
    np.empty((0, 3)),
    np.broadcast_to(MATRIX[0], (3, 4)),
    MATRIX.astype(np.float32)[::-1],
]


def record(count: int) -> np.ndarray:
    records = np.zeros(count, RECORD)
    records["n"], records["x"], records["v"] = 7, 1.5, [2.0, 3.0]
    records["in"]["y"] = 4.0
    return records


def test_leaves_are_in_reading_order():
    value = (1.5, 2, np.array([[3.0, 4.0]]), Pair(np.float32(5), True), None, "text", np.arange(3))
    assert read_floats(value).tolist() == [1.5, 3.0, 4.0, 5.0]
    assert read_floats(record(2)).tolist() == [1.5, 1.5, 2.0, 3.0, 2.0, 3.0, 4.0, 4.0]
    assert read_floats(record(1)[0]).tolist() == [1.5, 2.0, 3.0, 4.0]
    assert read_floats(3).size == 0


@pytest.mark.parametrize("value", [1.5, np.float32(1), np.zeros(0), np.zeros(2, np.float32), (1, (2.0,)), record(1)])
def test_has_floats(value: object):
    assert has_floats(value)


@pytest.mark.parametrize("value", [1, True, None, "x", np.arange(2), (1, np.ones(2, np.bool_)), print])
def test_has_no_floats(value: object):
    assert not has_floats(value)


@pytest.mark.parametrize("array", LAYOUTS)
def test_other_leaves_in_the_same_layout(array: np.ndarray):
    leaves = np.linspace(1, 2, array.size)
    result = with_floats(array, leaves)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, leaves.reshape(array.shape))
    if array.dtype == np.float64:
        assert typeof(result) == typeof(array)
    assert not np.shares_memory(result, array)


def test_other_leaves_in_structures():
    value = Pair((np.float32(1), 3, np.array([2.0])), record(1)[0])
    result = with_floats(value, np.array([10.0, 20.0, 30.0, 40.0, 50.0, 60.0]))
    assert isinstance(result, Pair)
    assert result.a[:2] == (10.0, 3)
    assert result.a[2].tolist() == [20.0]
    assert (result.b["n"], result.b["x"], result.b["v"].tolist(), result.b["in"]["y"]) == (7, 30.0, [40.0, 50.0], 60.0)
    assert result.b.dtype["x"] == np.float64


def test_too_many_leaves_are_seen():
    with pytest.raises(AssertionError):
        with_floats((1.0,), np.zeros(2))


@pytest.mark.parametrize("array", LAYOUTS)
def test_copies_have_the_same_strides(array: np.ndarray):
    (copy,) = copied((array,))
    assert same_bits(copy, array)
    assert typeof(copy) == typeof(array)
    assert not np.shares_memory(copy, array)
    if array.size:
        assert copy.strides == array.strides
        assert (copy.ctypes.data - array.ctypes.data) % 64 == 0


def test_copies_alias_as_the_originals():
    x = np.arange(6.0)
    a, (b, c), d, other = copied((x, (x, x[2:]), x[::-2], np.zeros(2)))
    a[3] = 50.0
    assert b[3] == c[1] == d[1] == 50.0
    assert x[3] == 3.0
    assert not np.shares_memory(a, other)


def test_same_bits():
    assert same_bits(np.nan, np.nan)
    assert same_bits((1.0, np.array([np.nan])), (1.0, np.array([np.nan])))
    assert not same_bits(0.0, -0.0)
    assert not same_bits(np.float32(1), 1.0)
    assert not same_bits((1.0,), (1.0, 2.0))
    assert not same_bits(np.zeros(2), np.zeros((1, 2)))
    assert same_bits(print, print)
    assert same_bits(3, 3)
    assert not same_bits(3, 4)
