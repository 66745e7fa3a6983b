"""The course of the demo."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import irad
from irad.demo import check, plot, report
from irad.demo.fit import TRUTH, Fit, ValueAndGradient, fit, make_points, make_start, match, require_scipy
from irad.demo.model import Floats, Mixture, negative_log_likelihood
from irad.versions import install


def run(console: Console, count: int, seed: int, plot_path: Path | None) -> bool:
    """Fit the mixture, print all and save the plot.

    Args:
        console: where to print.
        count: number of points.
        seed: of the data and of the start.
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
    console.print(report.mixture_table(TRUTH, found))
    checked = check.check_gradient(gradient, start, points, components)
    console.print(report.check_table(checked))
    console.print(report.time_table(check.measure_times(gradient, start, points, components)))
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
    if not plot.can_plot():
        console.print(f"No plot: matplotlib is not installed ({install('demo')}).", markup=False, highlight=False)
        return
    plot.save_plot(path, points, TRUTH, found)
    console.print(f"Plot saved to {path}.", highlight=False, soft_wrap=True)
