"""Complex functions of Numba at special points: zeros, branch points, both sides of branch cuts, poles' neighbours.

All functions are compiled together, once for each order, each with an argument of its own; weights, given at run time,
pick their real or imaginary parts. A partial derivative of a holomorphic function with respect to the parts of its
argument is its derivative of that order times a power of i, so all of a Hessian, and of the tensor above it, is
compared with mpmath.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import mpmath
import numpy as np
import pytest
from numba import njit

import irad
from irad.frontend.numba import shortcuts

mp: Any = mpmath.mp
_DIGITS: Final = 300
_ASIDE: Final = mpmath.mpf(10) ** -50  # to the side of a branch cut that the sign of a zero tells


def _arc(z: Any) -> Any:
    return 1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z))


def _area(z: Any) -> Any:
    return 1 / (mp.sqrt(z - 1) * mp.sqrt(z + 1))


def _sinc(z: Any) -> Any:
    return (mp.cospi(z) - mp.sinpi(z) / (mp.pi * z)) / z


# What Numba compiles, and the first derivative.
FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "cmath.sqrt(z)": lambda z: 1 / (2 * mp.sqrt(z)),
    "cmath.log(z)": lambda z: 1 / z,
    "cmath.asin(z)": _arc,
    "cmath.acos(z)": lambda z: -_arc(z),
    "cmath.atan(z)": lambda z: 1 / (1 + z * z),
    "cmath.asinh(z)": lambda z: _arc(1j * z),
    "cmath.acosh(z)": _area,
    "cmath.atanh(z)": lambda z: 1 / (1 - z * z),
    "np.sinc(z)": _sinc,
    "np.sqrt(z)": lambda z: 1 / (2 * mp.sqrt(z)),
    "np.log10(z)": lambda z: 1 / (z * mp.log(10)),
    "np.log2(z)": lambda z: 1 / (z * mp.log(2)),
    "np.log1p(z)": lambda z: 1 / (1 + z),
    "np.arccosh(z)": _area,
    "cmath.tanh(z)": lambda z: 1 / mp.cosh(z) ** 2,
    "cmath.tan(z)": lambda z: 1 / mp.cos(z) ** 2,
    "np.tanh(z)": lambda z: 1 / mp.cosh(z) ** 2,
    "cmath.exp(z)": mp.exp,
    "np.expm1(z)": mp.exp,
    "np.divide(1.0 + 0j, z)": lambda z: -1 / z**2,
    "np.reciprocal(z)": lambda z: -1 / z**2,
    "z ** w[0]": lambda z: 2 * z,
    "z ** w[1]": lambda z: 3 * z * z,
    "z ** w[2]": lambda z: mp.mpf(1),
    "z ** 2": lambda z: 2 * z,
    "np.power(z, 3)": lambda z: 3 * z * z,
    "np.square(z)": lambda z: 2 * z,
}
# The same code under another name: first derivatives only.
OTHER_NAMES: Final[dict[str, Callable[[Any], Any]]] = {
    "np.log(z)": lambda z: 1 / z,
    "np.arcsin(z)": _arc,
    "np.arccos(z)": lambda z: -_arc(z),
    "np.arctan(z)": lambda z: 1 / (1 + z * z),
    "np.arcsinh(z)": lambda z: _arc(1j * z),
    "np.arctanh(z)": lambda z: 1 / (1 - z * z),
    "np.float_power(z, w[0])": lambda z: 2 * z,
    "pow(z, w[1])": lambda z: 3 * z * z,
}
ALL: Final = {**FUNCTIONS, **OTHER_NAMES}
EXPONENTS: Final = np.array([2.0 + 0j, 3.0 + 0j, 1.0 + 0j])
SINGULAR: Final = (0j, 1 + 0j, -1 + 0j, 1j, -1j)
CENTRES: Final = (*SINGULAR, 2 + 0j, -2 + 0j, 2j, -2j, 0.5 + 0j, -0.5 + 0j, 0.5j, -0.5j, 1 + 1j, -1 + 1j, 0.3 - 0.4j)
CUTS: Final = (complex(-2, -0.0), complex(2, -0.0), complex(-0.0, 2), complex(-0.0, -2), complex(-0.5, -0.0))


def _points() -> Iterator[complex]:
    yield from CUTS
    for z in CENTRES:
        yield z
        for step, way in itertools.product((1e-9, 1e-5), (1, -1, 1j, -1j)):
            yield z + step * way


POINTS: Final = tuple(_points())


def tried(order: int) -> dict[str, Callable[[Any], Any]]:
    """The functions of which derivatives of an order are compared."""
    return ALL if order == 1 else FUNCTIONS


def _values(functions: Iterable[str]) -> str:
    """`values(x, y, w, out)`: real and imaginary part of each function, of an argument of its own."""
    lines = ["def values(x, y, w, out):"]
    for i, expression in enumerate(functions):
        lines += [f"    z = type_(complex(x[{i}], y[{i}]))", f"    r = {expression}"]
        lines += [f"    out[{2 * i}], out[{2 * i + 1}] = r.real, r.imag"]
    return "\n".join(lines)


@cache
def compiled(order: int = 1, type_: Any = np.complex128) -> Any:
    """All functions, each result of which goes to its place of an array."""
    scope: dict[str, Any] = {"np": np, "cmath": cmath, "type_": type_}
    exec(_values(tried(order)), scope)
    return njit(error_model="numpy")(scope["values"])


@cache
def gradients(order: int, type_: Any = np.complex128) -> Any:
    """`f(x, y, w, weights, along)`: the gradient of the derivative of the sum in the directions before it."""
    values, count = compiled(order, type_), 2 * len(tried(order))
    real = np.zeros(0, type_).real.dtype.type

    @njit(error_model="numpy")
    def total(x, y, w, weights, along):
        out = np.empty(count, real)
        values(x, y, w, out)
        return (out * weights).sum()

    function = total
    for level in range(order):
        gradient = irad.grad(function, argnums=(0, 1))
        function = njit(error_model="numpy")(_along(gradient, level))
    return gradient


def _along(gradient: Any, level: int) -> Any:
    def function(x, y, w, weights, along):
        dx, dy = gradient(x, y, w, weights, along)
        return (dx * along[level, 0] + dy * along[level, 1]).sum()

    return function


def exact(expression: str, z: complex, order: int) -> Any:
    """The derivative of an order; None where there is none."""
    return _exact(
        expression, (z.real.hex(), z.imag.hex()), order
    )  # numbers that differ in the sign of a zero are equal


@cache
def _exact(expression: str, parts: tuple[str, str], order: int) -> Any:
    z = complex(*map(float.fromhex, parts))
    with mp.workdps(_DIGITS):
        sides = [math.copysign(1.0, part) * _ASIDE * (part == 0.0) for part in (z.real, z.imag)]
        at = mp.mpc(z.real, z.imag) + mp.mpc(*sides)
        found = mp.diff(ALL[expression], at, order - 1, h=mp.mpf(10) ** -70)
        return None if z in SINGULAR and abs(found) > 1e20 else found


def expected(expression: str, z: complex, order: int, part: int, ways: tuple[int, ...]) -> float | None:
    """A partial derivative: ways are 0 for the real part of the argument, 1 for the imaginary part."""
    found = exact(expression, z, order)
    if found is None:
        return None
    turned = found * mp.mpc(0, 1) ** sum(ways)
    return float(turned.imag if part else turned.real)


def everywhere(z: complex, order: int = 1) -> tuple[Any, Any]:
    """The parts of a number, as arguments of all functions."""
    return np.full(len(tried(order)), z.real), np.full(len(tried(order)), z.imag)


def found_at(z: complex, part: int, before: tuple[int, ...], function: Any) -> Any:
    """Of each function: both partial derivatives of the derivative along some ways, of the real or imaginary part."""
    along = np.zeros((3, 2))
    for level, way in enumerate(before):
        along[level, way] = 1.0
    weights = np.tile([float(part == 0), float(part == 1)], len(tried(len(before) + 1)))
    return np.transpose(function(*everywhere(z, len(before) + 1), EXPONENTS, weights, along))


def check_order(
    order: int, function: Any, rtol: float, least: float = 1e-6, points: Sequence[complex] = POINTS
) -> None:
    """Compares all partial derivatives of an order of all functions."""
    wrong: list[str] = []
    ways = list(itertools.combinations_with_replacement(range(2), order - 1))
    for z, part, before in itertools.product(points, range(2), ways):
        for expression, pair in zip(tried(order), found_at(z, part, before, function), strict=True):
            for way, got in enumerate(pair):
                want = expected(expression, z, order, part, (*before, way))
                if want is None:
                    continue
                size = abs(complex(exact(expression, z, order)))
                if expression == "z ** w[2]" and z != 0:
                    size += abs(z) ** (1 - order)  # w (w-1) z**w / z**2 is a difference of terms of this size
                if not abs(got - want) <= rtol * max(size, least):
                    wrong.append(f"{expression} at {z}, {part} by {(*before, way)}: {got}, not {want}")
    assert wrong == []


def test_gradients_are_right_beside_and_at_special_points():
    check_order(1, gradients(1), 1e-12)


def test_derivatives_at_branch_points_and_poles_are_not_finite():
    for z in SINGULAR:
        found = [found_at(z, part, (), gradients(1)) for part in range(2)]
        for i, expression in enumerate(ALL):
            if exact(expression, z, 1) is None:
                assert not np.isfinite([found[0][i], found[1][i]]).all(), (expression, z)


def test_second_derivatives():
    check_order(2, gradients(2), 1e-11)


def test_third_derivatives():
    check_order(3, gradients(3), 1e-10)


def test_no_function_is_missing():
    names = {
        f"{'np' if isinstance(f, np.ufunc) else f.__module__.replace('numpy', 'np')}.{f.__name__}"
        for f in shortcuts.COMPLEX
    }
    assert {name for name in names if f"{name}(z)" not in ALL} == set()


def test_single_precision():
    narrow = [complex(np.complex64(z)) for z in POINTS]
    check_order(1, gradients(1, np.complex64), 2e-5, 1e-3, narrow)


def test_forward_mode_agrees():
    function, count = _returning(compiled(), 2 * len(ALL)), len(ALL)
    for z, way in itertools.product(POINTS, range(2)):
        unit = np.ones(count)
        _, slopes = irad.jvp(
            function, (*everywhere(z), EXPONENTS), (unit if way == 0 else None, unit if way else None, None)
        )
        for part in range(2):
            wanted = found_at(z, part, (), gradients(1))[:, way]
            finite = np.isfinite(wanted) & np.isfinite(slopes[part::2])  # 0·inf is NaN in one mode, 0 in the other
            np.testing.assert_allclose(slopes[part::2][finite], wanted[finite], rtol=1e-12, atol=1e-12, err_msg=str(z))
            assert finite.all() or z in SINGULAR


def _returning(values: Any, count: int) -> Any:
    @njit(error_model="numpy")
    def returning(x, y, w):
        out = np.empty(count)
        values(x, y, w, out)
        return out

    return returning


@pytest.mark.parametrize("type_", [np.complex64, np.complex128])
def test_values_are_those_of_numba_to_the_bit(type_: Any):
    values, real, count = compiled(1, type_), np.zeros(0, type_).real.dtype.type, 2 * len(ALL)
    inf, nan = math.inf, math.nan

    @njit(error_model="numpy")
    def total(x, y, w, kept):
        out = np.empty(count, real)
        values(x, y, w, out)
        kept[:] = out
        return out.sum()

    differentiated = irad.grad(total)
    for z in (*POINTS, complex(inf, 1.0), complex(-inf, -1.0), complex(1.0, -inf), complex(nan, 0.0), 1e300 + 1j):
        plain, kept = np.empty(count, real), np.empty(count, real)
        values(*everywhere(z), EXPONENTS, plain)
        differentiated(*everywhere(z), EXPONENTS, kept)
        same = (kept.view(f"u{kept.itemsize}") == plain.view(f"u{kept.itemsize}")) | (np.isnan(plain) & np.isnan(kept))
        assert same.all(), (z, np.flatnonzero(~same))
