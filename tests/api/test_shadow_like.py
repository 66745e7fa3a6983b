"""`irad.shadow_like`: a shadow for any array."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import irad

BASE = np.arange(24.0)
RECORDS = np.zeros(4, [("a", np.float64), ("n", np.int32), ("b", np.float32)])

ARRAYS = {
    "whole": BASE,
    "slice": BASE[3:17:4],
    "reversed": BASE[::-2],
    "column": BASE.reshape(6, 4)[:, 2],
    "block": BASE.reshape(6, 4)[1:5, 1:3],
    "transposed": BASE.reshape(2, 3, 4).transpose(1, 2, 0)[::-1, :, ::-1],
    "Fortran": np.asfortranarray(BASE.reshape(6, 4)),
    "part of Fortran": np.asfortranarray(BASE.reshape(6, 4))[1:4, ::-1],
    "broadcast": np.broadcast_to(BASE[:4], (3, 4)),
    "windows": sliding_window_view(BASE[:6], 3),
    "own windows": as_strided(BASE.copy(), (4, 3), (8, 8)),
    "no dimensions": np.array(3.0),
    "one element": BASE[5:6][::-3],
    "empty": BASE[:0:-2].reshape(-1, 1)[:0],
    "single precision": BASE.astype(np.float32)[::3],
    "complex": (BASE + 1j)[::-3],
    "real part": (BASE + 1j).real,
    "records": RECORDS[::2],
    "field": RECORDS["b"],
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_it_lies_as_the_array_does(array: Any) -> None:
    shadow = irad.shadow_like(array)
    assert (shadow.dtype, shadow.shape) == (array.dtype, array.shape)
    longer = [axis for axis in range(array.ndim) if array.shape[axis] > 1 and array.size]
    assert [shadow.strides[axis] for axis in longer] == [array.strides[axis] for axis in longer]
    assert not np.shares_memory(shadow, array)
    assert shadow.flags.writeable
    assert shadow.tobytes() == bytes(shadow.nbytes)
    if array.size:
        low, high = np.lib.array_utils.byte_bounds(array)
        own = np.lib.array_utils.byte_bounds(shadow)
        assert own[1] - own[0] == high - low
        assert array.__array_interface__["data"][0] - low == shadow.__array_interface__["data"][0] - own[0]


@njit
def energy(x):
    total = 0.0
    for value in x.flat:
        total += value * value * value
    return total


@pytest.mark.parametrize(
    "name", ["whole", "slice", "reversed", "column", "block", "transposed", "Fortran", "part of Fortran", "field"]
)
def test_it_is_accepted_as_a_shadow(name: str) -> None:
    array = ARRAYS[name].astype(ARRAYS[name].dtype, copy=False)
    shadow = irad.shadow_like(array)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(array, shadow))
    np.testing.assert_allclose(shadow, 3 * array**2, rtol=1e-6)


def test_elements_in_one_place_add_up() -> None:
    array = ARRAYS["own windows"]
    shadow = irad.shadow_like(array)
    irad.autodiff(irad.Reverse, energy, irad.Duplicated(array, shadow))
    times = as_strided(np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0]), (4, 3), (8, 8))
    np.testing.assert_allclose(shadow, 3 * array**2 * times)


@pytest.mark.parametrize("wrong", [3.0, [1.0, 2.0], RECORDS[0]])
def test_what_is_no_array_is_refused(wrong: Any) -> None:
    with pytest.raises(irad.SignatureError, match="takes a NumPy array, not a"):
        irad.shadow_like(wrong)
