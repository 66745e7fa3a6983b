"""Shadows of objects in code that is differentiated itself: each is made when the walk meets its memory.

The addresses that `regions` computes are numbers, through which the next derivative cannot follow a pointer. Here an
address is that of an allocation, and is stored at once where it belongs. What gradients are made from is kept in
variables; for items and entries, of which there may be any number, in blocks of structs. All of it lies in an arena.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend import resident
from irad.frontend.memory.references import References
from irad.frontend.memory.regions import INTP, VOID_POINTER, Owner, ShadowAt
from irad.frontend.memory.shadows import MEMINFO_TYPE, Extent

_NOTHING: Final = ir.VoidType()


@dataclass
class Block:
    """What is kept of the items of a container: a struct for each.

    Attributes:
        slot: where the address of the first struct is.
        parts: what is in a struct.
    """

    slot: Any
    parts: list[Kept] = field(default_factory=list)

    @property
    def pointer_type(self) -> Any:
        """Of a pointer to a struct."""
        kinds = [VOID_POINTER if isinstance(part, Block) else part.type for part in self.parts]
        return ir.LiteralStructType(kinds).as_pointer()


Kept: TypeAlias = Value | Block


class SeparateShadows:
    """Makes them, for a walk: in place of `regions.Regions`.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        references: of the call, which ends when there is no memory.
    """

    def __init__(self, context: BaseContext, builder: IRBuilder, references: References) -> None:
        self._context, self._builder, self._references = context, builder, references
        self.kept: list[Kept] = []
        self._arena = self._support("irad.arena_new", VOID_POINTER)
        self._check(self._arena)
        references.loops.append(lambda _: self._support("irad.arena_delete", _NOTHING, self._arena))

    def _support(self, symbol: str, result: Any, *arguments: Any) -> Any:
        callee = resident.declared(self._builder.module, symbol, result, [each.type for each in arguments])
        return self._builder.call(callee, arguments)

    def _check(self, memory: Any) -> None:
        with cgutils.if_unlikely(self._builder, cgutils.is_null(self._builder, memory)):
            self._references.fail()

    # --- what a walk meets --------------------------------------------------------------------------------------------

    def region(self, low: Value, high: Value, size: Value, owner: Owner) -> Any:
        """The shadow of a region of memory: its address."""
        memory = self._support("irad.arena_alloc", VOID_POINTER, self._arena, size)
        self._check(memory)
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
        self._support("irad.arena_defer", _NOTHING, self._arena, meminfo)

    def note(self, words: Sequence[Any]) -> None:
        """Keeps numbers and addresses in shadows."""
        self.kept += [self.address(word) if isinstance(word, ShadowAt) else word for word in words]

    def note_value(self, numba_type: Any, size: int, source: Any) -> None:
        """Keeps the value at an address."""
        model = self._context.data_model_manager[numba_type]
        pointer = self._builder.bitcast(source, model.get_data_type().as_pointer())
        self.kept.append(model.load_from_data_pointer(self._builder, pointer))

    def notes_of_items(self, count: Any) -> Callable[[], AbstractContextManager[None]]:
        """Makes a block for so many items; what surrounds the notes of each, in a loop that comes next."""
        build, before = self._builder, self._builder.block
        block = Block(cgutils.alloca_once(build, VOID_POINTER))
        counter = cgutils.alloca_once(build, INTP)
        build.store(INTP(0), counter)
        self.kept.append(block)

        @contextmanager
        def each() -> Iterator[None]:
            first = build.load(block.slot)
            self._check(first)
            outer, self.kept = self.kept, block.parts
            yield
            self.kept = outer
            with build.goto_block(before):  # now it is known what is kept
                size = self._context.get_abi_sizeof(block.pointer_type.pointee)
                memory = self._support("irad.arena_alloc", VOID_POINTER, self._arena, build.mul(count, INTP(size)))
                build.store(memory, block.slot)
            number = build.load(counter)
            build.store(build.add(number, INTP(1)), counter)
            place = build.gep(build.bitcast(first, block.pointer_type), [number])
            for i, part in enumerate(block.parts):
                value = build.load(part.slot) if isinstance(part, Block) else part
                build.store(value, cgutils.gep_inbounds(build, place, 0, i))

        return each


class KeptNotes:
    """Reads what was kept, in the same order: in place of `object_gradients.NotedWords`.

    Args:
        builder: of llvmlite.
        kept: by `SeparateShadows`.
    """

    def __init__(self, builder: IRBuilder, kept: Sequence[Kept]) -> None:
        self._builder, self._kept = builder, kept
        self.rewind()

    def rewind(self) -> None:
        """What comes next is the first."""
        self._parts: Iterator[Kept] = iter(self._kept)
        self._place: Any = None  # of the item that is read
        self._number = 0  # how much of it was

    def _next(self) -> tuple[Kept, Any]:
        part = next(self._parts)
        if self._place is None:
            return part, self._builder.load(part.slot) if isinstance(part, Block) else part
        self._number += 1
        return part, self._builder.load(cgutils.gep_inbounds(self._builder, self._place, 0, self._number - 1))

    def word(self) -> Any:
        """A number."""
        return self._next()[1]

    def shadow(self) -> Any:
        """An address in a shadow."""
        return self._next()[1]

    def value(self, size: int, model: Any) -> Any:
        """A value."""
        return self._next()[1]

    def items(self) -> Callable[[Any], AbstractContextManager[None]]:
        """What surrounds the reading of each item of a container, from its number."""
        block, first = self._next()
        assert isinstance(block, Block)

        @contextmanager
        def each(index: Any) -> Iterator[None]:
            outer = self._parts, self._place, self._number
            start = self._builder.bitcast(first, block.pointer_type)
            self._parts, self._place, self._number = iter(block.parts), self._builder.gep(start, [index]), 0
            yield
            self._parts, self._place, self._number = outer

        return each
