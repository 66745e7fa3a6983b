"""Draws from distributions whose samplers reject, with respect to the parameters of the distribution.

The front end passes what such a sampler returns through `irad.draw` and `irad.drawn.<distribution>`, which return their
first argument (`irad.frontend.numba.samplers`). The derivative of the sampler's code ends at the first; the second has
the derivative of the draw z as a quantile: with distribution function F and density p,

    F(z; θ) = const,    dz/dθ = -(∂F/∂θ) / p

whose mean is right for every smooth function of z, whatever algorithm has drawn z.

gamma      F/p is a series of positive terms below the mean, 1 - F a continued fraction above; each is differentiated
           term by term with respect to the shape (DLMF 8.7.1, 8.9.2).
beta       the series of positive terms (DLMF 8.17.8), of the smaller tail.
wald       in closed form, with Mills' ratio.
vonmises   with respect to the mean direction; for the concentration there is no formula: refused.
noncentral_chisquare    refused. With at most one degree of freedom the sampler draws an integer, through which the
           derivative goes; which case applies is known only when it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_float
from irad.rules.dense.elements import DOUBLES
from irad.rules.dense.kernel import TRUE, Kernel
from irad.ruleset.expr import Expr, Symbol, apply, emit, where
from irad.ruleset.guards import strong_zero
from irad.ruleset.interface import PURE, CallRule, Context, Inactive, ReverseContext, Rule, TangentContext

_DOUBLE: Final = types.DOUBLE
_ZERO, _ONE = const_float(_DOUBLE, 0.0), const_float(_DOUBLE, 1.0)
_FIGURNOV: Final = "Figurnov, Mohamed, Mnih 2018, Implicit reparameterization gradients, arXiv:1805.08498"
_SMALL: Final = 1e-17  # of a sum: terms below it change nothing
_CONVERGED: Final = 1e-15  # of the factors of a continued fraction
_MOST_FACTORS: Final = 1e5  # ends the loop where the fraction does not converge, as for NaN

Partial = Callable[[Builder, Sequence[Value]], Value]
"""The derivative of a draw with respect to one parameter, from the draw and all parameters."""


def _reverse(partials: Sequence[Partial], context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    build, cotangent = context.builder, context.cotangent(call)
    for parameter, partial_ in zip(call.arguments[1:], partials, strict=True):
        if context.is_active(parameter):
            slope = partial_(build, _given(context, call))
            context.accumulate(parameter, strong_zero(build, cotangent, build.fmul(cotangent, slope)))


def _tangent(
    partials: Sequence[Partial], refuse: Callable[..., object], context: TangentContext, call: CallSite
) -> None:
    refuse(context, call)
    build = context.after
    total: Value = _ZERO
    for parameter, partial_ in zip(call.arguments[1:], partials, strict=True):
        if context.is_active(parameter):
            tangent = context.tangent(parameter)
            slope = partial_(build, _given(context, call))
            total = build.fadd(total, strong_zero(build, tangent, build.fmul(tangent, slope)))
    context.set_tangent(total)


def _given(context: Context, call: CallSite) -> list[Value]:
    """The draw and the parameters. The draw is the result of the call, since that depends on the parameters."""
    return [context.value(call), *(context.value(argument) for argument in call.arguments[1:])]


def _refuse(what: Mapping[int, str], remedy: str, context: Context, call: CallSite) -> Sequence[Value]:
    for position, text in what.items():
        if context.is_active(call.arguments[position]):
            reason = "the derivative of a draw is that of its quantile, for which there is no formula here"
            raise UnsupportedError(f"irad has no derivative of {text}", remedy, reason)
    return ()


def _formula(formula: Callable[..., Expr], build: Builder, values: Sequence[Value]) -> Value:
    """Emits an expression in the draw and the parameters."""
    symbols = [Symbol(f"x{index}") for index in range(len(values))]
    named = {symbol.name: value for symbol, value in zip(symbols, values, strict=True)}
    return emit(formula(*symbols), build, named, _DOUBLE)


def _repeat(
    build: Builder, given: Sequence[Value], start: Callable[..., Sequence[Expr]], step: Callable[..., Sequence[Expr]]
) -> list[Value]:
    """Runs `state = step(given, state)` as long as the last item of the state, which is a number, is positive."""
    symbols = [Symbol(f"x{index}") for index in range(len(given))]
    named = {symbol.name: value for symbol, value in zip(symbols, given, strict=True)}
    first = [emit(item, build, named, _DOUBLE) for item in start(*symbols)]
    before, body, after = build.block, build.function.add_block("term"), build.function.add_block("sum")
    build.br(body)
    build.block = body
    phis = [build.phi(_DOUBLE, [(value, before)]) for value in first]
    state = [Symbol(f"s{index}") for index in range(len(phis))]
    named |= {symbol.name: phi for symbol, phi in zip(state, phis, strict=True)}
    following = [emit(item, build, named, _DOUBLE) for item in step(*symbols, *state)]
    for phi, value in zip(phis, following, strict=True):
        phi.add_incoming(value, build.block)
    build.cond_br(build.fcmp("ogt", following[-1], const_float(_DOUBLE, 0.0)), body, after)
    build.block = after
    return following


def _call(name: str, arguments: Sequence[Value], build: Builder, body: Callable[..., Value]) -> Value:
    return Kernel(build, DOUBLES).outline(name, body, *arguments, result=_DOUBLE)


def _either(
    k: Kernel, inside: Value, below: Value, from_below: Callable[[], Value], from_above: Callable[[], Value]
) -> Value:
    """One of two numbers; the other is not computed; 0 if neither is wanted."""
    slot = k.variable().pointer
    for condition, number in ((below, from_below), (k.build.xor(below, TRUE), from_above)):
        with k.when(k.build.and_(inside, condition)):
            k.build.store(number(), slot)
    return k.build.load(_DOUBLE, slot)


# ------------------------------------------------------------------------------------------------ gamma


def gamma_slope(build: Builder, z: Value, shape: Value) -> Value:
    """Derivative of a draw of scale 1, with respect to its shape."""
    return _call("gamma_slope", [z, shape], build, _gamma_kernel)


def _gamma_kernel(k: Kernel, z: Value, shape: Value) -> Value:
    build = k.build
    below = build.fcmp("ole", z, build.fadd(shape, _ONE))
    from_below, from_above = (partial(f, build, z, shape) for f in (_gamma_from_below, _gamma_from_above))
    return _either(k, build.fcmp("ugt", z, _ZERO), below, from_below, from_above)


def _gamma_from_below(build: Builder, z: Value, shape: Value) -> Value:
    """F/p = z Σ tₙ with tₙ = zⁿ / (a (a+1) … (a+n)); the logarithm of tₙ has the derivative -Σ 1/(a+k)."""

    def start(z: Expr, a: Expr) -> Sequence[Expr]:
        first = 1.0 / a
        return z * 0.0, first, first, first, -first * first, first

    def step(z: Expr, a: Expr, n: Expr, t: Expr, logarithm: Expr, total: Expr, slope: Expr, _: Expr) -> Sequence[Expr]:
        n = n + 1.0
        t = t * z / (a + n)
        logarithm = logarithm + 1.0 / (a + n)
        slope = slope - t * logarithm
        return n, t, logarithm, total + t, slope, t * logarithm + _SMALL * slope

    *_, total, slope, _ = _repeat(build, [z, shape], start, step)

    def result(z: Expr, a: Expr, total: Expr, slope: Expr) -> Expr:
        return -z * (total * (apply("log", z) - apply("digamma", a)) + slope)

    return _formula(result, build, [z, shape, total, slope])


def _gamma_from_above(build: Builder, z: Value, shape: Value) -> Value:
    """(1-F)/p = z h with Legendre's continued fraction h, by Lentz's method, and its derivative with respect to a.

    h = 1/(b₀ + a₁/(b₁ + …)), bₙ = z + 1 - a + 2n, aₙ = -n (n - a); h and what it is made of come in pairs with their
    derivatives with respect to a.
    """

    def start(z: Expr, a: Expr) -> Sequence[Expr]:
        d = 1.0 / (z + 1.0 - a)
        zero = z * 0.0
        return zero, zero + 1e300, zero, d, d * d, d, d * d, zero + 1.0

    def step(
        z: Expr, a: Expr, n: Expr, c: Expr, c_a: Expr, d: Expr, d_a: Expr, h: Expr, h_a: Expr, _: Expr
    ) -> Sequence[Expr]:
        n = n + 1.0
        numerator, below = n * (a - n), z + 1.0 - a + 2.0 * n
        inverse = numerator * d + below
        inverse_a = n * d + numerator * d_a - 1.0
        following_c = below + numerator / c
        following_c_a = (n - numerator * c_a / c) / c - 1.0
        following_d = 1.0 / inverse
        following_d_a = -inverse_a * following_d * following_d
        factor = following_c * following_d
        factor_a = following_c_a * following_d + following_c * following_d_a
        change = apply("fabs", factor - 1.0) + apply("fabs", factor_a) - _CONVERGED
        again = where(n < _MOST_FACTORS, change, 0.0)
        return n, following_c, following_c_a, following_d, following_d_a, h * factor, h_a * factor + h * factor_a, again

    *_, h, h_a, _ = _repeat(build, [z, shape], start, step)

    def result(z: Expr, a: Expr, h: Expr, h_a: Expr) -> Expr:
        return z * (h * (apply("log", z) - apply("digamma", a)) + h_a)

    return _formula(result, build, [z, shape, h, h_a])


def _gamma_by_shape(build: Builder, values: Sequence[Value]) -> Value:
    z, shape, scale = values
    return build.fmul(scale, gamma_slope(build, build.fdiv(z, scale), shape))


def _gamma_by_scale(build: Builder, values: Sequence[Value]) -> Value:
    return _formula(lambda z, shape, scale: z / scale, build, values)


# ------------------------------------------------------------------------------------------------ beta


def beta_slope(build: Builder, values: Sequence[Value], *, in_first: bool) -> Value:
    """Derivative of a draw with respect to its first or second parameter."""
    name = f"beta_slope_{'first' if in_first else 'second'}"
    return _call(name, values, build, partial(_beta_kernel, in_first))


def _beta_kernel(in_first: bool, k: Kernel, z: Value, a: Value, b: Value) -> Value:
    """Above the mean 1 - z is a draw with the parameters exchanged."""
    build = k.build
    w = build.fsub(_ONE, z)
    mean = _formula(lambda a, b: (a + 1.0) / (a + b + 2.0), build, [a, b])
    inside = build.and_(build.fcmp("ugt", z, _ZERO), build.fcmp("ugt", w, _ZERO))
    from_below = partial(_beta_from_below, build, [z, w, a, b], in_first=in_first)
    from_above = partial(_beta_from_below, build, [w, z, b, a], in_first=not in_first)
    return _either(k, inside, build.fcmp("ole", z, mean), from_below, lambda: build.fneg(from_above()))


def _beta_from_below(build: Builder, given: Sequence[Value], *, in_first: bool) -> Value:
    """F/p = z w Σ tₙ with tₙ = zⁿ (a+b) … (a+b+n-1) / (a (a+1) … (a+n))."""

    def start(z: Expr, w: Expr, a: Expr, b: Expr) -> Sequence[Expr]:
        first = 1.0 / a
        zero = z * 0.0
        return zero, first, zero, first, first, -first * first, zero, first

    def step(
        z: Expr,
        w: Expr,
        a: Expr,
        b: Expr,
        n: Expr,
        t: Expr,
        upper: Expr,
        lower: Expr,
        total: Expr,
        d_da: Expr,
        d_db: Expr,
        _: Expr,
    ) -> Sequence[Expr]:
        upper = upper + 1.0 / (a + b + n)
        t = t * z * (a + b + n) / (a + n + 1.0)
        n = n + 1.0
        lower = lower + 1.0 / (a + n)
        d_da, d_db = d_da + t * (upper - lower), d_db + t * upper
        d_da_rest, d_db_rest = t * lower + _SMALL * d_da, t * upper - _SMALL * d_db
        rest = where(d_da_rest > d_db_rest, d_da_rest, d_db_rest)
        return n, t, upper, lower, total + t, d_da, d_db, rest

    *_, total, d_da, d_db, _ = _repeat(build, given, start, step)

    def result(z: Expr, w: Expr, a: Expr, b: Expr, total: Expr, slope: Expr) -> Expr:
        base, parameter = (z, a) if in_first else (w, b)
        logarithm = apply("log", base) - apply("digamma", parameter) + apply("digamma", a + b)
        return -z * w * (total * logarithm + slope)

    return _formula(result, build, [*given, total, d_da if in_first else d_db])


# ------------------------------------------------------------------------------------------------ inverse Gaussian


def _wald_by_mean(x: Expr, mean: Expr, scale: Expr) -> Expr:
    return 2.0 * scale / (mean * mean) * _wald_mills(x, mean, scale) * x * apply("sqrt", x / scale)


def _wald_by_scale(x: Expr, mean: Expr, scale: Expr) -> Expr:
    tail = 2.0 / mean * _wald_mills(x, mean, scale)
    return (apply("sqrt", scale / x) / scale - tail) * x * apply("sqrt", x / scale)


def _wald_mills(x: Expr, mean: Expr, scale: Expr) -> Expr:
    """Mills' ratio (1 - Φ)/φ at √(scale/x) (x/mean + 1): what is left of the second term of F over the density."""
    at = apply("sqrt", scale / x) * (x / mean + 1.0)
    small = where(at < 10.0, at, 0.0)
    near = math.sqrt(math.pi / 2.0) * apply("exp", 0.5 * small * small) * apply("erfc", small * math.sqrt(0.5))
    fraction = at
    for number in range(24, 0, -1):
        fraction = at + float(number) / fraction
    return where(at < 10.0, near, 1.0 / fraction)


