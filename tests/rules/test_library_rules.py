"""`check_rule` over the rules of irad's libraries: in both modes, both precisions, and several directions at once."""

from __future__ import annotations

import pytest
from numba.core.dispatcher import Dispatcher

from irad.testing import check_rule
from tests.rules.library_rules import ELSEWHERE, EXAMPLES, targets


def test_each_rule_has_operands_or_tests_elsewhere():
    assert sorted(set(targets()) - ELSEWHERE - set(EXAMPLES)) == [], "add operands in library_rules.py"
    assert sorted({*EXAMPLES, *ELSEWHERE} - set(targets())) == [], "there is no such rule any more"
    assert sorted(ELSEWHERE & set(EXAMPLES)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_of_a_module(name):
    function = targets()[name]
    assert isinstance(function, Dispatcher)
    check_rule(function, *EXAMPLES[name], single=name.startswith("irad.nn."))
