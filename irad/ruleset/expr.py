"""Scalar expressions: how rules write derivatives down.

A rule's lambda runs once, on symbols, and leaves an `Expr`. From it come the emitted code in every precision, the set
of primal values that must be at hand (`symbols_of`), and the value that tests compare with (`evaluate`).

    y = Symbol("y")
    partial = 1.0 - y * y                    # of tanh
    symbols_of(partial)                      # {"y"}: tanh needs its result, not its argument
    emit(partial, builder, {"y": result}, DOUBLE)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.module import Module
from irad.ir.types import FloatType, IntType
from irad.ir.values import Value, const_float, const_int
from irad.ruleset import reference, special, symbols
from irad.ruleset.terms import (
    AnyExpr,
    Apply,
    Arithmetic,
    Comparison,
    Expr,
    Negation,
    Numeral,
    Operand,
    Operation,
    Predicate,
    Symbol,
    Where,
    apply,
    equal,
    expression,
    is_nan,
    sign,
    where,
)

__all__ = [
    "Apply",
    "Comparison",
    "Emitter",
    "Expr",
    "Negation",
    "Numeral",
    "Operand",
    "Operation",
    "Symbol",
    "Where",
    "applied",
    "apply",
    "call_function",
    "closed",
    "compared_symbols",
    "emit",
    "equal",
    "evaluate",
    "expression",
    "is_nan",
    "parts_of",
    "sign",
    "symbols_of",
    "where",
]

PURE_CALL: Final = ("nounwind", "willreturn", "memory(none)")


def symbols_of(expr: Expr) -> frozenset[str]:
    """The primal values that it reads: "x0", "x1", …, "y"."""
    found: set[str] = set()
    seen: set[int] = set()
    pending = [expr]
    while pending:
        part = pending.pop()
        if id(part) in seen:  # parts are shared: a walk of the tree would take exponential time
            continue
        seen.add(id(part))
        if isinstance(part, Symbol):
            found.add(part.name)
        pending.extend(_parts(closed(part)))
    return frozenset(found)


def parts_of(expr: Expr) -> Iterator[AnyExpr]:
    """An expression and all that it consists of, each once."""
    seen: set[int] = set()
    pending = [expr]
    while pending:
        part = closed(pending.pop())
        if id(part) not in seen:
            seen.add(id(part))
            pending.extend(_parts(part))
            yield part


def applied(exprs: Iterable[Expr | None]) -> Iterator[Apply]:
    """The functions that expressions contain."""
    seen: set[int] = set()
    pending = [expr for expr in exprs if expr is not None]
    while pending:
        part = closed(pending.pop())
        if id(part) not in seen:
            seen.add(id(part))
            pending.extend(_parts(part))
            if isinstance(part, Apply):
                yield part


def compared_symbols(expr: Expr) -> frozenset[str]:
    """The primal values that it compares: where they are rounded differently, it takes another branch."""
    sides: list[Expr] = []
    seen: set[int] = set()
    pending = [expr]
    while pending:
        part = closed(pending.pop())
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Where):
            sides += (part.condition.a, part.condition.b)
        pending.extend(_parts(part))
    return frozenset[str]().union(*map(symbols_of, sides))


def _parts(expr: AnyExpr) -> tuple[Expr, ...]:
    match expr:
        case Symbol() | Numeral():
            return ()
        case Operation(a=a, b=b):
            return a, b
        case Negation(a=a):
            return (a,)
        case Where(condition=Comparison(a=left, b=right), a=a, b=b):
            return left, right, a, b
        case Apply(arguments=arguments):
            return arguments
        case unreachable:
            assert_never(unreachable)


def closed(expr: Expr) -> AnyExpr:
    """The expression as a member of the closed set of shapes."""
    assert isinstance(expr, AnyExpr), f"{expr!r} is not an expression shape"
    return expr


# ------------------------------------------------------------------------------------------------ evaluation


def evaluate(
    expr: Expr, values: Mapping[str, float], functions: Mapping[str, Callable[..., float]] = reference.FUNCTIONS
) -> float:
    """The value under IEEE rules (a division by zero gives an infinity or NaN), in double precision.

    Args:
        functions: meanings of canonical names; a rule that calls other functions than the default supplies them.
    """
    return _Evaluator(values, functions).value(expr)


class _Evaluator:
    """Evaluates each part once."""

    def __init__(self, values: Mapping[str, float], functions: Mapping[str, Callable[..., float]]) -> None:
        self._values, self._functions = values, functions
        self._done: dict[int, float] = {}

    def value(self, expr: Expr) -> float:
        if id(expr) not in self._done:
            self._done[id(expr)] = self._new(closed(expr))
        return self._done[id(expr)]

    def _new(self, expr: AnyExpr) -> float:
        match expr:
            case Symbol(name=name):
                return self._values[name]
            case Numeral(value=value):
                return value
            case Operation(opcode=opcode, a=a, b=b):
                return _arithmetic(opcode, self.value(a), self.value(b))
            case Negation(a=a):
                return -self.value(a)
            case Where(condition=condition, a=a, b=b):
                return self.value(a if self._holds(condition) else b)
            case Apply(function=function, arguments=arguments):
                given = [self.value(argument) for argument in arguments]
                body = special.BODIES.get(function)
                if body is not None:
                    return evaluate(body(*map(Numeral, given)), {}, self._functions)
                return reference.call(function, given, self._functions)
            case unreachable:
                assert_never(unreachable)

    def _holds(self, condition: Comparison) -> bool:
        return _compare(condition.predicate, self.value(condition.a), self.value(condition.b))


def _arithmetic(opcode: Arithmetic, a: float, b: float) -> float:
    match opcode:
        case "fadd":
            return a + b
        case "fsub":
            return a - b
        case "fmul":
            return a * b
        case "fdiv":
            if b != 0.0:
                return a / b
            return math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _compare(predicate: Predicate, a: float, b: float) -> bool:
    match predicate:
        case "olt":
            return a < b
        case "ole":
            return a <= b
        case "ogt":
            return a > b
        case "oge":
            return a >= b
        case "oeq":
            return a == b
        case "une":
            return a != b


# ------------------------------------------------------------------------------------------------ code


def emit(expr: Expr, builder: Builder, values: Mapping[str, Value], type_: FloatType) -> Value:
    """Emits the expression in one precision.

    Args:
        values: the primal value of each symbol that `symbols_of` names; an integer argument may keep its integer type.
        type_: `float` or `double`; constants are rounded to it and calls go to the function of that precision.
    """
    return Emitter(builder, values, type_).value(expr)


class Emitter:
    """Emits each part once: as `emit`, for several expressions with common parts."""

    def __init__(self, builder: Builder, values: Mapping[str, Value], type_: FloatType) -> None:
        self._builder, self._values, self._type = builder, values, type_
        self._done: dict[int, Value] = {}

    def value(self, expr: Expr) -> Value:
        """The value of an expression, which has to outlive this object."""
        if id(expr) not in self._done:
            self._done[id(expr)] = self._new(closed(expr))
        return self._done[id(expr)]

    def holds(self, condition: Comparison) -> Value:
        """Value of a condition."""
        return self._builder.fcmp(condition.predicate, self.value(condition.a), self.value(condition.b))

    def _new(self, expr: AnyExpr) -> Value:
        builder = self._builder
        match expr:
            case Symbol(name=name):
                value = self._values[name]
                return builder.sitofp(value, self._type) if isinstance(value.type, IntType) else value
            case Numeral(value=number):
                return const_float(self._type, number)
            case Operation(opcode=opcode, a=a, b=b):
                return builder.binary(opcode, self.value(a), self.value(b))
            case Negation(a=a):
                return builder.fneg(self.value(a))
            case Where(condition=condition, a=a, b=b):
                return builder.select(self.holds(condition), self.value(a), self.value(b))
            case Apply(function=function, arguments=arguments):
                integers = symbols.integer_arguments(function)
                given = [self._integer(a) if i in integers else self.value(a) for i, a in enumerate(arguments)]
                return call_function(function, builder, given, self._type)
            case unreachable:
                assert_never(unreachable)

    def _integer(self, expr: Expr) -> Value:
        """An expression where the callee wants an integer: an integer argument, or one plus or minus a constant."""
        match expr:
            case Symbol(name=name):
                return self._values[name]
            case Operation(opcode="fadd" | "fsub" as opcode, a=a, b=Numeral(value=number)):
                value = self._integer(a)
                return self._builder.add(value, const_int(value.type, int(number if opcode == "fadd" else -number)))
            case _:
                raise TypeError(f"{expr!r} is not an integer expression")


def call_function(name: str, builder: Builder, arguments: Sequence[Value], type_: FloatType) -> Value:
    """Calls an elementwise function by its canonical name, at the precision ``type_``.

    A function that no library has (`digamma`) is defined in the module when it is first called.
    """
    body = special.BODIES.get(name)
    if name == "wofz_imag" and type_ is types.DOUBLE:
        return _faddeeva_imag(builder, *arguments)
    if type_ is not types.DOUBLE and symbols.is_double_only(name, builder.module.triple):
        wide = [builder.fpext(a, types.DOUBLE) if a.type is type_ else a for a in arguments]
        return builder.fptrunc(call_function(name, builder, wide, types.DOUBLE), type_)
    parameters = tuple(a.type for a in arguments)
    if body is not None:
        symbol = symbols.helper_symbol(name, type_)
        define_helper(builder.module, name, type_, len(arguments))
    else:
        symbol = symbols.emitted_symbol(name, type_, parameters, builder.module.triple)
    attributes = () if symbol.startswith("llvm.") else PURE_CALL
    callee = builder.module.declare(symbol, types.function_type(type_, parameters), attributes)
    return builder.call(callee, arguments)


def _faddeeva_imag(builder: Builder, x: Value, y: Value) -> Value:
    """`Im w(x + iy)` by SciPy's export, whose real part is in the value of the Voigt profile.

    A C struct of two doubles comes and goes in registers as two numbers do, on x86-64 as on AArch64.
    """
    pair = types.struct_type([types.DOUBLE, types.DOUBLE])
    signature = types.function_type(pair, [types.DOUBLE, types.DOUBLE, types.I32])
    callee = builder.module.declare("scipy.special.wofz.c128", signature, PURE_CALL)
    return builder.extract_value(builder.call(callee, [x, y, const_int(types.I32, 0)]), 1)


def define_helper(module: Module, name: str, type_: FloatType, arity: int) -> None:
    """Defines `type_ @irad_name(type_ …)` in a module by its body, unless it is defined already."""
    symbol = symbols.helper_symbol(name, type_)
    known = module.functions.get(symbol)
    if known is not None and not known.is_declaration:
        return
    names = [f"x{i}" for i in range(arity)]
    function = module.define(symbol, types.function_type(type_, [type_] * arity), names)
    function.prefix = ("internal",)
    function.attributes = PURE_CALL
    inside = Builder(function.add_block("entry"))
    # Single precision is computed in double: argument reduction near a pole needs the bits.
    given: dict[str, Value] = {n: inside.fpext(p, types.DOUBLE) for n, p in zip(names, function.params, strict=True)}
    result = emit(special.BODIES[name](*map(Symbol, names)), inside, given, types.DOUBLE)
    inside.ret(inside.fptrunc(result, type_))
