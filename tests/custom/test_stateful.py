"""Rules with workspace: a slot for each live call, kept for the next derivative, given back however a call ends."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from numba import njit, prange
from numba.core.errors import NumbaWarning
from numba.typed import List

import irad
from irad import rules
from irad.errors import RuleError
from irad.frontend.custom.workspace_pools import pools_for
from irad.rules import AugmentedReturn, StatefulRule, Workspace
from irad.testing.allocations import Allocations, allocations


@pytest.fixture
def with_build() -> Iterator[Callable[..., None]]:
    """Registers a `build_rule` until the end of the test."""
    registered: list[Any] = []

    def register(f: Any, build: Any) -> None:
        rules.build_rule(f)(build)
        registered.append(f)

    yield register
    for f in registered:
        rules.close(f)
        rules.remove(f)


@pytest.fixture
def counted() -> Iterator[Callable[[], Allocations]]:
    """What Numba's runtime has allocated and released since the test began."""
    with allocations() as count:
        yield count


@njit
def sum_of_cubes(a):
    total = a.dtype.type(0.0)
    for i in range(a.size):
        total += a[i] ** 3
    return total


def cubes(with_build: Callable[..., None]) -> list[Any]:
    """A rule that keeps the squares of its argument in its slot; the signatures that it was built for."""
    signatures = []

    def build(signature):
        signatures.append(signature)
        dtype = signature.args[0].dtype

        def state():
            return np.empty(0, dtype)

        def augmented_primal(config, slot, a):
            if slot.state.size < a.value.size:
                slot.state = np.empty(a.value.size, dtype)
            total = dtype(0.0)
            for i in range(a.value.size):
                slot.state[i] = a.value[i] ** 2
                total += slot.state[i] * a.value[i]
            return AugmentedReturn(total, None, None)

        def reverse(config, slot, cotangent, tape, a):
            for i in range(a.value.size):
                a.shadow[i] += 3 * cotangent * slot.state[i]

        return StatefulRule(augmented_primal, reverse, state)

    with_build(sum_of_cubes, build)
    return signatures


@njit
def repeated(a, n):
    total = a.dtype.type(0.0)
    for _ in range(n):
        for i in range(a.size):
            a[i] *= 2
        total += sum_of_cubes(a)
    return total


def gradient_of_repeated(a: Any, n: int) -> Any:
    return 3 * a**2 * sum(8.0**i for i in range(1, n + 1))


# ------------------------------------------------------------------------------------------------ live calls


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_slot_for_each_turn_of_a_loop(with_build, plan, dtype):
    cubes(with_build)
    derivative = irad.grad(repeated, options=irad.Options(plan=plan))
    a, most = np.array([1.0, -2.0], dtype), 0
    for n in (4, 6, 0, 1, 6):
        most = max(n, most)
        gradient = derivative(a.copy(), n)
        assert gradient.dtype == dtype
        np.testing.assert_allclose(gradient, gradient_of_repeated(a, n), rtol=1e-6)
        assert rules.workspace(derivative) == Workspace(0, most)
    derivative.close()
    assert rules.workspace(derivative) == Workspace(0, 0)


def test_recursion(with_build):
    cubes(with_build)

    @njit
    def f(a, depth):
        if depth == 0:
            return 0.0
        a[:] = a * 2.0
        first = sum_of_cubes(a)
        return first + f(a, depth - 1)

    a = np.array([1.0, -2.0, 0.5])
    for depth in (3, 5, 2):
        np.testing.assert_allclose(irad.grad(f)(a.copy(), depth), gradient_of_repeated(a, depth))
    assert rules.workspace(f) == Workspace(0, 5)


