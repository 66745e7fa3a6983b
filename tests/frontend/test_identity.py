"""The identity transform on a catalogue of Numba features: same results and exceptions, from Python and njit code."""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import (
    float64,
    guvectorize,
    int64,
    literal_unroll,
    literally,
    njit,
    objmode,
    prange,
    typed,
    types,
    vectorize,
)
from numba.experimental import jitclass
from numba.extending import overload, register_jitable
from numba.stencils.stencil import stencil

from irad.errors import BackendError
from irad.testing.gradients.trial import optimisation_limited
from tests.tools.identity import identity

RELATIVE_TOLERANCE = (
    1e-12  # both sides run LLVM on the same operations; fastmath and vector reductions may reorder sums
)


@dataclass(frozen=True)
class Case:
    """A function with calls of it; ``arguments()`` gives fresh ones each time."""

    function: Any
    arguments: Callable[[], list[tuple[Any, ...]]]
    nested: bool = True  # also called from another njit function


CASES: dict[str, Case] = {}


def case(arguments: Callable[[], list[tuple[Any, ...]]], nested: bool = True) -> Callable[[Any], Any]:
    """Enters a dispatcher into the catalogue."""

    def enter(function: Any) -> Any:
        CASES[function.__name__] = Case(function, arguments, nested)
        return function

    return enter


def vector(n: int = 8, dtype: Any = np.float64) -> Any:
    return (np.arange(n) * 0.75 + 0.5).astype(dtype)


def matrix(n: int = 4, m: int = 4) -> Any:
    return np.cos(np.arange(n * m).reshape(n, m)) + 4.0 * np.eye(n, m)


Point = collections.namedtuple("Point", ["x", "y"])
RECORD = np.dtype([("a", np.float64), ("b", np.int32), ("c", np.float64)])
GLOBAL_ARRAY = np.array([1.5, 2.5, 3.5])
GLOBAL_SCALE = 3


# Loops and branches


@case(lambda: [(vector(), vector()), (vector(0), vector(0)), (vector()[::2], vector()[::-2])])
@njit
def loop_over_arrays(a, b):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] * b[i]
    return s


@case(lambda: [(matrix(5, 3),), (np.asfortranarray(matrix(5, 3)),), (matrix(6, 6)[1::2, ::-1],), (matrix(4, 5).T,)])
@njit
def nested_loops(a):
    out = np.zeros_like(a)
    for i in range(1, a.shape[0] - 1):
        for j in range(i, a.shape[1]):
            out[i, j] = a[i - 1, j] + a[i + 1, j] - 2 * a[i, j]
    return out


@case(lambda: [(vector(), 3), (vector(), 0), (vector(), -1)])
@njit
def reversed_and_strided_ranges(a, k):
    s = 0.0
    for i in range(a.size - 1, -1, -1):
        s = s * 0.5 + a[i]
    for i in range(k, a.size, 2):
        s += a[i] * i
    for i in range(a.size, k, -3):
        s -= i
    return s


@case(lambda: [(np.uint64(2**63 + 5),), (np.uint64(3),)])
@njit
def unsigned_range(n):
    s = np.uint64(0)
    for i in range(n - np.uint64(3), n):
        s = s * np.uint64(3) + np.uint64(i)
    return s


@case(lambda: [(10.0,), (0.5,), (-1.0,)])
@njit
def while_loop(x):
    n = 0
    while x > 1.0:
        x = x / 2 if n % 2 == 0 else x - 0.25
        n += 1
        if n > 100:
            break
    else:
        n += 1000
    return x + n


@case(lambda: [(vector(), 2.0), (vector(), 100.0), (vector(), 0.0)])
@njit
def early_return(a, limit):
    for i in range(10**12):
        if i == a.size:
            return -1.0
        if a[i] > limit:
            return a[i] * i
    return 0.0


@case(lambda: [(5, True), (5, False), (0, True)])
@njit
def break_and_continue(n, flag):
    s = 0
    for i in range(n):
        if flag and i == 3:
            break
        if i % 2:
            continue
        for j in range(i):
            if j > 2:
                break
            s += j
    return s, (flag and s > 1) or n < 3


@case(lambda: [(vector(), vector() * 2)])
@njit
def enumerate_and_zip(a, b):
    s = 0.0
    for i, (u, v) in enumerate(zip(a, b)):  # noqa: B905 - Numba has no strict
        s += i * u - v
    return s


