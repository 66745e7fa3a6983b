"""The operations of the kernel dialect as the executor sees them (`irad/backend/cuda/README.md` lists them)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from irad.records import dataclass


class State(IntEnum):
    """State of a thread between two rounds."""

    READY = 0
    FINISHED = 1
    BARRIER = 2
    BARRIER_POPC = 3
    BARRIER_AND = 4
    BARRIER_OR = 5
    WARP_SYNC = 8
    SHUFFLE_IDX = 9
    SHUFFLE_UP = 10
    SHUFFLE_DOWN = 11
    SHUFFLE_BFLY = 12
    VOTE_ALL = 13
    VOTE_ANY = 14
    VOTE_UNI = 15
    VOTE_BALLOT = 16
    MATCH_ANY = 17
    ACTIVEMASK = 18


class Kind(IntEnum):
    """Kind of an entry in the log of accesses."""

    UNLOGGED = 0  # an access that is checked only
    READ = 1
    WRITE = 2
    ATOMIC = 4
    WARP_SYNC = 8
    BLOCK = 16


class Stop(IntEnum):
    """Reason for which the scheduler stopped."""

    DONE = 0
    STUCK = 1  # threads wait for each other
    KINDS = 2  # they wait at barriers of different kinds
    NO_MEMORY = 3
    OUTSIDE = 4  # an access outside of all arrays
    PLACES = 5  # they wait at barriers in different places of the program; told if accesses are logged


NUMBERS: Final[Mapping[str, int]] = MappingProxyType(
    {f"{kind.__name__}.{each.name}": int(each) for kind in (State, Kind, Stop) for each in kind}
    | {f"bit State.{state.name}": 1 << state for state in State}
)
"""Names of these in LLVM text: ``${State.READY}``; and of a set that holds one state alone."""


@dataclass(frozen=True, slots=True)
class Wait:
    """An operation at which a thread waits for others.

    Attributes:
        state: meanwhile.
        words: description for messages.
        is_anywhere: whether threads that wait for each other there may be in different places of the program.
        mask, value, operand: argument that goes to that field of the thread's record; None if there is none.
    """

    state: State
    words: str
    mask: int | None = None
    value: int | None = None
    operand: int | None = None
    is_anywhere: bool = False

    @property
    def is_barrier(self) -> bool:
        """True if all threads of the block wait for each other."""
        return self.state < State.WARP_SYNC


_MODES: Final = {
    "idx": State.SHUFFLE_IDX,
    "up": State.SHUFFLE_UP,
    "down": State.SHUFFLE_DOWN,
    "bfly": State.SHUFFLE_BFLY,
}
_VOTES: Final = {
    "all": State.VOTE_ALL,
    "any": State.VOTE_ANY,
    "uni": State.VOTE_UNI,
    "ballot": State.VOTE_BALLOT,
}

WAITS: Final[Mapping[str, Wait]] = MappingProxyType(
    {
        "llvm.nvvm.barrier.cta.sync.aligned.all": Wait(State.BARRIER, "barrier"),
        "irad.cuda.barrier.popc": Wait(State.BARRIER_POPC, "barrier that counts", operand=0),
        "irad.cuda.barrier.and": Wait(State.BARRIER_AND, "barrier with an and", operand=0),
        "irad.cuda.barrier.or": Wait(State.BARRIER_OR, "barrier with an or", operand=0),
        "irad.cuda.barrier.anywhere": Wait(State.BARRIER_AND, "barrier", operand=0, is_anywhere=True),
        "llvm.nvvm.bar.warp.sync": Wait(State.WARP_SYNC, "barrier of the warp", mask=0),
        **{
            f"irad.cuda.shfl.{mode}.{type_}": Wait(state, f"shuffle ({mode})", mask=0, value=1, operand=2)
            for mode, state in _MODES.items()
            for type_ in ("i32", "i64", "f32", "f64")
        },
        **{
            f"irad.cuda.vote.{mode}": Wait(state, f"vote ({mode})", mask=0, operand=1) for mode, state in _VOTES.items()
        },
        **{f"irad.cuda.match.any.{type_}": Wait(State.MATCH_ANY, "match", mask=0, value=1) for type_ in ("i32", "i64")},
        "irad.cuda.activemask": Wait(State.ACTIVEMASK, "activemask"),
    }
)

_SPECIAL: Final = "llvm.nvvm.read.ptx.sreg."
IN_THREAD: Final[Mapping[str, str]] = MappingProxyType({f"{_SPECIAL}tid.{axis}": f"tid_{axis}" for axis in "xyz"})
"""Special registers that are fields of the thread's record."""
IN_LAUNCH: Final[Mapping[str, str]] = MappingProxyType(
    {f"{_SPECIAL}{word}.{axis}": f"{word}_{axis}" for word in ("ctaid", "ntid", "nctaid") for axis in "xyz"}
    | {"irad.cuda.dynamic_shared_size": "dynamic_bytes"}
)
"""Registers that are fields of the launch."""
WARP_SIZE: Final = f"{_SPECIAL}warpsize"
LANE: Final = f"{_SPECIAL}laneid"
LANES_BELOW: Final = "irad.cuda.lanemask.lt"
NO_OPERATION: Final = frozenset(
    {
        *(f"llvm.nvvm.membar.{scope}" for scope in ("cta", "gl", "sys")),  # threads run one at a time
        "llvm.nvvm.nanosleep",
    }
)
LANES: Final = 32

WATCHES: Final = frozenset({"irad.check_f64", "irad.check_f32", "irad.tie_f64"})
"""Functions that derivatives in debug mode call, with a table that the process has."""
TABLES: Final = "irad.places."
OPERATIONS: Final = frozenset({*WAITS, *IN_THREAD, *IN_LAUNCH, WARP_SIZE, LANE, LANES_BELOW, *NO_OPERATION})
