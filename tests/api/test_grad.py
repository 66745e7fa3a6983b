"""`grad` and `value_and_grad`: what goes in, what comes out, in which structure and dtype."""

from __future__ import annotations

import math
import pickle
import sys
import threading
from collections import namedtuple

import numba
import numpy as np
import pytest

import irad

Model = namedtuple("Model", "weights bias name")
Plane = namedtuple("Plane", "x y")


@numba.njit
def product(a, b):
    return a * b + math.sin(a)


@numba.njit
def sum_of_squares(x):
    s = x.dtype.type(0)
    for i in range(x.size):
        s += x[i] * x[i]
    return s


def test_gradient_of_a_float_is_a_float():
    gradient = irad.grad(product)(1.5, 2.0)
    assert isinstance(gradient, float)
    assert gradient == pytest.approx(2.0 + math.cos(1.5), rel=1e-15)


@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, 2.0 + math.cos(1.5)),
        (1, 1.5),
        (-1, 1.5),
        ((0,), (2.0 + math.cos(1.5),)),
        ((0, 1), (2.0 + math.cos(1.5), 1.5)),
        ((1, 0), (1.5, 2.0 + math.cos(1.5))),
        ([1, 0], (1.5, 2.0 + math.cos(1.5))),
    ],
)
def test_argnums(argnums, expected):
    assert irad.grad(product, argnums)(1.5, 2.0) == pytest.approx(expected, rel=1e-15)


def test_value_and_grad_returns_value_first():
    value, gradient = irad.value_and_grad(product, 1)(1.5, 2.0)
    assert value == product(1.5, 2.0)
    assert gradient == 1.5


def test_value_and_grad_of_several():
    value, gradients = irad.value_and_grad(product, (1, 0))(1.5, 2.0)
    assert value == product(1.5, 2.0)
    assert gradients == pytest.approx((1.5, 2.0 + math.cos(1.5)), rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_array_gradient_has_dtype_and_shape_of_the_argument(dtype):
    x = np.arange(5, dtype=dtype)
    gradient = irad.grad(sum_of_squares)(x)
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, 2 * x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_scalar_in_float32_out(dtype):
    @numba.njit
    def cube(x):
        return x * x * x

    gradient = irad.grad(cube)
    found = gradient(dtype(2.0))
    assert found == 12.0
    assert type(found) is (np.float32 if dtype is np.float32 else float)
    [signature] = gradient.nopython_signatures
    assert signature.return_type == numba.from_dtype(np.dtype(dtype))


STRIDED = {
    "reversed": lambda: np.arange(6.0)[::-1],
    "every second": lambda: np.arange(12.0)[::2],
    "backwards by two": lambda: np.arange(12.0)[::-2],
    "empty": lambda: np.empty(0),
    "empty slice": lambda: np.arange(6.0)[3:3:2],
    "one": lambda: np.arange(6.0)[2:3],
}


@pytest.mark.parametrize("make", STRIDED.values(), ids=STRIDED)
def test_strided_argument(make):
    x = make()
    gradient = irad.grad(sum_of_squares)(x)
    assert gradient.shape == x.shape
    np.testing.assert_array_equal(gradient, 2 * x)


@numba.njit
def weighted(A):
    s = 0.0
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            s += (i + 2 * j) * A[i, j] ** 2
    return s


MATRICES = {
    "C": lambda: np.arange(12.0).reshape(3, 4),
    "F": lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "transposed": lambda: np.arange(12.0).reshape(4, 3).T,
    "block": lambda: np.arange(60.0).reshape(6, 10)[1:4, 2:6],
    "steps": lambda: np.arange(60.0).reshape(6, 10)[::-2, ::3],
    "swapped": lambda: np.arange(60.0).reshape(3, 5, 4).swapaxes(1, 2)[:, :, 2],
    "no rows": lambda: np.empty((0, 4)),
    "no columns": lambda: np.empty((3, 0)),
}


@pytest.mark.parametrize("make", MATRICES.values(), ids=MATRICES)
def test_layouts_of_a_matrix(make):
    A = make()
    i, j = np.indices(A.shape)
    gradient = irad.grad(weighted)(A)
    assert gradient.shape == A.shape
    np.testing.assert_allclose(gradient, 2 * (i + 2 * j) * A, rtol=1e-15)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.broadcast_to(np.arange(4.0), (3, 4)),
        lambda: np.broadcast_to(np.float64(2.0), (3, 4)),
        lambda: np.broadcast_to(np.arange(3.0)[:, None], (3, 4)),
        lambda: np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
    ],
)
def test_read_only_array_that_repeats_elements_gets_a_gradient_per_element(make):
    A = make()
    i, j = np.indices(A.shape)
    np.testing.assert_allclose(irad.grad(weighted)(A), 2 * (i + 2 * j) * A, rtol=1e-15)


