"""Measurements by running a derivative: the time that each line takes, and the bytes of the tape."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numba.core import types

from irad.api.vjp import vjp
from irad.backend.sampler import OUTSIDE, Sampler, with_marks
from irad.data.copies import copied
from irad.data.floats import floats_only
from irad.debug.tape import Measurement
from irad.errors import SignatureError
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher
from irad.frontend.calls.task import Role, Seed
from irad.frontend.calls.watch_hooks import measured
from irad.frontend.numba.reports import kinds_of, replaced_code
from irad.report.model import Report, Times
from irad.report.source import UserSource
from irad.report.stages import is_of_reverse_sweep, line_finder
from irad.report.subject import Subject

# Runs the derivative that a report is about, whatever its kind.

Run: TypeAlias = Callable[[tuple[Any, ...]], list[tuple[Any, tuple[Any, ...]]]]
"""Runs both sweeps once for arguments; gives the dispatchers that it has called, and with what."""


def derivative_of(subject: Subject, args: tuple[Any, ...]) -> Run:
    """The derivative as a function of the primal's arguments.

    Values stand in for their own cotangents, as if half their square was differentiated.
    """
    (_, dispatcher, _), *_ = subject.compiled()
    if isinstance(dispatcher, AugmentedDispatcher):
        return lambda given: _sweeps(subject, dispatcher, given)
    leading = [_shadow(args[position], subject.task.role_of(position)) for position in subject.task.destinations]
    if dispatcher.writes_into and not subject.task.single:
        leading = [tuple(leading)]
    if subject.task.seed is Seed.GIVEN:
        leading.append(floats_only(copied(subject.primal(*copied(args)))))

    def run(given: tuple[Any, ...]) -> list[tuple[Any, tuple[Any, ...]]]:
        dispatcher(*leading, *given)
        return [(dispatcher, (*leading, *given))]

    return run


def _sweeps(subject: Subject, augmented: Any, given: tuple[Any, ...]) -> list[tuple[Any, tuple[Any, ...]]]:
    value, pullback = vjp(subject.primal, *given, options=subject.task.options)
    seed = floats_only(copied(value))
    pullback(seed)
    tape = pullback._tape
    return [(augmented, given), (tape.specialisation.pullback, (*tape.saved(), seed))]


def _shadow(value: Any, role: Role) -> Any:
    """Memory for a derivative; that of a number goes to an array of one."""
    return np.array([value]) if role is Role.INTO and np.isscalar(value) else floats_only(copied(value))


# One call of a derivative, to measure its tape.


def is_call(args: tuple[Any, ...]) -> bool:
    """True if arguments are values, not types."""
    return not any(isinstance(argument, types.Type) for argument in args)


def measure(subject: Subject, args: tuple[Any, ...]) -> Measurement:
    """Calls a derivative and counts.

    Args:
        subject: the derivative.
        args: arguments of the function, which stay as they are: the call gets copies.

    Raises:
        Exception: whatever the function raises.
    """
    assert subject.again is not None, "made by `subject_of`"
    metered = subject.again(replace(subject.task.options, measure_tape=True))
    measured()  # of an earlier call, discarded
    derivative_of(metered, args)(copied(args))
    found = measured()
    assert found is not None
    return found


# Which share of a gradient's time each line of the source takes.
#
# Method  The gradient runs again and again for about a second, in code that is Numba's own but for the marks of
#         `irad.backend.sampler`: stores of the current line's number to a word, about one for each change of line.
#         A thread reads the word at random moments, some thousand times, and adds up the CPU time in between
#         (`irad.backend.sampler`). So what is given is measured CPU time, of both sweeps together, waiting for memory
#         and calls of exp or BLAS included.
#         The marks tell the sweeps apart, too: see `irad.passes.instrument.sweep_marks`. How long a call takes, and the
#         plain function, is measured without marks: the best of several runs, each on copies of the arguments.
# Meaning A line's share is of the time of the derivative's machine code: both sweeps, shadows, memory of the tape.
#         Passing arguments from Python does not count. What belongs to no line, such as clearing shadows, is in the
#         total only, so the shares of all lines may add up to less than one. What a line calls is its own time, unless
#         it is shown in the source itself. For merged or moved instructions, LLVM decides the line.
# Limit   Threads of parallel loops write to the same word: the sample finds the line of one of them.

_SECONDS = 1.0
_TIMING, _FEWEST, _MOST = 0.3, 3, 1000
_ENOUGH, _TIMES_LONGER = 1000, 3.0  # samples below which running longer is worth it, and how many times as long


@dataclass(frozen=True, slots=True)
class Profile:
    """Distribution of the running time.

    Attributes:
        shares: by line, 0…1; lines that were never found running are not there.
        reverse: by line the part of its share that the reverse sweep takes.
        seconds: of one call of the derivative, both sweeps.
        primal_seconds: primal seconds of one call of the plain function.
        reverse_share: of the time that is known to be of one sweep, what the reverse sweep takes.
        samples: number of samples taken while it ran.
        calls: number of runs.
    """

    shares: Mapping[int, float]
    reverse: Mapping[int, float]
    seconds: float
    primal_seconds: float
    reverse_share: float
    samples: int
    calls: int

    def applied_to(self, report: Report) -> Report:
        """The report with the shares on its lines, and the times of a call."""
        lines = (
            dataclasses.replace(
                line, share_of_time=self.shares.get(line.line, 0.0), reverse_share=self.reverse.get(line.line, 0.0)
            )
            for line in report.lines
        )
        times = Times(self.seconds, self.primal_seconds, self.reverse_share)
        return dataclasses.replace(report, lines=tuple(lines), times=times)


def profile(subject: Subject, source: UserSource, args: tuple[Any, ...], seconds: float = _SECONDS) -> Profile:
    """Runs a derivative and finds where its time goes.

    Args:
        subject: the derivative.
        source: the lines of interest.
        args: arguments of the function; each run gets copies of them.
        seconds: duration; after one run that is not sampled there is at least one more.

    Raises:
        SignatureError: the arguments are types, or the runs are too short to be seen.
    """
    if any(isinstance(argument, types.Type) for argument in args):
        raise SignatureError(
            "a profile needs arguments, not types",
            "pass arguments instead of types",
            "a profile measures a running derivative",
        )
    shown = frozenset(source.numbers)
    sampler = Sampler(largest=2 * max(shown) + 1)

    def marked(text: str) -> str:
        find, is_reverse = line_finder(text, source), is_of_reverse_sweep(text)

        def mark(node: str) -> int | None:
            line = find(node)
            return None if line is None or line not in shown else 2 * line + is_reverse(node)

        return with_marks(text, mark, sampler.address)

    run = derivative_of(subject, args)
    taken, plain = _best((run, lambda given: subject.primal(*given)), args)
    with ExitStack() as stack:
        for dispatcher, values in run(copied(args)):
            stack.enter_context(replaced_code(dispatcher, kinds_of(dispatcher, values), marked))
        calls = _run(run, args, sampler, seconds)
    times = {mark: time for mark, time in sampler.times().items() if mark != OUTSIDE}
    total = sum(times.values())
    if total == 0:
        raise SignatureError(
            "the derivative is too fast for a profile: no sample found it running",
            "pass larger arguments",
            "the profiler samples the running line at intervals",
        )
    shares: dict[int, float] = {}
    reverse: dict[int, float] = {}
    for mark, time_ in times.items():
        line, is_reverse = divmod(mark, 2)
        if line in shown:
            shares[line] = shares.get(line, 0.0) + time_ / total
            reverse[line] = reverse.get(line, 0.0) + is_reverse * time_ / total
    known = sum(shares.values())
    share = sum(reverse.values()) / known if known else 0.0
    return Profile(shares, reverse, taken, plain, share, sampler.looks(), calls)


def _best(functions: Sequence[Callable[[tuple[Any, ...]], object]], args: tuple[Any, ...]) -> list[float]:
    """Seconds of the fastest of several calls of each function, the first of which is not counted.

    Passing the arguments is included. The functions take turns, since their times are compared: other work of the
    machine, and whether the threads of parallel loops sleep, should affect all of them alike.
    """
    for function in functions:
        function(copied(args))
    best, end, calls = [math.inf] * len(functions), time.monotonic() + _TIMING * len(functions), 0
    while calls < _FEWEST or (time.monotonic() < end and calls < _MOST):
        for number, function in enumerate(functions):
            given = copied(args)
            started = time.perf_counter()
            function(given)
            best[number] = min(best[number], time.perf_counter() - started)
        calls += 1
    return best


def _run(run: Run, args: tuple[Any, ...], sampler: Sampler, seconds: float) -> int:
    run(copied(args))
    calls, end = 0, time.monotonic() + seconds
    last = end + _TIMES_LONGER * seconds
    with sampler.running():
        while calls == 0 or (now := time.monotonic()) < end or (sampler.looks() < _ENOUGH and now < last):
            run(copied(args))
            calls += 1
    return calls
