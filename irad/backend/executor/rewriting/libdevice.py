"""CUDA's device library: its functions by those of the C library, and by LLVM text (``native/libdevice.ll``).

Refused by name are those that round in another direction than to nearest: no arithmetic of the CPU does so by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from irad.backend.runtime.text import LlvmText, read
from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.module import Function, Module

_NATIVE: Final = Path(__file__).parents[1] / "native"
_PREFIX: Final = "__nv_"
_C: Final = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor "
    "fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb modf "
    "nearbyint nextafter pow remainder remquo rint round scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn"
)
_FAST: Final = "cos exp exp10 log log10 log2 pow sin sincos tan"
_SYMBOLS: Final = {
    **{f"{_PREFIX}{name}{suffix}": f"{name}{suffix}" for name in _C.split() for suffix in ("", "f")},
    **{f"{_PREFIX}fast_{name}f": f"{name}f" for name in _FAST.split()},
    f"{_PREFIX}fma_rn": "fma",
    f"{_PREFIX}fmaf_rn": "fmaf",
    f"{_PREFIX}dsqrt_rn": "sqrt",
    f"{_PREFIX}fsqrt_rn": "sqrtf",
    **{f"llvm.powi.{suffix}.i32": f"{_PREFIX}powi{letter}" for suffix, letter in (("f64", ""), ("f32", "f"))},
}
_ROUNDED: Final = "rsqrt rcbrt sinpi cospi erfinv erfcinv erfcx normcdf normcdfinv"  # float, by double
_HALF: Final = "irad.cuda.half"
_FLOATS: Final = {"double": "f64", "float": "f32"}
_INTEGERS: Final = {"int": ("i32", "si"), "uint": ("i32", "ui"), "ll": ("i64", "si"), "ull": ("i64", "ui")}
_WIDTHS: Final = (
    {"int": "i32", "bits": "32", "wide": "i64", "ll": "", "64": ""},
    {"int": "i64", "bits": "64", "wide": "i128", "ll": "ll", "64": "64"},
)  # parameters of the text: functions of integers, with what their names have for 64 bits
_TO_INTEGER: Final = {"rn": "roundeven", "rz": "trunc", "ru": "ceil", "rd": "floor"}


def is_known(symbol: str) -> bool:
    """True if the executor can call a function of the library."""
    return symbol in _SYMBOLS or symbol in _defined()


def define_libdevice(module: Module) -> None:
    """Replaces calls of the library by calls of functions of the process or of `libdevice_text`."""
    for name in [name for name in module.functions if name in _SYMBOLS]:
        function = module.functions.pop(name)
        known = module.functions.setdefault(_SYMBOLS[name], function)
        if known is function:
            function.name = _SYMBOLS[name]
        else:
            ir.replace_uses(function, known)
    for function in module.defined_functions():
        for block in function.blocks:
            for inst in list(block.instructions):
                _widen_fma(inst)
                _define_rounding(module, inst)


def _widen_fma(inst: ir.Instruction) -> None:
    """Of halves, in double: x86 has none, and a result that fits into a half is exact before it is rounded."""
    if isinstance(inst, ir.Call) and isinstance(inst.callee, Function) and inst.callee.name == "llvm.fma.f16":
        build = Builder.before(inst)
        wide = build.intrinsic("llvm.fma.f64", types.DOUBLE, [build.fpext(x, types.DOUBLE) for x in inst.arguments])
        rounded = build.fptrunc(wide, types.HALF)
        ir.replace_uses(inst, rounded)
        inst.erase()
        assert isinstance(rounded, ir.Instruction)
        _define_rounding(build.module, rounded)


def _define_rounding(module: Module, inst: ir.Instruction) -> None:
    """To half precision from double: LLVM would call a function that no library has."""
    if isinstance(inst, ir.Cast) and inst.type is types.HALF and inst.operands[0].type is types.DOUBLE:
        callee = module.declare(_HALF, types.function_type(types.HALF, [types.DOUBLE]))
        ir.replace_uses(inst, Builder.before(inst).call(callee, [inst.operands[0]]))
        inst.erase()


def needs_libdevice(names: Iterable[str]) -> bool:
    """True if code that declares functions of these names has to be linked with `libdevice_text`."""
    return any(name in _defined() for name in names)


def libdevice_text() -> str:
    """Definitions in LLVM's text, which may stand in any number of modules."""
    return _library().text()


