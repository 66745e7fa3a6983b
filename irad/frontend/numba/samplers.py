"""Samplers of random numbers that reject: their results are marked as draws from a distribution.

Input   a raw library and Numba's descriptor of the function in it.
Output  none; where the function is such a sampler, the library gets a wrapper around it under its symbol.
Method  the wrapper passes the sampler's result through two functions: `irad.draw` cuts off the derivative of the
        sampler's code, `irad.drawn.<distribution>` has a rule for that of the draw with respect to the parameters
        (`irad.rules`).
Why     what such a sampler accepts depends on the parameters, and so does which random numbers it uses. The derivative
        of its code takes both as constant, and is wrong: its mean is not the derivative of the mean.

    %status = call i32 @sampler(ptr %result, …, double %shape)
    %draw = call double @irad.draw(double …)
    %drawn = call double @irad.drawn.standard_gamma(double %draw, double %shape)      the same number
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import llvmlite.binding as llvm

from irad.ir.builder import Builder
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.records import dataclass


@dataclass(frozen=True)
class Draw:
    """Draw of a sampler: a distribution as `irad.rules.random_draws` knows it, and the number of its parameters."""

    distribution: str
    parameters: int


_SCALAR: Final = "numba.cpython.randomimpl"
_LEGACY: Final = "numba.np.random.legacy"
_GENERATOR: Final = "numba.np.random.distributions"

# By module and qualified name. The parameters are the last arguments.
SAMPLERS: Final[Mapping[tuple[str, str], Draw]] = {
    (_SCALAR, "_gammavariate_impl.<locals>._impl"): Draw("gamma", 2),
    (_SCALAR, "_vonmisesvariate_impl.<locals>._impl"): Draw("vonmises", 2),
    (_LEGACY, "wald_impl.<locals>._impl"): Draw("wald", 2),
    (_SCALAR, "wald_impl.<locals>._impl"): Draw("wald", 2),  # before Numba 0.68
    (_LEGACY, "noncentral_chisquare_single"): Draw("noncentral_chisquare", 2),
    (_SCALAR, "noncentral_chisquare_single"): Draw("noncentral_chisquare", 2),  # before Numba 0.68
    (_GENERATOR, "random_standard_gamma"): Draw("standard_gamma", 1),
    (_GENERATOR, "random_standard_gamma_f"): Draw("standard_gamma", 1),
    (_GENERATOR, "random_beta"): Draw("beta", 2),
    (_GENERATOR, "random_wald"): Draw("wald", 2),
    (_GENERATOR, "random_noncentral_chisquare"): Draw("noncentral_chisquare", 2),
}

_CUT: Final = "irad.draw"
_DRAWN: Final = "irad.drawn."
_BODY: Final = re.compile(r"^define [^\n]*@(irad\.draw[\w.]*)\(([^)]*)\)[^\n]*\{.*?^\}", re.MULTILINE | re.DOTALL)


def mark_draws(module: Any, descriptor: Any) -> None:
    """Wraps a function if it is a sampler.

    Args:
        module: the llvmlite module that defines it, which is changed.
        descriptor: Numba's descriptor of the function.
    """
    draw = SAMPLERS.get((descriptor.modname, descriptor.qualname))
    if draw is None:
        return
    symbol = descriptor.mangled_name
    function = module.get_function(symbol)
    types = [str(argument.type) for argument in function.arguments]
    result = {"float32": "float", "float64": "double"}[str(descriptor.restype)]
    function.name = f"{symbol}.sampler"
    module.link_in(llvm.parse_assembly(_wrapper_text(symbol, types, result, draw)))
    module.get_function(f"{symbol}.sampler").linkage = "internal"


def define_draws(text: str) -> str:
    """The text of a program with bodies for the functions that mark draws: until it was optimised LLVM had none.

    It would see that they return their first argument, and drop the others.
    """
    if f"@{_CUT}" not in text:
        return text
    module = parse_module(text)
    for name, function in module.functions.items():
        if function.is_declaration and name.startswith((_CUT, _DRAWN)):
            function.prefix, function.attributes = ("internal",), ("alwaysinline",)
            Builder(function.add_block()).ret(function.params[0])
    return print_module(module)


def undefine_draws(text: str) -> str:
    """LLVM text without these bodies: for a program that is differentiated, in which the calls have rules again."""
    return _BODY.sub(lambda found: _declaration(found[1], found[2].count("double")), text)


def _wrapper_text(symbol: str, types: list[str], result: str, draw: Draw) -> str:
    """A function with the sampler's symbol and signature: status, result and exception slot, arguments."""
    parameters = ", ".join(f"{type_} %p{index}" for index, type_ in enumerate(types))
    count = draw.parameters
    numbers = [_as_double(f"%p{i}", types[i], f"%n{i}") for i in range(len(types) - count, len(types))]
    given = ", ".join(f"double %n{i}" for i in range(len(types) - count, len(types)))
    drawn = f"{_DRAWN}{draw.distribution}"
    return "\n".join(
        (
            f'declare i32 @"{symbol}.sampler"({", ".join(types)})',
            _declaration(_CUT, 1),
            _declaration(drawn, count + 1),
            f'define weak_odr i32 @"{symbol}"({parameters}) alwaysinline {{',
            "entry:",
            f'  %status = call i32 @"{symbol}.sampler"({parameters})',
            "  %ok = icmp eq i32 %status, 0",
            "  br i1 %ok, label %drawn, label %end",
            "drawn:",
            f"  %found = load {result}, ptr %p0",
            _as_double("%found", result, "%wide"),
            f"  %draw = call double @{_CUT}(double %wide)",
            *numbers,
            f"  %marked = call double @{drawn}(double %draw, {given})",
            f"  %narrow = {'fptrunc double %marked to float' if result == 'float' else 'fadd double %marked, -0.0'}",
            f"  store {result} %narrow, ptr %p0",
            "  br label %end",
            "end:",
            "  ret i32 %status",
            "}",
        )
    )


def _as_double(value: str, type_: str, name: str) -> str:
    """An instruction that gives a number as a double."""
    if type_ in ("float", "double"):
        return f"  {name} = " + (f"fpext float {value} to double" if type_ == "float" else f"fadd double {value}, -0.0")
    return f"  {name} = sitofp {type_} {value} to double"


def _declaration(name: str, arity: int) -> str:
    return f"declare double @{name}({', '.join(['double'] * arity)}) nounwind willreturn memory(none)"
