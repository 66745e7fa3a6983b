"""Rules of SciPy's special functions: formulas against high-precision derivatives, code against formulas, programs."""

from __future__ import annotations

import ctypes
import random
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.special.cython_special
from numba import njit
from numba.extending import get_cython_function_address

import irad
from irad.frontend.external import scipy_functions
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.text.printer import print_module
from irad.rules.scipy import elliptic as scipy_elliptic, special as scipy_special, voigt as scipy_voigt
from irad.ruleset import reference
from irad.ruleset.expr import emit, evaluate
from irad.ruleset.interface import Elementwise
from irad.ruleset.registry import Registry
from irad.ruleset.symbols import TABLE
from irad.testing.check_gradient import check_gradient
from irad.testing.check_rule import check_rule

RULES = (*scipy_special.RULES, *scipy_elliptic.RULES, *scipy_voigt.RULES)
NAMED = {rule.name: rule for rule in RULES if isinstance(rule, Elementwise)}
WITHOUT_FORMULA = {"elliprj", "gammasgn"}
SMOOTH = [rule for name, rule in NAMED.items() if name not in WITHOUT_FORMULA]

# Positions of arguments that are whole numbers: of integer variants, and of those that drop the rest of a number.
COUNTS = {
    **dict.fromkeys(("expn", "kn", "yn", "pdtr", "pdtrc", "pdtri"), frozenset({0})),
    **dict.fromkeys(("bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"), frozenset({0, 1})),
}


def name_in_scipy(name: str) -> str:
    return name.removesuffix("_integer").removesuffix("_double")


def counts_of(name: str) -> frozenset[int]:
    return COUNTS.get(name_in_scipy(name), frozenset[int]())


