"""The adjoint as Python source is run, and agrees with the compiled gradient."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from click.testing import CliRunner
from numba import njit

import irad
from irad.cli import main
from irad.decompile.text import adjoint_as_python
from irad.errors import SignatureError, UnsupportedError
from tests.report.pseudo_python import assert_as_compiled, assert_equal, python, run

VECTOR = np.array([0.5, -0.3, 1.2, 0.9, -1.1])
MATRIX = np.array([[0.5, 1.5, -0.7], [0.2, -1.3, 0.8]])


@njit
def scalars(x, y):
    z = x * y
    return np.sin(z) / (1.0 + z * z) - np.sqrt(y)


@njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total


@njit
def rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        row = 0.0
        for j in range(x.shape[1]):
            row += x[i, j] * np.sin(x[i, j])
        total += row**2
    return total


@njit
def raising(x, y):
    if y < 0.0:
        raise ValueError("y is negative")
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2 / y
    return s


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


@njit
def guarded_in_branches(x, w):
    s = 0.0
    for i in range(x.size):
        r = np.sqrt(x[i]) / w[i]
        if r > 0.5:
            s += np.log(1.0 + r * w[i]) * np.exp(-x[i])
    return s


def test_guards_of_scalar_code_read_as_products():
    """There the guard chooses the cotangent in place of zero, and is left out of the source all the same."""
    args = (np.array([0.5, 1.2, 0.01, 0.0]), np.array([0.3, -0.2, 1.0, 2.0]))
    text = python(guarded_in_branches, args, (0, 1))
    assert "if not" not in text.source
    assert "times(result_bar" in text.exact
    assert_as_compiled(guarded_in_branches, args, forms=(True,))  # the root of 0 has an infinite slope


@njit
def divided_by_a_length(x, y, s):
    total = 0.0
    for i in range(x.size):
        r = np.sqrt(x[i] ** 2 + y[i] ** 2)
        total += s * x[i] / (r + y[i]) + abs(x[i]) / np.sqrt(s)
    return total


def test_divisions_roots_and_signs_fit_the_pane():
    """At a width of 1280 pixels the pane has room for 80 columns."""
    args = (np.array([0.5, -0.3, 0.0]), np.array([1.0, 0.7, 0.2]), 2.0)
    text = python(divided_by_a_length, args, (0, 1, 2))
    assert max(map(len, text.lines)) <= 80
    assert "np.sign(" in text.source
    assert "1.0 if " not in text.source
    assert text.source.splitlines()[1].strip() == '"""Value, and gradient with respect to x, y, s.'
    assert_as_compiled(divided_by_a_length, args)


def test_loops_indices_and_names_are_those_of_the_source():
    lines = python(rows, (MATRIX,), (0,)).source.splitlines()
    bare = [line.strip() for line in lines]
    assert "for j in range(x.shape[1]):" in bare
    assert "for j in reversed(range(x.shape[1])):" in bare
    assert "saved_sin[i, j] = np.sin(x[i, j])" in bare
    # The cotangent of the row is that of the product which is added to it.
    assert any(line.startswith("x_bar[i, j] += product_bar * ") for line in bare)
    assert any(line.startswith("# line ") and line.endswith("row += x[i, j] * np.sin(x[i, j])") for line in bare)


def test_the_cotangent_of_the_result_is_an_argument():
    text = python(energy, (VECTOR,), (0,))
    function = text.namespace()[text.name]
    np.testing.assert_allclose(function(VECTOR, 3.0)[1], 3.0 * irad.grad(energy)(VECTOR), rtol=1e-12)


def test_it_raises_what_the_function_raises():
    text = python(raising, (VECTOR, 1.5), (0, 1))
    with pytest.raises(ValueError, match="y is negative"):
        run(text, (VECTOR, -1.5))


def test_other_sizes_and_ways_than_those_it_was_written_for():
    text = python(break_and_continue, (VECTOR,), (0,))
    for point in (VECTOR[:0], VECTOR[:1], 0.1 * VECTOR, -abs(VECTOR)):
        wanted = irad.value_and_grad(break_and_continue)(point)
        assert_equal(run(text, (point,)), wanted, 1e-12)


