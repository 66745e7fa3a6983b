"""`check_rule` over the rules of irad's libraries: in both modes, both precisions, and several directions at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

import irad
from irad.testing import check_rule
from tests.rules.library_rules import EXAMPLES, WITHOUT_DERIVATIVE, own_rules, targets
from tests.rules.made_rules import MADE

SOURCES = Path(irad.__file__).parent


def makers() -> Iterator[str]:
    """The functions whose code attaches a rule to what they make."""
    for file in SOURCES.rglob("*.py"):
        module = ".".join(("irad", *file.relative_to(SOURCES).with_suffix("").parts))
        for each in ast.parse(file.read_text(encoding="utf-8")).body:
            calls = (node.func for node in ast.walk(each) if isinstance(node, ast.Call))
            if isinstance(each, ast.FunctionDef) and any(isinstance(f, ast.Name) and f.id == "attach" for f in calls):
                yield f"{module}.{each.name}"


def test_each_rule_of_a_module_has_operands():
    assert sorted(set(targets()) - set(EXAMPLES)) == [], "add operands in library_rules.py"
    assert sorted(set(EXAMPLES) - set(targets())) == [], "there is no such rule any more"


def test_each_rule_that_is_made_has_operands():
    assert sorted(set(makers()) - set(MADE)) == [], "add operands in made_rules.py"
    assert sorted(set(MADE) - set(makers())) == [], "no rule is made there any more"


def test_what_is_declared_inactive_is_named():
    declared = {name for name, rule in own_rules() if rule.inactive is not None}
    assert sorted(declared ^ WITHOUT_DERIVATIVE) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), [(name, i) for name in EXAMPLES for i in range(len(EXAMPLES[name]))])
def test_of_a_module(name: str, number: int):
    function = targets()[name]
    assert isinstance(function, Dispatcher)
    operands = EXAMPLES[name][number]
    check_rule(function, *operands.arguments(), **operands.options)


@pytest.mark.slow
@pytest.mark.parametrize(("maker", "case"), [(maker, case) for maker, cases in MADE.items() for case in cases])
def test_that_is_made(maker: str, case: str):
    check_rule(*MADE[maker][case](), single=False)
