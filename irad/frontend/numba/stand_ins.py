"""Functions that Numba cuts short at special points: what stands in for them in a program that is differentiated.

Numba tests some numbers for a certain value and returns there what it need not compute: `np.interp` on a knot the
table's entry, `np.linalg.det` of a singular matrix the constant 0. The value is right; its derivative is that of the
shortcut.

Input   Numba's implementation of such a function, compiled, and the argument types.
Output  another with the same signature: it has the bits of Numba's value and the derivative of the function, and costs
        nothing elsewhere. docs/special_points.md says what each does where.
Method  `methods.implementation` gives Numba an implementation of `MAKERS` in place of its own, in the shadow compile.
        To add one: a maker, a line in `MAKERS`, and a case in `tests/special_points/arrays_table.py` that fails
        without it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from llvmlite.ir import IRBuilder
from numba import njit
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic
from numba.np.arraymath import _select_two, binary_search_with_guess
from numba.np.linalg import ensure_blas
from numba.np.polynomial import polynomial_functions
from numpy.polynomial import polyutils

from irad.frontend.custom.stop_gradient import stop_gradient
from irad.frontend.generated import function_from
from irad.frontend.numba import shortcuts

_FLOATS: Final = (types.float32, types.float64, types.complex64, types.complex128)


@njit
def _with_slope(value: Any, term: Any) -> Any:
    """The value, with the derivative of a term besides its own."""
    # x - x is +0.0, and so changes no bit of what it is taken from; of infinity it would be NaN
    return value - (stop_gradient(term) - term) if np.isfinite(term) else value


@njit
def _differentiated_as(value: Any, formula: Any) -> Any:
    """The value, with the derivative of a formula in place of its own."""
    return _with_slope(stop_gradient(value), formula)


@intrinsic
def _as_length(_: Any, value: types.Float, square: types.Float) -> Any:
    """A length, with what the derivatives of its square are those of; unused, that costs nothing."""

    def passed(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Any) -> Any:
        length, under = arguments
        return shortcuts.passed(builder, "length", length, context.cast(builder, under, square, value))

    return value(value, square), passed


@njit
def _square(x: Any, centre: Any) -> Any:
    """Sum of the squared distances from a number, without an array of them: what is not used is left out."""
    total = 0.0
    for each in x.flat:
        apart = each - centre
        total += apart.real * apart.real + apart.imag * apart.imag
    return total


@njit
def _variance(a: Any) -> Any:
    return _square(a, np.mean(a)) / a.size


def _has_derivative(type_: types.Type, ndim: int) -> bool:
    return isinstance(type_, types.Array) and type_.ndim == ndim and type_.dtype in _FLOATS


# ------------------------------------------------------------------------------------------------ interpolation


@njit
def _on_segment(x: float, slope: float, left: float, right: float, y_left: float, y_right: float) -> float:
    """The value between two knots; on the left one it has the slope of this segment."""
    if left == x:
        return _with_slope(y_left, slope * (x - left))
    value = slope * (x - left) + y_left
    if np.isnan(value):
        value = slope * (x - right) + y_right
        if np.isnan(value) and y_left == y_right:
            value = y_left
    return value


@njit
def _as_doubles(x: Any) -> Any:
    return np.asarray(x, dtype=np.float64)


@njit
def _as_given(x: Any) -> Any:
    return np.asarray(x)


@njit
def _slope(dx: Any, dy: Any, j: int) -> float:
    return (dy[j + 1] - dy[j]) / (dx[j + 1] - dx[j])


@njit
def _complex_slope(dx: Any, dy: Any, j: int) -> complex:
    inverse = 1 / (dx[j + 1] - dx[j])
    real, imag = (dy[j + 1].real - dy[j].real) * inverse, (dy[j + 1].imag - dy[j].imag) * inverse
    return real + 1j * imag


@njit
def _between(x: float, slope: float, dx: Any, dy: Any, j: int) -> float:
    return _on_segment(x, slope, dx[j], dx[j + 1], dy[j], dy[j + 1])


@njit
def _complex_between(x: float, slope: complex, dx: Any, dy: Any, j: int) -> complex:
    real = _on_segment(x, slope.real, dx[j], dx[j + 1], dy[j].real, dy[j + 1].real)
    imag = _on_segment(x, slope.imag, dx[j], dx[j + 1], dy[j].imag, dy[j + 1].imag)
    return complex(real, imag)


def _interp_of(converted: Any, slope_at: Any, between: Any) -> Callable[..., Any]:
    """The maker for real or for complex values, whose arithmetic differs as Numba's does."""

    def interp(x, xp, fp, dtype, original):  # type: ignore[no-untyped-def]
        dz, dx, dy = converted(x), converted(xp), converted(fp)
        if len(dx) < 2 or len(dx) != len(dy):
            return original(x, xp, fp, dtype)
        result, last = np.empty(dz.shape, dtype=dtype), len(dx) - 1
        slopes = np.empty(last if len(dx) <= dz.size else 0, dtype=dtype)
        for j in range(slopes.size):
            slopes[j] = slope_at(dx, dy, j)
        j = 0
        for i in range(dz.size):
            at = dz.flat[i]
            if np.isnan(at):
                result.flat[i] = at
                continue
            j = binary_search_with_guess(at, dx, len(dx), j)
            if j < 0 or (j == 0 and dx[0] == at):
                result.flat[i] = dy[0]
            elif j >= last:
                result.flat[i] = dy[last]
            else:
                slope = slopes[j] if slopes.size else slope_at(dx, dy, j)
                result.flat[i] = between(at, slope, dx, dy, j)
        return result

    compiled = njit(interp)
    return lambda original, *_: lambda x, xp, fp, dtype: compiled(x, xp, fp, dtype, original)