def regularised_beta(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def inverse(f: Callable[[Any], Any], y: Any, start: Any) -> Any:
    return mpmath.findroot(lambda x: f(x) - y, (0.999 * start, 1.001 * start), solver="illinois")


def gamma_quantile(a: Any, p: Any) -> Any:
    guess = scipy.special.gammaincinv(float(a), float(p))
    return inverse(lambda x: mpmath.gammainc(a, 0, x, regularized=True), p, guess)


def beta_quantile(a: Any, b: Any, p: Any) -> Any:
    return inverse(lambda x: regularised_beta(a, b, x), p, scipy.special.betaincinv(float(a), float(b), float(p)))


def student(v: Any, t: Any) -> Any:
    half = regularised_beta(v / 2, mpmath.mpf(1) / 2, v / (v + t * t)) / 2
    return 1 - half if t > 0 else half


def noncentral(x: Any, df: Any, nc: Any) -> Any:
    """A Poisson mixture of chi-squared distributions."""
    half = nc / 2

    def term(j: Any) -> Any:
        weight = mpmath.exp(-half) * half**j / mpmath.factorial(j)
        return weight * mpmath.gammainc(df / 2 + j, 0, x / 2, regularized=True)

    return mpmath.fsum(term(j) for j in range(60))


def owens_t(h: Any, a: Any) -> Any:
    return mpmath.quad(lambda x: mpmath.exp(-h * h * (1 + x * x) / 2) / (1 + x * x), [0, a]) / (2 * mpmath.pi)


def voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    z = mpmath.mpc(x, gamma) / (sigma * mpmath.sqrt(2))
    return (mpmath.exp(-z * z) * mpmath.erfc(-1j * z)).real / (sigma * mpmath.sqrt(2 * mpmath.pi))


def f_quantile(a: Any, b: Any, p: Any) -> Any:
    w = beta_quantile(a / 2, b / 2, p)
    return b * w / (a * (1 - w))


def binomial_tail(k: Any, n: Any, p: Any) -> Any:
    """Probability of more than k."""
    k = mpmath.floor(k)
    return regularised_beta(k + 1, n - k, p) if k < n else mpmath.mpf(0)


def normal_quantile(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def kolmogorov(x: Any) -> Any:
    if x <= 0:
        return mpmath.mpf(1)
    terms = range(1, 60)  # enough for 160 digits
    if x < 1:
        rates = (((2 * k - 1) * mpmath.pi / x) ** 2 / 8 for k in terms)
        return 1 - mpmath.sqrt(2 * mpmath.pi) / x * mpmath.fsum(mpmath.exp(-rate) for rate in rates)
    return 2 * mpmath.fsum((-1) ** (k - 1) * mpmath.exp(-2 * (k * x) ** 2) for k in terms)


def struve_integral(sign: int) -> Callable[[Any], Any]:
    half = mpmath.mpf(3) / 2
    return lambda x: x * x / mpmath.pi * mpmath.hyper([1, 1], [half, half, 2], sign * x * x / 4)


def struve_quotient_integral(x: Any) -> Any:
    half = mpmath.mpf(1) / 2
    return mpmath.pi / 2 - 2 * x / mpmath.pi * mpmath.hyper([half, 1], [1 + half] * 3, -x * x / 4)


def kelvin_slope(f: Callable[..., Any], g: Callable[..., Any], sign: int) -> Callable[[Any], Any]:
    return lambda x: (sign * f(1, x) + g(1, x)) / mpmath.sqrt(2)


def wright(a: Any, b: Any, x: Any) -> Any:
    total = mpmath.mpf(0)
    for k in range(400):
        term = x**k / mpmath.factorial(k) * mpmath.rgamma(a * k + b)
        total += term
        if k > 3 and abs(term) < mpmath.eps * abs(total):
            break
    return total


def degrees(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: f(x * mpmath.pi / 180)


def huber(d: Any, r: Any) -> Any:
    return r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2)


# The functions in arbitrary precision; what mpmath has under the same name is taken from there.
EXACT: dict[str, Callable[..., Any]] = {
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "logit": lambda x: mpmath.log(x / (1 - x)),
    "log_expit": lambda x: -mpmath.log1p(mpmath.exp(-x)),
    "log_ndtr": lambda x: mpmath.log(mpmath.ncdf(x)),
    "ndtri_exp": lambda x: inverse(lambda z: mpmath.log(mpmath.ncdf(z)), x, scipy.special.ndtri_exp(float(x))),
    "xlogy": lambda x, a: x * mpmath.log(a),
    "xlog1py": lambda x, a: x * mpmath.log1p(a),
    "entr": lambda x: -x * mpmath.log(x),
    "rel_entr": lambda a, b: a * mpmath.log(a / b),
    "kl_div": lambda a, b: a * mpmath.log(a / b) - a + b,
    "exprel": lambda x: mpmath.expm1(x) / x if x else mpmath.mpf(1),
    "boxcox": lambda x, p: (x**p - 1) / p if p else mpmath.log(x),
    "boxcox1p": lambda x, p: ((1 + x) ** p - 1) / p if p else mpmath.log1p(x),
    "inv_boxcox": lambda z, p: (1 + p * z) ** (1 / p) if p else mpmath.exp(z),
    "inv_boxcox1p": lambda z, p: (1 + p * z) ** (1 / p) - 1 if p else mpmath.expm1(z),
    "powm1": lambda x, p: x**p - 1,
    "radian": lambda d, m, s: (d + m / 60 + s / 3600) * mpmath.pi / 180,
    "binom": mpmath.binomial,
    "agm": lambda a, b: mpmath.agm(a, b) if a + b >= 0 else -mpmath.agm(-a, -b),
    "poch": mpmath.rf,
    "huber": huber,
    "pseudo_huber": lambda d, r: d * d * (mpmath.sqrt(1 + (r / d) ** 2) - 1),
    "cosm1": lambda x: mpmath.cos(x) - 1,
    "sindg": degrees(mpmath.sin),
    "cosdg": degrees(mpmath.cos),
    "tandg": degrees(mpmath.tan),
    "cotdg": degrees(mpmath.cot),
    "wrightomega": lambda x: mpmath.lambertw(mpmath.exp(x)).real,
    "dawsn": lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x),
    "voigt_profile": voigt,
    "spence": lambda z: mpmath.polylog(2, 1 - z).real,
    "expi": mpmath.ei,
    "exp1": mpmath.e1,
    "expn": mpmath.expint,
    "owens_t": owens_t,
    "betaln": lambda a, b: mpmath.log(mpmath.beta(a, b)),
    "gammainc": lambda a, x: mpmath.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mpmath.gammainc(a, x, regularized=True),
    "gammaincinv": gamma_quantile,
    "gammainccinv": lambda a, p: gamma_quantile(a, 1 - p),
    "betainc": regularised_beta,
    "betaincc": lambda a, b, x: 1 - regularised_beta(a, b, x),
    "betaincinv": beta_quantile,
    "betainccinv": lambda a, b, p: beta_quantile(a, b, 1 - p),
    "chdtr": lambda v, x: mpmath.gammainc(v / 2, 0, x / 2, regularized=True),
    "chdtrc": lambda v, x: mpmath.gammainc(v / 2, x / 2, regularized=True) if x > 0 else mpmath.mpf(1),
    "chdtri": lambda v, p: 2 * gamma_quantile(v / 2, 1 - p),
    "fdtr": lambda a, b, x: regularised_beta(a / 2, b / 2, a * x / (a * x + b)),
    "fdtrc": lambda a, b, x: 1 - regularised_beta(a / 2, b / 2, a * x / (a * x + b)),
    "fdtri": f_quantile,
    "gdtr": lambda a, b, x: mpmath.gammainc(b, 0, a * x, regularized=True),
    "gdtrc": lambda a, b, x: mpmath.gammainc(b, a * x, regularized=True),
    "gdtria": lambda p, b, x: gamma_quantile(b, p) / x,
    "gdtrix": lambda a, b, p: gamma_quantile(b, p) / a,
    "pdtr": lambda k, m: mpmath.gammainc(mpmath.floor(k) + 1, m, regularized=True),
    "pdtrc": lambda k, m: mpmath.gammainc(mpmath.floor(k) + 1, 0, m, regularized=True),
    "pdtri": lambda k, p: gamma_quantile(mpmath.floor(k) + 1, 1 - p),
    "bdtr": lambda k, n, p: 1 - binomial_tail(k, n, p),
    "bdtrc": binomial_tail,
    "bdtri": lambda k, n, p: beta_quantile(k + 1, n - k, 1 - p),
    "nbdtr": lambda k, n, p: regularised_beta(n, k + 1, p),
    "nbdtrc": lambda k, n, p: 1 - regularised_beta(n, k + 1, p),
    "nbdtri": lambda k, n, p: beta_quantile(n, k + 1, p),
    "nrdtrimn": lambda p, deviation, x: x - deviation * normal_quantile(p),
    "nrdtrisd": lambda mean, p, x: (x - mean) / normal_quantile(p),
    "kolmogorov": kolmogorov,
    "kolmogi": lambda p: inverse(kolmogorov, p, scipy.special.kolmogi(float(p))),
    "stdtr": student,
    "stdtrit": lambda v, p: inverse(lambda t: student(v, t), p, scipy.special.stdtrit(float(v), float(p))),
    "chndtr": noncentral,
    "chndtrix": lambda p, df, nc: inverse(
        lambda x: noncentral(x, df, nc), p, scipy.special.chndtrix(float(p), float(df), float(nc))
    ),
    "kn": mpmath.besselk,
    "yn": mpmath.bessely,
    "struve": mpmath.struveh,
    "modstruve": mpmath.struvel,
    "itstruve0": struve_integral(-1),
    "itmodstruve0": struve_integral(1),
    "it2struve0": struve_quotient_integral,
    "ber": lambda x: mpmath.ber(0, x),
    "bei": lambda x: mpmath.bei(0, x),
    "ker": lambda x: mpmath.ker(0, x),
    "kei": lambda x: mpmath.kei(0, x),
    "berp": kelvin_slope(mpmath.ber, mpmath.bei, 1),
    "beip": kelvin_slope(mpmath.ber, mpmath.bei, -1),
    "kerp": kelvin_slope(mpmath.ker, mpmath.kei, 1),
    "keip": kelvin_slope(mpmath.ker, mpmath.kei, -1),
    "wright_bessel": wright,
    "log_wright_bessel": lambda a, b, x: mpmath.log(wright(a, b, x)),
    "jv": mpmath.besselj,
    "yv": mpmath.bessely,
    "iv": mpmath.besseli,
    "kv": mpmath.besselk,
    "ive": lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-abs(x)),
    "kve": lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x),
    "i0": lambda x: mpmath.besseli(0, x),
    "i1": lambda x: mpmath.besseli(1, x),
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
    "i1e": lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)),
    "k0": lambda x: mpmath.besselk(0, x),
    "k1": lambda x: mpmath.besselk(1, x),
    "k0e": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "k1e": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "ellipkm1": lambda p: mpmath.ellipk(1 - p),
    "ellipkinc": mpmath.ellipf,
    "ellipeinc": mpmath.ellipe,
}
# What names mean in partials: SciPy's own, in double precision.
FUNCTIONS = dict(reference.FUNCTIONS) | {
    name: getattr(scipy.special, name_in_scipy(name)) for name in (*NAMED, "erfcx") if name not in reference.FUNCTIONS
}
FUNCTIONS["normcdf"], FUNCTIONS["normcdfinv"] = scipy.special.ndtr, scipy.special.ndtri
FUNCTIONS["wofz_imag"] = lambda x, y: scipy.special.wofz(x + 1j * y).imag


