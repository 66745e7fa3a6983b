"""``python -m bench.generated``: draw programs, measure them, and print geometric means by family."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bench import environment
from bench.__main__ import tools_of
from bench.case import Size
from bench.competitors import BY_NAME as TOOLS
from bench.generated.families import FAMILIES
from bench.generated.program import Program, program
from bench.harness.machine import least_seconds
from bench.harness.outcome import Wanted, geometric_mean, measure
from bench.harness.processes import WorkerFailed, run_ceilings
from bench.harness.table import figure
from bench.variants import settings_of

Row = dict[str, Any]
RATIOS = ("primal", "against", "least", "compile")


def _settings(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    try:
        settings_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None
    return value


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[FAMILY/SEED]...")
@click.option("--seed", type=click.IntRange(0), help="Seed of the set; without it, another set in each run.")
@click.option("--count", default=3, show_default=True, type=click.IntRange(1), help="Programs of each family.")
@click.option(
    "--family", "families", multiple=True, type=click.Choice(list(FAMILIES)), help="Only this one; repeatable."
)
@click.option("--tools", default="", callback=tools_of, help=f"Also measure, by commas: {', '.join(TOOLS)}.")
@click.option(
    "--against",
    multiple=True,
    callback=_settings,
    help="Measure irad again: with name=value of its options, without a pass.",
)
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(3), help="Samples of each function.")
@click.option("--size", default="full", show_default=True, type=click.Choice(get_args(Size)), help="Of the inputs.")
@click.option("--compile/--no-compile", "with_compile_times", default=True, help="Measure compile times.")
@click.option("--limit", default=300.0, show_default=True, help="Seconds for a program and a tool.")
@click.option("--json", "output", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
@click.option("--compare", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="An older result file.")
@click.option("--print", "prints", is_flag=True, help="Print the programs, in Numba and in C, and measure nothing.")
def main(
    names: tuple[str, ...],
    seed: int | None,
    count: int,
    families: tuple[str, ...],
    output: Path | None,
    compare: Path | None,
    prints: bool,
    **wanted: Any,
) -> None:
    """Compare irad's value-and-gradient of drawn programs with the program itself and with Enzyme."""
    names, seed = _names(names, seed, count, families or tuple(FAMILIES))
    if prints:
        for name in names:
            click.echo(_text(program(name)))
        return
    console = Console() if sys.stdout.isatty() else Console(width=180)
    if seed is not None:
        console.print(f"seed {seed}", highlight=False)
    machine = run_ceilings()
    rows: list[Row] = []
    for name in names:
        rows.append(_row(name, Wanted(**wanted), machine, console))
        console.print(_line(rows[-1]), highlight=False, soft_wrap=True)
        if output is not None:  # after each: a run that is broken off leaves what it has found
            output.write_text(json.dumps(_report(seed, machine, rows), indent=2) + "\n")
    console.print(_table(rows, wanted["tools"]))
    for line in (line for row in rows for line in _reasons(row)):
        console.print(line, highlight=False)
    if compare is not None:
        for group, found in means(changes(json.loads(compare.read_text())["programs"], rows)).items():
            console.print(f"{group}, now over then:", *(f"/{n} {figure(r)}" for n, r in found.items()), highlight=False)
    if any(not row["seconds"] for row in rows):  # an error of irad, or a wrong gradient, which is not timed
        sys.exit("\n".join(["not measured, or wrong:", *(line for row in rows for line in _reasons(row))]))


def _reasons(row: Row) -> list[str]:
    return row["wrong"] + [f"{row['name']}: {reason}" for reason in row["missing"]]


def _line(row: Row) -> str:
    ratios = ", ".join(f"/{name} {figure(ratio)}" for name, ratio in row["ratios"].items())
    return f"{row['name']}: {ratios or 'no figures'}"


def _report(seed: int | None, machine: dict[str, float], rows: list[Row]) -> Row:
    described = environment.describe()
    return {"seed": seed, "environment": described, "machine": machine, "programs": rows, "means": means(rows)}


