"""Measurements of `irad bench`, in order: compile times, correctness, one call, many calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numba
import numpy as np

import irad
from irad.benchmark.costs import SAMPLE_NS, Timing, call_overhead, peak_bytes, time_interleaved
from irad.benchmark.verify import check_finite_differences, check_forward, check_hand, tolerance_for
from irad.data.copies import copied, same_bits
from irad.data.floats import read_floats
from irad.errors import IradError
from irad.testing.gradients.input import CheckedFunction

Report = Callable[[str, int, int], None]
STEPS = ("compiling", "checking the gradient", "measuring memory and calls", "timing")


@dataclass(frozen=True)
class Figures:
    """All that was measured. Times are CPU seconds; the names of runs are "primal", "gradient" and "hand".

    Attributes:
        function: qualified name.
        wrt: the arguments that there is a gradient with respect to.
        rounds: samples of each run.
        seconds: of a call, the median.
        spread: distance of the quartiles over the median.
        compile_seconds: of the first call minus that of the second; of callees that are compiled already nothing.
        overhead_seconds: overhead seconds of a call of a function of such arguments that does nothing.
        tape_bytes: saved by one call for the reverse sweep.
        peak_bytes: the most memory that a call takes; None where the system does not count it.
        errors: the differences that the gradient was checked by, relative; of finite differences their accuracy.
    """

    function: str
    wrt: tuple[str, ...]
    rounds: int
    seconds: Mapping[str, float]
    spread: Mapping[str, float]
    compile_seconds: Mapping[str, float]
    overhead_seconds: Mapping[str, float]
    tape_bytes: int
    peak_bytes: Mapping[str, int | None]
    errors: Mapping[str, float]

    def ratio(self, other: str) -> float | None:
        """Time of irad's gradient over that of another run."""
        return self.seconds["gradient"] / self.seconds[other] if other in self.seconds else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        ratios = {name: self.ratio(name) for name in ("primal", "hand") if name in self.seconds}
        return asdict(self) | {"ratio": ratios}


def measure(
    f: Any, args: tuple[Any, ...], positions: tuple[int, ...] | None, hand: Any, rounds: int, report: Report
) -> Figures:
    """Measures the gradient of a function after verifying it.

    Args:
        f: the function, which returns a float.
        args: of the calls; they are copied.
        positions: of the arguments to differentiate with respect to; None for all that hold floats.
        hand: a function with the same arguments that returns value and gradient as `irad.value_and_grad` does, or None.
        rounds: samples of each run.
        report: called with what is going on, how many steps are done and how many there are.

    Raises:
        IradError: the function cannot be differentiated, or the gradient does not agree with the other ones.
    """
    _warm_up()
    subject = CheckedFunction(f, args, positions, {})
    wanted = positions or tuple(i for i, active in enumerate(subject.active) if active)
    return _Measurement(subject, wanted, hand, report).figures(rounds)


class _Measurement:
    """The steps of one."""

    def __init__(self, subject: CheckedFunction, positions: tuple[int, ...], hand: Any, report: Report) -> None:
        self._subject, self._positions, self._report = subject, positions, report
        gradient = irad.value_and_grad(subject.primal, argnums=positions)
        self._functions = {"primal": subject.primal, "gradient": gradient}
        if hand is not None:
            self._functions["hand"] = hand
        self._arguments = copied(subject.values)

    def figures(self, rounds: int) -> Figures:
        """Everything, in order."""
        subject = self._subject
        self._tell(0)
        compile_seconds = self._compile_times()
        self._tell(1)
        errors = self._verify()
        self._tell(2)
        overhead = call_overhead(subject.values, self._positions, rounds)
        tape = irad.tape_report(subject.primal, *copied(subject.values), argnums=self._positions).total
        peaks = self._peaks()
        self._tell(3)
        timings = self._times(rounds)
        return Figures(
            subject.name,
            tuple(subject.names[i] for i in self._positions),
            rounds,
            {name: timing.median for name, timing in timings.items()},
            {name: timing.spread for name, timing in timings.items()},
            compile_seconds,
            overhead,
            tape,
            peaks,
            errors,
        )

    def _tell(self, step: int) -> None:
        self._report(STEPS[step], step, len(STEPS))

    def _compile_times(self) -> dict[str, float]:
        """The primal is compiled once more, apart: it may have been when its module was imported."""
        primal = self._subject.primal
        runs = self._functions | {"primal": numba.jit(**primal.targetoptions)(primal.py_func)}
        found = {}
        for name, function in runs.items():
            first, second = self._seconds(function), self._seconds(function)
            if name != "hand" or hasattr(function, "py_func"):
                found[name] = max(first - second, 0.0)
        return found

    def _seconds(self, function: Callable[..., Any]) -> float:
        arguments = copied(self._subject.values)
        start = time.process_time()
        function(*arguments)
        return time.process_time() - start

    def _verify(self) -> dict[str, float]:
        subject, positions = self._subject, self._positions
        tolerance = tolerance_for(subject.values)
        value, found = self._functions["gradient"](*copied(subject.values))
        gradients = tuple(map(read_floats, found))
        if not np.all(np.isfinite(np.concatenate([read_floats(value), *gradients]))):
            raise IradError(
                f"the value or the gradient of {subject.name} is not finite at these arguments",
                "pass --args at which both are finite",
                "infinity and NaN cannot be compared, so the gradient cannot be checked before it is timed",
                subject.location,
            )
        errors = {"finite differences": check_finite_differences(subject, positions)}
        errors["forward mode"] = check_forward(subject, positions, gradients, tolerance)
        if "hand" in self._functions:
            by_hand = self._functions["hand"](*copied(subject.values))
            errors["hand"] = check_hand(subject, positions, (value, gradients), by_hand, tolerance)
        return errors

    def _runs(self) -> dict[str, Callable[[], Any]]:
        """Calls with the arguments as they are by then."""
        return {name: partial(self._call, function) for name, function in self._functions.items()}

    def _call(self, function: Callable[..., Any]) -> None:
        function(*self._arguments)

    def _peaks(self) -> dict[str, int | None]:
        found = {}
        for name, run in self._runs().items():
            self._renew()
            found[name] = peak_bytes(run)
        return found

    def _times(self, rounds: int) -> dict[str, Timing]:
        """Arguments that are written are put back before each call."""
        self._renew()
        for run in self._runs().values():
            run()
        if not same_bits(self._arguments, self._subject.values):
            return time_interleaved(self._runs(), rounds, before=self._renew, sample_ns=SAMPLE_NS // 10)
        runs = {name: partial(function, *self._arguments) for name, function in self._functions.items()}
        return time_interleaved(runs, rounds)

    def _renew(self) -> None:
        self._arguments = copied(self._subject.values)


def _warm_up() -> None:
    """The first compilation of a process loads Numba, LLVM and irad, whatever it compiles."""

    @numba.njit  # type: ignore[untyped-decorator]
    def square(x: Any) -> Any:
        total = 0.0
        for value in x:
            total += value * value
        return total

    irad.value_and_grad(square)(np.ones(3))
