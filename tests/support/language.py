"""What the language offers, and Numba's decorators: one small program for each."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections import namedtuple
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import numba
import numpy as np
from numba import float64, literal_unroll, njit, prange, types
from numba.experimental import jitclass
from numba.extending import get_cython_function_address, intrinsic, overload, overload_method
from numba.typed import Dict, List

import irad
from tests.support.entries import Entry, Group, Outcome
from tests.tools.catalogue import floats

X, Y, U, V = floats(5), floats(5, seed=1), 0.7, 1.3

_entries: dict[str, list[Entry]] = {}


def feature(
    section: str, name: str, *arguments: Any, outcome: Outcome = Outcome.DERIVATIVE, why: str = "", note: str = ""
) -> Callable[[Any], Any]:
    """Enters the function into a section of the table."""

    def enter(function: Any) -> Any:
        entry = Entry((name,), function, outcome, why=why, note=note, is_python=False, arguments=arguments)
        _entries.setdefault(section, []).append(entry)
        return function

    return enter


CONTROL, CALLS, DATA, NUMBA = "Control flow", "Functions", "Data", "Numba: decorators and tools"
REFUSED, CONSTANT = Outcome.REFUSED, Outcome.CONSTANT


@feature(CONTROL, "if, elif, else, conditional expressions", X)
@njit
def conditions(x):
    s = 0.0
    for a in x:
        if a > 1.2:
            s += a * a
        elif a > 0.8:
            s += np.sin(a)
        else:
            s += a if s > 1.0 else 2.0 * a
    return s


@feature(CONTROL, "for … in range and arrays; nested, uneven, empty", X)
@njit
def loops(x):
    s = 0.0
    for i in range(x.size):
        for j in range(i):
            s += x[i] * x[j]
    for i in range(5, 2):
        s += x[i]
    return s


@feature(CONTROL, "while; break, continue, else", X, U)
@njit
def while_loops(x, u):
    i, s = 0, 0.0
    while True:
        i += 1
        if i == 2:
            continue
        if i >= x.size or s > 100.0:
            break
        s += x[i] * u**i
    else:
        s = 0.0
    return s


@feature(CONTROL, "several returns", X)
@njit
def early_return(x):
    for a in x:
        if a > 1.5:
            return a * a
    return x[0]


@feature(CONTROL, "match", U, 2)
@njit
def matching(u, n):
    match n:
        case 1:
            return u
        case 2:
            return u * u
        case _:
            return 0.0


@feature(CONTROL, "assert, raise", U)
@njit
def raising(u):
    assert u > 0.0
    if u > 10.0:
        raise ValueError("too large")
    return u * u


@feature(CONTROL, "try, except, else, finally", X)
@njit
def catching(x):
    s = 0.0
    try:
        s += x[0] * x[1]
        if x[2] > 0.0:
            raise ValueError
        s += x[3]
    except Exception:
        s += x[2] ** 2
    finally:
        s *= x[4]
    return s


@njit
def squares(x):
    for a in x:
        yield a * a


@feature(CONTROL, "generators (yield)", X)
@njit
def generators(x):
    s = 0.0
    for a in squares(x):
        s += a * s + a
    return s


@feature(CONTROL, "with numba.objmode", U, outcome=REFUSED, why="a call to Python code (objmode)")
@njit
def object_mode(u):
    with numba.objmode(y="float64"):
        y = u * u
    return y + u


@feature(CONTROL, "prange without parallel=True", X)
@njit
def serial_prange(x):
    s = 0.0
    for i in prange(x.size):
        s += x[i] * x[i]
    return s


@feature(CONTROL, "parallel=True: prange", X)
@njit(parallel=True)
def parallel_loop(x):
    s = 0.0
    for i in prange(x.size):
        s += x[i] * x[i]
    return s


@feature(CONTROL, "parallel=True: array expressions", X)
@njit(parallel=True)
def parallel_array(x):
    return (x * x + 1.0).sum()


@njit
def _power(x, exponent=2, *more):
    return x**exponent * (1.0 + len(more))


@feature(CALLS, "positional, named, default and star arguments", U)
@njit
def passing(u):
    return _power(u) + _power(u, exponent=3) + _power(u, 2, 1.0, 2.0)


@njit
def _recursive(x, n):
    if n == 0:
        return 1.0
    return x * _recursive(x, n - 1) + 0.1


@feature(CALLS, "recursion", U)
@njit
def recursion(u):
    return _recursive(u, 4)


@feature(CALLS, "inner functions, closures, lambda", U, V)
@njit
def closures(u, v):
    def inner(a):
        return a * v

    return inner(u) + (lambda a: a * a)(v)


@njit
def _apply(f, x):
    return f(x)


@feature(CALLS, "functions as arguments of compiled functions", U)
@njit
def function_arguments(u):
    return _apply(_square, u)


@njit
def _square(x):
    return x * x


@njit
def _cube(x):
    return x * x * x


@njit(float64(float64))
def _typed_square(x):
    return x * x


@njit(float64(float64))
def _typed_cube(x):
    return x * x * x


_TABLE = (_typed_square, _typed_cube)


@feature(CALLS, "first-class functions (tuples of functions, chosen at run time)", U, 1)
@njit
def function_table(u, n):
    return _TABLE[n](u)


@feature(CALLS, "inline='always'", U)
@njit
def inlined(u):
    return _inlined_square(u)


@njit(inline="always")
def _inlined_square(x):
    return x * x


Point = namedtuple("Point", "x y")


@feature(DATA, "float32 and float64, converted", floats(3, dtype=np.float32), U)
@njit
def precisions(x, u):
    return x[0] * np.float64(x[1]) * u


@feature(DATA, "integers, booleans", U, 3, outcome=CONSTANT)
@njit
def integers(u, n):
    return u * (n // 2 + (n > 2))


@feature(DATA, "complex numbers in the function", U, V)
@njit
def complex_numbers(u, v):
    z = complex(u, v)
    return (z * z + np.exp(z)).real


@feature(DATA, "complex numbers and arrays as arguments", 1.0 + 2.0j, X + 0.5j, note="as results: use irad.vjp")
@njit
def complex_arguments(z, a):
    return abs(z * a[0]) + np.exp(a * z).sum().imag


@feature(
    DATA,
    "complex matrices and their factorisations",
    X[:4].reshape(2, 2) + 0.5j,
    note="phases of vectors: see Limits",
)
@njit
def complex_matrices(a):
    return np.abs(np.linalg.solve(a, a[0])).sum()


@feature(DATA, "tuples, homogeneous, with a variable index", (0.5, 0.7, 1.1), 1)
@njit
def homogeneous_tuples(t, n):
    s = t[n]
    for a in t:
        s *= a
    return s


@feature(DATA, "tuples, heterogeneous, nested, with arrays", (0.5, (X, 2)))
@njit
def heterogeneous_tuples(t):
    return t[0] * t[1][0][t[1][1]]


@feature(DATA, "named tuples", Point(0.5, X))
@njit
def named_tuples(p):
    return p.x * Point(p.y, 1.0).x[1]


@feature(DATA, "list comprehensions", X)
@njit
def comprehensions(x):
    return np.array([a * a for a in x]).sum() + [a * x[0] for a in x[1:]][2]


@feature(DATA, "lists of lists", X)
@njit
def nested_lists(x):
    rows = [[a * b for b in x] for a in x[:2]]
    return rows[1][2] * len(rows)


@feature(DATA, "lists of numbers as arguments, reflected and typed", [0.5, 0.7], List([0.5, 0.7]))
@njit
def list_arguments(values, typed):
    values.append(typed[0])
    return values[0] * values[2] * typed[1]


_DICTIONARY = Dict.empty(types.int64, float64)
_DICTIONARY[3] = 0.7


@feature(DATA, "dictionaries and lists of arrays as arguments", _DICTIONARY, List([X, X[:2] + 1.0]), U)
@njit
def container_arguments(table, values, u):
    table[4] = table[3] * values[0][1]
    values.append(values[1] * u)
    return table[4] * values[2][0]


@feature(DATA, "global and closure numbers, arrays (constant)", U, outcome=CONSTANT)
@njit
def global_data(u):
    return u * V * X[1]


@feature(DATA, "optional values, None", U, outcome=CONSTANT)
@njit
def optional(u):
    chosen = None
    if u > 0.1:
        chosen = 2
    return u * (3 if chosen is None else 4)


_record = np.dtype([("mass", np.float64), ("kind", np.int64)])
_RECORDS = np.zeros(2, _record)
_RECORDS["mass"] = 0.5, 0.7


@feature(DATA, "single records as arguments", _RECORDS[1], U, note="as results: use irad.vjp")
@njit
def single_record(r, u):
    r.mass *= u
    return r.mass * r.mass


@feature(DATA, "structured arrays", _RECORDS)
@njit
def records(r):
    r[0].mass *= 2.0
    return r[0].mass * r[1]["mass"]


class Shade(IntEnum):
    LIGHT = 1
    DARK = 2


@feature(DATA, "enumerations", U, outcome=CONSTANT)
@njit
def enumerations(u):
    return u * Shade.DARK.value


DAY = np.datetime64("2020-01-03")


@feature(DATA, "dates and times", U, outcome=CONSTANT)
@njit
def dates(u):
    return u * (DAY == DAY)


@jitclass([("weight", float64), ("values", float64[:])])
class Model:
    def __init__(self, weight, values):
        self.weight = weight
        self.values = values

    def apply(self, x):
        self.weight *= 2.0
        return self.weight * x * self.values[0]


@feature(NUMBA, "jitclass made in the function", U, X)
@njit
def made_class(u, x):
    model = Model(u, x)
    return model.apply(u) + model.weight


@feature(NUMBA, "jitclass as argument", Model(0.5, X), U, note="its gradient is one, too")
@njit
def class_argument(model, u):
    return u * model.values[1] + u * model.weight


@feature(NUMBA, "literal_unroll", U, V)
@njit
def unrolled(u, v):
    s = 0.0
    for a in literal_unroll((u, 2, v)):
        s += a * a
    return s


@feature(NUMBA, "literally", U, outcome=CONSTANT)
@njit
def literal(u):
    return u * _literal(2)


@njit
def _literal(n):
    return numba.literally(n) + 1


@numba.vectorize
def scaled(x, u):
    return x * u + np.sin(x)


@feature(NUMBA, "vectorize, called in compiled code", X, U)
@njit
def vectorized(x, u):
    return scaled(x, u).sum()


@numba.guvectorize([(float64[:], float64, float64[:])], "(n),()->(n)")
def shifted(x, u, out):
    for i in range(x.size):
        out[i] = x[i] * u


@feature(NUMBA, "guvectorize, called in compiled code", X, U)
@njit
def generalized(x, u):
    out = np.empty_like(x)
    shifted(x, u, out)
    return (out * out).sum()


@numba.stencil
def smoothed(x):
    return 0.5 * (x[-1] + x[1])


@feature(NUMBA, "stencil", X)
@njit
def stencils(x):
    return (smoothed(x) ** 2).sum()


@numba.cfunc(float64(float64))
def c_square(x):
    return x * x


@feature(NUMBA, "cfunc, called in compiled code", U)
@njit
def c_callback(u):
    return c_square(u)


_libm = ctypes.CDLL(ctypes.util.find_library("m"))
_j0 = _libm.j0
_j0.restype, _j0.argtypes = ctypes.c_double, (ctypes.c_double,)


@feature(NUMBA, "ctypes functions", U, note="of the C library and of SciPy; others are refused by name")
@njit
def foreign(u):
    return _j0(u)


_dnrm2 = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_void_p] * 3)(
    get_cython_function_address("scipy.linalg.cython_blas", "dnrm2")
)


@feature(NUMBA, "BLAS and LAPACK by address or symbol", X, note="the routines listed in limits.md; others are refused")
@njit
def foreign_blas(x):
    size, step = np.array([x.size], np.int32), np.array([1], np.int32)
    return _dnrm2(size.ctypes, x.ctypes, step.ctypes)


_external = types.ExternalFunction("my_function", float64(float64))


@feature(
    NUMBA,
    "types.ExternalFunction",
    U,
    outcome=REFUSED,
    why="no derivative rule",
    note="unless irad has a rule for the symbol",
)
@njit
def external(u):
    return _external(u)


@intrinsic
def _twice(context, x):
    def emit(target, builder, signature, values):
        return builder.fadd(values[0], values[0])

    return float64(float64), emit


@feature(NUMBA, "extending.intrinsic", U)
@njit
def intrinsics(u):
    return _twice(u) * u


def _overloaded(x):
    raise NotImplementedError


@overload(_overloaded)
def _overloaded_for_floats(x):
    return (lambda x: x * x) if isinstance(x, types.Float) else None


@overload_method(types.Array, "_energy")
def _energy(array):
    return lambda array: (array * array).sum()


@feature(NUMBA, "extending.overload, overload_method", U, X)
@njit
def overloads(u, x):
    return _overloaded(u) * x._energy()


@intrinsic
def _pointer_at(context, address):
    def emit(target, builder, signature, values):
        return builder.inttoptr(values[0], target.get_value_type(types.CPointer(float64)))

    return types.CPointer(float64)(types.uintp), emit


@feature(NUMBA, "carray, farray", X)
@njit
def c_arrays(x):
    return numba.carray(_pointer_at(x.ctypes.data), (5,))[1] * x[2]


@feature(NUMBA, "get_num_threads, set_num_threads, get_thread_id", U, outcome=CONSTANT)
@njit
def threads(u):
    return u * (numba.get_num_threads() > 0)


@feature(NUMBA, "explicit signatures", U)
@njit(float64(float64))
def explicit(u):
    return u * u


@feature(NUMBA, "fastmath", U, V)
@njit(fastmath=True)
def fast(u, v):
    return u * v + u / v


@feature(NUMBA, "boundscheck, error_model='numpy', nogil", X)
@njit(boundscheck=True, error_model="numpy", nogil=True)
def checked(x):
    return x[1] / x[2]


@feature(NUMBA, "a derivative inside the function", U)
@njit
def nested_derivative(u):
    return _gradient(u) * u


@feature(NUMBA, "a pullback inside the function", U, outcome=REFUSED, why="irad does not differentiate such tapes yet")
@njit
def nested_pullback(u):
    return irad.vjp(_cube, u)[1](1.0)[0]


_gradient = irad.grad(_cube)

GROUPS = tuple(Group(section, tuple(entries)) for section, entries in _entries.items())
