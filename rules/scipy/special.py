"""SciPy's special functions, as `scipy.special.cython_special` exports them: one entry a function.

They reach Numba by address (`numba.extending.get_cython_function_address`, ctypes); `irad.frontend.external` names
them `scipy.special.…`. Those that the C library has too (`erf`, `j0`, …) share the entries of `irad.rules.elementwise`.
With respect to an order or a shape parameter no closed form is known; a program that needs that derivative is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from irad.rules.elementwise import of_length, polynomial
from irad.ruleset.define import REFUSED, Partial, elementwise
from irad.ruleset.expr import Expr, Operand, apply, equal, is_nan, sign, where
from irad.ruleset.interface import Domain, Rule

_SQRT_PI: Final = math.sqrt(math.pi)
_SQRT_TWO_PI: Final = math.sqrt(2.0 * math.pi)
_SQRT_HALF: Final = math.sqrt(0.5)
_DEGREE: Final = math.pi / 180.0

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


def _beta_density(a: Expr, b: Expr, x: Expr) -> Expr:
    scale = apply("lgamma", a) + apply("lgamma", b) - apply("lgamma", a + b)
    factor, log = _power(a - 1.0, x, _log(x))
    factor_of_rest, log_of_rest = _power(b - 1.0, 1.0 - x, apply("log1p", -x))
    return factor * factor_of_rest * _exp(log + log_of_rest - scale)


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
    series = polynomial([1.0 / (math.factorial(k) * (k + 2)) for k in range(19)], where(near, x, 0.0))
    return where(near, series, far)


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


def _wave(m: Expr, phi: Expr) -> Expr:
    """The integrand of the second kind, `sqrt(1 - m sin² φ)`."""
    sine = apply("sin", phi)
    return apply("sqrt", 1.0 - m * (sine * sine))


_EDGE = "zero with respect to the second argument if the first is 0, even if the logarithm is infinite"
_BOTH_ZERO = "zero where both are 0"
_BOTH_ZERO_TOO = "zero and one if both are 0"

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
    elementwise("boxcox", lambda x, p, y: (apply("pow", x, p - 1.0), REFUSED), on=(_POSITIVE, _SHAPE)),
    elementwise("huber", lambda d, r, y: _huber(d, r), on=(_POSITIVE, _REALS)),
    elementwise("pseudo_huber", lambda d, r, y: _pseudo_huber(d, r), on=(_POSITIVE, _REALS), kinks=_BOTH_ZERO),
    elementwise("cosm1", lambda x, y: -apply("sin", x), on=_REALS),
    elementwise("sindg", lambda x, y: _DEGREE * apply("cosdg", x), on=Domain(-200.0, 200.0)),
    elementwise("cosdg", lambda x, y: -_DEGREE * apply("sindg", x), on=Domain(-200.0, 200.0)),
    elementwise("tandg", lambda x, y: _DEGREE * (1.0 + y * y), on=Domain(-80.0, 80.0)),
    elementwise("cotdg", lambda x, y: _cotdg(x), on=Domain(10.0, 170.0)),
    elementwise("wrightomega", lambda x, y: _wrightomega(y), on=_REALS),
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
    # elliptic integrals
    elementwise("ellipk", lambda m, y: _ellipk(m, 1.0 - m, y), on=_UNIT, also=(0.0,)),
    elementwise("ellipkm1", lambda p, y: -_ellipk(1.0 - p, p, y), on=_UNIT),
    elementwise("ellipe", lambda m, y: _elliptic(_ELLIPE_SERIES, m, y - apply("ellipk", m)), on=_UNIT, also=(0.0,)),
    elementwise("ellipkinc", lambda phi, m, y: (1.0 / _wave(m, phi), REFUSED), on=(_UNIT, _UNIT)),
    elementwise("ellipeinc", lambda phi, m, y: (_wave(m, phi), REFUSED), on=(_UNIT, _UNIT)),
    elementwise("elliprd", lambda a, b, c, y: (REFUSED, REFUSED, REFUSED), on=_SHAPE),
    # hypergeometric functions: DLMF 13.3.15, 13.3.22, 15.5.1
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
