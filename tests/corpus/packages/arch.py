"""Volatility models: recursions of the variance, in place."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

RESIDUALS = floats(12, low=-1.0, high=1.0)
SIGMA = np.zeros(12)
BOUNDS = np.column_stack([np.full(12, 1e-3), np.full(12, 1e3)])
M = "arch.univariate.recursions_python:"

PACKAGE = Package(
    "arch",
    "arch>=8.0",
    (
        of(
            M + "harch_recursion",
            floats(3, low=0.05, high=0.3),
            RESIDUALS,
            SIGMA,
            np.array([1, 3], np.int32),
            12,
            0.3,
            BOUNDS,
        ),
        of(M + "arch_recursion", floats(4, low=0.05, high=0.3), RESIDUALS, SIGMA, 3, 12, 0.3, BOUNDS),
        of(M + "garch_core", 5, floats(4, low=0.05, high=0.3), RESIDUALS, floats(12), 0.3, BOUNDS, 1, 1, 1, 2.0),
        of(
            M + "garch_recursion",
            floats(4, low=0.05, high=0.3),
            np.abs(RESIDUALS) ** 1.5,
            np.sign(RESIDUALS),
            SIGMA,
            1,
            1,
            1,
            12,
            0.3,
            BOUNDS,
            argnums=(0, 1, 3, 8),
        ),
        of(
            M + "garch_recursion",
            floats(4, low=0.05, high=0.3),
            np.abs(RESIDUALS) ** 1.5,
            np.sign(RESIDUALS),
            SIGMA,
            1,
            1,
            1,
            12,
            0.3,
            np.column_stack([np.full(12, 0.21), np.full(12, 0.35)]),
            argnums=(0, 1, 8),
        ),
        of(
            M + "egarch_recursion",
            floats(4, low=0.05, high=0.3),
            RESIDUALS,
            SIGMA,
            1,
            1,
            1,
            12,
            0.3,
            BOUNDS,
            np.zeros(12),
            np.zeros(12),
            np.zeros(12),
        ),
        of(
            M + "midas_recursion",
            floats(3, low=0.05, high=0.3),
            floats(4),
            RESIDUALS,
            SIGMA,
            12,
            0.3,
            BOUNDS,
            argnums=(0, 1, 2, 5),
        ),
        of(M + "figarch_weights", np.array([0.2, 0.4, 0.3]), 1, 1, 20),
        of(M + "figarch_recursion", np.array([0.1, 0.2, 0.4, 0.3]), np.abs(RESIDUALS), SIGMA, 1, 1, 12, 8, 0.3, BOUNDS),
        of(
            M + "aparch_recursion",
            np.array([0.1, 0.2, 0.1, 0.5, 1.5]),
            RESIDUALS,
            np.abs(RESIDUALS),
            SIGMA,
            SIGMA + 0.1,
            1,
            1,
            1,
            12,
            0.3,
            BOUNDS,
            argnums=(0, 2, 9),
        ),
        of("arch.covariance.kernel:_cov_jit", 9, 3, 4, floats(4), floats(12, 3)),
    ),
)
