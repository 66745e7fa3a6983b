"""batched_mul."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from irad import nn
from tests.nn.checks import check, check_single


def _reference(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    return (a.transpose(0, 2, 1) if transpose_a else a) @ (b.transpose(0, 2, 1) if transpose_b else b)


def _factors(batch_a: int, batch_b: int, transpose_a: bool, transpose_b: bool) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    a = random.standard_normal((batch_a, *((3, 2) if transpose_a else (2, 3))))
    b = random.standard_normal((batch_b, *((4, 3) if transpose_b else (3, 4))))
    return a, b


def test_every_batch_and_transposition_in_every_mode():
    for batch_a, batch_b in ((3, 3), (3, 1), (1, 3)):
        for transpose_a in (False, True):
            for transpose_b in (False, True):
                a, b = _factors(batch_a, batch_b, transpose_a, transpose_b)
                check(nn.batched_mul, a, b, transpose_a, transpose_b, active=(0, 1), reference=_reference)


@pytest.mark.parametrize("active", [(0,), (1,)])
def test_one_factor_is_constant(active: tuple[int, ...]):
    check(nn.batched_mul, *_factors(2, 2, False, True), False, True, active=active, second=False, forward=False)


def test_single_precision_and_strided_factors():
    check_single(nn.batched_mul, *_factors(2, 2, False, False), active=(0, 1))
    a, b = _factors(2, 2, False, False)
    np.testing.assert_allclose(nn.batched_mul(a[::-1], b[:, :, ::2]), a[::-1] @ b[:, :, ::2], rtol=1e-13)


def test_vectors():
    a, b = _factors(2, 2, False, False)
    for transpose, vectors in ((False, b[:, :, 0]), (True, a[:, :, 0]), (False, b[:1, :, 1])):

        def reference(a: Any, b: Any, transpose: bool) -> Any:
            return np.einsum("bij,bi->bj" if transpose else "bij,bj->bi", a, np.broadcast_to(b, (2, b.shape[1])))

        check(nn.batched_vec, a, vectors, transpose, active=(0, 1), reference=reference, second=False, forward=False)
    np.testing.assert_allclose(nn.batched_vec(a, b[0, :, 0]), a @ b[0, :, 0], rtol=1e-14)
    with pytest.raises(ValueError, match="matrices with 3 columns times matrices with 2 rows"):
        nn.batched_vec(np.ones((1, 2, 3)), np.ones((1, 2)), False)


@njit
def _pairs(a, b, transpose_a, transpose_b):
    """The product of complex matrices of which ``a`` and ``b`` have the real parts, then the imaginary ones."""
    y = nn.batched_mul(a[0] + 1j * a[1], b[0] + 1j * b[1], transpose_a, transpose_b)
    out = np.empty((2, y.size))
    for i, each in enumerate(y.ravel()):
        out[0, i], out[1, i] = each.real, each.imag
    return out


def test_complex_matrices():
    random = np.random.default_rng(4)

    def reference(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
        y = _reference(a[0] + 1j * a[1], b[0] + 1j * b[1], transpose_a, transpose_b).ravel()
        return np.array([y.real, y.imag])

    for flags in ((False, False), (True, False), (False, True), (True, True)):
        a, b = (np.array([each, random.standard_normal(each.shape)]) for each in _factors(3, 1, *flags))
        check(_pairs, a, b, *flags, active=(0, 1), reference=reference, second=False)
    a, b = np.complex64(a[0] + 1j * a[1]), np.float32(b[0])
    found = nn.batched_mul(a, b, True, True)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found, _reference(a, b, True, True), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="matrices with 3 columns times matrices with 4 rows"):
        nn.batched_mul(a, b, True, False)


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="matrices with 3 columns times matrices with 2 rows"):
        nn.batched_mul(np.ones((1, 2, 3)), np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="2 matrices times 3 matrices"):
        nn.batched_mul(np.ones((2, 2, 2)), np.ones((3, 2, 2)))
    assert nn.batched_mul(np.ones((0, 2, 3)), np.ones((1, 3, 2))).shape == (0, 2, 2)


@njit
def _square(x):
    return nn.batched_mul(x, x, False, True)


def test_a_matrix_may_be_both_factors():
    x = _factors(2, 2, False, False)[0]
    check(_square, x, reference=lambda x: x @ x.transpose(0, 2, 1), second=False, forward=False)
