"""The report of the tape, and its limit."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from numba import njit, prange

import irad
from tests.debug.lines import line_of


def limited(count):
    return irad.Options(max_tape_bytes=count)


@njit
def two_values(x):
    total = 0.0
    for i in range(x.size):
        y = np.exp(x[i])  # saved
        total += np.sin(y) * x[i]
    return total


@njit
def uncounted(x):
    y, n = x, 0
    while y < 1000.0:
        y = np.exp(np.sin(y)) + y  # saved
        n += 1
    return y


@njit
def recursive(x, n):
    if n == 0:
        return x
    return np.exp(np.sin(recursive(x, n - 1)))  # saved


@njit(parallel=True)
def parallel(x):
    total = 0.0
    for i in prange(x.size):
        total += np.sin(np.exp(x[i]))  # saved
    return total


def bytes_at(report, function, text):
    return sum(count for place, count in report.lines() if place.line == line_of(function, text))


def test_slabs_are_measured():
    for size in (10, 1000):
        report = irad.tape_report(two_values, np.ones(size), argnums=0)
        assert report.function == "two_values"
        slabs = [use for use in report.uses if use.storage == "slab"]
        assert {use.slots for use in slabs} == {size}
        assert bytes_at(report, two_values, "# saved") >= 8 * size
        assert report.total == sum(use.bytes for use in report.uses)
        assert report.total < 32 * size + 200


def test_linear_functions_save_nothing_per_element():
    @njit
    def linear(x):
        total = 0.0
        for i in range(x.size):
            total += 3.0 * x[i]
        return total

    sizes = [irad.tape_report(linear, np.ones(n), argnums=0).total for n in (10, 10_000)]
    assert sizes[0] == sizes[1]


def test_records_frames_and_lanes_are_measured():
    report = irad.tape_report(uncounted, 1.0, argnums=0)
    assert any(use.storage == "record" and use.slots > 100 for use in report.uses)
    one, three = (irad.tape_report(recursive, 0.5, n, argnums=0).total for n in (1, 3))
    assert three > one
    spread = irad.tape_report(parallel, np.ones(5000), argnums=0)
    assert bytes_at(spread, parallel, "# saved") >= 8 * 5000


def test_a_pullback_saves_its_argument():
    x = np.ones(500)
    assert irad.tape_report(two_values, x).total >= irad.tape_report(two_values, x, argnums=0).total + 8 * x.size


def test_the_report_as_text():
    text = str(irad.tape_report(two_values, np.ones(1000), argnums=0))
    assert text.startswith("tape of two_values in irad.grad: ")
    assert any("y = np.exp(x[i])  # saved" in line for line in text.splitlines()[1:3])
    assert f"{__file__}:{line_of(two_values, '# saved')}" in text


@njit
def long_line(x):
    total = 0.0
    for i in range(x.size):
        total += np.sin(x[i]) * np.exp(-x[i] * x[i]) + 0.25 * np.cos(x[i]) ** 3 - np.log1p(x[i]) / (1.0 + np.exp(x[i]))
    return total


def test_the_report_fits_80_columns_and_says_what_it_measures():
    text = str(irad.tape_report(long_line, np.ones(10)))
    assert text.startswith("tape of long_line in irad.vjp: ")
    assert all(len(line) <= 80 or line.endswith(f"{__file__}:{line.rpartition(':')[2]}") for line in text.splitlines())
    source = "total += np.sin(x[i]) * np.exp(-x[i] * x[i]) + 0.25 * np.cos(x[i]) ** 3 - np.log1p(x[i]) / (1.0 + np.exp("
    assert source in " ".join(text.split())


@pytest.mark.parametrize("function", [two_values, parallel])
def test_the_limit(function):
    x = np.linspace(0.1, 1.0, 4000)
    total = irad.tape_report(function, x, argnums=0).total
    fine = irad.grad(function, options=limited(2 * total))
    assert np.array_equal(fine(x), irad.grad(function)(x))
    tight = irad.grad(function, options=limited(total // 2))
    for _ in range(3):
        with pytest.raises(irad.TapeLimitError, match=f"max_tape_bytes is {total // 2} bytes") as caught:
            tight(x)
        assert isinstance(caught.value, MemoryError)
        assert caught.value.location.line == line_of(function, "# saved")
        assert "# saved" in str(caught.value)
        assert "irad.checkpoint_loop(step, n, snapshots)" in caught.value.remedy
        assert np.array_equal(tight(x[:50]), irad.grad(function)(x[:50]))  # the next call is not the worse for it


def test_the_limit_of_loops_that_are_not_counted_and_of_recursions():
    for function, args in ((uncounted, (1.0,)), (recursive, (0.5, 200))):
        with pytest.raises(irad.TapeLimitError) as caught:
            irad.grad(function, options=limited(2000))(*args)
        assert caught.value.location.line == line_of(function, "# saved")
        assert ("irad.checkpoint_while(" in caught.value.remedy) == (function is uncounted)
        assert irad.grad(function, options=limited(1 << 24))(*args) == irad.grad(function)(*args)


def test_a_limit_below_the_frame():
    with pytest.raises(irad.TapeLimitError, match="max_tape_bytes is 0 bytes") as caught:
        irad.grad(two_values, options=limited(0))(np.ones(3))
    assert "checkpoint" not in caught.value.remedy  # there is no loop whose tape is too long


_limited = irad.grad(two_values, options=limited(1000))


@njit
def compiled_caller(x):
    return _limited(x)[0]


def test_compiled_callers():
    assert compiled_caller(np.ones(5)) == irad.grad(two_values)(np.ones(5))[0]
    with pytest.raises(MemoryError, match="max_tape_bytes is 1000 bytes"):
        compiled_caller(np.ones(1000))


@njit
def of_a_pointer(f, x):
    return f(x) * x[0]


def test_functions_called_through_pointers_count():
    chosen = irad.grad(of_a_pointer, 1, options=limited(2000))
    with pytest.raises(irad.TapeLimitError):
        chosen(two_values, np.ones(4000))


def test_vjp():
    x = np.ones(1000)
    with pytest.raises(irad.TapeLimitError):
        irad.vjp(two_values, x, options=limited(1000))
    value, pullback = irad.vjp(two_values, x, options=limited(100_000))
    assert value == two_values(x)
    assert np.array_equal(pullback(1.0)[0], irad.grad(two_values)(x))


def test_the_environment_sets_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRAD_MAX_TAPE_BYTES", "1000")

    @njit
    def f(x):
        return np.sin(np.exp(x)).sum()

    with pytest.raises(irad.TapeLimitError):
        irad.grad(f)(np.ones(1000))
    gc.collect()
