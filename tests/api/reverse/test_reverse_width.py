"""Reverse mode with several cotangents at once: each lane against a run of its own, to the bit, and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit, prange
from numba.typed import List

import irad
from irad.testing.allocations import allocations
from irad.testing.gradients.trial import optimisation_limited

X = np.array([1.0, 2.0, 3.0, 4.0])
STRICT = irad.Options(strict=True)
PLANS = pytest.mark.parametrize("plan", ["default", "save_all"])


@njit
def power(x, n):
    if n == 0:
        return x * 0.0 + 1.0
    return x * power(x, n - 1)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def assert_lanes(f: Any, x: np.ndarray, seeds: Any, *numbers: float, plan: Any = "default") -> None:
    """An array and numbers: shadows and derivatives of each lane are those of a call with its seed alone."""
    options, width = irad.Options(strict=True, plan=plan), len(seeds)
    shadows, alone = [random(width, *x.shape), random(width, *x.shape)]
    active = [irad.Active(number) for number in numbers]
    batch = irad.BatchDuplicated(x.copy(), tuple(shadows))
    with optimisation_limited():
        found, value = irad.autodiff(irad.ReverseWithPrimal, f, batch, *active, seed=seeds, options=options)
    for lane, seed in enumerate(seeds):
        one = irad.Duplicated(x.copy(), alone[lane])
        with optimisation_limited():
            expected = irad.autodiff(irad.ReverseWithPrimal, f, one, *active, seed=seed, options=options)
        np.testing.assert_equal((tuple(each and each[lane] for each in found), value), expected)
    np.testing.assert_array_equal(shadows, alone)


@PLANS
def test_numbers_and_arrays_through_calls_and_loops(plan):
    @njit
    def several(x, scale):
        y = np.zeros_like(x)
        total = 0.0
        for i in range(1, x.size):
            y[i] = np.sin(x[i]) * x[i - 1] / scale
            total += power(y[i], 3) * np.hypot(x[i], scale)
        while total > 1.0:
            total *= 0.5 * scale / x[0]
        x[0] = total
        return total, (y, 3), scale**2

    seeds = tuple((1.0 - k, (random(4, seed=k), None), 0.5 * k) for k in range(3))
    assert_lanes(several, X, seeds, 2.0, plan=plan)
    assert_lanes(several, X[:1], tuple((1.0, (random(1, seed=k), None), 0.0) for k in range(2)), 2.0, plan=plan)


@pytest.mark.filterwarnings("ignore:.*First-class function type feature is experimental")
def test_pointers_that_are_stored_and_called():
    @njit("float64(float64)")
    def double(x):
        return 2.0 * x

    @njit("float64(float64)")
    def square(x):
        return x * x

    @njit
    def through(x):
        parts = List()
        for i in range(3):
            parts.append(x[i:] * x[0])
        functions = (double, square)
        total = 0.0
        for part in parts:
            total += functions[1](part.sum())
        parts[0][1] = 0.0
        return total + parts[0].sum(), parts[1]

    assert_lanes(through, X, tuple((1.0 + k, random(3, seed=k)) for k in range(2)))


def test_factorisations_share_what_they_keep():
    @njit
    def solution(x, shift):
        a = np.diag(x) + shift
        return np.linalg.solve(a, x) @ a, np.linalg.norm(x)

    assert_lanes(solution, X, tuple((random(4, seed=k), float(k)) for k in range(2)), 2.0)


def test_lanes_of_parallel_loops():
    @njit(parallel=True)
    def spread(x, weights):
        y = np.empty_like(x)
        total = 0.0
        for i in prange(x.size):
            y[i] = np.exp(x[i]) * x[0] + x[i - 1] * np.dot(weights, x)
            total += y[i] * x[i]
        return total, y

    x, weights = random(1000), random(1000, seed=1)
    seeds = tuple((float(k), random(1000, seed=k)) for k in range(3))
    shadows, dot = random(3, 2, 1000), weights @ x
    expected = shadows.copy()
    y = np.exp(x) * x[0] + np.roll(x, 1) * dot
    for (total, given), (by_x, by_weights) in zip(seeds, expected, strict=True):
        y_bar = given + total * x
        by_x += total * y + y_bar * np.exp(x) * x[0] + np.roll(y_bar * dot, -1) + weights * (y_bar @ np.roll(x, 1))
        by_x[0] += y_bar @ np.exp(x)
        by_weights += x * (y_bar @ np.roll(x, 1))
    both = (irad.BatchDuplicated(each, tuple(shadows[:, i])) for i, each in enumerate((x, weights)))
    irad.autodiff(irad.Reverse, spread, *both, seed=seeds)
    np.testing.assert_allclose(shadows, expected, rtol=1e-10, atol=1e-10)


def test_rows_of_a_jacobian():
    @njit
    def polar(p, scale):
        return np.array([p[0] * np.cos(p[1]), p[0] * np.sin(p[1])]) * scale

    p, shadows = np.array([2.0, 0.5]), np.zeros((2, 2))
    seeds = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    found = irad.autodiff(
        irad.Reverse, polar, irad.BatchDuplicatedNoNeed(p, tuple(shadows)), irad.Active(3.0), seed=seeds
    )
    (c, s) = np.cos(0.5), np.sin(0.5)
    np.testing.assert_allclose(shadows, 3.0 * np.array([[c, -2 * s], [s, 2 * c]]), rtol=1e-14)
    assert found == (None, pytest.approx((2 * c, 2 * s), rel=1e-14))


@njit
def cumulate(x, out, factor):
    for i in range(1, x.size):
        x[i] *= x[i - 1] * factor
        if x[i] > 1e3:
            raise ValueError("too large")
    out[:] += x


def from_python(x, x_shadows, out, out_shadows):
    read, written = irad.BatchDuplicated(x, x_shadows), irad.BatchDuplicatedNoNeed(out, out_shadows)
    return irad.autodiff(irad.Reverse, cumulate, read, written, irad.Active(1.5), seed=None)


@pytest.mark.parametrize("call", [from_python, njit(from_python)], ids=["Python", "compiled"])
def test_arrays_in_place_take_the_cotangents_of_all_directions(call):
    x_shadows, out_shadows = random(2, 4), random(2, 4, seed=1)
    alone = x_shadows.copy(), out_shadows.copy()
    x, out = X.copy(), np.ones(4)
    _, _, by_factor = call(x, (x_shadows[0], x_shadows[1]), out, (out_shadows[0], out_shadows[1]))
    for lane in range(2):
        one, other = X.copy(), np.ones(4)
        annotated = irad.Duplicated(one, alone[0][lane]), irad.DuplicatedNoNeed(other, alone[1][lane]), irad.Active(1.5)
        expected = irad.autodiff(irad.Reverse, cumulate, *annotated, seed=None, options=STRICT)
        assert by_factor[lane] == pytest.approx(expected[2], rel=1e-14)
        np.testing.assert_array_equal((x, out), (one, other))
    np.testing.assert_allclose((x_shadows, out_shadows), alone, rtol=1e-14)
    with pytest.raises(ValueError, match="too large"):
        call(1e3 * X, (x_shadows[0], x_shadows[1]), out, (out_shadows[0], out_shadows[1]))


def test_arguments_that_overlap():
    @njit
    def shifted(a, b):
        for i in range(a.size):
            b[i] = a[i] * b[i]
        return b.sum()

    buffer, shadows, alone = random(5), random(2, 5, seed=1), random(2, 5, seed=1)

    def views(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x[:4], x[1:]

    given = zip(views(buffer.copy()), zip(*map(views, shadows), strict=True), strict=True)
    irad.autodiff(irad.Reverse, shifted, *(irad.BatchDuplicated(*each) for each in given), seed=(1.0, -2.0))
    for lane, seed in enumerate((1.0, -2.0)):
        given = zip(views(buffer.copy()), views(alone[lane]), strict=True)
        irad.autodiff(irad.Reverse, shifted, *(irad.Duplicated(*each) for each in given), seed=seed)
    np.testing.assert_allclose(shadows, alone, rtol=1e-14)


def test_tuples_and_lists():
    @njit
    def scaled(model, items, x):
        scale, weights = model
        items.append(scale)
        return scale * weights.sum() * items[0] * items[-1] + x[0]

    shadows = tuple((0.0, np.zeros(2)) for _ in range(2))
    model = irad.BatchMixedDuplicated((3.0, np.array([1.0, 2.0])), shadows)
    x_shadows = np.zeros(1), np.ones(1)
    rest = irad.Active(List([2.0, 5.0])), irad.BatchDuplicated(np.ones(1), x_shadows)
    ((one, other), (items, others), nothing), value = irad.autodiff(
        irad.ReverseWithPrimal, scaled, model, *rest, seed=(1.0, 10.0)
    )
    assert (value, nothing, one[0], other[0]) == (55.0, None, 36.0, 360.0)
    assert one[1] is shadows[0][1]
    np.testing.assert_array_equal((one[1], other[1]), ((18.0, 18.0), (180.0, 180.0)))
    assert (list(items), list(others)) == ([27.0, 0.0], [270.0, 0.0])
    assert (*x_shadows[0], *x_shadows[1]) == (1.0, 11.0)


def test_single_precision_and_complex_numbers():
    @njit
    def mixed(x, z):
        return (x * x).sum() * np.abs(z) ** 2

    shadows = np.zeros((2, 4), np.float32)
    batch = irad.BatchDuplicated(X.astype(np.float32), tuple(shadows))
    found = irad.autodiff(irad.Reverse, mixed, batch, irad.Active(1.0 + 2.0j), seed=(1.0, 0.5))
    np.testing.assert_allclose(shadows, [10.0 * X, 5.0 * X], rtol=1e-6)
    np.testing.assert_allclose(found[1], [60.0 + 120.0j, 30.0 + 60.0j], rtol=1e-6)


def test_derivatives_of_batches():
    @njit
    def cubes(x):
        return (x * x * x).sum()

    @njit
    def outer(x):
        first, second = np.zeros_like(x), np.zeros_like(x)
        irad.autodiff(irad.Reverse, cubes, irad.BatchDuplicated(x, (first, second)), seed=(1.0, 2.0))
        return (first * second).sum()

    np.testing.assert_allclose(irad.grad(outer)(X), 72.0 * X**3, rtol=1e-14)


def test_a_tape_for_all_directions_is_measured_and_given_back():
    @njit
    def steps(model, items, x):
        scale, weights = model
        total = 0.0
        while total < 5.0:
            total += (np.sin(x) * weights).sum() ** 2 + 1.0
        if x[0] < 0.0:
            raise ValueError("negative")
        items.append(scale)
        return total * items[0], x * scale

    def call(x: np.ndarray, seeds: Any, **options: Any) -> None:
        model = irad.BatchMixedDuplicated((2.0, X), tuple((0.0, np.zeros(4)) for _ in range(2)))
        given = model, irad.Active(List([1.0, 2.0])), irad.BatchDuplicated(x, tuple(np.zeros((2, 4))))
        irad.autodiff(irad.Reverse, steps, *given, seed=seeds, options=irad.Options(**options))

    seeds = (1.0, X), (2.0, 2.0 * X)
    with pytest.raises(irad.TapeLimitError, match="max_tape_bytes is 16 bytes"):
        call(X, seeds, max_tape_bytes=16)
    call(X, seeds)
    with allocations() as counted:
        call(X, seeds)
        with pytest.raises(ValueError, match="negative"):
            call(-X, seeds)
        with pytest.raises(irad.SignatureError, match=r"cotangent\[1\] has a different shape"):
            call(X, ((1.0, X), (2.0, X[:3])))
        assert (counted().kept, counted().kept_headers) == (0, 0)


def test_debug_mode_looks_at_all_directions():
    @njit
    def root(x):
        return np.sqrt(x).sum()

    options = irad.Options(debug=True)
    shadows = np.zeros((2, 4))
    irad.autodiff(irad.Reverse, root, irad.BatchDuplicated(X, tuple(shadows)), seed=(0.0, 1.0), options=options)
    np.testing.assert_allclose(shadows[1], 0.5 / np.sqrt(X), rtol=1e-15)
    with pytest.raises(irad.NonFiniteError, match="root"):
        irad.autodiff(
            irad.Reverse, root, irad.BatchDuplicated(0.0 * X, tuple(shadows)), seed=(0.0, 1.0), options=options
        )


@njit
def weighted(x, weight, n):
    y = x * x * weight
    for i in range(n):
        y[i] = np.sin(y[i])
    return y, weight * x[0]


SPLIT = irad.ReverseSplitWithPrimal(repeatable=True)
AUGMENTED, REVERSE = irad.split(SPLIT, weighted, irad.BatchDuplicated, irad.Active, irad.Const)


def both_sweeps(x, first, second, seeds):
    tape, value = AUGMENTED(irad.BatchDuplicated(x, (first, second)), irad.Active(3.0), irad.Const(2))
    return value, REVERSE(tape, seeds), REVERSE(tape, None)


@pytest.mark.parametrize("call", [both_sweeps, njit(both_sweeps)], ids=["Python", "compiled"])
def test_sweeps_that_are_called_separately(call):
    seeds = tuple((random(4, seed=k), float(k)) for k in range(2))
    shadows, alone = np.zeros((2, 2, 4))
    value, (_, by_weight, _), nothing = call(X, shadows[0], shadows[1], seeds)
    assert nothing == (None, (0.0, 0.0), None)
    augmented, reverse = irad.split(SPLIT, weighted, irad.Duplicated, irad.Active, irad.Const)
    for lane, seed in enumerate(seeds):
        tape, expected = augmented(irad.Duplicated(X, alone[lane]), irad.Active(3.0), irad.Const(2))
        assert by_weight[lane] == pytest.approx(reverse(tape, seed)[1], rel=1e-14)
    np.testing.assert_equal(value, expected)
    np.testing.assert_allclose(shadows, alone, rtol=1e-14)


def test_the_width_of_separate_sweeps_is_that_of_the_shadows():
    augmented, reverse = irad.split(irad.ReverseSplit, dot, irad.BatchDuplicated, irad.Const)
    for width in (1, 3):
        shadows = np.zeros((width, 4))
        assert reverse(augmented(irad.BatchDuplicated(X, tuple(shadows)), irad.Const(2.0 * X))) == (None, None)
        np.testing.assert_array_equal(shadows, np.tile(2.0 * X, (width, 1)))
    with pytest.raises(irad.SignatureError, match="not a nonempty tuple"):
        augmented(irad.BatchDuplicated(X, X), irad.Const(X))
    tape = augmented(irad.BatchDuplicated(X, tuple(np.zeros((2, 4)))), irad.Const(X))
    with pytest.raises(irad.SignatureError, match="cotangents of the value of dot in 2 directions are a float64"):
        reverse(tape, 1.0)
    with pytest.raises(irad.SignatureError, match="in several directions, others in one"):
        irad.split(irad.ReverseSplit, dot, irad.BatchDuplicated, irad.Duplicated)


@njit
def scaled(x, factor):
    return x.sum() * factor


@njit
def dot(x, y):
    return x @ y


@pytest.mark.parametrize(
    ("annotations", "seed", "message"),
    [
        ([irad.BatchDuplicated(X, X), irad.Const(2.0)], 1.0, "not a nonempty tuple"),
        ([irad.BatchDuplicated(X, (X, X, X)), irad.Duplicated(2.0, 1.0)], 1.0, "in several directions, others in"),
        ([irad.BatchDuplicated(X, (X + 1.0, X + 2.0)), irad.Const(2.0)], 1.0, "cotangents of the value of scaled in 2"),
        ([irad.BatchDuplicated(X, (np.ones(4), np.ones(3))), irad.Const(2.0)], (1.0, 1.0), "different shape"),
        ([irad.BatchDuplicated(X, (X, np.ones(4))), irad.Const(2.0)], (1.0, 1.0), "shares memory with argument 0"),
    ],
)
def test_batches_that_do_not_fit(annotations, seed, message):
    with pytest.raises(irad.SignatureError, match=message):
        irad.autodiff(irad.Reverse, scaled, *annotations, seed=seed)


def test_all_arguments_have_as_many_shadows():
    first, second = irad.BatchDuplicated(X, (X + 1.0, X + 2.0)), irad.BatchDuplicated(X, (X + 1.0,))
    with pytest.raises(irad.SignatureError, match=r"shadows of argument 1 .y. of dot in 2 directions are"):
        irad.autodiff(irad.Reverse, dot, first, second, seed=(1.0, 1.0))


def test_directions_do_not_share_shadows():
    shadow = np.zeros(4)
    batch = irad.BatchDuplicated(X, (shadow, shadow))
    with pytest.raises(irad.SignatureError, match="in one direction shares memory with that of argument 0"):
        irad.autodiff(irad.Reverse, scaled, batch, irad.Const(2.0), seed=(1.0, 1.0))
    np.testing.assert_array_equal(shadow, 0.0)


def test_a_rule_is_called_for_each_cotangent():
    @irad.custom_vjp
    @njit
    def half(x):
        return 0.5 * x

    half.defvjp(njit(lambda x: (0.5 * x, None)), njit(lambda kept, bar: (5.0 * bar,)))

    @njit
    def through(x):
        return half(x[0]) + x[1]

    shadows = np.zeros((2, 4))
    irad.autodiff(irad.Reverse, through, irad.BatchDuplicated(X, tuple(shadows)), seed=(1.0, 2.0))
    np.testing.assert_array_equal(shadows, [[5.0, 1.0, 0.0, 0.0], [10.0, 2.0, 0.0, 0.0]])
