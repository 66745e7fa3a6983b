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
import scipy.special.cython_special
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irad.frontend.external import scipy_functions
from irad.rules import elementwise, scalar_calls
from irad.rules.scipy import outputs, special, voigt
from irad.ruleset.interface import CallRule, Domain
from tests.special_points import known
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

    @property
    def arity(self) -> int:
        """Number of real arguments."""
        return 4 if self.form.startswith("complex") else 1


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
}
_FAR: Final = {"sici": 1e3, "shichi": 40.0, "fresnel": 1e3, "airy": 40.0}
_OF_SCIPY: Final = tuple(
    Result(
        f"{name} ({label})",
        f"scipy.special.{name}",
        "written",
        exact,
        place,
        _of_one(exact, _FAR[name]),
        count=len(results),
        guarded=name in ("sici", "shichi"),
        scale=float(name == "fresnel"),
    )
    for name, results in _SERIES.items()
    for place, (label, exact) in enumerate(results)
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

RESULTS: Final = {result.name: result for result in (*_PARTS, *_OF_SCIPY, *_ARITHMETIC)}
NAMES: Final = tuple(RESULTS)
GUARDED: Final = tuple(result.name for result in RESULTS.values() if result.guarded)
_MODULES: Final = (elementwise, scalar_calls, outputs, special, voigt)
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
