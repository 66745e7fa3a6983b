"""Electromagnetic fields in layered media: reflections and Green's functions in the wavenumber domain."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

DEPTH = np.array([-np.inf, 0.0, 1.0, 2.5])
LAMBDA = floats(1, 3)


def admittivity(seed: int) -> np.ndarray:
    """For four layers at one frequency."""
    return floats(1, 4, seed=seed) + 0.1j * floats(1, 4, seed=seed + 10)


def impedivity(seed: int) -> np.ndarray:
    """For four layers at one frequency."""
    return 0.1 * floats(1, 4, seed=seed) + 1j * floats(1, 4, seed=seed + 10)


GAMMA = floats(1, 1, 4, 3) + 1j * floats(1, 1, 4, 3, low=0.1, high=1.0, seed=1)
REFLECTIONS = (0.3 * (floats(1, 1, 2, 3) + 1j * floats(1, 1, 2, 3, seed=1)),) * 2
MEDIUM = (DEPTH, admittivity(1), admittivity(2), impedivity(3), impedivity(4), LAMBDA)
NOT_DEPTH = (0, 1, 5, 6, 7, 8, 9)
K = "empymod.kernel:"

PACKAGE = Package(
    "empymod",
    "empymod>=2.6",
    (
        of(K + "fields", DEPTH, *REFLECTIONS, GAMMA, 1, 2, 1.3, 11, True, argnums=(1, 2, 3, 6)),
        of(K + "fields", DEPTH, *REFLECTIONS, GAMMA, 1, 1, 0.4, 13, False, argnums=(1, 2, 3, 6)),
        of(K + "reflections", DEPTH, admittivity(0), GAMMA, 1, 2, argnums=(1, 2)),
        of(K + "greenfct", 0.4, 1.3, 1, 2, *MEDIUM, 11, False, False, False, argnums=NOT_DEPTH),
        of(K + "greenfct", 0.4, 0.6, 1, 1, *MEDIUM, 33, True, False, False, argnums=NOT_DEPTH),
        of(K + "wavenumber", 0.4, 1.3, 1, 2, *MEDIUM, 11, False, False, False, argnums=NOT_DEPTH),
        of(K + "wavenumber", 0.4, 1.3, 1, 2, *MEDIUM, 33, False, False, True, argnums=NOT_DEPTH),
    ),
)
