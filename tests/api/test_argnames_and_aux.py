"""What is differentiated, named by parameter; and what a function returns besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass

import irad
from irad.testing import gradcheck

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
    assert irad.pushforward(energy, argnames="w")(2.0, X, 3.0) == (15.0, 2.0 * BY_W)
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
    value, tangent, aux = irad.pushforward(energy_and_more, has_aux=True)(V, X, 3.0)
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
        pushed = irad.pushforward(energy_and_more, has_aux=True, argnames="x")(v, x, w)
        moved = irad.jvp(energy_and_more, (x, w), (v, None), has_aux=True)
        return by_w, both, pushed, moved

    by_w, both, pushed, moved = f(X, V, 3.0)
    assert (by_w, both[0], both[1].tolist()) == (BY_W, BY_W, BY_X.tolist())
    for value, tangent, aux in (pushed, moved):
        assert (value, tangent) == (15.0, BY_X @ V)
        assert is_aux(aux)
