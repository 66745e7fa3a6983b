"""SciPy's special functions, as `scipy.special.cython_special` exports them: one entry a function.

They reach Numba by address (`numba.extending.get_cython_function_address`, ctypes); `irad.frontend.external` names
them `scipy.special.…`. Those that the C library has too (`erf`, `j0`, …) share the entries of `irad.rules.elementwise`.
With respect to an order or a shape parameter no closed form is known; a program that needs that derivative is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from irad.rules.elementwise import of_length, polynomial, pow_by_base, pow_by_exponent, times_pi
from irad.ruleset.define import REFUSED, Partial, elementwise
from irad.ruleset.expr import Comparison, Expr, Operand, apply, equal, expression, is_nan, sign, where
from irad.ruleset.interface import Domain, Rule

_SQRT_PI: Final = math.sqrt(math.pi)
_SQRT_TWO_PI: Final = math.sqrt(2.0 * math.pi)
_SQRT_HALF: Final = math.sqrt(0.5)
_DEGREE: Final = math.pi / 180.0
_HUGE: Final = 3e38  # in place of an infinite logarithm: its product with 0 is 0; finite in single precision, too

_REALS: Final = Domain(-3.0, 3.0, (0.0,))
_POSITIVE: Final = Domain(0.1, 5.0)
_UNIT: Final = Domain(0.05, 0.95)
_ORDER: Final = Domain(0.5, 4.0)
_SHAPE: Final = Domain(0.3, 4.0)
_WHOLE: Final = Domain(1.0, 4.0)


def _exp(x: Expr) -> Expr:
    return apply("exp", x)


def _log(x: Operand) -> Expr:
    return apply("log", x)


def _psi(x: Expr) -> Expr:
    return apply("digamma", x)


def _from_neighbouring_orders(name: str, factor: float, sign_of_next: float) -> Callable[[Expr, Expr], Expr]:
    """Derivative of a Bessel function, from those of the neighbouring orders (DLMF 10.6.1, 10.29.1)."""
    return lambda v, x: factor * (apply(name, v - 1.0, x) + sign_of_next * apply(name, v + 1.0, x))


_jv = _from_neighbouring_orders("jv", 0.5, -1.0)
_yv = _from_neighbouring_orders("yv", 0.5, -1.0)
_iv = _from_neighbouring_orders("iv", 0.5, 1.0)
_kv = _from_neighbouring_orders("kv", -0.5, 1.0)
_kve = _from_neighbouring_orders("kve", -0.5, 1.0)


def _log_expit(x: Expr) -> Expr:
    """`1 / (1 + eˣ)`, without an infinite power."""
    positive = x > 0.0
    power = _exp(where(positive, -x, x))
    return where(positive, power, 1.0) / (1.0 + power)


def _inverse_mills(x: Expr) -> Expr:
    """Density over distribution function of the normal distribution: of positive numbers itself, of negative scaled."""
    density = _exp(-0.5 * (x * x)) / _SQRT_TWO_PI
    positive = x > 0.0
    scaled = math.sqrt(2.0 / math.pi) / apply("erfcx", -_SQRT_HALF * where(positive, -1.0, x))
    return where(positive, density / apply("normcdf", x), scaled)


def _power(p: Expr, x: Expr, log: Expr) -> tuple[Expr, Expr]:
    """`xᵖ` as a factor and a logarithm; a factor where p is small, whose derivatives at 0 are right, or the other.

    Args:
        log: the logarithm of x; it may be infinite.
    """
    small = p < 4.0
    return where(small, apply("pow", x, where(small, p, 0.0)), 1.0), where(small, 0.0, p * log)


def _gamma_density(a: Expr, x: Expr) -> Expr:
    factor, log = _power(a - 1.0, x, _log(x))
    return factor * _exp(log - x - apply("lgamma", a))


def _beta_density(a: Operand, b: Operand, x: Expr, rest: Expr | None = None) -> Expr:
    """Density of the beta distribution; ``rest`` is `1 - x`, if that is known better."""
    a, b = expression(a), expression(b)
    log_of = apply("log1p", -x) if rest is None else _log(rest)
    scale = apply("lgamma", a) + apply("lgamma", b) - apply("lgamma", a + b)
    factor, log = _power(a - 1.0, x, _log(x))
    factor_of_rest, log_of_rest = _power(b - 1.0, 1.0 - x if rest is None else rest, log_of)
    return factor * factor_of_rest * _exp(log + log_of_rest - scale)


def _chdtrc(v: Expr, x: Expr) -> Expr:
    """SciPy's function is 1 below 0."""
    below = x < 0.0
    return where(below, 0.0, -0.5 * _gamma_density(0.5 * v, 0.5 * where(below, 1.0, x)))


def _f_density(a: Expr, b: Expr, x: Expr) -> Expr:
    """Density of the F distribution, by the beta distribution of `ax / (ax + b)`."""
    total = a * x + b
    rest = b / total
    return _beta_density(0.5 * a, 0.5 * b, a * x / total, rest) * (a * rest / total)


def _gdtr(a: Expr, b: Expr, x: Expr, sign: float) -> tuple[Partial, Partial, Partial]:
    """Partials of the gamma distribution of rate a and shape b."""
    return sign * _gdtr_slope(b, a, x), REFUSED, sign * _gdtr_slope(b, x, a)


