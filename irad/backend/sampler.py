"""A thread that looks at a word of memory a few thousand times a second and counts what it finds there.

It needs no privileges and no signals: it is ordinary machine code, called through ctypes, which lets Python run meanwhile.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from irad.backend.line_marks import OUTSIDE

# Each sleep is of another length, so that no loop of the program can keep step with the samples.
_TEXT = """
declare i32 @usleep(i32)

define void @sample(ptr %word, ptr %stop, ptr %counts) {
entry:
  br label %loop
loop:
  %state = phi i32 [ 12345, %entry ], [ %next, %look ]
  %product = mul i32 %state, 1664525
  %next = add i32 %product, 1013904223
  %jitter = lshr i32 %next, 25
  %time = add i32 %jitter, 60
  %done = call i32 @usleep(i32 %time)
  %stopped = load volatile i32, ptr %stop, align 4
  %is.stopped = icmp ne i32 %stopped, 0
  br i1 %is.stopped, label %end, label %look
look:
  %mark = load volatile i32, ptr %word, align 4
  %index = add i32 %mark, 1
  %slot = getelementptr i64, ptr %counts, i32 %index
  %count = load i64, ptr %slot, align 8
  %more = add i64 %count, 1
  store i64 %more, ptr %slot, align 8
  br label %loop
end:
  ret void
}
"""


class Sampler:
    """Counts how often marks are found.

    Attributes:
        address: of the word to which marks are written.
    """

    def __init__(self, largest: int) -> None:
        """For marks from `OUTSIDE` to ``largest``."""
        self._word, self._stop = ctypes.c_int32(OUTSIDE), ctypes.c_int32(0)
        self._counts = (ctypes.c_int64 * (largest + 2))()
        self.address = ctypes.addressof(self._word)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Looks at the word from time to time while open."""
        self._stop.value = 0
        pointers = [ctypes.byref(each) for each in (self._word, self._stop, self._counts)]
        thread = threading.Thread(target=_code()[1], args=pointers, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.value = 1
            thread.join()

    def counts(self) -> Mapping[int, int]:
        """How often each mark was found, those that were."""
        return {slot - 1: count for slot, count in enumerate(self._counts) if count}


@cache
def _code() -> tuple[Any, Any]:
    """The engine that holds the thread's code, and the code."""
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_TEXT), machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return engine, kind(engine.get_function_address("sample"))