# SciPy's Bessel and elliptic functions are good to about 1e-13, differences of them lose a digit; these are worse.
ACCURACY = {"hyperu": 1e-9, "chndtr": 1e-9, "chndtrix": 1e-9, "stdtrit": 1e-10}


def exact(name: str) -> Callable[..., Any]:
    name = name_in_scipy(name)
    return EXACT.get(name) or getattr(mpmath, name)


def points(rule: Elementwise, count: int = 4) -> list[tuple[float, ...]]:
    generator = random.Random(rule.name)
    whole = counts_of(rule.name)
    drawn = [[generator.uniform(d.low, d.high) for d in rule.domains] for _ in range(count)]
    return [tuple(float(round(x)) if i in whole else x for i, x in enumerate(point)) for point in drawn]


def values_at(rule: Elementwise, point: tuple[float, ...]) -> dict[str, float]:
    with mpmath.workdps(30):
        y = float(exact(rule.name)(*map(mpmath.mpf, point)))
    return {"y": y} | {f"x{i}": x for i, x in enumerate(point)}


@pytest.mark.parametrize("rule", SMOOTH, ids=lambda rule: rule.name)
def test_partials_are_the_derivatives(rule: Elementwise):
    for point, argument in product(points(rule), range(rule.arity)):
        partial = rule.partials[argument]
        if partial is None:
            assert argument in rule.refused | counts_of(rule.name)
            continue
        with mpmath.workdps(30):
            order = tuple(int(i == argument) for i in range(rule.arity))
            expected = float(mpmath.diff(exact(rule.name), tuple(map(mpmath.mpf, point)), order))
        given = evaluate(partial, values_at(rule, point), FUNCTIONS)
        assert given == pytest.approx(expected, rel=ACCURACY.get(rule.name, 2e-12), abs=2e-14), point


