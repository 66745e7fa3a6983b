"""Reports of a watched call while it runs.

Generated code calls `_told` with the numbers of the operation; where it is follows from the activations
(`irad.passes.instrument.watch`). The answer is a *mark*, which generated code writes into the NaN, and which identifies
the event when a NaN comes out. A place reports its first `MOST_EVENTS` NaNs in a call, its first infinity and its first
tie; NaNs that it makes later are marked with the place alone. A call has a number; what it reported waits here until
the call ends.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Final, TypeAlias

import llvmlite.binding as llvm
import numpy as np
from numpy.typing import NDArray

from irad.data.structure import pieces
from irad.driver import MarkKind, WatchedPlace
from irad.errors import SourceLocation
from irad.records import dataclass
from irad.runtime_layouts import ARENA, PLACES

# Looks for NaNs and infinities in Python objects: arguments, values, gradients.


@dataclass(frozen=True)
class Found:
    """A number that is NaN or infinite, and where it is: "[3].weights"."""

    path: str
    number: float

    @property
    def mark(self) -> int:
        """Number that irad wrote into a NaN; 0 if none."""
        return int(_marks_in(np.array([self.number]))[0])

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """For an order: NaNs marked by irad as they were made, then other NaNs, then infinities."""
        return not self.mark, self.mark, not math.isnan(self.number)

    def within(self, name: str) -> tuple[str, str]:
        """The named object that it is part of, and the place in that: "the argument x", " at [3]".

        Keys and attributes are written as the function writes them: "the argument params['weights']".
        """
        named, after, _ = name.partition(" after the call")
        if self.path.startswith((".", "['")) and "value of" not in named:
            return f"{named}{self.path}{after}", ""
        return name, f" at {self.path}" if self.path else ""

    def __str__(self) -> str:
        return str(self.number)


def nonfinite(value: object, *, infinities_first: bool = False) -> Found | None:
    """The number in an object that is NaN or infinite; of several the NaN that was made first.

    With ``infinities_first`` an infinity goes before a NaN that was not made by an operation.
    """
    found = [bad for path, each in pieces(value) for bad in _look(each, path, infinities_first)]
    if infinities_first:
        found.sort(key=lambda bad: math.isnan(bad.number))
    return min(found, key=lambda bad: bad.rank[: 2 if infinities_first else 3], default=None)


def _marks_in(numbers: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Marks in the doubles of an array."""
    return np.where(np.isnan(numbers), numbers.view(np.uint64) >> 29 & (1 << 22) - 1, 0)


