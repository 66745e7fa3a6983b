"""Names: which LLVM symbols mean which elementwise function, and which symbol a call is emitted to.

A canonical name is C's, without precision (`sin`, `fmax`, `lgamma`). The families:

    llvm.sin.f64   llvm.sin.f32           LLVM intrinsics
    sin            sinf                   the C library
    numba_sin      numba_sinf             Numba's own C helpers
    __nv_sin       __nv_sinf              CUDA's libdevice
    scipy.special.expit   scipy.special.expit.f32    SciPy, as it exports functions to Cython

The last are names that the front end gives to addresses (`irad.frontend.external`): `.f32` in single precision, `.i64`
with integer arguments, and `.dispatch` after either where the call passes Cython's hidden flag.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from irad.ir import types
from irad.ir.types import FloatType, Type
from irad.records import dataclass
from irad.ruleset import shortcut_slopes

_LIBRARIES: Final = ("numba_", "__nv_")  # how the names of the C helpers and of libdevice's functions begin
_HELPER_PREFIX: Final = "irad_"
_SUFFIXES: Final = ((types.DOUBLE, "f64", ""), (types.FLOAT, "f32", "f"))
_INTEGER_SUFFIXES: Final = ("i32", "i64", "i16", "i8")


@dataclass(frozen=True, slots=True)
class Names:
    """The stems of one function, as words: without `llvm.`, `numba_`, `__nv_`, precision.

    Attributes:
        c: of the C library; Numba's helpers are named after them.
        llvm: of intrinsics.
        nv: of libdevice.
        nv_exact: libdevice names that spell the precision in their own way: `double/float`, either may be left out.
        numba: of Numba's helpers that are named otherwise.
        scipy: of SciPy's functions.
        intrinsic: calls are emitted to the intrinsic, not the C function: it becomes instructions, or Numba calls it
            itself. The others go to C names, which every LLVM release resolves and vector libraries are keyed by.
        integers: positions of integer arguments.
        defined: irad defines the function itself (`irad.ruleset.special`).
    """

    c: str = ""
    llvm: str = ""
    nv: str = ""
    nv_exact: str = ""
    numba: str = ""
    scipy: str = ""
    intrinsic: bool = False
    integers: frozenset[int] = frozenset()
    defined: bool = False

    @property
    def is_double_only(self) -> bool:
        """True if calls go to SciPy, which has most functions in double precision only."""
        return bool(self.scipy) and not (self.c or self.llvm or self.defined)


def _rounded(stem_double: str, stem_single: str) -> str:
    """The libdevice variants by rounding direction."""
    return " ".join(f"{stem_double}_{mode}/{stem_single}_{mode}" for mode in ("rn", "rz", "ru", "rd"))


# Functions that only SciPy has, by the name they have there.
_SCIPY: Final = (
    "expit logit log_expit log_ndtr ndtri_exp xlogy xlog1py entr rel_entr kl_div exprel boxcox huber pseudo_huber "
    "cosm1 sindg cosdg tandg cotdg wrightomega erfi dawsn voigt_profile wofz_imag spence expi exp1 expn owens_t "
    "boxcox1p inv_boxcox inv_boxcox1p powm1 radian rgamma binom poch "
    "beta betaln betainc betaincc betaincinv betainccinv gammainc gammaincc gammaincinv gammainccinv gammasgn "
    "stdtr stdtrit chdtr chdtrc chdtri chndtr chndtrix fdtr fdtrc fdtri gdtr gdtrc gdtria gdtrix pdtr pdtrc pdtri "
    "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri nrdtrimn nrdtrisd kolmogorov kolmogi iv kv ive kve kn i0 i1 i0e i1e "
    "k0 k1 k0e k1e struve modstruve itstruve0 it2struve0 itmodstruve0 ber bei ker kei berp beip kerp keip "
    "agm ellipk ellipkm1 ellipe ellipkinc ellipeinc elliprc elliprd elliprf elliprg elliprj "
    "hyp0f1 hyp1f1 hyp2f1 hyperu wright_bessel log_wright_bessel"
)

TABLE: Final[Mapping[str, Names]] = MappingProxyType(
    {
        # powers, exponentials
        "sqrt": Names("sqrt", "sqrt", "sqrt", _rounded("dsqrt", "fsqrt"), intrinsic=True),
        "cbrt": Names("cbrt", "", "cbrt", scipy="cbrt"),
        "rsqrt": Names("", "", "rsqrt", "/frsqrt_rn"),
        "rcbrt": Names("", "", "rcbrt"),
        "hypot": Names("hypot", "", "hypot"),
        "pow": Names("pow", "pow", "pow", "/fast_powf", intrinsic=True),
        "powi": Names("", "powi", "powi", intrinsic=True, integers=frozenset({1})),
        "exp": Names("exp __exp_finite", "exp", "exp", "/fast_expf", intrinsic=True),
        "exp2": Names("exp2", "exp2", "exp2", scipy="exp2", intrinsic=True),
        "exp10": Names("exp10 pow10", "exp10", "exp10", "/fast_exp10f", scipy="exp10"),
        "expm1": Names("expm1", "", "expm1", scipy="expm1"),
        "log": Names("log __log_finite", "log", "log", "/fast_logf", intrinsic=True),
        "log2": Names("log2", "log2", "log2", "/fast_log2f", intrinsic=True),
        "log10": Names("log10", "log10", "log10", "/fast_log10f", intrinsic=True),
        "log1p": Names("log1p", "", "log1p", scipy="log1p"),
        # trigonometric, hyperbolic
        "sin": Names("sin", "sin", "sin", "/fast_sinf", intrinsic=True),
        "cos": Names("cos", "cos", "cos", "/fast_cosf", intrinsic=True),
        "tan": Names("tan", "tan", "tan", "/fast_tanf"),
        "sinpi": Names("sinpi", "", "sinpi"),
        "cospi": Names("cospi", "", "cospi"),
        "asin": Names("asin", "asin", "asin"),
        "acos": Names("acos", "acos", "acos"),
        "atan": Names("atan", "atan", "atan"),
        "atan2": Names("atan2", "atan2", "atan2"),
        "sinh": Names("sinh", "sinh", "sinh"),
        "cosh": Names("cosh", "cosh", "cosh"),
        "tanh": Names("tanh", "tanh", "tanh"),
        "asinh": Names("asinh", "", "asinh"),
        "acosh": Names("acosh", "", "acosh"),
        "atanh": Names("atanh", "", "atanh"),
        # error and gamma functions, Bessel functions
        "erf": Names("erf", "", "erf", scipy="erf"),
        "erfc": Names("erfc", "", "erfc", scipy="erfc"),
        "erfcx": Names("", "", "erfcx", scipy="erfcx"),
        "erfinv": Names("", "", "erfinv", scipy="erfinv"),
        "erfcinv": Names("", "", "erfcinv", scipy="erfcinv"),
        "normcdf": Names("", "", "normcdf", scipy="ndtr"),
        "normcdfinv": Names("", "", "normcdfinv", scipy="ndtri"),
        "tgamma": Names("tgamma", "", "tgamma", numba="gamma", scipy="gamma"),
        "lgamma": Names("lgamma", "", "lgamma", scipy="gammaln loggamma"),
        "j0": Names("j0", "", "j0", scipy="j0"),
        "j1": Names("j1", "", "j1", scipy="j1"),
        "jn": Names("jn", "", "jn", integers=frozenset({0})),
        "y0": Names("y0", "", "y0", scipy="y0"),
        "y1": Names("y1", "", "y1", scipy="y1"),
        "yn": Names("yn", "", "yn", integers=frozenset({0})),
        # sign, order
        "fabs": Names("fabs", "fabs", "fabs", intrinsic=True),
        "copysign": Names("copysign", "copysign", "copysign", intrinsic=True),
        "fmax": Names("fmax", "maxnum maximumnum", "fmax", intrinsic=True),
        "fmin": Names("fmin", "minnum minimumnum", "fmin", intrinsic=True),
        "maximum": Names("fmaximum", "maximum", intrinsic=True),
        "minimum": Names("fminimum", "minimum", intrinsic=True),
        "fdim": Names("fdim", "", "fdim"),
        "saturate": Names("", "", "", "/saturatef"),
        # rounding, remainders, representation
        "floor": Names("floor", "floor", "floor", intrinsic=True),
        "ceil": Names("ceil", "ceil", "ceil", intrinsic=True),
        "trunc": Names("trunc", "trunc", "trunc", intrinsic=True),
        "rint": Names("rint nearbyint roundeven", "rint nearbyint roundeven", "rint nearbyint", intrinsic=True),
        "round": Names("round", "round", "round", scipy="round", intrinsic=True),
        "logb": Names("logb", "", "logb"),
        "fmod": Names("fmod", "", "fmod", numba="fixed_fmod"),
        "remainder": Names("remainder drem", "", "remainder"),
        "nextafter": Names("nextafter", "", "nextafter"),
        "ldexp": Names("ldexp scalbn", "ldexp", "ldexp scalbn", intrinsic=True, integers=frozenset({1})),
        "identity": Names("", "canonicalize arithmetic.fence ssa.copy"),
        # arithmetic
        "fma": Names("fma", "fma fmuladd", "fma", _rounded("fma", "fmaf"), intrinsic=True),
        "add": Names(nv_exact=_rounded("dadd", "fadd")),
        "sub": Names(nv_exact=_rounded("dsub", "fsub")),
        "mul": Names(nv_exact=_rounded("dmul", "fmul")),
        "div": Names(nv_exact=_rounded("ddiv", "fdiv") + " /fast_fdividef"),
        "reciprocal": Names(nv_exact=_rounded("drcp", "frcp")),
        # defined by `irad.ruleset.special`
        "digamma": Names(scipy="psi", defined=True),
        "trigamma": Names(defined=True),
        **{name: Names(defined=True) for name in shortcut_slopes.BODIES},
        # SciPy's own
        **{name: Names(scipy=name) for name in _SCIPY.split()},
        **{name: Names(scipy=f"{name} {name}e") for name in ("jv", "yv")},
        "yn_double": Names(scipy="yn"),
        **{f"{name}_integer": Names(scipy=name, integers=frozenset({0})) for name in ("expn", "kn", "yn", "pdtri")},
        **{f"bdtr{kind}_integer": Names(scipy=f"bdtr{kind}", integers=frozenset({1})) for kind in ("", "c", "i")},
        **{f"nbdtr{kind}_integer": Names(scipy=f"nbdtr{kind}", integers=frozenset({0, 1})) for kind in ("", "c", "i")},
    }
)


def stem_of_symbol(symbol: str) -> str:
    """The name of a function without its library and precision: `floor` of `llvm.floor.v4f64`, `floor`, `floorf`."""
    if symbol.startswith("llvm."):
        return symbol.split(".")[1]
    for library in _LIBRARIES:
        symbol = symbol.removeprefix(library)
    return symbol[:-1] if symbol.endswith("f") else symbol


def integer_arguments(name: str) -> frozenset[int]:
    """Positions of the integer arguments of a function."""
    return TABLE[name].integers


def symbols_of_function(name: str) -> tuple[tuple[str, FloatType], ...]:
    """All LLVM symbols of a function with their precision; user-defined names represent themselves."""
    return tuple(_spell(name, TABLE[name]))


def _spell(name: str, names: Names) -> Iterator[tuple[str, FloatType]]:
    tails = tuple(f".{suffix}" for suffix in _INTEGER_SUFFIXES) if names.integers else ("",)
    for type_, dotted, letter in _SUFFIXES:
        for stem in names.llvm.split():
            yield from ((f"llvm.{stem}.{dotted}{tail}", type_) for tail in tails)
        for stem in names.c.split():
            yield stem + letter, type_
        for stem in (*names.c.split(), *names.numba.split()):
            yield f"numba_{stem}{letter}", type_
        for stem in names.nv.split():
            yield f"__nv_{stem}{letter}", type_
        for exact in names.nv_exact.split():
            double, _, single = exact.partition("/")
            stem = double if type_ is types.DOUBLE else single
            if stem:
                yield f"__nv_{stem}", type_
        if names.defined:
            yield helper_symbol(name, type_), type_
        yield from ((symbol, type_) for symbol in _scipy_symbols(names, type_))


def _scipy_symbols(names: Names, type_: FloatType) -> Iterator[str]:
    """SciPy's functions: with integer arguments there is only one precision."""
    if names.integers and type_ is not types.DOUBLE:
        return
    suffix = ".i64" if names.integers else "" if type_ is types.DOUBLE else ".f32"
    for stem in names.scipy.split():
        yield f"scipy.special.{stem}{suffix}"
        yield f"scipy.special.{stem}{suffix}.dispatch"


