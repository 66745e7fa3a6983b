"""While irad compiles: log records, a line on a terminal once it takes long, no garbage collection, room for frames.

`step` is put around whatever takes time. The outermost running step is what a user waits for: after two seconds a
line on standard error says so, if that is a terminal, and goes away when the step ends. Every step is logged under the
name ``irad`` when it ends: the outermost ones at INFO, their parts at DEBUG.

    irad: compiling irad.grad(loss) (12 s): differentiating loss
"""

from __future__ import annotations

import gc
import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Final, ParamSpec, TextIO, TypeVar

LOG: Final = logging.getLogger("irad")
LOG.addHandler(logging.NullHandler())

PATIENCE: Final = 2.0
"""Seconds until a compilation is mentioned on a terminal."""

EVERY: Final = 0.5
_CLEAR: Final = "\r\x1b[2K"


class _Line:
    """Writes the current state to a terminal repeatedly until it is ended; then clears the line."""

    def __init__(self, stream: TextIO, steps: list[str]) -> None:
        self._stream, self._steps, self._since = stream, steps, time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="irad: progress", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Clears the line."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        pause = PATIENCE
        is_shown = False
        while not self._over.wait(pause):
            self._write(_CLEAR + self._text())
            is_shown, pause = True, EVERY
        if is_shown:
            self._write(_CLEAR)

    def _text(self) -> str:
        what, *parts = tuple(self._steps) or ("",)
        seconds = time.monotonic() - self._since
        text = f"irad: {what} ({seconds:.0f} s)" + (f": {parts[-1]}" if parts else "")
        return text[: shutil.get_terminal_size().columns - 1]

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone
            self._over.set()


class _State(threading.local):
    """The steps of a thread, outermost first, and whether something else reports them."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.is_quiet = False


_state: Final = _State()


@contextmanager
def step(what: str, details: str = "") -> Iterator[list[str]]:
    """Tells of a step while it runs, and logs how long it took.

    Args:
        what: what is going on: "compiling irad.grad(loss)".
        details: added to the log record: types, sizes.

    Yields:
        Further details, to be appended to.
    """
    outermost = not _state.steps
    found = [details] if details else []
    started, verb = time.perf_counter(), "failed after"
    _state.steps.append(what)
    line = _line() if outermost else None  # it tells of this step from its first word on
    try:
        yield found
        verb = "took"
    finally:
        _state.steps.pop()
        if line is not None:
            line.end()
        told = f" ({', '.join(found)})" if found else ""
        level = logging.INFO if outermost else logging.DEBUG
        LOG.log(level, "%s%s %s %.3f s", what, told, verb, time.perf_counter() - started)


@contextmanager
def quietly() -> Iterator[None]:
    """No line on the terminal meanwhile, of this thread: there is another sign of life."""
    before, _state.is_quiet = _state.is_quiet, True
    try:
        yield
    finally:
        _state.is_quiet = before


@contextmanager
def collection_paused() -> Iterator[None]:
    """Cyclic garbage collection off: it would look through growing modules again and again.

    Measured with it: differentiating took 3.6 times as long, lowering array expressions 1.5 times.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_WORDS: Final = 1 << 17  # makes a chunk of 2 MiB, half of which is free


def with_room_for_frames(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorates a function that compiles, under which calls nest by the hundred.

    CPython (3.11 to 3.13) keeps the frames of a thread in chunks of 16 KiB. It maps a chunk when a call finds the last
    one full, and unmaps it when that call returns: calls in a loop there take up to 200 times as long, and compiling
    took up to a fifth longer. A frame that needs more than a chunk gets a larger one, and the frames above it share the
    rest. Only the pages that they use take memory.
    """

    def roomy(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        return function(*args, **kwargs)

    roomy.__code__ = roomy.__code__.replace(co_stacksize=_WORDS)
    return wraps(function)(roomy)


def _line() -> _Line | None:
    stream = sys.stderr
    if _state.is_quiet or stream is None or not stream.isatty():
        return None
    return _Line(stream, _state.steps)
