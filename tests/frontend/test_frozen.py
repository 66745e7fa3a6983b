"""The derivative is that of the program that Numba compiled, whatever names stand for by now."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import cfunc, njit, objmode, prange, stencil, vectorize

import irad
from irad.testing.gradients.trial import optimisation_limited


def program(source: str, **names: Any) -> Any:
    """A module, which can be assigned to, with the names of a program."""
    found = ModuleType(__name__)
    vars(found).update(njit=njit, prange=prange, irad=irad, np=np, vectorize=vectorize, **names)
    exec(compile(textwrap.dedent(source), f"<program {id(found)}>", "exec"), vars(found))
    return found


def check(f: Callable[..., Any], *args: Any) -> None:
    """Value and gradient are those of what the function computes, in either plan."""
    at, *rest = args
    step = 1e-6 * max(1.0, abs(at))
    slope = (f(at + step, *rest) - f(at - step, *rest)) / (2 * step)
    for plan in ("default", "save_all"):
        value, gradient = irad.value_and_grad(f, options=irad.Options(plan=plan))(*args)
        assert value == f(*args)
        assert gradient == pytest.approx(slope, rel=1e-8)


EAGERLY_RECURSIVE = """
@njit("float64(float64, int64)")
def r(x, n):
    if n == 0: return x
    return K * x * r(x, n - 1)
@njit
def f(x): return r(x, int(x) + 2)
"""
RECURSIVE = """
@njit
def r(x, n):
    if n == 0: return x
    return {K} * x * r(x, n - 1)
@njit
def f(x): return r(x, int(x) + 2)
"""
PRANGE = """
@njit(parallel=True)
def f(x):
    total = 0.0
    for i in prange(int(K) + 2):
        total += K * x * x
    return total
