"""Rules in the style of JAX. Each gives ten times the derivative of the body, so that it shows what was used."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad.errors import NoRuleError, RuleError

X = np.array([1.0, 2.0])
V = np.array([0.5, -1.0])


def by_tangents() -> Any:
    @irad.custom_jvp
    def f(x, a):
        return x * x * a, x.size

    @f.defjvp
    def f_jvp(primals, tangents):
        x, a = primals
        dx, da = tangents
        return f(x, a), (10.0 * (2.0 * x * dx * a + x * x * da), None)

    return f


def by_cotangents() -> Any:
    @irad.custom_vjp
    @njit
    def f(x, n, a):
        return np.exp(x) * a, x.sum() * a * n

    def forward(x, n, a):
        y = np.exp(x) * a
        return (y, x.sum() * a * n), (y, x, n, a)

    def backward(kept, cotangent):
        y, x, n, a = kept
        by_y, by_s = cotangent
        by_a = (by_y * np.exp(x)).sum() + by_s * x.sum() * n
        return 10.0 * (by_y * y + by_s * a * n), None, 10.0 * by_a

    f.defvjp(forward, backward)
    return f


def test_a_rule_by_tangents() -> None:
    f = by_tangents()
    assert (f(X, 3.0)[0].tolist(), f(X, 3.0)[1]) == ([3.0, 12.0], 2)
    value, (tangent, nothing) = irad.jvp(f, (X, 3.0), (V, 2.0))
    np.testing.assert_allclose(tangent, 10.0 * (6.0 * X * V + 2.0 * X * X))
    assert (value[0].tolist(), nothing) == ([3.0, 12.0], None)
    loss = njit(lambda x: f(x, 3.0)[0].sum())  # a constant argument has the tangent zero
    assert irad.pushforward(loss)(X, V) == (15.0, 10.0 * (6.0 * X * V).sum())


def test_both_rules() -> None:
    f = by_tangents()
    loss = njit(lambda x: f(x, 3.0)[0].sum())
    np.testing.assert_allclose(irad.grad(loss)(X), 60.0 * X)  # the transpose, until there is a rule
    f.defvjp(
        lambda x, a: ((x * x * a, x.size), (x, a)),
        lambda kept, ct: (20.0 * kept[0] * kept[1] * ct[0], 10.0 * (kept[0] ** 2 * ct[0]).sum()),
    )
    np.testing.assert_allclose(irad.grad(loss)(X), 60.0 * X)
    assert irad.jvp(loss, (X,), (V,))[1] == pytest.approx(irad.grad(loss)(X) @ V)


def test_a_rule_by_cotangents() -> None:
    """What it keeps is its own: the caller overwrites value and argument before the reverse sweep."""
    f = by_cotangents()

    @njit
    def loss(x, a):
        y, s = f(x, 3, a)
        total = y.sum() + s
        y[:] = 0.0
        x[:] = 7.0
        return total

    for plan in ("default", "save_all"):
        gradient = irad.grad(loss, (0, 1), options=irad.Options(plan=plan))
        by_x, by_a = gradient(X.copy(), 2.0)
        np.testing.assert_allclose(by_x, 10.0 * (2.0 * np.exp(X) + 6.0))
        assert by_a == pytest.approx(10.0 * (np.exp(X).sum() + 9.0))
    by_x, _, by_a = irad.vjp(f, X, 3, 2.0)[1]((V, None))
    np.testing.assert_allclose(by_x, 20.0 * V * np.exp(X))
    assert by_a == pytest.approx(10.0 * (V * np.exp(X)).sum())


def test_tuples_have_tuples_of_cotangents() -> None:
    Pair = namedtuple("Pair", "a b")
    f = irad.custom_vjp(lambda p, q: (p.a * p.b[0]).sum() * q[0] + p.b[1].sum() * q[1])

    def forward(p, q):
        return (p.a * p.b[0]).sum() * q[0] + p.b[1].sum() * q[1], (p.a, p.b[0], p.b[1], q)

    def backward(kept, cotangent):
        a, b, c, q = kept
        by_q = 10.0 * (a * b).sum() * cotangent, None
        by_a = np.full(a.size, 10.0 * b * q[0] * cotangent)
        return (by_a, (10.0 * a.sum() * q[0] * cotangent, np.full(c.size, 10.0 * q[1]))), by_q

    f.defvjp(forward, backward)
    p, q = Pair(X, (3.0, V)), (2.0, 5.0)
    (da, (db, dc)), dq = irad.grad(njit(lambda p, q: f(p, q)), (0, 1))(p, q)
    np.testing.assert_allclose(da, [60.0, 60.0])
    assert db == pytest.approx(60.0)
    np.testing.assert_allclose(dc, [50.0, 50.0])
    assert dq == (90.0, 0.0)
    found = irad.grad(njit(lambda c, q: f(Pair(X, (3.0, c)), q)))(V, q)  # a part of the argument is active
    np.testing.assert_allclose(found, [50.0, 50.0])


def test_parts_without_a_cotangent_and_constant_arguments() -> None:
    f = by_cotangents()
    np.testing.assert_allclose(irad.grad(njit(lambda x: f(x, 3, 2.0)[1]))(X), 60.0)
    np.testing.assert_allclose(irad.grad(njit(lambda a: f(X, 3, a)[0].sum()))(2.0), 10.0 * np.exp(X).sum())
    single = X.astype(np.float32)
    found = irad.grad(njit(lambda x: f(x, 3, np.float32(2.0))[0].sum()))(single)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 20.0 * np.exp(X), rtol=1e-6)


def test_forward_mode_needs_a_rule_of_its_own() -> None:
    f = by_cotangents()
    with pytest.raises(NoRuleError, match="f has a rule for reverse mode only"):
        irad.jvp(f, (X, 3, 2.0), (V, None, None))


def test_without_any_rule() -> None:
    f = irad.custom_vjp(lambda x: x * x)
    assert f(3.0) == 9.0
    for attempt in (lambda: irad.grad(f)(3.0), lambda: irad.jvp(f, (3.0,), (1.0,))):
        with pytest.raises(NoRuleError):
            attempt()


def test_memory_of_an_argument_is_refused() -> None:
    """Returned, whole or in part, or overwritten: cotangents of values say nothing about it."""
    flipped = irad.custom_vjp(lambda x: x[::-1])
    flipped.defvjp(lambda x: (x[::-1], None), lambda kept, ct: (ct[::-1],))
    loss = njit(lambda x: flipped(x).sum())
    with pytest.raises(RuleError, match="returns memory of one of its arguments"):
        irad.grad(loss)(X)

    @irad.custom_vjp
    def writes(x):
        x *= 2.0
        return x.sum()

    writes.defvjp(lambda x: (x.sum(), None), lambda kept, ct: (np.ones(2) * ct,))

    @njit
    def overwritten(x):
        y = x + 1.0
        return writes(y) + y.sum()

    with pytest.raises(irad.ActivityError, match="says nothing about what it overwrites"):
        irad.grad(overwritten)(X)


@pytest.mark.parametrize(
    ("backward", "problem"),
    [
        (lambda kept, ct: (ct,), "for 2 arguments"),
        (lambda kept, ct: (1.0, 1.0), "returns a float64 for a float64"),
        (lambda kept, ct: (np.ones(3), 1.0), "whose shape differs"),
    ],
)
def test_what_the_backward_function_must_return(backward: Any, problem: str) -> None:
    f = irad.custom_vjp(lambda x, a: x.sum() * a)
    f.defvjp(lambda x, a: (x.sum() * a, None), backward)
    with pytest.raises(RuleError, match=problem):
        irad.grad(f, (0, 1))(X, 2.0)


def test_what_is_no_rule() -> None:
    f = irad.custom_vjp(lambda x, a: x * a)
    with pytest.raises(RuleError, match=r"cannot be called with 2 arguments[\s\S]*\(primals, tangents\)"):
        f.defjvp(lambda x: x)
    with pytest.raises(RuleError, match=r"let it take \(x, a\)"):
        f.defvjp(lambda x: (x, None), lambda kept, ct: (ct, ct))
    with pytest.raises(RuleError, match="is not a function"):
        irad.custom_vjp(3.0)
    with pytest.raises(RuleError, match="takes star arguments"):
        irad.custom_jvp(lambda *x: x[0])


def test_arguments_without_a_derivative() -> None:
    """A function, settings, and an array that is overwritten before the reverse sweep."""

    @irad.custom_vjp(nondiff_argnames=("g", "w"))
    def f(g, x, n, w):
        return g(x) * n * w.sum()

    f.defvjp(
        lambda g, x, n, w: (g(x) * n * w.sum(), (x, n)),
        lambda g, w, kept, cotangent: (10.0 * g(kept[0]) * kept[1] * w.sum() * cotangent, None),
    )
    f.defjvp(
        lambda g, w, primals, tangents: (
            g(primals[0]) * primals[1] * w.sum(),
            10.0 * g(primals[0]) * primals[1] * w.sum() * tangents[0],
        )
    )
    exp, cube = njit(lambda x: np.exp(x)), njit(lambda x: x**3)

    @njit
    def loss(x):
        w = np.ones(3)
        first = f(exp, x, 2, w)
        w[:] = 7.0
        return first + f(cube, x, 1, w)

    expected = 10.0 * (np.exp(1.5) * 6.0 + 1.5**3 * 21.0)
    assert irad.grad(loss)(1.5) == pytest.approx(expected, rel=1e-14)
    assert irad.jvp(loss, (1.5,), (1.0,))[1] == pytest.approx(expected, rel=1e-14)
    for derivative in (
        irad.grad(njit(lambda x: f(exp, 1.0, 1, x))),
        lambda x: irad.jvp(f, (exp, 1.0, 1, x), (None, None, None, x)),
    ):
        with pytest.raises(RuleError, match=r"an argument among nondiff_argnums, .* carries a derivative"):
            derivative(X)


def test_which_arguments_have_no_derivative() -> None:
    with pytest.raises(irad.SignatureError, match="nope"):
        irad.custom_jvp(lambda x: x, nondiff_argnames="nope")
    f = irad.custom_vjp(lambda x, n: x, nondiff_argnums=(-1,))
    with pytest.raises(RuleError, match="cannot be called with 3 arguments") as caught:
        f.defvjp(lambda x, n: (x, None), lambda kept, cotangent: (cotangent,))
    assert "let it take (n, residuals, cotangent)" in caught.value.remedy
