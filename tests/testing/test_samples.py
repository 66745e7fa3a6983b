"""Arguments made up from types have these types, and floats in the domain of most functions."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import from_dtype, typeof, types

from irad.data.floats import read_floats
from irad.errors import SignatureError
from irad.testing.samples import samples

Pair = namedtuple("Pair", "x y")
RECORD = from_dtype(np.dtype([("a", np.float64), ("n", np.int32)]))


@pytest.mark.parametrize(
    "kind",
    [
        types.float64,
        types.float32,
        types.complex128,
        types.complex64,
        types.int64,
        types.boolean,
        types.float64[::1],
        types.float32[:, ::1],
        types.complex128[::1, :],
        types.float64[:, :],
        types.int64[::1],
        types.Array(types.float64, 1, "C", readonly=True),
        types.Tuple((types.float64, types.float64[::1])),
        types.UniTuple(types.float64, 3),
        types.NamedTuple((types.float64, types.int64), Pair),
        types.ListType(types.float64),
        types.List(types.float64, reflected=True),
        types.Array(RECORD, 1, "C"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*reflected list.*")
def test_samples_have_their_type(kind: Any):
    [value] = samples((kind,), seed=0)
    assert typeof(value) == kind
    leaves = read_floats(value)
    assert np.all((leaves >= 0.5) & (leaves <= 2.0))


def test_integers_are_indices():
    [index, several] = samples((types.int64, types.int64[::1]), seed=0)
    [array] = samples((types.float64[::1],), seed=0)
    assert 0 <= index < array.size
    assert np.all((several >= 0) & (several < array.size))


def test_seeds():
    kinds = (types.float64[::1],)
    assert np.array_equal(samples(kinds, 1)[0], samples(kinds, 1)[0])
    assert not np.array_equal(samples(kinds, 1)[0], samples(kinds, 2)[0])


def test_values_stand():
    assert samples((3.0, types.Omitted(7)), 0) == (3.0, 7)


def test_what_cannot_be_made_up_is_refused():
    with pytest.raises(SignatureError, match="irad cannot generate a value for an argument of type unicode_type"):
        samples((types.unicode_type,), 0)
