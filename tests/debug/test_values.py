"""A NaN or an infinity in the function's value: the operation, line and iteration that made it first."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from numba import float64, njit, prange
from numba.experimental import jitclass

import irad
from irad.debug import events
from irad.debug.events import MOST_EVENTS
from irad.frontend.calls import watch_hooks
from tests.debug.lines import DEBUG, assert_began, error_of, line_of


@njit(error_model="numpy")
def log_of_negative(x):
    total = 0.0
    for i in range(x.size):
        total += math.log(x[i])  # here
    return total


@njit(error_model="numpy")
def zero_by_zero(x):
    total = 0.0
    for i in range(x.size):
        y = x[i] - 1.0
        total += y / (x[i] * y)  # here
    return total


@njit(error_model="numpy")
def overflow(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(1000.0 * (x[i] - 1.0))  # here
    return total


@njit(error_model="numpy")
def difference_of_infinities(x):
    total = 0.0
    for i in range(x.size):
        y = 1.0 / (x[i] - 1.0)  # here
        total += y - 2.0 * y
    return total


@njit(error_model="numpy")
def inverse_cosine(x):
    total = 0.0
    for i in range(x.size):
        total += math.acos(x[i] - 0.5)  # here
    return total


ONES = np.full(5, 0.75)


def with_element(values, index, value):
    changed = values.copy()
    changed[index] = value
    return changed


@pytest.mark.parametrize(
    ("function", "bad", "words", "dtype", "plan"),
    [
        (log_of_negative, -2.0, "log(-2.0) = nan", np.float64, "save_all"),
        (log_of_negative, -2.0, "log(-2.0) = nan", np.float32, "default"),
        (zero_by_zero, 1.0, "0.0 / 0.0 = nan", np.float64, "default"),
        (overflow, 3.0, "exp(2000.0) = inf", np.float64, "default"),
        (difference_of_infinities, 1.0, "1.0 / 0.0 = inf", np.float32, "save_all"),
        (inverse_cosine, 3.0, "acos(2.5) = nan", np.float64, "default"),
    ],
)
def test_line_iteration_and_operands(function, bad, words, dtype, plan):
    gradient = irad.grad(function, options=irad.Options(debug=True, plan=plan))
    fine = ONES.astype(dtype)
    assert np.array_equal(gradient(fine), irad.grad(function, options=irad.Options(plan=plan))(fine))
    error = error_of(gradient, with_element(fine, 3, bad))
    assert_began(error, function, "# here", {"for i in": 3}, words)
    assert error.sweep == "value"
    assert error.result.startswith(f"the value of {function.__name__} is ")


def test_what_became_of_an_infinity_is_told():
    error = error_of(irad.grad(difference_of_infinities, options=DEBUG), with_element(ONES, 2, 1.0))
    assert "inf - inf = nan" in error.problem


@njit(error_model="numpy")
def nested(x):
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            k = 0
            while k < x[i, j]:
                total += np.sqrt(x[i, j] - 2 * k)  # here
                k += 1
    return total


def test_nested_loops():
    x = np.ones((3, 5))
    x[1, 4] = 3.0
    assert_began(
        error_of(irad.grad(nested, options=DEBUG), x),
        nested,
        "# here",
        {"for i in": 1, "for j in": 4, "while k": 2},
        "sqrt(-1.0) = nan",
    )


@njit(error_model="numpy")
def callee(y):
    return np.log(y)  # inside


@njit(error_model="numpy")
def calls(x):
    total = 0.0
    for i in range(x.size):
        total += callee(x[i]) ** 2
    return total


def test_a_callee_in_a_loop():
    error = error_of(irad.grad(calls, options=DEBUG), with_element(ONES, 4, -1.0))
    assert error.location.line == callee.py_func.__code__.co_firstlineno + 2
    assert error.location.function == "callee"
    assert [number for _, number in error.loops] == [4]


@njit(error_model="numpy")
def recursive(x, depth):
    if depth == 0:
        return np.log(x[0])  # bottom
    total = 0.0
    for i in range(x.size):
        total += x[i] * recursive(x - 1.0, depth - 1) * (1.0 if i else 0.0)
    return total


def test_recursion_tells_the_calls():
    error = error_of(irad.grad(recursive, options=DEBUG), np.array([2.5, 1.0, 1.0]), 3)
    assert error.location.line == recursive.py_func.__code__.co_firstlineno + 3
    assert error.operation == "log(-0.5) = nan"
    text = " ".join(str(error).split())  # lines are wrapped
    assert text.count("a call at") == 3
    assert text.count("iteration 0 of the loop") == 3


@njit(error_model="numpy", parallel=True)
def parallel(x):
    total = 0.0
    for i in prange(2, x.shape[0]):
        for j in range(x.shape[1]):
            total += np.log(x[i, j])  # here
    return total


def test_parallel_loops_give_the_index():
    x = np.ones((40, 6))
    x[17, 4] = -3.0
    error = error_of(irad.grad(parallel, options=DEBUG), x)
    assert_began(error, parallel, "# here", {"prange": 17, "for j in": 4}, "log(-3.0) = nan")
    assert "index 17 of the parallel loop" in str(error)
    assert "iteration 4 of the loop" in str(error)


@njit(error_model="numpy")
def complex_logarithm(z):
    w = np.log(z)  # here
    return abs(w * z)


def test_complex_numbers():
    error = error_of(irad.grad(complex_logarithm, options=DEBUG), 0j)
    assert error.location.line == complex_logarithm.py_func.__code__.co_firstlineno + 2
    assert "log(0.0) = -inf" in error.operation


@njit(error_model="numpy")
def array_expression(x):
    y = np.ones_like(x)
    z = np.sqrt(x) * y  # here
    return z.sum()


def test_array_expressions_have_a_line():
    error = error_of(irad.grad(array_expression, options=DEBUG), with_element(ONES, 1, -4.0))
    assert error.location.line == array_expression.py_func.__code__.co_firstlineno + 3
    assert error.operation == "sqrt(-4.0) = nan"


@njit(error_model="numpy")
def masked_and_real(x, y):
    masked = np.where(x > 0.0, np.log(x), 0.0)
    return masked.sum() + y / y  # here


def test_a_nan_that_is_masked_is_not_blamed():
    x = np.array([1.0, -1.0, 2.0])
    gradient = irad.grad(masked_and_real, options=DEBUG)
    assert np.array_equal(gradient(x, 1.0), irad.grad(masked_and_real)(x, 1.0))
    error = error_of(gradient, x, 0.0)
    assert error.location.line == masked_and_real.py_func.__code__.co_firstlineno + 3
    assert error.operation == "0.0 / 0.0 = nan"


@njit(error_model="numpy")
def writes(x, out):
    for i in range(x.size):
        out[i] = np.sqrt(x[i])  # here
    return 1.0


def test_what_the_function_writes_counts():
    error = error_of(irad.grad(writes, (0, 1), options=DEBUG), with_element(ONES, 2, -1.0), np.zeros(5))
    assert error.result == "the argument out after the call at [2] is nan"
    assert error.operation == "sqrt(-1.0) = nan"


@njit(error_model="numpy", fastmath=True)
def fast(x):
    total = 0.0
    for i in range(x.size):
        total += math.log(x[i])  # here
    return total


def test_fast_math_is_watched():
    error = error_of(irad.grad(fast, options=DEBUG), with_element(ONES, 3, -2.0))
    assert_began(error, fast, "# here", {"for i in": 3}, "log(-2.0) = nan")


_derivative = irad.grad(log_of_negative, options=DEBUG)


@njit
def compiled_caller(x):
    return _derivative(x).sum()


def test_compiled_callers_see_the_same_error():
    assert compiled_caller(np.ones(3)) == 3.0
    for _ in range(2):
        with pytest.raises(irad.NonFiniteError, match=r"log\(-1.0\)"):
            compiled_caller(np.array([1.0, -1.0]))


def test_vjp_raises_before_there_is_a_pullback():
    with pytest.raises(irad.NonFiniteError, match=r"log\(-1.0\)"):
        irad.vjp(log_of_negative, np.array([1.0, -1.0]), options=DEBUG)


def test_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRAD_DEBUG", "1")

    @njit(error_model="numpy")
    def f(x):
        return np.log(x)

    with pytest.raises(irad.NonFiniteError):
        irad.grad(f)(-1.0)


def test_of_the_nans_of_one_place_the_one_that_comes_out_is_named():
    @njit(error_model="numpy")
    def f(x, use):
        logarithms = np.log(x)  # here
        total = 0.0
        for i in range(x.size):
            total += logarithms[i] if use[i] else 0.0
        return total

    use = np.array([True, False, True, True])
    error = error_of(irad.grad(f, options=DEBUG), np.array([1.0, -1.0, 2.0, -3.0]), use)
    assert_began(error, f, "# here", {"# here": 3}, "log(-3.0) = nan")


def test_an_infinity_that_is_masked_and_a_nan_of_the_same_place():
    @njit(error_model="numpy")
    def f(x, y, use):
        quotients = x / y  # here
        total = 0.0
        for i in range(x.size):
            total += quotients[i] if use[i] else 0.0
        return total

    x, y, use = np.array([1.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([False, True, True])
    error = error_of(irad.grad(f, 0, options=DEBUG), x, y, use)
    assert_began(error, f, "# here", {"# here": 2}, "0.0 / 0.0 = nan")


def test_of_very_many_nans_only_the_place_is_known():
    @njit(error_model="numpy")
    def f(x):
        return np.where(np.arange(x.size) == x.size - 1, np.log(x), 0.0).sum()  # here

    error = error_of(irad.grad(f, options=DEBUG), np.full(MOST_EVENTS + 1, -1.0))
    assert_began(error, f, "# here", {}, "log(…) = nan")
    assert f"keeps the details of only the first {MOST_EVENTS}" in str(error)


def test_tuples_that_hold_integers_are_looked_into():
    @njit(error_model="numpy")
    def f(x):
        return np.log(x), np.arange(2), 3

    with pytest.raises(irad.NonFiniteError, match=r"the value of .*f at \[0\]\[1\] is nan"):
        irad.vjp(f, np.array([1.0, -1.0]), options=DEBUG)


def test_an_infinite_argument_that_does_no_harm_is_not_blamed():
    @njit(error_model="numpy")
    def f(x, high):
        return np.sqrt(min(x, high))  # here

    error = error_of(irad.grad(f, 0, options=DEBUG), 0.0, np.inf)
    assert_began(error, f, "# here", {}, "0.5 / 0.0 = inf")
    assert "the argument high was inf from the start" in error.problem  # an infinity has no mark: it might be this one


@jitclass([("weights", float64[:])])
class Layer:
    def __init__(self, weights):
        self.weights = weights


def test_instances_are_looked_into():
    @njit
    def f(layer):
        return layer.weights.sum()

    error = error_of(irad.grad(f, options=DEBUG), Layer(np.array([1.0, np.nan])))
    assert "the argument layer.weights[1] was nan from the start" in error.problem


def test_an_interrupt_ends_the_call(monkeypatch: pytest.MonkeyPatch):
    gradient = irad.grad(log_of_negative, options=DEBUG)
    _, pullback = irad.vjp(log_of_negative, ONES, options=DEBUG)
    pullback(1.0)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for name in ("open_call", "check_result"):
        with monkeypatch.context() as patch:
            patch.setattr(watch_hooks, name, interrupted)
            for call in (lambda: gradient(ONES), lambda: pullback(1.0)):
                with pytest.raises(KeyboardInterrupt):
                    call()
    assert np.array_equal(gradient(ONES), pullback(1.0)[0])
    with monkeypatch.context() as patch:
        patch.setattr(watch_hooks, "begin", interrupted)  # not one of its functions: as if Python could not be called
        with pytest.raises(irad.InternalError, match="could not call Python"):
            gradient(ONES)


def test_what_a_forward_sweep_told_is_forgotten_with_its_pullback():
    known = len(events._calls)
    _, pullback = irad.vjp(log_of_negative, ONES, options=DEBUG)
    pullback(1.0)
    assert len(events._calls) == known + 1
    del pullback
    assert len(events._calls) == known


@njit(error_model="numpy")
def exp_of_log(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(np.log(x[i]))
    return total


@pytest.mark.parametrize("options", [DEBUG, irad.Options(max_tape_bytes=200)])
def test_compiled_code_may_catch_the_error(options):
    gradient = irad.grad(exp_of_log, options=options)

    @njit
    def first_or_none(x):
        try:
            return gradient(x)[0]
        except Exception:
            return -1.0

    bad = -np.ones(2) if options.debug else np.ones(100)
    for _ in range(2):
        assert first_or_none(bad) == -1.0
        assert first_or_none(np.ones(2)) == 1.0
    with pytest.raises((irad.NonFiniteError, irad.TapeLimitError)) as caught:
        gradient(bad)
    error = weakref.ref(caught.value)
    del caught
    gc.collect()
    assert error() is None  # nobody holds it, nor what its traceback holds


def test_a_nan_that_no_operation_made():
    @njit
    def constant(x):
        numbers = np.full(3, np.nan)  # here
        numbers[0] = x
        return numbers.sum()

    @njit
    def solved(matrix, x):
        return np.linalg.solve(matrix, x).sum()  # here

    error = error_of(irad.grad(constant, options=DEBUG), 1.0)
    assert "came from one of: a constant of the function" in error.problem
    error = error_of(irad.grad(solved, 0, options=DEBUG), np.diag([1e-320, 1.0]), np.ones(2))
    assert "came from one of: np.linalg.solve" in error.problem
    assert error.location.line == line_of(solved, "# here")
