"""The shapes of scalar expressions and how they are written. `irad.ruleset.expr` evaluates and emits them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Arithmetic: TypeAlias = Literal["fadd", "fsub", "fmul", "fdiv"]
Predicate: TypeAlias = Literal["olt", "ole", "ogt", "oge", "oeq", "une"]
Operand: TypeAlias = "Expr | float"


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of expressions. Equality is structural, so comparison of values is spelled `equal(a, b)`."""

    def __add__(self, other: Operand) -> Expr:
        return Operation("fadd", self, expression(other))

    def __radd__(self, other: float) -> Expr:
        return Operation("fadd", Number(other), self)

    def __sub__(self, other: Operand) -> Expr:
        return Operation("fsub", self, expression(other))

    def __rsub__(self, other: float) -> Expr:
        return Operation("fsub", Number(other), self)

    def __mul__(self, other: Operand) -> Expr:
        return Operation("fmul", self, expression(other))

    def __rmul__(self, other: float) -> Expr:
        return Operation("fmul", Number(other), self)

    def __truediv__(self, other: Operand) -> Expr:
        return Operation("fdiv", self, expression(other))

    def __rtruediv__(self, other: float) -> Expr:
        return Operation("fdiv", Number(other), self)

    def __neg__(self) -> Expr:
        return Negation(self)

    def __lt__(self, other: Operand) -> Comparison:
        return Comparison("olt", self, expression(other))

    def __le__(self, other: Operand) -> Comparison:
        return Comparison("ole", self, expression(other))

    def __gt__(self, other: Operand) -> Comparison:
        return Comparison("ogt", self, expression(other))

    def __ge__(self, other: Operand) -> Comparison:
        return Comparison("oge", self, expression(other))


@dataclass(frozen=True, slots=True)
class Symbol(Expr):
    """An argument ("x0", "x1", …) or the result ("y") of the primal function."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """A constant; it takes the precision of what it is emitted into."""

    value: float


@dataclass(frozen=True, slots=True)
class Operation(Expr):
    """Sum, difference, product or quotient."""

    opcode: Arithmetic
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Negation(Expr):
    """`-a`."""

    a: Expr


@dataclass(frozen=True, slots=True)
class Where(Expr):
    """``a`` where the condition holds, else ``b``. Both are evaluated: neither may trap, and none does."""

    condition: Comparison
    a: Expr
    b: Expr


@dataclass(frozen=True, slots=True)
class Apply(Expr):
    """A function of `irad.ruleset.symbols` by its canonical name."""

    function: str
    arguments: tuple[Expr, ...]


AnyExpr: TypeAlias = Symbol | Number | Operation | Negation | Where | Apply


@dataclass(frozen=True, slots=True)
class Comparison:
    """A truth value; false when an operand is NaN, except for `une`, which is then true."""

    predicate: Predicate
    a: Expr
    b: Expr


def expression(value: Operand) -> Expr:
    """The expression itself, or a constant."""
    return value if isinstance(value, Expr) else Number(float(value))


def where(condition: Comparison, a: Operand, b: Operand) -> Expr:
    """``a`` where the condition holds, else ``b``."""
    return Where(condition, expression(a), expression(b))


def equal(a: Operand, b: Operand) -> Comparison:
    """`a == b`."""
    return Comparison("oeq", expression(a), expression(b))


def is_nan(a: Expr) -> Comparison:
    """Whether it is not a number."""
    return Comparison("une", a, a)


def apply(function: str, *arguments: Operand) -> Expr:
    """A call of a function by its canonical name."""
    return Apply(function, tuple(map(expression, arguments)))


def sign(a: Expr) -> Expr:
    """1, -1, and the argument itself for zeros and NaN."""
    return where(a > 0.0, 1.0, where(a < 0.0, -1.0, a))
