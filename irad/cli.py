"""The command line: click commands and rich output, no logic.

Exit codes: 0 done, 1 an error of irad or a failed check, 2 a wrong command line.
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

import irad
from irad.errors import IradError
from irad.options import Options

_PACKAGES = ("numba", "llvmlite", "numpy", "scipy", "matplotlib", "cupy-cuda12x", "numba-cuda")


class _Commands(click.Group):
    """A group that shows irad's errors as text: a user's mistake is no reason for a traceback."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the chosen command; an `IradError` ends the process with status 1."""
        try:
            return super().invoke(ctx)
        except IradError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(1)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(irad.__version__, prog_name="irad")
def main() -> None:
    """Reverse-mode automatic differentiation of what Numba compiles."""


@main.command()
@click.option("--points", default=2000, show_default=True, type=click.IntRange(50), help="Number of data points.")
@click.option("--seed", default=7, show_default=True, help="Seed of the data and of the start.")
@click.option(
    "--plot", default=Path("irad_demo.png"), show_default=True, type=click.Path(path_type=Path, dir_okay=False)
)
@click.option("--no-plot", is_flag=True, help="Save no plot.")
def demo(points: int, seed: int, plot: Path, no_plot: bool) -> None:
    """Fit a Gaussian mixture with irad's gradient; check it and time it."""
    from irad.demo.run import run  # loads Numba, which the other commands do not need

    if not run(Console(), points, seed, None if no_plot else plot):
        raise SystemExit(1)


@main.command()
def doctor() -> None:
    """Show the versions and settings that matter, for a bug report."""
    table = Table("what", "value", title="irad doctor")
    for what, value in _facts():
        table.add_row(what, value)
    Console().print(table)


def _facts() -> Iterator[tuple[str, str]]:
    yield "irad", irad.__version__
    yield "Python", f"{platform.python_version()} ({sys.executable})"
    yield "platform", platform.platform()
    for name in _PACKAGES:
        yield name, _version_of(name)
    options = Options.from_environment()
    yield "options", f"plan={options.plan} strict={options.strict} verify={options.verify}"


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
