"""Gravity of particles with softening."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X, M, H = floats(5, 3, low=-1.0, high=1.0), floats(5), np.array([0.0, 0.1, 0.3, 0.0, 1.7])
B = "pytreegrav.bruteforce:"

PACKAGE = Package(
    "pytreegrav",
    "pytreegrav>=1.4",
    (
        of(B + "Potential_bruteforce", X, M, H, 1.3, argnums=(0, 1, 3)),
        of(B + "Accel_bruteforce", X, M, H, 1.3, argnums=(0, 1, 3)),
        of(B + "AccelTarget_bruteforce", X[:2] + 0.1, H[:2] + 0.1, X, M, H, 1.3, argnums=(0, 1, 2, 3, 5)),
        of(B + "TidalTensor_bruteforce", X, M, H, 1.3, argnums=(0, 1, 3)),
        of(B + "Accel_bruteforce_parallel", X, M, H, 1.3, argnums=(0, 1, 3)),
        of("pytreegrav.bruteforce_symmetric:Potential_bruteforce_symmetric", X, M, H, 1.3, argnums=(0, 1, 3)),
        of("pytreegrav.kernel:ForceKernel", 0.4, 0.7),
        of("pytreegrav.kernel:PotentialKernel", 0.4, 0.7),
        of("pytreegrav.treewalk:NearestImage", 0.7, 1.1),
    ),
    fastmath=True,
)
