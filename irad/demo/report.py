"""What the demo prints."""

from __future__ import annotations

import numpy as np
from rich.console import RenderableType
from rich.table import Table

from irad.demo.check import DIFFERENCE_TOLERANCE, HAND_TOLERANCE, GradientCheck
from irad.demo.model import Floats, Mixture


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
