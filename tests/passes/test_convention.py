"""Hosts: passes name none, and do for each what its convention says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irad.errors import NoRuleError
from irad.frontend.numba.convention import NUMBA
from irad.ir.instructions import Call
from irad.ir.module import Function
from irad.ir.values import ConstantInt
from irad.passes.convention import HostConvention
from irad.passes.mode import AUGMENTED
from irad.raw.program import C
from tests.passes.analysis.test_deferrable_frees import TEMPORARY
from tests.passes.augmented.test_tape import RAGGED
from tests.passes.parallel.loops import ARRAYS, STENCIL
from tests.passes.units import block, generated

ROOT = Path(__file__).parents[2]
SOURCES = [*sorted((ROOT / "passes").rglob("*.py")), ROOT / "irad" / "driver.py"]
PREFIXES = re.compile(r"NRT_|numba_\w|__numba|\bPy[A-Z]\w*_|_sched\b|retptr|excinfo|(?i:meminfo)|\bgil\b")


def names(value: Any) -> Iterator[str]:
    """All text in a convention."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from names(each)
    elif is_dataclass(value):
        for each in fields(value):
            yield from names(getattr(value, each.name))


def called(function: Function) -> set[str]:
    """The names of what a function calls."""
    return {str(i.callee.name) for i in function.instructions() if isinstance(i, Call)}


def test_no_pass_names_a_symbol_of_numba():
    symbols = sorted(set(names(NUMBA)))
    assert {"NRT_decref", "PyEval_SaveThread", "numba_parallel_for", "get_thread_id"} < set(symbols)
    found = {}
    for path in SOURCES:
        text = path.read_text()
        words = {symbol for symbol in symbols if symbol in text} | set(PREFIXES.findall(text))
        if words:
            found[path.name] = words
    assert found == {}


@pytest.mark.parametrize("host", [NUMBA, C])
def test_a_status_for_no_memory_is_an_error(host: HostConvention):
    assert 0 in host.returned
    assert not {host.exhausted, host.no_derivative} & set(host.returned)
    assert host.exhausted != host.no_derivative


@pytest.mark.parametrize("host", [NUMBA, C, replace(C, exhausted=77)])
def test_the_status_where_memory_runs_out(host: HostConvention):
    [made] = generated(RAGGED, "scsc", host=host)
    leave = block(made.pair[AUGMENTED], "exhausted").terminator
    assert leave is not None
    [status] = leave.operands
    assert isinstance(status, ConstantInt)
    assert status.value == host.exhausted


def test_only_a_host_with_references_has_them_dropped_later():
    [numba], [c] = (generated(TEMPORARY, "ssc", host=host) for host in (NUMBA, C))
    assert "irad.arena_defer" in called(numba.pair[AUGMENTED])
    assert "irad.arena_defer" not in called(c.pair[AUGMENTED])
    assert "NRT_decref" in called(c.pair[AUGMENTED])


def test_only_a_host_with_parallel_loops_has_them_run_in_lanes():
    kernels = (("kernel", ARRAYS),)
    assert len(generated(STENCIL, "scss", kernels=kernels)) > 1
    with pytest.raises(NoRuleError):
        generated(STENCIL, "scss", host=C, kernels=kernels)
