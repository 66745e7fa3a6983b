"""The algebra of Taylor series: a lane holds a coefficient of each number, of the order of its number.

Along x(t) = x₀ + x₁ t + x₂ t² + … the coefficients of z follow from those of lower order and of the operands. What is
linear in its floats is repeated on them, as on tangents. The first coefficient is the tangent, to the bit.

    z = fmul x, y       zₖ = Σ xⱼ yₖ₋ⱼ               z = fdiv x, y     zₖ = (xₖ - Σ yⱼ zₖ₋ⱼ) / y₀,  j ≥ 1
    z = exp x           k zₖ = Σ j xⱼ zₖ₋ⱼ           of any function with a rule: `irad.passes.forward.taylor`

Source: Griewank and Walther, Evaluating Derivatives, 2nd edition, section 13.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial, reduce
from typing import Final, TypeAlias

from irad.ir.builder import Builder
from irad.ir.instructions import Binary, CallSite, Instruction
from irad.ir.types import FloatType
from irad.ir.values import Value, const_float
from irad.passes import products
from irad.passes.forward.instructions import tangent_of
from irad.passes.forward.propagation import Propagation, Tangents
from irad.ruleset import special
from irad.ruleset.expr import (
    Apply,
    Comparison,
    Emitter,
    Expr,
    Negation,
    Numeral,
    Operation,
    Symbol,
    Where,
    closed,
)
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import Elementwise
from irad.ruleset.sharing import Terms
from irad.ruleset.terms import AnyExpr

# Products and quotients of Taylor series.

Coefficients: TypeAlias = Callable[[int], "Value | None"]
"""The coefficients of a number by order, the number itself first; None when known to be zero."""


class Convolutions:
    """Emits coefficients of products and quotients.

    Args:
        build: where they are emitted.
        zero_wins: whether zero times infinity is zero.
    """

    def __init__(self, build: Builder, *, zero_wins: bool) -> None:
        self._build, self._zero_wins = build, zero_wins

    def times(self, coefficient: Value, factor: Value) -> Value:
        """A coefficient, of order 1 or more, times a number."""
        product = products.product_or_zero if self._zero_wins else Builder.fmul
        return product(self._build, coefficient, factor)

    def convolved(self, a: Coefficients, b: Coefficients, orders: Iterable[tuple[int, int]]) -> Value | None:
        """The sum of the products of coefficients of two orders; the first is 1 or more."""
        total: Value | None = None
        for i, j in orders:
            first = a(i)
            second = None if first is None else b(j)
            if first is not None and second is not None:
                product = self.times(first, second)
                total = product if total is None else self._build.fadd(total, product)
        return total

    def added(self, a: Value | None, b: Value | None) -> Value | None:
        """A sum."""
        return a or b if a is None or b is None else self._build.fadd(a, b)

    def difference(self, a: Value | None, b: Value | None) -> Value | None:
        """A difference."""
        if b is None:
            return a
        return self._build.fneg(b) if a is None else self._build.fsub(a, b)

    def product(self, a: Coefficients, b: Coefficients, order: int) -> Value | None:
        """Coefficient of a product: Σ aⱼ bₖ₋ⱼ."""
        inner = self.convolved(a, b, ((j, order - j) for j in range(1, order + 1)))
        return self.added(inner, self.convolved(b, a, [(order, 0)]))

    def square(self, a: Coefficients, order: int) -> Value | None:
        """Coefficient of a square: each product of two different coefficients occurs twice."""
        twice = self.convolved(a, a, ((order - j, j) for j in range((order + 1) // 2)))
        total = None if twice is None else self._build.fadd(twice, twice)
        return total if order % 2 else self.added(total, self.convolved(a, a, [(order // 2, order // 2)]))

    def quotient(self, a: Value | None, b: Coefficients, quotient: Coefficients, order: int) -> Value | None:
        """Coefficient of a quotient with ``a`` as the numerator's: (aₖ - Σ bⱼ zₖ₋ⱼ) / b₀, j from 1."""
        rest, divisor = self.convolved(b, quotient, ((j, order - j) for j in range(1, order + 1))), b(0)
        found = self.difference(a, rest)
        if found is None or divisor is None:
            return None
        return (
            products.divided(self._build, found, divisor, zero_wins=True)
            if self._zero_wins
            else self._build.fdiv(found, divisor)
        )