# Arrays


@case(lambda: [(vector(), vector(), 2.0), (vector(), vector(1), 2.0), (vector(), vector(3), 2.0)])
@njit
def array_expression(a, b, c):
    return np.sin(a) * b + np.exp(-b) * c - a**2


@case(lambda: [(matrix(), vector(4)), (matrix(), vector(1)), (matrix(3, 4), vector(3))])
@njit
def broadcasting(a, b):
    return a * b + b


@case(lambda: [(vector(), 3), (vector(), -2), (vector(), 8), (vector(), -9)])
@njit(boundscheck=True)
def bounds_check(a, i):
    return a[i]


@case(lambda: [(vector(), np.arange(4)), (vector(), -np.arange(1, 5)), (vector(), np.arange(3, dtype=np.uint32))])
@njit
def gather(a, index):
    s = 0.0
    for i in range(index.size):
        s += a[index[i]] * i
    return s


@case(lambda: [(matrix(5, 3),)])
@njit
def reductions(a):
    return (
        a.sum(),
        a.sum(axis=0),
        np.prod(a),
        a.mean(),
        np.var(a),
        np.std(a),
        a.min(),
        a.max(),
        np.cumsum(a),
        a.argmax(),
    )


@case(lambda: [(matrix(), vector(4)), (matrix(), vector(3)), (matrix()[:, ::-1].copy(), vector(4))])
@njit
def dot_matrix_vector(a, x):
    return np.dot(a, x)


@case(lambda: [(matrix(), matrix()), (matrix(3, 4), matrix(4, 2)), (matrix(3, 4), matrix(3, 4))])
@njit
def matmul(a, b):
    return (a @ b).sum() + np.dot(a[0], b[:, 0])


@case(lambda: [(matrix(), vector(4)), (np.zeros((3, 3)), vector(3)), (matrix() * np.nan, vector(4))])
@njit
def solve(a, b):
    return np.linalg.solve(a, b)


@case(lambda: [(matrix(),), (np.zeros((3, 3)),)])
@njit
def inverse_and_determinant(a):
    return np.linalg.inv(a), np.linalg.det(a)


@case(lambda: [(vector(8),)])
@njit
def reshape_concatenate(a):
    b = a.reshape(2, 4).T.copy()
    return np.concatenate((b.ravel(), a)), np.outer(a, a)[1:3], np.stack((a, a)), np.repeat(a, 2), np.roll(a, 3)


@case(lambda: [(vector(), vector())])
@njit
def interpolate_sort_median(x, y):
    return np.interp(1.7, x, y), np.sort(y * -1), np.median(y), np.argsort(-y), np.searchsorted(x, 2.0)


@case(lambda: [(vector(),)])
@njit
def where_clip_diff(a):
    return np.where(a > 2, a, -a), np.clip(a, 1.0, 3.0), np.diff(a), np.linalg.norm(a), np.abs(a - 2)


@case(lambda: [(vector(), np.array([True, False] * 4)), (vector(), np.zeros(8, np.bool_))])
@njit
def boolean_mask(a, mask):
    b = a[mask]
    a[mask] = 0.0
    return b, a[a > 1].sum()


@case(lambda: [(matrix(), np.array([0, 2, 1]))])
@njit
def fancy_indexing(a, index):
    a[index, 0] = 9.0
    return a[index], a[1, index]


@case(lambda: [(vector(6),)])
@njit
def views_and_slices(a):
    b = a[1:-1]
    b[::2] = b[::-1][::2]
    c = a[::-1]
    c[0] += 1.0
    return b, c


@case(lambda: [(np.array(3.0),)])
@njit
def zero_dimensional(a):
    return a[()] * 2


@case(lambda: [(vector(),)])
@njit
def swap_buffers(a):
    b = np.empty_like(a)
    for _ in range(3):
        for i in range(a.size):
            b[i] = a[i] * 0.5 + a[(i + 1) % a.size]
        a, b = b, a
    return a


@case(lambda: [(5,), (0,)])
@njit
def comprehension(n):
    return np.array([i * 0.5 for i in range(n)]).sum() + np.full(3, 2.0).sum() + np.ones((2, 2)).sum()


