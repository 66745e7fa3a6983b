"""Functions of Numba whose code takes a shortcut at single points: their derivatives are those of the function.

`np.logaddexp(x, y)` returns `x + log(2)` where both are equal, and the derivative of that is (1, 0). So the value that
Numba's code gives is passed through `as_logaddexp(value, x, y)`, which returns it, and has the derivative of the
function with respect to x and y, and none with respect to the value (`irad.frontend.numba.shortcuts`). The code of
Numba computes the value still, to the bit; no derivative flows through it.

Complex functions come by parts. With f' = p + iq the real part has the partial derivatives p, -q, the imaginary part
q, p. On a branch cut f' is that of the side which the sign of the zero tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

from irad.ruleset.define import elementwise
from irad.ruleset.expr import Expr, apply, equal, sign, where
from irad.ruleset.interface import Domain, Elementwise, Rule
from irad.ruleset.shortcut_slopes import ONE, SINC_ORDERS, Pair, applied

_LN2: Final = math.log(2.0)
_LN10: Final = math.log(10.0)
_ANY: Final = Domain(-3.0, 3.0, (0.0, 1.0))
_BASE: Final = Domain(0.1, 3.0)
_TEETH: Final = "at a jump, the derivative on the side where the remainder is zero"
_SIDE: Final = "at 0, the one-sided derivative on the side given by the sign of the zero; zero if the exponent is 1"
_SHARES: Final = "½ for each argument if both are equal, even if infinite"
_CUT: Final = (
    "on a branch cut, the derivative on the side given by the sign of the zero; not finite at branch points and poles"
)


def _shares(suffix: str, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    return apply(f"share{suffix}", x, y), apply(f"rest{suffix}", x, y)


def _share_slope(suffix: str, x: Expr, y: Expr) -> Expr:
    """The product of both shares, which loses nothing where one of them is small."""
    first, second = _shares(suffix, x, y)
    return (_LN2 if suffix else 1.0) * (first * second)


# ------------------------------------------------------------------------------------------------ complex functions


def _root_slope(root: Pair) -> Pair:
    """`1 / (2 √z)`, from the root."""
    size = root.re * root.re + root.im * root.im
    return Pair(0.5 * root.re / size, -0.5 * root.im / size)


def _area_cosine_slope(z: Pair) -> Pair:
    """`1 / (√(z - 1) √(z + 1))`: -i times the derivative of asin z above the real axis, i times it below."""
    slope, side = applied("arc_slope", z), apply("copysign", 1.0, z.im)
    return Pair(side * slope.im, -(side * slope.re))


_SLOPES: Final[dict[str, Callable[[Pair, Pair], Pair]]] = {
    "csqrt": lambda z, root: _root_slope(root),
    "clog": lambda z, y: applied("inverse", z),
    "clog2": lambda z, y: applied("inverse", z) * (1.0 / _LN2),
    "clog10": lambda z, y: applied("inverse", z) * (1.0 / _LN10),
    "clog1p": lambda z, y: applied("inverse", z + 1.0),
    "casin": lambda z, y: applied("arc_slope", z),
    "cacos": lambda z, y: -applied("arc_slope", z),
    "catan": lambda z, y: applied("pole_slope", z.times_i()),
    "casinh": lambda z, y: applied("arc_slope", z.times_i()),
    "cacosh": lambda z, y: _area_cosine_slope(z),
    "catanh": lambda z, y: applied("pole_slope", z),
    "csinc": lambda z, y: applied("csinc_1", z),
}
"""First derivatives, from the argument and the value."""


def _cube(z: Pair) -> Pair:
    return z * z * z


# No difference of nearly equal numbers, as the derivatives of √(1 - z) and √(1 + z) would be near 0.
_NEXT: Final[dict[str, Callable[[Pair], Pair]]] = {
    "inverse": lambda z: -(applied("inverse", z) * applied("inverse", z)),
    "arc_slope": lambda z: z * _cube(applied("arc_slope", z)),
    "pole_slope": lambda z: z * 2.0 * (applied("pole_slope", z) * applied("pole_slope", z)),
    **{f"csinc_{n}": partial(applied, f"csinc_{n + 1}") for n in range(1, SINC_ORDERS)},
}


def _real_part(slope: Pair) -> tuple[Expr, Expr]:
    """The partial derivatives of the real part with respect to both parts of the argument."""
    return slope.re, -slope.im


def _imaginary_part(slope: Pair) -> tuple[Expr, Expr]:
    return slope.im, slope.re


_PARTS: Final = (("re", _real_part), ("im", _imaginary_part))


def _of_value(name: str, part: str, partials: Callable[[Pair], tuple[Expr, Expr]]) -> Elementwise:
    def formula(v_re: Expr, v_im: Expr, re: Expr, im: Expr, y: Expr) -> tuple[Expr | None, ...]:
        value = Pair(*(apply(f"as_{name}_{part}", v_re, v_im, re, im) for part, _ in _PARTS))
        return None, None, *partials(_SLOPES[name](Pair(re, im), value))

    return elementwise(f"as_{name}_{part}", formula, on=_ANY, policy="" if name == "csinc" else _CUT)


# ------------------------------------------------------------------------------------------------ complex power


def _power_slopes(z: Pair, w: Pair) -> tuple[Pair, Pair]:
    """`w z**(w - 1)` and `z**w log z`; of 0**0 the first is 0, and of 0**w the second."""
    base = z.where_zero(Pair(where(equal(w.length(), 0.0), 1.0, z.re), z.im))
    safe = z.where_zero(ONE)
    logarithm = Pair(apply("log", safe.length()), apply("atan2", safe.im, safe.re))
    return w * applied("cpow", base, w - 1.0), applied("cpow", z, w) * logarithm


def _power(name: str, partials: Callable[[Pair], tuple[Expr, Expr]]) -> Elementwise:
    def formula(z_re: Expr, z_im: Expr, w_re: Expr, w_im: Expr, y: Expr) -> tuple[Expr | None, ...]:
        d_base, d_exponent = _power_slopes(Pair(z_re, z_im), Pair(w_re, w_im))
        return *partials(d_base), *partials(d_exponent)

    return elementwise(name, formula, on=_ANY, kinks=_OF_ZERO)


def _of_power_value(part: str, partials: Callable[[Pair], tuple[Expr, Expr]]) -> Elementwise:
    def formula(
        v_re: Expr, v_im: Expr, z_re: Expr, z_im: Expr, w_re: Expr, w_im: Expr, y: Expr
    ) -> tuple[Expr | None, ...]:
        d_base, d_exponent = _power_slopes(Pair(z_re, z_im), Pair(w_re, w_im))
        return None, None, *partials(d_base), *partials(d_exponent)

    return elementwise(f"as_cpow_{part}", formula, on=_ANY, kinks=_OF_ZERO)


_OF_ZERO: Final = "base 0: with respect to the exponent, 0; with respect to the base, 0 if the exponent is 0"


def _next_sinc(order: int) -> Elementwise:
    return elementwise(f"sinc_{order}", lambda x, y: apply(f"sinc_{order + 1}", x), on=_ANY)


def _part(name: str, part: str, partials: Callable[[Pair], tuple[Expr, Expr]]) -> Elementwise:
    policy = "" if name.startswith("csinc") else _CUT
    return elementwise(f"{name}_{part}", lambda re, im, y: partials(_NEXT[name](Pair(re, im))), on=_ANY, policy=policy)


def _side(x: Expr, p: Expr) -> Expr:
    """Slope of |x| where it is raised to the power p."""
    return where(equal(p, 1.0), sign(x), apply("copysign", 1.0, x))


def _share(name: str, suffix: str) -> Elementwise:
    def formula(x: Expr, first: Expr, y: Expr) -> tuple[Expr, Expr]:
        slope = _share_slope(suffix, x, first)
        return (slope, -slope) if name == "share" else (-slope, slope)

    return elementwise(name + suffix, formula, on=_ANY)


RULES: Final[tuple[Rule, ...]] = (
    elementwise("as_logaddexp", lambda v, a, b, y: (None, *_shares("", a, b)), on=_ANY, policy=_SHARES),
    elementwise("as_logaddexp2", lambda v, a, b, y: (None, *_shares("2", a, b)), on=_ANY, policy=_SHARES),
    *(_share(name, suffix) for name in ("share", "rest") for suffix in ("", "2")),
    elementwise("as_sinc", lambda v, x, y: (None, apply("sinc_1", y, x)), on=_ANY),
    elementwise("sinc_1", lambda v, x, y: (None, apply("sinc_2", x)), on=_ANY),
    *(_next_sinc(order) for order in range(2, SINC_ORDERS)),
    elementwise("as_remainder", lambda v, a, b, y: (None, 1.0, (y - a) / b), on=(_ANY, _ANY, _BASE), policy=_TEETH),
    elementwise("as_cbrt", lambda v, x, y: (None, 1.0 / (3.0 * y * y)), on=_BASE, policy="infinite at 0"),
    # powers of roots (`irad.passes.prepare.powers_of_roots`)
    elementwise("as_squared_length", lambda v, a, b, y: (None, 2.0 * a, 2.0 * b), on=_ANY),
    elementwise("as_squared_root", lambda v, x, y: (None, where(x >= 0.0, 1.0, math.nan)), on=_BASE, also=(0.0,)),
    elementwise("as_base", lambda v, x, p, y: (None, _side(x, p), None), on=_ANY, kinks=_SIDE),
    elementwise("as_length", lambda v, s, y: (1.0, None), on=_ANY),
    elementwise("as_identity", lambda v, x, y: (None, 1.0), on=_ANY),
    *(_of_value(name, part, partials) for name in _SLOPES for part, partials in _PARTS),
    *(_part(name, part, partials) for name in _NEXT for part, partials in _PARTS),
    *(_power(f"cpow_{part}", partials) for part, partials in _PARTS),
    *(_of_power_value(part, partials) for part, partials in _PARTS),
)
