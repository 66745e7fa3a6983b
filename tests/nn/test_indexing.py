"""gather and scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check, check_single, gradient_of, product_of

_INDICES = np.array([2, 0, 2, 2, 4])  # 1 and 3 are chosen by none
_AT = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "max": np.maximum, "min": np.minimum}


def _reference(op: str, dst: Any, src: Any, idx: Any) -> Any:
    out = dst.copy()
    if op == "mean":
        counts = np.zeros_like(dst)
        np.add.at(counts, idx, 1.0)
        np.add.at(out, idx, src / counts[idx])
    else:
        _AT[op].at(out, idx, src)
    return out


def _arrays() -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    return random.standard_normal((5, 2)), random.standard_normal((5, 2))


def test_gather():
    src = np.random.default_rng(1).standard_normal((5, 2, 2))
    check(nn.gather, src, np.array([[4, 0, 0], [1, 4, 4]]), reference=lambda src, idx: src[idx])
    assert nn.gather(src, np.empty(0, np.int64)).shape == (0, 2, 2)


_PAIRS = np.array([[2, 0, 2], [2, 1, 2]]), np.array([[3, 0, 3], [3, 1, 0]], np.uint8)  # (2, 3) occurs three times


def test_gather_along_two_axes():
    src = np.random.default_rng(1).standard_normal((3, 4, 2))
    check(nn.gather, src, _PAIRS, reference=lambda src, idx: src[idx], second=False, forward=False)
    strided = tuple(each[:, ::2] for each in _PAIRS)
    np.testing.assert_array_equal(nn.gather(src, strided), src[strided])
    np.testing.assert_array_equal(nn.gather(src, (_INDICES[:2],)), src[_INDICES[:2]])
    assert nn.gather(src, tuple(each[:0] for each in _PAIRS)).shape == (0, 3, 2)
    every = np.array([0, 1]), np.array([1, 1]), np.array([1, 0])
    np.testing.assert_array_equal(nn.gather(src, every), src[every])


def test_scatter_along_two_axes():
    random = np.random.default_rng(2)
    dst, src = random.standard_normal((3, 4, 2)), random.standard_normal((2, 3, 2))
    for op in (*_AT, "mean"):
        check(nn.scatter, op, dst, src, _PAIRS, active=(1, 2), reference=_reference, second=False, forward=False)


def test_new_rows_with_elements_of_choice():
    src = np.random.default_rng(3).standard_normal((2, 3, 2))

    @njit
    def rows(op, src, idx, init):
        return nn.scatter(op, (3, 4), src, idx, init)

    for op in (*_AT, "mean"):
        wanted = _reference(op, np.full((3, 4, 2), 0.5), src, _PAIRS)
        np.testing.assert_allclose(rows(op, src, _PAIRS, 0.5), wanted, rtol=1e-14)
    slope = irad.grad(lambda op, src, idx, init: rows(op, src, idx, init).sum(), argnums=3)
    assert slope("+", src, _PAIRS, 0.5) == 24.0
    assert slope("max", src, _PAIRS, 9.0) == 24.0


@pytest.mark.parametrize("ops", [("+", "-", "mean"), ("*", "/", "max", "min")])
def test_scatter_in_every_mode(ops: tuple[str, ...]):
    dst, src = _arrays()
    for op in ops:
        check(nn.scatter, op, dst, src, _INDICES, active=(1, 2), reference=_reference)


def test_scatter_into_new_rows():
    _, src = _arrays()
    for op, neutral in {"+": 0.0, "-": 0.0, "mean": 0.0, "*": 1.0, "/": 1.0, "max": -np.inf, "min": np.inf}.items():
        wanted = _reference(op, np.full((6, 2), neutral), src, _INDICES)
        np.testing.assert_allclose(nn.scatter(op, 6, src, _INDICES), wanted, rtol=1e-14)


def test_zeros_in_products_and_ties():
    dst, src = np.array([[2.0], [1.0]]), np.array([[0.0], [3.0], [0.0], [0.0], [5.0]])
    idx, ones = np.array([0, 0, 1, 1, 1]), np.ones((2, 1))
    gradient, product = gradient_of(nn.scatter, 4, (1, 2)), product_of(nn.scatter, 4, (1, 2))
    by_dst, by_src = gradient(ones, "*", dst, src, idx)[1]  # of the sum of y² + y, where y is zero
    assert by_dst.ravel().tolist() == [0.0, 0.0]
    assert by_src.ravel().tolist() == [6.0, 0.0, 0.0, 0.0, 0.0]
    direction = np.zeros((2, 1)), np.array([[0.0], [0.0], [1.0], [0.0], [0.0]])
    _, by_src = product(ones, "*", dst, src, direction, idx)
    assert by_src.ravel().tolist() == [0.0, 0.0, 0.0, 5.0, 0.0]  # the derivative with respect to both zeros
    by_dst, by_src = gradient(ones, "max", np.array([[3.0], [9.0]]), src, idx)[1]  # y is 3 and 9
    assert by_dst.ravel().tolist() == [7 * 0.5, 19.0]
    assert by_src.ravel().tolist() == [0.0, 7 * 0.5, 0.0, 0.0, 0.0]


def test_single_precision():
    dst, src = _arrays()
    check_single(nn.scatter, "max", dst, src, _INDICES, active=(1, 2))
    check_single(nn.scatter, "mean", dst, src, _INDICES, active=(1, 2))


def test_indices_that_change_later():
    @njit
    def loss(src, idx):
        y = nn.gather(src, idx)
        z = nn.scatter("*", 5, y, idx)
        idx[:] = 0
        return (z * z).sum()

    src = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(irad.grad(loss)(src, np.array([1, 1, 3])), [0.0, 4 * 2.0**3, 0.0, 2 * 4.0, 0.0])


def _into_new_rows(src: Any, idx: Any) -> Any:
    return nn.scatter("+", 5, src, idx).sum()


@pytest.mark.parametrize(("index", "shown"), [(5, "5"), (-1, "-1")])
def test_an_index_out_of_range_is_named(index: int, shown: str):
    message = f"index {shown} at position 1 is out of range for 5 rows"
    idx = np.array([0, index])
    with pytest.raises(IndexError, match=message):
        nn.gather(np.ones(5), idx)
    with pytest.raises(IndexError, match=message):
        irad.grad(_into_new_rows)(np.ones(2), idx)


def test_what_is_refused():
    with pytest.raises(ValueError, match="none of"):
        nn.scatter("^", 5, np.ones(2), np.array([0, 1]))
    with pytest.raises(ValueError, match="2 rows of 1 with 3 indices"):
        nn.scatter("+", 5, np.ones(2), np.array([0, 1, 2]))
    ones, indices = np.ones((3, 4, 2)), np.zeros((3, 2), np.int64)
    with pytest.raises(ValueError, match="axis 0 of the source has size 2, that of the indices 3"):
        nn.scatter("+", ones, np.ones((2, 3, 2)), (indices, indices))
    with pytest.raises(ValueError, match=r"arrays of indices of the shapes \(3, 2\) and \(2, 3\)"):
        nn.gather(ones, (indices, indices.reshape(2, 3)))
    with pytest.raises(IndexError, match="index 4 at position 1 is out of range for 4 rows along axis 1"):
        nn.gather(ones, (indices, np.array([[0, 4], [0, 0], [0, 0]])))
    with pytest.raises(irad.SignatureError, match="initial rows and init="):
        nn.scatter("+", ones, ones, indices[0], 1.0)
    with pytest.raises(irad.SignatureError, match="a source with 1 axes"):
        nn.scatter("+", 5, np.ones(2), indices)
    with pytest.raises(irad.SignatureError, match="indices with 1 along 2 axes, and int64 as destination"):
        nn.scatter("+", 5, np.ones(2), (indices[0], indices[0]))
    with pytest.raises(irad.SignatureError, match="indices along 2 axes of an array with 1"):
        nn.gather(ones[0, 0], (indices[0], indices[0]))
    with pytest.raises(irad.SignatureError, match=r"2 arrays of indices with \[2, 1\] axes"):
        nn.gather(ones, (indices, indices[0]))