@cache
def _library() -> LlvmText:
    by_hand = read(_NATIVE, "libdevice", structs=(), parameters=_WIDTHS)
    return by_hand.with_text("\n".join(_generated()))


@cache
def _defined() -> frozenset[str]:
    functions = _library().functions.items()
    return frozenset(name for name, function in functions if function.head.startswith("define linkonce_odr "))


def _generated() -> Iterator[str]:
    """Functions that differ in names and types only."""
    for name in _ROUNDED.split():
        yield _single(name, "", "")
    yield _single("powi", ", i32 %n", ", i32 %n")
    yield _function("float", "frsqrt_rn", "float %x", "%r = call float @__nv_rsqrtf(float %x)")
    for type_ in _FLOATS:
        letter = type_[0]
        for word in ("add", "sub", "mul", "div"):
            yield _function(type_, f"{letter}{word}_rn", f"{type_} %x, {type_} %y", f"%r = f{word} {type_} %x, %y")
        yield _function(type_, f"{letter}rcp_rn", f"{type_} %x", f"%r = fdiv {type_} 1.0, %x")
        yield _sine_and_cosine(type_)
        yield from _conversions(type_)
    yield _function("float", "fast_fdividef", "float %x, float %y", "%r = fdiv float %x, %y")
    yield _function("float", "double2float_rn", "double %x", "%r = fptrunc double %x to float")


def _function(result: str, name: str, parameters: str, *lines: str) -> str:
    """A definition whose last line gives its result, ``%r``."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"define linkonce_odr {result} @{_PREFIX}{name}({parameters}) nounwind {{\n{body}\n  ret {result} %r\n}}"


def _single(name: str, parameters: str, arguments: str) -> str:
    """A function in single precision."""
    return _function(
        "float",
        f"{name}f",
        f"float %x{parameters}",
        "%wide = fpext float %x to double",
        f"%y = call double @{_PREFIX}{name}(double %wide{arguments})",
        "%r = fptrunc double %y to float",
    )


def _sine_and_cosine(type_: str) -> str:
    letter = "" if type_ == "double" else "f"
    body = [
        f"  %{word} = call {type_} @{_PREFIX}{word}pi{letter}({type_} %x)\n  store {type_} %{word}, ptr %to.{word}\n"
        for word in ("sin", "cos")
    ]
    parameters = f"{type_} %x, ptr %to.sin, ptr %to.cos"
    return (
        f"define linkonce_odr void @{_PREFIX}sincospi{letter}({parameters}) nounwind {{\n{''.join(body)}  ret void\n}}"
    )


def _conversions(type_: str) -> Iterator[str]:
    """From integers, rounded to nearest, and to integers, rounded as the name says; too large, the largest."""
    for name, (integer, kind) in _INTEGERS.items():
        yield _function(type_, f"{name}2{type_}_rn", f"{integer} %x", f"%r = {kind}tofp {integer} %x to {type_}")
        for mode, rounding in _TO_INTEGER.items():
            round_ = f"llvm.{rounding}.{_FLOATS[type_]}"
            convert = f"llvm.fpto{kind}.sat.{integer}.{_FLOATS[type_]}"
            yield f"declare {type_} @{round_}({type_})\ndeclare {integer} @{convert}({type_})"
            yield _function(
                integer,
                f"{type_}2{name}_{mode}",
                f"{type_} %x",
                f"%whole = call {type_} @{round_}({type_} %x)",
                f"%r = call {integer} @{convert}({type_} %whole)",
            )
