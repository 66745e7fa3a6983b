"""A thread that samples a word of memory a few thousand times a second and sums up the CPU time by its value.

It needs no privileges and no signals: it is ordinary machine code, called through ctypes, which lets Python run
meanwhile. Each look counts with the CPU time that the other threads of the process have used since the look before. So
nothing is counted while the system runs other processes, where one and the same mark would be found again and again. A
look that comes late counts for a millisecond at most: it says little about a long time.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

from irad.backend.toolchain import own_code
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Call, CallSite, Instruction, Phi, Terminator
from irad.ir.module import Block, Function
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.values import ConstantExpression, Value, const_int

# Marks in machine code that record which source line is running, for a thread that samples them.
#
# Input   an optimised module as text, the source line of each debug location.
# Output  the same module, with stores of the line's number to one word of memory.
# Method  A store precedes the first instruction of a line wherever another line, or an unknown one, may have
#         run before (one forward data-flow problem for each function). A call leaves the mark of what it called, so
#         after a call the caller's mark is restored. An instruction without a line belongs to the line that ran before.
# Limit   The text is not optimised again, so the marks disturb no optimisation; what they cost is a store for each
#         change of line.
#
#     %y = fmul double %x, %x, !dbg !7      store volatile i32 12, ptr inttoptr (i64 … to ptr)
#                                       →   %y = fmul double %x, %x, !dbg !7

OUTSIDE: Final = -1
"""The mark while Python runs, or code that converts Python's objects to Numba's values."""

NO_LINE: Final = 0
"""The mark of code that belongs to the derivative and to no line: shadows, memory of the tape."""

_PYTHON: Final = ("cpython.", "cfunc.", "_ZN7cpython")

_UNKNOWN: Final = -2
"""Mark for code where several lines may have run before."""

LineOf = Callable[[Instruction], int | None]


def with_marks(text: str, line_of: Callable[[str], int | None], word: int) -> str:
    """The text of a module with marks.

    Args:
        text: as LLVM prints it.
        line_of: the source line of a debug location (`!7`), None for none.
        word: address of an aligned 32-bit word, to which the marks go.
    """

    def line(inst: Instruction) -> int | None:
        location = inst.metadata.get("dbg")
        return None if location is None else line_of(location)

    module = parse_module(text)
    place = ConstantExpression(types.PTR, None, "inttoptr", (const_int(types.I64, word),))
    functions = set(module.defined_functions())
    located = {each for each in functions if any(line(inst) is not None for inst in each.instructions())}
    outer = _callers(located, {each: _callees(each) for each in functions})
    for function in located:
        _mark(function, line, place, functions - located - outer)
    for function in outer:
        _mark_outside(function, place, located | outer)
    return print_module(module)


def _callee(inst: Instruction) -> Value | None:
    return inst.callee if isinstance(inst, CallSite) else None


def _callees(function: Function) -> set[Value]:
    return {callee for inst in function.instructions() if (callee := _callee(inst)) is not None}


def _callers(located: Set[Function], calls: Mapping[Function, set[Value]]) -> set[Function]:
    """Functions without lines that call, directly or not, functions with lines."""
    found: set[Function] = set()
    pending = True
    while pending:
        marked = located | found
        more = {function for function, callees in calls.items() if function not in marked and callees & marked}
        found |= more
        pending = bool(more)
    return found


def _mark_outside(function: Function, place: Value, marked: Set[Function]) -> None:
    """A function without lines: its own mark at its head and after each call that changes it."""
    mark = OUTSIDE if (function.name or "").startswith(_PYTHON) else NO_LINE
    first = next(inst for inst in function.entry.instructions if not isinstance(inst, Phi | Alloca))
    behind = [inst for inst in function.instructions() if _callee(inst) in marked and _may_be_followed(inst)]
    _store(Builder.before(first), mark, place)
    for inst in behind:
        _store(Builder.after(inst), mark, place)


def _mark(function: Function, line_of: LineOf, place: Value, quiet: Set[Function]) -> None:
    """A function with lines. ``quiet`` are functions that leave the mark as it is."""
    for block, mark in _flow(function, line_of).items():
        for inst in list(block.instructions):
            line = line_of(inst) if _may_be_marked(inst) else None
            if line is not None and line != mark:
                _store(Builder.before(inst), line, place)
                mark = line
            if mark != _UNKNOWN and _may_change(inst, quiet):
                _store(Builder.after(inst), mark, place)


def _may_change(inst: Instruction, quiet: Set[Function]) -> bool:
    callee = _callee(inst)
    if callee is None or callee in quiet or not _may_be_followed(inst):
        return False
    return not (isinstance(callee, Function) and (callee.name or "").startswith("llvm."))


def _may_be_followed(inst: Instruction) -> bool:
    """True if something may stand between a call and what follows it."""
    return isinstance(inst, Call) and inst.tail != "musttail"


def _flow(function: Function, line_of: LineOf) -> dict[Block, int]:
    """The mark at the head of each block; `_UNKNOWN` where ways with different marks meet, and at the entry."""
    last = {block: _last_line(block, line_of) for block in function.blocks}
    predecessors: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        for target in block.terminator.targets:
            predecessors[target].append(block)
    before: dict[Block, int | None] = dict.fromkeys(function.blocks)
    before[function.entry] = _UNKNOWN
    changed = True
    while changed:  # ends, as a mark only goes from None to a line to `_UNKNOWN`
        changed = False
        for block in function.blocks:
            ways = {before[p] if last[p] is None else last[p] for p in predecessors[block]}
            met = _meet({*ways, before[block]})
            changed |= met != before[block]
            before[block] = met
    return {block: _UNKNOWN if mark is None else mark for block, mark in before.items()}


def _meet(ways: set[int | None]) -> int | None:
    known = ways - {None}
    return _UNKNOWN if len(known) > 1 else next(iter(known), None)


def _last_line(block: Block, line_of: LineOf) -> int | None:
    lines = (line_of(inst) for inst in reversed(block.instructions) if _may_be_marked(inst))
    return next((line for line in lines if line is not None), None)


def _may_be_marked(inst: Instruction) -> bool:
    return not isinstance(inst, Phi | Terminator)


def _store(build: Builder, mark: int, place: Value) -> None:
    build.store(const_int(types.I32, mark), place, align=4).volatile = True


# Each sleep is of another length, so that no loop of the program can keep step with the looks.
_TEXT = f"""
declare i32 @usleep(i32)
declare i32 @clock_gettime(i32, ptr)

