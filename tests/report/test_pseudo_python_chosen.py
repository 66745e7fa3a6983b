"""Variables that are one array or another, in the adjoint as Python: run under both plans, and read.

PYTEST_DONT_REWRITE: Numba cannot compile assert statements rewritten by pytest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from irad.errors import UnsupportedError
from tests.report.pseudo_python import assert_as_compiled, python, run
from tests.tools.catalogue import Case, Catalogue

VECTOR = np.array([0.5, -0.3, 1.2, 0.9, -1.1])
MATRIX = np.array([[0.5, 1.5, -0.7], [0.2, -1.3, 0.8]])

PROGRAMS = Catalogue()


@PROGRAMS.at(VECTOR, VECTOR[:2].copy(), True)
@PROGRAMS.at(VECTOR, VECTOR[:2].copy(), False)
@PROGRAMS.at(VECTOR[:0], VECTOR[:0], False)
@PROGRAMS.at(VECTOR.astype(np.float32), VECTOR[:3].astype(np.float32), True)
@njit
def either(x, y, flag):
    w = x if flag else y
    s = 0.0
    for i in range(w.size):
        s += w[i] ** 2
    return s


@PROGRAMS.at(VECTOR, 3)
@PROGRAMS.at(VECTOR, 0)
@PROGRAMS.at(VECTOR[:2], 4)
@PROGRAMS.at(VECTOR[:0], 2)
@PROGRAMS.at(VECTOR.astype(np.float32), 2)
@njit
def time_steps(x, n):
    a = x.copy()
    b = np.zeros_like(x)
    for _ in range(n):
        for i in range(1, x.size - 1):
            b[i] = a[i] + 0.1 * (a[i - 1] - 2.0 * a[i] + a[i + 1]) ** 2
        a, b = b, a
    s = 0.0
    for i in range(x.size):
        s += a[i] ** 2
    return s


@PROGRAMS.at(MATRIX, MATRIX * 2.0, 3)
@PROGRAMS.at(MATRIX, MATRIX[::-1].copy(), 0)
@njit
def swapped_matrices(u, v, n):
    for _ in range(n):
        for i in range(u.shape[0]):
            for j in range(u.shape[1]):
                v[i, j] += u[i, j] ** 2 * v[i, j]
        u, v = v, u
    return np.sum(u * v)


@PROGRAMS.at(VECTOR, 30.0)
@PROGRAMS.at(VECTOR, 0.0)
@njit
def swapped_until(x, limit):
    a, b = x.copy(), np.ones(x.size)
    s = 1.0
    while s < limit:
        s = 0.0
        for i in range(x.size):
            b[i] = 1.5 * a[i] + 0.1 * b[i] * a[i]
            s += b[i] * b[i]
        a, b = b, a
    return s + a[0] * b[1]


@PROGRAMS.at(VECTOR)
@PROGRAMS.at(VECTOR[:2])
@PROGRAMS.at(VECTOR[:1])
@PROGRAMS.at(VECTOR[:0])
@njit
def shifted_in_place(x):
    x[1:] = x[:-1]
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2 * (i + 1)
    return s


@PROGRAMS.at(VECTOR)
@PROGRAMS.at(VECTOR[:1])
@njit
def shifted_back_in_place(x):
    x[:-1] = x[1:]
    return np.sum(x * x * x[0])


@PROGRAMS.at(VECTOR, 1.5)
@PROGRAMS.at(VECTOR[:1], 1.5)
@njit
def slice_of_expression(x, k):
    a = x * 2.0
    a[1:] = x[:-1] * k
    s = 0.0
    for i in range(a.size):
        s += a[i] ** 2
    return s


@PROGRAMS.at(MATRIX, 1.5)
@PROGRAMS.at(MATRIX[:, :1].copy(), 1.5)
@PROGRAMS.at(MATRIX[:0], 1.5)
@PROGRAMS.at(MATRIX[:, :0].copy(), 1.5)
@PROGRAMS.at(MATRIX.astype(np.float32), np.float32(1.5))
@njit
def rows(x, k):
    out = np.empty(x.shape)
    for i in range(x.shape[0]):
        out[i, :] = x[i, :] * k
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += out[i, j] ** 2
    return s


@PROGRAMS.at(MATRIX)
@njit
def rows_of_itself(x):
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1]
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s += x[i, j] ** 2 * (i + 1)
    return s


@PROGRAMS.at(VECTOR, True)
@PROGRAMS.at(VECTOR, False)
@njit
def written_through_another_name(x, flag):
    t = x.copy()
    w = t if flag else x
    before = t[0]
    w[0] = 2.0 * x[1]
    return before * t[0] + x[0] * w[1]


@PROGRAMS.at(VECTOR, 3)
@PROGRAMS.at(VECTOR, 0)
@njit
def part_of_part(x, n):
    w = x
    s = 0.0
    for _ in range(n):
        s += w[0] * w[1]
        w = w[1:]
    return s * w[0]


@PROGRAMS.at(VECTOR, np.array([0, 2, 1, 0]))
@njit
def one_of_three(x, which):
    y, z = x * x, np.ones(x.size)
    s = 0.0
    for i in range(which.size):
        w = x
        if which[i] == 1:
            w = y
        elif which[i] == 2:
            w = z
        w[i] += s * w[i + 1]
        s += w[i] * w[0]
    return s + z[1] * y[2]


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_it_agrees_with_the_compiled_gradient(case: Case, plan: str):
    assert_as_compiled(case.function, case.args, plan)


def test_the_same_array_under_both_names():
    x = VECTOR.copy()
    text = python(either, (x, x, True), (0, 1))
    value, (by_x, by_y) = run(text, (x, x, False))
    np.testing.assert_allclose((value, *by_x, *by_y), (np.sum(x * x), *np.zeros(5), *(2.0 * x)), rtol=1e-12)


def test_a_choice_and_its_shadow_are_assignments_of_names():
    lines = _lines(either, (VECTOR, VECTOR, True))
    assert "w = y if not flag else x" in lines
    assert "w_bar = y_bar if not flag else x_bar" in lines


def test_a_swap_is_one_of_names_and_one_of_shadows():
    lines = _lines(time_steps, (VECTOR, 3))
    assert "b_2, a_2 = (a_2, b_2)" in lines
    assert "b_2_bar, a_2_bar = (a_2_bar, b_2_bar)" in lines


def test_a_slice_that_may_overlap_is_read_from_a_copy():
    lines = _lines(shifted_in_place, (VECTOR,))
    assert any(line.startswith("source = temporary") for line in lines)
    assert any(line.startswith("source = x[") for line in lines)
    assert any(line.startswith("source_bar = x_bar[") for line in lines)


def test_the_exact_form_raises_at_indices_in_front_of_a_part():
    helpers = python(part_of_part, (VECTOR, 3), (0,)).namespace()
    assert helpers["natural"](2) == 2
    with pytest.raises(IndexError, match="-1 is in front"):
        helpers["natural"](-1)
    assert helpers["whole_items"](24, 8) == 3
    with pytest.raises(IndexError, match="12 bytes are not a whole number of items"):
        helpers["whole_items"](12, 8)
    assert "natural(" not in python(part_of_part, (VECTOR, 3), (0,)).source


@njit
def returned_after_swaps(x, n):
    a, b = x * 2.0, x * x
    for _ in range(n):
        for i in range(x.size):
            b[i] += 0.5 * a[i] * a[i]
        a, b = b, a
    return a


def test_returning_one_of_them_is_refused():
    with pytest.raises(UnsupportedError, match="returning a variable that is one array or another"):
        python(returned_after_swaps, (VECTOR, 2), (0,))


@njit
def gaps(x, y, flag):
    w = x if flag else y
    return w[0] * w[1]


def test_arrays_with_gaps_are_refused_in_words_of_the_user():
    args = VECTOR[::2], MATRIX[:, 0], True
    with pytest.raises(UnsupportedError, match=r"\(. or .\), one of which has gaps") as caught:
        python(gaps, args, (0, 1))
    assert "w = x if flag else y" in str(caught.value)


def _lines(function: Any, args: tuple[Any, ...]) -> list[str]:
    positions = tuple(i for i, a in enumerate(args) if isinstance(a, np.ndarray))
    return [line.strip() for line in python(function, args, positions).source.splitlines()]
