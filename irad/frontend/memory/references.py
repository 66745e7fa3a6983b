"""References that a derivative call holds: to memory that it may return, to its own, to memory of objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils
from numba.core.types import Type

from irad.errors import HERE, SignatureError
from irad.frontend import resident
from irad.frontend.calls.exceptions import emit_misfit, raise_kept
from irad.frontend.emit import VOID_POINTER, Emit
from irad.frontend.memory.shadows import ALIGNMENT, MEMINFO_TYPE, NO_MEMORY, clear
from irad.records import dataclass

_NUMBER = ir.IntType(32)


@dataclass
class Refusals:
    """Ends a call with a SignatureError if a condition holds.

    There may be hundreds of conditions, for each two arrays one. So the references that the call holds are dropped in
    one block for all of them, from which each goes on to its own exception.

    Attributes:
        release: emits what drops the references; they are the same from the first condition to `finish`.
    """

    emit: Emit
    release: Callable[[], None]
    _raised_in: list[tuple[Any, Callable[[], None]]] = field(default_factory=list, init=False)

    @cached_property
    def _common(self) -> Any:
        return self.emit.builder.append_basic_block("refused")

    def refuse(
        self,
        condition: Any,
        problem: str,
        remedy: str,
        reason: str,
        misfit: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> None:
        """Ends the call when a condition holds.

        Args:
            condition: a bit.
            problem, remedy, reason: of the error.
            misfit: the shape or the strides of an array, and those it should have; they end the problem.
        """
        builder, texts = self.emit.builder, (problem, remedy, reason)

        def end() -> None:
            if misfit is None:
                self.emit.context.call_conv.return_user_exc(builder, SignatureError, (*texts, HERE))
            else:
                raise_kept(self.emit)

        with builder.if_then(condition, likely=False):
            if misfit is not None:
                emit_misfit(self.emit, SignatureError, texts, *misfit)
            self._raised_in.append((builder.block, end))
            builder.branch(self._common)

    def finish(self) -> None:
        """Emits the blocks that the conditions branch to."""
        if not self._raised_in:
            return
        builder = self.emit.builder
        with builder.goto_block(self._common):
            which = builder.phi(_NUMBER)
            self.release()
            switch = builder.switch(which, builder.append_basic_block("refused.otherwise"))
            with builder.goto_block(switch.default):
                builder.unreachable()
            for number, (block, end) in enumerate(self._raised_in):
                which.add_incoming(_NUMBER(number), block)
                case = builder.append_basic_block("refused.by")
                switch.add_case(_NUMBER(number), case)
                with builder.goto_block(case):
                    end()


class References:
    """The references; each is in a slot on the stack, null until there is one.

    Attributes:
        results: slots of references to what may be returned.
        transient: slots of others.
        on_failure: emits what else is done before an exception.
        loops: emit loops over further references that are not results; they take what is done with each.

    Args:
        clear: the symbol of the function that clears memory, as `shadows.clear` takes it.
        held: values with their types on which the surrounding function holds a reference that it drops after the call,
            but not when the call raises: Numba leaks references there. `release` drops them.
    """

    def __init__(self, emit: Emit, clear: str | None, held: Sequence[tuple[Any, Any]]) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._clear, self._held = clear, held
        self.results: list[Any] = []
        self.transient: list[Any] = []
        self.on_failure: Callable[[], None] | None = None
        self.loops: list[Callable[[Callable[[Any], None]], None]] = []

    def slot(self, group: list[Any]) -> Any:
        """A new slot."""
        slot = cgutils.alloca_once(self._builder, VOID_POINTER)
        self._builder.store(cgutils.get_null_value(VOID_POINTER), slot)
        group.append(slot)
        return slot

    def allocated(self, size: Value, slot: Any, *, zeroed: bool = True) -> Any:
        """A meminfo of new memory, held in a slot."""
        nrt = self._context.nrt
        # Unchecked: Numba's check would raise at once, and leak the references held here.
        meminfo = nrt.meminfo_alloc_aligned_unchecked(self._builder, size, ALIGNMENT)
        with cgutils.if_unlikely(self._builder, cgutils.is_null(self._builder, meminfo)):
            self.fail()
        if zeroed:
            clear(self._builder, nrt.meminfo_data(self._builder, meminfo), size, self._clear)
        self._builder.store(meminfo, slot)
        return meminfo

    def keep(self, numba_type: Type, value: Any) -> Any:
        """Holds a value that was made, as a result; returns it."""
        for _, meminfo in self._context.nrt.get_meminfos(self._builder, numba_type, value):
            self._builder.store(meminfo, self.slot(self.results))
        return value

    def scratch(self, size: Value) -> Any:
        """A meminfo of zeroed memory that is not a result."""
        return self.allocated(size, self.slot(self.transient))

    def fail(self) -> None:
        """Ends the call with a MemoryError."""
        self.release()
        self._context.call_conv.return_user_exc(self._builder, MemoryError, NO_MEMORY)

    def refuse(
        self,
        condition: Any,
        problem: str,
        remedy: str,
        reason: str,
        misfit: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> None:
        """Ends the call with a SignatureError when a condition holds, as `Refusals.refuse` does."""
        refusals = Refusals(self._emit, self.release)
        refusals.refuse(condition, problem, remedy, reason, misfit)
        refusals.finish()

    def release(self) -> None:
        """Before an exception: drops every reference, those of results as well."""
        if self.on_failure is not None:
            self.on_failure()
        for value, numba_type in self._held:
            self._context.nrt.decref(self._builder, numba_type, value)
        self._take_transient(self._drop, self.results)

    def release_transient(self) -> None:
        """Drops the references that are not results."""
        self._take_transient(self._drop)

    def defer_transient(self, arena: Value) -> None:
        """Leaves the references that are not results to an arena, which drops them when it is deleted."""

        def leave(meminfo: Value) -> None:
            with self._builder.if_then(cgutils.is_not_null(self._builder, meminfo)):
                resident.call(self._builder, "irad.arena_defer", ir.VoidType(), arena, meminfo)

        self._take_transient(leave)

    def _take_transient(self, take: Callable[[Any], None], others: Sequence[Any] = ()) -> None:
        for loop in self.loops:
            loop(take)
        for slot in (*others, *self.transient):
            take(self._builder.load(slot))

    def _drop(self, meminfo: Value) -> None:
        self._context.nrt.decref(self._builder, MEMINFO_TYPE, meminfo)
