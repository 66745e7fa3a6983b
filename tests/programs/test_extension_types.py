"""Types that extensions of Numba define: structs of numbers and arrays, as recursive functions take and return them."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.core import cgutils
from numba.extending import intrinsic, make_attribute_wrapper, models, register_model

from tests.tools.catalogue import Catalogue, floats

PROGRAMS = Catalogue()


class Scaled(numba.types.Type):
    """An array and a factor, one after the other."""

    def __init__(self, values):
        self.values = values
        super().__init__(f"Scaled({values})")


@register_model(Scaled)
class _Model(models.StructModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("count", numba.int32), ("factor", numba.float64), ("values", kind.values)])


for name in ("count", "factor", "values"):
    make_attribute_wrapper(Scaled, name, name)


@intrinsic
def scaled(context, count, factor, values):
    def emit(context, builder, signature, arguments):
        result = cgutils.create_struct_proxy(signature.return_type)(context, builder)
        result.count = context.cast(builder, arguments[0], signature.args[0], numba.int32)
        result.factor, result.values = arguments[1:]
        context.nrt.incref(builder, values, arguments[2])
        return result._getvalue()

    return Scaled(values)(count, factor, values), emit


@numba.njit
def damped(x, depth):
    if x.count >= depth:
        return x
    return damped(scaled(x.count + 1, x.factor * 0.5, x.values * x.values), depth)


@numba.njit
def pair_of(x, depth):
    if depth == 0:
        return (x, x.factor)
    inner, factor = pair_of(scaled(0, x.factor + 1.0, np.sin(x.values)), depth - 1)
    return (inner, factor * x.values[0])


@PROGRAMS.at(floats(3), 0.7)
@numba.njit
def copies_what_a_recursion_returns(x, factor):
    values = damped(scaled(0, factor, x), 2).values.copy()
    values[0] -= 1.0
    return values.sum()


@PROGRAMS.at(floats(3), 0.7)
@numba.njit
def reads_what_a_recursion_returns(x, factor):
    result = damped(scaled(0, factor, x), 3)
    return result.factor * (result.values * x).sum()


@PROGRAMS.at(floats(3), 0.7)
@numba.njit
def structs_in_tuples(x, factor):
    inner, product = pair_of(scaled(0, factor, x), 2)
    return product * inner.values.copy().sum() + inner.factor


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradients(case):
    case.check()