# ------------------------------------------------------------------------------------------------ order, statistics


def _percentiles(original: Any, *_: Any) -> Callable[..., Any]:
    """At 0 and 100 Numba takes the least and the greatest number: the slope with respect to the percentile is lost."""

    def percentiles(a, q):  # type: ignore[no-untyped-def]
        result, last = original(a, q), len(a) - 1
        for i in range(len(q) if last > 0 else 0):
            if q[i] == 0.0 or q[i] == 100.0:
                below, above = _select_two(a, 0 if q[i] == 0.0 else last - 1, 0, last)
                beyond = q[i] - stop_gradient(q[i])
                result[i] = _with_slope(result[i], (above - below) * (last / 100.0) * beyond)
        return result

    return percentiles


def _correlation(original: Any, *_: Any) -> Callable[..., Any]:
    """Numba cuts off what rounding has put beyond ±1."""

    def correlation(x):  # type: ignore[no-untyped-def]
        result = original(stop_gradient(x))
        for index, value in np.ndenumerate(x):
            result[index] = _differentiated_as(result[index], value)
        return result

    return correlation


@functools.cache
def _length() -> Callable[[Any], Any]:
    """The length of a vector: at zero its slope is 0, and the next derivative is known not to exist."""
    try:
        ensure_blas()
    except ImportError:  # without SciPy Numba has no norm; this has slope 0 as well, but hides that the next is wrong
        return njit(lambda v: np.sum(np.abs(v) ** 2) ** 1.5)
    return njit(lambda v: np.linalg.norm(v))


def _standard_deviation(original: Any, a: Any, *_: Any, **__: Any) -> Callable[..., Any] | None:
    """The standard deviation, whose derivative is 0 for equal numbers: the square root alone would make it NaN."""
    if not isinstance(a, types.Array) or a.dtype not in _FLOATS:
        return None
    length = _length()

    def std(a):  # type: ignore[no-untyped-def]
        value = original(a)
        if value == 0.0:
            value = _differentiated_as(value, length((a - np.mean(a)).ravel()) / np.sqrt(a.size))
        return _as_length(value, _variance(a))

    return std


def _nan_standard_deviation(original: Any, *_: Any, **__: Any) -> Callable[..., Any]:
    signature = inspect.signature(original.py_func)  # newer versions of Numba take axis, dtype, out and ddof, too
    given = ", ".join(signature.parameters)
    source = (
        f"def nanstd{signature}:\n"
        f"    value = original({given})\n"
        f"    return value if value != 0.0 else differentiated_as(value, spread(a))\n"
    )
    return function_from(
        "nanstd",
        source,
        "irad.stand_ins",
        {"original": original, "differentiated_as": _differentiated_as, "spread": _spread()},
    )


