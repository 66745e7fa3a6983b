"""The Voigt profile, `V = Re w(z) / (σ √2π)` of `z = (x + iγ) / (σ √2)`, w the Faddeeva function (DLMF 7.19).

    w' = 2i/√π - 2 z w        w'' = -2 (w + z w')        ∂V/∂σ = Re w'' / (2σ² √2π), since ∂z/∂σ = -z/σ

Far from the origin that cancels; the asymptotic series takes over there. For σ = 0 the profile is Lorentz's.
"""

from __future__ import annotations

import math
from typing import Final

from irad.records import dataclass
from irad.ruleset.define import elementwise
from irad.ruleset.expr import Comparison, Expr, Operand, apply, equal, where
from irad.ruleset.interface import Domain, Rule

_SQRT_PI: Final = math.sqrt(math.pi)
_SQRT_TWO: Final = math.sqrt(2.0)
_SQRT_TWO_PI: Final = math.sqrt(2.0 * math.pi)
_FAR: Final = 200.0  # |z|² from where the series is used: what cancels before costs five digits of sixteen at most
_TERMS: Final = 12  # at that |z|² the next one is less than 1e-18 of the first


@dataclass(frozen=True, slots=True)
class _Complex:
    """A complex expression."""

    real: Expr
    imag: Expr

    def __mul__(self, other: _Complex) -> _Complex:
        real = self.real * other.real - self.imag * other.imag
        return _Complex(real, self.real * other.imag + self.imag * other.real)

    def __add__(self, other: _Complex) -> _Complex:
        return _Complex(self.real + other.real, self.imag + other.imag)

    def scaled(self, factor: Operand) -> _Complex:
        return _Complex(self.real * factor, self.imag * factor)

    def times_i(self) -> _Complex:
        return _Complex(-self.imag, self.real)

    def reciprocal(self) -> _Complex:
        size = self.real * self.real + self.imag * self.imag
        return _Complex(self.real / size, -self.imag / size)


def _voigt(x: Expr, sigma: Expr, gamma: Expr, y: Expr) -> tuple[Expr, Expr, Expr]:
    z = _Complex(x / (sigma * _SQRT_TWO), gamma / (sigma * _SQRT_TWO))
    w = _Complex(y * (sigma * _SQRT_TWO_PI), apply("wofz_imag", z.real, z.imag))
    two_over_root = 2.0 / _SQRT_PI
    minus_two_w = (z * w).scaled(-2.0)
    near = _Complex(minus_two_w.real, minus_two_w.imag + two_over_root)
    first, second = _series(z)
    is_far = z.real * z.real + z.imag * z.imag > _FAR
    d_z = _chosen(is_far, first, near)
    again = _chosen(is_far, second, (w + z * near).scaled(-2.0))
    scale = 1.0 / (sigma * sigma * (2.0 * _SQRT_PI))
    squares = x * x + gamma * gamma
    lorentz = 1.0 / (math.pi * squares * squares)
    is_lorentz = equal(sigma, 0.0)
    return (
        where(is_lorentz, -2.0 * (x * gamma * lorentz), d_z.real * scale),
        where(is_lorentz, 0.0, again.real * (scale / _SQRT_TWO)),
        where(is_lorentz, (x * x - gamma * gamma) * lorentz, -d_z.imag * scale),
    )


def _series(z: _Complex) -> tuple[_Complex, _Complex]:
    """First and second derivative of `w ~ i/√π Σ (2n - 1)!! / 2ⁿ z⁻²ⁿ⁻¹`, DLMF 7.12.1."""
    inverse = z.reciprocal()
    square = inverse * inverse
    coefficients = [1.0]
    for n in range(1, _TERMS):
        coefficients.append(coefficients[-1] * (2 * n + 1) / 2.0)
    first = _polynomial(square, coefficients) * square
    second = _polynomial(square, [(2 * n + 2) * c for n, c in enumerate(coefficients)]) * square * inverse
    return first.times_i().scaled(-1.0 / _SQRT_PI), second.times_i().scaled(1.0 / _SQRT_PI)


def _polynomial(x: _Complex, coefficients: list[float]) -> _Complex:
    """By Horner's rule; the constant first."""
    result = x.scaled(coefficients[-1])
    for coefficient in reversed(coefficients[1:-1]):
        result = x * _Complex(result.real + coefficient, result.imag)
    return _Complex(result.real + coefficients[0], result.imag)


def _chosen(condition: Comparison, a: _Complex, b: _Complex) -> _Complex:
    return _Complex(where(condition, a.real, b.real), where(condition, a.imag, b.imag))


RULES: Final[tuple[Rule, ...]] = (
    elementwise(
        "voigt_profile",
        lambda x, sigma, gamma, y: _voigt(x, sigma, gamma, y),
        on=(Domain(-3.0, 3.0), Domain(0.3, 2.0), Domain(0.1, 2.0)),
        kinks="sigma = 0: the Lorentz profile; with respect to sigma, zero in all orders",
        source="DLMF 7.19",
    ),
)