@case(lambda: [(vector(), 2.0)], nested=True)
@njit
def global_constants(a, v):
    return a[0] * GLOBAL_ARRAY[1] + v * GLOBAL_SCALE + GLOBAL_ARRAY.sum()


@case(lambda: [(np.array([(1.0, 2, 3.0), (4.0, 5, 6.0), (7.0, 8, 9.0)], dtype=RECORD),)])
@njit
def records(r):
    r[0], r[1] = r[1], r[0]
    r[2] = r[0]
    r[1].a += 1.0
    s = 0.0
    for i in range(r.size):
        s = s * 2.0 + r[i].a * r[i].b + r[i]["c"]
    return s


# Tuples and containers


@case(lambda: [((1.0, 2, 3.5), vector())])
@njit
def tuples(t, a):
    u = (t[0] * 2, a, t[1])
    return u[0], u[1] + t[2], (u[2], (t,))


@case(lambda: [((1.0, 2.0, 3.0),)])
@njit
def homogeneous_tuple_loop(t):
    s = 0.0
    for i in range(len(t)):
        s = s * 2 + t[i]
    return s


@case(lambda: [((1, 2.5, 3 + 1j),)])
@njit
def unrolled_tuple(t):
    s = 0.0
    for v in literal_unroll(t):
        s += abs(v)
    return s


@case(lambda: [(Point(1.0, 2),)])
@njit
def named_tuple(p):
    return Point(p.x * 2, p.y + p.x)


@case(lambda: [(6,), (0,)])
@njit
def typed_list(n):
    items = typed.List()
    items.append(1.0)
    for i in range(n):
        items.append(items[-1] * 1.5 + i)
    return sum(items), len(items), items.pop()


@case(lambda: [(5, 3), (5, 77)])
@njit
def typed_dict(n, key):
    d = typed.Dict.empty(types.int64, types.float64)
    for i in range(n):
        d[i] = i * 0.5
    return d[key] + len(d)


@case(lambda: [(5,)])
@njit
def reflected_list(n):
    items = [0.5]
    for i in range(n):
        items.append(items[i] * 2)
    items.reverse()
    return items


@case(lambda: [(4,)])
@njit
def sets(n):
    s = {1, 2, 3}
    s.add(n)
    return len(s), 4 in s


@case(lambda: [("abc", 2), ("", 0)])
@njit
def strings(text, n):
    out = ""
    for c in text:
        out = c.upper() + out
    return out * n + "-" + str(n), len(text), text == "abc"


@case(lambda: [(1.0,), (-1.0,)])
@njit
def optional_result(x):
    if x > 0:
        return x * 2
    return None


@case(lambda: [(1.0, None), (1.0, 2.0), (1.0,)])
@njit
def none_argument(x, y=None):
    if y is None:
        return x
    return x * y


@case(lambda: [(1.0,), (1.0, 5), (1.0, 5, 6, 7)])
@njit
def default_and_star(x, k=3, *rest):
    return x * k + len(rest)


# Exceptions


class CustomError(Exception):
    """An exception class of the user's."""


@case(lambda: [(1.0,), (-1.0,)])
@njit
def raise_static(v):
    if v < 0:
        raise ValueError("negative")
    return math.sqrt(v)


@case(lambda: [(1.0, 2), (-1.0, 2), (1.0, 0), (2.0, 7)])
@njit
def raise_dynamic(v, n):
    if v < 0:
        raise ValueError("negative", n, v)
    if n > 5:
        raise CustomError(n)
    return v / n


_ASSERTION: dict[str, Any] = {"__name__": __name__}  # from text, or pytest would rewrite the assert
exec('def assertion(n):\n    assert n > 0, "n must be positive"\n    return n\n', _ASSERTION)
case(lambda: [(3,), (0,)])(njit(_ASSERTION["assertion"]))


@njit
def _may_raise(a, i):
    a[0] += 1.0
    if i > 2:
        raise ValueError("too big", i)
    a[1] += 1.0
    return i


@case(lambda: [(vector(), 1), (vector(), 5)])
@njit
def try_except(a, n):
    s = 0
    for i in range(n):
        try:
            s += _may_raise(a, i)
        except Exception:
            s += 100
    return s, a


