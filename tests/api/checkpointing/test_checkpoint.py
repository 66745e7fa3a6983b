"""Functions of which only the arguments are saved: the gradient is that of the plain function, to the bit."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest
from numba import njit
from numba.typed import List

import irad

Model = namedtuple("Model", ["scale", "weights", "order"])


@njit
def mixed(x, model, shifts=(0.5, 1)):
    """Overwrites ``x``; some parts of its arguments are constant."""
    y = np.empty_like(x)
    for i in range(x.size):
        x[i] = np.sin(model.scale * x[i]) + shifts[0]
        y[i] = x[i] ** model.order * model.weights[i]
    return y, model.scale * x[0], shifts[1] + 1


def program(f):
    @njit
    def loss(x, scale, weights):
        x = x.copy()
        model = Model(scale, weights, 2)
        total = 0.0
        for _ in range(3):
            y, more, count = f(x, model)
            x = x + y
            total += more * count
        return total + (f(x, model, (scale, 3))[0] * x).sum()

    return loss


def test_the_gradient_is_that_of_the_plain_function() -> None:
    plain = program(irad.rules.noinline(njit(mixed.py_func)))  # a call has its own sums
    checked = program(irad.checkpoint(mixed))
    strict = irad.Options(strict=True)  # sums are not reordered, also in what runs again
    for dtype in (np.float64, np.float32):
        arguments = np.linspace(0.1, 1.0, 4).astype(dtype), dtype(1.3), np.arange(1.0, 5.0).astype(dtype)
        assert checked(*arguments) == plain(*arguments)
        expected = irad.grad(plain, argnums=(0, 1, 2), options=strict)(*arguments)
        found = irad.grad(checked, argnums=(0, 1, 2), options=strict)(*arguments)
        for one, other in zip(found, expected, strict=True):
            assert np.array_equal(one, other)
            assert np.asarray(one).dtype == dtype
    tangents = arguments
    assert irad.jvp(checked, arguments, tangents) == irad.jvp(plain, arguments, tangents)


def test_a_pullback_may_run_twice_after_the_arguments_have_changed() -> None:
    @irad.checkpoint
    @njit
    def doubled(x, w):
        x *= w[0]
        return x.sum() * w[1]

    x, w = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    value, pullback = irad.vjp(doubled, x, w)
    assert (value, list(x)) == (45.0, [3.0, 6.0])
    x[:], w[:] = 100.0, 100.0
    for _ in range(2):
        by_x, by_w = pullback(1.0)
        assert (list(by_x), list(by_w)) == ([15.0, 15.0], [15.0, 9.0])
    assert list(x) == [100.0, 100.0]


def test_what_it_draws_is_drawn_again() -> None:
    @njit
    def dropped(x):
        y = x.copy()
        for i in range(x.size):
            y[i] *= np.random.random() + np.random.standard_normal()
        return y

    checked = irad.checkpoint(dropped)

    @njit
    def loss(x):
        np.random.seed(3)
        total = (checked(checked(x)) * x).sum()
        return total, np.random.random()

    @njit
    def plain(x):
        np.random.seed(3)
        total = (dropped(dropped(x)) * x).sum()
        return total, np.random.random()

    x = np.linspace(1.0, 2.0, 5)
    found, following = irad.grad(loss, has_aux=True)(x)
    expected, drawn = irad.grad(plain, has_aux=True)(x)
    assert np.array_equal(found, expected)
    assert following == drawn


def test_exceptions_custom_rules_and_checkpoints_inside() -> None:
    @njit
    def cube(x):
        return x * x * x

    irad.rules.easy_rule(cube, lambda x: 30.0 * x * x)

    @irad.checkpoint
    @njit
    def inner(x):
        if x > 5.0:
            raise ValueError("too far")
        return cube(x) + x

    @irad.checkpoint
    @irad.jit
    def outer(x):
        return inner(x) + irad.checkpoint(inner)(2.0 * x)

    gradient = irad.grad(outer)
    assert gradient(1.0) == 30.0 + 1.0 + 2.0 * (30.0 * 4.0 + 1.0)
    with pytest.raises(ValueError, match="too far"):
        gradient(4.0)


def first(x, other):
    return x * other[0]


@pytest.mark.parametrize(
    ("f", "other", "problem"),
    [
        (first, lambda: List([2.0]), "is passed a ListType"),
        (lambda x, other: x * other.random(), np.random.default_rng(1), "is passed a random generator"),
        (lambda x, other: other, np.ones(2), "may return an array that it was passed"),
    ],
)
def test_what_cannot_run_again_is_refused(f, other, problem) -> None:
    other = other() if callable(other) else other  # each process of a run would compile for it, as it imports this
    checked = irad.checkpoint(f)

    @njit
    def loss(x, other):
        return np.sum(x * np.asarray(checked(x, other)))

    with pytest.raises(irad.UnsupportedError, match=problem):
        irad.value_and_grad(loss, argnums=(0, 1) if isinstance(other, np.ndarray) else 0)(2.0, other)


def test_any_number_of_arguments_is_refused() -> None:
    with pytest.raises(irad.SignatureError, match="takes any number of arguments"):
        irad.checkpoint(njit(lambda x, *rest: x))
