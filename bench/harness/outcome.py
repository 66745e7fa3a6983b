"""Measurements of a case, gathered from the processes that measured it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench import compile_times
from bench.case import Case, Size
from bench.competitors import BY_NAME as TOOLS
from bench.harness.processes import WorkerFailed, run_worker
from bench.harness.worker import TOLERANCE, TOOL_TOLERANCE, Request
from bench.variants import HAND_FLAGS
from irad.benchmark.compare import LIMITS, changes, spread_of

Figures = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """Measurements wanted of each case.

    Attributes:
        size: of the inputs that the table shows.
        scaling: whether the other sizes are measured as well; the smallest always is, it shows what a call costs.
        rounds: samples of each function.
        tools: names of the competitors.
        with_irad: or the hand-written adjoints alone.
        with_compile_times: of primal, hand-written adjoint and irad; those of competitors cost nothing.
        limit: seconds of a process.
        against: other settings of irad to measure as well.
    """

    size: Size = "full"
    scaling: bool = False
    rounds: int = 31
    tools: tuple[str, ...] = ()
    with_irad: bool = True
    with_compile_times: bool = True
    limit: float = 600.0
    against: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[Size, ...]:
        """In the order of measurement: the one that counts comes last."""
        others: tuple[Size, ...] = ("small", "medium", "full") if self.scaling else ("small",)
        return (*(other for other in others if other != self.size), self.size)


@dataclass
class Outcome:
    """All that was measured of one case.

    Attributes:
        own: figures of primal, hand-written adjoints and irad.
        tools: figures of the competitors; empty where the case has no natural formulation.
        missing: by the name of a tool, why it has no figures.
    """

    case: Case
    size: Size
    own: Figures
    tools: dict[str, Figures] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of one call, by variant."""
        return dict(self.own["sizes"].get(self.size, {}).get("seconds", {}))

    @property
    def hand(self) -> float | None:
        """Seconds of the faster hand-written adjoint."""
        return self.hand_at(self.size)

    def hand_at(self, size: Size) -> float | None:
        """Seconds of the faster hand-written adjoint on inputs of a size."""
        seconds = self.own["sizes"].get(size, {}).get("seconds", {})
        return min((seconds[name] for name in HAND_FLAGS if name in seconds), default=None)

    @property
    def ratios(self) -> dict[str, float]:
        """Time of irad, of the best adjoint and of competitors over that of the hand-written adjoint, or irad's."""
        return self.ratios_at(self.size)

    def ratios_at(self, size: Size) -> dict[str, float]:
        """`ratios` on inputs of a size; competitors took turns with the yardstick themselves."""
        own = self.own["sizes"].get(size, {}).get("seconds", {})
        yardstick = self.hand_at(size) or own.get("irad")
        found = {name: own[name] / yardstick for name in ("irad", "hand_opt", "against") if yardstick and name in own}
        for name, figures in self.tools.items():
            if size in figures.get("sizes", {}):
                seconds = figures["sizes"][size]["seconds"]
                found[name] = seconds[name] / seconds["yardstick"]
        return found

    @property
    def ratio(self) -> float | None:
        """Time of irad over that of the hand-written adjoint."""
        return self.ratios.get("irad")

    @property
    def compile_ratio(self) -> float | None:
        """Compile time of irad's gradient over that of the primal."""
        times = self.own.get("compile_seconds", {})
        return times["irad"] / times["primal"] if "irad" in times else None

    @property
    def errors(self) -> dict[str, float]:
        """Largest difference from the hand-written adjoint, by variant and tool."""
        return {name: e for figures in (self.own, *self.tools.values()) for name, e in figures.get("error", {}).items()}

    @property
    def wrong(self) -> list[str]:
        """Figures that are off by more than rounding."""
        limits = {name: TOOL_TOLERANCE if name in TOOLS else TOLERANCE for name in self.errors}
        return [f"{self.case.name}: {n} is off by {e:.1e}" for n, e in self.errors.items() if not e <= limits[n]]

    def to_json(self) -> Figures:
        """For the result file; times are seconds."""
        entries = self.case.make(self.size)
        measured = self.own["sizes"].get(self.size, {})
        peaks = {n: b for figures in (self.own, *self.tools.values()) for n, b in figures.get("peak_bytes", {}).items()}
        return {
            "name": self.case.name,
            "title": self.case.title,
            "seconds": self.seconds,
            "spread": measured.get("spread", {}),
            "error": self.errors,
            "compile_seconds": self.own.get("compile_seconds", {}) | self._compile_seconds(),
            "ratio": self.ratio,
            "compile_ratio": self.compile_ratio,
            "ratios": self.ratios,
            "ratios_by_size": {size: self.ratios_at(size) for size in self.own["sizes"]},
            "overhead_seconds": self.own["sizes"].get("small", {}).get("seconds", {}),
            "tape_bytes": self.own.get("tape_bytes"),
            "peak_bytes": peaks,
            "calls_of_one_sided_differences": 1 + sum(np.size(entries[i]) for i in self.case.argnums),
            "flops": self.case.flops(*entries) if self.case.flops else None,
            "least_bytes": least_bytes(self.case, entries),
            "missing": self.missing,
            "by_process": {"own": self.own} | self.tools,
        }

    def _compile_seconds(self) -> dict[str, float]:
        return {name: s for figures in self.tools.values() for name, s in figures.get("compile_seconds", {}).items()}