@case(lambda: [(1,), (0,)])
@njit
def try_finally(n):
    s = 0
    try:
        s += 1
        if n:
            return s
    finally:
        s += 10
    return s


@case(lambda: [(1.0, 0.0), (1.0, 2.0)])
@njit(error_model="numpy")
def numpy_error_model(a, b):
    return a / b


@case(lambda: [(1.0, 0.0), (7, 0), (7, 2)])
@njit
def python_error_model(a, b):
    return a / b + a // b + a % b


# Calls


@case(lambda: [(5,), (0,)])
@njit
def self_recursion(n):
    if n < 2:
        return 1.0
    return self_recursion(n - 1) * 1.5 + n


@case(lambda: [(5,), (4,)])
@njit
def even(n):
    if n == 0:
        return 1.0
    return odd(n - 1) * 2.0


@case(lambda: [(5,), (4,)])
@njit
def odd(n):
    if n == 0:
        return 3.0
    return even(n - 1) + 1.0


@njit
def _square(v):
    return v * v


@njit(float64(float64))
def _explicit(v):
    return v + 0.5


_square(3.0)  # compiled before


@case(lambda: [(2.0,), (3,)])
@njit
def callees_in_all_states(v):
    return _square(v) + _explicit(v) + _explicit(3)


@case(lambda: [(2.0,), (3,)])
@njit([float64(float64), int64(int64)])
def explicit_signatures(v):
    return v * 2


@case(lambda: [(2.0,)])
@njit
def closures(v):
    w = v + 1

    def inner(z):
        return z * w

    return inner(v) + inner(2.0)


@case(lambda: [(_square, 2.0), (_explicit, 2.0)])
@njit
def function_argument(g, v):
    return g(v) + g(v + 1)


@njit(float64(float64))
def _double(v):
    return v * 2


@njit(float64(float64))
def _triple(v):
    return v * 3


@case(lambda: [(2.0, 0), (2.0, 1)])
@njit
def first_class_functions(v, k):
    functions = (_double, _triple)
    s = functions[k](v)
    for g in functions:
        s += g(v)
    return s


def _factory(k: float) -> Any:
    @njit
    def scaled(v):
        return v * k + GLOBAL_SCALE

    return scaled


_scaled = _factory(2.5)


@case(lambda: [(2.0,)])
@njit
def closure_made_outside(v):
    return _scaled(v)


def _third_party(x: Any, y: Any) -> Any:
    raise NotImplementedError


@overload(_third_party)
def _third_party_overload(x, y):
    if isinstance(x, types.Array):
        return lambda x, y: x.sum() + y
    return lambda x, y: x - y


@register_jitable
def _jitable(x):
    return x * 3


@case(lambda: [(2.0, vector())])
@njit
def overloads(v, a):
    return _third_party(v, 1.0) + _third_party(a, v) + _jitable(v)


@njit
def _literal_callee(x, n):
    return literal_only(x, literally(n))


def literal_only(x: Any, n: Any) -> Any:
    raise NotImplementedError


@overload(literal_only)
def _literal_only_overload(x, n):
    if not isinstance(n, types.IntegerLiteral):
        return None
    k = n.literal_value
    return lambda x, n: x * k


@case(lambda: [(2.0, 3), (2.0, 4)], nested=False)
@njit
def literal_dispatch(x, n):
    return _literal_callee(x, n)


@vectorize([float64(float64)])
def _vectorized(t):
    return t * t + 1


@vectorize
def _dynamic_ufunc(t, u):
    return t * u + 1


@case(lambda: [(vector(), 2.0), (vector(), 3)])
@njit
def ufuncs(a, v):
    return _vectorized(a).sum() + _dynamic_ufunc(a, v).sum() + _dynamic_ufunc(v, v)


@guvectorize([(float64[:], float64, float64[:])], "(n),()->(n)")
def _generalized(x, y, r):
    for i in range(x.shape[0]):
        r[i] = x[i] + y


@guvectorize("(n),()->(n)")
def _dynamic_generalized(x, y, r):
    for i in range(x.shape[0]):
        r[i] = x[i] * y


@case(lambda: [(matrix(), 2.0), (vector(), 3.0)])
@njit
def generalized_ufuncs(a, v):
    out = np.empty_like(a)
    _generalized(a, v, out)
    again = np.empty_like(a)
    _dynamic_generalized(out, v, again)
    return again


