"""``python -m bench.array_code``: how long gradients of array expressions take to compile."""

from __future__ import annotations

import statistics

import click
from rich.console import Console
from rich.table import Table

from bench.array_code import BY_NAME
from bench.array_code.measure import STAGES, measure


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[PROGRAM]...")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1), help="Processes for each program.")
def main(names: tuple[str, ...], rounds: int) -> None:
    """CPU seconds of the first call. Without PROGRAM all are measured."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise click.BadParameter(f"no program {unknown[0]!r}; there are {', '.join(BY_NAME)}", param_hint="PROGRAM")
    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), title=f"CPU seconds to compile, median of {rounds}")
    table.add_column("program", no_wrap=True)
    for heading in ("plain", "gradient", "ratio", *STAGES):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in names or BY_NAME:
        with console.status(BY_NAME[name].title):
            runs = [measure(name) for _ in range(rounds)]
        times = {key: statistics.median(run.get(key, 0.0) for run in runs) for key in ("primal", "gradient", *STAGES)}
        ratio = statistics.median(run["gradient"] / run["primal"] for run in runs)
        figures = (times["primal"], times["gradient"], ratio, *(times[stage] for stage in STAGES))
        table.add_row(name, *(f"{figure:.2f}" for figure in figures))
    console.print(table)


if __name__ == "__main__":
    main()
