"""``python -m bench``: measure the cases, print a table, write a JSON file."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.table import Table

from bench import compile_times, environment
from bench.case import Case, Size
from bench.cases import BY_NAME, CASES
from bench.variants import HAND_FLAGS, largest_error, make_variants
from irad.benchmark.clock import Timing, time_interleaved
from irad.benchmark.compare import changes, spread_of

TOLERANCE = 1e-9  # of the largest entry; reordered sums differ by less


@dataclass(frozen=True)
class Outcome:
    """All that was measured of one case."""

    case: Case
    timings: dict[str, Timing]
    errors: dict[str, float]
    compile_times: dict[str, float]

    @property
    def hand(self) -> float:
        """Seconds of the faster hand-written adjoint."""
        return min(self.timings[name].median for name in HAND_FLAGS)

    @property
    def ratio(self) -> float | None:
        """Time of irad over that of the hand-written adjoint."""
        return self.timings["irad"].median / self.hand if "irad" in self.timings else None

    @property
    def compile_ratio(self) -> float | None:
        """Compile time of irad's gradient over that of the primal."""
        times = self.compile_times
        return times["irad"] / times["primal"] if "irad" in times else None

    def to_json(self) -> dict[str, Any]:
        """For the result file; times are seconds."""
        return {
            "name": self.case.name,
            "title": self.case.title,
            "seconds": {name: timing.median for name, timing in self.timings.items()},
            "spread": {name: timing.spread for name, timing in self.timings.items()},
            "error": self.errors,
            "compile_seconds": self.compile_times,
            "ratio": self.ratio,
            "compile_ratio": self.compile_ratio,
        }


def measure(case: Case, size: Size, rounds: int, *, with_irad: bool, with_compile_times: bool) -> Outcome:
    """Check the variants of a case against each other, then time them."""
    args = case.make(size)
    variants = make_variants(case, with_irad=with_irad)
    expected = case.hand(*args)
    errors = {name: largest_error(v(*args), expected) for name, v in variants.items() if name != "primal"}
    timings = time_interleaved({name: partial(v, *args) for name, v in variants.items()}, rounds)
    times = compile_times.measure(case, with_irad=with_irad) if with_compile_times else {}
    return Outcome(case, timings, errors, times)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--rounds", default=31, show_default=True, type=click.IntRange(3), help="Samples of each function.")
@click.option("--size", default="full", show_default=True, type=click.Choice(get_args(Size)), help="Of the inputs.")
@click.option("--irad/--no-irad", "with_irad", default=True, help="Measure irad, or the hand-written adjoints alone.")
@click.option("--compile/--no-compile", "with_compile_times", default=True, help="Measure compile times.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--compare", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="An older result file.")
def main(
    names: tuple[str, ...],
    rounds: int,
    size: Size,
    with_irad: bool,
    with_compile_times: bool,
    output: Path | None,
    compare: Path | None,
) -> None:
    """Compare irad's value-and-gradient with hand-written adjoints. Without CASE all are measured."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise click.BadParameter(f"no case {unknown[0]!r}; there are {', '.join(BY_NAME)}", param_hint="CASE")
    console = Console()
    outcomes = []
    for case in [BY_NAME[name] for name in names] or CASES:
        with console.status(case.title):
            outcomes.append(measure(case, size, rounds, with_irad=with_irad, with_compile_times=with_compile_times))
    console.print(table_of(outcomes))
    path = output or Path(__file__).parent / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report_of(outcomes, rounds, size), indent=2) + "\n")
    console.print(f"written to {path}", highlight=False, soft_wrap=True)
    wrong = [
        f"{o.case.name}: {name} is off by {e:.1e}" for o in outcomes for name, e in o.errors.items() if e > TOLERANCE
    ]
    if wrong:
        sys.exit("wrong gradients\n" + "\n".join(wrong))
    worse = [] if compare is None else regressions(json.loads(compare.read_text()), report_of(outcomes, rounds, size))
    if worse:
        sys.exit("worse than before\n" + "\n".join(worse))


def table_of(outcomes: list[Outcome]) -> Table:
    """The figures of all cases."""
    table = Table(
        box=None, padding=(0, 2, 0, 0), title="One call, one thread: median CPU time in ms; compile time in s"
    )
    table.add_column("case", no_wrap=True)
    for heading in ("primal", "hand", "irad", "/hand", "/primal", "spread", "compile", "/primal"):
        table.add_column(heading, justify="right", no_wrap=True)
    for o in outcomes:
        primal = o.timings["primal"].median
        irad = o.timings["irad"].median if "irad" in o.timings else None
        table.add_row(
            o.case.name,
            _figure(1e3 * primal),
            _figure(1e3 * o.hand),
            _figure(irad and 1e3 * irad),
            _figure(o.ratio),
            _figure(irad and irad / primal),
            f"{max(timing.spread for timing in o.timings.values()):.0%}",
            _figure(o.compile_times.get("irad")),
            _figure(o.compile_ratio),
        )
    table.caption = f"geometric mean of irad/hand: {_figure(geometric_mean([o.ratio for o in outcomes]))}"
    return table


def report_of(outcomes: list[Outcome], rounds: int, size: Size) -> dict[str, Any]:
    """The result file."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment.describe(),
        "rounds": rounds,
        "size": size,
        "geometric_mean": geometric_mean([o.ratio for o in outcomes]),
        "cases": [o.to_json() for o in outcomes],
    }


def regressions(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What got worse in the cases that both result files have."""
    before = {case["name"]: case for case in old["cases"]}
    worse = []
    for case in new["cases"]:
        if case["name"] not in before:
            continue
        pair = before[case["name"]], case
        figures = [{k: c[k] for k in ("ratio", "compile_ratio") if c[k] is not None} for c in pair]
        compared = changes(*figures, sum(map(spread_of, pair)))
        worse += [f"{case['name']}: {change}" for change in compared if change.is_regression]
    return worse


def geometric_mean(ratios: list[float | None]) -> float | None:
    """Of the known ratios; None without any."""
    known = [ratio for ratio in ratios if ratio is not None]
    return math.exp(math.fsum(map(math.log, known)) / len(known)) if known else None


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
