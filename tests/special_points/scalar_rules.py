"""Special points of irad's own scalar rules: a case for each rule, made from its declaration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import llvmlite.binding as llvm
import mpmath
import scipy.special.cython_special
from llvmlite import ir
from numba import cfunc, types
from numba.core import cgutils
from numba.extending import intrinsic

from irad.frontend.external import scipy_functions
from irad.ir import types as ir_types
from irad.rules import elementwise
from irad.rules.scipy import special, voigt
from irad.ruleset.expr import Where, parts_of
from irad.ruleset.interface import Elementwise
from irad.ruleset.symbols import TABLE, symbols_of_function
from tests.rules import test_elementwise, test_scipy_special
from tests.special_points.second_kind import bessel_k, bessel_y
from tests.special_points.table import Case, Convention, special_points

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


def _symbol(name: str, arity: int) -> str:
    """A symbol of a function that this process has."""
    double = [symbol for symbol, precision in symbols_of_function(name) if precision is ir_types.DOUBLE]
    if name == "powi":
        made = cfunc(types.float64(types.float64, types.int32))(lambda x, n: x ** float(n))
        _KEPT.append(made)
        llvm.add_symbol("__powidf2", made.address)  # LLVM's code calls it, the compiler's library has it
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


def _call(rule: Elementwise) -> Callable[..., Any]:
    """A function for compiled code that calls the function of a rule by its symbol."""
    symbol, integers = _symbol(rule.name, rule.arity), TABLE[rule.name].integers
    wide = symbol.startswith("scipy.")
    is_single = all(precision is ir_types.FLOAT for _, precision in symbols_of_function(rule.name))

    def of(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer, number = ir.IntType(64 if wide else 32), ir.FloatType() if is_single else ir.DoubleType()
        given = [builder.fptosi(a, integer) if i in integers else a for i, a in enumerate(arguments)]
        given = [builder.fptrunc(a, number) for a in given] if is_single else given
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
}

# Of functions that mpmath computes by quadrature or by finding a root of a series: these points only.
_FEW: Final[dict[str, tuple[tuple[float, ...], ...]]] = {
    "owens_t": ((0.7, 1.3), (0.0, 0.7), (0.7, 0.0), (0.0, 0.0), (1e-9, 1e-9), (-1.0, 1.0), (1e-5, 2.0)),
    "chndtr": ((1.3, 2.6, 0.7), (1.3, 2.0, 0.0), (1.3, 3.0, 1e-5), (2.0, 2.0, 1.0), (1e-5, 2.6, 0.7)),
    "chndtrix": ((0.4, 2.6, 0.7), (0.5, 2.0, 1.0)),
    "voigt_profile": ((0.7, 1.3, 1.2), (0.0, 1.3, 1.2), (-1.0, 1e-5, 0.7), (1e-9, 0.5, 1e-5), (40.0, 1.0, 1.0)),
}

# Roots that mpmath finds from a guess of SciPy's: without one there is none.
_INVERSE: Final = ("gammaincinv", "gammainccinv", "betaincinv", "stdtrit", "chndtrix", "ndtri_exp")

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
    "stdtr": lambda v, t: v > 0,
    "stdtrit": lambda v, p: 0 < p < 1,
    "gammaincinv": lambda a, p: 0 < p < 1,
    "gammainccinv": lambda a, p: 0 < p < 1,
    "betaincinv": lambda a, b, p: 0 < p < 1,
    "ndtri_exp": lambda x: x < 0,
}


def _exact(name: str) -> Callable[..., Any]:
    if name in _SECOND_KIND:
        return _SECOND_KIND[name]
    tables = test_elementwise if name in test_elementwise.NAMED else test_scipy_special
    exact = tables.exact(name)
    is_defined = _DEFINED.get(name)

    def checked(*arguments: Any) -> Any:
        if is_defined is not None and not is_defined(*arguments):
            raise ValueError
        if name in _INVERSE:
            guess = float(test_scipy_special.FUNCTIONS[name](*map(float, arguments)))
            if not math.isfinite(guess) or guess == 0.0:
                raise ValueError
            try:
                return exact(*arguments)
            except TypeError as error:  # a root on which the methods fall off the real axis
                raise ValueError from error
        return exact(*arguments)

    return checked


# How far out mpmath computes a function within a second; by default everywhere if it has no parameters.
_FAR: Final = {"fmod": 1e8, "remainder": 1e8, "sindg": 1e8, "cosdg": 1e8, "tandg": 1e8, "cotdg": 1e8, "beta": 1e3,
               "owens_t": 10.0, "chndtr": 10.0, "chndtrix": 1.0, "j0": 1e6, "j1": 1e6, "jn": 1e6, "y0": 40.0,
               "y1": 40.0, "yn": 40.0, "k0": 40.0, "k1": 40.0, "k0e": 40.0, "k1e": 40.0}  # fmt: skip


def _at(
    holds: Callable[[tuple[float, ...]], bool], text: str, first: Sequence[float | tuple[float, float]]
) -> Convention:
    """A convention for the first derivatives; of the orders above it says nothing."""
    count = len(first)
    return Convention(holds, {tuple(int(i == k) for i in range(count)): value for k, value in enumerate(first)}, text)


def _both_zero(point: tuple[float, ...]) -> bool:
    return point[:2] == (0.0, 0.0)


_CONVENTIONS: Final[dict[str, tuple[Convention, ...]]] = {
    "hypot": (_at(_both_zero, "0 at the origin", (0.0, 0.0)),),
    "atan2": (_at(_both_zero, "0 at the origin", (0.0, 0.0)),),
    "pow": (
        _at(_both_zero, "0 to the 0: 0 with respect to both", (0.0, 0.0)),
        Convention(lambda p: p[0] == 0.0 and p[1] <= 3.0, {(0, 1): 0.0}, "base 0: 0 with respect to the exponent"),
    ),
    "xlogy": (_at(_both_zero, "both 0: infinite, and 0 with respect to the second", (-math.inf, 0.0)),),
    "xlog1py": (
        _at(lambda p: p == (0.0, -1.0), "0 and -1: infinite, and 0 with respect to the second", (-math.inf, 0.0)),
    ),
    "huber": (Convention(_both_zero, {}, "both 0: what holds inside"),),
    "rel_entr": (Convention(_both_zero, {}, "both 0: NaN"),),
    "kl_div": (Convention(_both_zero, {}, "both 0: NaN"),),
    "copysign": (Convention(lambda p: p[1] == 0.0, {(1, 0): (-1.0, 1.0)}, "a zero has a sign"),),
}


@cache
def case_of(name: str) -> Case:
    """The case of a rule."""
    rule = next(rule for rule in RULES if rule.name == name)
    exact = _exact(rule.name)
    wrt = tuple(i for i, partial in enumerate(rule.partials) if partial is not None)
    far = _FAR.get(rule.name, 40.0 if rule.refused else 1e160)
    points = _FEW.get(name) or special_points(rule.domains, exact, wrt, far)
    integers = TABLE[rule.name].integers | ({0} if rule.name == "expn" else set())
    points = tuple(p for p in points if all(p[i] == int(p[i]) for i in integers if math.isfinite(p[i])))
    points = tuple(p for p in points if all(math.isfinite(p[i]) for i in range(rule.arity) if i not in wrt))
    conventions, guarded = _CONVENTIONS.get(rule.name, ()), is_guarded(rule)
    not_right = (*_NOT_RIGHT.get(name, ()), *_FAR_OUT)
    rtol = _OF_LIBRARY.get(name, 1e-11)
    far = min(far, 1e45)
    return Case(name, _call(rule), exact, points, wrt, conventions, guarded, rtol, far=far, not_right=not_right)


def is_guarded(rule: Elementwise) -> bool:
    """Whether a partial derivative branches."""
    return any(isinstance(part, Where) for each in rule.partials if each is not None for part in parts_of(each))


_OF_LIBRARY: Final = {"hyperu": 1e-7}
"""How precise SciPy's own functions are, where that is less than usual."""

