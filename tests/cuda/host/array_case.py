"""What a tape makes of functions of NumPy, against differences of the same function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

import irad
import irad.cuda


def check(f: Callable[..., Any], *arrays: Any, tolerance: float = 1e-7, records: int | None = None) -> None:
    """Compares the gradient of a function on a tape with central differences, in a random direction of its results.

    Args:
        f: a function of arrays, which gives one array.
        arrays: of floats or complex numbers; each has a derivative.
        tolerance: relative to the largest difference.
        records: how many operations are recorded.
    """
    wanted = np.asarray(f(*(each.copy() for each in arrays)))
    cotangent = _random(wanted)
    with irad.cuda.executor():
        given = [cuda.to_device(each) for each in arrays]
        with irad.cuda.Tape() as tape:
            result = f(*given)
        np.testing.assert_allclose(result, wanted, rtol=1e-12)
        assert result.dtype == wanted.dtype
        after = [np.array(each) for each in given]
        assert records is None or len(tape) == records
        tape.backward((result, np.asarray(cotangent, order="K")))
        for position, each in enumerate(given):
            expected = difference(f, arrays, position, cotangent)
            scale = max(np.max(np.abs(expected), initial=0.0), 1.0)
            np.testing.assert_allclose(tape.gradient(each), expected, rtol=0.0, atol=tolerance * scale)
            assert tape.gradient(each).dtype == each.dtype
        for each, before in zip(given, after, strict=True):
            np.testing.assert_array_equal(each, before)


def difference(f: Callable[..., Any], arrays: Any, position: int, cotangent: Any, step: float = 1e-6) -> Any:
    """The derivative with respect to each element of an array, and for complex numbers to each of their parts."""
    found = np.zeros(arrays[position].shape, arrays[position].dtype)
    for place in np.ndindex(found.shape):
        for unit in (1.0, 1j) if found.dtype.kind == "c" else (1.0,):
            ends = []
            for sign in (1.0, -1.0):
                moved = [each.copy() for each in arrays]
                moved[position][place] += sign * step * unit
                ends.append(np.asarray(f(*moved)))
            found[place] += unit * np.sum((np.conj(cotangent) * (ends[0] - ends[1])).real) / (2.0 * step)
    return found


def _random(like: Any) -> Any:
    rng = np.random.default_rng(7)
    found = rng.normal(size=like.shape).astype(like.dtype)
    return found + 1j * rng.normal(size=like.shape) if like.dtype.kind == "c" else found
