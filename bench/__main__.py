"""``python -m bench``: measure the cases, print tables, write a JSON file and pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import environment
from bench.case import Case, Size
from bench.cases import BY_NAME, CASES
from bench.competitors import BY_NAME as TOOLS
from bench.harness import table
from bench.harness.outcome import Outcome, Wanted, geometric_mean, measure, regressions
from bench.harness.processes import WorkerFailed, run_ceilings

_WIDTH = 160  # columns of a file, so that those of all tools can be read


def tools_of(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    """Names of tools from a list with commas, for click."""
    names = tuple(TOOLS) if value == "all" else tuple(filter(None, value.split(",")))
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise click.BadParameter(f"no tool {unknown[0]!r}; there are {', '.join(TOOLS)}", context, parameter)
    return names


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--rounds", default=31, show_default=True, type=click.IntRange(3), help="Samples of each function.")
@click.option("--size", default="full", show_default=True, type=click.Choice(get_args(Size)), help="Of the inputs.")
@click.option("--scaling", is_flag=True, help="Measure all three sizes.")
@click.option("--irad/--no-irad", "with_irad", default=True, help="Measure irad, or the hand-written adjoints alone.")
@click.option("--tools", default="", callback=tools_of, help=f"Also measure, by commas: {', '.join(TOOLS)}; or all.")
@click.option("--compile/--no-compile", "with_compile_times", default=True, help="Measure compile times.")
@click.option("--limit", default=600.0, show_default=True, help="Seconds for a case and a tool.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--compare", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="An older result file.")
@click.option("--plot", type=click.Path(path_type=Path, file_okay=False), help="Draw pictures into this folder.")
def main(names: tuple[str, ...], output: Path | None, compare: Path | None, plot: Path | None, **wanted: Any) -> None:
    """Compare irad's value-and-gradient with hand-written adjoints and other tools. Without CASE all are measured."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise click.BadParameter(f"no case {unknown[0]!r}; there are {', '.join(BY_NAME)}", param_hint="CASE")
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH)
    options = Wanted(**wanted)
    outcomes, failed = _measure_all([BY_NAME[name] for name in names] or CASES, options, console)
    _print(console, outcomes, options)
    report = report_of(outcomes, options)
    path = output or Path(__file__).parent / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if plot is not None:
        from bench.harness import plots  # matplotlib is an extra

        report["machine"] = run_ceilings()
        plots.draw(report, plot)
    path.write_text(json.dumps(report, indent=2) + "\n")
    console.print(f"written to {path}", highlight=False, soft_wrap=True)
    _complain("could not be measured", failed)
    _complain("wrong gradients", [line for outcome in outcomes for line in outcome.wrong])
    if compare is not None:
        _complain("worse than before", regressions(json.loads(compare.read_text()), report))


def _measure_all(cases: Sequence[Case], wanted: Wanted, console: Console) -> tuple[list[Outcome], list[str]]:
    """Outcomes, and which cases have none and why."""
    outcomes, failed = [], []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(cases) * (1 + len(wanted.tools)))

        for number, case in enumerate(cases):

            def report(what: str, case: Case = case) -> None:
                progress.update(task, description=f"{case.name}: {what}", advance=1)

            try:
                outcomes.append(measure(case, wanted, report))
            except WorkerFailed as failure:
                failed.append(f"{case.name}: {failure}")
            progress.update(task, completed=(number + 1) * (1 + len(wanted.tools)))
    return outcomes, failed


def _print(console: Console, outcomes: Sequence[Outcome], wanted: Wanted) -> None:
    console.print(table.table_of(outcomes))
    console.print(table.memory_table_of(outcomes))
    if wanted.tools or any("hand_opt" in o.ratios for o in outcomes):
        console.print(table.tools_table_of(outcomes, wanted.tools))
    for line in table.reasons(outcomes):
        console.print(line, highlight=False)


def _complain(what: str, lines: list[str]) -> None:
    if lines:
        sys.exit("\n".join([what, *lines]))


def report_of(outcomes: Sequence[Outcome], wanted: Wanted) -> dict[str, Any]:
    """The result file."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.ratios)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environment": environment.describe(),
        "rounds": wanted.rounds,
        "size": wanted.size,
        "geometric_mean": geometric_mean(o.ratio for o in outcomes),
        "geometric_means": {name: geometric_mean(o.ratios.get(name) for o in outcomes) for name in names},
        "cases": [o.to_json() for o in outcomes],
    }


if __name__ == "__main__":
    main()
