"""batched_mul."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="matrices with 3 columns times matrices with 2 rows"):
        nn.batched_mul(np.ones((1, 2, 3)), np.ones((1, 2, 3)))
    with pytest.raises(ValueError, match="2 matrices times 3 matrices"):
        nn.batched_mul(np.ones((2, 2, 2)), np.ones((3, 2, 2)))
    assert nn.batched_mul(np.ones((0, 2, 3)), np.ones((1, 3, 2))).shape == (0, 2, 2)
