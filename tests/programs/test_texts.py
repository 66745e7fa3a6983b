"""Texts in functions that are differentiated: messages of errors, mostly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad


def first(x: Any, table: Any) -> Any:
    if table.ndim != 3 or table.size > 5:
        raise ValueError(f"a table of shape {table.shape} is too large")
    return x * x * table.size


def second(x: Any, table: Any) -> Any:
    return x * len(f"{table.shape}") + x * x * len(str(table.size))


@pytest.mark.parametrize("runs_before", [False, True])
def test_tuples_in_texts(runs_before: bool) -> None:
    """Numba's own compilation leaves something for the second one to find, or not."""
    table, length = np.ones((1, 2, 2)), len("<object type:UniTuple(int64 x 3)>")  # Numba's text of a tuple
    checked, lengths = njit(first), njit(second)
    if runs_before:
        assert checked(3.0, table) == 36.0
        assert lengths(3.0, table) == 3 * length + 9
    assert irad.grad(checked)(3.0, table) == 24.0
    assert irad.grad(lengths)(3.0, table) == length + 6
    assert checked(3.0, table) == 36.0
    assert lengths(3.0, table) == 3 * length + 9
    with pytest.raises(ValueError, match=r"a table of shape .* is too large"):
        irad.grad(checked)(3.0, np.ones((1, 2, 3)))
