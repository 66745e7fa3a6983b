"""The structs and numbers of the run-time support: the one table of what three languages agree on.

LLVM text written by hand (``backend/runtime/*.ll``, ``backend/cuda/*.ll``) gets its types, indices of fields and
numbers from here by name, through `irad.backend.runtime.text`; generated code and Python use offsets of fields.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

_SIZES: Final = {"ptr": 8, "i64": 8, "i32": 4}
_IN_C: Final = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32}


class Struct:
    """A struct as C lays it out: every field at a multiple of its alignment.

    Attributes:
        name: LLVM's, without sigil.
        size: bytes, a multiple of the alignment.
        alignment: that of the field that needs most.
    """

    def __init__(self, name: str, /, **fields: str | Struct) -> None:
        """Fields are given in order, each by its LLVM type, or as the struct that it is."""
        self.name, self._fields = name, fields
        self._offsets: dict[str, int] = {}
        self.size, self.alignment = 0, 1
        for field, kind in fields.items():
            size, alignment = (_SIZES[kind], _SIZES[kind]) if isinstance(kind, str) else (kind.size, kind.alignment)
            self._offsets[field] = _round_up(self.size, alignment)
            self.size = self._offsets[field] + size
            self.alignment = max(self.alignment, alignment)
        self.size = _round_up(self.size, self.alignment)

    def offset(self, field: str) -> int:
        """Bytes from the start of the struct to a field."""
        return self._offsets[field]

    def kind(self, field: str) -> str | Struct:
        """LLVM's type of a field, or the struct that it is."""
        return self._fields[field]

    @property
    def fields(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(self._fields)

    @property
    def types(self) -> tuple[str, ...]:
        """LLVM's types of the fields, in order."""
        return tuple(kind if isinstance(kind, str) else f"%{kind.name}" for kind in self._fields.values())

    @property
    def in_c(self) -> list[tuple[str, Any]]:
        """The fields for a `ctypes.Structure`; none of them may be a struct."""
        return [(field, _IN_C[kind]) for field, kind in self._fields.items() if isinstance(kind, str)]

    @property
    def text(self) -> str:
        """LLVM's definition of the type."""
        return f"%{self.name} = type {{ {', '.join(self.types)} }}"


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


# --- arenas: backend/runtime/arena.ll -------------------------------------------------------------------------------

DEFERRED: Final = Struct("irad.deferred", next="ptr", meminfo="ptr")

LANES: Final = Struct(
    "irad.lanes",
    before="ptr",  # the lanes opened before
    arenas="ptr",
    count="i64",
)
MARK: Final = Struct(
    "irad.mark",
    previous="ptr",
    top="ptr",  # the arena's, when the mark was set; so are the next two
    chunk="ptr",
    used="i64",
    first_deferred="ptr",
    last_deferred="ptr",
    failed="i32",  # the arena's, when the mark was set
    lanes="ptr",  # opened last
    lent="ptr",  # the slot lent last
)
CHUNK: Final = Struct(
    "irad.chunk",
    next="ptr",
    end="ptr",  # of its bytes, a multiple of 64
    size="i64",  # with this head
    taken="i64",  # the number of outermost closes when it was last taken
)
ARENA: Final = Struct(
    "irad.arena",
    top="ptr",  # top and end: the free bytes of the current chunk
    end="ptr",
    failed="i32",  # why a sweep cannot go on, see below
    chunk="ptr",  # the current one
    mark="ptr",  # the innermost one
    used="i64",  # bytes in the chunks up to the current one
    closes="i64",  # how often the outermost mark was closed
    held="i64",  # bytes in all chunks
    root=MARK,
    base=CHUNK,  # the head of the first chunk
    stack_low="i64",  # the lowest byte of the thread's stack
    stack_spare="i64",  # bytes of it to leave free
    spare_lanes="ptr",  # spare arenas for lanes
    next_spare="ptr",  # the next spare one after this
    pending="ptr",  # the exception that the reverse of a rule raised, or why a pointer has no pair
    pending_code="i32",  # the status that goes with the exception
    watched_call="i64",  # of debug mode: the number of the call
    activation="ptr",  # and its innermost activation
    meter="ptr",  # of its tape
)

# Reasons in ``failed``.
OUT_OF_MEMORY: Final = 1
PAIR_MISSING: Final = 2
RULE_RAISED: Final = 3  # the reverse of a rule raised what is pending
TAPE_FULL: Final = 4  # the tape would take more than the meter allows

ALIGNMENT: Final = 64  # a cache line: of blocks of at least this size, of headers and of the ends of chunks
SMALL_ALIGNMENT: Final = 16  # of smaller blocks: what any type needs
ROUND_UP: Final = ALIGNMENT - 1  # added before the low bits are cleared
SMALL_ROUND_UP: Final = SMALL_ALIGNMENT - 1
CHUNK_OVERHEAD: Final = CHUNK.size + 2 * ALIGNMENT  # the head, and what aligning the start and the end may take
FIRST_BYTE: Final = CHUNK.size + ROUND_UP  # from a chunk's address to its first block, rounded down afterwards
ADDRESS_SPACE: Final = 2**47  # more bytes than any process has addresses for
WORD: Final = 8  # bytes of an integer or pointer
WORD_ROUND_UP: Final = WORD - 1

THREAD_CHUNK: Final = 64 << 10  # the first chunk of a thread's arena
SMALL_CHUNK: Final = 4 << 10  # that of an arena of a lane or a state, of which there may be many
SMALLEST_CHUNK: Final = 64 << 10  # the bounds of a further chunk, unless a block needs more
LARGEST_CHUNK: Final = 32 << 20
KEPT_BYTES: Final = 64 << 20  # what an arena keeps from one call to the next, and the lanes of a loop together
IDLE_CLOSES: Final = 64  # outermost closes after which a chunk that none of them took is freed

STACK_SPARE: Final = 256 << 10  # the most of a stack to leave free, for what recursions call that does not ask

# --- states of sweeps that run apart: backend/runtime/states.ll -------------------------------------------------------

STATE: Final = Struct(
    "irad.state",
    arena="ptr",  # null once the tape has been freed
    call="i64",  # of debug mode: the number of the forward sweep
    use="i32",  # see below; afterwards comes the block, at a multiple of 64
)

# Uses of a state.
STATE_IDLE: Final = 0
STATE_RUNNING: Final = 1
STATE_USED: Final = 2

# --- workspace of rules: backend/runtime/slots.ll -------------------------------------------------------------------

POOL: Final = Struct(
    "irad.pool",
    locked="i32",
    closed="i64",  # how often
    first="ptr",  # spare slot
    spare="i64",  # how many
    all="i64",
)
SLOT: Final = Struct(
    "irad.slot",
    next="ptr",  # the next spare one, or the one lent before
    pool="ptr",
    closed="i64",  # how often the pool was closed when the slot was made
    release="ptr",  # the function that does
)

# --- calls through pointers: backend/runtime/pointers.ll ------------------------------------------------------------

PAIR: Final = Struct("irad.pair", next="ptr", address="ptr", augmented="ptr", reverse="ptr", frame_size="i64")
PAIRS: Final = Struct("irad.pairs", first="ptr", resolver="ptr")

# --- what ends a program without Python: backend/runtime/standalone.ll ----------------------------------------------

EXHAUSTED: Final = 1
NO_DERIVATIVE: Final = 2
UNWINDING: Final = 3  # an exception leaves a function that is being differentiated
FIRST_CONSTRUCTOR: Final = (
    101  # the priority of the key: the lowest that is not the implementation's, so before the program
)

# --- shadows that lanes share: backend/runtime/partials.ll ----------------------------------------------------------

RECORD: Final = Struct(
    "irad.record",
    arena="ptr",
    first="i64",  # the index that the lane works on first; then come parameters and the lane's frame
)

WINDOW: Final = Struct(
    "irad.window",
    start="i64",  # start and size of the lane's window: there it adds to the shadow itself
    size="i64",
    delta="i64",  # from the shadow to the lane's partial shadow
    first="i64",  # first and last: the bytes of the shadow for which the partial one was used
    last="i64",
    low="i64",  # low and extent: the whole array; what lies outside is memory of the lane's own
    extent="i64",
)
PARTIAL: Final = Struct(
    "irad.partial",
    low="i64",  # low to high: the bytes that the array's shadow takes; of all that overlap, after open
    high="i64",
    kind="i64",  # see below
    step="i64",  # index i of the first axis lies at origin + i * step; step is 0 where there is none
    origin="i64",
    base="i64",  # its partial shadows, one after the other
    single="i64",  # 1 for float, 0 for double
    slot="i64",  # where a lane's record has its window
    owned="i64",  # bytes at ``base``, of the entry that releases them; else 0
)

# Kinds of entries: how lanes use the array.
KIND_READ: Final = 0  # they add to its shadow
KIND_CALLED: Final = 1  # library calls do
KIND_WRITTEN: Final = 2  # they take from its shadow only
KIND_BOTH: Final = 3  # they add and take
KIND_DIFFERENCE: Final = KIND_CALLED ^ KIND_BOTH  # of two kinds that exclude each other; the other such pair does, too

MAPPED_FROM: Final = 64 << 10  # bytes from which partial shadows are pages of their own
PAGES_ACCESS: Final = 3  # PROT_READ | PROT_WRITE; Python's module mmap is not loaded for two numbers
PAGES_FLAGS: Final = 34  # MAP_PRIVATE | MAP_ANONYMOUS

# --- shadows of containers: backend/runtime/containers.ll ----------------------------------------------------

LIST: Final = Struct(
    "irad.list",
    items="ptr",  # first: `irad.rules.typed_list` loads it through the address of the struct
    room="i64",  # for how many
    item_size="i64",  # last: what is before it is cleared in one go there
)
DICT: Final = Struct(
    "irad.dict",
    cells="ptr",  # by entry
    room="i64",  # for how many
    count="i64",
    key_size="i64",
    value_at="i64",  # where the value is in a cell
    value_size="i64",
)
MORE_ROOM: Final = 8  # entries that a container gets room for beyond twice as many as it has
DICT_ITERATOR: Final = Struct(  # Numba's NB_DictIter (numba/cext/dictobject.h)
    "irad.dict_iterator",
    dict="ptr",
    keys="ptr",
    size="i64",
    next="i64",  # the number of the entry to look at first
)

# --- debug mode, the meter of the tape: backend/runtime/watch.ll ----------------------------------------------------

PLACES: Final = Struct("irad.places", first_number="i64", callback="ptr")  # then two words for each place
METER: Final = Struct("irad.meter", limit="i64", bytes="i64")  # then the units that each place asked for

PLACE_MARK: Final = 1 << 21  # the highest of the 22 bits of a mark: it is the number of a place, not of an event
PLACE_MASK: Final = PLACE_MARK - 1
MARK_SHIFT: Final = 29  # where a mark is in the bits of a double: in those that a float has, too
QUIET_NAN: Final = 0x7FF8 << 48
MOST_COUNTED: Final = 1 << 52  # bytes of one request that the meter adds, so that its sum cannot overflow

# --- messages between processes: backend/runtime/mpi.ll ---------------------------------------------------------------

MPI_LIBRARY: Final = Struct(
    "irad.mpi_library",
    comm="i64",  # handles, as integers
    sum="i64",
    max="i64",
    min="i64",
    float64="i64",  # types, in the order of the numbers by which programs name them
    complex128="i64",
    complex64="i64",
    int32="i64",
    int64="i64",
    uint8="i64",
    float64_size="i64",  # bytes of an element, in the same order
    complex128_size="i64",
    complex64_size="i64",
    int32_size="i64",
    int64_size="i64",
    uint8_size="i64",
    sum_at="i64",  # where numba_mpi finds the handles of operations
    max_at="i64",
    min_at="i64",
    in_place="ptr",
    null_request="i64",
    proc_null="i64",
    any_source="i64",
    any_tag="i64",
    source_at="i64",  # bytes from the start of an MPI_Status to the source; and to the tag
    tag_at="i64",
    undefined="i64",  # MPI_UNDEFINED
    found_source="i64",  # of the message that was probed last
    found_tag="i64",
    found_count="i64",
    order="i64",  # how many messages the program has started
    high="i64",  # no slot from this number on was ever used
    records="ptr",  # MOST_REQUESTS of them
)
MPI_RECORD: Final = Struct(
    "irad.mpi_record",
    request="i64",  # MPI's handle, of four bytes or eight
    data="ptr",
    n="i64",
    kind="i64",
    peer="i64",
    tag="i64",
    mode="i64",  # see there
    order="i64",  # of the messages of the program, from 1; 0 of a free slot
    waits="i64",  # 1 from start until MPI tells that the message is through
    count="i64",  # of companions
    companion0="i64",
    companion1="i64",
    companion2="i64",
    companion3="i64",
    companion4="i64",
    companion5="i64",
    companion6="i64",
    companion7="i64",
)
MOST_COMPANIONS: Final = 8  # the fields above
MOST_REQUESTS: Final = 4096
DERIVATIVE_TAG: Final = 1 << 14  # the highest bit of the tags that every MPI has: of messages of derivatives
FIRST_REQUEST: Final = 1 << 16  # no handle of a library: those are pointers, or have high bits, or are predefined

# --- tapes of a kernel's threads: backend/cuda/tape.ll ---------------------------------------------------------------

THREAD_TAPE: Final = Struct(
    "irad.thread_tape",
    top="ptr",  # where the thread's next word lies
    end="ptr",  # the first word that is not its own any more
    start="ptr",  # its first word
    report="ptr",  # REPORT of all threads, or null
    failed="i32",  # whether something did not fit
)
REPORT: Final = Struct(
    "irad.tape_report",
    most="i64",  # bytes that a thread wanted
    failed="i64",  # whether one got none; then come what the meter counts, and the number of the call
)
WARP: Final = 32  # lanes; words of their tapes alternate
LAST_LANE: Final = WARP - 1
ALL_LANES: Final = -1  # a mask

STRUCTS: Final = (
    *(DEFERRED, LANES, MARK, CHUNK, ARENA, STATE, POOL, SLOT, PAIR, PAIRS),
    *(RECORD, WINDOW, PARTIAL, LIST, DICT, DICT_ITERATOR, PLACES, METER, MPI_LIBRARY, MPI_RECORD, THREAD_TAPE, REPORT),
)
NUMBERS: Final[Mapping[str, int]] = {name: value for name, value in globals().items() if type(value) is int}
"""The numbers above by name."""
