"""Calls of functions with a rule, of every kind: defaults, overloads, ufuncs, C functions, bodies with derivatives."""

from __future__ import annotations

import ctypes
import ctypes.util
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit
from numba.extending import overload

import irad
from irad import rules
from irad.rules import AugmentedReturn
from irad.testing.check_gradient import check_quickly


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    from irad.frontend.custom import catalogue

    before = {rule.target for rule in catalogue.rules()}
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


def test_arguments_that_the_caller_leaves_out():
    @njit
    def scaled(x, factor=2.0, power=2, name="square", nothing=None):
        return factor * x**power

    @rules.augmented_primal(scaled)
    def augmented(config, x, factor, power, name, nothing):
        if name.value != "square":
            raise ValueError("another default")
        return AugmentedReturn(scaled(x.value, factor.value, power.value), None, factor.value * power.value)

    @rules.reverse(scaled)
    def reverse(config, cotangent, tape, x, factor, power, name, nothing):
        by_factor = cotangent * x.value**power.value if rules.is_active(factor) else None
        return cotangent * tape * x.value ** (power.value - 1), by_factor, None, None, None

    check_quickly(njit(lambda x: scaled(x)), 3.0)
    check_quickly(njit(lambda x: scaled(x, 3.0) * scaled(x, power=3)), 3.0)
    check_quickly(njit(lambda x, k: scaled(x, factor=k)), 3.0, 0.5)


def test_a_default_of_none_decides_what_is_compiled():
    @njit
    def scaled(x, factor=None):
        return 3.0 * x if factor is None else factor * x

    @rules.augmented_primal(scaled)
    def augmented(config, x, factor):
        value = scaled(x.value, factor.value)
        if factor.value is None:
            return AugmentedReturn(value, None, 3.0)
        return AugmentedReturn(value, None, factor.value + 0.0)

    @rules.reverse(scaled)
    def reverse(config, cotangent, tape, x, factor):
        given = factor.value
        if given is not None and rules.is_active(factor):
            return cotangent * given, cotangent * x.value
        return cotangent * tape, None

    check_quickly(njit(lambda x: scaled(x) * scaled(x, None)), 1.5)
    check_quickly(njit(lambda x, k: scaled(x, k) * scaled(x, 2.0) * scaled(x)), 1.5, 0.7)


def test_literals_in_tuples():
    """Numba keeps them in the types of tuples, (int64, Literal[int](0)), but not of what it passes on."""

    @njit
    def line(x, how):
        return x * how[0] + how[1]

    @rules.augmented_primal(line)
    def line_augmented(config, x, how):
        return AugmentedReturn(line(x.value, how.value), None, how.value[0])

    @rules.reverse(line)
    def line_reverse(config, cotangent, tape, x, how):
        return cotangent * tape, None

    @njit
    def half_known(x, slope):
        return line(x, (slope, 0))

    @njit
    def known(x, slope):
        return line(x, (3, 0)) * slope

    @njit
    def mixed(x, slope):
        return line(x, (2.5, slope))

    assert irad.value_and_grad(half_known)(2.0, 3) == (6.0, 3.0)
    assert irad.value_and_grad(known)(2.0, 2) == (12.0, 6.0)
    assert irad.value_and_grad(mixed)(2.0, 1) == (6.0, 2.5)


def test_an_easy_rule_with_defaults():
    @njit
    def scaled(x, factor=2.0):
        return factor * x

    rules.easy_rule(scaled, lambda x, factor: 10.0 * factor, lambda x, factor: 10.0 * x)
    assert irad.grad(njit(lambda x: scaled(x)))(3.0) == 20.0


def test_an_easy_rule_of_a_ufunc():
    rules.easy_rule(np.arctan, lambda x, value: 100.0 * value)
    assert irad.grad(njit(lambda x: np.arctan(x)))(1.0) == 100.0 * np.arctan(1.0)
    with pytest.raises(irad.RuleError, match="takes 1 argument and is given 2"):
        rules.easy_rule(np.arctan, 1.0, 2.0)


