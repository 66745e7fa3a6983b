"""Rules of the registry in several directions at once: each gives what it gives alone, in both modes."""

from __future__ import annotations

import pytest

from irad.data.floats import has_floats
from irad.testing.optimisation import optimisation_limited
from irad.testing.rules.lanes import check_lanes_forward, check_lanes_reverse
from irad.testing.rules.trial import Trial
from tests.rules.programs import PROGRAMS, RuleProgram


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_directions_at_once(program: RuleProgram):
    trial = Trial(program.function, program.arguments, tuple(map(has_floats, program.arguments)))
    with optimisation_limited():
        check_lanes_forward(program.function, trial, 2)
        check_lanes_reverse(program.function, trial, 2)
