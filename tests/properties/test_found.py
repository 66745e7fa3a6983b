"""Programs that random programs were reduced to when they failed."""

from __future__ import annotations

import pytest
from numba import njit

import irad
from irad.testing.catalogue import Case, Catalogue, floats
from irad.testing.check_gradient import check_gradient

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


@njit
def _scaled_by_itself(a, d):
    if d < 2:
        a[d] *= a.copy()[d]
        _scaled_by_itself(a, d + 1)


@pytest.mark.xfail(raises=irad.UnsupportedError, reason="the type of the copied memory is unclear in the callee")
def test_copy_in_a_recursive_function_that_returns_nothing():
    @njit
    def program(a):
        b = a * 0.57
        _scaled_by_itself(b, 0)
        return b[1]

    check_gradient(program, floats(4))