# Taylor series of scalar functions, from their partial derivatives.
#
# y = f(x) with partial derivative p has y' = p x', so k yₖ = Σ j xⱼ pₖ₋ⱼ, j from 1 to k. Of p, an expression, only
# coefficients below k are asked for. It may contain y, and other functions, which have rules themselves: a closed
# system of recurrences. Equal parts are one, so that sine and cosine are each other's.
#
#     exp: p = y          tan: p = 1 + y²              sin: p = cos x; cos: p = -sin x
#
# Cost: a coefficient of order k takes time proportional to k for each part of the expressions. In `pow` and Bessel
# functions each order asks for another power, or another order, and so for as many calls.


class Series:
    """The coefficients of the value of a call, and of intermediate results.

    Args:
        here: the lane that asks first; all emit in the same place.
        call: call of the function.
        rule: rule of the function.
    """

    def __init__(self, here: Tangents, call: CallSite, rule: Elementwise) -> None:
        assert isinstance(call.type, FloatType)
        self._here, self._rule, self._type, self._build = here, rule, call.type, here.after
        self._sums = Convolutions(here.after, zero_wins=here.zero_wins)
        self._guarded = Convolutions(here.after, zero_wins=True)
        self._primals = {"y": call} | {f"x{i}": argument for i, argument in enumerate(call.arguments)}
        self._emitter = Emitter(here.after, {n: here.value(v) for n, v in self._primals.items()}, call.type)
        self._terms = Terms()
        self._arguments = tuple(self._terms.of(Symbol(f"x{i}")) for i in range(rule.arity))
        self._terms.equate(Apply(rule.name, self._arguments), Symbol("y"))
        self._slopes: dict[int, Sequence[Expr | None]] = {}
        self._coefficients: dict[tuple[int, int], Value | None] = {}
        self._conditions: dict[int, Value] = {}

    def of_call(self, order: int) -> Value | None:
        """Coefficient of the value of the call: zero where no argument changes, however steep the function is."""
        slopes = [None if slope is None else self._terms.of(slope) for slope in self._rule.partials]
        if order == 1 or self._build.module.opaque_guards:
            return self._change(self._arguments, slopes, order, self._guarded)
        varying = [x for x, slope in zip(self._arguments, slopes, strict=True) if slope is not None]
        found, still = self._change(self._arguments, slopes, order, self._sums), self._still(varying, order)
        return found if found is None or still is None else self._build.select(still, zero_of(self._type), found)

    def _change(
        self, arguments: Sequence[Expr], slopes: Sequence[Expr | None], order: int, sums: Convolutions
    ) -> Value | None:
        """1/k Σ j xⱼ pₖ₋ⱼ for each argument x with the slope p."""
        total: Value | None = None
        for x, slope in zip(arguments, slopes, strict=True):
            if slope is not None:
                orders = ((j, order - j) for j in range(1, order + 1))
                total = sums.added(total, sums.convolved(partial(self._weighted, x), partial(self._of, slope), orders))
        return total if total is None or order == 1 else self._scaled(total, 1.0 / order)

    def _weighted(self, expr: Expr, order: int) -> Value | None:
        """A coefficient times its order: that of the derivative."""
        found = self._of(expr, order)
        return found if found is None or order == 1 else self._scaled(found, float(order))

    def _scaled(self, coefficient: Value, factor: float) -> Value:
        return self._build.fmul(coefficient, const_float(self._type, factor))

    def _of(self, expr: Expr, order: int) -> Value | None:
        """A coefficient of a term; that of order 0 is its value."""
        if order == 0:
            return self._emitter.value(expr)
        key = id(expr), order
        if key not in self._coefficients:
            self._coefficients[key] = self._new(closed(expr), order)
        return self._coefficients[key]

    def _new(self, expr: AnyExpr, order: int) -> Value | None:
        match expr:
            case Symbol(name=name):
                return self._here.coefficient(self._primals[name], order)
            case Numeral():
                return None
            case Negation(a=a):
                found = self._of(a, order)
                return found and self._build.fneg(found)
            case Operation():
                return self._of_operation(expr, order)
            case Where():
                return self._of_choice(expr, order)
            case Apply():
                return self._of_function(expr, order)

    def _of_operation(self, expr: Operation, order: int) -> Value | None:
        a, b = partial(self._of, expr.a), partial(self._of, expr.b)
        match expr.opcode:
            case "fadd":
                return self._sums.added(a(order), b(order))
            case "fsub":
                return self._sums.difference(a(order), b(order))
            case "fmul":
                return self._sums.square(a, order) if expr.a is expr.b else self._sums.product(a, b, order)
            case "fdiv":
                return self._sums.quotient(a(order), b, partial(self._of, expr), order)

    def _of_choice(self, expr: Where, order: int) -> Value | None:
        """Coefficient of the branch taken. What an equation chooses is right for its one point only: no series there.

        Unless what is compared stays where it is.
        """
        a, b = self._of(expr.a, order), self._of(expr.b, order)
        if expr.condition.predicate == "oeq":
            still = self._still((expr.condition.a, expr.condition.b), order)
            if still is not None:
                a = self._build.select(still, a or zero_of(self._type), const_float(self._type, math.nan))
        if a is None and b is None:
            return None
        return self._build.select(self._holds(expr.condition), a or zero_of(self._type), b or zero_of(self._type))

    def _holds(self, condition: Comparison) -> Value:
        if id(condition) not in self._conditions:
            self._conditions[id(condition)] = self._emitter.holds(condition)
        return self._conditions[id(condition)]

    def _still(self, terms: Sequence[Expr], order: int) -> Value | None:
        """Test that all coefficients of terms up to an order are zero; None when that is known."""
        build, nothing = self._build, zero_of(self._type)
        known = (self._of(term, each) for each in range(1, order + 1) for term in terms)
        conditions = [build.fcmp("oeq", found, nothing) for found in known if found is not None]
        return reduce(build.and_, conditions) if conditions else None

    def _of_function(self, expr: Apply, order: int) -> Value | None:
        """Coefficient of a function in another one's partial derivatives; some have a body in place of a rule."""
        rule = self._here.registry.function(expr.function)
        if rule is None:
            return self._of(self._terms.of(special.BODIES[expr.function](*expr.arguments)), order)
        if id(expr) not in self._slopes:
            given = {"y": expr} | {f"x{i}": argument for i, argument in enumerate(expr.arguments)}
            self._slopes[id(expr)] = [None if p is None else self._terms.of(p, given) for p in rule.partials]
        return self._change(expr.arguments, self._slopes[id(expr)], order, self._sums)


def coefficient_of(here: Tangents, inst: Instruction) -> Value | None:
    """Emits the coefficient of the value that an instruction computes."""
    if here.order == 1:
        return tangent_of(here, inst)
    match inst:
        case Binary(opcode="fmul", operands=[a, b]):
            sums = Convolutions(here.after, zero_wins=here.zero_wins)
            if a is b:
                return sums.square(partial(here.coefficient, a), here.order)
            return sums.product(partial(here.coefficient, a), partial(here.coefficient, b), here.order)
        case Binary(opcode="fdiv", operands=[a, b]):
            sums, divisor, quotient = (
                Convolutions(here.after, zero_wins=here.zero_wins),
                partial(here.coefficient, b),
                partial(here.coefficient, inst),
            )
            return sums.quotient(here.known_tangent(a), divisor, quotient, here.order)
        case _:
            return tangent_of(here, inst)


def function_coefficient(here: Tangents, call: CallSite, rule: Elementwise) -> Value | None:
    """Emits the coefficient of the value of a scalar function."""
    return here.once("series", lambda: Series(here, call, rule)).of_call(here.order)


TAYLOR: Final = Propagation(
    coefficient_of, function_coefficient, lambda rule: rule.tangent if rule.moves else rule.series
)
