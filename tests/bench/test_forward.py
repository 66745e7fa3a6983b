"""Hand-written tangents of the benchmark cases, against irad's gradients."""

from __future__ import annotations

import numpy as np
import pytest

import irad
from bench.case import Case
from bench.forward import CASES, directions
from bench.tangents import BY_NAME


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_tangents_by_hand(case: Case):
    arguments = case.make("small")
    tangents = directions(case, arguments)
    value, tangent = BY_NAME[case.name](tangents, *arguments)
    expected, gradients = irad.value_and_grad(case.primal, case.argnums)(*arguments)
    assert value == pytest.approx(expected, rel=1e-12)
    assert tangent == pytest.approx(sum(np.sum(g * d) for g, d in zip(gradients, tangents, strict=True)), rel=1e-11)