@functools.cache
def _spread() -> Callable[[Any], Any]:
    length = _length()

    @njit
    def spread(a):  # type: ignore[no-untyped-def]
        apart = (a - np.nanmean(a)).ravel()
        return length(np.where(np.isnan(apart), 0.0, apart)) / np.sqrt(a.size)

    return spread


# ------------------------------------------------------------------------------------------------ bounds


@njit
def _pin(result: Any, low: Any, high: Any) -> None:
    """Makes the result depend on the upper bound alone, also on it, if no number lies between the bounds."""
    lows, highs = np.broadcast_to(low, result.shape), np.broadcast_to(high, result.shape)
    for index in np.ndindex(result.shape):
        if lows[index] >= highs[index] and result[index] == highs[index]:
            result[index] = _differentiated_as(result[index], np.float64(highs[index]))


@njit
def _beyond(a: Any, bound: Any) -> Any:
    """A copy without the bound among its numbers: what is on it counts as beyond it."""
    made = a.copy()
    for i in range(made.size):
        if made.flat[i] == bound:
            made.flat[i] = np.inf
    return made


def _clip(original: Any, a: Any, a_min: Any, a_max: Any, *_: Any, **__: Any) -> Callable[..., Any] | None:
    if not (isinstance(a, types.Array) and isinstance(a.dtype, types.Float)):
        return None
    if cgutils.is_nonelike(a_min) or cgutils.is_nonelike(a_max):
        return None
    if isinstance(a_min, types.Number) and isinstance(a_max, types.Number):

        def between_numbers(a, a_min, a_max, out=None):  # type: ignore[no-untyped-def]
            return original(_beyond(a, a_max) if a_min >= a_max else a, a_min, a_max, out)

        return between_numbers

    def clip(a, a_min, a_max, out=None):  # type: ignore[no-untyped-def]
        result = original(a, a_min, a_max, out)
        low, high = np.asarray(a_min), np.asarray(a_max)
        if np.any(low >= high):
            _pin(result, low, high)
        return result

    return clip


# ------------------------------------------------------------------------------------------------ phases


def _unwrap(original: Any, p: Any, *_: Any, **__: Any) -> Callable[..., Any] | None:
    """`unwrap`, which adds a multiple of the period to a phase, also where the jump is exactly half a period."""
    if not isinstance(p, types.Array) or p.dtype not in _FLOATS:
        return None

    def unwrap(p, discont=None, axis=-1, period=6.283185307179586):  # type: ignore[no-untyped-def]
        result = original(stop_gradient(p), discont, axis, stop_gradient(period))
        for index in np.ndindex(p.shape):
            turns = np.rint((result[index] - p[index]) / period)
            result[index] = _differentiated_as(result[index], p[index] + turns * period)
        return result

    return unwrap


# ------------------------------------------------------------------------------------------------ polynomials


@njit
def _newton_step(p: Any, root: Any) -> Any:
    value, slope = root * 0, root * 0
    for coefficient in p:
        slope = slope * root + value
        value = value * root + coefficient
    return root - value / slope


@njit
def _slope_at(p: Any, root: Any) -> Any:
    value, slope = root * 0, root * 0
    for coefficient in p:
        slope = slope * root + value
        value = value * root + coefficient
    return slope


@njit
def _followed(p: Any, root: Any) -> Any:
    """A root of a polynomial, with its first three derivatives with respect to the coefficients."""
    if _slope_at(stop_gradient(p), root) != 0:
        # each step doubles the order up to which the derivatives of a constant become those of the root
        return _differentiated_as(root, _newton_step(p, _newton_step(p, root)))
    term = root * 0
    for coefficient in p[::-1]:  # a zero of higher order, which splits up like a square root: infinite
        if coefficient != 0:
            break
        term += np.sqrt(coefficient)
    return _with_slope(root, term)


def _roots(original: Any, p: Any) -> Callable[..., Any] | None:
    """Numba leaves out coefficients that are 0 at both ends, and with them the derivatives with respect to these."""
    if not _has_derivative(p, 1):
        return None

    def roots(p):  # type: ignore[no-untyped-def]
        if len(p) == 0 or (p[0] != 0 and p[-1] != 0):
            return original(p)
        result = original(stop_gradient(p))
        for i in range(len(result)):
            result[i] = _followed(p, stop_gradient(result[i]))
        return result

    return roots


