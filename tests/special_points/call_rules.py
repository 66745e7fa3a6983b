"""Special points of the scalar rules that emit code: each function of theirs, and each of its results, is a case.

The callees write results through pointers, or give two numbers at once. A case takes one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, Final, Literal

import llvmlite.binding as llvm
import mpmath
import scipy.special
import scipy.special.cython_special
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irad.frontend.external import scipy_functions
from irad.rules import elementwise, scalar_calls
from irad.rules.scipy import elliptic, outputs, special, voigt
from irad.ruleset.interface import CallRule, Domain
from tests.special_points import known
from tests.special_points.second_kind import bessel_k, bessel_y
from tests.special_points.table import Case, Convention, Demand, special_points
from tests.special_points.truth import Point

assert scipy.special.cython_special
assert scipy_functions()  # makes them known to LLVM

llvm.load_library_permanently("libgcc_s.so.1")  # products of complex numbers as compilers call them

_DOUBLE: Final = ir.DoubleType()
_PAIR: Final = ir.LiteralStructType((_DOUBLE, _DOUBLE))


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a callee.

    Attributes:
        name: of the case.
        form: how the callee takes numbers and gives results.
        exact: the result in mpmath, of real numbers.
        place: which of the results.
        guarded: the rule branches.
        inputs: number of real arguments, unless the form says it.
        is_pair: results that are written are complex numbers.
    """

    name: str
    symbol: str
    form: Literal["returned beside an integer", "returned or written", "written", "complex", "complex in memory"]
    exact: Callable[..., Any]
    place: int
    points: tuple[Point, ...]
    count: int = 2
    guarded: bool = False
    conventions: tuple[Convention, ...] = ()
    scale: float = 0.0
    inputs: int = 1
    is_pair: bool = False

    @property
    def arity(self) -> int:
        """Number of real arguments."""
        return 4 if self.form.startswith("complex") else self.inputs


