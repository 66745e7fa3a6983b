"""The shapes of scalar expressions and how they are written. `irad.ruleset.expr` evaluates and emits them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from irad.records import dataclass

Arithmetic: TypeAlias = Literal["fadd", "fsub", "fmul", "fdiv"]
Predicate: TypeAlias = Literal["olt", "ole", "ogt", "oge", "oeq", "une"]
Operand: TypeAlias = "Expr | float"


def _binary(opcode: Arithmetic) -> Callable[[Expr, Operand], Expr]:
    return lambda self, other: Operation(opcode, self, expression(other))


def _reflected(opcode: Arithmetic) -> Callable[[Expr, float], Expr]:
    return lambda self, other: Operation(opcode, expression(other), self)


def _comparison(predicate: Predicate) -> Callable[[Expr, Operand], Comparison]:
    return lambda self, other: Comparison(predicate, self, expression(other))


@dataclass(frozen=True, slots=True)
class Expr:
    """Base of expressions. Equality is structural, so comparison of values is spelled `equal(a, b)`."""

    __add__, __radd__ = _binary("fadd"), _reflected("fadd")
    __sub__, __rsub__ = _binary("fsub"), _reflected("fsub")
    __mul__, __rmul__ = _binary("fmul"), _reflected("fmul")
    __truediv__, __rtruediv__ = _binary("fdiv"), _reflected("fdiv")
    __lt__, __le__ = _comparison("olt"), _comparison("ole")
    __gt__, __ge__ = _comparison("ogt"), _comparison("oge")

    def __neg__(self) -> Expr:
        return Negation(self)


@dataclass(frozen=True, slots=True)
class Symbol(Expr):
    """An argument ("x0", "x1", …) or the result ("y") of the primal function."""

    name: str


@dataclass(frozen=True, slots=True)
class Numeral(Expr):
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


AnyExpr: TypeAlias = Symbol | Numeral | Operation | Negation | Where | Apply


@dataclass(frozen=True, slots=True)
class Comparison:
    """A truth value; false when an operand is NaN, except for `une`, which is then true."""

    predicate: Predicate
    a: Expr
    b: Expr


def expression(value: Operand) -> Expr:
    """The expression itself, or a constant."""
    return value if isinstance(value, Expr) else Numeral(float(value))


def where(condition: Comparison, a: Operand, b: Operand) -> Expr:
    """``a`` where the condition holds, else ``b``."""
    return Where(condition, expression(a), expression(b))


def equal(a: Operand, b: Operand) -> Comparison:
    """`a == b`."""
    return Comparison("oeq", expression(a), expression(b))


def is_nan(a: Expr) -> Comparison:
    """Condition that a number is NaN."""
    return Comparison("une", a, a)


def apply(function: str, *arguments: Operand) -> Expr:
    """A call of a function by its canonical name."""
    return Apply(function, tuple(map(expression, arguments)))


def sign(a: Expr) -> Expr:
    """1, -1, and for zeros and NaN the argument, whose own slope does not count."""
    return where(a > 0.0, 1.0, where(a < 0.0, -1.0, 0.0 * a))
