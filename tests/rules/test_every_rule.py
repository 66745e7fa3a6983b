"""No rule goes untested: each belongs to a test that takes it from the registry, or to a program that it fires in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad.frontend import derivation
from irad.rules import ALL, arenas, c_library, fourier, heap, inactive_callees, mpi, shortcuts
from irad.rules.blas import level1, level2, level3
from irad.rules.lapack import symbols as lapack_symbols
from irad.ruleset.interface import CallRule, Elementwise, Rule
from irad.ruleset.registry import Registry, describe
from irad.testing.check_gradient import check_quickly
from tests.raw import test_rules as raw_rules
from tests.rules import library_rules, test_elementwise, test_scipy_special
from tests.rules.made_rules import MADE
from tests.rules.programs import PROGRAMS, RuleProgram
from tests.rules.table import PATH, table
from tests.rules.test_scipy_special import exported

REGISTRY = Registry.of(*ALL)

# What tests run over that take it from the registry; test_blas_symbols.py has a test that none is missing there.
TAKEN_FROM_THE_REGISTRY: tuple[Rule, ...] = (
    *test_elementwise.NAMED.values(),
    *test_scipy_special.SMOOTH,
    *inactive_callees.RULES,
    *level1.RULES,
    *level2.RULES,
    *level3.RULES,
    *lapack_symbols.RULES,
    *fourier.RULES,
    *mpi.RULES,  # tests/mpi
    *heap.RULES,  # tests/raw/test_rules.py
    *arenas.RULES,  # tests/api/test_second.py
    *c_library.RULES,
    *raw_rules.COMPLEX,
    *shortcuts.RULES,  # tests/special_points, and tests/rules/test_shortcuts.py that none is missing there
)

# Inactive rules outside `rules/inactive_callees.py`, which programs use without a derivative flowing through them.
WITHOUT_DERIVATIVE = {
    "NRT_incref": "memory",
    "NRT_decref": "memory",
    "numba_list_size_address": "plain_list",
    "irad.draw": "gamma",
}

# Draws, whose derivative is not a difference of draws: test_random_draws.py has the truth, this that the rules fire.
DRAWS = {
    "gamma": njit(lambda x: np.random.gamma(x, 2.0)),
    "standard_gamma": njit(lambda x, g: g.standard_gamma(x)),
    "beta": njit(lambda x, g: g.beta(x, 2.0)),
    "wald": njit(lambda x: np.random.wald(x, 2.0)),
    "vonmises": njit(lambda x: np.random.vonmises(x, 2.0)),
    "noncentral_chisquare": njit(lambda x: np.random.noncentral_chisquare(x, 2.0)),
}


# Rules without a partial derivative, with the arguments by which there would be one that is not known.
WITHOUT_PARTIAL = {"gammasgn": frozenset[int](), "elliprj": frozenset(range(4))}
EXPORTED = {"elliprj": "__pyx_fuse_1elliprj"}


def of_programs() -> list[Rule]:
    symbols = [*(symbol for program in PROGRAMS for symbol in program.symbols), *WITHOUT_DERIVATIVE]
    symbols += [f"irad.drawn.{name}" for name in DRAWS]
    return [rule for rule in (rule_of(symbol) for symbol in symbols) if rule is not None]


def without_partial() -> list[Elementwise]:
    return [rule for rule in ALL if isinstance(rule, Elementwise) and rule.name in WITHOUT_PARTIAL]


def calling(function: Any, arity: int) -> Any:
    """x ↦ function(x…) + x, compiled."""
    if arity == 1:
        return njit(lambda x: function(x) + x)
    return njit(lambda x, y, z, w: function(x, y, z, w) + x)


def rule_of(symbol: str) -> Rule | None:
    return REGISTRY.lookup(symbol.replace("*", "p0"))


def test_every_rule_has_a_test():
    tested = {id(rule) for rule in (*TAKEN_FROM_THE_REGISTRY, *of_programs(), *without_partial())}
    assert [describe(rule) for rule in ALL if id(rule) not in tested] == []


@pytest.mark.parametrize("rule", without_partial(), ids=lambda rule: rule.name)
def test_a_rule_without_partial_is_a_step_function_or_refused(rule: Elementwise):
    assert rule.partials == (None,) * rule.arity
    assert rule.refused == WITHOUT_PARTIAL[rule.name]
    function = exported(EXPORTED.get(rule.name, rule.name), *(test_scipy_special.D,) * rule.arity)
    if rule.refused:
        for position in range(rule.arity):
            with pytest.raises(irad.UnsupportedError, match=rule.name):
                irad.grad(calling(function, rule.arity), argnums=position)(*[0.3, 0.4, 0.5, 0.6][: rule.arity])
    else:
        assert irad.grad(calling(function, rule.arity))(-1.5) == 1.0
        assert irad.grad(calling(function, rule.arity))(2.5) == 1.0


@pytest.mark.parametrize("rule", lapack_symbols.RULES, ids=describe)
def test_routines_of_lapack_are_named_in_their_tests(rule: CallRule):
    tests = (Path(__file__).parent / "test_blas_symbols.py").read_text(encoding="utf-8")
    routine = rule.symbols[0].rpartition(".")[2][1:]
    assert f'"{routine}"' in tests


def test_every_rule_of_the_other_kind_is_in_a_table():
    tables = {*library_rules.EXAMPLES, *library_rules.WITHOUT_DERIVATIVE}
    unknown = [name for name, _ in library_rules.own_rules() if name not in tables]
    assert [name for name in unknown if name.partition(".<locals>")[0] not in MADE] == []


def test_every_program_names_rules_that_exist():
    named = [symbol for program in PROGRAMS for symbol in program.symbols]
    assert [symbol for symbol in named if not isinstance(rule_of(symbol), CallRule)] == []


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Indices of the call rules that emitted code for a derivative."""
    found: set[int] = set()

    def recording(index: int, rule: Rule) -> Rule:
        if not isinstance(rule, CallRule):
            return rule

        def augmented(*arguments: Any) -> Any:
            found.add(index)
            return rule.augmented(*arguments)

        def reverse(*arguments: Any) -> None:
            found.add(index)
            rule.reverse(*arguments)

        return replace(rule, augmented=augmented, reverse=reverse)

    registry = Registry.of(*(recording(index, rule) for index, rule in enumerate(ALL)))
    monkeypatch.setattr(derivation, "_registry", lambda: registry)
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_rules_fire_and_the_derivative_is_right(program: RuleProgram, fired: set[int]):
    check_quickly(program.function, *program.arguments, plans=("default",))
    missing = [symbol for symbol in program.symbols if not any(ALL[index] is rule_of(symbol) for index in fired)]
    assert missing == []


@pytest.mark.parametrize("name", DRAWS)
def test_draws_use_their_rules(name: str, fired: set[int]):
    rule = rule_of(f"irad.drawn.{name}")
    arguments = (1.3, np.random.default_rng(1))[: DRAWS[name].py_func.__code__.co_argcount]
    if name == "noncentral_chisquare":
        with pytest.raises(irad.UnsupportedError, match="noncentral chi-square draw"):
            irad.grad(DRAWS[name])(*arguments)
    else:
        assert np.isfinite(irad.grad(DRAWS[name])(*arguments))
    assert any(ALL[index] is rule for index in fired)


def test_the_table_in_the_docs_is_current():
    assert PATH.read_text(encoding="utf-8") == table(), "run scripts/make_rules_table.py"