def _look(value: object, path: str, infinities_first: bool) -> Iterator[Found]:
    if not isinstance(value, float | complex | np.inexact | np.ndarray):
        return
    array = np.asarray(value)
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return
    kind, count = (np.complex128, 2) if array.dtype.kind == "c" else (np.float64, 1)
    numbers = np.array(array, kind, order="C").reshape(-1).view(np.float64)
    where = np.flatnonzero(~np.isfinite(numbers))
    marks = _marks_in(numbers[where])
    first = np.lexsort((np.isnan(numbers[where]) == infinities_first, marks, marks == 0))[0]
    place = np.unravel_index(where[first] // count, array.shape)
    yield Found(f"{path}[{', '.join(map(str, place))}]" if place else path, float(numbers[where[first]]))


_HEAD = PLACES.size // 8  # words of a table before those of its places
_MOST_CALLERS = 8
_MOST_CALLS = 4096  # a call that raises is never asked for
MOST_EVENTS: Final = 1000  # NaNs that one place reports in one call
_MARKS = 1 << 21  # of events, and as many of places: both fit into the payload of a NaN in single precision
_PARENT, _ITERATIONS, _TABLE, _SITE, _SCHEDULE, _STEP = range(0, 48, 8)  # in an activation

Loops: TypeAlias = tuple["LoopTurn", ...]


@dataclass(frozen=True)
class LoopTurn:
    """A turn of a loop: of a parallel one the value of its variable, else the number of the iteration, from 0."""

    location: SourceLocation | None
    number: int
    is_parallel: bool = False

    def __str__(self) -> str:
        line = f"line {self.location.line}" if self.location is not None else "an unknown line"
        if self.is_parallel:
            return f"index {self.number} of the parallel loop at {line}"
        return f"iteration {self.number} of the loop at {line}"


@dataclass(frozen=True)
class RulePlaces:
    """A rule that a user wrote: what it is for, where its forward and its reverse part are."""

    name: str
    augmented: SourceLocation
    reverse: SourceLocation


@dataclass(eq=False)
class Watched:
    """The watched places of one program.

    Attributes:
        places: by number.
        rules: that it calls, by symbol of the function.
        base: number of the first place among those of the process.
        memory: the table that generated code reads, see `irad/backend/runtime/watch.ll`.
        warned: the numbers of ties that were warned of.
    """

    places: tuple[WatchedPlace, ...]
    rules: Mapping[str, RulePlaces]
    base: int
    memory: ctypes.Array[ctypes.c_int64]
    warned: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Caller:
    """A call, with the loops around it; ``is_launch``: not of a function, but of a parallel loop."""

    location: SourceLocation | None
    loops: Loops
    is_launch: bool


@dataclass(frozen=True)
class Event:
    """Something that began at a place.

    Attributes:
        watched, number: the place.
        result: the result; for a tie the first number.
        operands: its operands; None for one of many NaNs, of which only the place is known.
        loops: iteration numbers of the loops around it, outermost first.
        callers: the calls that led there, innermost first.
        mark: payload of a NaN that began here.
        where: the thread or lane, if many run the same code.
    """

    watched: Watched
    number: int
    result: float
    operands: tuple[float, float, float] | None
    loops: Loops
    callers: tuple[Caller, ...]
    mark: int = 0
    where: str = ""

    @property
    def place(self) -> WatchedPlace:
        """Place of the event."""
        return self.watched.places[self.number]

    @property
    def is_of_infinities(self) -> bool:
        """True if an operand is infinite."""
        return self.operands is not None and any(map(math.isinf, self.operands))


@dataclass
class Record:
    """Events of one call.

    Attributes:
        watched: the places of the program; None where it has none.
        inputs: NaNs and infinities in arguments before the call, by name.
        events: in the order of time.
        told: number of NaNs, infinities and ties reported by each place.
        where: gives the thread or lane of an arena's address, if many run the same code.
    """

    watched: Watched | None
    inputs: dict[str, Found] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    told: Counter[tuple[int, bool]] = field(default_factory=Counter)
    where: Callable[[int], str] | None = None

    def of_kind(self, *kinds: MarkKind) -> Iterator[Event]:
        """Events at places of some kinds."""
        return (event for event in self.events if event.place.kind in kinds)


_lock: Final = threading.RLock()  # a pullback may be collected, and its call closed, wherever memory is allocated
_numbers: Final = itertools.count(1)
_marks: Final = itertools.count(1)
_next_base: list[int] = [1]
_by_symbol: Final[dict[str, Watched]] = {}
_by_address: Final[dict[int, Watched]] = {}
_calls: Final[OrderedDict[int, Record]] = OrderedDict()


def install(symbol: str | None, places: tuple[WatchedPlace, ...], rules: Mapping[str, RulePlaces]) -> None:
    """Makes the table of a derivative known to LLVM.

    Args:
        symbol: that of the table, which is named by its content; None: the derivative is not watched.
        places: its content.
        rules: that the program calls, by symbol of the function.
    """
    if symbol is None:
        return
    with _lock:
        if symbol in _by_symbol:
            return
        memory = (ctypes.c_int64 * (_HEAD + 2 * max(1, len(places))))()
        watched = Watched(places, rules, _next_base[0], memory)
        _next_base[0] += len(places)
        memory[0] = watched.base
        memory[1] = ctypes.cast(_told, ctypes.c_void_p).value or 0
        _by_symbol[symbol] = _by_address[ctypes.addressof(memory)] = watched
        llvm.add_symbol(symbol, ctypes.addressof(memory))


def installed(symbols: Iterable[str]) -> list[tuple[str, tuple[WatchedPlace, ...], Mapping[str, RulePlaces]]]:
    """The arguments with which the tables among some symbols were installed."""
    found = ((symbol, _by_symbol.get(symbol)) for symbol in symbols)
    return [(symbol, watched.places, watched.rules) for symbol, watched in found if watched is not None]


def watched_by(symbol: str | None) -> Watched | None:
    """The places of a table."""
    return None if symbol is None else _by_symbol[symbol]


def event_of_mark(mark: int, record: Record) -> Event | None:
    """The event that gave a NaN its payload; of one of many that began at a place, no more than the place."""
    made_there = [e for e in record.events if e.place.kind is MarkKind.VALUE or e.place.kind.is_derivative]
    if mark < _MARKS:
        return next((e for e in made_there if e.mark == mark), None)
    there = (e for e in made_there if _mark_of_place(e.watched, e.number) == mark)
    return next((replace(e, result=math.nan, operands=None, loops=(), callers=()) for e in there), None)


def _mark_of_place(watched: Watched, number: int) -> int:
    return _MARKS | (watched.base + number) % _MARKS


def open_call(watched: Watched | None) -> tuple[int, Record]:
    """A new call and its record."""
    number, record = next(_numbers), Record(watched)
    with _lock:
        _calls[number] = record
        if len(_calls) > _MOST_CALLS:
            _calls.popitem(last=False)
    return number, record


def record_of(call: int) -> Record | None:
    """Events of a call; None if that was long ago."""
    return _calls.get(call)


def close_call(call: int) -> Record | None:
    """Closes the call and drops its record."""
    with _lock:
        return _calls.pop(call, None)


@ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_double] * 4, use_errno=False
)
def _told(arena: int, table: int, number: int, result: float, a: float, b: float, c: float) -> int:
    """Called by generated code, in any thread; returns the mark of a NaN."""
    call = _word(arena + ARENA.offset("watched_call"))
    record = _calls.get(call)
    if record is None:
        return 0
    watched = _by_address[table]
    place, is_nan = watched.places[number], math.isnan(result)
    most = MOST_EVENTS if is_nan else 1
    told = record.told[watched.base + number, is_nan]
    if told + 1 >= most:
        watched.memory[_HEAD + 2 * number + is_nan] = call  # asks no more
    if told >= most:
        return _mark_of_place(watched, number)
    record.told[watched.base + number, is_nan] = told + 1
    mark = next(_marks) % (_MARKS - 1) + 1
    activation = _word(arena + ARENA.offset("activation"))
    callers = tuple(_callers(activation, place.in_lane))
    where = record.where(arena) if record.where is not None else ""
    record.events.append(Event(watched, number, result, (a, b, c), _loops(place, activation), callers, mark, where))
    return mark


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _loops(place: WatchedPlace, activation: int) -> Loops:
    """The turns of the loops around a place; those of a parallel loop are counted from the start of the chunk."""
    iterations = _word(activation + _ITERATIONS)
    turns = [LoopTurn(location, _word(iterations + 8 * slot)) for slot, location in place.loops]
    if not place.in_lane or not turns:
        return tuple(turns)
    launch = _launch(activation)
    schedule, step = _word(activation + _SCHEDULE), _word(activation + _STEP)
    [chunk, *inner] = turns
    for axis in range(min(step // 16, len(inner))):  # a chunk is the first index of each axis, then the last ones
        first = _word(schedule + chunk.number * step + 8 * axis)
        inner[axis] = LoopTurn(launch, first + inner[axis].number, is_parallel=True)
    return tuple(inner)


def _launch(activation: int) -> SourceLocation | None:
    """Place of the parallel loop of a lane."""
    parent = _word(activation + _PARENT)
    return _place_in(parent).location if parent else None


def _place_in(activation: int) -> WatchedPlace:
    """The call that a function is in."""
    return _by_address[_word(activation + _TABLE)].places[_word(activation + _SITE)]


def _callers(activation: int, in_lane: bool) -> Iterator[Caller]:
    for _ in range(_MOST_CALLERS):
        activation = _word(activation + _PARENT)
        if not activation:
            return
        place = _place_in(activation)
        yield Caller(place.location, _loops(place, activation), is_launch=in_lane)
        in_lane = place.in_lane