def _names(
    names: tuple[str, ...], seed: int | None, count: int, families: Sequence[str]
) -> tuple[tuple[str, ...], int | None]:
    """Names of the programs, and the seed that they come from."""
    for name in names:
        family, _, number = name.partition("/")
        if family not in FAMILIES or not number.isdecimal():
            raise click.BadParameter(f"{name!r} is not a family and a seed, as stencil/1", param_hint="FAMILY/SEED")
    if names:
        return names, None
    seed = int(np.random.default_rng().integers(1_000_000)) if seed is None else seed
    drawn = np.random.default_rng(seed).integers(1_000_000, size=(len(FAMILIES), count))
    numbers = dict(zip(FAMILIES, drawn, strict=True))
    return tuple(f"{family}/{number}" for family in families for number in numbers[family]), seed


def _text(drawn: Program) -> str:
    active = ", ".join(drawn.drawn.active)
    return f"# {drawn.name}: {drawn.drawn.title}; with respect to {active}\n{drawn.numba}\n\n{drawn.c}"


def _row(name: str, wanted: Wanted, machine: dict[str, float], console: Console) -> Row:
    """All figures of a program; times in seconds."""
    case = program(name).case()
    row: Row = {"name": name, "title": case.title, "seconds": {}, "ratios": {}, "missing": [], "wrong": []}
    with console.status(f"{name}: {case.title}"):
        try:
            outcome = measure(case, wanted)
        except WorkerFailed as failure:
            return row | {"missing": [f"irad: {failure}"]}
    found = outcome.to_json()
    row |= {each: found[each] for each in ("seconds", "spread", "error", "compile_seconds", "tape_bytes", "peak_bytes")}
    row |= {"flops": found["flops"], "least_bytes": found["least_bytes"]}
    row["missing"] = [f"{tool}: {reason}" for tool, reason in outcome.missing.items()]
    row["wrong"] = outcome.wrong
    row["ratios"] = _ratios(row, least_seconds(found, machine), {t: r for t, r in outcome.ratios.items() if t in TOOLS})
    return row


def _ratios(row: Row, least: float | None, tools: dict[str, float]) -> dict[str, float]:
    """Irad's time over that of the primal, of the other settings, of each tool, and over the least that is possible."""
    seconds, compiling = row["seconds"], row["compile_seconds"]
    if "irad" not in seconds:
        return {}
    found = {name: seconds["irad"] / seconds[name] for name in ("primal", "against") if name in seconds}
    if least:
        found["least"] = seconds["irad"] / least
    if compiling.get("primal"):
        found["compile"] = compiling["irad"] / compiling["primal"]
    return found | {tool: 1.0 / ratio for tool, ratio in tools.items()}


def means(rows: Iterable[Row]) -> dict[str, dict[str, float | None]]:
    """Geometric means of each ratio, by family and over all programs."""
    rows = list(rows)
    families = {family: [row for row in rows if row["name"].startswith(f"{family}/")] for family in FAMILIES}
    groups = {family: members for family, members in families.items() if members} | {"all": rows}
    names = dict.fromkeys(name for row in rows for name in row["ratios"])
    return {
        group: {name: geometric_mean(row["ratios"].get(name) for row in members) for name in names}
        for group, members in groups.items()
    }


def _table(rows: Sequence[Row], tools: Sequence[str]) -> Table:
    ratios = [*RATIOS[:1], *tools, *RATIOS[1:]]
    ratios = [name for name in ratios if any(name in row["ratios"] for row in rows) or name in tools]
    table = Table(
        box=None, padding=(0, 2, 0, 0), title="Value and gradient, one thread: median CPU time, and irad's over …"
    )
    table.add_column("program", no_wrap=True)
    for heading in ("primal, ms", "irad, ms", *(f"/{name}" for name in ratios), "tape, MB", "spread"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        times = (figure(row["seconds"].get(name), 1e3) for name in ("primal", "irad"))
        cells = (figure(row["ratios"].get(name)) for name in ratios)
        spread = max(row.get("spread", {}).values(), default=0.0)
        table.add_row(row["name"], *times, *cells, figure(row.get("tape_bytes"), 1e-6), f"{spread:.0%}", row["title"])
    for group, found in means(rows).items():
        table.add_row(group, "", "", *(figure(found.get(name)) for name in ratios), style="bold")
    return table


def changes(before: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """Ratios over those of an older result, of the programs that both have."""
    old = {row["name"]: row["ratios"] for row in before}
    shared = [(row, old[row["name"]]) for row in rows if row["name"] in old]
    return [
        {"name": row["name"], "ratios": {n: r / then[n] for n, r in row["ratios"].items() if n in then}}
        for row, then in shared
    ]


if __name__ == "__main__":
    main()
