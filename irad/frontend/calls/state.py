"""What a forward sweep leaves for its pullback: a block with the frame, the returned struct, its shadow, the arena."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils

from irad.debug.events import close_call
from irad.frontend import resident
from irad.frontend.calls.failure import field_of
from irad.frontend.derivation import Derivation
from irad.frontend.memory.shadows import (
    ALIGNMENT,
    BYTES,
)
from irad.frontend.values import abi

STATE_TYPE = BYTES
POINTER_SIZE = 8

_VOID_POINTER = cgutils.voidptr_t


@dataclass(frozen=True)
class Layout:
    """Byte offsets in a state; last come the number of a watched forward sweep and the arena's address."""

    value: int
    shadow: int
    call: int
    arena: int

    @property
    def size(self) -> int:
        """Bytes of a state."""
        return self.arena + POINTER_SIZE


def layout_of(derivation: Derivation) -> Layout:
    """The layout of the state of a function."""
    frame = _round_up(derivation.compiled.derivative.frame_size)
    size = _round_up(abi.memory_of_return(derivation.return_type).stride)
    call = frame + 2 * size
    return Layout(value=frame, shadow=frame + size, call=call, arena=call + POINTER_SIZE)


def _round_up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def places_in(builder: IRBuilder, derivation: Derivation, block: Value, layout: Layout) -> tuple[Any, Any]:
    """Where the returned struct and its shadow lie."""
    kind = abi.return_llvm_type(derivation.return_type)
    return field_of(builder, block, layout.value, kind), field_of(builder, block, layout.shadow, kind)


@cache
def _delete_arena() -> Callable[[int], None]:
    """The compiled ``irad.arena_delete``."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(resident.address_of("irad.arena_delete"))


def close_state(state: Any) -> None:
    """Frees what the forward sweep left for the pullback; the state must not be used again."""
    call, address = map(int, state[-2 * POINTER_SIZE :].view("u8"))
    close_call(call)
    _delete_arena()(address)
