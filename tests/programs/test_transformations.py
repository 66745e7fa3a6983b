"""Programs that Numba transforms before it compiles them: their gradients, taken first, and taken after a call."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Final

import numba
import numpy as np
import pytest
from numba import literal_unroll, njit, prange, stencil, types
from numba.experimental import jitclass
from numba.extending import intrinsic, overload, register_jitable

import irad

POINT: Final = np.array([0.5, 1.5, 2.0, 3.0, 0.7])


def _of_first(*partials: float) -> Any:
    return np.array([*partials, *np.zeros(5 - len(partials))])


def stencil_of_a_function(options: Any) -> tuple[Any, Any]:
    """Numba makes a new stencil in each compilation, and calls it by the name of `numba.stencil`."""

    def f(x):
        return stencil(lambda a: 0.5 * (a[-1] + a[1]))(x).sum()

    return njit(**options)(f), [0.5, 0.5, 1.0, 0.5, 0.5]


def stencil_with_memory(options: Any) -> tuple[Any, Any]:
    kernel = stencil(neighborhood=((-1, 1),))(lambda a: a[-1] + 2.0 * a[1])

    def f(x):
        out = np.zeros_like(x)
        kernel(x, out=out)
        return out.sum()

    return njit(**options)(f), [1.0, 1.0, 3.0, 2.0, 2.0]


def reduction(options: Any) -> tuple[Any, Any]:
    def f(x):
        total = 0.0
        for i in prange(x.size):
            total += math.sin(x[i])
        return total

    return njit(**options)(f), np.cos(POINT)


def fused_expressions(options: Any) -> tuple[Any, Any]:
    return njit(**options)(lambda x: np.sum(np.exp(x) * x)), np.exp(POINT) * (1.0 + POINT)


def put_in_line(options: Any) -> tuple[Any, Any]:
    cube = njit(inline="always")(lambda v: v * v * v)
    return njit(**options)(lambda x: cube(x[0]) + cube(x[1])), _of_first(0.75, 6.75)


def overloaded(options: Any) -> tuple[Any, Any]:
    """By type and by literal value, as Numba's generated functions were."""

    def power(v, n):
        raise NotImplementedError

    @overload(power, prefer_literal=True)
    def of_types(v, n):
        if isinstance(v, types.Array):
            return lambda v, n: (v**n).sum()
        if isinstance(n, types.IntegerLiteral) and n.literal_value == 2:
            return lambda v, n: v * v
        return lambda v, n: v**n

    return njit(**options)(lambda x: power(x, 2) + power(x[0], 2) + power(x[1], 3)), 2.0 * POINT + _of_first(1.0, 6.75)


def overloaded_in_line(options: Any) -> tuple[Any, Any]:
    def cube(v):
        raise NotImplementedError

    @overload(cube, inline="always")
    def of_types(v):
        return lambda v: v * v * v

    plain = register_jitable(lambda v: v * v)
    return njit(**options)(lambda x: cube(x[0]) + plain(x[1])), _of_first(0.75, 3.0)


def written_as_code(options: Any) -> tuple[Any, Any]:
    @intrinsic
    def squared(typing, a):
        return a(a), lambda context, builder, signature, args: builder.fmul(args[0], args[0])

    return njit(**options)(lambda x: squared(x[0]) * x[1]), _of_first(1.5, 0.25)


def closure(options: Any) -> tuple[Any, Any]:
    factor = 2.5

    def f(x):
        def scaled(v):
            return factor * v * v

        return scaled(x[0]) + reduce(lambda a, b: a * b, x[:2], 1.0)

    return njit(**options)(f), _of_first(4.0, 0.5)


def unrolled(options: Any) -> tuple[Any, Any]:
    def f(x):
        total = 0.0
        for v in literal_unroll((1, 2.5, 3)):
            total += v * x[0]
        return total

    return njit(**options)(f), _of_first(6.5)


def vectorised(options: Any) -> tuple[Any, Any]:
    cube = numba.vectorize(lambda a: a * a * a)

    @numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()")
    def squares(a, result):
        result[0] = 0.0
        for i in range(a.size):
            result[0] += a[i] * a[i]

    def f(x):
        total = np.zeros(())
        squares(x, total)
        return cube(x).sum() + total[()]

    return njit(**options)(f), 3.0 * POINT**2 + 2.0 * POINT


@jitclass([("weight", types.float64)])
class Scale:
    def __init__(self, weight):
        self.weight = weight

    def of(self, v):
        return self.weight * v * v


def method(options: Any) -> tuple[Any, Any]:
    return njit(**options)(lambda x: Scale(x[0]).of(x[1])), _of_first(2.25, 1.5)


def function_pointers(options: Any) -> tuple[Any, Any]:
    """LLVM lists what may be called in metadata."""
    functions = tuple(njit("float64(float64)")(f) for f in (lambda v: v * v, lambda v: v**3))

    def f(x):
        total = 0.0
        for function in functions:
            total += function(x[0]) * x[1]
        return total

    return njit(**options)(f), _of_first(2.625, 0.375)


def recursive(options: Any) -> tuple[Any, Any]:
    @njit
    def power(n, v):
        if n <= 0:
            return v
        return v * power(n - 1, v)

    return njit(**options)(lambda x: power(2, x[0]) + x[1]), _of_first(0.75, 1.0)


SEQUENTIAL: Final[tuple[Callable[[Any], Any], ...]] = (
    stencil_of_a_function,
    put_in_line,
    overloaded,
    overloaded_in_line,
    written_as_code,
    closure,
    unrolled,
    vectorised,
    method,
    function_pointers,
    recursive,
)
PARALLEL: Final[tuple[Callable[[Any], Any], ...]] = (
    stencil_of_a_function,
    stencil_with_memory,
    reduction,
    fused_expressions,
)
CASES: Final = [(make, {}) for make in SEQUENTIAL] + [(make, {"parallel": True}) for make in PARALLEL]


@pytest.mark.filterwarnings("ignore::numba.NumbaExperimentalFeatureWarning", "ignore::numba.NumbaPerformanceWarning")
@pytest.mark.parametrize(("make", "options"), CASES, ids=[f"{m.__name__}{'-parallel' * bool(o)}" for m, o in CASES])
def test_gradient_before_and_after_a_call(make, options):
    f, expected = make(options)
    np.testing.assert_allclose(irad.grad(f)(POINT), expected, rtol=1e-12)
    f(POINT)
    np.testing.assert_allclose(irad.value_and_grad(f)(POINT)[1], expected, rtol=1e-12)
    f, _ = make(options)
    f(POINT)
    np.testing.assert_allclose(irad.grad(f)(POINT), expected, rtol=1e-12)


def test_object_mode_is_refused():
    def f(x):
        with numba.objmode(y="float64"):
            y = float(x[0])
        return y * x[1]

    with pytest.raises(irad.NoRuleError, match=r"a call to Python code \(objmode\)"):
        irad.grad(njit(f))(POINT)
