"""SciPy's special functions of one number that give several: `sici(x, si, ci)` writes through pointers.

ct_x += d si/dx · shadow[si] + d ci/dx · shadow[ci];  both shadows are cleared, since what they held was overwritten

In forward mode shadow[si] = d si/dx · tangent of x, and so on for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.values import Value, const_float
from irad.rules.elementwise import polynomial
from irad.ruleset.expr import Expr, Symbol, apply, emit, symbols_of, where
from irad.ruleset.guards import strong_zero
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule, TangentContext

_ZERO: Final = const_float(types.DOUBLE, 0.0)
_HALF_PI: Final = math.pi / 2.0


def _outputs(name: str, count: int, formula: Callable[..., Sequence[Expr]], source: str) -> CallRule:
    """A rule from the derivatives of the outputs; the formula's parameters are the argument and the outputs."""
    partials = tuple(formula(Symbol("x"), *(Symbol(str(i)) for i in range(count))))
    assert len(partials) == count

    def augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        """The outputs; those that no partial derivative reads are not saved."""
        return [context.after.load(types.DOUBLE, context.value(p)) for p in call.arguments[1 : 1 + count]]

    def reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
        build, x = context.builder, call.arguments[0]
        for pointer, partial in zip(call.arguments[1 : 1 + count], partials, strict=True):
            if not context.is_active(pointer):
                continue
            shadow = context.shadow(pointer)
            cotangent = build.load(types.DOUBLE, shadow)
            build.store(_ZERO, shadow)
            if context.is_active(x):
                needed = {n: context.value(x if n == "x" else saved[int(n)]) for n in sorted(symbols_of(partial))}
                product = build.fmul(cotangent, emit(partial, build, needed, types.DOUBLE))
                context.accumulate(x, strong_zero(build, cotangent, product))

    def tangent(context: TangentContext, call: CallSite) -> None:
        x, pointers = call.arguments[0], call.arguments[1 : 1 + count]
        build, x_dot = context.after, context.tangent(x)
        given = {"x": context.value(x)}
        given |= {str(i): build.load(types.DOUBLE, context.value(p)) for i, p in enumerate(pointers)}
        for pointer, partial in zip(pointers, partials, strict=True):
            if context.is_active(pointer):
                needed = {name: given[name] for name in sorted(symbols_of(partial))}
                product = build.fmul(x_dot, emit(partial, build, needed, types.DOUBLE))
                build.store(strong_zero(build, x_dot, product), context.shadow(pointer))

    writes = frozenset(range(1, 1 + count))
    effects = Effects(writes=writes, other=False)
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


RULES: Final[tuple[Rule, ...]] = (
    _outputs("sici", 2, lambda x, si, ci: (_sinc("sin", -1.0, x), apply("cos", x) / x), "DLMF 6.2.9, 6.2.11"),
    _outputs("shichi", 2, lambda x, shi, chi: (_sinc("sinh", 1.0, x), apply("cosh", x) / x), "DLMF 6.2.15, 6.2.16"),
    _outputs("fresnel", 2, lambda x, s, c: (_half_turns("sin", x), _half_turns("cos", x)), "DLMF 7.2.7, 7.2.8"),
    _outputs("airy", 4, lambda x, ai, aip, bi, bip: (aip, x * ai, bip, x * bi), "DLMF 9.2.1"),
)
