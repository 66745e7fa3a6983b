"""irad's scalar rules at their special points, in first derivatives; in second ones where a rule branches.

The slow tests try all orders of all rules in all modes. What is known not to be right is in `not_right.txt`.
"""

from __future__ import annotations

import pkgutil
from functools import cache

import pytest

from irad import rules
from irad.rules import ALL, shortcuts
from irad.ruleset.interface import Elementwise
from tests.special_points import call_rules, known, scalar_rules
from tests.special_points.check import faults, worst
from tests.special_points.derivatives import MODES, Batch, Mode
from tests.special_points.scalar_rules import FIRST_ONLY, GUARDED, NAMES, SINGLE, SLOW, single_case_of
from tests.special_points.table import Case, batches

_ALL: tuple[str, ...] = (*NAMES, *call_rules.NAMES)
_BRANCHING = tuple(name for name in (*GUARDED, *call_rules.GUARDED) if name not in SLOW | FIRST_ONLY)


def _case(name: str) -> Case:
    return call_rules.case_of(name) if name in call_rules.RESULTS else scalar_rules.case_of(name)


def _batch(name: str, names: tuple[str, ...] = _ALL) -> Batch:
    """The batch of a rule, of those in which all of ``names`` are compiled."""
    together = [each for each in names if each in NAMES and each not in FIRST_ONLY]
    calls = [each for each in names if each in call_rules.NAMES]
    complex_, real = ([each for each in calls if each.startswith("complex") is flag] for flag in (True, False))
    groups = (*batches(together, 20), *([each] for each in names if each in FIRST_ONLY), real, complex_)
    return next(_made(tuple(group)) for group in groups if name in group)


@cache
def _made(names: tuple[str, ...]) -> Batch:
    return Batch([_case(name) for name in names])


@cache
def _single(name: str, *, rounded: bool) -> Batch:
    names = SINGLE if rounded else scalar_rules.exact_in_single()
    group = next(tuple(group) for group in batches(names, 20) if name in group)
    return _made_single(group, rounded=rounded)


@cache
def _made_single(names: tuple[str, ...], *, rounded: bool) -> Batch:
    return Batch([single_case_of(name, rounded=rounded) for name in names])


def _faults(name: str, mode: Mode, total: int, names: tuple[str, ...] = _ALL) -> str:
    return worst(list(faults(_batch(name, names), _case(name), mode, total)))


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("name", [name for name in _ALL if name not in SLOW])
def test_first_derivatives(name: str, mode: Mode):
    assert _faults(name, mode, 1) == ""


@pytest.mark.parametrize("total", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", _BRANCHING)
def test_higher_derivatives_of_rules_that_branch(name: str, total: int):
    assert _faults(name, "reverse", total, _BRANCHING) == ""


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("total", [2, 3])
@pytest.mark.parametrize("name", [name for name in _ALL if name not in FIRST_ONLY])
def test_higher_derivatives(name: str, total: int, mode: Mode):
    assert _faults(name, mode, total) == ""


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("name", scalar_rules.exact_in_single())
def test_single_precision(name: str, mode: Mode):
    batch = _single(name, rounded=False)
    assert worst(list(faults(batch, single_case_of(name, rounded=False), mode, 1))) == ""


ROUNDED_TO_ENDS = {"betaincinv", "stdtrit"}  # a probability beside 1 is 1 in single precision: the end of the domain


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("name", [name for name in SINGLE if name not in ROUNDED_TO_ENDS])
def test_single_precision_at_rounded_points(name: str, mode: Mode):
    batch = _single(name, rounded=True)
    assert worst(list(faults(batch, single_case_of(name, rounded=True), mode, 1))) == ""


def test_no_elementwise_rule_is_left_out():
    """Those of the code that Numba cuts short are in test_numba_scalars.py and test_complex.py."""
    found = [rule for rule in ALL if isinstance(rule, Elementwise) and rule not in shortcuts.RULES]
    listed = {rule.name for rule in found if any(p is not None for p in rule.partials)}
    assert listed - set(NAMES) == set()


# Modules whose rules move numbers, or are of arrays: test_arrays.py has the functions that use them.
_NOT_SCALAR = frozenset(
    "all_rules arenas blas builtin c_library cuda dense fourier heap inactive_callees lapack memory mpi "
    "numba_runtime random_draws typed_dict typed_list".split()
)


def test_no_rule_of_scalars_that_emits_code_is_left_out():
    assert call_rules.symbols_left_out() == set()
    modules = {each.name for each in pkgutil.iter_modules(rules.__path__)}
    assert modules - _NOT_SCALAR == {"elementwise", "scipy", "scalar_calls", "shortcuts"}


def test_every_rule_of_scipy_is_in_a_module_of_the_table():
    modules = {each.name for each in pkgutil.iter_modules([f"{path}/scipy" for path in rules.__path__])}
    assert modules == {"elliptic", "outputs", "special", "voigt"}


def test_what_is_known_not_to_be_right_is_of_a_case_and_has_a_reason():
    names = {*_ALL, *(f"{name} in single precision" for name in SINGLE)}
    assert set(known.listed()) - names == set()
    assert all(reason for each in known.listed().values() for reason in each.values())
