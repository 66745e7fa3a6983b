"""Propagation of the contents of forward mode's lanes from the operands of a number to the number.

Phis, loads and stores, calls of other functions and what rules do to memory move numbers, and are the same whatever the
lanes hold (`generate`). A `Propagation` is the rest: one for each `irad.passes.mode.Algebra`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite, Instruction
from irad.ir.values import Value
from irad.records import dataclass
from irad.ruleset.interface import CallRule, Elementwise, TangentPart
from irad.ruleset.registry import Registry

Made = TypeVar("Made")


class Tangents(Protocol):
    """Values of the primal and their tangents, where an instruction stands."""

    @property
    def after(self) -> Builder:
        """Emits after the copy of the instruction."""
        ...

    @property
    def zero_wins(self) -> bool:
        """True if a zero partial makes zero of an infinite tangent."""
        ...

    @property
    def order(self) -> int:
        """The number of the lane, from 1: of a coefficient its order."""
        ...

    @property
    def registry(self) -> Registry:
        """The rules."""
        ...

    def once(self, what: str, make: Callable[[], Made]) -> Made:
        """Value that all lanes share: made for the first that asks."""
        ...

    def value(self, primal: Value) -> Value:
        """The copy of a value."""
        ...

    def known_tangent(self, primal: Value) -> Value | None:
        """The tangent of a value; None when it is known to be zero."""
        ...

    def coefficient(self, primal: Value, order: int) -> Value | None:
        """Value that another lane, from 1 on, holds for a value; lane 0 holds its copy. None if it is known to be 0."""
        ...


@dataclass(frozen=True, slots=True)
class Propagation:
    """Emits the contents of the visitor's lane for the value of an instruction; None if they are zero.

    Attributes:
        of_instruction: of one that is neither a call nor a phi, and touches no memory.
        of_function: of function of a call of a scalar function.
        part_of_rule: the part of a rule that emits it for the callee's results.
    """

    of_instruction: Callable[[Tangents, Instruction], Value | None]
    of_function: Callable[[Tangents, CallSite, Elementwise], Value | None]
    part_of_rule: Callable[[CallRule], TangentPart | None]
