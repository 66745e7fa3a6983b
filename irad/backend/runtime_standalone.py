"""What derivatives need of a process without Python and Numba, in LLVM text: it goes beside `runtime.runtime_text`.

The key of the threads' arenas is made when the program starts, before its own constructors run. A derivative that
cannot go on ends the process with a message: C has no exception that its caller could catch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from irad.backend.runtime import TLS_KEY_SYMBOL
from irad.passes.exhaustion import EXHAUSTED, NO_PAIR

STOP_SYMBOL: Final = "irad.end_process"
UNWIND_STATUS: Final = -6  # what `STOP_SYMBOL` is given where an exception leaves a differentiated function

_MESSAGES: Final = {
    EXHAUSTED: "irad: out of memory for a derivative\n",
    NO_PAIR: "irad: a pointer leads to a function that has no derivative in this program\n",
    UNWIND_STATUS: "irad: an exception left a function that is being differentiated\n",
}
_CONSTRUCTOR: Final = "{ i32, ptr, ptr }"
_FAULT: Final = "irad: a derivative ended with an unknown status\n"


def standalone_text(tables: Iterable[str] = ()) -> str:
    """LLVM text of what `runtime_text` takes from its process.

    Functions, with the C calling convention::

        void irad.end_process(i32 status)   writes why a derivative cannot go on and aborts
        void NRT_decref(ptr)                aborts: a program without Numba has no reference counts

    Args:
        tables: symbols of the tables of pairs that calls through pointers ask. Pairs of functions that are known are
            called directly; these are empty, and so every call that asks one ends the process.
    """
    texts = [*_MESSAGES.values(), _FAULT]
    constants = [_constant(number, text) for number, text in enumerate(texts)]
    cases = " ".join(f"i32 {status}, label %case{number}" for number, status in enumerate(_MESSAGES))
    blocks = [_block(f"case{number}", number, text) for number, text in enumerate(_MESSAGES.values())]
    blocks.append(_block("other", len(_MESSAGES), _FAULT))
    empty = [
        f"@{name} = hidden global {{ ptr, ptr }} {{ ptr null, ptr @irad.no_pair }}" for name in sorted(set(tables))
    ]
    return "\n".join(
        [
            *constants,
            *empty,
            _BODY.format(entry=_CONSTRUCTOR, key=TLS_KEY_SYMBOL, stop=STOP_SYMBOL, cases=cases),
            *blocks,
            "}",
            "",
        ]
    )


def _constant(number: int, text: str) -> str:
    spelled = text.replace("\n", "\\0A")
    return f'@irad.message.{number} = private unnamed_addr constant [{len(text)} x i8] c"{spelled}"'


def _block(label: str, number: int, text: str) -> str:
    write = f"%written.{label} = call i64 @write(i32 2, ptr @irad.message.{number}, i64 {len(text)})"
    return f"{label}:\n  {write}\n  call void @abort()\n  unreachable"


_BODY: Final = """\
@{key} = hidden global i32 0
@llvm.global_ctors = appending global [1 x {entry}] [{entry} {{ i32 101, ptr @irad.start, ptr null }}]
declare i32 @pthread_key_create(ptr, ptr)
declare void @irad.arena_release(ptr)
declare i64 @write(i32, ptr, i64)
declare void @abort() noreturn

define internal void @irad.start() nounwind {{
entry:
  %status = call i32 @pthread_key_create(ptr @{key}, ptr @irad.arena_release)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %done, label %fail
fail:
  call void @{stop}(i32 -4)
  unreachable
done:
  ret void
}}

define hidden ptr @irad.no_pair(ptr %table, ptr %address, ptr %why) nounwind {{
  ret ptr null
}}

define hidden void @NRT_decref(ptr %object) nounwind noreturn cold noinline {{
  call void @abort()
  unreachable
}}

define hidden void @{stop}(i32 %status) nounwind noreturn cold noinline {{
entry:
  switch i32 %status, label %other [ {cases} ]"""
