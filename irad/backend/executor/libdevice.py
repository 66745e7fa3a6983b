"""CUDA's device library: which function of the C library each of its functions is."""

from __future__ import annotations

from typing import Final

from irad.ir.module import Module

_PREFIX: Final = "__nv_"
_C: Final = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor "
    "fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma log log10 log1p log2 logb modf nearbyint nextafter pow "
    "remainder remquo rint round scalbn sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn"
)
_SYMBOLS: Final = {f"{_PREFIX}{name}{suffix}": f"{name}{suffix}" for name in _C.split() for suffix in ("", "f")}


def is_known(symbol: str) -> bool:
    """Whether the executor can call a function."""
    return symbol in _SYMBOLS


def define_libdevice(module: Module) -> None:
    """Replaces calls of the library by calls of what the process has."""
    for name in [name for name in module.functions if name in _SYMBOLS]:
        function = module.functions.pop(name)
        function.name = _SYMBOLS[name]
        module.functions[function.name] = function
