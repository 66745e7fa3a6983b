"""Known places: after which loops are unrolled all addresses are constant offsets, so that memory becomes values.

Input   the loops of a function, and addresses that are computed from that of one piece of memory.
Output  `Unrolling.needed`: the loops to unroll, so that each would be at a constant offset; None if that is not enough.
        `mark` asks LLVM for those that `choose` took.
Method  an index is traced to constants and to the variables that its loops count, whose numbers of iterations must be
        known. Loops that no index asks for are left alone.
Limit   the code that unrolling makes of a nest, and of a function: `_LARGEST_NEST`, `_LARGEST_GROWTH` instructions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import Binary, Call, Cast, Freeze, GetElementPtr, ICmp, Instruction, Load, Phi, Select
from irad.ir.loops import Loop, LoopNest
from irad.ir.trip_count import trip_count
from irad.ir.values import ConstantInt, Value
from irad.ir.worklist import Worklist

_LARGEST_NEST: Final = 1_000
_LARGEST_GROWTH: Final = 4_000
_FULL: Final = '!{!"llvm.loop.unroll.full"}'


@dataclass(eq=False, slots=True)
class Unrolling:
    """Which loops of a function are to be unrolled.

    Attributes:
        loops, cfg, dominators: of the function.
        chosen: the loops, so far.
    """

    loops: LoopNest
    cfg: ControlFlow
    dominators: DominatorTree
    chosen: dict[Loop, None] = field(default_factory=dict)
    _counts: dict[Loop, int | None] = field(default_factory=dict, repr=False)

    def choose(self, needed: Iterable[dict[Loop, None]]) -> None:
        """Chooses the loops that each of several pieces of memory needs unrolled, or none of a nest that is too large.

        Half of a nest unrolled would make more code and leave its memory what it is.
        """
        pending = list(needed)
        while True:
            chosen = {loop: None for each in pending for loop in each}
            large = [loop for loop in chosen if self._size(loop, chosen) > _LARGEST_NEST]
            if not large and sum(map(partial(self._growth, chosen), self.loops.roots())) > _LARGEST_GROWTH:
                large = [max(self.loops.roots(), key=partial(self._growth, chosen))]
            if not large:
                self.chosen = chosen
                return
            pending = [each for each in pending if not any(one.contains(inner) for one in large for inner in each)]

    def needed(
        self, root: Instruction, addresses: Iterable[Instruction], lengths: Iterable[Value]
    ) -> dict[Loop, None] | None:
        """The loops after whose unrolling places behind a root are known; None if they are not, or lengths vary."""
        if not all(isinstance(length, ConstantInt) for length in lengths):
            return None
        indices = list[Value]()
        for address in addresses:
            match address:
                case GetElementPtr():
                    indices += address.operands[1:]
                case Phi() if address is root:
                    pass
                case Phi():
                    indices.append(address)
                case Load() | Freeze():
                    pass
                case _:
                    return None
        return self._loops_behind(indices, set(addresses))

    def most_runs(self, places: Iterable[Instruction], start: Instruction) -> float:
        """How often some instructions run at most, all together, from one time that another runs to the next."""
        return sum(self._most_runs(place, start) for place in places)

    def _most_runs(self, place: Instruction, start: Instruction) -> float:
        assert place.block is not None
        assert start.block is not None
        loop, runs = self.loops.loop_of(place.block), 1.0
        while loop is not None and not loop.contains(start.block):
            runs *= self._iterations(loop) or math.inf
            loop = loop.parent
        return runs

    def mark(self) -> None:
        """Asks LLVM to unroll the chosen loops."""
        module = self.cfg.function.module
        assert module is not None
        for loop in self.chosen:
            assert loop.latch is not None
            loop.latch.terminator.metadata["llvm.loop"] = module.loop_mark(_FULL)

    def _loops_behind(self, indices: Iterable[Value], addresses: set[Instruction]) -> dict[Loop, None] | None:
        """The loops whose variables some values are computed from; None where anything else is behind them."""
        found: dict[Loop, None] = {}
        values = Worklist(indices)
        for value in values:
            match value:
                case ConstantInt():
                    pass
                case Phi() if len(value.operands) > 1:
                    assert value.block is not None
                    loop = self.loops.loop_of(value.block)
                    if loop is None or loop.header is not value.block or self._iterations(loop) is None:
                        return None
                    found[loop] = None
                    values.add(*(each for each in value.operands if each not in addresses))
                case Phi() | Binary() | Cast() | ICmp() | Select() | Freeze():
                    values.add(*(each for each in value.operands if each not in addresses))
                case Call() if (value.callee.name or "").startswith(("llvm.smax.", "llvm.smin.", "llvm.abs.")):
                    values.add(*value.arguments)
                case _:
                    return None
        return found

    def _iterations(self, loop: Loop) -> int | None:
        """How often a loop runs at most, if that is known."""
        if loop not in self._counts:
            self._counts[loop] = self._counted(loop)
        return self._counts[loop]

    def _counted(self, loop: Loop) -> int | None:
        found = trip_count(loop, self.cfg, self.dominators)
        if found is None or not (isinstance(found.start, ConstantInt) and isinstance(found.bound, ConstantInt)):
            return None
        assert loop.preheader is not None
        count = found.emit(Builder.before(loop.preheader.terminator))
        return count.value + 1 if isinstance(count, ConstantInt) else None

    def _growth(self, chosen: dict[Loop, None], loop: Loop) -> int:
        """How many instructions unrolling adds to a loop."""
        return self._size(loop, chosen) - self._size(loop, {})

    def _size(self, loop: Loop, unrolled: dict[Loop, None]) -> int:
        """The instructions of a loop."""
        inner = sum(self._size(child, unrolled) for child in loop.children)
        own = sum(len(block.instructions) for block in loop.order if self.loops.loop_of(block) is loop)
        return (own + inner) * ((self._iterations(loop) or 1) if loop in unrolled else 1)
