"""Programs whose adjoint as Python is run under both plans, and those of tests/programs, which are shared.

PYTEST_DONT_REWRITE: Numba cannot compile assert statements rewritten by pytest.
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from irad.errors import UnsupportedError
from tests.programs import test_control_flow, test_mutation
from tests.report.pseudo_python import assert_as_compiled, positions_of, python
from tests.report.test_pseudo_python import break_and_continue, left_early
from tests.tools.catalogue import Case, Catalogue

VECTOR = np.array([0.5, -0.3, 1.2, 0.9, -1.1])
MATRIX = np.array([[0.5, 1.5, -0.7], [0.2, -1.3, 0.8]])
SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])

PROGRAMS = Catalogue()
INTEGERS = Catalogue()  # that are narrow, without sign, or wrap around
SHARED = [*test_control_flow.PROGRAMS, *test_mutation.PROGRAMS]

# Programs of tests/programs without a form in Python: what the refusal names.
REFUSED = {
    "caught_exception": "a pointer that is loaded",
    "store_through_reshape": "a pointer that is loaded",
    "list_of_floats": "a pointer that is loaded",
    "list_of_arrays": "a pointer that is loaded",
}


@PROGRAMS.at(1.5, 2.5)
@njit
def scalars(x, y):
    z = x * y
    return np.sin(z) / (1.0 + z * z) - np.sqrt(y)


@PROGRAMS.at(VECTOR)
@PROGRAMS.at(VECTOR[:0])
@njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


@PROGRAMS.at(MATRIX)
@njit
def rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[1]):
            row += x[i, j] * np.sin(x[i, j])
        total += row**2
    return total


@PROGRAMS.at(np.asfortranarray(MATRIX), 3)
@njit
def columns_of_fortran(x, n):
    total = 0.0
    for j in range(n):
        for i in range(x.shape[0]):
            total = total * 0.5 + x[i, j] ** 2
    return total


@PROGRAMS.at(1.5, (-1, 5))
@PROGRAMS.at(1.5, (1, 5))
@njit
def signs_in_a_tuple(x, t):
    n, m = t
    if n < 0:
        return x * x * m
    return x * 3.0


@PROGRAMS.at(MATRIX[:, ::2])
@njit
def strided(x):
    total = 1.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total *= 1.0 + x[i, j]
    return total


PROGRAMS.at(VECTOR)(break_and_continue)


@PROGRAMS.at(VECTOR)
@njit
def temporaries(x):
    n = x.size
    y = np.zeros(n)
    for i in range(1, n - 1):
        y[i] = 0.5 * (x[i + 1] - x[i - 1]) ** 2
    s = 0.0
    for i in range(n):
        s += y[i] * np.cos(x[i])
    return s


@PROGRAMS.at(VECTOR)
@njit
def expressions(x):
    return np.sum(np.exp(x) * 2.0 + x * x)


@PROGRAMS.at(VECTOR, np.array([0, 3, -1, 1, 3]))
@njit
def gather(x, index):
    s = 0.0
    for i in range(index.size):
        s += x[index[i]] * x[i] * x[i]
    return s


@PROGRAMS.at(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 2, 3, 4]), np.array([0, 1, 2, 0]), VECTOR[:3].copy())
@njit
def sparse(values, begin, column, x):
    s = 0.0
    for row in range(begin.size - 1):
        y = 0.0
        for k in range(begin[row], begin[row + 1]):
            y += values[k] * x[column[k]]
        s += y * y
    return s


@PROGRAMS.at(VECTOR)
@njit
def extremes(x):
    best = x[0]
    for i in range(1, x.size):
        best = max(best, x[i])
    return best * best + min(x[0], x[1]) + abs(x[1])


@PROGRAMS.at(VECTOR, 3)
@njit
def horner(c, n):
    p = 0.0
    for i in range(n):
        p = p * 1.5 + c[i]
    return np.tanh(p)


@PROGRAMS.at(VECTOR.astype(np.float32), np.float32(0.5))
@njit
def single(x, a):
    s = np.float32(0.0)
    for i in range(x.size):
        s += np.exp(x[i] * a)
    return s


@PROGRAMS.at((1.5, VECTOR), 2.0)
@njit
def tuples(p, y):
    scale, x = p
    s = 0.0
    for i in range(x.size):
        s += scale * x[i] * y
    return s * scale


@PROGRAMS.at(SQUARE)
@njit
def cholesky(a):
    n = a.shape[0]
    factor = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            if i == j:
                factor[i, j] = np.sqrt(s)
            else:
                factor[i, j] = s / factor[j, j]
    d = 0.0
    for i in range(n):
        d += 2.0 * np.log(factor[i, i])
    return d


@PROGRAMS.at(VECTOR, 0.1, 4)
@njit
def diffusion(u, dt, steps):
    v = u.copy()
    for _ in range(steps):
        left = v[0]
        for i in range(1, v.size - 1):
            here = v[i]
            v[i] = here + dt * (left - 2.0 * here + v[i + 1])
            left = here
    return v[2] * v[1]


@PROGRAMS.at(VECTOR, 1.5)
@njit
def raising(x, y):
    if y < 0.0:
        raise ValueError("y is negative")
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2 / y
    return s


@PROGRAMS.at(0.5, 3)
@njit
def integers(x, n):
    s = 0.0
    for i in range(n * n):
        if i % 3 == 1:
            s += x**2 * (i // 2)
        elif i & 1:
            s += x * i
    return s


PROGRAMS.at(VECTOR, 0.2)(left_early)
PROGRAMS.at(VECTOR, 100.0)(left_early)
PROGRAMS.at(VECTOR[:0].copy(), 0.2)(left_early)


@PROGRAMS.at(np.arange(16.0).reshape(4, 4) / 7)
@njit
def upper_triangle(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(i + 1, a.shape[1]):
            s += a[i, j] * a[j, i]
    return s


@PROGRAMS.at(VECTOR[::-1])
@PROGRAMS.at(VECTOR[::2])
@njit
def strided_vector(x):
    s = 0.0
    for i in range(1, x.size):
        s += x[i] * x[i - 1] ** 2
    return s


@PROGRAMS.at(MATRIX.T)
@njit
def transposed(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            s = s * 0.9 + np.sin(x[i, j])
    return s


@PROGRAMS.at(VECTOR.astype(np.float32), np.float32(0.3), 2.0)
@njit
def mixed_precision(x, a, b):
    s = 0.0
    for i in range(x.size):
        s += x[i] * a * b
        if x[i] > 0:
            s += np.sqrt(x[i])
    return s


@PROGRAMS.at(1.2, 3)
@njit
def two_results(x, n):
    s = 0.0
    p = 1.0
    for _i in range(n):
        s += p
        p *= x
    return s * p + p


@PROGRAMS.at(0.3, 0.2, 0.9)
@PROGRAMS.at(0.3, 0.9, 0.2)
@PROGRAMS.at(0.9, 0.2, 0.3)
@njit
def median(a, b, c):
    if a > b:
        a, b = b, a
    if b > c:
        b, c = c, b
    if a > b:
        a, b = b, a
    return b * b + a - c


@PROGRAMS.at(VECTOR, np.array([2, 0, 4, 1, 3]))
@njit
def permuted(x, perm):
    y = np.empty(x.size)
    for i in range(x.size):
        y[perm[i]] = x[i] * (i + 1)
    s = 0.0
    for i in range(x.size):
        s += y[i] * y[(i + 1) % x.size]
    return s


@PROGRAMS.at(VECTOR)
@njit
def reversed_iteration(x):
    s = 0.0
    for v in x[::-1]:
        s = s * v + 1.0
    return s


@PROGRAMS.at(VECTOR)
@njit
def running_extremes(x):
    hi = -np.inf
    lo = np.inf
    for v in x:
        if v > hi:
            hi = v
        elif v < lo:
            lo = v
    return hi - lo


@PROGRAMS.at(np.arange(24.0).reshape(2, 3, 4) / 9)
@njit
def three_d(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                s += x[i, j, k] * x[i, x.shape[1] - 1 - j, k]
    return s


@PROGRAMS.at(VECTOR, 1)
@PROGRAMS.at(VECTOR, 0)
@PROGRAMS.at(VECTOR, 7)
@njit
def branch_on_integer(x, mode):
    s = 0.0
    for i in range(x.size):
        if mode == 0:
            s += x[i]
        elif mode == 1:
            s += x[i] ** 2
        else:
            s += np.exp(-x[i])
    return s


@PROGRAMS.at(VECTOR)
@njit
def nested_break(x):
    s = 0.0
    for i in range(x.size):
        for j in range(x.size):
            if j > i:
                break
            if x[j] < -1.0:
                continue
            s += x[i] * x[j]
        if s > 2.0:
            break
    return s


@PROGRAMS.at(VECTOR)
@njit
def negative_index(x):
    return x[-1] * x[-2] + x[0] * x[-x.size]


@PROGRAMS.at(VECTOR, np.array([True, False, True, True, False]))
@njit
def masked(x, mask):
    s = 0.0
    for i in range(x.size):
        if mask[i]:
            s += x[i] ** 2
    return s


@PROGRAMS.at(1.5, True)
@njit
def with_flag(x, flag):
    return x * x if flag else x


@PROGRAMS.at(1.3, 0.7)
@njit
def times_names(times, np_):
    return times * np_ * times


@PROGRAMS.at(1.3, 0.7)
@njit
def bar_names(x, x_bar):
    return x * x_bar * x


@PROGRAMS.at(1.3, 0.7)
@njit
def result_names(result, result_bar):
    total = result * result_bar
    return total * result


@PROGRAMS.at(VECTOR, 3)
@njit
def shadows_builtins(max, range_):
    s = 0.0
    for i in range(range_):
        s += max[i] * abs(max[i])
    return s


@INTEGERS.at(1.5, -3)
@INTEGERS.at(1.5, 7)
@njit
def select_negative(x, m):
    k = -5 if m < 0 else m
    return x * (k // 2) + x * x * (k % 3)


@INTEGERS.at(1.5, -7)
@INTEGERS.at(1.5, 7)
@njit
def floor_ops(x, m):
    return x * (m // 3) + x * x * (m % 3) + x**3 * (-m // 4)


@INTEGERS.at(VECTOR, np.array([-3, 5, -7], dtype=np.int32))
@njit
def int32_values(x, a):
    s = 0.0
    for i in range(a.size):
        s += x[i] * (a[i] // 2) + x[i] ** 2 * (a[i] % 4)
    return s


@INTEGERS.at(VECTOR, np.array([200, 5, 255], dtype=np.uint8))
@njit
def uint8_values(x, a):
    s = 0.0
    for i in range(a.size):
        s += x[i] * (a[i] * a[i]) + x[i] * np.uint8(a[i] + a[i])
    return s


@INTEGERS.at(0.7, 12345)
@njit
def xorshift(x, seed):
    s = 0.0
    h = np.uint64(seed)
    for _i in range(5):
        h ^= h << np.uint64(13)
        h ^= h >> np.uint64(7)
        h ^= h << np.uint64(17)
        s += x * (h % np.uint64(100))
    return s


@INTEGERS.at(0.7, 987654321987654321)
@njit
def wrapping(x, seed):
    h = seed
    for _i in range(4):
        h = h * 6364136223846793005 + 1442695040888963407
    return x * (h % 7)


@PROGRAMS.at(np.array([np.nan, 1.0, 2.0]), 1.5)
@njit(error_model="numpy")
def nan_compare(x, y):
    s = 0.0
    for i in range(x.size):
        if x[i] < y:
            s += 2 * y
        elif not (x[i] > y):
            s += 3 * y
        else:
            s += y * y
    return s


@PROGRAMS.at(VECTOR, 2, 9, 3)
@PROGRAMS.at(VECTOR, 9, 2, -3)
@PROGRAMS.at(VECTOR, 2, 2, 3)
@njit
def range_of_parameters(x, a, b, c):
    s = 0.0
    for i in range(a, b, c):
        s += x[i % 5] * i
    return s


@PROGRAMS.at(VECTOR, 0)
@PROGRAMS.at(VECTOR, 3)
@PROGRAMS.at(VECTOR, -2)
@njit
def post_loop_index(x, n):
    s = 1.0
    i = 7
    for i in range(n):
        s *= x[i]
    return s * i


@PROGRAMS.at(VECTOR, 3)
@njit
def inner_start_from_array(x, n):
    s = 0.0
    for i in range(n):
        for j in range(i, n):
            for k in range(j, i - 1, -1):
                s += x[i] * x[j] * x[k]
    return s


@PROGRAMS.at(VECTOR)
@njit
def swap_scalars(x):
    a = 1.0
    b = 2.0
    c = 3.0
    for i in range(x.size):
        a, b, c = b * x[i], c, a
    return a * 100 + b * 10 + c


@PROGRAMS.at(VECTOR, 0)
@PROGRAMS.at(VECTOR, 2)
@njit
def same_behind_the_loop(x, n):
    y = x[1]
    for i in range(n):
        x[i] = x[i] * y
        y = x[0] + 1.0
    z = y
    y = x[0] + 1.0
    return y * z


@PROGRAMS.at(VECTOR)
@PROGRAMS.at(VECTOR[:1])
@njit
def before_the_last(x):
    a, b = 1.0, 2.0
    for i in range(x.size):
        a, b = b, a * x[i] + b
    return a


@PROGRAMS.at(1.5, 2)
@njit
def tuple_state(x, n):
    t = (x, 1.0)
    for _i in range(n):
        t = (t[1] * x, t[0] + t[1])
    return t[0] * t[1]


@PROGRAMS.at(VECTOR, np.array([1.5 + 2j, 0.5j]))
@njit
def with_complex_constant(x, z):
    s = 0.0
    for i in range(z.size):
        s += x[i] * (z[i] * z[i]).real + x[i] * abs(z[i])
    return s


@PROGRAMS.at(3.0, 1e-3)
@njit
def secant(x0, tol):
    x1 = x0 * 1.1
    f0 = x0 * x0 - 2
    for _ in range(50):
        f1 = x1 * x1 - 2
        if abs(f1) < tol:
            break
        x2 = x1 - f1 * (x1 - x0) / (f1 - f0)
        x0, x1, f0 = x1, x2, f1
    else:
        return 0.0
    return x1


@INTEGERS.at(0.7, np.uint64(2**63 + 12345), np.uint8(200))
@njit
def unsigned_scalars(x, a, b):
    return x * (a % np.uint64(1000)) + x * x * b + x * (a >> np.uint64(60)) + (x if b > 100 else 0.0)


@INTEGERS.at(VECTOR, np.array([2**63 + 5, 7, 2**64 - 1], dtype=np.uint64))
@njit
def unsigned_array(x, a):
    s = 0.0
    for i in range(a.size):
        s += x[i] * (a[i] % np.uint64(10))
        if a[i] > np.uint64(10):
            s += x[i] * a[i]
    return s


@INTEGERS.at(VECTOR, 40)
@njit
def fibonacci_wraps(x, n):
    a, b = 1, 1
    for _i in range(3 * n):
        a, b = b, a + b
    return x[0] * (a % 1000)


@INTEGERS.at(VECTOR, np.array([1, 2, 3], dtype=np.int64))
@njit
def odd_even(x, n):
    s = 0.0
    for i in range(n.size):
        if n[i] & 1:
            s += x[i] * n[i] * n[i]
    return s


@INTEGERS.at(VECTOR, 6)
@njit
def writes_narrow(x, n):
    c = np.zeros(3, np.uint8)
    d = np.zeros(3, np.int32)
    for i in range(n):
        c[i % 3] += 100
        d[i % 3] = d[i % 3] * 1000003 + i
    return x[0] * c[1] + x[1] * d[2] + x[2] * c[0]


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_it_agrees_with_the_compiled_gradient(case: Case, plan: str):
    assert_as_compiled(case.function, case.args, plan)


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize("case", INTEGERS, ids=str)
def test_the_exact_form_wraps_integers_around(case: Case, plan: str):
    assert_as_compiled(case.function, case.args, plan, forms=(True,))


@pytest.mark.parametrize("case", [c for c in SHARED if positions_of(c.args)], ids=str)
def test_programs_of_other_tests(case: Case):
    refused = REFUSED.get(case.function.__name__)
    if refused is None:
        assert_as_compiled(case.function, case.args)
        return
    with pytest.raises(UnsupportedError, match=refused):
        python(case.function, case.args, positions_of(case.args))