@pytest.mark.parametrize("inline", ["never", "always"])
def test_rules_of_an_overload_without_python_code(inline):
    def stub(x):
        raise NotImplementedError

    rules.easy_rule(stub, lambda x: 100.0 * x)

    @overload(stub, inline=inline)
    def typed(x):
        return lambda x: x * x

    @njit
    def f(x):
        return stub(x) + x

    assert f(2.0) == 6.0
    assert irad.value_and_grad(f)(2.0) == (6.0, 201.0)
    rules.remove(stub)
    rules.inactive(stub)
    assert irad.value_and_grad(f)(2.0) == (6.0, 1.0)


def test_a_rule_may_write_an_ellipsis():
    @njit
    def energy(a):
        return (a * a).sum()

    @rules.augmented_primal(energy)
    def augmented(config, a):
        return AugmentedReturn(energy(a.value), None, a.value[...].copy())

    @rules.reverse(energy)
    def reverse(config, cotangent, tape, a):
        a.shadow[...] += 2.0 * cotangent * tape

    for shape in ((3,), (2, 2)):
        check_quickly(njit(lambda a: energy(a) ** 2), np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape))


def test_a_rule_calls_a_c_function():
    cosine = ctypes.CDLL(ctypes.util.find_library("m")).cos
    cosine.argtypes, cosine.restype = (ctypes.c_double,), ctypes.c_double

    @njit
    def wave(x):
        return np.sin(x)

    @rules.augmented_primal(wave)
    def augmented(config, x):
        return AugmentedReturn(wave(x.value), None, None)

    @rules.reverse(wave)
    def reverse(config, cotangent, tape, x):
        return (cotangent * cosine(x.value),)

    check_quickly(njit(lambda x: wave(x) ** 2), 0.7)


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A C function that writes squares to memory and returns nothing."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    folder: Path = tmp_path_factory.mktemp("c")
    code = "void squares(const double *x, double *y, long n) { for (long i = 0; i < n; i++) y[i] = x[i] * x[i]; }\n"
    (folder / "squares.c").write_text(code)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(folder / "squares.so"), str(folder / "squares.c")], check=True
    )
    found = ctypes.CDLL(str(folder / "squares.so")).squares
    found.argtypes, found.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long), None
    return found


def test_a_c_function_that_returns_nothing(squares):
    @rules.augmented_primal(squares)
    def augmented(config, x, y, n):
        squares(x.value, y.value, n.value)
        return AugmentedReturn(None, None, numba.carray(x.value, n.value, np.float64).copy())

    @rules.reverse(squares)
    def reverse(config, cotangent, tape, x, y, n):
        by_x = numba.carray(x.shadow, n.value, np.float64)
        by_y = numba.carray(y.shadow, n.value, np.float64)
        by_x += 2.0 * tape * by_y
        by_y[:] = 0.0

    @njit
    def f(x):
        y = np.empty_like(x)
        squares(x.ctypes, y.ctypes, x.size)
        return (y * y).sum()

    check_quickly(f, np.array([1.0, 2.0, 3.0]))


# ------------------------------------------------------------------------------------------------ derivatives in bodies


@njit
def _cube(x):
    return x**3


_slope = irad.grad(_cube)


@njit
def _between(x):
    return _slope(x) + 1.0


def _body() -> Any:
    @njit
    def body(x):
        return _between(x)

    return body


def test_the_body_of_a_function_with_a_rule_may_call_a_derivative():
    body = _body()
    rules.easy_rule(body, lambda x: 6.0 * x)

    @njit
    def f(x, y):
        return body(x) * x + body(y)  # the second call has no derivative where y is constant

    assert irad.value_and_grad(f)(2.0, 3.0) == (f(2.0, 3.0), 37.0)
    assert irad.grad(f, argnums=1)(2.0, 3.0) == 18.0


def test_the_body_of_an_inactive_function_may_call_a_derivative():
    body = rules.inactive(_body())
    assert irad.grad(njit(lambda x: body(x) * x))(2.0) == 13.0


def test_what_calls_the_derivative_without_the_rule_is_differentiated():
    body = _body()
    rules.easy_rule(body, lambda x: 100.0)
    assert irad.grad(njit(lambda x: body(x) * x))(2.0) == 213.0
    for f in (njit(lambda x: body(x) * _between(x)), njit(lambda x: _between(x) * body(x))):
        assert irad.grad(f)(2.0) == 100.0 * 13.0 + 13.0 * 12.0
    assert irad.grad(_between)(2.0) == 12.0
    rules.remove(body)
    assert irad.grad(njit(lambda x: body(x) * x))(2.0) == 37.0
