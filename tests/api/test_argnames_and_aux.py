"""What is differentiated, named by parameter; and what a function returns besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import irad
from irad.testing import gradcheck
from irad.testing.allocations import allocations

X = np.array([1.0, 2.0])
V = np.array([0.5, -1.0])


@njit
def energy(x, w):
    return (w * x * x).sum()


@njit
def energy_and_more(x, w):
    return (w * x * x).sum(), (x.size, w * x)


BY_X, BY_W = 6.0 * X, 5.0  # at w = 3


def is_aux(found: Any) -> bool:
    return found[0] == 2 and np.array_equal(found[1], 3.0 * X)


def test_names() -> None:
    assert irad.grad(energy, argnames="w")(X, 3.0) == BY_W
    by_w, by_x = irad.grad(energy, argnames=("w", "x"))(X, 3.0)
    assert (by_w, by_x.tolist()) == (BY_W, BY_X.tolist())
    assert irad.grad(energy, argnames="w") is irad.grad(energy, 1)
    assert irad.value_and_grad(energy, argnames=["w"])(X, 3.0) == (15.0, (BY_W,))
    out = np.empty(1)
    irad.value_and_grad_into(energy, argnames="w")(out, X, 3.0)
    assert out[0] == BY_W
    assert irad.pushforward(energy, argnames="w")(X, 3.0, 2.0) == (15.0, 2.0 * BY_W)
    assert irad.check(energy, X, 3.0, argnames="w").positions == (1,)
    assert gradcheck(energy, X, 3.0, argnames="w").right
    assert irad.tape_report(energy, X, 3.0, argnames="x").derivative == "irad.grad"


def test_a_method() -> None:
    @jitclass([("scale", float64)])
    class Model:
        def __init__(self, scale):
            self.scale = scale

        def energy(self, x, w):
            return self.scale * w * x

    assert irad.grad(Model(2.0).energy, argnames="w")(3.0, 4.0) == 6.0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"argnames": "z"}, r"names 'z', but energy has no such parameter[\s\S]*x, w"),
        ({"argnames": ("w", "w")}, "names a parameter twice"),
        ({"argnames": ()}, "is empty"),
        ({"argnums": 1, "argnames": "w"}, "are both given"),
    ],
)
def test_wrong_names(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(irad.SignatureError, match=problem):
        irad.grad(energy, **given)


def test_star_arguments_have_positions_only() -> None:
    with pytest.raises(irad.SignatureError, match="argnums for star arguments"):
        irad.grad(njit(lambda x, *rest: x * rest[0]), argnames="rest")


def test_aux() -> None:
    value, tangent, aux = irad.pushforward(energy_and_more, has_aux=True)(X, V, 3.0)
    assert (value, tangent) == (15.0, BY_X @ V)
    assert is_aux(aux)
    value, tangent, aux = irad.jvp(energy_and_more, (X, 3.0), (V, 2.0), has_aux=True)
    assert (value, tangent) == (15.0, BY_X @ V + 2.0 * BY_W)
    out = np.empty(2)
    value, aux = irad.value_and_grad_into(energy_and_more, has_aux=True)(out, X, 3.0)
    assert value == 15.0
    assert is_aux(aux)
    assert out.tolist() == BY_X.tolist()
    value, pullback, aux = irad.vjp(energy_and_more, X, 3.0, has_aux=True)
    assert value == 15.0
    assert is_aux(aux)
    by_x, by_w = pullback(2.0)
    assert (by_x.tolist(), by_w) == ((2.0 * BY_X).tolist(), 2.0 * BY_W)


def test_aux_may_be_anything() -> None:
    """Also what has no tangent that irad can represent, and new memory, none of which is lost."""

    @njit
    def f(x):
        return x * x, {1.0: x}

    for _ in range(3):
        value, tangent, aux = irad.jvp(f, (3.0,), (1.0,), has_aux=True)
        assert (value, tangent, aux[1.0]) == (9.0, 6.0, 3.0)


def test_without_aux() -> None:
    for attempt in (
        lambda: irad.jvp(energy, (X, 3.0), (V, None), has_aux=True),
        lambda: irad.vjp(energy, X, 3.0, has_aux=True),
        lambda: irad.value_and_grad_into(energy, has_aux=True)(np.empty(2), X, 3.0),
    ):
        with pytest.raises(irad.SignatureError, match=r"must return \(value, aux\)"):
            attempt()


def test_inside_compiled_code() -> None:
    @njit
    def f(x, v, w):
        by_w = irad.grad(energy, argnames="w")(x, w)
        both = irad.grad(energy, argnames=("w", "x"))(x, w)
        pushed = irad.pushforward(energy_and_more, has_aux=True, argnames="x")(x, v, w)
        moved = irad.jvp(energy_and_more, (x, w), (v, None), has_aux=True)
        return by_w, both, pushed, moved

    by_w, both, pushed, moved = f(X, V, 3.0)
    assert (by_w, both[0], both[1].tolist()) == (BY_W, BY_W, BY_X.tolist())
    for value, tangent, aux in (pushed, moved):
        assert (value, tangent) == (15.0, BY_X @ V)
        assert is_aux(aux)


@njit
def product(x, w, y):
    return w * (x * y).sum(), x.size


Y = np.array([3.0, -2.0])
TO_X, TO_W = 3.0 * Y, X @ Y


def test_what_is_named_is_what_a_pullback_returns() -> None:
    value, pullback, aux = irad.vjp(product, X, y=Y, w=3.0, argnames="w", has_aux=True)
    assert (value, aux, pullback(2.0)) == (3.0 * TO_W, 2, 2.0 * TO_W)
    _, pullback = irad.vjp(product, X, 3.0, Y, argnums=(1, 0))
    by_w, by_x = pullback((1.0, None))
    assert (by_w, by_x.tolist()) == (TO_W, TO_X.tolist())


@njit
def fill(out, x, w):
    out[:] = w * x


def test_what_is_named_where_results_are_written() -> None:
    """The array that is written takes part, although it is not named."""
    out = np.empty(2)
    _, pullback = irad.vjp(fill, out, X, 3.0, argnames="w")
    assert out.tolist() == (3.0 * X).tolist()
    assert pullback((V, None, None)) == V @ X


def test_what_is_named_where_values_pass_through_a_constant() -> None:
    @njit
    def through(x, work, unused):
        work[:] = x * x
        return (work * V).sum() + unused

    _, pullback = irad.vjp(through, X, np.empty(2), 1.0, argnames="x")
    np.testing.assert_allclose(pullback(1.0), 2.0 * X * V, rtol=1e-15)


def test_what_is_named_is_what_a_direction_consists_of() -> None:
    assert irad.jvp(energy, (X, 3.0), 2.0, argnames="w") == (15.0, 2.0 * BY_W)
    assert irad.jvp(energy, (X, 3.0), (2.0, V), argnums=(1, 0))[1] == 2.0 * BY_W + BY_X @ V
    _, linear = irad.linearize(energy, X, 3.0, argnames="w")
    assert linear(2.0) == 2.0 * BY_W
    value, linear, aux = irad.linearize(energy_and_more, X, 3.0, argnums=(1, 0), has_aux=True)
    assert (value, linear(2.0, V)) == (15.0, 2.0 * BY_W + BY_X @ V)
    assert is_aux(aux)
    with pytest.raises(irad.SignatureError, match="given 1 tangents") as caught:
        linear(V)
    assert "pass 2, one for each of argnums" in caught.value.remedy


def test_second_derivatives() -> None:
    assert irad.hvp(energy, argnames="w")(X, 3.0, 1.0) == 0.0
    np.testing.assert_allclose(irad.hessian(energy, argnames="x")(X, 3.0), 6.0 * np.eye(2), rtol=1e-15)
    found, aux = irad.hvp(energy_and_more, has_aux=True)(X, V, 3.0)
    np.testing.assert_allclose(found, 6.0 * V, rtol=1e-15)
    assert is_aux(aux)
    found, gradient, aux = irad.hvp_and_grad(energy_and_more, has_aux=True)(X, V, 3.0)
    assert (found.tolist(), gradient.tolist()) == ((6.0 * V).tolist(), BY_X.tolist())
    assert is_aux(aux)


def test_the_names_and_keywords_of_calls_in_compiled_code() -> None:
    @njit
    def f(x, y):
        value, pullback, aux = irad.vjp(product, x, y=y, w=3.0, argnames="w", has_aux=True)
        _, both = irad.vjp(product, x, 3.0, y, argnums=(1, 0))
        _, every = irad.vjp(product, y=y, w=3.0, x=x)
        pushed = irad.jvp(energy, (x, 3.0), 2.0, argnames="w")
        _, linear, more = irad.linearize(energy_and_more, x, 3.0, argnames=("w", "x"), has_aux=True)
        second = irad.hvp(energy, argnames="x")(x, V, 3.0)
        return value, pullback(2.0), aux, both((1.0, None)), every((1.0, None)), pushed, linear(2.0, V), more, second

    f(X, Y)
    with allocations() as made:
        f(X, Y)
        irad.hvp(energy_and_more, has_aux=True)(X, V, 3.0)
        assert (made().kept, made().kept_headers) == (0, 0)
    value, by_w, aux, both, every, pushed, tangent, more, second = f(X, Y)
    assert second.tolist() == (6.0 * V).tolist()
    assert (value, by_w, aux) == (3.0 * TO_W, 2.0 * TO_W, 2)
    assert (both[0], both[1].tolist()) == (TO_W, TO_X.tolist())
    assert [np.asarray(each).tolist() for each in every] == [TO_X.tolist(), TO_W, (3.0 * X).tolist()]
    assert pushed == (15.0, 2.0 * BY_W)
    assert tangent == 2.0 * BY_W + BY_X @ V
    assert is_aux(more)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (njit(lambda x: irad.vjp(energy, x, 3.0, argnames="z")), "argnames names 'z'"),
        (njit(lambda x, n: irad.vjp(energy, x, 3.0, argnums=n)), "argnums of a derivative inside compiled code"),
        (njit(lambda x: irad.vjp(energy, x, 3.0, options=irad)), "irad.vjp inside compiled code is given options"),
        (njit(lambda x: irad.vjp(energy, x, 3.0, has_aux=True)), r"must return \(value, aux\)"),
    ],
)
def test_what_calls_in_compiled_code_refuse(call: Any, problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        call(*(X, 1)[: len(call.py_func.__code__.co_varnames)])
