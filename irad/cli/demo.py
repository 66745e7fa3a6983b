"""`irad demo`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console


@click.command()
@click.option("--points", default=2000, show_default=True, type=click.IntRange(50), help="Number of data points.")
@click.option(
    "--seed", default=7, show_default=True, type=click.IntRange(0), help="Seed of the data and of the initial guess."
)
@click.option(
    "--plot",
    default=Path("irad_demo.png"),
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of the plot.",
)
@click.option("--no-plot", is_flag=True, help="Do not save a plot.")
def demo(points: int, seed: int, plot: Path, no_plot: bool) -> None:
    """Fit a Gaussian mixture with irad's gradient, check it and time it.

    It needs SciPy, and Matplotlib for the plot: pip install 'irad[demo]'.
    """
    if not no_plot and not plot.parent.is_dir():
        raise click.UsageError(f"--plot {plot}: there is no folder {plot.parent}")
    from irad.demo.run import run  # loads Numba, which `irad demo --help` does not need

    if not run(Console(), points, seed, None if no_plot else plot):
        raise SystemExit(1)
