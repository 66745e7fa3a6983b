"""Which arguments of a function take part in a check, and how the checks are told."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, count
from math import comb
from typing import Any

import irad
from irad.data.floats import has_floats
from irad.errors import SignatureError
from irad.frontend.packing.packed import packed

_ANNOTATIONS = (irad.Const, irad.Active, irad.Duplicated, irad.DuplicatedNoNeed, irad.MixedDuplicated)


def unwrapped(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[bool, ...]]:
    """Arguments without their annotations, and for each whether it takes part.

    Raises:
        SignatureError: none does.
    """
    values = tuple(packed(each.value if isinstance(each, _ANNOTATIONS) else each) for each in arguments)
    active = [
        not isinstance(each, irad.Const) and has_floats(value) for each, value in zip(arguments, values, strict=True)
    ]
    if not any(active):
        raise SignatureError(
            "no argument is active",
            "leave at least one argument of floats without irad.Const",
            "a rule gives derivatives with respect to the arguments that are active",
        )
    return values, tuple(active)


def activities(active: tuple[bool, ...]) -> Iterator[tuple[bool, ...]]:
    """What may take part: all at first, then the fewest subsets with each two arguments in all four ways.

    After the first row, each argument takes part in equally many rows, fewer than half of them, and no two in the same
    ones: so there is a row with either of two alone, and one with neither. Two arguments have no row with neither.

    Source:
        Kleitman and Spencer 1973, "Families of k-independent sets".
    """
    positions = [i for i, takes_part in enumerate(active) if takes_part]
    rows = next(n for n in count(4) if comb(n - 1, n // 2 - 1) >= len(positions))
    chosen = dict(zip(positions, combinations(range(1, rows), rows // 2 - 1), strict=False))
    table = [tuple(i in chosen and row in (0, *chosen[i]) for i in range(len(active))) for row in range(rows)]
    yield from dict.fromkeys(row for row in table if any(row))
