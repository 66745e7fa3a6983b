"""SciPy's special functions, as `scipy.special.cython_special` exports them: one entry a function.

They reach Numba by address (`numba.extending.get_cython_function_address`, ctypes); `irad.frontend.external` names
them `scipy.special.…`. Those that the C library has too (`erf`, `j0`, …) share the entries of `irad.rules.elementwise`.
With respect to an order or a shape parameter no closed form is known; a program that needs that derivative is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from irad.ruleset.define import REFUSED, Partial, elementwise
from irad.ruleset.expr import Expr, Operand, apply, equal, sign, where
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


def _by_order(name: str, factor: float, sign_of_next: float) -> Callable[[Expr, Expr], Expr]:
    """Derivative of a Bessel function, from those of the neighbouring orders (DLMF 10.6.1, 10.29.1)."""
    return lambda v, x: factor * (apply(name, v - 1.0, x) + sign_of_next * apply(name, v + 1.0, x))


_jv = _by_order("jv", 0.5, -1.0)
_yv = _by_order("yv", 0.5, -1.0)
_iv = _by_order("iv", 0.5, 1.0)
_ive = _by_order("ive", 0.5, 1.0)
_kv = _by_order("kv", -0.5, 1.0)
_kve = _by_order("kve", -0.5, 1.0)


def _inverse_mills(x: Expr) -> Expr:
    """Density over distribution function of the normal distribution; neither overflows far out."""
    return math.sqrt(2.0 / math.pi) / apply("erfcx", -_SQRT_HALF * x)


def _power_log(p: Expr, x: Expr) -> Expr:
    """`p log x`, zero for p = 0 also where x is 0."""
    return where(equal(p, 0.0), 0.0, p * _log(x))


def _gamma_density(a: Expr, x: Expr) -> Expr:
    return _exp(_power_log(a - 1.0, x) - x - apply("lgamma", a))


def _beta_density(a: Expr, b: Expr, x: Expr) -> Expr:
    scale = apply("lgamma", a) + apply("lgamma", b) - apply("lgamma", a + b)
    return _exp(_power_log(a - 1.0, x) + _power_log_of_complement(b - 1.0, x) - scale)


def _power_log_of_complement(p: Expr, x: Expr) -> Expr:
    return where(equal(p, 0.0), 0.0, p * apply("log1p", -x))


def _t_density(v: Expr, t: Expr) -> Expr:
    half = 0.5 * (v + 1.0)
    scale = apply("lgamma", half) - apply("lgamma", 0.5 * v) - 0.5 * _log(math.pi * v)
    return _exp(scale - half * apply("log1p", t * t / v))


def _noncentral_density(x: Expr, df: Expr, nc: Expr) -> Expr:
    """Density of the noncentral chi-squared distribution; for nc = 0 the central one."""
    order = 0.5 * df - 1.0
    distance = apply("sqrt", x) - apply("sqrt", nc)
    root = apply("sqrt", nc * x)
    power = _exp(_power_log(0.5 * order, x / nc) - 0.5 * (distance * distance))
    central = _exp(_power_log(order, 0.5 * x) - 0.5 * x - apply("lgamma", 0.5 * df))
    return 0.5 * where(equal(nc, 0.0), central, power * apply("ive", order, root))


def _by_noncentrality(x: Expr, df: Expr, nc: Expr) -> Expr:
    """Of the distribution function."""
    return 0.5 * (apply("chndtr", x, df + 2.0, nc) - apply("chndtr", x, df, nc))


def _chndtr(x: Expr, df: Expr, nc: Expr) -> tuple[Partial, Partial, Partial]:
    return _noncentral_density(x, df, nc), REFUSED, _by_noncentrality(x, df, nc)


def _chndtrix(df: Expr, nc: Expr, y: Expr) -> tuple[Partial, Partial, Partial]:
    slope = 1.0 / _noncentral_density(y, df, nc)
    return slope, REFUSED, -_by_noncentrality(y, df, nc) * slope


def _exprel(x: Expr, y: Expr) -> Expr:
    """`(exp x - y) / x`; near 0, where that cancels, the power series of it."""
    last, *others = (1.0 / (math.factorial(k) * (k + 2)) for k in reversed(range(19)))
    series = others[0] + x * last
    for coefficient in others[1:]:
        series = coefficient + x * series
    return where(x * x < 1.0, series, (_exp(x) - y) / x)


def _ellipk(p: Expr, y: Expr) -> Expr:
    """DLMF 19.4.1 for m = 1 - p, with E = K - m R_D(0, p, 1) / 3 (19.25.1), so that nothing cancels at m = 0."""
    return (y - apply("elliprd", 0.0, p, 1.0) / 3.0) / (2.0 * p)


def _spence(z: Expr) -> Expr:
    return where(equal(z, 1.0), -1.0, _log(z) / (1.0 - z))


def _xlogy(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return _log(y), where(equal(x, 0.0), 0.0, x / y)


def _xlog1py(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return apply("log1p", y), where(equal(x, 0.0), 0.0, x / (1.0 + y))


def _huber(delta: Expr, r: Expr) -> tuple[Expr, Expr]:
    size = apply("fabs", r)
    inside = size <= delta
    return where(inside, 0.0, size - delta), where(inside, r, delta * sign(r))


def _pseudo_huber(delta: Expr, r: Expr, y: Expr) -> tuple[Expr, Expr]:
    root = apply("sqrt", 1.0 + (r / delta) * (r / delta))
    return 2.0 * y / delta - r * r / (delta * root), r / root


def _owens_t(h: Expr, a: Expr) -> tuple[Expr, Expr]:
    square = 1.0 + a * a
    by_h = -_exp(-0.5 * (h * h)) * apply("erf", _SQRT_HALF * (a * h)) / (2.0 * _SQRT_TWO_PI)
    return by_h, _exp(-0.5 * (h * h) * square) / (2.0 * math.pi * square)


def _wave(m: Expr, phi: Expr) -> Expr:
    """The integrand of the second kind, `sqrt(1 - m sin² φ)`."""
    sine = apply("sin", phi)
    return apply("sqrt", 1.0 - m * (sine * sine))


_EDGE = "zero where the first argument is 0, whatever the second"

RULES: Final[tuple[Rule, ...]] = (
    # logistic, normal distribution, logarithms
    elementwise("expit", lambda x, y: y * (1.0 - y), on=_REALS),
    elementwise("logit", lambda x, y: 1.0 / (x * (1.0 - x)), on=_UNIT),
    elementwise("log_expit", lambda x, y: 1.0 / (1.0 + _exp(x)), on=_REALS),
    elementwise("log_ndtr", lambda x, y: _inverse_mills(x), on=Domain(-20.0, 5.0)),
    elementwise("ndtri_exp", lambda x, y: 1.0 / _inverse_mills(y), on=Domain(-20.0, -0.1)),
    elementwise("xlogy", lambda x, a, y: _xlogy(x, a), on=_POSITIVE, policy=_EDGE),
    elementwise("xlog1py", lambda x, a, y: _xlog1py(x, a), on=_POSITIVE, policy=_EDGE),
    elementwise("entr", lambda x, y: -_log(x) - 1.0, on=_POSITIVE),
    elementwise("rel_entr", lambda a, b, y: (_log(a / b) + 1.0, -a / b), on=_POSITIVE),
    elementwise("kl_div", lambda a, b, y: (_log(a / b), 1.0 - a / b), on=_POSITIVE),
    elementwise("exprel", lambda x, y: _exprel(x, y), on=_REALS, also=(1.0, -1.0, 1e-9)),
    elementwise("boxcox", lambda x, p, y: (_exp((p - 1.0) * _log(x)), REFUSED), on=(_POSITIVE, _SHAPE)),
    elementwise("huber", lambda d, r, y: _huber(d, r), on=(_POSITIVE, _REALS)),
    elementwise("pseudo_huber", lambda d, r, y: _pseudo_huber(d, r, y), on=(_POSITIVE, _REALS)),
    elementwise("cosm1", lambda x, y: -apply("sin", x), on=_REALS),
    elementwise("sindg", lambda x, y: _DEGREE * apply("cosdg", x), on=Domain(-200.0, 200.0)),
    elementwise("cosdg", lambda x, y: -_DEGREE * apply("sindg", x), on=Domain(-200.0, 200.0)),
    elementwise("tandg", lambda x, y: _DEGREE * (1.0 + y * y), on=Domain(-80.0, 80.0)),
    elementwise("cotdg", lambda x, y: -_DEGREE * (1.0 + y * y), on=Domain(10.0, 170.0)),
    elementwise("wrightomega", lambda x, y: y / (1.0 + y), on=_REALS),
    # error functions, exponential integrals
    elementwise("erfi", lambda x, y: (2.0 / _SQRT_PI) * _exp(x * x), on=_REALS),
    elementwise("dawsn", lambda x, y: 1.0 - 2.0 * (x * y), on=_REALS, source="DLMF 7.10.4"),
    elementwise("spence", lambda z, y: _spence(z), on=_POSITIVE, also=(1.0,)),
    elementwise("expi", lambda x, y: _exp(x) / x, on=_POSITIVE, also=(-1.5,)),
    elementwise("exp1", lambda x, y: -_exp(-x) / x, on=_POSITIVE),
    elementwise("expn", lambda n, x, y: (REFUSED, -apply("expn", n - 1.0, x)), on=(Domain(1.0, 4.0), _POSITIVE)),
    elementwise("expn_integer", lambda n, x, y: (None, -apply("expn_integer", n - 1.0, x)), on=(_WHOLE, _POSITIVE)),
    elementwise("owens_t", lambda h, a, y: _owens_t(h, a), on=_REALS),
    # gamma and beta functions
    elementwise("beta", lambda a, b, y: (y * (_psi(a) - _psi(a + b)), y * (_psi(b) - _psi(a + b))), on=_SHAPE),
    elementwise("betaln", lambda a, b, y: (_psi(a) - _psi(a + b), _psi(b) - _psi(a + b)), on=_SHAPE),
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
    elementwise("gammasgn", lambda x, y: None, on=_POSITIVE, policy="zero everywhere, at the steps too"),
    # Bessel functions: DLMF 10.29.2, 10.29.3
    elementwise("jv", lambda v, x, y: (REFUSED, _jv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("yv", lambda v, x, y: (REFUSED, _yv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("iv", lambda v, x, y: (REFUSED, _iv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("kv", lambda v, x, y: (REFUSED, _kv(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("ive", lambda v, x, y: (REFUSED, _ive(v, x) - sign(x) * y), on=(_ORDER, _POSITIVE)),
    elementwise("kve", lambda v, x, y: (REFUSED, y + _kve(v, x)), on=(_ORDER, _POSITIVE)),
    elementwise("i0", lambda x, y: apply("i1", x), on=_REALS),
    elementwise("i1", lambda x, y: where(equal(x, 0.0), 0.5, apply("i0", x) - y / x), on=_REALS),
    elementwise("i0e", lambda x, y: apply("i1e", x) - sign(x) * y, on=_REALS, policy="zero at 0"),
    elementwise("i1e", lambda x, y: where(equal(x, 0.0), 0.5, apply("i0e", x) - y / x - sign(x) * y), on=_REALS),
    elementwise("k0", lambda x, y: -apply("k1", x), on=_POSITIVE),
    elementwise("k1", lambda x, y: -apply("k0", x) - y / x, on=_POSITIVE),
    elementwise("k0e", lambda x, y: y - apply("k1e", x), on=_POSITIVE),
    elementwise("k1e", lambda x, y: y - apply("k0e", x) - y / x, on=_POSITIVE),
    # elliptic integrals: DLMF 19.4, 19.25
    elementwise("ellipk", lambda m, y: _ellipk(1.0 - m, y), on=_UNIT, also=(0.0,)),
    elementwise("ellipkm1", lambda p, y: -_ellipk(p, y), on=_UNIT),
    elementwise("ellipe", lambda m, y: apply("elliprd", 0.0, 1.0 - m, 1.0) / -6.0, on=_UNIT, also=(0.0,)),
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
