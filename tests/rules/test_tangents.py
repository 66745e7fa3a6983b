"""The rules that have no tangent yet, by their first symbol: forward mode needs one of each.

A rule that gets its tangent leaves the list; a new rule without one is added to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from irad.rules import ALL
from irad.rules.dense.routine import Routine, fortran_rule
from irad.rules.dense.tangent import Differential
from irad.ruleset.interface import CallRule

WITHOUT: list[str] = []


def without_tangent() -> Iterator[str]:
    """The first symbol of each rule that has none."""
    return (rule.symbols[0] for rule in ALL if isinstance(rule, CallRule) and rule.tangent is None)


def test_rules_without_a_tangent():
    assert sorted(without_tangent()) == WITHOUT


def test_the_rule_of_a_routine_has_its_tangent():
    routine = Routine("asum", "n x incx", {}, {}, lambda adjoint: None, tangent=Differential())
    assert fortran_rule(routine).tangent is not None
    assert fortran_rule(replace(routine, tangent=None)).tangent is None
