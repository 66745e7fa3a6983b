"""Dispersion of surface waves: Dunkin's matrices, a root search by refined bracketing, phase velocities."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of

LAYERS = (
    np.array([1.0, 2.0, 3.0, 10.0]),  # thickness, both velocities, density
    np.array([3.0, 4.0, 5.0, 6.5]),
    np.array([1.6, 2.2, 2.8, 3.6]),
    np.array([2.1, 2.3, 2.5, 2.8]),
)
S = "disba._cps._surf96:"
E = "disba._cps._swegn96:"

PACKAGE = Package(
    "disba",
    "disba>=0.7",
    (
        of(S + "dltar1", 0.7, 1.7, *LAYERS, 1, argnums=(0, 1, 2, 4, 5)),
        of(S + "dltar4", 0.7, 1.7, *LAYERS, 1, np.zeros((5, 5))),
        of(S + "dltar4", 0.7, 1.7, *LAYERS, 1, np.zeros((5, 5)), argnums=(0, 1, 2, 3, 4, 5)),
        of(S + "fast_delta", 0.7, 1.7, *LAYERS, 1),
        of(S + "gtsolh", 3.0, 1.6),
        of(S + "var", 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.1),
        of(E + "varl", 1, 1.7, 0.7, 1.3, LAYERS[2], LAYERS[3]),
        of(E + "evalg", 3, *LAYERS, 0.7, 1.7),
        of(E + "shfunc", 1.7, 0.7, *LAYERS),
        of(E + "svfunc", 1.7, 0.7, *LAYERS),
        of(
            "disba._velocity_model:_resample",
            LAYERS[0],
            np.column_stack(LAYERS[1:]),
            np.array([2, 1, 1, 2]),
            np.zeros(6),
            np.zeros((6, 3)),
            writes=(3, 4),
        ),
    ),
    fastmath=True,
)
