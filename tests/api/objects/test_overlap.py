"""Arguments that share memory."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import irad
from irad.frontend.memory.references import References


@numba.njit
def bilinear(x, y):
    s = 0.0
    for i in range(x.size):
        s += x[i] * x[i] * y[i]
    return s


@numba.njit
def writes_first(x, y):
    """Reads y after x was written: with x is y the value is sum(8 x³), else sum(2 x y²)."""
    s = 0.0
    for i in range(x.size):
        x[i] = 2 * x[i]
        s += x[i] * y[i] * y[i]
    return s


@numba.njit
def three(x, y, z):
    for i in range(x.size):
        z[i] = x[i] * y[i]
    s = 0.0
    for i in range(x.size):
        s += x[i] + 3 * z[i]
    return s


def finite_differences(f, memory, views, step=1e-6):
    """The derivative with respect to each element of one block of memory."""
    found = np.zeros_like(memory)
    for i in range(memory.size):
        values = []
        for sign in (1, -1):
            moved = memory.copy()
            moved[i] += sign * step
            values.append(f(*views(moved)))
        found[i] = (values[0] - values[1]) / (2 * step)
    return found


def test_identical_arguments_that_are_only_read_have_partial_derivatives():
    x = np.arange(1.0, 5.0)
    dx, dy = irad.grad(bilinear, (0, 1))(x, x)
    np.testing.assert_array_equal(dx, 2 * x * x)
    np.testing.assert_array_equal(dy, x * x)


def test_dot_of_an_array_with_itself_has_partial_derivatives():
    @numba.njit
    def f(x, y):
        return np.dot(x, y)

    x = np.arange(1.0, 5.0)
    dx, dy = irad.grad(f, (0, 1))(x, x)
    np.testing.assert_array_equal(dx, x)
    np.testing.assert_array_equal(dy, x)
    np.testing.assert_array_equal(irad.grad(f)(x, x), x)


def test_identical_arguments_that_are_written_have_one_derivative():
    x = np.arange(1.0, 5.0)
    dx, dy = irad.grad(writes_first, (0, 1))(x.copy(), np.ones(4))
    np.testing.assert_array_equal(dx, 2 * np.ones(4))
    np.testing.assert_array_equal(dy, 4 * x)
    memory = x.copy()
    dx, dy = irad.grad(writes_first, (0, 1))(memory, memory)
    np.testing.assert_allclose(dx, 24 * x * x)
    np.testing.assert_array_equal(dx, dy)
    assert np.shares_memory(dx, dy)


def test_a_pullback_returns_overlapping_gradients_where_grad_does():
    memory = np.arange(1.0, 7.0)
    value, pullback = irad.vjp(writes_first, memory[:4].copy(), memory[2:])
    dx, dy = pullback(1.0)
    assert not np.shares_memory(dx, dy)
    expected = irad.grad(writes_first, (0, 1))(memory.copy()[:4], memory.copy()[2:])
    np.testing.assert_array_equal(dx, expected[0])

    before = memory.copy()
    value, pullback = irad.vjp(writes_first, memory[:4], memory[2:])
    (dx, dy), (ex, ey) = pullback(1.0), pullback(2.0)
    memory[:] = before
    found, expected = irad.value_and_grad(writes_first, (0, 1))(memory[:4], memory[2:])
    assert value == found
    for one, two, want in zip((dx, dy), (ex, ey), expected, strict=True):
        np.testing.assert_array_equal(one, want)
        np.testing.assert_array_equal(two, 2 * want)
    assert np.shares_memory(dx, dy)
    assert dy.ctypes.data - dx.ctypes.data == 16
    assert not np.shares_memory(dx, ex)


@pytest.mark.parametrize(
    "views",
    [
        lambda m: (m[0:4], m[2:6]),
        lambda m: (m[2:6], m[0:4]),
        lambda m: (m[0:4], m[4:8]),
        lambda m: (m[::2], m[::-2]),
        lambda m: (m[::-1], m),
    ],
)
def test_partial_overlap_with_writes(views):
    memory = np.linspace(1.0, 2.0, 8)
    expected = finite_differences(writes_first, memory, views)
    left, right = views(memory)
    dx, dy = irad.grad(writes_first, (0, 1))(left, right)
    shadow = np.full(8, np.nan)
    a, b = views(shadow)
    a[:] = dx
    np.testing.assert_array_equal(b[~np.isnan(b)], dy[~np.isnan(b)])
    b[:] = dy
    np.testing.assert_allclose(shadow[~np.isnan(shadow)], expected[~np.isnan(shadow)], rtol=1e-8)


def test_chain_of_three_that_overlap():
    memory = np.linspace(1.0, 2.0, 9)

    def views(m):
        return m[0:4], m[3:7], m[5:9]

    expected = finite_differences(three, memory, views)
    shadow = np.zeros(9)
    for view, gradient in zip(views(shadow), irad.grad(three, (0, 1, 2))(*views(memory)), strict=True):
        view[:] = gradient
    np.testing.assert_allclose(shadow, expected, rtol=1e-8, atol=1e-9)


def test_arrays_that_overlap_beside_arrays_that_do_not():
    left, right = np.linspace(1.0, 2.0, 5), np.linspace(2.0, 3.0, 5)

    @numba.njit
    def f(a, b, c, d):
        return writes_first(a, b) + writes_first(c, d)

    da, db, dc, dd = irad.grad(f, (0, 1, 2, 3))(left.copy(), left.copy(), right, right)
    assert not np.shares_memory(da, db)
    assert np.shares_memory(dc, dd)
    np.testing.assert_allclose(dc, 24 * np.linspace(2.0, 3.0, 5) ** 2)


@numba.njit
def of_any_sizes(x, y, z):
    for i in range(min(x.size, y.size)):
        x[i] = x[i] * y[i] + 0.5
    for i in range(z.size):
        z[i] = z[i] * (x[i % x.size] if x.size else 1.0) + np.sin(z[i])
    s = 0.0
    for values in (x, y, z):
        for i in range(values.size):
            s += values[i] * (i + 1.0)
    return s


def test_any_three_parts_of_an_array_empty_ones_too():
    random = np.random.default_rng(3)

    def parts(memory):
        return [memory[cut] for cut in cuts]

    for _ in range(40):
        memory = random.uniform(0.5, 1.5, 14)
        cuts = [slice(start, start + random.integers(0, 6)) for start in random.integers(0, 9, 3)]
        expected = parts(finite_differences(of_any_sizes, memory, parts))
        found = irad.grad(of_any_sizes, (0, 1, 2))(*parts(memory.copy()))
        of_pullback = irad.vjp(of_any_sizes, *parts(memory.copy()))[1](1.0)
        for mine, its, want in zip(found, of_pullback, expected, strict=True):
            np.testing.assert_allclose(mine, want, rtol=1e-7, atol=1e-8)
            np.testing.assert_array_equal(its, mine)


def test_constant_that_overlaps_a_written_argument_is_refused():
    memory = np.linspace(1.0, 2.0, 8)
    with pytest.raises(irad.SignatureError, match="shares memory"):
        irad.grad(writes_first)(memory[0:4], memory[2:6])
    with pytest.raises(irad.SignatureError, match="shares memory"):
        irad.grad(writes_first, 1)(memory[0:4], memory[2:6])
    np.testing.assert_array_equal(memory, np.linspace(1.0, 2.0, 8))


def test_constant_that_overlaps_is_fine_when_nothing_is_written():
    x = np.arange(1.0, 5.0)
    np.testing.assert_array_equal(irad.grad(bilinear)(x, x), 2 * x * x)
    np.testing.assert_array_equal(irad.grad(bilinear)(x[:2], x[1:3]), 2 * x[:2] * x[1:3])


def test_destinations_of_arguments_that_overlap():
    memory = np.arange(1.0, 5.0)
    out = np.empty(4), np.empty(4)
    irad.value_and_grad_into(writes_first, (0, 1))(out, memory, memory)
    np.testing.assert_allclose(out[0], 24 * np.arange(1.0, 5.0) ** 2)
    np.testing.assert_array_equal(out[0], out[1])


# --- shadows of the caller --------------------------------------------------------------------------------------------


def test_shadows_that_overlap_as_their_primals():
    memory, shadow = np.arange(1.0, 7.0), np.zeros(6)
    expected = finite_differences(writes_first, memory, lambda m: (m[0:4], m[2:6]))
    irad.autodiff(
        irad.Reverse,
        writes_first,
        irad.Duplicated(memory[0:4], shadow[0:4]),
        irad.Duplicated(memory[2:6], shadow[2:6]),
    )
    np.testing.assert_allclose(shadow, expected, rtol=1e-8)


def test_separate_shadows_of_written_arguments_that_overlap_are_refused():
    memory = np.arange(1.0, 7.0)
    with pytest.raises(irad.SignatureError, match="do not overlap in the same way"):
        irad.autodiff(
            irad.Reverse,
            writes_first,
            irad.Duplicated(memory[0:4], np.zeros(4)),
            irad.Duplicated(memory[2:6], np.zeros(4)),
        )
    np.testing.assert_array_equal(memory, np.arange(1.0, 7.0))


def test_separate_shadows_of_arguments_that_are_only_read_give_partial_derivatives():
    x, dx, dy = np.arange(1.0, 5.0), np.zeros(4), np.zeros(4)
    irad.autodiff(irad.Reverse, bilinear, irad.Duplicated(x, dx), irad.Duplicated(x, dy))
    np.testing.assert_array_equal(dx, 2 * x * x)
    np.testing.assert_array_equal(dy, x * x)


def test_one_shadow_for_two_arguments_is_refused():
    shadow = np.zeros(4)
    with pytest.raises(irad.SignatureError, match="share memory"):
        irad.autodiff(irad.Reverse, bilinear, irad.Duplicated(np.ones(4), shadow), irad.Duplicated(np.ones(4), shadow))


def test_all_checks_drop_references_in_one_place(monkeypatch):
    """What is refused for any two of many arrays ends in one block: else code grows with their number cubed."""
    emitted = []
    release = References.release

    def counted(self: References) -> None:
        emitted.append(self)
        release(self)

    @numba.njit
    def total(a, b, c, d):
        return a[0] * b[0] * c[0] * d[0]

    @numba.njit
    def product(a, b):
        return a[0] * b[0]

    monkeypatch.setattr(References, "release", counted)
    arrays = [np.full(2, 1.0 + i) for i in range(4)]
    shadows = [np.zeros(2) for _ in arrays]
    irad.autodiff(irad.Reverse, total, *map(irad.Duplicated, arrays, shadows))
    assert [shadow[0] for shadow in shadows] == [24.0, 12.0, 8.0, 6.0]
    places = len(emitted)
    irad.autodiff(irad.Reverse, product, *map(irad.Duplicated, arrays[:2], [np.zeros(2), np.zeros(2)]))
    assert len(emitted) == 2 * places, "as many places for two arrays as for four"
    for position in range(1, 4):
        given = [*shadows[:position], shadows[0], *shadows[position + 1 :]]
        with pytest.raises(irad.SignatureError, match="share memory"):
            irad.autodiff(irad.Reverse, total, *map(irad.Duplicated, arrays, given))
