"""What irad says while it compiles: nothing, unless it takes long on a terminal, or logging is asked for.

And the room for frames that it makes then.
"""

from __future__ import annotations

import io
import logging
import os
import pty
import re
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import compiling
from irad.cli.output import working
from irad.compiling import with_room_for_frames
from irad.frontend import derivation


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    stream = Terminal()
    monkeypatch.setattr(compiling, "sys", SimpleNamespace(stderr=stream))  # pytest sets sys.stderr itself
    monkeypatch.setattr(compiling, "PATIENCE", 0.01)
    monkeypatch.setattr(compiling, "EVERY", 0.01)
    return stream


def wait_for(stream: Terminal, text: str) -> None:
    end = time.monotonic() + 20
    while text not in stream.getvalue():
        assert time.monotonic() < end, stream.getvalue()
        time.sleep(0.005)


def shown(stream: Terminal) -> list[str]:
    return [line for line in stream.getvalue().split("\r\x1b[2K") if line]


def test_what_takes_long_is_mentioned_with_its_part_and_cleared(terminal: Terminal):
    with compiling.step("compiling irad.grad(f)"):
        wait_for(terminal, "irad: compiling irad.grad(f) (0 s)")
        with compiling.step("differentiating f"):
            wait_for(terminal, "irad: compiling irad.grad(f) (0 s): differentiating f")
    assert terminal.getvalue().endswith("\r\x1b[2K")
    assert {line.partition(" (")[0] for line in shown(terminal)} == {"irad: compiling irad.grad(f)"}


def test_it_is_cleared_after_an_error_and_fits_the_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")

    def failing() -> None:
        with compiling.step("compiling " + "x" * 100):
            wait_for(terminal, "irad: compiling xxx")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert terminal.getvalue().endswith("\r\x1b[2K")
    assert max(map(len, shown(terminal))) < 40


def test_nothing_is_written_where_there_is_no_terminal_or_something_else_tells(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    with compiling.step("compiling"):
        time.sleep(0.05)
    assert stream.getvalue() == ""
    other = Terminal()
    monkeypatch.setattr(sys, "stderr", other)
    with compiling.quietly(), compiling.step("compiling"):
        time.sleep(0.05)
    assert other.getvalue() == ""


def test_the_spinner_of_the_command_line_is_not_disturbed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stderr", terminal)
    with working("looking"), compiling.step("compiling irad.grad(f)"):
        time.sleep(0.05)
    assert "irad: compiling" not in terminal.getvalue()


def test_steps_are_logged_with_types_sizes_and_times(caplog: pytest.LogCaptureFixture):
    @njit
    def logged(x):
        return np.exp(x) * x

    with caplog.at_level(logging.DEBUG, logger="irad"):
        irad.grad(logged)(1.0)
    told = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "irad"]
    name = re.escape(logged.py_func.__qualname__)
    patterns = [
        ("DEBUG", rf"compiling {name} with Numba \(\d+ lines of LLVM IR\) took \d+\.\d{{3}} s"),
        ("DEBUG", rf"differentiating {name} \(\d+ lines of LLVM IR made of \d+ lines\) took \d+\.\d{{3}} s"),
        ("INFO", rf"compiling irad\.grad\({name}\) \(for float64\) took \d+\.\d{{3}} s"),
    ]
    assert [level for level, _ in told] == [level for level, _ in patterns]
    for (_, message), (_, pattern) in zip(told, patterns, strict=True):
        assert re.fullmatch(pattern, message)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="irad"):
        irad.grad(logged)(2.0)  # is compiled already
    assert caplog.records == []


def test_a_refusal_is_logged(caplog: pytest.LogCaptureFixture):
    @njit
    def refused(x):
        return len(str(x))

    with caplog.at_level(logging.INFO, logger="irad"), pytest.raises(irad.IradError):
        irad.grad(refused)(1.0)
    assert "failed after" in caplog.records[-1].getMessage()


PROGRAM = """
import irad
from irad import compiling
from numba import njit

compiling.PATIENCE = 0.0

@njit
def f(x):
    return x * x * x

print(irad.grad(f)(2.0))
"""


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_program_prints_no_more_than_it_did(on_terminal: bool, tmp_path: Path):
    """In a process of its own, with standard error as a pipe and as a real terminal."""
    command = [sys.executable, "-c", PROGRAM]
    if not on_terminal:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("12.0\n", "")
        return
    leader, follower = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower, text=True) as process:
        os.close(follower)
        assert process.communicate()[0] == "12.0\n"
    told = os.read(leader, 100_000).decode()
    os.close(leader)
    assert "irad: compiling irad.grad(f)" in told
    assert told.endswith("\r\x1b[2K")


CALLS = 500


def nothing(*_: object) -> None:
    """It is called in a loop."""


def most_faults_at(depths: range) -> int:
    """Page faults of a loop of ``CALLS`` calls, at the depth of calls where there are most."""

    def at(depth: int) -> int:
        if depth:
            return at(depth - 1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(CALLS):
            nothing(1, 2, 3)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    at(depths.stop)  # memory that is taken once
    return max(map(at, depths))


def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """The result of a call with a stack of its own: that of a test is made large by `conftest`."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function(*args)))
    thread.start()
    thread.join()
    return found[0]


def test_calls_map_no_memory_where_room_is_made_for_their_frames():
    depths = range(150)
    # If it is small, this Python keeps the chunk: then nothing needs to make room.
    assert in_thread(most_faults_at, depths) >= CALLS
    assert in_thread(with_room_for_frames(most_faults_at), depths) < CALLS / 10


def test_room_is_made_for_frames_of_derivatives(monkeypatch: pytest.MonkeyPatch):
    original, roomy = derivation.derive, set()

    def derive(*args: Any, **kwargs: Any) -> Any:
        frame = sys._getframe()
        while frame is not None:
            if frame.f_code.co_stacksize > 10_000:
                roomy.add(frame.f_locals["function"].__name__)
            frame = frame.f_back
        return original(*args, **kwargs)

    monkeypatch.setattr(derivation, "derive", derive)

    @njit
    def cube(x):
        return x**3

    assert in_thread(irad.grad(cube), 2.0) == 12.0
    assert roomy == {"derivation_of", "compile"}


def test_what_room_is_made_for_is_called_as_it_was_and_keeps_its_name():
    @with_room_for_frames
    def divide(a: float, /, b: float = 2.0, *, offset: float = 0.0) -> float:
        """A docstring."""
        return a / b + offset

    assert (divide(4.0), divide(4.0, 8.0, offset=1.0)) == (2.0, 1.5)
    assert (divide.__name__, divide.__doc__) == ("divide", "A docstring.")
    with pytest.raises(ZeroDivisionError):
        divide(1.0, 0.0)
