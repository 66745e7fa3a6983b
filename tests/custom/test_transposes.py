"""Reverse mode of functions that have a rule for tangents only. Rules give ten times the derivative of the body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad.errors import RuleError, UnsupportedError

X = np.array([1.0, 2.0, 0.5])
V = np.array([0.5, -1.0, 2.0])
C = np.array([2.0, 3.0, -1.0])


def ruled(body: Any, rule: Any, **settings: Any) -> Any:
    function = irad.custom_jvp(njit(body), **settings)
    function.defjvp(njit(rule))
    return function


def solved(a, b):
    return np.linalg.solve(a, b)


def solved_jvp(primals, tangents):
    (a, b), (da, db) = primals, tangents
    x = np.linalg.solve(a, b)
    return x, 10.0 * np.linalg.solve(a, db - da @ x)


def parts(p, n, s):
    return np.sin(p[0]) * p[1][0] * s * n, p[1][1].sum() * s, n


def parts_jvp(primals, tangents):
    (p, n, s), (dp, _, ds) = primals, tangents
    y = np.sin(p[0]) * p[1][0] * s * n
    dy = np.empty_like(y)
    for i in range(y.size):
        dy[i] = np.cos(p[0][i]) * dp[0][i] * p[1][0] * s * n if p[0][i] > 0.75 else 0.0
        dy[i] += np.sin(p[0][i]) * (dp[1][0] * s + p[1][0] * ds) * n
    return (y, p[1][1].sum() * s, n), (10.0 * dy, 10.0 * (dp[1][1].sum() * s + p[1][1].sum() * ds), None)


def test_numbers_and_arrays() -> None:
    f = ruled(
        lambda x, a: x * x * a,
        lambda primals, tangents: (
            primals[0] ** 2 * primals[1],
            10.0 * (2.0 * primals[0] * tangents[0] * primals[1] + primals[0] ** 2 * tangents[1]),
        ),
    )

    @njit
    def loss(x, a, c):
        y = f(x, a)
        total = (y * c).sum()
        x[:] = 7.0  # after the call: the transpose needs what was there
        y[:] = 0.0
        return total

    for plan in ("default", "save_all"):
        dx, da = irad.grad(loss, (0, 1), options=irad.Options(plan=plan))(X.copy(), 3.0, C)
        np.testing.assert_allclose(dx, 60.0 * X * C)
        assert da == pytest.approx(10.0 * (X**2 * C).sum())
    assert irad.grad(njit(lambda a: f(X, a).sum()))(3.0) == pytest.approx(10.0 * (X**2).sum())
    assert irad.grad(njit(lambda x: 2.0 * f(x, 3.0)))(2.0) == 240.0
    single = irad.grad(njit(lambda x: f(x, np.float32(3.0)).sum()))(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, 60.0 * X, rtol=1e-6)
    assert irad.grad(njit(lambda x: f(x, 3.0).sum()))(np.empty(0)).size == 0
    # The rule is differentiated again, in reverse mode and in forward mode.
    np.testing.assert_allclose(irad.hessian(njit(lambda x: f(x, 3.0).sum()))(X), np.diag([60.0] * 3))
    strided = np.arange(6.0)[::-2]
    np.testing.assert_allclose(irad.grad(njit(lambda x: f(x, 3.0).sum()))(strided), 60.0 * strided)


def test_a_linear_system() -> None:
    f, rng = ruled(solved, solved_jvp), np.random.default_rng(1)
    a, b = rng.normal(size=(3, 3)) + 3.0 * np.eye(3), rng.normal(size=3)
    x = np.linalg.solve(a, b)
    da, db = irad.vjp(f, a, b)[1](C)
    dual = 10.0 * np.linalg.solve(a.T, C)
    np.testing.assert_allclose(db, dual)
    np.testing.assert_allclose(da, -np.outer(dual, x))
    ta, tb = rng.normal(size=(3, 3)), rng.normal(size=3)
    tangent = irad.jvp(f, (a, b), (ta, tb))[1]
    assert tangent @ C == pytest.approx((da * ta).sum() + db @ tb)


def test_tuples_constants_and_parts_without_a_derivative() -> None:
    f = ruled(parts, parts_jvp)
    point, tangent = ((X, (2.0, C)), 3, 1.5), ((V, (0.25, X)), None, -0.5)
    cotangent = (C, 2.0, None)
    dp, _, ds = irad.vjp(f, *point)[1](cotangent)
    _, found = irad.jvp(f, point, tangent)
    forward = found[0] @ C + 2.0 * found[1]
    assert forward == pytest.approx(dp[0] @ V + dp[1][0] * 0.25 + dp[1][1] @ X - 0.5 * ds)
    np.testing.assert_allclose(dp[0], np.where(X > 0.75, 90.0 * np.cos(X) * C, 0.0))
    # Only the second part of the value has a cotangent, and only a part of the tuple is active.
    assert irad.grad(njit(lambda s, x, c: f((x, (2.0, c)), 3, s)[1]))(1.5, X, C) == pytest.approx(10.0 * C.sum())
    np.testing.assert_allclose(irad.grad(njit(lambda c: f((X, (2.0, c)), 3, 1.5)[1]))(C), np.full(3, 15.0))


def test_complex_numbers() -> None:
    f = ruled(lambda z: z * z, lambda primals, tangents: (primals[0] ** 2, 20.0 * primals[0] * tangents[0]))
    z = 1.5 - 0.5j
    gradient = irad.grad(njit(lambda z: f(z).imag))(z)
    plain = irad.grad(njit(lambda z: (z * z).imag))(z)
    assert gradient == pytest.approx(10.0 * plain)


def test_constant_arguments_and_inner_derivatives() -> None:
    @njit
    def cube(x):
        return (x * x * x).sum()

    @irad.custom_jvp(nondiff_argnums=0)
    def f(g, x):
        return g(x)

    @f.defjvp
    def f_jvp(g, primals, tangents):
        return g(primals[0]), 10.0 * irad.jvp(g, (primals[0],), (tangents[0],))[1]

    np.testing.assert_allclose(irad.grad(njit(lambda x: f(cube, x)))(X), 30.0 * X**2)


def test_a_rule_for_reverse_mode_takes_precedence() -> None:
    body, rule = (lambda x: x * x), (lambda primals, tangents: (primals[0] ** 2, 20.0 * primals[0] * tangents[0]))
    reverse = (lambda x: (x * x, x), lambda x, cotangent: (200.0 * x * cotangent,))
    after = irad.custom_jvp(body)
    after.defjvp(rule)
    assert irad.grad(after)(1.0) == 20.0
    after.defvjp(*reverse)
    before = irad.custom_vjp(body)
    before.defvjp(*reverse)
    before.defjvp(rule)
    for function in (before, after):
        assert irad.grad(function)(1.0) == 200.0
        assert irad.jvp(function, (1.0,), (1.0,))[1] == 20.0


def branching(primals, tangents):
    if tangents[0].sum() > 0.0:
        return primals[0].sum(), 2.0 * tangents[0].sum()
    return primals[0].sum(), tangents[0].sum()


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (lambda p, t: (p[0].sum(), (t[0] * t[0]).sum()), "multiplies two numbers"),
        (lambda p, t: (p[0].sum(), np.dot(t[0], t[0])), "numba_xxdot"),
        (lambda p, t: (p[0].sum(), np.linalg.norm(t[0])), "numba_xxnrm2"),
        (lambda p, t: (p[0].sum(), (p[0] / t[0]).sum()), "divides by a number|compares numbers"),
        (lambda p, t: (p[0].sum(), np.abs(t[0]).sum()), "takes fabs"),
        (lambda p, t: (p[0].sum(), np.floor(t[0]).sum()), "takes floor"),
        (lambda p, t: (p[0].sum(), np.tanh(t[0]).sum()), "takes tanh"),
        (lambda p, t: (p[0].sum(), max(-1.0, min(1.0, t[0].sum()))), "compares numbers"),
        (lambda p, t: (p[0].sum(), p[0][int(t[0].sum())]), "to an integer"),
        (lambda p, t: (p[0].sum(), np.linalg.solve(np.outer(t[0], p[0]), p[0]).sum()), "numba_xgesv"),
        (branching, "compares numbers"),
    ],
)
def test_what_is_not_linear_is_refused(rule: Any, problem: str) -> None:
    f = ruled(lambda x: x.sum(), rule)
    with pytest.raises(UnsupportedError, match=rf"not linear: .*({problem})") as caught:
        irad.grad(njit(lambda x: f(x)))(X)
    text = str(caught.value)
    assert "test_transposes.py" in text
    assert "defvjp" in text


def test_memory_of_an_argument_is_refused() -> None:
    f = ruled(lambda x: x[::-1], lambda p, t: (p[0][::-1], t[0][::-1]))
    with pytest.raises(RuleError, match="returns memory of one of its arguments"):
        irad.grad(njit(lambda x: f(x).sum()))(X)