@pytest.mark.parametrize("rule", [r for r in SMOOTH if not counts_of(r.name)], ids=lambda rule: rule.name)
def test_the_public_check_accepts_what_is_not_refused(rule: Elementwise):
    if not rule.refused:
        check_rule(rule, functions=FUNCTIONS)


EDGES = [
    ("log_ndtr", 0, (-1e8,), 1e8),
    ("log_ndtr", 0, (40.0,), 0.0),
    ("log_expit", 0, (800.0,), 0.0),
    ("log_expit", 0, (-800.0,), 1.0),
    ("exprel", 0, (0.0,), 0.5),
    ("i1", 0, (0.0,), 0.5),
    ("i1e", 0, (0.0,), 0.5),
    ("i0e", 0, (0.0,), 0.0),
    ("spence", 0, (1.0,), -1.0),
    ("xlogy", 1, (0.0, 0.0), 0.0),
    ("xlog1py", 1, (0.0, -1.0), 0.0),
    ("gammainc", 1, (1.0, 0.0), 1.0),
    ("gammainc", 1, (2.0, 0.0), 0.0),
    ("gammainc", 1, (0.5, 0.0), np.inf),
    ("betainc", 2, (1.0, 1.0, 0.0), 1.0),
    ("betainc", 2, (1.0, 1.0, 1.0), 1.0),
    ("ellipk", 0, (0.0,), np.pi / 8),
    ("ellipe", 0, (0.0,), -np.pi / 8),
    ("ellipkm1", 0, (1e-12,), -0.5e12),
    ("voigt_profile", 0, (0.5, 0.0, 0.7), -2 * 0.5 * 0.7 / (np.pi * 0.74**2)),
    ("voigt_profile", 1, (0.5, 0.0, 0.7), 0.0),
    ("voigt_profile", 2, (0.5, 0.0, 0.7), (0.25 - 0.49) / (np.pi * 0.74**2)),
    ("voigt_profile", 0, (0.5, 1.0, 0.0), -0.5 * np.exp(-0.125) / np.sqrt(2 * np.pi)),
]