_EXTERNAL: Final = "irad.external."


def external_symbol(address: int, text: str) -> str:
    """The symbol of a function that has no name of its own; ``text`` says in words what it is."""
    return f"{_EXTERNAL}{address:x}.{text}"


def external_text(symbol: str) -> str | None:
    """Text given to `external_symbol`; None for other symbols."""
    return symbol.removeprefix(_EXTERNAL).partition(".")[2] if symbol.startswith(_EXTERNAL) else None


def is_double_only(name: str, triple: str | None) -> bool:
    """True if a function is computed in double precision also where a single result is wanted."""
    return TABLE[name].is_double_only and not (_is_device(triple) and TABLE[name].nv)


def _is_device(triple: str | None) -> bool:
    return triple is not None and triple.startswith("nvptx")


def helper_symbol(name: str, type_: FloatType) -> str:
    """The symbol of a function that irad defines itself."""
    return f"{_HELPER_PREFIX}{name}_{'f64' if type_ is types.DOUBLE else 'f32'}"


def emitted_symbol(name: str, type_: FloatType, parameters: Sequence[Type], triple: str | None) -> str:
    """The symbol that a generated call uses.

    Args:
        parameters: the argument types; integer ones end up in the name of an intrinsic.
        triple: of the module: on NVPTX maths goes to libdevice.

    Raises:
        KeyError: no function of that name is known.
    """
    names = TABLE[name]
    dotted, letter = next((dotted, letter) for known, dotted, letter in _SUFFIXES if known is type_)
    if _is_device(triple) and names.nv:
        return f"__nv_{names.nv.split()[0]}{letter}"
    if names.is_double_only:
        return next(_scipy_symbols(names, types.DOUBLE))
    if names.intrinsic or not names.c:
        tail = "".join(f".{parameters[i]}" for i in sorted(names.integers))
        return f"llvm.{names.llvm.split()[0]}.{dotted}{tail}"
    return names.c.split()[0] + letter
