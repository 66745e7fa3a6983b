"""Every kernel of the catalogue on the executor, against NumPy: in every order of threads, and without races."""

from __future__ import annotations

import pytest

from irad.backend.executor.scheduler import IN_ORDER, shuffled
from tests.cuda.case import Case
from tests.cuda.kernels import CASES, KERNELS
from tests.cuda.run import run


@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_kernels_compute_what_numpy_does(case: Case):
    for schedule in (IN_ORDER, shuffled(1)):
        arguments = case.fresh()
        run(case.kernel, case.grid, case.block, arguments, shared=case.shared, schedule=schedule)
        case.check(arguments)


@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_kernels_have_no_races(case: Case):
    arguments = case.fresh(1)
    run(case.kernel, case.grid, case.block, arguments, shared=case.shared, races=True)
    case.check(arguments, 1)