@pytest.mark.parametrize(
    "point", [(10.0, 0.5, 0.1), (20.0, 1.0, 0.01), (1e3, 0.2, 3.0), (3.0, 1e-4, 1e3), (19.0, 1.0, 2.0)]
)
def test_the_voigt_profile_far_from_the_line(point: tuple[float, float, float]):
    """Where the formulas cancel: on both sides of the distance from which the series is used."""
    for argument, partial in enumerate(NAMED["voigt_profile"].partials):
        with mpmath.workdps(60):
            order = tuple(int(i == argument) for i in range(3))
            expected = float(mpmath.diff(voigt, tuple(map(mpmath.mpf, point)), order))
        assert partial is not None
        given = evaluate(partial, values_at(NAMED["voigt_profile"], point), FUNCTIONS)
        assert given == pytest.approx(expected, rel=2e-10, abs=0), argument


@pytest.mark.parametrize(("name", "argument", "point", "expected"), EDGES)
def test_edges(name: str, argument: int, point: tuple[float, ...], expected: float):
    partial = NAMED[name].partials[argument]
    assert partial is not None
    values = {"y": float(FUNCTIONS[name](*point))} | {f"x{i}": x for i, x in enumerate(point)}
    assert evaluate(partial, values, FUNCTIONS) == pytest.approx(expected, rel=1e-9, abs=1e-15)


# ------------------------------------------------------------------------------------------------ code


