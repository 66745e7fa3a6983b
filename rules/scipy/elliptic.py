"""Elliptic integrals: Carlson's symmetric ones; by them Legendre's incomplete ones and the arithmetic-geometric mean.

    ∂R_F/∂x = -R_D(y, z, x) / 6                         ∂R_G/∂x = R_F / 4 - x R_D(y, z, x) / 12
    ∂F(φ, m)/∂m = sin³φ R_D(cos²φ, 1, 1 - m sin²φ) / 6     ∂E(φ, m)/∂m = -sin³φ R_D(cos²φ, 1 - m sin²φ, 1) / 6
    ∂M(a, b)/∂a = 2 M² a R_D(0, b², a²) / 3π

In these no term cancels; Legendre's own derivatives (DLMF 19.4) do, at m = 0 and m = 1. With respect to x, R_D is
differentiated as it is computed, by duplication (DLMF 19.36): a relation to R_D of other arguments would cancel where
two are equal. The derivative with respect to z follows, as R_D is homogeneous of degree -3/2.
"""

from __future__ import annotations

import math
from typing import Final

from irad.records import dataclass
from irad.ruleset.define import REFUSED, elementwise
from irad.ruleset.expr import Expr, Operand, apply, expression, where
from irad.ruleset.interface import Domain, Rule

_DUPLICATIONS: Final = 10  # arguments that are 1e16 apart have come within a thousandth of each other by then
_SHAPE: Final = Domain(0.3, 4.0)
_UNIT: Final = Domain(0.05, 0.95)


@dataclass(frozen=True, slots=True)
class _Dual:
    """An expression and its derivative with respect to one variable; None where it does not depend on it."""

    value: Expr
    slope: Expr | None = None

    def __add__(self, other: _Dual) -> _Dual:
        return _Dual(self.value + other.value, _sum(self.slope, other.slope))

    def __mul__(self, other: _Dual) -> _Dual:
        slope = _sum(_scaled(self.slope, other.value), _scaled(other.slope, self.value))
        return _Dual(self.value * other.value, slope)

    def scaled(self, factor: float) -> _Dual:
        return _Dual(self.value * factor, _scaled(self.slope, factor))

    def root(self) -> _Dual:
        root = apply("sqrt", self.value)
        return _Dual(root, _scaled(self.slope, 0.5 / root))

    def reciprocal(self) -> _Dual:
        inverse = 1.0 / self.value
        return _Dual(inverse, _scaled(self.slope, -(inverse * inverse)))


def _sum(a: Expr | None, b: Expr | None) -> Expr | None:
    return a if b is None else b if a is None else a + b


def _scaled(a: Expr | None, factor: Operand) -> Expr | None:
    return None if a is None else a * factor


def _fall(x: Expr, y: Expr, z: Expr) -> Expr:
    """`-∂R_D(x, y, z)/∂x` for positive x."""
    a, b, c = _Dual(x, expression(1.0)), _Dual(y), _Dual(z)
    total, weight = _Dual(expression(0.0)), 1.0
    for _ in range(_DUPLICATIONS):
        p, q, r = a.root(), b.root(), c.root()
        middle = p * q + q * r + r * p
        total += (r * (c + middle)).reciprocal().scaled(3.0 * weight)
        a, b, c, weight = (*((each + middle).scaled(0.25) for each in (a, b, c)), 0.25 * weight)
    inverse = (a + b + c.scaled(3.0)).scaled(0.2).reciprocal()
    one = _Dual(expression(1.0))
    u, v = one + (a * inverse).scaled(-1.0), one + (b * inverse).scaled(-1.0)
    total += (inverse * inverse.root() * _near_equal(u, v)).scaled(weight)
    assert total.slope is not None
    return -total.slope


def _near_equal(u: _Dual, v: _Dual) -> _Dual:
    """R_D of nearly equal arguments that lie by fractions u, v, w of their mean below it (DLMF 19.36.2)."""
    w = (u + v).scaled(-1.0 / 3.0)
    product, square = u * v, w * w
    second, third = product + square.scaled(-6.0), (product.scaled(3.0) + square.scaled(-8.0)) * w
    fourth = (product + square.scaled(-1.0)) * square.scaled(3.0)
    terms = (
        *(_Dual(expression(1.0)), second.scaled(-3.0 / 14.0), third.scaled(1.0 / 6.0)),
        *((second * second).scaled(9.0 / 88.0), fourth.scaled(-3.0 / 22.0)),
    )
    total = terms[0]
    for term in terms[1:]:
        total += term
    return total


def _falls(x: Expr, y: Expr, z: Expr) -> tuple[Expr, Expr]:
    """`-∂R_D/∂x` and x times that; where x is 0 they are infinite and 0, with infinite derivatives."""
    positive = x > 0.0
    safe = where(positive, x, 1.0)
    fall, root = _fall(safe, y, z), apply("sqrt", x)
    return where(positive, fall, 1.0 / root), where(positive, safe * fall, root)


def _rd(x: Expr, y: Expr, z: Expr, value: Expr) -> tuple[Expr, Expr, Expr]:
    (fall_x, along_x), (fall_y, along_y) = _falls(x, y, z), _falls(y, x, z)
    return -fall_x, -fall_y, (along_x + along_y - 1.5 * value) / z


def _rf(x: Expr, y: Expr, z: Expr) -> tuple[Expr, Expr, Expr]:
    return _rf_slope(x, y, z), _rf_slope(y, z, x), _rf_slope(z, x, y)


