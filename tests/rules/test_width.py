"""Rules of the registry in forward mode against reverse mode, and several directions at once against each alone."""

from __future__ import annotations

import pytest

from irad.data.floats import has_floats, read_floats
from irad.testing.gradients.trial import Trial, directions_of, draw_tangents, optimisation_limited, run_forward
from irad.testing.rules.lanes import check_lanes_forward, check_lanes_reverse
from tests.rules.programs import PROGRAMS, RuleProgram


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_both_modes_and_several_directions(program: RuleProgram):
    trial = Trial(program.function, program.arguments, tuple(map(has_floats, program.arguments)))
    assert not any(trial.modified)
    with optimisation_limited():
        tangents = draw_tangents(trial, 1.0)
        directions = directions_of(trial, tangents)
        pushed = run_forward(trial, tangents).tangents[0]
        pulled = trial.run(trial.shadows(trial.modified)).cotangents
        assert pushed is not None
        expected = sum(pulled[i] @ direction for i, direction in directions.items())
        assert read_floats(trial.seed) @ pushed == pytest.approx(expected, rel=1e-9)
        check_lanes_forward(program.function, trial, 2)
        check_lanes_reverse(program.function, trial, 2)
