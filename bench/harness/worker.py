"""One case and one tool, in a process of its own: ``python -m bench.harness.worker REQUEST`` prints JSON.

The hand-written adjoint, or irad's where there is none, is timed in the same process, in turns with the tool: the ratio
of the two does not depend on how busy the machine is, nor on which process ran when.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from bench.case import Case, Size
from bench.cases import find
from bench.competitors import BY_NAME as TOOLS, Prepared
from bench.variants import largest_error, make_variants
from irad.benchmark.costs import Timing, peak_bytes, time_interleaved

TOLERANCE: Final = 1e-9  # of the largest entry; reordered sums differ by less
TOOL_TOLERANCE: Final = 1e-8  # products of matrices and other formulas reorder more
SLOW: Final = 1.0  # seconds; of calls that take longer there are three samples


@dataclass(frozen=True)
class Request:
    """A measurement to make.

    Attributes:
        case: name of the case.
        tool: name of a competitor, or "irad" for irad, or "hand" for the hand-written adjoints alone.
        sizes: of the inputs; memory and compile time are those of the last.
        rounds: samples of each function.
        yardstick: the variant that a competitor takes turns with.
        against: other settings of irad, as for `bench.variants.irad_against`, to be measured as well.
    """

    case: str
    tool: str
    sizes: tuple[Size, ...]
    rounds: int
    yardstick: str = "hand"
    against: tuple[str, ...] = ()

    def to_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


def measure(request: Request) -> dict[str, Any]:
    """All figures of a request, by their names in the result file; those by size under "sizes"."""
    case = find(request.case)
    if request.tool in TOOLS:
        return _measure_tool(case, request)
    return _measure_variants(case, request)


def _measure_variants(case: Case, request: Request) -> dict[str, Any]:
    with_irad = request.tool == "irad"
    variants = make_variants(case, with_irad=with_irad, against=request.against)
    errors: dict[str, float] = {}
    sizes: dict[str, Any] = {}
    largest: dict[str, partial[Any]] = {}
    # The largest first: a derivative may have a version for short lengths of its first call.
    for size in reversed(request.sizes):
        args = case.make(size)
        error_of = _yardstick_of_errors(case, args)
        for name, variant in variants.items():
            if name != "primal":
                errors[name] = max(errors.get(name, 0.0), error_of(variant(*args)))
        runs = {name: partial(variant, *args) for name, variant in variants.items()}
        largest = largest or runs
        runs["primal"]()
        if max(errors.values()) <= TOLERANCE:
            sizes[size] = _times(time_interleaved(runs, request.rounds))
    found: dict[str, Any] = {"sizes": sizes, "error": errors, "peak_bytes": _peaks(largest)}
    if with_irad:
        import irad  # here, so that the cases can be timed alone

        args = case.make(request.sizes[-1])
        found["tape_bytes"] = irad.tape_report(case.primal, *args, argnums=case.argnums).total
    return found


def _yardstick_of_errors(case: Case, args: tuple[Any, ...]) -> Callable[[Any], float]:
    if case.error is not None:
        return partial(case.error, args)
    expected = case.hand(*args)
    return lambda found: largest_error(found, expected)


def _measure_tool(case: Case, request: Request) -> dict[str, Any]:
    tool = TOOLS[request.tool]
    yardstick = make_variants(case, with_irad=request.yardstick == "irad")[request.yardstick]
    tool.warm_up()
    found: dict[str, Any] = {"sizes": {}, "error": {tool.name: 0.0}}
    for size in reversed(request.sizes):  # as above
        args = case.make(size)
        start = _cpu_seconds()
        prepared = tool.prepare(case, args)
        if prepared is None:
            return {}
        result = prepared.run()
        first = _cpu_seconds() - start
        error = largest_error(prepared.read(result), yardstick(*args))
        found["error"][tool.name] = max(found["error"][tool.name], error)
        if error > TOOL_TOLERANCE:
            break
        figures = _measure_prepared(prepared, partial(yardstick, *args), first, tool.name, request)
        found["sizes"][size] = figures.pop("times")
        found = figures | found
    return found


def _measure_prepared(
    prepared: Prepared, yardstick: Callable[[], Any], first: float, name: str, request: Request
) -> dict[str, Any]:
    start = _cpu_seconds()
    prepared.run()
    second = _cpu_seconds() - start
    runs = {"yardstick": yardstick, name: prepared.run}
    rounds = request.rounds if second < SLOW else 3
    timings = time_interleaved(runs, rounds, clock=time.process_time_ns)
    return {
        "times": _times(timings),
        "peak_bytes": _peaks({name: prepared.run}),
        "compile_seconds": {name: max(first - second, 0.0)},
    }


def _times(timings: Mapping[str, Timing]) -> dict[str, Any]:
    return {
        "seconds": {name: timing.median for name, timing in timings.items()},
        "spread": {name: timing.spread for name, timing in timings.items()},
    }


def _peaks(runs: Mapping[str, Callable[[], Any]]) -> dict[str, int | None]:
    return {name: peak_bytes(run) for name, run in runs.items()}


def _cpu_seconds() -> float:
    """Of this process, all threads, and of compilers that it has started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _main(text: str) -> None:
    fields = json.loads(text)
    request = Request(**fields | {name: tuple(fields[name]) for name in ("sizes", "against")})
    if hasattr(os, "sched_setaffinity"):  # pools of threads have one thread then
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[os.getpid() % len(cores)]})
    print(json.dumps(measure(request)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
