"""Functions of Numba whose code takes a shortcut at single points, where its derivative is not that of the function.

Input   Numba's lowering of such a function: a call of it, or the kernel of a ufunc.
Output  the same, whose result is passed through a function that says what it is the value of (`irad.rules.shortcuts`).
Method  Numba's code computes the value. What it is passed through returns its first argument, and has the derivative
        of the function with respect to the others. Until a program is in normal form it is only declared: LLVM would
        see that it returns its first argument, and drop the others.

    %v = call double @… logaddexp …(double %x, double %y)
    %r = call double @irad_as_logaddexp_f64(double %v, double %x, double %y)
"""

from __future__ import annotations

import cmath
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Signature

from irad.frontend.emit import Emit
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import FloatType
from irad.ruleset import shortcut_slopes, symbols
from irad.ruleset.expr import define_helper

Lowering = Callable[..., Value]

REAL: Final[Mapping[object, str]] = {
    np.logaddexp: "logaddexp",
    np.logaddexp2: "logaddexp2",
    np.sinc: "sinc",
    np.cbrt: "cbrt",  # a power, compiled as if no number were infinite: the derivative at 0 would be any
}
COMPLEX: Final[Mapping[object, str]] = {
    np.sinc: "csinc",
    **dict.fromkeys((cmath.sqrt, np.sqrt), "csqrt"),
    **dict.fromkeys((cmath.log, np.log), "clog"),
    np.log2: "clog2",
    np.log10: "clog10",
    np.log1p: "clog1p",
    **dict.fromkeys((cmath.asin, np.arcsin), "casin"),
    **dict.fromkeys((cmath.acos, np.arccos), "cacos"),
    **dict.fromkeys((cmath.atan, np.arctan), "catan"),
    **dict.fromkeys((cmath.asinh, np.arcsinh), "casinh"),
    **dict.fromkeys((cmath.acosh, np.arccosh), "cacosh"),
    **dict.fromkeys((cmath.atanh, np.arctanh), "catanh"),
}
POWERS: Final = (pow, operator.pow, operator.ipow, np.power, np.float_power)


# ------------------------------------------------------------------------------------------------ lowering


def lowering(context: BaseContext, function: object, signature: Signature, lower: Lowering) -> Lowering:
    """The lowering of a call; that of Numba itself where the function takes no shortcut."""
    mark = None if isinstance(function, np.ufunc) else _mark_of(function, signature)  # its kernel has one
    if mark is None:
        return lower

    def call(builder: IRBuilder, arguments: Sequence[Value], loc: object = None) -> Value:
        return mark(Emit(context, builder), signature, arguments, lower(builder, arguments))

    return call


def kernels(ufunc: object, known: Mapping[str, Lowering]) -> Mapping[str, Lowering]:
    """The kernels of a ufunc by their types, as Numba's table has them."""
    if not isinstance(ufunc, np.ufunc) or not (ufunc in REAL or ufunc in COMPLEX or ufunc in POWERS):
        return known
    return {loop: _marked_kernel(ufunc, kernel) for loop, kernel in known.items()}


def _marked_kernel(ufunc: object, kernel: Lowering) -> Lowering:
    def marked(context: BaseContext, builder: IRBuilder, signature: Signature, arguments: Sequence[Value]) -> Value:
        value = kernel(context, builder, signature, arguments)
        mark = _mark_of(ufunc, signature)
        return value if mark is None else mark(Emit(context, builder), signature, arguments, value)

    return marked


def _mark_of(function: object, signature: Signature) -> Lowering | None:
    """Lowering that passes the value of a function through its mark, for arguments that are all real or all complex."""
    try:
        real, complex_, is_power = REAL.get(function), COMPLEX.get(function), function in POWERS
    except TypeError:  # it cannot be hashed
        return None
    kinds = {type(types.unliteral(each)) for each in (*signature.args, signature.return_type)}
    if real is not None and kinds == {types.Float}:
        return _real_mark(real)
    if complex_ is not None and kinds == {types.Complex} and len(signature.args) == 1:
        return _complex_mark(complex_)
    return _power_mark if is_power and kinds == {types.Complex} else None


def _real_mark(name: str) -> Lowering:
    def mark(emit: Emit, signature: Signature, arguments: Sequence[Value], value: Value) -> Value:
        return passed(emit.builder, name, value, *_cast(emit, signature, arguments))

    return mark


def _complex_mark(name: str) -> Lowering:
    def mark(emit: Emit, signature: Signature, arguments: Sequence[Value], value: Value) -> Value:
        context, builder, type_ = emit.context, emit.builder, signature.return_type
        parts = [part for number in _cast(emit, signature, arguments) for part in _parts(emit, type_, number)]
        result = context.make_complex(builder, type_)
        real, imag = _parts(emit, type_, value)
        result.real = passed(builder, f"{name}_re", real, imag, *parts)
        result.imag = passed(builder, f"{name}_im", real, imag, *parts)
        return result._getvalue()

    return mark


