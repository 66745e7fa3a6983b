"""What is noted in variables and blocks of structs, in place of words: for code that follows at once.

The addresses among the words of `regions` are numbers, through which a derivative of this code cannot follow a pointer.
For items and entries, of which there may be any number, structs lie in an arena.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend import resident
from irad.frontend.memory.regions import INTP, VOID_POINTER
from irad.frontend.numba import private


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


def support(builder: IRBuilder, symbol: str, result: Any, *arguments: Any) -> Any:
    """Calls a function of the run-time support."""
    callee = resident.declared(builder.module, symbol, result, [each.type for each in arguments])
    return builder.call(callee, arguments)


class KeptBlocks:
    """What is kept for `KeptNotes`.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        arena: outlives this.
        fail: emits the end of the function when there is no memory.
    """

    def __init__(self, context: BaseContext, builder: IRBuilder, arena: Value, fail: Callable[[], None]) -> None:
        self._context, self._builder, self._arena, self._fail = context, builder, arena, fail
        self.kept: list[Kept] = []

    def allocated(self, size: Any) -> Any:
        """Memory of the arena."""
        memory = self._unchecked(size)
        self._check(memory)
        return memory

    def _unchecked(self, size: Any) -> Any:
        name = "irad.arena_alloc" if private.shadow().is_here() else "irad.arena_memory"
        return support(self._builder, name, VOID_POINTER, self._arena, size)

    def _check(self, memory: Any) -> None:
        with cgutils.if_unlikely(self._builder, cgutils.is_null(self._builder, memory)):
            self._fail()

    def note(self, words: Sequence[Any]) -> None:
        """Keeps numbers and addresses."""
        self.kept += words

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
                build.store(self._unchecked(build.mul(count, INTP(size))), block.slot)
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
