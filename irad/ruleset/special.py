"""Functions that no library has, defined by expressions: the derivatives of the gamma function's logarithm.

`digamma` is ψ = (log Γ)', `trigamma` its derivative. The bodies are straight lines of arithmetic, so that code made
from them vectorises and can be differentiated again. They are written for double precision (`irad.ruleset.expr` takes
single precision through double) and are good to 1e-14. Parts are shared: a walk must visit each only once.

Method: reflection for x < 1/2, the recurrence up to x ≥ 10, the asymptotic series there (DLMF 5.5.2, 5.5.4, 5.11.2,
5.15.5, 5.15.8). Near its positive root, 1.4616…, ψ is the difference of nearly equal numbers under the recurrence; a
rational approximation with the root factored out takes over there (Boost.Math, `digamma_imp_1_2`, 53-bit coefficients,
Boost Software License 1.0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from irad.ruleset import shortcut_slopes
from irad.ruleset.terms import Expr, apply, where

# Arguments are shifted to here, where the series below have all digits of a double.
_SHIFT_TO: Final = 10
# B(2k) / 2k: the coefficients of x**-2k in log x - 1/(2x) - ψ(x)
_DIGAMMA_SERIES: Final = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160)
# B(2k): the coefficients of x**-(2k+1) in ψ'(x) - 1/x - 1/(2x²)
_TRIGAMMA_SERIES: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
# The root, split so that x - root loses nothing.
_ROOT: Final = (1569415565 / 2**30, 381566830 / 2**60, 0.9016312093258695918615325266959189453125e-19)
_NEAR_ROOT_OFFSET: Final = 0.99558162689208984375
_NEAR_ROOT_P: Final = (
    0.25479851061131551,
    -0.32555031186804491,
    -0.65031853770896507,
    -0.28919126444774784,
    -0.045251321448739056,
    -0.0020713321167745952,
)
_NEAR_ROOT_Q: Final = (
    1.0,
    2.0767117023730469,
    1.4606242909763515,
    0.43593529692665969,
    0.054151797245674225,
    0.0021284987017821144,
    -0.55789841321675513e-6,
)


def digamma(x: Expr) -> Expr:
    """ψ(x); infinite at the poles 0, -1, -2, …. Near a negative root the error is absolute, not relative."""
    reflected = x < 0.5
    z = where(reflected, 1.0 - x, x)
    beside_root = where(apply("fabs", z - 1.5) < 0.75, z, 1.5)  # no quotient of infinities far out
    positive = where((z - 1.5) * (z - 1.5) <= 0.25, _digamma_near_root(beside_root), _digamma_by_series(z))
    return where(reflected, positive - math.pi * _cot_pi(_left_half(x)), positive)


def trigamma(x: Expr) -> Expr:
    """ψ'(x); infinite at the poles 0, -1, -2, …."""
    reflected = x < 0.5
    z = where(reflected, 1.0 - x, x)
    shifted, inverse_squares = z, None
    for _ in range(_SHIFT_TO):
        low = shifted < float(_SHIFT_TO)
        # No infinite square where it is not used: zero times its derivatives would be NaN.
        small = apply("fmin", shifted, float(_SHIFT_TO))
        term = where(low, 1.0 / (small * small), 0.0)
        inverse_squares = term if inverse_squares is None else inverse_squares + term
        shifted = where(low, shifted + 1.0, shifted)
    inverse = 1.0 / shifted
    square = inverse * inverse
    series = inverse + square * (0.5 + inverse * _polynomial(square, _TRIGAMMA_SERIES))
    assert inverse_squares is not None
    positive = inverse_squares + series
    sine = _sin_pi(_left_half(x))
    return where(reflected, (math.pi * math.pi) / (sine * sine) - positive, positive)


def _digamma_by_series(z: Expr) -> Expr:
    shifted, inverses = z, None
    for _ in range(_SHIFT_TO):
        low = shifted < float(_SHIFT_TO)
        term = where(low, 1.0 / shifted, 0.0)
        inverses = term if inverses is None else inverses + term
        shifted = where(low, shifted + 1.0, shifted)
    inverse = 1.0 / shifted
    square = inverse * inverse
    assert inverses is not None
    return apply("log", shifted) - 0.5 * inverse - square * _polynomial(square, _DIGAMMA_SERIES) - inverses


def _digamma_near_root(z: Expr) -> Expr:
    """For z in [1, 2]."""
    distance = z - _ROOT[0] - _ROOT[1] - _ROOT[2]
    t = z - 1.0
    ratio = _polynomial(t, _NEAR_ROOT_P) / _polynomial(t, _NEAR_ROOT_Q)
    return distance * _NEAR_ROOT_OFFSET + distance * ratio


def _polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """By Horner's rule; the constant first."""
    result = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        result = result * x + coefficient
    return result


def _fraction(x: Expr) -> Expr:
    """The distance to the nearest integer, exact: the argument reduction of sin πx and cot πx."""
    return x - apply("rint", x)


def _left_half(x: Expr) -> Expr:
    """A number for which reflection is used, or one beside which it has no pole.

    Not `where(x < 0.5, …)`: LLVM knows what comes of it in the branch that is not taken, and computes the pole.
    """
    return where(x - 0.25 < 0.5, x, 0.25)


def _cot_pi(x: Expr) -> Expr:
    """`cot πx`: a tangent is infinite between integers, and its derivatives would cancel there."""
    angle = math.pi * _fraction(x)
    return apply("cos", angle) / apply("sin", angle)


def _sin_pi(x: Expr) -> Expr:
    """|sin πx| with a sign that does not matter."""
    return apply("sin", math.pi * _fraction(x))


BODIES: Final[Mapping[str, Callable[..., Expr]]] = MappingProxyType(
    {"digamma": digamma, "trigamma": trigamma, **shortcut_slopes.BODIES}
)
