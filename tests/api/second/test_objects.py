"""Second derivatives with respect to objects: lists, dictionaries and instances as arguments, in every order of modes.

All functions compute a² b³ c + d³ a. The truth is the complex step of its hand-written gradient.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64, int64, njit
from numba.core.types import ListType
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad.testing.allocations import allocations

X, V = np.array([1.2, 0.7, 2.1, 0.4]), np.array([1.0, -0.5, 0.3, 2.0])


def by_hand(x):
    a, b, c, d = x
    return np.array([2 * a * b**3 * c + d**3, 3 * a**2 * b**2 * c, a**2 * b**3, 3 * d**2 * a])


CHANGE = by_hand(X + 1e-30j * V).imag / 1e-30


@jitclass([("a", float64), ("count", int64), ("rest", float64[:]), ("terms", ListType(float64))])
class Model:
    def __init__(self, a, rest, terms):
        self.a, self.count, self.rest, self.terms = a, 2, rest, terms

    def squared(self):
        self.a *= self.a
        return self.a


@njit
def of_instance(model):
    """Changes numbers and elements, replaces an array, and changes a list."""
    a, rest = model.a, model.rest
    rest[0] **= model.count
    model.terms.append(rest[0] * rest[1])
    model.rest = np.ones(2)
    model.rest[0] = model.terms.pop(0) ** 3
    return model.squared() * model.terms[0] * np.sqrt(rest[0]) + model.rest[0] * a


@njit
def of_dictionary(table):
    """Dictionary of arrays: an entry is new, one is taken out."""
    table[9] = table[2] * table[2][1]
    first = table.pop(2)
    first[0] *= table[9][0]
    return first[0] * first[1] ** 2 * table[5][0] + table[5][1] ** 3 * table[9][0] / first[1]


@njit
def of_list(items):
    """List of tuples of a number and an instance, which is only read."""
    found = items[0][0] ** 2 * items[0][1].rest[0] ** 3
    for i in range(1, len(items)):
        found *= items[i][0]
        found += items[i][1].rest[0] ** 3 * items[0][0]
    return found


@njit
def of_arrays(items):
    """Reflected list of arrays."""
    items.append(items[0] * items[1][0])
    items[0][0] *= items[1][0]
    return items[0][0] * items[2][0] * items[1][0] * items[1][1] + items[1][2] ** 3 * items[2][0] / items[1][0]


@njit
def weighted_instance(g):
    return g.a - 0.5 * g.rest[0] + 0.3 * g.rest[1] + 2.0 * g.terms[0]


@njit
def weighted_dictionary(g):
    return g[2][0] - 0.5 * g[2][1] + 0.3 * g[5][0] + 2.0 * g[5][1]


@njit
def weighted_list(g):
    return g[0][0] - 0.5 * g[0][1].rest[0] + 0.3 * g[1][0] + 2.0 * g[1][1].rest[0]


@njit
def weighted_arrays(g):
    return g[0][0] - 0.5 * g[1][0] + 0.3 * g[1][1] + 2.0 * g[1][2]


def model_of(x):
    return Model(x[0], x[1:3].copy(), List([x[3]]))


def table_of(x):
    table = Dict()
    table[2], table[5] = x[:2].copy(), x[2:].copy()
    return table


def pairs_of(x):
    return List(
        [(number, Model(0.0, np.array([other]), List([1.0]))) for number, other in ((x[0], x[1]), (x[2], x[3]))]
    )


def arrays_of(x):
    return [x[:1].copy(), x[1:].copy()]


CASES = {
    "instance": (of_instance, weighted_instance, model_of, lambda g: [g.a, *g.rest, *g.terms]),
    "dictionary": (of_dictionary, weighted_dictionary, table_of, lambda g: [*g[2], *g[5]]),
    "list": (of_list, weighted_list, pairs_of, lambda g: [g[0][0], *g[0][1].rest, g[1][0], *g[1][1].rest]),
    "arrays": (of_arrays, weighted_arrays, arrays_of, lambda g: [*g[0], *g[1]]),
}


@pytest.mark.filterwarnings("ignore::numba.NumbaPendingDeprecationWarning")
@pytest.mark.parametrize("case", CASES)
def test_products_and_gradients_of_slopes(case):
    f, weighted, make, numbers = CASES[case]
    gradient, product, along = irad.grad(f), irad.hvp_and_grad(f), irad.grad(weighted)(make(X))
    change, slopes = product(make(X), along)
    assert numbers(slopes) == pytest.approx(by_hand(X))
    assert numbers(change) == pytest.approx(CHANGE)
    slope = irad.grad(njit(lambda given: weighted(gradient(given))))
    assert numbers(slope(make(X))) == pytest.approx(CHANGE)
    with allocations() as count:
        numbers(product(make(X), along)[0])
        numbers(slope(make(X)))
        counted = count()
    assert (counted.kept, counted.kept_headers) == (0, 0)


def test_the_other_orders_of_modes():
    f, weighted, make, numbers = CASES["instance"]
    gradient, pushed, along = irad.grad(f), irad.pushforward(f), irad.grad(weighted)(make(X))
    slope = njit(lambda given: weighted(gradient(given)))
    directional = njit(lambda v, given: pushed(given, v)[1])
    assert numbers(irad.grad(directional, 1)(along, make(X))) == pytest.approx(CHANGE)
    assert irad.jvp(slope, (make(X),), (along,))[1] == pytest.approx(V @ CHANGE)
    assert irad.jvp(directional, (along, make(X)), (None, along))[1] == pytest.approx(V @ CHANGE)


def test_third_derivatives():
    first = irad.grad(of_list)
    slope = njit(lambda items: weighted_list(first(items)))
    along = irad.grad(weighted_list)(pairs_of(X))
    eps = 1e-5
    ahead, behind = (irad.hvp(of_list)(pairs_of(X + h * V), along) for h in (eps, -eps))
    numbers = CASES["list"][3]
    wanted = (np.array(numbers(ahead)) - numbers(behind)) / (2 * eps)
    assert numbers(irad.hvp(slope)(pairs_of(X), along)) == pytest.approx(wanted, rel=1e-7)


def test_what_is_written_to_shadows():
    """A gradient in a shadow made by the function; and products, which would be tangents of what is only read."""

    @njit
    def slope(model):
        shadow = Model(0.0, np.zeros(2), List([0.0]))
        irad.autodiff(irad.Reverse, of_instance, irad.Duplicated(model, shadow))
        return weighted_instance(shadow)

    found = irad.grad(slope)(model_of(X))
    assert [found.a, *found.rest, *found.terms] == pytest.approx(CHANGE)
    for product, out in ((irad.hvp_into, List([0.0])), (irad.hvp_and_grad_into, (List([0.0]), List([0.0])))):
        with pytest.raises(irad.SignatureError, match=r"to write to a ListType\[float64\]"):
            product(njit(lambda items: items[0] ** 3))(out, List([2.0]), List([1.0]))


@njit
def through_workspace(model, x):
    """x⁴; the instance is not an argument that is differentiated."""
    model.rest[0] = x**2
    model.rest[1] = x * model.rest[0]
    return model.rest[1] * x


def test_workspace_and_constants():
    assert irad.hvp(through_workspace, 1)(model_of(X), 3.0, 1.0) == pytest.approx(108.0)
    scaled = njit(lambda model, x: model.rest[0] * x**3)
    assert irad.hvp(scaled, 1)(model_of(X), 3.0, 1.0) == pytest.approx(18.0 * X[1])


@njit
def shared(model, x):
    return model.rest[0] * x[0] * x[1] * model.a


@njit
def shared_and_written(model, x):
    model.rest[0] *= 2.0
    return shared(model, x)


def test_shared_memory():
    """Of what is only read each argument has the part through itself; what is written is refused."""
    reading, writing = irad.grad(shared, (0, 1)), irad.grad(shared_and_written, (0, 1))
    read = njit(lambda model, x: reading(model, x)[1].sum())
    written = njit(lambda model, x: writing(model, x)[1].sum())
    x = X[1:].copy()
    by_model, by_x = irad.grad(read, (0, 1))(Model(X[0], x, List([1.0])), x)
    assert (by_model.a, by_model.rest[0]) == pytest.approx((x[0] * (x[0] + x[1]), X[0] * (x[0] + x[1])))
    assert by_x == pytest.approx([x[0] * X[0], x[0] * X[0], 0.0])
    with pytest.raises(irad.SignatureError, match="share memory"):
        irad.grad(written, (0, 1))(Model(X[0], x, List([1.0])), x)
