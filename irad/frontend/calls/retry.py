"""Repetition of a call with strong zeros, where a speculative derivative found NaN.

See `irad.passes.analysis.speculation`. Compiled code says so by an exception (`nan_checks`), which the
dispatcher catches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from irad.data.structure import pieces
from irad.errors import NonFiniteError


class FoundNaN(Exception):
    """A result of a speculative derivative is NaN."""


def zero_that_won(
    shows_zeros: Callable[[bool], Callable[..., Any]],
    found: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    into: bool,
) -> NonFiniteError | None:
    """Report of a derivative on a zero that may have to be another number; None if there is none.

    Args:
        shows_zeros: makes the derivative with `Task.shows_zeros`, and in debug mode if it is passed true.
        found: the result of the call.
        args: arguments of the call.
        kwargs: keyword arguments of the call.
        into: whether the first argument takes a derivative, as it does now; it is the same in the end.
    """
    from irad.frontend.calls.watch_hooks import without_ties  # debug mode, which few calls are in

    given = args[:1] if into else ()
    if not all(isinstance(each, np.ndarray) for _, each in pieces(given)):
        return None  # what is in lists and objects would not be put back
    kept = [np.array(each) for each in _numbers(given)]
    try:
        if not _hides(shows_zeros(False)(*args, **kwargs), found) and not _hides(given, kept):
            return None
        for place in _numbers(given):  # what is NaN before a call is not looked at after it
            place[...] = 0
        with without_ties():
            shows_zeros(True)(*args, **kwargs)
    except NonFiniteError as error:
        return error
    finally:
        for place, before in zip(_numbers(given), kept, strict=True):
            place[...] = before
    return None


def _numbers(value: Any) -> Iterator[Any]:
    return (each for _, each in pieces(value) if isinstance(each, float | complex | np.inexact | np.ndarray))


def _hides(shown: Any, found: Any) -> bool:
    """True if a number is finite that is not where zeros are shown."""
    return any(
        bool((~np.isfinite(one) & np.isfinite(other)).any())
        for one, other in zip(map(np.asarray, _numbers(shown)), map(np.asarray, _numbers(found)), strict=False)
        if one.dtype.kind in "fc" and one.shape == other.shape
    )