def _gdtr_slope(b: Expr, u: Expr, w: Expr) -> Expr:
    """With respect to one of two factors, u: `wᵇ uᵇ⁻¹ exp(-uw) / Γ(b)`; the density may be infinite where w is 0."""
    some = w > 0.0
    density = _gamma_density(b, u * where(some, w, 1.0))
    first, second = where(some, 1.0, u), where(some, 1.0, w)
    power = apply("pow", second, b) * apply("pow", first, b - 1.0)
    return where(some, where(some, w, 1.0) * density, power * _exp(-(first * second) - apply("lgamma", b)))


def _poisson_weight(k: Expr, m: Expr) -> Expr:
    """Probability of the whole part of k."""
    return _gamma_density(apply("floor", k) + 1.0, m)


def _binomial_slope(k: Expr, n: Expr, p: Expr) -> Expr:
    """Derivative with respect to p of the probability of more than k of n; 0 where that is 0 or 1."""
    k, n = apply("floor", k), apply("trunc", n)
    below, some = k < n, k >= 0.0
    density = _beta_density(where(some, k, 0.0) + 1.0, where(below, where(some, n - k, 1.0), 1.0), p)
    return where(some, where(below, density, 0.0), 0.0)


def _negative_binomial_slope(k: Expr, n: Expr, p: Expr) -> Expr:
    """Derivative with respect to p of the probability of at most k failures before n successes."""
    return _beta_density(apply("trunc", n), apply("trunc", k) + 1.0, p)


def _t_density(v: Expr, t: Expr) -> Expr:
    half = 0.5 * (v + 1.0)
    scale = apply("lgamma", half) - apply("lgamma", 0.5 * v) - 0.5 * _log(math.pi * v)
    return _exp(scale - half * apply("log1p", t * t / v))


def _noncentral_density(x: Expr, df: Expr, nc: Expr) -> Expr:
    """Density of the noncentral chi-squared distribution: by ₀F₁, smooth at nc = 0; where it is large, by scaled I."""
    half, order = 0.5 * df, 0.5 * df - 1.0
    large = nc * x > 1e4
    factor, log = _power(order, 0.5 * x, _log(0.5 * x))
    central = factor * _exp(log - 0.5 * (x + nc) - apply("lgamma", half))
    z, c = where(large, x, 1.0), where(large, nc, 1.0)
    distance = apply("sqrt", z) - apply("sqrt", c)
    scaled = _exp(0.5 * order * _log(z / c) - 0.5 * (distance * distance)) * apply("ive", order, apply("sqrt", c * z))
    return 0.5 * where(large, scaled, central * apply("hyp0f1", half, where(large, 0.0, 0.25 * (nc * x))))


def _d_noncentrality(x: Expr, df: Expr, nc: Expr) -> Expr:
    """Derivative of the distribution function with respect to the noncentrality."""
    return 0.5 * (apply("chndtr", x, df + 2.0, nc) - apply("chndtr", x, df, nc))


def _chndtr(x: Expr, df: Expr, nc: Expr) -> tuple[Partial, Partial, Partial]:
    return _noncentral_density(x, df, nc), REFUSED, _d_noncentrality(x, df, nc)


def _chndtrix(df: Expr, nc: Expr, y: Expr) -> tuple[Partial, Partial, Partial]:
    slope = 1.0 / _noncentral_density(y, df, nc)
    return slope, REFUSED, -_d_noncentrality(y, df, nc) * slope


def _exprel(x: Expr, y: Expr) -> Expr:
    """`(exp x - y) / x`; near 0, where that cancels, the power series of it; no difference of infinities far out."""
    near = x * x < 1.0
    z = where(near, 2.0, x)
    far = where(x > 0.0, y - (y - 1.0) / z, (_exp(x) - y) / z)
    return where(near, _exprel_series(where(near, x, 0.0)), far)


def _exprel_series(x: Expr) -> Expr:
    """The derivative of `(exp x - 1) / x` for |x| < 1."""
    return polynomial([1.0 / (math.factorial(k) * (k + 2)) for k in range(19)], x)


def _boxcox(x: Expr, log: Expr, p: Expr) -> tuple[Expr, Expr]:
    """Of `(xᵖ - 1) / p`: with respect to p `log² x` times the derivative of `(eᵘ - 1) / u`, `u = p log x`.

    Args:
        log: the logarithm of x.
    """
    return apply("pow", x, p - 1.0), _boxcox_by_power(x > 0.0, log, p, apply("pow", x, p))


def _boxcox_by_power(positive: Comparison, log: Expr, p: Expr, power: Expr) -> Expr:
    """The second partial; ``power`` is `xᵖ`."""
    infinite, log = log, where(positive, where(log < _HUGE, log, _HUGE), -_HUGE)  # a product with 0 is to be 0
    u = p * log
    near = u * u < 1.0
    small = where(near, u, 0.0)
    log_nearby = where(near, infinite, 0.0)
    series = log_nearby * log_nearby * _exprel_series(small)
    exponent = where(near, 1.0, p)
    return where(near, series, (1.0 + power * (p * log - 1.0)) / (exponent * exponent))


