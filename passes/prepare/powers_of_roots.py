"""Powers of lengths, roots and absolute values, which are smooth where these are not.

Input   a module in normal form.
Output  the same values, to the bit; each power is passed through a function that says what it is the value of
        (`irad.rules.shortcuts`): of √s² that is s, of cbrt(x)³ it is x, and of hypot(a, b)² it is a² + b².
Why     at zero a root has an infinite slope, or none, and its square the slope zero. No rule for single operations
        can know their product: the second derivative of `abs(z)**2` of a complex z would be 0.
Method  the square of a root that was multiplied or divided by other numbers, as in `(r / sigma)**2`, is that of the
        lengths a and b multiplied in the same way, or of s, twice. In `c * r * r` the two roots are taken together.
        Higher even powers are products of squares already. In |x| to the power p, of which only the run knows whether
        it is 2, |x| has the slope on the side that the sign of a zero tells: the mean of both sides, which it has
        elsewhere, is 0, and its square would stand in the second derivative.
Limit   all factors have to be the same root in the same function: not one that was stored to memory in between, or
        chosen by a branch. Of norms and standard deviations the front end says what their square is (`stand_ins`).

    %h = call double @hypot(double %a, double %b)
    %p = fmul double %h, %h
    %r = call double @irad_as_squared_length_f64(double %p, double %a, double %b)
"""

from __future__ import annotations

import math
from functools import cache
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Binary, Call, FCmp, Instruction, Select, Unary, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import FloatType
from irad.ir.values import ConstantFloat, Value
from irad.records import dataclass
from irad.ruleset.expr import call_function
from irad.ruleset.symbols import symbols_of_function

_MOST_STEPS: Final = 4  # of a chain of factors: each may be looked for on both sides of a product


def smooth_powers(module: Module) -> None:
    """Gives the powers of roots in all functions the derivatives of the radicand."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            match inst:
                case Binary(opcode="fmul") if inst.type in (types.DOUBLE, types.FLOAT):
                    _smooth_product(inst, _after(inst))
                case Call() if _name(inst) == "pow":
                    _smooth_power(inst)


def _after(inst: Instruction) -> Builder:
    build = Builder.after(inst)
    build.metadata = {"dbg": inst.metadata["dbg"]} if "dbg" in inst.metadata else {}
    return build


def _smooth_power(power: Call) -> None:
    base, exponent = power.arguments
    if isinstance(base, Call) and _name(base) == "fabs":
        steep = _call("as_base", Builder.before(power), base, *base.arguments, exponent)
        power.set_operand(0, steep)


def _smooth_product(product: Binary, build: Builder) -> None:
    first, second = product.operands
    if first is second:
        root = _scaled_root(first)
        if root is not None:
            _pass_through(product, root.squared(build, product))
        return
    for rest, last in ((first, second), (second, first)):
        factor = _other_factor(rest, last)
        if factor is last and isinstance(last, Call) and _name(last) == "as_cbrt":
            _, under = last.arguments
            _pass_through(product, _call("as_identity", build, product, under))
            return
        root = None if factor is None else _scaled_root(last)
        if factor is not None and root is not None:
            square = root.squared(build, build.fmul(last, last))
            whole = build.fmul(factor, square)
            _pass_through(product, _call("as_identity", build, product, whole))
            return


def _other_factor(product: Value, factor: Value) -> Value | None:
    """Factor of a product besides the given one."""
    if not isinstance(product, Binary) or product.opcode != "fmul" or factor not in product.operands:
        return None
    first, second = product.operands
    return second if first is factor else first


def _call(name: str, build: Builder, value: Value, *under: Value) -> Value:
    """A function that returns the value and has derivatives with respect to the others."""
    assert isinstance(value.type, FloatType)
    return call_function(name, build, [value, *under], value.type)


def _pass_through(product: Instruction, passed: Value) -> None:
    assert isinstance(passed, Call)
    replace_uses(product, passed)
    passed.set_operand(0, product)


@dataclass(frozen=True, slots=True)
class _Step:
    """A product or a quotient, and the operand through which the root enters."""

    operation: Binary
    index: int

    def of(self, value: Value, build: Builder) -> Value:
        """A copy of the operation with another number for the operand."""
        operands = [value if i == self.index else each for i, each in enumerate(self.operation.operands)]
        return build.binary(self.operation.opcode, operands[0], operands[1], self.operation.flags)


@dataclass(frozen=True, slots=True)
class _ScaledRoot:
    """A root, and its factors and divisors, in this order."""

    root: Call
    steps: tuple[_Step, ...] = ()

    def squared(self, build: Builder, value: Value) -> Value:
        """The value of its square, computed from the radicand."""
        under = self.root.arguments
        if _name(self.root) == "hypot":  # factors are not squared by themselves, which might overflow
            return _call("as_squared_length", build, value, *(self._scaled(u, build) for u in under))
        plain = value if not self.steps else build.fmul(self.root, self.root)
        kind = "as_identity" if _name(self.root) == "as_length" else "as_squared_root"
        square = _call(kind, build, plain, under[-1])
        if not self.steps:
            return square
        scaled = self._scaled(self._scaled(square, build), build)
        return _call("as_identity", build, value, scaled)

    def _scaled(self, value: Value, build: Builder) -> Value:
        for step in self.steps:
            value = step.of(value, build)
        return value


def _scaled_root(value: Value, most: int = _MOST_STEPS) -> _ScaledRoot | None:
    """The root that a number is, but for its sign and for factors."""
    match value:
        case Call() if _name(value) in ("hypot", "sqrt", "as_length"):
            return _ScaledRoot(value)
        case Unary(opcode="fneg", operands=[inside]):
            return _scaled_root(inside, most)
        # LLVM's form of x**0.5, whose value at -∞ is ∞; and the sum that stands for the absolute value of a root
        case Select(operands=[FCmp(operands=[_, ConstantFloat(value=bound)]), _, inside]) if bound == -math.inf:
            return _scaled_root(inside, most)
        case Binary(opcode="fadd", operands=[inside, ConstantFloat(value=0.0)]):
            return _scaled_root(inside, most)
        case Binary(opcode="fmul" | "fdiv" as opcode, operands=operands) if most:
            for index in range(2 if opcode == "fmul" else 1):
                found = _scaled_root(operands[index], most - 1)
                if found is not None:
                    return _ScaledRoot(found.root, (*found.steps, _Step(value, index)))
    return None


def _name(call: Call) -> str | None:
    name = call.callee.name if isinstance(call.callee, Function) else None
    return None if name is None else _functions().get(name)


@cache
def _functions() -> dict[str, str]:
    """The functions that matter, by symbol."""
    return {
        symbol: name
        for name in ("hypot", "sqrt", "as_cbrt", "as_length", "fabs", "pow")
        for symbol, _ in symbols_of_function(name)
    }