def least_bytes(case: Case, args: tuple[Any, ...]) -> int:
    """Bytes that any value and gradient moves: the arguments in, the gradients out."""
    return sum(np.asarray(arg).nbytes for arg in args) + sum(np.asarray(args[i]).nbytes for i in case.argnums)


def measure(case: Case, wanted: Wanted, report: Callable[[str], None] = lambda what: None) -> Outcome:
    """Measures a case: irad and the hand-written adjoints, then each tool, every time in a process of its own.

    Raises:
        WorkerFailed: there are no figures of the hand-written adjoint; where a tool has none, the outcome says why.
    """
    report("irad" if wanted.with_irad else "hand")
    tool = "irad" if wanted.with_irad else "hand"
    first = Request(case.name, tool, wanted.sizes, wanted.rounds, against=wanted.against)
    outcome = Outcome(case, wanted.size, run_worker(first, wanted.limit))
    if wanted.with_compile_times:
        outcome.own["compile_seconds"] = compile_times.measure(case, with_irad=wanted.with_irad)
    seconds = outcome.seconds
    known = HAND_FLAGS if not case.is_drawn else ("irad",)
    yardstick = min(known, key=lambda name: seconds.get(name, math.inf))
    for name in wanted.tools:
        report(name)
        if not TOOLS[name].is_installed:
            outcome.missing[name] = f"{TOOLS[name].package} is not installed"
            continue
        try:
            request = Request(case.name, name, wanted.sizes, wanted.rounds, yardstick)
            outcome.tools[name] = run_worker(request, wanted.limit)
        except WorkerFailed as failure:
            outcome.missing[name] = str(failure)
    return outcome


def regressions(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Figures that got worse in the cases that both result files have."""
    before = {case["name"]: case for case in old["cases"]}
    worse = []
    for case in new["cases"]:
        if case["name"] in before:
            pair = before[case["name"]], case
            compared = changes(*map(_comparable, pair), sum(map(spread_of, pair)))
            worse += [f"{case['name']}: {change}" for change in compared if change.is_regression]
    return worse


def _comparable(case: Mapping[str, Any]) -> dict[str, float]:
    found = {name: case.get(name) for name in LIMITS if name != "peak_bytes"}
    found["peak_bytes"] = case.get("peak_bytes", {}).get("irad")
    return {name: float(value) for name, value in found.items() if value is not None}


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Geometric mean of the known ratios; None without any."""
    known = [ratio for ratio in ratios if ratio is not None]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None
