"""Inactive callees: Numba's helpers are all accounted for, and effects are what the sources say."""

from __future__ import annotations

import pytest
from numba import _helperlib

from irad.rules import ALL, inactive_callees
from irad.ruleset.interface import CallRule, Elementwise, Inactive, Origin
from irad.ruleset.registry import Registry

REGISTRY = Registry.of(*ALL)
DECLARED = Registry.of(*inactive_callees.RULES)

# Helpers without an entry here, by what they do. A program that calls one with an active value is refused.
CONTAINERS = (
    "list_new list_free list_base_ptr list_setitem list_getitem list_append list_delitem "
    "list_delete_slice list_iter list_iter_next dict_new_sized dict_free dict_lookup dict_insert "
    "dict_insert_ez dict_delitem dict_popitem dict_iter dict_iter_next set_new set_new_sized set_set_method_table "
    "set_free set_add set_contains set_discard set_iter set_iter_next test_dict test_list test_set"
)
LINEAR_ALGEBRA = "ez_cgeev"
BOXES = (
    "complex_adaptor adapt_ndarray ndarray_new extract_record_data get_buffer adapt_buffer release_buffer "
    "get_pyobject_private_data set_pyobject_private_data reset_pyobject_private_data"
)
ABSENT = frozenset(f"{CONTAINERS} {LINEAR_ALGEBRA} {BOXES}".split())


def test_every_helper_of_numba_has_a_rule_or_a_reason():
    helpers = {name for name in vars(_helperlib)["c_helpers"] if not name.startswith("_")}
    unknown = {name for name in helpers if REGISTRY.lookup(f"numba_{name}") is None}
    assert unknown - ABSENT == set()


def test_what_can_hand_on_a_float_is_not_declared_inactive():
    assert {name for name in ABSENT if DECLARED.lookup(f"numba_{name}") is not None} == set()


@pytest.mark.parametrize("rule", inactive_callees.RULES, ids=lambda rule: rule.symbols[0])
def test_every_entry_says_why(rule: Inactive):
    assert rule.why
    assert all(rule.symbols)
    assert rule.effects is not None
    assert not rule.effects.captures


@pytest.mark.parametrize("rule", inactive_callees.RULES, ids=lambda rule: rule.symbols[0])
def test_what_is_written_holds_no_floats(rule: Inactive):
    assert rule.effects is not None
    assert rule.effects.writes_no_floats or not rule.effects.writes


def inactive_rule(symbol: str) -> Inactive:
    rule = REGISTRY.lookup(symbol)
    assert isinstance(rule, Inactive)
    return rule


def test_effects():
    assert inactive_rule("numba_attempt_nocopy_reshape").effects.writes == {5}
    assert inactive_rule("numba_gil_ensure").effects.writes == {0}
    assert inactive_rule("deallocate_sched").effects.frees == {0}
    assert inactive_rule("allocate_sched").effects.result is Origin.FRESH
    assert inactive_rule("do_scheduling_unsigned").effects.result_argument == 4
    assert not inactive_rule("llvm.ctpop.i64").effects.other
    assert inactive_rule("printf").effects.other
    assert inactive_rule("numba_rnd_shuffle").effects.other


@pytest.mark.parametrize(
    "symbol",
    (
        "llvm.smax.i64 llvm.umul.with.overflow.i64 llvm.lifetime.start.p0 llvm.lifetime.start llvm.is.fpclass.f64 "
        "llvm.fptosi.sat.i64.f64 llvm.nvvm.read.ptx.sreg.tid.x __nv_double2int_rz __nv_popcll PyErr_SetString"
    ).split(),
)
def test_families(symbol: str):
    assert isinstance(REGISTRY.lookup(symbol), Inactive)


@pytest.mark.parametrize(
    ("symbol", "kind"),
    [("llvm.fabs.f64", Elementwise), ("numba_frexp", CallRule), ("numba_cpowf", CallRule), ("numba_xxdot", CallRule)],
)
def test_other_kinds_are_not_swallowed_by_wildcards(symbol: str, kind: type):
    assert isinstance(REGISTRY.lookup(symbol), kind)


@pytest.mark.parametrize(
    "symbol", ["NRT_incref", "NRT_MemInfo_alloc_aligned", "llvm.memcpy.p0.p0.i64", "numba_parallel_for"]
)
def test_memory_and_threads_are_left_to_their_own_rules(symbol: str):
    assert DECLARED.lookup(symbol) is None
