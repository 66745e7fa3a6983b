"""irad's scalar rules at their special points, in first derivatives; in higher ones where a rule branches.

The slow tests try all orders of all rules in all modes.
"""

from __future__ import annotations

from functools import cache

import pytest

from irad.rules import ALL, shortcuts
from irad.ruleset.interface import Elementwise
from tests.special_points.check import faults, worst
from tests.special_points.derivatives import MODES, Batch, Mode
from tests.special_points.scalar_rules import FIRST_ONLY, GUARDED, NAMES, SLOW, case_of
from tests.special_points.table import batches


@cache
def _batch(name: str) -> Batch:
    together = [each for each in NAMES if each not in FIRST_ONLY]
    return next(_made(tuple(group)) for group in (*batches(together, 20), *([n] for n in FIRST_ONLY)) if name in group)


@cache
def _made(names: tuple[str, ...]) -> Batch:
    return Batch([case_of(name) for name in names])


def _faults(name: str, mode: Mode, total: int) -> str:
    return worst(list(faults(_batch(name), case_of(name), mode, total)))


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SLOW])
def test_first_derivatives(name: str, mode: Mode):
    assert _faults(name, mode, 1) == ""


@pytest.mark.parametrize("total", [2, 3])
@pytest.mark.parametrize("name", [name for name in GUARDED if name not in SLOW | FIRST_ONLY])
def test_higher_derivatives_of_rules_that_branch(name: str, total: int):
    assert _faults(name, "reverse", total) == ""


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("total", [2, 3])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FIRST_ONLY])
def test_higher_derivatives(name: str, total: int, mode: Mode):
    assert _faults(name, mode, total) == ""


def test_no_rule_is_left_out():
    """Those of the code that Numba cuts short are in test_numba_scalars.py and test_complex.py."""
    rules = [rule for rule in ALL if isinstance(rule, Elementwise) and rule not in shortcuts.RULES]
    listed = {rule.name for rule in rules if any(p is not None for p in rule.partials)}
    assert listed - set(NAMES) == set()
