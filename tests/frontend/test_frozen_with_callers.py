"""What Numba freezes besides names: options that callees take from callers, and what implements overloads."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import cfunc, njit, types, vectorize
from numba.extending import overload, overload_method, register_jitable

import irad

NAN = float("nan")


def outcome(f: Callable[..., Any], *args: Any) -> Any:
    """The value, or the name of what is raised."""
    try:
        return f(*args)
    except ZeroDivisionError as error:
        return type(error).__name__


def value_of(f: Callable[..., Any], *args: Any) -> Any:
    """The value that comes with the derivative, or the name of what is raised."""
    found = outcome(irad.value_and_grad(f), *args)
    return found[0] if isinstance(found, tuple) else found


def of_numbers_only() -> tuple[Any, Any]:
    """A function that tells NaN, and one that calls it with fastmath, under which there is none."""

    @njit
    def g(x):
        return 0.0 if np.isnan(x) else x * x

    @njit(fastmath=True)
    def f(x):
        return 2.0 * g(x)

    return g, f


def quotients() -> tuple[Any, Any]:
    """A function that divides, and one that calls it and does not raise where a divisor is zero."""

    @njit
    def g(x, y):
        return x / y

    @njit(error_model="numpy")
    def f(x, y):
        return 2.0 * g(x, y)

    return g, f


@pytest.mark.parametrize("order", ["gf", "fg", "g", "f"])
@pytest.mark.parametrize("derived", ["gf", "fg"])
def test_fastmath_of_the_first_caller(order: str, derived: str) -> None:
    """The function that Numba compiles first decides for both, not the one that is differentiated first."""
    functions = dict(zip("gf", of_numbers_only(), strict=True))
    for name in order:
        functions[name](1.0)
    values = [value_of(functions[name], NAN) for name in derived]
    np.testing.assert_array_equal(values, [functions[name](NAN) for name in derived])


@pytest.mark.parametrize("order", ["gf", "fg", "g", "f"])
def test_error_model_of_the_first_caller(order: str) -> None:
    functions = dict(zip("gf", quotients(), strict=True))
    for name in order:
        functions[name](1.0, 2.0)
    for f in functions.values():
        assert value_of(f, 1.0, 0.0) == outcome(f, 1.0, 0.0)


def test_derivatives_follow_the_options_that_numba_takes_later() -> None:
    g, f = of_numbers_only()
    irad.grad(f)(1.0)
    assert g(NAN) == 0.0
    assert value_of(g, NAN) == 0.0
    assert value_of(f, NAN) == f(NAN) == 0.0


def test_a_callback_takes_no_options() -> None:
    @cfunc("float64(float64)")
    def g(x):
        return 0.0 if np.isnan(x) else x * x

    @njit(fastmath=True)
    def f(x):
        return 2.0 * g(x)

    assert f(NAN) == 0.0
    assert value_of(f, NAN) == 0.0


def test_a_ufunc_takes_the_options_of_the_first_caller() -> None:
    @vectorize
    def g(x):
        return 0.0 if np.isnan(x) else x * x

    @njit
    def exact(x):
        return g(x)[0]

    @njit(fastmath=True)
    def fast(x):
        return g(x)[0]

    array = np.array([NAN])
    assert exact(array) == 0.0
    assert value_of(fast, array) == fast(array) == 0.0


@pytest.mark.parametrize("changes", [False, True])
def test_machine_code_is_compared_under_the_same_options(changes: bool) -> None:
    """Numba does not keep the content of arrays, so the callee is compiled once more."""
    table = np.array([2.0, 3.0])

    @njit
    def g(x):
        return x * table[0] + x * x * x / table[1]

    @njit(fastmath=True)
    def f(x):
        return g(x) * x

    value = f(2.0)
    if changes:
        table[0] = 5.0
        with pytest.raises(irad.ChangedProgramError, match="table changed"):
            irad.grad(f)(2.0)
    else:
        assert irad.value_and_grad(f)(2.0) == pytest.approx((value, 8.0 + 32 / 3), rel=1e-12)


STUB = """
def stub(x): pass
@overload(stub, inline={inline!r})
def typed(x):
    factor = K
    return lambda x: factor * {factor} * x * x
@njit
def f(x): return stub(x)
"""
JITABLE = """
@register_jitable
def helper(x): return K * x * x
@njit
def f(x): return helper(x)
"""
OVERLOADS = {
    "overload": STUB.format(inline="never", factor="K"),
    "inlined overload": STUB.format(inline="always", factor="K"),
    "jitable": JITABLE,
}


def extended(source: str) -> Any:
    """A module with a function ``f`` that calls what it extends Numba by."""
    made = ModuleType(__name__)
    vars(made).update(np=np, njit=njit, overload=overload, register_jitable=register_jitable)
    vars(made).update(K=2.0, A=np.array([2.0]))
    exec(compile(source, f"<extended {id(made)}>", "exec"), vars(made))
    return made


def check(f: Callable[..., Any], x: float) -> None:
    """Value and gradient are those of what the function computes, a multiple of the square."""
    for plan in ("default", "save_all"):
        value, gradient = irad.value_and_grad(f, options=irad.Options(plan=plan))(x)
        assert value == f(x)
        assert gradient == pytest.approx(2.0 * f(x) / x, rel=1e-14)


@pytest.mark.parametrize("source", OVERLOADS.values(), ids=OVERLOADS)
@pytest.mark.parametrize("is_derived_before", [False, True])
def test_what_an_overload_reads_is_frozen(source: str, is_derived_before: bool) -> None:
    made = extended(source)
    if is_derived_before:
        irad.grad(made.f)(1.0)
    else:
        made.f(1.0)
    made.K = 5.0
    made.f(1.0)
    check(made.f, 1.5)


def test_what_a_method_reads_is_frozen() -> None:
    factor = 2.0

    @overload_method(types.Array, "irad_test_method")
    def typed(a):
        mine = factor
        return lambda a: mine * a[0] * a[0]

    @njit
    def f(x):
        return np.array([x]).irad_test_method()

    f(1.0)
    factor = 5.0
    check(f, 1.5)


@pytest.mark.parametrize(("inline", "remedy"), [("never", "change it before the first call"), ("always", "recompile")])
def test_content_of_arrays_that_an_overload_reads(inline: str, remedy: str) -> None:
    made = extended(STUB.format(inline=inline, factor="A[0]"))
    made.f(1.0)
    check(made.f, 1.5)
    made = extended(STUB.format(inline=inline, factor="A[0]"))
    made.f(1.0)
    made.A[0] = 5.0
    with pytest.raises(irad.ChangedProgramError, match="before the global A changed") as raised:
        irad.grad(made.f)(1.5)
    assert remedy in raised.value.remedy
