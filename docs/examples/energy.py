"""The function that docs/architecture.md and docs/inspector.md follow through all stages."""

import numba
import numpy as np


@numba.njit(error_model="numpy")
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(x[i]) * x[i]
    return total