SLOW: Final = frozenset({"owens_t", "chndtr", "chndtrix"})  # mpmath takes a minute
FIRST_ONLY: Final = frozenset({"voigt_profile"})
"""Functions whose second derivatives are refused, so that nothing is compiled together with them."""

_Known: TypeAlias = tuple[Callable[[tuple[float, ...], tuple[int, ...]], bool], str]
_FAR_OUT: Final[tuple[_Known, ...]] = (
    (
        lambda p, order: sum(order) > 1 and any(abs(x) > 1e100 for x in p),
        "beyond 1e100 second and third derivatives may be NaN: their denominators overflow",
    ),
)
_INFINITE: Final[_Known] = (
    lambda p, order: any(map(math.isinf, p)),
    "NaN at infinite arguments, where the formula divides infinity by infinity",
)
_POLES: Final[_Known] = (
    lambda p, order: any(x <= 0.0 and x == math.floor(x) for x in p) or any(map(math.isinf, p)),
    "beside infinite numbers, and where an argument is a pole of the gamma function: NaN, or few digits",
)
_NOT_RIGHT: Final[dict[str, tuple[_Known, ...]]] = {
    "beta": (_POLES,),
    "betaln": (_POLES,),
    "pow": (_INFINITE,),
    "hypot": (_INFINITE,),
    "atan2": (_INFINITE,),
    "wrightomega": (_INFINITE,),
    "hyperu": (
        (
            lambda p, order: 0.0 < p[2] < 1e-4 and p[1] >= 3.0,
            "NaN close to 0 for some whole b, as SciPy's own values are",
        ),
    ),
    "saturate": ((lambda p, order: 0.0 < abs(p[0] - 1.0) < 1e-8, "in single precision 1 - 1e-9 is 1"),),
    "spence": (
        (lambda p, order: sum(order) == 3 and p[0] == 1.0, "NaN for the third derivative at 1 in reverse mode"),
    ),
    "dawsn": ((lambda p, order: sum(order) == 3, "third derivatives at 8 to 1e-10"),),
    "ive": ((lambda p, order: p[1] == 0.0, "NaN at 0 for orders below 1, where the derivative is infinite"),),
    "pseudo_huber": ((lambda p, order: p[0] == 0.0, "NaN for a width of 0"),),
}


