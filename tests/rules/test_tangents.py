"""Forward mode passes through every callee that has a rule."""

from __future__ import annotations

from irad.rules import ALL
from irad.ruleset.interface import CallRule


def test_every_rule_has_a_tangent():
    assert [rule.symbols[0] for rule in ALL if isinstance(rule, CallRule) and rule.tangent is None] == []
