"""Lists as arguments: what comes back, what they hold afterwards, what is refused."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.typed import List

import irad
from irad import Active, Const, Reverse

# Numba announces that it will type lists differently one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")


@numba.njit
def grow(v, x):
    v[0] = v[1] * x
    v.append(v[0] * v[0])
    return v[0] + v[2]


def test_gradient_is_a_new_list():
    v = [1.0, 3.0]
    gradient = irad.grad(grow)(v, 2.0)
    assert gradient == [0.0, 2.0 + 2 * 3.0 * 4.0], "by the items that the list had at first"
    assert v == [6.0, 3.0, 36.0], "as the plain call leaves it"
    value, (by_v, by_x) = irad.value_and_grad(grow, (0, 1))([1.0, 3.0], 2.0)
    assert (value, by_v, by_x) == (42.0, [0.0, 26.0], 39.0)
    assert irad.autodiff(Reverse, grow, Active([1.0, 3.0]), Const(2.0)) == ([0.0, 26.0], None)


def test_pullback():
    v = [1.0, 3.0]
    value, pullback = irad.vjp(grow, v, 2.0)
    assert (value, v) == (42.0, [6.0, 3.0, 36.0])
    v.clear()
    for seed in (1.0, 0.5, 0.0):
        assert pullback(seed) == ([0.0, 26.0 * seed], 39.0 * seed)


def test_typed_list():
    v = List([1.0, 3.0])
    gradient = irad.grad(grow)(v, 2.0)
    assert isinstance(gradient, List)
    assert (list(gradient), list(v)) == ([0.0, 26.0], [6.0, 3.0, 36.0])
    value, pullback = irad.vjp(grow, List([1.0, 3.0]), 2.0)
    assert value == 42.0
    for seed in (1.0, 0.5, 0.0):
        by_v, by_x = pullback(seed)
        assert (list(by_v), by_x) == ([0.0, 26.0 * seed], 39.0 * seed)
    empty = List.empty_list(numba.float64)
    assert len(irad.grad(lambda v, x: x * len(v))(empty, 2.0)) == 0


def test_single_precision():
    [found] = irad.grad(lambda v: v[0] * v[0])([np.float32(1.5)])
    assert (found, type(found)) == (3.0, np.float32)


def test_from_compiled_code():
    gradient = irad.grad(grow)

    @numba.njit
    def caller(x):
        v = [x, 3.0]
        found = gradient(v, 2.0)
        return found[1] * len(v)

    assert caller(1.0) == 26.0 * 3


def test_one_list_twice():
    @numba.njit
    def read(v, w):
        return v[0] * w[0]

    @numba.njit
    def write(v, w):
        v[0] *= 2.0
        return v[0] * w[0]

    v = [3.0]
    assert irad.grad(read, (0, 1))(v, v) == ([3.0], [3.0]), "partial derivatives, as of arrays"
    assert irad.grad(write, (0, 1))([3.0], [2.0]) == ([4.0], [6.0])
    for derivative in (irad.grad(write, (0, 1)), irad.grad(write, 1)):
        with pytest.raises(irad.SignatureError, match="the same list"):
            derivative(v, v)
        w = List(v)
        with pytest.raises(irad.SignatureError, match="the same list"):
            derivative(w, w)
    assert v == [3.0]


def test_what_is_written_is_known_by_argument():
    """Lists of one type, of which the last is written."""

    @numba.njit
    def write(u, v, w):
        w[0] *= 2.0
        return u[0] * v[0] * w[0]

    x = [3.0]
    for given in ((x, [1.0], x), ([1.0], x, x)):
        with pytest.raises(irad.SignatureError, match="the same list"):
            irad.grad(write, (0, 1, 2))(*given)
    assert irad.grad(write, (0, 1, 2))(x, x, [2.0]) == ([12.0], [12.0], [18.0]), "these are not written"


def test_a_constant_list_takes_no_active_values():
    @numba.njit
    def f(v, x):
        v[0] = x
        return v[0] * x

    @numba.njit
    def scratch(v, x):
        v[0] = x
        return x * x

    for function in (f, scratch):
        for v in ([1.0], List([1.0])):
            with pytest.raises(irad.IradError, match="argument 'v', which was passed as constant"):
                irad.autodiff(Reverse, function, Const(v), Active(2.0))
            assert irad.grad(function, 1)(v, 2.0) == 4.0


def test_lists_of_other_things_are_refused_by_name():
    with pytest.raises(irad.UnsupportedError, match=r"argument 0 \(v\).*it holds a reflected set"):
        irad.grad(lambda v: v[0][0] * 1.0)([({1.0}, 2.0)])
    with pytest.raises(irad.SignatureError, match="no derivative"):
        irad.grad(lambda v: v[0] * 1.0)([1, 2])


def test_lists_of_integers_are_constants():
    _, pullback = irad.vjp(lambda v, x: v[0] * x + len(v), [3, 4], 2.0)
    assert pullback(1.0) == (None, 3.0)
