"""Rules of the form augmented primal and reverse: what they are given, what becomes of what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.rules import AugmentedReturn, is_active, is_needed
from irad.testing.allocations import allocations
from irad.testing.check_gradient import check_quickly


def marked_cube(with_rule: Callable[..., None], **options: Any) -> Any:
    """x³ with a rule whose derivative is 100 times the true one, so that its use can be seen."""

    @njit(**options)
    def cube(x):
        return x**3

    def augmented(config, x):
        return AugmentedReturn(x.value**3, None, x.value)

    def reverse(config, cotangent, tape, x):
        return (cotangent * 300.0 * tape**2,)

    with_rule(cube, augmented, reverse)
    return cube


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_a_rule_fires_in_a_loop_of_unknown_length(with_rule, plan):
    cube = marked_cube(with_rule)

    @njit
    def f(x, limit):
        total = 0.0
        while total < limit:
            total += cube(x)
        return total

    options = irad.Options(plan=plan)
    assert irad.grad(f, options=options)(2.0, 30.0) == 4 * 1200.0
    assert irad.grad(f, options=options)(2.0, 0.0) == 0.0


@pytest.mark.parametrize("options", [{}, {"inline": "always"}, {"fastmath": True}, {"error_model": "numpy"}])
def test_a_rule_fires_whatever_would_be_inlined(with_rule, options):
    cube = marked_cube(with_rule, **options)

    @njit
    def f(x):
        return cube(x) * 2.0

    assert irad.grad(f)(2.0) == 2400.0


def test_a_rule_is_used_where_its_function_itself_is_differentiated(with_rule):
    cube = marked_cube(with_rule)
    assert irad.value_and_grad(cube)(2.0) == (8.0, 1200.0)
    assert irad.grad(cube)(np.float32(2.0)) == 1200.0
    value, pullback = irad.vjp(cube, 2.0)
    assert value == 8.0
    assert pullback(3.0) == (3600.0,)
    assert pullback(1.0) == (1200.0,)


def test_a_rule_is_used_inside_compiled_code(with_rule):
    cube = marked_cube(with_rule)

    @njit
    def f(x):
        return cube(x) + x

    gradient = irad.grad(f)

    @njit
    def step(x):
        return x - gradient(x)

    assert step(2.0) == 2.0 - 1201.0


def test_a_rule_for_a_plain_function_is_one_for_all_that_is_compiled_from_it(with_rule):
    def square(x):
        return x * x

    def augmented(config, x):
        return AugmentedReturn(x.value**2, None, None)

    def reverse(config, cotangent, tape, x):
        return (7.0 * cotangent,)

    with_rule(square, augmented, reverse)
    assert irad.grad(square)(3.0) == 7.0
    assert irad.grad(njit(square))(3.0) == 7.0
    assert irad.grad(njit(fastmath=True)(square))(3.0) == 7.0


def test_a_rule_for_a_dispatcher_is_for_that_one(with_rule):
    def square(x):
        return x * x

    ruled, plain = njit(square), njit(square)

    def augmented(config, x):
        return AugmentedReturn(x.value**2, None, None)

    def reverse(config, cotangent, tape, x):
        return (7.0 * cotangent,)

    with_rule(ruled, augmented, reverse)
    assert irad.grad(ruled)(3.0) == 7.0
    assert irad.grad(plain)(3.0) == 6.0


def test_a_rule_for_a_library_function(with_rule):
    def augmented(config, a, b):
        return AugmentedReturn(np.dot(a.value, b.value), None, None)

    def reverse(config, cotangent, tape, a, b):
        if is_active(a):
            a.shadow[:] += 2.0 * cotangent * b.value
        if is_active(b):
            b.shadow[:] += 3.0 * cotangent * a.value

    with_rule(np.dot, augmented, reverse)

    @njit
    def f(a, b):
        return np.dot(a, b)

    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    by_a, by_b = irad.grad(f, argnums=(0, 1))(a, b)
    np.testing.assert_array_equal(by_a, 2.0 * b)
    np.testing.assert_array_equal(by_b, 3.0 * a)
    np.testing.assert_array_equal(irad.grad(f, argnums=1)(a, b), 3.0 * a)


def test_a_rule_in_recursion(with_rule):
    cube = marked_cube(with_rule)

    @njit
    def f(x, depth):
        if depth == 0:
            return x
        return f(x, depth - 1) + depth * cube(x)

    assert irad.grad(f)(2.0, 4) == 1.0 + 10 * 1200.0


# ------------------------------------------------------------------------------------------------ arrays


def scaled(with_rule: Callable[..., None]) -> Any:
    """a·k, returned as a new array, by a true rule."""

    @njit
    def scale(a, k):
        return a * k

    def augmented(config, a, k):
        kept = a.value.copy() if config.overwritten[0] and is_active(k) else a.value
        return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), kept)

    def reverse(config, cotangent, tape, a, k):
        by_k = 0.0
        for i in range(cotangent.size):
            if is_active(k):
                by_k += cotangent[i] * tape[i]
            if is_active(a):
                a.shadow[i] += cotangent[i] * k.value
        return None, by_k

    with_rule(scale, augmented, reverse)
    return scale


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_returned_arrays_come_with_their_shadow(with_rule, dtype):
    scale = scaled(with_rule)

    @njit
    def f(a, k):
        total = a.dtype.type(0.0)
        for _ in range(3):
            a = scale(a, k)
            total += (a * a).sum()
        return total

    for size in (5, 1, 0):
        check_quickly(f, np.linspace(0.5, 1.5, size).astype(dtype), dtype(0.9))


@pytest.mark.parametrize("shapes", [[(3,), (0,)], [(2, 3)]], ids=["vectors", "matrices"])
def test_a_pullback_through_a_returned_array_runs_again(with_rule, shapes):
    @njit
    def triple(a):
        return 3.0 * a, a[:1]

    def augmented(config, a):
        return AugmentedReturn((3.0 * a.value, a.value[:1]), (np.zeros_like(a.value), a.shadow[:1]), None)

    def reverse(config, cotangent, tape, a):
        a.shadow[:] += 3.0 * cotangent[0]

    with_rule(triple, augmented, reverse)

    @njit
    def f(a):
        b, first = triple(a)
        return (b * b).sum() + first.sum()

    for shape in shapes:
        a = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape)
        wanted = 18.0 * a
        wanted[:1] += 1.0
        _, pullback = irad.vjp(f, a)
        for _ in range(3):
            np.testing.assert_allclose(pullback(1.0)[0], wanted, rtol=1e-14)
        _, pullback = irad.vjp(triple, a)
        seed = np.ones_like(a), np.full_like(a[:1], 2.0)
        wanted = np.full_like(a, 3.0)
        wanted[:1] += 2.0
        for _ in range(3):
            np.testing.assert_allclose(pullback(seed)[0], wanted, rtol=1e-14)


def test_an_array_that_a_rule_returns_lives_until_the_reverse_sweep_has_read_it(with_rule):
    scale = scaled(with_rule)

    @njit
    def f(a, k):
        b, total = scale(a, k), 0.0
        for i in range(b.size):
            total += b[i] * b[i]
        return total

    @njit
    def between(a):
        _, pullback = irad.vjp(f, a, 3.0)
        others = [np.full(a.size, 7.0 + i) for i in range(20)]  # in memory that was freed, if any was
        return pullback(1.0), others

    a = np.linspace(0.5, 1.5, 1000)
    (by_a, by_k), _ = between(a)
    np.testing.assert_allclose(by_a, 18.0 * a, rtol=1e-14)
    assert by_k == pytest.approx(6.0 * (a * a).sum(), rel=1e-12)


def test_what_is_constant_reaches_the_rule_as_a_constant(with_rule):
    scale = scaled(with_rule)

    @njit
    def f(a, k):
        b = scale(a, k)
        return (b * b).sum()

    a = np.array([1.0, 2.0])
    np.testing.assert_array_equal(irad.grad(f)(a, 3.0), 18.0 * a)
    assert irad.grad(f, argnums=1)(a, 3.0) == 2 * 3.0 * 5.0


def test_what_a_function_does_not_return_stays_constant(with_rule):
    @njit
    def scale(a, k):
        return a * k

    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), None)

    def reverse(config, cotangent, tape, a, k):
        by_k = (cotangent * a.value).sum()
        return None, by_k + 1000.0 if is_active(a) else by_k

    with_rule(scale, augmented, reverse)

    @njit
    def f(a, k):
        b = scale(a, k)
        return (b * b).sum()

    a = np.array([1.0, 2.0])
    assert irad.grad(f, argnums=1)(a, 3.0) == 2 * 3.0 * 5.0
    assert irad.grad(f, argnums=(0, 1))(a, 3.0)[1] == 2 * 3.0 * 5.0 + 1000.0


def test_views_of_arguments_may_be_returned(with_rule):
    @njit
    def rest(a):
        return a[1:]

    def augmented(config, a):
        return AugmentedReturn(a.value[1:], a.shadow[1:], None)

    def reverse(config, cotangent, tape, a):
        return None

    with_rule(rest, augmented, reverse)

    @njit
    def f(a):
        b = rest(a)
        b[0] = b[0] * b[1]
        return (a * a).sum() + b.sum()

    check_quickly(f, np.array([1.0, 2.0, 3.0]))


def test_an_overwritten_argument_is_told(with_rule):
    scale = scaled(with_rule)

    @njit
    def mutated(a, k):
        b = scale(a, k)
        a[:] = 0.0
        return (b * b).sum()

    check_quickly(mutated, np.array([1.0, 2.0]), 3.0)


def test_overwritten_is_the_truth(with_rule):
    @njit
    def norm(a):
        return (a * a).sum()

    def augmented(config, a):
        return AugmentedReturn((a.value * a.value).sum(), None, None)

    def reverse(config, cotangent, tape, a):
        if config.overwritten[0]:
            a.shadow[:] += cotangent
        else:
            a.shadow[:] += 2.0 * cotangent

    with_rule(norm, augmented, reverse)

    @njit
    def later(a):
        value = norm(a)
        a[0] = 5.0
        return value

    @njit
    def never(a):
        a[0] = 5.0
        return norm(a)

    @njit
    def temporary(a):
        return norm(a + 1.0)

    @njit
    def twice(a):
        return norm(a) + norm(a)

    a = np.array([1.0, 2.0])
    np.testing.assert_array_equal(irad.grad(temporary)(a.copy()), [2.0, 2.0])
    np.testing.assert_array_equal(irad.grad(twice)(a.copy()), [4.0, 4.0])
    np.testing.assert_array_equal(irad.grad(later)(a.copy()), [1.0, 1.0])
    np.testing.assert_array_equal(irad.grad(never)(a.copy()), [0.0, 2.0])


def test_whether_the_value_is_used(with_rule):
    @njit
    def fill(out, x):
        out[0] = x
        return x

    def augmented(config, out, x):
        out.value[0] = x.value
        return AugmentedReturn(x.value, None, None)

    def reverse(config, cotangent, tape, out, x):
        by_out = out.shadow[0]
        out.shadow[0] = 0.0
        if config.needs_primal:
            return None, cotangent + by_out
        return None, 100.0 * by_out

    with_rule(fill, augmented, reverse)

    @njit
    def used(x):
        out = np.zeros(1)
        value = fill(out, x)
        return out[0] + 5.0 * value * value

    @njit
    def unused(x):
        out = np.zeros(1)
        fill(out, x)
        return out[0]

    assert irad.grad(used)(3.0) == 31.0
    assert irad.grad(unused)(3.0) == 100.0


def test_what_else_a_rule_is_told(with_rule):
    @njit
    def f(x):
        return x

    def augmented(config, x):
        return AugmentedReturn(x.value, None, config.needs_shadow)

    def reverse(config, cotangent, tape, x):
        told = (config.width == 1) + 10 * config.strong_zero + 100 * config.runtime_activity + 1000 * tape
        return (cotangent * (told + 10000 * config.overwritten[-1]),)

    with_rule(f, augmented, reverse)
    assert irad.grad(f)(3.0) == 11.0


def test_a_rule_for_forward_mode_does_not_change_reverse_mode():
    @njit
    def f(x, y):
        return x * y

    try:

        @rules.forward(f)
        def forward(config, x, y):
            return 0.0, 0.0

        assert irad.grad(f)(3.0, 4.0) == 4.0
        with pytest.raises(irad.RuleError, match="cannot be called with 3 arguments") as caught:
            rules.forward(f)(lambda config, x: x)
        assert "test_pairs.py:" in str(caught.value)
    finally:
        rules.remove(f)


def test_a_function_that_writes_its_argument(with_rule):
    @njit
    def fill(out, x):
        out[:] = x * x

    def augmented(config, out, x):
        out.value[:] = x.value * x.value
        return AugmentedReturn(None, None, None)

    def reverse(config, cotangent, tape, out, x):
        by_x = 2.0 * x.value * out.shadow.sum()
        out.shadow[:] = 0.0
        return None, by_x

    with_rule(fill, augmented, reverse)

    @njit
    def f(x):
        out = np.ones(3)
        fill(out, x)
        total = out.sum()
        fill(out, 2.0 * x)
        return total * out[0]

    check_quickly(f, 1.5)


def test_content_that_nobody_needs(with_rule):
    @njit
    def fill(out, x):
        out[:] = x * x

    def augmented(config, out, x):
        out.value[:] = x.value * x.value if is_needed(out) else -1.0
        return AugmentedReturn(None, None, None)

    def reverse(config, cotangent, tape, out, x):
        by_x = 2.0 * x.value * out.shadow.sum()
        out.shadow[:] = 0.0
        return None, by_x

    with_rule(fill, augmented, reverse)

    @njit
    def filled_and_read(out, x):
        fill(out, x)
        return out[0]

    def run(f, kind):
        out, shadow = np.zeros(2), np.ones(2)
        gradients = irad.autodiff(irad.Reverse, f, kind(out, shadow), irad.Active(3.0), seed=None)
        assert gradients[1] == 12.0
        assert not shadow.any()
        return out[0]

    assert run(fill, irad.Duplicated) == 9.0
    assert run(fill, irad.DuplicatedNoNeed) == -1.0
    assert run(filled_and_read, irad.DuplicatedNoNeed) == 9.0


def test_tuples_come_back_in_their_structure(with_rule):
    @njit
    def pair(x, both):
        return x * both[0], both[1] * x

    def augmented(config, x, both):
        second = both.value[1] * x.value
        return AugmentedReturn((x.value * both.value[0], second), (None, np.zeros_like(second)), None)

    def reverse(config, cotangent, tape, x, both):
        by_number, by_array = cotangent
        both.shadow[1][:] += by_array * x.value
        return by_number * both.value[0] + (by_array * both.value[1]).sum(), (by_number * x.value, None)

    with_rule(pair, augmented, reverse)

    @njit
    def f(x, k, a):
        number, array = pair(x, (k, a))
        return number * number + (array * array).sum()

    check_quickly(f, 1.5, 0.5, np.array([1.0, -2.0]))


def test_complex_numbers(with_rule):
    @njit
    def square(z):
        return z * z

    def augmented(config, z):
        return AugmentedReturn(z.value * z.value, None, z.value)

    def reverse(config, cotangent, tape, z):
        return (cotangent * np.conj(2.0 * tape),)

    with_rule(square, augmented, reverse)

    @njit
    def f(x, y):
        w = square(complex(x, y))
        return w.real * 2.0 + w.imag * w.imag

    check_quickly(f, 1.5, -0.5)


# ------------------------------------------------------------------------------------------------ life


def test_nothing_leaks(with_rule):
    scale = scaled(with_rule)

    @njit
    def f(a, k):
        b = scale(a, k)
        if b[0] > 100.0:
            raise ValueError("too large")
        a[0] = 0.0
        return (b * b).sum()

    derivative = irad.grad(f, argnums=(0, 1))
    derivative(np.array([1.0, 2.0]), 3.0)
    with allocations() as count:
        for _ in range(10):
            derivative(np.array([1.0, 2.0]), 3.0)
        for _ in range(10):
            value, pullback = irad.vjp(f, np.array([1.0, 2.0]), 3.0)
            pullback(1.0)
        del value, pullback
        assert count().kept == 0


def test_a_reverse_that_raises_leaks_nothing(with_rule):
    @njit
    def scale(a, k):
        return a * k

    def augmented(config, a, k):
        return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), a.value + 1.0)

    def reverse(config, cotangent, tape, a, k):
        if tape[0] > 0.0:
            raise ValueError("too large")
        return None, 0.0

    with_rule(scale, augmented, reverse)

    @njit
    def f(a, k):
        return scale(a, k).sum()

    derivative = irad.grad(f, argnums=(0, 1))

    def run() -> None:
        with pytest.raises(ValueError, match="too large"):
            derivative(np.array([0.5, 2.0]), 3.0)

    run()
    with allocations() as count:
        for _ in range(10):
            run()
        assert count().kept == 0


def test_an_augmented_primal_that_raises_keeps_no_more_than_a_callee_that_raises(with_rule):
    @njit
    def scale(a, k):
        return a * k

    def augmented(config, a, k):
        if a.value[0] > 0.0:
            raise ValueError("too large")
        return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), None)

    with_rule(scale, augmented, lambda config, cotangent, tape, a, k: (None, 0.0))

    @njit
    def callee(a, k):
        if a[0] > 0.0:
            raise ValueError("too large")
        return callee(a, k - 1.0) if k > 100.0 else a * k  # recursive: it is not inlined

    def caller(function):
        def f(a, k):
            b = a * 2.0
            return function(b + a, k).sum() + b[0]

        return njit(f)

    def kept(f):
        def run():
            with pytest.raises(ValueError, match="too large"):
                f(np.array([1.0, 2.0]), 3.0)

        run()
        with allocations() as count:
            for _ in range(10):
                run()
            return count().kept

    assert kept(irad.grad(caller(scale))) <= kept(caller(callee))


def test_what_a_rule_raises_is_raised(with_rule):
    @njit
    def root(x):
        return np.sqrt(x)

    def augmented(config, x):
        if x.value < 0.0:
            raise ValueError("no root of a negative number")
        return AugmentedReturn(np.sqrt(x.value), None, None)

    def reverse(config, cotangent, tape, x):
        if x.value == 0.0:
            raise ZeroDivisionError("no derivative at 0")
        return (cotangent * 0.5 / np.sqrt(x.value),)

    with_rule(root, augmented, reverse)

    @njit
    def f(x):
        return root(x) * 2.0

    assert irad.grad(f)(4.0) == 0.5
    with pytest.raises(ValueError, match="no root of a negative number"):
        irad.grad(f)(-1.0)
    with pytest.raises(ZeroDivisionError, match="no derivative at 0"):
        irad.grad(f)(0.0)
    _, pullback = irad.vjp(f, 0.0)
    with pytest.raises(ZeroDivisionError, match="no derivative at 0"):
        pullback(1.0)
    assert irad.grad(f)(4.0) == 0.5


def test_a_new_rule_recompiles_what_used_the_old_one():
    @njit
    def f(x):
        return x * x

    @njit
    def g(x):
        return f(x) + x

    derivative = irad.grad(g)
    assert derivative(3.0) == 7.0
    try:
        for factor in (10.0, 20.0):

            @rules.augmented_primal(f)
            def augmented(config, x):
                return AugmentedReturn(x.value**2, None, None)

            @rules.reverse(f)
            def reverse(config, cotangent, tape, x, factor=factor):
                return (factor * cotangent,)

            assert derivative(3.0) == factor + 1.0
            assert irad.grad(f)(3.0) == factor
    finally:
        rules.remove(f)
    assert derivative(3.0) == 7.0


def test_a_rule_may_differentiate_a_function_that_it_is_given(with_rule):
    @njit
    def solve(f, x):
        for _ in range(100):
            x = f(x)
        return x

    def augmented(config, f, x):
        return AugmentedReturn(solve(f.value, x.value), None, None)

    def reverse(config, cotangent, tape, f, x):
        return None, cotangent * irad.grad(f.value)(x.value)

    with_rule(solve, augmented, reverse)

    @njit
    def half(x):
        return 0.5 * x * x

    @njit
    def g(x):
        return solve(half, x)

    assert irad.grad(g)(0.25) == 0.25
