"""Which share of a gradient's time each line of the source takes.

Method  The gradient runs again and again for about a second, in code that is Numba's own but for the marks of
        `irad.backend.line_marks`: stores of the current line's number to a word, about one for each change of line. A
        thread reads the word at random moments, some thousand times, and adds up the CPU time in between
        (`irad.backend.sampler`). So what is given is measured CPU time, of both sweeps together, waiting for memory and
        calls of exp or BLAS included.
Meaning A line's share is of the time of the derivative's machine code: both sweeps, shadows, memory of the tape.
        Arguments that Python hands over do not count. What belongs to no line, such as clearing shadows, is in the
        total only, so the shares of all lines may add up to less than one. What a line calls is its own time, unless
        it is shown in the source itself. Where LLVM has merged or moved instructions, it says whose they are.
Limit   Threads of parallel loops write to the same word: the sample finds the line of one of them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from irad.backend.line_marks import OUTSIDE, with_marks
from irad.backend.sampler import Sampler
from irad.errors import SignatureError
from irad.frontend.numba_replaced import kinds_of, replaced_code
from irad.frontend.numba_untyped import types
from irad.report.machine import line_finder
from irad.report.model import Report
from irad.report.run import Run, derivative_of
from irad.report.source import UserSource
from irad.report.subject import Subject
from irad.testing.leaves import copy_arguments

_SECONDS = 1.0
_ENOUGH, _TIMES_LONGER = 1000, 3.0  # so many looks are worth running longer


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time went.

    Attributes:
        shares: by line, 0…1; lines that were never found running are not there.
        samples: how often it was looked at while it ran.
        calls: how often it ran.
    """

    shares: Mapping[int, float]
    samples: int
    calls: int

    def applied_to(self, report: Report) -> Report:
        """The report with the shares on its lines."""
        lines = (dataclasses.replace(line, share_of_time=self.shares.get(line.line, 0.0)) for line in report.lines)
        return dataclasses.replace(report, lines=tuple(lines))


def profile(subject: Subject, source: UserSource, args: tuple[Any, ...], seconds: float = _SECONDS) -> Profile:
    """Runs a derivative and finds where its time goes.

    Args:
        subject: the derivative.
        source: the lines of interest.
        args: arguments of the function; each run gets copies of them.
        seconds: how long to run; at least one run is made after one that is not looked at.

    Raises:
        SignatureError: the arguments are types, or the runs are too short to be seen.
    """
    if any(isinstance(argument, types.Type) for argument in args):
        raise SignatureError(
            "a profile needs a call to look at, not types",
            "give arguments instead of types",
            "the derivative has to run to take time",
        )
    shown = frozenset(source.numbers)
    sampler = Sampler(largest=max(shown))

    def marked(text: str) -> str:
        find = line_finder(text, source)
        return with_marks(text, lambda node: line if (line := find(node)) in shown else None, sampler.address)

    run = derivative_of(subject, args)
    with ExitStack() as stack:
        for dispatcher, values in run(copy_arguments(args)):
            stack.enter_context(replaced_code(dispatcher, kinds_of(dispatcher, values), marked))
        calls = _run(run, args, sampler, seconds)
    times = {mark: time for mark, time in sampler.times().items() if mark != OUTSIDE}
    total = sum(times.values())
    if total == 0:
        raise SignatureError(
            "the derivative is too fast for a profile: it was never found running",
            "give larger arguments",
            "the profile looks now and then at the line that is running",
        )
    return Profile({mark: time / total for mark, time in times.items() if mark in shown}, sampler.looks(), calls)


def _run(run: Run, args: tuple[Any, ...], sampler: Sampler, seconds: float) -> int:
    run(copy_arguments(args))
    calls, end = 0, time.monotonic() + seconds
    last = end + _TIMES_LONGER * seconds
    with sampler.running():
        while calls == 0 or (now := time.monotonic()) < end or (sampler.looks() < _ENOUGH and now < last):
            run(copy_arguments(args))
            calls += 1
    return calls
