"""The steps of the demo: output and picture."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import irad
from irad.demo import check
from irad.demo.check import DIFFERENCE_TOLERANCE, HAND_TOLERANCE, GradientCheck
from irad.demo.fit import TRUTH, Fit, ValueAndGradient, fit, make_points, make_start, match, require_scipy
from irad.demo.model import Floats, Mixture, negative_log_likelihood
from irad.versions import install

# The picture: points, true and found ellipses.


def can_plot() -> bool:
    """True if matplotlib is installed."""
    return find_spec("matplotlib") is not None


def save_plot(path: Path, points: Floats, truth: Mixture, found: Mixture) -> None:
    """Draw the points and the two-sigma ellipses of both mixtures into a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # an optional dependency; needs no display # pyright: ignore[reportMissingImports]
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]

    figure = Figure(figsize=(7.0, 6.0), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.scatter(points[:, 0], points[:, 1], s=3, color="0.7", label="data")
    for name, mixture, style in (("true", truth, "k--"), ("found", found, "C3-")):
        for c in range(len(mixture.weights)):
            ellipse = two_sigma_ellipse(mixture.means[c], mixture.covariances[c])
            axes.plot(ellipse[:, 0], ellipse[:, 1], style, label=name if c == 0 else None)
    axes.set_aspect("equal")
    axes.set_title("Gaussian mixture: two-sigma ellipses")
    axes.legend(loc="best")
    figure.savefig(path)


def two_sigma_ellipse(mean: Floats, covariance: Floats, count: int = 100) -> Floats:
    """Points of a closed ellipse, at Mahalanobis distance 2 from the mean, one per row."""
    angles = np.linspace(0.0, 2.0 * np.pi, count)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.asarray(mean + 2.0 * circle @ np.linalg.cholesky(covariance).T)


# What the demo prints.


def mixture_table(truth: Mixture, found: Mixture) -> RenderableType:
    """True and found components, one below the other."""
    table = Table(title="Components")
    for heading in ("", "weight", "mean", "standard deviations", "correlation"):
        table.add_column(heading, justify="right")
    for c in range(len(truth.weights)):
        for name, mixture in (("true", truth), ("found", found)):
            covariance = mixture.covariances[c]
            table.add_row(
                name,
                f"{mixture.weights[c]:.3f}",
                _vector(mixture.means[c]),
                _vector(_deviations(covariance)),
                f"{_correlation(covariance):+.2f}",
                end_section=name == "found",
            )
    return table


def check_table(check: GradientCheck) -> RenderableType:
    """The check of the gradient."""
    table = Table("irad's gradient against", "largest relative difference", "allowed", title="Check of the gradient")
    table.add_row("hand-written gradient", f"{check.from_hand:.1e}", f"{HAND_TOLERANCE:.0e}")
    table.add_row("central differences", f"{check.from_differences:.1e}", f"{DIFFERENCE_TOLERANCE:.0e}")
    return table


def time_table(times: dict[str, float]) -> RenderableType:
    """The times of one evaluation."""
    table = Table(title="CPU time of one evaluation, medians")
    table.add_column("what")
    table.add_column("ms", justify="right")
    table.add_column("× likelihood", justify="right")
    alone = times["likelihood alone"]
    for name, seconds in times.items():
        table.add_row(name, f"{1e3 * seconds:.3f}", f"{seconds / alone:.1f}")
    return table


def _vector(values: Floats) -> str:
    return "(" + ", ".join(f"{value:.2f}" for value in values) + ")"


def _deviations(covariance: Floats) -> Floats:
    return np.sqrt(np.diag(covariance))


def _correlation(covariance: Floats) -> float:
    first, second = _deviations(covariance)
    return float(covariance[0, 1] / (first * second))


# The course of the demo.


def run(console: Console, count: int, seed: int, plot_path: Path | None) -> bool:
    """Fit the mixture, print all and save the plot.

    Args:
        console: where to print.
        count: number of points.
        seed: seed of the data and of the start.
        plot_path: where to save the plot, or None for no plot.

    Returns:
        Whether the fit converged and the gradient passed its check.
    """
    require_scipy()  # before anything is compiled
    components = len(TRUTH.weights)
    points = make_points(count, seed)
    start = make_start(points, components, seed)
    console.print(f"Maximum-likelihood fit of {components} Gaussians to {count} points, {start.size} parameters.")
    gradient = irad.value_and_grad(negative_log_likelihood)
    _compile(console, gradient, start, points, components)
    result = _fit(console, gradient, start, points, components)
    true_value = negative_log_likelihood(TRUTH.to_parameters(), points, components)
    console.print(
        f"{'Converged' if result.converged else 'Did not converge'} after {result.iterations} iterations, "
        f"{result.evaluations} gradients: mean negative log-likelihood {result.value:.6f} "
        f"(the true parameters have {true_value:.6f})."
    )
    found = match(result.mixture, TRUTH)
    console.print(mixture_table(TRUTH, found))
    checked = check.check_gradient(gradient, start, points, components)
    console.print(check_table(checked))
    console.print(time_table(check.measure_times(gradient, start, points, components)))
    _plot(console, plot_path, points, found)
    if not checked.passed:
        console.print("The gradient is wrong.", style="bold red")
    return checked.passed and result.converged


def _compile(console: Console, gradient: ValueAndGradient, start: Floats, points: Floats, components: int) -> None:
    with console.status("compiling"):
        begin = time.perf_counter()
        negative_log_likelihood(start, points, components)
        primal = time.perf_counter() - begin
        begin = time.perf_counter()
        gradient(start, points, components)
        derivative = time.perf_counter() - begin
    console.print(f"First calls, compilation included: likelihood {primal:.2f} s, gradient {derivative:.2f} s.")


def _fit(console: Console, gradient: ValueAndGradient, start: Floats, points: Floats, components: int) -> Fit:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("L-BFGS-B")

        def show(iteration: int, value: float) -> None:
            progress.update(task, description=f"L-BFGS-B, iteration {iteration:3d}, value {value:.6f}")

        return fit(points, start, components, gradient, show)


def _plot(console: Console, path: Path | None, points: Floats, found: Mixture) -> None:
    if path is None:
        return
    if not can_plot():
        console.print(f"No plot: matplotlib is not installed ({install('demo')}).", markup=False, highlight=False)
        return
    save_plot(path, points, TRUTH, found)
    console.print(f"Plot saved to {path}.", highlight=False, soft_wrap=True)
