"""The algebra of Taylor series: a lane holds a coefficient of each number, of the order of its number.

Along x(t) = x₀ + x₁ t + x₂ t² + … the coefficients of z follow from those of lower order and of the operands. What is
linear in its floats is repeated on them, as on tangents. The first coefficient is the tangent, to the bit.

    z = fmul x, y       zₖ = Σ xⱼ yₖ₋ⱼ               z = fdiv x, y     zₖ = (xₖ - Σ yⱼ zₖ₋ⱼ) / y₀,  j ≥ 1
    z = exp x           k zₖ = Σ j xⱼ zₖ₋ⱼ           of any function with a rule: `irad.passes.forward.series`

Source: Griewank and Walther, Evaluating Derivatives, 2nd edition, section 13.2.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from irad.ir.instructions import Binary, CallSite, Instruction
from irad.ir.values import Value
from irad.passes.forward.convolutions import Convolutions
from irad.passes.forward.instructions import tangent_of
from irad.passes.forward.propagation import Propagation, Tangents
from irad.passes.forward.series import Series
from irad.ruleset.interface import Elementwise


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