# ------------------------------------------------------------------------------------------------ rules


def _constant(number: float) -> Partial:
    return lambda build, values: const_float(_DOUBLE, number)


def _rule(
    distribution: str,
    *partials: Partial,
    refused: Mapping[int, str] | None = None,
    remedy: str = "",
    source: str = _FIGURNOV,
) -> CallRule:
    augmented = partial(_refuse, refused or {}, remedy)
    tangent = partial(_tangent, partials, augmented)
    return CallRule(
        (f"irad.drawn.{distribution}",), PURE, partial(_reverse, partials), augmented, source, tangent=tangent
    )


_DF: Final = (
    "a noncentral chi-square draw with respect to its parameters: for few degrees of freedom it depends "
    "on a drawn integer"
)

RULES: Final[tuple[Rule, ...]] = (
    Inactive(("irad.draw",), "the derivative of a draw is that of its distribution, not of the sampler's code", PURE),
    _rule("gamma", _gamma_by_shape, _gamma_by_scale),
    _rule("standard_gamma", lambda build, values: gamma_slope(build, *values)),
    _rule("beta", partial(beta_slope, in_first=True), partial(beta_slope, in_first=False)),
    _rule("wald", partial(_formula, _wald_by_mean), partial(_formula, _wald_by_scale)),
    _rule(
        "vonmises",
        _constant(1.0),
        _constant(math.nan),
        refused={2: "a von Mises draw with respect to its concentration"},
        remedy="pass a concentration that does not depend on the differentiated arguments",
    ),
    _rule(
        "noncentral_chisquare",
        _constant(math.nan),
        _constant(math.nan),
        refused={1: _DF, 2: _DF},
        remedy="for more than one degree of freedom write chisquare(df - 1) + (standard_normal() + np.sqrt(nonc))**2",
    ),
)
