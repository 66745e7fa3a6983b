"""Zeros, copies and sums of structures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from irad.api.structures.maps import Predicate, recursive_map, recursive_map_, run
from irad.data.recursive.mapping import Recursion
from irad.data.recursive.operations import add, copied, zero
from irad.data.recursive.survey import Memo, survey

_adding: Final = threading.RLock()  # a function of the user may accumulate, too


def make_zero(
    x: Any, *, seen: Memo | None = None, copy_if_inactive: bool = False, inactive: Predicate | None = None
) -> Any:
    """A structure like ``x`` with zeros for its vectors: what a shadow of ``x`` is to begin with.

    Args:
        x: any structure, as in `recursive_map`.
        seen: as in `recursive_map`.
        copy_if_inactive: as in `recursive_map`.
        inactive: as in `recursive_map`.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> data.make_zero([np.array([1.0, 2.0]), (3.0, 4)])
        [array([0., 0.]), (0.0, 4)]
    """
    return recursive_map(zero, x, seen=seen, copy_if_inactive=copy_if_inactive, inactive=inactive)


def make_zero_(x: Any, *, inactive: Predicate | None = None) -> None:
    """Overwrites all vectors in ``x`` with zeros.

    Args:
        x: a structure that can be overwritten, as in `recursive_map_`.
        inactive: as in `recursive_map`.

    Raises:
        SignatureError: a part cannot be overwritten. Nothing has been written.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> x = [np.ones(2), 1.0, "text"]
        >>> data.make_zero_(x)
        >>> x
        [array([0., 0.]), 0.0, 'text']
    """
    recursive_map_(zero, x, x, inactive=inactive)


def remake_zero_(x: Any, *, inactive: Predicate | None = None) -> None:
    """Overwrites with zeros what can be overwritten in ``x``; numbers in tuples and read-only arrays stay.

    Args:
        x: any structure, as in `recursive_map`.
        inactive: as in `recursive_map`.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> x = (np.ones(2), 1.0)
        >>> data.remake_zero_(x)
        >>> x
        (array([0., 0.]), 1.0)
    """
    root = survey((x,), (x,), inactive=inactive)
    Recursion(zero, 1, keeps_immutable=True).run(root)


def copy(x: Any, *, seen: Memo | None = None, copy_if_inactive: bool = False, inactive: Predicate | None = None) -> Any:
    """A structure like ``x`` with copies of its vectors.

    Args:
        x: any structure, as in `recursive_map`.
        seen: as in `recursive_map`.
        copy_if_inactive: as in `recursive_map`.
        inactive: as in `recursive_map`.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> weights = np.ones(2)
        >>> x = data.copy([weights, weights])
        >>> x[0] is x[1], x[0] is weights
        (True, False)
    """
    return recursive_map(copied, x, seen=seen, copy_if_inactive=copy_if_inactive, inactive=inactive)


def accumulate(
    x: Any,
    y: Any,
    f: Callable[[Any], Any] | None = None,
    *,
    atomic: bool = False,
    inactive: Predicate | None = None,
) -> None:
    """Adds ``f(y)`` to ``x``, in place: each vector that is shared is added to once.

    Args:
        x: a structure that can be overwritten, as in `recursive_map_`; integers and what else is inactive stay.
        y: a structure like it. Where it holds several arrays in place of one of ``x``, as a gradient does that has an
            array for each path, their sum is added.
        f: of each vector of ``y``: `numpy.conj`, say, or a multiple; the identity by default.
        atomic: whether other threads may add to the same vectors at the same time, with ``atomic=True``.
        inactive: as in `recursive_map`.

    Raises:
        SignatureError: the structures are not alike, or a part of ``x`` cannot be overwritten. Nothing has been
            written.

    Examples:
        >>> import numpy as np
        >>> from irad import data
        >>> shared = np.ones(2)
        >>> total = {"a": shared, "b": shared, "c": 1.0}
        >>> data.accumulate(total, data.copy(total), lambda v: 10 * v)
        >>> total
        {'a': array([11., 11.]), 'b': array([11., 11.]), 'c': 11.0}
    """
    if f is not None:
        y = recursive_map(f, y, inactive=inactive)  # all of it, so that nothing is written if f fails
    with _adding if atomic else nullcontext():  # from the first look on: numbers are read there
        run(add, (x, y), (x,), 1, None, False, inactive, in_place=True, merges=True)
