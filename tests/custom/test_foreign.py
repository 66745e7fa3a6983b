"""Rules that are Python closures, and those of JAX, PyTorch and autograd."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, types

import irad
from irad import rules
from irad.errors import NoRuleError, RuleError, SignatureError
from irad.frontend.foreign import closures
from irad.testing import test_forward, test_reverse
from irad.testing.allocations import allocations
from irad.testing.check_gradient import check_quickly

A = np.array([0.3, 0.8])


@pytest.fixture
def imported() -> Iterator[Callable[..., Any]]:
    """`import_rule` until the end of the test."""
    made: list[Any] = []

    def import_rule(*arguments: Any, **options: Any) -> Any:
        made.append(rules.import_rule(*arguments, **options))
        return made[-1]

    yield import_rule
    for each in made:
        rules.remove(each)


def wave_rule(a, k):
    y = np.sin(k * a)

    def pullback(cotangent):
        inner = cotangent * np.cos(k * a)
        return inner * k, (inner * a).sum()

    return y, pullback


def new_wave() -> Any:
    @njit
    def wave(a, k):
        return np.sin(k * a)

    return wave


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_function_of_numba_with_a_rule_in_python(imported, dtype):
    wave = new_wave()
    assert imported(wave, wave_rule) is wave

    @njit
    def f(a, k):
        total = k
        for _ in range(3):
            total += (wave(a, k) * a).sum()
            a[0] = 0.5 * total
        return total

    check_quickly(f, A.astype(dtype), dtype(0.7), plans=("default",))


def test_arguments_that_do_not_take_part(imported):
    wave = imported(new_wave(), wave_rule)
    derivative = irad.grad(njit(lambda a, k: wave(a, k).sum()), argnums=1)
    assert derivative(A, 0.7) == pytest.approx((np.cos(0.7 * A) * A).sum())

    @njit
    def power(x, n):
        return x**n

    imported(power, lambda x, n: (x**n, lambda ct: (ct * n * x ** (n - 1), None)))
    assert irad.grad(power)(2.0, 3) == 12.0


def test_a_cotangent_of_none_is_zero(imported):
    step = imported(njit(lambda a, k: a * k), lambda a, k: (a * k, lambda ct: (None, None)))
    found = irad.vjp(step, A, 2.0)[1](A)
    np.testing.assert_array_equal(found[0], [0.0, 0.0])
    assert found[1] == 0.0


def sum_of_squares(a):
    if a[0] == 0.0:
        raise KeyError("the function")
    return float((a * a).sum())


def squares_rule(a):
    def pullback(cotangent):
        if a[0] > 100.0:
            raise LookupError("the pullback")
        return (2.0 * cotangent * a,)

    if a[0] < 0.0:
        raise ValueError("the rule")
    return sum_of_squares(a), pullback


def test_a_function_that_numba_cannot_compile(imported):
    squares = imported(sum_of_squares, squares_rule, returns="float64")
    assert squares.__name__ == "sum_of_squares"
    assert njit(lambda a: squares(a) + 1.0)(A) == sum_of_squares(A) + 1.0
    test_reverse(squares, A)


def test_results_of_several_parts_and_complex_numbers(imported):
    def turn(z, a):
        return z * z, np.exp(1j * a)

    def turn_rule(z, a):
        value = turn(z, a)
        return value, lambda ct: (ct[0] * np.conj(2.0 * z), (np.conj(1j * value[1]) * ct[1]).real)

    def returns(z, a):
        return types.Tuple((z, a.copy(dtype=types.complex128)))

    made = imported(turn, turn_rule, returns=returns)

    @njit
    def f(x, y, a):
        number, array = made(complex(x, y), a)
        return number.real * number.imag + (array * array).sum().imag

    check_quickly(f, 0.4, -0.3, A, plans=("default",))


def test_exceptions_come_through(imported):
    squares = imported(sum_of_squares, squares_rule, returns=types.float64)

    @njit
    def f(a):
        return squares(a) * squares(2.0 * a)

    derivative = irad.grad(f)
    for first, kind, text in [
        (0.0, KeyError, "function"),
        (-1.0, ValueError, "rule"),
        (200.0, LookupError, "pullback"),
    ]:
        a = np.array([first, 1.0])
        with pytest.raises(kind, match=text):
            (f if kind is KeyError else derivative)(a)
    _, pullback = irad.vjp(f, np.array([200.0, 1.0]))
    with pytest.raises(LookupError, match="the pullback"):
        pullback(1.0)
    np.testing.assert_allclose(derivative(A), 16.0 * A * (A * A).sum())


def test_compiled_code_may_catch_what_python_raises(imported):
    squares = imported(sum_of_squares, squares_rule, returns=types.float64)
    derivative = irad.grad(squares)

    @njit
    def value_or_none(a):
        try:
            return squares(a)
        except Exception:
            return -1.0

    @njit
    def derivative_or_none(a):
        try:
            return derivative(a)[0]
        except Exception:
            return -1.0

    guarded = irad.grad(value_or_none)
    for first in (0.0, -1.0, 200.0):
        a = np.array([first, 1.0])
        assert value_or_none(a) == (-1.0 if first == 0.0 else sum_of_squares(a))
        assert derivative_or_none(a) == -1.0
    assert np.array_equal(guarded(np.array([-1.0, 1.0])), [0.0, 0.0])  # the rule raised, so -1.0 came out
    with pytest.raises(LookupError, match="the pullback"):  # no part of the function: it cannot catch that
        guarded(np.array([200.0, 1.0]))
    assert value_or_none(A) == sum_of_squares(A)
    assert derivative_or_none(A) == guarded(A)[0] == 2.0 * A[0]


def test_a_pullback_lives_as_long_as_what_it_belongs_to(imported):
    wave = imported(new_wave(), wave_rule)
    gc.collect()
    before = len(closures._alive)
    a = A.copy()
    value, pullback = irad.vjp(wave, a, 0.7)
    a[:] = 9.0
    assert len(closures._alive) == before + 1
    for _ in range(2):
        by_a, by_k = pullback(np.ones(2))
        np.testing.assert_allclose(by_a, 0.7 * np.cos(0.7 * A))
        assert by_k == pytest.approx((np.cos(0.7 * A) * A).sum())
    del value, pullback
    gc.collect()
    assert len(closures._alive) == before


def test_nothing_leaks(imported):
    squares = imported(sum_of_squares, squares_rule, returns=types.float64)

    @njit
    def f(a):
        total = 0.5
        for _ in range(3):
            total += 0.1 * squares(a) * squares(a * total)
        return total

    derivative = irad.grad(f)
    derivative(A)
    gc.collect()
    alive, references = len(closures._alive), sys.getrefcount(A)
    with allocations() as count:
        for _ in range(3):
            derivative(A)
            value, pullback = irad.vjp(f, A)
            pullback(1.0)
        del value, pullback
        counted = count()
    assert counted.made == counted.released > 0
    assert len(closures._alive) == alive
    assert sys.getrefcount(A) == references
    assert closures._waiting == {}


def test_what_the_function_raises_holds_nothing(imported):
    squares = imported(sum_of_squares, squares_rule, returns=types.float64)
    a = np.array([0.0, 1.0])
    references = sys.getrefcount(a)
    for _ in range(3):
        with pytest.raises(KeyError):
            squares(a)
    gc.collect()
    assert sys.getrefcount(a) == references


# ------------------------------------------------------------------------------------------------ wrong rules


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (lambda a, k: a * k, r"expected a pair \(value, pullback\), got a ndarray of float64 with shape \(2,\)"),
        (
            lambda a, k: (1.0, wave_rule(a, k)[1]),
            r"wrong value: expected an array of float64 with 1 dimensions, got a float",
        ),
        (lambda a, k: (1j * a, None.__class__), "expected an array of float64 .* got a ndarray of complex128"),
        (lambda a, k: (a, lambda ct: ct), "expected a tuple of 2 cotangents, one for each argument, got a ndarray"),
        (
            lambda a, k: (a, lambda ct: (ct,)),
            "expected a tuple of 2 cotangents, one for each argument, got a tuple of 1",
        ),
        (
            lambda a, k: (a, lambda ct: (ct[:1], 1.0)),
            r"wrong cotangent of argument 0: .* shape \(2,\), got .* shape \(1,\)",
        ),
        (lambda a, k: (a, lambda ct: (ct, ct)), "wrong cotangent of argument 1: expected a float64, got a ndarray"),
        (lambda a, k: (a, lambda ct: (ct, "k")), "wrong cotangent of argument 1: expected a float64, got a str"),
    ],
)
def test_what_does_not_fit_is_named(imported, rule, words):
    wave = imported(new_wave(), rule)
    with pytest.raises(RuleError, match=words) as caught:
        irad.vjp(wave, A, 0.7)[1](np.ones(2))
    assert f"{__file__}:{rule.__code__.co_firstlineno}" in str(caught.value)


def test_what_is_missing_is_asked_for():
    with pytest.raises(RuleError, match=r"no rule is given for .*wave"):
        rules.import_rule(new_wave())
    with pytest.raises(SignatureError, match="does not say which type sum_of_squares returns"):
        rules.import_rule(sum_of_squares, squares_rule, returns="float63")
    with pytest.raises(SignatureError, match="not a fixed number"):
        rules.import_rule(lambda *a: a[0], squares_rule, returns="float64")


def test_tuples_as_arguments_are_refused(imported):
    first = imported(njit(lambda pair: pair[0]), lambda pair: (pair[0], lambda ct: ((ct, 0.0),)))
    with pytest.raises(RuleError, match="pass numbers and arrays one by one"):
        irad.grad(first)((1.0, 2.0))


# ------------------------------------------------------------------------------------------------ forward mode


def wave_forward(arguments, tangents):
    (a, k), (by_a, by_k) = arguments, tangents
    slope = np.cos(k * a)
    parts = ([] if by_a is None else [slope * k * by_a]) + ([] if by_k is None else [slope * a * by_k])
    return np.sin(k * a), sum(parts)


def test_the_form_for_forward_mode(imported):
    test_forward(imported(new_wave(), wave_rule, forward=wave_forward), A, 0.7)


def test_a_function_of_python_in_forward_mode_alone(imported):
    def turn(z, a, n):
        return z * z, np.exp(1j * a), n, 2.0

    def turn_forward(arguments, tangents):
        (z, a, _), (by_z, by_a, by_n) = arguments, tangents
        assert by_n is None
        return turn(*arguments), (
            None if by_z is None else 2.0 * z * by_z,
            None if by_a is None else 1j * np.exp(1j * a) * by_a,
            "integers have none",
            None,
        )

    def returns(z, a, n):
        return types.Tuple((z, a.copy(dtype=types.complex128), n, types.float64))

    made = imported(turn, forward=turn_forward, returns=returns)

    @njit
    def f(x, y, a):
        number, array, n, two = made(complex(x, y), a, 3)
        return two * number.real * number.imag + n * (array * array).sum().imag

    test_forward(f, 0.4, -0.3, A, reverse=False)


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda given, tangents: given[0], "expected a pair (value, tangent)"),
        (lambda given, tangents: (given[0], np.ones(3)), "the wrong tangent: expected an array of float64 with shape"),
        (lambda given, tangents: (given[0], 1j * tangents[0]), "got a ndarray of complex128"),
        (lambda given, tangents: (given[0][0], tangents[0]), "the wrong value"),
    ],
)
def test_what_does_not_fit_in_forward_mode_is_named(imported, forward, words):
    copy = imported(lambda a: a, forward=forward, returns="float64[:]")
    with pytest.raises(RuleError) as caught:
        irad.jvp(njit(lambda a: copy(a).sum()), (A,), (np.ones(2),))
    assert words in caught.value.problem


def test_exceptions_come_through_in_forward_mode(imported):
    def forward(given, tangents):
        raise LookupError("no tangent")

    squares = imported(sum_of_squares, squares_rule, forward=forward, returns=types.float64)
    with pytest.raises(LookupError, match="no tangent"):
        irad.jvp(njit(lambda a: squares(a * 2.0)), (A,), (np.ones(2),))


def test_forward_mode_without_its_form_is_refused_with_a_remedy(imported):
    squares = imported(sum_of_squares, squares_rule, returns=types.float64)
    with pytest.raises(NoRuleError, match="rule for reverse mode only") as caught:
        irad.jvp(njit(lambda a: squares(a)), (A,), (np.ones(2),))
    assert "forward=…" in caught.value.remedy
    assert "forward_from_body" not in caught.value.remedy


# ------------------------------------------------------------------------------------------------ other libraries


def check_use(f: Any, *, forward: bool = True) -> None:
    """Checks a function (array, number) → array with a derivative of its own, used in compiled code."""

    @njit
    def loss(a, k):
        total = k
        for _ in range(2):
            total += (f(a, k) * a).sum()
        return total

    check_quickly(loss, A, 0.7, plans=("default",), forward=forward)


def test_jax(imported):
    jax = pytest.importorskip("jax", reason="JAX is not installed")

    @jax.custom_vjp
    def wave(a, k):
        return jax.numpy.sin(k * a)

    def forward(a, k):
        return wave(a, k), (a, k)

    def backward(kept, cotangent):
        a, k = kept
        inner = cotangent * jax.numpy.cos(k * a)
        return inner * k, (inner * a).sum()

    wave.defvjp(forward, backward)
    check_use(imported(wave, returns="float64[:]"), forward=False)  # JAX has none of a custom_vjp
    check_use(imported(jax.jit(lambda a, k: jax.numpy.sin(k * a)), returns="float64[:]"))

    turned = imported(jax.jit(lambda z: z * z * 1j), returns=types.complex128)
    check_quickly(njit(lambda x, y: turned(complex(x, y)).real), 0.4, -0.3, plans=("default",), forward=True)


def test_torch(imported):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")

    class Wave(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, k):
            ctx.save_for_backward(a, k)
            ctx.save_for_forward(a, k)
            return torch.sin(k * a)

        @staticmethod
        def jvp(ctx, by_a, by_k):
            a, k = ctx.saved_tensors
            return torch.cos(k * a) * (k * by_a + a * by_k)

        @staticmethod
        def backward(ctx, cotangent):
            a, k = ctx.saved_tensors
            inner = cotangent * torch.cos(k * a)
            return inner * k, (inner * a).sum()

    class Turned(torch.autograd.Function):
        @staticmethod
        def forward(z):
            return z * z * 1j

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, by_z):
            (z,) = ctx.saved_tensors
            return 2j * z * by_z

        @staticmethod
        def backward(ctx, cotangent):
            (z,) = ctx.saved_tensors
            return cotangent * torch.conj(2j * z)

    check_use(imported(Wave, returns="float64[:]"))
    turned = imported(Turned, returns=types.complex128)
    check_quickly(njit(lambda x, y: turned(complex(x, y)).real), 0.4, -0.3, plans=("default",), forward=True)


def test_autograd(imported):
    extend = pytest.importorskip("autograd.extend", reason="autograd is not installed")

    @extend.primitive
    def wave(a, k):
        return np.sin(k * a)

    extend.defvjp(
        wave,
        lambda y, a, k: lambda ct: ct * k * np.cos(k * a),
        lambda y, a, k: lambda ct: (ct * a * np.cos(k * a)).sum(),
    )
    extend.defjvp(
        wave,
        lambda by_a, y, a, k: by_a * k * np.cos(k * a),
        lambda by_k, y, a, k: by_k * a * np.cos(k * a),
    )
    check_use(imported(wave, returns="float64[:]"))

    @extend.primitive
    def turned(z):
        return z * z * 1j

    extend.defvjp(turned, lambda y, z: lambda ct: ct * 2j * z)
    extend.defjvp(turned, lambda by_z, y, z: by_z * 2j * z)
    made = imported(turned, returns=types.complex128)
    check_quickly(njit(lambda x, y: made(complex(x, y)).real), 0.4, -0.3, plans=("default",), forward=True)


def test_a_function_of_another_library_needs_its_type():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with pytest.raises(SignatureError, match="cannot know what"):
        rules.import_rule(jax.jit(lambda x: x))
