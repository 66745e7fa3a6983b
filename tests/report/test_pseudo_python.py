"""The adjoint as Python source is run, and agrees with the compiled gradient."""

from __future__ import annotations

import copy
from typing import Any

import numba
import numpy as np
import pytest
from click.testing import CliRunner
from numba import njit

import irad
from irad.cli import main
from irad.errors import SignatureError, UnsupportedError
from irad.options import Options
from irad.report.pseudo_python.text import PythonText, adjoint_as_python

VECTOR = np.array([0.5, -0.3, 1.2, 0.9, -1.1])
MATRIX = np.array([[0.5, 1.5, -0.7], [0.2, -1.3, 0.8]])
SQUARE = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])

PROGRAMS: list[tuple[Any, tuple[Any, ...]]] = []


def at(*args: Any) -> Any:
    """A program with a point; may be repeated."""

    def add(function: Any) -> Any:
        PROGRAMS.append((function, args))
        return function

    return add


@at(1.5, 2.5)
@njit
def scalars(x, y):
    z = x * y
    return np.sin(z) / (1.0 + z * z) - np.sqrt(y)


@at(2.0)
@at(-2.0)
@njit
def branch(x):
    if x > 0.0:
        y = np.exp(x)
    else:
        y = x * x * x
    return y * x


@at(0.5)
@at(1.5)
@at(2.5)
@njit
def early_returns(x):
    if x < 1.0:
        return x * x
    if x < 2.0:
        return np.exp(x)
    return 1.0 / x


@at(VECTOR)
@at(VECTOR[:0])
@njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


@at(MATRIX)
@njit
def rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[1]):
            row += x[i, j] * np.sin(x[i, j])
        total += row**2
    return total


@at(np.asfortranarray(MATRIX), 3)
@njit
def columns_of_fortran(x, n):
    total = 0.0
    for j in range(n):
        for i in range(x.shape[0]):
            total = total * 0.5 + x[i, j] ** 2
    return total


@at(MATRIX[:, ::2])
@njit
def strided(x):
    total = 1.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total *= 1.0 + x[i, j]
    return total


@at(2.0, 1e-6)
@at(1.0, 10.0)
@njit
def newton(x, tolerance):
    y = x
    while abs(y * y - x) > tolerance:
        y = 0.5 * (y + x / y)
    return y


@at(1.2)
@njit
def while_with_break(x):
    s = x
    k = 0
    while True:
        s = s + np.sin(s) * 0.5
        k += 1
        if s > 3.0 or k > 20:
            break
    return s * k


@at(VECTOR)
@njit
def break_and_continue(x):
    s = 0.0
    for i in range(x.size):
        if x[i] < 0.0:
            continue
        s += x[i] * x[i] * s + x[i]
        if s > 1.5:
            break
    return s


@at(VECTOR)
@njit
def mutation(x):
    for i in range(1, x.size):
        x[i] = x[i] * x[i - 1] + 0.5
    return x[x.size - 1] + x[1]


@at(VECTOR)
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


@at(VECTOR)
@njit
def expressions(x):
    return np.sum(np.exp(x) * 2.0 + x * x)


@at(VECTOR, 2.0)
@njit
def backwards(x, a):
    s = a
    for i in range(x.size - 1, -1, -1):
        s = s * 0.5 + x[i] * s
    return s


@at(VECTOR)
@njit
def steps_of_two(x):
    s = 0.0
    for i in range(0, x.size, 2):
        s += x[i] ** 3
    return s


@at(VECTOR)
@njit
def triangle(x):
    s = 0.0
    for i in range(x.size):
        for j in range(i):
            s += np.exp(x[i] * x[j])
    return s


@at(VECTOR, np.array([0, 3, -1, 1, 3]))
@njit
def gather(x, index):
    s = 0.0
    for i in range(index.size):
        s += x[index[i]] * x[i] * x[i]
    return s


