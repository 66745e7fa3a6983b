"""Special points of irad's own scalar rules: a case for each rule, made from its declaration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final

import llvmlite.binding as llvm
import mpmath
import numpy as np
import scipy.special.cython_special
from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

from irad.frontend.external import scipy_functions
from irad.ir import types as ir_types
from irad.rules import elementwise
from irad.rules.scipy import elliptic, special, voigt
from irad.ruleset.expr import Where, parts_of
from irad.ruleset.interface import Elementwise
from irad.ruleset.symbols import TABLE, symbols_of_function
from tests.rules import test_elementwise, test_scipy_special
from tests.special_points import known
from tests.special_points.second_kind import bessel_k, bessel_y
from tests.special_points.table import NOT_FINITE, ZERO, Case, Convention, Demand, special_points
from tests.special_points.truth import Order, Point

assert scipy.special.cython_special
assert scipy_functions()  # makes them known to LLVM

# Functions that only a GPU has, as the CPU computes them here; their rules are the same.
_OF_LIBDEVICE: Final[dict[str, Callable[..., float]]] = {
    "rsqrt": lambda x: x**-0.5,
    "rcbrt": lambda x: math.copysign(abs(x) ** (-1.0 / 3.0), x),
    "sinpi": lambda x: math.sin(math.pi * (x - 2.0 * round(0.5 * x))),
    "cospi": lambda x: math.cos(math.pi * (x - 2.0 * round(0.5 * x))),
    "saturate": lambda x: min(max(x, 0.0), 1.0),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a * b**-1.0,
    "reciprocal": lambda x: x**-1.0,
}
_KEPT: Final[list[Any]] = []  # compiled functions, whose addresses LLVM knows


for _number, _name in ((types.float64, "__powidf2"), (types.float32, "__powisf2")):
    _KEPT.append(cfunc(_number(_number, types.int32))(lambda x, n: x ** float(n)))
    llvm.add_symbol(_name, _KEPT[-1].address)  # LLVM's code calls it, the compiler's library has it


def _symbol(name: str, arity: int) -> str:
    """A symbol of a function that this process has."""
    double = [symbol for symbol, precision in symbols_of_function(name) if precision is ir_types.DOUBLE]
    if name == "powi":
        return "llvm.powi.f64.i32"
    if name in _OF_LIBDEVICE:
        is_single = not double  # saturate
        number = types.float32 if is_single else types.float64
        made = cfunc(number(*(number,) * arity))(_OF_LIBDEVICE[name])
        _KEPT.append(made)
        symbol = next(s for s, _ in symbols_of_function(name) if s.startswith("__nv_"))
        llvm.add_symbol(symbol, made.address)
        return symbol
    for prefix in ("scipy.special.", "llvm."):
        found = [s for s in double if s.startswith(prefix) and not s.endswith(".dispatch")]
        if found:
            return found[0]
    return TABLE[name].c.split()[0]


def _single_symbol(name: str) -> str | None:
    """A symbol of a function of single precision that this process has."""
    found = [symbol for symbol, precision in symbols_of_function(name) if precision is ir_types.FLOAT]
    return next((s for s in found if s.startswith("llvm.") or llvm.address_of_symbol(s)), None)


def _call(rule: Elementwise, single: str | None = None) -> Callable[..., Any]:
    """A function of doubles, for compiled code, that calls the function of a rule by its symbol.

    Args:
        single: a symbol of single precision, in place of one of double precision.
    """
    symbol, integers = single or _symbol(rule.name, rule.arity), TABLE[rule.name].integers
    wide = symbol.startswith("scipy.")
    is_single = single is not None or rule.name == "saturate"

    def of(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer, number = ir.IntType(64 if wide else 32), ir.FloatType() if is_single else ir.DoubleType()
        floats = [builder.fptrunc(a, number) for a in arguments] if is_single else arguments
        given = [builder.fptosi(a, integer) if i in integers else a for i, a in enumerate(floats)]
        function = ir.FunctionType(number, [a.type for a in given])
        result = builder.call(cgutils.get_or_insert_function(builder.module, function, symbol), given)
        return builder.fpext(result, ir.DoubleType()) if is_single else result

    signature = types.float64(*(types.float64,) * rule.arity)
    if rule.arity == 1:
        made = intrinsic(lambda typing, x: (signature, of))
        return lambda x: made(x)
    if rule.arity == 2:
        made = intrinsic(lambda typing, x, y: (signature, of))
        return lambda x, y: made(x, y)
    if rule.arity == 3:
        made = intrinsic(lambda typing, x, y, z: (signature, of))
        return lambda x, y, z: made(x, y, z)
    made = intrinsic(lambda typing, x, y, z, w: (signature, of))
    return lambda x, y, z, w: made(x, y, z, w)


# mpmath takes limits at integer orders, which are slow.
_SECOND_KIND: Final[dict[str, Callable[..., Any]]] = {
    "y0": lambda x: bessel_y(0, x),
    "y1": lambda x: bessel_y(1, x),
    "yn": lambda n, x: bessel_y(int(n), x),
    "k0": lambda x: bessel_k(0, x),
    "k1": lambda x: bessel_k(1, x),
    "k0e": lambda x: bessel_k(0, x) * mpmath.exp(x),
    "k1e": lambda x: bessel_k(1, x) * mpmath.exp(x),
    "kv": lambda v, x: bessel_k(int(v), x) if v == int(v) else mpmath.besselk(v, x),
    "kve": lambda v, x: (bessel_k(int(v), x) if v == int(v) else mpmath.besselk(v, x)) * mpmath.exp(x),
    "yv": lambda v, x: bessel_y(int(v), x) if v == int(v) else mpmath.bessely(v, x),
    **{name: lambda n, x: bessel_k(int(n), x) for name in ("kn", "kn_integer")},
    **{name: lambda n, x: bessel_y(int(n), x) for name in ("yn_double", "yn_integer")},
}

# Of functions that mpmath computes by quadrature or by finding a root of a series: these points only.
_FEW: Final[dict[str, tuple[tuple[float, ...], ...]]] = {
    "owens_t": ((0.7, 1.3), (0.0, 0.7), (0.7, 0.0), (0.0, 0.0), (1e-9, 1e-9), (-1.0, 1.0), (1e-5, 2.0)),
    "chndtr": ((1.3, 2.6, 0.7), (1.3, 2.0, 0.0), (1.3, 3.0, 1e-5), (2.0, 2.0, 1.0), (1e-5, 2.6, 0.7)),
    "chndtrix": ((0.4, 2.6, 0.7), (0.5, 2.0, 1.0)),
    **dict.fromkeys(("ker", "kei", "kerp", "keip"), ((0.7,), (0.0,), (1.0,), (1e-5,), (40.0,))),
    "radian": ((0.7, 1.3, 1.2), (0.0, 0.0, 0.0), (-1.0, 0.0, 40.0)),
    "nrdtrimn": ((0.7, 1.3, 1.2), (0.5, 1.0, 0.0), (1e-5, 2.0, -1.0)),
    "nrdtrisd": ((0.0, 0.7, 1.2), (1.0, 0.9, 1.0), (-1.0, 0.3, -2.0)),
    "gdtria": ((0.4, 1.3, 0.7), (0.5, 1.0, 2.0), (1e-5, 2.0, 1.0)),
    "gdtrix": ((0.7, 1.3, 0.4), (2.0, 1.0, 0.5), (1.0, 2.0, 1e-5)),
    "fdtri": ((1.3, 2.6, 0.4), (2.0, 1.0, 0.5), (1.0, 3.0, 1e-5)),
    "chdtri": ((1.3, 0.4), (2.0, 0.5), (1.0, 1e-5)),
    "betainccinv": ((1.3, 2.6, 0.4), (2.0, 1.0, 0.5), (1.0, 3.0, 1e-5)),
    **dict.fromkeys(
        ("bdtr", "bdtrc", "bdtr_integer", "bdtrc_integer"),
        ((0.0, 5.0, 0.4), (3.0, 3.0, 0.5), (1.0, 6.0, 1e-5), (0.0, 1.0, 0.0), (2.0, 5.0, 0.0), (1.0, 2.0, 1.0)),
    ),
    **dict.fromkeys(
        ("nbdtr", "nbdtrc", "nbdtr_integer", "nbdtrc_integer"),
        ((0.0, 5.0, 0.4), (3.0, 3.0, 0.5), (1.0, 6.0, 1e-5), (0.0, 1.0, 0.0), (2.0, 2.0, 0.0), (0.0, 2.0, 1.0)),
    ),
    **dict.fromkeys(("pdtri", "pdtri_integer"), ((0.0, 0.4), (2.0, 0.5), (1.0, 1e-5))),
    **dict.fromkeys(("bdtri", "bdtri_integer"), ((0.0, 5.0, 0.4), (2.0, 3.0, 0.5), (1.0, 6.0, 1e-5))),
    **dict.fromkeys(("nbdtri", "nbdtri_integer"), ((0.0, 5.0, 0.4), (2.0, 3.0, 0.5), (1.0, 1.0, 1e-5))),
    **dict.fromkeys(
        ("ellipkinc", "ellipeinc"),
        ((0.7, 0.3), (0.0, 0.5), (0.7, 0.0), (0.7, 1.0), (2.0, 1e-9), (-3.0, -1.0), (40.0, 0.7), (1.5, 1.0 - 1e-5)),
    ),
    "elliprc": ((0.7, 1.3), (1.0, 1.0), (1.0, 1.0 + 1e-9), (0.0, 0.7), (0.7, -1.3), (1e-9, 2.0), (2.0, 1e-5)),
    "elliprd": ((0.7, 1.3, 2.1), (1.0, 1.0, 1.0 + 1e-9), (2.1, 0.7, 2.1 + 1e-5), (1e-9, 40.0, 0.7)),
    "elliprf": ((0.7, 1.3, 2.1), (1.0, 1.0, 1.0 + 1e-9), (2.1, 0.7, 2.1 + 1e-5), (1e-9, 40.0, 0.7)),
    "elliprg": ((0.7, 1.3, 2.1), (1.0, 1.0, 1.0 + 1e-9), (2.1, 0.7, 2.1 + 1e-5), (1e-9, 40.0, 0.7)),
    "wright_bessel": ((0.7, 1.3, 0.7), (1.0, 1.0, 0.0), (0.0, 1.3, 2.1), (2.0, 0.3, 1e-9)),
    "log_wright_bessel": ((0.7, 1.3, 0.7), (1.0, 1.0, 0.0), (0.0, 1.3, 2.1), (2.0, 0.3, 1e-9)),
    "voigt_profile": ((0.7, 1.3, 1.2), (0.0, 1.3, 1.2), (-1.0, 1e-5, 0.7), (1e-9, 0.5, 1e-5), (40.0, 1.0, 1.0)),
}

# Roots that mpmath finds from a guess of SciPy's: without one there is none.
_INVERSE: Final = frozenset(
    "gammaincinv gammainccinv betaincinv betainccinv stdtrit chndtrix ndtri_exp chdtri fdtri gdtria gdtrix kolmogi "
    "pdtri pdtri_integer bdtri bdtri_integer nbdtri nbdtri_integer".split()
)

# Where functions are defined, if mpmath goes on beyond.
_DEFINED: Final[dict[str, Callable[..., bool]]] = {
    "gammainc": lambda a, x: x >= 0,
    "gammaincc": lambda a, x: x >= 0,
    "betainc": lambda a, b, x: 0 <= x <= 1,
    "betaincc": lambda a, b, x: 0 <= x <= 1,
    "expn": lambda n, x: x >= 0,
    "expn_integer": lambda n, x: x >= 0,
    "exp1": lambda x: x >= 0,
    "chndtr": lambda x, df, nc: x >= 0 and nc >= 0,
    "ellipk": lambda m: m < 1,
    "ellipkm1": lambda p: p > 0,
    "ellipe": lambda m: m <= 1,
    "hyperu": lambda a, b, x: x >= 0,
    "hyp2f1": lambda a, b, c, x: x <= 1,
    "kv": lambda v, x: x >= 0,
    "kve": lambda v, x: x >= 0,
    "yv": lambda v, x: x >= 0,
    "spence": lambda z: z >= 0,
    "boxcox": lambda x, p: x >= 0,
    "xlogy": lambda x, a: a >= 0,
    "xlog1py": lambda x, a: a >= -1,
    "rel_entr": lambda a, b: a >= 0 and b >= 0,
    "kl_div": lambda a, b: a >= 0 and b >= 0,
    "huber": lambda d, r: d >= 0,
    "pseudo_huber": lambda d, r: d >= 0,
    "stdtr": lambda v, t: v > 0,
    "stdtrit": lambda v, p: 0 < p < 1,
    "gammaincinv": lambda a, p: 0 < p < 1,
    "gammainccinv": lambda a, p: 0 < p < 1,
    "betaincinv": lambda a, b, p: 0 < p < 1,
    "ndtri_exp": lambda x: x < 0,
    "betainccinv": lambda a, b, p: 0 < p < 1,
    "chdtr": lambda v, x: x >= 0,
    "chdtri": lambda v, p: 0 < p < 1,
    "fdtr": lambda a, b, x: x >= 0,
    "fdtrc": lambda a, b, x: x >= 0,
    "fdtri": lambda a, b, p: 0 < p < 1,
    "gdtr": lambda a, b, x: a >= 0 and x >= 0,
    "gdtrc": lambda a, b, x: a >= 0 and x >= 0,
    "gdtria": lambda p, b, x: 0 < p < 1 and x > 0,
    "gdtrix": lambda a, b, p: 0 < p < 1 and a > 0,
    "pdtr": lambda k, m: m >= 0,
    "pdtrc": lambda k, m: m >= 0,
    **{name: lambda k, p: 0 < p < 1 for name in ("pdtri", "pdtri_integer")},
    **{f"bdtr{kind}": lambda k, n, p: 0 <= p <= 1 for kind in ("", "c", "_integer", "c_integer")},
    **{f"bdtr{kind}": lambda k, n, p: 0 < p < 1 for kind in ("i", "i_integer")},
    **{f"nbdtr{kind}": lambda k, n, p: 0 <= p <= 1 for kind in ("", "c", "_integer", "c_integer")},
    **{f"nbdtr{kind}": lambda k, n, p: 0 < p < 1 for kind in ("i", "i_integer")},
    "nrdtrimn": lambda p, deviation, x: 0 < p < 1 and deviation > 0,
    "nrdtrisd": lambda mean, p, x: 0 < p < 1 and p != 0.5,
    "kolmogi": lambda p: 0 < p < 1,
    **{name: lambda n, x: x >= 0 for name in ("kn", "kn_integer", "yn_double", "yn_integer")},
    **{name: lambda x: x >= 0 for name in ("ker", "kei", "kerp", "keip")},
    "modstruve": lambda v, x: x >= 0 or v == int(v),
    "struve": lambda v, x: x >= 0 or v == int(v),
    "binom": lambda n, k: n > -1,
    "poch": lambda a, m: a >= 0 and a + m > 0,
    "boxcox1p": lambda x, p: x >= -1,
    "inv_boxcox": lambda z, p: 1 + p * z >= 0,
    "inv_boxcox1p": lambda z, p: 1 + p * z >= 0,
    "agm": lambda a, b: a * b >= 0,
    "ellipkinc": lambda phi, m: m * mpmath.sin(phi) ** 2 < 1 and (m < 1 or abs(phi) < mpmath.pi / 2) and m <= 1,
    "ellipeinc": lambda phi, m: m <= 1,
}


def _fused(a: Any, b: Any, c: Any) -> Any:
    with mpmath.workdps(2 * mpmath.mp.dps):  # where the terms cancel, rounding is not to be all that is left
        return a * b + c


def _exact(name: str) -> Callable[..., Any]:
    if name in _SECOND_KIND:
        return _SECOND_KIND[name]
    if name == "fma":
        return _fused
    tables = test_elementwise if name in test_elementwise.NAMED else test_scipy_special
    exact = tables.exact(name)
    is_defined = _DEFINED.get(name)

    def checked(*arguments: Any) -> Any:
        if is_defined is not None and not is_defined(*arguments):
            raise ValueError
        if name in _INVERSE:
            guess = float(test_scipy_special.FUNCTIONS[name](*map(float, arguments)))
            if not math.isfinite(guess) or guess == 0.0 or (guess == 1.0 and name == "betaincinv"):
                raise ValueError  # too close to an end for a search
            try:
                return exact(*arguments)
            except TypeError as error:  # a root on which the methods fall off the real axis
                raise ValueError from error
        return exact(*arguments)

    return checked


# How far out mpmath computes a function within a second; by default everywhere if it has no parameters.
_FAR: Final = {"fmod": 1e8, "remainder": 1e8, "sindg": 1e8, "cosdg": 1e8, "tandg": 1e8, "cotdg": 1e8, "beta": 1e3,
               "owens_t": 10.0, "chndtr": 10.0, "chndtrix": 1.0, "j0": 1e6, "j1": 1e6, "jn": 1e6, "y0": 40.0,
               "y1": 40.0, "yn": 40.0, "k0": 40.0, "k1": 40.0, "k0e": 40.0, "k1e": 40.0, "rgamma": 100.0, "binom": 40.0,
               "poch": 40.0, "agm": 40.0, "boxcox": 40.0, "boxcox1p": 40.0, "inv_boxcox": 40.0, "inv_boxcox1p": 40.0,
               "ellipkinc": 40.0, "ellipeinc": 40.0, "pdtr": 40.0, "pdtrc": 40.0,
               **dict.fromkeys(("itstruve0", "itmodstruve0", "it2struve0", "ber", "bei", "ker", "kei"), 40.0),
               **dict.fromkeys(("berp", "beip", "kerp", "keip", "kn", "kn_integer"), 40.0),
               **dict.fromkeys(("yn_double", "yn_integer"), 40.0)}  # fmt: skip


def _both_zero(point: Point, order: Order) -> bool:
    return point[:2] == (0.0, 0.0)


def _edge(corner: Point) -> tuple[Convention, ...]:
    """Of x times a logarithm, where x is 0 and the logarithm infinite."""
    return (
        Convention(lambda p, o: p == corner and o == (0, 1), ZERO, f"{corner}: 0 with respect to the second argument"),
        Convention(
            lambda p, o: p == corner and o[1] > 0,
            Demand((*ZERO.intervals, *NOT_FINITE.intervals), nan=True),
            "in the orders above 0 or not finite",
        ),
    )


_IN_DEGREES: Final = frozenset({"sindg", "cosdg", "tandg", "cotdg"})


def _boxcox(is_base_zero: Callable[[Point], bool]) -> tuple[Convention, ...]:
    """Where the base is 0 and the exponent 1, a logarithm is infinite in place of which the rule has a large number."""
    return (
        Convention(
            lambda p, o: p[1] == 1.0 and is_base_zero(p) and sum(o) > 1,
            Demand(((-math.inf, math.inf),), nan=True),
            "base 0 and λ = 1: 0, large or not finite in orders above the first",
        ),
    )


_CONVENTIONS: Final[dict[str, tuple[Convention, ...]]] = {
    "hypot": (Convention(_both_zero, ZERO, "0 at the origin, in all orders"),),
    "atan2": (Convention(_both_zero, ZERO, "0 at the origin, in all orders"),),
    "pow": (Convention(_both_zero, ZERO, "base and exponent 0: 0, in all orders"),),
    "huber": (
        Convention(
            lambda p, o: _both_zero(p, o) and o == (0, 2),
            Demand(((1.0, 1.0),)),
            "both 0: the derivative of the quadratic part",
        ),
        Convention(_both_zero, ZERO, ""),
    ),
    "copysign": (Convention(lambda p, o: p[1] == 0.0 and o == (1, 0), Demand(((-1.0, 1.0),)), "zeros have a sign"),),
    "rel_entr": (Convention(_both_zero, ZERO, "both 0: 0, in all orders"),),
    "kl_div": (
        Convention(lambda p, o: _both_zero(p, o) and o == (0, 1), Demand(((1.0, 1.0),)), "both 0: 0 and 1"),
        Convention(_both_zero, ZERO, "0 in higher orders"),
    ),
    "pseudo_huber": (Convention(_both_zero, ZERO, "both 0: 0, in all orders"),),
    "powm1": (Convention(_both_zero, ZERO, "base and exponent 0: 0, in all orders"),),
    "agm": (Convention(_both_zero, ZERO, "both 0: 0, in all orders"),),
    "poch": (
        Convention(
            _both_zero, Demand(((-math.inf, math.inf),), nan=True), "both 0, where the function jumps: any number"
        ),
    ),
    "boxcox": _boxcox(lambda p: p[0] == 0.0),
    "boxcox1p": _boxcox(lambda p: p[0] == -1.0),
    "inv_boxcox": _boxcox(lambda p: p[0] == -1.0),
    "inv_boxcox1p": _boxcox(lambda p: p[0] == -1.0),
    "xlogy": _edge((0.0, 0.0)),
    "xlog1py": _edge((0.0, -1.0)),
}


@cache
def case_of(name: str) -> Case:
    """The case of a rule."""
    rule = _RULE[name]
    exact = _exact(rule.name)
    wrt = tuple(i for i, partial in enumerate(rule.partials) if partial is not None)
    far = _FAR.get(rule.name, 40.0 if rule.refused else 1e160)
    return Case(
        name,
        _call(rule),
        exact,
        _points(rule, exact, wrt, far),
        wrt,
        _CONVENTIONS.get(rule.name, ()),
        is_guarded(rule),
        _OF_LIBRARY.get(name, 1e-11),
        _SCALES.get(name, 0.0),
        far=min(far, 1e45),
        not_right=known.listed().get(name, {}),
    )


def _points(rule: Elementwise, exact: Callable[..., Any], wrt: tuple[int, ...], far: float) -> tuple[Point, ...]:
    points = _FEW.get(rule.name) or special_points(rule.domains, exact, wrt, far)
    integers = TABLE[rule.name].integers | test_scipy_special.counts_of(rule.name)
    points = tuple(p for p in points if all(p[i] == int(p[i]) for i in integers if math.isfinite(p[i])))
    points = tuple(p for p in points if all(math.isfinite(p[i]) for i in range(rule.arity) if i not in wrt))
    if rule.name in _IN_DEGREES:
        return tuple(p for p in points if math.isfinite(p[0]))  # SciPy gives 0 beyond 1e14
    return _in_single(points, rounded=True) if rule.name == "saturate" else points


def _in_single(points: tuple[Point, ...], *, rounded: bool) -> tuple[Point, ...]:
    """Points whose parts are numbers of single precision, or rounded to such."""
    small = [p for p in points if all(abs(x) < 1e38 or math.isinf(x) for x in p)]
    narrow = [(p, tuple(float(np.float32(x)) for x in p)) for p in small]
    chosen = [near for p, near in narrow if rounded or near == p]
    return tuple({tuple(x.hex() for x in p): p for p in chosen}.values())


@cache
def single_case_of(name: str, *, rounded: bool) -> Case:
    """The case of a rule in single precision.

    Args:
        rounded: points of which single precision has only a neighbour are tried there.
    """
    case = case_of(name)
    return replace(
        case,
        name=f"{name} in single precision",
        function=_call(_RULE[name], _single_symbol(name)),
        points=_in_single(case.points, rounded=rounded),
        rtol=max(2e-5, case.rtol),
        single=True,
        not_right=known.listed().get(f"{name} in single precision", {}),
    )


def is_guarded(rule: Elementwise) -> bool:
    """Whether a partial derivative branches."""
    return any(isinstance(part, Where) for each in rule.partials if each is not None for part in parts_of(each))


_OF_LIBRARY: Final = {"hyperu": 1e-7, "dawsn": 1e-10, "binom": 1e-9, "struve": 1e-9, "fdtri": 1e-5}
_SCALES: Final = {"binom": 1.0}  # derivatives that vanish for whole numbers are sums of terms of this size
"""How precise rules and SciPy's own functions are, where that is less than usual.

The third derivative of `dawsn` cancels below 7, where the asymptotic series begins.
"""

SLOW: Final = frozenset({"owens_t", "chndtr", "chndtrix", "elliprd", "elliprf", "elliprg"})  # mpmath takes a minute
FIRST_ONLY: Final = frozenset({"voigt_profile"})
"""Functions whose second derivatives are refused, so that nothing is compiled together with them."""

RULES: Final = tuple(
    rule
    for rule in (*elementwise.RULES, *special.RULES, *elliptic.RULES, *voigt.RULES)
    if isinstance(rule, Elementwise) and any(partial is not None for partial in rule.partials)
)
_RULE: Final = {rule.name: rule for rule in RULES}
NAMES: Final = tuple(_RULE)
SINGLE: Final = tuple(name for name in NAMES if name not in SLOW and _single_symbol(name) is not None)
"""Functions that this process has in single precision."""


@cache
def exact_in_single() -> tuple[str, ...]:
    """Functions of single precision with points that it has to the bit: what is right there is known already."""
    return tuple(name for name in SINGLE if single_case_of(name, rounded=False).points)


GUARDED: Final = tuple(rule.name for rule in RULES if is_guarded(rule))
