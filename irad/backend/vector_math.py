"""Vector variants of mathematical functions, from the C library's vector library (libmvec).

Input   LLVM text with calls such as `call double @llvm.exp.f64(double %x)`.
Output  the text in which each call says which functions do the same to several numbers, so that LLVM makes vectors of
        loops with such calls.
Method  LLVM's own attribute for that, on calls: those of intrinsics are taken off declarations. The variants are
        declared, and listed as used, since LLVM looks for them in the module.
Limit   x86-64 with glibc, which has eight of these functions since 2.22 and all since 2.35; results differ from those
        of the scalar functions by some units in the last place. What may be rounded differently in the two sweeps
        decides nothing twice: `irad.passes.plan.agreement`.

    call double @erf(double %x) "vector-function-abi-variant"="_ZGV_LLVM_N4v_erf(_ZGVdN4v_erf)"
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Collection
from functools import cache
from typing import Final

import llvmlite.binding as llvm

LIBRARY: Final = "libmvec.so.1"
_OF_ONE: Final = "acos acosh asin asinh atan atanh cbrt cos cosh erf erfc exp exp10 exp2 expm1 log log10 log1p log2"
_NUMBERS_OF_ARGUMENTS: Final = {
    **dict.fromkeys((*_OF_ONE.split(), "sin", "sinh", "tan", "tanh"), 1),
    **dict.fromkeys(("atan2", "hypot", "pow"), 2),
}
_INSTRUCTION_SETS: Final = (("b", "sse2", 16), ("d", "avx2", 32), ("e", "avx512f", 64))
"""The letter in the names of variants, the feature of the processor, and the bytes of a vector."""
_CALL: Final = re.compile(
    r"(?P<head>\bcall (?:[a-z]+ )*(?P<type>double|float) )"
    r"@(?P<callee>(?:llvm\.|numba_)?(?P<name>[a-z]+[0-9]*[a-z]*)(?:\.f64|\.f32)?)(?P<arguments>\([^()\n]*\))"
)


def with_vector_variants(text: str, features: Collection[str]) -> str:
    """The text with a mark on each call of a function that there are vector variants of.

    Args:
        text: a module.
        features: processor features, with LLVM's names.
    """
    declarations: dict[str, str] = {}

    def marked(match: re.Match[str]) -> str:
        stem, type_ = match["name"], match["type"]
        if type_ == "float" and not match["callee"].startswith("llvm."):
            stem = stem.removesuffix("f")
        found = _variants(stem, type_, frozenset(features))
        if not found:
            return match[0]
        count = _NUMBERS_OF_ARGUMENTS[stem]
        declarations.update({name: _declaration(name, f"<{lanes} x {type_}>", count) for name, lanes in found})
        words = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * count}_{match['callee']}({name})" for name, lanes in found)
        return f'{match[0]} "vector-function-abi-variant"="{words}"'

    text = _CALL.sub(marked, text)
    if not declarations:
        return text
    names = ", ".join(f"ptr @{name}" for name in declarations)
    used = f'@llvm.compiler.used = appending global [{len(declarations)} x ptr] [{names}], section "llvm.metadata"'
    return "\n".join((text, *declarations.values(), used, ""))


def _declaration(name: str, vector: str, arguments: int) -> str:
    return f"declare {vector} @{name}({', '.join([vector] * arguments)}) nounwind willreturn memory(none)"


@cache
def _variants(stem: str, type_: str, features: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """The variants that this process can call, with their numbers of lanes."""
    if stem not in _NUMBERS_OF_ARGUMENTS or not is_loaded():
        return ()
    size, letter = (8, "") if type_ == "double" else (4, "f")
    arguments = "v" * _NUMBERS_OF_ARGUMENTS[stem]
    found = [
        (f"_ZGV{prefix}N{width // size}{arguments}_{stem}{letter}", width // size)
        for prefix, feature, width in _INSTRUCTION_SETS
        if feature in features
    ]
    return tuple((name, lanes) for name, lanes in found if llvm.address_of_symbol(name))


@cache
def is_loaded() -> bool:
    """True if the process has the library; it is loaded if need be."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        llvm.load_library_permanently(LIBRARY)
    except RuntimeError:  # no glibc, or built without it
        return False
    return True
