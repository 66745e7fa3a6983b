"""State that a forward sweep leaves for a separate reverse sweep, and the result types of both.

The state is one allocation: its head, the frame, the returned struct, the shadows of that, where the notes of what it
points to are. It frees the tape when the last reference to it is gone (``backend/runtime/states.ll``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils, types

from irad.errors import HERE, UsedTapeError
from irad.frontend import resident
from irad.frontend.calls.exceptions import field_of
from irad.frontend.calls.lanes import lanes_of
from irad.frontend.calls.result_types import gradient_types_of, in_all_lanes
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP, VOID_POINTER, WORD, Emit
from irad.frontend.memory.references import References
from irad.frontend.memory.shadows import ALIGNMENT, BYTES, bytes_at
from irad.frontend.values import abi, gradients, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content
from irad.records import dataclass
from irad.runtime_layouts import STATE, STATE_USED

STATE_TYPE = BYTES

_I32 = ir.IntType(32)
_AGAIN = (
    "the tape has already been reversed",
    "(a) run the forward sweep again, for another tape or (b) irad.ReverseSplit(repeatable=True), which keeps tapes",
    "a reverse sweep frees its tape, unless the mode allows another one",
    HERE,
)
_AT_ONCE = (
    "another thread is reversing the same tape",
    "(a) let the threads reverse it one after the other or (b) run the forward sweep once for each thread",
    "the reverse sweep works in the memory of the tape",
    HERE,
)


@dataclass(frozen=True)
class Layout:
    """Byte offsets in the block of a state, which begins with the frame."""

    value: int
    shadows: tuple[int, ...]
    notes: int
    size: int


def layout_of(derivation: Derivation) -> Layout:
    """The layout of the state of a function."""
    frame = _round_up(derivation.compiled.derivative.frame_size)
    size = _round_up(abi.memory_of_return(derivation.return_type).stride)
    width = derivation.task.mode.width
    *shadows, end = (frame + size * (1 + lane) for lane in range(width + 1))
    notes = width * len(tree.returned_references(derivation.return_type)) * WORD
    return Layout(value=frame, shadows=tuple(shadows), notes=end, size=end + _round_up(notes))


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def used_tape() -> UsedTapeError:
    """The error of a second reverse sweep."""
    problem, remedy, reason, _ = _AGAIN
    return UsedTapeError(problem, remedy, reason)


def call_of(state: Any) -> int:
    """In debug mode the number of the forward sweep that left a state, as Python has it."""
    at = STATE.offset("call")
    return int(state[at : at + 8].view(np.int64)[0])


class State:
    """A state in generated code.

    Attributes:
        head: where it begins.
        frame: where its block begins, with the frame.
        value: where the returned struct lies.
        shadows: where its shadows lie, one for each direction.
        notes: for each direction where the addresses of notes lie, by the part of the returned value that they are of.

    Args:
        derivation: the derivation that it belongs to.
        head: as above.
    """

    def __init__(self, emit: Emit, derivation: Derivation, head: Value) -> None:
        self._emit, self._builder, self.head = emit, emit.builder, head
        builder = emit.builder
        layout, kind = layout_of(derivation), abi.return_llvm_type(derivation.return_type)
        end = builder.add(builder.ptrtoint(head, INTP), INTP(STATE.size + ALIGNMENT - 1))
        self.frame = builder.inttoptr(builder.and_(end, INTP(-ALIGNMENT)), VOID_POINTER)
        self.value = field_of(builder, self.frame, layout.value, kind)
        self.shadows = [field_of(builder, self.frame, offset, kind) for offset in layout.shadows]
        places = count(layout.notes, WORD)
        self.notes = [
            {
                part: field_of(builder, self.frame, next(places), VOID_POINTER)
                for part in tree.returned_references(derivation.return_type)
            }
            for _ in layout.shadows
        ]

    @classmethod
    def of(cls, emit: Emit, derivation: Derivation, array: Value) -> State:
        """The state that is an array of bytes."""
        return cls(emit, derivation, emit.array(STATE_TYPE, array).data)

    def field(self, name: str, llvm_type: ir.Type) -> Value:
        """A pointer to a field of the head."""
        return field_of(self._builder, self.head, STATE.offset(name), llvm_type)

    def arena(self) -> Value:
        """The arena with the tape."""
        return self._builder.load(self.field("arena", VOID_POINTER))

    def take(self, references: References) -> None:
        """Takes the state for a reverse sweep; raises if it was used, or is in use."""
        builder, raise_it = self._builder, self._emit.context.call_conv.return_user_exc
        before = resident.call(builder, "irad.state_take", _I32, self.head)
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, before)):
            references.release()
            with builder.if_then(builder.icmp_signed("==", before, _I32(STATE_USED))):
                raise_it(builder, UsedTapeError, _AGAIN)
            raise_it(builder, UsedTapeError, _AT_ONCE)

    def give_back(self, *, is_used: bool = False) -> None:
        """Ends the use of the state; frees the tape if it was used for the last time."""
        name = "irad.state_end" if is_used else "irad.state_return"
        resident.call(self._builder, name, ir.VoidType(), self.head)


def new_state(emit: Emit, derivation: Derivation, held: Sequence[tuple[Any, Any]]) -> tuple[State, Value, Value]:
    """Memory for a state: the state, its meminfo, and the array of bytes that it is.

    Args:
        derivation: the derivation that it belongs to.
        held: references to release if memory runs out, as `References` takes them.
    """
    context, builder = emit.context, emit.builder
    size = INTP(STATE.size + ALIGNMENT + layout_of(derivation).size)
    arguments = [VOID_POINTER, INTP, VOID_POINTER]
    close = resident.declared(builder.module, "irad.state_close", ir.VoidType(), arguments)
    meminfo = context.nrt.meminfo_alloc_dtor_unchecked(builder, size, close)
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, meminfo)):
        References(emit, None, held).fail()
    head = context.nrt.meminfo_data(builder, meminfo)
    cgutils.memset(builder, head, size, 0)
    return State(emit, derivation, head), meminfo, bytes_at(emit, head, size, meminfo)


# --- types of what the two sweeps return ------------------------------------------------------------------------------


def augmented_type(derivation: Derivation, targets: Mapping[int, Any]) -> Any:
    """Type that the forward sweep returns; ``targets`` are the types of the given shadows, by position.

    The shadows are those of the first direction, then of the second, ….
    """
    shadows = types.BaseTuple.from_types(
        tuple(each for lane in lanes_of(derivation.task, targets) for each in _shadow_types(derivation, lane))
    )
    return types.Tuple((types.intp, gradients.owned_type(derivation.return_type), STATE_TYPE, shadows))


def _shadow_types(derivation: Derivation, targets: Mapping[int, Any]) -> tuple[Any, ...]:
    """The types of the shadows in one direction."""
    return (
        *(_shadow_type(argument, leaf, targets) for argument, leaf in derivation.active_memory()),
        *(BYTES for _ in derivation.active_lists()),
        *((BYTES, BYTES) if derivation.active_objects() else ()),
        *(part_of_type(targets[a.position], leaf.path) for a, leaf in objects_given(derivation)),
    )


def objects_given(derivation: Derivation) -> list[tuple[Argument, Content]]:
    """The objects that the caller gives memory for."""
    role_of = derivation.task.role_of
    return [(a, leaf) for a, leaf in derivation.active_objects() if role_of(a.position).takes_derivative]


def part_of_type(given: Any, path: tuple[int, ...]) -> Any:
    """The type of a part of nested tuples."""
    for step in path:
        given = given.types[step]
    return given


def _shadow_type(argument: Argument, leaf: Content, targets: Mapping[int, Any]) -> Any:
    """The type of the shadow of an array or record; that of a record is an array of one."""
    if not leaf.is_array:
        return types.Array(leaf.type, 0, "C")
    if argument.position not in targets:
        return types.Array(leaf.type.dtype, leaf.type.ndim, leaf.type.layout)
    return part_of_type(targets[argument.position], leaf.path)


def gradients_type(derivation: Derivation, targets: Mapping[int, Any]) -> Any:
    """Type that the pullback returns: one entry for each argument."""
    return types.BaseTuple.from_types(
        tuple(
            in_all_lanes(derivation.task, gradient_types_of(derivation, a.position, targets))
            if derivation.task.role_of(a.position).is_returned
            else types.none
            for a in derivation.arguments
        )
    )
