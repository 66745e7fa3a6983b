"""Loads that find the same in each iteration of an outer loop: one slot serves for all of them.

Input   the forward sweep, what the reverse sweep knows about loops.
Output  `Repeated.around`: the loop around an inner loop in whose iterations a load runs through the same values.
Method  the address depends on the inner loop's iteration only, the outer loop writes nothing there, and the inner loop
        runs equally often in each of its iterations: its bounds, and the condition under which it is entered, come from
        outside.
Limit   one loop, the next around the innermost one; none in kernels, nor in code that is differentiated again.

    for i: for j: s[i] += w[i, j] * x[j]      a slot for each j holds x[j], written anew for each i
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from irad.ir import instructions as ir
from irad.ir.loops import Loop
from irad.ir.trip_count import AffineVariable, is_invariant
from irad.ir.values import Value
from irad.ir.worklist import Worklist
from irad.passes.reverse.control import AugmentedLoops


@dataclass(eq=False, slots=True)
class Repeated:
    """Answers for the loads of one forward sweep."""

    loops: AugmentedLoops
    affine: Mapping[Value, tuple[Loop, AffineVariable]]
    primal_of: Mapping[Value, ir.Instruction]
    _written: dict[Loop, int] = field(default_factory=dict)

    def around(self, value: Value) -> Loop | None:
        """The loop of the primal for all of whose iterations a value needs one slot; None where there is none."""
        request = self.loops.augmented.program.request
        if not isinstance(value, ir.Load) or value.block is None or request.is_primal or request.host.is_shared:
            return None
        loop = self.loops.innermost.get(value.block)
        outer = loop.parent if loop is not None else None
        if loop is None or outer is None or not self._repeats(value, loop, outer):
            return None
        return outer if self.loops.runs_alike(loop, outer) else None

    def _repeats(self, value: Value, loop: Loop, outer: Loop) -> bool:
        """Whether a value is a function of a loop's iteration, the same in each iteration of the loop around it."""
        twin = self.loops.twins[outer]
        pending = Worklist([value])
        for needed in pending:
            if is_invariant(needed, twin):
                continue
            match needed:
                case ir.Phi() if needed in self.affine and self.affine[needed][0] is loop:
                    variable = self.affine[needed][1]
                    pending.add(variable.start, *(() if isinstance(variable.step, int) else (variable.step,)))
                case ir.Load() if self._stays(needed, outer):
                    pending.add(*needed.operands)
                case ir.Binary() | ir.Cast() | ir.GetElementPtr() | ir.ICmp() | ir.Select():
                    pending.add(*needed.operands)
                case _:
                    return False
        return True

    def _stays(self, load: ir.Load, outer: Loop) -> bool:
        """Whether a loop leaves the memory alone that a load reads."""
        primal, mod_ref = self.primal_of.get(load), self.loops.augmented.unit.mod_ref
        if not isinstance(primal, ir.Load) or not primal.is_plain:
            return False
        if outer not in self._written:
            self._written[outer] = mod_ref.changed_by(outer.order)
        touched = mod_ref.points_to.mask(primal.operands[0])
        return bool(touched) and not touched & self._written[outer] and not mod_ref.points_to.is_shared(touched)