@njit
def squares(x, a):
    y = np.empty(x.size)
    for i in range(x.size):
        y[i] = x[i] * x[i] * a
    return y


@njit
def table(x, a):
    y = np.empty((x.size, 2))
    for i in range(x.size):
        y[i, 0] = x[i] * a
        y[i, 1] = x[i] ** 2
    return y


@njit
def in_place(x, a):
    for i in range(x.size):
        x[i] = x[i] * a
    return x


@njit
def either(x, a):
    if a > 1.0:
        return x * 2.0 * a
    return x * x


@njit
def broadcast(x, a):
    return np.exp(x) * a


@pytest.mark.parametrize("plan", ["default", "save_all"])
@pytest.mark.parametrize(
    ("function", "x", "a"),
    [
        (squares, VECTOR, 0.5),
        (squares, VECTOR[:0], 0.5),
        (table, VECTOR, 1.5),
        (in_place, VECTOR, 1.5),
        (either, VECTOR, 1.5),
        (either, VECTOR, 0.5),
        (broadcast, MATRIX, 0.5),
        (broadcast, VECTOR.astype(np.float32), np.float32(0.5)),
    ],
)
def test_the_cotangent_of_an_array_that_is_returned_is_given(function: Any, x: Any, a: Any, plan: str):
    value, pullback = irad.vjp(function, x.copy(), a)
    cotangent = np.cos(np.arange(value.size, dtype=value.dtype)).reshape(value.shape)
    found = run(python(function, (x, a), (0, 1), plan), (x, a), cotangent)
    assert found[0].shape == value.shape
    assert_equal(found, (value, pullback(cotangent)), 1e-5 if x.dtype == np.float32 else 1e-12)


@njit
def computed_message(x, y):
    if y < 0.0:
        raise ValueError("y is", y)
    return x * y


class OwnError(Exception):
    pass


@njit
def own_exception(x, y):
    if y < 0.0:
        raise OwnError("y is negative")
    return x * y


def test_computed_arguments_of_exceptions_are_left_out():
    text = python(computed_message, (1.5, 2.0), (0, 1))
    assert "raise ValueError('y is', ...)" in text.source
    assert_equal(run(text, (1.5, 2.0)), (3.0, (2.0, 1.5)), 1e-15)
    with pytest.raises(ValueError, match="y is"):
        run(text, (1.5, -2.0))


@njit
def refuse(n):
    raise ValueError("there is no item before the first")


@njit
def refuse_that_number(n):
    raise IndexError("there is no item", n)


@njit
def refusing(x, n):
    if n < 0:
        x[0] = 5.0
        refuse(n)
    if n >= x.size:
        refuse_that_number(n)
    return x[0] * x[n]


@njit
def first_items(x, n):
    y = np.zeros(3)
    y[:] = x[:n]
    return y[0] * y[1]


def test_functions_that_only_raise_become_exceptions():
    text = python(refusing, (VECTOR, 2), (0,))
    assert "raise ValueError('there is no item before the first')" in text.source
    assert "raise IndexError('there is no item', ...)" in text.source
    assert_as_compiled(refusing, (VECTOR, 2))
    x = VECTOR.copy()
    with pytest.raises(ValueError, match="there is no item before the first"):
        text.namespace()[text.name](x, -1)
    assert x[0] == 5.0
    with pytest.raises(IndexError, match="there is no item"):
        text.namespace()[text.name](x, 5)


def test_an_assignment_of_another_shape_raises():
    text = python(first_items, (VECTOR, 3), (0,))
    assert_as_compiled(first_items, (VECTOR, 3))
    assert "raise ValueError(...)" in text.source
    with pytest.raises(ValueError, match="Ellipsis"):
        run(text, (VECTOR, 2))


def test_exceptions_of_the_user_are_known():
    assert_as_compiled(own_exception, (1.5, -2.0))
    assert_as_compiled(own_exception, (1.5, 2.0))


@njit
def counts_down(x, n):
    s = 0.0
    for _ in range(n):
        s = s * 0.5 + x
    return s


