"""Elementwise mathematics: one line a function, its partial derivatives.

The last parameter of a formula is the primal result. The generator makes zero of a zero cotangent times any partial,
so an infinite partial (`sqrt` at 0) is harmless where nothing flows. At a kink a rule gives an element of the
generalised derivative; ``policy`` says which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from irad.ruleset.define import elementwise
from irad.ruleset.expr import Expr, apply, equal, is_nan, sign, where
from irad.ruleset.interface import Domain, Rule

_LN2: Final = math.log(2.0)
_LN10: Final = math.log(10.0)
_TWO_OVER_SQRT_PI: Final = 2.0 / math.sqrt(math.pi)
_HALF_SQRT_PI: Final = math.sqrt(math.pi) / 2.0
_SQRT_TWO_PI: Final = math.sqrt(2.0 * math.pi)
_LARGE: Final = 3e38  # finite in single precision, too

_REALS: Final = Domain(-3.0, 3.0, (0.0,))
_POSITIVE: Final = Domain(0.1, 5.0)
_WIDE: Final = Domain(-20.0, 20.0)
_INSIDE: Final = Domain(-0.9, 0.9, (0.0,))
_ORDER: Final = Domain(0.0, 4.0)


def _fabs(x: Expr) -> Expr:
    return apply("fabs", x)


def _atan2_partials(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """`b / (a² + b²)` and `-a / (a² + b²)`, scaled so that the squares neither overflow nor vanish."""
    scale = where(_fabs(a) > _fabs(b), _fabs(a), _fabs(b))
    special = where(equal(scale, 0.0), 1.0, where(equal(scale, math.inf), 1.0, 0.0)) > 0.0
    # What is not used has to be finite in all orders: zero times its derivative would be NaN.
    size, s, c = where(special, 1.0, scale), where(special, 1.0, a), where(special, 1.0, b)
    s, c = s / size, c / size
    length = (s * s + c * c) * size
    return where(special, 0.0, c / length), where(special, 0.0, -s / length)


def pow_by_base(x: Expr, p: Expr) -> Expr:
    """`p xᵖ⁻¹`; where both are 0 that is 0 times infinity, and where p is infinite infinity times 0."""
    factor = where(_fabs(p) < math.inf, p, sign(p))
    # Not equal(x, 0): a curve that passes through 0 has a Taylor series of x**3 there, whose fifth derivative is 0 x⁻².
    near, none = _fabs(x) <= 1e-300, equal(p, 0.0)  # 0 in single precision
    exponent = where(near, where(none, 1.0, p - 1.0), p - 1.0)
    return where(near, where(none, 0.0, factor), factor) * apply("pow", x, exponent)


def pow_by_exponent(x: Expr, p: Expr, y: Expr) -> Expr:
    """`xᵖ log x`; in place of an infinite logarithm a number that makes infinity of infinity, and 0 of 0."""
    of_zero, of_infinity = where(equal(p, 0.0), 0.0, -_LARGE), where(equal(p, 0.0), x, _LARGE)
    return y * where(equal(x, 0.0), of_zero, where(equal(x, math.inf), of_infinity, apply("log", x)))


def of_length(x: Expr, y: Expr) -> Expr:
    """Partial derivative of a Euclidean norm ``y`` with respect to a component."""
    zero, infinite = equal(y, 0.0), equal(y, math.inf)
    at_infinity = where(_fabs(x) < math.inf, 0.0, sign(x))
    return where(zero, 0.0, where(infinite, at_infinity, x)) / where(zero, 1.0, where(infinite, 1.0, y))


def _larger_first(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Weights of ``a`` and ``b`` in their maximum."""
    first = where(b > a, 0.0, where(is_nan(a), 0.0, 1.0))
    return first, 1.0 - first


