"""`irad.check` of kernels: all refusals at once, and the plan, against the code that was made."""

from __future__ import annotations

import re

import numba
import numpy as np
import pytest
from numba import cuda, float64, int64

import irad
import irad.cuda
from irad import SignatureError
from tests.cuda.kernels import KERNELS
from tests.cuda.ptx.tools import needs_libdevice

ARRAY = float64[::1]


@cuda.jit
def mixed(x, table, rate, y, n):
    tile = cuda.shared.array(32, numba.float64)
    own = cuda.local.array(4, numba.float64)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if i >= n:
        return
    tile[t] = x[i] * x[i]
    cuda.syncthreads()
    for j in range(4):
        own[j] = tile[(t + j) % 32] * rate
    v = 0.0
    for j in range(4):
        v += own[j] * own[j] * table[0]
    y[i] = v


FIRST = mixed.py_func.__code__.co_firstlineno
TYPES = ARRAY, ARRAY, float64, ARRAY, int64


@pytest.fixture(scope="module")
def additions():
    return {a.memory: a for a in irad.inspect(mixed, *TYPES)._collector.additions}


def test_each_array_has_its_way(additions):
    assert additions["x"].how == "plainly"
    assert "no two threads" in additions["x"].why
    assert additions["x"].lines == (FIRST + 8,)
    assert additions["tile"].how == "by atomic operations"
    assert additions["tile"].lines == (FIRST + 11,)
    assert additions["table"].how == "by one atomic operation for each block"
    assert additions["rate"].lines == ()
    assert "y" not in additions, "its cotangents are only read"


def test_the_words_are_what_the_code_does():
    """Of kernels whose arrays all have the same way: what the adjoint holds."""
    for name, atomics in (("elementwise", False), ("gather_scatter", True)):
        case = KERNELS[name]
        inspection = irad.inspect(cuda.jit(case.kernel), *case.types())
        reverse = inspection.adjoint.partition(".reverse(")[2]
        says = any(each.how == "by atomic operations" for each in inspection._collector.additions)
        assert says == atomics == bool(re.search(r"atomicrmw fadd", reverse)), name


def test_a_report_has_the_plan():
    report = irad.check(mixed, *TYPES)
    assert report.supported
    assert report.positions == (0, 1, 2, 3)
    text = "\n".join(report.plan)
    assert "along 1 axis" in text
    assert "to the derivative of tile by atomic operations, since several threads may read the same element" in text
    assert f"where they do in the kernel (lines {FIRST + 9})" in text
    assert str(report).endswith(report.plan[-1])
    assert report.plan[0] in report._repr_html_()


@pytest.mark.filterwarnings("ignore:.*low occupancy")
def test_configurations_choose_axes():
    two = irad.check(irad.cuda.grad(mixed)[(1, 2), 32], *TYPES)
    assert "along 2 axes" in two.plan[0]
    assert "to the derivative of x by atomic operations" in "\n".join(two.plan), "threads of both rows read it"
    assert irad.check(mixed[1, 32], *TYPES).plan == irad.check(mixed, *TYPES).plan


@needs_libdevice
def test_the_overview_says_it():
    assert "to the derivative of table by one atomic operation" in str(irad.inspect(mixed, *TYPES))


@cuda.jit
def refused(x, y):
    i = cuda.grid(1)
    cuda.threadfence()
    cuda.atomic.max(y, 0, x[i])
    y[1] = cuda.atomic.add(y, 2, x[i])


def test_all_problems_at_once():
    report = irad.check(refused, ARRAY, ARRAY)
    assert not report.supported
    first = refused.py_func.__code__.co_firstlineno
    assert [each.location.line for each in report.problems] == [first + 3, first + 4, first + 5]
    assert all(each.remedy and each.location.file == __file__ for each in report.problems)
    for word in ("threadfence", "atomic.max", "atomic.add"):
        assert any(word in each.problem for each in report.problems)
    with pytest.raises(irad.UnsupportedError, match=r"(?s)threadfence.*atomic\.max"):
        irad.inspect(refused, ARRAY, ARRAY).report  # noqa: B018


def test_arguments():
    with pytest.raises(SignatureError, match="takes 2 arguments, and 1 were given"):
        irad.check(refused, ARRAY)
    [problem] = irad.check(refused, {}, ARRAY).problems
    assert "x is a dict" in problem.problem
    [problem] = irad.check(refused, int64[::1], int64[::1]).problems
    assert "no derivative with respect to refused" in problem.problem
    [problem] = irad.check(mixed, np.zeros(3), np.zeros(1), 2.0, np.zeros(3), 3, argnames="n").problems
    assert "no derivative with respect to n" in problem.problem
