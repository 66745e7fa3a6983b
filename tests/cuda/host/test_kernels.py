"""Gradients of all test kernels on the executor: against differences, forward against reverse, in all orders."""

from __future__ import annotations

import numpy as np
import pytest

import irad.cuda
from tests.cuda.case import Case
from tests.cuda.host.launching import compiled, difference, directions, forward, inner, reverse, tolerance_of
from tests.cuda.kernels import CASES, KERNELS

EACH = pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
STEP = 1e-6


@EACH
def test_tangents_are_differences_of_the_reference(case: Case):
    tangents = directions(case, 1)
    with irad.cuda.executor():
        arguments, found = forward(case, tangents)
    case.check(arguments)
    for position, wanted in difference(case, tangents, STEP).items():
        scale = 1.0 + np.max(np.abs(wanted), initial=0.0)
        np.testing.assert_allclose(found[position], wanted, atol=max(1e-7, tolerance_of(case)) * scale, rtol=0)


@EACH
def test_reverse_is_the_adjoint_of_forward(case: Case):
    tangents, cotangents = directions(case, 1), directions(case, 2)
    with irad.cuda.executor():
        arguments, gradients = reverse(case, cotangents)
        _, results = forward(case, tangents)
    case.check(arguments)
    left = inner(results, {p: cotangents[p] for p in results})
    assert left == pytest.approx(inner(gradients, tangents), rel=tolerance_of(case), abs=tolerance_of(case))


@EACH
def test_no_order_of_threads_changes_the_gradient(case: Case):
    cotangents = directions(case, 2)
    with irad.cuda.executor():
        _, wanted = reverse(case, cotangents)
    for schedule in irad.cuda.SCHEDULES[1:]:
        with irad.cuda.executor(schedule=schedule):
            arguments, found = reverse(case, cotangents)
        case.check(arguments)
        for position, each in wanted.items():
            tolerance = tolerance_of(case) * (1.0 + np.max(np.abs(each), initial=0.0))
            np.testing.assert_allclose(found[position], each, rtol=0, atol=tolerance)


@EACH
def test_gradients_have_no_races(case: Case):
    cotangents = directions(case, 2)
    with irad.cuda.executor(races=True) as device:
        arguments, _ = reverse(case, cotangents)
    case.check(arguments)
    assert device.launches >= 1


@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_kernels_themselves_run(case: Case):
    arguments = case.fresh()
    with irad.cuda.executor(races=True):
        compiled(case.name)[case.grid, case.block, 0, case.shared](*arguments)
    case.check(arguments)