def _called(result: Result, builder: Any, given: Sequence[Any]) -> Any:
    """The result, of numbers of LLVM's."""
    integer, double, pair = ir.IntType(32), _DOUBLE, _PAIR

    def function(returned: Any, arguments: Sequence[Any]) -> Any:
        type_ = ir.FunctionType(returned, [a.type for a in arguments])
        declared = cgutils.get_or_insert_function(builder.module, type_, result.symbol)
        return builder.call(declared, arguments)

    def place(type_: Any) -> Any:
        return cgutils.alloca_once(builder, type_)

    if result.form == "returned beside an integer":
        return function(double, [*given, place(integer)])
    if result.form == "returned or written":
        written = place(double)
        returned = function(double, [*given, written])
        return builder.load(written) if result.place else returned
    if result.form == "written":
        if result.is_pair:
            places = [place(pair) for _ in range(result.count // 2)]
            function(ir.VoidType(), [*given, *places])
            return builder.load(cgutils.gep_inbounds(builder, places[result.place // 2], 0, result.place % 2))
        places = [place(double) for _ in range(result.count)]
        function(ir.VoidType(), [*given, *places])
        return builder.load(places[result.place])
    if result.form == "complex":
        return builder.extract_value(function(pair, given), result.place)
    numbers = [place(pair) for _ in range(3)]
    for i, part in enumerate(given):
        builder.store(part, cgutils.gep_inbounds(builder, numbers[i // 2], 0, i % 2))
    function(ir.VoidType(), numbers)
    return builder.load(cgutils.gep_inbounds(builder, numbers[2], 0, result.place))


def _call(result: Result) -> Callable[..., Any]:
    def of(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _called(result, builder, arguments)

    signature = types.float64(*(types.float64,) * result.arity)
    if result.arity == 1:
        made = intrinsic(lambda typing, x: (signature, of))
        return lambda x: made(x)
    if result.arity == 2:
        two = intrinsic(lambda typing, x, y: (signature, of))
        return lambda x, y: two(x, y)
    four = intrinsic(lambda typing, a, b, c, d: (signature, of))
    return lambda a, b, c, d: four(a, b, c, d)


# ------------------------------------------------------------------------------------------------ parts of a number


def _mantissa(x: Any) -> Any:
    return mpmath.frexp(x)[0] if x else mpmath.mpf(0)


def _whole(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.floor(abs(x))


def _of_one(exact: Callable[..., Any], far: float = 1e160, also: tuple[float, ...] = ()) -> tuple[Point, ...]:
    points = special_points((Domain(-3.0, 3.0, (0.0, *also)),), exact, (0,), far)
    return tuple(p for p in points if math.isfinite(p[0]))  # of infinity there are no parts, and integrals oscillate


_ONE_AT_ZERO: Final = Convention(lambda p, o: p[0] == 0.0 and o == (1,), Demand(((1.0, 1.0),)), "1 at 0")

_PARTS: Final = (
    Result(
        "frexp (mantissa)",
        "numba_frexp",
        "returned beside an integer",
        _mantissa,
        0,
        _of_one(_mantissa, also=(0.5, 4.0)),
        conventions=(_ONE_AT_ZERO,),
    ),
    Result("modf (fraction)", "modf", "returned or written", lambda x: x - _whole(x), 0, _of_one(_whole, 1e8)),
    Result("modf (whole part)", "modf", "returned or written", _whole, 1, _of_one(_whole, 1e8)),
)


# ------------------------------------------------------------------------------------------------ scipy.special


def _cosine_integral(x: Any) -> Any:
    return mpmath.ci(abs(x))


def _hyperbolic_cosine_integral(x: Any) -> Any:
    return mpmath.chi(abs(x))


def _scaled_airy(derivative: int, function: Callable[..., Any], sign: int) -> Callable[[Any], Any]:
    def scaled(x: Any) -> Any:
        if x < 0 and sign > 0:
            raise ValueError
        power = sign * 2 * x ** (mpmath.mpf(3) / 2) / 3 if x > 0 else mpmath.mpf(0)
        return function(x, derivative=derivative) * mpmath.exp(power)

    return scaled


def _positive(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def checked(x: Any) -> Any:
        if x <= 0:
            raise ValueError
        return function(x)

    return checked


def _integral_of_first(sign: int) -> Callable[[Any], Any]:
    """Of J₀ or I₀ from 0."""
    half = mpmath.mpf(1) / 2
    return lambda x: x * mpmath.hyper([half], [1, 3 * half], sign * x * x / 4)


def _integral_of_y(x: Any) -> Any:
    before = 2 / mpmath.pi - mpmath.struveh(1, x)
    return mpmath.pi * x / 2 * (bessel_y(0, x) * before + bessel_y(1, x) * mpmath.struveh(0, x))


def _integral_of_k(x: Any) -> Any:
    before = 2 / mpmath.pi + mpmath.struvel(1, x)
    return mpmath.pi * x / 2 * (bessel_k(0, x) * before + bessel_k(1, x) * mpmath.struvel(0, x))


def _integral_by_x(sign: int) -> Callable[[Any], Any]:
    """Of `(1 - J₀) / x` or `(I₀ - 1) / x` from 0."""
    return lambda x: x * x / 8 * mpmath.hyper([1, 1], [2, 2, 2], sign * x * x / 4)


def _integral_of_second_by_x(sign: int) -> Callable[[Any], Any]:
    """Of `Y₀ / x` or `K₀ / x`, but for a constant, by the series DLMF 10.8.2 and 10.31.2."""

    def integral(x: Any) -> Any:
        log = mpmath.log(x / 2) + mpmath.euler
        total, term, harmonic, k = log * log / 2, mpmath.mpf(1), mpmath.mpf(0), 0
        while True:
            k += 1
            term *= sign * x * x / (4 * k * k)
            harmonic += mpmath.mpf(1) / k
            total += term * ((log - harmonic) / (2 * k) - mpmath.mpf(1) / (4 * k * k))
            if abs(term) < mpmath.eps and k > x:
                return total if sign > 0 else -2 / mpmath.pi * total

    return integral


def _kelvin_slope(f: Callable[..., Any], g: Callable[..., Any], sign: int) -> Callable[[Any], Any]:
    return lambda x: (sign * f(1, x) + g(1, x)) / mpmath.sqrt(2)


def _modified_fresnel(sign: int, scaled: bool, imaginary: bool) -> Callable[[Any], Any]:
    def part(x: Any) -> Any:
        stretched, root = x * mpmath.sqrt(2 / mpmath.pi), mpmath.sqrt(mpmath.pi / 2)
        rest = mpmath.mpc(
            mpmath.mpf(1) / 2 - mpmath.fresnelc(stretched), mpmath.mpf(1) / 2 - mpmath.fresnels(stretched)
        )
        value = root * rest
        if scaled:
            value *= mpmath.exp(mpmath.mpc(0, -x * x - mpmath.pi / 4)) / mpmath.sqrt(mpmath.pi)
        return sign * value.imag if imaginary else value.real

    return part


def _jacobi(name: str) -> Callable[[Any, Any], Any]:
    return lambda u, m: mpmath.ellipfun(name, u, m=m)


def _amplitude(u: Any, m: Any) -> Any:
    """The angle that Jacobi's functions are sine and cosine of, with the full turns that SciPy finds."""
    angle = mpmath.atan2(*(mpmath.re(mpmath.ellipfun(name, u, m=m)) for name in ("sn", "cn")))
    found = scipy.special.ellipj(float(u), min(max(float(m), 0.0), 1.0))[3]
    return angle + 2 * mpmath.pi * mpmath.nint((float(found) - angle) / (2 * mpmath.pi))


def _airy(derivative: int, function: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda x: function(x, derivative=derivative)


_SERIES: Final[dict[str, tuple[tuple[str, Callable[[Any], Any]], ...]]] = {
    "sici": (("si", mpmath.si), ("ci", _cosine_integral)),
    "shichi": (("shi", mpmath.shi), ("chi", _hyperbolic_cosine_integral)),
    "fresnel": (("S", mpmath.fresnels), ("C", mpmath.fresnelc)),
    "airy": (
        ("Ai", _airy(0, mpmath.airyai)),
        ("Ai'", _airy(1, mpmath.airyai)),
        ("Bi", _airy(0, mpmath.airybi)),
        ("Bi'", _airy(1, mpmath.airybi)),
    ),
    "airye": (
        ("Ai", _scaled_airy(0, mpmath.airyai, 1)),
        ("Ai'", _scaled_airy(1, mpmath.airyai, 1)),
        ("Bi", _scaled_airy(0, mpmath.airybi, -1)),
        ("Bi'", _scaled_airy(1, mpmath.airybi, -1)),
    ),
    "itj0y0": (("J0", _integral_of_first(-1)), ("Y0", _positive(_integral_of_y))),
    "iti0k0": (("I0", _integral_of_first(1)), ("K0", _positive(_integral_of_k))),
    "it2j0y0": (("J0", _integral_by_x(-1)), ("Y0", _positive(_integral_of_second_by_x(-1)))),
    "it2i0k0": (("I0", _integral_by_x(1)), ("K0", _positive(_integral_of_second_by_x(1)))),
    "kelvin": (
        ("ber", lambda x: mpmath.ber(0, x)),
        ("bei", lambda x: mpmath.bei(0, x)),
        ("ker", _positive(lambda x: mpmath.ker(0, x))),
        ("kei", _positive(lambda x: mpmath.kei(0, x))),
        ("ber'", _kelvin_slope(mpmath.ber, mpmath.bei, 1)),
        ("bei'", _kelvin_slope(mpmath.ber, mpmath.bei, -1)),
        ("ker'", _positive(_kelvin_slope(mpmath.ker, mpmath.kei, 1))),
        ("kei'", _positive(_kelvin_slope(mpmath.ker, mpmath.kei, -1))),
    ),
    **{
        name: tuple(
            (f"{'FK'[scaled]}, {('real', 'imaginary')[imaginary]}", _modified_fresnel(sign, scaled, imaginary))
            for scaled in (False, True)
            for imaginary in (False, True)
        )
        for name, sign in (("modfresnelp", 1), ("modfresnelm", -1))
    },
}
# The scale has a root of x there, of which the limit that mpmath finds has only nine digits.
_AT_ZERO: Final = {
    name: (Convention(lambda p, o: p[0] == 0.0 and o == (1,), Demand((range_,)), f"at 0 the derivative of {name}"),)
    for name, range_ in (("Ai", (-0.2588194037929, -0.2588194037927)), ("Bi", (0.4482883573538, 0.4482883573539)))
}
_FEW: Final = ((0.7,), (0.0,), (1.0,), (1e-5,), (40.0,))  # mpmath takes long for these
_PAIRS: Final = frozenset({"kelvin", "modfresnelp", "modfresnelm"})
_FAR: Final = {"sici": 1e3, "fresnel": 1e3, "modfresnelp": 5.0, "modfresnelm": 5.0, "airye": 5.0}  # 40 of others
_OF_SCIPY: Final = tuple(
    Result(
        f"{name} ({label})",
        f"scipy.special.{name}",
        "written",
        exact,
        place,
        _FEW if label in ("ker", "kei", "ker'", "kei'") else _of_one(exact, _FAR.get(name, 40.0)),
        count=len(results),
        guarded=name in ("sici", "shichi", "airye", "it2j0y0", "it2i0k0", "kelvin"),
        scale=4.0 if name == "airye" else float("fresnel" in name),
        is_pair=name in _PAIRS,
        conventions=_AT_ZERO.get(label, ()) if name == "airye" else (),
    )
    for name, results in _SERIES.items()
    for place, (label, exact) in enumerate(results)
)


_JACOBI: Final = tuple(
    Result(
        f"ellipj ({label})",
        "scipy.special.ellipj",
        "written",
        exact,
        place,
        ((0.7, 0.3), (0.0, 0.5), (1.0, 0.0), (0.7, 1.0), (2.0, 0.5), (9.0, 0.7), (-1.0, 1e-5)),
        count=4,
        inputs=2,
    )
    for place, (label, exact) in enumerate((*((name, _jacobi(name)) for name in ("sn", "cn", "dn")), ("φ", _amplitude)))
)


# ------------------------------------------------------------------------------------------------ complex numbers


def _complex(operation: Callable[[Any, Any], Any], place: int) -> Callable[..., Any]:
    def part(a: Any, b: Any, c: Any, d: Any) -> Any:
        with mpmath.workdps(2 * mpmath.mp.dps):  # parts cancel
            value = operation(mpmath.mpc(a, b), mpmath.mpc(c, d))
            return value.imag if place else value.real

    return part


_NUMBERS: Final = ((0.7, -1.3), (1.0, 0.0), (0.0, 1.0), (1e-9, 1e-5), (1.0, 1.0), (-2.0, 1e-9))
_DIVISORS: Final = (*_NUMBERS, (0.0, -2.0), (1.0, -1.0))
_BASES: Final = tuple(z for z in _NUMBERS if z != (1e-9, 1e-5))  # third derivatives cancel to the square of their size
_ZERO_TOO: Final = (*_NUMBERS, (0.0, 0.0))
_EXPONENTS: Final = ((2.0, 0.0), (1.0, 0.0), (0.0, 0.0), (0.5, 0.0), (-1.0, 0.0), (1.3, 0.4), (3.0, 1e-9))


def _pairs(*given: Sequence[tuple[float, float]]) -> tuple[Point, ...]:
    return tuple((*a, *b) for a, b in product(*given))


_POWERS: Final = _pairs(_BASES, _EXPONENTS)
_ARITHMETIC: Final = tuple(
    Result(
        f"{name} ({label})",
        symbol,
        form,
        _complex(operation, place),
        place,
        points,
    )
    for name, symbol, form, operation, points in (
        ("complex product", "__muldc3", "complex", lambda a, b: a * b, _pairs(_ZERO_TOO, _ZERO_TOO)),
        ("complex quotient", "__divdc3", "complex", lambda a, b: a / b, _pairs(_ZERO_TOO, _DIVISORS)),
        ("complex power", "numba_cpow", "complex in memory", lambda a, b: a**b, _POWERS),
    )
    for place, label in enumerate(("real", "imaginary"))
)

RESULTS: Final = {result.name: result for result in (*_PARTS, *_OF_SCIPY, *_JACOBI, *_ARITHMETIC)}
NAMES: Final = tuple(RESULTS)
GUARDED: Final = tuple(result.name for result in RESULTS.values() if result.guarded)
_MODULES: Final = (elementwise, scalar_calls, outputs, special, elliptic, voigt)
RULES: Final = tuple(rule for module in _MODULES for rule in module.RULES if isinstance(rule, CallRule))


@cache
def case_of(name: str) -> Case:
    """The case of a result."""
    result = RESULTS[name]
    wrt = tuple(range(result.arity))
    return Case(
        name,
        _call(result),
        result.exact,
        result.points,
        wrt,
        result.conventions,
        result.guarded,
        scale=result.scale,
        not_right=known.listed().get(name, {}),
    )


def symbols_left_out() -> set[tuple[str, ...]]:
    """Rules of which no symbol has a case."""
    tried = {result.symbol for result in RESULTS.values()}
    return {rule.symbols for rule in RULES if not tried & set(rule.symbols)}