@njit
def _ends_in_zero(c: Any) -> bool:
    return len(c) > 0 and c[-1] == 0


@njit
def _take_derivatives(result: Any, untrimmed: Any) -> Any:
    taken = result.copy()
    for i in range(min(len(result), len(untrimmed))):
        taken[i] = _differentiated_as(result[i], untrimmed[i])
    return taken


@njit
def _padded(c: Any, length: int) -> Any:
    longer = np.zeros(length, c.dtype)
    longer[: len(c)] = c
    return longer


@njit
def _sum(first: Any, second: Any) -> Any:
    length = max(len(first), len(second))
    return _padded(first, length) + _padded(second, length)


@njit
def _difference(first: Any, second: Any) -> Any:
    length = max(len(first), len(second))
    return _padded(first, length) - _padded(second, length)


def _untrimmed(combine: Any, original: Any, c1: Any, c2: Any) -> Callable[..., Any] | None:
    """Numba trims zeros off its operands; an element of the result that there is still depends on them."""
    if not all(_has_derivative(c, 1) for c in (c1, c2)):
        return None

    def combined(c1, c2):  # type: ignore[no-untyped-def]
        if not _ends_in_zero(c1) and not _ends_in_zero(c2):
            return original(c1, c2)
        first, second = polyutils.as_series((c1, c2), trim=False)
        return _take_derivatives(original(stop_gradient(c1), stop_gradient(c2)), combine(first, second))

    return combined


@njit
def _divided(first: Any, second: Any) -> Any:
    """Quotient and remainder of a polynomial and a shorter one."""
    work, size = first.copy(), len(second) - 1
    for i in range(len(first) - 1, size - 1, -1):
        work[i] /= second[size]
        work[i - size : i] -= second[:size] * work[i]
    return work[size:], work[:size]


def _polydiv(original: Any, c1: Any, c2: Any) -> Callable[..., Any] | None:
    if not all(_has_derivative(c, 1) for c in (c1, c2)):
        return None

    def polydiv(c1, c2):  # type: ignore[no-untyped-def]
        if not _ends_in_zero(c1):
            return original(c1, c2)
        quotient, remainder = original(stop_gradient(c1), stop_gradient(c2))
        first, second = polyutils.as_series((c1, c2), trim=False)
        whole, rest = _divided(first, polyutils.trimseq(second))
        return _take_derivatives(quotient, whole), _take_derivatives(remainder, rest)

    return polydiv


# ------------------------------------------------------------------------------------------------ linear algebra


@njit
def _largest(a: Any, k: int) -> tuple[int, int]:
    row, column, most = k, k, -1.0
    for i in range(k, len(a)):
        for j in range(k, len(a)):
            size = abs(a[i, j])
            if size > most:
                row, column, most = i, j, size
    return row, column


@njit
def _written_out(a: Any) -> Any:
    """The determinant of a matrix of zeros, which for more than three rows has no derivative but 0 up to the third."""
    if len(a) == 1:
        return a[0, 0]
    if len(a) == 2:
        return a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    if len(a) == 3:
        minors = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1], a[1, 0] * a[2, 2] - a[1, 2] * a[2, 0]
        return a[0, 0] * minors[0] - a[0, 1] * minors[1] + a[0, 2] * (a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0])
    return a[0, 0] * 0


@njit
def _eliminated(a: Any) -> Any:
    """A determinant without a division by a pivot that is 0: it is differentiable at singular matrices, too."""
    work, result = a.copy(), a[0, 0] * 0 + 1
    for k in range(len(work)):
        i, j = _largest(stop_gradient(work), k)
        if work[i, j] == 0:
            return result * _written_out(work[k:, k:])
        if i != k:
            result = -result
            for column in range(len(work)):
                work[i, column], work[k, column] = work[k, column], work[i, column]
        if j != k:
            result = -result
            for row in range(len(work)):
                work[row, j], work[row, k] = work[row, k], work[row, j]
        result = result * work[k, k]
        for i in range(k + 1, len(work)):
            factor = work[i, k] / work[k, k]
            for j in range(k + 1, len(work)):
                work[i, j] -= factor * work[k, j]
    return result


