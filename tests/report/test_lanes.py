"""Names in the bodies of parallel loops, and of functions with rules: those of the source."""

from __future__ import annotations

import math
import re

import numba
import numpy as np
import pytest

import irad
from irad.errors import UnsupportedError
from irad.report.html import payload
from irad.report.model import Report
from irad.rules import AugmentedReturn


@numba.njit(parallel=True)
def weighed(values, weights, cutoff):
    made = np.zeros(values.shape[0])
    for i in numba.prange(values.shape[0]):
        for j in range(values.shape[1]):
            if values[i, j] < cutoff:
                made[i] += values[i, j] * weights[j] * np.exp(-values[i, j] / cutoff)
    return made.sum()


@numba.njit
def clip(v):
    return math.tanh(v)


@irad.rules.augmented_primal(clip)
def clip_augmented(config, v):
    y = math.tanh(v.value)
    return AugmentedReturn(y, None, y)


@irad.rules.reverse(clip)
def clip_reverse(config, cotangent, tape, v):
    return cotangent * (1.0 - tape * tape)


@numba.njit
def clipped(x):
    total = 0.0
    for i in range(x.size):
        total += clip(x[i])
    return total


INTERNAL = re.compile(
    r"\b(array|extent|stride)\.\d|\bchunks\b|\bschedule\b|\blane\b|_ZN|gufunc|NRT_|_sched\b|picklebuf|excinfo|irad\."
)


@pytest.fixture(scope="module")
def lanes() -> Report:
    return irad.inspect(weighed, np.ones((3, 2)), np.ones(2), 2.0).report


def words_of(report: Report) -> set[str]:
    found = {each.variant for each in report.functions} | {each.name for each in report.functions}
    for function in report.functions:
        for value in function.values:
            found |= {value.source, value.operation, value.activity, value.plan, *value.memory}
        for entry in function.tape:
            found |= {entry.name, entry.why}
    return found


def test_nothing_in_a_parallel_loop_has_an_internal_name(lanes: Report):
    assert [text for text in words_of(lanes) if INTERNAL.search(text)] == []


def test_a_parallel_loop_names_what_the_function_around_passes(lanes: Report):
    [loop] = [each for each in lanes.functions if "values" in each.variant and each.is_lane]
    for name in ("values", "weights", "cutoff"):
        assert name in loop.variant
    sources = {value.source for value in loop.values}
    assert {"values", "weights", "the bounds of the threads' shares"} <= sources
    assert any(source.startswith("element of values") for source in sources)
    assert not any("element of cutoff" in source for source in sources)
    assert loop.place is not None
    assert (loop.place.file, loop.name) == (__file__, f"parallel loop of line {loop.place.line}")


def test_a_parallel_loop_is_called_by_the_function_around_it(lanes: Report):
    loops = {number for number, each in enumerate(lanes.functions) if each.is_lane}
    assert loops
    assert set(lanes.functions[0].calls) == loops


def test_the_card_of_the_call_graph_has_names_that_people_read(lanes: Report):
    for function in payload.head(lanes)["functions"]:
        assert not any("_ZN" in name for name in function["pair"])
        assert function["symbol"].startswith(("_ZN", "__gufunc__"))


def test_a_function_with_a_rule_has_its_name():
    inspection = irad.inspect(clipped, np.ones(3))
    assert any("clip" in value.operation for each in inspection.report.functions for value in each.values)
    assert [text for text in words_of(inspection.report) if INTERNAL.search(text)] == []
    assert "@clip" in irad.inspect(clipped, np.ones(3)).stage("prepared")  # without a derivative
    for stage in ("prepared", "adjoint"):
        assert "irad.ruled" not in inspection.stage(stage)
        assert "@clip" in inspection.stage(stage)


def test_what_has_no_python_form_is_named():
    with pytest.raises(UnsupportedError, match=r"^a parallel loop cannot be written as Python"):
        irad.inspect(weighed, np.ones((3, 2)), np.ones(2), 2.0).adjoint_as_python()
    with pytest.raises(UnsupportedError, match=r"^a call of clip, which was not inlined, cannot be written as Python"):
        irad.inspect(clipped, np.ones(3)).adjoint_as_python()
