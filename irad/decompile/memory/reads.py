"""What the reverse sweep reads of the forward sweep, as it is rendered: names in place of addresses."""

from __future__ import annotations

from dataclasses import dataclass, field

from irad.ir.loops import Loop
from irad.ir.values import Value

STRONG = "strong"
"""The flag of a product that is zero where the cotangent in it is."""


@dataclass(frozen=True, slots=True)
class AffineRead:
    """``value``, affine in a loop: start + step · number of the iteration."""

    value: Value
    loop: Loop
    start: Value
    step: Value | int


@dataclass(eq=False, slots=True)
class Reads:
    """What placeholders of the reverse sweep stand for, by placeholder.

    Attributes:
        saved: values of the forward sweep.
        affine: affine variables.
        numbers: of each loop, the number of the iteration that is being reversed, a phi.
        recomputed: values of the reverse sweep that are values of the forward sweep, computed again.
        cotangents: values of the reverse sweep that are the cotangent of a primal value.
    """

    saved: dict[Value, Value] = field(default_factory=dict)
    affine: dict[Value, AffineRead] = field(default_factory=dict)
    numbers: dict[Loop, Value] = field(default_factory=dict)
    cotangents: dict[Value, Value] = field(default_factory=dict)
    recomputed: dict[Value, Value] = field(default_factory=dict)