@stencil("constant")
def _kernel(a):
    return 0.5 * (a[-1] + a[1])


@case(lambda: [(vector(),)])
@njit
def stencils(a):
    return _kernel(a)


@jitclass([("value", float64), ("history", float64[:])])
class Accumulator:
    """State with methods."""

    def __init__(self, n):
        self.value = 0.0
        self.history = np.zeros(n)

    def add(self, x):
        self.value += x
        self.history[int(self.value) % self.history.size] = x

    @property
    def twice(self):
        return self.value * 2


@case(lambda: [(5,)])
@njit
def jitclasses(n):
    acc = Accumulator(n)
    for i in range(n):
        acc.add(i * 0.5)
    return acc.twice, acc.history


@njit
def _generator(n, v):
    for i in range(n):
        yield i * v


@case(lambda: [(5, 2.0), (0, 1.0)])
@njit
def generators(n, v):
    s = 0.0
    for t in _generator(n, v):
        s += t
    return s


@case(lambda: [(2.0,)])
@njit
def object_mode(v):
    with objmode(r="float64"):
        r = math.sin(v) + len(str(GLOBAL_ARRAY))
    return r * 2


# Numbers


@case(lambda: [(0.5, 2.0), (3, 2), (1.5, 3)])
@njit
def special_functions(v, w):
    return (
        math.erf(v) + math.gamma(v) + math.log1p(v) + np.expm1(v) + math.hypot(v, w) + v % w + math.atan2(v, w),
        np.power(v, w), v // w, math.floor(v), np.sign(v), math.lgamma(v), np.arctanh(v / 4), v**3, v**-2.0,
    )  # fmt: skip


@case(lambda: [(1.0 + 2.0j, np.array([1j, 2.0])), (0.5 - 1.0j, np.array([1.0 + 1j]))])
@njit
def complex_numbers(z, a):
    return np.exp(z) * a.sum() + z.conjugate() + abs(z) + np.sqrt(z).imag + (a * z)[0]


@case(lambda: [(7, 3), (-7, 3), (np.int32(5), np.uint8(2)), (True, 2)])
@njit
def integers(a, b):
    return a // b, a % b, a << 2, a ^ b, a & 3, ~a, divmod(a, b), min(a + 0, b), abs(a - 10), bool(a)


@case(lambda: [(vector(8, np.float32), np.float32(2.0))])
@njit
def single_precision(a, v):
    return (a * v + np.float32(1.5)).sum(), np.sin(a), a.dot(a)


@case(lambda: [(3,)])
@njit
def random_numbers(n):
    np.random.seed(7)
    return np.random.normal(0.0, 1.0), np.random.random(n), np.random.randint(0, 10), np.random.permutation(n)


@case(lambda: [(vector(100),)])
@njit(fastmath=True)
def fast_math(a):
    s = 0.0
    for v in a:
        s += v * v
    return s


@case(lambda: [(vector(50),), (vector(0),)])
@njit(parallel=True)
def parallel_loop(a):
    out = np.zeros_like(a)
    s = 0.0
    for i in prange(a.size):
        out[i] = np.sin(a[i])
        s += a[i] * 2
    return out, s


@case(lambda: [(vector(),)])
@njit(nogil=True, inline="always")
def other_options(a):
    return a[0] + a[-1]


Outcome = tuple[str, Any, tuple[Any, ...]]


def outcome(function: Any, arguments: tuple[Any, ...]) -> Outcome:
    """What a call does: its result or exception, and its arguments afterwards."""
    try:
        return "result", function(*arguments), arguments
    except Exception as error:
        return "raised", (type(error), error.args), arguments


def assert_same(actual: Any, expected: Any) -> None:
    """Equal in type and value; floats to the stated tolerance."""
    assert type(actual) is type(expected), f"{actual!r} is not {expected!r}"
    if isinstance(expected, np.ndarray) and expected.dtype.kind in "fc":
        assert actual.dtype == expected.dtype
        assert actual.strides == expected.strides
        np.testing.assert_allclose(actual, expected, rtol=_tolerance(expected.dtype), atol=0, equal_nan=True)
    elif isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)
    elif isinstance(expected, tuple | list):
        assert len(actual) == len(expected), f"{actual!r} is not {expected!r}"
        for a, e in zip(actual, expected, strict=True):
            assert_same(a, e)
    elif isinstance(expected, float | complex | np.floating):
        np.testing.assert_allclose(actual, expected, rtol=_tolerance(np.asarray(expected).dtype), equal_nan=True)
    else:
        assert actual == expected, f"{actual!r} is not {expected!r}"