def _inverse_boxcox(z: Expr, p: Expr, x: Expr) -> tuple[Expr, Expr]:
    """Of `x = (1 + pz)^(1/p)`: `dx/dz = x / (1 + pz)`, and what follows for p, for `log x = z log(1 + pz) / pz`."""
    power = 1.0 + p * z
    log = -(z * _spence(where(power > 0.0, power, 1.0)))
    by_power = apply("fabs", p) > 1e-3
    exponent = 1.0 / where(by_power, p, 1.0) - 1.0
    slope = where(by_power, apply("pow", where(power < 0.0, x, power), exponent), x / where(power > 0.0, power, 1.0))
    return slope, -(slope * _boxcox_by_power(power > 0.0, log, p, power))


# Power series at m = 0 of the complete elliptic integrals (DLMF 19.5.1, 19.5.2), differentiated.
_SQUARES: Final = [(math.comb(2 * n, n) / 4.0**n) ** 2 for n in range(1, 36)]
_ELLIPK_SERIES: Final = [0.5 * math.pi * n * c for n, c in enumerate(_SQUARES, 1)]
_ELLIPE_SERIES: Final = [0.5 * math.pi * n * c / (1 - 2 * n) for n, c in enumerate(_SQUARES, 1)]


def _elliptic(series: Sequence[float], m: Expr, difference: Expr) -> Expr:
    """`difference / 2m` (DLMF 19.4.1, 19.4.2); near 0, where that cancels, the power series; 0 at minus infinity."""
    near = m * m < 0.09
    far = where(m > -math.inf, difference, 0.0) / where(apply("fabs", m) < 0.2, 1.0, 2.0 * m)
    return where(near, polynomial(series, where(near, m, 0.0)), far)


def _ellipk(m: Expr, p: Expr, y: Expr) -> Expr:
    return _elliptic(_ELLIPK_SERIES, m, apply("ellipe", m) / p - y)


def _spence(z: Expr) -> Expr:
    """`log z / (1 - z)`; around 1, where its derivatives cancel, the power series."""
    t = 1.0 - z
    near = t * t < 0.09
    series = polynomial([-1.0 / (k + 1) for k in range(36)], where(near, t, 0.0))
    # Not where(near, …) again: LLVM knows what comes of it in this branch, and computes 0 / 0.
    return where(near, series, _log(z) / where(apply("fabs", t) < 0.2, -1.0, t))


def _ratio(x: Expr, a: Expr) -> Expr:
    """`x / a`, zero where both are."""
    numerator, denominator = where(equal(x, 0.0), 0.0, x), where(equal(x, 0.0), 1.0, a)
    return where(equal(a, 0.0), numerator, x) / where(equal(a, 0.0), denominator, a)