@numba.njit
def reads_repeated(a):
    return a[0] * a[0] + 3.0 * a[1] + a[2]


@numba.njit
def writes_repeated(a):
    s = a[0] * a[0]
    a[2] = 7.0 * a[0] * a[1]
    return s + a[1]


@pytest.mark.parametrize("function", [reads_repeated, writes_repeated])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_elements_of_a_writable_array_that_share_memory_add_up(function, dtype):
    def repeated(number):
        return np.lib.stride_tricks.as_strided(np.array([number], dtype), (3,), (0,))

    step = 1.0 / 16.0  # what is differentiated is of degree two: no error but rounding
    by_place = (function(repeated(2.0 + step)) - function(repeated(2.0 - step))) / (2.0 * step)
    for gradient in (irad.grad(function)(repeated(2.0)), irad.vjp(function, repeated(2.0))[1](1.0)[0]):
        assert gradient.strides == (0,)
        np.testing.assert_allclose(gradient, np.full(3, by_place), rtol=1e-5)


def test_zero_dimensional_array():
    @numba.njit
    def square(x):
        return x[()] ** 2

    gradient = irad.grad(square)(np.array(3.0))
    assert gradient.shape == ()
    assert gradient[()] == 6.0


def test_gradients_of_two_calls_share_nothing():
    gradient = irad.grad(sum_of_squares)
    first, second = gradient(np.ones(3)), gradient(np.ones(3))
    first[:] = 7
    np.testing.assert_array_equal(second, [2, 2, 2])


# --- structures -------------------------------------------------------------------------------------------------------


def test_tuple_of_floats():
    @numba.njit
    def f(t):
        return t[0] * t[1]

    assert irad.grad(f)((2.0, 3.0)) == (3.0, 2.0)


def test_nested_tuple_mirrors_the_argument():
    @numba.njit
    def f(t):
        (a, b), x = t
        return a * b * x.sum()

    (da, db), dx = irad.grad(f)(((2.0, 3.0), np.ones(4)))
    assert (da, db) == (12.0, 8.0)
    np.testing.assert_array_equal(dx, np.full(4, 6.0))


def test_places_without_derivative_become_none():
    @numba.njit
    def f(t):
        x, n, flag, index, _ = t
        return x * n if flag else x + index[0]

    gradient = irad.grad(f)((2.0, 3, True, np.arange(2), None))
    assert gradient == (3.0, None, None, None, None)


def test_named_tuple():
    @numba.njit
    def f(model, x):
        return (model.weights * x).sum() + model.bias

    x = np.arange(3.0)
    gradient = irad.grad(f)(Model(np.ones(3), 2.0, "linear"), x)
    assert isinstance(gradient, Model)
    np.testing.assert_array_equal(gradient.weights, x)
    assert gradient.bias == 1.0
    assert gradient.name is None


def test_named_tuple_of_equal_types():
    @numba.njit
    def f(p):
        return p.x * p.y

    assert irad.grad(f)(Plane(2.0, 3.0)) == Plane(3.0, 2.0)


def test_tuple_of_arrays_of_different_kind():
    @numba.njit
    def f(t):
        a, b = t
        return (a * a[::-1]).sum() * b[0, 0]

    da, db = irad.grad(f)((np.arange(3, dtype=np.float32), np.full((2, 2), 3.0)))
    assert da.dtype == np.float32
    np.testing.assert_array_equal(da, 6.0 * np.arange(3)[::-1])
    np.testing.assert_array_equal(db, [[1.0, 0.0], [0.0, 0.0]])