def test_threads(with_build):
    cubes(with_build)
    f = njit(nogil=True)(repeated.py_func)
    derivative = irad.grad(f)
    derivative(np.ones(1), 1)
    wrong: list[Any] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(200):
            a, n = random.standard_normal(1 + seed), int(random.integers(0, 6))
            if not np.allclose(derivative(a.copy(), n), gradient_of_repeated(a, n)):
                wrong.append((a, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    in_use, spare = rules.workspace(derivative)
    assert in_use == 0
    assert 5 <= spare <= 20


def test_lanes_of_a_parallel_loop(with_build):
    cubes(with_build)

    @njit(parallel=True)
    def f(rows):
        total = 0.0
        for i in prange(rows.shape[0]):
            total += sum_of_cubes(rows[i]) * i
        return total

    rows = np.random.default_rng(0).standard_normal((9, 4))
    expected = 3 * rows**2 * np.arange(9.0)[:, None]
    derivative = irad.grad(f)
    for _ in range(3):
        np.testing.assert_allclose(derivative(rows), expected)
    assert rules.workspace(derivative) == Workspace(0, 9)


def test_pullbacks_own_their_slots(with_build):
    cubes(with_build)
    a, b = np.array([1.0, 2.0]), np.array([3.0])
    _, by_a = irad.vjp(repeated, a.copy(), 2)
    _, by_b = irad.vjp(repeated, b.copy(), 3)
    assert rules.workspace(repeated) == Workspace(5, 0)
    for scale in (1.0, -2.0):
        np.testing.assert_allclose(by_a(scale)[0], scale * gradient_of_repeated(a, 2))
        np.testing.assert_allclose(by_b(scale)[0], scale * gradient_of_repeated(b, 3))
    del by_a
    gc.collect()
    assert rules.workspace(repeated) == Workspace(3, 2)
    rules.close(repeated)
    assert rules.workspace(repeated) == Workspace(3, 0)
    np.testing.assert_allclose(by_b(1.0)[0], gradient_of_repeated(b, 3))
    del by_b
    gc.collect()
    assert rules.workspace(repeated) == Workspace(0, 0)


def test_a_derivative_inside_compiled_code(with_build):
    cubes(with_build)
    derivative = irad.grad(repeated)

    @njit
    def descend(a, steps):
        for _ in range(steps):
            a = a - 0.01 * derivative(a.copy(), 2)
        return a

    expected = np.array([0.1, -0.2])
    for _ in range(3):
        expected = expected - 0.01 * gradient_of_repeated(expected, 2)
    np.testing.assert_allclose(descend(np.array([0.1, -0.2]), 3), expected)
    assert rules.workspace(derivative) == Workspace(0, 2)


# ------------------------------------------------------------------------------------------------ memory


def test_the_second_call_allocates_nothing(with_build, counted):
    cubes(with_build)

    @njit
    def f(a, b, n):
        """Calls with different shapes, in turn: each finds the slot that it had before."""
        total = 0.0
        for _ in range(n):
            total += sum_of_cubes(a) + sum_of_cubes(b)
        return total

    derivative = irad.value_and_grad_into(f, argnums=(0, 1))

    @njit
    def run(out, a, b, n, calls):
        for _ in range(calls):
            derivative(out, a, b, n)

    a, b = np.arange(3.0), np.arange(50.0)
    out = np.empty(3), np.empty(50)
    run(out, a, b, 2, 0)
    passed = 4  # Numba allocates a header for each array that comes from Python
    for calls, slots in ((1, 4), (1, 0), (5, 0)):
        before = counted()
        run(out, a, b, 2, calls)
        assert counted().since(before).made == passed + 3 * slots  # with an empty buffer and one that fits
        np.testing.assert_array_equal(out[0], 6 * a**2)
        np.testing.assert_array_equal(out[1], 6 * b**2)


def test_growing_shapes_and_release(with_build, counted):
    cubes(with_build)
    derivative = irad.value_and_grad_into(repeated)
    out = np.empty(3)
    derivative(out, np.ones(3), 2)
    derivative.close()
    before = counted()
    for size in (3, 30, 1, 60, 60):
        a, out = np.full(size, 2.0), np.empty(size)
        derivative(out, a.copy(), 3)
        np.testing.assert_array_equal(out, gradient_of_repeated(a, 3))
    grown = counted().since(before)
    passed = 5 * 2
    assert grown.made == passed + 3 + 3 * 4  # slots; their buffers, empty at first, then 3, 30 and 60 long
    assert grown.released <= passed + 3 * 3
    derivative.close()
    del a, out
    assert counted().since(before).kept == 0
    out = np.empty(60)
    derivative(out, np.full(60, 2.0), 3)
    np.testing.assert_array_equal(out, gradient_of_repeated(np.full(60, 2.0), 3))


def test_workspace_is_released_when_the_derivative_is_collected(with_build, counted):
    cubes(with_build)

    def make() -> Any:
        @njit
        def f(a):
            return sum_of_cubes(a)

        return f

    def use(f: Any) -> None:
        np.testing.assert_array_equal(irad.grad(f)(np.ones(2)), [3.0, 3.0])
        assert rules.workspace(f) == Workspace(0, 1)

    use(make())
    before = counted()
    assert rules.workspace(sum_of_cubes) == Workspace(0, 0)
    use(make())
    assert counted().since(before).kept == 0
    assert rules.workspace(sum_of_cubes) == Workspace(0, 0)


@pytest.mark.parametrize("where", ["augmented", "between", "reverse"])
def test_an_exception_gives_slots_back(with_build, counted, where):
    @njit
    def root(x):
        return np.sqrt(x)

    def build(signature):
        def state():
            return np.zeros(4)

        def augmented_primal(config, slot, x):
            slot.state[0] = x.value
            if x.value == -1.0:
                raise ValueError("augmented")
            return AugmentedReturn(np.sqrt(x.value), None, None)

        def reverse(config, slot, cotangent, tape, x):
            if slot.state[0] == -2.0:
                raise ValueError("reverse")
            return (cotangent * 0.5 / np.sqrt(slot.state[0]),)

        return StatefulRule(augmented_primal, reverse, state)

    with_build(root, build)

    @njit
    def f(x, y):
        total = root(4.0 * x) + root(y)
        if y == -3.0:
            raise ValueError("between")
        return total

    derivative = irad.grad(f, argnums=(0, 1))
    bad = {"augmented": -1.0, "between": -3.0, "reverse": -2.0}[where]
    assert derivative(1.0, 4.0) == (1.0, 0.25)
    before = counted()
    for _ in range(5):
        with pytest.raises(ValueError, match=where):
            derivative(1.0, bad)
        assert rules.workspace(derivative).in_use == 0
    assert derivative(1.0, 4.0) == (1.0, 0.25)
    assert counted().since(before).made == 0
    assert rules.workspace(derivative).spare <= 2
    _, pullback = irad.vjp(f, 1.0, 4.0)
    assert pullback(2.0) == (2.0, 0.5)


class _Mixed(NamedTuple):
    calls: int
    items: Any
    pair: tuple[float, Any]


def test_a_state_of_many_parts(with_build, counted):
    @njit
    def times(x, k):
        return x * k

    def build(signature):
        def state():
            return _Mixed(0, List([0.0]), (0.0, np.zeros(1)))

        def augmented_primal(config, slot, x, k):
            slot.calls += 1
            slot.items.append(x.value)
            slot.pair = (k.value, np.full(1, float(slot.calls)))
            return AugmentedReturn(slot.items[-1] * slot.pair[0], None, None)

        def reverse(config, slot, cotangent, tape, x, k):
            calls = slot.state.pair[1][0]
            return cotangent * slot.state.pair[0] * calls, cotangent * slot.items[slot.calls] * calls

        return StatefulRule(augmented_primal, reverse, state)

    with_build(times, build)

    @njit
    def f(x, k):
        return times(x, k)

    derivative = irad.grad(f, argnums=(0, 1))
    derivative(0.0, 0.0)
    derivative.close()
    before = counted()
    for calls in (1, 2, 3):  # the slot remembers
        assert derivative(2.0, 5.0) == (5.0 * calls, 2.0 * calls)
    derivative.close()
    assert counted().since(before).kept == 0
    assert derivative(2.0, 5.0) == (5.0, 2.0)


def test_a_state_of_nothing(with_build):
    @njit
    def twice(x):
        return 2 * x

    class Rule:
        @staticmethod
        def augmented_primal(config, slot, x):
            return AugmentedReturn(2 * x.value, None, None)

        @staticmethod
        def reverse(config, slot, cotangent, tape, x):
            return (7 * cotangent,)

        @staticmethod
        def state():
            return None

    with_build(twice, lambda signature: Rule())
    assert irad.grad(twice)(1.0) == 7.0


def test_a_rule_is_built_once_for_each_pair(with_build):
    signatures = cubes(with_build)

    @njit
    def f(a, b):
        return sum_of_cubes(a) * 2.0 + sum_of_cubes(b) + sum_of_cubes(a)

    a, b = np.ones(2), np.ones(2)
    both = irad.grad(f, argnums=(0, 1))
    both(a, b)
    both(b, a)
    assert len(signatures) == 1
    irad.grad(f)(a, b)
    assert [each.return_type.name for each in signatures] == ["float64", "float64"]


def test_code_with_a_workspace_is_not_cached_on_disk(with_build, tmp_path, monkeypatch):
    cubes(with_build)
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    derivative = irad.grad(repeated)

    def f(a):
        return derivative(a, 1)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", NumbaWarning)
        njit(cache=True)(f)(np.ones(1))
    assert any("dynamic globals" in str(each.message) for each in found)


def test_removing_a_rule_releases_its_workspace(with_build):
    cubes(with_build)
    a = np.array([1.0, -2.0])
    np.testing.assert_array_equal(irad.grad(repeated)(a.copy(), 1), gradient_of_repeated(a, 1))
    assert rules.workspace(sum_of_cubes).spare == 1
    rules.remove(sum_of_cubes)
    assert rules.workspace(sum_of_cubes) == Workspace(0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_a_pool_is_locked(with_build):
    cubes(with_build)
    derivative = irad.grad(repeated)
    derivative(np.ones(1), 1)
    (pool,) = (each for each in pools_for(sum_of_cubes) if each.workspace.spare)
    pool._head.locked = 1  # as if by another thread
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # on forks of a process with threads
        child = os.fork()
    if child == 0:
        os._exit(int(derivative(np.ones(1), 1)[0] != 24.0))
    pool._head.locked = 0
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_rule_without_state_that_restores():
    @njit
    def square(a):
        a[:] = a * a

    @rules.augmented_primal(square)
    def augmented(config, a):
        old = a.value.copy()
        a.value[:] = old * old
        return AugmentedReturn(None, None, old)

    @rules.reverse(square, restores=True)
    def reverse(config, cotangent, tape, a):
        a.shadow[:] *= 2 * tape
        a.value[:] = tape

    @njit
    def f(x):
        a = x.copy()
        square(a)
        return (a * a).sum()

    try:
        x = np.array([1.0, 2.0])
        _, pullback = irad.vjp(f, x)
        for _ in range(2):
            np.testing.assert_array_equal(pullback(1.0)[0], 4 * x**3)
    finally:
        rules.remove(square)


# ------------------------------------------------------------------------------------------------ errors


@njit
def identity(x):
    return x


def _augmented(config, slot, x):
    return AugmentedReturn(x.value, None, None)


def _reverse(config, slot, cotangent, tape, x):
    return (cotangent,)


def _state():
    return 0.0


def _replaces(config, slot, x):
    slot.state = (x.value, x.value)
    return AugmentedReturn(x.value, None, None)


def _unknown_state():
    return object()


def _raises(signature):
    raise KeyError("no such rule")


class _Bound:
    augmented_primal, state = staticmethod(_augmented), staticmethod(_state)

    def reverse(self, config, slot, cotangent, tape, x):
        return (cotangent,)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda signature: None, "returned a NoneType that has no function augmented_primal"),
        (lambda signature: StatefulRule(_augmented, _reverse, cast(Any, 1.0)), "has no function state"),
        (lambda signature: _Bound(), "reverse of the rule .* is a method of an object"),
        (lambda signature: StatefulRule(_augmented, _reverse, _unknown_state), "cannot compile the state"),
        (lambda signature: StatefulRule(_replaces, _reverse, _state), "cannot compile the augmented_primal"),
        (_raises, "raised KeyError for .*no such rule"),
    ],
)
def test_a_wrong_build_is_refused(with_build, build, message):
    with_build(identity, build)
    with pytest.raises(RuleError, match=message) as caught:
        irad.grad(identity)(1.0)
    assert "test_stateful.py" in str(caught.value)


def test_two_rules_for_a_function_are_refused(with_build):
    with_build(identity, lambda signature: StatefulRule(_augmented, _reverse, _state))
    with pytest.raises(RuleError, match="has a rule and has a build_rule"):
        rules.reverse(identity)(_reverse)


def test_registering_what_is_no_function():
    with pytest.raises(RuleError, match="is not a function"):
        rules.build_rule(3)
    with pytest.raises(RuleError, match="is not a function"):
        rules.build_rule(identity)(3)
    rules.remove(identity)