"""
DEFINITIONS = {
    "njit": "@njit\ndef f(x): return K * x * x",
    "irad.jit": "@irad.jit\ndef f(x): return K * x * x",
    "parallel": "@njit(parallel=True)\ndef f(x): return (np.full(3, x) * K).sum()",
    "eager": "@njit('float64(float64)')\ndef f(x): return K * x * x",
    "vectorize": "@vectorize(['float64(float64)'])\ndef v(x): return K * x * x\n@njit\ndef f(x): return v(x)",
    "closure": "@njit\ndef f(x):\n    def inner(y): return K * y * y\n    return inner(x)",
    "branch": "@njit\ndef f(x):\n    if K > 2.5: return x\n    return K * x * x",
    "callee": "@njit\ndef g(x): return K * x\n@njit\ndef h(x): return g(x) * x\n@njit\ndef f(x): return h(x) + x",
    "inlined": "@njit(inline='always')\ndef g(x): return K * x * x\n@njit\ndef f(x): return g(x)",
    "recursive": RECURSIVE.format(K="K"),
    "eagerly recursive": EAGERLY_RECURSIVE,
    "prange": PRANGE,
}


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_assigned_global(definition: str) -> None:
    made = program(definition, K=2.0)
    before = made.f(1.5)
    made.K = 3.0
    assert made.f(1.5) == before
    check(made.f, 1.5)


def test_recursion_with_a_signature_under_another_name() -> None:
    """Numba compiles the function before a name stands for it; afterwards its own name stands for something else."""
    made = program(EAGERLY_RECURSIVE, K=2.0)
    made.f(1.5)
    made.r = None
    check(made.f, 1.5)


def test_recursion_with_a_signature_in_a_closure() -> None:
    def make() -> Any:
        @njit("float64(float64, int64)")
        def power(x, n):
            return x if n == 0 else x * power(x, n - 1)

        return power

    power = make()
    assert irad.value_and_grad(power)(1.5, 2) == (1.5**3, 3 * 1.5**2)


def test_deleted_global() -> None:
    made = program("@njit\ndef f(x): return K * x * x", K=2.0)
    made.f(1.5)
    del made.K
    check(made.f, 1.5)


def test_global_tuples() -> None:
    made = program("@njit\ndef f(x): return T[1][0] * x * x", T=(1.0, (2.0, 3.0)))
    made.f(1.5)
    made.T = (1.0, (5.0, 3.0))
    check(made.f, 1.5)


def test_each_specialisation_has_its_own() -> None:
    made = program("@njit\ndef f(x): return K * x * x", K=2.0)
    made.f(1.5)
    made.K = 3.0
    made.f(np.float32(1.5))
    made.K = 5.0
    assert irad.grad(made.f)(1.5) == 6.0
    assert irad.grad(made.f)(np.float32(1.5)) == 9.0


def test_closure_cell() -> None:
    def make() -> tuple[Any, Callable[[float], None]]:
        factor = 2.0

        @njit
        def f(x):
            return factor * x * x

        def assign(value: float) -> None:
            nonlocal factor
            factor = value

        return f, assign

    f, assign = make()
    f(1.5)
    assign(5.0)
    check(f, 1.5)


@pytest.mark.parametrize("bound", [False, True])
def test_a_callee_is_defined_again(bound: bool) -> None:
    made = program("@njit\ndef inner(x): return 2.0 * x\n@njit\ndef f(x): return inner(x) * x\n")
    if bound:

        def make(inner: Any) -> Any:
            return njit(lambda x: inner(x) * x)

        made.f = make(made.inner)
    made.f(1.5)
    made.inner = njit(lambda x: 5.0 * x)
    check(made.f, 1.5)


@pytest.fixture
def module() -> Iterator[ModuleType]:
    found = ModuleType("constants_of_a_test")
    sys.modules[found.__name__] = found
    yield found
    del sys.modules[found.__name__]


def test_attributes_of_modules(module: Any) -> None:
    module.K = 2.0
    made = program("@njit\ndef f(x): return module.K * x * x", module=module)
    made.f(1.5)
    check(made.f, 1.5)
    module.K = 3.0
    other = program("@njit\ndef f(x): return module.K * x * x + x", module=module)
    check(other.f, 1.5)
    module.K = 4.0
    again = njit(other.f.py_func)
    again(1.5)
    module.K = 5.0
    with pytest.raises(irad.ChangedProgramError, match=r"before the attribute constants_of_a_test.K changed"):
        irad.grad(again)(1.5)
    again.recompile()
    check(again, 1.5)


def test_functions_in_modules(module: Any) -> None:
    module.g = njit(lambda x: 2.0 * x)
    made = program("@njit\ndef f(x): return module.g(x) * x", module=module)
    made.f(1.5)
    module.g = njit(lambda x: 3.0 * x)
    with pytest.raises(irad.ChangedProgramError, match=r"attribute constants_of_a_test.g"):
        irad.grad(made.f)(1.5)


ARRAYS = {
    "serial": "@njit\ndef f(x): return A[0] * x + A[1] * x * x",
    "in a tuple": "B = (A, 1.0)\n@njit\ndef f(x): return B[0][1] * x * B[1]",
    "parallel": "@njit(parallel=True)\ndef f(x): return (A * x).sum() * x",
    "callee": "@njit\ndef g(i): return A[i]\n@njit\ndef f(x): return g(int(x)) * x + g(0) * x",
    "recursive": RECURSIVE.format(K="A[1]"),
    "vectorize": "@vectorize(['float64(float64)'])\ndef v(x): return A[1] * x\n@njit\ndef f(x): return v(x)",
}


@pytest.mark.parametrize("definition", ARRAYS.values(), ids=ARRAYS)
def test_content_of_global_arrays(definition: str) -> None:
    table = np.array([2.0, 5.0])
    made = program(definition, A=table)
    made.f(1.5)
    check(made.f, 1.5)  # unchanged, so the code is found to be the same

    changed = program(definition, A=table)
    changed.f(1.5)
    table[:] = table[::-1].copy()
    with pytest.raises(irad.ChangedProgramError, match=r"before the global (A|B) changed"):
        irad.grad(changed.f)(1.5)


UNLIKE = {
    "comprehension": "@njit\ndef f(x): return np.array([A[i] * x * (i + 1) for i in range(2)]).sum()",
    "circle": """
    @njit
    def even(x, n):
        if n == 0: return A[0] * x
        return odd(x, n - 1) * x
    @njit
    def odd(x, n):
        if n == 0: return 0.5 * x
        return even(x, n - 1) + A[1] * x
    @njit
    def f(x): return even(x, int(x) + 3)
    """,
    "object mode": """
    @njit
    def f(x):
        with objmode():
            int(3)
        return A[0] * x * x
    """,
}


@pytest.mark.parametrize("definition", UNLIKE.values(), ids=UNLIKE)
def test_code_that_numba_never_makes_twice_alike(definition: str) -> None:
    """Labels, sizes of pickles and what is put in line differ from compilation to compilation."""
    table = np.array([2.0, 5.0])
    made = program(definition, A=table, objmode=objmode)
    made.f(1.5)
    check(made.f, 1.5)
    changed = program(definition, A=table, objmode=objmode)
    changed.f(1.5)
    table[0] = 7.0
    with pytest.raises(irad.ChangedProgramError, match="before the global A changed"):
        irad.grad(changed.f)(1.5)


def test_large_arrays_are_read_when_the_program_runs() -> None:
    table = np.ones(200_000)
    made = program("@njit\ndef f(x): return A[7] * x * x", A=table)
    made.f(1.5)
    table[7] = 3.0
    check(made.f, 1.5)


def test_a_derivative_follows_what_is_compiled_later() -> None:
    made = program("@njit\ndef f(x): return K * x * x\n@njit\ndef caller(x): return f(x) + x", K=2.0)
    derivative, of_caller = irad.value_and_grad(made.f), irad.value_and_grad(made.caller)
    assert derivative(1.5) == (4.5, 6.0)
    assert of_caller(1.5) == (6.0, 7.0)
    value, pullback = irad.vjp(made.f, 1.5)
    made.K = 3.0
    assert derivative(1.5) == (4.5, 6.0)  # as a compiled function: what it was when it was compiled
    assert made.f(1.5) == 6.75
    assert derivative(1.5) == (6.75, 9.0)
    assert of_caller(1.5) == (8.25, 10.0)
    assert (value, pullback(1.0)) == (4.5, (6.0,))
    assert irad.vjp(made.f, 1.5)[1](1.0) == (9.0,)


def test_a_derivative_stays_where_the_same_is_compiled_later() -> None:
    made = program("@njit\ndef f(x): return K * x * x * A[0]", K=2.0, A=np.array([1.0]))
    derivative = irad.grad(made.f)
    derivative(1.5)
    overloads = list(derivative.overloads.values())
    made.f(1.5)
    assert list(derivative.overloads.values()) == overloads


def test_arrays_that_change_before_numba_compiles() -> None:
    table = np.array([2.0])
    made = program("@njit\ndef f(x): return A[0] * x * x", A=table)
    assert irad.grad(made.f)(1.5) == 6.0
    table[0] = 3.0
    made.f(1.5)
    assert irad.grad(made.f)(1.5) == 9.0


def test_a_callee_is_compiled_again() -> None:
    made = program("@njit\ndef g(x): return K * x\n@njit\ndef f(x): return g(x) * x", K=2.0)
    made.f(1.5)
    made.K = 3.0
    made.g.recompile()
    with pytest.raises(irad.ChangedProgramError, match=r"f was compiled before g was recompiled"):
        irad.grad(made.f)(1.5)
    made.f.recompile()
    check(made.f, 1.5)


def test_function_values() -> None:
    """Functions that are called through a pointer."""
    source = """
    @njit("float64(float64)")
    def first(x): return K * x * x
    @njit("float64(float64)")
    def second(x): return A[0] * x
    @njit
    def f(x, which):
        chosen = (first, second)
        return chosen[which](x)
    """
    made = program(source, K=2.0, A=np.array([3.0]))
    made.f(1.5, 0)
    made.K = 5.0
    check(made.f, 1.5, 0)
    again = program(source, K=2.0, A=np.array([3.0]))
    again.f(1.5, 1)
    again.A[0] = 4.0
    with pytest.raises(irad.ChangedProgramError, match="second was compiled before the global A changed"):
        irad.grad(again.f)(1.5, 1)


def test_callbacks() -> None:
    """Functions made by ``numba.cfunc``, of which Numba keeps the code only."""
    source = """
    @cfunc("float64(float64)")
    def callback(x): return K * x * x
    @njit
    def f(x): return callback(x) + x
    """
    same = program(source, K=2.0, cfunc=cfunc)
    same.f(1.5)
    check(same.f, 1.5)
    made = program(source, K=2.0, cfunc=cfunc)
    made.f(1.5)
    made.K = 3.0
    with pytest.raises(irad.ChangedProgramError, match="callback was compiled before the global K changed"):
        irad.grad(made.f)(1.5)


def test_another_array_of_an_explicit_signature() -> None:
    made = program("@njit('float64(float64)')\ndef f(x): return A[0] * x * x", A=np.array([2.0]))
    made.A = np.array([3.0])
    check(made.f, 1.5)


INNER = "@njit\ndef call(g, x): return g(x)\n@njit\ndef f(x): return call(lambda t: K * t * t, x)"


def test_functions_within_functions_are_the_same_when_they_are_lowered_again():
    made = program(INNER, K=3.0)
    assert made.f(2.0) == 12.0
    check(made.f, 2.0)


def test_a_comprehension_that_calls_a_function_within_the_function():
    @njit
    def f(x):
        def part(v):
            return v * x[0]

        values = [part(v) for v in x]
        return values[0] + values[1]

    x = np.array([2.0, 3.0])
    assert f(x) == 10.0
    assert irad.grad(f)(x).tolist() == [7.0, 2.0]


def test_code_that_was_optimised_less_is_the_same_program():
    made = program(INNER, K=3.0)
    with optimisation_limited():
        assert made.f(2.0) == 12.0
    assert irad.grad(made.f)(2.0) == 12.0


def test_what_a_function_within_a_function_read_has_changed():
    made = program(INNER, K=3.0)
    assert made.f(2.0) == 12.0
    made.K = 5.0
    with pytest.raises(irad.ChangedProgramError, match=r"before a name that is read by <lambda> changed"):
        irad.grad(made.f)(2.0)


def test_a_function_within_a_function_is_compiled_after_its_derivative():
    made = program(INNER, K=3.0)
    assert irad.grad(made.f)(2.0) == 12.0
    made.K = 5.0
    assert made.f(2.0) == 20.0
    check(made.f, 2.0)


STENCIL = """
@stencil
def smooth(a): return 0.25 * (a[-1] + 2.0 * a[0] + a[1])
@njit(parallel=True)
def run(a): return smooth(a) * A[0]
@njit
def f(x): return (run(np.full(5, x)) ** 2).sum()
"""


def test_a_parallel_stencil_that_was_called():
    """Numba makes a new dispatcher of a function of its own whenever it compiles one."""
    made = program(STENCIL, stencil=stencil, A=np.array([3.0]))
    made.f(1.5)
    assert irad.grad(made.f)(1.5) == pytest.approx(81.0)
    made = program(STENCIL, stencil=stencil, A=np.array([3.0]))
    made.f(1.5)
    made.A[0] = 4.0
    with pytest.raises(irad.ChangedProgramError, match="run was compiled before the global A changed"):
        irad.grad(made.f)(1.5)