@njit
def _is_singular(work: Any) -> bool:
    """True if a matrix, which is overwritten, is singular but for rounding, judged by the pivots of its factors."""
    least, most = np.inf, 0.0
    for k in range(len(work)):
        row = k
        for i in range(k + 1, len(work)):
            if abs(work[i, k]) > abs(work[row, k]):
                row = i
        pivot = work[row, k]
        least, most = min(least, abs(pivot)), max(most, abs(pivot))
        if least <= _NEARLY * most:
            return True
        for j in range(k, len(work)):
            work[row, j], work[k, j] = work[k, j], work[row, j]
        for i in range(k + 1, len(work)):
            factor = work[i, k] / pivot
            for j in range(k + 1, len(work)):
                work[i, j] -= factor * work[k, j]
    return False


_SMALL: Final = 4  # rows: up to here, factors cost little beside the call of LAPACK
_NEARLY: Final = 1e-10  # of pivots: the second derivatives of LAPACK's factors lose as many digits


def _det(original: Any, a: Any) -> Callable[..., Any] | None:
    if not _has_derivative(a, 2):
        return None

    def det(a):  # type: ignore[no-untyped-def]
        if 0 < len(a) <= _SMALL and a.shape[0] == a.shape[1] and _is_singular(stop_gradient(a)):
            return _differentiated_as(original(stop_gradient(a)), _eliminated(a))
        value = original(a)
        return _differentiated_as(value, _eliminated(a)) if value == 0 and len(a) > _SMALL else value

    return det


def _norm(original: Any, x: Any, ord: Any = None) -> Callable[..., Any] | None:
    """The norm, with the subgradient 0 for a vector of zeros: the square root alone would make it NaN."""
    if cgutils.is_nonelike(ord) and (_has_derivative(x, 1) or _has_derivative(x, 2)):
        return lambda x, ord=None: _as_length(original(x), _square(x, 0.0))
    if not _has_derivative(x, 1):
        return None

    def norm(x, ord=None):  # type: ignore[no-untyped-def]
        value = original(x, ord)
        return value if value != 0.0 or ord == 2 else stop_gradient(value)

    return norm


def _residual(original: Any, b: Any, n: Any, nrhs: Any) -> Callable[..., Any] | None:
    """Numba squares the absolute values of complex numbers; those have no derivative where a fit is exact."""
    if not (_has_derivative(b, 2) and isinstance(b.dtype, types.Complex)):
        return None

    def residual(b, n, nrhs):  # type: ignore[no-untyped-def]
        result = original(stop_gradient(b), n, nrhs)
        for k in range(nrhs):
            rest = b[n:, k]
            result[k] = _differentiated_as(result[k], np.sum(rest.real**2 + rest.imag**2))
        return result

    return residual


_ARRAYS: Final = "numba.np.arraymath"
_LINALG: Final = "numba.np.linalg"
_POLYNOMIAL: Final = polynomial_functions.__name__

MAKERS: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    (_ARRAYS, "np_interp_impl_inner"): _interp_of(_as_doubles, _slope, _between),
    (_ARRAYS, "np_interp_impl_complex_inner"): _interp_of(_as_given, _complex_slope, _complex_between),
    (_ARRAYS, "_collect_percentiles_inner"): _percentiles,
    (_ARRAYS, "_clip_corr"): _correlation,
    ("numba.np.arrayobj", "np_clip"): _clip,
    (_ARRAYS, "array_std"): _standard_deviation,
    (_ARRAYS, "np_nanstd"): _nan_standard_deviation,
    (_ARRAYS, "numpy_unwrap"): _unwrap,
    (_POLYNOMIAL, "roots_impl"): _roots,
    (_POLYNOMIAL, "numpy_polyadd"): functools.partial(_untrimmed, _sum),
    (_POLYNOMIAL, "numpy_polysub"): functools.partial(_untrimmed, _difference),
    (_POLYNOMIAL, "numpy_polymul"): functools.partial(_untrimmed, njit(lambda a, b: np.convolve(a, b))),
    (_POLYNOMIAL, "numpy_polydiv"): _polydiv,
    (_LINALG, "det_impl"): _det,
    (_LINALG, "norm_impl"): _norm,
    (_LINALG, "_lstsq_residual_impl"): _residual,
}
"""By module and name, as `overloads` looks them up."""
