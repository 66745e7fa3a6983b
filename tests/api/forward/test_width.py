"""Forward mode in several directions at once: each lane against a pushforward of its own, to the bit."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest
from numba import njit, prange
from numba.core import config
from numba.typed import List

import irad
from irad.api.forward import batched_pushforward, with_direction

X = np.array([1.0, 2.0, 3.0, 4.0])


@njit
def power(x, n):
    if n == 0:
        return x * 0.0 + 1.0
    return x * power(x, n - 1)


def directions(count: int, size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(count)
    return [rng.standard_normal(size) for _ in range(count)]


def assert_lanes(f: Any, argnums: Any, tangents: tuple[Any, ...], *args: Any) -> None:
    """Each lane is what a pushforward finds in its direction."""
    value, found = batched_pushforward(f, argnums, len(tangents))(tangents, *args)
    one = irad.pushforward(f, argnums)
    assert len(found) == len(tangents)
    for tangent, lane in zip(tangents, found, strict=True):
        expected_value, expected = one(
            *with_direction(args, (argnums,) if isinstance(argnums, int) else argnums, tangent)
        )
        np.testing.assert_equal((value, lane), (expected_value, expected))


def test_numbers_and_arrays_through_calls_and_loops():
    @njit
    def several(x, scale):
        y = np.zeros_like(x)
        total = 0.0
        for i in range(1, x.size):
            y[i] = np.sin(x[i]) * x[i - 1] / scale
            total += power(y[i], 3) * np.hypot(x[i], scale)
        return total, (y, 3), scale**2

    tangents = tuple((dx, float(k)) for k, dx in enumerate(directions(3, 4)))
    assert_lanes(several, (0, 1), tangents, X, 2.0)
    assert_lanes(several, 0, tuple(directions(2, 4)), X, 2.0)


def test_lanes_of_parallel_loops():
    @njit(parallel=True)
    def spread(x):
        y = np.empty_like(x)
        total = 0.0
        for i in prange(x.size):
            y[i] = np.exp(x[i]) * x[0]
            total += y[i] * x[i]
        return total, y

    tangents = tuple(directions(2, 4))
    _, lanes = batched_pushforward(spread, 0, 2)(tangents, X)
    for dx, (total, y) in zip(tangents, lanes, strict=True):
        dy = np.exp(X) * (X[0] * dx + dx[0])
        np.testing.assert_allclose(y, dy, rtol=1e-14)
        assert total == pytest.approx(dy @ X + X[0] * np.exp(X) @ dx, rel=1e-13)


@pytest.mark.filterwarnings("ignore:.*First-class function type feature is experimental")
def test_pointers_that_are_stored_and_called():
    @njit("float64(float64)")
    def double(x):
        return 2.0 * x

    @njit("float64(float64)")
    def square(x):
        return x * x

    @njit
    def through(x, which):
        parts = List()
        for i in range(3):
            parts.append(x[i:] * x[0])
        functions = (double, square)
        total = 0.0
        for part in parts:
            total += functions[which](part.sum())
        parts[0][1] = 0.0
        return total + parts[0].sum(), parts[1]

    assert_lanes(through, 0, tuple(directions(2, 4)), X, 1)


def test_memory_of_all_lanes_is_given_back():
    @njit
    def temporaries(x, count):
        y = x
        for i in range(count):
            y = y * 0.5 + x * float(i)
        return y

    x = np.linspace(0.0, 1.0, 10_000)
    push = batched_pushforward(temporaries, 0, 3)
    push((x, x, x), x, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, lanes = push((x, x, x), x, 1000)  # 160 MB of temporaries, and three times as much of tangents
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB
    for lane in lanes:
        np.testing.assert_allclose(lane, temporaries(x, 1000), rtol=1e-14)


def test_arrays_in_place_carry_the_tangents_of_all_directions():
    @njit
    def cumulate(x):
        for i in range(1, x.size):
            x[i] *= x[i - 1]

    x, (first, second) = X.copy(), directions(2, 4)
    one, expected = X.copy(), second.copy()
    irad.jvp(cumulate, (one,), (expected,))
    push = batched_pushforward(cumulate, 0, 2)
    push((first, second), x)
    np.testing.assert_array_equal((x, second), (one, expected))
    with pytest.raises(irad.SignatureError, match="in one direction shares memory with that of argument 0"):
        push((first, first), x)


def test_directions_that_do_not_fit():
    @njit
    def total(x):
        return x.sum()

    push = batched_pushforward(total, 0, 2)
    with pytest.raises(irad.SignatureError, match="in 2 directions are a UniTuple"):
        push((X, X, X), X)
    with pytest.raises(irad.SignatureError, match="different shape"):
        push((X, np.ones(3)), X)
    assert push((X, X), X) == (10.0, (10.0, 10.0))  # what is only read may be the same


def test_inside_compiled_code():
    @njit
    def norm(x):
        return np.sqrt((x * x).sum())

    push = batched_pushforward(norm, 0, 2)

    @njit
    def slopes(x):
        return push((np.ones_like(x), x), x)

    value, (first, second) = slopes(X)
    assert (first, second) == pytest.approx((10.0 / value, value), rel=1e-15)


@njit
def scaled(x, out, factor):
    out[:] = x * x * factor
    return factor * x[0]


def batch(call: Any, x: np.ndarray) -> tuple[Any, list[np.ndarray]]:
    tangents, shadows = directions(2, 4), [np.ones(4), np.ones(4)]
    return call(x, (tangents[0], tangents[1]), np.empty(4), (shadows[0], shadows[1])), shadows


def from_python(x, tangents, out, shadows):
    read, written = irad.BatchDuplicated(x, tangents), irad.BatchDuplicatedNoNeed(out, shadows)
    both = irad.autodiff(irad.ForwardWithPrimal, scaled, read, written, irad.BatchDuplicated(3.0, (0.0, 1.0)))
    one = irad.autodiff(irad.Forward, power, irad.BatchDuplicated(3.0, (1.0,)), irad.Const(2))
    return both, one


@pytest.mark.parametrize("call", [from_python, njit(from_python)], ids=["Python", "compiled"])
def test_batches(call):
    ((slopes, value), one), shadows = batch(call, X)
    expected = [6.0 * X * dx + rate * X**2 for dx, rate in zip(directions(2, 4), (0.0, 1.0), strict=True)]
    np.testing.assert_allclose(shadows, expected, rtol=1e-15)
    assert slopes == pytest.approx([3.0 * dx[0] + rate for dx, rate in zip(directions(2, 4), (0.0, 1.0), strict=True)])
    assert (value, one) == (3.0, (6.0,))


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ([irad.BatchDuplicated(X, X), irad.Const(X), irad.Const(2.0)], "not a nonempty tuple"),
        ([irad.BatchDuplicated(X, (X,)), irad.Duplicated(X, X), irad.Const(2.0)], "in several directions, others in"),
        ([irad.BatchDuplicated(X, (X,)), irad.Active(2.0), irad.Const(2.0)], "Active, which is for reverse mode"),
        (
            [*[irad.BatchDuplicated(X, (X, X))] * 2, irad.BatchDuplicated(1.0, (1.0,))],
            "tangents of argument 2 .factor. of scaled in 2 directions are",
        ),
    ],
)
def test_batches_that_do_not_fit(annotations, message):
    with pytest.raises(irad.SignatureError, match=message):
        irad.autodiff(irad.Forward, scaled, *annotations)


def test_tuples_of_numbers_and_arrays():
    @njit
    def product(model):
        return model[0] * model[1].sum()

    model = irad.BatchMixedDuplicated((2.0, X), ((1.0, 0.0 * X), (0.0, X)))
    assert irad.autodiff(irad.Forward, product, model) == (10.0, 20.0)


def test_lanes_of_scalar_code_are_vectors():
    @njit
    def horner(x, c):
        value = 0.0
        for each in c:
            value = value * x + each
        return value

    push = batched_pushforward(horner, 0, 4)
    before = config.SLP_VECTORIZE
    value, slopes = push(tuple(float(k) for k in range(4)), 3.0, X)
    assert value == horner(3.0, X)
    assert slopes == pytest.approx([k * (3 * 9.0 + 4 * 3.0 + 3.0) for k in range(4)], rel=1e-14)
    assert any("<4 x double>" in text for text in push.inspect_llvm().values())
    assert config.SLP_VECTORIZE == before


def test_directions_may_share_the_tangents_of_what_is_only_read():
    ones, first, second = np.ones(4), np.zeros(4), np.zeros(4)
    shared = irad.BatchDuplicated(X, (ones, ones))
    both = irad.autodiff(
        irad.ForwardWithPrimal,
        scaled,
        shared,
        irad.BatchDuplicatedNoNeed(np.empty(4), (first, second)),
        irad.BatchDuplicated(3.0, (0.0, 1.0)),
    )
    assert both == ((3.0, 4.0), 3.0)
    np.testing.assert_array_equal((first, second), (6.0 * X, 6.0 * X + X**2))
    with pytest.raises(irad.SignatureError, match=r"tangent of argument 1 \(out\) in one direction shares memory"):
        irad.autodiff(
            irad.ForwardWithPrimal,
            scaled,
            shared,
            irad.BatchDuplicatedNoNeed(np.empty(4), (first, first)),
            irad.BatchDuplicated(3.0, (0.0, 1.0)),
        )


def test_rules_with_working_memory():
    @njit
    def solution(x):
        return np.linalg.solve(np.diag(x) + 1.0, x)

    assert_lanes(solution, 0, tuple(directions(2, 4)), X)