def _rf_slope(x: Expr, y: Expr, z: Expr) -> Expr:
    return apply("elliprd", y, z, x) / -6.0


def _rg(x: Expr, y: Expr, z: Expr, value: Expr) -> tuple[Expr, Expr, Expr]:
    return _rg_slope(x, y, z, value), _rg_slope(y, z, x, value), _rg_slope(z, x, y, value)


def _rg_slope(x: Expr, y: Expr, z: Expr, value: Expr) -> Expr:
    """`∂R_G/∂x`; where both others are 0, R_G is `½√x`."""
    positive, several = x > 0.0, y + z > 0.0
    safe, other = where(positive, x, 1.0), where(several, y, 1.0)
    along = where(positive, safe * apply("elliprd", other, z, safe), apply("sqrt", x))
    return where(several, 0.25 * apply("elliprf", x, other, z) - along / 12.0, 0.5 * value / x)


def _rc(x: Expr, y: Expr, value: Expr) -> tuple[Expr, Expr]:
    """By R_D; of negative y, where R_C is a principal value, as it is homogeneous (DLMF 19.18.13)."""
    principal = y < 0.0
    above, below = where(principal, 1.0, y), where(principal, y, -1.0)
    root = apply("sqrt", x)
    d_x = (1.0 / root - value) / (2.0 * (x - below))
    along = (root - x * value) / (2.0 * (x - below))
    return (
        where(principal, d_x, apply("elliprd", above, above, x) / -6.0),
        where(principal, (-0.5 * value - along) / below, apply("elliprd", x, above, above) / -3.0),
    )


def _agm(a: Expr, b: Expr, value: Expr) -> tuple[Expr, Expr]:
    """With arguments scaled by their sum; if one is 0, so is the mean, whose slope is infinite with respect to it."""
    size = where(apply("fabs", a) + apply("fabs", b) > 0.0, a + b, 1.0)
    mean = value / size
    return _agm_slope(a / size, b / size, mean), _agm_slope(b / size, a / size, mean)


def _agm_slope(a: Expr, b: Expr, mean: Expr) -> Expr:
    first, second = where(a > 0.0, a, 1.0), where(b > 0.0, b, 1.0)
    slope = (2.0 / (3.0 * math.pi)) * (mean * mean * first) * apply("elliprd", 0.0, second * second, first * first)
    return where(
        b > 0.0, where(a > 0.0, slope, where(a < 0.0, mean, 1.0 / apply("fabs", a))), mean
    )  # NaN of opposite signs


def reduced(phi: Expr) -> tuple[Expr, Expr, Expr]:
    """The number of half turns in an angle, and sine and cosine of the rest."""
    half_turns = apply("rint", phi / math.pi)
    rest = phi - math.pi * half_turns
    return half_turns, apply("sin", rest), apply("cos", rest)


def first_kind_by_m(phi: Expr, m: Expr) -> Expr:
    """`∂F(φ, m)/∂m`."""
    turns, s, c = reduced(phi)
    rest = where(apply("fabs", turns) > 0.0, 1.0 - m, 1.0)  # no infinity times 0 at m = 1
    square = c * c + (1.0 - m) * (s * s)  # 1 - m sin²φ, which would cancel
    part = s * s * s * apply("elliprd", c * c, 1.0, square) / 6.0
    return turns * apply("elliprd", 0.0, 1.0, rest) / 3.0 + part


def _second_kind_by_m(phi: Expr, m: Expr) -> Expr:
    """`∂E(φ, m)/∂m`."""
    turns, s, c = reduced(phi)
    rest = where(apply("fabs", turns) > 0.0, 1.0 - m, 1.0)
    square = c * c + (1.0 - m) * (s * s)
    part = s * s * s * apply("elliprd", c * c, square, 1.0) / 6.0
    return -(turns * apply("elliprd", 0.0, rest, 1.0) / 3.0) - part


def _wave(m: Expr, phi: Expr) -> Expr:
    """The integrand of the second kind, `sqrt(1 - m sin² φ)`."""
    _, s, c = reduced(phi)
    return apply("sqrt", c * c + (1.0 - m) * (s * s))


RULES: Final[tuple[Rule, ...]] = (
    elementwise("elliprc", lambda x, y, v: _rc(x, y, v), on=_SHAPE, source="DLMF 19.18"),
    elementwise("elliprd", lambda x, y, z, v: _rd(x, y, z, v), on=_SHAPE, source="DLMF 19.18, 19.36"),
    elementwise("elliprf", lambda x, y, z, v: _rf(x, y, z), on=_SHAPE, source="DLMF 19.18"),
    elementwise("elliprg", lambda x, y, z, v: _rg(x, y, z, v), on=_SHAPE, source="DLMF 19.18"),
    elementwise("elliprj", lambda x, y, z, p, v: (REFUSED,) * 4, on=_SHAPE),
    elementwise("agm", lambda a, b, v: _agm(a, b, v), on=_SHAPE, kinks="zero if both are 0", source="DLMF 19.8.6"),
    elementwise(
        "ellipkinc",
        lambda phi, m, v: (1.0 / _wave(m, phi), first_kind_by_m(phi, m)),
        on=(Domain(0.05, 1.5), _UNIT),
        source="DLMF 19.25",
    ),
    elementwise(
        "ellipeinc",
        lambda phi, m, v: (_wave(m, phi), _second_kind_by_m(phi, m)),
        on=(Domain(0.05, 1.5), _UNIT),
        source="DLMF 19.25",
    ),
)