def _tolerance(dtype: Any) -> float:
    return 1e-6 if dtype == np.float32 else RELATIVE_TOLERANCE


@functools.cache
def copy_of(name: str) -> Any:
    """The identity of a case, made once."""
    return identity(CASES[name].function)


def caller_of(function: Any, count: int) -> Any:
    """An njit function that passes its arguments on."""
    names = ", ".join(f"a{i}" for i in range(count))
    scope: dict[str, Any] = {"function": function}
    exec(f"def caller({names}):\n    return function({names})\n", scope)
    return njit(scope["caller"])


@functools.cache
def plain(name: str) -> list[Outcome]:
    """What the plain function does."""
    with optimisation_limited():
        return [outcome(CASES[name].function, arguments) for arguments in CASES[name].arguments()]


@pytest.mark.parametrize("name", CASES)
def test_identity_behaves_as_the_plain_function(name: str) -> None:
    entry = CASES[name]
    before = set(entry.function.overloads)
    actual = [outcome(copy_of(name), arguments) for arguments in entry.arguments()]
    assert set(entry.function.overloads) == before
    assert_same(actual, plain(name))
    # again, now that the plain function is compiled
    assert_same([outcome(copy_of(name), arguments) for arguments in entry.arguments()], plain(name))


# The call from njit code is the same for every function: every sixth one shows it at a sixth of the time.
@pytest.mark.parametrize("name", [name for name, entry in CASES.items() if entry.nested][::6])
def test_identity_inside_njit_code(name: str) -> None:
    actual = [outcome(caller_of(copy_of(name), len(a)), a) for a in CASES[name].arguments()]
    assert_same(actual, plain(name))


def test_transform_receives_the_text() -> None:
    seen = []

    def spy(text: str) -> str:
        seen.append(text)
        return text.replace("fmul double", "fadd double")

    assert identity(_factory(10.0), spy)(2.0) == 2.0 + 10.0 + GLOBAL_SCALE
    assert len(seen) == 1


def test_identity_is_inlined_in_njit_code() -> None:
    copy = identity(_factory(4.0))

    @njit
    def caller(n):
        s = 0.0
        for i in range(n):
            s += copy(i * 1.0)
        return s

    assert caller(3) == 3 * GLOBAL_SCALE + 12.0
    text = caller.inspect_llvm(caller.signatures[0])
    entry = text[text.index("define") : text.index("\n}")]
    assert not [line for line in entry.splitlines() if " call i32 @_ZN" in line]


def test_ufuncs_called_from_python_stay_as_they_are() -> None:
    def product(x, y):
        return x * y

    dynamic: Any = vectorize(product)

    @guvectorize("(n),()->(n)")
    def generalized(x, y, r):
        for i in range(x.shape[0]):
            r[i] = x[i] * y

    @njit
    def uses(a):
        out = np.empty_like(a)
        generalized(a, 2.0, out)
        return dynamic(a, out)

    assert_same(identity(uses)(vector()), vector() * vector() * 2)
    assert dynamic.ntypes == 0
    assert_same(dynamic(vector(), vector()), vector() ** 2)
    out = np.zeros(8)
    generalized(vector(), 2.0, out)
    assert_same(out, vector() * 2)
    assert_same(uses(vector()), vector() * vector() * 2)


def test_returned_generators_are_refused() -> None:
    with pytest.raises(BackendError, match="returns a generator"):
        identity(_generator)(3, 1.0)


def test_identity_of_identity() -> None:
    copy = identity(identity(CASES["loop_over_arrays"].function))
    assert copy(vector(), vector()) == CASES["loop_over_arrays"].function(vector(), vector())


def test_refusal_names_the_users_line() -> None:
    @njit
    def broken(x):
        return x.no_such_attribute

    with pytest.raises(BackendError, match="no_such_attribute") as raised:
        identity(broken)(1.0)
    assert raised.value.location is not None
    assert raised.value.location.file == __file__