RULES: Final = tuple(
    rule
    for rule in (*elementwise.RULES, *special.RULES, *voigt.RULES)
    if isinstance(rule, Elementwise) and any(partial is not None for partial in rule.partials)
)
NAMES: Final = tuple(rule.name for rule in RULES)
GUARDED: Final = tuple(rule.name for rule in RULES if is_guarded(rule))


def page() -> str:
    """The section of docs/rules.md."""
    rows = [_row(case_of(name)) for name in NAMES]
    count = sum(len(case_of(name).points) for name in NAMES)
    return "\n".join((_PAGE.format(functions=len(NAMES), points=count), *rows, ""))


_PAGE: Final = """## Special points

Each scalar rule is compared with mpmath at points that are made from its declaration (`tests/special_points`): the ends
of its domain, zeros of either sign, integers, equal arguments, both sides of these at 1e-9 and 1e-5, far out, at
infinity: {points} points of {functions} functions. Every run of the tests has first derivatives of all but `owens_t`,
`chndtr` and `chndtrix`, and second and third ones of rules that branch; slow tests are written for the others, not
of `voigt_profile`. Where a function is not smooth, an element of the subdifferential is right; the conventions, and
what is not right, are these. For all: {{far}}.

| rule | points | where it is not smooth | not right |
| --- | --- | --- | --- |""".replace("{{far}}", _FAR_OUT[0][1])


def _row(case: Case) -> str:
    conventions = "; ".join(each.text for each in case.conventions)
    known = "; ".join(text for _, text in _NOT_RIGHT.get(case.name, ()))
    return f"| `{case.name}` | {len(case.points)} | {conventions} | {known} |"
