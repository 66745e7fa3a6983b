"""The picture: points, true and found ellipses."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from irad.demo.model import Floats, Mixture


def can_plot() -> bool:
    """Whether matplotlib is installed."""
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
