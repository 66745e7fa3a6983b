"""A thread that looks at a word of memory a few thousand times a second and sums up the CPU time by what it finds.

It needs no privileges and no signals: it is ordinary machine code, called through ctypes, which lets Python run
meanwhile. Each look counts with the CPU time that the other threads of the process have used since the look before. So
nothing is counted while the system runs other processes, where one and the same mark would be found again and again. A
look that comes late counts for a millisecond at most: it says little about a long time.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from irad.backend.line_marks import OUTSIDE
from irad.backend.toolchain import own_code

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
        address: of the word to which marks are written.
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
        """How often a mark other than `OUTSIDE` was found."""
        return sum(self._looks[1:])


@cache
def _code() -> tuple[Any, Any]:
    """The engine that holds the thread's code, and the code."""
    engine = own_code(_TEXT)
    pointer = ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int32, pointer, pointer)
    return engine, kind(engine.get_function_address("sample"))
