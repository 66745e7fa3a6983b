"""Numba's extension interfaces inside differentiated functions, and object mode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import float64, guvectorize, njit, objmode, prange, types, vectorize
from numba.core import cgutils
from numba.experimental import structref
from numba.extending import intrinsic, overload, overload_attribute, overload_method
from numba.stencils.stencil import stencil

import irad
from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


# ------------------------------------------------------------------------------------------------ intrinsics


@intrinsic
def product_of_both(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1])

    return types.float64(types.float64, types.float64), codegen


@intrinsic
def through_memory(typingctx: Any, a: Any) -> Any:
    """A float that goes through a stack slot as bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = cgutils.alloca_once_value(builder, args[0])
        copy = cgutils.alloca_once(builder, args[0].type)
        cgutils.raw_memcpy(builder, copy, place, context.get_constant(types.intp, 8), 1)
        return builder.load(copy)

    return types.float64(types.float64), codegen


@intrinsic
def first_of_array(typingctx: Any, array: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.load(made.data)

    return array.dtype(array), codegen


@PROGRAMS.at(0.7, 1.3)
@njit
def intrinsic_arithmetic(x, y):
    return product_of_both(x, y) * product_of_both(x, 2.0)


@PROGRAMS.at(0.7)
@njit
def intrinsic_with_memory(x):
    return through_memory(x * x) * x


@PROGRAMS.at(floats(3))
@njit
def intrinsic_on_an_array(v):
    v[0] = v[0] * v[1]
    return first_of_array(v) * v[2]


# ------------------------------------------------------------------------------------------------ overloads


def clipped(x, low=0.0, high=1.0):
    raise NotImplementedError


@overload(clipped, inline="always")
def _clipped(x, low=0.0, high=1.0):
    def clip(x, low=0.0, high=1.0):
        return min(max(x, low), high) * x

    return clip


@overload_attribute(types.Array, "energy_of_all")
def _energy_of_all(array):
    def energy(array):
        s = 0.0
        for v in array.flat:
            s += v * v
        return s

    return energy


@overload_method(types.Array, "weighted_by")
def _weighted_by(array, weights):
    def weighted(array, weights):
        s = 0.0
        for i in range(array.size):
            s += array[i] * weights[i]
        return s

    return weighted


@PROGRAMS.at(0.7)
@PROGRAMS.at(1.7)
@njit
def overload_with_defaults(x):
    return clipped(x) * clipped(x, high=2.0) + clipped(x, 0.2)


@PROGRAMS.at(floats(4))
@njit
def overloaded_attribute(v):
    return v.energy_of_all * v[1:].energy_of_all


@PROGRAMS.at(floats(4), floats(4, seed=1))
@njit
def overloaded_method(v, w):
    return v.weighted_by(w) * w.weighted_by(w)


# ------------------------------------------------------------------------------------------------ structref


@structref.register
class SpringType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class Spring(structref.StructRefProxy):
    def __new__(cls, stiffness: float, rest: float) -> Spring:
        return structref.StructRefProxy.__new__(cls, stiffness, rest)


structref.define_proxy(Spring, SpringType, ["stiffness", "rest"])


@overload_method(SpringType, "energy")
def _spring_energy(self, x):
    def energy(self, x):
        return 0.5 * self.stiffness * (x - self.rest) ** 2

    return energy


@PROGRAMS.at(2.0, 0.3, 1.1)
@njit
def structref_made_inside(k, rest, x):
    spring = Spring(k, rest)
    e = spring.energy(x)
    spring.stiffness = spring.stiffness * e
    spring.rest += 0.1 * x
    return spring.energy(2 * x) + e


@PROGRAMS.at(2.0, 0.3, 1.1, 4)
@njit
def structrefs_in_a_loop(k, rest, x, n):
    s = 0.0
    spring = Spring(k, rest)
    for i in range(n):
        other = Spring(spring.stiffness * 0.9, spring.rest + i * x)
        s += other.energy(x)
        spring = other
    return s


# ------------------------------------------------------------------------------------------------ vectorised functions


@vectorize
def smooth(x, k):
    if x > 0:
        return x / (k + x)
    return math.sin(x) * k


@vectorize([float64(float64)])
def eager_vectorized(x):
    return math.exp(-x * x)


@guvectorize([(float64[:], float64[:], float64[:])], "(n),(n)->()")
def weighted_norm(x, w, result):
    s = 0.0
    for i in range(x.shape[0]):
        s += w[i] * x[i] * x[i]
    result[0] = math.sqrt(s)


@guvectorize([(float64[:], float64, float64[:])], "(n),()->(n)")
def decayed(x, rate, result):
    held = 0.0
    for i in range(x.shape[0]):
        held = held * rate + x[i]
        result[i] = held


@stencil()
def smoothed(u):
    return 0.25 * u[-1, 0] + 0.5 * u[0, 0] * u[0, 1] + 0.25 * u[1, 0]


@stencil(cval=1.0, neighborhood=((-2, 2),), standard_indexing=("w",))
def windowed(u, w):
    s = 0.0
    for i in range(-2, 3):
        s += u[i] * w[i + 2]
    return s


@PROGRAMS.at(floats(5, low=-1.0), 1.5)
@njit
def vectorized(v, k):
    return np.sum(smooth(v, k) * eager_vectorized(v)) + smooth(k, v[0])


@PROGRAMS.at(floats(4), floats(4, seed=1))
@njit
def guvectorized_to_a_scalar(v, w):
    out = np.zeros(1)
    weighted_norm(v, w, out)
    return out[0] * v[0]


@PROGRAMS.at(floats(3, 4), 0.8)
@njit
def guvectorized_over_rows(m, rate):
    out = np.empty_like(m)
    decayed(m, rate, out)
    return np.sum(out * out)


@PROGRAMS.at(floats(4, 5))
@njit
def stencil_in_two_dimensions(u):
    return np.sum(smoothed(u) ** 2)


@PROGRAMS.at(floats(8), floats(8, seed=1))
@njit
def stencil_with_a_neighbourhood(u, w):
    return np.sum(windowed(u, w) * u)


# ------------------------------------------------------------------------------------------------ object mode


@PROGRAMS.at(0.7, 3)
@njit
def objmode_of_constants(x, n):
    with objmode(k="float64"):
        k = float(math.factorial(n))
    return k * x * x


@njit
def objmode_of_active(x):
    y = x * x
    with objmode(z="float64"):
        z = float(np.sinc(y))
    return z * x


@njit
def objmode_that_writes(v):
    with objmode():
        v[0] = v[0] * 2
    return v[0] * v[1]


@njit(parallel=True)
def objmode_in_a_parallel_loop(v):
    out = np.zeros(v.size)
    for i in prange(v.size):
        y = v[i] * v[i]
        with objmode(z="float64"):
            z = float(np.sinc(y))
        out[i] = z * y
    return out.sum()


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@pytest.mark.parametrize(
    ("f", "argument"),
    [(objmode_of_active, 0.7), (objmode_that_writes, np.ones(2)), (objmode_in_a_parallel_loop, np.ones(2))],
    ids=["number", "written", "parallel"],
)
def test_active_values_in_object_mode_are_refused(f: Any, argument: Any):
    with pytest.raises(irad.UnsupportedError, match=rf"objmode(?s:.*)test_extensions\.py:\d+ in {f.__name__}"):
        irad.grad(f)(argument)