@pytest.fixture(scope="module")
def engine() -> llvm.ExecutionEngine:
    """The partials of all rules, compiled, in both precisions."""
    assert scipy_functions()  # makes them known to LLVM
    module = Module()
    for rule, type_ in product(SMOOTH, (types.DOUBLE, types.FLOAT)):
        integers = TABLE[rule.name].integers
        parameters = [types.I64 if i in integers else type_ for i in range(rule.arity)]
        names = [f"x{i}" for i in range(rule.arity)] + ["y"]
        for argument, partial in enumerate(rule.partials):
            if partial is not None:
                signature = types.function_type(type_, [*parameters, type_])
                function = module.define(f"{rule.name}.{argument}.{type_}", signature, names)
                builder = Builder(function.add_block("entry"))
                builder.ret(emit(partial, builder, dict(zip(names, function.params, strict=True)), type_))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    compiled = llvm.parse_assembly(print_module(module))
    compiled.verify()
    engine = llvm.create_mcjit_compiler(compiled, llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    return engine


@pytest.mark.parametrize("type_", [types.DOUBLE, types.FLOAT], ids=str)
@pytest.mark.parametrize("rule", SMOOTH, ids=lambda rule: rule.name)
def test_code_computes_the_formula(engine: llvm.ExecutionEngine, rule: Elementwise, type_: types.FloatType):
    real = ctypes.c_double if type_ is types.DOUBLE else ctypes.c_float
    kinds = [ctypes.c_int64 if i in TABLE[rule.name].integers else real for i in range(rule.arity)]
    for point, (argument, partial) in product(points(rule), enumerate(rule.partials)):
        if partial is None:
            continue
        rounded = tuple(real(x).value if kind is real else int(x) for kind, x in zip(kinds, point, strict=True))
        values = values_at(rule, rounded)
        values["y"] = real(values["y"]).value
        address = engine.get_function_address(f"{rule.name}.{argument}.{type_}")
        given = ctypes.CFUNCTYPE(real, *kinds, real)(address)(*rounded, values["y"])
        expected = evaluate(partial, values, FUNCTIONS)
        tolerance = 2e-13 if type_ is types.DOUBLE else 3e-5
        assert given == pytest.approx(expected, rel=tolerance, abs=tolerance), point


def test_every_rule_belongs_to_a_function_that_scipy_exports():
    registry = Registry.of(*RULES)
    assert scipy_functions()["scipy.special.sici"] == 3
    ruled = {symbol: rule for symbol in scipy_functions() if (rule := registry.lookup(symbol)) is not None}
    assert {id(rule) for rule in ruled.values()} == {id(rule) for rule in RULES}  # equality walks a tree of parts
    for symbol, rule in ruled.items():
        assert isinstance(rule, Elementwise)
        assert rule.arity == scipy_functions()[symbol]


# ------------------------------------------------------------------------------------------------ programs

D = ctypes.c_double


def exported(name: str, *arguments: Any, result: Any = D) -> Any:
    address = get_cython_function_address("scipy.special.cython_special", name)
    return ctypes.CFUNCTYPE(result, *arguments)(address)


jv = exported("__pyx_fuse_1jv", D, D)
jv_with_flag = exported("__pyx_fuse_1jv", D, D, ctypes.c_int)
kv = exported("__pyx_fuse_1kv", D, D)
gammaln = exported("gammaln", D)
psi = exported("__pyx_fuse_1psi", D)
gammainc = exported("gammainc", D, D)
ndtr = exported("__pyx_fuse_1ndtr", D)
expit_single = exported("__pyx_fuse_1expit", ctypes.c_float, result=ctypes.c_float)
expn = exported("__pyx_fuse_1expn", ctypes.c_long, D)
zetac = exported("zetac", D)
voigt_profile = exported("voigt_profile", D, D, D)
ellipkinc = exported("ellipkinc", D, D)
bdtr = exported("__pyx_fuse_1bdtr", D, ctypes.c_long, D)
nbdtr = exported("__pyx_fuse_1nbdtr", ctypes.c_long, ctypes.c_long, D)
kn = exported("__pyx_fuse_1kn", ctypes.c_long, D)
yn = exported("__pyx_fuse_0yn", D, D)


@njit
def several(x, y):
    s = 0.0
    for i in range(3):
        s += jv(0.5 + i, x * y) * gammaln(x + i) - kv(1.5, y)
    return s * ndtr(x) + psi(y) * gammainc(2.0, x)


@njit
def by_position(n, x):
    return jv(n, x) * jv(n + 1.0, x)


@njit
def with_flag(x):
    return jv_with_flag(0.5, x, 0) * jv(1.5, x)


@njit
def integer_order(x):
    return expn(3, x) * expn(1, x * x)


@njit
def counted(p, n):
    return bdtr(2.0, n, p) * nbdtr(n, 3, p) + kn(n, p) * yn(2.0, p)


@njit
def by_shape(phi, m):
    return ellipkinc(phi, m) * ellipkinc(phi + 3.0, m)


@njit
def constant_use(n, x):
    return zetac(float(n)) * x + x * x


@njit
def without_rule(x):
    return zetac(x)


@njit
def spectrum(x, centre, sigma, gamma):
    s = 0.0
    for i in range(x.size):
        s += np.log(voigt_profile(x[i] - centre, sigma, gamma))
    return s


@njit
def single(x):
    return expit_single(x)


def test_programs():
    check_gradient(several, 0.7, 1.3)
    check_gradient(by_position, 1.5, 0.8, argnums=(1,))
    check_gradient(with_flag, 0.8)
    check_gradient(integer_order, 0.8)
    check_gradient(counted, 0.4, 5, argnums=(0,))
    check_gradient(by_shape, 0.8, 0.6)
    check_gradient(spectrum, np.array([-2.0, 0.5, 40.0]), 0.3, 0.4, 1.2)


def test_a_function_without_rule_may_be_used_where_nothing_is_active():
    check_gradient(constant_use, 3, 0.7)


def test_single_precision():
    given = irad.grad(single)(np.float32(0.3))
    assert given == pytest.approx(scipy.special.expit(0.3) * scipy.special.expit(-0.3), rel=1e-6)


def test_a_function_without_rule_is_refused_by_name():
    with pytest.raises(
        irad.NoRuleError, match=r"scipy\.special\.zetac(?s:.*)test_scipy_special\.py:\d+ in without_rule"
    ):
        irad.grad(without_rule)(2.5)


def test_the_order_of_a_bessel_function_is_refused_by_name():
    with pytest.raises(irad.UnsupportedError, match=re.escape("scipy.special.jv with respect to its first argument")):
        irad.grad(by_position)(1.5, 0.8)


# ------------------------------------------------------------------------------------------------ several results

P = ctypes.POINTER(D)
sici = exported("__pyx_fuse_1sici", D, P, P, result=None)
shichi = exported("__pyx_fuse_1shichi", D, P, P, result=None)
fresnel = exported("__pyx_fuse_1fresnel", D, P, P, result=None)
airy = exported("__pyx_fuse_1airy", D, P, P, P, P, result=None)
ellipj = exported("ellipj", D, D, P, P, P, P, result=None)
airye = exported("__pyx_fuse_1airye", D, P, P, P, P, result=None)
integrals = [exported(name, D, P, P, result=None) for name in ("itj0y0", "iti0k0", "it2j0y0", "it2i0k0")]
itj0y0, iti0k0, it2j0y0, it2i0k0 = integrals
C = ctypes.c_void_p
kelvin = exported("kelvin", D, C, C, C, C, result=None)
modfresnelp = exported("modfresnelp", D, C, C, result=None)
modfresnelm = exported("modfresnelm", D, C, C, result=None)
pbdv = exported("pbdv", D, D, P, P, result=None)


@njit
def two_results(x):
    a = np.empty(2)
    b = np.empty(2)
    c = np.empty(2)
    sici(x, a.ctypes, a[1:].ctypes)
    shichi(x, b.ctypes, b[1:].ctypes)
    fresnel(x, c.ctypes, c[1:].ctypes)
    return np.array([a[0] * b[1], a[1] + b[0] * c[0], c[1] * x])


@njit
def four_results_in_a_loop(v):
    out = np.ones((v.size + 1, 4))
    for i in range(v.size):
        row = out[i]
        airy(v[i] * out[0, 0], row.ctypes, row[1:].ctypes, row[2:].ctypes, row[3:].ctypes)
    return out


@njit
def results_of_two(u, m):
    out = np.empty(4)
    ellipj(u, m, out.ctypes, out[1:].ctypes, out[2:].ctypes, out[3:].ctypes)
    return out


@njit
def integrals_and_scaled(x):
    out = np.empty((3, 4))
    airye(x, out.ctypes, out[0, 1:].ctypes, out[0, 2:].ctypes, out[0, 3:].ctypes)
    itj0y0(x, out[1].ctypes, out[1, 1:].ctypes)
    iti0k0(x, out[1, 2:].ctypes, out[1, 3:].ctypes)
    it2j0y0(x, out[2].ctypes, out[2, 1:].ctypes)
    it2i0k0(x, out[2, 2:].ctypes, out[2, 3:].ctypes)
    return out


@njit
def complex_results(x):
    out = np.empty((2, 4), np.complex128)
    kelvin(x, out.ctypes, out[0, 1:].ctypes, out[0, 2:].ctypes, out[0, 3:].ctypes)
    modfresnelp(x, out[1].ctypes, out[1, 1:].ctypes)
    modfresnelm(x, out[1, 2:].ctypes, out[1, 3:].ctypes)
    return np.stack((out.real, out.imag))


@njit
def results_without_rule(x):
    out = np.empty(2)
    pbdv(0.5, x, out.ctypes, out[1:].ctypes)
    return out[0]


def test_several_results():
    check_gradient(two_results, 0.8)
    check_gradient(four_results_in_a_loop, np.array([0.3, 0.8, -1.2]))


def test_several_results_without_rule_are_refused_by_name():
    with pytest.raises(irad.NoRuleError, match="pbdv"):
        irad.grad(results_without_rule)(0.5)