@njit
def upper_triangle(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(i + 1, a.shape[1]):
            s += a[i, j] * a[j, i]
    return s


@njit
def elements(x):
    s = 0.0
    for v in x:
        s = s * v + v
    return s


@njit
def three_deep(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                s += x[i, j, k] * x[i, x.shape[1] - 1 - j, k]
    return s


@njit
def left_early(x, limit):
    i = 0
    s = 0.0
    while i < x.size:
        s += x[i] * x[i]
        if s > limit:
            s *= 2.0
            break
        i += 1
    return s


@njit
def copied(x, flags):
    y = x.copy()
    s = 0.0
    for i in range(1, y.size):
        if flags[i]:
            s += y[i] * y[i - 1]
    return s


@pytest.mark.parametrize(
    ("function", "args", "wanted"),
    [
        (counts_down, (1.5, 3), ["for i in range(n):", "for i in reversed(range(n)):"]),
        (upper_triangle, (MATRIX,), ["for j in range(i + 1, a.shape[1]):", "s += a[i, j] * a[j, i]"]),
        (elements, (VECTOR,), ["for i in range(x.size):", "for i in reversed(range(x.size)):"]),
        (three_deep, (np.ones((2, 3, 4)),), ["s += x[i, j, k] * x[i, x.shape[1] - j - 1, k]"]),
        (copied, (VECTOR, VECTOR > 0.0), ["for i in range(1, x.size):", "s += y[i] * y[i - 1]"]),
    ],
)
def test_it_reads_like_the_source(function: Any, args: tuple[Any, ...], wanted: list[str]):
    lines = [line.strip() for line in python(function, args, (0,)).source.splitlines()]
    for line in wanted:
        assert line in lines


@pytest.mark.parametrize(
    ("function", "args"), [(left_early, (VECTOR, 0.5)), (copied, (VECTOR, VECTOR > 0.0)), (three_deep, (MATRIX[None],))]
)
def test_it_has_no_jumps_and_no_checks_that_never_fail(function: Any, args: tuple[Any, ...]):
    source = python(function, args, (0,)).source
    for word in ("go_to", "unsigned", "raise", "flat["):
        assert word not in source


@njit
def recursive(x, n):
    return 1.0 if n <= 0 else x * np.sin(x) * recursive(x, n - 1)


@njit
def product_by_blas(x, y):
    return np.dot(x, y)


@njit
def returns_a_part(x):
    y = x * x
    return y[1:]


@njit
def returns_a_pair(x):
    return x * 2.0, x[0]


square_slope = irad.grad(njit(lambda x: (x * x).sum()))


@njit
def has_a_derivative(x):
    return square_slope(x).sum()


@njit
def star(*x):
    return x[0] * x[1]


@pytest.mark.parametrize(
    ("function", "args", "what"),
    [
        (recursive, (1.5, 3), "a call of recursive, which was not inlined"),
        (product_by_blas, (VECTOR, VECTOR), "a call of .*, which was not inlined"),
        (returns_a_part, (VECTOR,), "a part of an array that is returned"),
        (returns_a_pair, (VECTOR,), "returns Tuple"),
        (has_a_derivative, (VECTOR,), "^a derivative inside the function cannot"),
    ],
)
def test_what_has_no_form_in_python_is_refused(function: Any, args: tuple[Any, ...], what: str):
    with pytest.raises(UnsupportedError, match=what):
        python(function, args, (0,))


def test_types_must_be_those_of_the_parameters():
    with pytest.raises(SignatureError, match="has 2 parameters, but 1 types are given"):
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


@njit
def begins_at_the_end(x):
    if x.strides[0] < 0:
        return x[0] * x[0]
    return x[0] * 3.0


def test_strides_may_be_negative():
    backwards = VECTOR[::-1]
    text = python(begins_at_the_end, (backwards,), (0,))
    value, gradient = text.namespace()[text.name](backwards)
    assert value == backwards[0] ** 2
    np.testing.assert_array_equal(gradient, 2.0 * backwards * (np.arange(backwards.size) == 0))