def _relative_entropy(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """`log (a / b)` and `a / b`; a difference of logarithms, with their slopes, where the ratio is 0 or infinite."""
    ratio = _ratio(a, b)
    nothing = equal(apply("fabs", a) + apply("fabs", b), 0.0)
    numerator = where(ratio > 0.0, where(ratio < math.inf, ratio, a), where(nothing, 1.0, a))
    denominator = where(ratio > 0.0, where(ratio < math.inf, 1.0, b), where(nothing, 1.0, b))
    return _log(numerator) - _log(denominator), ratio


def _rel_entr(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    logarithm, ratio = _relative_entropy(a, b)
    return where(equal(ratio, 0.0), where(equal(b, 0.0), 0.0, logarithm + 1.0), logarithm + 1.0), -ratio


def _kl_div(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    logarithm, ratio = _relative_entropy(a, b)
    return logarithm, 1.0 - ratio


def _expn(name: str, n: Expr, x: Expr, y: Expr) -> Expr:
    """`-Eₙ₋₁`; below n = 2, where SciPy has none for a negative order, by the recurrence (DLMF 8.19.12)."""
    return -where(n > 1.0, apply(name, n - 1.0, x), (_exp(-x) - (n - 1.0) * y) / x)


def _psi_difference(a: Expr, b: Expr, bound: Expr) -> Expr:
    """`ψ(a) - ψ(a + b)`, 0 where the bound is infinite."""
    finite = bound < math.inf
    difference = _psi(where(finite, a, 1.0)) - _psi(where(finite, a + b, 1.0))
    return where(finite, difference, where(is_nan(bound), bound, 0.0))


def _beta(a: Expr, b: Expr, y: Expr) -> tuple[Expr, Expr]:
    return y * _psi_difference(a, b, a + b), y * _psi_difference(b, a, a + b)


def _ive(v: Expr, x: Expr, y: Expr) -> Expr:
    """Like `iv`, scaled; SciPy has NaN for a negative order at 0, where the function is infinite."""
    below = apply("ive", v - 1.0, x)
    infinite = where(v < 1.0, where(v > 0.0, 1.0 / apply("fabs", x), below), below)
    return 0.5 * (where(equal(x, 0.0), infinite, below) + apply("ive", v + 1.0, x)) - sign(x) * y


def _wrightomega(y: Expr) -> Expr:
    """`y / (1 + y)`, written so that neither is infinite."""
    small = y < 1.0
    a, b = where(small, y, 0.0), where(small, 1.0, y)
    return where(small, a / (1.0 + a), 1.0 / (1.0 + 1.0 / b))


def _dawsn(x: Expr, y: Expr) -> Expr:
    """`1 - 2xy`; far out, where that cancels, the asymptotic series."""
    terms = [1.0]
    for k in range(1, 30):
        terms.append(terms[-1] * (2 * k + 1) / 2.0)
    far = x * x > 49.0
    square = 1.0 / where(far, x * x, 49.0)  # the series is not to overflow where it is not used
    return where(far, -0.5 * square * polynomial(terms, square), 1.0 - 2.0 * (x * y))


def _i1_slope(x: Expr, i0: Expr, y: Expr, scale: Operand) -> Expr:
    """`I₀ - I₁/x`, scaled; near 0, where that cancels in its derivatives, the power series."""
    near = x * x < 1.0
    terms = [(2 * k + 1) / (2 * 4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(12)]
    small = where(near, x, 0.0)
    return where(near, scale * polynomial(terms, small * small), i0 - y / where(near, 1.0, x))


def _i1e(x: Expr, y: Expr) -> Expr:
    return _i1_slope(x, apply("i0e", x), y, _exp(-apply("fabs", x))) - sign(x) * y


def _cotdg(x: Expr) -> Expr:
    sine = apply("sindg", x)
    return -_DEGREE / (sine * sine)


def _huber(delta: Expr, r: Expr) -> tuple[Expr, Expr]:
    size = apply("fabs", r)
    inside = size <= delta
    return where(inside, 0.0, size - delta), where(inside, r, delta * sign(r))


def _pseudo_huber(delta: Expr, r: Expr) -> tuple[Expr, Expr]:
    """Of `δ (R - δ)`, `R² = δ² + r²`: no power of a large or small number, and for small r no cancelling difference."""
    size, is_large = apply("hypot", delta, r), apply("fabs", r) > delta
    sine, cosine, u = of_length(r, size), of_length(delta, size), of_length(r, size + delta)
    d_delta = where(is_large, size - 2.0 * delta + delta * cosine, r * sine * (u * u))
    return d_delta, where(is_large, delta * sine, r * cosine)


def _owens_t(h: Expr, a: Expr) -> tuple[Expr, Expr]:
    square = 1.0 + a * a
    d_h = -_exp(-0.5 * (h * h)) * apply("erf", _SQRT_HALF * (a * h)) / (2.0 * _SQRT_TWO_PI)
    return d_h, _exp(-0.5 * (h * h) * square) / (2.0 * math.pi * square)


def _rgamma(x: Expr, y: Expr) -> Expr:
    """`-ψ/Γ`; below ½ by reflection."""
    reflected = x < 0.5
    above = where(reflected, 1.0, where(x < 200.0, x, 200.0))  # the value is 0 from there on
    return where(reflected, _rgamma_by_reflection(where(reflected, x, 0.0)), -(y * _psi(above)))


def _rgamma_by_reflection(x: Expr) -> Expr:
    """The derivative of `1/Γ`, `Γ(1 - x) sin πx / π`, for x below ½: ψ may be infinite there."""
    rest = 1.0 - x
    return apply("tgamma", rest) * (times_pi("cos", x) - _psi(rest) * (times_pi("sin", x) / math.pi))


def _binom(n: Expr, k: Expr, y: Expr) -> tuple[Expr, Expr]:
    """By ψ of `k + 1` and `n - k + 1`; where one of them is below ½, by its reflection, since ψ may be infinite there.

    Of n above -1. Below, where SciPy's function has poles, the derivatives are infinite or NaN at these.
    """
    first, second = k + 1.0, n - k + 1.0
    of_first = _binom_slope(first, second, n, y)
    of_second = _binom_slope(second, first, n, y)
    return of_second, of_first - of_second


def _binom_slope(a: Expr, b: Expr, n: Expr, y: Expr) -> Expr:
    """Derivative of `Γ(a + b - 1) / (Γ(a) Γ(b))`, y, with respect to a; ``n`` is `a + b - 2`."""
    whole = _psi(n + 1.0)
    reflected = a < 0.5
    rest, left = where(reflected, 1.0 - a, 1.0), where(reflected, a, 0.0)
    scale = apply("beta", where(reflected, n + 1.0, 1.0), rest)
    below = scale * ((whole - _psi(rest)) * (times_pi("sin", left) / math.pi) + times_pi("cos", left))
    return where(reflected, below, y * (whole - _psi(where(reflected, 1.0, a))))


def _poch(a: Expr, m: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Of `Γ(a + m) / Γ(a)`."""
    reflected = a < 0.5
    of_sum = _psi(a + m)
    below = y * of_sum + apply("tgamma", where(reflected, a + m, 1.0)) * _rgamma_by_reflection(where(reflected, a, 0.0))
    return where(reflected, below, y * (of_sum - _psi(where(reflected, 1.0, a)))), y * of_sum


def _struve(name: str, sign_of_next: float, v: Expr, x: Expr, y: Expr) -> Expr:
    """From the neighbouring orders (DLMF 11.4.24, 11.4.26); of order 0 from the next: that of -1 is not smooth at 0."""
    following = apply(name, v + 1.0, x)
    term = apply("pow", 0.5 * x, v) * apply("rgamma", v + 1.5) / _SQRT_PI
    between = 0.5 * (apply(name, v - 1.0, x) + sign_of_next * following + term)
    return where(equal(v, 0.0), sign_of_next * following + term, between)


def _struve_quotient(x: Expr) -> Expr:
    """`H₀(x) / x`; near 0, where that cancels in its derivatives, the power series (DLMF 11.2.1)."""
    near = x * x < 1.0
    small = where(near, x, 0.0)
    terms = [2.0 / math.pi]
    for k in range(1, 12):
        terms.append(-terms[-1] / (2 * k + 1) ** 2)
    return where(
        near, polynomial(terms, small * small), apply("struve", 0.0, x) / where(apply("fabs", x) < 0.75, 1.0, x)
    )


def kelvin_bends(x: Expr, ber: Expr, bei: Expr, d_ber: Expr, d_bei: Expr) -> tuple[Expr, Expr]:
    """`ber''` and `bei''` by the differential equation (DLMF 10.61.3); near 0, where that cancels, power series."""
    near = x * x < 1.0
    small, divisor = where(near, x, 0.0), where(apply("fabs", x) < 0.75, 1.0, x)
    square = small * small
    of_ber = [_kelvin_term(4 * k) * (-1) ** k for k in range(1, 7)]
    of_bei = [_kelvin_term(4 * k + 2) * (-1) ** k for k in range(7)]
    return (
        where(near, square * polynomial(of_ber, square * square), -bei - d_ber / divisor),
        where(near, polynomial(of_bei, square * square), ber - d_bei / divisor),
    )


def _kelvin_term(power: int) -> float:
    """Coefficient of `x` to a power, less 2, in a second derivative."""
    return power * (power - 1) / float(2**power * math.factorial(power // 2) ** 2)


def _kolmogorov_density(x: Expr) -> Expr:
    """Density of the limit distribution of Kolmogorov's statistic, by one of two series: for small x or large."""
    small, large = where(x > 0.03, where(x < 1.0, x, 1.0), 0.03), where(x < 1.0, 1.0, where(x < 30.0, x, 30.0))
    square = 1.0 / (small * small)
    near = far = expression(0.0)
    for k in range(1, 5):
        rate = (2 * k - 1) ** 2 * math.pi**2 / 8.0
        near = near + _exp(-rate * square) * (2.0 * rate * square - 1.0)
        far = far + (8.0 * (-1) ** (k - 1) * k * k) * _exp((-2.0 * k * k) * (large * large))
    return where(x < 1.0, _SQRT_TWO_PI * square * near, large * far)


def _normal_density_inverse(z: Expr) -> Expr:
    return _SQRT_TWO_PI * _exp(0.5 * (z * z))


def _nrdtrimn(p: Expr, deviation: Expr) -> tuple[Expr, Expr, float]:
    z = apply("normcdfinv", p)
    return -(deviation * _normal_density_inverse(z)), -z, 1.0


def _nrdtrisd(mean: Expr, p: Expr, x: Expr, y: Expr) -> tuple[Expr, Expr, Expr]:
    z = apply("normcdfinv", p)
    return -1.0 / z, -(y / z) * _normal_density_inverse(z), 1.0 / z


def _between_orders(name: str, factor: float, sign_of_next: float, n: Expr, x: Expr) -> Expr:
    """Slope of a Bessel function of whole order, which drops the rest of a number."""
    whole = apply("trunc", n)
    return factor * (apply(name, whole - 1.0, x) + sign_of_next * apply(name, whole + 1.0, x))


def _kn(n: Expr, x: Expr) -> tuple[Partial, Partial]:
    return None, _between_orders("kv", -0.5, 1.0, n, x)


def _yn(n: Expr, x: Expr) -> tuple[Partial, Partial]:
    return None, _between_orders("yv", 0.5, -1.0, n, x)


_EDGE = "zero with respect to the second argument if the first is 0, even if the logarithm is infinite"
_BOTH_ZERO = "zero where both are 0"
_BOTH_ZERO_TOO = "zero and one if both are 0"
_STEPS = "counts have no derivative: only their whole part counts"

RULES: Final[tuple[Rule, ...]] = (
    # logistic, normal distribution, logarithms
    elementwise("expit", lambda x, y: y * (1.0 - y), on=_REALS),
    elementwise("logit", lambda x, y: 1.0 / (x * (1.0 - x)), on=_UNIT),
    elementwise("log_expit", lambda x, y: _log_expit(x), on=_REALS),
    elementwise("log_ndtr", lambda x, y: _inverse_mills(x), on=Domain(-20.0, 5.0)),
    elementwise("ndtri_exp", lambda x, y: 1.0 / _inverse_mills(y), on=Domain(-20.0, -0.1)),
    elementwise("xlogy", lambda x, a, y: (_log(a), _ratio(x, a)), on=_POSITIVE, kinks=_EDGE),
    elementwise("xlog1py", lambda x, a, y: (apply("log1p", a), _ratio(x, 1.0 + a)), on=_POSITIVE, kinks=_EDGE),
    elementwise("entr", lambda x, y: -_log(x) - 1.0, on=_POSITIVE),
    elementwise("rel_entr", lambda a, b, y: _rel_entr(a, b), on=_POSITIVE, kinks=_BOTH_ZERO),
    elementwise("kl_div", lambda a, b, y: _kl_div(a, b), on=_POSITIVE, kinks=_BOTH_ZERO_TOO),
    elementwise("exprel", lambda x, y: _exprel(x, y), on=_REALS, also=(1.0, -1.0, 1e-9)),
    elementwise("boxcox", lambda x, p, y: _boxcox(x, _log(x), p), on=(_POSITIVE, _SHAPE)),
    elementwise("boxcox1p", lambda x, p, y: _boxcox(1.0 + x, apply("log1p", x), p), on=(_POSITIVE, _SHAPE)),
    elementwise("inv_boxcox", lambda z, p, y: _inverse_boxcox(z, p, y), on=(_POSITIVE, _SHAPE)),
    elementwise("inv_boxcox1p", lambda z, p, y: _inverse_boxcox(z, p, 1.0 + y), on=(_POSITIVE, _SHAPE)),
    elementwise(
        "powm1",
        lambda x, p, y: (pow_by_base(x, p), pow_by_exponent(x, p, apply("pow", x, p))),
        on=(_POSITIVE, _REALS),
        policy="with respect to the exponent, NaN if the base is negative",
        kinks="zero, in all orders, if both are 0",
    ),
    elementwise("huber", lambda d, r, y: _huber(d, r), on=(_POSITIVE, _REALS)),
    elementwise("pseudo_huber", lambda d, r, y: _pseudo_huber(d, r), on=(_POSITIVE, _REALS), kinks=_BOTH_ZERO),
    elementwise("cosm1", lambda x, y: -apply("sin", x), on=_REALS),
    elementwise("sindg", lambda x, y: _DEGREE * apply("cosdg", x), on=Domain(-200.0, 200.0)),
    elementwise("cosdg", lambda x, y: -_DEGREE * apply("sindg", x), on=Domain(-200.0, 200.0)),
    elementwise("tandg", lambda x, y: _DEGREE * (1.0 + y * y), on=Domain(-80.0, 80.0)),
    elementwise("cotdg", lambda x, y: _cotdg(x), on=Domain(10.0, 170.0)),
    elementwise("wrightomega", lambda x, y: _wrightomega(y), on=_REALS),
    elementwise("radian", lambda d, m, s, y: (_DEGREE, _DEGREE / 60.0, _DEGREE / 3600.0), on=_REALS),
    # error functions, exponential integrals
    elementwise("erfi", lambda x, y: (2.0 / _SQRT_PI) * _exp(x * x), on=_REALS),
    elementwise("dawsn", lambda x, y: _dawsn(x, y), on=_REALS, also=(7.0,), source="DLMF 7.10.4"),
    elementwise("spence", lambda z, y: _spence(z), on=_POSITIVE, also=(1.0,)),
    elementwise("expi", lambda x, y: _exp(x) / x, on=_POSITIVE, also=(-1.5,)),
    elementwise("exp1", lambda x, y: -_exp(-x) / x, on=_POSITIVE),
    elementwise("expn", lambda n, x, y: (REFUSED, _expn("expn", n, x, y)), on=(Domain(1.0, 4.0), _POSITIVE)),
    elementwise("expn_integer", lambda n, x, y: (None, _expn("expn_integer", n, x, y)), on=(_WHOLE, _POSITIVE)),
    elementwise("owens_t", lambda h, a, y: _owens_t(h, a), on=_REALS),
    # gamma and beta functions
    elementwise("beta", lambda a, b, y: _beta(a, b, y), on=_SHAPE),
    elementwise("betaln", lambda a, b, y: (_psi_difference(a, b, a), _psi_difference(b, a, b)), on=_SHAPE),
    elementwise("gammainc", lambda a, x, y: (REFUSED, _gamma_density(a, x)), on=(_SHAPE, _POSITIVE)),
    elementwise("gammaincc", lambda a, x, y: (REFUSED, -_gamma_density(a, x)), on=(_SHAPE, _POSITIVE)),
    elementwise("gammaincinv", lambda a, p, y: (REFUSED, 1.0 / _gamma_density(a, y)), on=(_SHAPE, _UNIT)),
    elementwise("gammainccinv", lambda a, p, y: (REFUSED, -1.0 / _gamma_density(a, y)), on=(_SHAPE, _UNIT)),
    elementwise("betainc", lambda a, b, x, y: (REFUSED, REFUSED, _beta_density(a, b, x)), on=(_SHAPE, _SHAPE, _UNIT)),
    elementwise("betaincc", lambda a, b, x, y: (REFUSED, REFUSED, -_beta_density(a, b, x)), on=(_SHAPE, _SHAPE, _UNIT)),
    elementwise(
        "betaincinv", lambda a, b, p, y: (REFUSED, REFUSED, 1.0 / _beta_density(a, b, y)), on=(_SHAPE, _SHAPE, _UNIT)
    ),
    elementwise("stdtr", lambda v, t, y: (REFUSED, _t_density(v, t)), on=(_SHAPE, _REALS)),
    elementwise("stdtrit", lambda v, p, y: (REFUSED, 1.0 / _t_density(v, y)), on=(_SHAPE, _UNIT)),
    elementwise("chndtr", lambda x, df, nc, y: _chndtr(x, df, nc), on=(_POSITIVE, _SHAPE, _SHAPE), also=(2.0,)),
    elementwise("chndtrix", lambda p, df, nc, y: _chndtrix(df, nc, y), on=(_UNIT, _SHAPE, _SHAPE)),
    elementwise("gammasgn", lambda x, y: None, on=_POSITIVE, policy="zero everywhere, including the steps"),
    elementwise("rgamma", lambda x, y: _rgamma(x, y), on=_POSITIVE, also=(-0.5, -2.3)),
    elementwise("binom", lambda n, k, y: _binom(n, k, y), on=(Domain(0.5, 5.0), _REALS)),
    elementwise(
        "poch",
        lambda a, m, y: _poch(a, m, y),
        on=(Domain(0.3, 4.0, (0.0,)), _SHAPE),
        policy="NaN if the first argument and the sum of both are 0 or negative integers",
    ),
    elementwise(
        "betainccinv", lambda a, b, p, y: (REFUSED, REFUSED, -1.0 / _beta_density(a, b, y)), on=(_SHAPE, _SHAPE, _UNIT)
    ),
    # distributions by these
    elementwise("chdtr", lambda v, x, y: (REFUSED, 0.5 * _gamma_density(0.5 * v, 0.5 * x)), on=(_SHAPE, _POSITIVE)),
    elementwise("chdtrc", lambda v, x, y: (REFUSED, _chdtrc(v, x)), on=(_SHAPE, _POSITIVE)),
    elementwise("chdtri", lambda v, p, y: (REFUSED, -2.0 / _gamma_density(0.5 * v, 0.5 * y)), on=(_SHAPE, _UNIT)),
    elementwise("fdtr", lambda a, b, x, y: (REFUSED, REFUSED, _f_density(a, b, x)), on=(_SHAPE, _SHAPE, _POSITIVE)),
    elementwise("fdtrc", lambda a, b, x, y: (REFUSED, REFUSED, -_f_density(a, b, x)), on=(_SHAPE, _SHAPE, _POSITIVE)),
    elementwise("fdtri", lambda a, b, p, y: (REFUSED, REFUSED, 1.0 / _f_density(a, b, y)), on=(_SHAPE, _SHAPE, _UNIT)),
    elementwise("gdtr", lambda a, b, x, y: _gdtr(a, b, x, 1.0), on=(_SHAPE, _SHAPE, _POSITIVE)),
    elementwise("gdtrc", lambda a, b, x, y: _gdtr(a, b, x, -1.0), on=(_SHAPE, _SHAPE, _POSITIVE)),
    elementwise(
        "gdtria",
        lambda p, b, x, y: (1.0 / (x * _gamma_density(b, x * y)), REFUSED, -y / x),
        on=(_UNIT, _SHAPE, _POSITIVE),
    ),
    elementwise(
        "gdtrix",
        lambda a, b, p, y: (-y / a, REFUSED, 1.0 / (a * _gamma_density(b, a * y))),
        on=(_SHAPE, _SHAPE, _UNIT),
    ),
    elementwise("pdtr", lambda k, m, y: (None, -_poisson_weight(k, m)), on=(_WHOLE, _POSITIVE), policy=_STEPS),
    elementwise("pdtrc", lambda k, m, y: (None, _poisson_weight(k, m)), on=(_WHOLE, _POSITIVE), policy=_STEPS),
    *(
        elementwise(name, lambda k, p, y: (None, -1.0 / _poisson_weight(k, y)), on=(_WHOLE, _UNIT), policy=_STEPS)
        for name in ("pdtri", "pdtri_integer")
    ),
    *(
        elementwise(f"bdtr{name}", formula, on=(_WHOLE, Domain(5.0, 8.0), _UNIT), policy=_STEPS)
        for kind in ("", "_integer")
        for name, formula in (
            (kind, lambda k, n, p, y: (None, None, -_binomial_slope(k, n, p))),
            (f"c{kind}", lambda k, n, p, y: (None, None, _binomial_slope(k, n, p))),
            (f"i{kind}", lambda k, n, p, y: (None, None, -1.0 / _binomial_slope(k, n, y))),
        )
    ),
    *(
        elementwise(f"nbdtr{name}", formula, on=(_WHOLE, _WHOLE, _UNIT), policy=_STEPS)
        for kind in ("", "_integer")
        for name, formula in (
            (kind, lambda k, n, p, y: (None, None, _negative_binomial_slope(k, n, p))),
            (f"c{kind}", lambda k, n, p, y: (None, None, -_negative_binomial_slope(k, n, p))),
            (f"i{kind}", lambda k, n, p, y: (None, None, 1.0 / _negative_binomial_slope(k, n, y))),
        )
    ),
    elementwise(
        "nrdtrimn",
        lambda p, sd, x, y: _nrdtrimn(p, sd),
        on=(_UNIT, _SHAPE, _REALS),
    ),
    elementwise(
        "nrdtrisd", lambda mean, p, x, y: _nrdtrisd(mean, p, x, y), on=(_REALS, Domain(0.55, 0.95), Domain(3.5, 6.0))
    ),
    elementwise("kolmogorov", lambda x, y: -_kolmogorov_density(x), on=Domain(0.3, 2.5)),
    elementwise("kolmogi", lambda p, y: -1.0 / _kolmogorov_density(y), on=_UNIT),
    # Bessel functions: DLMF 10.29.2, 10.29.3
    elementwise("jv", lambda v, x, y: (REFUSED, _jv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("yv", lambda v, x, y: (REFUSED, _yv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("iv", lambda v, x, y: (REFUSED, _iv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("kv", lambda v, x, y: (REFUSED, _kv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("ive", lambda v, x, y: (REFUSED, _ive(v, x, y)), on=(_ORDER, _POSITIVE)),
    elementwise("kve", lambda v, x, y: (REFUSED, y + _kve(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("i0", lambda x, y: apply("i1", x), on=_REALS),
    elementwise("i1", lambda x, y: _i1_slope(x, apply("i0", x), y, 1.0), on=_REALS),
    elementwise("i0e", lambda x, y: apply("i1e", x) - sign(x) * y, on=_REALS, policy="zero at 0"),
    elementwise("i1e", lambda x, y: _i1e(x, y), on=_REALS),
    elementwise("k0", lambda x, y: -apply("k1", x), on=_POSITIVE),
    elementwise("k1", lambda x, y: -apply("k0", x) - y / x, on=_POSITIVE),
    elementwise("k0e", lambda x, y: y - apply("k1e", x), on=_POSITIVE),
    elementwise("k1e", lambda x, y: y - apply("k0e", x) - y / x, on=_POSITIVE),
    *(elementwise(name, lambda n, x, y: _kn(n, x), on=(_WHOLE, _POSITIVE)) for name in ("kn", "kn_integer")),
    *(elementwise(name, lambda n, x, y: _yn(n, x), on=(_WHOLE, _POSITIVE)) for name in ("yn_double", "yn_integer")),
    elementwise(
        "struve", lambda v, x, y: (REFUSED, _struve("struve", -1.0, v, x, y)), on=(Domain(0.5, 4.0, (0.0,)), _POSITIVE)
    ),
    elementwise(
        "modstruve",
        lambda v, x, y: (REFUSED, _struve("modstruve", 1.0, v, x, y)),
        on=(Domain(0.5, 4.0, (0.0,)), _POSITIVE),
    ),
    elementwise("itstruve0", lambda x, y: apply("struve", 0.0, x), on=_REALS),
    elementwise("itmodstruve0", lambda x, y: apply("modstruve", 0.0, x), on=_REALS),
    elementwise("it2struve0", lambda x, y: -_struve_quotient(x), on=_REALS),
    elementwise("ber", lambda x, y: apply("berp", x), on=_REALS),
    elementwise("bei", lambda x, y: apply("beip", x), on=_REALS),
    elementwise("ker", lambda x, y: apply("kerp", x), on=_POSITIVE),
    elementwise("kei", lambda x, y: apply("keip", x), on=_POSITIVE),
    elementwise(
        "berp",
        lambda x, y: kelvin_bends(x, apply("ber", x), apply("bei", x), y, y)[0],
        on=_REALS,
        source="DLMF 10.61.3",
    ),
    elementwise(
        "beip",
        lambda x, y: kelvin_bends(x, apply("ber", x), apply("bei", x), y, y)[1],
        on=_REALS,
        source="DLMF 10.61.3",
    ),
    elementwise("kerp", lambda x, y: -apply("kei", x) - y / x, on=_POSITIVE, source="DLMF 10.61.3"),
    elementwise("keip", lambda x, y: apply("ker", x) - y / where(x > 0.0, x, 1.0), on=_POSITIVE, source="DLMF 10.61.3"),
    # elliptic integrals
    elementwise("ellipk", lambda m, y: _ellipk(m, 1.0 - m, y), on=_UNIT, also=(0.0,)),
    elementwise("ellipkm1", lambda p, y: -_ellipk(1.0 - p, p, y), on=_UNIT),
    elementwise("ellipe", lambda m, y: _elliptic(_ELLIPE_SERIES, m, y - apply("ellipk", m)), on=_UNIT, also=(0.0,)),
    # hypergeometric functions: DLMF 13.3.15, 13.3.22, 15.5.1, 10.46.1
    elementwise(
        "wright_bessel",
        lambda a, b, x, y: (REFUSED, REFUSED, apply("wright_bessel", a, a + b, x)),
        on=(_SHAPE, _SHAPE, _POSITIVE),
    ),
    elementwise(
        "log_wright_bessel",
        lambda a, b, x, y: (REFUSED, REFUSED, _exp(apply("log_wright_bessel", a, a + b, x) - y)),
        on=(_SHAPE, _SHAPE, _POSITIVE),
    ),
    elementwise("hyp0f1", lambda b, x, y: (REFUSED, apply("hyp0f1", b + 1.0, x) / b), on=(_SHAPE, _POSITIVE)),
    elementwise(
        "hyp1f1",
        lambda a, b, x, y: (REFUSED, REFUSED, a / b * apply("hyp1f1", a + 1.0, b + 1.0, x)),
        on=(_SHAPE, _SHAPE, _POSITIVE),
    ),
    elementwise(
        "hyp2f1",
        lambda a, b, c, x, y: (REFUSED, REFUSED, REFUSED, a * b / c * apply("hyp2f1", a + 1.0, b + 1.0, c + 1.0, x)),
        on=(_SHAPE, _SHAPE, _SHAPE, Domain(-0.8, 0.7)),
    ),
    elementwise(
        "hyperu",
        lambda a, b, x, y: (REFUSED, REFUSED, -a * apply("hyperu", a + 1.0, b + 1.0, x)),
        on=(_SHAPE, _SHAPE, _POSITIVE),
    ),
)
