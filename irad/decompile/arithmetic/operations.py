"""Operations in Python, on operands that are already written."""

from __future__ import annotations

import ast
from typing import Final

import numpy as np

from irad.decompile import trees
from irad.decompile.memory.memory import is_allocation
from irad.decompile.refusal import refused
from irad.decompile.sheet import Sheet
from irad.ir import types
from irad.ir.instructions import Binary, Call, ICmp
from irad.ir.types import IntType
from irad.ir.values import ConstantExpression, ConstantFloat, ConstantInt, ConstantNull, Value


def wrapped(text: ast.expr, value: Value) -> ast.expr:
    """The number with sign that the lowest bits are, as many as the type of a value has."""
    return trees.call("wrapped", text, *width(value))


def width(value: Value) -> list[ast.expr]:
    """The number of bits as an argument, where they are not 64."""
    assert isinstance(value.type, IntType)
    return [] if value.type.bits == 64 else [trees.number(value.type.bits)]


def logic(sheet: Sheet, inst: Binary, left: ast.expr, right: ast.expr) -> ast.expr:
    """An operation of truth values."""
    match inst.opcode:
        case "and" | "or":
            return trees.both_or_either(inst.opcode, left, right)
        case "xor" if isinstance(right, ast.Constant):
            return trees.negated(left) if right.value else left
        case "xor":
            return trees.compare(left, ast.NotEq(), right)
        case _:
            raise refused(f"the operation {inst.opcode} of truth values", inst)


def float_comparison(predicate: str, a: ast.expr, b: ast.expr) -> ast.expr:
    """A comparison of floats; those that are true for NaN are negated opposites."""
    if predicate in ("true", "false"):
        return ast.Constant(predicate == "true")
    if predicate in ("ord", "uno"):
        tests = [trees.call("np.isnan", x) for x in (a, b) if not isinstance(x, ast.Constant)]
        if len(tests) == 2 and trees.shown(a) == trees.shown(b):
            tests = tests[:1]
        test = tests[0] if len(tests) == 1 else trees.disjunction(*tests)
        return test if predicate == "uno" else ast.UnaryOp(ast.Not(), test)
    if predicate in ("oeq", "une"):
        return trees.compare(a, ast.Eq() if predicate == "oeq" else ast.NotEq(), b)
    if predicate in ("one", "ueq"):
        differ = trees.disjunction(trees.compare(a, ast.Lt(), b), trees.compare(a, ast.Gt(), b))
        return differ if predicate == "one" else ast.UnaryOp(ast.Not(), differ)
    if predicate[0] == "o":
        return trees.compare(a, COMPARISONS[predicate[1:]](), b)
    return ast.UnaryOp(ast.Not(), trees.compare(a, COMPARISONS[_OPPOSITE[predicate[1:]]](), b))


def pointer_comparison(sheet: Sheet, inst: ICmp) -> ast.expr:
    """Whether new memory was given; other addresses are not compared."""
    a, b = inst.operands
    is_new = isinstance(a, Call) and is_allocation(a)
    if is_new and isinstance(b, ConstantNull) and inst.predicate in ("eq", "ne"):
        return ast.Constant(inst.predicate == "ne")  # `np.empty` raises MemoryError by itself
    if isinstance(b, ConstantExpression) and b.opcode == "inttoptr" and inst.predicate[0] == "u":
        (number,) = b.operands
        if isinstance(number, ConstantInt) and number.value < 0:  # no program's memory is at the end of all addresses
            return ast.Constant(inst.predicate[1:] in ("lt", "le"))
    raise refused("a comparison of addresses", inst)


def float_value(constant: ConstantFloat) -> float:
    """The shortest number that is the constant in its precision."""
    return float(str(np.float32(constant.value))) if constant.type is types.FLOAT else constant.value


def python_function(canonical: str) -> str | None:
    """The Python name of a rule's function; None where there is none."""
    return f"np.{canonical}" if canonical in _SAME_NAME else _OTHER_NAME.get(canonical)


def is_positive(value: Value, least: int = 1) -> bool:
    """Whether a value is a number from ``least`` on."""
    return isinstance(value, ConstantInt) and value.value >= least


_SAME_NAME: Final = frozenset([
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "floor", "ceil", "trunc", "rint", "hypot", "fmod", "copysign", "nextafter", "ldexp",
])  # fmt: skip
_OTHER_NAME: Final = {
    "fabs": "abs", "asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan", "asinh": "np.arcsinh",
    "acosh": "np.arccosh", "atanh": "np.arctanh", "atan2": "np.arctan2", "roundeven": "np.rint",
    "nearbyint": "np.rint", "fmin": "np.fmin", "fmax": "np.fmax", "minnum": "np.fmin", "maxnum": "np.fmax",
    "minimum": "np.minimum", "maximum": "np.maximum", "pow": "np.power", "powi": "np.power",
    "gamma": "special.gamma", "tgamma": "special.gamma", "lgamma": "special.gammaln", "erf": "special.erf",
    "erfc": "special.erfc", "digamma": "special.digamma",
}  # fmt: skip
"""Elementwise functions: the canonical names of rules, as numpy, `special` and Python have them."""
OPERATORS: dict[str, type[ast.operator]] = {"fadd": ast.Add, "fsub": ast.Sub, "fmul": ast.Mult, "fdiv": ast.Div}
INTEGER_OPERATORS: dict[str, type[ast.operator]] = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "shl": ast.LShift,
}  # fmt: skip
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE,
}  # fmt: skip
_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
INTEGER_FUNCTIONS = {
    "llvm.smax": "max", "llvm.smin": "min", "llvm.umax": "max", "llvm.umin": "min", "llvm.abs": "abs",
}  # fmt: skip