def test_record_array():
    dtype = np.dtype([("id", np.int64), ("mass", np.float64), ("speed", np.float32)])

    @numba.njit
    def energy(particles):
        s = 0.0
        for i in range(particles.size):
            s += 0.5 * particles[i].mass * particles[i].speed ** 2
        return s

    particles = np.zeros(3, dtype)
    particles["mass"], particles["speed"], particles["id"] = [1, 2, 3], [4, 5, 6], [7, 8, 9]
    gradient = irad.grad(energy)(particles)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient["mass"], 0.5 * particles["speed"] ** 2)
    np.testing.assert_allclose(gradient["speed"], particles["mass"] * particles["speed"])
    np.testing.assert_array_equal(gradient["id"], 0)


# --- calling ----------------------------------------------------------------------------------------------------------


def test_defaults_and_keywords():
    @numba.njit
    def f(x, k=2.0, n=3):
        return x * k * n

    gradient = irad.grad(f)
    assert gradient(1.0) == 6.0
    assert gradient(1.0, 5.0) == 15.0
    assert gradient(1.0, n=1) == 2.0
    assert gradient(1.0, n=4, k=10.0) == 40.0
    assert irad.grad(f, 1)(3.0) == 9.0


def test_star_arguments():
    @numba.njit
    def f(a, *rest):
        return a * rest[0] * rest[1]

    assert irad.grad(f)(2.0, 3.0, 5.0) == 15.0
    assert irad.grad(f, 2)(2.0, 3.0, 5.0) == 6.0
    assert irad.grad(f, (2, 0))(2.0, 3.0, 5.0) == (6.0, 15.0)


def test_has_aux():
    @numba.njit
    def f(x, n):
        return x * x * n, (n + 1, x * 10)

    assert irad.grad(f, has_aux=True)(3.0, 2) == (12.0, (3, 30.0))
    assert irad.value_and_grad(f, has_aux=True)(3.0, 2) == ((18.0, (3, 30.0)), 12.0)


def test_aux_array_is_returned():
    @numba.njit
    def f(x):
        y = x * x
        return y.sum(), y

    x = np.arange(3.0)
    gradient, aux = irad.grad(f, has_aux=True)(x)
    np.testing.assert_array_equal(gradient, 2 * x)
    np.testing.assert_array_equal(aux, x * x)


def test_explicit_signature():
    @numba.njit("float64(float64[:], float64)")
    def f(x, k):
        return x.sum() * k

    np.testing.assert_array_equal(irad.grad(f)(np.arange(3.0), 2.0), [2, 2, 2])
    assert irad.grad(f, 1)(np.arange(3.0), np.float32(2.0)) == 3.0


def test_plain_python_function_is_compiled():
    def f(x):
        return x * x

    assert irad.grad(f)(3.0) == 6.0


def test_jit_uses_the_numpy_error_model():
    @irad.jit
    def f(x):
        return 1.0 / x

    @irad.jit(error_model="python")
    def checked(x):
        return 1.0 / x

    @irad.jit("float64(float64)", fastmath=True)
    def eager(x):
        return x + 1

    assert f(0.0) == math.inf
    with pytest.raises(ZeroDivisionError):
        checked(0.0)
    assert eager(1.0) == 2.0
    assert irad.grad(f)(2.0) == -0.25


def test_function_argument():
    @numba.njit
    def apply(g, x):
        return g(x) * x

    @numba.njit
    def twice(x):
        return 2 * x

    assert irad.grad(apply, 1)(twice, 3.0) == 12.0


def test_same_derivative_is_not_built_twice():
    assert irad.grad(product) is irad.grad(product, 0)
    assert irad.grad(product) is not irad.grad(product, 1)
    assert irad.grad(product, options=irad.Options(plan="save_all")) is not irad.grad(product)


def test_options_are_accepted():
    gradient = irad.grad(product, options=irad.Options(plan="save_all", strict=True, verify=True))
    assert gradient(1.5, 2.0) == pytest.approx(2.0 + math.cos(1.5), rel=1e-15)


def test_pickle():
    gradient = pickle.loads(pickle.dumps(irad.grad(pickled, (0, 1))))
    assert gradient(2.0, 3.0) == (3.0, 2.0)
    assert repr(gradient) == "<irad.grad of pickled>"


