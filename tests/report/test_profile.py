"""Shares of time by line, against programs of which it is known what takes long."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from numba import float64, njit, prange

import irad
from irad.data.copies import same_bits
from irad.errors import SignatureError
from irad.frontend.numba.reports import replaced_code
from irad.report.collect import Collector
from irad.report.measure import Profile, profile
from irad.report.model import Stage
from irad.report.subject import subject_of


def profile_of(f: Any, *args: Any, seconds: float = 0.3) -> tuple[Profile, Collector]:
    collector = Collector(subject_of(f, args), args)
    return profile(collector.subject, collector.source, args, seconds), collector


def line_of(f: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(f.py_func)
    [index] = [i for i, line in enumerate(lines) if text in line]
    return first + index


@njit(error_model="numpy")
def one_dear_line(x):
    total = 0.0
    for i in range(x.size):
        cheap = 2.0 * x[i]
        total += math.exp(math.sin(cheap) * math.cos(cheap)) * math.atan2(cheap, 3.0)  # dear
        total += cheap  # cheap
    return total


def test_the_dear_line_takes_most_of_the_time():
    found, collector = profile_of(one_dear_line, np.linspace(0.1, 2.0, 20_000))
    assert found.shares[line_of(one_dear_line, "# dear")] > 0.7
    assert found.shares.get(line_of(one_dear_line, "# cheap"), 0.0) < 0.2
    assert sum(found.shares.values()) <= 1.0 + 1e-12
    assert found.samples > 0
    report = found.applied_to(collector.report(()))
    assert {line.line: line.share_of_time for line in report.lines if line.share_of_time} == found.shares
    assert report.lines[0].share_of_time == 0.0


@njit
def left(x):
    total = 0.0
    for value in x:
        total += math.log(1.0 + value * value)  # left
    return total


@njit
def right(x):
    total = 0.0
    for value in x:
        total += math.log(2.0 + value * value)  # right
    return total


@njit(error_model="numpy")
def both(x, y):
    return left(x) * right(y)


def test_of_lines_with_the_same_work_the_one_that_runs_more_often_takes_more():
    """Only the order is certain: on a busy machine a few dozen looks are all there is to tell the shares from."""
    found, _ = profile_of(both, np.linspace(0.1, 2.0, 20_000), np.linspace(0.1, 2.0, 2_000))
    assert found.shares[line_of(left, "# left")] > found.shares.get(line_of(right, "# right"), 0.0)


@njit(error_model="numpy")
def in_place(x, y):
    for i in range(x.size):
        y[i] += math.exp(x[i])  # exp


@njit(error_model="numpy")
def vector(x):
    return np.exp(x * x)  # exp


@njit(error_model="numpy")
def mixed(x, n=3):
    return x[::2], np.exp(x), n  # exp


@pytest.mark.parametrize("f", [in_place, vector])
def test_functions_that_return_nothing_or_arrays(f: Any):
    args = (np.linspace(0.1, 1.0, 5_000),) * len(inspect.signature(f.py_func).parameters)
    found, _ = profile_of(f, *(a.copy() for a in args))
    assert found.shares[line_of(f, "# exp")] > 0.5


@pytest.mark.parametrize("step", [1, 2])
def test_tuples_with_parts_that_have_no_derivative_defaults_and_strides(step: int):
    x = np.linspace(0.1, 1.0, 5_000 * step)[::step]
    found, collector = profile_of(mixed, x)
    assert found.shares[line_of(mixed, "# exp")] > 0.5
    assert any(line.line is not None for line in collector.report((Stage.ASM,)).stages[Stage.ASM].lines)


@njit(error_model="numpy", parallel=True)
def threads(x):
    total = 0.0
    for i in prange(x.size):  # loop
        total += math.exp(math.sin(x[i]))  # body
    return total


def test_bodies_of_parallel_loops_have_their_lines():
    """Of the lines; where other programs want the processors, most of the time goes by in waiting for the threads."""
    found, _ = profile_of(threads, np.linspace(0.1, 1.0, 50_000))
    assert max(found.shares, key=lambda line: found.shares[line]) == line_of(threads, "# body"), found.shares


def test_value_and_grad_into():
    x = np.linspace(0.1, 1.0, 5_000)
    derivative = irad.value_and_grad_into(one_dear_line)
    found, _ = profile_of(derivative, x)
    assert found.shares[line_of(one_dear_line, "# dear")] > 0.5


def test_arguments_stay_as_they_are():
    x, y = np.linspace(0.1, 1.0, 1_000), np.zeros(1_000)
    profile_of(in_place, x, y, seconds=0.05)
    assert not y.any()
    assert same_bits(x, np.linspace(0.1, 1.0, 1_000))


def test_types_cannot_be_run():
    collector = Collector(subject_of(one_dear_line, (float64[::1],)), (float64[::1],))
    with pytest.raises(SignatureError, match="a profile needs arguments, not types"):
        profile(collector.subject, collector.source, collector.args)


@njit(error_model="numpy")
def scaled(x):
    total = 0.0
    for i in range(x.size):
        total += 3.5 * x[i]
    return total


def test_replaced_code_runs_while_it_is_there_and_not_afterwards():
    derivative = irad.grad(scaled)
    x = np.linspace(0.1, 1.0, 7)
    before = derivative(x)
    derivative(x.astype(np.float32))
    kinds = derivative.signatures[0]
    seen: list[str] = []

    def doubled(text: str) -> str:
        seen.append(text)
        assert "3.500000e+00" in text
        return text.replace("3.500000e+00", "7.000000e+00")

    with replaced_code(derivative, kinds, doubled):
        np.testing.assert_allclose(derivative(x), 2.0 * before, rtol=1e-15)
        assert derivative(x.astype(np.float32)).dtype == np.float32
    assert same_bits(derivative(x), before)
    assert len(seen) == 1


def test_marks_do_not_change_the_gradient():
    x = np.linspace(0.1, 2.0, 100)
    before = irad.grad(one_dear_line)(x)
    profile_of(one_dear_line, x, seconds=0.05)
    assert same_bits(irad.grad(one_dear_line)(x), before)


def test_both_sweeps_and_the_plain_function_are_timed():
    @irad.jit
    def two_sweeps(x):
        total = 0.0
        for i in range(x.size):
            total += np.exp(np.sin(x[i])) * x[i]  # the cosine and the products are of the reverse sweep
        return total

    collector = Collector(subject_of(two_sweeps, (np.ones(50_000),)), (np.ones(50_000),))
    found = collector.profile
    line = line_of(two_sweeps, "# the cosine")
    assert 0.0 < found.reverse[line] < found.shares[line]
    assert sum(found.reverse.values()) <= sum(found.shares.values())
    assert found.seconds > 0.0
    assert found.primal_seconds > 0.0
    report = found.applied_to(collector.report(()))
    assert report.times is not None
    assert report.times.ratio == found.seconds / found.primal_seconds
