"""Data, start and maximum-likelihood fit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from irad.demo.model import Floats, Mixture
from irad.errors import IradError
from irad.versions import install

ValueAndGradient: TypeAlias = Callable[[Floats, Floats, int], tuple[float, Floats]]
Progress: TypeAlias = Callable[[int, float], None]

TRUTH = Mixture(
    weights=np.array([0.35, 0.30, 0.20, 0.15]),
    means=np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 4.0], [2.0, -4.0]]),
    covariances=np.array(
        [
            [[1.0, 0.6], [0.6, 1.2]],
            [[0.5, -0.3], [-0.3, 0.8]],
            [[1.5, 0.0], [0.0, 0.3]],
            [[0.6, 0.2], [0.2, 0.4]],
        ]
    ),
)


@dataclass(frozen=True)
class Fit:
    """Result of the optimiser."""

    mixture: Mixture
    parameters: Floats
    value: float
    iterations: int
    evaluations: int
    converged: bool
    message: str


def make_points(count: int, seed: int) -> Floats:
    """Points of the true mixture."""
    return TRUTH.sample(count, np.random.default_rng(seed))


def make_start(points: Floats, components: int, seed: int) -> Floats:
    """Parameters to start from: equal weights, the covariance of all points, means far apart.

    Each further mean is drawn with a probability in proportion to the squared distance from those already drawn.

    Source:
        Arthur, Vassilvitskii 2007, 'k-means++: the advantages of careful seeding'.
    """
    rng = np.random.default_rng(seed)
    means = points[rng.integers(len(points), size=1)]
    while len(means) < components:
        distances = np.min(np.sum((points[:, None, :] - means) ** 2, axis=2), axis=1)
        means = np.vstack([means, points[rng.choice(len(points), p=distances / np.sum(distances))]])
    covariance = np.atleast_2d(np.cov(points.T)) / components
    weights = np.full(components, 1.0 / components)
    return Mixture(weights, means, np.repeat(covariance[None], components, axis=0)).to_parameters()


def require_scipy() -> None:
    """Checks that there is a minimiser.

    Raises:
        IradError: SciPy is not installed.
    """
    try:
        importlib.import_module("scipy.optimize")
    except ImportError as error:
        raise IradError(
            "the demo needs SciPy",
            f"install it: {install('demo')}",
            "its minimiser fits the mixture with the gradient",
        ) from error


def fit(points: Floats, start: Floats, components: int, gradient: ValueAndGradient, progress: Progress) -> Fit:
    """Minimise the negative log-likelihood with L-BFGS-B.

    Args:
        points: the data, one point per row.
        start: parameters to start from.
        components: components of the mixture.
        gradient: value and gradient of the negative log-likelihood.
        progress: told the number of each iteration and the value reached.

    Raises:
        IradError: SciPy is not installed.
    """
    require_scipy()
    from scipy.optimize import OptimizeResult, minimize  # an optional dependency

    iterations = 0

    def report(intermediate_result: OptimizeResult) -> None:
        nonlocal iterations
        iterations += 1
        progress(iterations, float(intermediate_result.fun))

    found = minimize(
        gradient,
        start,
        args=(points, components),
        jac=True,
        method="L-BFGS-B",
        callback=report,
        options={"maxiter": 500, "ftol": 1e-13, "gtol": 1e-7},
    )
    return Fit(
        mixture=Mixture.from_parameters(found.x, components, points.shape[1]),
        parameters=found.x,
        value=float(found.fun),
        iterations=int(found.nit),
        evaluations=int(found.nfev),
        converged=bool(found.success),
        message=str(found.message),
    )


def match(found: Mixture, truth: Mixture) -> Mixture:
    """The found mixture with its components in the order of the true ones: the mixture does not know their names."""
    from scipy.optimize import linear_sum_assignment  # an optional dependency; `fit` has met it before

    distances = np.linalg.norm(truth.means[:, None, :] - found.means, axis=2)
    _, order = linear_sum_assignment(distances)
    return found.reordered(order)
