"""Shadows of objects in code that is differentiated itself: each is made when the walk meets its memory.

The addresses that `regions` computes are numbers, through which the next derivative cannot follow a pointer. Here an
address is that of an allocation, and is stored at once where it belongs. What gradients are made from is kept as in
`kept_notes`. All of it lies in an arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.kept_notes import KeptBlocks, support
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import VOID_POINTER, Owner, ShadowAt
from irad.frontend.memory.shadows import MEMINFO_TYPE, Extent

_NOTHING: Final = ir.VoidType()


class SeparateShadows(KeptBlocks):
    """Makes them, for a walk: in place of `regions.Regions`.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        references: of the call, which ends when there is no memory.
    """

    def __init__(self, context: BaseContext, builder: IRBuilder, references: References) -> None:
        arena = support(builder, "irad.arena_new", VOID_POINTER)
        KeptBlocks.__init__(self, context, builder, arena, references.fail)
        self._check(arena)
        references.loops.append(lambda _: support(builder, "irad.arena_delete", _NOTHING, arena))

    # --- what a walk meets --------------------------------------------------------------------------------------------

    def region(self, low: Value, high: Value, size: Value, owner: Owner) -> Any:
        """The shadow of a region of memory: its address."""
        memory = self.allocated(size)
        cgutils.memset(self._builder, memory, size, 0)
        return memory

    def extent(self, extent: Extent, owner: Owner) -> ShadowAt:
        """The shadow of the first element of an array."""
        memory = self.region(extent.low, extent.high, extent.size(self._builder), owner)
        return ShadowAt(memory, self._builder.sub(extent.data, extent.low))

    def address(self, at: ShadowAt) -> Any:
        """An address in a shadow."""
        return self._builder.gep(at.region, [at.offset])

    def link(self, place: ShadowAt, to: ShadowAt) -> None:
        """Stores an address in a shadow."""
        self.number(place, self.address(to))

    def number(self, place: ShadowAt, word: Any) -> None:
        """Stores a number in a shadow."""
        self._builder.store(word, self._builder.bitcast(self.address(place), word.type.as_pointer()))

    def hold(self, meminfo: Value) -> None:
        """Takes a reference, until the call ends."""
        self._context.nrt.incref(self._builder, MEMINFO_TYPE, meminfo)
        support(self._builder, "irad.arena_defer", _NOTHING, self._arena, meminfo)

    def note(self, words: Sequence[Any]) -> None:
        """Keeps numbers and addresses in shadows."""
        KeptBlocks.note(self, [self.address(word) if isinstance(word, ShadowAt) else word for word in words])
