"""Functions as values: chosen at run time, in tuples and lists, passed as arguments; cfuncs, function pointers."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from numba import carray, cfunc, complex128, float32, float64, int64, njit, types
from numba.core.errors import NumbaExperimentalFeatureWarning

import irad
from tests.tools.catalogue import Case, Catalogue, floats

pytestmark = pytest.mark.filterwarnings(f"ignore::{NumbaExperimentalFeatureWarning.__module__}.NumbaWarning")

PROGRAMS = Catalogue()
ARRAY = float64[::1]


@njit(float64(float64))
def squared(x):
    return x * x


@njit(float64(float64))
def cubed(x):
    return x * x * x


@njit(float64(float64))
def root(x):
    if x < 0:
        raise ValueError("negative")
    return math.sqrt(x)


@cfunc(float64(float64))
def wave(x):
    return x * math.sin(x)


@cfunc(float64(float64))
def growth(x):
    s = x
    for i in range(3):
        s += math.exp(s * 0.1) * i
    return s


@cfunc(float32(float32, int64))
def single(x, n):
    return x * x * np.float32(n)


@njit(float64(ARRAY, float64))
def scale_first(v, x):
    v[0] = v[0] * x
    return v[0] + v[1]


@njit(float64(ARRAY, float64))
def fill_second(v, x):
    if x < 0:
        raise ValueError("negative")
    v[1] = v[0] * math.sqrt(x)
    return v[0] * v[1]


@njit(ARRAY(ARRAY, float64))
def scaled(v, x):
    return v * x


@njit(ARRAY(ARRAY, float64))
def tail(v, x):
    return v[1:]


FUNCTIONS = (squared, cubed)
CALLBACKS = (wave, growth)
THREE = (squared, cubed, root)


@PROGRAMS.at(1.5, 1)
@PROGRAMS.at(1.5, -1)
@njit
def chosen_by_a_branch(x, n):
    f = squared if n > 0 else cubed
    return f(x) * x


@PROGRAMS.at(1.5, 0)
@PROGRAMS.at(1.5, 1)
@njit
def from_a_tuple(x, n):
    return FUNCTIONS[n](x) * FUNCTIONS[1 - n](x + 1)


@PROGRAMS.at(1.5)
@njit
def each_of_a_tuple(x):
    s = 0.0
    for f in THREE:
        s += f(x) * s + f(2 * x)
    return s


@PROGRAMS.at(1.5, 5)
@PROGRAMS.at(1.5, 0)
@njit
def chosen_in_a_loop(x, n):
    f = squared
    s = x
    for i in range(n):
        s = f(s * 0.5) + x
        f = root if i % 3 == 0 else cubed
    return s


@PROGRAMS.at(1.2, 1)
@PROGRAMS.at(1.2, -1)
@njit
def from_a_list(x, n):
    functions = [squared, cubed, root]
    s = 0.0
    for f in functions:
        s += f(x)
    return s * functions[n](x)


@PROGRAMS.at(0.5)
@njit
def callback(x):
    return wave(x) * growth(x) + wave(2.0 * x)


@PROGRAMS.at(0.5, 5)
@PROGRAMS.at(0.5, 0)
@njit
def callbacks_by_number(x, n):
    s = 1.0
    for i in range(n):
        s = s * CALLBACKS[i % 2](x + i) + x
    return s


@PROGRAMS.at(floats(2), 0.7, 5)
@PROGRAMS.at(floats(2), 0.7, 0)
@njit
def functions_that_write(v, x, n):
    s = 0.0
    for i in range(n):
        f = scale_first if i % 2 else fill_second
        s += f(v, x)
    return s + v[1] * v[0]


@PROGRAMS.at(floats(4), 0.7, 0)
@PROGRAMS.at(floats(4), 0.7, 1)
@njit
def functions_that_return_arrays(v, x, n):
    f = scaled if n else tail
    w = f(v, x)
    w[0] = w[0] * x
    return np.sum(w * w) + v[1]


@PROGRAMS.at(0.5)
@njit
def result_is_not_used(x):
    f = squared if x > 0 else cubed
    f(x)
    return x * x


@PROGRAMS.at(0.5, 3)
@njit
def constant_argument(x, n):
    f = squared if n > 0 else cubed
    return f(n + 0.5) * x


@PROGRAMS.at(wave, 0.5)
@PROGRAMS.at(growth, 0.5)
@njit
def pointer_argument(f, x):
    return f(x) * 2 + f(f(x)) + x


@PROGRAMS.at(wave, growth, 0.5, 4)
@PROGRAMS.at(wave, wave, 0.5, 3)
@PROGRAMS.at(wave, growth, 0.5, 0)
@njit
def pointer_arguments_in_a_loop(f, g, x, n):
    s = x
    for i in range(n):
        h = f if i % 2 else g
        s = h(s) * 0.5
    return s


@PROGRAMS.at((wave, growth), 0.5, 1)
@njit
def tuple_of_pointers(functions, x, n):
    return functions[n](x) * functions[0](x * x)


@PROGRAMS.at(wave, 0.5)
@njit
def pointer_or_known(f, x):
    h = f if x > 1.0 else squared
    g = f if x < 1.0 else squared
    return h(x) * g(x)


@njit
def _recursive(f, x, n):
    if n == 0:
        return x
    return _recursive(f, f(x) * 0.7, n - 1) * f(x)


@PROGRAMS.at(wave, 0.9, 4)
@njit
def pointer_in_a_recursion(f, x, n):
    return _recursive(f, x, n)


# Function values of njit functions come with both entries; with a signature they are not resolved statically.
@njit(float64(types.FunctionType(float64(float64)), float64, int64))
def explicit_signature(f, x, n):
    s = x
    for _ in range(n):
        s = f(s) + x
    return s


PROGRAMS.at(squared, 0.5, 3)(explicit_signature)
PROGRAMS.at(root, 0.5, 3)(explicit_signature)


@njit(float64(types.FunctionType(float64(ARRAY, float64)), ARRAY, float64))
def pointer_to_a_function_that_writes(f, v, x):
    s = f(v, x)
    return s * f(v, s)


PROGRAMS.at(scale_first, floats(3), 0.7)(pointer_to_a_function_that_writes)
PROGRAMS.at(fill_second, floats(3), 0.7)(pointer_to_a_function_that_writes)


@njit(float64(types.FunctionType(ARRAY(ARRAY, float64)), ARRAY, float64))
def pointer_to_a_function_that_returns_an_array(f, v, x):
    w = f(v, x)
    w[0] = w[0] * x
    return np.sum(w * f(w, v[0])[0]) + v[1]


PROGRAMS.at(scaled, floats(4), 0.7)(pointer_to_a_function_that_returns_an_array)
PROGRAMS.at(tail, floats(4), 0.7)(pointer_to_a_function_that_returns_an_array)


@njit(float64(types.FunctionType(float64(float64)), float64))
def twice(f, x):
    return f(f(x)) * x


@njit(float64(types.FunctionType(twice.nopython_signatures[0]), types.FunctionType(float64(float64)), float64))
def pointer_given_to_a_pointer(h, f, x):
    return h(f, x) * h(f, x * x)


PROGRAMS.at(twice, wave, 0.7)(pointer_given_to_a_pointer)


@cfunc(float64(types.CPointer(float64), int64, float64))
def scale_all(p, n, x):
    v = carray(p, (n,))
    s = 0.0
    for i in range(n):
        v[i] = v[i] * x
        s += v[i] * v[i]
    return s


scale_all_by_ctypes = scale_all.ctypes


@PROGRAMS.at(floats(3), 0.7)
@njit
def callback_with_the_address_of_an_array(v, x):
    return scale_all_by_ctypes(v.ctypes, v.size, x) * v[1]


@PROGRAMS.at(scale_all, floats(3), 0.7)
@njit
def pointer_argument_with_the_address_of_an_array(f, v, x):
    return f(v.ctypes, v.size, x) * v[1]


@cfunc(complex128(complex128, float64))
def turned(z, x):
    return z * z * x


@PROGRAMS.at(turned, 0.5, 0.6)
@njit
def pointer_with_complex_numbers(f, x, y):
    z = f(complex(x, y), x) + turned(complex(y, x), y)
    return abs(z) * z.real


@cfunc(types.UniTuple(float64, 2)(float64, float64))
def pair_of(x, y):
    return x * y, x - y


@PROGRAMS.at(pair_of, 0.5, 0.6)
@njit
def pointer_that_returns_a_tuple(f, x, y):
    a, b = f(x, y)
    return a * b


@njit(types.void(ARRAY, ARRAY))
def decay(du, u):
    for i in range(u.size):
        du[i] = -(u[i] ** 3)


@njit(types.void(ARRAY, ARRAY))
def growing(du, u):
    du[:] = u * u[::-1]


@PROGRAMS.at(floats(2), (decay, growing), 0)
@PROGRAMS.at(floats(2), (decay, growing), 1)
@njit
def integrator(x, rates, k):
    u, stages = x.copy(), np.zeros((3, 2))
    for i in range(3):
        stages[:] = 0.0
        rates[k](stages[0], u)
        rates[1 - k](stages[1], u + 0.1 * stages[0])
        du = np.zeros(2)
        rates[i % 2](du, stages[1])
        stages[2] += du
        u += 0.1 * (stages[0] + 2.0 * stages[1] + stages[2])
    return u[0] * u[1] + u[0]


@PROGRAMS.at(floats(2), (decay, growing), 1)
@njit
def overwrites_what_it_was_given(x, rates, k):
    rates[k](x, x.copy())
    total = x[0] * x[1]
    x[:] = 0.0
    rates[1 - k](x, np.ones(2) * total)
    return x[0] * total


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()


@njit
def single_pointer(f, x):
    return f(x, 3) * x


def test_single_precision():
    given = irad.grad(single_pointer, 1)(single, np.float32(0.7))
    assert given == pytest.approx(9 * 0.7**2, rel=1e-6)


def test_an_exception_behind_a_pointer_is_that_of_the_primal():
    for n in (3, 4):
        with pytest.raises(ValueError, match="negative"):
            irad.grad(explicit_signature, 1)(root, -0.5, n)
    with pytest.raises(ValueError, match="negative"):
        irad.grad(chosen_by_number)(-0.5, 2)
    with pytest.raises(ValueError, match="negative"):
        irad.grad(functions_that_write, (0, 1))(floats(2), -0.7, 3)


@njit
def chosen_by_number(x, n):
    f = root if n > 1 else squared
    return f(x)


gradient_of_pointer_argument = irad.grad(pointer_argument, 1)


@njit
def in_compiled_code(f, g, x, y):
    return gradient_of_pointer_argument(f, x) + gradient_of_pointer_argument(g, y)


def test_in_compiled_code():
    gradient = gradient_of_pointer_argument
    assert in_compiled_code(wave, growth, 0.5, 0.7) == gradient(wave, 0.5) + gradient(growth, 0.7)


def test_the_pair_is_found_by_several_threads_at_once():
    @cfunc(float64(float64))
    def fresh(x):
        return math.cos(x) * x

    gradient = irad.grad(pointer_argument, 1)
    gradient(wave, 0.5)
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(gradient(fresh, 0.5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = gradient(fresh, 0.5)
    assert found == [expected] * 4
    step = 1e-6
    differences = (pointer_argument(fresh, 0.5 + step) - pointer_argument(fresh, 0.5 - step)) / (2 * step)
    assert expected == pytest.approx(differences, rel=1e-8)
