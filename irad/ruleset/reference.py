"""The elementwise functions in Python: what `irad.ruleset.expr.evaluate` and the tests compute with.

Double precision, IEEE results where Python's `math` raises: infinities at poles, NaN outside the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final


def call(function: str, arguments: Sequence[float], functions: Mapping[str, Callable[..., float]]) -> float:
    """The value of a function of the table ``functions`` by its canonical name.

    Raises:
        KeyError: no such function here.
    """
    try:
        return float(functions[function](*arguments))
    except OverflowError:
        return _overflow(function, arguments)
    except ValueError:
        return _pole(function, arguments)


def _overflow(function: str, arguments: Sequence[float]) -> float:
    """Result of the C library if the true one is too large."""
    if function == "pow":
        odd = math.fmod(arguments[1], 2.0) in (1.0, -1.0)
        return -math.inf if arguments[0] < 0.0 and odd else math.inf
    if function in ("sinh", "ldexp"):
        return math.copysign(math.inf, arguments[0])
    return math.inf


def _pole(function: str, arguments: Sequence[float]) -> float:
    """Result of the C library if `math` refuses the argument."""
    x = arguments[0]
    if function in ("log", "log2", "log10") and x == 0.0:
        return -math.inf
    if function == "log1p" and x == -1.0:
        return -math.inf
    if function == "atanh" and abs(x) == 1.0:
        return math.copysign(math.inf, x)
    if function == "lgamma" and x <= 0.0:
        return math.inf
    if function == "tgamma" and x == 0.0:
        return math.copysign(math.inf, x)
    if function == "pow" and x == 0.0 and arguments[1] < 0.0:
        odd = math.fmod(arguments[1], 2.0) in (1.0, -1.0)
        return math.copysign(math.inf, x) if odd else math.inf
    return math.nan


def _rounded(round_: Callable[[float], int]) -> Callable[[float], float]:
    """Rounding that keeps infinities, NaN and the sign of zero."""
    return lambda x: math.copysign(float(round_(x)), x) if math.isfinite(x) else x


def _half_away(x: float) -> int:
    whole = math.trunc(x)
    return whole + (1 if x > 0.0 else -1) if abs(x - whole) >= 0.5 else whole


def _choose(larger: bool, quiet: bool) -> Callable[[float, float], float]:
    """Maximum or minimum; ``quiet`` ignores a NaN, else it is the result."""

    def chosen(a: float, b: float) -> float:
        if math.isnan(a) or math.isnan(b):
            return (b if math.isnan(a) else a) if quiet else math.nan
        return max(a, b) if larger else min(a, b)

    return chosen


FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = MappingProxyType(
    {
        "sin": math.sin,
        "cos": math.cos,
        "tan": math.tan,
        "asin": math.asin,
        "acos": math.acos,
        "atan": math.atan,
        "atan2": math.atan2,
        "sinh": math.sinh,
        "cosh": math.cosh,
        "tanh": math.tanh,
        "asinh": math.asinh,
        "acosh": math.acosh,
        "atanh": math.atanh,
        "exp": math.exp,
        "exp2": math.exp2,
        "exp10": lambda x: math.pow(10.0, x),
        "expm1": math.expm1,
        "log": math.log,
        "log2": math.log2,
        "log10": math.log10,
        "log1p": math.log1p,
        "sqrt": math.sqrt,
        "cbrt": math.cbrt,
        "pow": math.pow,
        "powi": math.pow,
        "hypot": math.hypot,
        "fma": lambda a, b, c: a * b + c,
        "fabs": math.fabs,
        "copysign": math.copysign,
        "floor": _rounded(math.floor),
        "ceil": _rounded(math.ceil),
        "trunc": _rounded(math.trunc),
        "rint": _rounded(round),
        "round": _rounded(_half_away),
        "fmax": _choose(larger=True, quiet=True),
        "fmin": _choose(larger=False, quiet=True),
        "maximum": _choose(larger=True, quiet=False),
        "minimum": _choose(larger=False, quiet=False),
        "fdim": lambda a, b: max(a - b, 0.0) if a == a and b == b else math.nan,
        "fmod": math.fmod,
        "remainder": math.remainder,
        "nextafter": math.nextafter,
        "ldexp": lambda x, n: math.ldexp(x, int(n)),
        "erf": math.erf,
        "erfc": math.erfc,
        "tgamma": math.gamma,
        "lgamma": math.lgamma,
    }
)