def _cast(emit: Emit, signature: Signature, arguments: Sequence[Value]) -> list[Value]:
    """The arguments in the type of the result."""
    wanted = signature.return_type
    pairs = zip(arguments, signature.args, strict=True)
    return [emit.context.cast(emit.builder, value, given, wanted) for value, given in pairs]


def _parts(emit: Emit, type_: types.Type, number: Value) -> tuple[Value, Value]:
    pair = emit.context.make_complex(emit.builder, type_, value=number)
    return pair.real, pair.imag


def passed(builder: IRBuilder, name: str, *given: Value) -> Value:
    """The value, or a part of it, as that of a function: of numbers of its type."""
    type_ = given[0].type
    symbol = f"irad_as_{name}_{'f32' if type_ == ir.FloatType() else 'f64'}"
    function = ir.FunctionType(type_, [type_] * len(given))
    return builder.call(cgutils.insert_pure_function(builder.module, function, symbol), given)


def _power_mark(emit: Emit, signature: Signature, arguments: Sequence[Value], value: Value) -> Value:
    """Numba multiplies where the exponent is 2, and of 0 the C library's power has no logarithm.

    Elsewhere its code is differentiated, and where LLVM knows that the exponent is 2, which makes vectors of products.
    """
    builder = emit.builder
    base, exponent = (_parts(emit, signature.return_type, each) for each in _cast(emit, signature, arguments))
    is_two, is_zero = _are(builder, exponent, 2.0), _are(builder, base, 0.0)
    known_re, known_im = (_is_constant(builder, part) for part in exponent)
    is_square = builder.and_(is_two, builder.and_(known_re, known_im))
    result = cgutils.alloca_once_value(builder, value)
    with builder.if_then(builder.and_(builder.not_(is_square), builder.or_(is_two, is_zero)), likely=False):
        builder.store(_complex_mark("cpow")(emit, signature, arguments, value), result)
    return builder.load(result)


def _are(builder: IRBuilder, parts: Sequence[Value], number: float) -> Value:
    """True if a complex number is a real one."""
    real, imag = parts
    return builder.and_(
        builder.fcmp_ordered("==", real, real.type(number)), builder.fcmp_ordered("==", imag, imag.type(0.0))
    )


def _is_constant(builder: IRBuilder, number: Value) -> Value:
    """True if LLVM knows the number, once it has inlined what it can."""
    intrinsic = f"llvm.is.constant.{'f32' if number.type == ir.FloatType() else 'f64'}"
    function = ir.FunctionType(ir.IntType(1), [number.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, function, intrinsic), [number])


def divmod_of_reals(
    _: object, original: Callable[..., Any], context: object, builder: IRBuilder, x: Value, y: Value
) -> tuple[Value, Value]:
    """Lowers Python's quotient and remainder of floats; for a remainder of zero the code of Numba has a constant."""
    quotient, remainder = original(context, builder, x, y)
    return quotient, passed(builder, "remainder", remainder, x, y)


# ------------------------------------------------------------------------------------------------ bodies

_PREFIX: Final = "irad_"
_BODY: Final = re.compile(r"^define [^\n]*@(irad_\w+_f(?:32|64))\(([^)]*)\)[^\n]*\{.*?^\}", re.MULTILINE | re.DOTALL)


def _helpers() -> dict[str, tuple[str, FloatType]]:
    return {
        symbols.helper_symbol(name, type_): (name, type_)
        for name in shortcut_slopes.WITH_RULES
        for _, type_ in symbols.symbols_of_function(name)
    }


def define(text: str) -> str:
    """The text of a program with bodies for the functions that values are passed through, and those of their rules."""
    if f"@{_PREFIX}" not in text:
        return text
    module, known = parse_module(text), _helpers()
    for symbol, function in list(module.functions.items()):
        if function.is_declaration and symbol in known:
            name, type_ = known[symbol]
            define_helper(module, name, type_, len(function.params))
    return print_module(module)


def undefine(text: str) -> str:
    """LLVM text without these bodies: for a program that is differentiated, in which the calls have rules again."""
    known = _helpers() if f"@{_PREFIX}" in text else {}
    return _BODY.sub(lambda found: _declaration(found) if found[1] in known else found[0], text)


def _declaration(found: re.Match[str]) -> str:
    type_ = "double" if found[1].endswith("64") else "float"
    parameters = ", ".join([type_] * found[2].count(type_))
    return f"declare {type_} @{found[1]}({parameters}) nounwind willreturn memory(none)"
