"""Checkpointed loops: the gradient of the loop written out, to the bit, with few states and few steps."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import rtsys

import irad
from irad.api.checkpointing.loops import reruns
from irad.testing.allocations import allocations

SIZE = 5


@njit
def step(state, force, rate):
    """A state of an array, of which a new one is made, one that is overwritten, a number and a count."""
    x, v, (energy, count) = state
    for i in range(v.size):
        v[i] += rate * (force[i] - np.sin(x[i]) * energy)
    y = x + rate * v
    return y, v, (energy + rate * y[count % 5] * v[0] + rate, count + 1)


def program(loop):
    @njit
    def loss(n, x, force, rate):
        x, v, (energy, count) = loop(n, (x, x * x, (1.0, 0)), force, rate)
        return (x * v).sum() * energy + count

    return loss


@njit
def written_out(n, state, force, rate):
    x, v, rest = state
    state = (x, v.copy(), rest)
    for _ in range(n):
        state = step(state, force, rate)
    return state


def same(found, expected) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True))


def test_the_gradient_is_that_of_the_loop_whatever_the_numbers() -> None:
    strict = irad.Options(strict=True)  # sums are not reordered, and steps inherit that
    expected = irad.value_and_grad(program(written_out), argnums=(1, 2, 3), options=strict)
    x, force = np.linspace(0.2, 1.0, SIZE), np.linspace(-1.0, 1.0, SIZE)
    loss = program(irad.checkpoint_loop(step, None, 3))
    found = irad.value_and_grad(loss, argnums=(1, 2, 3), options=strict)
    for n in (0, 1, 2, 7, 40):
        (value, gradient), (wanted, correct) = found(n, x, force, 0.1), expected(n, x, force, 0.1)
        assert value == wanted == loss(n, x, force, 0.1)
        assert same(gradient, correct)
    arguments, tangents = (7, x, force, 0.1), (None, x, x, 1.0)
    assert irad.jvp(loss, arguments, tangents) == irad.jvp(program(written_out), arguments, tangents)


class Meter:
    """A C function that counts its calls and the arrays that live meanwhile; its derivative is one."""

    def __init__(self) -> None:
        self.calls = self.most = 0
        self.called = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(self.note)
        irad.rules.easy_rule(self.called, 1.0)

    def note(self, value: float) -> float:
        found = rtsys.get_allocation_stats()
        self.calls, self.most = self.calls + 1, max(self.most, found.alloc - found.free)
        return value


@pytest.mark.parametrize("snapshots", [1, 4])
def test_no_more_states_and_steps_than_the_schedule_says(snapshots) -> None:
    meter = Meter()
    called = meter.called

    @njit
    def measured(x, rate):
        return x + rate * np.sin(x) * called(1.0)

    @njit
    def loss(n, x, rate):
        return counted(n, x, rate).sum()

    counted = irad.checkpoint_loop(measured, None, snapshots)
    gradient, x = irad.grad(loss, argnums=1), np.full(3, 0.1)
    for n in (1, 2, 13, 100):
        with allocations() as count:
            expected = gradient(n, x, 0.1)  # compiled
            start = rtsys.get_allocation_stats()
            meter.calls, meter.most = 0, start.alloc - start.free  # negative where earlier blocks were freed since
            assert np.array_equal(gradient(n, x, 0.1), expected)
            assert meter.calls == reruns(n + 1, snapshots) + n
            assert meter.most - (start.alloc - start.free) <= snapshots + 16
            del expected
            assert count().kept == 0


def test_steps_in_place() -> None:
    @njit
    def move(state, rates):
        u, v = state
        for i in range(u.size):
            u[i], v[i] = v[i] * rates[0], u[i] + rates[1] * v[i]

    loop = irad.checkpoint_loop(move, 9, 2)

    @njit
    def plain(state, rates):
        for _ in range(9):
            move(state, rates)

    def program(loop):
        @njit
        def loss(u, v, rates):
            w = np.zeros((4, 2), u.dtype)
            w[:, 1] = v
            loop((u, w[:, 1]), rates)
            return (u * w[:, 1] + w[:, 0]).sum() + u[0]

        return loss

    for dtype in (np.float32,):
        arguments = np.linspace(1, 2, 4).astype(dtype), np.ones(4, dtype), np.array([0.9, 0.3], dtype)
        found, expected = (
            irad.value_and_grad(program(each), argnums=(0, 1, 2))(*(a.copy() for a in arguments))
            for each in (loop, plain)
        )
        assert found[0] == expected[0]
        assert same(found[1], expected[1])
        assert found[1][0].dtype == dtype


def test_loops_in_loops_that_draw_and_raise() -> None:
    @njit
    def inner(x, rate):
        if x > 50.0:
            raise ValueError("left the domain")
        return x + rate * np.random.random()

    @irad.jit
    def outer(x, rate):
        return irad.checkpoint_loop(inner, 5, 2)(x, rate) * rate

    @irad.jit
    def loss(x, rate):
        np.random.seed(1)
        return irad.checkpoint_loop(outer, 6, 2)(x, rate) * np.random.random()

    @irad.jit
    def plain(x, rate):
        np.random.seed(1)
        for _ in range(6):
            for _ in range(5):
                x = inner(x, rate)
            x = x * rate
        return x * np.random.random()

    gradient = irad.grad(loss, argnums=(0, 1))
    np.testing.assert_allclose(gradient(1.0, 1.1), irad.grad(plain, argnums=(0, 1))(1.0, 1.1), rtol=1e-14)
    with pytest.raises(ValueError, match="left the domain"):
        gradient(1.0, 4.0)


def test_a_loop_with_a_condition() -> None:
    @njit
    def far(x, a):
        return abs(x[0] * x[0] - a) > 1e-10

    @njit
    def newton(x, a):
        return 0.5 * (x[0] + a / x[0]), x[1] + 1

    roots = irad.checkpoint_while(far, newton, 2)

    @njit
    def loss(x, a):
        y, n = roots((x, 0), a)
        return y * n

    @njit
    def plain(x, a):
        state = (x, 0)
        while far(state, a):
            state = newton(state, a)
        return state[0] * state[1]

    for x, a in ((1.0, 4.0), (1e6, 2.0), (2.0, 4.0)):
        assert irad.value_and_grad(loss, argnums=(0, 1))(x, a) == irad.value_and_grad(plain, argnums=(0, 1))(x, a)


def test_a_pullback_of_a_loop_may_run_twice() -> None:
    @njit
    def scaled(x, w):
        return x * w + np.sin(x)

    loop = irad.checkpoint_loop(scaled, 11, 3)
    x, w = np.array([0.3, 0.7]), np.array([1.1, 0.9])

    def plain(x, w):
        for _ in range(11):
            x = scaled(x, w)
        return x

    expected = irad.vjp(plain, x, w)[1](np.ones(2))
    _, pullback = irad.vjp(loop, x, w)
    x[:], w[:] = np.nan, np.nan
    for _ in range(2):
        assert same(pullback(np.ones(2)), expected)


@njit
def doubling(x, work):
    work[0] = 2.0 * x
    return work[0]


@pytest.mark.parametrize(
    ("make", "arguments", "error", "problem"),
    [
        (
            lambda: irad.checkpoint_loop(doubling, 3, 2),
            (1.0, np.ones(1)),
            irad.UnsupportedError,
            "not part of the state",
        ),
        (lambda: irad.checkpoint_loop(lambda x: (x, x), 3, 2), (1.0,), irad.SignatureError, "and returns"),
        (lambda: irad.checkpoint_loop(lambda x: (x[1], x[1]), 3, 2), ((1, 1.0),), irad.SignatureError, "and returns"),
        (
            lambda: irad.checkpoint_loop(lambda x: None, 3, 2),
            ((1.0, np.ones(2)),),
            irad.SignatureError,
            "cannot change",
        ),
        (lambda: irad.checkpoint_loop(lambda x: x, 3, 0), (), irad.SignatureError, "not a positive int"),
        (lambda: irad.checkpoint_loop(lambda x: x, 2.5, 1), (), irad.SignatureError, "not a number of steps"),
        (lambda: irad.checkpoint_loop(lambda: 1.0, 2, 1), (), irad.SignatureError, "takes no state"),
    ],
)
def test_loops_that_cannot_be(make, arguments, error, problem) -> None:
    with pytest.raises(error, match=problem):
        irad.vjp(make(), *arguments)
