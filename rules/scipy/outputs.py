"""SciPy's special functions that give several results: `sici(x, si, ci)` writes through pointers.

ct_x += d si/dx · shadow[si] + d ci/dx · shadow[ci];  both shadows are cleared, since what they held was overwritten

In forward mode shadow[si] = d si/dx · tangent of x, and so on for the others. A complex result counts as two numbers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_float, const_int
from irad.rules.elementwise import polynomial
from irad.rules.scipy.elliptic import first_kind_by_m
from irad.rules.scipy.special import kelvin_bends
from irad.ruleset.expr import Expr, Symbol, apply, emit, symbols_of, where
from irad.ruleset.guards import strong_zero
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule, TangentContext

_ZERO: Final = const_float(types.DOUBLE, 0.0)
_HALF_PI: Final = math.pi / 2.0


def _outputs(
    name: str,
    count: int,
    formula: Callable[..., Sequence[Expr | Sequence[Expr]]],
    source: str,
    *,
    is_complex: bool = False,
) -> CallRule:
    """A rule from the derivatives of the results.

    Args:
        count: number of results, counting a complex one twice.
        formula: its parameters are the arguments and the results. It gives the partial derivatives of each result: one,
            or one for each argument.
        is_complex: whether results are complex.
    """
    arity = len(inspect.signature(formula).parameters) - count
    given = formula(*(Symbol(f"x{i}") for i in range(arity)), *(Symbol(f"y{i}") for i in range(count)))
    rows = tuple((row,) if isinstance(row, Expr) else tuple(row) for row in given)
    assert len(rows) == count
    assert all(len(row) == arity for row in rows)
    parts = 2 if is_complex else 1

    def places(build: Builder, pointers: Sequence[Value]) -> Iterator[Value]:
        """Addresses of the numbers that results consist of."""
        for pointer in pointers:
            for part in range(parts):
                yield build.gep(types.DOUBLE, pointer, [const_int(types.I64, part)])

    def pointers_of(call: CallSite) -> Sequence[Value]:
        return call.arguments[arity : arity + count // parts]

    def augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        """The results; those that no partial derivative reads are not saved."""
        addresses = places(context.after, [context.value(p) for p in pointers_of(call)])
        return [context.after.load(types.DOUBLE, address) for address in addresses]

    def reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
        build = context.builder
        known = {f"x{i}": call.arguments[i] for i in range(arity)} | {f"y{i}": value for i, value in enumerate(saved)}
        for number, pointer in enumerate(pointers_of(call)):
            if not context.is_active(pointer):
                continue
            for place, row in zip(places(build, [context.shadow(pointer)]), rows[number * parts :], strict=False):
                cotangent = build.load(types.DOUBLE, place)
                build.store(_ZERO, place)
                for x, partial in zip(call.arguments, row, strict=False):
                    if context.is_active(x):
                        needed = {name: context.value(known[name]) for name in sorted(symbols_of(partial))}
                        product = build.fmul(cotangent, emit(partial, build, needed, types.DOUBLE))
                        context.accumulate(x, strong_zero(build, cotangent, product))

    def tangent(context: TangentContext, call: CallSite) -> None:
        build = context.after
        given = {f"x{i}": context.value(call.arguments[i]) for i in range(arity)}
        addresses = places(build, [context.value(p) for p in pointers_of(call)])
        given |= {f"y{i}": build.load(types.DOUBLE, address) for i, address in enumerate(addresses)}
        moving = [(i, context.tangent(x)) for i, x in enumerate(call.arguments[:arity]) if context.is_active(x)]
        for number, pointer in enumerate(pointers_of(call)):
            if not context.is_active(pointer):
                continue
            for place, row in zip(places(build, [context.shadow(pointer)]), rows[number * parts :], strict=False):
                total: Value = _ZERO
                for i, x_dot in moving:
                    needed = {name: given[name] for name in sorted(symbols_of(row[i]))}
                    product = build.fmul(x_dot, emit(row[i], build, needed, types.DOUBLE))
                    guarded = strong_zero(build, x_dot, product)
                    total = guarded if total is _ZERO else build.fadd(total, guarded)
                build.store(total, place)

    effects = Effects(writes=frozenset(range(arity, arity + count // parts)), other=False)
    return CallRule((f"scipy.special.{name}",), effects, reverse, augmented, source, tangent=tangent)


def _sinc(function: str, sign: float, x: Expr) -> Expr:
    """`sin x / x` or `sinh x / x`; near 0, where derivatives of the quotient cancel, the power series."""
    near = x * x < 1.0
    small = where(near, x, 0.0)
    series = polynomial([sign**k / math.factorial(2 * k + 1) for k in range(12)], small * small)
    # Not where(near, …) again: LLVM knows what comes of it in this branch, and computes 0 / 0.
    return where(near, series, apply(function, x) / where(apply("fabs", x) < 0.75, 1.0, x))


def _half_turns(function: str, x: Expr) -> Expr:
    """`sin ½πx²` or `cos ½πx²`, of the square but for multiples of 4, with what rounding has taken from it."""
    square = x * x
    rest = apply("fma", x, x, -square)
    return apply(function, _HALF_PI * (square - 4.0 * apply("rint", 0.25 * square) + rest))


def _of_square(function: str, x: Expr) -> Expr:
    """`sin x²` or `cos x²`, with what rounding has taken from the square."""
    square = x * x
    rest = apply("fma", x, x, -square)
    if function == "sin":
        return apply("sin", square) + rest * apply("cos", square)
    return apply("cos", square) - rest * apply("sin", square)


def _scaled_airy(x: Expr, ai: Expr, aip: Expr, bi: Expr, bip: Expr) -> tuple[Expr, ...]:
    """Ai times `exp ⅔x^(3/2)`, Bi by that: scales whose logarithm has the slope √x; of negative x there is no scale."""
    scaled = x >= 0.0
    root = where(scaled, apply("sqrt", where(scaled, x + 0.0, 1.0)), 0.0)  # of -0 the root of 0
    return aip + root * ai, x * ai + root * aip, bip - root * bi, x * bi - root * bip


def _from_one(name: str, sign: float, x: Expr) -> Expr:
    """`(1 - J₀) / x` or `(I₀ - 1) / x`; near 0, where that cancels, the power series."""
    near = x * x < 1.0
    small = where(near, x, 0.0)
    series = polynomial([sign**k / (4.0 ** (k + 1) * math.factorial(k + 1) ** 2) for k in range(10)], small * small)
    return where(near, small * series, sign * (apply(name, x) - 1.0) / where(apply("fabs", x) < 0.75, 1.0, x))


def _kelvin(x: Expr, *results: Expr) -> tuple[Expr, ...]:
    """Of Be, Ke and their derivatives, a real and an imaginary part each."""
    ber, bei, ker, kei, d_ber, d_bei, d_ker, d_kei = results
    bends = kelvin_bends(x, ber, bei, d_ber, d_bei)
    return d_ber, d_bei, d_ker, d_kei, *bends, -kei - d_ker / x, ker - d_kei / where(x > 0.0, x, 1.0)


def _modified_fresnel(sign: float, x: Expr, k_real: Expr, k_imag: Expr) -> tuple[Expr, ...]:
    """`F' = -exp(±ix²)`, `K' = ∓2ixK - exp(∓iπ/4) / √π`."""
    half = 1.0 / math.sqrt(2.0 * math.pi)
    d_real, d_imag = sign * 2.0 * x * k_imag - half, -sign * 2.0 * x * k_real + sign * half
    return -_of_square("cos", x), -sign * _of_square("sin", x), d_real, d_imag


def _jacobi(u: Expr, m: Expr, sn: Expr, cn: Expr, dn: Expr, phi: Expr) -> tuple[tuple[Expr, Expr], ...]:
    """The amplitude solves `F(φ, m) = u`, so `∂φ/∂m = -dn ∂F/∂m`."""
    by_m = -dn * first_kind_by_m(phi, m)
    return (
        (cn * dn, cn * by_m),
        (-(sn * dn), -(sn * by_m)),
        (-(m * sn * cn), -(sn * sn + 2.0 * m * (sn * cn) * by_m) / (2.0 * dn)),
        (dn, by_m),
    )


RULES: Final[tuple[Rule, ...]] = (
    _outputs("sici", 2, lambda x, si, ci: (_sinc("sin", -1.0, x), apply("cos", x) / x), "DLMF 6.2.9, 6.2.11"),
    _outputs("shichi", 2, lambda x, shi, chi: (_sinc("sinh", 1.0, x), apply("cosh", x) / x), "DLMF 6.2.15, 6.2.16"),
    _outputs("fresnel", 2, lambda x, s, c: (_half_turns("sin", x), _half_turns("cos", x)), "DLMF 7.2.7, 7.2.8"),
    _outputs("airy", 4, lambda x, ai, aip, bi, bip: (aip, x * ai, bip, x * bi), "DLMF 9.2.1"),
    _outputs("airye", 4, lambda x, ai, aip, bi, bip: _scaled_airy(x, ai, aip, bi, bip), "DLMF 9.2.1"),
    _outputs("itj0y0", 2, lambda x, j, y: (apply("j0", x), apply("y0", x)), "DLMF 10.22.39"),
    _outputs("iti0k0", 2, lambda x, i, k: (apply("i0", x), apply("k0", x)), "DLMF 10.43.22"),
    _outputs("it2j0y0", 2, lambda x, j, y: (_from_one("j0", -1.0, x), -apply("y0", x) / x), "DLMF 10.22.39"),
    _outputs("it2i0k0", 2, lambda x, i, k: (_from_one("i0", 1.0, x), -apply("k0", x) / x), "DLMF 10.43.22"),
    _outputs(
        "kelvin",
        8,
        lambda x, a, b, c, d, e, f, g, h: _kelvin(x, a, b, c, d, e, f, g, h),
        "DLMF 10.61.3",
        is_complex=True,
    ),
    _outputs("modfresnelp", 4, lambda x, f, g, a, b: _modified_fresnel(1.0, x, a, b), "DLMF 7.2.6", is_complex=True),
    _outputs("modfresnelm", 4, lambda x, f, g, a, b: _modified_fresnel(-1.0, x, a, b), "DLMF 7.2.6", is_complex=True),
    _outputs("ellipj", 4, lambda u, m, sn, cn, dn, phi: _jacobi(u, m, sn, cn, dn, phi), "DLMF 22.13, 22.16.1"),
)