define i64 @clock(i32 %which, ptr %time) {{
  %done = call i32 @clock_gettime(i32 %which, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %place = getelementptr i64, ptr %time, i32 1
  %rest = load i64, ptr %place, align 8
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}

define void @sample(ptr %word, ptr %stop, i32 %size, ptr %times, ptr %looks) {{
entry:
  %time = alloca [2 x i64], align 8
  br label %loop
loop:
  %state = phi i32 [ 12345, %entry ], [ %next, %look ], [ %next, %found ]
  %before = phi i64 [ -1, %entry ], [ %others, %look ], [ %others, %found ]
  %product = mul i32 %state, 1664525
  %next = add i32 %product, 1013904223
  %jitter = lshr i32 %next, 25
  %pause = add i32 %jitter, 60
  %slept = call i32 @usleep(i32 %pause)
  %stopped = load volatile i32, ptr %stop, align 4
  %is.stopped = icmp ne i32 %stopped, 0
  br i1 %is.stopped, label %end, label %look
look:
  %mark = load volatile i32, ptr %word, align 4
  %all = call i64 @clock(i32 {time.CLOCK_PROCESS_CPUTIME_ID}, ptr %time)
  %own = call i64 @clock(i32 {time.CLOCK_THREAD_CPUTIME_ID}, ptr %time)
  %others = sub i64 %all, %own
  %passed = sub i64 %others, %before
  %is.late = icmp sgt i64 %passed, 1000000
  %used = select i1 %is.late, i64 1000000, i64 %passed
  %is.first = icmp eq i64 %before, -1
  %has.run = icmp sgt i64 %used, 0
  %index = add i32 %mark, 1
  %is.known = icmp ult i32 %index, %size
  %is.later = xor i1 %is.first, true
  %both = and i1 %has.run, %is.known
  %counts = and i1 %both, %is.later
  br i1 %counts, label %found, label %loop
found:
  %slot = getelementptr i64, ptr %times, i32 %index
  %sum = load i64, ptr %slot, align 8
  %new.sum = add i64 %sum, %used
  store i64 %new.sum, ptr %slot, align 8
  %place = getelementptr i64, ptr %looks, i32 %index
  %count = load i64, ptr %place, align 8
  %new.count = add i64 %count, 1
  store i64 %new.count, ptr %place, align 8
  br label %loop
end:
  ret void
}}
"""


class Sampler:
    """Sums up CPU time by mark.

    Attributes:
        address: address of the word to which marks are written.
    """

    def __init__(self, largest: int) -> None:
        """For marks from `OUTSIDE` to ``largest``; what else is found does not count."""
        slots = ctypes.c_int64 * (largest - OUTSIDE + 1)
        self._word, self._stop = ctypes.c_int32(OUTSIDE), ctypes.c_int32(0)
        self._times, self._looks = slots(), slots()
        self.address = ctypes.addressof(self._word)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Looks at the word from time to time while open."""
        self._stop.value = 0
        word, stop, times, looks = map(ctypes.byref, (self._word, self._stop, self._times, self._looks))
        thread = threading.Thread(target=_code()[1], args=(word, stop, len(self._times), times, looks), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.value = 1
            thread.join()

    def times(self) -> Mapping[int, int]:
        """Nanoseconds by mark, of those that were found; long times between looks are cut short."""
        return {slot + OUTSIDE: time for slot, time in enumerate(self._times) if time}

    def looks(self) -> int:
        """Number of times that a mark other than `OUTSIDE` was found."""
        return sum(self._looks[1:])


@cache
def _code() -> tuple[Any, Any]:
    """The engine that holds the thread's code, and the code."""
    engine = own_code(_TEXT)
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int32, pointer, pointer)
    return engine, kind(engine.get_function_address("sample"))
