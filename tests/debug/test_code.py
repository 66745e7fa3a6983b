"""Without debug mode and limit, derivatives are the code that they were; with them, the numbers are the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numba import float64, njit, prange

import irad
from irad.data.copies import copied
from irad.data.floats import read_floats
from irad.frontend.calls.task import Role, Task
from irad.frontend.derivation import derivation_of
from irad.testing.gradients.trial import random_like
from tests.programs import test_arrays, test_complex, test_containers, test_control_flow, test_guards, test_recursion
from tests.tools.catalogue import Case, Catalogue

FILES = (test_arrays, test_complex, test_containers, test_control_flow, test_guards, test_recursion)


@njit
def program(x):
    total = 0.0
    for i in range(x.size):
        if x[i] > 1.0:
            total += np.exp(x[i])
    return total


@njit(parallel=True)
def parallel(x):
    total = 0.0
    for i in prange(x.size):
        total += np.exp(x[i])
    return total


def text_of(function, options):
    task = Task(((0, Role.GRADIENT),), options=options)
    return derivation_of(function, (float64[::1],), task).compiled.derivative.text


@pytest.mark.parametrize("function", [program, parallel])
def test_nothing_is_watched_unless_asked_for(function):
    plain = text_of(function, irad.Options())
    for word in ("irad.check", "irad.tie", "irad.tape_alloc", "irad.lanes_watch", "irad.places", "activation"):
        assert word not in plain
    watched = text_of(function, irad.Options(debug=True))
    assert "irad.check_f64" in watched
    assert "irad.tape_alloc" not in watched
    metered = text_of(function, irad.Options(max_tape_bytes=1000))
    assert "irad.tape_alloc" in metered
    assert "irad.check" not in metered
    assert text_of(function, irad.Options()) == plain


def sample() -> list[Case]:
    catalogues = [module.PROGRAMS for module in FILES]
    assert all(isinstance(each, Catalogue) for each in catalogues)
    return [list(each)[len(each) // 2] for each in catalogues]


def derivative(case: Case, options: irad.Options):
    """Value and gradients as vectors."""
    value, pullback = irad.vjp(case.function, *copied(case.args), options=options)
    seed = 1.0 if isinstance(value, float) else random_like(value)
    return [read_floats(value), *(read_floats(each) for each in pullback(seed) if each is not None)]


@pytest.mark.parametrize("case", sample(), ids=str)
def test_finite_programs_raise_no_alarm(case: Case):
    """The gradient is that of the plain derivative, with all that can be asked for at once."""
    plain = derivative(case, irad.Options())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", irad.TieWarning)
        watched = derivative(case, irad.Options(debug=True, measure_tape=True))
    assert np.array_equal(watched[0], plain[0])
    for one, other in zip(watched[1:], plain[1:], strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-14)
