"""Programs that random programs were reduced to when they failed."""

from __future__ import annotations

import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(3))
@njit
def list_that_grows(a):
    # the size in the list's header was taken for the bits of an element
    values = [a[0], a[1]]
    values.append(a[1])
    return values[1] * values[2]


@njit
def _scaled_by_itself(a, d):
    if d < 2:
        a[d] *= a.copy()[d]
        _scaled_by_itself(a, d + 1)


@PROGRAMS.at(floats(4))
@njit
def copy_in_a_recursive_function(a):
    # what the parameters of a callee hold was guessed from the caller's accesses
    b = a * 0.57
    _scaled_by_itself(b, 0)
    return b[1]


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