@at(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 2, 3, 4]), np.array([0, 1, 2, 0]), VECTOR[:3].copy())
@njit
def sparse(values, begin, column, x):
    s = 0.0
    for row in range(begin.size - 1):
        y = 0.0
        for k in range(begin[row], begin[row + 1]):
            y += values[k] * x[column[k]]
        s += y * y
    return s


@at(VECTOR)
@njit
def extremes(x):
    best = x[0]
    for i in range(1, x.size):
        best = max(best, x[i])
    return best * best + min(x[0], x[1]) + abs(x[1])


@at(VECTOR, 3)
@njit
def horner(c, n):
    p = 0.0
    for i in range(n):
        p = p * 1.5 + c[i]
    return np.tanh(p)


@at(VECTOR.astype(np.float32), np.float32(0.5))
@njit
def single(x, a):
    s = np.float32(0.0)
    for i in range(x.size):
        s += np.exp(x[i] * a)
    return s


@at((1.5, VECTOR), 2.0)
@njit
def tuples(p, y):
    scale, x = p
    s = 0.0
    for i in range(x.size):
        s += scale * x[i] * y
    return s * scale


@at(SQUARE)
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


@at(SQUARE)
@njit(error_model="numpy")
def gauss(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    d = 1.0
    for i in range(n):
        d *= a[i, i]
    return d


@at(1.2345)
@njit
def jumps(x):
    i = 0
    s = x
    while i < 10:
        j = 0
        while True:
            j += 1
            s = s + 0.01 * s * j
            if s > 6 or j > i:
                break
        if s > 6:
            s = s - 3
            i += 2
            continue
        i += 1
    return s


@at(VECTOR, 0.1, 4)
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


@at(VECTOR, 1.5)
@njit
def raising(x, y):
    if y < 0.0:
        raise ValueError("y is negative")
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2 / y
    return s


@at(0.5, 3)
@njit
def integers(x, n):
    s = 0.0
    for i in range(n * n):
        if i % 3 == 1:
            s += x**2 * (i // 2)
        elif i & 1:
            s += x * i
    return s


def python(function: Any, args: tuple[Any, ...], positions: tuple[int, ...], plan: Any = "default") -> PythonText:
    return adjoint_as_python(function, tuple(map(numba.typeof, args)), positions, Options(plan=plan))


def positions_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(
        i
        for i, a in enumerate(args)
        if isinstance(a, float | np.floating | tuple) or (isinstance(a, np.ndarray) and a.dtype.kind == "f")
    )


def run(text: PythonText, args: tuple[Any, ...], *, exact: bool) -> Any:
    function = text.namespace(exact=exact)[text.name]
    with np.errstate(all="ignore"):
        return function(*(np.float64(a) if type(a) is float else copy.deepcopy(a) for a in args))


def assert_equal(found: Any, wanted: Any, tolerance: float) -> None:
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_equal(a, b, tolerance)
    else:
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=[f.py_func.__name__ for f, _ in PROGRAMS])
def test_it_agrees_with_the_compiled_gradient(function: Any, args: tuple[Any, ...]):
    positions = positions_of(args)
    value, gradient = irad.value_and_grad(function, positions)(*copy.deepcopy(args))
    tolerance = 1e-5 if function is single else 1e-12
    for plan in ("default", "save_all"):
        text = python(function, args, positions, plan)
        for exact in (True, False):
            found = run(text, args, exact=exact)
            found = (found[0], (found[1],)) if len(positions) == 1 else found
            assert_equal(found, (value, gradient), tolerance)


@njit
def guarded(x):
    s = 0.0
    for i in range(x.size):
        s += np.log(x[i]) if x[i] > 0.0 else 0.0
        y = np.sqrt(x[i])
        s += y if x[i] < 1.5 else 0.0
    return s


def test_the_exact_source_keeps_zero_cotangents_zero():
    args = (np.array([1.0, 0.0, 2.0]),)
    text = python(guarded, args, (0,))
    wanted = irad.grad(guarded)(*args)
    np.testing.assert_allclose(run(text, args, exact=True)[1], wanted, rtol=1e-12)
    assert "times(" in text.exact or "divided(" in text.exact
    assert "times(" not in text.source
    assert "divided(" not in text.source


def test_loops_indices_and_names_are_those_of_the_source():
    lines = python(rows, (MATRIX,), (0,)).source.splitlines()
    bare = [line.strip() for line in lines]
    assert "for j in range(x.shape[1]):" in bare
    assert "for j in reversed(range(x.shape[1])):" in bare
    assert "saved_sin[i, j] = np.sin(x[i, j])" in bare
    assert any(line.startswith("x_bar[i, j] += row_bar * ") for line in bare)
    assert any(line.startswith("# line ") and line.endswith("row += x[i, j] * np.sin(x[i, j])") for line in bare)


def test_the_cotangent_of_the_result_is_an_argument():
    text = python(energy, (VECTOR,), (0,))
    function = text.namespace()[text.name]
    np.testing.assert_allclose(function(VECTOR, 3.0)[1], 3.0 * irad.grad(energy)(VECTOR), rtol=1e-12)


def test_it_raises_what_the_function_raises():
    text = python(raising, (VECTOR, 1.5), (0, 1))
    with pytest.raises(ValueError, match="y is negative"):
        run(text, (VECTOR, -1.5), exact=True)


def test_other_sizes_and_ways_than_those_it_was_written_for():
    text = python(break_and_continue, (VECTOR,), (0,))
    for point in (VECTOR[:0], VECTOR[:1], 0.1 * VECTOR, -abs(VECTOR)):
        wanted = irad.value_and_grad(break_and_continue)(point)
        assert_equal(run(text, (point,), exact=True), wanted, 1e-12)


@njit
def recursive(x, n):
    return 1.0 if n <= 0 else x * np.sin(x) * recursive(x, n - 1)


@njit
def chosen_array(x, y, flag):
    z = x if flag else y
    s = 0.0
    for i in range(z.size):
        s += z[i] ** 2
    return s


@njit
def product_by_blas(x, y):
    return np.dot(x, y)


@njit
def returns_an_array(x):
    return x * 2.0


@njit
def star(*x):
    return x[0] * x[1]


@pytest.mark.parametrize(
    ("function", "args", "what"),
    [
        (recursive, (1.5, 3), "a call of recursive, which was not inlined"),
        (product_by_blas, (VECTOR, VECTOR), "a call of .*, which was not inlined"),
        (returns_an_array, (VECTOR,), "returns array"),
        (chosen_array, (VECTOR, VECTOR[:2].copy(), True), "array|pointer"),
    ],
)
def test_what_has_no_form_in_python_is_refused(function: Any, args: tuple[Any, ...], what: str):
    with pytest.raises(UnsupportedError, match=what):
        python(function, args, (0,))


def test_types_must_be_those_of_the_parameters():
    with pytest.raises(SignatureError, match="has 2 parameters, and there are 1 types"):
        adjoint_as_python(scalars, (numba.float64,), (0,))
    with pytest.raises(UnsupportedError, match="star"):
        adjoint_as_python(star, (numba.types.UniTuple(numba.float64, 2),), (0,))


def test_an_inspection_has_it():
    found = irad.inspect(energy, VECTOR).adjoint_as_python()
    assert found.source == python(energy, (VECTOR,), (0,)).source


def test_the_command_prints_it():
    target = f"{__file__}:energy"
    result = CliRunner().invoke(
        main, ["inspect", target, "--sig", "float64[::1]", "--stage", "adjoint", "--as", "python"]
    )
    assert result.exit_code == 0, result.output
    assert "def energy_gradient(x, result_bar=1.0):" in result.output
    result = CliRunner().invoke(main, ["inspect", target, "--sig", "float64[::1]", "--as", "python"])
    assert result.exit_code == 2
    assert "--as python goes with --stage adjoint alone" in result.output
