"""irad's scalar rules at their special points, in first derivatives; in higher ones where a rule branches.

``IRAD_SPECIAL_POINTS=all`` tries all orders of all rules.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.special_points.check import faults, worst
from tests.special_points.derivatives import MODES, Batch, Mode
from tests.special_points.scalar_rules import NAMES, case_of
from tests.special_points.table import batches


@cache
def _batch(name: str) -> Batch:
    return next(_made(tuple(group)) for group in batches(NAMES, 20) if name in group)


@cache
def _made(names: tuple[str, ...]) -> Batch:
    return Batch([case_of(name) for name in names])


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("name", NAMES)
def test_first_derivatives(name: str, mode: Mode):
    found = list(faults(_batch(name), case_of(name), mode, 1))
    assert not found, worst(found)
