"""Random programs on objects: fields, items and values are read, written, swapped and shared.

``IRAD_RANDOM_OBJECTS=200`` tests as many. The gradient with respect to the object is compared with
finite differences in what it is made of. The derivative under the first plan is optimised as users have it; what it is
compared to is optimised little.
"""

from __future__ import annotations

import os
import random
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from numba import float64, int64, njit, types
from numba.core.extending import as_numba_type
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad import data
from irad.options import Options
from irad.testing.check_gradient import reference
from irad.testing.gradients.trial import optimisation_limited

COUNT = int(os.environ.get("IRAD_RANDOM_OBJECTS", "3"))


@jitclass([("weights", float64[::1]), ("bias", float64)])
class Layer:
    def __init__(self, weights, bias):
        self.weights, self.bias = weights, bias


LAYER = as_numba_type(Layer)


@jitclass(
    [
        ("first", LAYER),
        ("second", LAYER),
        ("values", types.ListType(float64[::1])),
        ("table", types.DictType(int64, float64[::1])),
    ]
)
class Model:
    def __init__(self, first, second, values, table):
        self.first, self.second, self.values, self.table = first, second, values, table


@njit
def make(a, b, c, d, e, f, g, h, x):
    values, table = List.empty_list(float64[::1]), Dict.empty(types.int64, float64[::1])
    values.append(e)
    values.append(f)
    table[0], table[1] = g, h
    return Model(Layer(a, b), Layer(c, d), values, table), x


INPUT = (
    *(np.array([0.5, 0.7]), 0.4, np.array([0.9, 0.3]), 0.55),
    *(np.array([0.8, 1.1]), np.array([0.6, 0.2]), np.array([1.2, 0.45]), np.array([0.35, 0.65]), 0.75),
)

STATEMENTS = """
o.bias = o.bias * x + p.weights[0]
o.weights[{i}] *= p.bias
o.weights = v[{j}] * x
v[{j}] = o.weights
v.append(p.weights * o.bias)
d[{k}] = v[{j}]
d[{k}] = o.weights * 0.5
d[5] = d.pop({k}); d[{k}] = v[{j}]
p.weights = d[{k}]
v[{j}][{i}] += d[{k}][0] * x * 0.2
o.weights, p.weights = p.weights, o.weights
x = x + v[-1][0] * 0.1
for a in v: s += a[0] * a[1]
for a in d.values(): s += a[1] * x
for t in range(3): v[{j}] = v[{j}] * 0.7 + o.weights * 0.1
w = v.pop(); s += w[0]; v.insert(0, w)
m.second = m.first
m.first = Layer(v[{j}], o.bias * x)
m.values = List([o.weights, p.weights, v[0]])
if o.bias > 0.3: p.bias *= 1.3
o = m.second
p = m.first
v = m.values
v[{j}][:] = p.weights
o.weights[:] = d[{k}] * 0.5
""".strip().splitlines()

PROGRAM = """
def program(m, x):
    o, p, v, d, s = m.first, m.second, m.values, m.table, 0.0
    {body}
    for a in v: s += a[0] * a[1] * x
    return s + m.first.bias * m.second.weights[0] * o.weights[1] + p.bias * m.table[1][0] + m.second.bias
"""


def random_source(seed: int) -> str:
    rng = random.Random(seed)
    lines = [
        rng.choice(STATEMENTS).format(i=rng.randrange(2), j=rng.randrange(2), k=rng.randrange(2))
        for _ in range(rng.randrange(4, 10))
    ]
    return PROGRAM.format(body="\n    ".join(lines))


def fresh() -> list[Any]:
    return [value.copy() if isinstance(value, np.ndarray) else value for value in INPUT]


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_objects(seed: int):
    scope: dict[str, Any] = {"Layer": Layer, "List": List}
    source = random_source(seed)
    exec(source, scope)
    program = njit(scope["program"])
    with optimisation_limited():
        expected = reference(njit(lambda *numbers: program(*make(*numbers))), INPUT)
    wanted = np.concatenate(expected.derivatives)
    found = []
    for plan, optimisation in (("default", nullcontext), ("save_all", optimisation_limited)):
        with optimisation():
            value, gradient = irad.value_and_grad(program, (0, 1), options=Options(plan=plan))(*make(*fresh()))
        assert value == expected.value, source
        found.append(gradient)
    _, pullback = irad.vjp(program, *make(*fresh()))
    found += [pullback(1.0), pullback(1.0)]
    for gradient in found:
        leaves, atol = data.to_vec(gradient), 1e-6 * np.max(np.abs(wanted))
        np.testing.assert_allclose(leaves, wanted, rtol=1e-6, atol=atol, err_msg=source)
