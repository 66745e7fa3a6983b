"""Linear maps: the derivative at a point, in any direction, as often as asked for."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import List

import irad

X = np.array([1.0, 2.0, 3.0])
V = np.array([0.5, -1.0, 2.0])
Model = namedtuple("Model", ["rate", "weights"])


@njit
def scaled(x, n, w):
    y = x.copy()
    for i in range(n):
        y[i] *= x[0] * w
    return y, y.sum()


def slope(v: Any, by_w: float) -> Any:
    """By hand, at X, n = 2, w = 3: of x0² w, x0 x1 w, x2."""
    x = X
    return np.array(
        [6.0 * x[0] * v[0] + x[0] ** 2 * by_w, 3.0 * (v[0] * x[1] + x[0] * v[1]) + x[0] * x[1] * by_w, v[2]]
    )


def check(value: Any, tangent: Any, by_x: Any, by_w: float) -> None:
    assert value[0].tolist() == [3.0, 6.0, 3.0]
    np.testing.assert_allclose(tangent[0], slope(by_x, by_w), rtol=1e-14)
    np.testing.assert_allclose(tangent[1], slope(by_x, by_w).sum(), rtol=1e-14)


def test_a_linear_map() -> None:
    """It is that of the arguments as they were, and leaves the tangents alone; the pullback is its adjoint."""
    x, v = X.copy(), V.copy()
    value, linear = irad.linearize(scaled, x, 2, 3.0)
    x[:] = 9.0
    check(value, linear(v, None, 0.0), V, 0.0)
    check(value, linear(None, None, 2.0), np.zeros(3), 2.0)
    tangent = linear(v, None, -1.0)
    check(value, tangent, V, -1.0)
    assert v.tolist() == V.tolist()
    _, pullback = irad.vjp(scaled, X.copy(), 2, 3.0)
    by_x, _, by_w = pullback((X, 2.0))
    assert tangent[0] @ X + 2.0 * tangent[1] == pytest.approx(by_x @ V - by_w, rel=1e-13)
    assert repr(linear) == "<linear map of scaled>"


def test_inside_compiled_code() -> None:
    @njit
    def f(x, v):
        value, linear = irad.linearize(scaled, x, 2, 3.0)
        x[:] = 9.0
        return value, linear(v, None, None), linear(None, None, 2.0)

    for _ in range(2):
        value, first, second = f(X.copy(), V)
        check(value, first, V, 0.0)
        check(value, second, np.zeros(3), 2.0)


def test_two_maps_in_compiled_code() -> None:
    """Of functions with the same value and argument types, which agree at the point and not in their derivatives."""

    @njit
    def square(x):
        return x * x

    @njit
    def cube(x):
        return x * x * x

    @njit
    def f(x):
        _, of_square = irad.linearize(square, x)
        _, of_cube = irad.linearize(cube, x)
        _, back = irad.vjp(square, x)
        _, back_of_cube = irad.vjp(cube, x)
        return of_square(1.0), of_cube(1.0), back(1.0)[0], back_of_cube(1.0)[0]

    assert f(1.0) == (2.0, 3.0, 2.0, 3.0)


@njit
def of_parts(model, items):
    items[0] *= model.rate
    return model.weights * items[0] + items[1]


@pytest.mark.parametrize("kind", [list, List])
@pytest.mark.filterwarnings("ignore:")
def test_tuples_and_lists(kind: Any) -> None:
    items = kind([2.0, 3.0])
    value, linear = irad.linearize(of_parts, Model(5.0, X), items)
    assert (value.tolist(), items[0]) == ((X * 10.0 + 3.0).tolist(), 10.0)
    for _ in range(2):
        found = linear((1.0, V), kind([4.0, 0.5]))
        np.testing.assert_allclose(found, V * 10.0 + X * (1.0 * 2.0 + 5.0 * 4.0) + 0.5, rtol=1e-14)


def test_named_tuples_inside_compiled_code() -> None:
    @njit
    def f(model, v):
        value, linear = irad.linearize(of_parts, model, [2.0, 3.0])
        return value, linear((1.0, v), None)

    value, tangent = f(Model(5.0, X), V)
    np.testing.assert_allclose(value, X * 10.0 + 3.0)
    np.testing.assert_allclose(tangent, V * 10.0 + X * 2.0)


def test_arrays_in_place() -> None:
    @njit
    def f(out, x):
        for i in range(x.size):
            out[i] = x[i] * x[i] * out[i]

    out = np.full(3, 2.0)
    value, linear = irad.linearize(f, out, X)
    assert (value, out.tolist()) == (None, (2.0 * X**2).tolist())
    by_out, by_x = linear(np.ones(3), V)
    np.testing.assert_allclose(by_out, X**2 + 4.0 * X * V)
    assert by_x.tolist() == V.tolist()


def test_aux_and_a_method() -> None:
    @jitclass([("scale", float64)])
    class Spring:
        def __init__(self, scale):
            self.scale = scale

        def energy(self, x):
            return self.scale * x * x, "joule"

    value, linear, aux = irad.linearize(Spring(2.0).energy, 3.0, has_aux=True)
    assert (value, linear(0.5), aux) == (18.0, 6.0, "joule")


def test_a_function_that_gives_another_value_is_refused() -> None:
    @njit
    def noisy(x):
        return x * np.random.normal()

    @njit
    def inside(x):
        _, linear = irad.linearize(noisy, x)
        return linear(1.0)

    _, linear = irad.linearize(noisy, 2.0)
    for attempt in (lambda: linear(1.0), lambda: inside(2.0)):
        with pytest.raises(irad.SignatureError, match="gives another value now"):
            attempt()


def test_not_a_number_is_the_same_value() -> None:
    root = njit(lambda x: (np.sqrt(x), x.sum()))
    _, linear = irad.linearize(root, np.array([-1.0, 4.0]))
    np.testing.assert_array_equal(linear(np.array([0.0, 1.0]))[0][1], 0.25)


def test_misfits() -> None:
    @jitclass([("scale", float64)])
    class Held:
        def __init__(self):
            self.scale = 1.0

    with pytest.raises(irad.SignatureError, match="and cannot be copied"):
        irad.linearize(njit(lambda x, held: x * held.scale), 2.0, Held())
    with pytest.raises(irad.SignatureError, match=r"no argument of .* has a derivative"):
        irad.linearize(njit(lambda n: 1.0 * n), 2)
    _, linear = irad.linearize(scaled, X, 2, 3.0)
    with pytest.raises(irad.SignatureError, match="is given 1 tangents"):
        linear(V)
    with pytest.raises(irad.SignatureError, match="a tangent for argument 1, which has no derivative"):
        linear(V, 1, None)
    writes = njit(lambda x: None)
    inside = njit(lambda x: irad.linearize(writes, x)[1](x))
    with pytest.raises(irad.SignatureError, match="which returns nothing"):
        inside(X)
