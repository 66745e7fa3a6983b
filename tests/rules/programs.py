"""Programs that make rules fire, with the symbols of those that they must reach; `test_every_rule` runs them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba import carray, float64, njit, types
from numba.experimental import jitclass
from numba.typed import Dict, List

from tests.rules.test_scipy_special import (
    complex_results,
    four_results_in_a_loop,
    integrals_and_scaled,
    results_of_two,
    two_results,
)
from tests.tools.catalogue import floats

SQUARE: Final = floats(3, 3) + 2.0 * np.eye(3)
POSITIVE: Final = SQUARE @ SQUARE.T


@dataclass(frozen=True)
class RuleProgram:
    """A program, a point, and the symbols whose rules its derivative uses."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    symbols: tuple[str, ...]

    def __str__(self) -> str:
        return self.function.__name__


@njit
def products(a, b, x):
    y = np.dot(a, x)
    return np.dot(x, y) + np.linalg.norm(y) + np.dot(a, b).sum()


@njit
def systems(a, b):
    return np.linalg.solve(a, b).sum() + np.linalg.det(a) + np.linalg.inv(a)[0, 1]


@njit
def cholesky_factor(a):
    lower = np.linalg.cholesky(a)
    return lower[1, 0] * lower[2, 2]


@njit
def orthogonal(a):
    q, r = np.linalg.qr(a)
    return q[0, 1] * r[1, 2]


@njit
def symmetric_spectrum(a):
    values, vectors = np.linalg.eigh(a)
    return values[0] * vectors[1, 1] ** 2


@njit
def general_spectrum(a):
    return np.linalg.eigvals(a)[0]


@njit
def complex_spectrum(a):
    return np.linalg.eigvals(a)[0].imag


@njit
def singular(a):
    u, s, vt = np.linalg.svd(a)
    return s[1] * (u[0, 0] * vt[0, 1]) ** 2


@njit
def least_squares(a, b):
    return np.linalg.lstsq(a, b)[0].sum()


_modf = types.ExternalFunction("modf", types.float64(types.float64, types.CPointer(types.float64)))


@njit
def parts(x):
    mantissa, exponent = math.frexp(x)
    whole = np.empty(1)
    fraction = _modf(3.0 * x, whole.ctypes)
    return mantissa * exponent + fraction * fraction + whole[0]


@njit
def complex_power(x, y):
    z = complex(x, y) ** complex(y, x)
    return z.real * z.imag


@njit
def memory(x):
    y = np.zeros(6)
    y[1:4] = x
    z = y.copy()
    z[:3] += x
    return (z * z).sum()


@njit
def plain_list(x):
    found = [x[0]]
    for value in x:
        found.append(value * found[-1])
    return found[2] * found[3]


@njit
def plain_set(x):
    found = set()
    for value in x:
        found.add(value * value)
    total = 0.0
    for value in found:
        total += value * value
    return total


_malloc = types.ExternalFunction("malloc", types.voidptr(types.uint64))
_free = types.ExternalFunction("free", types.void(types.voidptr))


@jitclass([("weights", float64[:])])
class _Weighted:
    def __init__(self, weights):
        self.weights = weights


@njit
def instance(x):
    return (_Weighted(x * x).weights * x).sum()


@njit
def raw_memory(x):
    place = _malloc(8 * x.size)
    squares = carray(place, (x.size,), np.float64)
    for i in range(x.size):
        squares[i] = x[i] * x[i]
    result = 0.0
    for i in range(x.size):
        result += squares[i] * squares[x.size - 1 - i]
    _free(place)
    return result


@njit
def typed_list(x):
    found = List()
    for value in x:
        found.append(value * value)
    found[1] = found[0] * x[2]
    found.append(2.0)
    del found[0]
    total = 0.0
    for value in found:
        total += value * value
    return total


@njit
def typed_dictionary(x):
    found = Dict.empty(types.int64, types.float64)
    for i in range(x.size):
        found[i] = x[i] * x[i]
    found[0] = found[1] * x[0]
    del found[1]
    total = 0.0
    for key in found:
        total += found[key] * key
    _, last = found.popitem()
    return total + last * last


PROGRAMS: Final = (
    RuleProgram(
        products, (SQUARE, floats(3, 3, seed=1), floats(3)),
        ("numba_xxdot", "numba_xxnrm2", "numba_xxgemv", "numba_xxgemm"),
    ),
    RuleProgram(systems, (SQUARE, floats(3)), ("numba_xgesv", "numba_xxgetrf", "numba_ez_xxgetri")),
    RuleProgram(cholesky_factor, (POSITIVE,), ("numba_xxpotrf",)),
    RuleProgram(orthogonal, (SQUARE,), ("numba_ez_geqrf", "numba_ez_xxgqr")),
    RuleProgram(symmetric_spectrum, (POSITIVE,), ("numba_ez_xxxevd",)),
    RuleProgram(general_spectrum, (POSITIVE,), ("numba_ez_rgeev",)),
    RuleProgram(complex_spectrum, (POSITIVE * (1.0 + 0.2j),), ("numba_ez_cgeev",)),
    RuleProgram(singular, (SQUARE,), ("numba_ez_gesdd",)),
    RuleProgram(least_squares, (floats(4, 2), floats(4)), ("numba_ez_gelsd",)),
    RuleProgram(parts, (0.83,), ("numba_frexp", "modf")),
    RuleProgram(complex_power, (1.2, 0.4), ("numba_cpow",)),
    RuleProgram(two_results, (0.8,), ("scipy.special.sici", "scipy.special.shichi", "scipy.special.fresnel")),
    RuleProgram(four_results_in_a_loop, (np.array([0.3, -1.2]),), ("scipy.special.airy",)),
    RuleProgram(results_of_two, (0.8, 0.3), ("scipy.special.ellipj",)),
    RuleProgram(
        integrals_and_scaled,
        (0.8,),
        tuple(f"scipy.special.{name}" for name in ("airye", "itj0y0", "iti0k0", "it2j0y0", "it2i0k0")),
    ),
    RuleProgram(
        complex_results,
        (0.8,),
        ("scipy.special.kelvin", "scipy.special.modfresnelp", "scipy.special.modfresnelm"),
    ),
    RuleProgram(memory, (floats(3),), ("llvm.memcpy.*", "llvm.memset.*", "NRT_MemInfo_alloc_aligned")),
    RuleProgram(
        plain_list, (floats(4),),
        ("NRT_MemInfo_new_varsize", "NRT_MemInfo_varsize_realloc"),
    ),
    RuleProgram(plain_set, (floats(20),), ("NRT_MemInfo_varsize_alloc",)),
    RuleProgram(raw_memory, (floats(3),), ("malloc",)),
    RuleProgram(instance, (floats(3),), ("NRT_MemInfo_alloc_dtor",)),
    RuleProgram(
        typed_list, (floats(4),),
        ("numba_list_new", "numba_list_append", "numba_list_setitem", "numba_list_delitem", "numba_list_base_ptr"),
    ),
    RuleProgram(
        typed_dictionary, (floats(4),),
        ("numba_dict_new_sized", "numba_dict_insert", "numba_dict_lookup", "numba_dict_delitem", "numba_dict_popitem",
         "numba_dict_iter", "numba_dict_iter_next"),
    ),
)  # fmt: skip