def _smaller_first(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Weights of ``a`` and ``b`` in their minimum."""
    first = where(b < a, 0.0, where(is_nan(a), 0.0, 1.0))
    return first, 1.0 - first


def times_pi(function: str, x: Expr) -> Expr:
    """`sin πx` or `cos πx`: to a half turn, which is exact, so that both are 0 where they should be but for cos ½π."""
    half_turns = apply("rint", x)
    odd = _fabs(half_turns - 2.0 * apply("rint", 0.5 * half_turns))
    return (1.0 - 2.0 * odd) * apply(function, math.pi * (x - half_turns))


def polynomial(coefficients: Sequence[float], x: Expr) -> Expr:
    """By Horner's rule; the constant first."""
    *others, last = coefficients
    value = others[-1] + x * last
    for coefficient in reversed(others[:-1]):
        value = coefficient + x * value
    return value


def _j1(x: Expr, y: Expr) -> Expr:
    """`J₀ - J₁/x`; near 0, where that cancels in its derivatives, the power series."""
    near = x * x < 1.0
    terms = [(2 * k + 1) * (-1) ** k / (2 * 4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(12)]
    return where(near, polynomial(terms, x * x), apply("j0", x) - y / where(near, 1.0, x))


def _erfcx(x: Expr, y: Expr) -> Expr:
    """`2xy - 2/√π`; far out, where that cancels, the asymptotic series (DLMF 7.12.1)."""
    terms = [1.0]
    for k in range(1, 22):
        terms.append(terms[-1] * -(2 * k + 1) / 2.0)
    far = x > 8.0
    distance = where(far, x, 8.0)  # the series is not to overflow where it is not used
    square = 1.0 / (distance * distance)
    return where(far, -square / math.sqrt(math.pi) * polynomial(terms, square), 2.0 * x * y - _TWO_OVER_SQRT_PI)


def _one_over_root(x: Expr, below_square: Expr) -> Expr:
    """`1 / sqrt(x² ± 1)`; `1 / |x|` where the square would be infinite."""
    return where(below_square < math.inf, 1.0 / apply("sqrt", below_square), 1.0 / _fabs(x))


def _next_bessel(kind: str, n: Expr, x: Expr) -> Expr:
    return 0.5 * (apply(kind, n - 1.0, x) - apply(kind, n + 1.0, x))


# Ties of maximum and minimum: what `a if a >= b else b`, to which Numba lowers np.maximum, would give.
_FIRST = "at a tie, 1 for the first argument and 0 for the second; 0 for a NaN that is ignored"
_STEP = "zero everywhere, including the steps"

RULES: Final[tuple[Rule, ...]] = (
    # powers, exponentials
    elementwise("sqrt", lambda x, y: 0.5 / y, on=_POSITIVE, also=(0.0,), policy="infinite at 0"),
    elementwise("cbrt", lambda x, y: 1.0 / (3.0 * y * y), on=_POSITIVE, also=(-2.0, 0.0), policy="infinite at 0"),
    elementwise("rsqrt", lambda x, y: -0.5 * y * y * y, on=_POSITIVE),
    elementwise("rcbrt", lambda x, y: -y / (3.0 * x), on=_POSITIVE, also=(-2.0,)),
    elementwise("hypot", lambda a, b, y: (of_length(a, y), of_length(b, y)), on=_REALS, kinks="zero at the origin"),
    elementwise(
        "pow",
        lambda x, p, y: (pow_by_base(x, p), pow_by_exponent(x, p, y)),
        on=(_POSITIVE, _REALS),
        policy="with respect to the exponent, NaN if the base is negative",
        kinks="zero, in all orders, if both are 0",
    ),
    elementwise(
        "powi",
        lambda x, n, y: (where(equal(n, 0.0), 0.0, n * apply("powi", x, n - 1.0)), None),
        on=(_POSITIVE, _ORDER),
        also=(0.0, 2.0),
    ),
    elementwise("exp", lambda x, y: y, on=_REALS),
    elementwise("exp2", lambda x, y: _LN2 * y, on=_REALS),
    elementwise("exp10", lambda x, y: _LN10 * y, on=_REALS),
    elementwise("expm1", lambda x, y: apply("exp", x), on=_REALS),
    elementwise("log", lambda x, y: 1.0 / x, on=_POSITIVE, also=(0.0,), policy="infinite at 0"),
    elementwise("log2", lambda x, y: (1.0 / _LN2) / x, on=_POSITIVE, also=(0.0,), policy="infinite at 0"),
    elementwise("log10", lambda x, y: (1.0 / _LN10) / x, on=_POSITIVE, also=(0.0,), policy="infinite at 0"),
    elementwise("log1p", lambda x, y: 1.0 / (1.0 + x), on=_INSIDE, also=(-1.0,), policy="infinite at -1"),
    # trigonometric, hyperbolic
    elementwise("sin", lambda x, y: apply("cos", x), on=_REALS),
    elementwise("cos", lambda x, y: -apply("sin", x), on=_REALS),
    elementwise("tan", lambda x, y: 1.0 + y * y, on=Domain(-1.4, 1.4)),
    elementwise("sinpi", lambda x, y: math.pi * times_pi("cos", x), on=_REALS),
    elementwise("cospi", lambda x, y: -math.pi * times_pi("sin", x), on=_REALS),
    elementwise(
        "asin",
        lambda x, y: 1.0 / apply("sqrt", (1.0 - x) * (1.0 + x)),
        on=_INSIDE,
        also=(1.0,),
        policy="infinite at ±1",
    ),
    elementwise(
        "acos",
        lambda x, y: -1.0 / apply("sqrt", (1.0 - x) * (1.0 + x)),
        on=_INSIDE,
        also=(1.0,),
        policy="infinite at ±1",
    ),
    elementwise("atan", lambda x, y: 1.0 / (1.0 + x * x), on=_REALS),
    elementwise("atan2", lambda a, b, y: _atan2_partials(a, b), on=_REALS, kinks="zero at the origin"),
    elementwise("sinh", lambda x, y: apply("cosh", x), on=_REALS),
    elementwise("cosh", lambda x, y: apply("sinh", x), on=_REALS),
    elementwise("tanh", lambda x, y: 1.0 - y * y, on=_REALS),
    elementwise("asinh", lambda x, y: _one_over_root(x, x * x + 1.0), on=_REALS),
    elementwise(
        "acosh",
        lambda x, y: _one_over_root(x, (x - 1.0) * (x + 1.0)),
        on=Domain(1.1, 9.0),
        also=(1.0,),
        policy="infinite at 1",
    ),
    elementwise("atanh", lambda x, y: 1.0 / ((1.0 - x) * (1.0 + x)), on=_INSIDE, also=(1.0,), policy="infinite at ±1"),
    # error functions: DLMF 7.2.1, 7.10.1
    elementwise("erf", lambda x, y: _TWO_OVER_SQRT_PI * apply("exp", -(x * x)), on=_REALS),
    elementwise("erfc", lambda x, y: -_TWO_OVER_SQRT_PI * apply("exp", -(x * x)), on=_REALS),
    elementwise("erfcx", lambda x, y: _erfcx(x, y), on=_REALS, also=(8.0, 25.0)),
    elementwise("erfinv", lambda x, y: _HALF_SQRT_PI * apply("exp", y * y), on=_INSIDE),
    elementwise("erfcinv", lambda x, y: -_HALF_SQRT_PI * apply("exp", y * y), on=Domain(0.1, 1.9)),
    elementwise("normcdf", lambda x, y: apply("exp", -0.5 * (x * x)) / _SQRT_TWO_PI, on=_REALS),
    elementwise("normcdfinv", lambda x, y: _SQRT_TWO_PI * apply("exp", 0.5 * (y * y)), on=Domain(0.05, 0.95)),
    # gamma functions
    elementwise("tgamma", lambda x, y: y * apply("digamma", x), on=_POSITIVE, also=(-0.5, -2.3), source="DLMF 5.2.2"),
    elementwise("lgamma", lambda x, y: apply("digamma", x), on=_POSITIVE, also=(-0.5, -2.3), source="DLMF 5.2.2"),
    elementwise("digamma", lambda x, y: apply("trigamma", x), on=_POSITIVE, also=(-0.5, -2.3), source="DLMF 5.15.1"),
    # Bessel functions
    elementwise("j0", lambda x, y: -apply("j1", x), on=_POSITIVE, source="DLMF 10.6.3"),
    elementwise(
        "j1",
        lambda x, y: _j1(x, y),
        on=_POSITIVE,
        also=(0.0, 1.0),
        source="DLMF 10.6.2",
    ),
    elementwise("jn", lambda n, x, y: (None, _next_bessel("jn", n, x)), on=(_ORDER, _POSITIVE), source="DLMF 10.6.1"),
    elementwise("y0", lambda x, y: -apply("y1", x), on=_POSITIVE, source="DLMF 10.6.3"),
    elementwise("y1", lambda x, y: apply("y0", x) - y / x, on=_POSITIVE, source="DLMF 10.6.2"),
    elementwise("yn", lambda n, x, y: (None, _next_bessel("yn", n, x)), on=(_ORDER, _POSITIVE), source="DLMF 10.6.1"),
    # sign and order
    elementwise("fabs", lambda x, y: sign(x), on=_REALS, policy="zero at 0"),
    elementwise(
        "copysign",
        lambda a, b, y: (sign(a) * apply("copysign", 1.0, y), None),
        on=_REALS,
        policy="zero if the first argument is 0",
    ),
    elementwise("fmax", lambda a, b, y: _larger_first(a, b), on=_REALS, policy=_FIRST),
    elementwise("fmin", lambda a, b, y: _smaller_first(a, b), on=_REALS, policy=_FIRST),
    elementwise("maximum", lambda a, b, y: _larger_first(a, b), on=_REALS, policy=_FIRST),
    elementwise("minimum", lambda a, b, y: _smaller_first(a, b), on=_REALS, policy=_FIRST),
    elementwise(
        "fdim", lambda a, b, y: (where(a > b, 1.0, 0.0), where(a > b, -1.0, 0.0)), on=_REALS, policy="zero at a tie"
    ),
    elementwise(
        "saturate",
        lambda x, y: where(x > 0.0, where(x < 1.0, 1.0, 0.0), 0.0),
        on=_REALS,
        also=(1.0,),
        policy="zero at both ends",
    ),
    # rounding, remainders, representation
    elementwise("floor", lambda x, y: None, on=_REALS, policy=_STEP),
    elementwise("ceil", lambda x, y: None, on=_REALS, policy=_STEP),
    elementwise("trunc", lambda x, y: None, on=_REALS, policy=_STEP),
    elementwise("rint", lambda x, y: None, on=_REALS, policy=_STEP),
    elementwise("round", lambda x, y: None, on=_REALS, policy=_STEP),
    elementwise("logb", lambda x, y: None, on=_POSITIVE, policy=_STEP),
    # y = a - n b with an integer n: no rounding of a large quotient can spoil the second partial, and n is constant.
    elementwise(
        "fmod",
        lambda a, b, y: (1.0, apply("rint", (y - a) / b)),
        on=(_WIDE, _POSITIVE),
        policy="the quotient is treated as constant, including at its steps",
    ),
    elementwise(
        "remainder",
        lambda a, b, y: (1.0, apply("rint", (y - a) / b)),
        on=(_WIDE, _POSITIVE),
        policy="the quotient is treated as constant, including at its steps",
    ),
    elementwise(
        "nextafter", lambda a, b, y: (1.0, None), on=_REALS, policy="1 for the first argument, 0 for the second"
    ),
    elementwise("ldexp", lambda x, n, y: (apply("ldexp", 1.0, n), None), on=(_REALS, _ORDER)),
    elementwise("identity", lambda x, y: 1.0, on=_REALS),
    # arithmetic that comes as a call: fused, or with a rounding direction (libdevice)
    elementwise("fma", lambda a, b, c, y: (b, a, 1.0), on=_REALS),
    elementwise("add", lambda a, b, y: (1.0, 1.0), on=_REALS),
    elementwise("sub", lambda a, b, y: (1.0, -1.0), on=_REALS),
    elementwise("mul", lambda a, b, y: (b, a), on=_REALS),
    elementwise("div", lambda a, b, y: (1.0 / b, -y / b), on=(_REALS, _POSITIVE)),
    elementwise("reciprocal", lambda x, y: -y * y, on=_POSITIVE),
)
