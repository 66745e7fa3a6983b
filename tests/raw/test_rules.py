"""Rules of the C and C++ run-time libraries: each heap rule fires in a program here, inactive ones say what is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irad.rules import ALL, c_library, heap, scalar_calls
from irad.ruleset.interface import CallRule, Inactive, Origin
from irad.ruleset.registry import Registry
from tests.raw.toolchain import PROGRAMS, bitcode_of, needs_clang, text_of

REGISTRY = Registry.of(*ALL)
COMPLEX = tuple(
    rule for rule in scalar_calls.RULES if isinstance(rule, CallRule) and {"__muldc3", "__divdc3"} & set(rule.symbols)
)
USED_BY = ("heap_functions", "complex_arithmetic")
ONLY_OF_NUMBA = {"NRT_Allocate", "irad.stop.memory"}  # what no C program calls


@needs_clang
def test_every_rule_of_the_heap_fires_in_a_program(tmp_path: Path):
    sources = [path for path in PROGRAMS if path.stem in USED_BY]
    called = {
        name for path in sources for name in re.findall(r"call [^@\n]*@(\w+)\(", text_of(bitcode_of(path, 0, tmp_path)))
    }
    rules = [rule for rule in (*heap.RULES, *COMPLEX) if not ONLY_OF_NUMBA & set(rule.symbols)]
    assert [rule for rule in rules if not isinstance(rule, CallRule | Inactive)] == []
    assert [
        rule.symbols for rule in rules if isinstance(rule, CallRule | Inactive) and not called & set(rule.symbols)
    ] == []


@pytest.mark.parametrize("rule", c_library.RULES, ids=lambda rule: rule.symbols[0])
def test_every_inactive_callee_says_why_and_writes_no_numbers(rule: Inactive):
    assert rule.why
    assert rule.effects is None or rule.effects.writes_no_floats or not rule.effects.writes


@pytest.mark.parametrize("symbol", ["sscanf", "fread", "scanf", "qsort", "pthread_create", "read", "strtod", "cabsf"])
def test_what_can_hand_a_number_back_has_no_entry(symbol: str):
    assert REGISTRY.lookup(symbol) is None


@pytest.mark.parametrize("symbol", ["strcpy", "strchr", "memchr"])
def test_text_functions_return_a_place_in_their_argument(symbol: str):
    rule = REGISTRY.lookup(symbol)
    assert isinstance(rule, Inactive)
    assert rule.effects is not None
    assert (rule.effects.result, rule.effects.result_argument) == (Origin.ARGUMENT, 0)


def test_reallocated_memory_keeps_its_bytes():
    rule = REGISTRY.lookup("realloc")
    assert isinstance(rule, CallRule)
    assert (rule.effects.keeps, rule.effects.frees, rule.effects.result) == (0, frozenset({0}), Origin.FRESH)