@pytest.mark.parametrize(
    "make", [irad.grad, irad.value_and_grad, irad.pushforward, irad.jacobian, irad.hessian, irad.hvp]
)
def test_pickle_keeps_options_and_what_is_named(make):
    """What is made again is the same derivative, so it is the one that there was."""
    made = make(pickled, argnames=("b", "a"), options=irad.Options(plan="save_all", strict=True))
    assert pickle.loads(pickle.dumps(made)) is made
    assert pickle.loads(pickle.dumps(made)) is not make(pickled, argnames=("b", "a"))


@numba.njit
def pickled(a, b):
    return a * b


def test_threads():
    @numba.njit(nogil=True)
    def f(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = math.exp(-x[i]) * x[i]
        return y.sum()

    x = np.linspace(0, 1, 1000)
    expected = (1 - x) * np.exp(-x)
    gradient = irad.grad(f)
    wrong = []

    def work():
        for _ in range(50):
            if not np.allclose(gradient(x), expected, rtol=1e-13):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- inside compiled code ---------------------------------------------------------------------------------------------


def test_gradient_descent_in_nopython_mode():
    gradient = irad.grad(sum_of_squares)

    @numba.njit
    def descend(x, steps):
        for _ in range(steps):
            x = x - 0.25 * gradient(x)
        return x

    np.testing.assert_allclose(descend(np.arange(4.0), 3), np.arange(4.0) / 8)


def test_value_and_grad_in_nopython_mode_with_keyword():
    derivative = irad.value_and_grad(product, (0, 1))

    @numba.njit
    def use(a):
        value, (da, db) = derivative(a, b=2.0)
        return value + da + db

    assert use(1.5) == pytest.approx(product(1.5, 2.0) + 2.0 + math.cos(1.5) + 1.5, rel=1e-15)


def test_derivative_is_inlined_into_its_caller():
    gradient = irad.grad(product)

    @numba.njit
    def use(a):
        return gradient(a, 2.0)

    use(1.0)
    [text] = use.inspect_llvm().values()
    body = text[text.index("define") :].split("\n}")[0]
    assert "reverse" not in body
    assert "augmented" not in body


def test_derivative_as_argument_of_compiled_code():
    @numba.njit
    def apply(g, x):
        return g(x, 1.0)

    assert apply(irad.grad(product, 1), 3.0) == 3.0


# --- exceptions and memory --------------------------------------------------------------------------------------------


@numba.njit
def guarded(x):
    y = x * 2
    if x[0] < 0:
        raise ValueError("negative", x.size)
    return y.sum()


def test_derivative_raises_what_the_primal_raises():
    gradient = irad.grad(guarded)
    with pytest.raises(ValueError, match="negative") as caught:
        gradient(np.full(3, -1.0))
    assert caught.value.args == ("negative", 3)
    np.testing.assert_array_equal(gradient(np.ones(3)), [2, 2, 2])


def test_failing_calls_keep_no_reference_to_their_arguments():
    x = np.full(3, -1.0)
    derivative, out = irad.value_and_grad_into(guarded), np.empty(3)
    for call in (lambda: irad.grad(guarded)(x), lambda: derivative(out, x)):
        with pytest.raises(ValueError, match="negative"):
            call()
        before = sys.getrefcount(x), sys.getrefcount(out)
        for _ in range(100):
            with pytest.raises(ValueError, match="negative"):
                call()
        assert (sys.getrefcount(x), sys.getrefcount(out)) == before


def test_succeeding_calls_keep_no_reference_to_their_arguments():
    x = np.ones(3)
    gradient = irad.grad(guarded)
    gradient(x)
    before = sys.getrefcount(x)
    for _ in range(100):
        gradient(x)
    assert sys.getrefcount(x) == before


def test_exception_inside_compiled_code_can_be_caught():
    gradient = irad.grad(guarded)

    @numba.njit
    def safe(x):
        try:
            return gradient(x)[0]
        except Exception:
            return -1.0

    assert safe(np.ones(3)) == 2.0
    assert safe(np.full(3, -1.0)) == -1.0


@numba.njit
def added_in_a_loop(x, y, n):
    s = x * x
    for _ in range(n):
        s = s * y + math.sin(y)
    return s


def test_nothing_is_a_positive_zero():
    """Cotangents start with -0.0, which must not show in gradients."""
    _, by_y = irad.grad(added_in_a_loop, argnums=(0, 1))(3.0, 2.0, 0)
    assert by_y == 0.0
    assert math.copysign(1.0, by_y) == 1.0
