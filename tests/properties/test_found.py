"""Programs that random programs were reduced to when they failed."""

from __future__ import annotations

import pytest
from numba import njit

from irad.testing.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(3))
@njit
def list_that_grows(a):
    # the size in the list's header was taken for the bits of an element
    values = [a[0], a[1]]
    values.append(a[1])
    return values[1] * values[2]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
